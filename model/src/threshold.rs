//! What a run must keep: `delivery p90: < 200ms`.

use crate::{Fold, Measure, Selector};
use serde::{Deserialize, Serialize};

/// One condition on a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Threshold {
    /// What is compared.
    pub quantity: Quantity,
    /// How.
    pub comparison: Comparison,
    /// With what, in the quantity's [`Unit`].
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
    /// What processes used.
    Process {
        /// Whose.
        role: Role,
        /// What of it.
        figure: Figure,
    },
    /// Time the hypervisor gave to others, as a fraction of one core.
    Steal,
    /// A metric that somebody publishes.
    Metric {
        /// Which series.
        selector: Selector,
        /// What becomes of its readings.
        fold: Fold,
    },
    /// The answer to a PromQL query.
    Query {
        /// Which query, and which of its answers.
        selector: Selector,
        /// What becomes of its readings.
        fold: Fold,
    },
}

impl Quantity {
    /// What its values and bounds are.
    pub fn unit(&self) -> Unit {
        match self {
            Quantity::Latency { .. } | Quantity::MeanLatency { .. } => Unit::Time,
            Quantity::FailureRate { .. } | Quantity::Steal => Unit::Share,
            Quantity::Counter { .. } | Quantity::Errors => Unit::Count,
            Quantity::Process { figure, .. } => figure.unit(),
            Quantity::Metric { .. } | Quantity::Query { .. } => Unit::Number,
        }
    }
}

/// What values and bounds are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// A fraction; of CPU, of one core.
    Share,
    /// A whole number.
    Count,
    /// Bytes.
    Bytes,
    /// Whatever the metric is in; by custom seconds and bytes.
    Number,
}

/// Whose processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The target's.
    Target,
    /// Our own.
    Generator,
}

impl Role {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Target => "target",
            Role::Generator => "generator",
        }
    }
}

/// Something about all processes of a role together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Mean CPU.
    CpuMean,
    /// Greatest CPU between two readings.
    CpuMax,
    /// CPU time.
    CpuTime,
    /// CPU time for each delivery.
    CpuPerDelivery,
    /// Time threads were ready and waited for a processor, as a fraction of the time.
    RunQueue,
    /// Greatest resident memory.
    MemoryMax,
    /// Mean resident memory.
    MemoryMean,
    /// Greatest proportional share of memory.
    PssMax,
    /// Mean proportional share of memory.
    PssMean,
    /// Greatest address space.
    Virtual,
    /// Most threads.
    Threads,
    /// Most open descriptors.
    Descriptors,
}

impl Figure {
    /// What its values are.
    pub const fn unit(self) -> Unit {
        match self {
            Figure::CpuMean | Figure::CpuMax | Figure::RunQueue => Unit::Share,
            Figure::CpuTime | Figure::CpuPerDelivery => Unit::Time,
            Figure::MemoryMax | Figure::MemoryMean => Unit::Bytes,
            Figure::PssMax | Figure::PssMean | Figure::Virtual => Unit::Bytes,
            Figure::Threads | Figure::Descriptors => Unit::Count,
        }
    }
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
