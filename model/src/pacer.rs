//! When people arrive: pure functions from a number in the queue to a time.

use crate::{Rng, Tick};
use serde::{Deserialize, Serialize};

/// How a crowd arrives, counted from the start of its phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacer {
    /// Everybody at the same instant: a storm.
    AtOnce,
    /// Evenly, so many a second.
    Constant {
        /// People a second.
        rate: f64,
    },
    /// Evenly, at a rate that changes linearly and then stays.
    Ramp {
        /// People a second at the start.
        from: f64,
        /// People a second at the end and from then on.
        to: f64,
        /// Length of the change, seconds.
        over_s: f64,
    },
    /// At random, independently of each other, so many a second on average.
    Poisson {
        /// People a second.
        rate: f64,
    },
    /// Evenly, at one rate after the other; the last one stays.
    Steps {
        /// Rate (people a second) and how long it holds (seconds).
        steps: Vec<(f64, f64)>,
    },
}

impl Pacer {
    /// The times of the first `count` arrivals, in order, from the phase's start.
    pub fn times(&self, count: u32, seed: u64) -> impl Iterator<Item = Tick> + '_ {
        let mut rng = Rng::new(seed, 0x9ACE);
        let mut random_s = 0.0;
        (0..count).map(move |k| {
            let seconds = match self {
                Pacer::Poisson { rate } => {
                    random_s += rng.exponential() / rate;
                    random_s
                }
                steady => steady.nth_s(f64::from(k)),
            };
            Tick((seconds.min(1e9) * 1e9) as u64)
        })
    }

    /// When the `k`-th arrival is due, seconds: the inverse of the expected number of arrivals.
    fn nth_s(&self, k: f64) -> f64 {
        match self {
            Pacer::AtOnce => 0.0,
            Pacer::Constant { rate } | Pacer::Poisson { rate } => k / rate,
            Pacer::Ramp { from, to, over_s } => {
                // k(t) = from t + (to - from) t² / (2 over), solved for t.
                if k == 0.0 {
                    return 0.0;
                }
                let whole = (from + to) / 2.0 * over_s;
                if k >= whole {
                    return over_s + (k - whole) / to;
                }
                let slope = (to - from) / over_s;
                2.0 * k / (from + (from * from + 2.0 * slope * k).max(0.0).sqrt())
            }
            Pacer::Steps { steps } => {
                let (mut before_k, mut before_s) = (0.0, 0.0);
                for (i, &(rate, hold_s)) in steps.iter().enumerate() {
                    if k < before_k + rate * hold_s || i + 1 == steps.len() {
                        return before_s + (k - before_k) / rate;
                    }
                    before_k += rate * hold_s;
                    before_s += hold_s;
                }
                0.0
            }
        }
    }

    /// The highest rate it reaches, people a second; infinite for a storm.
    pub fn peak_rate(&self) -> f64 {
        match self {
            Pacer::AtOnce => f64::INFINITY,
            Pacer::Constant { rate } | Pacer::Poisson { rate } => *rate,
            Pacer::Ramp { from, to, .. } => from.max(*to),
            Pacer::Steps { steps } => steps.iter().map(|s| s.0).fold(0.0, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pacer: &Pacer, want_s: &[f64]) {
        let got: Vec<f64> = pacer.times(want_s.len() as u32, 1).map(Tick::secs_f64).collect();
        for (got, want) in got.iter().zip(want_s) {
            assert!((got - want).abs() < 1e-6, "{pacer:?}: {got} instead of {want}");
        }
    }

    #[test]
    fn arrivals_are_due_when_the_law_says() {
        check(&Pacer::AtOnce, &[0.0, 0.0]);
        check(&Pacer::Constant { rate: 4.0 }, &[0.0, 0.25, 0.5]);
        // 0 to 2/s over 4 s: k = t²/4.
        check(
            &Pacer::Ramp { from: 0.0, to: 2.0, over_s: 4.0 },
            &[0.0, 2.0, 8f64.sqrt(), 12f64.sqrt(), 4.0, 4.5],
        );
        check(&Pacer::Ramp { from: 2.0, to: 2.0, over_s: 4.0 }, &[0.0, 0.5, 1.0]);
        check(&Pacer::Steps { steps: vec![(1.0, 2.0), (10.0, 1.0)] }, &[0.0, 1.0, 2.0, 2.1]);
    }

    #[test]
    fn poisson_keeps_its_rate_and_its_seed() {
        let pacer = Pacer::Poisson { rate: 50.0 };
        let times: Vec<Tick> = pacer.times(20_000, 5).collect();
        let rate = 20_000.0 / times.last().map_or(0.0, |t| t.secs_f64());
        assert!((rate - 50.0).abs() < 1.5, "{rate}");
        assert_eq!(times, pacer.times(20_000, 5).collect::<Vec<_>>());
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
