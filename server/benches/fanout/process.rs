//! Child processes that listen or talk: pinned to a core, measured by CPU time and memory.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A child; its end ends with it.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a command on one core.
    pub(crate) fn start(words: &[String], core: usize) -> io::Result<Process> {
        let mut child = Command::new("taskset")
            .args(["-c".to_owned(), core.to_string()])
            .args(words)
            .env("GOMAXPROCS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| io::Error::other(format!("cannot start {words:?}: {error}")))?;
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        Ok(Process { child, output: BufReader::new(output) })
    }

    /// Starts this program in another role.
    pub(crate) fn own(words: &[String], core: usize) -> io::Result<Process> {
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        Process::start(&[&[program], words].concat(), core)
    }

    /// Stops it, or lets it go on: a server that spins while it has nothing to do is not to take
    /// the core from those whose turn it is.
    pub(crate) fn hold(&self, is_held: bool) {
        let signal = if is_held { libc::SIGSTOP } else { libc::SIGCONT };
        // SAFETY: kill takes no pointers; the child is ours and has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }

    pub(crate) fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.child.stdin.as_mut().ok_or_else(|| io::Error::other("no input"))?;
        writeln!(input, "{line}")?;
        input.flush()
    }

    /// The next line it prints.
    pub(crate) fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(io::Error::other("a process of the benchmark has ended"));
        }
        Ok(line.trim().to_owned())
    }

    /// CPU time of all its threads that live, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> io::Result<u64> {
        let mut total = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may have ended since the list was made.
            let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
            let first = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            total += first.ok_or_else(|| io::Error::other("no schedstat"))?;
        }
        Ok(total)
    }

    /// Private memory in bytes.
    pub(crate) fn memory(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let lines = text.lines().filter(|line| line.starts_with("Private_"));
        let words = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        Ok(words.sum::<u64>() * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
