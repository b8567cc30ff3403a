//! The tables of every report, as plain words: HTML, Markdown and the terminal show the same.

use super::escape::plain;
use super::format::{at, bytes, count, duration, percent, share, span};
use crate::summary::{Distribution, MeasureRow, PhaseRow, ProfileRow, StageRow, Summary, Usage};
use serde::Serialize;
use std::collections::BTreeSet;

/// A table: the first column is words, the others are figures unless `words` says so.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    /// Names of the columns.
    pub(crate) head: Vec<String>,
    /// Rows; each as long as the head.
    pub(crate) rows: Vec<Row>,
    /// Whether all columns are words.
    pub(crate) words: bool,
}

/// One row.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Row {
    /// Its cells.
    pub(crate) cells: Vec<String>,
    /// Whether it belongs to the row above it.
    pub(crate) minor: bool,
    /// Where its first cell leads; empty if nowhere.
    pub(crate) link: String,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|&name| name.to_owned()).collect(), ..Table::default() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, minor: bool, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().map(|cell| plain(&cell)).collect();
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(Row { cells, minor, link: String::new() });
    }
}

/// Every measure; the corrected latency and, below it, the service time.
pub(crate) fn measures(summary: &Summary) -> Table {
    let head = ["measure", "asked", "done", "failed", "per s", "p50", "p90", "p95", "p99", "p99.9"];
    let mut table = Table::new(&[&head[..], &["max", "mean"]].concat());
    for row in &summary.measures {
        let figures = [
            if row.asked > 0 { count(row.asked) } else { "–".to_owned() },
            count(row.done),
            count(row.failed),
            super::format::short(row.done_per_s),
        ];
        let name = [row.name.clone()];
        table.row(false, name.into_iter().chain(figures).chain(durations(&row.latency)));
        if has_service(row) {
            let blank = ["service time", "", "", "", ""].map(str::to_owned);
            table.row(true, blank.into_iter().chain(durations(&row.service)));
        }
    }
    table
}

fn has_service(row: &MeasureRow) -> bool {
    row.service.count > 0
}

fn durations(d: &Distribution) -> [String; 7] {
    let all = [d.p50_ms, d.p90_ms, d.p95_ms, d.p99_ms, d.p999_ms, d.max_ms, d.mean_ms];
    all.map(|ms| if d.count > 0 { duration(ms) } else { "–".to_owned() })
}

/// The phases that brought people, side by side: what was asked, achieved, and what it cost.
pub(crate) fn phases(summary: &Summary) -> Table {
    let phases: Vec<&PhaseRow> = summary.phases.iter().filter(|phase| phase.arrivals).collect();
    let mut table = Table::new(&[""]);
    table.head.extend(phases.iter().map(|phase| plain(&phase.name)));
    let mut put = |minor, label: &str, cell: &dyn Fn(&PhaseRow) -> Option<String>| {
        let cells: Vec<Option<String>> = phases.iter().map(|phase| cell(phase)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
            table.row(minor, std::iter::once(label.to_owned()).chain(cells));
        }
    };
    put(false, "people in, of asked", &|p| {
        Some(format!("{} of {}", count(p.entered), count(p.asked)))
    });
    put(false, "set out, gave up", &|p| {
        Some(format!("{}, {}", count(p.arrived), count(p.gave_up)))
    });
    put(false, "first to last in", &|p| p.entering_s.map(span));
    put(false, "worst arrival behind schedule", &|p| Some(duration(p.arrival_lag_ms_max)));
    put(false, "messages sent, of due", &|p| {
        Some(format!("{} of {}", count(p.sends), count(p.sends_due)))
    });
    put(false, "deliveries", &|p| Some(count(p.deliveries)));
    put(false, "most people online", &|p| Some(count(p.online_max)));
    let verbs: BTreeSet<&String> = phases.iter().flat_map(|p| p.requests.keys()).collect();
    for verb in verbs {
        put(true, &format!("requests: {verb}"), &|p| {
            Some(count(p.requests.get(verb).copied().unwrap_or(0)))
        });
    }
    for name in stage_names(&phases) {
        put(false, &format!("{name}: from, to"), &|p| {
            stage(p, name).map(|s| span((s.start_s, s.end_s)))
        });
        put(true, "everybody at once", &|p| stage(p, name).and_then(|s| s.full_s).map(span));
        put(true, "target CPU mean, max", &|p| {
            stage(p, name).and_then(|s| s.target.as_ref()).map(cpu)
        });
        put(true, "target CPU seconds", &|p| {
            stage(p, name).and_then(|s| s.target.as_ref()).map(|u| format!("{:.2} s", u.cpu_s))
        });
        put(true, "target CPU mean, max, everybody at once", &|p| {
            stage(p, name).and_then(|s| s.target_full.as_ref()).map(cpu)
        });
    }
    put(false, "whole phase: target CPU mean, max", &|p| p.target.as_ref().map(cpu));
    put(true, "target CPU seconds", &|p| p.target.as_ref().map(|u| format!("{:.2} s", u.cpu_s)));
    put(true, "target waited for a processor", &|p| {
        p.target.as_ref().map(|u| format!("{:.2} s", u.run_queue_s))
    });
    put(true, "target memory, peak", &|p| p.target.as_ref().map(|u| bytes(u.rss_peak_bytes)));
    put(true, "generator CPU mean, max", &|p| p.generator.as_ref().map(cpu));
    table
}

