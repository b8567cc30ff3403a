//! A run in prose: `viewers at 10/s without avatars, history`.

use super::unit::{self, Complaint};
use crate::Pacer;

/// A complaint about a part of the text.
pub(super) type Parsed<'t, T> = Result<T, (&'t str, Complaint)>;

/// A run as its prose says it.
#[derive(Debug, PartialEq)]
pub(super) struct RunProse<'t> {
    pub(super) crowd: &'t str,
    pub(super) arrival: Option<Pacer>,
    pub(super) without: Vec<&'t str>,
}

/// `crowd [at arrival] [without feature, feature]`.
pub(super) fn run(text: &str) -> Parsed<'_, RunProse<'_>> {
    let (head, without) = match split_word(text, "without") {
        Some((head, list)) => (head, features(text, list)?),
        None => (text, Vec::new()),
    };
    let (crowd, arrival) = match split_word(head, "at") {
        Some((crowd, law)) => (crowd.trim(), Some(arrival(law.trim())?)),
        None => (head.trim(), None),
    };
    if let Some((_, rest)) = crowd.split_once(char::is_whitespace) {
        let help = "write it as in `viewers at 10/s without avatars`";
        return Err((
            rest.trim(),
            Complaint::new(format!("`{}` is not understood", rest.trim()), help),
        ));
    }
    Ok(RunProse { crowd, arrival, without })
}

/// Splits around a word that stands by itself.
pub(super) fn split_word<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
    text.match_indices(word)
        .map(|(at, _)| (&text[..at], &text[at + word.len()..]))
        .find(|(head, tail)| is_space(head.chars().last()) && is_space(tail.chars().next()))
}

pub(super) fn features<'t>(text: &'t str, list: &'t str) -> Parsed<'t, Vec<&'t str>> {
    let names: Vec<&str> = list.split([',']).map(str::trim).collect();
    if names.iter().any(|name| name.is_empty()) {
        let help = "as in `without avatars, history`";
        return Err((text.trim(), Complaint::new("`without` is followed by no feature", help)));
    }
    Ok(names)
}

/// `once`, `10/s`, `10/s poisson`, `1/s..20/s over 30s`, `1/s for 30s then 10/s`.
pub(super) fn arrival(text: &str) -> Parsed<'_, Pacer> {
    if text == "once" {
        return Ok(Pacer::AtOnce);
    }
    if text.is_empty() {
        return Err((
            text,
            Complaint::new("`at` is followed by no rate", "as in `at 10/s` or `at once`"),
        ));
    }
    if text.split_whitespace().any(|word| matches!(word, "for" | "then")) {
        return steps(text);
    }
    if let Some((rates, over)) = split_word(text, "over") {
        let over = over.trim();
        let ns = unit::duration(over).map_err(|complaint| (over, complaint))?;
        let Some((from, to)) = rates.split_once("..") else {
            let help = format!("write two rates, as in `1/s..{} over {over}`", rates.trim());
            return Err((rates.trim(), Complaint::new("a ramp needs two rates", help)));
        };
        let (from, to) = (rate(from)?, positive(to)?);
        if ns == 0 {
            return Err((over, Complaint::new("a ramp takes some time", "try `over 30s`")));
        }
        return Ok(Pacer::Ramp { from, to, over_s: ns as f64 / 1e9 });
    }
    if text.contains("..") {
        let help = format!("write `{text} over 30s`");
        return Err((text, Complaint::new("this ramp does not say how long it takes", help)));
    }
    match text.split_once(char::is_whitespace) {
        Some((value, law)) if law.trim() == "poisson" => {
            Ok(Pacer::Poisson { rate: positive(value)? })
        }
        Some((_, law)) => {
            let law = law.trim();
            let help = match super::near::nearest(law, ["poisson", "over", "without"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a rate is followed by `poisson`, `over 30s`, `for 30s then …`, \
                         `without …`, or nothing"
                    .into(),
            };
            Err((law, Complaint::new(format!("`{law}` is not understood"), help)))
        }
        None => Ok(Pacer::Constant { rate: positive(text)? }),
    }
}

/// `1/s for 30s then 10/s for 30s then 20/s`.
fn steps(text: &str) -> Parsed<'_, Pacer> {
    let mut steps = Vec::new();
    let mut rest = Some(text);
    while let Some(now) = rest {
        let (step, then) = match split_word(now, "then") {
            Some((step, then)) => (step.trim(), Some(then)),
            None => (now.trim(), None),
        };
        let (value, hold) = match split_word(step, "for") {
            Some((value, hold)) => (value, hold.trim()),
            None if then.is_none() => (step, "1s"),
            None => {
                let help = format!("write `{step} for 30s then …`");
                return Err((
                    step,
                    Complaint::new("this step does not say how long it holds", help),
                ));
            }
        };
        let ns = unit::duration(hold).map_err(|complaint| (hold, complaint))?;
        if ns == 0 {
            return Err((hold, Complaint::new("a step holds for some time", "try `for 30s`")));
        }
        steps.push((positive(value)?, ns as f64 / 1e9));
        rest = then;
    }
    Ok(Pacer::Steps { steps })
}

fn rate(text: &str) -> Parsed<'_, f64> {
    let text = text.trim();
    unit::rate(text).map_err(|complaint| (text, complaint))
}

pub(super) fn positive(text: &str) -> Parsed<'_, f64> {
    match rate(text)? {
        rate if rate > 0.0 => Ok(rate),
        _ => {
            let help = "try `1/s`; only a ramp may begin at `0/s`";
            Err((text.trim(), Complaint::new("at this rate nobody ever comes", help)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_understood() {
        let check = |text: &str, crowd: &str, want: Pacer, features: &[&str]| {
            let run = run(text).unwrap_or_else(|(part, c)| panic!("{text}: {part}: {c:?}"));
            assert_eq!((run.crowd, run.arrival, &run.without[..]), (crowd, Some(want), features));
        };
        check("viewers at 10/s", "viewers", Pacer::Constant { rate: 10.0 }, &[]);
        check("a at 30/min", "a", Pacer::Constant { rate: 0.5 }, &[]);
        check("all at once", "all", Pacer::AtOnce, &[]);
        let steady = Pacer::Constant { rate: 10.0 };
        check("v at 10/s without avatars, history", "v", steady, &["avatars", "history"]);
        check("v at 10/s poisson", "v", Pacer::Poisson { rate: 10.0 }, &[]);
        let ramp = Pacer::Ramp { from: 0.0, to: 20.0, over_s: 30.0 };
        check("v at 0/s..20/s over 30s without x", "v", ramp, &["x"]);
        let steps = Pacer::Steps { steps: vec![(1.0, 30.0), (10.0, 1.0)] };
        check("v at 1/s for 30s then 10/s", "v", steps, &[]);
        assert_eq!(run("v").map(|run| run.arrival), Ok(None));
    }

    #[test]
    fn complaints_point_at_their_part() {
        let check = |text: &str, want: &str| match run(text) {
            Err((part, complaint)) => assert_eq!(part, want, "{text}: {complaint:?}"),
            Ok(run) => panic!("{text}: {run:?}"),
        };
        check("v at 10", "10");
        check("v at 10/s posson", "posson");
        check("v at 1/s..5/s", "1/s..5/s");
        check("v at 1/s..5/s over 10", "10");
        check("v at 0/s", "0/s");
        check("v w at 1/s", "w");
        check("v at 1/s then 2/s", "1/s");
        check("v at 1/s without", "v at 1/s without");
        check("v at 1/s without a,,b", "v at 1/s without a,,b");
    }
}
