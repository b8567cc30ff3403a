//! What is read beside processes and machine: metrics of servers, questions to Prometheus.

use super::reader::Reader;
use super::tree::{Node, Value};
use super::{near, unit};
use crate::metric::{NAME_BYTES_MAX, UP};
use crate::{Endpoint, MetricsAt, Probes, PromQl, Prometheus, Quantity, Selector, Threshold};
use std::collections::BTreeMap;

pub(super) const KEYS: &[&str] = &["prometheus", "promql"];
pub(super) const PROMETHEUS_KEYS: &[&str] = &["url", "every", "keep"];
pub(super) const PROMQL_KEYS: &[&str] = &["url", "every", "queries"];
/// From one reading to the next if nothing is written, nanoseconds.
const EVERY_NS: u64 = 1_000_000_000;
/// The shortest such time, nanoseconds: a reading must not become a load.
const EVERY_NS_MIN: u64 = 100_000_000;
/// Most servers that are read, of each kind.
const SERVERS_MAX: usize = 32;
/// Most names to keep, and most queries.
const NAMES_MAX: usize = 200;
/// Longest PromQL expression, bytes.
const QUERY_BYTES_MAX: usize = 4_096;

/// Reads `probes`. Metrics that thresholds name are always kept.
pub(super) fn read(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    thresholds: &[Threshold],
) -> Option<Probes> {
    let mut probes = Probes::default();
    if let Some(node) = node {
        let fields = reader.fields(node, "`probes`", KEYS)?;
        if let Some(node) = fields.get("prometheus") {
            probes.prometheus = each(reader, node, "`prometheus`", prometheus)?;
        }
        if let Some(node) = fields.get("promql") {
            probes.promql = each(reader, node, "`promql`", promql)?;
        }
    }
    let mut needed: Vec<String> = Vec::new();
    for threshold in thresholds {
        if let Quantity::Metric { selector, .. } = &threshold.quantity {
            needed.push(selector.name.clone());
        }
    }
    if probes.prometheus.is_empty() && !needed.is_empty() {
        let (at, keep) = (MetricsAt::Target, needed.clone());
        probes.prometheus.push(Prometheus { at, every_ns: EVERY_NS, keep });
    }
    for prometheus in probes.prometheus.iter_mut().filter(|p| !p.keep.is_empty()) {
        prometheus.keep.extend(needed.iter().cloned());
        prometheus.keep.sort();
        prometheus.keep.dedup();
    }
    Some(probes)
}

