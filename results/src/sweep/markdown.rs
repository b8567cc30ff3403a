//! The sweep as Markdown.

use super::text::plain_size;
use super::words::{findings, head, pair};
use super::{Growth, Sweep};
use crate::report::escape::markdown as safe;
use std::fmt::Write as _;

pub(super) fn markdown(sweep: &Sweep, charts: &str) -> String {
    let mut page = format!("# {}\n", safe(&head(sweep)));
    for growth in &sweep.costs {
        one(&mut page, growth, &sweep.parameters, charts);
    }
    page
}

fn one(page: &mut String, growth: &Growth, parameters: &[String], charts: &str) {
    let (unit, label) = (growth.unit(), safe(&growth.label()));
    let _ = writeln!(page, "\n## {label}\n");
    for finding in findings(growth, parameters) {
        let _ = writeln!(page, "- {}", safe(&finding));
    }
    if growth.laws.is_some() {
        let _ = writeln!(page, "\n![{label}]({charts}/{})", growth.chart_name());
    }
    let names = safe(&parameters.join(" × "));
    let _ = writeln!(page, "\n| {names} | runs | mean | 95 % | per unit |");
    page.push_str("|---:|---:|---:|---:|---:|\n");
    for row in &growth.rows {
        let values: Vec<String> = row.values.iter().map(|value| plain_size(*value)).collect();
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            values.join(" × "),
            row.runs,
            unit.show(row.cost),
            pair(row.bounds, |value| unit.show(value)),
            unit.show(row.per_unit)
        );
    }
}
