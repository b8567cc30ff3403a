//! A point on a run's own time line: nanoseconds since the run's epoch.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};
use std::time::Duration;

/// Nanoseconds since the run's epoch. Time is an argument everywhere: only the engine's clock
/// makes one from the real world, and a simulation makes them up.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tick(pub u64);

impl Tick {
    /// The epoch itself.
    pub const ZERO: Tick = Tick(0);
    /// Later than anything that will happen.
    pub const NEVER: Tick = Tick(u64::MAX);

    /// The tick `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Tick {
        Tick(micros * 1_000)
    }

    /// The tick `millis` milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Tick {
        Tick(millis * 1_000_000)
    }

    /// The tick `secs` seconds after the epoch.
    pub const fn from_secs(secs: u64) -> Tick {
        Tick(secs * 1_000_000_000)
    }

    /// Whole microseconds since the epoch.
    pub const fn micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds since the epoch.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Nanoseconds from `earlier` to this tick; zero if `earlier` is in fact later.
    pub const fn ns_since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Tick {
    type Output = Tick;
    fn add(self, span: Duration) -> Tick {
        Tick(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Tick {
    type Output = Duration;
    fn sub(self, earlier: Tick) -> Duration {
        Duration::from_nanos(self.ns_since(earlier))
    }
}
