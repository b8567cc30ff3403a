//! The chart of a sweep: the runs as dots, the law as a line, its 95 % band behind it.

use super::Growth;
use super::unit::plain_size;
use super::words::verdict;
use crate::laws::{Fit, Laws};
use crate::report::chart::Hue;
use crate::report::escape::xml;
use crate::report::svg::{color, nice, open};
use std::fmt::Write as _;

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 890.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 350.0;
/// Places at which the curve is computed.
const STEPS: u32 = 80;
/// Dots drawn at most.
const DOTS_MAX: usize = 3_000;
/// Ticks of a logarithmic axis with more decades stand at every second, third… decade.
const DECADES_MAX: i32 = 8;

/// An axis: its range, and where its ticks are.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<f64>,
}

impl Axis {
    fn linear(high: f64) -> Axis {
        let high = if high > 0.0 && high.is_finite() { high } else { 1.0 };
        let step = nice(high / 6.0);
        let count = (high / step).ceil().max(1.0);
        let ticks = (0..=count as u32).map(|i| f64::from(i) * step).collect();
        Axis { low: 0.0, high: count * step, log: false, ticks }
    }

    /// Ends a little behind the last value rather than at the next tick.
    fn until(mut self, last: f64) -> Axis {
        self.high = self.high.min(last * 1.02);
        self.ticks.retain(|tick| *tick <= self.high);
        self
    }

    fn log(low: f64, high: f64) -> Axis {
        let first = low.max(f64::MIN_POSITIVE).log10().floor() as i32;
        let last = (high.max(f64::MIN_POSITIVE).log10().ceil() as i32).max(first + 1);
        let step = ((last - first) / DECADES_MAX).max(0) as usize + 1;
        let ticks = (first..=last).step_by(step).map(|power| 10f64.powi(power)).collect();
        Axis { low: 10f64.powi(first), high: 10f64.powi(last), log: true, ticks }
    }

    /// Where a value lies, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.share(value) * (RIGHT - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - self.share(value) * (BOTTOM - TOP)
    }
}

/// Whether the sizes were chosen by factors rather than by steps: which mean is the median nearer?
fn by_factors(sizes: &[f64]) -> bool {
    let (Some(&low), Some(&high)) = (sizes.first(), sizes.last()) else { return false };
    let median = sizes[sizes.len() / 2];
    low > 0.0
        && ((low * high).sqrt() / median).ln().abs()
            < (f64::midpoint(low, high) / median).ln().abs()
}

pub(super) fn draw(growth: &Growth, laws: &Laws, parameter: &str) -> String {
    let sizes: Vec<f64> = growth.rows.iter().map(|row| row.values[0]).collect();
    let (low, high) = (sizes[0], sizes[sizes.len() - 1]);
    let log = by_factors(&sizes);
    let fit = laws.best();
    let places: Vec<f64> = (0..=STEPS)
        .map(|i| f64::from(i) / f64::from(STEPS))
        .map(|at| if log { low * (high / low).powf(at) } else { low + (high - low) * at })
        .filter(|&n| n > 0.0)
        .collect();
    let curve: Vec<Place> = fit.map(|fit| curve(fit, &places)).unwrap_or_default();
    let costs = growth.points.iter().map(|point| point.cost);
    let seen = || costs.clone().chain(curve.iter().flat_map(|place| [place.low, place.high]));
    let most = seen().fold(0.0, f64::max);
    let least = seen().filter(|&cost| cost > 0.0).fold(f64::MAX, f64::min).min(most);
    let (x, y) = match log {
        true => (Axis::log(low, high), Axis::log(least, most)),
        false => (Axis::linear(high).until(high), Axis::linear(most)),
    };
    let mut svg = open(&format!("{} by {parameter}", growth.name), WIDTH, HEIGHT, LEFT);
    axes(&mut svg, growth, &x, &y, parameter);
    if fit.is_some() {
        draw_curve(&mut svg, &curve, &x, &y);
    }
    for point in growth.points.iter().take(DOTS_MAX) {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{}\" fill-opacity=\"0.75\"/>",
            x.x(point.n),
            y.y(point.cost),
            color(Hue::First)
        );
    }
    legend(&mut svg, laws);
    svg.push_str("</svg>\n");
    svg
}

/// The law at a size, with its band.
struct Place {
    n: f64,
    cost: f64,
    low: f64,
    high: f64,
}

fn curve(fit: &Fit, places: &[f64]) -> Vec<Place> {
    let place = |&n: &f64| {
        let band = fit.band(n);
        let cost = fit.cost(n);
        let known = band.is_finite();
        let (low, high) = if known { (band.low, band.high) } else { (cost, cost) };
        Place { n, cost, low, high }
    };
    places.iter().map(place).filter(|place| place.cost.is_finite()).collect()
}

fn draw_curve(svg: &mut String, curve: &[Place], x: &Axis, y: &Axis) {
    let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let mut path = String::new();
        for (i, (n, cost)) in points.enumerate() {
            let _ =
                write!(path, "{}{:.1} {:.1}", if i == 0 { "M" } else { "L" }, x.x(n), y.y(cost));
        }
        path
    };
    let up = curve.iter().map(|place| (place.n, place.high));
    let back = curve.iter().rev().map(|place| (place.n, place.low));
    let tint = color(Hue::Third);
    let _ = writeln!(
        svg,
        "<path d=\"{}Z\" fill=\"{tint}\" fill-opacity=\"0.22\"/>\n\
         <path d=\"{}\" fill=\"none\" stroke=\"{tint}\" stroke-width=\"1.6\"/>",
        path(&mut up.chain(back)),
        path(&mut curve.iter().map(|place| (place.n, place.cost)))
    );
}

fn axes(svg: &mut String, growth: &Growth, x: &Axis, y: &Axis, parameter: &str) {
    for &value in &y.ticks {
        let at = y.y(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#1c2430\" \
             stroke-opacity=\"0.12\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" \
             fill=\"#3c4653\">{}</text>",
            LEFT - 7.0,
            at + 4.0,
            xml(&tick(growth, value))
        );
    }
    for &value in &x.ticks {
        let at = x.x(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{BOTTOM}\" y2=\"{}\" stroke=\"#9aa4b1\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#3c4653\">{}</text>",
            BOTTOM + 4.0,
            BOTTOM + 17.0,
            xml(&plain_size(value))
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" \
         fill=\"#5b6675\">{}</text>",
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 36.0,
        xml(parameter)
    );
}

/// `0` has no unit, and round numbers have no zeros behind the point.
fn tick(growth: &Growth, value: f64) -> String {
    let text = growth.unit.show(value);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    match (value == 0.0, number.contains('.') && !number.contains('e')) {
        (true, _) => "0".to_owned(),
        (_, true) => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}").trim_end().to_owned()
        }
        _ => text,
    }
}

fn legend(svg: &mut String, laws: &Laws) {
    let (dot, tint) = (color(Hue::First), color(Hue::Third));
    let _ = writeln!(
        svg,
        "<circle cx=\"{:.1}\" cy=\"42\" r=\"3\" fill=\"{dot}\"/>\
         <text x=\"{:.1}\" y=\"46\" font-size=\"11\" fill=\"#3c4653\">runs</text>\
         <rect x=\"{:.1}\" y=\"40.5\" width=\"14\" height=\"3\" rx=\"1.5\" fill=\"{tint}\"/>\
         <text x=\"{:.1}\" y=\"46\" font-size=\"11\" fill=\"#3c4653\">{}</text>",
        LEFT + 4.0,
        LEFT + 12.0,
        LEFT + 50.0,
        LEFT + 70.0,
        xml(&verdict(laws))
    );
}
