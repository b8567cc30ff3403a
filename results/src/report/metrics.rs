//! Charts of metrics: one for each name, counters as rates, the largest series of it as lines.

use super::chart::{Axis, Chart, Hue, Line, Unit};
use super::escape::plain;
use super::thin::SECONDS_SHOWN_MAX;
use model::metric::UP;
use model::{MetricKind, MetricSample, Series};
use std::collections::BTreeMap;

/// Most charts of metrics; `metrics.csv` has all.
const CHARTS_MAX: usize = 40;
/// The lines of a chart, the largest first.
const HUES: [Hue; 4] = [Hue::First, Hue::Second, Hue::Third, Hue::Fourth];
/// Longest name of a line, characters.
const NAME_CHARS_MAX: usize = 60;

/// The greatest number that is drawn.
const DRAWN_MAX: f64 = 1e18;

/// Values of a series by the number of their bin.
type Track = BTreeMap<u64, f64>;

/// The charts, in the order of the metrics' names. `length_s` is the run's.
pub(super) fn charts(samples: &[MetricSample], length_s: f64) -> Vec<Chart> {
    let width_s = (length_s / SECONDS_SHOWN_MAX as f64).max(1.0);
    let mut series: BTreeMap<&Series, Vec<&MetricSample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| is_shown(&sample.series)) {
        series.entry(&sample.series).or_default().push(sample);
    }
    let mut names: BTreeMap<&str, Vec<(&Series, Track)>> = BTreeMap::new();
    for (series, samples) in series {
        let track = match series.kind {
            MetricKind::Counter => rates(&samples, width_s),
            MetricKind::Gauge | MetricKind::Untyped => greatest(&samples, width_s),
        };
        names.entry(&series.name).or_default().push((series, track));
    }
    let charts = names.into_iter().enumerate();
    let charts = charts.map(|(at, (name, tracks))| chart(at + 1, name, tracks, width_s));
    charts.filter(|chart| !chart.is_empty()).take(CHARTS_MAX).collect()
}

/// Buckets of histograms are too many, and whether a source was up is told in words.
fn is_shown(series: &Series) -> bool {
    series.name != UP && !series.labels.iter().any(|(name, _)| name == "le")
}

fn bin(sample: &MetricSample, width_s: f64) -> u64 {
    (sample.at.secs_f64() / width_s) as u64
}

/// The greatest value of each bin.
fn greatest(samples: &[&MetricSample], width_s: f64) -> Track {
    let mut track = Track::new();
    for sample in samples {
        let value = track.entry(bin(sample, width_s)).or_insert(sample.value);
        *value = value.max(sample.value);
    }
    track
}

/// What a counter grew a second, from the last reading of the bin before to the last of each bin.
fn rates(samples: &[&MetricSample], width_s: f64) -> Track {
    let mut track = Track::new();
    let bins = samples.chunk_by(|a, b| bin(a, width_s) == bin(b, width_s));
    let mut before: Option<&MetricSample> = None;
    for last in bins.filter_map(|bin| bin.last().copied()) {
        if let Some(before) = before {
            let seconds = (last.at - before.at).as_secs_f64();
            // A counter that went back began anew.
            let growth = match last.value >= before.value {
                true => last.value - before.value,
                false => last.value,
            };
            if seconds > 0.0 {
                track.insert(bin(last, width_s), growth / seconds);
            }
        }
        before = Some(last);
    }
    track
}

fn chart(number: usize, name: &str, mut tracks: Vec<(&Series, Track)>, width_s: f64) -> Chart {
    let all = tracks.len();
    let most = |track: &Track| track.values().copied().fold(f64::MIN, f64::max);
    tracks.sort_by(|a, b| most(&b.1).total_cmp(&most(&a.1)));
    tracks.truncate(HUES.len());
    let mut bins: Vec<u64> = tracks.iter().flat_map(|(_, track)| track.keys().copied()).collect();
    bins.sort_unstable();
    bins.dedup();
    let is_counter = tracks.iter().any(|(series, _)| series.kind == MetricKind::Counter);
    let (label, unit) = axis(name, is_counter);
    let lines = tracks.iter().zip(HUES).rev().map(|((series, track), hue)| Line {
        name: line_name(series),
        hue,
        axis: 0,
        area: false,
        y: bins.iter().map(|bin| drawable(*track.get(bin)?)).collect(),
    });
    let more = match all > HUES.len() {
        true => format!(" (the largest {} of {all} series)", HUES.len()),
        false => String::new(),
    };
    Chart {
        id: format!("metric-{number}"),
        title: format!("{}{more}", plain(name)),
        x: bins.iter().map(|&bin| (bin as f64 + 0.5) * width_s).collect(),
        axes: vec![Axis { label: label.into(), unit, log: false }],
        lines: lines.collect(),
    }
}

