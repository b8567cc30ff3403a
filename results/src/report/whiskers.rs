//! Values with their bounds, one below the other: points around zero for differences, bars from
//! zero for costs. Colors are those of the page, or of light paper where there is no page.

use super::escape::xml;
use super::svg::nice;
use crate::stats::Bounds;
use std::fmt::Write as _;

const WIDTH: f64 = 920.0;
const LEFT: f64 = 230.0;
const RIGHT: f64 = 96.0;
const TOP: f64 = 34.0;
const ROW: f64 = 22.0;
const BOTTOM: f64 = 30.0;
/// Thickness of a bar.
const BAR: f64 = 13.0;
/// Whiskers reach no further than so many times the greatest value, or one wild value would hide
/// the others.
const WHISKER_MAX: f64 = 4.0;
/// Ticks of the axis, about.
const TICKS: f64 = 6.0;

/// How a line is colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// An improvement.
    Good,
    /// A regression.
    Bad,
    /// Neither.
    Neutral,
    /// A cost.
    Plain,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// What it is of.
    pub(crate) name: String,
    /// The value.
    pub(crate) value: f64,
    /// Its bounds.
    pub(crate) bounds: Bounds,
    /// Its color.
    pub(crate) tone: Tone,
}

/// What is drawn.
pub(crate) struct Plot<'a> {
    /// Above the lines.
    pub(crate) title: &'a str,
    /// The lines, from top to bottom.
    pub(crate) lines: &'a [Line],
    /// Bars from zero instead of points.
    pub(crate) bars: bool,
    /// The axis shows at least this much to both sides of zero, so that noise does not look like
    /// a finding.
    pub(crate) least: f64,
    /// A value in words.
    pub(crate) words: &'a dyn Fn(f64) -> String,
}

/// The stretch of values that is shown.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn of(plot: &Plot<'_>) -> Axis {
        let most = plot.lines.iter().map(|line| line.value.abs()).fold(plot.least, f64::max);
        let reach = most * WHISKER_MAX;
        let ends =
            plot.lines.iter().flat_map(|line| [line.bounds.low, line.bounds.high, line.value]);
        let ends = ends.filter(|end| end.is_finite()).map(|end| end.clamp(-reach, reach));
        let (low, high) =
            ends.fold((0.0f64, 0.0f64), |(low, high), end| (low.min(end), high.max(end)));
        match plot.bars {
            true => Axis { low: low * 1.05, high: if high > 0.0 { high * 1.05 } else { 1.0 } },
            false => {
                let reach = high.max(-low).max(plot.least) * 1.08;
                Axis { low: -reach, high: reach }
            }
        }
    }

    fn x(&self, value: f64) -> f64 {
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }
}

/// Draws a plot.
pub(crate) fn draw(plot: &Plot<'_>) -> String {
    let axis = Axis::of(plot);
    let height = TOP + ROW * plot.lines.len() as f64 + BOTTOM;
    let title = xml(plot.title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"system-ui,sans-serif\" font-size=\"12.5\"><title>{title}</title>\
         <rect width=\"100%\" height=\"100%\" fill=\"var(--card,#fff)\"/>\
         <text x=\"8\" y=\"18\" font-weight=\"600\" fill=\"var(--ink,#1b2430)\">{title}</text>"
    );
    draw_axis(&mut svg, &axis, height, plot.words);
    for (i, line) in plot.lines.iter().enumerate() {
        draw_line(&mut svg, plot, line, TOP + ROW * (i as f64 + 0.5), &axis);
    }
    svg + "</svg>"
}

fn draw_axis(svg: &mut String, axis: &Axis, height: f64, words: &dyn Fn(f64) -> String) {
    let step = nice((axis.high - axis.low) / TICKS);
    let ticks = (axis.low / step).ceil() as i64..=(axis.high / step).floor() as i64;
    for tick in ticks {
        let (at, bottom) = (axis.x(tick as f64 * step), height - BOTTOM);
        let (color, width) =
            if tick == 0 { ("var(--ink,#1b2430)", 1.2) } else { ("var(--line,#e1e5ea)", 1.0) };
        let _ = write!(
            svg,
            "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"{color}\" stroke-width=\"{width}\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"var(--soft,#5a6675)\">\
             {}</text>",
            bottom + 18.0,
            xml(&words(tick as f64 * step))
        );
    }
}

fn draw_line(svg: &mut String, plot: &Plot<'_>, line: &Line, y: f64, axis: &Axis) {
    let color = match line.tone {
        Tone::Good => "var(--good,#17805c)",
        Tone::Bad => "var(--bad,#bd3139)",
        Tone::Neutral => "var(--soft,#5a6675)",
        Tone::Plain => "var(--c-first,#2f6fd0)",
    };
    let (zero, at, text) = (axis.x(0.0), axis.x(line.value), y + 4.0);
    let name = xml(&line.name);
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{text:.1}\" text-anchor=\"end\" fill=\"var(--ink,#1b2430)\">{name}</text>",
        LEFT - 14.0
    );
    let _ = match plot.bars {
        true => write!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{color}\" opacity=\".75\"/>",
            zero.min(at),
            y - BAR / 2.0,
            (at - zero).abs().max(1.0)
        ),
        false => write!(svg, "<circle cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{color}\"/>"),
    };
    if line.bounds.is_finite() {
        let whisker = if plot.bars { "var(--ink,#1b2430)" } else { color };
        let (low, high) = (axis.x(line.bounds.low), axis.x(line.bounds.high));
        let _ = write!(
            svg,
            "<path d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {0:.1}v6M{high:.1} {0:.1}v6\" \
             stroke=\"{whisker}\" stroke-width=\"1.6\"/>",
            y - 3.0
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{text:.1}\" text-anchor=\"end\" fill=\"{color}\">{}</text>",
        WIDTH - 8.0,
        xml(&(plot.words)(line.value))
    );
}
