//! What probes and metrics come to over a span of time: the values that thresholds compare.

use super::processes::Processes;
use super::ratio;
use model::metric::{PROMQL, UP};
use model::{
    Comparison, Figure, Fold, Interval, MetricSample, ProbeSample, ProcessSample, Role, Selector,
    Series, Tick,
};
use std::collections::BTreeMap;

/// A stretch of the run, seconds since its epoch.
pub type SpanS = (f64, f64);

/// The processes of a role.
type Pick = fn(&ProbeSample) -> &Vec<ProcessSample>;

/// A figure of all processes of a role together; `None` if they were not watched then.
pub(super) fn process(
    (role, figure): (Role, Figure),
    total: &Interval,
    probes: &[ProbeSample],
    span: SpanS,
) -> Option<f64> {
    let of: Pick = match role {
        Role::Target => |sample| &sample.target,
        Role::Generator => |sample| &sample.generator,
    };
    let most = |of_one: fn(&ProcessSample) -> u64| {
        let sums = sums(probes, span, of, of_one);
        sums.iter().copied().max().map(|most| most as f64)
    };
    let mean = |of_one: fn(&ProcessSample) -> u64| {
        let sums = sums(probes, span, of, of_one);
        let sum: f64 = sums.iter().map(|&sum| sum as f64).sum();
        (!sums.is_empty()).then(|| sum / sums.len() as f64)
    };
    let used = || Processes::of(around(probes, span), of).used(span.0, span.1);
    match figure {
        Figure::CpuMean => used().map(|used| used.cpu_mean_percent / 100.0),
        Figure::CpuMax => used().map(|used| used.cpu_max_percent / 100.0),
        Figure::CpuTime => used().map(|used| used.cpu_s * 1e9),
        Figure::CpuPerDelivery => {
            let deliveries = Some(total.counters.deliveries).filter(|&n| n > 0)?;
            used().map(|used| used.cpu_s * 1e9 / deliveries as f64)
        }
        Figure::RunQueue => used().map(|used| ratio(used.run_queue_s, used.watched_s)),
        Figure::MemoryMax => most(|process| process.rss_bytes),
        Figure::MemoryMean => mean(|process| process.rss_bytes),
        Figure::PssMax => most(|process| process.pss_bytes),
        Figure::PssMean => mean(|process| process.pss_bytes),
        Figure::Virtual => most(|process| process.virtual_bytes),
        Figure::Threads => most(|process| process.threads),
        Figure::Descriptors => most(|process| process.descriptors),
    }
}

/// Sums over the processes of each reading within the span. What not every reading reads (the
/// proportional share of memory) is zero in the others: they are left out.
fn sums(
    probes: &[ProbeSample],
    (from_s, to_s): SpanS,
    of: Pick,
    of_one: fn(&ProcessSample) -> u64,
) -> Vec<u64> {
    let within = |sample: &&ProbeSample| (from_s..=to_s).contains(&sample.at.secs_f64());
    let sum = |sample: &ProbeSample| of(sample).iter().map(of_one).fold(0, u64::saturating_add);
    let around = around(probes, (from_s, to_s));
    around.iter().filter(within).map(sum).filter(|&sum| sum > 0).collect()
}

/// The readings within a span, with the one before and the one behind it.
fn around(probes: &[ProbeSample], (from_s, to_s): SpanS) -> &[ProbeSample] {
    let start = probes.partition_point(|sample| sample.at.secs_f64() <= from_s);
    let end = probes.partition_point(|sample| sample.at.secs_f64() < to_s);
    probes.get(start.saturating_sub(1)..(end + 1).min(probes.len())).unwrap_or_default()
}

/// Time the hypervisor gave to others, as a fraction of one core.
pub(super) fn steal(probes: &[ProbeSample], span: SpanS) -> Option<f64> {
    let around = around(probes, span);
    let (first, last) = (around.first()?, around.last()?);
    let ns = last.at.ns_since(first.at);
    let stolen = last.host.steal_ns.saturating_sub(first.host.steal_ns);
    (ns > 0).then(|| stolen as f64 / ns as f64)
}

/// Samples of the series that are meant, within a span.
struct Chosen<'a> {
    samples: Vec<&'a MetricSample>,
    /// Whether there is a metric of that name at all, with whatever labels.
    is_known: bool,
    /// When each source was first read.
    first_read: BTreeMap<&'a str, Tick>,
    last_read: Tick,
}

