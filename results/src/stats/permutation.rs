//! The permutation test: how often would runs that do not know their side differ this much?
//! On Welch's t, so that sides with unlike spread are judged rightly too (Janssen 1997; Chung,
//! Romano 2013).

use super::{all_finite, mean, variance};
use model::Rng;

/// Up to this many ways to deal the runs to the two sides, each is tried: 12 + 12 runs.
const DEALS_MAX: f64 = 2_704_156.0;
/// Beyond, this many are drawn.
const DRAWN: u64 = 20_000;
/// Seed of those draws: the test has no chance of its own.
const SEED: u64 = 0x7e57;
/// Statistics this close (relative) count as equal: they differ by rounding.
const TIE: f64 = 1e-9;
/// A variance (of values scaled to a spread of one) below this is rounding.
const NOTHING: f64 = 1e-12;

/// Two-sided p of the hypothesis that base and candidate come from one distribution: exact up to
/// 12 + 12 runs. 1 if a side is empty, a value is no number, or all are equal.
pub fn permutation_p(base: &[f64], candidate: &[f64]) -> f64 {
    if !all_finite(base) || !all_finite(candidate) {
        return 1.0;
    }
    let mut pool: Vec<f64> = base.iter().chain(candidate).copied().collect();
    let (center, spread) = (mean(&pool), variance(&pool).sqrt());
    if spread <= center.abs() * f64::EPSILON {
        return 1.0;
    }
    // Scaled, so that sums of squares lose no digits.
    pool.iter_mut().for_each(|value| *value = (*value - center) / spread);
    let test = Test::of(&pool, base.len());
    let least = test.score(Sums::of(&pool[..base.len()])) * (1.0 - TIE);
    match deals(base.len(), candidate.len()) <= DEALS_MAX {
        true => {
            let mut count = Count { least, hits: 0, all: 0 };
            // With as many runs on each side a deal differs as much as its mirror image: those
            // with the first run on the base's side are half of all, and enough.
            let fixed = usize::from(base.len() == candidate.len());
            test.deal(&pool[fixed..], base.len() - fixed, Sums::of(&pool[..fixed]), &mut count);
            count.hits as f64 / count.all as f64
        }
        false => drawn(&test, &mut pool, least),
    }
}

/// The smallest p that so many runs can reach, however much they differ: more than 0.05 means that
/// no difference can ever be found.
pub fn permutation_p_min(n: usize, m: usize) -> f64 {
    if n == 0 || m == 0 {
        return 1.0;
    }
    let all = deals(n, m);
    match all <= DEALS_MAX {
        // With as many runs on each side, the mirror image of a deal differs as much.
        true => (if n == m { 2.0 } else { 1.0 } / all).min(1.0),
        false => 1.0 / (DRAWN + 1) as f64,
    }
}

/// In how many ways `n + m` runs can be dealt to the two sides.
fn deals(n: usize, m: usize) -> f64 {
    let few = n.min(m);
    (1..=few).fold(1.0, |product, i| product * (n + m - few + i) as f64 / i as f64).round()
}

/// Sum and sum of squares of the runs on the base's side.
#[derive(Clone, Copy, Default)]
struct Sums {
    sum: f64,
    squares: f64,
}

impl Sums {
    fn of(values: &[f64]) -> Sums {
        values.iter().fold(Sums::default(), |sums, &value| sums.with(value))
    }

    fn with(self, value: f64) -> Sums {
        Sums { sum: self.sum + value, squares: self.squares + value * value }
    }
}

/// What every deal has in common.
struct Test {
    n: f64,
    m: f64,
    whole: Sums,
}

/// Deals that differ at least as much as the true one.
struct Count {
    least: f64,
    hits: u64,
    all: u64,
}

impl Count {
    fn add(&mut self, score: f64) {
        self.all += 1;
        self.hits += u64::from(score >= self.least);
    }
}

impl Test {
    fn of(pool: &[f64], n: usize) -> Test {
        Test { n: n as f64, m: (pool.len() - n) as f64, whole: Sums::of(pool) }
    }

    /// |Welch's t|; the difference alone where one run on each side has no variance.
    fn score(&self, base: Sums) -> f64 {
        let (n, m) = (self.n, self.m);
        let (sum, squares) = (self.whole.sum - base.sum, self.whole.squares - base.squares);
        let apart = (sum / m - base.sum / n).abs();
        if n < 2.0 || m < 2.0 {
            return apart;
        }
        let error = (base.squares - base.sum * base.sum / n) / (n * (n - 1.0))
            + (squares - sum * sum / m) / (m * (m - 1.0));
        match (error > NOTHING, apart > NOTHING) {
            (true, _) => apart / error.sqrt(),
            (false, true) => f64::INFINITY,
            (false, false) => 0.0,
        }
    }

