//! A criterion against people: every trial, the limit, and the interval of the answer.

use crate::capacity::continuous::Settled;
use crate::capacity::{Capacity, Curve, Limit, Point};
use crate::report::chart::{Axis, Hue, Unit};
use crate::report::escape::xml;
use crate::report::format::count;
use crate::report::svg::{CHAR, LEFT, Scale, WIDTH, color, open, tick};
use crate::report::table::judged_value;
use crate::summary::{Judged, Outcome};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const HEIGHT: f64 = 330.0;
const TOP: f64 = 86.0;
const BOTTOM: f64 = HEIGHT - 48.0;
const RIGHT: f64 = WIDTH - 24.0;
/// Values more than so many times apart are drawn on a logarithmic axis.
const LOG_FROM: f64 = 30.0;
/// Points drawn with a sign of their own; more are dots.
const SIGNS_MAX: usize = 150;

/// What is drawn.
pub(super) struct Picture<'a> {
    curve: &'a Curve,
    /// The interval of the answer: its ends, with what they mean.
    low: Option<(u32, &'static str)>,
    high: Option<(u32, &'static str)>,
    is_linear: bool,
}

impl<'a> Picture<'a> {
    /// The criterion, as the user wrote it.
    pub(super) fn criterion(&self) -> &str {
        &self.curve.text
    }

    /// One for each criterion of an answer.
    pub(super) fn of(capacity: &'a Capacity) -> Vec<Picture<'a>> {
        let fails = match capacity.limit {
            Limit::Generator(_) => "unfit",
            _ => "fails",
        };
        let picture = |curve| Picture {
            curve,
            low: capacity.people.map(|n| (n, "holds")),
            high: capacity.failed.map(|n| (n, fails)),
            is_linear: false,
        };
        capacity.curves.iter().map(picture).collect()
    }

    /// One for each criterion of what a moving population found out.
    pub(super) fn of_settled(settled: &'a Settled) -> Vec<Picture<'a>> {
        let picture = |curve| Picture {
            curve,
            low: settled.supported.map(|_| (settled.range.0, "fewest")),
            high: settled.supported.map(|_| (settled.range.1, "most")),
            is_linear: true,
        };
        settled.curves.iter().map(picture).collect()
    }
}

/// Where a number of people lies.
struct People {
    low: f64,
    high: f64,
    is_log: bool,
}

impl People {
    fn of(picture: &Picture<'_>) -> People {
        let points = picture.curve.points.iter().map(|point| point.people);
        let ends = [picture.low, picture.high].into_iter().flatten().map(|(n, _)| n);
        let all: Vec<f64> = points.chain(ends).map(f64::from).collect();
        let low = all.iter().copied().fold(f64::MAX, f64::min).max(1.0);
        let high = all.iter().copied().fold(low, f64::max);
        match picture.is_linear {
            true => People { low: 0.0, high: high.max(1.0) * 1.05, is_log: false },
            false => People { low: low / 1.15, high: high * 1.15, is_log: true },
        }
    }

    fn x(&self, n: f64) -> f64 {
        let share = match self.is_log {
            true => (n.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => n / self.high,
        };
        LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// Round numbers with room for their labels.
    fn ticks(&self) -> Vec<f64> {
        if !self.is_log {
            let axis = Axis { label: String::new(), unit: Unit::Count, log: false };
            let ticks = Scale::of(&axis, [self.high].into_iter()).ticks;
            return ticks.into_iter().filter(|&n| n <= self.high).collect();
        }
        let steps: &[f64] = if self.high / self.low.max(1.0) > 300.0 {
            &[1.0]
        } else {
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]
        };
        let all = (0..10).flat_map(|power| steps.iter().map(move |s| s * 10f64.powi(power)));
        let mut ticks: Vec<f64> = Vec::new();
        let mut free = LEFT;
        for value in all.filter(|&n| n >= self.low && n <= self.high && n.fract() == 0.0) {
            let half = count(value as u64).chars().count() as f64 * CHAR / 2.0 + 4.0;
            if self.x(value) - half >= free {
                free = self.x(value) + half;
                ticks.push(value);
            }
        }
        ticks
    }
}

/// Draws one criterion.
pub(super) fn draw(picture: &Picture<'_>) -> String {
    let curve = picture.curve;
    let people = People::of(picture);
    let values = || curve.points.iter().filter_map(|point| point.value).chain([curve.bound]);
    let scale = scale(curve, values);
    let y = |value: f64| BOTTOM - scale.share(value) * (BOTTOM - TOP);
    let mut svg = open(&curve.text, WIDTH, HEIGHT, LEFT) + &legend();
    interval(&mut svg, picture, &people);
    axes(&mut svg, &people, &scale, curve, &y);
    limit(&mut svg, curve, y(curve.bound));
    line(&mut svg, curve, &people, &y);
    let signs = curve.points.len() <= SIGNS_MAX;
    for point in &curve.points {
        if let Some(value) = point.value {
            sign(&mut svg, point, people.x(point.people.into()), y(value), signs);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn unit(curve: &Curve) -> Unit {
    match curve.unit.as_str() {
        "ms" => Unit::Ms,
        "%" => Unit::Percent,
        "B" => Unit::Bytes,
        _ => Unit::Count,
    }
}

fn scale<V: Iterator<Item = f64>>(curve: &Curve, values: impl Fn() -> V) -> Scale {
    let unit = unit(curve);
    let low = values().filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
    let high = values().fold(0.0, f64::max);
    let log = unit == Unit::Ms && high > low * LOG_FROM;
    Scale::of(&Axis { label: String::new(), unit, log }, values())
}

/// The signs, each with its word.
fn legend() -> String {
    let point =
        |outcome, is_hold, is_limited| Point { outcome, is_hold, is_limited, ..Point::default() };
    let signs = [
        (point(Outcome::Kept, false, false), "kept"),
        (point(Outcome::Kept, true, false), "held"),
        (point(Outcome::Broken, false, false), "broken"),
        (point(Outcome::Kept, false, true), "generator unfit"),
    ];
    let mut out = String::new();
    let mut x = LEFT + 5.0;
    for (point, word) in signs {
        sign(&mut out, &point, x, 42.0, true);
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"46\" font-size=\"11\" fill=\"#3c4653\">{word}</text>",
            x + 10.0
        );
        x += 10.0 + word.chars().count() as f64 * CHAR + 16.0;
    }
    out
}

/// One trial: a dot, a ring around it if it lasted, a cross if the criterion was broken.
fn sign(svg: &mut String, point: &Point, x: f64, y: f64, is_large: bool) {
    let tone = match (point.is_limited, point.outcome) {
        (true, _) => "#8a94a3",
        (false, Outcome::Kept) => color(Hue::Second),
        (false, _) => color(Hue::Fourth),
    };
    if !is_large {
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\" fill=\"{tone}\" fill-opacity=\"0.55\"/>"
        );
        return;
    }
    match point.outcome {
        Outcome::Kept => {
            let _ =
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{tone}\"/>");
        }
        _ => {
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\" stroke=\"{tone}\" stroke-width=\"2\"/>",
                x - 4.0,
                y - 4.0
            );
        }
    }
    if point.is_hold {
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" fill=\"none\" stroke=\"{tone}\" \
             stroke-width=\"1.4\"/>"
        );
    }
}

/// From the level that holds to the one that fails.
fn interval(svg: &mut String, picture: &Picture<'_>, people: &People) {
    if let (Some((low, _)), Some((high, _))) = (picture.low, picture.high) {
        let (from, to) = (people.x(low.into()), people.x(high.into()));
        let _ = writeln!(
            svg,
            "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" \
             fill=\"#d98324\" fill-opacity=\"0.16\"/>",
            (to - from).max(1.0),
            BOTTOM - TOP
        );
    }
    for (end, is_low) in [(picture.low, true), (picture.high, false)] {
        let Some((n, word)) = end else { continue };
        let x = people.x(n.into());
        let words = format!("{} {word}", count(n.into()));
        let room = words.chars().count() as f64 * CHAR;
        // The labels stand on both sides, or one above the other at the picture's edge.
        let (is_before, row) = match is_low {
            true if x - room < LEFT => (false, 1.0),
            true => (true, 0.0),
            false if x + room > RIGHT => (true, 1.0),
            false => (false, 0.0),
        };
        let (anchor, apart) = if is_before { ("end", -4.0) } else { ("start", 4.0) };
        let top = TOP - 4.0 - row * 14.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{BOTTOM}\" stroke=\"#b06a16\"/>\
             <text x=\"{:.1}\" y=\"{top}\" text-anchor=\"{anchor}\" font-size=\"11\" \
             font-weight=\"600\" fill=\"#8a520f\">{words}</text>",
            top - 8.0,
            x + apart,
        );
    }
}

fn axes(svg: &mut String, people: &People, scale: &Scale, curve: &Curve, y: &impl Fn(f64) -> f64) {
    for &value in &scale.ticks {
        let at = y(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#1c2430\" \
             stroke-opacity=\"0.12\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#3c4653\">{}</text>",
            LEFT - 7.0,
            at + 4.0,
            xml(&tick(value, unit(curve)))
        );
    }
    for value in people.ticks() {
        let x = people.x(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{BOTTOM}\" y2=\"{}\" stroke=\"#9aa4b1\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#3c4653\">{}</text>",
            BOTTOM + 4.0,
            BOTTOM + 17.0,
            count(value as u64)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" \
         fill=\"#5b6675\">people</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 35.0
    );
}

fn shown(value: f64, curve: &Curve) -> String {
    let unit = curve.unit.clone();
    match value == value.trunc() && unit.is_empty() {
        true => count(value.max(0.0) as u64),
        false => judged_value(&Judged { value: Some(value), unit, ..Judged::default() }),
    }
}

fn limit(svg: &mut String, curve: &Curve, y: f64) {
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{}\" \
         stroke-dasharray=\"6 4\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\" fill=\"{}\">limit {}</text>",
        color(Hue::Fourth),
        LEFT + 6.0,
        y - 4.0,
        color(Hue::Fourth),
        xml(&shown(curve.bound, curve))
    );
}

/// Through the mean of each level's trials.
fn line(svg: &mut String, curve: &Curve, people: &People, y: &impl Fn(f64) -> f64) {
    let mut levels: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    for point in &curve.points {
        if let Some(value) = point.value {
            let level = levels.entry(point.people).or_default();
            (level.0, level.1) = (level.0 + value, level.1 + 1);
        }
    }
    let mut path = String::new();
    for (i, (&n, &(sum, trials))) in levels.iter().enumerate() {
        let (x, y) = (people.x(n.into()), y(sum / f64::from(trials)));
        let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\" \
         stroke-opacity=\"0.7\" stroke-linejoin=\"round\"/>",
        color(Hue::First)
    );
}
