//! The report of a comparison.

use super::{Comparison, Row, RowVerdict, Side, Verdict};
use crate::experiment::Unit;
use crate::report::chart::{Backdrop, Chart};
use crate::report::format::{bytes, duration, short};
use crate::report::page::{Mood, Page, Picture, Section};
use crate::report::table::Table;
use crate::report::whiskers::{self, Line, Plot, Tone};
use crate::stats::Bounds;

/// A value of a figure with its unit.
pub(crate) fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ms => duration(value),
        Unit::CpuSeconds => duration(value * 1e3),
        Unit::Bytes => bytes(value.max(0.0) as u64),
        Unit::Count => short(value),
    }
}

/// A relative difference with its sign.
pub(crate) fn change(difference: Option<f64>) -> String {
    match difference.map(|share| share * 100.0) {
        None => "–".to_owned(),
        Some(p) if p.abs() < 0.05 => "0 %".to_owned(),
        Some(p) if p.abs() < 99.95 => format!("{p:+.1} %"),
        Some(p) => format!("{p:+.0} %"),
    }
}

/// Bounds of a relative difference, percent.
fn range(bounds: Option<Bounds>) -> String {
    match bounds.filter(Bounds::is_finite) {
        None => "–".to_owned(),
        Some(b) if b.low.abs().max(b.high.abs()) < 0.9995 => {
            format!("{:+.1}…{:+.1}", b.low * 100.0, b.high * 100.0)
        }
        Some(b) => format!("{:+.0}…{:+.0}", b.low * 100.0, b.high * 100.0),
    }
}

/// The verdict on one figure in a word, as in `~ 3.1 %` for "a difference of 3.1 % would have
/// been seen".
fn word(row: &Row) -> String {
    match row.verdict {
        RowVerdict::Improved => "better".to_owned(),
        RowVerdict::Regressed => "worse".to_owned(),
        RowVerdict::NotComparable => "–".to_owned(),
        RowVerdict::NoDifference => match row.detectable {
            Some(share) if share < 9.995 => format!("~ {} %", short(share * 100.0)),
            _ => "~".to_owned(),
        },
    }
}

/// The report of a comparison. `charts` lie both sides over each other, `html` is a part of its
/// own (the difference of two profiles), or empty.
pub(super) fn page(
    comparison: &Comparison,
    backdrop: Option<Backdrop>,
    charts: Vec<Chart>,
    profiles: Section,
) -> Page {
    let figures = Section {
        title: "Figures".to_owned(),
        note: "Means of whole runs. The difference is the candidate's, as a share of the base, \
               with its 95 % bounds in percent. ~ 3 %: no difference was seen, and one of 3 % \
               would have been, four times out of five."
            .to_owned(),
        table: wide(comparison),
        narrow: narrow(comparison),
        pictures: picture(comparison).into_iter().collect(),
        ..Section::default()
    };
    let over_time = Section {
        title: "Both over time".to_owned(),
        note: "Each second is the mean over all runs of a side; percentiles are of all \
               deliveries of that second. Drag to zoom."
            .to_owned(),
        charts,
        ..Section::default()
    };
    let (verdict, mood) = verdict(comparison);
    let is_there = |section: &Section| {
        !section.html.is_empty() || !section.charts.is_empty() || !section.table.rows.is_empty()
    };
    Page {
        title: format!("Comparison: {}", comparison.name),
        about: comparison.about.clone(),
        meta: meta(comparison),
        verdict: verdict.to_owned(),
        mood,
        sentence: sentence(comparison),
        remarks: remarks(comparison),
        sections: [figures, over_time, profiles].into_iter().filter(is_there).collect(),
        backdrop,
    }
}

fn verdict(comparison: &Comparison) -> (&'static str, Mood) {
    match comparison.verdict {
        Verdict::Regressed => ("regressed", Mood::Broken),
        Verdict::Improved => ("improved", Mood::Kept),
        Verdict::NoDifference => ("no difference", Mood::Kept),
        Verdict::NotComparable => ("not comparable", Mood::Broken),
    }
}

fn meta(comparison: &Comparison) -> String {
    let side = |side: &Side| match side.version.is_empty() {
        true => format!("{} ({} runs)", side.name, side.runs),
        false => format!("{} ({}, {} runs)", side.name, side.version, side.runs),
    };
    let (base, candidate) = (side(&comparison.base), side(&comparison.candidate));
    let cut = match comparison.warm_up_s {
        0.0 => "no warm-up cut".to_owned(),
        s => format!("deliveries after a warm-up of {s} s"),
    };
    format!("base {base} · candidate {candidate} · {cut}")
}