impl<'a> Chosen<'a> {
    fn of(
        selector: &Selector,
        is_query: bool,
        metrics: &'a [MetricSample],
        (from_s, to_s): SpanS,
    ) -> Chosen<'a> {
        let start = metrics.partition_point(|sample| sample.at.secs_f64() < from_s);
        let end = metrics.partition_point(|sample| sample.at.secs_f64() <= to_s);
        let mut chosen = Chosen {
            samples: Vec::new(),
            is_known: false,
            first_read: BTreeMap::new(),
            last_read: Tick::ZERO,
        };
        for sample in metrics.get(start..end).unwrap_or_default() {
            let series = &sample.series;
            if series.name == UP && sample.value > 0.0 {
                chosen.first_read.entry(&series.source).or_insert(sample.at);
                chosen.last_read = chosen.last_read.max(sample.at);
            }
            if (series.source == PROMQL) != is_query || series.name != selector.name {
                continue;
            }
            chosen.is_known = true;
            if selector.matches(series) {
                chosen.samples.push(sample);
            }
        }
        chosen
    }

    /// The sums over all series, whenever a source was read. Sources are read one after the other:
    /// what the others said last still counts.
    fn sums(&self) -> Vec<f64> {
        let mut sources: BTreeMap<&str, Option<f64>> =
            self.samples.iter().map(|sample| (sample.series.source.as_str(), None)).collect();
        let mut sums = Vec::new();
        let is_same = |a: &&MetricSample, b: &&MetricSample| a.at == b.at;
        for reading in self.samples.chunk_by(is_same) {
            for sample in reading {
                sources.insert(&sample.series.source, Some(0.0));
            }
            for sample in reading {
                if let Some(Some(sum)) = sources.get_mut(sample.series.source.as_str()) {
                    *sum += sample.value;
                }
            }
            sums.extend(sources.values().copied().sum::<Option<f64>>());
        }
        sums
    }

    /// What the series grew together, and in how many seconds. One that was not there when its
    /// source was first read began at zero, and so does one whose process began anew.
    fn growth(&self) -> Option<(f64, f64)> {
        let mut last: BTreeMap<&Series, f64> = BTreeMap::new();
        let mut growth = 0.0;
        for sample in &self.samples {
            let read_before = self.first_read.get(sample.series.source.as_str());
            let base = match last.insert(&sample.series, sample.value) {
                Some(before) if before <= sample.value => before,
                Some(_) => 0.0,
                None if read_before.is_some_and(|&first| first < sample.at) => 0.0,
                None => sample.value,
            };
            growth += sample.value - base;
        }
        let ticks = self.samples.iter().map(|sample| sample.at);
        let first = ticks.clone().chain(self.first_read.values().copied()).min()?;
        let seconds = (ticks.max().unwrap_or_default().max(self.last_read) - first).as_secs_f64();
        (self.is_known && seconds > 0.0).then_some((growth, seconds))
    }
}

