//! The search as an experiment: each level is a run of its own.

use super::{Level, Next, Question, next};
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
