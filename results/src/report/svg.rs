//! Charts as SVG files: with a background of their own, so that they can be read on light and on
//! dark pages.

use super::chart::{Axis, Backdrop, Chart, Hue, Line, Unit};
use super::escape::xml;
use super::format::{bytes, duration};
use std::fmt::Write as _;

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 74.0;
const BOTTOM: f64 = 44.0;
/// Right margin, without and with a second axis.
const RIGHT: [f64; 2] = [24.0, 74.0];
/// Top of the plot when there are no marks.
const TOP: f64 = 56.0;
/// Height of the row of phase names, above the plot.
const NAME_ROW: f64 = 14.0;
/// Height of one row of mark labels, above the names.
const MARK_ROW: f64 = 15.0;
/// Rows of mark labels at most; marks beyond have a line but no label.
const MARK_ROWS_MAX: usize = 3;
/// Width of a character of the small labels, roughly.
const CHAR: f64 = 7.0;
/// Marks drawn at most.
const MARKS_MAX: usize = 200;
/// Tints of stages, in the order of their names.
const TINTS: [&str; 6] = ["#4f83cc", "#e0a030", "#58a182", "#9a6fb0", "#c76b6b", "#7a8794"];

/// The color of a line.
pub(crate) fn color(hue: Hue) -> &'static str {
    match hue {
        Hue::First => "#2f6fd0",
        Hue::Second => "#1f9d7a",
        Hue::Third => "#d98324",
        Hue::Fourth => "#c8434a",
    }
}

/// Where things are on the canvas.
struct Frame {
    top: f64,
    /// Height of the row of phase names.
    names: f64,
    right: f64,
    length: f64,
}

impl Frame {
    fn x(&self, s: f64) -> f64 {
        LEFT + (s / self.length).clamp(0.0, 1.0) * (self.right - LEFT)
    }

    fn bottom(&self) -> f64 {
        HEIGHT - BOTTOM
    }
}

/// The range of an axis, and the values of its ticks.
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    pub(super) ticks: Vec<f64>,
}

impl Scale {
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Scale {
        let (mut low, mut high) = (f64::MAX, 0.0f64);
        for value in values {
            low = low.min(value);
            high = high.max(value);
        }
        match axis.log {
            true => Scale::log(low.min(high), high),
            false => Scale::linear(high, axis.unit),
        }
    }

    fn linear(high: f64, unit: Unit) -> Scale {
        let high = if high > 0.0 { high } else { 1.0 };
        let least = if unit == Unit::Count { 1.0 } else { 0.0 };
        let step = nice(high / 5.0).max(least);
        let count = (high / step).ceil().clamp(1.0, 8.0);
        let ticks = (0..=count as u32).map(|i| f64::from(i) * step).collect();
        Scale { low: 0.0, high: count * step, log: false, ticks }
    }

    fn log(low: f64, high: f64) -> Scale {
        let first = low.max(0.001).log10().floor();
        let last = high.max(0.001).log10().ceil().max(first + 1.0);
        let ticks = (first as i32..=last as i32).map(|power| 10f64.powi(power)).collect();
        Scale { low: 10f64.powf(first), high: 10f64.powf(last), log: true, ticks }
    }

    /// Where a value lies, 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => value / self.high,
        };
        share.clamp(0.0, 1.0)
    }
}

/// The next of 1, 2, 2.5, 5, 10 times a power of ten.
pub(crate) fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= value * 0.999);
    step.unwrap_or(10.0) * power
}

pub(super) fn tick(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => super::format::count(value as u64),
        Unit::Percent => format!("{value} %"),
        Unit::Bytes if value == 0.0 => "0".to_owned(),
        Unit::Bytes => trim(bytes(value as u64)),
        Unit::Ms => trim(duration(value)),
        Unit::Number if value == 0.0 || (1e-4..1e7).contains(&value) => {
            trim(format!("{value:.6} ")).trim_end().to_owned()
        }
        Unit::Number => format!("{value:.1e}").replace(".0e", "e"),
    }
}

