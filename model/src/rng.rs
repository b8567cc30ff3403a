//! A small seeded generator of random numbers: same seed, same people, same run.

/// SplitMix64 (Steele, Lea, Flood 2014): eight bytes of state, so that every person can own one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// A generator for one `stream` (a person, a phase) of a run's `seed`.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut rng = Rng(seed ^ stream.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        rng.u64();
        rng
    }

    /// The next 64 random bits.
    pub fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound` (Lemire's multiplication; its bias is below 2⁻³² for our bounds).
    /// Zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `0.0..1.0` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// An exponentially distributed number with mean 1 (inverse transform).
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// A standard normal number (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_law() {
        let mut rng = Rng::new(42, 0);
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        let close = |got: f64, want: f64| assert!((got - want).abs() < 0.02, "{got} ~ {want}");
        close(mean(&mut || rng.unit()), 0.5);
        close(mean(&mut || rng.exponential()), 1.0);
        close(mean(&mut || rng.normal()), 0.0);
        close(mean(&mut || rng.normal().powi(2)), 1.0);
        close(mean(&mut || rng.between(3, 5) as f64), 4.0);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(Rng::new(1, 1).u64(), Rng::new(1, 2).u64());
        assert_eq!(Rng::new(1, 1), Rng::new(1, 1));
    }
}
