//! The benchmarks' only clock: monotonic nanoseconds, and the CPU time of any process.

use engine::clock::Clock;
pub(crate) use engine::clock::thread_cpu_ns;
use model::Tick;
use std::io;
use std::time::Duration;

/// Nanoseconds since the machine's start.
pub(crate) fn now_ns() -> u64 {
    Clock::at_epoch(0).now().0
}

/// Lets the time pass.
pub(crate) fn sleep(duration: Duration) {
    Clock::at_epoch(0).sleep_until(Tick(now_ns()) + duration);
}

/// CPU time of all threads of a process, those that ended included, nanoseconds.
pub(crate) fn cpu_ns(pid: u32) -> io::Result<u64> {
    let mut clock = 0;
    // SAFETY: `clock` is writable.
    let result = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    if result != 0 {
        return Err(io::Error::from_raw_os_error(result));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
