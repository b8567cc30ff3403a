//! The search for a capacity with a fresh run for each trial. Nothing is remembered but the levels
//! tried, so an interrupted search goes on where it was.
//!
//! Climb by a factor while all is kept; after a failure close in between the highest level that
//! was kept and the lowest that failed, by their geometric mean; hold the best level, for longer,
//! as often as asked; then see the failure above it once more. A level that has done both, kept
//! and failed, is **mixed**: it is never the answer, and never the bound either.

use super::answer;
use super::level::{Fate, Level};
use super::{Ended, Next, Question, Why};
use std::collections::BTreeMap;

/// Most repetitions more than asked that chance calls for.
const NOISE_MAX: u32 = 2;

/// All trials of one number of people.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tries {
    pub(super) kept: u32,
    /// Of these: in runs that last.
    pub(super) held: u32,
    pub(super) failed: u32,
    pub(super) limited: u32,
}

impl Tries {
    /// Everything was kept, whenever it could be measured, which was at least as often as not.
    pub(super) fn is_good(self) -> bool {
        self.kept > 0 && self.failed == 0 && self.limited <= self.kept
    }

    /// It was never kept.
    pub(super) fn is_bound(self) -> bool {
        self.kept == 0 && self.failed + self.limited > 0
    }
}

/// What is known.
pub(super) struct Known {
    pub(super) levels: BTreeMap<u32, Tries>,
}

impl Known {
    pub(super) fn of(done: &[Level]) -> Known {
        let mut levels: BTreeMap<u32, Tries> = BTreeMap::new();
        for level in done {
            let tries = levels.entry(level.people).or_default();
            match level.fate() {
                Fate::Kept => {
                    tries.kept += 1;
                    tries.held += u32::from(level.is_hold);
                }
                Fate::Failed => tries.failed += 1,
                Fate::Limited => tries.limited += 1,
            }
        }
        Known { levels }
    }

    /// The lowest level that was never kept.
    pub(super) fn bound(&self) -> Option<(u32, Tries)> {
        self.levels.iter().map(|(&n, &tries)| (n, tries)).find(|(_, tries)| tries.is_bound())
    }

    /// Levels below the bound, from the highest down.
    fn below(&self) -> impl Iterator<Item = (u32, Tries)> {
        let bound = self.bound().map_or(u32::MAX, |(n, _)| n);
        self.levels.range(..bound).rev().map(|(&n, &tries)| (n, tries))
    }

    /// The highest level below the bound at which everything was always kept.
    pub(super) fn best(&self) -> Option<(u32, Tries)> {
        self.below().find(|(_, tries)| tries.is_good())
    }

    /// How often more than asked both ends of the interval must be seen: mixed levels show that
    /// chance has a part in it.
    fn noise(&self) -> u32 {
        let mixed = self.levels.values().filter(|tries| tries.kept > 0 && !tries.is_good());
        (mixed.count() as u32).min(NOISE_MAX)
    }

    /// The lowest level above `n` at which not everything was always kept.
    fn edge_above(&self, n: u32) -> Option<u32> {
        let above = self.levels.range(n + 1..);
        above.filter(|(_, tries)| !tries.is_good()).map(|(&n, _)| n).next()
    }
}

/// Decides from the levels tried so far what to do next. It always comes to an answer: after
/// `trials_max` trials or `seconds_max` seconds at the latest.
pub fn next(question: &Question, done: &[Level]) -> Next {
    let known = Known::of(done);
    let answer = |ended| Next::Answer(Box::new(answer::answer(question, done, ended)));
    let spent: f64 = done.iter().map(|level| level.seconds).sum();
    if done.len() >= question.trials_max as usize {
        return answer(Ended::Trials);
    }
    if spent >= question.seconds_max {
        return answer(Ended::Time);
    }
    let Some((people, why)) = wanted(question, &known) else { return answer(Ended::Answered) };
    let why = match why {
        Why::CloseIn if has_just_failed(done, people) => Why::BackOff,
        why => why,
    };
    let is_good = known.levels.get(&people).is_some_and(|tries| tries.is_good());
    let is_hold = why == Why::Hold || (why == Why::Repeat && is_good);
    Next::Try { people, why, is_hold }
}

/// Whether the trial before failed with more people than are tried now.
fn has_just_failed(done: &[Level], people: u32) -> bool {
    done.last().is_some_and(|last| last.fate() != Fate::Kept && last.people > people)
}

/// The level to try next, if there is still something to be learned.
fn wanted(question: &Question, known: &Known) -> Option<(u32, Why)> {
    let (low, high) = question.people;
    if known.levels.is_empty() {
        return Some((low, Why::Climb));
    }
    let bound = known.bound();
    // From here the search goes up: also from a level that failed once and was kept once.
    let base = known.below().map(|(n, _)| n).next();
    match (base, bound) {
        (Some(base), None) if base < high => Some((climbed(base, question), Why::Climb)),
        (Some(base), Some((bound, _))) if is_apart(base, bound, question) => {
            Some((between(base, bound), Why::CloseIn))
        }
        _ => steady(question, known, low),
    }
}

/// The search has closed in: what is left is to see it again, for longer.
fn steady(question: &Question, known: &Known, low: u32) -> Option<(u32, Why)> {
    let bound = known.bound();
    let Some((best, tries)) = known.best() else {
        return lower(question, known, low);
    };
    // A level that failed when it was held leaves a gap below it.
    if let Some(edge) = known.edge_above(best).filter(|&edge| is_apart(best, edge, question)) {
        return Some((between(best, edge), Why::CloseIn));
    }
    let more = known.noise();
    if tries.held < question.holds + more {
        let why = if tries.held == 0 { Why::Hold } else { Why::Repeat };
        return Some((best, why));
    }
    let wanted = question.confirmations + more;
    let is_unsure = |tries: &Tries| tries.failed + tries.limited < wanted;
    bound.filter(|(_, tries)| is_unsure(tries)).map(|(bound, _)| (bound, Why::Repeat))
}

/// No level was always kept: down to the lowest.
fn lower(question: &Question, known: &Known, low: u32) -> Option<(u32, Why)> {
    let (&lowest, &tries) = known.levels.first_key_value()?;
    if lowest > low {
        let step = (f64::from(lowest) / question.growth.max(MIN_GROWTH)) as u32;
        return Some((step.clamp(low, lowest - 1), Why::BackOff));
    }
    // One failure may be chance, also at the lowest level; one that is mixed is no answer.
    let is_unsure = tries.kept == 0 && tries.failed + tries.limited < question.confirmations;
    is_unsure.then_some((low, Why::Repeat))
}

/// The slowest climb.
const MIN_GROWTH: f64 = 1.01;

fn climbed(base: u32, question: &Question) -> u32 {
    let next = (f64::from(base) * question.growth.max(MIN_GROWTH)).ceil();
    (next as u32).max(base + 1).min(question.people.1)
}

/// Whether two levels are further apart than the resolution, and there is one between.
fn is_apart(low: u32, high: u32, question: &Question) -> bool {
    high - low > 1 && f64::from(high) / f64::from(low) > 1.0 + question.resolution.max(0.0)
}

fn between(low: u32, high: u32) -> u32 {
    let middle = (f64::from(low) * f64::from(high)).sqrt().round() as u32;
    middle.clamp(low + 1, high - 1)
}
