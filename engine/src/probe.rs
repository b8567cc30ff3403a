//! Probes: readings of processes and of the machine, five times a second.

mod tasks;

use crate::clock::{Clock, thread_cpu_ns};
use model::{HostSample, ProbeSample, ProcessSample};
use procfs::process::Process;
use procfs::{Current, CurrentSI, KernelStats, LoadAverage, Meminfo};
use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tasks::Tasks;

/// From one reading to the next, nanoseconds.
const EVERY_NS: u64 = 200_000_000;
/// Readings from one calibration of the machine's speed to the next.
const CALIBRATE_EVERY: u64 = 25;
/// Readings from one expensive reading (proportional memory) to the next.
const PSS_EVERY: u64 = 25;

/// Which processes are watched; may change while the probe runs.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Roots of the target's process trees: children are watched too.
    pub target: Arc<Mutex<BTreeSet<u32>>>,
    /// The generator's processes.
    pub generator: Arc<Mutex<BTreeSet<u32>>>,
}

/// A probe at work.
pub struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Probe {
    /// Starts reading; every reading goes to `out`.
    pub fn start(
        clock: Clock,
        watched: Watched,
        out: Sender<ProbeSample>,
    ) -> std::io::Result<Probe> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let work = move || {
            let mut due = clock.now();
            let mut tasks = Tasks::new(Path::new("/proc"));
            for turn in 0u64.. {
                if stopped.load(Ordering::Relaxed)
                    || out.send(read(clock, &watched, &mut tasks, turn)).is_err()
                {
                    return;
                }
                due.0 = (due.0 + EVERY_NS).max(clock.now().0);
                clock.sleep_until(due);
            }
        };
        let thread = std::thread::Builder::new().name("probe".into()).spawn(work)?;
        Ok(Probe { stop, thread })
    }

    /// Stops reading.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A probe that panicked has printed why.
        let _ = self.thread.join();
    }
}

fn read(clock: Clock, watched: &Watched, tasks: &mut Tasks, turn: u64) -> ProbeSample {
    let with_pss = turn.is_multiple_of(PSS_EVERY);
    let mut read_all = |pids: BTreeSet<u32>| {
        pids.into_iter().filter_map(|pid| process(pid, tasks, with_pss)).collect::<Vec<_>>()
    };
    let roots = watched.target.lock().map(|pids| pids.clone()).unwrap_or_default();
    let generator = watched.generator.lock().map(|pids| pids.clone()).unwrap_or_default();
    let sample = ProbeSample {
        at: clock.now(),
        target: read_all(with_children(roots)),
        generator: read_all(generator),
        host: host(turn.is_multiple_of(CALIBRATE_EVERY)),
    };
    tasks.forget_ended();
    sample
}

