//! Spans of time and texts: what waits, and what is said.

use super::reader::{Fields, Reader};
use super::tree::{Node, Value};
use super::unit::{self, Complaint};
use crate::{Span, Text, stamp};

/// Most words of a message.
const WORDS_MAX: u64 = 10_000;
/// Longest message, bytes.
const BYTES_MAX: u64 = 1 << 20;
/// Largest sigma of a log-normal span: beyond, the longest waits are all that counts.
const SIGMA_MAX: f64 = 5.0;
/// What is said if nothing else is written.
const DEFAULT: Text = Text::Words(1, 10);
/// Keys of what is said.
pub(super) const TEXT_KEYS: [&str; 3] = ["words", "bytes", "lines"];
pub(super) const SPAN_KEYS: &[&str] = &["uniform", "exponential", "log-normal"];

/// A span: `25s`, `1s..3s`, `{exponential: 5s}`, `{log-normal: {median: 5s, sigma: 0.5}}`.
pub(super) fn span(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Span> {
    if matches!(node.value, Value::Text(_)) {
        let (low, high) = reader.parsed(node, what, |text| unit::range(text, unit::duration))?;
        return Some(if low == high { Span::Fixed(low) } else { Span::Uniform(low, high) });
    }
    let fields = reader.fields(node, what, SPAN_KEYS)?;
    let found: Vec<_> = SPAN_KEYS.iter().filter_map(|key| Some((*key, fields.get(key)?))).collect();
    let [(law, node)] = found[..] else {
        let help = "as in `{uniform: 1s..3s}`, `{exponential: 5s}`, \
                    `{log-normal: {median: 5s, sigma: 0.5}}`";
        reader.missing(&fields, fields.place, &format!("{what} needs one law"), help);
        return None;
    };
    match law {
        "uniform" => {
            let (low, high) =
                reader.parsed(node, what, |text| unit::range(text, unit::duration))?;
            Some(Span::Uniform(low, high))
        }
        "exponential" => Some(Span::Exponential(reader.positive(node, "the mean")?)),
        _ => log_normal(reader, node),
    }
}

fn log_normal(reader: &mut Reader<'_>, node: &Node) -> Option<Span> {
    let fields = reader.fields(node, "`log-normal`", &["median", "sigma"])?;
    let (Some(median), Some(sigma)) = (fields.get("median"), fields.get("sigma")) else {
        let help = "as in `{median: 5s, sigma: 0.5}`";
        reader.missing(&fields, node.place, "`log-normal` needs a `median` and a `sigma`", help);
        return None;
    };
    let median = reader.positive(median, "the median");
    let sigma = reader.parsed(sigma, "sigma", |text| {
        unit::number(text).filter(|s| (0.0..=SIGMA_MAX).contains(s)).ok_or_else(|| {
            Complaint::new(
                format!("`{text}` is not a sigma"),
                format!("a number between 0 and {SIGMA_MAX}; 0.5 varies by a factor of about 1.6"),
            )
        })
    });
    Some(Span::LogNormal(median?, sigma?))
}

/// Whether a span takes any time.
pub(super) fn takes_time(span: &Span) -> bool {
    span.mean_ns() > 0.0
}

/// What is said: `words`, `bytes` or `lines`.
pub(super) fn text(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Text> {
    let found: Vec<_> = TEXT_KEYS.iter().filter_map(|key| Some((*key, fields.get(key)?))).collect();
    match found[..] {
        [] => Some(DEFAULT),
        [("words", node)] => {
            let (low, high) = reader.parsed(node, "the number of words", |text| {
                unit::range(text, |t| unit::whole(t, 0, WORDS_MAX))
            })?;
            Some(Text::Words(low as u32, high as u32))
        }
        [("bytes", node)] => {
            let (low, high) = reader.parsed(node, "the number of bytes", |text| {
                unit::range(text, |t| unit::whole(t, stamp::LEN as u64, BYTES_MAX))
            })?;
            Some(Text::Bytes(low as u32, high as u32))
        }
        [(_, node)] => lines(reader, node),
        [_, (second, node), ..] => {
            let help = "keep one of `words`, `bytes`, `lines`";
            reader.wrong(node.place, format!("`{second}` says once more what is said"), help);
            None
        }
    }
}

fn lines(reader: &mut Reader<'_>, node: &Node) -> Option<Text> {
    let items = reader.items(node, "`lines`")?;
    let lines: Option<Vec<String>> =
        items.iter().map(|item| Some(reader.text(item, "a line")?.to_owned())).collect();
    let lines = lines?;
    let is_long = lines.iter().any(|line| line.len() as u64 > BYTES_MAX);
    if lines.is_empty() || is_long || lines.iter().any(|line| line.contains("~thr")) {
        let help =
            "give at least one line of at most 1 MiB, without `~thr`, which stamps begin with";
        reader.wrong(node.place, "these lines cannot be said", help);
        return None;
    }
    Some(Text::Lines(lines))
}
