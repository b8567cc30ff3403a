//! `throng plan`: the resolved plan, in words or as JSON.

use crate::cli::PlanArgs;
use crate::failure::{Ending, Failure};
use crate::load::{load, read};
use crate::suite;

/// Prints the plan.
pub(crate) fn plan(args: &PlanArgs) -> Ending {
    let text = read(&args.scenario.scenario)?;
    if suite::is_suite(&text) {
        return suite::plan(&args.scenario.scenario, &text);
    }
    let loaded = load(&args.scenario)?;
    match args.json {
        false => print!("{}", model::scenario::describe(&loaded.plan)),
        true => {
            let json = serde_json::to_string_pretty(&loaded.plan);
            println!("{}", json.map_err(|error| Failure::usage(error.to_string()))?);
        }
    }
    Ok(0)
}
