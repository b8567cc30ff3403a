//! `throng compare`: is the new build better?

use crate::cli::CompareArgs;
use crate::command::capacity::{about_of, refuse_without_criteria};
use crate::command::run::print_json;
use crate::failure::{Ending, Failure};
use crate::lab::{self, Lab};
use crate::site;
use results::capacity::{Capacity, Of};
use results::compare::{Comparison, Question, beside, compare as compare_trials, junit};
use results::experiment::{Arm, Drawn, Sequence, Trial, stored};
use std::path::{Path, PathBuf};

/// The arm of the base, and of the candidate.
const LABELS: [&str; 2] = ["base", "candidate"];

/// Runs both sides in turn and compares them.
pub(crate) fn compare(args: &CompareArgs) -> Ending {
    if let Some(candidates) = &args.runs {
        return compare_stored(args, candidates);
    }
    if args.candidate.len() > 1 {
        return lay_side_by_side(args);
    }
    let base = base_name(args)?;
    let candidate = args.candidate.first().cloned().unwrap_or_else(|| base.clone());
    let other = if args.aa { args.base.as_ref() } else { args.candidate.first() };
    let arms = [arm(LABELS[0], args.base.as_ref())?, arm(LABELS[1], other)?];
    let rounds = Sequence::rounds(&arms, args.pairs as usize);
    let mut lab = Lab::open("compare", &rounds, &args.scenario, &args.output)?;
    let trials = lab.pursue(&rounds)?;
    let of = |label: &str| -> Vec<Trial> {
        trials.iter().filter(|trial| trial.arm.label == label).cloned().collect()
    };
    let capacities = match args.capacity {
        Some(people) => {
            Some((hold(args, &lab, &arms[0], people)?, hold(args, &lab, &arms[1], people)?))
        }
        None => None,
    };
    let question =
        Question { base, candidate, is_aa: args.aa, tolerate: args.tolerate, capacities };
    let (comparison, drawn) =
        compare_trials(&question, &of(LABELS[0]), &of(LABELS[1])).map_err(unreadable)?;
    lab.conclude(&comparison, &drawn)?;
    report(args, &comparison, &drawn, Some(lab.dir()))
}

/// What is compared with.
fn base_name(args: &CompareArgs) -> Result<String, Failure> {
    let own = || crate::load::load(&args.scenario).map(|loaded| loaded.plan.target.name);
    args.base.clone().map_or_else(own, Ok)
}

/// A side; the scenario as it is if nothing is said about it.
fn arm(label: &str, side: Option<&String>) -> Result<Arm, Failure> {
    let set = side.map_or(Ok(Vec::new()), |side| site::changes(side))?;
    Ok(Arm { set, ..Arm::named(label) })
}

/// Runs the base and several candidates in turn and lays them side by side.
fn lay_side_by_side(args: &CompareArgs) -> Ending {
    if args.capacity.is_some() || args.junit.is_some() || args.tolerate > 0.0 {
        return Err(Failure::usage(
            "--capacity, --junit and --tolerate need a single candidate: with several, nothing is \
             judged",
        ));
    }
    let sides: Vec<String> =
        [base_name(args)?].into_iter().chain(args.candidate.iter().cloned()).collect();
    let changes = std::iter::once(args.base.as_ref()).chain(args.candidate.iter().map(Some));
    let label = |at: usize| match at {
        0 => LABELS[0].to_owned(),
        at => format!("{} {at}", LABELS[1]),
    };
    let arms: Vec<Arm> =
        changes.enumerate().map(|(at, side)| arm(&label(at), side)).collect::<Result<_, _>>()?;
    let rounds = Sequence::rounds(&arms, args.pairs as usize);
    let mut lab = Lab::open("compare", &rounds, &args.scenario, &args.output)?;
    let trials = lab.pursue(&rounds)?;
    let of = |at: usize| -> Vec<Trial> {
        trials.iter().filter(|trial| trial.arm.label == label(at)).cloned().collect()
    };
    let sides: Vec<(String, Vec<Trial>)> =
        sides.into_iter().enumerate().map(|(at, name)| (name, of(at))).collect();
    let (told, drawn) = beside(&sides).map_err(unreadable)?;
    lab.conclude(&told, &drawn)?;
    match args.output.json {
        true => print_json(&told)?,
        false => print!("{}", drawn.text(Some(lab.dir()))),
    }
    lab::tell_forge(&drawn.markdown)?;
    Ok(told.exit_code())
}

/// How many people one side holds, in a folder within the comparison's.
fn hold(
    args: &CompareArgs,
    lab: &Lab<'_>,
    arm: &Arm,
    (low, high): (u32, u32),
) -> Result<Capacity, Failure> {
    refuse_without_criteria(&crate::load::load_arm(&args.scenario, arm)?)?;
    let question = results::capacity::Question::about(low, high);
    let dir = lab.dir().join(format!("capacity-{}", arm.label));
    let mut lab = lab.within(dir, "capacity", &(&question, arm))?;
    let trials = lab.pursue(&Of { question: &question, arm })?;
    let found = question.answer(&trials);
    let found = found.ok_or_else(|| Failure::unmeasured("the search ended without an answer"))?;
    let about = trials.last().map(|trial| about_of(&trial.summary)).unwrap_or_default();
    lab.conclude(&found, &found.draw(&about).map_err(unreadable)?)?;
    Ok(found)
}

/// Compares runs that were made before.
fn compare_stored(args: &CompareArgs, candidates: &str) -> Ending {
    let bases = args.scenario.scenario.to_string_lossy().into_owned();
    let read = |dirs: &str| -> Result<Vec<Trial>, Failure> {
        let trials = dirs.split(',').map(|dir| stored(&PathBuf::from(dir)));
        trials.collect::<Result<_, _>>().map_err(unreadable)
    };
    let (base, candidate) = (read(&bases)?, read(candidates)?);
    let name =
        |trials: &[Trial]| trials.first().map_or(String::new(), |t| t.summary.target.clone());
    let question = Question {
        base: name(&base),
        candidate: name(&candidate),
        tolerate: args.tolerate,
        ..Question::default()
    };
    let (comparison, drawn) = compare_trials(&question, &base, &candidate).map_err(unreadable)?;
    if let Some(dir) = &args.output.out {
        results::experiment::write_report(dir, &drawn).map_err(unreadable)?;
    }
    report(args, &comparison, &drawn, args.output.out.as_deref())
}

/// Tells everybody who wants to know.
fn report(
    args: &CompareArgs,
    comparison: &Comparison,
    drawn: &Drawn,
    dir: Option<&Path>,
) -> Ending {
    match args.output.json {
        true => print_json(comparison)?,
        false => print!("{}", drawn.text(dir)),
    }
    if let Some(file) = &args.junit {
        lab::write(file, &junit(comparison))?;
    }
    lab::tell_forge(&drawn.markdown)?;
    Ok(comparison.exit_code())
}

fn unreadable(error: results::Error) -> Failure {
    Failure::usage(error.to_string())
}
