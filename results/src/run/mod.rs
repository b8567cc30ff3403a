//! A run directory: its files, how they are written as the run goes, how they are read back.

mod buckets;
mod csv;
mod hlog;
mod lines;
mod load;
mod manifest;
mod probes;
mod series;
mod writer;

pub use buckets::Buckets;
pub use load::{MeasureSecond, Run, Second};
pub use manifest::{
    CRIPPLED, FORMAT, Generator, HostFacts, INTERRUPTED, Manifest, Status, TargetFacts, iso_utc,
};
pub use writer::RunWriter;
pub(crate) use writer::replace;

/// The manifest.
pub const MANIFEST: &str = "run.json";
/// The scenario as the user wrote it.
pub const SCENARIO: &str = "scenario.yaml";
/// The resolved plan.
pub const PLAN: &str = "plan.json";
/// A histogram per measure and second, in the standard HdrHistogram interval log.
pub const INTERVALS: &str = "intervals.hlog";
/// Counters, gauges and counts per measure, a row a second.
pub const SERIES: &str = "series.csv";
/// Failures by measure and class, a row for each that occurred in a second.
pub const FAULTS: &str = "faults.csv";
/// Readings of processes and host.
pub const PROBES: &str = "probes.csv";
/// Phases, marks, stages, first failures.
pub const EVENTS: &str = "events.jsonl";
/// The page for people.
pub const REPORT_HTML: &str = "report.html";
/// The report for a forge.
pub const REPORT_MD: &str = "report.md";
/// The folder of charts that the Markdown report shows.
pub const CHARTS: &str = "charts";
