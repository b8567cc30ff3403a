//! Run directory, statistics, charts and reports.

mod analysis;
mod error;
pub mod run;
mod summary;

pub use analysis::Analysis;
pub use error::Error;
pub use run::{Manifest, Run, RunWriter, Status};
pub use summary::Summary;
