//! A capacity found within one run whose population moves: more people while all is well, fewer
//! after an alert, until their number stays where it is. The decisions are those of Mattermost's
//! load-test coordinator (`coordinator/coordinator.go`), whose published numbers are
//! [`Settings::mattermost`]; it has neither an end at its highest number nor a limit of time, which
//! are added here, and it does not tell which criterion it was.
//!
//! What is found is the mean of a saw-tooth, not a level at which everything was kept. [`Settled`]
//! says so in numbers; [`super::next`] finds a level that is held.

use super::{Curve, Point};
use crate::summary::{Judged, Outcome};
use serde::{Deserialize, Serialize};

/// Decisions kept for the report; in longer runs every second one is forgotten, again and again.
const MOMENTS_MAX: usize = 4_096;
/// The generator's name among the alerts.
const GENERATOR: &str = "the generator";

/// How a population is moved. Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// The fewest people, with whom it begins, and the most.
    pub people: (u32, u32),
    /// From one decision to the next.
    pub every_s: f64,
    /// How many people are added while all is well.
    pub increase: u32,
    /// How many go after an alert.
    pub decrease: u32,
    /// After the first alert: how long after a move nothing is moved, and how long after an alert
    /// nobody is added.
    pub rest_s: f64,
    /// At the beginning nothing is judged for so long.
    pub grace_s: f64,
    /// The criteria are judged on the last so many seconds ([`super::Window`]).
    pub window_s: u32,
    /// The number of people has to stay where it is for so long.
    pub steady_s: f64,
    /// It stays where it is if it changes by less than this, people a second.
    pub slope_max: f64,
    /// It ends after this at the latest.
    pub seconds_max: f64,
}

impl Settings {
    /// As published for Mattermost v10.6 (`coordinator.json`, v1.25 of its load test): 8 people
    /// more or fewer every 2 s, rates over the last minute, half an hour at less than 0.2 people a
    /// second. Only the end after six hours is ours.
    pub fn mattermost(most: u32) -> Settings {
        Settings {
            people: (0, most),
            every_s: 2.0,
            increase: 8,
            decrease: 8,
            rest_s: 2.0,
            grace_s: 60.0,
            window_s: 60,
            steady_s: 1_800.0,
            slope_max: 0.2,
            seconds_max: 6.0 * 3_600.0,
        }
    }

    /// For one machine and some minutes: fifty steps from the fewest to the most; after an alert
    /// each move waits until the window has seen what it did.
    pub fn brisk(low: u32, high: u32) -> Settings {
        let high = high.max(low).max(1);
        let step = (high - low).div_ceil(50).max(1);
        let (window_s, steady_s) = (5, 120.0);
        Settings {
            people: (low, high),
            every_s: 1.0,
            increase: step,
            decrease: step,
            rest_s: f64::from(window_s),
            grace_s: f64::from(window_s),
            window_s,
            steady_s,
            slope_max: f64::from(step) / steady_s,
            seconds_max: 900.0,
        }
    }
}

/// What is to become of the population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// So many people are to be there.
    People(u32),
    /// It is found out: the phase is to end.
    Done,
}

/// One decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Moment {
    /// When, seconds since the phase began.
    pub at_s: f64,
    /// How many people were asked for up to then.
    pub people: u32,
    /// How many were there.
    pub present: u64,
    /// The criteria over the window; empty while nothing is judged.
    pub criteria: Vec<Judged>,
    /// Why the generator was not fit to measure in the window; absent if it was.
    pub generator_limit: Option<String>,
}

impl Moment {
    /// A criterion is broken, or the generator is at its limit. What cannot be judged is no alert.
    pub fn is_alert(&self) -> bool {
        self.generator_limit.is_some() || self.broken().next().is_some()
    }

    fn broken(&self) -> impl Iterator<Item = &str> {
        let broken = self.criteria.iter().filter(|judged| judged.outcome == Outcome::Broken);
        broken.map(|judged| judged.text.as_str())
    }
}

/// What can be seen at a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sight {
    /// How many people are there.
    pub present: u64,
    /// The criteria over the window.
    pub criteria: Vec<Judged>,
    /// Why the generator is not fit to measure; absent if it is.
    pub generator_limit: Option<String>,
}

