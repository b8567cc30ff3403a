//! Charts as values: what to draw, before anybody thinks of pixels. `svg` and the page both draw
//! from these, and a comparison of runs will lay lines of several runs into one of them.

use super::thin::{self, Bins};
use crate::analysis::{Analysis, Reading};
use crate::run::{Buckets, Run, Second};
use crate::summary::Summary;
use model::Measure;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a line stands for; each has a color of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hue {
    /// The main thing shown.
    First,
    /// What is shown beside it.
    Second,
    /// Rare and large.
    Third,
    /// Extreme.
    Fourth,
}

/// Which unit an axis has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    /// A count, or a count a second.
    Count,
    /// Percent of one core.
    Percent,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
    /// Whatever it is in, also far less than one.
    Number,
}

/// A vertical axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Axis {
    /// Its title.
    pub(crate) label: String,
    /// Its unit.
    pub(crate) unit: Unit,
    /// Whether it is logarithmic.
    pub(crate) log: bool,
}

/// One line.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    /// Its name.
    pub(crate) name: String,
    /// Its color.
    pub(crate) hue: Hue,
    /// Index of its axis: 0 left, 1 right.
    pub(crate) axis: usize,
    /// Whether the area below it is tinted.
    pub(crate) area: bool,
    /// Its values, one for each `x` of the chart.
    pub(crate) y: Vec<Option<f64>>,
}

/// A chart over the run's time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    /// Its file name and element id.
    pub(crate) id: String,
    /// Its title.
    pub(crate) title: String,
    /// Seconds.
    pub(crate) x: Vec<f64>,
    /// One or two axes.
    pub(crate) axes: Vec<Axis>,
    /// Its lines, the last one on top.
    pub(crate) lines: Vec<Line>,
}

impl Chart {
    /// Whether there is anything to see.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.y.iter().all(Option::is_none))
    }

    /// Leaves out lines that never leave zero: what a run does not have needs no legend.
    fn without_zeros(mut self) -> Chart {
        self.lines.retain(|line| line.y.iter().flatten().any(|&y| y > 0.0));
        self
    }
}

/// A named stretch of time, shaded.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shade {
    /// From, seconds.
    pub(crate) from: f64,
    /// To, seconds.
    pub(crate) to: f64,
    /// Index of its name, which chooses its tint.
    pub(crate) tint: usize,
}

/// What lies behind every chart: phases, stages, marks.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Backdrop {
    /// Length of the time axis, seconds.
    pub(crate) length: f64,
    /// Names of the tints.
    pub(crate) tints: Vec<String>,
    /// Shaded stretches.
    pub(crate) shades: Vec<Shade>,
    /// Phases that brought people: from, to, name.
    pub(crate) phases: Vec<(f64, f64, String)>,
    /// Marks: at, name.
    pub(crate) marks: Vec<(f64, String)>,
}

impl Backdrop {
    /// Nothing, for pages without charts over time.
    pub(crate) fn none() -> Backdrop {
        let (tints, shades) = (Vec::new(), Vec::new());
        Backdrop { length: 1.0, tints, shades, phases: Vec::new(), marks: Vec::new() }
    }

    /// The backdrop of a run: stages where there are any, phases otherwise.
    pub(crate) fn of(summary: &Summary) -> Backdrop {
        let arrivals: Vec<_> = summary.phases.iter().filter(|phase| phase.arrivals).collect();
        let names = super::table::stage_names(&arrivals);
        let mut shades = Vec::new();
        for phase in &arrivals {
            for stage in &phase.stages {
                let tint = names.iter().position(|name| *name == stage.name).unwrap_or(0);
                shades.push(Shade { from: stage.start_s, to: stage.end_s, tint });
            }
            if names.is_empty() {
                shades.push(Shade { from: phase.start_s, to: phase.end_s, tint: 0 });
            }
        }
        let plain = super::escape::plain;
        let tints = match names.is_empty() && !shades.is_empty() {
            true => vec!["people arrive".to_owned()],
            false => names.iter().map(|name| plain(name)).collect(),
        };
        Backdrop {
            length: summary.seconds.max(1.0),
            tints,
            shades,
            phases: arrivals.iter().map(|p| (p.start_s, p.end_s, plain(&p.name))).collect(),
            marks: summary.marks.iter().map(|mark| (mark.at_s, plain(&mark.name))).collect(),
        }
    }
}

