//! Both sides over time in one chart: every second is the mean over a side's runs.

use crate::analysis::Analysis;
use crate::report::chart::{Axis, Chart, Hue, Line, Unit, axis, line};
use crate::run::{Buckets, Run};
use model::Measure;

/// Charts longer than this are cut: their runs have their own reports.
const SECONDS_SHOWN_MAX: usize = 1_200;

/// The overlaid charts of two sides.
pub(super) fn charts(base: &[Run], candidate: &[Run]) -> Vec<Chart> {
    let sides = [("base", base), ("candidate", candidate)];
    let seconds = base.iter().chain(candidate).filter_map(Run::last_second).max();
    let seconds = seconds.map_or(0, |last| last as usize + 1).min(SECONDS_SHOWN_MAX);
    let x: Vec<f64> = (0..seconds).map(|second| second as f64 + 0.5).collect();
    let chart = |id: &str, title: &str, axes: Vec<Axis>, lines: Vec<Line>| Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        x: x.clone(),
        axes,
        lines,
    };
    let ms = Axis { label: "latency".to_owned(), unit: Unit::Ms, log: true };
    let both = |of: &dyn Fn(&[Run]) -> Vec<Option<f64>>| -> Vec<Line> {
        let one = |(name, runs): (&str, &[Run])| line(name, hue(name), 0, false, of(runs));
        sides.into_iter().map(one).collect()
    };
    let all = [
        chart(
            "delivery-p50",
            "Delivery latency, p50",
            vec![ms.clone()],
            both(&|runs| quantile(runs, seconds, 0.5)),
        ),
        chart(
            "delivery-p99",
            "Delivery latency, p99",
            vec![ms],
            both(&|runs| quantile(runs, seconds, 0.99)),
        ),
        chart(
            "target-cpu",
            "Target: CPU",
            vec![axis("% of one core", Unit::Percent)],
            both(&|runs| cpu(runs, seconds)),
        ),
        chart(
            "deliveries",
            "Deliveries",
            vec![axis("received per second", Unit::Count)],
            both(&|runs| deliveries(runs, seconds)),
        ),
    ];
    all.into_iter().filter(|chart| !chart.is_empty()).collect()
}

fn hue(name: &str) -> Hue {
    if name == "base" { Hue::First } else { Hue::Third }
}

/// A quantile of the deliveries of all runs in each second, milliseconds.
fn quantile(runs: &[Run], seconds: usize, q: f64) -> Vec<Option<f64>> {
    let mut merged = vec![Buckets::default(); seconds];
    for second in runs.iter().flat_map(|run| &run.seconds) {
        let Some(slot) = merged.get_mut(second.second as usize) else { continue };
        for measure in [Measure::Delivery, Measure::Announcement] {
            if let Some(stats) = second.measures.get(&measure) {
                slot.merge(&stats.latency);
            }
        }
    }
    let value = |b: &Buckets| (!b.is_empty()).then(|| (b.quantile(q) as f64 / 1e6).max(0.001));
    merged.iter().map(value).collect()
}

fn deliveries(runs: &[Run], seconds: usize) -> Vec<Option<f64>> {
    let of = |run: &Run| {
        let counts = run.seconds.iter();
        let count = |s: &crate::run::Second| s.counters.deliveries + s.counters.announcements;
        counts.map(|s| (f64::from(s.second), count(s) as f64)).collect()
    };
    means(runs.iter().map(of), seconds)
}

fn cpu(runs: &[Run], seconds: usize) -> Vec<Option<f64>> {
    let of = |run: &Run| {
        let readings = Analysis::of(run).target;
        readings.iter().map(|r| ((r.from_s + r.to_s) / 2.0, r.cpu_percent)).collect()
    };
    means(runs.iter().map(of), seconds)
}

/// Means by second of (second, value) points of several runs; two decimals.
fn means(runs: impl Iterator<Item = Vec<(f64, f64)>>, seconds: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0u32); seconds];
    for (at, value) in runs.flatten() {
        if let Some(slot) = sums.get_mut(at.max(0.0) as usize) {
            *slot = (slot.0 + value, slot.1 + 1);
        }
    }
    let mean = |(sum, n): (f64, u32)| (n > 0).then(|| (sum / f64::from(n) * 100.0).round() / 100.0);
    sums.into_iter().map(mean).collect()
}
