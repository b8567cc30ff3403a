//! People who write to each other by name, lose their connections and come back: known truth about
//! the yardstick, with and without faults.

use crate::rig::{Folder, at, for_each, listener, yardstick};
use model::Measure;
use results::Status;
use server::Commit;

const PEOPLE: u64 = 8;
const ROUNDS: u64 = 4;
const TIMES: u64 = 5;
/// What each of the three verbs says in all.
const SAID: u64 = PEOPLE * ROUNDS * TIMES;

/// Everybody talks and writes to everybody; with `drop`, everybody loses the connection after each
/// round, right behind a message to all.
fn scenario(target: &str, drops: bool) -> String {
    let comeback = match drops {
        true => "{multicast: all}, drop, {wait: 20ms..300ms}, login",
        false => "{multicast: all}",
    };
    format!(
        "{target}
rooms: [lobby]
lists:
  all: {{of: people}}
limits: {{audit: 1 in 1, settle: 2s}}
crowds:
  people:
    size: {PEOPLE}
    features: [resume]
    accounts: {{count: {PEOPLE}, name: \"p{{n}}\"}}
    journey:
      - login
      - join: lobby
      - join: all
      - gate: in
      - repeat: {ROUNDS}
        do:
          - repeat: {TIMES}
            every: {{exponential: 40ms}}
            do: [{{say: lobby}}, {{tell: all}}]
          - wait: 300ms
          - repeat: {TIMES}
            do: [{comeback}]
      - gate: back
      - wait: 3s
      - leave: all
      - leave: lobby
timeline: [{{run: people at once, until: done}}]
"
    )
}

#[test]
fn whoever_comes_back_has_missed_nothing() {
    let rows = [("json", false), ("proto", true), ("json, deflate: on", true)];
    for_each(&rows, |(codec, keeps)| {
        let folder = Folder::new("comebacks");
        let mut config = server::Config { deflate: true, history: 1_000, ..Default::default() };
        if *keeps {
            config.data = Some(folder.path("data"));
            // So little is in memory that the store has to be asked.
            (config.commit, config.history) = (Commit::Late, 2);
        }
        let server = server::spawn(config, listener()).unwrap();
        let answer = folder.run(&scenario(&at(&server, codec), true), &[]);
        let counters = server.stop().unwrap().counters;
        let summary = answer.summary();
        let ledger = &summary.ledger;
        assert_eq!(summary.status, Status::Finished, "{codec}");
        let owed = SAID * PEOPLE + 2 * SAID * (PEOPLE - 1);
        assert_eq!((ledger.owed, ledger.received), (owed, owed), "{codec}");
        assert_eq!((ledger.lost, ledger.duplicate, ledger.unexpected), (0, 0, 0), "{codec}");
        assert_eq!((ledger.misordered, ledger.audited), (0, owed), "{codec}");
        let drops = PEOPLE * ROUNDS * TIMES;
        let resumed =
            summary.measures.iter().find(|row| row.name == Measure::Resume.name()).unwrap();
        assert_eq!((resumed.done, resumed.failed), (drops, 0), "{codec}");
        assert_eq!(counters.told, 2 * SAID * (PEOPLE - 1), "{codec}: told once each");
    });
}

#[test]
fn what_is_told_and_dropped_or_doubled_on_purpose_is_counted() {
    for_each(&[("json", 1), ("proto", 2)], |(codec, seed)| {
        let server = yardstick(&format!("seed={seed},drop=0.05,duplicate=0.05"));
        let folder = Folder::new("told");
        let answer = folder.run(&scenario(&at(&server, codec), false), &[]);
        let faults = server.stop().unwrap().faults;
        let count = |kind: &str| faults.iter().filter(|fault| fault.kind == kind).count() as u64;
        let direct = faults.iter().filter(|fault| fault.room.is_empty()).count();
        let summary = answer.summary();
        let ledger = &summary.ledger;
        assert!(direct > 40 && count("drop") > 20 && count("duplicate") > 20, "{codec}: {direct}");
        let told = (ledger.lost, ledger.duplicate);
        assert_eq!(told, (count("drop"), count("duplicate")), "{codec}");
        assert_eq!((ledger.received, ledger.unexpected), (ledger.owed - ledger.lost, 0), "{codec}");
    });
}
