//! The text in which servers publish their metrics (Prometheus text format 0.0.4, and as much of
//! OpenMetrics as differs). Takes anything: a line that is no sample is counted, never an error.

use super::{Conditions, LABEL_BYTES_MAX, LABELS_MAX, Labels, MetricKind, NAME_BYTES_MAX};

/// A sample in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<'a> {
    /// The metric.
    pub name: &'a str,
    /// Its labels, ordered.
    pub labels: Labels,
    /// What its values mean.
    pub kind: MetricKind,
    /// The value; always finite.
    pub value: f64,
}

/// How much of a text was understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Understood {
    /// Lines that are samples, wanted or not, finite or not.
    pub samples: u64,
    /// Lines that are neither samples nor comments.
    pub wrong: u64,
}

/// Reads a text and hands out the samples whose names are wanted. Values that are not finite (a
/// quantile of nothing) are passed over.
pub fn read<'a>(
    text: &'a str,
    is_wanted: impl Fn(&str) -> bool,
    mut each: impl FnMut(Found<'a>),
) -> Understood {
    let mut understood = Understood::default();
    // A metric's samples follow its `# TYPE` line in one group: only the last one matters.
    let mut family = ("", "");
    for line in text.lines() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_whitespace();
            if words.next() == Some("TYPE") {
                family = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let Some((name, labels, value)) = sample(line) else {
            understood.wrong += 1;
            continue;
        };
        understood.samples += 1;
        if value.is_finite() && is_wanted(name) {
            each(Found { name, labels, kind: kind(name, family), value });
        }
    }
    understood
}

/// `name{labels} value [timestamp] [# exemplar]`
fn sample(line: &str) -> Option<(&str, Labels, f64)> {
    let end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let (name, rest) = line.split_at(end);
    if !is_name(name, true) {
        return None;
    }
    let rest = rest.trim_start();
    let (found, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest, false)?,
        None => (Vec::new(), rest),
    };
    let mut labels: Labels = found.into_iter().map(|(name, _, value)| (name, value)).collect();
    labels.sort();
    let rest = rest.split(" #").next().unwrap_or_default();
    let mut words = rest.split_ascii_whitespace();
    let value = words.next()?.parse::<f64>().ok()?;
    let time = words.next().is_none_or(|time| time.parse::<f64>().is_ok());
    (time && words.next().is_none()).then_some((name, labels, value))
}

/// Reads what [`super::Series::labels_text`] writes; `None` if it is nothing of the kind.
pub fn read_labels(text: &str) -> Option<Labels> {
    let text = format!("{text}}}");
    let (found, rest) = labels(&text, false)?;
    rest.is_empty().then(|| found.into_iter().map(|(name, _, value)| (name, value)).collect())
}

/// Labels up to the closing brace, and what comes behind it; `differ` allows `!=`. Each is a name,
/// whether it is to be equal, and a value.
pub(super) fn labels(text: &str, differ: bool) -> Option<(Conditions, &str)> {
    let mut labels = Vec::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after) = rest.split_once('=')?;
        let (name, is_equal) = match name.strip_suffix('!') {
            Some(name) if differ => (name, false),
            _ => (name, true),
        };
        let name = name.trim();
        let (value, after) = unquote(after.trim_start().strip_prefix('"')?)?;
        if !is_name(name, false) || labels.len() >= LABELS_MAX {
            return None;
        }
        labels.push((name.to_owned(), is_equal, value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if after.starts_with('}') => after,
            None => return None,
        };
    }
}

/// What stands before the closing quote, and what behind it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if value.len() > LABEL_BYTES_MAX {
            return None;
        }
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            c => value.push(c),
        }
    }
    None
}

/// Whether a text can be the name of a metric (`colon`) or of a label.
pub(super) fn is_name(name: &str, colon: bool) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || (colon && c == ':');
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(first)
        && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

