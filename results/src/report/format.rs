//! Numbers with their units, as people read them.

/// A count with separators between thousands.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// About three significant digits, without a unit.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        v if v < 1e15 => match value < 0.0 {
            true => format!("-{}", count(v.round() as u64)),
            false => count(v.round() as u64),
        },
        _ => format!("{value:.2e}"),
    }
}

/// A duration given in milliseconds: µs, ms, s or min.
pub(crate) fn duration(ms: f64) -> String {
    match ms {
        0.0 => "0".to_owned(),
        v if v < 0.00995 => format!("{} µs", short(v * 1e3)),
        v if v < 1.0 => format!("{:.0} µs", v * 1e3),
        v if v < 999.5 => format!("{} ms", short(v)),
        v if v < 600e3 => format!("{} s", short(v / 1e3)),
        v => format!("{} min", short(v / 60e3)),
    }
}

/// A point on the run's time line.
pub(crate) fn at(seconds: f64) -> String {
    match seconds {
        s if s < 100_000.0 => format!("{s:.1} s"),
        s => format!("{} s", count(s.max(0.0) as u64)),
    }
}

/// A span of time with its length.
pub(crate) fn span((from_s, to_s): (f64, f64)) -> String {
    format!("{from_s:.1}–{to_s:.1} s ({:.1} s)", to_s - from_s)
}

/// Bytes, decimal units.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 1e3 => format!("{bytes} B"),
        b if b < 1e6 => format!("{} kB", short(b / 1e3)),
        b if b < 1e9 => format!("{} MB", short(b / 1e6)),
        b => format!("{} GB", short(b / 1e9)),
    }
}

/// A percentage.
pub(crate) fn percent(value: f64) -> String {
    match value {
        v if v.abs() < 99.95 => format!("{v:.1} %"),
        v => format!("{} %", short(v)),
    }
}

/// Part of a whole, as a percentage.
pub(crate) fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "–".to_owned(),
        whole => percent(part as f64 / whole as f64 * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (n, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(count(n), want);
        }
        for (ms, want) in [
            (0.0, "0"),
            (0.00123, "1.23 µs"),
            (0.0423, "42 µs"),
            (1.234, "1.23 ms"),
            (12.345, "12.3 ms"),
            (123.4, "123 ms"),
            (1_234.0, "1.23 s"),
            (59_999.0, "60.0 s"),
            (3_600_000.0, "60.0 min"),
        ] {
            assert_eq!(duration(ms), want);
        }
        assert_eq!(bytes(38_200_000), "38.2 MB");
        assert_eq!(percent(90.24), "90.2 %");
        assert_eq!(percent(105.0), "105 %");
        assert_eq!(share(1, 0), "–");
    }
}
