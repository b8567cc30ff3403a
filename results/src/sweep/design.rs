//! Which values a sweep tries, and in which order: rounds of all of them, shuffled within each
//! round, so that a machine that drifts does not look like a law.

use crate::experiment::{Arm, Sequence};
use crate::laws::PARAMETERS_MAX;
use model::Rng;
use std::fmt;

/// Values of one parameter at most.
pub const VALUES_MAX: usize = 200;
/// Cells of a grid at most.
pub const CELLS_MAX: usize = 1_000;
/// Rounds at most.
pub const ROUNDS_MAX: usize = 100;
/// A step that misses the end by this part of itself, through rounding, reaches it.
const SLACK: f64 = 1e-9;

/// A parameter and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    /// Name of the parameter.
    pub name: String,
    /// Its values, all different, in the order given.
    pub values: Vec<f64>,
}

/// A sweep that cannot be made, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct BadVary {
    /// As the user wrote it.
    pub text: String,
    /// What is wrong, and how it is written.
    pub reason: String,
}

impl fmt::Display for BadVary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.text, self.reason)
    }
}

impl std::error::Error for BadVary {}

impl Vary {
    /// `name=1,2,5`, `name=1..1001:100` (by steps) or `name=1..1000*2` (by a factor). The end
    /// belongs to the values if a step meets it.
    pub fn parse(text: &str) -> Result<Vary, BadVary> {
        let bad = |reason: String| BadVary { text: text.to_owned(), reason };
        let Some((name, list)) = text.split_once('=').filter(|(name, _)| !name.trim().is_empty())
        else {
            return Err(bad("write a parameter and its values, such as people=10,20,50".into()));
        };
        let values = match list.split_once("..") {
            Some((from, rest)) => range(from, rest),
            None => list.split(',').map(number).collect(),
        };
        let values = values.map_err(bad)?;
        let is_twice = |(at, value): (usize, &f64)| values[..at].contains(value);
        match values.len() {
            0 | 1 => Err(bad("a sweep needs at least two values".into())),
            n if n > VALUES_MAX => Err(bad(format!("more than {VALUES_MAX} values"))),
            _ if values.iter().enumerate().any(is_twice) => Err(bad("a value occurs twice".into())),
            _ => Ok(Vary { name: name.trim().to_owned(), values }),
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let value: Option<f64> = text.parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| format!("`{text}` is no number"))
}

fn range(from: &str, rest: &str) -> Result<Vec<f64>, String> {
    let by_factor = rest.contains('*');
    let Some((to, step)) = rest.split_once(if by_factor { '*' } else { ':' }) else {
        return Err("a range needs a step, such as 1..1001:100 or 1..1000*2".into());
    };
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    let grows = if by_factor { step > 1.0 && from > 0.0 } else { step > 0.0 };
    if !grows || to <= from {
        return Err("a range goes upwards; by a factor it begins above 0".into());
    }
    let value = |i: usize| match by_factor {
        true => from * step.powi(i as i32),
        false => from + step * i as f64,
    };
    let inside = |value: &f64| *value <= to + (to - from) * SLACK;
    // One more than allowed is enough to see that there are too many.
    Ok((0..=VALUES_MAX).map(value).take_while(inside).collect())
}

/// The whole plan of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    vary: Vec<Vary>,
    rounds: usize,
    seed: u64,
}

/// One trial of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Counted from zero.
    pub round: usize,
    /// Each parameter and the value it has.
    pub values: Vec<(String, f64)>,
}

impl Design {
    /// A grid of all the values, `rounds` times.
    pub fn new(vary: Vec<Vary>, rounds: usize, seed: u64) -> Result<Design, BadVary> {
        let names: Vec<&str> = vary.iter().map(|vary| vary.name.as_str()).collect();
        let bad = |reason: String| BadVary { text: names.join(", "), reason };
        let is_twice = |(at, name): (usize, &&str)| names[..at].contains(name);
        if vary.is_empty() || vary.len() > PARAMETERS_MAX {
            return Err(bad(format!("a sweep varies 1 to {PARAMETERS_MAX} parameters")));
        }
        if names.iter().enumerate().any(is_twice) {
            return Err(bad("a parameter is varied twice".into()));
        }
        if !(1..=ROUNDS_MAX).contains(&rounds) {
            return Err(bad(format!("{rounds} rounds; 1 to {ROUNDS_MAX} are possible")));
        }
        // No overflow: 200 to the eighth fits.
        let cells: usize = vary.iter().map(|vary| vary.values.len()).product();
        match cells > CELLS_MAX {
            true => Err(bad(format!("a grid of {cells} cells; {CELLS_MAX} are possible"))),
            false => Ok(Design { vary, rounds, seed }),
        }
    }

    /// The parameters.
    pub fn vary(&self) -> &[Vary] {
        &self.vary
    }

    /// Combinations of values.
    pub fn cells(&self) -> usize {
        self.vary.iter().map(|vary| vary.values.len()).product()
    }

    /// Trials in all.
    pub fn trials(&self) -> usize {
        self.cells() * self.rounds
    }

