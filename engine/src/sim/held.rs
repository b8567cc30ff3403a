//! Populations that are held: as many people as asked for, an exact ledger, and everybody home.

use super::tests::{NEVER, run, setup};
use super::toy::ToyServer;
use super::{Outcome, SimNet, simulate_governed};
use crate::population::Wish;
use model::{Edge, Tick, What};

fn scenario(journey: &str, hold: &str) -> String {
    format!(
        "
about: a population that moves
target: toy://127.0.0.1:1
protocol: toy
rooms: [a, b, c]
limits: {{audit: 1}}
crowds:
  people:
    size: 20
    journey: {journey}
timeline: [{{{hold}}}]
"
    )
}

const TALKERS: &str =
    "[login, join: own, {talk: {every: {exponential: 300ms}, for: 4s}}, {wait: 1s}, leave]";
const ENDLESS: &str = "[login, join: own, {repeat: forever, every: {exponential: 400ms}, do: say}]";

/// People online at the end of each second.
fn online(outcome: &Outcome) -> Vec<u64> {
    outcome.intervals.iter().map(|interval| interval.gauges.online).collect()
}

fn asked(outcome: &Outcome) -> (u64, u64) {
    let tally = outcome.records.iter().rev().find_map(|record| match &record.what {
        What::Tally(tally) => Some((tally.asked, tally.finished)),
        _ => None,
    });
    tally.unwrap()
}

#[test]
fn a_population_is_as_large_as_asked_for() {
    for (seed, journey) in (0..3).flat_map(|seed| [(seed, TALKERS), (seed, ENDLESS)]) {
        let hold = "hold: people at 20 for 10s then 60 for 10s then 10 for 10s, by: once";
        let outcome = run(&scenario(journey, hold), seed, ToyServer::default(), NEVER);
        let online = online(&outcome);
        // A replacement is on the way for less than a millisecond; whoever ends at the very end
        // of a second may be missed.
        for (second, want) in (1..10).map(|s| (s, 20)).chain((11..20).map(|s| (s, 60))) {
            let got = online[second];
            assert!((want - 2..=want).contains(&got), "seed {seed}, second {second}: {online:?}");
        }
        for second in 21..30 {
            let got = online[second];
            assert!((9..=10).contains(&got), "seed {seed}, second {second}: {online:?}");
        }
        let total = outcome.total().counters;
        let (asked, finished) = asked(&outcome);
        assert_eq!((total.arrivals, total.entered, total.gave_up), (asked, asked, 0));
        assert_eq!((total.finished, finished), (asked, asked), "seed {seed}: nobody is cut off");
        let most = if journey == ENDLESS { 60 } else { 400 };
        assert!(asked >= 60 && asked <= most, "seed {seed}: {asked}");
        assert!(total.expected > 1_000, "seed {seed}: {total:?}");
        assert_eq!((total.lost, total.duplicate, total.unexpected), (0, 0, 0), "seed {seed}");
        assert_eq!(total.deliveries, total.expected + total.optional, "seed {seed}");
        assert!(outcome.total().faults.is_empty(), "seed {seed}: {:?}", outcome.total().faults);
        assert_eq!(outcome.intervals.last().unwrap().gauges, Default::default());
    }
}

