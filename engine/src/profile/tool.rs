//! The profilers as programs: whether they are installed and allowed, and how they are called.

use crate::clock::Clock;
use model::{ProfilePlan, Profiler, Subject};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Largest file of samples, bytes: `perf` ends by itself there.
const SAMPLES_MAX: &str = "256M";
/// Bytes of the stack that `perf` keeps with each sample, for its callers.
const STACK_BYTES: &str = "dwarf,8192";
/// How long a trial may take.
const TRIAL_WITHIN: Duration = Duration::from_secs(10);
/// From one look at a trial to the next, nanoseconds.
const LOOK_EVERY_NS: u64 = 5_000_000;
/// Bytes of the end of a program's complaint that are shown.
const WORDS_BYTES: u64 = 600;
/// What a Node process must be told for `perf` to know its functions by name.
pub const NODE_OPTIONS: &str = "--perf-basic-prof --interpreted-frames-native-stack";

const PERF_ADVICE: &str = "install it with\n\n    apt-get install linux-perf\n\n  (Ubuntu: \
                           linux-tools-generic; Fedora, Alpine, Arch: perf)";
const PY_SPY_ADVICE: &str = "install it with\n\n    pip install py-spy\n";
const PERMISSION: &str = "as root: `sysctl kernel.perf_event_paranoid=1`, in a container also \
                          `--cap-add PERFMON` and a seccomp profile that permits perf_event_open; \
                          or run throng as root";

/// Whether a profiler can work here; the error is advice.
pub(super) fn check(profiler: &Profiler) -> Result<(), String> {
    match profiler {
        Profiler::Perf | Profiler::Node => event().clone().map(|_| ()),
        Profiler::PySpy => check_py_spy(),
        Profiler::Pprof { .. } => Ok(()),
    }
}

/// What `perf` counts to take its samples: cycles, or the time of the CPU where this machine (often
/// a virtual one) has no counters. Tried once.
fn event() -> &'static Result<&'static str, String> {
    static EVENT: OnceLock<Result<&str, String>> = OnceLock::new();
    EVENT.get_or_init(|| {
        if !is_installed("perf") {
            return Err(format!("`perf` is not installed: {PERF_ADVICE}"));
        }
        let counters = fs::read_dir("/sys/bus/event_source/devices").into_iter().flatten();
        let has_counters = counters.flatten().any(|entry| {
            let name = entry.file_name();
            name.to_str()
                .is_some_and(|name| name == "cpu" || name == "cpu_core" || name.starts_with("armv"))
        });
        if has_counters && try_perf("cycles").is_ok() {
            return Ok("cycles");
        }
        try_perf("cpu-clock").map(|()| "cpu-clock")
    })
}

/// Records nothing much for a moment.
fn try_perf(event: &str) -> Result<(), String> {
    let folder =
        Scratch::new().map_err(|error| format!("`perf` has no place to write: {error}"))?;
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-F", "99", "-e", event, "-o"]);
    command.arg(folder.0.join("trial.data")).args(["--", "true"]);
    let words = folder.0.join("words");
    match run(&mut command, &words) {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => {
            let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            let level: i64 = level.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            Err(match !is_root() && level > 2 {
                true => format!(
                    "`perf` may not look at processes: kernel.perf_event_paranoid is {level}. \
                     {PERMISSION}"
                ),
                false => format!(
                    "`perf` cannot take samples here: {}. If it is not permitted: {PERMISSION}. \
                     If it does not fit the kernel, {PERF_ADVICE}",
                    last_words(&words)
                ),
            })
        }
        Err(error) => Err(format!("`perf` cannot be started: {error}; {PERF_ADVICE}")),
    }
}

