//! Experiments: several runs that answer one question. An experiment is a pure function from the
//! trials so far to the next one or to none, so an interrupted one goes on where it was.

mod figure;
mod record;

pub use crate::report::page::Drawn;
pub use figure::{Better, Figure, Unit, figures, message_figures, phase_figures, warm_up_s};
pub use record::{Experiment, TRIALS, Told, stored, told, write_report};

use crate::run::{CRIPPLED, INTERRUPTED, Status};
use crate::summary::{Level, Summary};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One variant of the scenario that is tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arm {
    /// Its name, also a part of folder names.
    pub label: String,
    /// Values of the scenario that are changed, in order: path and value, as of `--set`.
    pub set: Vec<(String, String)>,
    /// Features that nobody uses.
    pub without: Vec<String>,
    /// How many people take part in all; the scenario's own number if absent.
    pub people: Option<u32>,
    /// Whether it is a run that lasts: populations are held for longer.
    pub lasts: bool,
}

impl Arm {
    /// The scenario as it is, under a name.
    pub fn named(label: &str) -> Arm {
        Arm { label: label.to_owned(), ..Arm::default() }
    }
}

/// A run that was made for an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// What was tried.
    pub arm: Arm,
    /// Its run directory.
    pub dir: PathBuf,
    /// What came out.
    pub summary: Summary,
    /// Why it was aborted; empty if it was not.
    pub reason: String,
}

impl Trial {
    /// Why its figures must not be used; `None` if they may.
    pub fn flaw(&self) -> Option<String> {
        let health = &self.summary.health;
        match self.summary.status {
            Status::Finished if health.level == Level::Invalid => {
                let worst = health.findings.first();
                Some(worst.map_or("the generator was not fit", |f| f.what.as_str()).to_owned())
            }
            Status::Finished => None,
            Status::Running => Some("it was killed".into()),
            Status::Aborted => Some(self.reason.clone()),
        }
    }

    /// When the target ended by itself in mid-run: how, with its last words.
    pub fn crash(&self) -> Option<&str> {
        let others = [INTERRUPTED, CRIPPLED];
        let aborted = self.summary.status == Status::Aborted;
        (aborted && !others.contains(&self.reason.as_str())).then_some(self.reason.as_str())
    }
}

/// What an experiment tries, as a pure function of what was tried.
pub trait Design {
    /// The next arm, or none if the question can be answered.
    fn next(&self, done: &[Trial]) -> Option<Arm>;

    /// How many trials there will be if nothing goes wrong.
    fn trials_planned(&self) -> usize;
}

/// Arms one after the other. Trials that came out unusable are made again at the end, once each; a
/// target that ended by itself is a result and is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sequence {
    /// What is tried, in order.
    pub arms: Vec<Arm>,
}

impl Sequence {
    /// Each arm so many times. Every second round goes backwards (ABBA, ABCCBA), so that a machine
    /// that slowly changes favors none of them.
    pub fn rounds(arms: &[Arm], rounds: usize) -> Sequence {
        let forth = || arms.iter().cloned();
        let round = |round: usize| -> Vec<Arm> {
            if round.is_multiple_of(2) { forth().collect() } else { forth().rev().collect() }
        };
        Sequence { arms: (0..rounds).flat_map(round).collect() }
    }
}

impl Design for Sequence {
    fn next(&self, done: &[Trial]) -> Option<Arm> {
        let Some(again) = done.len().checked_sub(self.arms.len()) else {
            return self.arms.get(done.len()).cloned();
        };
        let unusable = done[..self.arms.len()]
            .iter()
            .filter(|trial| trial.flaw().is_some() && trial.crash().is_none());
        unusable.skip(again).map(|trial| trial.arm.clone()).next()
    }

    fn trials_planned(&self) -> usize {
        self.arms.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which arms a design tries, where `flaw` says how the trial of a number ends.
    fn order(rounds: &Sequence, flaw: impl Fn(usize) -> Trial) -> String {
        let mut done = Vec::new();
        let mut order = String::new();
        while let Some(arm) = rounds.next(&done) {
            order += &arm.label;
            done.push(Trial { arm, ..flaw(done.len()) });
        }
        order
    }

    fn rounds(rounds: usize) -> Sequence {
        Sequence::rounds(&["a", "b", "c"].map(Arm::named), rounds)
    }

    fn finished() -> Trial {
        let summary = Summary { status: Status::Finished, ..Summary::default() };
        Trial { summary, ..Trial::default() }
    }

    #[test]
    fn every_second_round_goes_backwards() {
        assert_eq!(order(&rounds(3), |_| finished()), "abccbaabc");
    }

    #[test]
    fn unusable_runs_are_made_again_and_crashes_are_not() {
        let unusable = |mut trial: Trial| {
            trial.summary.health.level = Level::Invalid;
            trial
        };
        let crashed = |mut trial: Trial| {
            trial.summary.status = Status::Aborted;
            trial.reason = "the target ended by itself".into();
            trial
        };
        let one = |at| if at == 1 { unusable(finished()) } else { finished() };
        assert_eq!(order(&rounds(2), one), "abccbab");
        let dead = |at| if at == 1 { crashed(finished()) } else { finished() };
        assert_eq!(order(&rounds(2), dead), "abccba");
        assert_eq!(order(&rounds(2), |_| unusable(finished())).len(), 12, "it ends");
    }
}
