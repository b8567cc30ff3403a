//! The report of several candidates beside one base.

use super::{Cell, Ratios, SideBySide};
use crate::compare::draw::value;
use crate::report::escape::plain;
use crate::report::format::short;
use crate::report::page::{Mood, Page, Picture, Section};
use crate::report::table::Table;
use crate::report::whiskers::{self, Line, Plot, Tone};
use crate::stats::Bounds;

/// Figures that are drawn, and that the terminal's table begins with.
const KEY_FIGURES: [&str; 5] = [
    "target CPU per delivery",
    "delivery p50",
    "delivery p99",
    "join p50",
    "target memory per person",
];

/// The report.
pub(super) fn page(told: &SideBySide) -> Page {
    let figures = Section {
        title: "Side by side".to_owned(),
        note: "Means of whole runs with their 95 % bounds, and how many times the first one's \
               they are."
            .to_owned(),
        table: wide(told),
        narrow: narrow(told),
        pictures: key_rows(told).enumerate().map(|(at, row)| bars(told, at, row)).collect(),
        ..Section::default()
    };
    let is_measured = told.is_measured();
    Page {
        title: format!("Side by side: {}", told.name),
        about: told.about.clone(),
        meta: meta(told),
        verdict: if is_measured { "measured" } else { "could not measure" }.to_owned(),
        mood: if is_measured { Mood::Kept } else { Mood::Broken },
        sentence: sentence(told),
        remarks: remarks(told),
        sections: vec![figures],
        backdrop: None,
    }
}

fn key_rows(told: &SideBySide) -> impl Iterator<Item = &Ratios> {
    KEY_FIGURES.iter().filter_map(|name| told.rows.iter().find(|row| row.name == *name))
}

fn meta(told: &SideBySide) -> String {
    let sides = told.sides.iter().map(|side| match side.version.is_empty() {
        true => format!("{} ({} runs)", side.name, side.runs),
        false => format!("{} ({}, {} runs)", side.name, side.version, side.runs),
    });
    let cut = match told.warm_up_s {
        0.0 => "no warm-up cut".to_owned(),
        s => format!("deliveries after a warm-up of {s} s"),
    };
    format!("{} · {cut}", sides.collect::<Vec<_>>().join(" · "))
}

/// The answer in a sentence: the first key figure that has ratios.
fn sentence(told: &SideBySide) -> String {
    let base = told.sides.first().map_or("the base", |side| side.name.as_str());
    let row = key_rows(told).find(|row| row.cells.iter().any(|cell| cell.ratio.is_some()));
    let Some(row) = row else {
        return "nothing can be said about ratios; see the notes.".to_owned();
    };
    let sides = told.sides.iter().zip(&row.cells).skip(1);
    let each = sides.filter_map(|(side, cell)| Some(format!("{} {}", side.name, ratio(cell)?)));
    format!("{}, times that of {base}: {}.", row.name, each.collect::<Vec<_>>().join(", "))
}

fn remarks(told: &SideBySide) -> Vec<String> {
    let mut remarks = told.remarks.clone();
    for side in &told.sides {
        let crashed = side.crashes.iter().map(|how| format!("{}: {how}", side.name));
        let left_out = side.left_out.iter().map(|why| format!("{}: not used: {why}", side.name));
        remarks.extend(crashed.chain(left_out));
    }
    remarks
}

/// A ratio with its bounds: `14.2 (13.1 … 15.3)`.
fn ratio(cell: &Cell) -> Option<String> {
    let ratio = short(cell.ratio?);
    Some(match cell.ratio_bounds {
        Some(b) => format!("{ratio} ({} … {})", short(b.low), short(b.high)),
        None => ratio,
    })
}

fn mean(cell: &Cell, row: &Ratios) -> String {
    cell.mean.map_or("–".to_owned(), |mean| value(mean, row.unit))
}

/// Every figure with its bounds.
fn wide(told: &SideBySide) -> Table {
    let mut table = Table::new(&["figure"]);
    for (at, side) in told.sides.iter().enumerate() {
        table.head.push(plain(&side.name));
        table.head.push("95 % bounds".to_owned());
        if at > 0 {
            table.head.push("ratio".to_owned());
        }
    }
    for row in &told.rows {
        let mut cells = vec![row.name.clone()];
        for (at, cell) in row.cells.iter().enumerate() {
            cells.push(mean(cell, row));
            cells.push(cell.bounds.map_or("–".to_owned(), |b| {
                format!("{} … {}", value(b.low, row.unit), value(b.high, row.unit))
            }));
            if at > 0 {
                cells.push(ratio(cell).unwrap_or("–".to_owned()));
            }
        }
        table.row(false, cells);
    }
    table
}

/// The table for a terminal.
fn narrow(told: &SideBySide) -> Table {
    let mut table = Table::new(&[""]);
    for (at, side) in told.sides.iter().enumerate() {
        table.head.push(plain(&side.name));
        if at > 0 {
            table.head.push("×".to_owned());
        }
    }
    let others = told.rows.iter().filter(|row| !KEY_FIGURES.contains(&row.name.as_str()));
    for row in key_rows(told).chain(others) {
        let mut cells = vec![row.name.clone()];
        for (at, cell) in row.cells.iter().enumerate() {
            cells.push(mean(cell, row));
            if at > 0 {
                cells.push(cell.ratio.map_or("–".to_owned(), short));
            }
        }
        table.row(false, cells);
    }
    table
}

/// One figure of all sides as bars.
fn bars(told: &SideBySide, number: usize, row: &Ratios) -> Picture {
    let lines = told.sides.iter().zip(&row.cells).enumerate();
    let lines: Vec<Line> = lines
        .filter_map(|(at, (side, cell))| {
            Some(Line {
                name: side.name.clone(),
                value: cell.mean?,
                bounds: cell.bounds.unwrap_or(Bounds::UNKNOWN),
                tone: if at == 0 { Tone::Neutral } else { Tone::Plain },
            })
        })
        .collect();
    let title = format!("{}, with 95 % bounds", row.name);
    let words = |of: f64| value(of, row.unit);
    let plot = Plot { title: &title, lines: &lines, bars: true, least: 0.0, words: &words };
    Picture { id: format!("beside-{}", number + 1), svg: whiskers::draw(&plot), title }
}