    /// Every way to choose `left` more of the values for the base's side.
    fn deal(&self, values: &[f64], left: usize, base: Sums, count: &mut Count) {
        match left {
            0 => count.add(self.score(base)),
            1 => values.iter().for_each(|&value| count.add(self.score(base.with(value)))),
            _ => (0..=values.len() - left).for_each(|at| {
                self.deal(&values[at + 1..], left - 1, base.with(values[at]), count);
            }),
        }
    }
}

/// p from drawn deals; the true one counts as drawn too, so that p is never zero (Phipson, Smyth
/// 2010).
fn drawn(test: &Test, pool: &mut [f64], least: f64) -> f64 {
    let mut rng = Rng::new(SEED, 0);
    let n = test.n as usize;
    let mut hits = 0u64;
    for _ in 0..DRAWN {
        for at in 0..n {
            let other = at + rng.below((pool.len() - at) as u64) as usize;
            pool.swap(at, other);
        }
        hits += u64::from(test.score(Sums::of(&pool[..n])) >= least);
    }
    (hits + 1) as f64 / (DRAWN + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from scipy 1.17: `permutation_test` of |`ttest_ind(equal_var=False)`|, exact.
    #[test]
    fn p_is_that_of_scipy() {
        let check = |base: &[f64], candidate: &[f64], want: f64| {
            let got = permutation_p(base, candidate);
            assert!((got - want).abs() < 1e-12, "{base:?} {candidate:?}: {got}, not {want}");
        };
        let six = [10.1, 9.8, 10.4, 10.0, 9.9, 10.2];
        check(&six, &[10.6, 10.9, 10.4, 11.0, 10.7, 10.5], 4.0 / 924.0);
        check(&[10.1, 9.8, 10.4, 10.0], &[10.2, 10.5, 9.9, 10.3, 10.6], 30.0 / 126.0);
        check(&[5.0, 5.0, 6.0, 7.0, 7.0], &[6.0, 7.0, 8.0, 8.0, 9.0], 22.0 / 252.0);
        check(&[1.0; 3], &[2.0; 3], 0.1);
        check(&[1.0; 3], &[1.0; 3], 1.0);
        check(&[1.0], &[2.0], 1.0);
        check(&[], &[2.0], 1.0);
        check(&[1.0, f64::NAN], &[2.0, 3.0], 1.0);
        check(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0], &[1e9 + 7.0, 1e9 + 8.0, 1e9 + 9.0], 0.1);
    }

    #[test]
    fn the_smallest_p_is_reached_by_runs_far_apart() {
        for (n, m) in [(3, 3), (3, 4), (4, 4), (5, 5), (6, 6), (6, 4)] {
            let side = |n: usize, from: f64| -> Vec<f64> {
                (0..n).map(|i| from + (i * i) as f64 * 0.01).collect()
            };
            let got = permutation_p(&side(n, 1.0), &side(m, 9.0));
            let want = permutation_p_min(n, m);
            assert!((got - want).abs() < 1e-12, "{n} + {m}: {got}, not {want}");
        }
        assert_eq!(permutation_p_min(3, 3), 0.1);
        assert_eq!(permutation_p_min(6, 6), 2.0 / 924.0);
        assert_eq!(deals(12, 12), DEALS_MAX);
        assert_eq!(permutation_p_min(40, 40), 1.0 / 20_001.0);
    }

    #[test]
    fn drawn_deals_agree_with_all_deals() {
        let mut rng = Rng::new(5, 0);
        let base: Vec<f64> = (0..8).map(|_| rng.normal()).collect();
        let candidate: Vec<f64> = (0..8).map(|_| rng.normal() + 1.0).collect();
        let exact = permutation_p(&base, &candidate);
        let mut pool: Vec<f64> = base.iter().chain(&candidate).copied().collect();
        let test = Test::of(&pool, 8);
        let least = test.score(Sums::of(&base));
        let got = drawn(&test, &mut pool, least * (1.0 - TIE));
        assert!((got - exact).abs() < 0.01, "{got}, not {exact}");
    }
}
