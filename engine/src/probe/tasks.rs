//! Cumulative counters of processes from those of their threads, which take theirs with them when
//! they end: what was once counted stays counted.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The three numbers of a `schedstat`, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Time on a processor, nanoseconds.
    pub(super) cpu_ns: u64,
    /// Time ready to run without a processor, nanoseconds.
    pub(super) run_queue_ns: u64,
    /// Times scheduled.
    pub(super) switches: u64,
}

impl Counts {
    /// `None` of what is no `schedstat`: a thread that ended while it was looked at leaves nothing
    /// to be read.
    fn parse(text: &str) -> Option<Counts> {
        let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        Some(Counts { cpu_ns: next()?, run_queue_ns: next()?, switches: next()? })
    }

    fn plus(self, other: Counts) -> Counts {
        Counts {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            run_queue_ns: self.run_queue_ns.saturating_add(other.run_queue_ns),
            switches: self.switches.saturating_add(other.switches),
        }
    }

    /// Whether a thread that had counted `earlier` can have counted this.
    fn follows(self, earlier: Counts) -> bool {
        self.cpu_ns >= earlier.cpu_ns
            && self.run_queue_ns >= earlier.run_queue_ns
            && self.switches >= earlier.switches
    }
}

/// What is known of a process.
#[derive(Debug, Default)]
struct Known {
    /// When it started, in ticks of the kernel: tells it from another of the same number.
    started: u64,
    /// What threads had counted that are no more.
    ended: Counts,
    /// What each thread has counted.
    threads: BTreeMap<u32, Counts>,
    /// The greatest CPU time told so far.
    cpu_ns: u64,
    /// Whether it was there at the last look.
    is_here: bool,
}

/// The processes that are watched. What is lost is only what a thread did between the last look at
/// it and its end, and a thread that lived between two looks.
#[derive(Debug)]
pub(super) struct Tasks {
    proc: PathBuf,
    known: BTreeMap<u32, Known>,
}

impl Tasks {
    /// Nobody is known yet; threads are listed in `proc`, which is `/proc` but in tests.
    pub(super) fn new(proc: &Path) -> Tasks {
        Tasks { proc: proc.to_owned(), known: BTreeMap::new() }
    }

    /// Looks at a process that started at `started` and whose own counter, coarser but also of the
    /// threads that have ended, tells `coarse_cpu_ns`.
    pub(super) fn read(&mut self, pid: u32, started: u64, coarse_cpu_ns: u64) -> Counts {
        let seen = threads(&self.proc.join(pid.to_string()));
        let known = self.known.entry(pid).or_default();
        if known.started != started {
            *known = Known { started, ..Known::default() };
        }
        known.is_here = true;
        // A look that failed says nothing: nobody has ended.
        let seen = seen.unwrap_or_else(|_| known.threads.clone());
        known.take(seen, coarse_cpu_ns)
    }

    /// To be called when all have been looked at: forgets who is no more.
    pub(super) fn forget_ended(&mut self) {
        self.known.retain(|_, known| std::mem::take(&mut known.is_here));
    }
}

impl Known {
    fn take(&mut self, seen: BTreeMap<u32, Counts>, coarse_cpu_ns: u64) -> Counts {
        for (thread, &earlier) in &self.threads {
            // A thread whose counters went back is another one of that number.
            if !seen.get(thread).is_some_and(|now| now.follows(earlier)) {
                self.ended = self.ended.plus(earlier);
            }
        }
        let sum = seen.values().fold(self.ended, |sum, &thread| sum.plus(thread));
        self.threads = seen;
        self.cpu_ns = self.cpu_ns.max(sum.cpu_ns).max(coarse_cpu_ns);
        Counts { cpu_ns: self.cpu_ns, ..sum }
    }
}

/// The threads of a process; the error is of a look that failed, as for want of a descriptor.
fn threads(process: &Path) -> io::Result<BTreeMap<u32, Counts>> {
    let mut threads = BTreeMap::new();
    let Some(entries) = unless_gone(fs::read_dir(process.join("task")))? else {
        return Ok(threads);
    };
    for entry in entries {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let text = unless_gone(fs::read_to_string(entry.path().join("schedstat")))?;
        if let Some((number, counts)) = number.zip(text.as_deref().and_then(Counts::parse)) {
            threads.insert(number, counts);
        }
    }
    Ok(threads)
}

