//! The levels tried, as a table: people, what became of them, and each criterion.

use crate::capacity::{Curve, Point};
use crate::report::escape::plain;
use crate::report::format::count;
use crate::report::table::{Table, judged_value};
use crate::summary::{Judged, Outcome};
use std::collections::BTreeMap;

/// A row for each number of people, with at most so many criteria: those broken most often first.
pub(super) fn table(curves: &[Curve], most: Option<usize>) -> Table {
    let broken = |curve: &&Curve| curve.points.iter().filter(|point| is_broken(point)).count();
    let mut shown: Vec<&Curve> = curves.iter().collect();
    shown.sort_by_key(|curve| std::cmp::Reverse(broken(curve)));
    shown.truncate(most.unwrap_or(usize::MAX));
    let mut head = vec!["people".to_owned(), "trials".to_owned()];
    head.extend(shown.iter().map(|curve| plain(&curve.text)));
    let mut table = Table { head, ..Table::default() };
    let Some(first) = curves.first() else { return table };
    let mut levels: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (i, point) in first.points.iter().enumerate() {
        levels.entry(point.people).or_default().push(i);
    }
    for (&people, trials) in &levels {
        let mut row = vec![count(people.into()), fate(curves, trials)];
        row.extend(shown.iter().map(|curve| cell(curve, people)));
        table.row(false, row);
    }
    table
}

fn is_broken(point: &Point) -> bool {
    point.outcome != Outcome::Kept
}

/// What became of a level in its trials: all curves have the same trials in the same order.
fn fate(curves: &[Curve], trials: &[usize]) -> String {
    let points = |trial: usize| curves.iter().filter_map(move |curve| curve.points.get(trial));
    let count = |is_so: &dyn Fn(usize) -> bool| trials.iter().filter(|&&i| is_so(i)).count();
    let is_limited = |trial: usize| points(trial).any(|point| point.is_limited);
    let is_broken = |trial: usize| !is_limited(trial) && points(trial).any(is_broken);
    let is_held = |i: usize| !is_limited(i) && !is_broken(i) && points(i).any(|p| p.is_hold);
    let is_kept = |i: usize| !is_limited(i) && !is_broken(i) && !points(i).any(|p| p.is_hold);
    let words = [
        (count(&is_kept), "kept"),
        (count(&is_held), "held"),
        (count(&is_broken), "broken"),
        (count(&is_limited), "unfit"),
    ];
    let words = words.iter().filter(|(n, _)| *n > 0).map(|(n, word)| match n {
        1 => (*word).to_owned(),
        n => format!("{word} ×{n}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// What was measured at a level: the worst and the best of its trials.
fn cell(curve: &Curve, people: u32) -> String {
    let points = || curve.points.iter().filter(|point| point.people == people);
    let values: Vec<f64> = points().filter_map(|point| point.value).collect();
    let shown = |value: f64| {
        let unit = curve.unit.clone();
        judged_value(&Judged { value: Some(value), unit, ..Judged::default() })
    };
    let low = values.iter().copied().reduce(f64::min);
    let high = values.iter().copied().reduce(f64::max);
    let words = match (low, high) {
        (Some(low), Some(high)) if shown(low) != shown(high) => {
            format!("{}–{}", shown(low), shown(high))
        }
        (Some(low), _) => shown(low),
        _ => "nothing".to_owned(),
    };
    if points().any(is_broken) { format!("{words} !") } else { words }
}
