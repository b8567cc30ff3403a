//! Many measures at once: the more one looks at, the more differ by chance alone.

/// Benjamini and Hochberg's adjusted p (1995), often called q, in the order given: calling every
/// measure with `q <= 0.05` different is wrong in at most 5 % of the calls, on average. What is
/// not a number counts as 1.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let value = |at: usize| if p[at].is_nan() { 1.0 } else { p[at].clamp(0.0, 1.0) };
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| value(a).total_cmp(&value(b)));
    let mut q = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (rank, &at) in order.iter().enumerate().rev() {
        least = least.min(value(at) * p.len() as f64 / (rank + 1) as f64);
        q[at] = least;
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(p: &[f64], want: &[f64]) {
        let got = benjamini_hochberg(p);
        let close = got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close && got.len() == want.len(), "{p:?}: {got:?}, not {want:?}");
    }

    #[test]
    fn adjusted_p_are_those_of_scipy() {
        // The fifteen p of Benjamini, Hochberg 1995, section 4.2; scipy 1.17
        // `false_discovery_control`.
        check(
            &[
                0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
                0.4262, 0.5719, 0.6528, 0.7590, 1.0,
            ],
            &[
                0.0015,
                0.003,
                0.0095,
                0.035625,
                0.0603,
                0.06385714285714286,
                0.06385714285714286,
                0.0645,
                0.0765,
                0.486,
                0.5811818181818181,
                0.714875,
                0.7532307692307693,
                0.8132142857142857,
                1.0,
            ],
        );
        check(&[0.05, 0.01, 0.04, 0.02, 0.03], &[0.05; 5]);
        check(&[0.01, f64::NAN], &[0.02, 1.0]);
        check(&[], &[]);
    }
}
