//! Thresholds on what probes read: `target cpu: < 80%`, `metric rate(hits_total): < 100`.

use super::near;
use super::reader::Reader;
use super::tree::Node;
use super::unit::{self, Complaint};
use crate::{Figure, Fold, Quantity, Role, Selector};

/// Words that begin the name of such a threshold.
pub(super) const HEADS: [&str; 5] = ["target", "generator", "host", "metric", "promql"];

/// What processes have; the shortest name of each stands first.
const FIGURES: &[(&str, Figure)] = &[
    ("cpu", Figure::CpuMean),
    ("cpu mean", Figure::CpuMean),
    ("cpu max", Figure::CpuMax),
    ("cpu time", Figure::CpuTime),
    ("cpu per delivery", Figure::CpuPerDelivery),
    ("run queue", Figure::RunQueue),
    ("run queue wait", Figure::RunQueue),
    ("memory", Figure::MemoryMax),
    ("memory max", Figure::MemoryMax),
    ("memory mean", Figure::MemoryMean),
    ("pss", Figure::PssMax),
    ("pss max", Figure::PssMax),
    ("pss mean", Figure::PssMean),
    ("virtual memory", Figure::Virtual),
    ("threads", Figure::Threads),
    ("descriptors", Figure::Descriptors),
];
const HELP: &str = "as in `cpu`, `cpu max`, `cpu time`, `cpu per delivery`, `memory`, `threads`";
const METRIC_HELP: &str = "as in `hits_total`, `hits_total{code=\"500\"}`, `rate(hits_total)`";

/// Reads what follows one of [`HEADS`].
pub(super) fn quantity(
    reader: &mut Reader<'_>,
    key: &Node,
    head: &str,
    aspect: &str,
) -> Option<Quantity> {
    if aspect.is_empty() {
        let help = match head {
            "host" => "as in `host steal`",
            "metric" | "promql" => METRIC_HELP,
            _ => HELP,
        };
        reader.wrong(key.place, format!("`{head}` alone is no threshold"), help);
        return None;
    }
    match head {
        "target" => process(reader, key, Role::Target, aspect),
        "generator" => process(reader, key, Role::Generator, aspect),
        "host" if aspect == "steal" => Some(Quantity::Steal),
        "host" => {
            let place = reader.part(key, aspect);
            let help = "did you mean `host steal`, what the hypervisor gave to others?";
            reader.wrong(place, format!("`{aspect}` is nothing the host has"), help);
            None
        }
        _ => metric(reader, key, head, aspect),
    }
}

fn process(reader: &mut Reader<'_>, key: &Node, role: Role, aspect: &str) -> Option<Quantity> {
    let words = aspect.replace('-', " ");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((_, figure)) = FIGURES.iter().find(|(name, _)| *name == words) {
        return Some(Quantity::Process { role, figure: *figure });
    }
    let place = reader.part(key, aspect);
    let help = match near::nearest(&words, FIGURES.iter().map(|(name, _)| *name)) {
        Some(near) => format!("did you mean `{} {near}`?", role.name()),
        None => HELP.into(),
    };
    reader.wrong(place, format!("`{aspect}` is nothing processes have"), help);
    None
}

/// `name{label="value"}`, or a function of it.
fn metric(reader: &mut Reader<'_>, key: &Node, head: &str, aspect: &str) -> Option<Quantity> {
    let is_query = head == "promql";
    let brace = aspect.find('{').unwrap_or(aspect.len());
    let (fold, inner) = match aspect.find('(').filter(|at| *at < brace) {
        None => (Fold::Every, aspect),
        Some(at) => {
            let (name, rest) = (aspect[..at].trim(), &aspect[at + 1..]);
            let Some(fold) = Fold::FUNCTIONS.into_iter().find(|fold| fold.name() == name) else {
                let names = Fold::FUNCTIONS.map(Fold::name);
                let place = reader.part(key, name);
                let help = near::advice(name, names, "functions");
                reader.wrong(place, format!("there is no function `{name}` here"), help);
                return None;
            };
            if is_query && matches!(fold, Fold::Rate | Fold::Increase) {
                let place = reader.part(key, name);
                let help = format!("write `{name}(…[1m])` into the query itself");
                reader.wrong(place, "the answer to a query is not a counter", help);
                return None;
            }
            let Some(inner) = rest.trim_end().strip_suffix(')') else {
                reader.wrong(key.place, "a `(` is not closed", "as in `max(name)`");
                return None;
            };
            (fold, inner)
        }
    };
    // Queries have names that metrics cannot have: `in-flight`.
    let (name, labels) = inner.split_at(inner.find('{').unwrap_or(inner.len()));
    let name = name.trim();
    let selector = match is_query {
        false => Selector::parse(inner),
        true => Selector::parse(&format!("{}{labels}", name.replace('-', "_")))
            .map(|selector| Selector { name: name.into(), ..selector }),
    };
    let Some(selector) = selector else {
        let place = reader.part(key, inner);
        reader.wrong(place, format!("`{}` names no metric", unit::short(inner)), METRIC_HELP);
        return None;
    };
    Some(match is_query {
        false => Quantity::Metric { selector, fold },
        true => Quantity::Query { selector, fold },
    })
}

/// A share of a core.
pub(super) fn share(text: &str) -> Result<f64, Complaint> {
    match text.strip_suffix('%').map(str::trim).and_then(unit::number) {
        Some(percent) => Ok(percent / 100.0),
        None => Err(Complaint::new(
            format!("`{text}` is not a percentage"),
            "CPU is compared with percents of one core, as in `< 80%`",
        )),
    }
}

/// A number as metrics have it, or a size in bytes, a time in seconds, a percentage as a fraction.
pub(super) fn number(text: &str) -> Result<f64, Complaint> {
    let (sign, plain) = match text.strip_prefix('-') {
        Some(plain) => (-1.0, plain),
        None => (1.0, text),
    };
    let size = || unit::size(plain).ok().map(|bytes| bytes as f64);
    let time = || unit::duration(plain).ok().map(|ns| ns as f64 / 1e9);
    let value = unit::number(plain).or_else(|| share(plain).ok()).or_else(size).or_else(time);
    value.map(|value| sign * value).ok_or_else(|| {
        let reason = format!("`{text}` is not a number");
        Complaint::new(reason, "as in `100`, `0.5`, `500MiB` (bytes), `200ms` (seconds), `80%`")
    })
}
