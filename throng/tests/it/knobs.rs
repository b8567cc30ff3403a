//! The yardstick's knobs from end to end: written in a scenario, at work in the child process, and
//! to be seen in what the run measured.

use crate::rig::{Folder, for_each};
use results::Summary;

const PEOPLE: u64 = 6;

/// Everybody meets in one room with all features, and one of them talks. The answer to `history`
/// comes behind those to what was said, however slow the target: the wait begins after it.
fn scenario(knobs: &str) -> String {
    format!(
        "target: yardstick?{knobs}
rooms: [lobby]
crowds:
  listeners:
    size: {}
    features: [history, members, avatars]
    journey: [login, join, {{repeat: forever, every: 1s, do: ping}}]
  talkers:
    size: 1
    features: [avatars]
    journey: [login, join, {{talk: {{every: 10ms, times: 30}}}}, history, {{wait: 2500ms}}, leave]
timeline:
  - {{run: listeners at once, until: in}}
  - {{run: talkers at once}}
",
        PEOPLE - 1
    )
}

fn run(knobs: &str) -> Summary {
    let answer = Folder::new("knobs").run_fit(&scenario(knobs), &[]);
    assert_eq!(answer.code, Some(0), "{knobs}: {}{}", answer.stdout, answer.stderr);
    let summary = answer.summary();
    let ledger = &summary.ledger;
    assert_eq!((ledger.owed, ledger.lost), (30 * PEOPLE, 0), "{knobs}: {ledger:?}");
    assert_eq!((ledger.duplicate, ledger.misordered), (0, 0), "{knobs}: {ledger:?}");
    summary
}

/// How often something was asked and answered.
fn asked(summary: &Summary, measure: &str) -> (u64, u64) {
    let row = summary.measures.iter().find(|row| row.name == measure);
    row.map_or((0, 0), |row| (row.asked, row.done))
}

#[test]
fn pictures_are_asked_for_once_by_everybody_where_they_are_lazy() {
    let everybody = PEOPLE * (PEOPLE - 1);
    let rows = [
        ("avatars=lazy&codec=json&deflate=on", everybody),
        ("avatars=lazy&codec=proto&presence=eager", everybody),
        ("avatars=eager&codec=proto&deflate=on", 0),
        ("avatars=eager&avatar-bytes=100&history=0", 0),
        ("avatars=off&flush-window=0ms", 0),
        ("avatars=off&encode=receiver&flush=message", 0),
    ];
    for_each(&rows, |(knobs, requests)| {
        let summary = run(knobs);
        assert_eq!(asked(&summary, "avatars"), (*requests, *requests), "{knobs}");
    });
}

#[test]
fn nobody_is_owed_announcements_where_there_are_none() {
    let (loud, silent) = (run("presence=eager"), run("presence=off"));
    assert!(loud.ledger.announcements_owed > 0 && loud.ledger.announcements_lost == 0);
    assert_eq!((silent.ledger.announcements_owed, silent.ledger.announcements_lost), (0, 0));
    assert_eq!((silent.ledger.presences, silent.ledger.presences_max), (0, 0));
    assert_eq!(silent.ledger.lost, 0);
}

#[test]
fn a_server_that_stores_and_hashes_loses_nothing() {
    let rows = ["commit=group&hash-cost=low", "commit=message&codec=json", "commit=late&history=3"];
    for_each(&rows, |knobs| {
        let said = run(knobs);
        let row =
            said.measures.iter().find(|row| row.name == "login").expect("logins are measured");
        assert_eq!((row.asked, row.done), (PEOPLE, PEOPLE), "{knobs}");
    });
}

/// 180 deliveries at 120 a second take a second and a half; said in 0.3 s, the last ones are 1.2 s
/// late.
#[test]
fn a_throttle_is_where_it_was_put() {
    let summary = run("deliveries-per-second=120");
    let delivery = summary.measures.iter().find(|row| row.name == "delivery").unwrap();
    let slowest_ms = delivery.latency.max_ms;
    assert!((1_000.0..2_000.0).contains(&slowest_ms), "the slowest took {slowest_ms} ms");
}

#[test]
fn processor_time_is_used_up() {
    // The run is longer than the burning, so what is burnt shows as time of the target.
    let [idle, busy] = ["cpu-per-message=0us", "cpu-per-message=20ms"].map(run);
    let seconds = |summary: &Summary| summary.target_usage.as_ref().unwrap().cpu_s;
    let more = seconds(&busy) - seconds(&idle);
    assert!((0.4..1.2).contains(&more), "{more} s more for 30 times 20 ms");
}
