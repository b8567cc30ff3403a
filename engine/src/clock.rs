//! The only clock: monotonic nanoseconds since the run's epoch, the same in every process.

use model::Tick;
use std::time::Duration;

/// Reads the machine's monotonic clock relative to a run's epoch. Worker processes get the same
/// `epoch_ns`, so their ticks can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: u64,
}

impl Clock {
    /// A clock whose epoch is now.
    pub fn start() -> Clock {
        Clock { epoch_ns: monotonic_ns() }
    }

    /// The clock of another process on this machine.
    pub fn at_epoch(epoch_ns: u64) -> Clock {
        Clock { epoch_ns }
    }

    /// The epoch on the machine's monotonic clock, nanoseconds.
    pub fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// Now.
    pub fn now(&self) -> Tick {
        Tick(monotonic_ns().saturating_sub(self.epoch_ns))
    }

    /// Lets the time pass until `tick`.
    pub fn sleep_until(&self, tick: Tick) {
        let left = tick.ns_since(self.now());
        if left > 0 {
            std::thread::sleep(Duration::from_nanos(left));
        }
    }
}

/// Wall-clock seconds since 1970, for names and provenance; never for measuring.
#[allow(clippy::disallowed_methods, reason = "this is the clock")]
pub fn unix_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// CPU time of the calling thread, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid, writable timespec and both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
