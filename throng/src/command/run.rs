//! `throng run`: from a scenario to a report.

use crate::cli::RunArgs;
use crate::failure::{Ending, Failure};
use crate::load::{load, read};
use crate::suite;
use crate::trial::{self, Setting};
use results::Analysis;
use std::path::Path;

/// Runs a scenario and reports.
pub(crate) fn run(args: &RunArgs) -> Ending {
    let text = read(&args.scenario.scenario)?;
    if suite::is_suite(&text) {
        return suite::run(args, &text);
    }
    let loaded = load(&args.scenario)?;
    let dir = args.output.out.clone().unwrap_or_else(|| trial::default_dir(&loaded.plan.name));
    trial::carry_out(&loaded, &dir, &Setting::new(&args.output.engine)?, None)?;
    let analysis = results::draw(&dir).map_err(|error| Failure::unmeasured(error.to_string()))?;
    print(&analysis, &dir, args.output.json)?;
    Ok(results::exit_code(analysis.summary.verdict))
}

/// The whole life of a worker process.
pub(crate) fn worker() -> Ending {
    engine::worker::serve(protocols::protocol).map_err(Failure::unmeasured)?;
    Ok(0)
}

/// Prints the summary, for people or for machines.
pub(crate) fn print(analysis: &Analysis, dir: &Path, json: bool) -> Result<(), Failure> {
    match json {
        false => print!("{}", results::summary_text(&analysis.summary, dir)),
        true => print_json(&analysis.summary)?,
    }
    Ok(())
}

/// Prints a value for machines.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value);
    println!("{}", text.map_err(|error| Failure::usage(error.to_string()))?);
    Ok(())
}
