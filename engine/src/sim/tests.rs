//! Known answers: what a simulated run must report.

use super::toy::{REDIALS, Toy, ToyServer};
use super::{Outcome, SimNet, simulate};
use crate::accounts::AccountBook;
use crate::board::Board;
use crate::shard::Setup;
use model::scenario::{PlanOptions, Scenario};
use model::{Endpoint, Facts, Measure, Protocol, Shared, Tick, What};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(super) const NEVER: Range<Tick> = Tick::NEVER..Tick::NEVER;
const SECOND: u64 = 1_000_000_000;

pub(super) fn setup(scenario: &str, seed: u64) -> Setup {
    let facts = |_: &str| -> Option<&'static Facts> { Some(Toy.facts()) };
    let options = PlanOptions { seed: Some(seed), ..PlanOptions::default() };
    let scenario = Scenario::parse("test", scenario).unwrap();
    let plan = scenario.plan(&options, &facts, "toy").unwrap_or_else(|mistakes| {
        panic!("{}", mistakes.iter().map(ToString::to_string).collect::<String>())
    });
    Setup {
        accounts: Arc::new(AccountBook::open(&plan, Path::new(".")).unwrap()),
        board: Board::new(plan.rooms.len(), 1).unwrap(),
        plan: Arc::new(plan),
        protocol: &Toy,
        shared: Arc::new(Shared::new(
            Endpoint::parse("toy://127.0.0.1:1").unwrap(),
            Default::default(),
            1 << 20,
        )),
        source: 0,
        sources: 1,
        run: 7,
    }
}

pub(super) fn run(scenario: &str, seed: u64, server: ToyServer, stall: Range<Tick>) -> Outcome {
    simulate(setup(scenario, seed), SimNet::new(seed, server, stall))
}

const CROWD: &str = "
about: forty people meet in three rooms
target: toy://127.0.0.1:1
protocol: toy
rooms: [a, b, c]
limits: {audit: 1}
crowds:
  people:
    size: 40
    journey:
      - login
      - join: own
      - gate: all
      - talk: {every: {exponential: 300ms}, for: 8s}
      - gate: quiet
      - wait: 3s
      - leave
timeline: [{run: people at 20/s poisson}]
";

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let bytes = |seed| {
        let outcome = run(CROWD, seed, ToyServer::mischievous(seed, [5, 5, 5]), NEVER);
        postcard::to_stdvec(&outcome.intervals).unwrap()
    };
    assert!(bytes(1) == bytes(1), "the same seed must give the same intervals");
    assert!(bytes(1) != bytes(2), "another seed must give another run");
}

#[test]
fn the_ledger_reports_exactly_what_was_done_to_the_stream() {
    for seed in 0..25 {
        let server = ToyServer::mischievous(seed, [20, 15, 10]);
        let done = server.done.clone();
        let total = run(CROWD, seed, server, NEVER).total().counters;
        let done = done.lock().unwrap();
        assert!(done.dropped > 0 && done.duplicated > 0 && done.swapped > 0, "seed {seed}");
        assert_eq!(total.lost, done.dropped, "seed {seed}: lost");
        assert_eq!(total.duplicate, done.duplicated, "seed {seed}: duplicate");
        assert_eq!(total.deliveries, total.expected - total.lost, "seed {seed}: balance");
        assert_eq!((total.unexpected, total.optional), (0, 0), "seed {seed}");
        assert!(total.misordered > 0 && total.misordered <= done.swapped, "seed {seed}: order");
        assert_eq!(total.audited, total.deliveries, "seed {seed}: everybody is audited");
    }
}

#[test]
fn a_healthy_run_is_complete() {
    let outcome = run(CROWD, 3, ToyServer::default(), NEVER);
    let total = outcome.total();
    assert_eq!((total.counters.arrivals, total.counters.entered), (40, 40));
    assert_eq!((total.counters.finished, total.counters.gave_up), (40, 0));
    assert_eq!(total.counters.lost + total.counters.duplicate + total.counters.misordered, 0);
    assert!(total.counters.expected > 1_000);
    assert_eq!(total.counters.sends, total.counters.sends_due);
    assert!(total.faults.is_empty());
    assert_eq!(outcome.intervals.last().unwrap().gauges, Default::default());
    let last = outcome.records.iter().rev().find_map(|record| match &record.what {
        What::Tally(tally) => Some(tally.clone()),
        _ => None,
    });
    let tally = last.unwrap();
    assert_eq!((tally.asked, tally.entered, tally.finished), (40, 40, 40));
    assert!(tally.stages.iter().all(|stage| stage.entered == 40 && stage.left == 40));
}

