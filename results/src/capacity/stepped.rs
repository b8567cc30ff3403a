//! The search as an experiment: each level is a run of its own.

use super::{Capacity, Level, Next, Question, next};
use crate::experiment::{Arm, Design, Trial};

impl Question {
    /// What the trials so far say.
    pub fn levels(done: &[Trial]) -> Vec<Level> {
        let level = |trial: &Trial| {
            let crash = trial.crash().map(str::to_owned);
            Level::of(trial.arm.people.unwrap_or(0), trial.arm.lasts, &trial.summary, crash)
        };
        done.iter().map(level).collect()
    }
}

/// The same search on a variant of the scenario.
pub struct Of<'a> {
    /// What is asked.
    pub question: &'a Question,
    /// The variant; how many people there are is the search's.
    pub arm: &'a Arm,
}

impl Design for Of<'_> {
    fn next(&self, done: &[Trial]) -> Option<Arm> {
        let arm = self.question.next(done)?;
        Some(Arm { set: self.arm.set.clone(), without: self.arm.without.clone(), ..arm })
    }

    fn trials_planned(&self) -> usize {
        self.question.trials_planned()
    }
}

impl Question {
    /// The answer, if the trials are enough for one.
    pub fn answer(&self, done: &[Trial]) -> Option<Capacity> {
        match next(self, &Question::levels(done)) {
            Next::Answer(found) => Some(*found),
            Next::Try { .. } => None,
        }
    }
}

impl Design for Question {
    fn next(&self, done: &[Trial]) -> Option<Arm> {
        match next(self, &Question::levels(done)) {
            Next::Answer(_) => None,
            Next::Try { people, why, is_hold } => Some(Arm {
                label: format!("{people} people, {}", why.words()),
                people: Some(people),
                lasts: is_hold,
                ..Arm::default()
            }),
        }
    }

    fn trials_planned(&self) -> usize {
        self.trials_max as usize
    }
}
