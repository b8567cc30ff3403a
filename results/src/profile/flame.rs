//! Flame graphs as SVG for a page: as wide as the page allows, in its colors, zoomed by a script.

use super::diff::{SIGMAS_COLOR, sigmas};
use super::shown;
use super::stacks::Profile;
use super::tree::{Node, Tree, Weights};
use crate::report::escape::xml;
use crate::report::format::{count, percent};
use std::fmt::Write as _;

/// Height of a row, pixels.
const ROW: usize = 18;
/// Narrowest function drawn, percent of the whole.
const WIDTH_MIN: f64 = 0.1;
/// Narrowest function with its name in it, percent of the whole.
const NAMED_MIN: f64 = 1.2;
/// Most functions drawn: the narrowest are left out.
const FRAMES_MAX: usize = 2_000;
/// Hues of functions, those of the kernel apart.
const HUES: u32 = 6;
/// Steps of color on either side of no change.
const STEPS: f64 = 4.0;
/// Change of a function's share from which its color is the strongest, percent of the whole.
const CHANGE_FULL: f64 = 8.0;

/// A function as it is drawn: percent of the whole, rows from the bottom.
struct Frame<'t, 'a> {
    node: &'t Node<'a>,
    left: f64,
    width: f64,
    depth: usize,
}

/// The flame graph of a profile: the width of a function is its share of the time, callers are
/// below. To be put into a page that has the style (and the script) of this module.
pub fn flame(profile: &Profile) -> String {
    let tree = Tree::of([&[profile], &[]]);
    let total = tree.total()[0];
    let words = |frame: &Frame<'_, '_>| {
        let seen = count(frame.node.total[0] as u64);
        (
            format!("h{}", hue(frame.node.name)),
            format!("{}, seen {seen} times", percent(frame.width)),
        )
    };
    let label = format!("Flame graph of {} in {}", profile.name, profile.phase);
    draw(&tree, &label, &|node| share(node.total[0], total), &words)
}

/// The flame graph of a difference: as wide as a function is on average of both sides, red where
/// the second takes more, blue where it takes less, gray where that may be
/// chance. The weights are percent of the first side; a sample has `unit` of them.
pub(super) fn difference(tree: &Tree<'_>, label: &str, unit: Weights) -> String {
    let mean = |weights: Weights| (weights[0] + weights[1]) / 2.0;
    let total = mean(tree.total());
    let words = |frame: &Frame<'_, '_>| {
        let [base, candidate] = frame.node.total;
        let change = candidate - base;
        let step = (change / CHANGE_FULL * STEPS).clamp(-STEPS, STEPS);
        // What is more than chance gets at least the palest color.
        let is_chance = sigmas([base, candidate], unit) < SIGMAS_COLOR;
        let step = if is_chance { 0.0 } else { away_from_zero(step) };
        let sign = if change > 0.0 { "+" } else { "" };
        let class = match step as i32 {
            0 => "same".to_owned(),
            step if step > 0 => format!("more{step}"),
            step => format!("less{}", -step),
        };
        let numbers = format!("{} → {} ({sign}{change:.1})", percent(base), percent(candidate));
        (class, numbers)
    };
    draw(tree, label, &|node| share(mean(node.total), total), &words)
}

fn away_from_zero(value: f64) -> f64 {
    if value < 0.0 { value.floor() } else { value.ceil() }
}

fn share(part: f64, whole: f64) -> f64 {
    crate::analysis::ratio(part * 100.0, whole)
}

/// `width`: percent of the whole. `words`: the class of a function, and its numbers.
fn draw(
    tree: &Tree<'_>,
    label: &str,
    width: &dyn Fn(&Node<'_>) -> f64,
    words: &dyn Fn(&Frame<'_, '_>) -> (String, String),
) -> String {
    let frames = frames(tree, width);
    let rows = frames.iter().map(|frame| frame.depth + 1).max().unwrap_or(1);
    let mut svg = format!(
        "<svg class=\"flame\" role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{}\">\n",
        xml(label),
        rows * ROW
    );
    for frame in &frames {
        let (class, numbers) = words(frame);
        let name = xml(&shown(frame.node.name));
        let top = (rows - 1 - frame.depth) * ROW;
        let _ = write!(
            svg,
            "<svg class=\"{class}\" x=\"{:.3}%\" y=\"{top}\" width=\"{:.3}%\" height=\"{ROW}\">\
             <title>{name}: {numbers}</title><rect width=\"100%\" height=\"100%\"/>",
            frame.left, frame.width
        );
        if frame.width >= NAMED_MIN {
            let _ = write!(svg, "<text x=\"4\" y=\"13\">{name}</text>");
        }
        svg.push_str("</svg>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// The functions to be drawn, callers first.
fn frames<'t, 'a>(tree: &'t Tree<'a>, width: &dyn Fn(&Node<'_>) -> f64) -> Vec<Frame<'t, 'a>> {
    let mut frames: Vec<Frame<'t, 'a>> = Vec::new();
    let mut todo = vec![(0, 0.0, 0)];
    while let Some((at, left, depth)) = todo.pop() {
        let node: &Node<'a> = &tree.nodes[at];
        let frame = Frame { node, left, width: width(node), depth };
        if frame.width < WIDTH_MIN && at > 0 {
            continue;
        }
        let mut left = left;
        for child in node.children.values() {
            todo.push((*child, left, depth + 1));
            left += width(&tree.nodes[*child]);
        }
        frames.push(frame);
    }
    // What is as narrow as the first that is too many goes, too: nothing hangs in the air.
    let mut widths: Vec<f64> = frames.iter().map(|frame| frame.width).collect();
    widths.sort_by(|a, b| b.total_cmp(a));
    if let Some(&narrow) = widths.get(FRAMES_MAX) {
        frames.retain(|frame| frame.width > narrow);
    }
    frames
}

/// A function has the same color everywhere: one of a few hues, or that of the kernel.
fn hue(name: &str) -> String {
    if name.ends_with("_[k]") {
        return "k".into();
    }
    // FNV-1a.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash % HUES).to_string()
}
