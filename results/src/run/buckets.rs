//! A histogram that keeps only what is occupied: thousands of seconds fit in memory.

use model::Histo;

/// Durations of one measure in one second: (highest nanoseconds of the bucket, count), ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets(Vec<(u64, u64)>);

impl Buckets {
    /// From buckets in ascending order.
    pub(crate) fn ascending(buckets: Vec<(u64, u64)>) -> Buckets {
        debug_assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
        Buckets(buckets)
    }

    /// How many durations.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, b| sum.saturating_add(b.1))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The duration below which the fraction `q` (0 to 1) of all lies, nanoseconds; zero if empty.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0u64;
        for &(ns, n) in &self.0 {
            seen = seen.saturating_add(n);
            if seen >= rank {
                return ns;
            }
        }
        self.max()
    }

    /// The longest, nanoseconds; zero if empty.
    pub fn max(&self) -> u64 {
        self.0.last().map_or(0, |b| b.0)
    }

    /// The mean, nanoseconds; zero if empty.
    pub fn mean_ns(&self) -> f64 {
        let sum: f64 = self.0.iter().map(|&(ns, n)| ns as f64 * n as f64).sum();
        sum / (self.count() as f64).max(1.0)
    }

    /// Adds everything to a histogram.
    pub fn add_to(&self, histo: &mut Histo) {
        for &(ns, n) in &self.0 {
            histo.record_n(ns, n);
        }
    }

    /// Adds everything `other` holds.
    pub fn merge(&mut self, other: &Buckets) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let mut all: Vec<(u64, u64)> = self.0.iter().chain(&other.0).copied().collect();
        all.sort_unstable_by_key(|b| b.0);
        self.0.clear();
        for (ns, n) in all {
            match self.0.last_mut() {
                Some(last) if last.0 == ns => last.1 = last.1.saturating_add(n),
                _ => self.0.push((ns, n)),
            }
        }
    }
}

impl From<&Histo> for Buckets {
    fn from(histo: &Histo) -> Buckets {
        let recorded = histo.as_hdr().into_iter().flat_map(|hdr| hdr.iter_recorded());
        Buckets(recorded.map(|b| (b.value_iterated_to(), b.count_at_value())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rng;

    #[test]
    fn quantiles_are_those_of_the_histogram() {
        for seed in 0..30 {
            let mut rng = Rng::new(seed, 0);
            let (mut all, mut sum) = (Histo::default(), Buckets::default());
            for _ in 0..3 {
                let mut histo = Histo::default();
                for _ in 0..rng.below(500) {
                    let bits = 10 + rng.below(30);
                    histo.record(rng.below(1 << bits));
                }
                all.merge(&histo);
                sum.merge(&Buckets::from(&histo));
            }
            assert_eq!(sum, Buckets::from(&all), "seed {seed}");
            assert_eq!((sum.count(), sum.max()), (all.count(), all.max()), "seed {seed}");
            for q in [0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
                assert_eq!(sum.quantile(q), all.quantile(q), "seed {seed} q {q}");
            }
        }
    }
}