/// An axis that is not logarithmic.
pub(crate) fn axis(label: &str, unit: Unit) -> Axis {
    Axis { label: label.to_owned(), unit, log: false }
}

/// A line.
pub(crate) fn line(name: &str, hue: Hue, axis: usize, area: bool, y: Vec<Option<f64>>) -> Line {
    Line { name: name.to_owned(), hue, axis, area, y }
}

/// All charts but the latencies, in the order of the report.
pub(crate) fn charts(run: &Run, analysis: &Analysis) -> Vec<Chart> {
    let bins = Bins::of(&run.seconds);
    let all = [
        people(&bins),
        load_and_cpu(&bins, &analysis.target),
        processes("target-cpu", "Target: CPU", &analysis.target),
        waiting("target-wait", "Target: waiting for a processor", &analysis.target),
        memory(&analysis.target),
        generator(&bins, &analysis.generator),
        waiting("generator-wait", "Generator: waiting for a processor", &analysis.generator),
        lag(&bins),
        errors(&bins),
    ];
    let metrics = super::metrics::charts(&run.metrics, analysis.summary.seconds);
    all.into_iter().chain(metrics).filter(|chart| !chart.is_empty()).collect()
}

fn people(bins: &Bins) -> Chart {
    let rate = |of: fn(&Second) -> u64| bins.rate(of);
    Chart {
        id: "people".to_owned(),
        title: "People online and deliveries".to_owned(),
        x: bins.x.clone(),
        axes: vec![axis("received per second", Unit::Count), axis("people online", Unit::Count)],
        lines: vec![
            line("people online", Hue::Second, 1, false, bins.last(|s| s.gauges.online)),
            line("deliveries/s", Hue::First, 0, true, rate(|s| s.counters.deliveries)),
            line("announcements/s", Hue::Third, 0, false, rate(|s| s.counters.announcements)),
        ],
    }
    .without_zeros()
}

fn processes(id: &str, title: &str, readings: &[Reading]) -> Chart {
    let (x, y) = thin::extremes(readings, |reading| reading.cpu_percent);
    Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        x,
        axes: vec![axis("% of one core", Unit::Percent)],
        lines: vec![line("CPU", Hue::First, 0, true, y)],
    }
}

/// How long threads were ready without a processor: what others took from them.
fn waiting(id: &str, title: &str, readings: &[Reading]) -> Chart {
    let (x, y) = thin::extremes(readings, |reading| reading.wait_percent);
    Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        x,
        axes: vec![axis("% of the time, threads added up", Unit::Percent)],
        lines: vec![line("waiting", Hue::Third, 0, true, y)],
    }
    .without_zeros()
}

/// What arrives, and what it costs, on one picture.
fn load_and_cpu(bins: &Bins, readings: &[Reading]) -> Chart {
    let received = |second: &Second| second.counters.deliveries + second.counters.announcements;
    let width = bins.x.windows(2).next().map_or(1.0, |pair| pair[1] - pair[0]);
    let cpu = |&x: &f64| {
        let cpu = super::by_load::mean_cpu(readings, x - width / 2.0, x + width / 2.0)?;
        Some((cpu * 10.0).round() / 10.0)
    };
    let mut y: Vec<Option<f64>> = bins.x.iter().map(cpu).collect();
    let load = bins.rate(received);
    if load.iter().flatten().all(|&rate| rate == 0.0) {
        y.clear();
    }
    let is_shown = y.iter().any(Option::is_some);
    Chart {
        id: "load-cpu".to_owned(),
        title: "What was received, and the target's CPU".to_owned(),
        x: bins.x.clone(),
        axes: vec![axis("received per second", Unit::Count), axis("% of one core", Unit::Percent)],
        lines: match is_shown {
            true => vec![
                line("received/s", Hue::Second, 0, true, load),
                line("CPU", Hue::First, 1, false, y),
            ],
            false => Vec::new(),
        },
    }
}