/// One server as a map, or several as a list of maps.
fn each<T>(
    reader: &mut Reader<'_>,
    node: &Node,
    what: &str,
    one: impl Fn(&mut Reader<'_>, &Node) -> Option<T>,
) -> Option<Vec<T>> {
    let nodes = match &node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if nodes.len() > SERVERS_MAX {
        let help = format!("at most {SERVERS_MAX} are read");
        reader.wrong(node.place, format!("{what} names {} servers", nodes.len()), help);
        return None;
    }
    let all: Vec<Option<T>> = nodes.iter().map(|node| one(reader, node)).collect();
    all.into_iter().collect()
}

fn prometheus(reader: &mut Reader<'_>, node: &Node) -> Option<Prometheus> {
    let fields = reader.fields(node, "`prometheus`", PROMETHEUS_KEYS)?;
    let at = match fields.get("url") {
        Some(node) => url(reader, node).map(MetricsAt::Url),
        None => Some(MetricsAt::Target),
    };
    let every_ns = every(reader, fields.get("every"));
    let keep = match fields.get("keep") {
        Some(node) => keep(reader, node),
        None => Some(Vec::new()),
    };
    Some(Prometheus { at: at?, every_ns: every_ns?, keep: keep? })
}

fn promql(reader: &mut Reader<'_>, node: &Node) -> Option<PromQl> {
    let fields = reader.fields(node, "`promql`", PROMQL_KEYS)?;
    let url = match fields.get("url") {
        Some(node) => url(reader, node),
        None => {
            let help = "add the server, as in `url: http://127.0.0.1:9090`";
            reader.missing(&fields, node.place, "`promql` has no `url`", help);
            None
        }
    };
    let every_ns = every(reader, fields.get("every"));
    let queries = match fields.get("queries") {
        Some(node) => queries(reader, node),
        None => {
            let help = "add names and expressions, as in `queries: {memory: sum(heap_bytes)}`";
            reader.missing(&fields, node.place, "`promql` asks nothing", help);
            None
        }
    };
    Some(PromQl { url: url?, every_ns: every_ns?, queries: queries? })
}

fn url(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let text = reader.text(node, "`url`")?;
    let is_sendable = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
    match Endpoint::parse(text) {
        Ok(endpoint) if endpoint.scheme == "http" && is_sendable(text) => Some(text.into()),
        Ok(endpoint) => {
            let reason = format!("metrics are read by http, not by {}", endpoint.scheme);
            let reason = if is_sendable(text) { reason } else { "this is not a URL".into() };
            reader.wrong(node.place, reason, "as in `http://127.0.0.1:9090/metrics`");
            None
        }
        Err(reason) => {
            reader.wrong(node.place, reason, "as in `http://127.0.0.1:9090/metrics`");
            None
        }
    }
}

fn every(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<u64> {
    let Some(node) = node else { return Some(EVERY_NS) };
    let ns = reader.positive(node, "`every`")?;
    if ns < EVERY_NS_MIN {
        let reason = "metrics are read ten times a second at most";
        reader.wrong(node.place, reason, "try `1s`: reading them costs the target something");
        return None;
    }
    Some(ns)
}

fn keep(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<String>> {
    let nodes = reader.items(node, "`keep`")?;
    let mut names = Vec::new();
    for node in nodes {
        let name = reader.text(node, "a metric to keep")?;
        let plain = name.strip_suffix('*').unwrap_or(name);
        if !(plain.is_empty() || is_plain(plain)) || name.is_empty() {
            let reason = format!("`{}` is not the name of a metric", unit::short(name));
            let help = "as in `http_requests_total`, or `http_*` for all that begin so";
            reader.wrong(node.place, reason, help);
            return None;
        }
        names.push(name.to_owned());
    }
    if names.is_empty() || names.len() > NAMES_MAX {
        let reason = format!("`keep` has {} names", names.len());
        let help = format!("write 1 to {NAMES_MAX}; without `keep` all metrics are kept");
        reader.wrong(node.place, reason, help);
        return None;
    }
    Some(names)
}

fn is_plain(name: &str) -> bool {
    Selector::parse(name).is_some_and(|selector| selector.labels.is_empty())
}

fn queries(reader: &mut Reader<'_>, node: &Node) -> Option<BTreeMap<String, String>> {
    let Some(pairs) = node.map().filter(|pairs| (1..=NAMES_MAX).contains(&pairs.len())) else {
        let reason = "`queries` must be a map of names and expressions";
        reader.wrong(node.place, reason, "as in `{in-flight: sum(http_requests_in_flight)}`");
        return None;
    };
    let mut queries = BTreeMap::new();
    for (key, value) in pairs {
        let name = reader.text(key, "the name of a query")?;
        let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_long = name.is_empty() || name.len() > NAME_BYTES_MAX;
        if is_long || name == UP || !name.chars().all(is_fine) {
            let reason = format!("`{}` cannot be the name of a query", unit::short(name));
            reader.wrong(key.place, reason, "use letters, digits, `-` and `_`; `up` is taken");
            return None;
        }
        let text = reader.text(value, &format!("the query `{name}`"))?;
        if text.trim().is_empty() || text.len() > QUERY_BYTES_MAX {
            let reason = format!("the query `{name}` has {} bytes", text.len());
            reader.wrong(value.place, reason, format!("write 1 to {QUERY_BYTES_MAX}"));
            return None;
        }
        if queries.insert(name.to_owned(), text.to_owned()).is_some() {
            reader.wrong(key.place, format!("there are two queries `{name}`"), "remove one");
        }
    }
    Some(queries)
}

/// Refuses thresholds on queries that nobody asks.
pub(super) fn check(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    thresholds: &[Threshold],
    probes: &Probes,
) {
    let names: Vec<&str> =
        probes.promql.iter().flat_map(|server| server.queries.keys()).map(String::as_str).collect();
    for threshold in thresholds {
        let Quantity::Query { selector, .. } = &threshold.quantity else { continue };
        let name = selector.name.as_str();
        if names.contains(&name) {
            continue;
        }
        let written = threshold.text.split_once(": ").map_or("", |(name, _)| name);
        let pairs = node.and_then(Node::map).unwrap_or_default();
        let key = pairs.iter().map(|(key, _)| key);
        let key = key.into_iter().find(|key| key.text().is_some_and(|text| text.trim() == written));
        let place = match key {
            Some(key) => key.text().and_then(|text| text.find(name)).map_or(key.place, |at| {
                let text = key.text().unwrap_or_default();
                reader.part(key, &text[at..at + name.len()])
            }),
            None => node.map(|node| node.place).unwrap_or_default(),
        };
        let help = match names.is_empty() {
            true => "add it under `probes: {promql: {url: …, queries: {name: expression}}}`".into(),
            false => near::advice(name, names.iter().copied(), "queries"),
        };
        reader.wrong(place, format!("there is no query `{name}`"), help);
    }
}