/// Moves a population.
#[derive(Clone, Debug)]
pub struct Governor {
    settings: Settings,
    people: u32,
    next_s: f64,
    acted_s: Option<f64>,
    alerted_s: Option<f64>,
    /// When it first had the most people, without an alert ever.
    topped_s: Option<f64>,
    /// Time and people at each decision from the first alert on.
    samples: Vec<(f64, f64)>,
    moments: Vec<Moment>,
    /// Of so many decisions one is kept.
    stride: usize,
    decisions: usize,
    ended: Option<End>,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The number of people stays where it is.
    Steady,
    /// The most people are there, and all is well.
    Most,
    /// It took as long as allowed.
    Time,
    /// The run ended before.
    Interrupted,
}

impl Governor {
    /// At the beginning of the phase.
    pub fn new(settings: Settings) -> Governor {
        Governor {
            people: settings.people.0,
            settings,
            next_s: 0.0,
            acted_s: None,
            alerted_s: None,
            topped_s: None,
            samples: Vec::new(),
            moments: Vec::new(),
            stride: 1,
            decisions: 0,
            ended: None,
        }
    }

    /// What is to become of the population so long (seconds) after the phase began. May be called
    /// as often as one likes: it looks (`see`) only when a decision is due.
    pub fn decide(&mut self, now_s: f64, see: impl FnOnce() -> Sight) -> Act {
        if self.ended.is_none() && now_s >= self.next_s {
            // A decision that comes late is not made up for by more of them.
            self.next_s = (self.next_s + self.settings.every_s).max(now_s);
            let sight = see();
            self.look(now_s, sight);
        }
        match self.ended {
            Some(_) => Act::Done,
            None => Act::People(self.people),
        }
    }

    fn look(&mut self, now_s: f64, sight: Sight) {
        let is_judged = now_s >= self.settings.grace_s;
        let moment = Moment {
            at_s: now_s,
            people: self.people,
            present: sight.present,
            criteria: if is_judged { sight.criteria } else { Vec::new() },
            generator_limit: sight.generator_limit.filter(|_| is_judged),
        };
        let is_alert = moment.is_alert();
        self.remember(moment);
        if is_alert {
            self.alerted_s = Some(now_s);
        }
        if self.alerted_s.is_some() {
            self.samples.push((now_s, f64::from(self.people)));
        }
        self.ended = self.end(now_s);
        if self.ended.is_none() {
            self.step(now_s, is_alert);
        }
    }

    fn step(&mut self, now_s: f64, is_alert: bool) {
        let has_rested =
            |since: Option<f64>| since.is_none_or(|since| now_s - since >= self.settings.rest_s);
        let was_alerted = self.alerted_s.is_some();
        if was_alerted && !has_rested(self.acted_s) {
            return;
        }
        let (low, high) = self.settings.people;
        let people = match is_alert {
            true => self.people.saturating_sub(self.settings.decrease).max(low),
            false if !was_alerted || has_rested(self.alerted_s) => {
                self.people.saturating_add(self.settings.increase).min(high)
            }
            false => return,
        };
        (self.people, self.acted_s) = (people, Some(now_s));
    }

    fn end(&mut self, now_s: f64) -> Option<End> {
        let settings = &self.settings;
        let latest = self.latest();
        let is_steady = latest.len() < self.samples.len()
            && slope(latest).is_some_and(|slope| slope.abs() < settings.slope_max);
        if is_steady {
            return Some(End::Steady);
        }
        if self.people == settings.people.1 && self.alerted_s.is_none() {
            let since = *self.topped_s.get_or_insert(now_s);
            if now_s - since >= settings.steady_s {
                return Some(End::Most);
            }
        }
        (now_s >= settings.seconds_max).then_some(End::Time)
    }

    /// The samples of the time for which the number has to stay where it is.
    fn latest(&self) -> &[(f64, f64)] {
        let Some(newest) = self.samples.last() else { return &[] };
        let from = newest.0 - self.settings.steady_s;
        &self.samples[self.samples.partition_point(|sample| sample.0 < from)..]
    }

    fn remember(&mut self, moment: Moment) {
        self.decisions += 1;
        if self.decisions.is_multiple_of(self.stride) {
            self.moments.push(moment);
        }
        if self.moments.len() >= MOMENTS_MAX {
            let mut place = 0;
            self.moments.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            self.stride *= 2;
        }
    }