/// Six significant digits; nothing where a page could not tell the number from endless.
fn drawable(value: f64) -> Option<f64> {
    let is_plain = value.abs() < DRAWN_MAX;
    is_plain.then(|| format!("{value:.5e}").parse().ok()).flatten()
}

/// By custom the unit is the end of a metric's name.
fn axis(name: &str, is_counter: bool) -> (&'static str, Unit) {
    let is_bytes = name.contains("_bytes");
    match (is_bytes, is_counter) {
        (true, true) => ("bytes per second", Unit::Bytes),
        (true, false) => ("bytes", Unit::Bytes),
        (false, true) => ("per second", Unit::Number),
        (false, false) => ("value", Unit::Number),
    }
}

fn line_name(series: &Series) -> String {
    let labels = series.labels_text();
    let name = match labels.is_empty() {
        true => series.source.clone(),
        false => format!("{} {labels}", series.source),
    };
    plain(&name).chars().take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Tick;
    use std::sync::Arc;

    fn samples(name: &str, label: &str, kind: MetricKind, values: &[f64]) -> Vec<MetricSample> {
        let labels = vec![("le".replace("le", label), "x".to_owned())];
        let (source, name) = ("target".to_owned(), name.to_owned());
        let series = Arc::new(Series { source, name, labels, kind });
        let at = |i: usize| Tick::from_secs(i as u64);
        let sample =
            |(i, &value): (usize, &f64)| MetricSample { at: at(i), series: series.clone(), value };
        values.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn counters_are_drawn_as_rates_and_the_largest_series_of_a_name() {
        let mut all = samples("hits_total", "a", MetricKind::Counter, &[5.0, 7.0, 17.0, 3.0]);
        for label in ["b", "c", "d", "e", "f"] {
            let height = f64::from(label.as_bytes()[0]);
            all.extend(samples("heap_bytes", label, MetricKind::Gauge, &[1.0, height]));
        }
        all.extend(samples("delay_bucket", "le", MetricKind::Counter, &[1.0, 2.0]));
        all.extend(samples(UP, "a", MetricKind::Gauge, &[1.0, 2.0]));
        let [heap, hits] = &charts(&all, 4.0)[..] else { panic!("two names") };
        assert_eq!((heap.id.as_str(), heap.axes[0].unit), ("metric-1", Unit::Bytes));
        assert_eq!(heap.title, "heap_bytes (the largest 4 of 5 series)");
        assert_eq!(heap.lines.last().unwrap().name, "target f=\"x\"");
        assert_eq!(heap.lines[0].y, [Some(1.0), Some(99.0)]);
        assert_eq!(hits.lines[0].y, [Some(2.0), Some(10.0), Some(3.0)]);
        assert_eq!(hits.x, [1.5, 2.5, 3.5]);
    }

    #[test]
    fn absurd_values_are_gaps() {
        let values = [1e300, -1e300, 1e-300, 0.123456789];
        let chart = charts(&samples("x", "a", MetricKind::Gauge, &values), 4.0).remove(0);
        assert_eq!(chart.lines[0].y, [None, None, Some(1e-300), Some(0.123457)]);
        assert!(charts(&samples("x", "a", MetricKind::Counter, &[-1e308, 1e308]), 2.0).is_empty());
    }

    #[test]
    fn long_runs_have_few_points() {
        let values: Vec<f64> = (0..20_000).map(f64::from).collect();
        for kind in [MetricKind::Counter, MetricKind::Gauge] {
            let chart = charts(&samples("x", "a", kind, &values), 20_000.0).remove(0);
            assert!(chart.x.len() <= SECONDS_SHOWN_MAX + 1);
            if kind == MetricKind::Counter {
                assert!(chart.lines[0].y.iter().flatten().all(|y| (y - 1.0).abs() < 1e-6));
            }
        }
    }
}
