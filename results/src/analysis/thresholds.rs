//! Thresholds against what was measured.

use super::totals::ms;
use super::{finite, ratio};
use crate::summary::{Judged, Outcome};
use model::{Interval, Measure, Quantity, Stats, Threshold};

/// Judges one threshold on the whole run.
pub(crate) fn judge(threshold: &Threshold, total: &Interval) -> Judged {
    let value = value(&threshold.quantity, total);
    let outcome = match value {
        Value::Is(value) if threshold.comparison.holds(value, threshold.bound) => Outcome::Kept,
        Value::Is(_) | Value::AllFailed => Outcome::Broken,
        Value::Nothing => Outcome::Unmeasured,
    };
    let (unit, scale) = match threshold.quantity {
        Quantity::Latency { .. } | Quantity::MeanLatency { .. } => ("ms", 1e-6),
        Quantity::FailureRate { .. } => ("%", 100.0),
        Quantity::Counter { .. } | Quantity::Errors => ("", 1.0),
    };
    let shown = |value: f64| match unit {
        "ms" => ms(value as u64),
        _ => finite(value * scale),
    };
    Judged {
        text: threshold.text.clone(),
        value: match value {
            Value::Is(value) => Some(shown(value)),
            Value::AllFailed | Value::Nothing => None,
        },
        bound: finite(threshold.bound * scale),
        unit: unit.to_owned(),
        outcome,
    }
}

/// What there is to compare.
#[derive(Clone, Copy)]
enum Value {
    /// This.
    Is(f64),
    /// Nothing succeeded: whatever was promised about successes was not kept.
    AllFailed,
    /// Nothing was tried.
    Nothing,
}

fn value(quantity: &Quantity, total: &Interval) -> Value {
    let stats = |measure: &Measure| total.measures.get(measure);
    let latency = |measure: &Measure, of: &dyn Fn(&Stats) -> f64| match stats(measure) {
        Some(stats) if stats.latency.count() > 0 => Value::Is(of(stats)),
        Some(stats) if stats.failed > 0 => Value::AllFailed,
        _ => Value::Nothing,
    };
    match quantity {
        Quantity::Latency { measure, quantile } => {
            latency(measure, &|stats| stats.latency.quantile(quantile.clamp(0.0, 1.0)) as f64)
        }
        Quantity::MeanLatency { measure } => latency(measure, &|stats| stats.latency.mean()),
        Quantity::FailureRate { measure } => match stats(measure) {
            Some(stats) if stats.done.saturating_add(stats.failed) > 0 => {
                let all = stats.done.saturating_add(stats.failed);
                Value::Is(ratio(stats.failed as f64, all as f64))
            }
            _ => Value::Nothing,
        },
        Quantity::Counter { name } => {
            let fields = total.counters.fields();
            let field = fields.iter().find(|field| field.0 == name);
            field.map_or(Value::Nothing, |field| Value::Is(field.1 as f64))
        }
        Quantity::Errors => {
            let failed = total.measures.values().map(|stats| stats.failed);
            Value::Is(failed.fold(0, u64::saturating_add) as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Comparison, FaultClass};

    fn total() -> Interval {
        let mut total = Interval::default();
        for ms in 1..=100 {
            total.measure(Measure::Delivery).latency.record(ms * 1_000_000);
        }
        total.measure(Measure::Delivery).done = 100;
        total.fault(Measure::Join, FaultClass::Closed);
        total.fault(Measure::Say, FaultClass::Closed);
        total.measure(Measure::Say).done = 3;
        total.counters.lost = 2;
        total
    }

    fn check(quantity: Quantity, comparison: Comparison, bound: f64, want: Outcome) {
        let threshold = Threshold { quantity, comparison, bound, text: String::new() };
        let judged = judge(&threshold, &total());
        assert_eq!(judged.outcome, want, "{threshold:?} {judged:?}");
    }

    #[test]
    fn thresholds_are_judged() {
        use Comparison::{AtMost, Below, Equal};
        let p90 = |measure| Quantity::Latency { measure, quantile: 0.9 };
        check(p90(Measure::Delivery), Below, 91e6, Outcome::Kept);
        check(p90(Measure::Delivery), Below, 89e6, Outcome::Broken);
        check(p90(Measure::Join), Below, 89e6, Outcome::Broken);
        check(p90(Measure::Edit), Below, 89e6, Outcome::Unmeasured);
        check(Quantity::MeanLatency { measure: Measure::Delivery }, Below, 51e6, Outcome::Kept);
        check(Quantity::FailureRate { measure: Measure::Say }, AtMost, 0.25, Outcome::Kept);
        check(Quantity::FailureRate { measure: Measure::Say }, Below, 0.25, Outcome::Broken);
        check(Quantity::FailureRate { measure: Measure::Edit }, Below, 0.5, Outcome::Unmeasured);
        check(Quantity::Counter { name: "lost".to_owned() }, Equal, 0.0, Outcome::Broken);
        check(Quantity::Counter { name: "lost".to_owned() }, Equal, 2.0, Outcome::Kept);
        check(Quantity::Counter { name: "luck".to_owned() }, Equal, 0.0, Outcome::Unmeasured);
        check(Quantity::Errors, AtMost, 2.0, Outcome::Kept);
    }
}
