//! Capacity: how many people a target can hold. Two ways to find out, both pure: [`next`] decides
//! from the levels tried so far which one to try next (each is a run of its own), and
//! [`continuous::Governor`] moves the population of one run.
//!
//! A level of `n` people is a run of the scenario with its sizes scaled by `n` / (its people); a
//! run that is to last is one whose populations last longer ([`model::Plan::lengthen`]).
//!
//! The criteria are the scenario's thresholds. A level is **held** if every one was kept, in a run
//! that lasts; the answer is a level that was held as often as asked and at which nothing was ever
//! broken, with the lowest level above it at which something was.

mod answer;
pub mod continuous;
#[cfg(test)]
mod continuous_tests;

mod draw;
mod level;
mod search;
#[cfg(test)]
mod simulation;
mod stepped;
mod window;

pub use answer::{Capacity, Curve, Ended, Limit, Point};
pub use draw::About;
pub use level::{Fate, Level};
pub use search::next;
pub use stepped::Of;
pub use window::Window;

use serde::{Deserialize, Serialize};

/// Trials at most, if nobody says otherwise: a climb over three decades, closing in, holding and
/// repeating take about twenty.
pub const TRIALS_MAX: u32 = 40;
/// How near the level that holds and the one that fails should come, relative.
pub const RESOLUTION: f64 = 0.05;
/// Factor from one level of the climb to the next.
pub const GROWTH: f64 = 2.0;
/// How often the answer must have been held.
pub const HOLDS: u32 = 2;
/// How often the level above the answer must have failed: with two, a level that fails every third
/// time by chance would be taken for the limit every ninth time.
pub const CONFIRMATIONS: u32 = 3;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// The fewest and the most people to be tried.
    pub people: (u32, u32),
    /// Most trials.
    pub trials_max: u32,
    /// Most seconds for all trials together; infinite for no limit.
    #[serde(with = "endless")]
    pub seconds_max: f64,
    /// How near the level that holds and the one that fails should come: 0.05 is five percent.
    pub resolution: f64,
    /// Factor from one level of the climb to the next, above 1.
    pub growth: f64,
    /// How often the answer must be held, in runs that last.
    pub holds: u32,
    /// How often the level above the answer must have failed, and never been kept.
    pub confirmations: u32,
}

impl Question {
    /// The usual question about so many people, fewest and most.
    pub fn about(low: u32, high: u32) -> Question {
        Question {
            people: (low.max(1), high.max(low).max(1)),
            trials_max: TRIALS_MAX,
            seconds_max: f64::INFINITY,
            resolution: RESOLUTION,
            growth: GROWTH,
            holds: HOLDS,
            confirmations: CONFIRMATIONS,
        }
    }
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Run the scenario with so many people.
    Try {
        /// How many people in all.
        people: u32,
        /// Why.
        why: Why,
        /// Whether the run is to last.
        is_hold: bool,
    },
    /// This is the answer.
    Answer(Box<Capacity>),
}

/// Why a level is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// All is well so far: more people.
    Climb,
    /// Something was broken: fewer people.
    BackOff,
    /// Between the level that holds and the one that does not.
    CloseIn,
    /// The best level so far, for longer.
    Hold,
    /// What is known of a level is to be seen once more: the answer for longer, or the failure.
    Repeat,
}

impl Why {
    /// In words, as progress is told.
    pub fn words(self) -> &'static str {
        match self {
            Why::Climb => "climb",
            Why::BackOff => "back off",
            Why::CloseIn => "close in",
            Why::Hold => "hold",
            Why::Repeat => "repeat",
        }
    }
}

/// A number that may be infinite, which JSON cannot hold: written as nothing.
mod endless {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, out: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}
