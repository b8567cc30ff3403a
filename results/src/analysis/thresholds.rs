//! Thresholds against what was measured.

use super::probed::{self, SpanS};
use super::totals::ms;
use super::{finite, ratio};
use crate::summary::{Judged, Outcome};
use model::{Interval, Measure, MetricSample, ProbeSample, Quantity, Stats, Threshold, Unit};

/// Judges one threshold on a span of a run (seconds since its epoch): the whole of it, or any
/// window. `total` holds the intervals of the span, merged; `probes` and `metrics`, in order of
/// time, may reach beyond it: percentages of CPU are interpolated at its edges.
pub fn judge(
    threshold: &Threshold,
    total: &Interval,
    probes: &[ProbeSample],
    metrics: &[MetricSample],
    span: SpanS,
) -> Judged {
    let value = match probed(threshold, total, probes, metrics, span) {
        Some(value) => value,
        None => value(&threshold.quantity, total),
    };
    let outcome = match value {
        Value::Is(value) if threshold.comparison.holds(value, threshold.bound) => Outcome::Kept,
        Value::Is(_) | Value::AllFailed => Outcome::Broken,
        Value::Nothing => Outcome::Unmeasured,
    };
    let (unit, scale) = match threshold.quantity.unit() {
        Unit::Time => ("ms", 1e-6),
        Unit::Share => ("%", 100.0),
        Unit::Bytes => ("B", 1.0),
        Unit::Count => ("", 1.0),
        Unit::Number => written(&threshold.text),
    };
    let shown = |value: f64| match threshold.quantity {
        Quantity::Latency { .. } | Quantity::MeanLatency { .. } => ms(value as u64),
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

/// The unit a metric's bound is written in, and how many of it the metric's own has: seconds and
/// bytes by custom.
fn written(text: &str) -> (&'static str, f64) {
    match text.chars().next_back() {
        Some('%') => ("%", 100.0),
        Some('B') => ("B", 1.0),
        Some(last) if last.is_alphabetic() => ("ms", 1e3),
        _ => ("", 1.0),
    }
}

/// The value of what probes read; `None` for what people measure.
fn probed(
    threshold: &Threshold,
    total: &Interval,
    probes: &[ProbeSample],
    metrics: &[MetricSample],
    span: SpanS,
) -> Option<Value> {
    let Threshold { quantity, comparison, bound, .. } = threshold;
    let found = match quantity {
        Quantity::Process { role, figure } => {
            probed::process((*role, *figure), total, probes, span)
        }
        Quantity::Steal => probed::steal(probes, span),
        Quantity::Metric { selector, fold } => {
            probed::metric((selector, *fold, false), (*comparison, *bound), metrics, span)
        }
        Quantity::Query { selector, fold } => {
            probed::metric((selector, *fold, true), (*comparison, *bound), metrics, span)
        }
        _ => return None,
    };
    Some(found.map_or(Value::Nothing, Value::Is))
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
        Quantity::Process { .. } | Quantity::Steal => Value::Nothing,
        Quantity::Metric { .. } | Quantity::Query { .. } => Value::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Comparison, FaultClass, Figure, HostSample, ProcessSample, Role, Tick};

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
        let judged = judge(&threshold, &total(), &probes(), &[], (0.0, 4.0));
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

    /// Two processes for four seconds; one of them rests in the first two.
    fn probes() -> Vec<ProbeSample> {
        let process = |pid, s: f64, cpu_s: f64| ProcessSample {
            pid,
            cpu_ns: (cpu_s * 1e9) as u64,
            run_queue_ns: (s * 1e8) as u64,
            rss_bytes: 1_000 + s as u64 * 100,
            pss_bytes: if (s as u64).is_multiple_of(2) { 500 + s as u64 } else { 0 },
            threads: 3,
            descriptors: 10 + s as u64,
            ..ProcessSample::default()
        };
        let sample = |s: u64| {
            let s = s as f64;
            ProbeSample {
                at: Tick((s * 1e9) as u64),
                target: vec![process(1, s, s * 0.5), process(2, s, (s - 2.0).max(0.0))],
                generator: vec![process(3, s, s * 0.1)],
                host: HostSample { steal_ns: (s * 2e7) as u64, ..HostSample::default() },
            }
        };
        (0..=4).map(sample).collect()
    }

    #[test]
    fn what_probes_read_is_judged_over_any_window() {
        let check = |quantity: Quantity, span, want: Option<f64>| {
            let text = String::new();
            let comparison = Comparison::Below;
            let threshold = Threshold { quantity, comparison, bound: 1e12, text };
            let judged = judge(&threshold, &Interval::default(), &probes(), &[], span);
            let near = judged.value.zip(want).is_some_and(|(a, b)| (a - b).abs() < 1e-6);
            assert!(near || judged.value == want, "{threshold:?} {span:?}: {judged:?}");
            let outcome = if want.is_some() { Outcome::Kept } else { Outcome::Unmeasured };
            assert_eq!(judged.outcome, outcome);
        };
        let of = |figure| Quantity::Process { role: Role::Target, figure };
        for (figure, whole, second, third) in [
            (Figure::CpuMean, 100.0, 50.0, 150.0),
            (Figure::CpuMax, 150.0, 50.0, 150.0),
            (Figure::CpuTime, 4_000.0, 500.0, 1_500.0),
            (Figure::RunQueue, 20.0, 20.0, 20.0),
            (Figure::MemoryMax, 2_800.0, 2_400.0, 2_600.0),
            (Figure::MemoryMean, 2_400.0, 2_300.0, 2_500.0),
            (Figure::PssMax, 1_008.0, 1_004.0, 1_004.0),
            (Figure::PssMean, 1_004.0, 1_004.0, 1_004.0),
            (Figure::Threads, 6.0, 6.0, 6.0),
            (Figure::Descriptors, 28.0, 24.0, 26.0),
        ] {
            check(of(figure), (0.0, 4.0), Some(whole));
            check(of(figure), (1.0, 2.0), Some(second));
            check(of(figure), (2.0, 3.0), Some(third));
            check(of(figure), (7.0, 9.0), None);
        }
        check(of(Figure::CpuMean), (1.5, 2.5), Some(100.0));
        check(of(Figure::CpuPerDelivery), (0.0, 4.0), None);
        let mean = Quantity::Process { role: Role::Generator, figure: Figure::CpuMean };
        check(mean, (1.0, 3.0), Some(10.0));
        check(Quantity::Steal, (1.0, 3.0), Some(2.0));
        check(Quantity::Steal, (9.0, 9.5), None);
    }

    #[test]
    fn metrics_are_shown_in_the_unit_of_the_bound() {
        for (text, want) in [
            ("metric x: < 5", ("", 1.0)),
            ("metric x: < 5%", ("%", 100.0)),
            ("metric x: < 5MiB", ("B", 1.0)),
            ("metric x: < 5ms", ("ms", 1e3)),
            ("metric x: < 1h", ("ms", 1e3)),
        ] {
            assert_eq!(written(text), want, "{text}");
        }
    }

    #[test]
    fn cpu_is_shared_among_deliveries() {
        let mut total = total();
        total.counters.deliveries = 200;
        let quantity = Quantity::Process { role: Role::Target, figure: Figure::CpuPerDelivery };
        let (comparison, text) = (Comparison::Below, String::new());
        let threshold = Threshold { quantity, comparison, bound: 21e6, text };
        let judged = judge(&threshold, &total, &probes(), &[], (0.0, 4.0));
        assert_eq!((judged.value, judged.outcome), (Some(20.0), Outcome::Kept));
    }
}