/// The processes and all their descendants.
pub(crate) fn with_children(mut pids: BTreeSet<u32>) -> BTreeSet<u32> {
    let mut new: Vec<u32> = pids.iter().copied().collect();
    while let Some(pid) = new.pop() {
        for child in children(pid) {
            if pids.insert(child) {
                new.push(child);
            }
        }
    }
    pids
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// How many descriptors a process has open. Kernels since 6.2 tell the number as the size of the
/// folder; listing it takes 0.4 µs for each one.
fn descriptors(pid: u32) -> u64 {
    let folder = format!("/proc/{pid}/fd");
    match fs::metadata(&folder).map(|folder| folder.len()) {
        Ok(0) | Err(_) => fs::read_dir(folder).map_or(0, |list| list.count() as u64),
        Ok(count) => count,
    }
}

/// One process; `None` if it is gone.
fn process(pid: u32, tasks: &mut Tasks, with_pss: bool) -> Option<ProcessSample> {
    let process = Process::new(pid as i32).ok()?;
    let stat = process.stat().ok()?;
    let tick_ns = 1_000_000_000 / procfs::ticks_per_second().max(1);
    let counts = tasks.read(pid, stat.starttime, (stat.utime + stat.stime) * tick_ns);
    let io = process.io().ok();
    let pss = if with_pss { process.smaps_rollup().ok() } else { None };
    let pss = pss.and_then(|rollup| {
        let map = rollup.memory_map_rollup.0.into_iter().next()?;
        map.extension.map.get("Pss").copied()
    });
    Some(ProcessSample {
        pid,
        name: stat.comm.clone(),
        cpu_ns: counts.cpu_ns,
        user_ns: stat.utime * tick_ns,
        run_queue_ns: counts.run_queue_ns,
        rss_bytes: stat.rss * procfs::page_size(),
        pss_bytes: pss.unwrap_or(0),
        virtual_bytes: stat.vsize,
        threads: stat.num_threads.max(0) as u64,
        descriptors: descriptors(pid),
        switches: counts.switches,
        read_bytes: io.as_ref().map_or(0, |io| io.read_bytes),
        written_bytes: io.as_ref().map_or(0, |io| io.write_bytes),
    })
}

fn host(is_calibrating: bool) -> HostSample {
    let tick_ns = 1_000_000_000 / procfs::ticks_per_second().max(1);
    let mut sample = HostSample::default();
    if let Ok(stats) = KernelStats::current() {
        let cpu = stats.total;
        let busy =
            cpu.user + cpu.nice + cpu.system + cpu.irq.unwrap_or(0) + cpu.softirq.unwrap_or(0);
        sample.busy_ns = busy * tick_ns;
        sample.steal_ns = cpu.steal.unwrap_or(0) * tick_ns;
    }
    sample.load = LoadAverage::current().map_or(0.0, |load| f64::from(load.one));
    sample.available_bytes =
        Meminfo::current().ok().and_then(|info| info.mem_available).unwrap_or(0);
    sample.retransmits = retransmits(&fs::read_to_string("/proc/net/snmp").unwrap_or_default());
    sample.drops = drops(&fs::read_to_string("/proc/net/dev").unwrap_or_default());
    if is_calibrating {
        sample.calibration_ns = calibrate();
    }
    sample
}

/// `Tcp: … RetransSegs …` of `/proc/net/snmp`: a line of names, then one of numbers.
fn retransmits(text: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let at = names.split_whitespace().position(|name| name == "RetransSegs");
    let value = at.and_then(|at| values.split_whitespace().nth(at));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Packets dropped on reception and transmission, over all interfaces of `/proc/net/dev`.
fn drops(text: &str) -> u64 {
    let columns = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    columns
        .map(|(_, numbers)| {
            let numbers: Vec<u64> =
                numbers.split_whitespace().map(|n| n.parse().unwrap_or(0)).collect();
            numbers.get(3).unwrap_or(&0) + numbers.get(11).unwrap_or(&0)
        })
        .sum()
}

/// A fixed piece of work of about a millisecond, in nanoseconds of this thread's CPU time.
fn calibrate() -> u64 {
    const ROUNDS: u64 = 400_000;
    let start = thread_cpu_ns();
    let mut value = 1u64;
    for round in 0..ROUNDS {
        value = black_box(value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ round);
    }
    black_box(value);
    thread_cpu_ns() - start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_can_be_read() {
        let mut tasks = Tasks::new(Path::new("/proc"));
        let sample = process(std::process::id(), &mut tasks, true).unwrap();
        assert!(sample.rss_bytes > 0 && sample.descriptors > 0 && sample.threads > 0);
        assert!(sample.cpu_ns > 0 && sample.virtual_bytes > sample.rss_bytes);
        assert!(process(u32::MAX / 2, &mut tasks, true).is_none());
        let host = host(true);
        assert!(host.busy_ns > 0 && host.calibration_ns > 0 && host.available_bytes > 0);
    }

    #[test]
    fn kernel_tables_are_read_by_name() {
        let snmp = "Tcp: A RetransSegs B\nTcp: 1 42 3\n";
        assert_eq!(retransmits(snmp), 42);
        let dev = "h\nh\n lo: 1 2 3 4 5 6 7 8 9 10 11 12 13\n e: 0 0 0 1 0 0 0 0 0 0 0 1 0\n";
        assert_eq!(drops(dev), 4 + 12 + 1 + 1);
        assert_eq!((retransmits("junk"), drops("junk")), (0, 0));
    }

    #[test]
    fn children_are_found() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let pids = with_children(BTreeSet::from([std::process::id()]));
        assert!(pids.contains(&child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
