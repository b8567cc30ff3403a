//! Simulated targets of known capacity: the search always ends, never reports a level at which
//! anything failed, and its interval holds the truth.

use super::{Capacity, Ended, Fate, Level, Limit, Next, Question, next};
use crate::summary::{Judged, Outcome};
use model::Rng;

/// How a simulated target behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// All is well up to its capacity, and nothing beyond.
    Cliff,
    /// Latency grows slowly and crosses its bound at the capacity.
    Slope,
    /// As a cliff, at a place that differs from trial to trial by some percent.
    Noise(f64),
    /// As a slope, each measurement being off by some percent.
    NoisySlope(f64),
    /// As a cliff; one trial in twenty fails for no reason.
    Accidents,
    /// Once overloaded by half it stays bad.
    Hysteresis,
    /// Runs that last are worse: it holds a fifth less for long.
    Tires,
    AlwaysFails,
    NeverFails,
    /// A band in the middle fails, more people are well again.
    Hole,
    /// The generator is the limit at a third of the capacity.
    WeakGenerator,
    /// As a cliff; in one trial of ten the machine is too busy to measure.
    BusyMachine,
}

struct Target {
    kind: Kind,
    capacity: f64,
    rng: Rng,
    is_broken: bool,
}

impl Target {
    fn trial(&mut self, people: u32, is_hold: bool) -> Level {
        let n = f64::from(people);
        let load = n / self.capacity;
        let mut share = match self.kind {
            Kind::Noise(sigma) => load / (1.0 + sigma * self.rng.normal()),
            Kind::NoisySlope(sigma) => load * (1.0 + sigma * self.rng.normal()),
            Kind::Accidents if self.rng.below(20) == 0 => 9.0,
            Kind::Hysteresis => {
                self.is_broken |= load > 1.5;
                if self.is_broken { 9.0 } else { load }
            }
            Kind::Tires if is_hold => load / 0.8,
            Kind::AlwaysFails => 9.0,
            Kind::NeverFails => 0.1,
            Kind::Hole if (0.4..0.5).contains(&load) => 9.0,
            _ => load,
        };
        if matches!(self.kind, Kind::Cliff) {
            share = if load <= 1.0 { 0.1 } else { 9.0 };
        }
        let is_busy = self.kind == Kind::BusyMachine && self.rng.below(10) == 0;
        let limited = is_busy || self.kind == Kind::WeakGenerator && load > 1.0 / 3.0;
        let outcome = if share <= 1.0 { Outcome::Kept } else { Outcome::Broken };
        let latency = Judged {
            text: "delivery p99: < 500ms".into(),
            value: Some(500.0 * share),
            bound: 500.0,
            unit: "ms".into(),
            outcome,
        };
        let errors =
            Judged { text: "errors: 0".into(), outcome: Outcome::Kept, ..Judged::default() };
        Level {
            people,
            is_hold,
            criteria: vec![latency, errors],
            generator_limit: limited.then(|| "out of CPU".to_owned()),
            collapse: None,
            seconds: if is_hold { 120.0 } else { 60.0 },
        }
    }
}

/// Searches to the end; every answer is checked for what must always be so.
fn search(kind: Kind, seed: u64, question: &Question) -> (Capacity, Vec<Level>, f64) {
    let what = format!("{kind:?}, seed {seed}");
    let mut rng = Rng::new(seed, 0xCA9);
    let (low, high) = (f64::from(question.people.0), f64::from(question.people.1));
    // Somewhere in the range, evenly in its logarithm, but not at its very ends.
    let place = 0.1 + 0.8 * (rng.below(1_000_000) as f64 / 1e6);
    let capacity = low * (high / low).powf(place);
    let mut target = Target { kind, capacity, rng, is_broken: false };
    let mut done: Vec<Level> = Vec::new();
    loop {
        match next(question, &done) {
            Next::Try { people, is_hold, .. } => {
                let (low, high) = question.people;
                assert!((low..=high).contains(&people), "{what}: {people}");
                assert!(done.len() < question.trials_max as usize, "{what}: it does not end");
                done.push(target.trial(people, is_hold));
            }
            Next::Answer(found) => {
                check(&what, &found, &done, question);
                return (*found, done, capacity);
            }
        }
    }
}

