//! `throng report`: draws the reports of run directories again.

use crate::cli::ReportArgs;
use crate::failure::{Ending, Failure};

/// Draws every report; the exit code is the worst of the runs'.
pub(crate) fn report(args: &ReportArgs) -> Ending {
    let mut worst = 0;
    for dir in &args.runs {
        let analysis = results::draw(dir).map_err(|error| Failure::usage(error.to_string()))?;
        super::run::print(&analysis, dir, args.json)?;
        worst = worst.max(results::exit_code(analysis.summary.verdict));
    }
    Ok(worst)
}
