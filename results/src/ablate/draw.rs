//! The report of an ablation.

use super::{Ablation, Cost, Row};
use crate::experiment::Unit;
use crate::report::escape::plain;
use crate::report::page::{Mood, Page, Picture, Section};
use crate::report::table::Table;
use crate::report::whiskers::{self, Line, Plot, Tone};
use crate::stats::Bounds;

/// Figures that get a column in the terminal's table.
const KEY_FIGURES: [&str; 3] = ["target CPU", "target memory, most", "join p50"];
/// The figure that is drawn as bars.
const DRAWN_FIGURE: &str = "target CPU";

/// A cost in words, also one below zero.
pub(super) fn value(value: f64, unit: Unit) -> String {
    let words = crate::compare::draw::value(value.abs(), unit);
    // What rounds to nothing has no sign.
    let is_nothing = !words.contains(|c: char| ('1'..='9').contains(&c));
    if value < 0.0 && !is_nothing { format!("−{words}") } else { words }
}

/// A cost with half the width of its bounds.
fn with_bounds(cost: &Cost, unit: Unit) -> String {
    match cost.bounds {
        Some(b) => format!("{} ± {}", value(cost.value, unit), value((b.high - b.low) / 2.0, unit)),
        None => value(cost.value, unit),
    }
}

/// The report.
pub(super) fn page(ablation: &Ablation) -> Page {
    let picture = ablation.rows.iter().find(|row| row.name == DRAWN_FIGURE);
    let whole = Section {
        title: "What each feature costs".to_owned(),
        note: "With everything, less without that feature; means of whole runs ± half of the \
               95 % bounds. A cost whose bounds hold zero was not seen."
            .to_owned(),
        table: table(ablation, &ablation.rows, with_bounds),
        narrow: narrow(ablation),
        pictures: picture.map(|row| bars(ablation, row)).into_iter().collect(),
        ..Section::default()
    };
    let phases = Section {
        title: "CPU by phase and stage".to_owned(),
        note: "CPU seconds of the target while the phase or stage lasted.".to_owned(),
        table: table(ablation, &ablation.phases, with_bounds),
        narrow: table(ablation, &ablation.phases, |cost, unit| value(cost.value, unit)),
        ..Section::default()
    };
    let is_there = |section: &Section| !section.table.rows.is_empty();
    let runs = ablation.runs.iter().map(|(label, runs)| format!("{label}: {runs}"));
    let mood = if ablation.is_answered() { Mood::Kept } else { Mood::Broken };
    Page {
        title: format!("Ablation: {}", ablation.name),
        about: ablation.about.clone(),
        meta: format!("{} · runs: {}", ablation.target.trim(), runs.collect::<Vec<_>>().join(", ")),
        verdict: if ablation.is_answered() { "measured" } else { "could not measure" }.to_owned(),
        mood,
        sentence: sentence(ablation),
        remarks: ablation.remarks.clone(),
        sections: [whole, phases].into_iter().filter(is_there).collect(),
        backdrop: None,
    }
}

/// The costs in CPU, the dearest first.
fn sentence(ablation: &Ablation) -> String {
    let Some(row) = ablation.rows.iter().find(|row| row.name == DRAWN_FIGURE) else {
        return "the target's CPU was not watched.".to_owned();
    };
    let mut costs: Vec<(&String, &Cost)> = ablation.features.iter().zip(&row.features).collect();
    costs.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    let (seen, unseen): (Vec<_>, Vec<_>) = costs.into_iter().partition(|(_, cost)| cost.is_seen());
    let share = |cost: &Cost| 100.0 * cost.value / row.full.value;
    let seen = seen.iter().map(|(name, cost)| {
        format!("{name} {} ({:.0} %)", with_bounds(cost, row.unit), share(cost))
    });
    let mut parts: Vec<String> = seen.collect();
    if !unseen.is_empty() {
        let names: Vec<&str> = unseen.iter().map(|(name, _)| name.as_str()).collect();
        parts.push(format!("no cost of {} was seen", names.join(", ")));
    }
    let all = value(row.full.value, row.unit);
    let rest = value(row.rest.value, row.unit);
    format!("of {all} of target CPU: {}; {rest} are left over.", parts.join(", "))
}

fn table(ablation: &Ablation, rows: &[Row], words: fn(&Cost, Unit) -> String) -> Table {
    let mut table = Table::new(&["figure", "everything"]);
    table.head.extend(ablation.features.iter().map(|name| plain(name)));
    table.head.push("left over".to_owned());
    let several = ablation.features.len() > 1;
    table.head.extend(several.then(|| "interaction".to_owned()));
    for row in rows {
        let words = |cost: &Cost| words(cost, row.unit);
        let mut cells = vec![row.name.clone(), words(&row.full)];
        cells.extend(row.features.iter().map(words));
        cells.push(words(&row.rest));
        cells.extend(several.then(|| row.interaction.as_ref().map_or("–".to_owned(), words)));
        table.row(false, cells);
    }
    table
}

/// For a terminal: a line for each feature, a column for each of the most telling figures.
fn narrow(ablation: &Ablation) -> Table {
    let rows: Vec<&Row> = KEY_FIGURES
        .iter()
        .filter_map(|name| ablation.rows.iter().find(|row| row.name == *name))
        .collect();
    let mut table = Table::new(&["costs of"]);
    table.head.extend(rows.iter().map(|row| match row.name.as_str() {
        "target memory, most" => "memory".to_owned(),
        name => name.to_owned(),
    }));
    let mut line = |name: &str, cost: &dyn Fn(&Row) -> Cost| {
        let cells = rows.iter().map(|row| with_bounds(&cost(row), row.unit));
        table.row(false, std::iter::once(name.to_owned()).chain(cells));
    };
    for (i, feature) in ablation.features.iter().enumerate() {
        line(feature, &|row| row.features[i]);
    }
    line("(left over)", &|row| row.rest);
    line("(everything)", &|row| row.full);
    table
}

fn bars(ablation: &Ablation, row: &Row) -> Picture {
    let line = |name: &str, cost: &Cost, tone| Line {
        name: name.to_owned(),
        value: cost.value,
        bounds: cost.bounds.unwrap_or(Bounds::UNKNOWN),
        tone,
    };
    let mut lines: Vec<Line> = ablation
        .features
        .iter()
        .zip(&row.features)
        .map(|(name, cost)| line(name, cost, Tone::Plain))
        .collect();
    lines.push(line("left over", &row.rest, Tone::Neutral));
    lines.push(line("everything", &row.full, Tone::Neutral));
    let title = format!("{}: what each feature costs, with 95 % bounds", row.name);
    let words = |cost: f64| value(cost, row.unit);
    let plot = Plot { title: &title, lines: &lines, bars: true, least: 0.0, words: &words };
    let svg = whiskers::draw(&plot);
    Picture { id: "costs".to_owned(), title, svg }
}