/// What must be so of every answer whatsoever.
fn check(what: &str, found: &Capacity, done: &[Level], question: &Question) {
    for n in [found.people, found.kept].into_iter().flatten() {
        let there = || done.iter().filter(|level| level.people == n);
        assert!(there().all(|level| level.fate() != Fate::Failed), "{what}: {n} failed: {found:?}");
        assert!(there().any(|level| level.fate() == Fate::Kept), "{what}: {n} was never kept");
        assert!(found.failed.is_none_or(|failed| n < failed), "{what}: {found:?}");
    }
    if let Some(n) = found.people {
        let held =
            |level: &&Level| level.people == n && level.is_hold && level.fate() == Fate::Kept;
        let held = done.iter().filter(held).count();
        assert!(held >= question.holds as usize, "{what}: {n} was held {held} times");
    }
    if let Some(n) = found.failed {
        let mut there = done.iter().filter(|level| level.people == n);
        assert!(there.all(|level| level.fate() != Fate::Kept), "{what}: {n} was kept");
    }
    assert_eq!(found.trials as usize, done.len(), "{what}");
    let trials: usize = found.curves.iter().map(|curve| curve.points.len()).sum();
    assert_eq!(trials, 2 * done.len(), "{what}: every trial is on both curves");
}

fn is_inside(found: &Capacity, capacity: f64) -> bool {
    let low = found.people.is_some_and(|n| f64::from(n) <= capacity);
    low && found.failed.is_some_and(|n| capacity < f64::from(n))
}

#[test]
fn a_clean_limit_is_always_inside_and_narrow() {
    let mut most = 0;
    for (kind, seed) in
        [Kind::Cliff, Kind::Slope].into_iter().flat_map(|k| (0..1_000).map(move |s| (k, s)))
    {
        let question = Question::about(10, 20_000);
        let (found, done, capacity) = search(kind, seed, &question);
        let what = format!("{kind:?}, seed {seed}, capacity {capacity}: {found:?}");
        assert!(is_inside(&found, capacity), "{what}");
        assert_eq!(found.ended, Ended::Answered, "{what}");
        let (low, high) = (found.people.unwrap(), found.failed.unwrap());
        assert!(high - low == 1 || f64::from(high) <= f64::from(low) * 1.05, "{what}");
        assert_eq!(found.limit, Limit::Criterion(vec!["delivery p99: < 500ms".into()]), "{what}");
        assert!(found.mixed.is_empty() && !found.does_not_recover, "{what}");
        most = most.max(done.len());
    }
    assert!(most <= 22, "{most} trials");
}

#[test]
fn the_truth_is_inside_in_spite_of_noise() {
    let kinds = [
        Kind::Noise(0.01),
        Kind::Noise(0.03),
        Kind::Noise(0.1),
        Kind::NoisySlope(0.02),
        Kind::NoisySlope(0.05),
        Kind::Accidents,
        Kind::BusyMachine,
    ];
    for kind in kinds {
        let question = Question::about(10, 20_000);
        let runs = 1_000;
        let (mut inside, mut trials) = (0, 0);
        for seed in 0..runs {
            let (found, done, capacity) = search(kind, seed, &question);
            inside += u64::from(is_inside(&found, capacity));
            trials += done.len();
        }
        let mean = trials as f64 / runs as f64;
        assert!(inside * 10 >= runs * 9, "{kind:?}: only {inside} of {runs} inside");
        assert!(mean < 32.0, "{kind:?}: {mean} trials");
    }
}

#[test]
fn a_target_that_stays_bad_is_never_flattered() {
    let mut told = 0;
    for seed in 0..1_000 {
        let (found, done, capacity) = search(Kind::Hysteresis, seed, &Question::about(10, 20_000));
        assert!(found.people.is_none_or(|n| f64::from(n) <= capacity), "seed {seed}");
        let was_broken = done.iter().any(|level| f64::from(level.people) > 1.5 * capacity);
        assert!(!was_broken || found.people.is_none(), "seed {seed}: {found:?}");
        told += u64::from(found.does_not_recover);
        assert!(!found.does_not_recover || was_broken, "seed {seed}");
    }
    assert!(told > 200, "told only {told} times that it does not recover");
}

