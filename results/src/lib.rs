//! Run directory, statistics, charts and reports.

pub mod analysis;
pub mod capacity;
mod error;
mod report;
pub mod run;
pub mod summary;

pub use analysis::{Analysis, exit_code};
pub use error::Error;
pub use report::{draw, summary_text};
pub use run::{Manifest, Run, RunWriter, Status};
pub use summary::{Summary, Verdict};
