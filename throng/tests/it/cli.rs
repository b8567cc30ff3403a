//! What a user types and what comes back: exit codes, words, files.

use crate::rig::{Answer, Folder, children, is_alive, listener, read, wait_until, yardstick};
use results::{Status, Verdict};
use sha2::{Digest, Sha256};
use socket2::{Domain, Socket, Type};
use std::net::SocketAddr;
use std::path::Path;

/// Five people come and go. Nobody waits and nobody talks, so no timer can fire late: whatever
/// else the machine does, the run is healthy.
const VISIT: &str = "
target: yardstick
rooms: [lobby]
crowds: {people: {size: 5, journey: [login, join, leave, disconnect]}}
timeline: [{run: people at once}]
thresholds: {errors: 0, lost: 0}
";

/// People who stay for longer than any test lasts.
const STAY: &str = "
target: yardstick
rooms: [lobby]
crowds: {people: {size: 3, journey: [login, join, {wait: 10m}, leave]}}
timeline: [{run: people at once}]
";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn thresholds_that_are_kept_exit_with_0() {
    let folder = Folder::new("kept");
    let answer = folder.run_fit(VISIT, &[]);
    assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    let summary = answer.summary();
    assert_eq!((summary.status, summary.verdict), (Status::Finished, Verdict::Kept));
    assert_eq!((summary.format, summary.exit_code, summary.seed), (1, 0, 42));
    let people = &summary.people;
    assert_eq!((people.asked, people.due, people.arrived), (5, 5, 5));
    assert_eq!((people.entered, people.finished, people.gave_up), (5, 5, 0));
    assert_eq!(summary.target, "yardstick");
    assert_eq!(summary.target_version, env!("CARGO_PKG_VERSION"));
    let asked = |name: &str| summary.measures.iter().find(|m| m.name == name).map(|m| m.done);
    assert_eq!([asked("connect"), asked("login"), asked("join"), asked("leave")], [Some(5); 4]);
    let run = folder.path("run");
    for file in [
        "run.json",
        "scenario.yaml",
        "plan.json",
        "intervals.hlog",
        "series.csv",
        "faults.csv",
        "probes.csv",
        "events.jsonl",
        "report.html",
        "report.md",
        "charts",
    ] {
        assert!(run.join(file).exists(), "{file} is missing");
    }
    assert_eq!(read(&run.join("scenario.yaml")), VISIT);
}

#[test]
fn the_summary_has_the_documented_fields() {
    let folder = Folder::new("fields");
    let answer = folder.run_fit(VISIT, &[]);
    let found: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let documented = read(&root().join("docs/run-format.md"));
    for (name, value) in found.as_object().unwrap() {
        // The page may be younger than the field only for as long as the page does not exist.
        let is_told = documented.is_empty() || documented.contains(&format!("`{name}`"));
        assert!(is_told, "docs/run-format.md does not tell about `{name}`");
        let may_lack = ["cut_short_s", "target_usage", "generator_usage", "memory_per_person"]
            .contains(&name.as_str());
        assert!(!value.is_null() || may_lack, "`{name}` is null");
    }
    let kept: serde_json::Value =
        serde_json::from_str(&read(&folder.path("run/run.json"))).unwrap();
    assert_eq!(kept["result"], found, "run.json keeps what --json prints");
}

#[test]
fn a_broken_threshold_exits_with_1() {
    let answer = Folder::new("broken").run_fit(VISIT, &["--set", "thresholds.deliveries=>= 1000"]);
    assert_eq!(answer.code, Some(1), "{}{}", answer.stdout, answer.stderr);
    let summary = answer.summary();
    assert_eq!((summary.verdict, summary.exit_code), (Verdict::Broken, 1));
    let broken: Vec<_> = summary.thresholds.iter().filter(|t| t.value == Some(0.0)).collect();
    assert!(broken.iter().any(|t| t.bound == 1000.0), "{:?}", summary.thresholds);
}