/// `10.0 ms` is `10 ms` on an axis.
fn trim(text: String) -> String {
    let Some((number, unit)) = text.split_once(' ') else { return text };
    match number.contains('.') {
        true => format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.')),
        false => text,
    }
}

/// The beginning of a chart: its ground, and its title above `left`.
pub(crate) fn open(title: &str, width: f64, height: f64, left: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" font-size=\"12\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n\
         <title>{title}</title>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#ffffff\" \
         stroke=\"#d5dae1\"/>\n\
         <text x=\"{left}\" y=\"26\" font-size=\"15\" font-weight=\"600\" \
         fill=\"#1c2430\">{title}</text>\n",
        width - 1.0,
        height - 1.0,
        title = xml(title)
    )
}

/// Draws a chart.
pub(crate) fn draw(chart: &Chart, backdrop: &Backdrop) -> String {
    let (rows, marks) = mark_rows(backdrop, &chart.axes);
    let right = WIDTH - RIGHT[usize::from(chart.axes.len() > 1)];
    let names = if backdrop.phases.is_empty() { 0.0 } else { NAME_ROW };
    let top = TOP + names + rows as f64 * MARK_ROW;
    let frame = Frame { top, names, right, length: backdrop.length };
    let mut svg = open(&chart.title, WIDTH, HEIGHT, LEFT);
    shades(&mut svg, &frame, backdrop);
    time_axis(&mut svg, &frame);
    for (side, axis) in chart.axes.iter().enumerate() {
        let lines = || chart.lines.iter().filter(move |line| line.axis == side);
        let scale = Scale::of(axis, lines().flat_map(|line| line.y.iter().flatten().copied()));
        value_axis(&mut svg, &frame, axis, &scale, side);
        lines().for_each(|line| curve(&mut svg, &frame, &scale, &chart.x, line));
    }
    draw_marks(&mut svg, &frame, &marks);
    legend(&mut svg, &frame, chart, backdrop);
    svg.push_str("</svg>\n");
    svg
}

fn shades(svg: &mut String, frame: &Frame, backdrop: &Backdrop) {
    for shade in &backdrop.shades {
        let (from, to) = (frame.x(shade.from), frame.x(shade.to));
        let _ = writeln!(
            svg,
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" \
             fill-opacity=\"0.10\"/>",
            frame.top,
            (to - from).max(0.5),
            frame.bottom() - frame.top,
            TINTS[shade.tint % TINTS.len()]
        );
    }
    for (i, (from, _, name)) in backdrop.phases.iter().enumerate() {
        // A name has room until the next phase that brings people.
        let until = backdrop.phases.get(i + 1).map_or(backdrop.length, |next| next.0);
        let room = ((frame.x(until) - frame.x(*from)) / CHAR) as usize;
        let cut: String = match name.chars().count() > room {
            true => name.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
            false => name.clone(),
        };
        if room > 3 {
            let (x, y) = (frame.x(*from) + 3.0, frame.top - 4.0);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"11\" fill=\"#5b6675\">{}</text>",
                xml(&cut)
            );
        }
    }
}

fn time_axis(svg: &mut String, frame: &Frame) {
    let (bottom, minutes) = (frame.bottom(), frame.length > 600.0);
    let unit = if minutes { 60.0 } else { 1.0 };
    let step = match frame.length / unit / 10.0 {
        s if !minutes && s > 45.0 => 60.0,
        s if !minutes && s > 10.0 => 30.0,
        s => nice(s).max(0.5),
    };
    let mut at = 0.0;
    while at * unit <= frame.length * 1.0001 {
        let x = frame.x(at * unit);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{}\" stroke=\"#9aa4b1\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#3c4653\">{at}</text>",
            bottom + 4.0,
            bottom + 17.0
        );
        at += step;
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" \
         fill=\"#5b6675\">{} since the start</text>",
        (LEFT + frame.right) / 2.0,
        bottom + 35.0,
        if minutes { "minutes" } else { "seconds" }
    );
}

