//! Quantities as people write them: `62.5s`, `16MiB`, `10/s`, `94%`, `1..10`.

/// Longest span of time, nanoseconds: a stamp tells times up to 19 hours.
pub const SPAN_NS_MAX: u64 = 12 * 3_600 * 1_000_000_000;
/// Highest rate, per second.
pub const RATE_MAX: f64 = 1e6;

/// Why a text is not what it should be: reason and suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    pub(super) reason: String,
    pub(super) suggestion: String,
}

impl Complaint {
    pub(super) fn new(reason: impl Into<String>, suggestion: impl Into<String>) -> Complaint {
        Complaint { reason: reason.into(), suggestion: suggestion.into() }
    }
}

type Parsed<T> = Result<T, Complaint>;

const TIMES: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3_600e9),
];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// Characters of foreign text that a message repeats.
const SHORT: usize = 60;

/// The beginning of a text, to be shown in a message.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(SHORT) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.into(),
    }
}

/// A span of time in nanoseconds: `100ms`, `62.5s`, `1m30s`.
pub(super) fn duration(text: &str) -> Parsed<u64> {
    let advice = "write a number and a unit, as in `500ms`, `62.5s`, `1m30s`, `2h`";
    let ns = quantity(text, TIMES).map_err(|problem| match problem {
        Problem::NoUnit if text.trim() == "0" => Complaint::new("`0` has no unit", "write `0s`"),
        Problem::NoUnit => Complaint::new(
            format!("`{text}` has no unit"),
            format!("did you mean `{}s`, or `{}ms`?", text.trim(), text.trim()),
        ),
        Problem::Unit(unit) => Complaint::new(
            format!("`{unit}` is no unit of time"),
            "the units are `ns`, `us`, `ms`, `s`, `m`, `h`",
        ),
        Problem::Number => Complaint::new(format!("`{text}` is not a span of time"), advice),
    })?;
    if ns > SPAN_NS_MAX as f64 {
        let reason = format!("`{text}` is longer than 12 hours");
        return Err(Complaint::new(reason, "a run is measured for hours, not days"));
    }
    Ok(ns.round() as u64)
}

/// A size in bytes: `16MiB`, `64KiB`, `100B`.
pub(super) fn size(text: &str) -> Parsed<u64> {
    let bytes = quantity(text, SIZES).map_err(|problem| match problem {
        Problem::NoUnit => Complaint::new(
            format!("`{text}` has no unit"),
            format!("did you mean `{}B`, or `{}KiB`?", text.trim(), text.trim()),
        ),
        Problem::Unit(unit) => Complaint::new(
            format!("`{unit}` is no unit of size"),
            "the units are `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`",
        ),
        Problem::Number => Complaint::new(
            format!("`{text}` is not a size"),
            "write a number and a unit, as in `64KiB` or `16MiB`",
        ),
    })?;
    Ok(bytes.round().min(9e15) as u64)
}

enum Problem {
    Number,
    NoUnit,
    Unit(String),
}

/// The sum of numbers with units.
fn quantity(text: &str, units: &[(&str, f64)]) -> Result<f64, Problem> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(Problem::Number);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !is_digit(c)).unwrap_or(rest.len());
        let value = number(&rest[..digits]).ok_or(Problem::Number)?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let unit = &rest[..letters];
        if unit.is_empty() {
            return Err(if rest.is_empty() { Problem::NoUnit } else { Problem::Number });
        }
        let factor = units.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor);
        sum += value * factor.ok_or_else(|| Problem::Unit(unit.into()))?;
        rest = rest[letters..].trim_start();
    }
    Ok(sum)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || c == '.' || c == '_'
}

/// A number without sign or exponent; `_` may part its digits.
pub(super) fn number(text: &str) -> Option<f64> {
    let is_plain = text.len() <= 32
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(is_digit);
    is_plain.then(|| text.replace('_', "").parse().ok()).flatten()
}

/// A whole number between two bounds.
pub(super) fn whole(text: &str, low: u64, high: u64) -> Parsed<u64> {
    let value = number(text.trim()).filter(|value| value.fract() == 0.0).ok_or_else(|| {
        Complaint::new(
            format!("`{text}` is not a whole number"),
            format!("write one between {low} and {high}"),
        )
    })?;
    if value < low as f64 || value > high as f64 {
        return Err(Complaint::new(
            format!("{text} is out of range"),
            format!("it must lie between {low} and {high}"),
        ));
    }
    Ok(value as u64)
}

