//! The answer of a search for a capacity, and the curve of each criterion against people.

use super::Question;
use super::level::{Fate, Level};
use super::search::Known;
use crate::summary::{Judged, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many people a target can hold, as far as it was found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Capacity {
    /// The most people at whom every criterion was kept, in runs that last, as often as asked,
    /// and at whom none was ever broken. `None` if there is no such level.
    pub people: Option<u32>,
    /// How often that level was held.
    pub held: u32,
    /// The most people at whom every criterion was kept whenever they were tried, but not held as
    /// often as asked: what a search that was cut short can say. `None` if `people` is higher.
    pub kept: Option<u32>,
    /// The fewest people above the answer who were never kept: the other end of the interval.
    pub failed: Option<u32>,
    /// What the limit is.
    pub limit: Limit,
    /// Why the search ended.
    pub ended: Ended,
    /// Levels at which everything was kept in one trial and not in another.
    pub mixed: Vec<u32>,
    /// Levels that were kept before the target was overloaded and never again afterwards: it does
    /// not recover, or it is not reset.
    pub does_not_recover: bool,
    /// Each criterion against people.
    pub curves: Vec<Curve>,
    /// How many trials there were.
    pub trials: u32,
    /// How long they took, seconds.
    pub seconds: f64,
    /// What was asked.
    pub question: Question,
}

/// What keeps the answer from being higher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// This criterion, as the user wrote it, was broken above; other names follow if several were.
    Criterion(Vec<String>),
    /// The target ended by itself or let nobody in; in its words.
    Collapse(String),
    /// The generator or its machine was not fit for more: the target may hold more.
    Generator(String),
    /// Nothing: the most people asked for were held.
    Range,
}

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// There was nothing left to be learned.
    Answered,
    /// There were as many trials as allowed.
    Trials,
    /// It took as long as allowed.
    Time,
}

/// One criterion against people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Curve {
    /// The criterion, as the user wrote it.
    pub text: String,
    /// `ms`, `%`, or empty (a count), as in [`Judged`].
    pub unit: String,
    /// Its bound, in `unit`.
    pub bound: f64,
    /// Every trial, by people.
    pub points: Vec<Point>,
}

impl Curve {
    /// The curve of that criterion among others, made if it is the first time.
    pub(super) fn of<'c>(curves: &'c mut Vec<Curve>, judged: &Judged) -> &'c mut Curve {
        let at = curves.iter().position(|curve| curve.text == judged.text);
        let at = at.unwrap_or_else(|| {
            curves.push(Curve {
                text: judged.text.clone(),
                unit: judged.unit.clone(),
                bound: judged.bound,
                points: Vec::new(),
            });
            curves.len() - 1
        });
        &mut curves[at]
    }
}

/// A criterion in one trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Point {
    /// How many people.
    pub people: u32,
    /// What was measured, in the curve's unit; absent if nothing was.
    pub value: Option<f64>,
    /// Whether the criterion was kept.
    pub outcome: Outcome,
    /// Whether it was a run that lasts.
    pub is_hold: bool,
    /// Whether the generator was not fit to measure.
    pub is_limited: bool,
}

/// Draws the answer from everything that was tried.
pub(super) fn answer(question: &Question, done: &[Level], ended: Ended) -> Capacity {
    let known = Known::of(done);
    let best = known.best();
    let is_held = |held: u32| held >= question.holds.max(1);
    // A search that was cut short may have held a level below the best one.
    let bound = known.bound().map(|(n, _)| n);
    let held = known.levels.range(..bound.unwrap_or(u32::MAX)).rev();
    let held = held.map(|(&n, &tries)| (n, tries)).find(|(_, t)| t.is_good() && is_held(t.held));
    let people = held.map(|(n, _)| n);
    let mixed = known.levels.iter().filter(|(_, t)| t.kept > 0 && !t.is_good());
    Capacity {
        people,
        held: held.map_or(0, |(_, tries)| tries.held),
        kept: best.map(|(n, _)| n).filter(|&n| people.is_none_or(|people| n > people)),
        failed: bound,
        limit: limit(done, &known),
        ended,
        mixed: mixed.map(|(&n, _)| n).collect(),
        does_not_recover: does_not_recover(done),
        curves: curves(done),
        trials: done.len() as u32,
        seconds: done.iter().map(|level| level.seconds).sum(),
        question: question.clone(),
    }
}

/// What broke at the bound; if there is none, at the lowest level that is not always kept.
fn limit(done: &[Level], known: &Known) -> Limit {
    let best = known.best().map_or(0, |(n, _)| n);
    let edge = known.bound().map(|(n, _)| n).or_else(|| {
        let failed = done.iter().filter(|level| level.fate() != Fate::Kept);
        failed.map(|level| level.people).filter(|&n| n > best || best == 0).min()
    });
    let Some(edge) = edge else { return Limit::Range };
    let there: Vec<&Level> =
        done.iter().filter(|level| level.people == edge && level.fate() != Fate::Kept).collect();
    let failed = || there.iter().filter(|level| level.fate() == Fate::Failed);
    if let Some(words) = failed().find_map(|level| level.collapse.clone()) {
        return Limit::Collapse(words);
    }
    if failed().next().is_none() {
        let words = there.iter().find_map(|level| level.generator_limit.clone());
        return Limit::Generator(words.unwrap_or_default());
    }
    let mut counts: Vec<(String, u32, f64)> = Vec::new();
    for judged in failed().flat_map(|level| level.broken()) {
        match counts.iter_mut().find(|(text, ..)| *text == judged.text) {
            Some(entry) => {
                entry.1 += 1;
                entry.2 = entry.2.max(excess(judged));
            }
            None => counts.push((judged.text.clone(), 1, excess(judged))),
        }
    }
    // The one broken most often comes first, then the one broken furthest.
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(b.2.total_cmp(&a.2)));
    Limit::Criterion(counts.into_iter().map(|(text, ..)| text).collect())
}

/// How many times as far as allowed.
fn excess(judged: &Judged) -> f64 {
    match judged.value {
        Some(value) if judged.bound > 0.0 && value > 0.0 => {
            (value / judged.bound).max(judged.bound / value)
        }
        Some(value) => value.abs(),
        None => 0.0,
    }
}

/// Whether some level was kept before the first failure above it, and whenever tried afterwards
/// was not.
fn does_not_recover(done: &[Level]) -> bool {
    let mut levels: BTreeMap<u32, (bool, u32, u32)> = BTreeMap::new();
    let mut worst = 0;
    for level in done {
        let (was_kept, again, failed) = levels.entry(level.people).or_default();
        match level.fate() {
            Fate::Kept if worst > level.people => *again += 1,
            Fate::Kept => *was_kept = true,
            Fate::Failed => {
                *failed += u32::from(worst > level.people);
                worst = worst.max(level.people);
            }
            Fate::Limited => {}
        }
    }
    // One level may fail when it is held for longer; two that both turn are no chance.
    levels
        .values()
        .filter(|(was_kept, again, failed)| *was_kept && *again == 0 && *failed > 0)
        .count()
        > 1
}

/// Each criterion against people, in the order in which the criteria were written.
fn curves(done: &[Level]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for level in done {
        for judged in &level.criteria {
            Curve::of(&mut curves, judged).points.push(Point {
                people: level.people,
                value: judged.value,
                outcome: judged.outcome,
                is_hold: level.is_hold,
                is_limited: level.generator_limit.is_some(),
            });
        }
    }
    for curve in &mut curves {
        curve.points.sort_by_key(|point| point.people);
    }
    curves
}