fn value_axis(svg: &mut String, frame: &Frame, axis: &Axis, scale: &Scale, side: usize) {
    let (x, anchor) = [(LEFT - 7.0, "end"), (frame.right + 7.0, "start")][side.min(1)];
    for &value in &scale.ticks {
        let y = frame.bottom() - scale.share(value) * (frame.bottom() - frame.top);
        if side == 0 {
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" \
                 stroke=\"#1c2430\" stroke-opacity=\"0.12\"/>",
                frame.right
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"#3c4653\">{}</text>",
            y + 4.0,
            xml(&tick(value, axis.unit))
        );
    }
    let (x, middle) = ([16.0, WIDTH - 8.0][side.min(1)], (frame.top + frame.bottom()) / 2.0);
    let _ = writeln!(
        svg,
        "<text transform=\"translate({x} {middle:.1}) rotate(-90)\" text-anchor=\"middle\" \
         font-size=\"11\" fill=\"#5b6675\">{}</text>",
        xml(&axis.label)
    );
}

/// A line with gaps where there is nothing; a value alone between gaps is a dot.
fn curve(svg: &mut String, frame: &Frame, scale: &Scale, xs: &[f64], line: &Line) {
    let points: Vec<Option<(f64, f64)>> = xs
        .iter()
        .zip(&line.y)
        .map(|(&x, &y)| {
            let share = scale.share(y?);
            Some((frame.x(x), frame.bottom() - share * (frame.bottom() - frame.top)))
        })
        .collect();
    let color = color(line.hue);
    for piece in points.split(Option::is_none).filter(|piece| !piece.is_empty()) {
        let piece: Vec<(f64, f64)> = piece.iter().flatten().copied().collect();
        let (Some(first), Some(last)) = (piece.first(), piece.last()) else { continue };
        if piece.len() == 1 {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"1.6\" fill=\"{color}\"/>",
                first.0, first.1
            );
            continue;
        }
        let mut path = String::new();
        for (i, (x, y)) in piece.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { "L" });
        }
        if line.area {
            let bottom = frame.bottom();
            let _ = writeln!(
                svg,
                "<path d=\"{path}L{:.1} {bottom}L{:.1} {bottom}Z\" fill=\"{color}\" \
                 fill-opacity=\"0.14\"/>",
                last.0, first.0
            );
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.4\" \
             stroke-linejoin=\"round\"/>"
        );
    }
}

/// A mark with the row of its label, if there is room for one.
struct Placed<'a> {
    at: f64,
    name: &'a str,
    row: Option<usize>,
}

/// Gives each mark's label the first row where it overlaps no other; how many rows there are.
fn mark_rows<'a>(backdrop: &'a Backdrop, axes: &[Axis]) -> (usize, Vec<Placed<'a>>) {
    let right = WIDTH - RIGHT[usize::from(axes.len() > 1)];
    let frame = Frame { top: 0.0, names: 0.0, right, length: backdrop.length };
    let mut free = [f64::MIN; MARK_ROWS_MAX];
    let place = |(at, name): &'a (f64, String)| {
        let half = (name.chars().count() as f64 * CHAR + 6.0) / 2.0;
        let x = frame.x(*at);
        let row = free.iter().position(|&edge| edge <= x - half);
        if let Some(row) = row {
            free[row] = x + half;
        }
        Placed { at: *at, name, row }
    };
    let placed: Vec<Placed> = backdrop.marks.iter().take(MARKS_MAX).map(place).collect();
    let rows = placed.iter().filter_map(|mark| mark.row).max().map_or(0, |row| row + 1);
    (rows, placed)
}

