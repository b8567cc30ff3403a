//! Phases, stages and marks: when each began and ended, what was asked and achieved in it, what
//! it cost the target.

use super::processes::Processes;
use super::totals::{ms, tallies};
use crate::run::{Run, Second};
use crate::summary::{MarkRow, PhaseRow, StageRow};
use model::{Counters, Edge, PhaseKind, StageTally, Tally, Tick, What};
use std::collections::{BTreeMap, BTreeSet};

/// When something began and ended, seconds.
#[derive(Clone, Debug, Default)]
struct Bounds {
    start_s: Option<f64>,
    end_s: Option<f64>,
    overdue: bool,
    mark: String,
}

/// Named instants, in order of time.
pub(super) fn marks(run: &Run) -> Vec<MarkRow> {
    let row = |at: Tick, name: &str, what| MarkRow { at_s: at.secs_f64(), name: name.into(), what };
    let marks = run.events.iter().filter_map(|record| match &record.what {
        What::Mark { name } => Some(row(record.at, name, String::new())),
        What::Stage { phase, stage, edge: Edge::Begin, mark: Some(mark) } => {
            Some(row(record.at, mark, format!("{phase}: {stage}")))
        }
        _ => None,
    });
    let mut marks: Vec<MarkRow> = marks.collect();
    marks.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    marks
}

/// The phases that began, in order.
pub(super) fn phases(
    run: &Run,
    target: &Processes,
    generator: &Processes,
    length_s: f64,
) -> Vec<PhaseRow> {
    let tallies = tallies(run);
    let stages = stage_bounds(run);
    let mut untallied: BTreeSet<&str> = BTreeSet::new();
    let mut rows: Vec<PhaseRow> = Vec::new();
    for (name, bounds) in phase_bounds(run) {
        let (Some(start_s), end_s) = (bounds.start_s, bounds.end_s.unwrap_or(length_s)) else {
            continue;
        };
        let mut row = PhaseRow {
            name: name.to_owned(),
            arrivals: brings_people(run, name, tallies.contains_key(name)),
            start_s,
            end_s: end_s.max(start_s),
            overdue: bounds.overdue,
            target: target.usage(start_s, end_s),
            generator: generator.usage(start_s, end_s),
            ..PhaseRow::default()
        };
        let stage = |tally: &StageTally| {
            let bounds = stages.get(name).and_then(|stages| stages.get(tally.name.as_str()));
            stage_row(tally, bounds, target, generator, length_s)
        };
        match tallies.get(name) {
            Some(tally) => {
                count_people(&mut row, tally);
                row.target_entering = row.entering_s.and_then(|(from, to)| target.usage(from, to));
                row.stages = tally.stages.iter().filter_map(stage).collect();
            }
            None => {
                untallied.insert(name);
                let named =
                    |&name: &&str| StageTally { name: name.to_owned(), ..Default::default() };
                let names = stages.get(name).into_iter().flat_map(BTreeMap::keys);
                row.stages = names.map(named).filter_map(|tally| stage(&tally)).collect();
                row.stages.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
            }
        }
        rows.push(row);
    }
    rows.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    count_seconds(run, &mut rows, &untallied, length_s);
    rows
}

/// Phases in the order in which they began.
fn phase_bounds(run: &Run) -> Vec<(&str, Bounds)> {
    let mut phases: Vec<(&str, Bounds)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &run.events {
        let What::Phase { name, edge, overdue } = &record.what else { continue };
        let at = *places.entry(name).or_insert_with(|| {
            phases.push((name, Bounds::default()));
            phases.len() - 1
        });
        let bounds = &mut phases[at].1;
        bounds.overdue |= *overdue;
        match edge {
            Edge::Begin => bounds.start_s = Some(record.at.secs_f64()),
            Edge::End => bounds.end_s = Some(record.at.secs_f64()),
        }
    }
    phases
}

/// Stages by phase and name.
fn stage_bounds(run: &Run) -> BTreeMap<&str, BTreeMap<&str, Bounds>> {
    let mut stages: BTreeMap<&str, BTreeMap<&str, Bounds>> = BTreeMap::new();
    for record in &run.events {
        let What::Stage { phase, stage, edge, mark } = &record.what else { continue };
        let bounds = stages.entry(phase).or_default().entry(stage).or_default();
        match edge {
            Edge::Begin => {
                bounds.start_s.get_or_insert(record.at.secs_f64());
                bounds.mark = mark.clone().unwrap_or_default();
            }
            Edge::End => bounds.end_s = Some(record.at.secs_f64()),
        }
    }
    stages
}