    /// The trial after `done` others; `None` when all are done.
    pub fn trial(&self, done: usize) -> Option<Planned> {
        let (round, at) = (done / self.cells(), done % self.cells());
        (round < self.rounds).then(|| Planned { round, values: self.cell(self.order(round)[at]) })
    }

    /// All trials in order, as arms. A parameter that is in `whole` stands for how many people take
    /// part in all.
    pub fn sequence(&self, whole: Option<&str>) -> Sequence {
        let arm = |planned: Planned| {
            let mut arm = Arm::default();
            let mut words = Vec::new();
            for (name, value) in planned.values {
                words.push(format!("{name}={value}"));
                match whole == Some(name.as_str()) {
                    true => arm.people = Some(value.max(0.0) as u32),
                    false => arm.set.push((name, value.to_string())),
                }
            }
            Arm { label: words.join(","), ..arm }
        };
        let planned = (0..self.trials()).map_while(|done| self.trial(done));
        Sequence { arms: planned.map(arm).collect() }
    }

    /// The values of an arm's parameters, as they were planned.
    pub fn values(&self, arm: &Arm) -> Option<Vec<(String, f64)>> {
        let value = |vary: &Vary| {
            let set = arm.set.iter().find(|(name, _)| *name == vary.name);
            let value = set.map_or(arm.people.map(f64::from), |(_, value)| value.parse().ok());
            Some((vary.name.clone(), value?))
        };
        self.vary.iter().map(value).collect()
    }

    /// The cells of a round, shuffled (Fisher, Yates).
    fn order(&self, round: usize) -> Vec<usize> {
        let mut rng = Rng::new(self.seed, round as u64);
        let mut order: Vec<usize> = (0..self.cells()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, rng.below(at as u64 + 1) as usize);
        }
        order
    }

    /// The last parameter varies fastest.
    fn cell(&self, mut index: usize) -> Vec<(String, f64)> {
        let mut values = Vec::with_capacity(self.vary.len());
        for vary in self.vary.iter().rev() {
            values.push((vary.name.clone(), vary.values[index % vary.values.len()]));
            index /= vary.values.len();
        }
        values.reverse();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lists_are_read() {
        let check = |text: &str, want: Result<&[f64], &str>| match (Vary::parse(text), want) {
            (Ok(vary), Ok(values)) => assert_eq!(vary.values, values, "{text}"),
            (Err(bad), Err(words)) => assert!(bad.to_string().contains(words), "{text}: {bad}"),
            (got, want) => panic!("{text}: {got:?}, not {want:?}"),
        };
        check("n=1..401:100", Ok(&[1.0, 101.0, 201.0, 301.0, 401.0]));
        check("n=1..400:100", Ok(&[1.0, 101.0, 201.0, 301.0]));
        check("n=1..10*2", Ok(&[1.0, 2.0, 4.0, 8.0]));
        check("n= 1, 2 ,5", Ok(&[1.0, 2.0, 5.0]));
        check("n=0.1..0.3:0.1", Ok(&[0.1, 0.2, 0.1 + 0.1 * 2.0]));
        check("n", Err("write a parameter"));
        check("=1,2", Err("write a parameter"));
        check("n=1", Err("at least two"));
        check("n=1,x", Err("`x` is no number"));
        check("n=1,inf", Err("`inf` is no number"));
        check("n=1,1", Err("twice"));
        check("n=1..5", Err("needs a step"));
        check("n=5..1:1", Err("upwards"));
        check("n=0..8*2", Err("above 0"));
        check("n=1..8*1", Err("upwards"));
        check("n=1..8:0", Err("upwards"));
        check("n=1..1000000000:1", Err("more than 200"));
    }

    #[test]
    fn every_round_tries_every_cell_once_in_an_order_of_its_own() {
        let vary = || ["n=1..10:1", "rate=1,2,5"].map(|text| Vary::parse(text).unwrap());
        let design = Design::new(vary().to_vec(), 3, 42).unwrap();
        assert_eq!((design.cells(), design.trials()), (30, 90));
        let all: Vec<Planned> = (0..90).map(|done| design.trial(done).unwrap()).collect();
        assert!(design.trial(90).is_none());
        let mut rounds = Vec::new();
        for (round, trials) in all.chunks(30).enumerate() {
            assert!(trials.iter().all(|trial| trial.round == round));
            let mut seen: Vec<String> =
                trials.iter().map(|trial| format!("{:?}", trial.values)).collect();
            rounds.push(seen.clone());
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), 30);
        }
        assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2]);
        let again = Design::new(vary().to_vec(), 3, 42).unwrap();
        assert_eq!(again.trial(57), design.trial(57));
    }

    #[test]
    fn impossible_designs_are_refused() {
        let vary = |texts: &[&str]| texts.iter().map(|text| Vary::parse(text).unwrap()).collect();
        for (texts, rounds, words) in [
            (&["a=1..100:1", "b=1..100:1"][..], 3, "10000 cells"),
            (&["a=1,2", "a=3,4"], 3, "twice"),
            (&["a=1,2"], 0, "0 rounds"),
            (&[], 3, "1 to 8"),
        ] {
            let bad = Design::new(vary(texts), rounds, 1).unwrap_err().to_string();
            assert!(bad.contains(words), "{bad}");
        }
    }
}