    /// What was found out.
    pub fn settled(&self) -> Settled {
        let ended = self.ended.unwrap_or(End::Interrupted);
        let end_s = self.moments.last().map_or(0.0, |moment| moment.at_s);
        let from_s = end_s - self.settings.steady_s;
        let window: Vec<&Moment> =
            self.moments.iter().filter(|moment| moment.at_s >= from_s).collect();
        let alerts = |moments: &[&Moment]| moments.iter().filter(|m| m.is_alert()).count();
        let broken_share = alerts(&window) as f64 / window.len().max(1) as f64;
        let latest = self.latest();
        let mean = latest.iter().map(|sample| sample.1).sum::<f64>() / latest.len().max(1) as f64;
        let supported = match ended {
            // Nothing but alerts: even the fewest were too many.
            End::Steady if broken_share >= 1.0 => None,
            End::Steady => Some(mean.round() as u32),
            End::Most => Some(self.people),
            End::Time | End::Interrupted => None,
        };
        let of = |pick: fn(u32, u32) -> u32| {
            window.iter().map(|moment| moment.people).reduce(pick).unwrap_or(self.people)
        };
        Settled {
            supported,
            range: (of(u32::min), of(u32::max)),
            broken_share,
            alerts: count_alerts(if window.is_empty() { &[] } else { &window }),
            ended,
            seconds: end_s,
            curves: curves(&self.moments),
            moments: self.moments.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// What a run whose population moved has found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settled {
    /// How many people the target supports, in Mattermost's words: the mean of the number of
    /// people over the last `steady_s`. `None` if it never settled, or settled with everything
    /// broken.
    pub supported: Option<u32>,
    /// The fewest and the most people in that time.
    pub range: (u32, u32),
    /// The share of the decisions in that time at which a criterion was broken.
    pub broken_share: f64,
    /// Which criteria were broken in that time and at how many decisions, most often first.
    pub alerts: Vec<(String, u32)>,
    /// Why it ended.
    pub ended: End,
    /// How long it took.
    pub seconds: f64,
    /// Each criterion against people.
    pub curves: Vec<Curve>,
    /// The decisions, thinned out in a long run.
    pub moments: Vec<Moment>,
    /// How it was moved.
    pub settings: Settings,
}

impl Settled {
    /// Whether the generator, rather than the target, kept the number down: the target supports
    /// at least `supported`.
    pub fn is_generator_limited(&self) -> bool {
        self.alerts.first().is_some_and(|(text, _)| text == GENERATOR)
    }
}

fn count_alerts(moments: &[&Moment]) -> Vec<(String, u32)> {
    let mut alerts: Vec<(String, u32)> = Vec::new();
    for moment in moments {
        let generator = moment.generator_limit.as_ref().map(|_| GENERATOR);
        for text in moment.broken().chain(generator) {
            match alerts.iter_mut().find(|(other, _)| other == text) {
                Some(entry) => entry.1 += 1,
                None => alerts.push((text.to_owned(), 1)),
            }
        }
    }
    alerts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    alerts
}

fn curves(moments: &[Moment]) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for moment in moments {
        for judged in &moment.criteria {
            Curve::of(&mut curves, judged).points.push(Point {
                people: moment.people,
                value: judged.value,
                outcome: judged.outcome,
                is_hold: false,
                is_limited: moment.generator_limit.is_some(),
            });
        }
    }
    curves.iter_mut().for_each(|curve| curve.points.sort_by_key(|point| point.people));
    curves
}

/// Slope of the least-squares line, per unit of the first coordinate.
fn slope(samples: &[(f64, f64)]) -> Option<f64> {
    let n = samples.len() as f64;
    // Times are taken from the first: large numbers would cost digits.
    let start = samples.first()?.0;
    let (x, y) = samples.iter().fold((0.0, 0.0), |(x, y), s| (x + s.0 - start, y + s.1));
    let (x, y) = (x / n, y / n);
    let (mut xy, mut xx) = (0.0, 0.0);
    for sample in samples {
        let apart = sample.0 - start - x;
        xy += apart * (sample.1 - y);
        xx += apart * apart;
    }
    (xx > 0.0).then(|| xy / xx)
}