fn kind(name: &str, (family, said): (&str, &str)) -> MetricKind {
    let suffix = name.strip_prefix(family).filter(|_| !family.is_empty());
    match (said, suffix) {
        ("counter", Some("" | "_total")) => MetricKind::Counter,
        ("histogram" | "summary", Some("_bucket" | "_count" | "_sum")) => MetricKind::Counter,
        ("gauge" | "summary", Some("")) => MetricKind::Gauge,
        // The custom of names, where nobody said anything.
        _ if name.ends_with("_total") => MetricKind::Counter,
        _ => MetricKind::Untyped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const TEXT: &str = "# HELP http_requests_total Requests.\n# TYPE http_requests_total counter\n\
        http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n\
        http_requests_total { code=\"4\\\"0\\\\0\\n\" , } 3\n\n# TYPE t summary\n\
        t{quantile=\"0.5\"} NaN\nt_sum 1.7e+07\nt_count 2693\n# TYPE up gauge\nup 1\r\n\
        loose 0x1\nloose -Inf\nloose -2.5e-3 # {trace_id=\"x\"} 0.6\nx_total 1\n1bad 2\n\
        nothing\nhalf{a=\"b\nhalf{a=\"b\"}\nwords 1 2 3\nwords 1 two\n# EOF\n";

    fn all(text: &str) -> (Vec<Found<'_>>, Understood) {
        let mut found = Vec::new();
        let understood = read(text, |_| true, |sample| found.push(sample));
        (found, understood)
    }

    #[test]
    fn samples_are_read_and_the_rest_is_counted() {
        use MetricKind::{Counter, Gauge, Untyped};
        let (found, understood) = all(TEXT);
        let shown: Vec<_> = found.iter().map(|f| (f.name, f.kind, f.value)).collect();
        let want = [
            ("http_requests_total", Counter, 1027.0),
            ("http_requests_total", Counter, 3.0),
            ("t_sum", Counter, 1.7e7),
            ("t_count", Counter, 2693.0),
            ("up", Gauge, 1.0),
            ("loose", Untyped, -2.5e-3),
            ("x_total", Counter, 1.0),
        ];
        assert_eq!(shown, want);
        assert_eq!(found[0].labels[0], ("code".into(), "200".into()), "ordered");
        assert_eq!(found[1].labels, [("code".into(), "4\"0\\0\n".into())]);
        assert_eq!(understood, Understood { samples: 9, wrong: 7 });
        let mut names = Vec::new();
        read(TEXT, |name| name.starts_with("t_"), |sample| names.push(sample.name));
        assert_eq!(names, ["t_sum", "t_count"]);
    }

    #[test]
    fn nothing_makes_it_panic() {
        const SPICE: [&str; 14] = [
            "{", "}", "\"", "\\", "=", ",", " ", "\n", "# TYPE ", "é", "1e999", "{a=\"", "\0", "!",
        ];
        let rounds = std::env::var("FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok());
        for seed in 0..rounds.unwrap_or(3_000u64) {
            let mut rng = Rng::new(seed, 0);
            let mut text = TEXT.to_owned();
            for _ in 0..=rng.below(8) {
                let at = rng.below(text.len() as u64 + 1) as usize;
                let at = (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
                match rng.below(3) {
                    0 => text.truncate(at),
                    1 => drop(text.drain(..at)),
                    _ => text.insert_str(at, SPICE[rng.below(SPICE.len() as u64) as usize]),
                }
            }
            let (found, understood) = all(&text);
            let lines = text.lines().count() as u64;
            assert!(understood.samples + understood.wrong <= lines, "seed {seed}");
            assert!(found.len() as u64 <= understood.samples, "seed {seed}");
            assert!(found.iter().all(|f| f.value.is_finite()), "seed {seed}");
        }
    }

    #[test]
    fn what_is_too_long_is_no_sample() {
        let long = |name: usize, value: usize, labels: usize| {
            let label = |i| format!("l{i}=\"{}\"", "v".repeat(value));
            let labels: Vec<String> = (0..labels).map(label).collect();
            all(&format!("{}{{{}}} 1\n", "n".repeat(name), labels.join(","))).1.samples
        };
        assert_eq!(long(NAME_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX), 1);
        assert_eq!(long(NAME_BYTES_MAX + 1, 1, 1), 0);
        assert_eq!(long(1, LABEL_BYTES_MAX + 2, 1), 0);
        assert_eq!(long(1, 1, LABELS_MAX + 1), 0);
    }
}
