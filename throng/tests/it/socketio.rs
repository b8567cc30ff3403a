//! Real servers of Socket.IO 2 and 4 on Node and of python-socketio, over every transport: what
//! throng counts must be what was said, and a fallback must be seen.

use crate::rig::{Answer, Folder, for_each};
use model::What;
use results::Status;
use std::path::{Path, PathBuf};

const PEOPLE: u64 = 5;
const SAID: u64 = 3;

/// A server and how it is reached.
struct Row {
    server: &'static str,
    options: &'static str,
    /// How many are seen on their way from polling to a WebSocket.
    upgrades: u64,
}

const fn row(server: &'static str, options: &'static str, upgrades: u64) -> Row {
    Row { server, options, upgrades }
}

const ROWS: &[Row] = &[
    row("node2", "eio: 3", PEOPLE),
    row("node2", "eio: 3, transport: websocket", 0),
    row("node2", "eio: 3, transport: polling", 0),
    row("node2", "eio: 3, namespace: /chat", PEOPLE),
    row("node4", "eio: 4", PEOPLE),
    row("node4", "transport: websocket, namespace: /chat", 0),
    row("node4", "transport: polling, namespace: /chat", 0),
    row("node4", "eio: 3, transport: websocket", 0),
    row("python", "transport: upgrade", PEOPLE),
    row("python", "transport: websocket", 0),
];

fn servers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/socketio")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Whether a server is to be left out. Where tests are run for everybody, none is.
fn is_skipped(server: &str) -> bool {
    let installed = match server {
        "node2" => "node_modules/socketio2/package.json",
        "node4" => "node_modules/socketio4/package.json",
        "river" => "../../../targets/river/node_modules/socket.io/package.json",
        _ => "venv/bin/python",
    };
    let is_skipped = !servers().join(installed).exists() && std::env::var_os("CI").is_none();
    if is_skipped {
        eprintln!("skipped: {server} is not installed (scripts/install-needs; CI is not set)");
    }
    is_skipped
}

fn run(folder: &Folder, row: &Row) -> Answer {
    let scenario = format!(
        "about: a test\ntarget: {{name: {}, {}}}\nrooms: [live]\ncrowds:\n  people:\n    size: {PEOPLE}\n    \
         journey: [login, {{join: live}}, {{gate: in}}, {{repeat: {SAID}, do: [{{say: live}}, \
         {{wait: 100ms}}]}}, {{gate: said}}, {{wait: 300ms}}, {{leave: live}}, disconnect]\n\
         timeline: [{{run: people at 100/s, until: done, deadline: 40s}}]\n",
        row.server, row.options
    );
    let servers = servers().display().to_string();
    folder.run_fit(&scenario, &["--targets", &servers])
}

#[test]
fn every_message_is_counted_over_every_transport() {
    for_each(ROWS, |row| {
        if is_skipped(row.server) {
            return;
        }
        let folder = Folder::new(&format!("socketio-{}", row.server));
        let answer = run(&folder, row);
        let (summary, name) = (answer.summary(), format!("{} {}", row.server, row.options));
        assert_eq!(summary.status, Status::Finished, "{name}: {}", answer.stderr);
        assert_eq!(summary.errors, [], "{name}");
        assert_eq!(summary.people.finished, PEOPLE, "{name}");
        let ledger = &summary.ledger;
        assert_eq!(ledger.received, PEOPLE * SAID * (PEOPLE - 1), "{name}: {ledger:?}");
        let wrong = (ledger.lost, ledger.duplicate, ledger.unexpected);
        assert_eq!(wrong, (0, 0, 0), "{name}");
        let upgrades = summary.measures.iter().find(|measure| measure.name == "upgrade");
        assert_eq!(upgrades.map_or(0, |measure| measure.done), row.upgrades, "{name}");
    });
}

/// People who lose their connections while others talk, and come back.
fn recovered(recovery: &str, options: &str, wait: &str) -> results::Summary {
    let folder = Folder::new("socketio-recovery");
    let servers = servers().display().to_string();
    let scenario = format!(
        "about: a test\ntarget: {{name: node4, recovery: \"{recovery}\", {options}}}\nrooms: [live]\n\
         crowds:\n  talkers:\n    size: 3\n    journey: [login, {{join: live}}, {{repeat: {{for: 5s}}, \
         every: 20ms, do: [{{say: live}}]}}, {{wait: 1s}}, {{leave: live}}, disconnect]\n  \
         losers:\n    size: 6\n    journey: [login, {{join: live}}, {{wait: 400ms}}, \
         {{repeat: 3, do: [drop, {{wait: {wait}}}, login, {{wait: 300ms}}]}}, {{wait: 4s}}, disconnect]\n\
         timeline: [{{run: talkers at once, until: in}}, {{run: losers at 100/s, until: done, deadline: 40s}}]\n"
    );
    let answer = folder.run_fit(&scenario, &["--targets", &servers]);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
    summary
}

