//! One figure compared: values of both sides, difference, test, verdict.

use super::{ALPHA, POWER, SEED};
use crate::capacity::{Capacity, Limit};
use crate::experiment::{Better, Figure, Unit};
use crate::stats::{self, Bounds};
use serde::{Deserialize, Serialize};

/// What is said of one figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    /// The candidate is better.
    Improved,
    /// The candidate is worse.
    Regressed,
    /// No difference was seen; `detectable` says what could have been.
    NoDifference,
    /// One side lacks it, or the loads differed.
    #[default]
    NotComparable,
}

/// One figure compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// The figure's name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// A value for each run of the base.
    pub base: Vec<f64>,
    /// A value for each run of the candidate.
    pub candidate: Vec<f64>,
    /// Mean of the base, and its 95 % bounds.
    pub base_mean: f64,
    /// Bounds of the base's mean.
    pub base_bounds: Option<Bounds>,
    /// Mean of the candidate.
    pub candidate_mean: f64,
    /// Bounds of the candidate's mean.
    pub candidate_bounds: Option<Bounds>,
    /// Candidate less base, as a share of the base; absent where the base is zero.
    pub difference: Option<f64>,
    /// Its 95 % bounds.
    pub bounds: Option<Bounds>,
    /// Of the permutation test; absent if there are too few values.
    pub p: Option<f64>,
    /// The same, adjusted for the number of figures.
    pub q: Option<f64>,
    /// Effect size: Hedges' g.
    pub effect: Option<f64>,
    /// The smallest relative difference that these runs would have seen four times out of five.
    pub detectable: Option<f64>,
    /// What is said of it.
    pub verdict: RowVerdict,
}

impl Row {
    /// Whether it is worse by more than a share of the base.
    pub fn is_regression_beyond(&self, tolerate: f64) -> bool {
        let size = self.difference.map_or(f64::INFINITY, f64::abs);
        self.verdict == RowVerdict::Regressed && size > tolerate
    }

    /// Whether its values differ at all: where all are equal there is nothing to test (Tarone,
    /// Biometrics 46, 1990: what cannot become significant does not count in the adjustment).
    fn is_testable(&self) -> bool {
        let mut all = self.base.iter().chain(&self.candidate);
        let first = all.next();
        self.p.is_some() && all.any(|value| Some(value) != first)
    }
}

/// Compares all figures that all runs have. The adjustment is over the rows that can be tested.
pub(super) fn rows(base: &[Vec<Figure>], candidate: &[Vec<Figure>]) -> Vec<Row> {
    let names = base.iter().chain(candidate).max_by_key(|figures| figures.len());
    let mut rows: Vec<Row> =
        names.into_iter().flatten().map(|figure| row(figure, base, candidate)).collect();
    let testable: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].is_testable()).collect();
    let p: Vec<f64> = testable.iter().filter_map(|&i| rows[i].p).collect();
    for (&i, q) in testable.iter().zip(stats::benjamini_hochberg(&p)) {
        rows[i].q = Some(q);
    }
    // A figure that differs alone must pass the strictest of the adjusted levels.
    let alpha = ALPHA / testable.len().max(1) as f64;
    for row in &mut rows {
        row.verdict = verdict(row);
        let detectable = stats::detectable(&row.base, &row.candidate, alpha, POWER);
        row.detectable = Some(detectable).filter(|share| share.is_finite() && row.p.is_some());
    }
    rows
}

