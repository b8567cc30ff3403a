//! What so many runs can see, and how many are needed to see so much.

use super::{RUNS_MIN, mean, permutation_p_min, pooled_deviation, student_quantile};
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// `runs_needed` looks no further.
pub const RUNS_MAX: u32 = 1_000;

/// The smallest relative difference that runs like these find with probability `power`, two-sided
/// at `alpha`: `(t(1 - alpha/2) + t(power)) s sqrt(1/n + 1/m) / |mean of base|`, `s` the pooled
/// standard deviation and t Student's quantiles with `n + m - 2` degrees (Machin et al. 2018,
/// chapter 3). Infinite if the permutation test cannot reach `alpha` with so few runs, or where
/// the base's mean is zero.
pub fn detectable(base: &[f64], candidate: &[f64], alpha: f64, power: f64) -> f64 {
    let whole = mean(base).abs();
    let reachable = permutation_p_min(base.len(), candidate.len()) <= alpha;
    match reachable && whole > 0.0 && pooled_deviation(base, candidate).is_finite() {
        true => {
            let spread = pooled_deviation(base, candidate) / whole;
            spread * least_shift(base.len() as f64, candidate.len() as f64, alpha, power)
        }
        false => f64::INFINITY,
    }
}

/// The smallest difference in standard deviations.
fn least_shift(n: f64, m: f64, alpha: f64, power: f64) -> f64 {
    let freedom = n + m - 2.0;
    let sum = student_quantile(1.0 - alpha / 2.0, freedom) + student_quantile(power, freedom);
    sum * (1.0 / n + 1.0 / m).sqrt()
}

/// Runs needed on each side to find a relative difference in the one of `measures` measures that
/// has it, where whole runs spread by `cv` (standard deviation over mean). `alpha / measures` is
/// the level that Benjamini and Hochberg ask of a measure that stands alone. The t-test's power
/// counts, and that the permutation test can reach the level; where only its very smallest p does,
/// all runs of one side must lie above all of the other. More than `RUNS_MAX` is `u32::MAX`.
pub fn runs_needed(
    cv: f64,
    relative_difference: f64,
    alpha: f64,
    power: f64,
    measures: usize,
) -> u32 {
    let level = alpha / measures.max(1) as f64;
    let shift = relative_difference.abs() / cv;
    let enough = |&runs: &u32| {
        let (n, least) = (f64::from(runs), permutation_p_min(runs as usize, runs as usize));
        least <= level
            && least_shift(n, n, level, power) <= shift
            && (2.0 * least <= level || apart(runs as i32, shift) >= power)
    };
    match shift > 0.0 {
        true => (RUNS_MIN as u32..=RUNS_MAX).find(enough).unwrap_or(u32::MAX),
        false => u32::MAX,
    }
}

/// Probability that all of `n` normal runs lie above all of `n` others, whose mean is `shift`
/// standard deviations lower: `∫ n φ(x) Φ(x)^(n-1) Φ(shift - x)^n dx`, by the midpoint rule.
fn apart(n: i32, shift: f64) -> f64 {
    const STEPS: i32 = 400;
    const FAR: f64 = 8.0;
    let law = Normal::standard();
    let width = 2.0 * FAR / f64::from(STEPS);
    let part = |step: i32| {
        let x = -FAR + (f64::from(step) + 0.5) * width;
        law.pdf(x) * law.cdf(x).powi(n - 1) * law.cdf(shift - x).powi(n)
    };
    (0..STEPS).map(part).sum::<f64>() * f64::from(n) * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_follows_the_formula() {
        let (base, candidate) = ([99.0, 100.0, 101.0, 100.0], [109.0, 110.0, 111.0, 110.0]);
        // scipy 1.17: (t.ppf(.975, 6) + t.ppf(.8, 6)) sqrt(2/4) sqrt(2/3) / 100.
        let got = detectable(&base, &candidate, 0.05, 0.8);
        assert!((got - 2.3706568976 * (2.0f64 / 3.0).sqrt() / 100.0).abs() < 1e-9, "{got}");
        assert_eq!(detectable(&base[..3], &candidate[..3], 0.05, 0.8), f64::INFINITY);
        assert_eq!(detectable(&base, &candidate, 0.01, 0.8), f64::INFINITY);
        assert_eq!(detectable(&[0.0; 4], &[0.0; 4], 0.05, 0.8), f64::INFINITY);
        assert_eq!(detectable(&[], &[], 0.05, 0.8), f64::INFINITY);
    }

    #[test]
    fn more_noise_smaller_differences_and_more_measures_need_more_runs() {
        let needed = |cv, d, measures| runs_needed(cv, d, 0.05, 0.8, measures);
        assert_eq!(needed(0.001, 0.05, 1), 4);
        assert_eq!(needed(0.001, 0.05, 12), 6);
        assert_eq!(needed(0.02, 0.05, 1), 5);
        // scipy.integrate.quad of the same.
        for (n, shift, want) in [(4, 2.5, 0.6814999367), (6, 5.0 / 1.5, 0.8130426326)] {
            assert!((apart(n, shift) - want).abs() < 1e-6, "{n}, {shift}: {}", apart(n, shift));
        }
        assert!(needed(0.05, 0.05, 1) > 15 && needed(0.05, 0.05, 1) < 20);
        assert!(needed(0.05, 0.05, 12) > needed(0.05, 0.05, 1));
        assert_eq!(needed(0.05, 0.0, 1), u32::MAX);
        assert_eq!(needed(f64::NAN, 0.05, 1), u32::MAX);
    }
}
