//! What a capacity looks like: words for the terminal, Markdown, and charts of each criterion
//! against people for the page. All are drawn from the answer alone, at any time.

mod chart;
mod rows;
mod words;

use super::Capacity;
use super::continuous::Settled;
use crate::report::escape::{markdown as md, plain, xml};
use chart::Picture;
use rows::{Table, table};
use std::fmt::Write as _;

/// Columns of a terminal.
const COLUMNS: usize = 80;
/// Criteria that have a column of their own in a terminal.
const CRITERIA_SHOWN: usize = 3;

/// The answer for a terminal, at most 80 columns wide.
pub fn text(capacity: &Capacity) -> String {
    let mut out = String::new();
    wrap(&mut out, "", &words::sentence(capacity));
    for (label, fact) in words::facts(capacity) {
        wrap(&mut out, &format!("  {label:<10}"), &fact);
    }
    out.push('\n');
    terminal_table(&mut out, &table(&capacity.curves, Some(CRITERIA_SHOWN)));
    let more = capacity.curves.len().saturating_sub(CRITERIA_SHOWN);
    if more > 0 {
        wrap(&mut out, "  ", &format!("and {more} more criteria in the report"));
    }
    out
}

/// The answer in Markdown, ready for a pull request. The charts are [`svgs`]; `folder` is where
/// they lie, seen from the text, if anywhere.
pub fn markdown(capacity: &Capacity, folder: Option<&str>) -> String {
    let mut out = format!("**{}**\n\n", md(&words::sentence(capacity)));
    for (label, fact) in words::facts(capacity) {
        let _ = writeln!(out, "- {label}: {}", md(&fact));
    }
    out.push('\n');
    markdown_table(&mut out, &table(&capacity.curves, None));
    for (name, _) in svgs(capacity).iter().filter(|_| folder.is_some()) {
        let folder = folder.unwrap_or_default();
        let _ = writeln!(out, "\n![{name}]({folder}/{name})");
    }
    out
}

/// The answer as a part of a page: sentence, facts, a chart for each criterion, table.
pub fn html(capacity: &Capacity) -> String {
    let pictures = Picture::of(capacity);
    fragment(
        &words::sentence(capacity),
        &words::facts(capacity),
        &pictures,
        &table(&capacity.curves, None),
    )
}

/// The charts by themselves: file names and contents.
pub fn svgs(capacity: &Capacity) -> Vec<(String, String)> {
    let file = |(i, picture): (usize, &Picture<'_>)| {
        (format!("capacity-{}.svg", i + 1), chart::draw(picture))
    };
    Picture::of(capacity).iter().enumerate().map(file).collect()
}

/// What a moving population found out, for a terminal, at most 80 columns wide.
pub fn settled_text(settled: &Settled) -> String {
    let mut out = String::new();
    wrap(&mut out, "", &words::settled(settled));
    for (label, fact) in words::settled_facts(settled) {
        wrap(&mut out, &format!("  {label:<10}"), &fact);
    }
    out
}

/// What a moving population found out, as a part of a page.
pub fn settled_html(settled: &Settled) -> String {
    let pictures = Picture::of_settled(settled);
    let none = Table::default();
    fragment(&words::settled(settled), &words::settled_facts(settled), &pictures, &none)
}

fn fragment(
    sentence: &str,
    facts: &[(&str, String)],
    pictures: &[Picture<'_>],
    table: &Table,
) -> String {
    let mut out = String::from("<section class=\"capacity\">\n<h2>Capacity</h2>\n");
    let _ = writeln!(out, "<p class=\"sentence\">{}</p>", xml(sentence));
    out.push_str("<table class=\"words\"><tbody>\n");
    for (label, fact) in facts {
        let _ = writeln!(out, "<tr><th>{}</th><td>{}</td></tr>", xml(label), xml(fact));
    }
    out.push_str("</tbody></table>\n");
    for picture in pictures {
        let _ = writeln!(out, "<div class=\"chart\">\n{}</div>", chart::draw(picture));
    }
    if !table.rows.is_empty() {
        html_table(&mut out, table);
    }
    out.push_str("</section>\n");
    out
}

fn html_table(out: &mut String, table: &Table) {
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    for head in &table.head {
        let _ = write!(out, "<th>{}</th>", xml(head));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let tag = if i == 0 { "th" } else { "td" };
            let _ = write!(out, "<{tag}>{}</{tag}>", xml(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn markdown_table(out: &mut String, table: &Table) {
    let line = |cells: &[String]| {
        format!("| {} |\n", cells.iter().map(|cell| md(cell)).collect::<Vec<_>>().join(" | "))
    };
    out.push_str(&line(&table.head));
    let rule: Vec<&str> = table.head.iter().map(|_| "---:").collect();
    let _ = writeln!(out, "| {} |", rule.join(" | "));
    table.rows.iter().for_each(|row| out.push_str(&line(row)));
}

/// Columns as wide as they need to be, and as narrow as they must.
fn terminal_table(out: &mut String, table: &Table) {
    let columns = table.head.len().max(1);
    let most = (COLUMNS - 2 * columns) / columns;
    let width = |column: usize| {
        let cells = table.rows.iter().chain([&table.head]).filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        if column < 2 { widest } else { widest.min(most.max(22)) }
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in [&table.head].into_iter().chain(&table.rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let cell: String = plain(cell).chars().take(*width).collect();
            let _ = write!(line, "  {cell:>width$}");
        }
        let line: String = line.trim_end().chars().take(COLUMNS).collect();
        out.push_str(&line);
        out.push('\n');
    }
}

/// Writes words behind a label, further lines indented alike.
fn wrap(out: &mut String, label: &str, words: &str) {
    let indent = label.chars().count();
    let mut line = label.to_owned();
    let mut is_empty = true;
    for word in plain(words).split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(out, "{}", line.trim_end());
            (line, is_empty) = (" ".repeat(indent), true);
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
}
