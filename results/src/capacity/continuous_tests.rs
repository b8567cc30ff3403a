//! The governor against simulated targets, and against the published loop.

use super::continuous::{Act, End, Governor, Settings, Settled, Sight};
use crate::summary::{Judged, Outcome};
use model::Rng;
use std::collections::VecDeque;

/// A target whose latency is the load of the last `window_s` seconds, with some noise.
struct Target {
    capacity: f64,
    noise: f64,
    rng: Rng,
    past: VecDeque<f64>,
    window: usize,
    generator_at: f64,
}

impl Target {
    fn see(&mut self, people: u32) -> Sight {
        self.past.push_back(f64::from(people));
        while self.past.len() > self.window {
            self.past.pop_front();
        }
        let mean = self.past.iter().sum::<f64>() / self.past.len() as f64;
        let load = mean / self.capacity * (1.0 + self.noise * self.rng.normal());
        let is_limited = mean > self.generator_at;
        Sight {
            present: people.into(),
            criteria: vec![Judged {
                text: "delivery p99: < 500ms".into(),
                value: Some(500.0 * load),
                bound: 500.0,
                unit: "ms".into(),
                outcome: if load < 1.0 { Outcome::Kept } else { Outcome::Broken },
            }],
            generator_limit: is_limited.then(|| "slow".to_owned()),
        }
    }
}

fn target(capacity: f64, noise: f64, settings: &Settings, seed: u64) -> Target {
    let window = (f64::from(settings.window_s) / settings.every_s) as usize;
    let rng = Rng::new(seed, 0x60);
    Target { capacity, noise, rng, past: VecDeque::new(), window, generator_at: f64::INFINITY }
}

/// Runs to the end: what was settled, and the people at each decision.
fn run(settings: &Settings, mut target: Target) -> (Settled, Vec<u32>) {
    let mut governor = Governor::new(settings.clone());
    let mut course = Vec::new();
    let mut people = settings.people.0;
    for tick in 0.. {
        let now_s = f64::from(tick) * settings.every_s;
        assert!(now_s <= settings.seconds_max + settings.every_s, "it does not end");
        match governor.decide(now_s, || target.see(people)) {
            Act::People(wanted) => people = wanted,
            Act::Done => break,
        }
        let (low, high) = settings.people;
        assert!((low..=high).contains(&people));
        course.push(people);
    }
    (governor.settled(), course)
}

/// The coordinator's loop as published, in its own words and whole seconds.
fn published(most: u32, mut alert: impl FnMut(u32) -> bool) -> (u32, Vec<u32>) {
    let (mut active, mut course) = (0u32, Vec::new());
    let (mut last_alert, mut last_action): (Option<i64>, Option<i64>) = (None, None);
    let mut samples: Vec<(i64, u32)> = Vec::new();
    for now in (0i64..).step_by(2) {
        let is_alert = alert(active) && now >= 60;
        if is_alert {
            last_alert = Some(now);
        }
        if last_alert.is_some() {
            samples.push((now, active));
            let latest: Vec<_> = samples.iter().filter(|s| now - s.0 <= 1_800).collect();
            let n = latest.len() as f64;
            let (sx, sy) =
                latest.iter().fold((0.0, 0.0), |(x, y), s| (x + s.0 as f64, y + f64::from(s.1)));
            let (sxy, sxx) = latest.iter().fold((0.0, 0.0), |(xy, xx), s| {
                (xy + s.0 as f64 * f64::from(s.1), xx + (s.0 * s.0) as f64)
            });
            let slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
            if latest.len() < samples.len() && slope.abs() < 0.2 {
                return ((sy / n).round() as u32, course);
            }
        }
        if last_alert.is_none() || last_action.is_none_or(|at| now - at >= 2) {
            if is_alert {
                active -= active.min(8);
                last_action = Some(now);
            } else if last_alert.is_none_or(|at| now - at >= 2) {
                active += 8.min(most - active);
                last_action = Some(now);
            }
        }
        course.push(active);
    }
    unreachable!("the loop above does not end by itself")
}

