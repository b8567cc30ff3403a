//! Where a run's warm-up ends, by rule and not by eye: MSER-5 (White 1997; White, Cobb, Spratt
//! 2000). The cut is the one after which the mean is known best.

/// Values in a batch.
const BATCH: usize = 5;
/// Fewer batches than this show no steady state.
const BATCHES_MIN: usize = 4;

/// How many values to cut from the front of a series taken at equal steps (one a second, say): a
/// multiple of five, below half of the series. `None` if the rule would cut half or more (the
/// series still rises or falls), if there are fewer than twenty values, or one is no number.
pub fn mser5(series: &[f64]) -> Option<usize> {
    if series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let means: Vec<f64> =
        series.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if means.len() < BATCHES_MIN {
        return None;
    }
    let limit = means.len() / 2;
    let errors = (0..=limit).map(|cut| error(&means[cut..]));
    let (best, _) = errors.enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    (best < limit).then_some(best * BATCH)
}

/// The statistic: sum of squared deviations over the squared number of batches.
fn error(means: &[f64]) -> f64 {
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count * count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rng;

    fn series(seed: u64, n: usize, shape: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut rng = Rng::new(seed, 0);
        (0..n).map(|t| shape(t as f64) + 0.5 * rng.normal()).collect()
    }

    /// Share of 200 seeds for which the cut lies in the range.
    fn share(n: usize, shape: fn(f64) -> f64, ok: impl Fn(Option<usize>) -> bool) -> f64 {
        let good = (0..200).filter(|&seed| ok(mser5(&series(seed, n, shape)))).count();
        good as f64 / 200.0
    }

    #[test]
    fn a_warm_up_of_known_length_is_cut() {
        let step = |t: f64| if t < 30.0 { 20.0 } else { 10.0 };
        let got = share(120, step, |cut| cut.is_some_and(|cut| (30..=50).contains(&cut)));
        assert!(got >= 0.9, "step: {got}");
        // After 46 s, 1 % of the start-up is left.
        let decay = |t: f64| 10.0 + 10.0 * (-t / 10.0).exp();
        let got = share(120, decay, |cut| cut.is_some_and(|cut| (15..=55).contains(&cut)));
        assert!(got >= 0.9, "decay: {got}");
    }

    #[test]
    fn a_steady_series_keeps_most_of_itself_and_a_trend_has_no_steady_state() {
        let got = share(120, |_| 10.0, |cut| cut.is_some());
        assert!(got >= 0.9, "steady: {got}");
        let got = share(120, |t| t, |cut| cut.is_none());
        assert_eq!(got, 1.0, "trend");
        assert_eq!(mser5(&[7.0; 60]), Some(0));
        assert_eq!(mser5(&[7.0; 19]), None);
        assert_eq!(mser5(&[]), None);
        assert_eq!(mser5(&[f64::NAN; 60]), None);
    }
}
