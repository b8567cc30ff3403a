//! Known answers about people on lists, and about conversations that are lost and taken up again.

use super::tests::{NEVER, run, setup};
use super::toy::ToyServer;
use super::{SimNet, simulate};
use model::{FaultClass, Measure};

const LISTS: &str = "
about: ten of thirty are written to, of whom six are there
target: toy://127.0.0.1:1
protocol: toy
lists:
  some: {of: readers, first: 10}
  inbox: {of: readers, each: 1}
limits: {settle: 1s, audit: 1}
crowds:
  readers:
    size: 6
    accounts: {count: 30}
    journey: [login, join: some, join: inbox, gate: all, wait: 20s, leave: some, leave: inbox]
  writer:
    size: 1
    journey: [login, {repeat: 7, every: 1s, do: [{tell: some}, {tell: inbox}]}]
timeline:
  - {run: readers at once, until: in}
  - {run: writer at once, until: done}
";

#[test]
fn those_on_a_list_who_are_there_are_owed_what_is_written_to_it() {
    let total = run(LISTS, 1, ToyServer::default(), NEVER).total();
    let counters = &total.counters;
    // Seven to the six who are there of ten, and seven to one of thirty each.
    let inboxes = counters.expected - 42;
    assert!(inboxes <= 7, "{inboxes}");
    assert_eq!(counters.deliveries, counters.expected);
    assert_eq!((counters.lost, counters.unexpected, counters.duplicate), (0, 0, 0));
    assert_eq!((counters.sends_due, counters.sends), (14, 14));
    // Nobody acknowledges them: they are done when they were not refused, and have no latency.
    let told = &total.measures[&Measure::Tell];
    assert_eq!((told.asked, told.done, told.latency.count()), (14, 14, 0));
    assert_eq!(counters.presences_expected_max, 0, "nobody is told who comes");
    assert!(total.faults.is_empty(), "{:?}", total.faults);
}

#[test]
fn nobody_is_owed_what_it_wrote_itself() {
    let scenario = "
about: five people write to a list they are on
target: toy://127.0.0.1:1
protocol: toy
lists: {all: {of: people}}
limits: {settle: 1s}
crowds:
  people:
    size: 5
    journey: [login, join: all, gate: in, {repeat: 4, every: 700ms, do: [{tell: all}]}, wait: 5s]
timeline: [{run: people at once}]
";
    for seed in 0..5 {
        let total = run(scenario, seed, ToyServer::default(), NEVER).total();
        let counters = &total.counters;
        assert_eq!((counters.expected, counters.deliveries, counters.lost), (80, 80, 0));
        assert_eq!((counters.unexpected, counters.optional), (0, 0));
        assert_eq!(total.measures[&Measure::Tell].done, 20);
    }
}

const DROPS: &str = "
about: thirty people talk, lose their connections and come back
target: toy://127.0.0.1:1
protocol: toy
rooms: [a]
limits: {audit: 1, request: 20s}
crowds:
  people:
    size: 30
    journey:
      - login
      - join: a
      - gate: all
      - repeat: 4
        do:
          - talk: {every: {exponential: 300ms}, for: 2s}
          - drop
          - wait: 100ms..2s
          - login
      - wait: 6s
      - leave: a
timeline: [{run: people at 20/s poisson}]
";

fn drops(seed: u64, resumes: bool, per_mille: [u64; 3]) -> (super::Outcome, u64) {
    let mut server = ToyServer::mischievous(seed, per_mille);
    server.resumes = Some(resumes);
    let done = server.done.clone();
    let mut setup = setup(DROPS, seed);
    let options = [("resume".to_owned(), "yes".to_owned())].into();
    let endpoint = setup.shared.endpoint.clone();
    setup.shared = std::sync::Arc::new(model::Shared::new(endpoint, options, 1 << 20));
    let outcome = simulate(setup, SimNet::new(seed, server, NEVER));
    let dropped = done.lock().unwrap().dropped;
    (outcome, dropped)
}

#[test]
fn a_conversation_taken_up_again_owes_what_was_said_meanwhile() {
    for seed in 0..20 {
        let (outcome, dropped) = drops(seed, true, [10, 0, 0]);
        let total = outcome.total();
        let counters = &total.counters;
        let resumed = &total.measures[&Measure::Resume];
        assert_eq!((resumed.asked, resumed.done, resumed.latency.count()), (120, 120, 120));
        assert_eq!(counters.lost, dropped, "seed {seed}");
        assert_eq!((counters.duplicate, counters.unexpected), (0, 0), "seed {seed}");
        assert_eq!(counters.deliveries, counters.expected - counters.lost, "seed {seed}");
        assert_eq!(counters.finished, 30, "seed {seed}");
        assert!(total.faults.is_empty(), "seed {seed}: {:?}", total.faults);
        assert_eq!(outcome.intervals.last().unwrap().gauges, Default::default());
    }
}

#[test]
fn a_conversation_that_is_begun_anew_owes_nothing_since_the_loss() {
    for seed in 0..20 {
        let (outcome, _) = drops(seed, false, [0, 0, 0]);
        let total = outcome.total();
        let counters = &total.counters;
        // Each person is in the room until its first loss, and refused there from then on.
        let resumed = &total.measures[&Measure::Resume];
        assert_eq!((resumed.asked, resumed.done), (120, 0), "seed {seed}");
        assert_eq!(total.faults[&Measure::Resume][&FaultClass::Closed], 120, "seed {seed}");
        assert_eq!((counters.lost, counters.duplicate, counters.unexpected), (0, 0, 0));
        assert!(counters.expected > 100, "seed {seed}");
        assert_eq!(outcome.intervals.last().unwrap().gauges, Default::default());
    }
}
