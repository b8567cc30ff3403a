//! A population that is held and moves: as many people online as asked for, and an exact ledger.

use crate::rig::{Folder, at, for_each, yardstick};
use results::Status;

/// People stay for ever or for a second; in both cases so many are there as asked for.
const JOURNEYS: [&str; 2] = [
    "[login, join, {repeat: forever, every: {exponential: 300ms}, do: say}]",
    "[login, join, {talk: {every: 200ms, for: 1s}}, {wait: 300ms}, leave]",
];

fn scenario(target: &str, journey: &str) -> String {
    format!(
        "{target}
rooms: {{count: 3, name: 'room-{{n}}'}}
crowds: {{people: {{size: 20, journey: {journey}}}}}
timeline: [{{hold: people at 20 for 3s then 60 for 3s then 10 for 3s, by: once}}]
limits: {{audit: 1 in 1}}
"
    )
}

#[test]
fn a_population_moves_as_asked_and_nothing_is_lost() {
    let ways: [&[&str]; 2] = [&[], &["--people-per-process", "25", "--shards", "3"]];
    let rows = ways.iter().flat_map(|more| JOURNEYS.map(|journey| (more, journey)));
    for_each(&rows.collect::<Vec<_>>(), |(more, journey)| {
        let what = format!("{more:?} {journey}");
        let server = yardstick("");
        let folder = Folder::new("held");
        let answer = folder.run(&scenario(&at(&server, "proto"), journey), more);
        let summary = answer.summary();
        assert_eq!(summary.status, Status::Finished, "{what}: {}", answer.stderr);
        let run = answer.load();
        let online: Vec<u64> = run.seconds.iter().map(|second| second.gauges.online).collect();
        // The middle of each step; whoever is being replaced just then is not online.
        for (second, want) in [(1, 20), (4, 60), (7, 10)] {
            let got = online.get(second).copied().unwrap_or(0);
            assert!((want - want / 5..=want).contains(&got), "{what}: second {second}: {online:?}");
        }
        assert_eq!(summary.people.online_max, 60, "{what}");
        let (people, ledger) = (&summary.people, &summary.ledger);
        assert_eq!((people.asked, people.entered), (people.arrived, people.arrived), "{what}");
        assert_eq!((people.finished, people.gave_up), (people.arrived, 0), "{what}");
        assert!(people.arrived >= 60, "{what}: {people:?}");
        assert!(ledger.owed > 1_000, "{what}: {ledger:?}");
        assert_eq!((ledger.lost, ledger.duplicate, ledger.unexpected), (0, 0, 0), "{what}");
        assert_eq!(ledger.received, ledger.owed + ledger.optional, "{what}");
        assert_eq!(ledger.misordered, 0, "{what}");
        assert_eq!(server.stop().unwrap().counters.members, 0, "{what}: everybody has left");
        assert!(summary.errors.is_empty(), "{what}: {:?}", summary.errors);
    });
}

#[test]
fn losses_are_counted_exactly_while_people_come_and_go() {
    let server = yardstick("seed=4,drop=0.03,duplicate=0.03");
    let folder = Folder::new("held-losses");
    let more = ["--people-per-process", "25"];
    let summary = folder.run(&scenario(&at(&server, "json"), JOURNEYS[0]), &more).summary();
    let faults = server.stop().unwrap().faults;
    let count = |kind| faults.iter().filter(|fault| fault.kind == kind).count() as u64;
    let ledger = &summary.ledger;
    assert!(count("drop") > 50 && count("duplicate") > 50, "{} faults", faults.len());
    assert_eq!(ledger.received + ledger.lost, ledger.owed + ledger.optional, "{ledger:?}");
    // What is dropped while its receiver comes or goes is owed to nobody.
    let optional = count("drop") - ledger.lost;
    assert!(optional * 10 < count("drop"), "{optional} of {} drops: {ledger:?}", count("drop"));
    // A copy that comes after the receiver has left is of nobody's room.
    let copies = ledger.duplicate + ledger.unexpected;
    assert_eq!(copies, count("duplicate"), "{ledger:?}");
}
