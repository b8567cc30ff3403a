//! What a run must keep: `delivery p90: < 200ms`.

use crate::Measure;
use serde::{Deserialize, Serialize};

/// One condition on a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Threshold {
    /// What is compared.
    pub quantity: Quantity,
    /// How.
    pub comparison: Comparison,
    /// With what: nanoseconds, a count, a fraction (0 to 1) or a rate a second.
    pub bound: f64,
    /// As the user wrote it.
    pub text: String,
}

/// What a threshold looks at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// A quantile (0 to 1) of a measure's corrected latency, nanoseconds.
    Latency {
        /// The measure.
        measure: Measure,
        /// The quantile; 1 is the maximum.
        quantile: f64,
    },
    /// A measure's mean corrected latency, nanoseconds.
    MeanLatency {
        /// The measure.
        measure: Measure,
    },
    /// The fraction of a measure's requests that failed.
    FailureRate {
        /// The measure.
        measure: Measure,
    },
    /// A run's total of one field of [`crate::Counters`].
    Counter {
        /// The field's name.
        name: String,
    },
    /// All failures of all measures.
    Errors,
}

/// How a quantity is compared with its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

impl Comparison {
    /// Whether `value` keeps the bound.
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Comparison::Below => value < bound,
            Comparison::AtMost => value <= bound,
            Comparison::Equal => value == bound,
            Comparison::AtLeast => value >= bound,
            Comparison::Above => value > bound,
        }
    }
}