#[test]
fn a_lost_conversation_goes_on_where_the_server_keeps_it() {
    if is_skipped("node4") {
        return;
    }
    for options in ["transport: upgrade", "transport: websocket, namespace: /chat"] {
        let summary = recovered("60000", options, "300ms");
        assert_eq!(summary.errors, [], "{options}");
        let resume = summary.measures.iter().find(|measure| measure.name == "resume").unwrap();
        assert_eq!((resume.done, resume.failed), (18, 0), "{options}");
        let ledger = &summary.ledger;
        let wrong = (ledger.lost, ledger.duplicate, ledger.unexpected);
        assert_eq!(wrong, (0, 0, 0), "{options}: {ledger:?}");
        // 250 each of the talkers, most of them for the six who come and go as well.
        assert!(ledger.received > 3 * 200 * 6, "{options}: {ledger:?}");
    }
}

#[test]
fn a_lost_conversation_that_the_server_has_forgotten_begins_anew() {
    if is_skipped("node4") {
        return;
    }
    let summary = recovered("1", "transport: websocket", "400ms");
    let [error] = &summary.errors[..] else { panic!("{:?}", summary.errors) };
    assert_eq!((error.measure.as_str(), error.count), ("resume", 6), "{error:?}");
    let ledger = &summary.ledger;
    assert_eq!((ledger.lost, ledger.duplicate, ledger.unexpected), (0, 0, 0), "{ledger:?}");
}

#[test]
fn an_answer_that_refuses_is_a_refusal() {
    let row = row("node4", "transport: websocket", 0);
    if is_skipped(row.server) {
        return;
    }
    let folder = Folder::new("socketio-refused");
    let servers = servers().display().to_string();
    let scenario = "about: a test\ntarget: {name: node4, transport: websocket}\nrooms: [live]\n\
                    socketio:\n  join: {emit: [join, \"{room}\"]}\n  \
                    history: {emit: [history, \"{room}\", \"{limit}\"], refused: refused by}\n\
                    crowds:\n  people:\n    size: 2\n    \
                    journey: [login, {join: live}, {history: {room: live, limit: 20}}, disconnect]\n\
                    timeline: [{run: people at 100/s, until: done, deadline: 40s}]\n";
    let answer = folder.run_fit(scenario, &["--targets", &servers]);
    let errors = answer.summary().errors;
    let told = |measure: &str, words: &str| {
        errors.iter().any(|error| {
            error.measure == measure
                && error.class == "request-refused"
                && error.count == 2
                && error.example.contains(words)
        })
    };
    assert!(told("history", "refused by us"), "{errors:?}");
}

/// A scenario of the house, made small, at River.
fn river(folder: &Folder, name: &str, changes: &[(&str, &str)]) -> Answer {
    let path = root().join("scenarios").join(name);
    let mut scenario = std::fs::read_to_string(path).unwrap();
    for (long, short) in changes {
        assert!(scenario.contains(long), "{name} has no `{long}` any more");
        scenario = scenario.replace(long, short);
    }
    let targets = root().join("targets").display().to_string();
    folder.run_fit(&scenario, &["--targets", &targets])
}

#[test]
fn everybody_at_river_sees_everybody_come() {
    const COMERS: u64 = 40;
    if is_skipped("river") {
        return;
    }
    let folder = Folder::new("river");
    let changes = [("size: 20000", "size: 40"), ("wait: 60s", "wait: 500ms")];
    let answer = river(&folder, "river-presence.yaml", &changes);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
    assert_eq!(summary.errors, []);
    let seen = &summary.ledger;
    // The second room is left by whoever has entered it: nothing is owed there.
    assert!(seen.announcements_owed <= COMERS * (COMERS - 1) / 2, "{seen:?}");
    assert!(seen.announcements_owed > COMERS * (COMERS - 1) / 4, "{seen:?}");
    assert_eq!((seen.announcements_lost, seen.announcements_duplicate), (0, 0), "{seen:?}");
    let told = answer.load().events.into_iter().find_map(|record| match record.what {
        What::Target { detail } => Some(detail).filter(|text| text.contains("counted by the")),
        _ => None,
    });
    let told = told.expect("River's own figures");
    assert!(told.contains(&format!("upgrades {COMERS}")), "{told}");
}

