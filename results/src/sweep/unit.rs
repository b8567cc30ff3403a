//! How the numbers of a cost read.

use crate::experiment;
use crate::report::format::{bytes, count, duration, short};

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
}

impl From<experiment::Unit> for Unit {
    fn from(unit: experiment::Unit) -> Unit {
        match unit {
            experiment::Unit::Ms => Unit::Time(Ms::One),
            experiment::Unit::CpuSeconds => Unit::Time(Ms::Second),
            experiment::Unit::Bytes => Unit::Bytes,
            experiment::Unit::Count => Unit::Plain,
        }
    }
}

impl Unit {
    /// Its name behind a coefficient; empty where a number speaks for itself.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Time(Ms::Second) => ", in s",
            Unit::Time(Ms::One) => ", in ms",
            Unit::Bytes => ", in bytes",
            Unit::Plain => "",
        }
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

/// A size as the user wrote it, if it is whole.
pub(crate) fn plain_size(value: f64) -> String {
    match value.fract() == 0.0 && (0.0..1e15).contains(&value) {
        true => count(value as u64),
        false => plain(value),
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
        let (s, ms) = (Unit::Time(Ms::Second), Unit::Time(Ms::One));
        for (unit, value, want) in [
            (s, 0.0021, "2.10 ms"),
            (s, 12.3, "12.3 s"),
            (s, 2e-7, "200 ns"),
            (ms, 1.5, "1.50 ms"),
            (Unit::Bytes, 38.2e6, "38.2 MB"),
            (Unit::Bytes, 0.5, "0.50 B"),
            (Unit::Plain, 1_002_001.0, "1,002,001"),
            (Unit::Plain, 0.0501, "0.0501"),
            (Unit::Plain, -1.1e12, "-1.10e12"),
            (s, f64::INFINITY, "∞"),
            (Unit::Plain, f64::NAN, "–"),
        ] {
            assert_eq!(unit.show(value), want, "{unit:?} {value}");
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
    }
}
