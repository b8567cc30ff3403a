//! A histogram of durations that costs nothing until something is recorded.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Smallest duration told apart, nanoseconds.
pub const LOWEST_NS: u64 = 1_000;
/// Longest duration told apart, nanoseconds (one hour); longer ones count as this.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits kept: values are exact to 0.1 %, below 0.5 ms to half a microsecond.
const DIGITS: u8 = 3;

/// Durations in nanoseconds, from 1 µs to 1 h, exact to 0.1 % or half a microsecond, whichever is
/// more (High Dynamic Range histogram).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histo(Option<Box<Histogram<u64>>>);

impl Histo {
    /// Records one duration.
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Records the same duration `n` times.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        self.inner().saturating_record_n(ns.min(HIGHEST_NS), n);
    }

    /// Adds everything `other` recorded.
    pub fn merge(&mut self, other: &Histo) {
        let Some(theirs) = &other.0 else { return };
        if let Err(never) = self.inner().add(theirs.as_ref()) {
            unreachable!("histograms of one shape always add up: {never}");
        }
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |h| h.len())
    }

    /// The duration below which the fraction `q` (0 to 1) of all lies, nanoseconds; zero if empty.
    pub fn quantile(&self, q: f64) -> u64 {
        self.0.as_ref().map_or(0, |h| h.value_at_quantile(q))
    }

    /// The longest, nanoseconds; zero if empty.
    pub fn max(&self) -> u64 {
        self.0.as_ref().map_or(0, |h| h.max())
    }

    /// The mean, nanoseconds; zero if empty.
    pub fn mean(&self) -> f64 {
        self.0.as_ref().map_or(0.0, |h| h.mean())
    }

    /// How many lie at or above `ns`.
    pub fn count_from(&self, ns: u64) -> u64 {
        self.0.as_ref().map_or(0, |h| h.count_between(ns, h.max().max(ns)))
    }

    /// The histogram of the library, for a standard data file; `None` if nothing was recorded.
    pub fn as_hdr(&self) -> Option<&Histogram<u64>> {
        self.0.as_deref()
    }

    /// Adds what a histogram of a standard data file holds, whatever its own bounds are.
    pub fn merge_hdr(&mut self, hdr: &Histogram<u64>) {
        for value in hdr.iter_recorded() {
            self.record_n(value.value_iterated_to(), value.count_at_value());
        }
    }

    fn inner(&mut self) -> &mut Histogram<u64> {
        self.0.get_or_insert_with(|| {
            Box::new(
                Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS)
                    .expect("the constants above are bounds of a histogram"),
            )
        })
    }
}

/// On the wire: the occupied buckets only.
impl Serialize for Histo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets: Vec<(u64, u64)> = self
            .0
            .iter()
            .flat_map(|h| h.iter_recorded())
            .map(|b| (b.value_iterated_to(), b.count_at_value()))
            .collect();
        buckets.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histo, D::Error> {
        let mut histo = Histo::default();
        for (ns, n) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            histo.record_n(ns, n);
        }
        Ok(histo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_a_thousandth() {
        let mut histo = Histo::default();
        for us in 1..=10_000u64 {
            histo.record(us * 1_000);
        }
        for (q, want) in [(0.5, 5_000_000.0), (0.99, 9_900_000.0), (1.0, 10_000_000.0)] {
            let got = histo.quantile(q) as f64;
            assert!((got / want - 1.0).abs() < 0.002, "q{q}: {got}");
        }
        assert_eq!(histo.count_from(5_000_000_000), 0);
    }

    #[test]
    fn out_of_range_is_clamped_and_empty_is_zero() {
        let mut histo = Histo::default();
        assert_eq!((histo.count(), histo.quantile(0.5), histo.max()), (0, 0, 0));
        histo.record(u64::MAX);
        histo.record(0);
        assert_eq!(histo.count(), 2);
        assert!(histo.max() >= HIGHEST_NS && histo.max() < HIGHEST_NS / 100 * 101);
    }
}