#[test]
fn it_decides_as_the_published_loop_does() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed, 4);
        let capacity = 500.0 + rng.below(9_000) as f64;
        let settings = Settings::mattermost(20_000);
        let (settled, course) = run(&settings, target(capacity, 0.02, &settings, seed));
        let mut same = target(capacity, 0.02, &settings, seed);
        let broken = |sight: Sight| sight.criteria[0].outcome == Outcome::Broken;
        let (supported, want) = published(20_000, |people| broken(same.see(people)));
        assert!(course == want, "seed {seed}: another course");
        assert_eq!(settled.supported, Some(supported), "seed {seed}");
        assert_eq!(settled.ended, End::Steady);
    }
}

#[test]
fn the_ramp_is_the_published_one() {
    let settings = Settings::mattermost(20_000);
    let (_, course) = run(&settings, target(1e9, 0.0, &settings, 1));
    for (people, minutes) in [(5_000, 20.8), (7_500, 31.3), (17_000, 70.8)] {
        let at = course.iter().position(|&n| n >= people).expect("it gets there");
        let got = at as f64 * 2.0 / 60.0;
        assert!((got - minutes).abs() < 0.1, "{people} people after {got} min");
    }
}

#[test]
fn it_settles_around_the_capacity() {
    let mut off: Vec<f64> = Vec::new();
    for seed in 0..300 {
        let mut rng = Rng::new(seed, 5);
        let capacity = 40.0 + rng.below(900) as f64;
        let settings = Settings::brisk(10, 1_000);
        let (settled, _) = run(&settings, target(capacity, 0.02, &settings, seed));
        assert_eq!(settled.ended, End::Steady, "seed {seed}");
        let supported = f64::from(settled.supported.unwrap_or(0));
        off.push((supported / capacity - 1.0).abs());
        let step = f64::from(settings.increase);
        assert!(
            (supported - capacity).abs() < 0.1 * capacity + 2.0 * step,
            "seed {seed}: {supported} of {capacity}"
        );
        assert!(settled.broken_share > 0.0 && settled.broken_share < 1.0, "seed {seed}");
        assert_eq!(settled.alerts[0].0, "delivery p99: < 500ms");
        assert!(!settled.is_generator_limited());
        assert!(f64::from(settled.range.0) <= supported && supported <= f64::from(settled.range.1));
    }
    off.sort_by(f64::total_cmp);
    assert!(off[150] < 0.05, "median {} off", off[150]);
}

#[test]
fn it_ends_whatever_happens() {
    let settings = Settings { seconds_max: 600.0, ..Settings::brisk(10, 1_000) };
    // Never an alert, always one, and one that comes and goes at random.
    let (most, _) = run(&settings, target(1e9, 0.0, &settings, 1));
    assert_eq!((most.supported, most.ended), (Some(1_000), End::Most));
    assert!(most.alerts.is_empty() && most.broken_share == 0.0);
    let (none, _) = run(&settings, target(1e-9, 0.0, &settings, 1));
    assert_eq!((none.supported, none.ended), (None, End::Steady));
    assert_eq!(none.broken_share, 1.0);
    for seed in 0..200 {
        let (settled, _) = run(&settings, target(200.0, 5.0, &settings, seed));
        assert!(matches!(settled.ended, End::Steady | End::Time), "seed {seed}");
        assert!(settled.seconds <= 601.0);
    }
}

#[test]
fn a_generator_at_its_limit_is_told_from_a_target_at_its_own() {
    let settings = Settings::brisk(10, 1_000);
    let weak = Target { generator_at: 300.0, ..target(900.0, 0.01, &settings, 1) };
    let (settled, _) = run(&settings, weak);
    assert!(settled.is_generator_limited());
    assert!((250..350).contains(&settled.supported.unwrap()), "{:?}", settled.supported);
}

#[test]
fn a_long_run_is_remembered_in_little_room() {
    let settings = Settings { seconds_max: 100_000.0, ..Settings::brisk(0, 10_000_000) };
    let settings = Settings { increase: 1, ..settings };
    let (settled, course) = run(&settings, target(1e9, 0.0, &settings, 1));
    assert_eq!(settled.ended, End::Time);
    assert!(course.len() > 99_000 && settled.moments.len() < 4_096);
    assert!(settled.moments.last().unwrap().at_s > 99_900.0, "the end is there");
    assert!(settled.curves[0].points.len() + 5 > settled.moments.len());
}
