//! `throng ablate`: what does each feature cost?

use crate::cli::AblateArgs;
use crate::command::run::print_json;
use crate::failure::{Ending, Failure};
use crate::lab::Lab;
use crate::load::{Loaded, load};
use crate::site;
use results::ablate::{Feature, ablate as ablate_trials, design};
use std::collections::BTreeSet;

/// Runs the scenario with and without each feature, and tells what each costs.
pub(crate) fn ablate(args: &AblateArgs) -> Ending {
    let loaded = load(&args.scenario)?;
    let features = features(&loaded, &args.features)?;
    let rounds = design(&features, args.rounds as usize);
    let mut lab = Lab::open("ablate", &rounds, &args.scenario, &args.output)?;
    let trials = lab.pursue(&rounds)?;
    let (ablation, drawn) = ablate_trials(&features, &trials)
        .map_err(|error| Failure::unmeasured(error.to_string()))?;
    lab.conclude(&ablation, &drawn)?;
    match args.output.json {
        true => print_json(&ablation)?,
        false => print!("{}", drawn.text(Some(lab.dir()))),
    }
    Ok(ablation.exit_code())
}

/// The features to be taken away: those named, or all that anybody uses.
fn features(loaded: &Loaded, named: &[String]) -> Result<Vec<Feature>, Failure> {
    let used: BTreeSet<String> =
        loaded.plan.crowds.iter().flat_map(|crowd| crowd.features.iter().cloned()).collect();
    let named: Vec<String> = match named.is_empty() {
        true => used.iter().cloned().collect(),
        false => named.to_vec(),
    };
    if named.is_empty() {
        return Err(Failure::usage(
            "the scenario uses no features; name knobs of its target: --features presence=off",
        ));
    }
    named.into_iter().map(|name| feature(name, &used)).collect()
}

fn feature(name: String, used: &BTreeSet<String>) -> Result<Feature, Failure> {
    if name.contains('=') {
        let set = site::changes(&format!("?{name}"))?;
        let knobs = name.split('&').map(|knob| knob.split('=').next().unwrap_or(knob));
        let name = knobs.collect::<Vec<_>>().join("+");
        return Ok(Feature { name, set, without: Vec::new() });
    }
    if !used.contains(&name) {
        let used: Vec<&str> = used.iter().map(String::as_str).collect();
        return Err(Failure::usage(format!(
            "nobody in the scenario uses the feature `{name}`; used are: {}. A knob of the target \
             is taken away as in --features presence=off",
            used.join(", ")
        )));
    }
    Ok(Feature { without: vec![name.clone()], set: Vec::new(), name })
}
