//! Costs by name: a name's last word is its unit, and decides how its numbers read.

use crate::report::format::{bytes, duration, short};

/// How a cost's numbers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Time, with so many milliseconds in one.
    Time(Ms),
    Bytes,
    Plain,
}

/// Milliseconds in a unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ms {
    Second,
    One,
    Micro,
}

impl Unit {
    /// Of `target_cpu_s`, `delivery_p50_ms`, `cpu_per_delivery_us`, `memory_bytes`, `deliveries`.
    pub(crate) fn of(name: &str) -> Unit {
        match name.rsplit('_').next() {
            Some("s") => Unit::Time(Ms::Second),
            Some("ms") => Unit::Time(Ms::One),
            Some("us") => Unit::Time(Ms::Micro),
            Some("bytes") => Unit::Bytes,
            _ => Unit::Plain,
        }
    }

    /// The name in words, without its unit.
    pub(crate) fn label(self, name: &str) -> String {
        let bare = match self {
            Unit::Time(_) => name.rsplit_once('_').map_or(name, |(bare, _)| bare),
            Unit::Bytes | Unit::Plain => name,
        };
        bare.replace('_', " ")
    }

    /// A number with its unit, about three digits.
    pub(crate) fn show(self, value: f64) -> String {
        let size = value.abs();
        let sign = if value < 0.0 { "-" } else { "" };
        match self {
            _ if value.is_nan() => "–".to_owned(),
            _ if value.is_infinite() => format!("{sign}∞"),
            Unit::Time(ms) => {
                let factor = match ms {
                    Ms::Second => 1e3,
                    Ms::One => 1.0,
                    Ms::Micro => 1e-3,
                };
                format!("{sign}{}", tiny(size * factor))
            }
            Unit::Bytes if size >= 1e3 => format!("{sign}{}", bytes(size as u64)),
            Unit::Bytes => format!("{} B", plain(value)),
            Unit::Plain => plain(value),
        }
    }
}

/// A duration that may be shorter than a microsecond.
fn tiny(ms: f64) -> String {
    match ms {
        ms if ms > 0.0 && ms < 1e-3 => format!("{} ns", plain(ms * 1e6)),
        ms if ms > 0.0 && ms < 1e-2 => format!("{} µs", short(ms * 1e3)),
        ms => duration(ms),
    }
}

/// A number of any size, about three digits.
pub(crate) fn plain(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || (0.095..1e9).contains(&v) => short(value),
        v if (1e-4..0.095).contains(&v) => {
            let digits = (2.0 - v.log10().floor()) as usize;
            format!("{value:.digits$}")
        }
        _ if value.is_finite() => format!("{value:.2e}"),
        _ => Unit::Time(Ms::One).show(value),
    }
}

/// A coefficient: four significant digits, because it is there to be computed with.
pub(crate) fn exact(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if (1e-3..1e5).contains(&v) => {
            let digits = (3.0 - v.log10().floor()).max(0.0) as usize;
            format!("{value:.digits$}")
        }
        _ if value.is_finite() => format!("{value:.3e}"),
        _ => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_with_their_units() {
        for (name, value, want) in [
            ("target_cpu_s", 0.0021, "2.10 ms"),
            ("target_cpu_s", 12.3, "12.3 s"),
            ("cpu_per_delivery_us", 0.2, "200 ns"),
            ("delivery_p50_ms", 1.5, "1.50 ms"),
            ("memory_bytes", 38.2e6, "38.2 MB"),
            ("memory_bytes", 0.5, "0.50 B"),
            ("deliveries", 1_002_001.0, "1,002,001"),
            ("deliveries", 0.0501, "0.0501"),
            ("deliveries", -1.1e12, "-1.10e12"),
            ("target_cpu_s", f64::INFINITY, "∞"),
            ("deliveries", f64::NAN, "–"),
        ] {
            assert_eq!(Unit::of(name).show(value), want, "{name} {value}");
        }
        for (value, want) in [
            (0.0, "0"),
            (0.099981, "0.09998"),
            (1234.56, "1235"),
            (4.01e-7, "4.010e-7"),
            (f64::NEG_INFINITY, "-∞"),
        ] {
            assert_eq!(exact(value), want);
        }
        assert_eq!(Unit::of("target_cpu_s").label("target_cpu_s"), "target cpu");
    }
}
