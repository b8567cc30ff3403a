//! Ablation: what does each feature cost? The scenario as it is, without each feature, and without
//! all of them, in turn. A cost is the difference between two means of whole runs.

mod draw;

use crate::experiment::{Arm, Drawn, Figure, Sequence, Trial, Unit, figures, phase_figures};
use crate::run::Run;
use crate::stats::{self, Bounds};
use crate::{Analysis, Error};
use serde::{Deserialize, Serialize};

/// Label of the arm that has everything.
const FULL: &str = "everything";
/// Label of the arm that has nothing.
const BARE: &str = "nothing";
/// Fewest usable runs of each arm for an answer.
const RUNS_MIN: usize = 2;

/// A feature, and what takes it away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// Features of the protocol that nobody uses then.
    pub without: Vec<String>,
    /// Values of the scenario that are changed, path and value.
    pub set: Vec<(String, String)>,
}

/// The trials of an ablation.
pub fn design(features: &[Feature], rounds: usize) -> Sequence {
    Sequence::rounds(&arms(features), rounds)
}

/// Everything, without each feature, and (if there are several) nothing.
fn arms(features: &[Feature]) -> Vec<Arm> {
    let arm = |label: String, features: &[Feature]| Arm {
        label,
        set: features.iter().flat_map(|feature| feature.set.clone()).collect(),
        without: features.iter().flat_map(|feature| feature.without.clone()).collect(),
        ..Arm::default()
    };
    let one = |feature: &Feature| arm(label(&feature.name), std::slice::from_ref(feature));
    let mut arms = vec![Arm::named(FULL)];
    arms.extend(features.iter().map(one));
    if features.len() > 1 {
        arms.push(arm(BARE.to_owned(), features));
    }
    arms
}

fn label(feature: &str) -> String {
    format!("without {feature}")
}

/// A difference between means, with its 95 % bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// The difference, in the figure's unit.
    pub value: f64,
    /// Its bounds; absent if there are too few runs.
    pub bounds: Option<Bounds>,
}

impl Cost {
    fn of(groups: &[(f64, &[f64])]) -> Cost {
        let (value, bounds) = stats::contrast(groups);
        Cost { value, bounds: Some(bounds).filter(Bounds::is_finite) }
    }

    /// Whether the bounds say that it is not zero.
    pub fn is_seen(&self) -> bool {
        self.bounds.is_some_and(|bounds| !bounds.contains(0.0))
    }
}

/// What everything costs in one figure, and each feature of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// The figure.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// With everything.
    pub full: Cost,
    /// The cost of each feature, in the order asked: with everything, less without it.
    pub features: Vec<Cost>,
    /// What is left over: without any of the features.
    pub rest: Cost,
    /// What all features cost together, less what they cost one by one. Below zero: they share
    /// work, and it is only saved when all of them go.
    pub interaction: Option<Cost>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ablation {
    /// The scenario's name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// The target and its version.
    pub target: String,
    /// The features.
    pub features: Vec<String>,
    /// Usable runs of each arm, by label.
    pub runs: Vec<(String, usize)>,
    /// Figures of whole runs.
    pub rows: Vec<Row>,
    /// CPU of the target by phase and stage.
    pub phases: Vec<Row>,
    /// What else has to be known, a sentence each.
    pub remarks: Vec<String>,
}

impl Ablation {
    /// What the program exits with: 0 answered, 3 could not measure.
    pub fn exit_code(&self) -> u8 {
        if self.is_answered() { 0 } else { 3 }
    }

    /// Whether each arm has enough runs.
    pub fn is_answered(&self) -> bool {
        self.runs.iter().all(|(_, runs)| *runs >= RUNS_MIN)
    }
}

