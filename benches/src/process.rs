//! Child processes: pinned to a core, measured by CPU time and memory, ended by their drop.

use crate::clock;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A child with its standard input and output.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// CPU time, nanoseconds, and the share of it that was spent outside the kernel (counted in
/// ticks of 10 ms, so it wants a window of a second).
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) total_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Resident, shared pages included.
    pub(crate) rss: u64,
    /// Resident, each shared page divided among its users.
    pub(crate) pss: u64,
    /// Resident and of this process alone.
    pub(crate) private: u64,
}

impl Process {
    /// Starts a command, on one core if one is given.
    pub(crate) fn start(words: &[String], core: Option<usize>) -> io::Result<Process> {
        let taskset = ["taskset".to_owned(), "-c".to_owned()];
        let pin: Vec<String> =
            core.map_or(Vec::new(), |core| [&taskset[..], &[core.to_string()]].concat());
        let words = [&pin, words].concat();
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .env("GOMAXPROCS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start {}: {error}", words[0])))?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        Ok(Process { child, output: BufReader::new(output) })
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to it.
    pub(crate) fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.child.stdin.as_mut().ok_or_else(|| io::Error::other("no input"))?;
        writeln!(input, "{line}")?;
        input.flush()
    }

    /// Reads a line from it; empty at its end.
    pub(crate) fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Reads the rest of what it says.
    pub(crate) fn hear_all(&mut self) -> io::Result<String> {
        io::read_to_string(&mut self.output)
    }

    /// Ends its standard input.
    pub(crate) fn hush(&mut self) {
        self.child.stdin = None;
    }

    /// Asks it to end, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        // SAFETY: a signal to a child that has not been waited for: the number is still its.
        unsafe { libc::kill(self.pid() as libc::pid_t, libc::SIGINT) };
    }

    /// Whether no thread of it runs or waits for a processor.
    pub(crate) fn is_asleep(&self) -> io::Result<bool> {
        for task in fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            // A thread that has ended meanwhile does not run.
            let stat = fs::read_to_string(task?.path().join("stat")).unwrap_or_default();
            if stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R')) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What it has used so far.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        // The name in parentheses may hold anything; user and system time are the 12th and 13th
        // field behind it.
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let mut ticks = fields.split(' ').skip(11).map(|field| field.parse().unwrap_or(0));
        Ok(Usage {
            total_ns: clock::cpu_ns(self.pid())?,
            user_ticks: ticks.next().unwrap_or(0),
            system_ticks: ticks.next().unwrap_or(0),
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Usage {
    /// Total and user nanoseconds since `earlier`.
    pub(crate) fn since(&self, earlier: &Usage) -> (f64, f64) {
        let total = (self.total_ns - earlier.total_ns) as f64;
        let user = (self.user_ticks - earlier.user_ticks) as f64;
        let system = (self.system_ticks - earlier.system_ticks) as f64;
        (total, total * user / (user + system).max(1.0))
    }
}

impl Memory {
    /// What a process holds.
    pub(crate) fn of(pid: u32) -> io::Result<Memory> {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
        let mut memory = Memory::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (name, kib) = (words.next(), words.next());
            let bytes = kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10;
            match name {
                Some("Rss:") => memory.rss += bytes,
                Some("Pss:") => memory.pss += bytes,
                Some("Private_Clean:" | "Private_Dirty:") => memory.private += bytes,
                _ => {}
            }
        }
        Ok(memory)
    }

    /// The sum over processes.
    pub(crate) fn of_all(pids: &[u32]) -> io::Result<Memory> {
        let mut sum = Memory::default();
        for &pid in pids {
            let one = Memory::of(pid)?;
            sum.rss += one.rss;
            sum.pss += one.pss;
            sum.private += one.private;
        }
        Ok(sum)
    }
}

/// The processes a process has started and that run the given command of throng.
pub(crate) fn children(parent: u32, command: &str) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task"))? {
        let listed = fs::read_to_string(task?.path().join("children"))?;
        for pid in listed.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            if line.split(|&byte| byte == 0).nth(1) == Some(command.as_bytes()) {
                found.push(pid);
            }
        }
    }
    Ok(found)
}
