//! A real server: ejabberd, started by its folder in targets/, with accounts, hosts and rooms.

use crate::rig::{Answer, Folder};
use results::Status;
use std::path::Path;

/// People in each crowd, and messages that each of them says.
const PEOPLE: u64 = 8;
const SAID: u64 = 3;
/// The shared crowd, made short. Everybody is in before the first one talks, and stays until the
/// last one has talked.
const SHORTER: &[(&str, &str)] = &[
    ("count: 4", "count: 2"),
    ("size: 160", "size: 8"),
    ("size: 8\n    journey", "size: 2\n    journey"),
    ("talk: {every: 100ms, for: 2s", "talk: {every: 20ms, for: 200ms"),
    ("- wait: 0s..2s", "- wait: 500ms"),
    ("talk: {every: 2s, for: 20s", "talk: {every: 200ms, for: 800ms"),
];

/// Whether the test is to be skipped. Where tests are run for everybody, it never is.
fn is_skipped() -> bool {
    let is_installed = Path::new("/usr/sbin/ejabberdctl").exists();
    let is_skipped = !is_installed && std::env::var_os("CI").is_none();
    if is_skipped {
        eprintln!("skipped: ejabberd is not installed (and CI is not set)");
    }
    is_skipped
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn run(folder: &Folder, scenario: &str) -> Answer {
    folder.run(scenario, &["--targets", &root().join("targets").display().to_string()])
}

/// The same crowd goes to ejabberd, Prosody and the yardstick, and everybody is owed the same.
#[test]
fn one_crowd_on_three_servers() {
    if is_skipped() {
        return;
    }
    let mut scenario = std::fs::read_to_string(root().join("scenarios/one-crowd.yaml")).unwrap();
    for (long, short) in SHORTER {
        assert!(scenario.contains(long), "the scenario has no `{long}` any more");
        scenario = scenario.replace(long, short);
    }
    let mut owed = Vec::new();
    for target in ["ejabberd", "prosody", "yardstick"] {
        let folder = Folder::new(&format!("one-crowd-{target}"));
        let answer =
            run(&folder, &scenario.replace("target: yardstick", &format!("target: {target}")));
        let summary = answer.summary();
        assert_eq!(summary.status, Status::Finished, "{target}: {}", answer.stderr);
        assert_eq!(summary.people.finished, 2 + PEOPLE, "{target}");
        assert_eq!(summary.errors, [], "{target}");
        let ledger = &summary.ledger;
        assert_eq!((ledger.lost, ledger.duplicate, ledger.unexpected), (0, 0, 0), "{target}");
        let crowd = summary.phases.iter().find(|phase| phase.asked == PEOPLE).unwrap();
        assert_eq!((crowd.sends, crowd.entered), (PEOPLE * SAID, PEOPLE), "{target}");
        assert!(crowd.target.as_ref().is_some_and(|usage| usage.rss_peak_bytes > 1 << 20));
        assert!(!summary.target_version.is_empty(), "{target}");
        owed.push(ledger.owed);
    }
    assert!(owed.iter().all(|of| *of == owed[0] && *of >= PEOPLE / 2 * PEOPLE * SAID), "{owed:?}");
}

/// Accounts are made before anybody comes, on as many hosts as are wanted; wrong passwords are
/// refused.
#[test]
fn accounts_are_made_over_the_http_api() {
    if is_skipped() {
        return;
    }
    let folder = Folder::new("ejabberd-accounts");
    let scenario = "about: Who has an account gets in\n\
        target: {name: ejabberd, accounts: 6, vhosts: 2, roster: shared, password-storage: scram,\n  \
        schedulers: 1, mam: off, multicast: off, domain: b.localhost}\n\
        rooms: [live]\n\
        crowds:\n  \
          known: {size: 6, accounts: {name: 'u{n}', password: secret},\n    \
            journey: [login, {join: live}, {gate: all}, {talk: {every: 50ms, times: 3}}, \
            {wait: 500ms}, leave, disconnect]}\n  \
          strangers: {size: 2, accounts: {name: 'u{n}', password: guessed}, journey: [login, disconnect]}\n\
        timeline: [{run: known at once, until: done}, {run: strangers at once, until: done}]\n";
    let answer = run(&folder, scenario);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
    assert_eq!(summary.phases[0].entered, 6, "{}", answer.stderr);
    let ledger = &summary.ledger;
    assert_eq!((ledger.owed, ledger.lost, ledger.unexpected), (6 * 6 * 3, 0, 0), "{ledger:?}");
    let refused: Vec<_> = summary.errors.iter().filter(|row| row.count == 2).collect();
    assert!(
        refused.iter().any(|row| row.example.contains("not-authorized")),
        "{:?}",
        summary.errors
    );
}

/// What a knob cannot be is told before or while it starts, with its own words.
#[test]
fn wrong_knobs_are_told() {
    if is_skipped() {
        return;
    }
    let folder = Folder::new("ejabberd-knobs");
    let with = |knob: &str| {
        let scenario = format!(
            "about: x\ntarget: ejabberd?{knob}\nrooms: [live]\ncrowds: {{people: {{size: 1, journey: \
             [login, join, leave]}}}}\ntimeline: [{{run: people at once}}]\n"
        );
        run(&folder, &scenario)
    };
    let answer = with("mam=always");
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
    assert!(answer.stderr.contains("off, rooms, everything"), "{}", answer.stderr);
    let answer = with("vhosts=27");
    assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    assert!(answer.stderr.contains("it must be 0 to 26"), "{}", answer.stderr);
}
