//! Run directory, statistics, charts and reports.

pub mod ablate;
pub mod analysis;
pub mod capacity;
pub mod compare;
mod error;
pub mod experiment;
pub mod laws;
pub mod profile;
mod report;
pub mod run;
pub mod stats;
pub mod suite;
pub mod summary;
pub mod sweep;

pub use analysis::{Analysis, exit_code};
pub use error::Error;
pub use report::{draw, summary_text};
pub use run::{Manifest, Run, RunWriter, Status};
pub use summary::{Summary, Verdict};
