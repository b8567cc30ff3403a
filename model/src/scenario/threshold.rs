//! Thresholds: `delivery p90: < 200ms`, `lost: 0`.

use super::reader::Reader;
use super::tree::Node;
use super::unit;
use super::{figure, near};
use crate::{Comparison, Counters, Measure, Quantity, Threshold, Unit};

/// How a bound may begin; longer ones first.
const SIGNS: &[(&str, Comparison)] = &[
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Below),
    (">", Comparison::Above),
    ("=", Comparison::Equal),
    ("at most ", Comparison::AtMost),
    ("at least ", Comparison::AtLeast),
    ("below ", Comparison::Below),
    ("above ", Comparison::Above),
];
const ASPECTS: &str = "a measure is followed by `p50` … `p99.9`, `max`, `mean` or `errors`";

/// Reads `thresholds`.
pub(super) fn read(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Vec<Threshold>> {
    let Some(node) = node else { return Some(Vec::new()) };
    let Some(pairs) = node.map() else {
        let reason = format!("`thresholds` must be a map, not {}", node.kind());
        reader.wrong(node.place, reason, "as in `{delivery p90: < 200ms, lost: 0}`");
        return None;
    };
    let mut thresholds: Vec<Threshold> = Vec::new();
    for (key, value) in pairs {
        let Some(threshold) = one(reader, key, value) else { continue };
        if thresholds.iter().any(|t| t.quantity == threshold.quantity) {
            reader.wrong(key.place, "this threshold is given twice", "remove one of the two");
        }
        thresholds.push(threshold);
    }
    Some(thresholds)
}

fn one(reader: &mut Reader<'_>, key: &Node, value: &Node) -> Option<Threshold> {
    let name = reader.text(key, "a threshold's name")?.trim();
    let quantity = quantity(reader, key, name)?;
    let text = reader.text(value, &format!("the threshold `{name}`"))?.trim();
    let sign = SIGNS.iter().find_map(|(sign, c)| Some((text.strip_prefix(sign)?, *c)));
    let (amount, comparison) = match (sign, &quantity) {
        (Some(found), _) => found,
        (None, Quantity::Counter { .. } | Quantity::Errors) => (text, Comparison::Equal),
        (None, Quantity::FailureRate { .. }) if matches!(text, "0" | "0%") => {
            (text, Comparison::Equal)
        }
        (None, _) => {
            let reason = format!("the threshold `{name}` does not say how to compare");
            reader.wrong(value.place, reason, format!("did you mean `< {text}`?"));
            return None;
        }
    };
    let bound = bound(reader, value, name, &quantity, amount.trim())?;
    Some(Threshold { quantity, comparison, bound, text: format!("{name}: {text}") })
}

fn bound(
    reader: &mut Reader<'_>,
    value: &Node,
    name: &str,
    quantity: &Quantity,
    amount: &str,
) -> Option<f64> {
    let complaint = match quantity {
        Quantity::Latency { .. } | Quantity::MeanLatency { .. } => match unit::duration(amount) {
            Ok(ns) => return Some(ns as f64),
            Err(complaint) => complaint,
        },
        Quantity::FailureRate { .. } => match unit::weight(amount) {
            Ok((percent, true)) if percent <= 100.0 => return Some(percent / 100.0),
            _ if matches!(amount, "0" | "0%") => return Some(0.0),
            _ => unit::Complaint::new(
                format!("`{amount}` is not a percentage"),
                "failures are compared with a share of the requests, as in `< 1%`",
            ),
        },
        Quantity::Counter { .. } | Quantity::Errors if amount.ends_with('%') => {
            unit::Complaint::new(
                format!("`{name}` is a count, not a share"),
                "write a number as in `0`; only `<measure> errors` is a percentage",
            )
        }
        Quantity::Counter { .. } | Quantity::Errors => match unit::whole(amount, 0, 1 << 53) {
            Ok(count) => return Some(count as f64),
            Err(complaint) => complaint,
        },
        probed => match probed_bound(probed.unit(), amount) {
            Ok(bound) => return Some(bound),
            Err(complaint) => complaint,
        },
    };
    let place = reader.part(value, amount);
    reader.wrong(
        place,
        format!("the threshold `{name}`: {}", complaint.reason),
        complaint.suggestion,
    );
    None
}

fn probed_bound(unit: Unit, amount: &str) -> Result<f64, unit::Complaint> {
    match unit {
        Unit::Time => unit::duration(amount).map(|ns| ns as f64),
        Unit::Share => figure::share(amount),
        Unit::Count => unit::whole(amount, 0, 1 << 53).map(|count| count as f64),
        Unit::Bytes => unit::size(amount).map(|bytes| bytes as f64),
        Unit::Number => figure::number(amount),
    }
}

fn quantity(reader: &mut Reader<'_>, key: &Node, name: &str) -> Option<Quantity> {
    let (head, aspect) = match name.split_once(char::is_whitespace) {
        Some((head, aspect)) => (head, aspect.trim()),
        None => (name, ""),
    };
    if figure::HEADS.contains(&head) {
        return figure::quantity(reader, key, head, aspect);
    }
    if aspect.is_empty() {
        return count(reader, key, name);
    }
    let Some(measure) = Measure::from_name(head) else {
        let names = Measure::ALL.iter().map(|m| m.name()).chain(figure::HEADS);
        let place = reader.part(key, head);
        reader.wrong(
            place,
            format!("there is no measure `{head}`"),
            near::advice(head, names, "measures"),
        );
        return None;
    };
    match aspect {
        "max" => return Some(Quantity::Latency { measure, quantile: 1.0 }),
        "mean" => return Some(Quantity::MeanLatency { measure }),
        "errors" => return Some(Quantity::FailureRate { measure }),
        _ => {}
    }
    let percentile = aspect.strip_prefix('p').and_then(unit::number);
    match percentile.filter(|p| (0.0..=100.0).contains(p)) {
        Some(percentile) => Some(Quantity::Latency { measure, quantile: percentile / 100.0 }),
        None => {
            let place = reader.part(key, aspect);
            let help = match near::nearest(aspect, ["max", "mean", "errors"]) {
                Some(near) => format!("did you mean `{head} {near}`?"),
                None => ASPECTS.into(),
            };
            reader.wrong(place, format!("`{aspect}` is nothing a measure has"), help);
            None
        }
    }
}

/// A count of the whole run: `lost`, `sends-late`, `errors`.
fn count(reader: &mut Reader<'_>, key: &Node, name: &str) -> Option<Quantity> {
    if name == "errors" {
        return Some(Quantity::Errors);
    }
    let field = name.replace('-', "_");
    let fields: Vec<&str> = Counters::default().fields().iter().map(|(name, _)| *name).collect();
    if fields.contains(&field.as_str()) {
        return Some(Quantity::Counter { name: field });
    }
    let help = match Measure::from_name(name) {
        Some(_) => format!("did you mean `{name} p99`? {ASPECTS}"),
        None => {
            let some = ["lost", "duplicate", "misordered", "late", "unexpected", "gave_up"];
            match near::nearest(&field, fields.iter().copied().chain(["errors"])) {
                Some(near) => format!("did you mean `{near}`?"),
                None => near::advice(name, some, "counts most used"),
            }
        }
    };
    reader.wrong(key.place, format!("there is no count `{name}`"), help);
    None
}
