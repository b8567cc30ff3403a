//! `throng sweep`: how does the cost grow?

use crate::cli::SweepArgs;
use crate::command::run::print_json;
use crate::failure::{Ending, Failure, UNMEASURED};
use crate::lab::Lab;
use crate::load::load;
use results::sweep::{BadVary, Design, Vary, sweep as sweep_trials};

/// The parameter that stands for all people, unless the scenario has one of that name.
const PEOPLE: &str = "people";

/// Runs the scenario over a range of sizes, and tells which laws its costs follow.
pub(crate) fn sweep(args: &SweepArgs) -> Ending {
    let bad = |bad: BadVary| Failure::usage(format!("--vary {bad}"));
    let vary: Vec<Vary> =
        args.vary.iter().map(|text| Vary::parse(text)).collect::<Result<_, _>>().map_err(bad)?;
    let loaded = load(&args.scenario)?;
    let design = Design::new(vary, args.rounds as usize, loaded.plan.seed).map_err(bad)?;
    let whole = (!loaded.has_people).then_some(PEOPLE);
    let sequence = design.sequence(whole);
    let mut lab = Lab::open("sweep", &sequence, &args.scenario, &args.output)?;
    let trials = lab.pursue(&sequence)?;
    let (sweep, drawn) = sweep_trials(&design, &trials, loaded.plan.seed)
        .map_err(|error| Failure::unmeasured(error.to_string()))?;
    lab.conclude(&sweep.told(), &drawn)?;
    match args.output.json {
        true => print_json(&sweep.told())?,
        false => print!("{}", drawn.text(Some(lab.dir()))),
    }
    Ok(if sweep.is_answered() { 0 } else { UNMEASURED })
}