#[test]
fn the_ledger_is_exact_while_people_come_and_go() {
    for seed in 0..8 {
        let server = ToyServer::mischievous(seed, [20, 15, 0]);
        let done = server.done.clone();
        let hold = "hold: people at 30 for 6s then 6 for 4s then 20 for 4s, by: 20/s";
        let total = run(&scenario(ENDLESS, hold), seed, server, NEVER).total().counters;
        let done = done.lock().unwrap();
        assert!(done.dropped > 20 && done.duplicated > 20, "seed {seed}");
        // What overlaps a coming or going is optional: if dropped, it is missed by nobody.
        assert!(total.lost <= done.dropped, "seed {seed}: {} of {}", total.lost, done.dropped);
        let optional = done.dropped - total.lost;
        assert!(optional * 20 < done.dropped, "seed {seed}: {optional} of {}", done.dropped);
        assert_eq!(total.duplicate, done.duplicated, "seed {seed}");
        assert_eq!(total.deliveries + total.lost, total.expected + total.optional, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let bytes = |seed| {
        let hold = "hold: people at 20 for 3s then 5 for 3s";
        let outcome = run(&scenario(TALKERS, hold), seed, ToyServer::default(), NEVER);
        postcard::to_stdvec(&outcome.intervals).unwrap()
    };
    assert!(bytes(1) == bytes(1) && bytes(1) != bytes(2));
}

#[test]
fn people_come_and_go_as_fast_as_asked() {
    let hold = "hold: people at 30 for 10s, by: 5/s";
    let online = online(&run(&scenario(ENDLESS, hold), 1, ToyServer::default(), NEVER));
    let around = |at: usize, want: i64| (online[at] as i64 - want).abs() <= 1;
    assert!(around(1, 10) && around(3, 20) && around(5, 30) && around(9, 30), "{online:?}");
    assert!(around(11, 20) && around(13, 10), "everybody goes in turn: {online:?}");
}

#[test]
fn a_governor_moves_the_population_and_ends_the_phase() {
    let hold = "hold: people at 5 for 1h, by: once, most: 40";
    let mut seen = Vec::new();
    let outcome = simulate_governed(
        setup(&scenario(ENDLESS, hold), 3),
        SimNet::new(3, ToyServer::default(), NEVER),
        &mut |now, holding| {
            seen.push((holding.asked, holding.most));
            match now.0 / 1_000_000_000 {
                0..2 => Wish::AsPlanned,
                2..4 => Wish::People(25),
                4..6 => Wish::People(1_000),
                6..8 => Wish::People(3),
                _ => Wish::Enough,
            }
        },
    );
    let online = online(&outcome);
    assert_eq!([online[1], online[3], online[5], online[7]], [5, 25, 40, 3], "{online:?}");
    assert!(online.len() <= 10, "the phase ends when it is enough: {online:?}");
    assert!(seen.contains(&(25, 40)) && seen.contains(&(40, 40)));
    assert_eq!(outcome.total().counters.lost, 0);
}

/// One population after the other, beside a crowd that comes once: people of the first are still
/// on their way home when the second come, and neither takes the other's accounts or places.
#[test]
fn populations_follow_each_other() {
    let text = scenario(ENDLESS, "hold: people at 30 for 5s, by: 10/s")
        + "  - {hold: people at 10 for 5s then 0 for 2s then 5 for 3s, by: once}\n"
        + "  - {run: people at once, until: in}\n";
    let text = text.replace("timeline: [{", "timeline:\n  - {").replace("10/s}]", "10/s}");
    let outcome = run(&text, 2, ToyServer::default(), NEVER);
    let online = online(&outcome);
    assert_eq!(online[4], 30, "{online:?}");
    assert_eq!(online[9], 10, "the first have gone: {online:?}");
    assert_eq!((online[11], online[14]), (0, 5), "{online:?}");
    let total = outcome.total().counters;
    assert_eq!((total.arrivals, total.entered), (30 + 15 + 20, 30 + 15 + 20));
    // The last crowd's journeys are endless: they end with the run.
    assert_eq!((total.finished, total.gave_up), (45, 0));
    assert_eq!((total.lost, total.duplicate, total.unexpected), (0, 0, 0));
    let ends = |name: &str| {
        let mut edges = outcome.records.iter().filter_map(|record| match &record.what {
            What::Phase { name: phase, edge: Edge::End, overdue } if phase == name => {
                Some((record.at.secs_f64().round() as u64, *overdue))
            }
            _ => None,
        });
        edges.next()
    };
    assert_eq!((ends("people-1"), ends("people-2")), (Some((5, false)), Some((15, false))));
}

/// A target that answers nobody: people give up, and no more than one a second tries each place.
#[test]
fn a_target_that_answers_nobody_is_not_stormed() {
    let text = scenario(TALKERS, "hold: people at 5 for 30s, by: once")
        .replace("audit: 1", "audit: 1, login: 2s");
    let outcome = run(&text, 1, ToyServer::default(), Tick::ZERO..Tick::from_secs(9_999));
    let total = outcome.total().counters;
    // Two seconds to give up and one of pause: ten rounds.
    assert!((45..=55).contains(&total.arrivals), "{}", total.arrivals);
    assert_eq!((total.entered, total.finished), (0, 0));
    assert_eq!(total.gave_up, total.arrivals);
}
