//! Sums and differences of means of several groups of runs.

use super::{Bounds, CONFIDENCE, mean, student_quantile, variance};

/// The contrast `sum of c_i mean_i` over groups of runs, with its 95 % bounds: Student's t with
/// the degrees of freedom of Welch and Satterthwaite (Satterthwaite, Biometrics Bulletin 2, 1946),
/// which lets groups spread differently. Unknown bounds where a group has fewer than two runs.
pub fn contrast(groups: &[(f64, &[f64])]) -> (f64, Bounds) {
    let value = groups.iter().map(|(c, values)| c * mean(values)).sum();
    if groups.iter().any(|(_, values)| values.len() < 2) {
        return (value, Bounds::UNKNOWN);
    }
    // Each group's share of the contrast's variance, and its degrees of freedom.
    let share = |(c, values): &(f64, &[f64])| c * c * variance(values) / values.len() as f64;
    let all: f64 = groups.iter().map(share).sum();
    let lost = |group: &(f64, &[f64])| share(group).powi(2) / (group.1.len() as f64 - 1.0);
    let lost: f64 = groups.iter().map(lost).sum();
    if lost == 0.0 {
        return (value, Bounds { low: value, high: value });
    }
    let half = student_quantile((1.0 + CONFIDENCE) / 2.0, all * all / lost) * all.sqrt();
    (value, Bounds { low: value - half, high: value + half })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rng;

    #[test]
    fn a_contrast_of_two_is_welchs_interval() {
        // By hand: variances 5/3 and 14/3, so 4.9005 degrees, and t(0.975; 4.9005) = 2.58637.
        let (a, b) = ([10.0, 12.0, 11.0, 13.0], [15.0, 19.0, 14.0, 16.0]);
        let (value, bounds) = contrast(&[(1.0, &b), (-1.0, &a)]);
        assert_eq!(value, 4.5);
        assert!((bounds.low - 1.24556).abs() < 1e-4, "{bounds:?}");
        assert!((bounds.high - 7.75444).abs() < 1e-4, "{bounds:?}");
        assert_eq!(contrast(&[(1.0, &a), (1.0, &[1.0])]).1, Bounds::UNKNOWN);
    }

    #[test]
    fn bounds_hold_the_truth_as_often_as_they_say() {
        let mut held = 0;
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed, 0);
            let mut group = |mean: f64, deviation: f64| -> Vec<f64> {
                (0..5).map(|_| mean + deviation * rng.normal()).collect()
            };
            let (full, a, b, bare) =
                (group(100.0, 3.0), group(80.0, 2.0), group(90.0, 1.0), group(72.0, 1.0));
            // What the parts cost together, less what they cost one by one: 28 - 30.
            let parts: [(f64, &[f64]); 4] = [(-1.0, &full), (1.0, &a), (1.0, &b), (-1.0, &bare)];
            held += u32::from(contrast(&parts).1.contains(-2.0));
        }
        assert!((1_860..=1_980).contains(&held), "{held} of 2,000");
    }
}
