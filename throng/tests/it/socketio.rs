//! Real servers of Socket.IO 2 and 4 on Node and of python-socketio, over every transport: what
//! throng counts must be what was said, and a fallback must be seen.

use crate::rig::{Answer, Folder, for_each};
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

/// Whether a server is to be left out. Where tests are run for everybody, none is.
fn is_skipped(server: &str) -> bool {
    let installed = match server {
        "node2" => "node_modules/socketio2/package.json",
        "node4" => "node_modules/socketio4/package.json",
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
                    journey: [login, {join: live}, {history: {room: live, limit: 20}}, {members: live}, disconnect]\n\
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
    assert!(told("history", "refused by us") && told("members", "socketio"), "{errors:?}");
}
