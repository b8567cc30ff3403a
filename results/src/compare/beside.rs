//! Several candidates beside one base: every figure of every side, and how many times the base's
//! it is. Who is better is not asked: different servers do not do the same work.

mod draw;

use super::{RUNS_MIN, SEED, Side, Used, common_warm_up_s, unlike};
use crate::Error;
use crate::experiment::{Drawn, Figure, Trial, Unit, figures, message_figures};
use crate::run::Run;
use crate::stats::{self, Bounds};
use serde::{Deserialize, Serialize};

/// Sides and their figures; the base comes first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideBySide {
    /// The scenario's name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// What is compared, the base first.
    pub sides: Vec<Side>,
    /// Seconds at the beginning of each run that figures of deliveries leave out.
    pub warm_up_s: f64,
    /// The figures.
    pub rows: Vec<Ratios>,
    /// What else has to be known, a sentence each.
    pub remarks: Vec<String>,
}

/// One figure of all sides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ratios {
    /// The figure.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// One for each side.
    pub cells: Vec<Cell>,
}

/// One figure of one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cell {
    /// A value for each run.
    pub values: Vec<f64>,
    /// Their mean; absent where a run lacks the figure.
    pub mean: Option<f64>,
    /// Its 95 % bounds.
    pub bounds: Option<Bounds>,
    /// How many times the base's mean it is; absent for the base, where the base's is zero, and
    /// where the load was another.
    pub ratio: Option<f64>,
    /// Its 95 % bounds.
    pub ratio_bounds: Option<Bounds>,
}

impl SideBySide {
    /// What the program exits with: 0 measured, 3 could not measure.
    pub fn exit_code(&self) -> u8 {
        if self.is_measured() { 0 } else { 3 }
    }

    /// Whether each side has enough runs.
    pub fn is_measured(&self) -> bool {
        self.sides.len() > 1 && self.sides.iter().all(|side| side.runs >= RUNS_MIN)
    }

    /// Fills in the rows from the figures of each side's runs.
    fn filled(mut self, figures: &[Vec<Vec<Figure>>]) -> SideBySide {
        for side in self.sides.iter().filter(|side| side.runs < RUNS_MIN) {
            self.remarks.push(format!(
                "{}: {} usable runs; bounds take at least {RUNS_MIN}",
                side.name, side.runs
            ));
        }
        let mut is_alike = vec![true; figures.len()];
        if let Some((base, others)) = self.sides.split_first() {
            for (at, side) in others.iter().enumerate() {
                let remarks = unlike(base, side);
                is_alike[at + 1] = remarks.is_empty();
                self.remarks.extend(remarks.iter().map(|why| format!("{}: {why}", side.name)));
            }
        }
        self.rows = rows(figures, &is_alike);
        self
    }
}

/// Lays the trials of several sides beside each other, reading their run directories, and draws
/// the report. The base comes first.
pub fn beside(sides: &[(String, Vec<Trial>)]) -> Result<(SideBySide, Drawn), Error> {
    let mut used: Vec<Used> =
        sides.iter().map(|(name, trials)| Used::read(name, trials)).collect::<Result<_, _>>()?;
    let warm_up_s = common_warm_up_s(&used.iter().collect::<Vec<_>>());
    let mut remarks = Vec::new();
    let mut of_run: fn(&Run, f64) -> Vec<Figure> = figures;
    if is_announced_on_some(sides) {
        of_run = message_figures;
        for (side, (_, trials)) in used.iter_mut().zip(sides) {
            side.side.load.owed = super::mean_of(trials, |trial| trial.summary.ledger.owed);
        }
        remarks.push(
            "not every side announces comings and goings in words that can be counted: deliveries \
             are messages"
                .to_owned(),
        );
    }
    let all: Vec<Vec<Vec<Figure>>> = used
        .iter()
        .map(|side| side.runs.iter().map(|run| of_run(run, warm_up_s)).collect())
        .collect();
    let first = used.iter().flat_map(|side| &side.runs).next();
    let head = first.map(|run| run.manifest.clone()).unwrap_or_default();
    let told = SideBySide {
        name: head.name,
        about: head.about,
        sides: used.into_iter().map(|side| side.side).collect(),
        warm_up_s,
        remarks,
        ..SideBySide::default()
    };
    let told = told.filled(&all);
    let drawn = draw::page(&told).drawn()?;
    Ok((told, drawn))
}

/// Whether announcements are owed on some sides, and on others none.
fn is_announced_on_some(sides: &[(String, Vec<Trial>)]) -> bool {
    let owes = |trial: &Trial| trial.summary.ledger.announcements_owed > 0;
    let mut usable = sides.iter().flat_map(|(_, trials)| trials).filter(|t| t.flaw().is_none());
    let first = usable.next().map(owes);
    usable.any(|trial| Some(owes(trial)) != first)
}

/// One row for each figure that any run has, in the order of the side that has most.
fn rows(sides: &[Vec<Vec<Figure>>], is_alike: &[bool]) -> Vec<Ratios> {
    let longest = sides.iter().flatten().max_by_key(|figures| figures.len());
    let mut names: Vec<&Figure> = longest.into_iter().flatten().collect();
    for figure in sides.iter().flatten().flatten() {
        if !names.iter().any(|known| known.name == figure.name) {
            names.push(figure);
        }
    }
    let row = |figure: &Figure| -> Ratios {
        let values = |runs: &Vec<Vec<Figure>>| -> Vec<f64> {
            let of =
                |run: &Vec<Figure>| run.iter().find(|f| f.name == figure.name).map(|f| f.value);
            runs.iter().map(of).collect::<Option<Vec<f64>>>().unwrap_or_default()
        };
        let values: Vec<Vec<f64>> = sides.iter().map(values).collect();
        let base = values.first().cloned().unwrap_or_default();
        let cells = values.into_iter().enumerate().map(|(at, values)| {
            let is_compared = at > 0 && is_alike[at];
            cell(values, is_compared.then_some(&base))
        });
        Ratios { name: figure.name.clone(), unit: figure.unit, cells: cells.collect() }
    };
    names.into_iter().map(row).collect()
}

fn cell(values: Vec<f64>, base: Option<&Vec<f64>>) -> Cell {
    if values.is_empty() {
        return Cell::default();
    }
    let (mean, bounds) = stats::mean_bounds(&values, SEED);
    let mut cell = Cell {
        mean: Some(mean),
        bounds: Some(bounds).filter(Bounds::is_finite),
        values,
        ..Cell::default()
    };
    if let Some(base) = base.filter(|base| !base.is_empty() && stats::mean(base) != 0.0) {
        cell.ratio = Some(mean / stats::mean(base));
        let bounds = stats::difference(base, &cell.values, SEED).map(|share| share + 1.0);
        cell.ratio_bounds = Some(bounds).filter(Bounds::is_finite);
    }
    cell
}

#[cfg(test)]
#[path = "beside/tests.rs"]
mod tests;
