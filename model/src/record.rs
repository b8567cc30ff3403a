//! What happened in a run besides numbers: one line of `events.jsonl` each.

use crate::{FaultClass, Measure, Tick};
use serde::{Deserialize, Serialize};

/// Something that happened at an instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When.
    pub at: Tick,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// Which end of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    /// Its beginning.
    Begin,
    /// Its end.
    End,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    /// A phase of the timeline began or ended.
    Phase {
        /// Its name.
        name: String,
        /// Which end.
        edge: Edge,
        /// Whether it ended by its deadline instead of by its count.
        overdue: bool,
    },
    /// A mark of the timeline.
    Mark {
        /// Its name.
        name: String,
    },
    /// The first person of a phase entered a stage, or the last one left it.
    Stage {
        /// The phase.
        phase: String,
        /// The stage.
        stage: String,
        /// Which end.
        edge: Edge,
        /// The mark set here, if any (only at the beginning).
        mark: Option<String>,
    },
    /// How far a phase has come; later ones replace earlier ones of the same phase.
    Tally(Tally),
    /// The first failure of its kind, in words. Counts are in the intervals.
    Fault {
        /// What failed.
        measure: Measure,
        /// How.
        class: FaultClass,
        /// In words.
        detail: String,
    },
    /// The target started, ended by itself, or said something.
    Target {
        /// In words.
        detail: String,
    },
    /// The generator has something to say about itself.
    Generator {
        /// In words.
        detail: String,
    },
}

/// How far a run phase has come: asked and achieved. Mergeable over shards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The phase.
    pub phase: String,
    /// People who were asked for.
    pub asked: u64,
    /// People who set out.
    pub arrived: u64,
    /// People who got in (first join, or login if they join nothing).
    pub entered: u64,
    /// People who came to the end of their journey.
    pub finished: u64,
    /// People whose journey ended early by a fault.
    pub gave_up: u64,
    /// People whose journey was over before they got in.
    pub turned_back: u64,
    /// Messages due to be said.
    pub sends_due: u64,
    /// Messages handed to a socket.
    pub sends: u64,
    /// Of these: more than 10 ms after they were due.
    pub sends_late: u64,
    /// Greatest lateness of an arrival behind its schedule, nanoseconds.
    pub arrival_lag_ns_max: u64,
    /// When the first and the last person set out.
    pub arriving: Option<(Tick, Tick)>,
    /// When the first and the last person got in.
    pub entering: Option<(Tick, Tick)>,
    /// The stages of the journey.
    pub stages: Vec<StageTally>,
}

/// One stage of a journey in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTally {
    /// Its name.
    pub name: String,
    /// People who entered it.
    pub entered: u64,
    /// People who left it (for the next stage or the end).
    pub left: u64,
    /// When the first person entered.
    pub first_in: Option<Tick>,
    /// When the last person so far left.
    pub last_out: Option<Tick>,
    /// When the last person so far entered.
    #[serde(default)]
    pub last_in: Option<Tick>,
    /// When the first person left.
    #[serde(default)]
    pub first_out: Option<Tick>,
}

impl Tally {
    /// Adds what another shard saw of the same phase.
    pub fn merge(&mut self, other: &Tally) {
        self.asked += other.asked;
        self.arrived += other.arrived;
        self.entered += other.entered;
        self.finished += other.finished;
        self.gave_up += other.gave_up;
        self.turned_back += other.turned_back;
        self.sends_due += other.sends_due;
        self.sends += other.sends;
        self.sends_late += other.sends_late;
        self.arrival_lag_ns_max = self.arrival_lag_ns_max.max(other.arrival_lag_ns_max);
        self.arriving = hull(self.arriving, other.arriving);
        self.entering = hull(self.entering, other.entering);
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.entered += theirs.entered;
            mine.left += theirs.left;
            mine.first_in = [mine.first_in, theirs.first_in].into_iter().flatten().min();
            mine.last_out = mine.last_out.max(theirs.last_out);
            mine.last_in = mine.last_in.max(theirs.last_in);
            mine.first_out = [mine.first_out, theirs.first_out].into_iter().flatten().min();
        }
    }

    /// Widens a span of instants by one more.
    pub fn widen(span: &mut Option<(Tick, Tick)>, at: Tick) {
        *span = hull(*span, Some((at, at)));
    }
}

fn hull(a: Option<(Tick, Tick)>, b: Option<(Tick, Tick)>) -> Option<(Tick, Tick)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}