fn draw_marks(svg: &mut String, frame: &Frame, marks: &[Placed]) {
    for mark in marks {
        let x = frame.x(mark.at);
        let label_y = mark.row.map(|row| frame.top - frame.names - 4.0 - row as f64 * MARK_ROW);
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#8a5a9e\" \
             stroke-dasharray=\"3 3\" stroke-opacity=\"0.8\"/>",
            label_y.map_or(frame.top, |y| y + 2.0),
            frame.bottom()
        );
        if let Some(y) = label_y {
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" font-size=\"11\" \
                 font-weight=\"600\" fill=\"#6d3f83\">{}</text>",
                xml(mark.name)
            );
        }
    }
}

/// Names of lines, then of tints, in one row under the title.
fn legend(svg: &mut String, frame: &Frame, chart: &Chart, backdrop: &Backdrop) {
    let mut x = LEFT;
    let lines = chart.lines.iter().rev().map(|line| (line.name.as_str(), color(line.hue), 1.0));
    let tints = backdrop.tints.iter().enumerate();
    let tints = tints.map(|(i, name)| (name.as_str(), TINTS[i % TINTS.len()], 0.3));
    for (name, color, opacity) in lines.chain(tints) {
        let width = 20.0 + name.chars().count() as f64 * CHAR + 12.0;
        if x + width > frame.right {
            break;
        }
        let height = if opacity < 1.0 { 10.0 } else { 3.0 };
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"{height}\" rx=\"1.5\" \
             fill=\"{color}\" fill-opacity=\"{opacity}\"/>\
             <text x=\"{:.1}\" y=\"46\" font-size=\"11\" fill=\"#3c4653\">{}</text>",
            42.0 - height / 2.0,
            x + 20.0,
            xml(name)
        );
        x += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let axis = |unit, log| Axis { label: String::new(), unit, log };
        let ticks = |axis: &Axis, values: &[f64]| {
            let scale = Scale::of(axis, values.iter().copied());
            scale.ticks.iter().map(|&value| tick(value, axis.unit)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks(&axis(Unit::Percent, false), &[105.0]), "0 % 25 % 50 % 75 % 100 % 125 %");
        assert_eq!(ticks(&axis(Unit::Count, false), &[3.0]), "0 1 2 3");
        assert_eq!(ticks(&axis(Unit::Count, false), &[]), "0 1");
        assert_eq!(
            ticks(&axis(Unit::Ms, true), &[0.5, 1_200.0]),
            "100 µs 1 ms 10 ms 100 ms 1 s 10 s"
        );
        assert_eq!(ticks(&axis(Unit::Bytes, false), &[56e6]), "0 20 MB 40 MB 60 MB");
        assert_eq!(ticks(&axis(Unit::Number, false), &[0.0042]), "0 0.001 0.002 0.003 0.004 0.005");
        assert_eq!(ticks(&axis(Unit::Number, false), &[42.0]), "0 10 20 30 40 50");
        assert_eq!(ticks(&axis(Unit::Number, false), &[4e-9]), "0 1e-9 2e-9 3e-9 4e-9");
    }

    #[test]
    fn labels_of_marks_never_overlap() {
        let backdrop = Backdrop {
            length: 100.0,
            tints: Vec::new(),
            shades: Vec::new(),
            phases: Vec::new(),
            marks: (0..60).map(|i| (f64::from(i) * 1.5, format!("T{i}"))).collect(),
        };
        let (rows, placed) = mark_rows(&backdrop, &[]);
        assert!((1..=MARK_ROWS_MAX).contains(&rows));
        for row in 0..rows {
            let labels: Vec<_> = placed.iter().filter(|mark| mark.row == Some(row)).collect();
            for pair in labels.windows(2) {
                let apart = (pair[1].at - pair[0].at) / 100.0 * (WIDTH - RIGHT[0] - LEFT);
                let width = (pair[0].name.len() + pair[1].name.len()) as f64 / 2.0 * CHAR;
                assert!(apart >= width, "{} {}", pair[0].name, pair[1].name);
            }
        }
    }
}