fn brings_people(run: &Run, name: &str, tallied: bool) -> bool {
    let planned = run.plan.as_ref().and_then(|plan| plan.phases.iter().find(|p| p.name == name));
    planned.map_or(tallied, |phase| matches!(phase.kind, PhaseKind::Run(_)))
}

fn count_people(row: &mut PhaseRow, tally: &Tally) {
    let span = |(from, to): (Tick, Tick)| (from.secs_f64(), to.secs_f64());
    row.asked = tally.asked;
    row.arrived = tally.arrived;
    row.entered = tally.entered;
    row.finished = tally.finished;
    row.gave_up = tally.gave_up;
    row.sends_due = tally.sends_due;
    row.sends = tally.sends;
    row.sends_late = tally.sends_late;
    row.arrival_lag_ms_max = ms(tally.arrival_lag_ns_max);
    row.arriving_s = tally.arriving.map(span);
    row.entering_s = tally.entering.map(span);
}

/// A stage that somebody entered.
fn stage_row(
    tally: &StageTally,
    bounds: Option<&Bounds>,
    target: &Processes,
    generator: &Processes,
    length_s: f64,
) -> Option<StageRow> {
    let said = bounds.cloned().unwrap_or_default();
    let start_s = said.start_s.or(tally.first_in.map(Tick::secs_f64))?;
    let all_left = tally.left >= tally.entered;
    let last_out = tally.last_out.filter(|_| all_left).map(Tick::secs_f64);
    let end_s = said.end_s.or(last_out).unwrap_or(length_s).max(start_s);
    // Everybody is in from the last person's entry to the first one's exit.
    let full_from = tally.last_in.map(Tick::secs_f64);
    let full_to = tally.first_out.map_or(end_s, Tick::secs_f64);
    let full_s = full_from.filter(|&from| from < full_to).map(|from| (from, full_to));
    Some(StageRow {
        name: tally.name.clone(),
        mark: said.mark,
        entered: tally.entered,
        left: tally.left,
        start_s,
        end_s,
        full_s,
        target: target.usage(start_s, end_s),
        target_full: full_s.and_then(|(from, to)| target.usage(from, to)),
        generator: generator.usage(start_s, end_s),
    })
}

/// Counts that only the seconds have: they belong to the last phase that brought people, until
/// the next one does. The second in which a phase begins belongs to it: the phases before it that
/// brought people are over by then, or else nothing could tell whose requests they are.
fn count_seconds(run: &Run, rows: &mut [PhaseRow], untallied: &BTreeSet<&str>, length_s: f64) {
    let mut end_s = length_s.max(rows.last().map_or(0.0, |row| row.end_s));
    for row in rows.iter_mut().rev().filter(|row| row.arrivals) {
        let over = |second: &Second, at_s: f64| f64::from(second.second) + 1.0 <= at_s;
        let from = run.seconds.partition_point(|second| over(second, row.start_s));
        let to = run.seconds.partition_point(|second| over(second, end_s));
        let seconds = run.seconds.get(from..to).unwrap_or_default();
        if untallied.contains(row.name.as_str()) {
            count_untallied(run, row, seconds);
        }
        for second in seconds {
            row.deliveries = row.deliveries.saturating_add(second.counters.deliveries);
            row.online_max = row.online_max.max(second.gauges.online);
            for (measure, stats) in second.measures.iter().filter(|(_, stats)| stats.asked > 0) {
                let count = row.requests.entry(measure.name().to_owned()).or_default();
                *count = count.saturating_add(stats.asked);
            }
        }
        end_s = row.start_s;
    }
}

/// A phase that a crash left without a tally: what its seconds say.
fn count_untallied(run: &Run, row: &mut PhaseRow, seconds: &[Second]) {
    let mut sum = Counters::default();
    seconds.iter().for_each(|second| sum.merge(&second.counters));
    let planned = run.plan.iter().flat_map(|plan| &plan.phases).find(|p| p.name == row.name);
    row.asked = match planned.map(|phase| &phase.kind) {
        Some(PhaseKind::Run(run)) if run.hold.is_none() => u64::from(run.count),
        _ => sum.arrivals_due,
    };
    row.arrived = sum.arrivals;
    row.entered = sum.entered;
    row.finished = sum.finished;
    row.gave_up = sum.gave_up;
    (row.sends_due, row.sends, row.sends_late) = (sum.sends_due, sum.sends, sum.sends_late);
}