/// `low..high`, both included, or one number for both.
pub(super) fn range<T: PartialOrd + Copy>(
    text: &str,
    parse: impl Fn(&str) -> Parsed<T>,
) -> Parsed<(T, T)> {
    let Some((low, high)) = text.split_once("..") else {
        let both = parse(text)?;
        return Ok((both, both));
    };
    let (low_value, high_value) = (parse(low.trim())?, parse(high.trim())?);
    if low_value > high_value {
        return Err(Complaint::new(
            format!("`{text}` runs backward"),
            format!("did you mean `{}..{}`?", high.trim(), low.trim()),
        ));
    }
    Ok((low_value, high_value))
}

/// A rate per second: `10/s`, `600/min`.
pub(super) fn rate(text: &str) -> Parsed<f64> {
    let advice = "write it as in `10/s`, `90/min` or `5/h`";
    let Some((value, unit)) = text.split_once('/') else {
        return Err(match number(text.trim()) {
            Some(_) => Complaint::new(
                format!("`{text}` does not say per what"),
                format!("did you mean `{}/s`?", text.trim()),
            ),
            None => Complaint::new(format!("`{text}` is not a rate"), advice),
        });
    };
    let seconds = match unit.trim() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        other => {
            return Err(Complaint::new(format!("`/{other}` is no unit of a rate"), advice));
        }
    };
    let value = number(value.trim())
        .ok_or_else(|| Complaint::new(format!("`{text}` is not a rate"), advice))?;
    let rate = value / seconds;
    if rate > RATE_MAX {
        let reason = format!("`{text}` is more than a million a second");
        return Err(Complaint::new(reason, "for everybody in the same instant write `at once`"));
    }
    Ok(rate)
}

/// A percentage (`true`) or plain number.
pub(super) fn switch(text: &str) -> Parsed<bool> {
    match text {
        "yes" | "true" | "on" => Ok(true),
        "no" | "false" | "off" => Ok(false),
        _ => Err(Complaint::new(format!("`{text}` is neither yes nor no"), "write `yes` or `no`")),
    }
}

pub(super) fn weight(text: &str) -> Parsed<(f64, bool)> {
    let (digits, is_percent) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (text.trim(), false),
    };
    match number(digits.trim()) {
        Some(value) if value > 0.0 && value <= 1e6 => Ok((value, is_percent)),
        _ => Err(Complaint::new(
            format!("`{text}` is not a weight"),
            "write a percentage as in `94%`, or a number above 0",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        let time = |text: &str| duration(text).map_err(|c| c.suggestion);
        assert_eq!(time("62.5s"), Ok(62_500_000_000));
        assert_eq!(time("1m30s"), Ok(90_000_000_000));
        assert_eq!(time("1_000 us"), Ok(1_000_000));
        assert_eq!(time("2h"), Ok(7_200_000_000_000));
        assert_eq!(time("25"), Err("did you mean `25s`, or `25ms`?".into()));
        assert_eq!(time("5 sec"), Err("the units are `ns`, `us`, `ms`, `s`, `m`, `h`".into()));
        for bad in ["", "s", "-5s", "1e3s", "13h", "5s!", "..s", "1.2.3s", "inf", "NaNs"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(size("16MiB"), Ok(16 << 20));
        assert_eq!(size("1.5 kB"), Ok(1_500));
        assert!(size("16").is_err() && size("16 bytes").is_err());
    }

    #[test]
    fn numbers_rates_ranges_weights() {
        assert_eq!(whole("19_500", 1, 100_000), Ok(19_500));
        for bad in ["0", "1.5", "-1", "ten", "100001", &"9".repeat(40)] {
            assert!(whole(bad, 1, 100_000).is_err(), "{bad}");
        }
        assert_eq!(rate("90/min"), Ok(1.5));
        assert!(rate("10").unwrap_err().suggestion.contains("`10/s`"));
        for bad in ["/s", "10/", "x/s", "10/day", "1e9/s", "99999999/s"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        let words = |text: &str| range(text, |t| whole(t, 1, 100));
        assert_eq!(words("1..10"), Ok((1, 10)));
        assert_eq!(words("7"), Ok((7, 7)));
        assert!(words("10..1").unwrap_err().suggestion.contains("`1..10`"));
        assert_eq!(weight("94%"), Ok((94.0, true)));
        assert_eq!(weight("2.5"), Ok((2.5, false)));
        assert!(weight("0%").is_err() && weight("-1").is_err());
    }
}