fn cpu(usage: &Usage) -> String {
    format!("{}, {}", percent(usage.cpu_mean_percent), percent(usage.cpu_max_percent))
}

/// Names of stages in the order in which they first occur.
pub(crate) fn stage_names<'a>(phases: &[&'a PhaseRow]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for stage in phases.iter().flat_map(|phase| &phase.stages) {
        if !names.contains(&stage.name.as_str()) {
            names.push(&stage.name);
        }
    }
    names
}

fn stage<'a>(phase: &'a PhaseRow, name: &str) -> Option<&'a StageRow> {
    phase.stages.iter().find(|stage| stage.name == name)
}

/// Every phase and stage, one below the other, with what target and generator used.
pub(crate) fn spans(summary: &Summary) -> Table {
    let mut table = Table::new(&[
        "phase, stage",
        "from",
        "to",
        "target CPU mean",
        "max",
        "CPU time",
        "waited",
        "memory mean",
        "peak",
        "generator CPU mean",
        "max",
    ]);
    for phase in &summary.phases {
        let name = match phase.overdue {
            true => format!("{} (ended by its deadline)", phase.name),
            false => phase.name.clone(),
        };
        let ends = (phase.start_s, phase.end_s);
        table.row(false, span_row(name, ends, &phase.target, &phase.generator));
        for stage in &phase.stages {
            let name = match stage.mark.as_str() {
                "" => stage.name.clone(),
                mark => format!("{mark} {}", stage.name),
            };
            let ends = (stage.start_s, stage.end_s);
            table.row(true, span_row(name, ends, &stage.target, &stage.generator));
        }
    }
    table
}

fn span_row(
    name: String,
    (from_s, to_s): (f64, f64),
    target: &Option<Usage>,
    generator: &Option<Usage>,
) -> Vec<String> {
    let of = |usage: &Option<Usage>, show: &dyn Fn(&Usage) -> String| {
        usage.as_ref().map_or("–".to_owned(), show)
    };
    vec![
        name,
        at(from_s),
        at(to_s),
        of(target, &|u| percent(u.cpu_mean_percent)),
        of(target, &|u| percent(u.cpu_max_percent)),
        of(target, &|u| format!("{:.2} s", u.cpu_s)),
        of(target, &|u| format!("{:.2} s", u.run_queue_s)),
        of(target, &|u| bytes(u.rss_mean_bytes)),
        of(target, &|u| bytes(u.rss_peak_bytes)),
        of(generator, &|u| percent(u.cpu_mean_percent)),
        of(generator, &|u| percent(u.cpu_max_percent)),
    ]
}