/// Whether programs are missing that stand around several processes of River.
fn is_alone() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]).collect();
    let is_there = |name: &&str| folders.iter().any(|folder| folder.join(name).exists());
    let missing = ["haproxy", "redis-server", "setpriv"].into_iter().find(|name| !is_there(name));
    let is_alone = missing.is_some() && std::env::var_os("CI").is_none();
    if is_alone {
        eprintln!("skipped: {missing:?} is not installed (scripts/install-needs; CI is not set)");
    }
    is_alone
}

/// Fifty people, each at one of two processes, who talk in one room.
fn pair(folder: &Folder, adapter: &str) -> results::Summary {
    let scenario = format!(
        "about: a test\ntarget: {{name: river, processes: 2, adapter: {adapter}}}\nrooms: [one]\n\
         crowds:\n  people:\n    size: 50\n    journey: [login, {{join: one}}, {{gate: in}}, \
         {{repeat: 2, do: [{{say: one}}, {{wait: 200ms}}]}}, {{gate: said}}, {{wait: 3s}}, \
         {{leave: one}}, disconnect]\n\
         timeline: [{{run: people at 50/s, until: done, deadline: 40s}}]\n"
    );
    let targets = root().join("targets").display().to_string();
    let answer = folder.run_fit(&scenario, &["--targets", &targets]);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
    assert_eq!(summary.errors, []);
    assert_eq!(summary.people.finished, 50);
    let told = answer.load().events.into_iter().find_map(|record| match record.what {
        What::Target { detail } => Some(detail).filter(|text| text.contains("counted by the")),
        _ => None,
    });
    let told = told.expect("the figures of both processes");
    assert!(told.contains("joins 50") && told.contains("upgrades 50"), "{told}");
    summary
}

#[test]
fn two_processes_with_redis_between_them_lose_nothing() {
    if is_skipped("river") || is_alone() {
        return;
    }
    let seen = pair(&Folder::new("river-redis"), "redis").ledger;
    assert_eq!(seen.received, 50 * 2 * 49, "{seen:?}");
    assert_eq!((seen.lost, seen.duplicate, seen.unexpected), (0, 0, 0), "{seen:?}");
    assert!(seen.announcements_owed > 50 * 49 / 4, "{seen:?}");
    assert_eq!((seen.announcements_lost, seen.announcements_duplicate), (0, 0), "{seen:?}");
}

/// The known truth: who is at the other process hears nothing.
#[test]
fn two_processes_with_nothing_between_them_lose_what_is_said_at_the_other() {
    if is_skipped("river") || is_alone() {
        return;
    }
    let seen = pair(&Folder::new("river-parted"), "none").ledger;
    assert_eq!(seen.received + seen.lost, 50 * 2 * 49, "{seen:?}");
    assert!(seen.lost > 1_000 && seen.received > 1_000, "people are at both: {seen:?}");
    assert!(seen.announcements_lost > 0, "{seen:?}");
}

#[test]
fn a_fallback_to_polling_is_seen_and_counted() {
    if is_skipped("river") {
        return;
    }
    let folder = Folder::new("river-polling");
    let changes = [
        ("target: river", "target: river?transports=polling"),
        ("size: 20000", "size: 8"),
        ("wait: 60s", "wait: 300ms"),
    ];
    let summary = river(&folder, "river-presence.yaml", &changes).summary();
    assert_eq!(summary.people.finished, 8);
    let errors: Vec<_> =
        summary.errors.iter().map(|e| (e.measure.as_str(), e.class.as_str(), e.count)).collect();
    assert_eq!(errors, [("upgrade", "upgrade", 8)]);
    assert!(summary.errors[0].example.contains("stayed with polling"));
}

#[test]
fn too_few_descriptors_of_the_target_are_told() {
    if is_skipped("river") {
        return;
    }
    let folder = Folder::new("river-descriptors");
    let changes = [("descriptors: 512", "descriptors: 64"), ("size: 1000", "size: 120")];
    let summary = river(&folder, "river-descriptors.yaml", &changes).summary();
    let people = &summary.people;
    assert!(people.entered > 10 && people.gave_up > 40, "{people:?}");
    assert_eq!(people.entered + people.gave_up, 120, "{people:?}");
    let told = summary.health.findings.iter().any(|finding| {
        finding.what.contains("the target had") && finding.what.contains("of 64 descriptors")
    });
    assert!(told, "{:?}", summary.health.findings);
}