/// `None` of a process or thread that has ended.
fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread's number and its `schedstat`.
    type Thread = (u32, &'static str);

    /// One look: threads, start of the process, coarse CPU time, and what is to be told.
    type Look = (&'static [Thread], u64, u64, (u64, u64, u64));

    /// The same folder as the kernel shows, of process 7.
    fn lay_out(proc: &Path, threads: &[Thread]) {
        let task = proc.join("7/task");
        let _ = fs::remove_dir_all(&task);
        for (thread, text) in threads {
            let folder = task.join(thread.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("schedstat"), text).unwrap();
        }
    }

    #[test]
    fn counters_of_a_process_never_go_back() {
        let table: &[(&str, &[Look])] = &[
            (
                "threads add up",
                &[
                    (&[(7, "100 10 1\n"), (8, "50 5 2\n")], 1, 0, (150, 15, 3)),
                    (&[(7, "200 10 2\n"), (8, "60 9 3\n")], 1, 0, (260, 19, 5)),
                ],
            ),
            (
                "a thread that ends stays counted",
                &[
                    (&[(7, "100 10 1\n"), (8, "900 70 9\n")], 1, 0, (1_000, 80, 10)),
                    (&[(7, "110 12 2\n")], 1, 0, (1_010, 82, 11)),
                    (&[(7, "120 12 2\n"), (9, "1 1 1\n")], 1, 0, (1_021, 83, 12)),
                ],
            ),
            (
                "a thread's number is used again",
                &[
                    (&[(8, "900 70 9\n")], 1, 0, (900, 70, 9)),
                    (&[(8, "5 1 1\n")], 1, 0, (905, 71, 10)),
                ],
            ),
            (
                "the coarser counter knows of threads nobody saw, and may be behind",
                &[
                    (&[(7, "100 10 1\n")], 1, 500, (500, 10, 1)),
                    (&[(7, "450 10 1\n")], 1, 490, (500, 10, 1)),
                    (&[(7, "600 11 1\n")], 1, 490, (600, 11, 1)),
                ],
            ),
            (
                "another process of that number begins anew",
                &[(&[(7, "900 90 9\n")], 1, 0, (900, 90, 9)), (&[(7, "5 1 1\n")], 2, 0, (5, 1, 1))],
            ),
            (
                "what cannot be read is a thread that has ended",
                &[
                    (&[(7, "100 10 1\n"), (8, "50 5 2\n")], 1, 0, (150, 15, 3)),
                    (&[(7, "100 10 1\n"), (8, "")], 1, 0, (150, 15, 3)),
                    (&[(7, "junk"), (8, "1 -2 3")], 1, 0, (150, 15, 3)),
                    (&[], 1, 0, (150, 15, 3)),
                ],
            ),
        ];
        let proc = std::env::temp_dir().join(format!("throng-tasks-{}", std::process::id()));
        for (what, looks) in table {
            let mut tasks = Tasks::new(&proc);
            for (at, &(threads, started, coarse_ns, want)) in looks.iter().enumerate() {
                lay_out(&proc, threads);
                let got = tasks.read(7, started, coarse_ns);
                tasks.forget_ended();
                assert_eq!((got.cpu_ns, got.run_queue_ns, got.switches), want, "{what}, look {at}");
            }
            tasks.forget_ended();
            assert!(tasks.known.is_empty(), "{what}: who is not looked at is forgotten");
        }
        // A look that fails is not the end of anybody.
        let mut tasks = Tasks::new(&proc);
        lay_out(&proc, &[(7, "100 10 1\n")]);
        assert_eq!(tasks.read(7, 1, 0).run_queue_ns, 10);
        let file = proc.join("7/task/7/schedstat");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(tasks.read(7, 1, 0).run_queue_ns, 10);
        lay_out(&proc, &[(7, "110 12 1\n")]);
        assert_eq!(tasks.read(7, 1, 0).run_queue_ns, 12);
        fs::remove_dir_all(&proc).unwrap();
    }

    #[test]
    fn threads_that_come_and_go_take_nothing_with_them() {
        let mut tasks = Tasks::new(Path::new("/proc"));
        let pid = std::process::id();
        let mut before = Counts::default();
        for turn in 0..50 {
            let work = || (0..100_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
            std::thread::spawn(work).join().unwrap();
            let now = tasks.read(pid, 1, 0);
            assert!(now.follows(before), "turn {turn}: {before:?}, then {now:?}");
            before = now;
        }
        assert!(before.cpu_ns > 0);
    }
}
