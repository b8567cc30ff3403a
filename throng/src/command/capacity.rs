//! `throng capacity`: how many people can it hold?

use crate::cli::{CapacityArgs, Style};
use crate::command::run::print_json;
use crate::failure::{Ending, Failure, UNMEASURED};
use crate::governed::Governed;
use crate::lab::Lab;
use crate::load::{Loaded, load, load_arm};
use model::PhaseKind;
use results::Summary;
use results::capacity::continuous::{Settings, Settled};
use results::capacity::{About, Capacity, Limit, Question};
use results::experiment::Arm;
use serde::Serialize;

/// A threshold was broken by the fewest people.
const BROKEN: u8 = 1;

/// Searches for the most people at whom all thresholds are kept.
pub(crate) fn capacity(args: &CapacityArgs) -> Ending {
    let loaded = load(&args.scenario)?;
    refuse_without_criteria(&loaded)?;
    match args.style {
        Style::Stepped => stepped(args),
        Style::Continuous => {
            continuous(args, &loaded, Settings::brisk(args.people.0, args.people.1))
        }
        Style::Mattermost => continuous(args, &loaded, Settings::mattermost(args.people.1)),
    }
}

/// Without criteria nothing could ever be too many.
pub(crate) fn refuse_without_criteria(loaded: &Loaded) -> Result<(), Failure> {
    match loaded.plan.thresholds.is_empty() {
        false => Ok(()),
        true => Err(Failure::usage(
            "the scenario has no `thresholds`, and they are the criteria of a capacity: nothing \
             could ever be too many",
        )),
    }
}

fn stepped(args: &CapacityArgs) -> Ending {
    let question = Question {
        trials_max: args.trials,
        seconds_max: args.minutes.map_or(f64::INFINITY, |minutes| minutes * 60.0),
        resolution: args.resolution.max(1e-6),
        ..Question::about(args.people.0, args.people.1)
    };
    let mut lab = Lab::open("capacity", &question, &args.scenario, &args.output)?;
    let trials = lab.pursue(&question)?;
    let found = question.answer(&trials);
    let found = found.ok_or_else(|| Failure::unmeasured("the search ended without an answer"))?;
    let about = trials.last().map(|trial| about_of(&trial.summary)).unwrap_or_default();
    let drawn = found.draw(&about).map_err(undrawn)?;
    conclude(args, &mut lab, &found, &drawn)?;
    Ok(code(&found))
}

fn code(found: &Capacity) -> u8 {
    match (&found.limit, found.people) {
        (_, Some(_)) => 0,
        (Limit::Criterion(_) | Limit::Collapse(_), None) if found.kept.is_none() => BROKEN,
        _ => UNMEASURED,
    }
}

/// One run whose population moves. The scenario's first hold is the one that is moved; a scenario
/// without one has its first crowd held.
fn continuous(args: &CapacityArgs, loaded: &Loaded, settings: Settings) -> Ending {
    let settings = Settings {
        seconds_max: args.minutes.map_or(settings.seconds_max, |minutes| minutes * 60.0),
        ..settings
    };
    let arm = held(loaded, &settings);
    let mut lab = Lab::open("capacity", &(&arm, &settings), &args.scenario, &args.output)?;
    let plan = load_arm(&args.scenario, &arm)?.plan;
    let mut governed = Governed::new(plan.thresholds, settings);
    let trial = lab.govern(&arm, &mut governed)?;
    let settled = governed.settled();
    let drawn = settled.draw(&about_of(&trial.summary)).map_err(undrawn)?;
    conclude(args, &mut lab, &settled, &drawn)?;
    Ok(settled_code(&settled))
}

fn settled_code(settled: &Settled) -> u8 {
    match settled.supported {
        Some(_) => 0,
        None if settled.broken_share >= 1.0 => BROKEN,
        None => UNMEASURED,
    }
}

/// The scenario with a population that can be moved at once, for as long as it takes.
fn held(loaded: &Loaded, settings: &Settings) -> Arm {
    let plan = &loaded.plan;
    let is_hold = |kind: &PhaseKind| matches!(kind, PhaseKind::Run(run) if run.hold.is_some());
    let most = settings.people.1;
    let seconds = settings.seconds_max.ceil().max(1.0) as u64;
    let low = settings.people.0;
    let place = plan.phases.iter().position(|phase| is_hold(&phase.kind));
    let crowd = match place.map(|place| &plan.phases[place].kind) {
        Some(PhaseKind::Run(run)) => &plan.crowds[run.crowd as usize].name,
        _ => plan.crowds.first().map_or("", |crowd| &crowd.name),
    };
    let hold = format!("{{hold: \"{crowd} at {low} for {seconds}s\", by: once, most: {most}}}");
    let set = match place {
        Some(place) if plan.phases.len() > 1 => (format!("timeline.{place}"), hold),
        _ => ("timeline".to_owned(), format!("[{hold}]")),
    };
    Arm { set: vec![set], ..Arm::named("moving") }
}

/// What a report says besides the answer.
pub(crate) fn about_of(summary: &Summary) -> About {
    About {
        name: summary.name.clone(),
        about: summary.about.clone(),
        target: format!("{} {}", summary.target, summary.target_version),
    }
}

fn conclude(
    args: &CapacityArgs,
    lab: &mut Lab<'_>,
    answer: &impl Serialize,
    drawn: &results::experiment::Drawn,
) -> Result<(), Failure> {
    lab.conclude(answer, drawn)?;
    match args.output.json {
        true => print_json(answer)?,
        false => print!("{}", drawn.text(Some(lab.dir()))),
    }
    Ok(())
}

fn undrawn(error: results::Error) -> Failure {
    Failure::unmeasured(error.to_string())
}