/// The answer in a sentence.
fn sentence(comparison: &Comparison) -> String {
    let of = |verdict| -> Vec<String> {
        let rows = comparison.rows.iter().filter(|row| row.verdict == verdict);
        rows.map(|row| format!("{} {}", row.name, change(row.difference))).collect()
    };
    let (worse, better) = (of(RowVerdict::Regressed), of(RowVerdict::Improved));
    let crashes = comparison.candidate.crashes.len();
    let mut parts = Vec::new();
    if crashes > comparison.base.crashes.len() {
        parts.push(format!("the candidate ended by itself in {crashes} runs"));
    }
    if !worse.is_empty() {
        parts.push(format!("worse: {}", worse.join(", ")));
    }
    if !better.is_empty() {
        parts.push(format!("better: {}", better.join(", ")));
    }
    match (comparison.verdict, parts.is_empty()) {
        (Verdict::NotComparable, _) => {
            "nothing can be said about a difference; see the notes.".to_owned()
        }
        (_, false) => parts.join("; ") + ".",
        (_, true) => {
            let seen = comparison.rows.iter().filter_map(|row| {
                let is_key = KEY_FIGURES.contains(&row.name.as_str());
                let share = row.detectable.filter(|_| is_key)?;
                Some(format!("{} % of {}", short(share * 100.0), row.name))
            });
            let seen: Vec<String> = seen.collect();
            match seen.is_empty() {
                true => "no figure differs as far as these runs can tell, which is little: see \
                         the notes."
                    .to_owned(),
                false => format!(
                    "no figure differs as far as these runs can tell; they would have shown {}.",
                    seen.join(", ")
                ),
            }
        }
    }
}

/// The axis of differences reaches at least this far.
const LEAST_SHOWN: f64 = 0.05;
/// Figures whose detectable difference is told in the sentence.
const KEY_FIGURES: [&str; 2] = ["target CPU per delivery", "delivery p99"];

fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks = comparison.remarks.clone();
    if comparison.is_aa {
        remarks.insert(0, "both sides are the same: this is the noise of the measurement".into());
    }
    for side in [&comparison.base, &comparison.candidate] {
        let crashed = side.crashes.iter().map(|how| format!("{}: {how}", side.name));
        let left_out = side.left_out.iter().map(|why| format!("{}: not used: {why}", side.name));
        let starved = side.starved.iter().map(|how| format!("{}: {how}", side.name));
        remarks.extend(crashed.chain(left_out).chain(starved));
    }
    remarks
}

/// The table for a page.
fn wide(comparison: &Comparison) -> Table {
    let head = ["figure", "base", "±", "candidate", "±", "difference", "95 % bounds", "p", "q"];
    let mut table = Table::new(&[&head[..], &["effect (g)", "verdict"]].concat());
    let number =
        |n: Option<f64>, digits: usize| n.map_or("–".into(), |n| format!("{n:.digits$}"));
    for row in &comparison.rows {
        let half = |bounds: Option<Bounds>, mean: f64| match bounds.filter(Bounds::is_finite) {
            Some(b) if mean != 0.0 => match (b.high - b.low) / 2.0 / mean.abs() * 100.0 {
                half if half < 999.5 => format!("{half:.1} %"),
                _ => "> 999 %".to_owned(),
            },
            _ => "–".to_owned(),
        };
        table.row(
            false,
            [
                row.name.clone(),
                value(row.base_mean, row.unit),
                half(row.base_bounds, row.base_mean),
                value(row.candidate_mean, row.unit),
                half(row.candidate_bounds, row.candidate_mean),
                change(row.difference),
                range(row.bounds),
                number(row.p, 4),
                number(row.q, 4),
                match row.effect {
                    Some(g) if g.abs() > 99.0 => {
                        format!("{}99", if g < 0.0 { "< −" } else { "> " })
                    }
                    effect => number(effect, 1),
                },
                word(row),
            ],
        );
    }
    table
}

/// The table for a terminal.
fn narrow(comparison: &Comparison) -> Table {
    let mut table = Table::new(&["", "base", "candidate", "change", "95 % bounds", "verdict"]);
    for row in &comparison.rows {
        let cells = [
            row.name.clone(),
            value(row.base_mean, row.unit),
            value(row.candidate_mean, row.unit),
            change(row.difference),
            range(row.bounds),
            word(row),
        ];
        table.row(false, cells);
    }
    table
}

fn picture(comparison: &Comparison) -> Option<Picture> {
    let line = |row: &Row| -> Option<Line> {
        Some(Line {
            name: row.name.clone(),
            value: row.difference?,
            bounds: row.bounds?,
            tone: match row.verdict {
                RowVerdict::Improved => Tone::Good,
                RowVerdict::Regressed => Tone::Bad,
                _ => Tone::Neutral,
            },
        })
    };
    let lines: Vec<Line> = comparison.rows.iter().filter_map(line).collect();
    let title = "Difference of the candidate, with 95 % bounds";
    let words = |share: f64| change(Some(share));
    let plot = Plot { title, lines: &lines, bars: false, least: LEAST_SHOWN, words: &words };
    (!lines.is_empty()).then(|| Picture {
        id: "differences".into(),
        title: title.into(),
        svg: whiskers::draw(&plot),
    })
}
