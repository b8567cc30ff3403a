//! A real server that throng knows only by a description: the FastAPI chat, made short. What throng
//! counts must be what the chat counted itself, whatever messages are written in.

use crate::rig::Folder;
use model::What;
use results::Status;
use std::path::Path;

/// People who talk, and how often each says or does something.
const PEOPLE: u64 = 8;
/// What is made shorter: everybody stays until the last one has talked.
const SHORTER: &[(&str, &str)] = &[
    ("size: 250", "size: 8"),
    ("wait: 62.5s", "wait: 1s"),
    ("repeat: 40", "repeat: 5"),
    // Often enough that somebody leaves while others talk: who has left is told no more.
    ("94%:", "80%:"),
    ("3%: {leave: joined}", "17%: {leave: joined}"),
    ("think: 6s", "think: 200ms"),
    ("people at 4/s", "people at 20/s"),
    ("- disconnect", "- wait: 1s\n      - disconnect"),
    ("accounts: 1000", "accounts: 1000, KNOBS"),
    ("websocket: ../targets/", "websocket: TARGETS/"),
];

/// Whether the test is to be skipped. Where tests are run for everybody, it never is.
fn is_skipped() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_installed = std::env::split_paths(&path).any(|folder| folder.join("python3").exists());
    let is_skipped = !is_installed && std::env::var_os("CI").is_none();
    if is_skipped {
        eprintln!("skipped: python3 is not installed (and CI is not set)");
    }
    is_skipped
}

#[test]
fn the_chat_and_throng_count_the_same_in_json_and_in_protobuf() {
    if is_skipped() {
        return;
    }
    for knobs in ["codec: json, json: orjson, loop: uvloop", "codec: protobuf, deflate: off"] {
        test(knobs);
    }
}

fn test(knobs: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let targets = root.join("targets").display().to_string();
    let mut scenario = std::fs::read_to_string(root.join("scenarios/fastapi-chat.yaml")).unwrap();
    for (long, short) in SHORTER {
        assert!(scenario.contains(long), "the scenario has no `{long}` any more");
        scenario = scenario.replace(long, short);
    }
    let scenario = scenario.replace("KNOBS", knobs).replace("TARGETS", &targets);
    let folder = Folder::new("fastapi");
    let answer = folder.run(&scenario, &["--targets", &targets]);
    if answer.stderr.contains("could not be prepared") && std::env::var_os("CI").is_none() {
        eprintln!("skipped: the packages cannot be installed (and CI is not set)");
        return;
    }
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
    assert!(summary.target_version.starts_with(|c: char| c.is_ascii_digit()), "a version");
    assert_eq!(summary.errors, [], "{knobs}: nothing failed");
    let people = &summary.people;
    assert_eq!((people.asked, people.entered), (PEOPLE + 1, PEOPLE + 1));
    assert_eq!((people.finished, people.gave_up), (PEOPLE, 0));
    let ledger = &summary.ledger;
    assert_eq!((ledger.lost, ledger.duplicate, ledger.unexpected), (0, 0, 0), "{ledger:?}");
    let done =
        |name: &str| summary.measures.iter().find(|row| row.name == name).map_or(0, |row| row.done);
    // One connection after the other is one arrival and one connect.
    assert_eq!((done("connect"), done("login"), people.arrived), (9, 9, 9));
    assert!(done("say") > PEOPLE * 3 && done("ping") >= 2, "{:?}", summary.measures);
    let counted = answer.load().events.into_iter().find_map(|record| match record.what {
        What::Target { detail } => Some(detail).filter(|text| text.contains("counted by the")),
        _ => None,
    });
    let counted = counted.expect("the chat's own figures");
    let expect =
        format!("deliveries {}, logins {}, messages {}", done("delivery"), PEOPLE + 1, done("say"));
    assert!(counted.contains(&expect), "{knobs}: {counted}, not {expect}");
}
