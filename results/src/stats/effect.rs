//! How large a difference is beside the spread of the runs.

use super::{mean, pooled_deviation};
use statrs::function::gamma::ln_gamma;

/// Hedges' g: difference of the means (candidate - base) over the pooled standard deviation,
/// corrected for few runs (Hedges 1981, exact form). Infinite if the runs do not spread but
/// differ, 0 if they do neither, NaN without runs.
pub fn hedges_g(base: &[f64], candidate: &[f64]) -> f64 {
    let apart = mean(candidate) - mean(base);
    let freedom = (base.len() + candidate.len()) as f64 - 2.0;
    let d = match (pooled_deviation(base, candidate), apart) {
        (_, 0.0) => 0.0,
        (0.0, _) => apart * f64::INFINITY,
        (deviation, _) => apart / deviation,
    };
    d * correction(freedom)
}

/// `J(v) = Γ(v/2) / (sqrt(v/2) Γ((v-1)/2))`; 1 where it is not defined.
fn correction(freedom: f64) -> f64 {
    match freedom > 1.0 {
        true => {
            let log = ln_gamma(freedom / 2.0) - ln_gamma((freedom - 1.0) / 2.0);
            log.exp() / (freedom / 2.0).sqrt()
        }
        false => 1.0,
    }
}

/// Cliff's delta (1993): how much more often a run of the candidate lies above one of the base
/// than below, from -1 to 1. NaN without runs.
pub fn cliffs_delta(base: &[f64], candidate: &[f64]) -> f64 {
    let pairs = candidate.iter().flat_map(|c| base.iter().map(move |b| (c, b)));
    let sum: f64 = pairs.map(|(c, b)| f64::from(i8::from(c > b) - i8::from(c < b))).sum();
    sum / (base.len() * candidate.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_their_formulas() {
        // numpy and scipy.special.gammaln, 1.17.
        let six = ([10.1, 9.8, 10.4, 10.0, 9.9, 10.2], [10.6, 10.9, 10.4, 11.0, 10.7, 10.5]);
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got}, not {want}");
        close(hedges_g(&six.0, &six.1), 2.5405329845153704);
        close(hedges_g(&[10.1, 9.8, 10.4, 10.0], &[10.2, 10.5, 9.9, 10.3, 10.6]), 0.75727988064);
        close(cliffs_delta(&six.0, &six.1), 35.0 / 36.0);
        close(cliffs_delta(&[5.0, 5.0, 6.0, 7.0, 7.0], &[6.0, 7.0, 8.0, 8.0, 9.0]), 0.72);
        close(cliffs_delta(&six.1, &six.0), -35.0 / 36.0);
        assert_eq!(hedges_g(&[1.0; 3], &[2.0; 3]), f64::INFINITY);
        assert_eq!(hedges_g(&[2.0; 3], &[1.0; 3]), f64::NEG_INFINITY);
        assert_eq!(hedges_g(&[1.0; 3], &[1.0; 3]), 0.0);
        assert!(hedges_g(&[], &[]).is_nan() && cliffs_delta(&[], &[]).is_nan());
    }
}