/// Who was owed what, and who got it.
pub(crate) fn ledger(summary: &Summary) -> Table {
    let l = &summary.ledger;
    let mut table = Table::new(&["", "messages", "announcements"]);
    let none = || "–".to_owned();
    let mut put = |label: &str, messages: String, announcements: String| {
        table.row(false, [label.to_owned(), messages, announcements]);
    };
    put("owed", count(l.owed), count(l.announcements_owed));
    put("received", count(l.received), count(l.announcements_received));
    put("lost", count(l.lost), count(l.announcements_lost));
    put("duplicate", count(l.duplicate), count(l.announcements_duplicate));
    put("optional (joining or leaving)", count(l.optional), none());
    put("late", count(l.late), none());
    put(
        "out of order, of audited",
        format!("{} of {}", count(l.misordered), count(l.audited)),
        none(),
    );
    put("unexpected", count(l.unexpected), none());
    put("of another run", count(l.foreign), none());
    put(
        "in the target's own words, of expected",
        none(),
        format!("{} of {}–{}", count(l.presences), count(l.presences_min), count(l.presences_max)),
    );
    table
}

/// Failures by measure and class.
pub(crate) fn errors(summary: &Summary) -> Table {
    let mut table = Table::new(&["measure", "class", "count", "first example"]);
    table.words = true;
    for row in &summary.errors {
        let example = match row.first_s {
            Some(first_s) => format!("{}: {}", at(first_s), row.example),
            None => row.example.clone(),
        };
        table.row(false, [row.measure.clone(), row.class.clone(), count(row.count), example]);
    }
    table
}

/// The hottest functions of a profile.
pub(crate) fn hottest(row: &ProfileRow) -> Table {
    let mut table = Table::new(&["function", "in itself", "with what it calls"]);
    for hot in &row.hottest {
        let shares = [hot.self_percent, hot.total_percent].map(percent);
        table.row(false, [hot.function.clone()].into_iter().chain(shares));
    }
    table
}

/// The thresholds, with what was measured.
pub(crate) fn thresholds(summary: &Summary) -> Table {
    let mut table = Table::new(&["threshold", "measured", "outcome"]);
    for judged in &summary.thresholds {
        let (value, outcome) = (judged_value(judged), outcome(judged));
        table.row(false, [judged.text.clone(), value, outcome.to_owned()]);
    }
    table
}

/// What was measured for a threshold, with its unit.
pub(crate) fn judged_value(judged: &crate::summary::Judged) -> String {
    match (judged.value, judged.unit.as_str()) {
        (None, _) => "nothing".to_owned(),
        (Some(value), "ms") if value > 0.0 && value < 0.01 => format!("{:.2} µs", value * 1e3),
        (Some(value), "ms") => duration(value),
        (Some(value), "B") => bytes(value.max(0.0) as u64),
        (Some(value), "%") => percent(value),
        (Some(value), _) if value.fract() == 0.0 && value.abs() < 1e3 => format!("{value}"),
        (Some(value), _) if value.abs() < 0.1 => format!("{value:.2e}"),
        (Some(value), _) => super::format::short(value),
    }
}

/// A word for a threshold's outcome.
pub(crate) fn outcome(judged: &crate::summary::Judged) -> &'static str {
    match judged.outcome {
        crate::summary::Outcome::Kept => "kept",
        crate::summary::Outcome::Broken => "broken",
        crate::summary::Outcome::Unmeasured => "not measured",
    }
}

/// What was asked and what was achieved, over all phases.
pub(crate) fn achieved(summary: &Summary) -> Table {
    let (people, sends) = (&summary.people, &summary.sends);
    let mut table = Table::new(&["", "asked", "achieved", ""]);
    let mut put = |label: &str, asked: u64, achieved: u64| {
        let share = share(achieved, asked);
        table.row(false, [label.to_owned(), count(asked), count(achieved), share]);
    };
    put("people set out", people.asked, people.arrived);
    put("people in", people.asked, people.entered);
    put("people finished", people.asked, people.finished);
    let ledger = &summary.ledger;
    let announced = ledger.announcements_owed.saturating_sub(ledger.announcements_lost);
    let rows = [
        ("messages sent", sends.due, sends.sent),
        ("sent on time", sends.due, sends.sent.saturating_sub(sends.late)),
        ("deliveries", ledger.owed, ledger.owed.saturating_sub(ledger.lost)),
        ("announcements", ledger.announcements_owed, announced),
    ];
    for (label, asked, achieved) in rows.into_iter().filter(|&(_, asked, _)| asked > 0) {
        put(label, asked, achieved);
    }
    table
}
