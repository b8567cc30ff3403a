//! The sweep as a text for the terminal, at most eighty columns wide.

use super::unit::plain;
use super::words::{findings, head, pair};
use super::{Growth, Sweep};
use crate::report::escape::plain as safe;
use crate::report::text::Text;

/// Rows of a table at most: a grid can have a thousand.
const ROWS_MAX: usize = 60;

pub(super) fn text(sweep: &Sweep) -> String {
    let mut text = Text::default();
    text.line(&safe(&head(sweep)));
    for growth in &sweep.costs {
        text.blank();
        table(&mut text, growth, &sweep.parameters);
        for finding in findings(growth, &sweep.parameters) {
            text.line(&format!("  {}", safe(&finding)));
        }
    }
    text.finish()
}

fn table(text: &mut Text, growth: &Growth, parameters: &[String]) {
    let unit = growth.unit();
    text.line(&safe(&growth.label()));
    let names = safe(&parameters.join(" × "));
    text.raw(&format!(
        "  {names:<18} {:>4} {:>12} {:>25} {:>13}",
        "runs", "mean", "95 %", "per unit"
    ));
    for row in growth.rows.iter().take(ROWS_MAX) {
        let values: Vec<String> = row.values.iter().map(|value| plain_size(*value)).collect();
        text.raw(&format!(
            "  {:<18} {:>4} {:>12} {:>25} {:>13}",
            values.join(" × "),
            row.runs,
            unit.show(row.cost),
            pair(row.bounds, |value| unit.show(value)),
            unit.show(row.per_unit)
        ));
    }
    if growth.rows.len() > ROWS_MAX {
        text.line(&format!("  … and {} more", growth.rows.len() - ROWS_MAX));
    }
}

/// A size as the user wrote it, if it is whole.
pub(super) fn plain_size(value: f64) -> String {
    match value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        true => crate::report::format::count(value as u64),
        false => plain(value),
    }
}
