//! The last seconds of a run as one record, so that a run that is still going on can be judged by
//! the same thresholds as one that is over.

use crate::analysis::limits::{LAG_P99_INVALID_MS, LATE_SENDS_INVALID};
use crate::analysis::{SpanS, judge};
use crate::summary::Judged;
use model::{Interval, MetricSample, ProbeSample, Threshold, Tick};
use std::collections::VecDeque;

/// Readings so much older than the window are kept, seconds.
const EDGE_S: u32 = 2;

/// A sliding window over the intervals of a run.
#[derive(Clone, Debug, Default)]
pub struct Window {
    seconds: VecDeque<Interval>,
    probes: Vec<ProbeSample>,
    metrics: Vec<MetricSample>,
    length_s: u32,
}

impl Window {
    /// A window of so many seconds, at least one.
    pub fn new(length_s: u32) -> Window {
        Window { length_s: length_s.max(1), ..Window::default() }
    }

    /// A second is over. Seconds come in order; what is older than the window is forgotten.
    pub fn push(&mut self, interval: &Interval) {
        self.seconds.push_back(interval.clone());
        let from = interval.second.saturating_sub(self.length_s - 1);
        while self.seconds.front().is_some_and(|first| first.second < from) {
            self.seconds.pop_front();
        }
        // Readings just before the window tell what processes did at its beginning.
        let edge = Tick::from_secs(u64::from(from.saturating_sub(EDGE_S)));
        self.probes.retain(|sample| sample.at >= edge);
        self.metrics.retain(|sample| sample.at >= edge);
    }

    /// The processes and the machine were read.
    pub fn push_probe(&mut self, sample: &ProbeSample) {
        self.probes.push(sample.clone());
    }

    /// Metrics were read; samples of different sources come in any order.
    pub fn push_metrics(&mut self, samples: &[MetricSample]) {
        self.metrics.extend_from_slice(samples);
        self.metrics.sort_by_key(|sample| sample.at);
    }

    /// What it spans, seconds since the run's epoch.
    fn span(&self) -> SpanS {
        let from = self.seconds.front().map_or(0.0, |first| f64::from(first.second));
        let to = self.seconds.back().map_or(0.0, |last| f64::from(last.second) + 1.0);
        (from, to)
    }

    /// All seconds in it merged; how things stood is that of the newest.
    pub fn total(&self) -> Interval {
        let mut total = Interval::default();
        self.seconds.iter().for_each(|second| total.merge(second));
        total.gauges = self.seconds.back().map(|last| last.gauges).unwrap_or_default();
        total
    }

    /// Whether it has seen its whole length since the run's beginning, or since [`Window::clear`].
    pub fn is_full(&self) -> bool {
        let span = self.seconds.back().zip(self.seconds.front());
        span.is_some_and(|(last, first)| last.second - first.second + 1 >= self.length_s)
    }

    /// Forgets everything: what was seen belongs to another population.
    pub fn clear(&mut self) {
        self.seconds.clear();
        self.probes.clear();
        self.metrics.clear();
    }

    /// Why the generator was not fit to measure in this time; `None` if it was.
    pub fn generator_limit(&self) -> Option<String> {
        let total = self.total();
        let lag_ms = total.lag.quantile(0.99) as f64 / 1e6;
        if lag_ms > LAG_P99_INVALID_MS {
            return Some(format!("timers fired {lag_ms:.0} ms late at the 99th percentile"));
        }
        let counters = &total.counters;
        let late = counters.sends_late as f64 / counters.sends_due.max(1) as f64;
        (late > LATE_SENDS_INVALID)
            .then(|| format!("{:.0} % of the messages were sent late", late * 100.0))
    }

    /// Judges the thresholds on what is in it.
    pub fn judge(&self, thresholds: &[Threshold]) -> Vec<Judged> {
        let total = self.total();
        let judge = |threshold| judge(threshold, &total, &self.probes, &self.metrics, self.span());
        thresholds.iter().map(judge).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Outcome;
    use model::{Comparison, Measure, Quantity};

    fn second(second: u32, ms: u64) -> Interval {
        let mut interval = Interval::new(second);
        interval.measure(Measure::Delivery).latency.record(ms * 1_000_000);
        interval.measure(Measure::Delivery).done = 1;
        interval.counters.lost = 1;
        interval.gauges.online = u64::from(second);
        interval
    }

    #[test]
    fn only_the_last_seconds_are_judged() {
        let threshold = |quantity, bound| Threshold {
            quantity,
            comparison: Comparison::AtMost,
            bound,
            text: String::new(),
        };
        let slowest = Quantity::Latency { measure: Measure::Delivery, quantile: 1.0 };
        let lost = Quantity::Counter { name: "lost".to_owned() };
        let thresholds = [threshold(slowest, 100e6), threshold(lost, 3.0)];
        let mut window = Window::new(3);
        let mut judged = Vec::new();
        // The last second but one is missing: a shard was late.
        for (at, ms) in [(0, 10), (1, 500), (2, 10), (3, 10), (4, 10), (6, 10)] {
            window.push(&second(at, ms));
            let outcomes: Vec<Outcome> =
                window.judge(&thresholds).iter().map(|judged| judged.outcome).collect();
            judged.push((outcomes[0] == Outcome::Kept, window.total().counters.lost));
        }
        let want = [(true, 1), (false, 2), (false, 3), (false, 3), (true, 3), (true, 2)];
        assert_eq!(judged, want);
        assert_eq!(window.total().gauges.online, 6, "standings do not add up");
        assert!(window.is_full());
        assert_eq!(window.generator_limit(), None);
        let mut slow = second(7, 10);
        slow.lag.record_n(2_000_000_000, 100);
        window.push(&slow);
        assert!(window.generator_limit().is_some_and(|why| why.contains("ms late at the 99th")));
        window.clear();
        assert!(!window.is_full());
        assert_eq!(window.judge(&thresholds)[0].outcome, Outcome::Unmeasured);
    }
}
