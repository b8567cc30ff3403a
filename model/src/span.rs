//! How long something takes: always as long, or at random by a law.

use crate::Rng;
use serde::{Deserialize, Serialize};

/// A random or fixed span of time, nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// Always the same.
    Fixed(u64),
    /// Evenly between the two.
    Uniform(u64, u64),
    /// Exponential with that mean.
    Exponential(u64),
    /// Log-normal with that median and sigma of the logarithm.
    LogNormal(u64, f64),
}

impl Span {
    /// Draws one, nanoseconds (at most a day, so that a long tail cannot end a schedule).
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        const DAY_NS: f64 = 86_400e9;
        match *self {
            Span::Fixed(ns) => ns,
            Span::Uniform(low, high) => rng.between(low, high),
            Span::Exponential(mean) => (mean as f64 * rng.exponential()).min(DAY_NS) as u64,
            Span::LogNormal(median, sigma) => {
                (median as f64 * (sigma * rng.normal()).exp()).min(DAY_NS) as u64
            }
        }
    }

    /// The mean, nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match *self {
            Span::Fixed(ns) | Span::Exponential(ns) => ns as f64,
            Span::Uniform(low, high) => (low as f64 + high as f64) / 2.0,
            Span::LogNormal(median, sigma) => median as f64 * (sigma * sigma / 2.0).exp(),
        }
    }
}