/// The value of a metric or query over a span; `None` if there is nothing to compare.
pub(super) fn metric(
    (selector, fold, is_query): (&Selector, Fold, bool),
    (comparison, bound): (Comparison, f64),
    metrics: &[MetricSample],
    span: SpanS,
) -> Option<f64> {
    let chosen = Chosen::of(selector, is_query, metrics, span);
    let sums = || chosen.sums().into_iter();
    let far = |value: &f64| (value - bound).abs();
    match fold {
        Fold::Increase => chosen.growth().map(|(growth, _)| growth),
        Fold::Rate => chosen.growth().map(|(growth, seconds)| growth / seconds),
        Fold::Last => sums().last(),
        Fold::Min => sums().min_by(f64::total_cmp),
        Fold::Max => sums().max_by(f64::total_cmp),
        Fold::Mean => {
            let sums = chosen.sums();
            (!sums.is_empty()).then(|| sums.iter().sum::<f64>() / sums.len() as f64)
        }
        // The reading that is worst for the bound stands for all.
        Fold::Every => match comparison {
            Comparison::Below | Comparison::AtMost => sums().max_by(f64::total_cmp),
            Comparison::Above | Comparison::AtLeast => sums().min_by(f64::total_cmp),
            Comparison::Equal => sums().max_by(|a, b| far(a).total_cmp(&far(b))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn sample(at_s: f64, source: &str, name: &str, code: &str, value: f64) -> MetricSample {
        let labels = match code {
            "" => Vec::new(),
            code => vec![("code".to_owned(), code.to_owned())],
        };
        let (source, name) = (source.to_owned(), name.to_owned());
        let series = Arc::new(Series { source, name, labels, ..Series::default() });
        MetricSample { at: Tick((at_s * 1e9) as u64), series, value }
    }

    fn check(samples: &[MetricSample], text: &str, fold: Fold, span: SpanS, want: Option<f64>) {
        let selector = Selector::parse(text).expect("a selector");
        let of = (&selector, fold, samples[0].series.source == PROMQL);
        let got = metric(of, (Comparison::Below, 0.0), samples, span);
        assert_eq!(got, want, "{text} {fold:?} {span:?}");
    }

    #[test]
    fn gauges_are_added_up_over_series_and_sources() {
        let of = |at_s, source, code, value| sample(at_s, source, "open", code, value);
        let samples = [
            of(0.0, "a", "1", 1.0),
            of(0.0, "a", "2", 2.0),
            of(0.5, "b", "1", 10.0),
            of(1.0, "a", "1", 5.0),
            of(1.5, "b", "1", 0.0),
        ];
        let all = (0.0, 9.0);
        check(&samples, "open", Fold::Max, all, Some(15.0));
        check(&samples, "open", Fold::Min, all, Some(5.0));
        check(&samples, "open", Fold::Last, all, Some(5.0));
        check(&samples, "open", Fold::Mean, all, Some((13.0 + 15.0 + 5.0) / 3.0));
        check(&samples, "open", Fold::Every, all, Some(15.0));
        check(&samples, "open{code=\"2\"}", Fold::Max, all, Some(2.0));
        check(&samples, "open", Fold::Max, (1.2, 9.0), Some(0.0));
        check(&samples, "open{code=\"3\"}", Fold::Max, all, None);
        check(&samples, "shut", Fold::Max, all, None);
        check(&samples, "open", Fold::Max, (2.0, 9.0), None);
    }

    #[test]
    fn the_worst_reading_stands_for_every_reading() {
        let samples: Vec<_> = [3.0, 9.0, 1.0].iter().map(|&v| sample(v, "a", "x", "", v)).collect();
        let mut samples = samples;
        samples.sort_by_key(|sample| sample.at);
        let selector = Selector::parse("x").expect("a selector");
        for (comparison, want) in [
            (Comparison::Below, 9.0),
            (Comparison::AtMost, 9.0),
            (Comparison::Above, 1.0),
            (Comparison::AtLeast, 1.0),
            (Comparison::Equal, 9.0),
        ] {
            let of = (&selector, Fold::Every, false);
            assert_eq!(metric(of, (comparison, 3.0), &samples, (0.0, 99.0)), Some(want));
        }
    }

    #[test]
    fn counters_grow_through_restarts_and_late_beginnings() {
        let hits = |at_s, code, value| sample(at_s, "a", "hits", code, value);
        let up = |at_s| sample(at_s, "a", UP, "", 1.0);
        let samples = [
            hits(0.0, "200", 100.0),
            up(0.0),
            hits(1.0, "200", 110.0),
            up(1.0),
            hits(2.0, "200", 4.0),
            hits(2.0, "500", 3.0),
            up(2.0),
        ];
        let all = (0.0, 2.0);
        check(&samples, "hits", Fold::Increase, all, Some(17.0));
        check(&samples, "hits", Fold::Rate, all, Some(8.5));
        check(&samples, "hits{code=\"500\"}", Fold::Increase, all, Some(3.0));
        check(&samples, "hits{code=\"500\"}", Fold::Rate, all, Some(1.5));
        check(&samples, "hits{code=\"404\"}", Fold::Rate, all, Some(0.0));
        check(&samples, "hits", Fold::Rate, (0.0, 1.5), Some(10.0));
        check(&samples, "hits", Fold::Rate, (0.5, 1.5), None);
        check(&samples, "misses", Fold::Rate, all, None);
    }

    #[test]
    fn answers_to_queries_are_apart() {
        let samples = [sample(0.0, PROMQL, "x", "", 7.0)];
        check(&samples, "x", Fold::Last, (0.0, 1.0), Some(7.0));
        let selector = Selector::parse("x").expect("a selector");
        let of = (&selector, Fold::Last, false);
        assert_eq!(metric(of, (Comparison::Below, 0.0), &samples, (0.0, 1.0)), None);
    }
}
