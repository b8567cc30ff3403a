//! One level: so many people, tried once.

use crate::summary::{self, Judged, Outcome, Summary};
use serde::{Deserialize, Serialize};

/// One trial of so many people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Level {
    /// How many people the run asked for.
    pub people: u32,
    /// Whether it was a run that lasts.
    pub is_hold: bool,
    /// The criteria with what was measured.
    pub criteria: Vec<Judged>,
    /// Why the generator was not fit to measure; absent if it was.
    pub generator_limit: Option<String>,
    /// How the target failed apart from the criteria: it ended by itself, or let nobody in.
    pub collapse: Option<String>,
    /// How long it took, seconds.
    pub seconds: f64,
}

/// What became of a level in one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Every criterion was kept.
    Kept,
    /// The target failed it.
    Failed,
    /// The generator, or its machine, was the limit: nothing is known about the target.
    Limited,
}

impl Level {
    /// What a run says. `crash` are the last words of a target that ended by itself.
    pub fn of(people: u32, is_hold: bool, summary: &Summary, crash: Option<String>) -> Level {
        let nobody = summary.people.due > 0 && summary.people.entered == 0;
        let refused = nobody.then(|| "nobody got in".to_owned());
        let worst = summary.health.findings.first();
        let worst = worst.filter(|finding| finding.level == summary::Level::Invalid);
        Level {
            people,
            is_hold,
            criteria: summary.thresholds.clone(),
            generator_limit: worst.map(|finding| finding.what.clone()),
            collapse: crash.or(refused),
            seconds: summary.seconds,
        }
    }

    /// What became of it. A criterion without anything to compare was not kept.
    pub fn fate(&self) -> Fate {
        let is_kept = |judged: &Judged| judged.outcome == Outcome::Kept;
        match () {
            () if self.collapse.is_some() => Fate::Failed,
            () if self.generator_limit.is_some() => Fate::Limited,
            () if self.criteria.iter().all(is_kept) => Fate::Kept,
            () => Fate::Failed,
        }
    }

    /// The criteria that were not kept, as the user wrote them.
    pub fn broken(&self) -> impl Iterator<Item = &Judged> {
        self.criteria.iter().filter(|judged| judged.outcome != Outcome::Kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Finding, Health, People};

    #[test]
    fn a_run_becomes_a_level() {
        let judged = |outcome| Judged { outcome, ..Judged::default() };
        let run = |outcome, level, entered| Summary {
            thresholds: vec![judged(Outcome::Kept), judged(outcome)],
            health: Health {
                level,
                findings: vec![Finding { level, what: "slow".into(), ..Finding::default() }],
            },
            people: People { due: 5, entered, ..People::default() },
            ..Summary::default()
        };
        let fate = |summary: &Summary, crash: Option<&str>| {
            Level::of(5, false, summary, crash.map(str::to_owned)).fate()
        };
        use crate::summary::Level::{Healthy, Invalid, Strained};
        assert_eq!(fate(&run(Outcome::Kept, Healthy, 5), None), Fate::Kept);
        assert_eq!(fate(&run(Outcome::Kept, Strained, 5), None), Fate::Kept);
        assert_eq!(fate(&run(Outcome::Broken, Healthy, 5), None), Fate::Failed);
        assert_eq!(fate(&run(Outcome::Unmeasured, Healthy, 5), None), Fate::Failed);
        assert_eq!(fate(&run(Outcome::Kept, Invalid, 5), None), Fate::Limited);
        assert_eq!(fate(&run(Outcome::Broken, Invalid, 5), None), Fate::Limited);
        assert_eq!(fate(&run(Outcome::Kept, Invalid, 0), None), Fate::Failed, "nobody got in");
        assert_eq!(fate(&run(Outcome::Kept, Invalid, 5), Some("killed")), Fate::Failed);
    }
}
