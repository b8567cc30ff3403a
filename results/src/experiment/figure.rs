//! Figures: what one run of an experiment amounts to, one number each. Runs are compared figure
//! by figure; the run is the unit, never the second or the message.

use crate::analysis::{Analysis, Processes, ratio};
use crate::run::{Buckets, Run, Second};
use crate::stats;
use crate::summary::{PhaseRow, Usage};
use model::Measure;
use serde::{Deserialize, Serialize};

/// Fewest durations from which a percentile is worth a row.
const DURATIONS_MIN: u64 = 20;
/// Fewest durations from which a 99th percentile says anything.
const TAIL_MIN: u64 = 500;

/// Which way is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Smaller is better.
    #[default]
    Less,
    /// Greater is better.
    More,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Seconds of CPU.
    CpuSeconds,
    /// Bytes.
    Bytes,
    /// A count.
    #[default]
    Count,
}

/// One number of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name, as in `delivery p99`.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Its value, in its unit.
    pub value: f64,
}

fn figure(name: impl Into<String>, unit: Unit, value: f64) -> Figure {
    Figure { name: name.into(), unit, better: Better::Less, value }
}

/// Where the warm-up of a run ends, seconds since its epoch: MSER-5 over the mean latency of
/// deliveries in each second that had any (docs/statistics.md). Zero if no steady state was found,
/// or nothing was delivered.
pub fn warm_up_s(run: &Run) -> f64 {
    let delivery = |second: &&Second| second.measures.contains_key(&Measure::Delivery);
    let seconds: Vec<&Second> = run.seconds.iter().filter(delivery).collect();
    let mean = |second: &&Second| second.measures[&Measure::Delivery].latency.mean_ns();
    let means: Vec<f64> = seconds.iter().map(mean).collect();
    let cut = stats::mser5(&means).and_then(|cut| seconds.get(cut));
    cut.map_or(0.0, |second| f64::from(second.second))
}

/// The figures of a run. Those of deliveries begin at `from_s` (behind the warm-up); people come
/// in once, so everything else is of the whole run.
pub fn figures(run: &Run, from_s: f64) -> Vec<Figure> {
    figures_of(run, from_s, true)
}

/// As [`figures`], but deliveries are of messages alone: for servers of which some announce who
/// comes and goes in words that cannot be counted.
pub fn message_figures(run: &Run, from_s: f64) -> Vec<Figure> {
    figures_of(run, from_s, false)
}

fn figures_of(run: &Run, from_s: f64, is_with_announcements: bool) -> Vec<Figure> {
    let analysis = Analysis::of(run);
    let mut all = deliveries(run, from_s, is_with_announcements);
    for (&measure, stats) in &analysis.total.measures {
        let n = stats.latency.count();
        let is_delivery = matches!(measure, Measure::Delivery | Measure::Announcement);
        if !is_delivery && n >= DURATIONS_MIN {
            let ms = |q| stats.latency.quantile(q) as f64 / 1e6;
            all.push(figure(format!("{} p50", measure.name()), Unit::Ms, ms(0.5)));
            if n >= TAIL_MIN {
                all.push(figure(format!("{} p99", measure.name()), Unit::Ms, ms(0.99)));
            }
        }
    }
    all.extend(costs(&analysis, is_with_announcements));
    all
}

fn deliveries(run: &Run, from_s: f64, is_with_announcements: bool) -> Vec<Figure> {
    let measures = [Measure::Delivery, Measure::Announcement];
    let measures = if is_with_announcements { &measures[..] } else { &measures[..1] };
    let steady: Vec<&Second> =
        run.seconds.iter().filter(|second| f64::from(second.second) >= from_s).collect();
    let mut latency = Buckets::default();
    for second in &steady {
        for measure in measures {
            if let Some(stats) = second.measures.get(measure) {
                latency.merge(&stats.latency);
            }
        }
    }
    let announced = u64::from(is_with_announcements);
    let received =
        |second: &&Second| second.counters.deliveries + announced * second.counters.announcements;
    let received: u64 = steady.iter().map(received).sum();
    let mut all = Vec::new();
    if latency.count() >= DURATIONS_MIN {
        let quantiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
        let shown = if latency.count() >= TAIL_MIN { 3 } else { 2 };
        all.extend(quantiles.iter().take(shown).map(|&(name, q)| {
            figure(format!("delivery {name}"), Unit::Ms, latency.quantile(q) as f64 / 1e6)
        }));
    }
    let end_s = run.last_second().map_or(0.0, |second| f64::from(second) + 1.0);
    let target = Processes::of(&run.probes, |sample| &sample.target).usage(from_s, end_s);
    if let Some(usage) = target.filter(|_| received > 0) {
        let each = usage.cpu_s / received as f64;
        all.push(figure("target CPU per delivery", Unit::CpuSeconds, each));
    }
    all
}

fn costs(analysis: &Analysis, is_with_announcements: bool) -> Vec<Figure> {
    let summary = &analysis.summary;
    let mut all = Vec::new();
    if let Some(usage) = &summary.target_usage {
        all.push(figure("target CPU", Unit::CpuSeconds, usage.cpu_s));
        all.push(figure("target memory, most", Unit::Bytes, usage.rss_peak_bytes as f64));
    }
    if let Some(each) = &summary.memory_per_person {
        all.push(figure("target memory per person", Unit::Bytes, each.peak_bytes as f64));
    }
    let announced = u64::from(is_with_announcements) * summary.ledger.announcements_received;
    let received = (summary.ledger.received + announced) as f64;
    if received > 0.0 {
        let each = ratio(summary.rates.bytes_in as f64, received);
        all.push(figure("bytes received per delivery", Unit::Bytes, each));
    }
    let errors = summary.errors.iter().map(|row| row.count).sum::<u64>();
    let ledger = &summary.ledger;
    for (name, value) in [
        ("errors", errors),
        ("lost", ledger.lost + ledger.announcements_lost),
        ("duplicate", ledger.duplicate + ledger.announcements_duplicate),
        ("out of order", ledger.misordered),
    ] {
        all.push(figure(name, Unit::Count, value as f64));
    }
    all
}

/// What each phase that brought people cost the target: while it lasted, and in each stage of its
/// people's journey.
pub fn phase_figures(analysis: &Analysis) -> Vec<Figure> {
    let arrivals = analysis.summary.phases.iter().filter(|phase| phase.arrivals);
    arrivals.flat_map(of_phase).collect()
}

fn of_phase(phase: &PhaseRow) -> Vec<Figure> {
    let mut all = Vec::new();
    let mut put = |name: String, usage: &Option<Usage>| {
        if let Some(usage) = usage {
            all.push(figure(name, Unit::CpuSeconds, usage.cpu_s));
        }
    };
    put(phase.name.clone(), &phase.target);
    for stage in &phase.stages {
        put(format!("{}, {}", phase.name, stage.name), &stage.target);
    }
    all
}

#[cfg(test)]
#[path = "figure_tests.rs"]
mod tests;