/// Answers from the trials, reading their run directories, and draws the report.
pub fn ablate(features: &[Feature], trials: &[Trial]) -> Result<(Ablation, Drawn), Error> {
    let mut values = Vec::new();
    let mut ablation = Ablation {
        features: features.iter().map(|feature| feature.name.clone()).collect(),
        ..Ablation::default()
    };
    for arm in arms(features) {
        let of_arm = values_of(&arm, trials, &mut ablation)?;
        ablation.runs.push((arm.label, of_arm.len()));
        values.push(of_arm);
    }
    ablation.rows = rows(&values, |values| &values.0);
    ablation.phases = rows(&values, |values| &values.1);
    ablation.remarks.extend(interactions(&ablation.rows));
    if !ablation.is_answered() {
        let needed = format!("an answer takes at least {RUNS_MIN} usable runs of each arm");
        ablation.remarks.insert(0, needed);
    }
    let page = draw::page(&ablation);
    Ok((ablation, page.drawn()?))
}

/// Figures of a whole run, and of its phases.
type Values = (Vec<Figure>, Vec<Figure>);

fn values_of(arm: &Arm, trials: &[Trial], ablation: &mut Ablation) -> Result<Vec<Values>, Error> {
    let mut values = Vec::new();
    for trial in trials.iter().filter(|trial| trial.arm.label == arm.label) {
        if let Some(flaw) = trial.flaw() {
            let at_s = trial.summary.seconds;
            ablation.remarks.push(format!("{}: not used: after {at_s:.1} s {flaw}", arm.label));
            continue;
        }
        let run = Run::load(&trial.dir)?;
        // Entering is what most features cost, so nothing is cut.
        values.push((figures(&run, 0.0), phase_figures(&Analysis::of(&run))));
        let summary = &trial.summary;
        ablation.name.clone_from(&summary.name);
        ablation.about.clone_from(&summary.about);
        ablation.target = format!("{} {}", summary.target, summary.target_version);
    }
    Ok(values)
}

/// One row for each figure that every run of every arm has. The arms are: everything, without
/// each feature, and (if there are several) nothing.
fn rows(arms: &[Vec<Values>], part: impl Fn(&Values) -> &Vec<Figure>) -> Vec<Row> {
    let Some(first) = arms.first().and_then(|runs| runs.first()) else { return Vec::new() };
    let row = |figure: &Figure| -> Option<Row> {
        let of = |run: &Values| part(run).iter().find(|f| f.name == figure.name).map(|f| f.value);
        let values = |runs: &Vec<Values>| runs.iter().map(of).collect::<Option<Vec<f64>>>();
        let arms: Vec<Vec<f64>> = arms.iter().map(values).collect::<Option<_>>()?;
        let (full, without) = arms.split_first()?;
        let (without, bare) = match without {
            [only] => (std::slice::from_ref(only), only),
            [without @ .., bare] => (without, bare),
            [] => return None,
        };
        let cost = |without: &Vec<f64>| Cost::of(&[(1.0, full), (-1.0, without)]);
        Some(Row {
            name: figure.name.clone(),
            unit: figure.unit,
            full: Cost::of(&[(1.0, full)]),
            features: without.iter().map(cost).collect(),
            rest: Cost::of(&[(1.0, bare)]),
            interaction: (without.len() > 1).then(|| interaction(full, without, bare)),
        })
    };
    part(first).iter().filter_map(row).collect()
}

/// (full - bare) - sum of (full - without each).
fn interaction(full: &[f64], without: &[Vec<f64>], bare: &[f64]) -> Cost {
    let mut groups: Vec<(f64, &[f64])> = vec![(1.0 - without.len() as f64, full), (-1.0, bare)];
    groups.extend(without.iter().map(|values| (1.0, values.as_slice())));
    Cost::of(&groups)
}

/// Says where costs do not add up.
fn interactions(rows: &[Row]) -> Vec<String> {
    let seen = rows.iter().filter_map(|row| {
        let cost = row.interaction.filter(Cost::is_seen)?;
        let all = row.full.value - row.rest.value;
        let size = draw::value(cost.value.abs(), row.unit);
        let how = if cost.value < 0.0 { "less" } else { "more" };
        let all = draw::value(all, row.unit);
        Some(format!(
            "{}: costs do not add up: all features together cost {all}, {size} {how} than one by one",
            row.name
        ))
    });
    seen.collect()
}

#[cfg(test)]
mod tests;
