//! A comparison as JUnit XML, which every CI system shows: a figure is a test case.

use super::{Comparison, RowVerdict, Verdict};
use crate::report::escape::xml;
use std::fmt::Write as _;

/// The comparison as a test suite. A figure fails if it regressed beyond what is tolerated, and is
/// skipped if it could not be compared.
pub fn junit(comparison: &Comparison) -> String {
    let failed = |row: &&super::Row| row.is_regression_beyond(comparison.tolerate);
    let crashed = comparison.candidate.crashes.len() > comparison.base.crashes.len();
    let failures = comparison.rows.iter().filter(failed).count() + usize::from(crashed);
    let skipped = |row: &&super::Row| row.verdict == RowVerdict::NotComparable;
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"throng compare {}\" \
         tests=\"{}\" failures=\"{failures}\" errors=\"{}\" skipped=\"{}\">\n",
        xml(&comparison.name),
        comparison.rows.len() + 1,
        u8::from(comparison.verdict == Verdict::NotComparable),
        comparison.rows.iter().filter(skipped).count()
    );
    let whole = match (crashed, comparison.verdict) {
        (true, _) => {
            format!("<failure message=\"{}\"/>", xml(&comparison.candidate.crashes.join("; ")))
        }
        (_, Verdict::NotComparable) => {
            format!("<error message=\"{}\"/>", xml(&comparison.remarks.join("; ")))
        }
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "  <testcase classname=\"throng.{}\" name=\"the runs can be compared\">{whole}</testcase>",
        xml(&comparison.name)
    );
    for row in &comparison.rows {
        let said = match row.verdict {
            RowVerdict::NotComparable => "<skipped/>".to_owned(),
            _ if row.is_regression_beyond(comparison.tolerate) => {
                let difference = super::draw::change(row.difference);
                let (a, b) = (row.base_mean, row.candidate_mean);
                let (a, b) = (super::draw::value(a, row.unit), super::draw::value(b, row.unit));
                let q = row.q.unwrap_or(1.0);
                let message = format!("{difference}: {b} instead of {a} (q = {q:.4})");
                format!("<failure message=\"{}\"/>", xml(&message))
            }
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "  <testcase classname=\"throng.{}\" name=\"{}\">{said}</testcase>",
            xml(&comparison.name),
            xml(&row.name)
        );
    }
    text + "</testsuite>\n"
}
