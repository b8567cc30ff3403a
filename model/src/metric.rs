//! Figures that somebody publishes by name: samples of labeled series, as Prometheus has them.

pub mod exposition;

use crate::Tick;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Longest name of a metric or label, bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Longest value of a label, bytes.
pub const LABEL_BYTES_MAX: usize = 1_000;
/// Most labels of a series.
pub const LABELS_MAX: usize = 40;
/// The source of answers to PromQL queries. No other source can have this name.
pub const PROMQL: &str = "promql";
/// The name of the series that says whether a source could be read: 1 or 0, as in Prometheus.
pub const UP: &str = "up";

/// Labels in the order of their names.
pub type Labels = Vec<(String, String)>;

/// Conditions on labels: name, whether equal (or else different), value.
pub type Conditions = Vec<(String, bool, String)>;

/// What the values of a series mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricKind {
    /// It only grows, unless its process begins anew.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Nobody said.
    #[default]
    Untyped,
}

impl MetricKind {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Untyped => "untyped",
        }
    }

    /// The kind of that name; whatever else it is called, nobody said anything we know.
    pub fn from_name(name: &str) -> MetricKind {
        match name {
            "counter" => MetricKind::Counter,
            "gauge" => MetricKind::Gauge,
            _ => MetricKind::Untyped,
        }
    }
}

/// One series: everything about a sample but time and value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series {
    /// Where it was read: `target`, `host:port`, or [`PROMQL`].
    pub source: String,
    /// The metric, or the query's name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// What its values mean.
    pub kind: MetricKind,
}

impl Series {
    /// Its labels as they are written: `code="200",method="GET"`.
    pub fn labels_text(&self) -> String {
        let label = |(name, value): &(String, String)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        };
        self.labels.iter().map(label).collect::<Vec<_>>().join(",")
    }
}

/// A value of a series. Always finite.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample {
    /// When it was asked for.
    pub at: Tick,
    /// Of what; shared by all samples of the series.
    pub series: Arc<Series>,
    /// The value.
    pub value: f64,
}

/// Chooses series by name and labels: `http_requests_total{code="500"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Selector {
    /// The metric.
    pub name: String,
    /// What its labels must be.
    pub labels: Conditions,
}

impl Selector {
    /// Takes `name` or `name{label="value",label!="value"}` apart.
    pub fn parse(text: &str) -> Option<Selector> {
        let text = text.trim();
        let (name, rest) = text.split_at(text.find('{').unwrap_or(text.len()));
        let name = name.trim_end();
        let labels = match rest.strip_prefix('{') {
            None => Vec::new(),
            Some(rest) => {
                let (labels, rest) = exposition::labels(rest, true)?;
                rest.trim().is_empty().then_some(labels)?
            }
        };
        exposition::is_name(name, true).then(|| Selector { name: name.into(), labels })
    }

    /// Whether a series is meant. A label it does not have is empty, as in PromQL.
    pub fn matches(&self, series: &Series) -> bool {
        let value = |name: &str| {
            let found = series.labels.iter().find(|(label, _)| label == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let is_so = |(name, is_equal, want): &(String, bool, String)| {
            (value(name) == want.as_str()) == *is_equal
        };
        self.name == series.name && self.labels.iter().all(is_so)
    }
}

/// What becomes of the readings of a span of time. The series that a selector chooses are added up
/// first: readings of one instant by their values, counters by what they grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    /// Each reading must keep the bound by itself.
    Every,
    /// The last reading.
    Last,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The mean of the readings.
    Mean,
    /// What a counter grew, a second.
    Rate,
    /// What a counter grew.
    Increase,
}

impl Fold {
    /// All that are written as a function, `rate(name)`.
    pub const FUNCTIONS: [Fold; 6] =
        [Fold::Last, Fold::Min, Fold::Max, Fold::Mean, Fold::Rate, Fold::Increase];

    /// How it is written; empty for [`Fold::Every`].
    pub const fn name(self) -> &'static str {
        match self {
            Fold::Every => "",
            Fold::Last => "last",
            Fold::Min => "min",
            Fold::Max => "max",
            Fold::Mean => "mean",
            Fold::Rate => "rate",
            Fold::Increase => "increase",
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (i, (name, is_equal, value)) in self.labels.iter().enumerate() {
            let sign = if *is_equal { "=" } else { "!=" };
            write!(f, "{}{name}{sign}{value:?}", if i == 0 { "{" } else { "," })?;
        }
        if self.labels.is_empty() { Ok(()) } else { f.write_str("}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_choose_series() {
        let labels = vec![("code".to_owned(), "500".to_owned())];
        let series = Series { name: "hits".into(), labels, ..Series::default() };
        let check = |text: &str, want: Option<bool>| {
            assert_eq!(Selector::parse(text).map(|s| s.matches(&series)), want, "{text}");
        };
        check("hits", Some(true));
        check(" hits { code = \"500\" } ", Some(true));
        check("hits{code=\"500\",}", Some(true));
        check("hits{code!=\"500\"}", Some(false));
        check("hits{code=\"200\"}", Some(false));
        check("hits{path=\"\"}", Some(true));
        check("hits{path!=\"/\",code=\"500\"}", Some(true));
        check("misses", Some(false));
        for bad in ["", "{}", "a b", "a{", "a{b}", "a{b=c}", "a{b=\"c\"", "a{b=~\"c\"}", "a}", "1a"]
        {
            check(bad, None);
        }
    }

    #[test]
    fn labels_survive_a_round_trip() {
        let labels = vec![("a".into(), "q\"u\\o\nte, }".into()), ("b".into(), String::new())];
        let series = Series { labels, ..Series::default() };
        let text = series.labels_text();
        assert!(!text.contains('\n'));
        assert_eq!(exposition::read_labels(&text), Some(series.labels));
        assert_eq!(exposition::read_labels(""), Some(Vec::new()));
        for bad in ["a", "a=b", "a=\"b", "a=\"b\"}", "}"] {
            assert_eq!(exposition::read_labels(bad), None, "{bad}");
        }
    }
}