fn memory(readings: &[Reading]) -> Chart {
    let (x, y) = thin::extremes(readings, |reading| reading.rss_bytes as f64);
    Chart {
        id: "target-memory".to_owned(),
        title: "Target: resident memory".to_owned(),
        x,
        axes: vec![axis("resident memory", Unit::Bytes)],
        lines: vec![line("memory", Hue::Second, 0, true, y)],
    }
}

fn generator(_bins: &Bins, readings: &[Reading]) -> Chart {
    processes("generator-cpu", "Generator: its own CPU", readings)
}

fn lag(bins: &Bins) -> Chart {
    let lag = bins.merged(|second| Some(&second.lag));
    Chart {
        id: "generator-lag".to_owned(),
        title: "Generator: how late its timers fired".to_owned(),
        x: bins.x.clone(),
        axes: vec![Axis { label: "lag".to_owned(), unit: Unit::Ms, log: true }],
        lines: percentiles(&lag, &[("p99", 0.99, Hue::Third), ("max", 1.0, Hue::Fourth)]),
    }
}

fn errors(bins: &Bins) -> Chart {
    let failed =
        |second: &Second| second.measures.values().map(|m| m.failed).fold(0, u64::saturating_add);
    let mut y = bins.rate(failed);
    if y.iter().flatten().all(|&rate| rate == 0.0) {
        y.clear();
    }
    Chart {
        id: "errors".to_owned(),
        title: "Failures".to_owned(),
        x: bins.x.clone(),
        axes: vec![axis("failures per second", Unit::Count)],
        lines: vec![line("failures/s", Hue::Fourth, 0, true, y)],
    }
}

/// Which percentiles a latency chart shows.
const PERCENTILES: [(&str, f64, Hue); 4] = [
    ("p50", 0.50, Hue::First),
    ("p90", 0.90, Hue::Second),
    ("p99", 0.99, Hue::Third),
    ("max", 1.0, Hue::Fourth),
];

fn percentiles(histos: &[Buckets], which: &[(&str, f64, Hue)]) -> Vec<Line> {
    let one = |&(name, q, hue): &(&str, f64, Hue)| {
        let value = |h: &Buckets| (!h.is_empty()).then(|| (h.quantile(q) as f64 / 1e6).max(0.001));
        line(name, hue, 0, false, histos.iter().map(value).collect())
    };
    which.iter().rev().map(one).collect()
}

/// Latency over time, by measure: the corrected one and the service time.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Latencies {
    /// Measures in the order in which they are offered: deliveries first.
    pub(crate) measures: Vec<String>,
    /// The corrected latency of each.
    pub(crate) latency: BTreeMap<String, Chart>,
    /// The service time of each.
    pub(crate) service: BTreeMap<String, Chart>,
}

/// The latency charts of all measures.
pub(crate) fn latencies(run: &Run, analysis: &Analysis) -> Latencies {
    let bins = Bins::of(&run.seconds);
    let measured = |m: &&Measure| {
        analysis.total.measures.get(m).is_some_and(|stats| stats.latency.count() > 0)
    };
    let mut measures: Vec<Measure> = Measure::ALL.iter().filter(measured).copied().collect();
    // What arrives without having been asked for is what a crowd is about.
    measures.sort_by_key(|m| (*m != Measure::Delivery, *m != Measure::Announcement));
    let chart = |measure: Measure, title: &str, histos: Vec<Buckets>| Chart {
        id: format!("latency-{}", measure.name()),
        title: format!("{title}: {}", measure.name()),
        x: bins.x.clone(),
        axes: vec![Axis { label: title.to_lowercase(), unit: Unit::Ms, log: true }],
        lines: percentiles(&histos, &PERCENTILES),
    };
    let name = |measure: &Measure| measure.name().to_owned();
    let of = |measure: Measure, service: bool| {
        bins.merged(move |second| {
            let stats = second.measures.get(&measure)?;
            Some(if service { &stats.service } else { &stats.latency })
        })
    };
    Latencies {
        measures: measures.iter().map(name).collect(),
        latency: measures.iter().map(|m| (name(m), chart(*m, "Latency", of(*m, false)))).collect(),
        service: measures
            .iter()
            .map(|m| (name(m), chart(*m, "Service time", of(*m, true))))
            .collect(),
    }
}
