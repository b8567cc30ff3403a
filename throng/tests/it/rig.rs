//! Starts the binary, bounds its time and memory, and reads what it leaves behind.

use results::summary::Level;
use results::{Run, Summary};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longest time a started program may take, generous for a busy machine: a hang is what it finds.
const PATIENCE: Duration = Duration::from_secs(90);
/// From one look at a condition to the next, and the most looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const LOOKS_MAX: u32 = 12_000;
/// Rows of a table that are tested at once.
const AT_ONCE: usize = 6;
/// How often a run is tried while the machine is too busy for it.
const TRIES_MAX: u32 = 20;

/// A folder of a test's own; removed when the test succeeds.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A fresh folder.
    pub(crate) fn new(name: &str) -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, with the folders it needs.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs the binary here to its end.
    pub(crate) fn throng<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Answer {
        self.start(arguments).end()
    }

    /// Writes the scenario, runs it into the folder `run` and reads the run.
    pub(crate) fn run(&self, scenario: &str, more: &[&str]) -> Answer {
        self.start_run(scenario, more).end()
    }

    /// As [`Folder::run`], and again if the machine was too busy to measure: the binary says so
    /// with exit code 3, which is right, but not what is tested.
    pub(crate) fn run_fit(&self, scenario: &str, more: &[&str]) -> Answer {
        for _ in 0..TRIES_MAX {
            let answer = self.run(scenario, more);
            if answer.code != Some(3) || !answer.summary().was_busy() {
                return answer;
            }
            fs::remove_dir_all(self.path("run")).unwrap();
        }
        panic!("the machine was too busy in {TRIES_MAX} tries");
    }

    /// Writes the scenario and starts a run of it into the folder `run`.
    pub(crate) fn start_run(&self, scenario: &str, more: &[&str]) -> Started {
        let file = self.write("scenario.yaml", scenario);
        let run = self.path("run");
        let mut words: Vec<OsString> = vec!["run".into(), file.into(), "--json".into()];
        words.extend(["--quiet".into(), "--out".into(), run.into()]);
        words.extend(more.iter().map(OsString::from));
        self.start(words)
    }

    /// Starts the binary here.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Started {
        self.start_with(&[], arguments)
    }

    /// Starts the binary here, with variables in its environment.
    pub(crate) fn start_with<S: AsRef<OsStr>>(
        &self,
        variables: &[(&str, &str)],
        arguments: impl IntoIterator<Item = S>,
    ) -> Started {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let [stdout, stderr] = ["stdout", "stderr"].map(|n| self.path(&format!("{n}-{number}")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
        command.envs(variables.iter().copied());
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null());
        // Files instead of pipes: a grandchild that outlives the child cannot hold up the test.
        command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        let pid = command.spawn().unwrap().id() as libc::pid_t;
        let (sender, ended) = channel();
        std::thread::spawn(move || sender.send(wait(pid)));
        Started { pid, ended, stdout, stderr, run: self.path("run") }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // What cannot be removed lies in Cargo's own temporary folder.
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Waits for a child: how it ended and the most memory it ever had resident, KiB.
fn wait(pid: libc::pid_t) -> (ExitStatus, u64) {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live variables; `pid` is a child nobody else waits for.
        if unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } == pid {
            return (ExitStatus::from_raw(status), usage.ru_maxrss as u64);
        }
    }
}

/// The binary, running.
pub(crate) struct Started {
    pub(crate) pid: libc::pid_t,
    ended: Receiver<(ExitStatus, u64)>,
    stdout: PathBuf,
    stderr: PathBuf,
    run: PathBuf,
}

impl Started {
    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: libc::c_int) {
        // SAFETY: a signal to our own child, which has not been waited for unless it has ended.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// What it has written to stderr by now.
    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// Waits for its end. One that does not come in time is a hang.
    pub(crate) fn end(self) -> Answer {
        let Ok((status, peak_kib)) = self.ended.recv_timeout(PATIENCE) else {
            self.signal(libc::SIGKILL);
            panic!("no end within {PATIENCE:?}; stderr:\n{}", read(&self.stderr));
        };
        let (stdout, stderr) = (read(&self.stdout), read(&self.stderr));
        Answer { code: status.code(), peak_kib, stdout, stderr, run: self.run }
    }
}

pub(crate) trait Busy {
    /// Whether all that made the run invalid is that the machine was busy.
    fn was_busy(&self) -> bool;
}

impl Busy for Summary {
    fn was_busy(&self) -> bool {
        let words = ["timers fired", "sent more than", "out of CPU", "the hypervisor", "starved"];
        let is_busy = |what: &str| words.iter().any(|word| what.contains(word));
        let mut invalid = self.health.findings.iter().filter(|f| f.level == Level::Invalid);
        self.health.level == Level::Invalid && invalid.all(|finding| is_busy(&finding.what))
    }
}

/// What a program left behind.
pub(crate) struct Answer {
    /// Its exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// The most memory it, or one of its own children, ever had resident, KiB.
    pub(crate) peak_kib: u64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The run directory, if it was a run.
    run: PathBuf,
}

impl Answer {
    /// The summary on stdout.
    pub(crate) fn summary(&self) -> Summary {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }

    /// The run as its directory tells it.
    pub(crate) fn load(&self) -> Run {
        Run::load(&self.run).unwrap_or_else(|error| panic!("{error}\n{}", self.stderr))
    }
}

/// A file's text; empty if there is none.
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    panic!("waited in vain: {what}");
}

/// Whether there is such a process that is not merely waiting to be buried.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The processes a process has started.
pub(crate) fn children(pid: libc::pid_t) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|thread| read(&thread.path().join("children")));
    let numbers = lists.flat_map(|list| {
        list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>()
    });
    numbers.collect()
}

/// A listener on a free port of loopback.
pub(crate) fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).unwrap()
}

/// A yardstick in this process, with faults as its command line would have them; it compresses for
/// those who ask for it.
pub(crate) fn yardstick(faults: &str) -> server::Handle {
    let faults = faults.parse().unwrap();
    let config = server::Config { faults, deflate: true, ..server::Config::default() };
    server::spawn(config, listener()).unwrap()
}

/// Where a yardstick is, as the beginning of a scenario.
pub(crate) fn at(server: &server::Handle, codec: &str) -> String {
    let address = server.address();
    format!("target: {{url: \"ws://{address}/ws\", codec: {codec}}}\nprotocol: yardstick\n")
}

/// Something for each row, some at once: such tests wait more than they work.
pub(crate) fn for_each<T: Sync>(rows: &[T], test: impl Fn(&T) + Sync) {
    for batch in rows.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let test = &test;
            let tests: Vec<_> = batch.iter().map(|row| scope.spawn(move || test(row))).collect();
            for test in tests {
                test.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
            }
        });
    }
}