#[test]
fn what_holds_for_a_minute_only_is_not_the_answer() {
    for seed in 0..1_000 {
        let (found, _, capacity) = search(Kind::Tires, seed, &Question::about(10, 20_000));
        let people = found.people.unwrap_or_else(|| panic!("seed {seed}: {found:?}"));
        let lasting = capacity * 0.8;
        assert!(f64::from(people) <= lasting, "seed {seed}: {people} of {lasting}");
        assert!(f64::from(people) >= lasting * 0.88 - 2.0, "seed {seed}: {people} of {lasting}");
    }
}

#[test]
fn the_ends_of_the_range_are_told() {
    for seed in 0..200 {
        let question = Question::about(10, 20_000);
        let (found, done, _) = search(Kind::AlwaysFails, seed, &question);
        assert_eq!((found.people, found.kept, found.failed), (None, None, Some(10)));
        assert_eq!(done.len(), 3, "twice more, and that is that");
        let (found, done, _) = search(Kind::NeverFails, seed, &question);
        assert_eq!((found.people, found.failed), (Some(20_000), None));
        assert_eq!((found.limit, found.ended), (Limit::Range, Ended::Answered));
        assert!(done.len() < 16, "{}", done.len());
    }
}

#[test]
fn a_limit_of_the_generator_is_not_one_of_the_target() {
    for seed in 0..500 {
        let (found, _, capacity) = search(Kind::WeakGenerator, seed, &Question::about(10, 20_000));
        match found.people {
            None => assert!(capacity / 3.0 < 10.0, "seed {seed}: {found:?}"),
            Some(n) => assert!(f64::from(n) <= capacity / 3.0, "seed {seed}: {found:?}"),
        }
        assert_eq!(found.limit, Limit::Generator("out of CPU".into()), "seed {seed}");
    }
}

#[test]
fn a_hole_is_below_the_answer_or_above_it_never_in_it() {
    for seed in 0..1_000 {
        let (found, _, capacity) = search(Kind::Hole, seed, &Question::about(10, 20_000));
        let load = f64::from(found.people.unwrap_or(1)) / capacity;
        assert!(found.people.is_some() || capacity * 0.5 > 10.0, "seed {seed}: {found:?}");
        assert!(found.people.is_some() || capacity * 0.4 <= 10.0, "seed {seed}: {found:?}");
        assert!(load <= 1.0 && !(0.4..0.5).contains(&load), "seed {seed}: {found:?}");
    }
}

/// Any question, any target: it ends, within its limits.
#[test]
fn it_always_ends() {
    let kinds = [
        Kind::Cliff,
        Kind::Noise(0.5),
        Kind::NoisySlope(0.5),
        Kind::Accidents,
        Kind::Hysteresis,
        Kind::Tires,
        Kind::Hole,
        Kind::WeakGenerator,
        Kind::BusyMachine,
        Kind::AlwaysFails,
        Kind::NeverFails,
    ];
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed, 7);
        let low = 1 + rng.below(50) as u32;
        let question = Question {
            trials_max: rng.below(60) as u32,
            seconds_max: rng.below(4_000) as f64,
            resolution: [0.0, 0.001, 0.05, 1.0][rng.below(4) as usize],
            growth: [1.0, 1.1, 2.0, 10.0][rng.below(4) as usize],
            holds: rng.below(4) as u32,
            confirmations: rng.below(4) as u32,
            ..Question::about(low, low + rng.below(10_000) as u32)
        };
        let kind = kinds[rng.below(kinds.len() as u64) as usize];
        let (found, done, _) = search(kind, seed, &question);
        let spent: f64 = done.iter().map(|level| level.seconds).sum();
        assert!(spent < question.seconds_max + 120.0, "seed {seed}");
        match found.ended {
            Ended::Trials => assert_eq!(done.len(), question.trials_max as usize),
            Ended::Time => assert!(spent >= question.seconds_max),
            Ended::Answered => {}
        }
    }
}

#[test]
fn an_interrupted_search_goes_on_where_it_was() {
    let question = Question::about(10, 20_000);
    let (_, done, _) = search(Kind::Noise(0.05), 5, &question);
    for k in 0..done.len() {
        let Next::Try { people, is_hold, .. } = next(&question, &done[..k]) else {
            panic!("answered after {k} of {} trials", done.len());
        };
        assert_eq!((people, is_hold), (done[k].people, done[k].is_hold), "after {k}");
    }
}