/// One person with one request in flight, due 100 times a second; the target stalls for 2 s.
#[test]
fn a_stall_shows_in_full_in_latency_and_once_in_service_time() {
    let scenario = "
about: one person asks who is there, a hundred times a second
target: toy://127.0.0.1:1
protocol: toy
rooms: [a]
crowds:
  one:
    size: 1
    journey:
      - login
      - join: a
      - {repeat: {for: 10s}, every: 10ms, do: [{members: a}]}
timeline: [{run: one at once}]
";
    let stall = Tick::from_secs(3)..Tick::from_secs(5);
    let total = run(scenario, 1, ToyServer::default(), stall).total();
    let members = &total.measures[&Measure::Members];
    assert!((950..=1_000).contains(&members.done), "{} answers", members.done);
    let late = members.latency.count_from(SECOND);
    // Due every 10 ms from the stall's beginning and served one after the other behind its end,
    // each in some 0.12 ms: request k is above 1 s late while 2 s - 10 ms k + 0.12 ms k > 1 s.
    assert!((101..=103).contains(&late), "{late} samples above 1 s instead of 102");
    assert_eq!(members.service.count_from(SECOND), 1);
    let worst = members.latency.max() as f64 / SECOND as f64;
    assert!((1.98..2.02).contains(&worst), "{worst} s");
}

/// Saying something is not awaited, so messages go out on time and every one of them is late.
#[test]
fn a_stall_delays_every_delivery_that_was_due_in_it() {
    let scenario = "
about: one talks, one listens
target: toy://127.0.0.1:1
protocol: toy
rooms: [a]
crowds:
  listener: {size: 1, journey: [login, {join: a}, {wait: 12s}, leave]}
  talker: {size: 1, journey: [login, {join: a}, {wait: 1s}, {talk: {every: 10ms, for: 8s}}, leave]}
timeline: [{run: listener at once}, {run: talker at once}]
";
    let stall = Tick::from_secs(3)..Tick::from_secs(5);
    let total = run(scenario, 1, ToyServer::default(), stall).total();
    let delivery = &total.measures[&Measure::Delivery];
    let late = delivery.latency.count_from(SECOND);
    assert!((198..=202).contains(&late), "{late}: 100 messages to two people");
    assert_eq!(delivery.service.count_from(SECOND), late);
    assert_eq!(total.counters.sends_late, 0, "the generator was never late");
}

#[test]
fn a_target_that_never_answers_is_given_up_in_time() {
    let scenario = "
about: the target stalls for good
target: toy://127.0.0.1:1
protocol: toy
rooms: [a]
limits: {login: 2s}
crowds:
  people: {size: 5, journey: [login, {join: a}, leave]}
timeline: [{run: people at 10/s}]
";
    let outcome = run(scenario, 1, ToyServer::default(), Tick::ZERO..Tick::from_secs(9_999));
    let total = outcome.total();
    assert_eq!((total.counters.gave_up, total.counters.entered), (5, 0));
    let faults = &total.faults[&Measure::Login];
    assert_eq!(faults.get(&model::FaultClass::LoginTimeout), Some(&5));
    let seconds: Vec<u32> = outcome.intervals.iter().map(|i| i.second).collect();
    assert!(outcome.intervals.len() < 5, "{seconds:?}");
}

/// As from a login over HTTP to a WebSocket: another connection in place of the first is the same
/// person; what was left over of the first is nobody's.
#[test]
fn a_second_connection_takes_the_place_of_the_first() {
    for seed in 0..5 {
        let mut setup = setup(CROWD, seed);
        let endpoint = Endpoint::parse("toy://127.0.0.1:1").unwrap();
        let options = [(REDIALS.to_owned(), String::new())].into();
        setup.shared = Arc::new(Shared::new(endpoint, options, 1 << 20));
        let mut server = ToyServer::default();
        server.is_rambling = true;
        let logins = server.logins.clone();
        let outcome = simulate(setup, SimNet::new(seed, server, NEVER));
        let total = outcome.total();
        let logins = logins.lock().unwrap();
        assert_eq!(logins.values().sum::<u32>(), 80, "seed {seed}: {logins:?}");
        assert_eq!(total.faults, Default::default(), "seed {seed}");
        let connect = &total.measures[&Measure::Connect];
        assert_eq!((connect.asked, connect.done), (80, 80), "seed {seed}: both could speak");
        assert_eq!(total.measures[&Measure::Login].done, 40, "seed {seed}");
        let counters = &total.counters;
        assert_eq!((counters.arrivals, counters.entered, counters.finished), (40, 40, 40));
        assert_eq!((counters.lost, counters.duplicate, counters.unexpected), (0, 0, 0));
        assert_eq!(counters.drops, 0, "seed {seed}: the person changed, not the target");
        assert!(counters.expected > 1_000, "seed {seed}");
        let most = outcome.intervals.iter().map(|interval| interval.gauges.connected).max();
        assert_eq!(most, Some(40), "seed {seed}: nobody counts twice");
        assert_eq!(outcome.intervals.last().unwrap().gauges, Default::default());
    }
}
