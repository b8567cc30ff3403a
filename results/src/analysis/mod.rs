//! What a run amounts to: pure functions of what its directory holds.

use crate::run::Run;

/// Everything that is derived from a run.
#[derive(Clone, Debug)]
pub struct Analysis {}

impl Analysis {
    /// Analyzes a run.
    pub fn of(_run: &Run) -> Analysis {
        Analysis {}
    }
}
