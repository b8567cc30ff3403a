//! The sweep: one or several parameters over a range, what each size costs, and which law the cost
//! follows. A pure function of the trials.

mod design;
mod draw;
mod plot;
#[cfg(test)]
mod tests;
mod unit;
mod words;

pub use design::{BadVary, CELLS_MAX, Design, Planned, ROUNDS_MAX, VALUES_MAX, Vary};
pub use draw::About;

use crate::experiment::{Drawn, Figure, Trial, Unit as Counted, figures, phase_figures};
use crate::laws::{self, Laws, Point, Prediction};
use crate::run::Run;
use crate::stats::{Bounds, mean_bounds};
use crate::{Analysis, Error};
use unit::Unit;

/// What is predicted: so many times the largest size.
pub const REACH: f64 = 10.0;

/// One finished trial: the parameters' values, and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint {
    /// Each parameter and its value.
    pub values: Vec<(String, f64)>,
    /// Each cost; absent where it was not measured.
    pub cost: Vec<Figure>,
}

/// What a sweep says.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The parameters that were varied.
    pub parameters: Vec<String>,
    /// Trials.
    pub trials: usize,
    /// Every cost, by name.
    pub costs: Vec<Growth>,
}

/// How one cost grows.
#[derive(Clone, Debug)]
pub struct Growth {
    /// The cost's name.
    pub name: String,
    unit: Unit,
    /// One for each combination of values, ascending.
    pub rows: Vec<Row>,
    /// The law; with several parameters there is none.
    pub laws: Option<Laws>,
    /// The cost at ten times the largest size.
    pub ahead: Option<Prediction>,
    /// Exponent of each parameter with its bounds, if several were varied and the runs tell.
    pub exponents: Option<Vec<(f64, Bounds)>>,
    /// The runs: size (of the first parameter) and cost.
    points: Vec<Point>,
}

/// The cost at one combination of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The values, in the parameters' order.
    pub values: Vec<f64>,
    /// Runs.
    pub runs: usize,
    /// Mean over the runs.
    pub cost: f64,
    /// Bounds of the mean.
    pub bounds: Bounds,
    /// Cost over the first parameter's value; with several parameters, over their product.
    pub per_unit: f64,
}

impl Sweep {
    /// From the trials so far. Those that lack a parameter the first one has are left out.
    pub fn of(points: &[SweepPoint], seed: u64) -> Sweep {
        let parameters: Vec<String> = points
            .first()
            .map(|point| point.values.iter().map(|(name, _)| name.clone()).collect())
            .unwrap_or_default();
        let values = |point: &SweepPoint| -> Option<Vec<f64>> {
            let value = |name: &String| point.values.iter().find(|(other, _)| other == name);
            parameters.iter().map(|name| value(name).map(|(_, value)| *value)).collect()
        };
        let trials: Vec<(Vec<f64>, &SweepPoint)> =
            points.iter().filter_map(|point| Some((values(point)?, point))).collect();
        let mut names: Vec<(&String, Unit)> = Vec::new();
        for figure in trials.iter().flat_map(|(_, point)| &point.cost) {
            if !names.iter().any(|(name, _)| *name == &figure.name) {
                names.push((&figure.name, figure.unit.into()));
            }
        }
        let growth = |(name, unit): (&String, Unit)| {
            let cost = |(values, point): &(Vec<f64>, &SweepPoint)| {
                let figure = point.cost.iter().find(|figure| figure.name == *name)?;
                figure.value.is_finite().then(|| (values.clone(), figure.value))
            };
            Growth::of(name, unit, trials.iter().filter_map(cost).collect(), seed)
        };
        let costs = names.into_iter().map(growth).filter(|cost| !cost.rows.is_empty()).collect();
        Sweep { trials: trials.len(), parameters, costs }
    }
}

/// Answers from the trials, reading their run directories, and draws the report.
pub fn sweep(design: &Design, trials: &[Trial], seed: u64) -> Result<(Sweep, Drawn), Error> {
    let mut about = About::default();
    let mut points = Vec::new();
    for trial in trials {
        if let Some(flaw) = trial.flaw() {
            about.left_out.push(format!("{}: not used: {flaw}", trial.arm.label));
            continue;
        }
        let Some(values) = design.values(&trial.arm) else { continue };
        let run = Run::load(&trial.dir)?;
        let ledger = &trial.summary.ledger;
        let counts =
            [("deliveries", ledger.received), ("announcements", ledger.announcements_received)];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| {
            let (name, value) = (name.to_owned(), count as f64);
            Figure { name, unit: Counted::Count, value, ..Figure::default() }
        });
        // The sizes of a sweep are not alike, so nothing is cut by a rule made for one size.
        let cost = counts.chain(figures(&run, 0.0)).chain(of_phases(&run)).collect();
        points.push(SweepPoint { values, cost });
        about.name.clone_from(&trial.summary.name);
        about.about.clone_from(&trial.summary.about);
        about.target = format!("{} {}", trial.summary.target, trial.summary.target_version);
    }
    let sweep = Sweep::of(&points, seed);
    let drawn = sweep.draw(&about)?;
    Ok((sweep, drawn))
}

/// What each phase and its stages cost the target, where there are several: people who only come so
/// that others can write to them are a cost of another phase.
fn of_phases(run: &Run) -> Vec<Figure> {
    let analysis = Analysis::of(run);
    let phases = analysis.summary.phases.iter().filter(|phase| phase.arrivals);
    let all = if phases.count() < 2 { Vec::new() } else { phase_figures(&analysis) };
    let named = |figure: Figure| Figure { name: format!("CPU while {}", figure.name), ..figure };
    all.into_iter().map(named).collect()
}

impl Growth {
    fn of(name: &str, unit: Unit, mut runs: Vec<(Vec<f64>, f64)>, seed: u64) -> Growth {
        let order = |a: &[f64], b: &[f64]| {
            let unlike = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
            unlike.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        };
        // Equal sizes keep the order of the trials.
        runs.sort_by(|a, b| order(&a.0, &b.0));
        let rows = runs.chunk_by(|a, b| a.0 == b.0).map(|group| Row::of(group, seed)).collect();
        let is_grid = runs.iter().any(|(values, _)| values.len() != 1);
        let first =
            |(values, cost): &(Vec<f64>, f64)| Some(Point { n: *values.first()?, cost: *cost });
        let points: Vec<Point> = runs.iter().filter_map(first).collect();
        let laws = (!is_grid).then(|| laws::fit(&points, seed));
        let largest = points.iter().map(|point| point.n).fold(0.0, f64::max);
        Growth {
            name: name.to_owned(),
            unit,
            rows,
            ahead: laws.as_ref().and_then(|laws| laws.predict(largest * REACH)),
            laws,
            exponents: if is_grid { laws::power_law(&runs) } else { None },
            points,
        }
    }

    /// Name of the chart's file: foreign letters become dashes.
    fn chart_name(&self) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        format!("sweep-{}", self.name.chars().map(letter).collect::<String>())
    }
}

impl Row {
    fn of(group: &[(Vec<f64>, f64)], seed: u64) -> Row {
        let costs: Vec<f64> = group.iter().map(|(_, cost)| *cost).collect();
        let (cost, bounds) = mean_bounds(&costs, seed);
        let values = group[0].0.clone();
        let size: f64 = values.iter().product();
        Row { runs: costs.len(), cost, bounds, per_unit: cost / size, values }
    }
}
