//! The summary of a run, for machines: `--json` prints it, `run.json` keeps it, and every report
//! is drawn from it. docs/run-format.md documents each field.

use crate::run::Status;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything a run amounts to. Times are seconds since the run's epoch unless the name says
/// otherwise; percentages of CPU are of one core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Version of the run directory's format.
    pub format: u32,
    /// The plan's name.
    pub name: String,
    /// One sentence on the scenario.
    pub about: String,
    /// Whether the run came to its end.
    pub status: Status,
    /// When a killed run ends: behind the last second that was written.
    pub cut_short_s: Option<f64>,
    /// When the run began: ISO 8601, UTC.
    pub started: String,
    /// How long it took.
    pub seconds: f64,
    /// Name of the target.
    pub target: String,
    /// Version of the target.
    pub target_version: String,
    /// The protocol spoken.
    pub protocol: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Factor by which crowds were scaled.
    pub scale: f64,
    /// What came out.
    pub verdict: Verdict,
    /// What the program exits with: 0 kept, 1 threshold broken, 3 could not measure.
    pub exit_code: u8,
    /// Whether the generator and its machine were fit to measure.
    pub health: Health,
    /// The thresholds, each with what was measured.
    pub thresholds: Vec<Judged>,
    /// People: asked and achieved.
    pub people: People,
    /// Messages: asked and achieved.
    pub sends: Sends,
    /// Deliveries and bytes a second.
    pub rates: Rates,
    /// The measures that saw anything.
    pub measures: Vec<MeasureRow>,
    /// Who was owed what, and who got it.
    pub ledger: Ledger,
    /// The phases, in order.
    pub phases: Vec<PhaseRow>,
    /// Named instants.
    pub marks: Vec<MarkRow>,
    /// What the target used over the whole run; absent if it was not watched.
    pub target_usage: Option<Usage>,
    /// What the generator used over the whole run; absent if it was not watched.
    pub generator_usage: Option<Usage>,
    /// What a person cost the target in memory; absent if it was not watched or people were few.
    pub memory_per_person: Option<PersonMemory>,
    /// How late the generator's timers fired.
    pub lag: Distribution,
    /// The profiles that were taken, by phase and profiler.
    pub profiles: Vec<ProfileRow>,
    /// Failures by measure and class, most frequent first.
    pub errors: Vec<ErrorRow>,
    /// What the target or the generator said, and oddities of the files.
    pub notes: Vec<String>,
}

/// A profile in a nutshell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileRow {
    /// The phase.
    pub phase: String,
    /// What took it, and of whom if not of the target.
    pub profiler: String,
    /// Its file, from the run directory on.
    pub file: String,
    /// Samples, or what else the profile counts.
    pub seen: u64,
    /// The functions that were seen most themselves, the hottest first.
    pub hottest: Vec<HotRow>,
}

/// A function in a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HotRow {
    /// Its name.
    pub function: String,
    /// Seen in itself, percent of the profile.
    pub self_percent: f64,
    /// Seen in it and in what it called, percent of the profile.
    pub total_percent: f64,
}

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every threshold was kept.
    Kept,
    /// At least one threshold was broken.
    Broken,
    /// The run says nothing about the target.
    #[default]
    CouldNotMeasure,
}

/// Whether the generator was fit to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// All is well.
    #[default]
    Healthy,
    /// Measured, but look at the findings before quoting a number.
    Strained,
    /// Could not measure: the numbers are about the generator or its machine.
    Invalid,
}

impl Level {
    /// Its name, as in the data files.
    pub fn name(self) -> &'static str {
        match self {
            Level::Healthy => "healthy",
            Level::Strained => "strained",
            Level::Invalid => "invalid",
        }
    }
}

/// The generator's health.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// The worst of the findings' levels.
    pub level: Level,
    /// What was found, worst first.
    pub findings: Vec<Finding>,
}

/// One thing that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What it is, with its number.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

/// Whether a threshold was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It holds.
    Kept,
    /// It does not.
    Broken,
    /// There was nothing to compare.
    #[default]
    Unmeasured,
}

/// One threshold and what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Judged {
    /// As the user wrote it.
    pub text: String,
    /// What was measured, in `unit`; absent if nothing was.
    pub value: Option<f64>,
    /// The bound, in `unit`.
    pub bound: f64,
    /// `ms`, `%` or empty (a count).
    pub unit: String,
    /// Whether it was kept.
    pub outcome: Outcome,
}

/// People: asked and achieved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct People {
    /// People the plan asks for.
    pub asked: u64,
    /// People whose arrival came due.
    pub due: u64,
    /// People who set out.
    pub arrived: u64,
    /// People who got in.
    pub entered: u64,
    /// People who came to the end of their journey.
    pub finished: u64,
    /// People whose journey ended early by a fault.
    pub gave_up: u64,
    /// Most people logged in at the end of a second.
    pub online_max: u64,
}

/// Messages: asked and achieved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sends {
    /// Messages that were due to be said.
    pub due: u64,
    /// Messages handed to a socket.
    pub sent: u64,
    /// Of these: more than 10 ms late.
    pub late: u64,
}

/// Deliveries and bytes a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Most deliveries in one second.
    pub deliveries_per_s_max: u64,
    /// Deliveries a second over the whole run.
    pub deliveries_per_s_mean: f64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
}

/// Durations, milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// Longest.
    pub max_ms: f64,
}