fn check_py_spy() -> Result<(), String> {
    if !is_installed("py-spy") {
        return Err(format!("`py-spy` is not installed: {PY_SPY_ADVICE}"));
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match is_root() || matches!(scope.trim(), "" | "0") {
        true => Ok(()),
        false => Err("`py-spy` may not look into other processes: run throng as root, or, as \
                      root, `sysctl kernel.yama.ptrace_scope=0`"
            .into()),
    }
}

/// A command that samples these processes until it is interrupted, and writes to `data`.
pub(super) fn record(profile: &ProfilePlan, pids: &[u32], data: &Path) -> Result<Command, String> {
    let list = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let hz = profile.hz.to_string();
    if profile.profiler == Profiler::PySpy {
        let mut command = Command::new("py-spy");
        command.args([
            "record",
            "--function",
            "--format",
            "raw",
            "--rate",
            &hz,
            "--pid",
            &list,
            "--output",
        ]);
        command.arg(data);
        return Ok(command);
    }
    // Compiled JavaScript has frame pointers but no tables; most other programs the reverse.
    let callers = if profile.profiler == Profiler::Node { "fp" } else { STACK_BYTES };
    let event = event().as_ref().map_err(String::clone)?;
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", event, "-F", &hz, "--call-graph", callers]);
    command.args(["--max-size", SAMPLES_MAX, "-p", &list, "-o"]).arg(data);
    Ok(command)
}

/// A command that prints the samples that `perf` has written.
pub(super) fn script(data: &Path) -> Command {
    let mut command = Command::new("perf");
    // -f: maps of functions may belong to the user of the target.
    command.args(["script", "-f", "--no-inline", "-F", "comm,pid,ip,sym,dso", "-i"]).arg(data);
    command
}

/// Whether a process is one the profiler can make sense of; the error is a remark.
pub(super) fn suits(profiler: &Profiler, pid: u32) -> bool {
    let link = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = link.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    match profiler {
        Profiler::Node => name.starts_with("node"),
        Profiler::PySpy => name.starts_with("python") || name.starts_with("pypy"),
        Profiler::Perf | Profiler::Pprof { .. } => true,
    }
}

/// Where a Node process tells the names of its functions.
pub(super) fn node_map(pid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{pid}.map"))
}

/// What a plan's profile is called in files: the profiler and, if not the target, whose it is.
pub(super) fn name(profile: &ProfilePlan) -> String {
    let tool = profile.profiler.name();
    match (&profile.profiler, profile.of) {
        (Profiler::Pprof { url }, _) => {
            let path = url.split('?').next().unwrap_or_default();
            let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            format!("{tool}-{last}")
        }
        (_, Subject::Target) => tool.into(),
        (_, Subject::Generator) => format!("{tool}-generator"),
        (_, Subject::Process(pid)) => format!("{tool}-{pid}"),
    }
}

/// Sees to it that a profiler says its words into a file and does not outlive throng.
pub(super) fn prepare(command: &mut Command, words: &Path) -> io::Result<()> {
    let errors = File::create(words)?;
    command.stdin(Stdio::null()).stdout(errors.try_clone()?).stderr(errors);
    // SAFETY: prctl only asks the kernel to end the child with its parent; it allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    Ok(())
}

/// Runs a command to its end, which comes within a bound.
fn run(command: &mut Command, words: &Path) -> io::Result<ExitStatus> {
    prepare(command, words)?;
    let mut child = command.spawn()?;
    let clock = Clock::start();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let now = clock.now();
        if now.0 > TRIAL_WITHIN.as_nanos() as u64 {
            child.kill()?;
            return child.wait();
        }
        clock.sleep_until(model::Tick(now.0 + LOOK_EVERY_NS));
    }
}

/// The end of what a program said, in one line.
pub(super) fn last_words(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(WORDS_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(WORDS_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.is_empty() {
        true => "it left no message".into(),
        false => words.join(" "),
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A folder of one's own that goes away again.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> io::Result<Scratch> {
        for attempt in 0..1_000u32 {
            let name = format!("throng-profile-{}-{attempt}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => return result.map(|()| Scratch(path)),
            }
        }
        Err(io::Error::other("no fresh folder in the system's temporary place"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the system's temporary place.
        let _ = fs::remove_dir_all(&self.0);
    }
}
