//! One crowd in one process or spread over several: the same run.

use crate::rig::{Folder, at, children, is_alive, wait_until, yardstick};
use results::{Status, Summary};

const PEOPLE: u64 = 60;
const MESSAGES: u64 = 10;

fn scenario(target: &str) -> String {
    format!(
        "{target}
rooms: {{count: 3, name: \"room-{{n}}\"}}
crowds:
  people:
    size: {PEOPLE}
    features: [members]
    journey:
      - login
      - join
      - gate: all are in
      - talk: {{every: 100ms, times: {MESSAGES}}}
      - gate: all have talked
      - wait: 2s                       # everything has arrived
      - leave
timeline: [{{run: people at once}}]
limits: {{audit: 1 in 1}}
"
    )
}

/// Everything that does not depend on time.
fn totals(summary: &Summary) -> Vec<(String, u64)> {
    let measures = summary.measures.iter().flat_map(|row| {
        [("asked", row.asked), ("done", row.done), ("failed", row.failed)]
            .map(|(what, count)| (format!("{} {what}", row.name), count))
    });
    // How many announcements somebody hears of those who come at the same time is chance.
    let measures = measures.filter(|(name, _)| !name.starts_with("announcement"));
    let (people, ledger) = (&summary.people, &summary.ledger);
    let others = [
        ("entered", people.entered),
        ("finished", people.finished),
        ("online", people.online_max),
        ("owed", ledger.owed),
        ("received", ledger.received),
        ("lost", ledger.lost),
        ("duplicate", ledger.duplicate),
        ("misordered", ledger.misordered),
        ("audited", ledger.audited),
        ("unexpected", ledger.unexpected),
    ];
    measures.chain(others.map(|(name, count)| (name.to_owned(), count))).collect()
}

#[test]
fn three_processes_are_as_good_as_one() {
    let mut both = Vec::new();
    for (processes, more) in [(1, &[][..]), (3, &["--people-per-process", "20"])] {
        let server = yardstick("");
        let folder = Folder::new("workers");
        let started = folder.start_run(&scenario(&at(&server, "proto")), more);
        let workers = if processes == 1 { 0 } else { processes };
        wait_until("everybody is in", || server.counters().members == PEOPLE);
        assert_eq!(children(started.pid).len(), workers);
        let answer = started.end();
        let summary = answer.summary();
        assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
        let run = answer.load();
        assert_eq!(run.manifest.generator.processes as usize, processes);
        assert_eq!(summary.people.online_max, PEOPLE, "gauges of processes add up");
        let owed = PEOPLE * MESSAGES * PEOPLE / 3;
        assert_eq!((summary.ledger.owed, summary.ledger.received), (owed, owed));
        both.push(totals(&summary));
    }
    assert_eq!(both[0], both[1]);
}

#[test]
fn losses_are_exact_across_processes() {
    let server = yardstick("seed=9,drop=0.02,duplicate=0.02");
    let folder = Folder::new("losses");
    let scenario = scenario(&at(&server, "json"));
    let summary = folder.run(&scenario, &["--people-per-process", "20"]).summary();
    let faults = server.stop().unwrap().faults;
    let count = |kind| faults.iter().filter(|fault| fault.kind == kind).count() as u64;
    assert!(count("drop") > 100 && count("duplicate") > 100, "{} faults", faults.len());
    let ledger = &summary.ledger;
    assert_eq!((ledger.lost, ledger.duplicate), (count("drop"), count("duplicate")));
    assert_eq!(ledger.owed, PEOPLE * MESSAGES * PEOPLE / 3);
    assert_eq!(ledger.unexpected, 0);
}

/// Two crowds meet in the rooms of three servers that do not know each other; the second crowd's
/// place in the run is not its place in the rooms.
#[test]
fn crowds_that_share_a_room_share_its_server() {
    let folder = Folder::new("servers");
    let scenario = "target: 'yardstick?processes=3'
rooms: {count: 6, name: 'room-{n}'}
crowds:
  listeners: {size: 13, journey: [login, join, {repeat: forever, every: 1s, do: ping}]}
  talkers:
    size: 6
    journey: [login, join, {talk: {every: 50ms, times: 4}}, {wait: 2100ms}, leave]
timeline:
  - {run: listeners at once, until: in}
  - {run: talkers at once, until: in}
";
    let ledger = folder.run(scenario, &[]).summary().ledger;
    let (people_in_rooms, own) = (13 + 6, 4);
    assert_eq!((ledger.owed, ledger.lost), (people_in_rooms * own, 0));
    assert_eq!(ledger.received, ledger.owed);
}

#[test]
fn a_lost_worker_makes_the_run_invalid() {
    let server = yardstick("");
    let folder = Folder::new("lost-worker");
    let more = ["--people-per-process", "20"];
    let started = folder.start_run(&scenario(&at(&server, "proto")), &more);
    wait_until("everybody is in", || server.counters().members == PEOPLE);
    let workers = children(started.pid);
    // SAFETY: a signal to a process our own child has just started and still waits for.
    unsafe { libc::kill(workers[1] as libc::pid_t, libc::SIGKILL) };
    let answer = started.end();
    assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Aborted);
    let told = |what: &str| what.contains("a part of the generator was lost");
    assert!(summary.health.findings.iter().any(|f| told(&f.what)), "{:?}", summary.health);
    let cause = format!("worker process {} ended: signal: 9", workers[1]);
    assert!(summary.notes.iter().any(|note| note.contains(&cause)), "{:?}", summary.notes);
}

/// A worker that is killed while everybody is sent away leaves a run that looks whole but is not:
/// its last words are missing.
#[test]
fn a_worker_lost_in_the_farewell_makes_the_run_invalid() {
    let server = yardstick("");
    let folder = Folder::new("lost-farewell");
    let more = ["--people-per-process", "20"];
    let started = folder.start_run(&scenario(&at(&server, "proto")), &more);
    wait_until("everybody is in", || server.counters().members == PEOPLE);
    let workers = children(started.pid);
    // SAFETY: signals to processes our own child has just started and still waits for.
    let signal = |pid, signal| unsafe { libc::kill(pid as libc::pid_t, signal) };
    // It cannot hear that it is to end, so it is still there when the others have gone.
    signal(workers[1], libc::SIGSTOP);
    started.signal(libc::SIGINT);
    let others = [workers[0], workers[2]];
    wait_until("the others have ended", || !others.into_iter().any(is_alive));
    signal(workers[1], libc::SIGKILL);
    let answer = started.end();
    assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    let told = |what: &str| what.contains("a part of the generator was lost");
    let health = answer.summary().health;
    assert!(health.findings.iter().any(|f| told(&f.what)), "{health:?}");
}
