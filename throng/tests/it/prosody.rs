//! A real server: the published Prosody experiment, made short. What throng counts must be what
//! Prosody counted itself.

use crate::rig::Folder;
use model::What;
use results::Status;
use std::path::Path;

/// People in each batch, and messages that each of them says.
const VIEWERS: u64 = 10;
const SAID: u64 = 3;
/// What is made shorter. Everybody is in before the first one talks, and stays until the last one
/// has talked.
const SHORTER: &[(&str, &str)] = &[
    ("talk: {every: 100ms, for: 6s,", "talk: {every: 20ms, for: 1s,"),
    ("- wait: 4s", "- wait: 500ms"),
    ("size: 100", "size: 10"),
    ("- wait: 25s", "- wait: 800ms"),
    ("talk: {every: 5s, for: 20s,", "talk: {every: 200ms, for: 800ms,"),
    ("- wait: 15s", "- wait: 1500ms"),
    ("rest: 15s", "rest: 2s"),
    ("rest: 80s", "rest: 4s"),
    ("viewers at 10/s", "viewers at 50/s"),
];

/// Whether the test is to be skipped. Where tests are run for everybody, it never is.
fn is_skipped() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/bin".into()]);
    let is_installed = folders.any(|folder| folder.join("prosody").exists());
    let is_skipped = !is_installed && std::env::var_os("CI").is_none();
    if is_skipped {
        eprintln!("skipped: prosody is not installed (and CI is not set)");
    }
    is_skipped
}

#[test]
fn prosody_and_throng_count_the_same() {
    if is_skipped() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut scenario = std::fs::read_to_string(root.join("scenarios/prosody-cpu.yaml")).unwrap();
    for (long, short) in SHORTER {
        assert!(scenario.contains(long), "the scenario has no `{long}` any more");
        scenario = scenario.replace(long, short);
    }
    let targets = root.join("targets").display().to_string();
    let folder = Folder::new("prosody");
    let answer = folder.run(&scenario, &["--targets", &targets]);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
    assert!(summary.target_version.starts_with(|c: char| c.is_ascii_digit()), "a version");

    let people = &summary.people;
    let all = 2 + 3 * VIEWERS;
    assert_eq!((people.asked, people.entered, people.finished), (all, all, all));
    assert_eq!(summary.errors, [], "nothing failed");

    // Each asks for the own avatar, the room's, and that of everybody else: n (n + 1).
    let avatars = summary.measures.iter().find(|row| row.name == "avatars").unwrap();
    let asked = VIEWERS * (VIEWERS + 1);
    assert_eq!((avatars.asked, avatars.done, avatars.failed), (asked, asked, 0));
    let counted = answer.load().events.into_iter().find_map(|record| match record.what {
        What::Target { detail } => Some(detail).filter(|text| text.contains("counted by the")),
        _ => None,
    });
    let counted = counted.expect("Prosody's own figures");
    assert!(counted.contains(&format!("vcard_requests {asked}")), "{counted}");

    // The room replays its last messages to whoever joins, and the archive its own: with stamps of
    // this run, and yet no deliveries.
    let ledger = &summary.ledger;
    assert_eq!((ledger.lost, ledger.duplicate, ledger.unexpected), (0, 0, 0), "{ledger:?}");
    let batches: Vec<_> = summary.phases.iter().filter(|p| p.asked == VIEWERS).collect();
    assert_eq!(batches.len(), 3);
    for batch in batches {
        assert_eq!((batch.sends, batch.entered), (VIEWERS * SAID, VIEWERS), "{}", batch.name);
        assert_eq!(batch.deliveries, VIEWERS * SAID * VIEWERS, "{}", batch.name);
        let asks = |verb: &str| batch.requests.get(verb).copied().unwrap_or(0);
        let is_first = batch.name == "everything";
        assert_eq!(asks("avatars"), if is_first { asked } else { 0 }, "{}", batch.name);
        assert_eq!(asks("roster"), VIEWERS, "{}", batch.name);
        let reads_archive = batch.name != "no avatars and history";
        assert_eq!(asks("history"), if reads_archive { VIEWERS } else { 0 }, "{}", batch.name);
        let usage = batch.target.as_ref().expect("Prosody was watched");
        assert!(usage.cpu_s > 0.0 && usage.rss_peak_bytes > 1 << 20, "{usage:?}");
    }

    let marks: Vec<&str> = summary.marks.iter().map(|mark| mark.name.as_str()).collect();
    assert_eq!(marks, ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9"]);
    assert!(summary.marks.is_sorted_by_key(|mark| mark.at_s), "{:?}", summary.marks);
}