fn row(figure: &Figure, base: &[Vec<Figure>], candidate: &[Vec<Figure>]) -> Row {
    let values = |runs: &[Vec<Figure>]| -> Vec<f64> {
        let of = |run: &Vec<Figure>| run.iter().find(|f| f.name == figure.name).map(|f| f.value);
        runs.iter().filter_map(of).collect()
    };
    let (a, b) = (values(base), values(candidate));
    let mut row = Row {
        name: figure.name.clone(),
        unit: figure.unit,
        better: figure.better,
        base_mean: mean(&a),
        candidate_mean: mean(&b),
        ..Row::default()
    };
    let is_everywhere = a.len() == base.len() && b.len() == candidate.len();
    if is_everywhere && a.len() >= 2 && b.len() >= 2 {
        row.base_bounds = Some(stats::mean_bounds(&a, SEED).1);
        row.candidate_bounds = Some(stats::mean_bounds(&b, SEED).1);
        row.p = Some(stats::permutation_p(&a, &b));
        row.effect = Some(stats::hedges_g(&a, &b)).filter(|g| g.is_finite());
        if row.base_mean != 0.0 {
            row.bounds = Some(stats::difference(&a, &b, SEED));
        }
    }
    if row.base_mean != 0.0 && !a.is_empty() && !b.is_empty() {
        row.difference = Some(row.candidate_mean / row.base_mean - 1.0);
    }
    (row.base, row.candidate) = (a, b);
    row
}

/// The mean; zero of nothing, which JSON can hold.
fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { stats::mean(values) }
}

/// A difference is told only if the test and the bounds agree on it.
fn verdict(row: &Row) -> RowVerdict {
    if row.p.is_none() {
        return RowVerdict::NotComparable;
    }
    let is_seen = row.q.is_some_and(|q| q <= ALPHA)
        && row.bounds.is_none_or(|bounds| bounds.low > 0.0 || bounds.high < 0.0);
    let is_less = row.candidate_mean < row.base_mean;
    match (is_seen, is_less == (row.better == Better::Less)) {
        (false, _) => RowVerdict::NoDifference,
        (true, true) => RowVerdict::Improved,
        (true, false) => RowVerdict::Regressed,
    }
}

/// How many people both sides hold: they differ if their intervals do not touch. Each end of an
/// interval was tried several times, so there is no test besides.
pub(super) fn capacity(base: &Capacity, candidate: &Capacity) -> Row {
    let interval = |capacity: &Capacity| -> Option<Bounds> {
        let low = f64::from(capacity.people?);
        let high = capacity.failed.filter(|_| !matches!(capacity.limit, Limit::Generator(_)));
        Some(Bounds { low, high: high.map_or(f64::INFINITY, f64::from) })
    };
    let mean = |capacity: &Capacity| f64::from(capacity.people.unwrap_or(0));
    let (a, b) = (interval(base), interval(candidate));
    let verdict = match (a, b) {
        (Some(a), Some(b)) if b.low >= a.high => RowVerdict::Improved,
        (Some(a), Some(b)) if a.low >= b.high => RowVerdict::Regressed,
        (Some(_), Some(_)) => RowVerdict::NoDifference,
        _ => RowVerdict::NotComparable,
    };
    let is_known = a.is_some() && b.is_some();
    Row {
        name: "people it holds".to_owned(),
        unit: Unit::Count,
        better: Better::More,
        base: vec![mean(base)],
        candidate: vec![mean(candidate)],
        base_mean: mean(base),
        base_bounds: a,
        candidate_mean: mean(candidate),
        candidate_bounds: b,
        difference: is_known.then(|| mean(candidate) / mean(base) - 1.0),
        verdict,
        ..Row::default()
    }
}

/// When so few runs cannot give a verdict on a single figure whatever they show: a sentence that
/// says so, and how many would do.
pub(super) fn runs_for_a_verdict(rows: &[Row], base: usize, candidate: usize) -> Option<String> {
    let testable = rows.iter().filter(|row| row.is_testable()).count();
    let can = |n: usize, m: usize| stats::permutation_p_min(n, m) * testable as f64 <= ALPHA;
    if testable == 0 || can(base, candidate) {
        return None;
    }
    let enough = (base.max(candidate)..100).find(|&n| can(n, n))?;
    Some(format!(
        "with {base} and {candidate} runs a single one of {testable} figures cannot be told from \
         noise, however much it differs; {enough} of each can"
    ))
}