/// One measure over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasureRow {
    /// Its name.
    pub name: String,
    /// Requests made (zero for what is not asked for).
    pub asked: u64,
    /// Requests answered, or deliveries received.
    pub done: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Done a second, over the whole run.
    pub done_per_s: f64,
    /// From when it should have begun: free of coordinated omission.
    pub latency: Distribution,
    /// From when it did begin.
    pub service: Distribution,
}

/// Who was owed what, and who got it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Deliveries owed to people whose stay was settled.
    pub owed: u64,
    /// Deliveries received, first copies, owed or optional.
    pub received: u64,
    /// Owed and never received.
    pub lost: u64,
    /// Received although the receiver was just joining or leaving.
    pub optional: u64,
    /// Further copies.
    pub duplicate: u64,
    /// Received later than the plan's limit.
    pub late: u64,
    /// Deliveries audited for order.
    pub audited: u64,
    /// Of these: out of order.
    pub misordered: u64,
    /// Received by somebody to whom they were not owed.
    pub unexpected: u64,
    /// Stamps of another run.
    pub foreign: u64,
    /// Stamped announcements owed.
    pub announcements_owed: u64,
    /// Stamped announcements received, first copies.
    pub announcements_received: u64,
    /// Stamped announcements owed and never received.
    pub announcements_lost: u64,
    /// Further copies of stamped announcements.
    pub announcements_duplicate: u64,
    /// Announcements in the target's own words received.
    pub presences: u64,
    /// The least number of them that is right.
    pub presences_min: u64,
    /// The greatest number of them that is right.
    pub presences_max: u64,
}

/// What processes used over a span of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// CPU, percent of one core: mean.
    pub cpu_mean_percent: f64,
    /// CPU, percent of one core: greatest between two readings.
    pub cpu_max_percent: f64,
    /// CPU seconds.
    pub cpu_s: f64,
    /// Seconds that threads were ready but had no processor.
    pub run_queue_s: f64,
    /// Resident memory, bytes: mean.
    pub rss_mean_bytes: u64,
    /// Resident memory, bytes: greatest.
    pub rss_peak_bytes: u64,
    /// Virtual memory (address space), bytes: greatest.
    #[serde(default)]
    pub virtual_peak_bytes: u64,
}

/// Resident memory of the target for each person online, above what it had before anybody came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PersonMemory {
    /// What the target had before anybody came, bytes.
    pub rest_bytes: u64,
    /// Its greatest growth over the most people, bytes.
    pub peak_bytes: u64,
    /// Its mean growth per person while the crowd was full, bytes; absent if that was too short.
    pub steady_bytes: Option<u64>,
}

/// One phase of the timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseRow {
    /// Its name.
    pub name: String,
    /// Whether people arrive in it.
    pub arrivals: bool,
    /// When it began.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
    /// Whether its deadline ended it instead of its count.
    pub overdue: bool,
    /// People who were asked for.
    pub asked: u64,
    /// People who set out.
    pub arrived: u64,
    /// People who got in.
    pub entered: u64,
    /// People who came to the end of their journey.
    pub finished: u64,
    /// People who gave up.
    pub gave_up: u64,
    /// Messages due.
    pub sends_due: u64,
    /// Messages sent.
    pub sends: u64,
    /// Of these: late.
    pub sends_late: u64,
    /// Greatest lateness of an arrival, milliseconds.
    pub arrival_lag_ms_max: f64,
    /// When the first and the last person set out.
    pub arriving_s: Option<(f64, f64)>,
    /// When the first and the last person got in.
    pub entering_s: Option<(f64, f64)>,
    /// Requests made from its beginning to the next arrivals, by verb.
    pub requests: BTreeMap<String, u64>,
    /// Deliveries received in the same time.
    pub deliveries: u64,
    /// Most people logged in, in the same time.
    pub online_max: u64,
    /// What the target used from beginning to end.
    pub target: Option<Usage>,
    /// What the target used while people got in.
    pub target_entering: Option<Usage>,
    /// What the generator used from beginning to end.
    pub generator: Option<Usage>,
    /// The stages of its people's journey.
    pub stages: Vec<StageRow>,
}

/// One stage of a journey in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageRow {
    /// Its name.
    pub name: String,
    /// The mark set at its beginning; empty if none.
    pub mark: String,
    /// People who entered it.
    pub entered: u64,
    /// People who left it.
    pub left: u64,
    /// When the first person entered.
    pub start_s: f64,
    /// When the last person left.
    pub end_s: f64,
    /// From when to when everybody was in it at once, if ever.
    pub full_s: Option<(f64, f64)>,
    /// What the target used from beginning to end.
    pub target: Option<Usage>,
    /// What the target used while everybody was in it at once.
    pub target_full: Option<Usage>,
    /// What the generator used from beginning to end.
    pub generator: Option<Usage>,
}

/// A named instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkRow {
    /// When.
    pub at_s: f64,
    /// Its name.
    pub name: String,
    /// What it marks: phase and stage; empty for a mark of the timeline.
    pub what: String,
}

/// Failures of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorRow {
    /// The measure.
    pub measure: String,
    /// The class.
    pub class: String,
    /// How many.
    pub count: u64,
    /// When the first one that has words occurred.
    pub first_s: Option<f64>,
    /// The first one's words; empty if it had none.
    pub example: String,
}