/// Wrong usage: the arguments, and what the complaint must contain.
#[test]
fn wrong_usage_exits_with_2_and_says_what_to_do() {
    let folder = Folder::new("usage");
    let good = folder.write("good.yaml", VISIT).display().to_string();
    let bad = VISIT.replace("size", "sise").replace("join,", "jion,");
    let bad = folder.write("bad.yaml", &bad).display().to_string();
    let public = VISIT.replace("yardstick", "ws://192.0.2.7:9/ws\nprotocol: yardstick");
    let public = folder.write("public.yaml", &public).display().to_string();
    let nameless = folder.write("url.yaml", &VISIT.replace("yardstick", "ws://127.0.0.1:9/"));
    let nameless = nameless.display().to_string();
    let wss = VISIT.replace("yardstick", "http://127.0.0.1:9/\nprotocol: yardstick");
    let wss = folder.write("scheme.yaml", &wss).display().to_string();
    let rows: &[(&[&str], &[&str])] = &[
        (&["run"], &["<SCENARIO>"]),
        (&["run", &good, "--sed", "7"], &["--sed", "--seed"]),
        (&["runn", &good], &["runn", "'run'"]),
        (&["run", "no-such.yaml"], &["cannot read", "no-such.yaml"]),
        (&["run", &bad], &["bad.yaml:4:", "did you mean `size`?", "did you mean `join`?"]),
        (&["run", &good, "--set", "target=yardstik"], &["no target `yardstik`", "yardstick"]),
        (&["run", &good, "--set", "crowds.people.sise=3"], &["did you mean `size`?"]),
        (&["run", &good, "--set", "target=yardstick?codec=xml"], &["codec", "proto", "json"]),
        (&["run", &good, "--set", "target=yardstick?colour=red"], &["colour", "codec"]),
        (&["run", &good, "--set", "nonsense"], &["PATH=VALUE"]),
        (&["run", &good, "--scale=-1"], &["scale"]),
        (&["run", &nameless], &["add a line `protocol: …`", "throng protocols"]),
        (&["run", &wss], &["ws://"]),
        (&["run", &public], &["--i-am-allowed-to-load 192.0.2.7", "192.0.2.7", "attack"]),
        (&["report", "no-such-run"], &["no-such-run"]),
        (&["report"], &["<RUNS>"]),
        (&["plan", &bad], &["did you mean `size`?"]),
        (&["serve", "--listen", "0.0.0.0:0"], &["--expose"]),
        (&["serve", "--fault", "dorp=1"], &["dorp", "drop"]),
    ];
    for (arguments, words) in rows {
        let Answer { code, stdout, stderr, .. } = folder.throng(*arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {stdout}{stderr}");
        assert_eq!(stdout, "", "{arguments:?}: complaints belong on stderr");
        for word in *words {
            assert!(stderr.contains(word), "{arguments:?} does not say {word}:\n{stderr}");
        }
    }
    assert!(!folder.path("runs").exists(), "nothing was run");
}

#[test]
fn a_target_that_refuses_exits_with_3() {
    // Bound but not listening: the port is ours, and whoever connects is refused.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let port = socket.local_addr().unwrap().as_socket().unwrap().port();
    let url = format!("ws://127.0.0.1:{port}/ws\nprotocol: yardstick");
    let folder = Folder::new("refused");
    let answer = folder.run(&VISIT.replace("yardstick", &url), &[]);
    assert_eq!(answer.code, Some(3), "{}{}", answer.stdout, answer.stderr);
    let errors: Vec<_> = answer.summary().errors;
    let told: Vec<_> = errors.iter().map(|e| (&*e.measure, &*e.class, e.count)).collect();
    assert_eq!(told, [("connect", "refused", 5), ("login", "refused", 5)]);
    assert!(errors[0].example.contains("Connection refused"), "{errors:?}");
}

#[test]
fn a_target_that_dies_exits_with_3() {
    let folder = Folder::new("dies");
    let started = folder.start_run(STAY, &[]);
    wait_until("three people are in", || {
        read(&folder.path("run/events.jsonl")).contains(r#""entered":3"#)
    });
    let target = children(started.pid);
    assert_eq!(target.len(), 1, "the yardstick is the only child");
    // SAFETY: a signal to the process that our own child has just started and still watches.
    unsafe { libc::kill(target[0] as libc::pid_t, libc::SIGKILL) };
    let answer = started.end();
    assert_eq!(answer.code, Some(3), "{}{}", answer.stdout, answer.stderr);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Aborted);
    let told = |text: &String| text.contains("the target ended by itself");
    assert!(summary.notes.iter().any(told), "{:?}", summary.notes);
    assert!(summary.health.findings.iter().any(|f| told(&f.what)), "{:?}", summary.health);
    assert!(!is_alive(target[0]));
}

#[test]
fn set_scale_and_seed_change_the_plan_and_are_kept() {
    let folder = Folder::new("changes");
    let file = folder.write("s.yaml", VISIT).display().to_string();
    let changes = ["--set", "crowds.people.size=40", "--scale", "0.25", "--seed", "7"];
    let plan = folder.throng([&["plan", &file, "--json"][..], &changes].concat());
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    let plan: serde_json::Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(plan["seed"], 7);
    let answer = folder.run_fit(VISIT, &changes);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let summary = answer.summary();
    assert_eq!((summary.people.asked, summary.people.finished), (10, 10));
    assert_eq!((summary.seed, summary.scale), (7, 0.25));
    let kept: serde_json::Value =
        serde_json::from_str(&read(&folder.path("run/plan.json"))).unwrap();
    let kept = &kept["phases"];
    assert_eq!(*kept, plan["phases"], "the plan that was printed is the one that was run");
    let told = folder.throng([&["plan", &file][..], &changes].concat());
    assert!(told.stdout.contains("10 people"), "{}", told.stdout);
}

#[test]
fn a_run_is_never_overwritten() {
    let folder = Folder::new("twice");
    assert_eq!(folder.run_fit(VISIT, &[]).code, Some(0));
    let before = read(&folder.path("run/run.json"));
    let again = folder.run(VISIT, &[]);
    assert!(again.code.is_some_and(|code| code > 1), "{:?}", again.code);
    assert!(again.stderr.contains("run"), "{}", again.stderr);
    assert_eq!(read(&folder.path("run/run.json")), before);
}

#[test]
fn a_report_drawn_again_changes_nothing_that_was_measured() {
    let folder = Folder::new("again");
    let first = folder.run_fit(VISIT, &[]);
    let measured = ["run.json", "plan.json", "intervals.hlog", "series.csv", "events.jsonl"];
    let hash = |name: &&str| Sha256::digest(std::fs::read(folder.path("run").join(name)).unwrap());
    let before: Vec<_> = measured.iter().map(hash).collect();
    let page = read(&folder.path("run/report.html"));
    for drawn in ["report.html", "report.md"] {
        std::fs::remove_file(folder.path("run").join(drawn)).unwrap();
    }
    let again = folder.throng(["report", "run", "--json"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(again.stdout, first.stdout, "the same summary");
    assert_eq!(read(&folder.path("run/report.html")), page, "the same page");
    assert!(folder.path("run/report.md").exists());
    assert_eq!(measured.iter().map(hash).collect::<Vec<_>>(), before);
    let table = folder.throng(["report", "run"]);
    assert!(table.stdout.contains("join") && table.stdout.contains("login"), "{}", table.stdout);
}

#[test]
fn lists_name_everything_there_is() {
    let folder = Folder::new("lists");
    let targets = root().join("targets").display().to_string();
    let rows: &[(&[&str], &[&str])] = &[
        (&["targets", "--targets", &targets], &["yardstick", "prosody", "?codec=proto", "?gc="]),
        (&["targets"], &["yardstick"]),
        (&["protocols"], &["yardstick", "xmpp", "avatars", "verbs: login, join", "option muc"]),
        (&["--version"], &[env!("CARGO_PKG_VERSION")]),
        (&["--help"], &["quickstart", "Exit code", "run", "report"]),
    ];
    for (arguments, words) in rows {
        let answer = folder.throng(*arguments);
        assert_eq!(answer.code, Some(0), "{arguments:?}: {}", answer.stderr);
        for word in *words {
            assert!(answer.stdout.contains(word), "{arguments:?} lacks {word}:\n{}", answer.stdout);
        }
    }
    let schema = folder.throng(["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert!(schema["properties"]["crowds"].is_object());
}

#[test]
fn check_says_what_is_missing() {
    let folder = Folder::new("check");
    let file = folder.write("s.yaml", VISIT).display().to_string();
    let fine = folder.throng(["check", &file]);
    assert_eq!(fine.code, Some(0), "{}", fine.stdout);
    assert!(fine.stdout.contains("descriptors") && !fine.stdout.contains("NOT"), "{}", fine.stdout);
    // Nobody answers on a port that is only bound.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let port = socket.local_addr().unwrap().as_socket().unwrap().port();
    let url = format!("target=ws://127.0.0.1:{port}/");
    let deaf = folder.throng(["check", &file, "--set", &url, "--set", "protocol=yardstick"]);
    assert_eq!(deaf.code, Some(3), "{}", deaf.stdout);
    assert!(deaf.stdout.contains("is the server running?"), "{}", deaf.stdout);
    let huge = folder.throng(["check", &file, "--set", "crowds.people.size=16000000"]);
    assert_eq!(huge.code, Some(3), "{}", huge.stdout);
    assert!(huge.stdout.contains("NOT  memory") && huge.stdout.contains("--scale"));
}

#[test]
fn check_warns_of_a_target_that_cannot_hold_everybody() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    let folder = Folder::new("target-descriptors");
    let file = folder.write("s.yaml", VISIT).display().to_string();
    let size = |people: u64| format!("crowds.people.size={people}");
    let enough = folder.throng(["check", &file, "--set", &size(limit.rlim_max - 100)]);
    let line = |answer: &Answer| {
        let mut lines = answer.stdout.lines().map(str::to_owned);
        lines.find(|line| line.contains("descriptors of the target")).unwrap()
    };
    assert!(line(&enough).starts_with("ok "), "{}", enough.stdout);
    let large = folder.throng(["check", &file, "--set", &size(limit.rlim_max - 99)]);
    assert!(line(&large).starts_with("RISK "), "{}", large.stdout);
    assert!(large.stdout.contains("--scale 0.9") && large.stdout.contains("ulimit -Hn"));
    assert_eq!(large.code, enough.code, "it is only a warning: {}", large.stdout);
    let two = ["--set", "target=yardstick?processes=2"];
    let both =
        folder.throng(["check", &file, "--set", &size(limit.rlim_max)].into_iter().chain(two));
    assert!(line(&both).starts_with("ok "), "{}", both.stdout);
}

#[test]
fn a_target_that_is_not_installed_says_how_to_get_it() {
    let folder = Folder::new("missing");
    folder.write(
        "targets/wishful/target.yaml",
        "about: a server nobody has\nprotocol: yardstick\n\
         needs: [{command: no-such-chat-server, install: apt-get install no-such-chat-server}]\n\
         ports: [p]\ncommand: [no-such-chat-server]\nready: {port: p, within: 1s}\n\
         url: \"ws://127.0.0.1:{port.p}/\"\n",
    );
    for command in ["run", "check"] {
        let file = folder.write("s.yaml", &VISIT.replace("yardstick", "wishful"));
        let answer = folder.throng([command.into(), file.into_os_string()]);
        assert_eq!(answer.code, Some(3), "{command}: {}{}", answer.stdout, answer.stderr);
        let words = format!("{}{}", answer.stdout, answer.stderr);
        assert!(words.contains("`no-such-chat-server` is not installed"), "{words}");
        assert!(words.contains("    apt-get install no-such-chat-server"), "{words}");
    }
    assert!(!folder.path("runs").exists(), "nothing was run");
}

#[test]
fn a_target_is_populated_before_anybody_comes() {
    let folder = Folder::new("populated");
    let target = |populate: &str| {
        let text = format!(
            "about: a yardstick\nprotocol: yardstick\nports: [chat]\nenv: {{WHO: ann}}\n\
             command: [\"{{throng}}\", serve, --listen, \"127.0.0.1:{{port.chat}}\"]\n\
             ready: {{port: chat, within: 10s}}\n\
             populate: {{command: [sh, -c, \"{populate}\"], within: 10s}}\n\
             knobs: {{way: {{default: other, values: {{other: \"ws://127.0.0.1:1/\", \
             own: \"ws://127.0.0.1:{{port.chat}}/ws\"}}}}}}\n\
             url: \"{{knob.way}}\"\n"
        );
        folder.write("targets/own/target.yaml", &text);
    };
    let scenario = VISIT.replace("yardstick", "own?way=own");
    target("echo $WHO, out of luck; exit 3");
    let failed = folder.run(&scenario, &[]);
    assert_eq!(failed.code, Some(3), "{}", failed.stderr);
    for words in ["could not be populated (exit status: 3)", "ann, out of luck"] {
        assert!(failed.stderr.contains(words), "{}", failed.stderr);
    }
    assert!(!folder.path("run").exists());
    let file = folder.path("made");
    target(&format!("echo $WHO > {}", file.display()));
    let answer = folder.run_fit(&scenario, &[]);
    assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    assert_eq!(read(&file), "ann\n");
}

#[test]
fn a_port_that_is_taken_is_said() {
    let taken = listener();
    let address = taken.local_addr().unwrap().to_string();
    let answer = Folder::new("taken").throng(["serve", "--listen", &address]);
    assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    assert!(answer.stderr.contains(&address), "{}", answer.stderr);
}

#[test]
fn a_running_server_is_named_by_its_url() {
    let server = yardstick("");
    let url = format!("ws://{}/ws\nprotocol: yardstick", server.address());
    let answer = Folder::new("url").run_fit(&VISIT.replace("yardstick", &url), &[]);
    assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    assert_eq!(answer.summary().people.finished, 5);
    let counted = server.stop().unwrap();
    assert!(counted.faults.is_empty());
}
