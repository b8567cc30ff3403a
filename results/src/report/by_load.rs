//! Pictures of what load does to a target: CPU and latency over deliveries, both over people, and
//! latency in ten equal steps of load.

use super::chart::{Axis, Hue, Unit};
use super::escape::xml;
use super::page::Picture;
use super::svg::{Scale, color, open, tick};
use crate::analysis::{Analysis, Reading};
use crate::run::{Buckets, Run, Second};
use model::Measure;
use std::fmt::Write as _;

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 846.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 308.0;
/// Points drawn at most; seconds of longer runs are taken together.
const POINTS_MAX: usize = 1_500;
/// With fewer points there is nothing to see.
const POINTS_MIN: usize = 8;
/// Steps of load, as many as the published picture has.
const STEPS: usize = 10;
/// What a box shows: its whiskers, its sides, its middle.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.50, 0.75, 0.95];

/// Some seconds taken together.
#[derive(Clone, Debug, Default, PartialEq)]
struct Point {
    /// Deliveries and announcements a second.
    load: f64,
    /// People online.
    people: f64,
    /// Percent of one core.
    cpu: Option<f64>,
    latency: Buckets,
}

/// The pictures, as far as there is anything to see.
pub(crate) fn pictures(run: &Run, analysis: &Analysis) -> Vec<Picture> {
    let measure = measured(run);
    let points = points(&run.seconds, &analysis.target, measure);
    let busy: Vec<&Point> = points.iter().filter(|point| point.load > 0.0).collect();
    if busy.len() < POINTS_MIN {
        return Vec::new();
    }
    let named = |text: &str| text.replace("latency", &format!("{} latency", measure.name()));
    let middle = |point: &Point| {
        (!point.latency.is_empty()).then(|| point.latency.quantile(0.5) as f64 / 1e6)
    };
    let mut all = Vec::new();
    if busy.iter().filter(|point| point.cpu.is_some()).count() >= POINTS_MIN {
        all.push(scatter(
            ("cpu-by-load", &named("Target: CPU and latency by load")),
            ("received per second", &|point| point.load),
            &busy,
            [
                ("CPU", axis("% of one core", Unit::Percent, false), Hue::First, &|p| p.cpu),
                ("latency, median", axis("latency", Unit::Ms, true), Hue::Third, &middle),
            ],
        ));
        all.push(scatter(
            ("cpu-by-people", "Deliveries and CPU by people online"),
            ("people online", &|point| point.people),
            &busy,
            [
                (
                    "received/s",
                    axis("received per second", Unit::Count, false),
                    Hue::Second,
                    &|p| Some(p.load),
                ),
                ("CPU", axis("% of one core", Unit::Percent, false), Hue::First, &|p| p.cpu),
            ],
        ));
    }
    all.extend(boxes(&busy, &named("Target: latency by load")));
    all
}

/// Whose latency is shown: that of questions on the same way, if somebody asks them.
fn measured(run: &Run) -> Measure {
    let has = |measure: &Measure| {
        let mut seconds = run.seconds.iter();
        seconds.any(|s| s.measures.get(measure).is_some_and(|m| !m.latency.is_empty()))
    };
    let order = [Measure::Ping, Measure::Delivery, Measure::Announcement];
    order.into_iter().find(has).unwrap_or(Measure::Delivery)
}

fn axis(label: &str, unit: Unit, log: bool) -> Axis {
    Axis { label: label.to_owned(), unit, log }
}

fn points(seconds: &[Second], readings: &[Reading], measure: Measure) -> Vec<Point> {
    let group = seconds.len().div_ceil(POINTS_MAX).max(1);
    let point = |seconds: &[Second]| {
        let (Some(first), Some(last)) = (seconds.first(), seconds.last()) else {
            return Point::default();
        };
        let (from, to) = (f64::from(first.second), f64::from(last.second) + 1.0);
        let count = seconds.len() as f64;
        let received = |s: &Second| (s.counters.deliveries + s.counters.announcements) as f64;
        let mut latency = Buckets::default();
        for stats in seconds.iter().filter_map(|s| s.measures.get(&measure)) {
            latency.merge(&stats.latency);
        }
        Point {
            load: seconds.iter().map(received).sum::<f64>() / count,
            people: seconds.iter().map(|s| s.gauges.online as f64).sum::<f64>() / count,
            cpu: mean_cpu(readings, from, to),
            latency,
        }
    };
    seconds.chunks(group).map(point).collect()
}

