//! The system calls the standard library lacks: descriptor limit, backlog, thread time, scheduling,
//! and what this process uses.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

/// Connections the kernel may keep waiting for accept: a whole storm, if the kernel allows it.
const BACKLOG: libc::c_int = 4096;

/// Raises the soft limit of open descriptors to the hard one; gives the limit now in force.
pub(crate) fn raise_descriptor_limit() -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes to the struct it is given and keeps no pointer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: setrlimit reads the struct it is given and keeps no pointer.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            limit = raised;
        }
    }
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

/// Lengthens the queue of connections waiting for accept; the standard library sets 128.
pub(crate) fn lengthen_backlog(listener: &TcpListener) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `listener` is borrowed; listen(2) on a listening
    // socket only changes its backlog.
    if unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Listens on a port together with everybody else who does it this way: the kernel deals
/// connections out to them (`SO_REUSEPORT`, socket(7)).
pub fn listen_shared(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = shared(address)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Takes a port without listening on it, so that others can share it as long as this is kept; gives
/// the address with the port that was taken.
pub fn hold_port(address: SocketAddr) -> io::Result<(SocketAddr, impl Sized)> {
    let socket = shared(address)?;
    let taken = socket.local_addr()?.as_socket();
    Ok((taken.ok_or_else(|| io::Error::other("it has no address"))?, socket))
}

fn shared(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Processor time this thread has used, in nanoseconds; the largest number if the kernel has no
/// such clock, so that nobody waits for it.
fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to the struct it is given and keeps no pointer.
    match unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => u64::MAX,
    }
}

/// From now on this thread runs when nobody else has a use for the processor, mostly: whoever wakes
/// up takes it from it at once. See SCHED_IDLE in sched(7).
pub(crate) fn give_way() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: sched_setscheduler reads the struct it is given and keeps no pointer; on Linux 0 is
    // the calling thread. If it fails, the thread competes like any other.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &none) };
}

/// Uses up that much processor time of this thread.
pub(crate) fn burn_cpu(nanoseconds: u64) {
    let end = thread_cpu_ns().saturating_add(nanoseconds);
    while thread_cpu_ns() < end {
        std::hint::spin_loop();
    }
}

/// Processors a set of them can name.
pub(crate) const PROCESSORS_MAX: usize = libc::CPU_SETSIZE as usize;

/// The processors this thread may run on.
pub(crate) fn processors() -> Vec<usize> {
    // SAFETY: a set of processors is plain numbers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: sched_getaffinity writes at most `size` bytes to the set and keeps no pointer.
    if unsafe { libc::sched_getaffinity(0, size, &mut set) } != 0 {
        return Vec::new();
    }
    // SAFETY: CPU_ISSET reads the set, and the numbers are below its size.
    (0..PROCESSORS_MAX).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// The processor so many places behind another one, of those this thread may run on, in a ring.
pub(crate) fn processor_behind(first: usize, places: usize) -> usize {
    let all = processors();
    let at = all.iter().position(|processor| *processor == first);
    at.map_or(first, |at| all[(at + places) % all.len()])
}

/// From now on this thread, and those it starts, run on that processor only.
pub(crate) fn pin(processor: usize) -> io::Result<()> {
    // SAFETY: as above.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    assert!(processor < PROCESSORS_MAX);
    // SAFETY: CPU_SET writes to the set, and the number is below its size.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: sched_setaffinity reads the set and keeps no pointer.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What this process uses; what cannot be known is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) cpu_s: Option<f64>,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) virtual_bytes: Option<u64>,
    pub(crate) descriptors: Option<u64>,
    pub(crate) descriptors_max: Option<u64>,
    pub(crate) threads: Option<u64>,
}

/// What this process uses now. Bounded work: descriptors are not listed one by one.
pub(crate) fn usage() -> Usage {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let pages = read("/proc/self/statm");
    let mut pages = pages.split(' ').map(|word| word.parse::<u64>().ok());
    let status = read("/proc/self/status");
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    // Since Linux 6.2 the size of this folder is how many are open; before it is 0.
    let open = std::fs::metadata("/proc/self/fd").ok().map(|folder| folder.len());
    // SAFETY: sysconf takes a number and gives one.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok();
    let bytes = |pages: Option<Option<u64>>| Some(pages?? * page?);
    Usage {
        cpu_s: process_cpu_s(),
        virtual_bytes: bytes(pages.next()),
        resident_bytes: bytes(pages.next()),
        descriptors: open.filter(|open| *open > 0),
        descriptors_max: raise_descriptor_limit().ok().map(|limit| limit as u64),
        threads: threads.and_then(|count| count.trim().parse().ok()),
    }
}

/// Processor time all threads of this process have used, in seconds.
fn process_cpu_s() -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to the struct it is given and keeps no pointer.
    match unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) } {
        0 => Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_take_the_processors_in_turn() {
        let all = processors();
        let taken: Vec<usize> = (0..all.len()).map(|at| processor_behind(all[0], at)).collect();
        assert_eq!(taken, all);
        assert_eq!(processor_behind(all[0], all.len()), all[0]);
        assert_eq!(processor_behind(PROCESSORS_MAX, 1), PROCESSORS_MAX, "it is no processor");
    }

    #[test]
    fn a_pinned_thread_runs_on_one_processor() {
        let all = processors();
        let last = *all.last().unwrap();
        std::thread::spawn(move || {
            pin(last).unwrap();
            assert_eq!(processors(), [last]);
            assert!(pin(PROCESSORS_MAX - 1).is_err());
        })
        .join()
        .unwrap();
        assert_eq!(processors(), all, "other threads are free");
    }

    #[test]
    fn usage_is_plausible() {
        let usage = usage();
        assert!(usage.cpu_s.unwrap() > 0.0 && usage.threads.unwrap() > 0);
        assert!(usage.resident_bytes.unwrap() > 1 << 20);
        assert!(usage.virtual_bytes.unwrap() >= usage.resident_bytes.unwrap());
        assert!(usage.descriptors.is_none_or(|open| open < usage.descriptors_max.unwrap()));
    }

    #[test]
    fn what_is_burnt_is_processor_time() {
        for wanted in [0, 1_000, 3_000_000, 40_000_000] {
            let before = thread_cpu_ns();
            burn_cpu(wanted);
            let used = thread_cpu_ns() - before;
            assert!((wanted..wanted * 2 + 5_000_000).contains(&used), "{used} ns for {wanted}");
        }
    }
}
