//! Known truth: a target that drops, repeats, swaps and delays messages, and keeps a record of it.
//! The ledger has to say exactly what the record says.

use crate::muc::Muc;
use crate::rig::{Answer, Folder, at, for_each, yardstick};
use model::stamp::{LEN, Stamp};
use results::Status;
use server::fault::Record;
use std::collections::BTreeSet;

const LISTENERS: u64 = 6;
const TALKERS: u64 = 2;
const MESSAGES: u64 = 60;
/// Every message goes to everybody in its talker's room, who is half of the people.
const DELIVERIES: u64 = MESSAGES * (LISTENERS + TALKERS);

/// Everybody is in before anybody talks, and nobody goes before all has been settled for long
/// enough: every message is owed to everybody in the room, so record and ledger must be equal to
/// the last message.
///
/// There is one talker in each of two rooms: what is swapped with its successor is then swapped
/// with a message of the same sender, which is what misordered means.
fn scenario(target: &str, limits: &str, wait: &str) -> String {
    format!(
        "{target}
rooms: [north, south]
crowds:
  listeners:
    size: {LISTENERS}
    journey: [login, join, {{repeat: forever, every: 1s, do: ping}}]
  talkers:
    size: {TALKERS}
    journey:
      - login
      - join
      - gate: both are in
      - talk: {{every: 10ms, times: {MESSAGES}}}
      - wait: {wait}                  # longer than anything is held back
      - wait: 2100ms                  # listeners hang up: they are owed what is 2 s old
      - leave
timeline:
  - {{run: listeners at once, until: in}}
  - {{run: talkers at once, until: in}}
limits: {{audit: 1 in 1, {limits}}}
"
    )
}

/// How many faults of a kind the record holds. Each must be about a message of this run, and no
/// delivery may have two of the same kind.
fn count(records: &[Record], kind: &str, what: &str) -> u64 {
    let of_kind: Vec<_> = records.iter().filter(|record| record.kind == kind).collect();
    let runs: BTreeSet<u32> = of_kind
        .iter()
        .map(|record| {
            let stamp = Stamp::decode(&record.text.as_bytes()[..LEN]);
            stamp.unwrap_or_else(|| panic!("{what}: no stamp in {record:?}")).run
        })
        .collect();
    assert!(runs.len() <= 1, "{what}: messages of {} runs", runs.len());
    let different: BTreeSet<_> =
        of_kind.iter().map(|record| (&record.room, record.number, &record.receiver)).collect();
    assert_eq!(different.len(), of_kind.len(), "{what}");
    of_kind.len() as u64
}

/// Compares the ledger with the record; `kinds` must all occur, or the test could not fail.
fn compare(answer: &Answer, records: &[Record], kinds: &[&str], what: &str) {
    let summary = answer.summary();
    let ledger = &summary.ledger;
    assert_eq!(summary.status, Status::Finished, "{what}");
    assert_eq!(summary.sends.sent, MESSAGES * TALKERS, "{what}");
    assert_eq!((ledger.owed, ledger.optional), (DELIVERIES, 0), "{what}");
    let count = |kind| count(records, kind, what);
    for kind in kinds {
        assert!(count(kind) > 5, "{what}: only {} of {kind}", count(kind));
    }
    let told = [ledger.lost, ledger.duplicate, ledger.late];
    assert_eq!(told, [count("drop"), count("duplicate"), count("delay")], "{what}");
    assert_eq!(ledger.received, ledger.owed - ledger.lost, "{what}");
    assert_eq!((ledger.unexpected, ledger.foreign), (0, 0), "{what}");
    assert_eq!(ledger.audited, ledger.received, "{what}: everybody is audited");
    if count("delay") == 0 {
        assert_eq!(ledger.misordered, count("reorder"), "{what}");
    }
}

/// What the target speaks, as options of it; the last ones are compressed.
fn codecs_and_seeds() -> Vec<(&'static str, u64)> {
    let plain = ["json", "proto"];
    let plain = plain.into_iter().flat_map(|codec| (1..4).map(move |seed| (codec, seed)));
    plain.chain([("json, deflate: on", 4), ("proto, deflate: on", 5)]).collect()
}

#[test]
fn what_the_yardstick_drops_repeats_and_swaps_is_counted_exactly() {
    for_each(&codecs_and_seeds(), |(codec, seed)| {
        let what = format!("{codec}, seed {seed}");
        let faults = format!("seed={seed},drop=0.06,duplicate=0.06,reorder=0.06");
        let server = yardstick(&faults);
        let folder = Folder::new("ledger");
        let answer = folder.run(&scenario(&at(&server, codec), "late: 1m", "2s"), &[]);
        let records = server.stop().unwrap().faults;
        compare(&answer, &records, &["drop", "duplicate", "reorder"], &what);
    });
}

#[test]
fn what_the_yardstick_delays_is_late_and_not_lost() {
    for_each(&codecs_and_seeds(), |(codec, seed)| {
        let what = format!("{codec}, seed {seed}");
        let faults = format!("seed={seed},drop=0.06,duplicate=0.06,delay=0.06:3s");
        let server = yardstick(&faults);
        let folder = Folder::new("late");
        let answer = folder.run(&scenario(&at(&server, codec), "late: 2s", "4s"), &[]);
        let records = server.stop().unwrap().faults;
        compare(&answer, &records, &["drop", "duplicate", "delay"], &what);
    });
}

#[test]
fn what_a_muc_drops_repeats_and_swaps_is_counted_exactly() {
    for_each(&[1, 2, 3], |seed| {
        let what = format!("xml, seed {seed}");
        let server = Muc::start(&format!("seed={seed},drop=0.06,duplicate=0.06,reorder=0.06"));
        // The own copy acknowledges, so what was dropped there is settled by the time limit.
        let limits = "late: 1m, request: 2s";
        let answer = Folder::new("muc").run(&scenario(&server.target(), limits, "4s"), &[]);
        compare(&answer, &server.stop(), &["drop", "duplicate", "reorder"], &what);
    });
}

/// People who come and go while others talk: what overlaps their own coming or going may arrive or
/// not, and nothing of it is a loss.
#[test]
fn coming_and_going_is_no_loss() {
    for (faults, codec) in [("", "proto"), ("seed=5,drop=0.1", "json")] {
        let server = yardstick(faults);
        let scenario = format!(
            "{}
rooms: [lobby]
crowds:
  talkers:
    size: 4
    journey: [login, join, {{talk: {{every: 5ms, for: 1500ms}}}}, {{wait: 1s}}, leave]
  guests:
    size: 10
    journey: [login, {{repeat: 20, do: [join, {{wait: 1ms..60ms}}, leave]}}]
timeline: [{{run: talkers at once, until: in}}, {{run: guests at once}}]
",
            at(&server, codec)
        );
        let summary = Folder::new("churn").run(&scenario, &[]).summary();
        let drops = server.stop().unwrap().faults.len() as u64;
        let ledger = &summary.ledger;
        assert_eq!(summary.people.finished, 14, "{faults}");
        assert!(ledger.optional > 0, "{faults}: nothing overlapped: {ledger:?}");
        assert_eq!((ledger.duplicate, ledger.unexpected, ledger.foreign), (0, 0, 0), "{faults}");
        match drops {
            0 => assert_eq!(ledger.lost, 0, "{ledger:?}"),
            _ => assert!((1..=drops).contains(&ledger.lost), "{drops} drops: {ledger:?}"),
        }
    }
}
