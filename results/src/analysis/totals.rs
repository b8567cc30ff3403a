//! Totals of a whole run: people, messages, measures, the ledger, failures.

use super::ratio;
use crate::run::Run;
use crate::summary::{Distribution, ErrorRow, Ledger, MeasureRow, People, Sends};
use model::{FaultClass, Histo, Interval, Measure, Tally, What};
use std::collections::BTreeMap;

pub(super) fn people(run: &Run, total: &Interval) -> People {
    let counters = &total.counters;
    // A population asks for somebody new whenever somebody goes: only the run tells how often.
    let counted = run.plan.iter().filter(|plan| plan.runs().all(|phase| phase.hold.is_none()));
    let planned = counted.flat_map(|plan| plan.runs()).map(|phase| u64::from(phase.count));
    let planned = planned.fold(0, u64::saturating_add);
    People {
        asked: if planned > 0 { planned } else { counters.arrivals_due },
        due: counters.arrivals_due,
        arrived: counters.arrivals,
        entered: counters.entered,
        finished: counters.finished,
        gave_up: counters.gave_up,
        online_max: run.seconds.iter().map(|second| second.gauges.online).max().unwrap_or(0),
    }
}

pub(super) fn sends(total: &Interval) -> Sends {
    let counters = &total.counters;
    Sends { due: counters.sends_due, sent: counters.sends, late: counters.sends_late }
}

/// The latest tally of each phase.
pub(super) fn tallies(run: &Run) -> BTreeMap<&str, &Tally> {
    let tallies = run.events.iter().filter_map(|record| match &record.what {
        What::Tally(tally) => Some((tally.phase.as_str(), tally)),
        _ => None,
    });
    tallies.collect()
}

pub(super) fn measures(total: &Interval, length_s: f64) -> Vec<MeasureRow> {
    let row = |(measure, stats): (&Measure, &model::Stats)| MeasureRow {
        name: measure.name().to_owned(),
        asked: stats.asked,
        done: stats.done,
        failed: stats.failed,
        done_per_s: ratio(stats.done as f64, length_s),
        latency: distribution(&stats.latency),
        service: distribution(&stats.service),
    };
    total.measures.iter().map(row).collect()
}

/// Milliseconds to the microsecond: what the histogram can tell and no more.
pub(super) fn ms(ns: u64) -> f64 {
    (ns as f64 / 1e3).round() / 1e3
}

pub(super) fn distribution(histo: &Histo) -> Distribution {
    Distribution {
        count: histo.count(),
        mean_ms: ms(histo.mean() as u64),
        p50_ms: ms(histo.quantile(0.50)),
        p90_ms: ms(histo.quantile(0.90)),
        p95_ms: ms(histo.quantile(0.95)),
        p99_ms: ms(histo.quantile(0.99)),
        p999_ms: ms(histo.quantile(0.999)),
        max_ms: ms(histo.max()),
    }
}

pub(super) fn ledger(total: &Interval) -> Ledger {
    let counters = &total.counters;
    Ledger {
        owed: counters.expected,
        received: counters.deliveries,
        lost: counters.lost,
        optional: counters.optional,
        duplicate: counters.duplicate,
        late: counters.late,
        audited: counters.audited,
        misordered: counters.misordered,
        unexpected: counters.unexpected,
        foreign: counters.foreign,
        announcements_owed: counters.announcements_expected,
        announcements_received: counters.announcements,
        announcements_lost: counters.announcements_lost,
        announcements_duplicate: counters.announcements_duplicate,
        presences: counters.presences,
        presences_min: counters.presences_expected_min,
        presences_max: counters.presences_expected_max,
    }
}

/// Failures by measure and class, most frequent first, with the first example's words.
pub(super) fn errors(run: &Run, total: &Interval) -> Vec<ErrorRow> {
    let mut examples: BTreeMap<(Measure, FaultClass), (f64, &str)> = BTreeMap::new();
    for record in &run.events {
        if let What::Fault { measure, class, detail } = &record.what {
            examples.entry((*measure, *class)).or_insert((record.at.secs_f64(), detail));
        }
    }
    let mut rows = Vec::new();
    for (&measure, classes) in &total.faults {
        for (&class, &count) in classes {
            let example = examples.get(&(measure, class));
            rows.push(ErrorRow {
                measure: measure.name().to_owned(),
                class: class.name().to_owned(),
                count,
                first_s: example.map(|example| example.0),
                example: example.map_or(String::new(), |example| example.1.to_owned()),
            });
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}
