//! Statistics over whole runs: every function is pure, and what is random has a seed. A number
//! given to them stands for one run, never for one second of it (docs/statistics.md).

mod bootstrap;
mod contrast;
mod effect;
mod many;
mod mser;
mod permutation;
mod power;
#[cfg(test)]
mod simulated_tests;

pub use bootstrap::{difference, difference_absolute, mean_bounds};
pub use contrast::contrast;
pub use effect::{cliffs_delta, hedges_g};
pub use many::benjamini_hochberg;
pub use mser::mser5;
pub use permutation::{permutation_p, permutation_p_min};
pub use power::{RUNS_MAX, detectable, runs_needed};

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of every `Bounds`, unless it says otherwise.
pub const CONFIDENCE: f64 = 0.95;
/// The least number of runs on a side that bounds are drawn from.
pub const RUNS_MIN: usize = 3;

/// Confidence bounds, 95 %: drawn from many experiments, that share of them holds the truth.
/// Infinite where the runs say nothing; in JSON an infinite bound is `null`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Bounds {
    /// The lower one.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

/// Bounds as JSON has them: it knows no infinity.
#[derive(Serialize, Deserialize)]
struct Stored {
    low: Option<f64>,
    high: Option<f64>,
}

impl From<Stored> for Bounds {
    fn from(stored: Stored) -> Bounds {
        Bounds {
            low: stored.low.unwrap_or(f64::NEG_INFINITY),
            high: stored.high.unwrap_or(f64::INFINITY),
        }
    }
}

impl From<Bounds> for Stored {
    fn from(bounds: Bounds) -> Stored {
        let finite = |value: f64| value.is_finite().then_some(value);
        Stored { low: finite(bounds.low), high: finite(bounds.high) }
    }
}

impl Bounds {
    /// Nothing is known.
    pub const UNKNOWN: Bounds = Bounds { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Whether the value lies between them.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether both are numbers one can print.
    pub fn is_finite(&self) -> bool {
        self.low.is_finite() && self.high.is_finite()
    }

    /// Both, through a growing function.
    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Bounds {
        Bounds { low: f(self.low), high: f(self.high) }
    }
}

/// Arithmetic mean; NaN of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Unbiased variance; zero of fewer than two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() - 1) as f64
}

/// Standard deviation common to two groups (Hedges, Olkin 1985); zero without any freedom.
pub(crate) fn pooled_deviation(base: &[f64], candidate: &[f64]) -> f64 {
    let (n, m) = (base.len() as f64, candidate.len() as f64);
    let squares = (n - 1.0) * variance(base) + (m - 1.0) * variance(candidate);
    if n + m > 2.0 { (squares / (n + m - 2.0)).max(0.0).sqrt() } else { 0.0 }
}

/// Whether there are numbers, and nothing else.
pub(crate) fn all_finite(values: &[f64]) -> bool {
    !values.is_empty() && values.iter().all(|value| value.is_finite())
}

/// Quantile `p` of Student's t with `freedom` degrees; infinite without freedom.
pub(crate) fn student_quantile(p: f64, freedom: f64) -> f64 {
    let inside = p > 0.0 && p < 1.0;
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(law) if inside => law.inverse_cdf(p),
        _ if p < 0.5 => f64::NEG_INFINITY,
        _ => f64::INFINITY,
    }
}

/// The values at the two tails that `CONFIDENCE` leaves, by the nearest rank (Hyndman, Fan 1996,
/// definition 3, rounded outwards). Sorts.
pub(crate) fn tails(values: &mut [f64]) -> Bounds {
    values.sort_by(f64::total_cmp);
    let cut = (values.len() as f64 * (1.0 - CONFIDENCE) / 2.0).floor() as usize;
    match (values.get(cut), values.len().checked_sub(cut + 1).and_then(|at| values.get(at))) {
        (Some(&low), Some(&high)) => Bounds { low, high },
        _ => Bounds::UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // scipy.stats.t.ppf, 1.17.
        for (p, freedom, want) in [
            (0.975, 10.0, 2.228138851986274),
            (0.8, 10.0, 0.8790578285505889),
            (0.975, 1.0, 12.706204736174694),
            (0.975, 30.0, 2.0422724563012378),
            (1.0 - 0.05 / 24.0, 100.0, 2.9326607879269577),
            (0.975, 1000.0, 1.9623390808264083),
            (0.975, 5000.0, 1.9604385517065073),
        ] {
            let got = student_quantile(p, freedom);
            assert!((got - want).abs() < 1e-6, "t({p}, {freedom}) = {got}, not {want}");
        }
        assert_eq!(student_quantile(0.975, 0.0), f64::INFINITY);
    }

    #[test]
    fn infinite_bounds_survive_json() {
        for bounds in [Bounds::UNKNOWN, Bounds { low: 1.0, high: f64::INFINITY }] {
            let json = serde_json::to_string(&bounds).unwrap();
            assert_eq!(serde_json::from_str::<Bounds>(&json).unwrap(), bounds, "{json}");
        }
    }
}
