//! `run.json`: what was run, with what, where, and how it ended.

use crate::summary::Summary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the run directory's format; a reader refuses a newer one.
pub const FORMAT: u32 = 1;

/// The reason of a run that the user ended.
pub const INTERRUPTED: &str = "interrupted by a signal";
/// The reason of a run that lost a worker process.
pub const CRIPPLED: &str = "a part of the generator was lost";

/// Whether a run came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It goes on, or was killed.
    #[default]
    Running,
    /// It came to the end of its timeline.
    Finished,
    /// It was ended early, by the user or by an error.
    Aborted,
}

/// The manifest: provenance of everything else in the directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// Whether the run came to its end.
    pub status: Status,
    /// Why it was aborted, in words; empty otherwise.
    pub reason: String,
    /// The plan's name.
    pub name: String,
    /// One sentence on the scenario.
    pub about: String,
    /// Version of throng.
    pub throng: String,
    /// When the run's epoch was: ISO 8601, UTC.
    pub started: String,
    /// When the run's epoch was: milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// How long the run took, seconds; zero while it goes on.
    pub seconds: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// Factor by which crowds were scaled.
    pub scale: f64,
    /// Hash of the scenario's text, as `sha256:…`.
    pub scenario_hash: String,
    /// The command line, an argument each.
    pub command: Vec<String>,
    /// What was put under load.
    pub target: TargetFacts,
    /// The machine.
    pub host: HostFacts,
    /// The generator's own shape.
    pub generator: Generator,
    /// What came out; absent while the run goes on.
    pub result: Option<Summary>,
}

/// What was put under load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetFacts {
    /// Its name: a folder in `targets/`, `yardstick`, or a URL.
    pub name: String,
    /// Its version, as it says itself.
    pub version: String,
    /// The protocol spoken with it.
    pub protocol: String,
    /// Its options.
    pub options: BTreeMap<String, String>,
    /// The processes watched: names with their numbers.
    pub processes: Vec<String>,
    /// Most descriptors one of them may open; zero if unknown.
    pub descriptors_max: u64,
}

/// The machine that ran it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Kernel name and release.
    pub kernel: String,
    /// Model of the processor.
    pub cpu: String,
    /// Cores that could be used.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Most descriptors one process may open; zero if unknown.
    pub descriptors_max: u64,
    /// Other limits and settings, by name.
    pub limits: BTreeMap<String, String>,
}

/// The generator's own shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Generator {
    /// Threads that carry people, in all processes together; zero if unknown.
    pub shards: u32,
    /// Processes.
    pub processes: u32,
}

/// A time as ISO 8601, UTC, to the second: `2026-01-31T12:00:00Z`.
pub fn iso_utc(unix_ms: u64) -> String {
    let seconds = unix_ms / 1_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a number of days since 1970-01-01 (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `civil_from_days`; years begin in March there).
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_iso() {
        for (ms, want) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_769_860_800_000, "2026-01-31T12:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_utc(ms), want);
        }
    }
}