/// The CPU between two instants, from readings that overlap them.
pub(super) fn mean_cpu(readings: &[Reading], from: f64, to: f64) -> Option<f64> {
    let start = readings.partition_point(|reading| reading.to_s <= from);
    let (mut sum, mut time) = (0.0, 0.0);
    for reading in readings[start..].iter().take_while(|reading| reading.from_s < to) {
        let overlap = reading.to_s.min(to) - reading.from_s.max(from);
        sum += reading.cpu_percent * overlap.max(0.0);
        time += overlap.max(0.0);
    }
    (time > 0.0).then(|| sum / time)
}

type Value<'a> = &'a dyn Fn(&Point) -> Option<f64>;

fn scatter(
    (id, title): (&str, &str),
    (label, x): (&str, &dyn Fn(&Point) -> f64),
    points: &[&Point],
    sides: [(&str, Axis, Hue, Value<'_>); 2],
) -> Picture {
    let bottom = axis(label, Unit::Count, false);
    let across = Scale::of(&bottom, points.iter().map(|point| x(point)));
    let mut svg = open(title, WIDTH, HEIGHT, LEFT);
    x_axis(&mut svg, label, &across);
    for (side, (name, axis, hue, value)) in sides.iter().enumerate() {
        let up = Scale::of(axis, points.iter().filter_map(|point| value(point)));
        y_axis(&mut svg, axis, &up, side);
        for point in points {
            let Some(y) = value(point) else { continue };
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\" fill=\"{}\" fill-opacity=\"0.55\"/>",
                at_x(&across, x(point)),
                at_y(&up, y),
                color(*hue)
            );
        }
        let place = LEFT + side as f64 * 190.0;
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"42\" r=\"4\" fill=\"{}\"/>\
             <text x=\"{:.1}\" y=\"46\" font-size=\"11\" fill=\"#3c4653\">{} ({})</text>",
            place + 6.0,
            color(*hue),
            place + 16.0,
            xml(name),
            if side == 0 { "left" } else { "right" }
        );
    }
    svg.push_str("</svg>\n");
    Picture { id: id.to_owned(), title: title.to_owned(), svg }
}

/// Latency in equal steps of load; `None` if all of it lies in one.
fn boxes(points: &[&Point], title: &str) -> Option<Picture> {
    let top = points.iter().map(|point| point.load).fold(0.0, f64::max);
    let mut steps: Vec<Buckets> = vec![Buckets::default(); STEPS];
    for point in points {
        let step = (point.load / top * STEPS as f64) as usize;
        steps[step.min(STEPS - 1)].merge(&point.latency);
    }
    if steps.iter().filter(|step| !step.is_empty()).count() < 2 {
        return None;
    }
    let ms = |step: &Buckets, q: f64| step.quantile(q) as f64 / 1e6;
    let all = steps.iter().filter(|step| !step.is_empty());
    let values = all.flat_map(|step| QUANTILES.map(|q| ms(step, q)));
    let axis = axis("latency", Unit::Ms, true);
    let up = Scale::of(&axis, values);
    let mut svg = open(title, WIDTH, HEIGHT, LEFT);
    y_axis(&mut svg, &axis, &up, 0);
    let width = (RIGHT - LEFT) / STEPS as f64;
    for (i, step) in steps.iter().enumerate() {
        let (x, load) = (LEFT + (i as f64 + 0.5) * width, |n: f64| top / STEPS as f64 * n);
        let label = match top < 100.0 {
            true => format!("{:.1}–{:.1}", load(i as f64), load(i as f64 + 1.0)),
            false => format!("{:.0}–{:.0}", load(i as f64), load(i as f64 + 1.0)),
        };
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" \
             fill=\"#3c4653\">{label}</text>",
            BOTTOM + 16.0
        );
        if !step.is_empty() {
            one_box(&mut svg, x, width, QUANTILES.map(|q| at_y(&up, ms(step, q))));
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\" \
                 fill=\"#5b6675\">{}</text>",
                TOP - 4.0,
                super::format::count(step.count())
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" \
         fill=\"#5b6675\">received per second, in ten equal steps (above: how many answers; \
         boxes: p25, p50, p75; whiskers: p5, p95)</text></svg>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 38.0
    );
    Some(Picture { id: "latency-by-load".to_owned(), title: title.to_owned(), svg })
}

/// A box with its whiskers; `y` are the places of [`QUANTILES`].
fn one_box(svg: &mut String, x: f64, width: f64, y: [f64; 5]) {
    let (half, stroke) = (width * 0.27, color(Hue::First));
    let _ = writeln!(
        svg,
        "<path d=\"M{x:.1} {:.1}V{:.1}M{x:.1} {:.1}V{:.1}M{a:.1} {:.1}H{b:.1}M{a:.1} {:.1}H{b:.1}\" \
         stroke=\"{stroke}\" fill=\"none\"/>\
         <rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" stroke=\"{stroke}\" \
         fill=\"{stroke}\" fill-opacity=\"0.15\"/>\
         <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{m:.1}\" y2=\"{m:.1}\" stroke=\"{}\" \
         stroke-width=\"2\"/>",
        y[0],
        y[1],
        y[3],
        y[4],
        y[0],
        y[4],
        x - half,
        y[3],
        2.0 * half,
        (y[1] - y[3]).max(0.5),
        x - half,
        x + half,
        color(Hue::Third),
        a = x - half / 2.0,
        b = x + half / 2.0,
        m = y[2],
    );
}

fn at_x(scale: &Scale, value: f64) -> f64 {
    LEFT + scale.share(value) * (RIGHT - LEFT)
}

fn at_y(scale: &Scale, value: f64) -> f64 {
    BOTTOM - scale.share(value) * (BOTTOM - TOP)
}

fn x_axis(svg: &mut String, label: &str, scale: &Scale) {
    for &value in &scale.ticks {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#3c4653\">{}</text>",
            at_x(scale, value),
            BOTTOM + 17.0,
            xml(&tick(value, Unit::Count))
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" \
         fill=\"#5b6675\">{}</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 38.0,
        xml(label)
    );
}

fn y_axis(svg: &mut String, axis: &Axis, scale: &Scale, side: usize) {
    let (x, anchor) = [(LEFT - 7.0, "end"), (RIGHT + 7.0, "start")][side.min(1)];
    for &value in &scale.ticks {
        let y = at_y(scale, value);
        if side == 0 {
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" \
                 stroke=\"#1c2430\" stroke-opacity=\"0.12\"/>"
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"#3c4653\">{}</text>",
            y + 4.0,
            xml(&tick(value, axis.unit))
        );
    }
    let (x, middle) = ([16.0, WIDTH - 8.0][side.min(1)], (TOP + BOTTOM) / 2.0);
    let _ = writeln!(
        svg,
        "<text transform=\"translate({x} {middle:.1}) rotate(-90)\" text-anchor=\"middle\" \
         font-size=\"11\" fill=\"#5b6675\">{}</text>",
        xml(&axis.label)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Histo;

    fn reading(from_s: f64, to_s: f64, cpu_percent: f64) -> Reading {
        Reading { from_s, to_s, cpu_percent, ..Reading::default() }
    }

    #[test]
    fn cpu_is_weighted_by_time() {
        let readings = [reading(0.0, 0.5, 10.0), reading(0.5, 1.5, 30.0), reading(1.5, 2.0, 50.0)];
        assert_eq!(mean_cpu(&readings, 0.0, 1.0), Some(20.0));
        assert_eq!(mean_cpu(&readings, 1.0, 2.0), Some(40.0));
        assert_eq!(mean_cpu(&readings, 2.0, 3.0), None);
    }

    #[test]
    fn boxes_need_more_than_one_step() {
        let point = |load: f64, ms: u64| {
            let mut histo = Histo::default();
            histo.record_n(ms * 1_000_000, 3);
            Point { load, people: 1.0, cpu: Some(1.0), latency: Buckets::from(&histo) }
        };
        let (low, high) = (point(5.0, 2), point(100.0, 40));
        assert!(boxes(&[&low, &low], "t").is_none());
        let picture = boxes(&[&low, &high], "t").unwrap();
        assert_eq!(picture.svg.matches("<rect x=\"").count(), 1 + 2, "{}", picture.svg);
        assert!(picture.svg.contains("90–100"));
    }
}
