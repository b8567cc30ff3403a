//! Profiles of a run: real ones where `perf` is installed, and profilers that are missing or fail.

use crate::rig::{Folder, listener, read};
use model::What;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const CROWD: &str = "\
target: yardstick
rooms: [lobby]
crowds:
  people: {size: 100, journey: [login, {join: lobby}, {talk: {every: 100ms, for: 3s}}, leave]}
timeline:
  - run: people at once
  - rest: 2s
    profile: ";

/// Whether `perf` can take samples here; where tests are run for everybody, it must be installed
/// but may be forbidden.
fn can_sample() -> bool {
    let mut trial = Command::new("perf");
    trial.args(["record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "--", "true"]);
    trial.stdout(Stdio::null()).stderr(Stdio::null());
    let can = trial.status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: perf is not installed, or may not take samples here");
    }
    can
}

#[test]
fn where_the_time_of_the_yardstick_goes() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new("profile");
    let scenario = format!("{CROWD}{{perf: {{hz: 999}}}}\n");
    let answer = folder.run_fit(&scenario, &[]);
    let summary = answer.summary();
    let run = answer.load();
    let said: Vec<&String> = summary.notes.iter().collect();
    assert_eq!(run.profiles.len(), 1, "{said:?}");
    assert_eq!(run.profiles[0].file, "profiles/rest.perf.folded");
    let stacks = &run.profiles[0].stacks;
    let sends = |(stack, _): &&(String, u64)| stack.contains("EventLoop") && stack.contains("send");
    assert!(stacks.iter().any(|stack| sends(&stack)), "{stacks:?}");
    let row = &summary.profiles[0];
    assert!(row.seen > 10 && !row.hottest.is_empty(), "{row:?}");
    // Neither the profiler nor the generator is the target.
    let processes =
        run.probes.iter().flat_map(|sample| sample.target.iter().chain(&sample.generator));
    assert!(processes.into_iter().all(|process| process.name != "perf"));
    let page = read(&folder.path("run/report.html"));
    assert!(page.contains("<svg class=\"flame\"") && page.contains("EventLoop::run"));
    assert!(read(&folder.path("run/report.md")).contains("## Where the time went"));
}

/// Answers one request with these bytes, after whatever was asked.
fn answer_once(bytes: Vec<u8>) -> u16 {
    let listener = listener();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let asked: Vec<String> = BufReader::new(&stream)
            .lines()
            .map(Result::unwrap)
            .take_while(|line| !line.is_empty())
            .collect();
        assert_eq!(asked[0], "GET /debug/pprof/profile?seconds=1 HTTP/1.0");
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n").unwrap();
        stream.write_all(&bytes).unwrap();
    });
    port
}

fn pprof(port: u16) -> String {
    let url = format!("http://127.0.0.1:{port}/debug/pprof/profile");
    format!("{CROWD}{{pprof: {{url: \"{url}\", for: 1s}}}}\n")
}

#[test]
fn a_pprof_url_is_asked() {
    // A profile.proto: type `samples`, a sample of 7 at location 1, whose function is `hot`.
    let strings = [&b"\x32\x00"[..], b"\x32\x07samples", b"\x32\x03hot"].concat();
    let sample = b"\x12\x06\x0a\x01\x01\x12\x01\x07";
    let tables = b"\x22\x06\x08\x01\x22\x02\x08\x01\x2a\x04\x08\x01\x10\x02";
    let bytes = [b"\x0a\x02\x08\x01", &sample[..], &tables[..], &strings].concat();
    let folder = Folder::new("pprof");
    let answer = folder.run(&pprof(answer_once(bytes)), &[]);
    let run = answer.load();
    assert_eq!(run.profiles.len(), 1, "{}\n{}", answer.stdout, answer.stderr);
    assert_eq!(run.profiles[0].stacks, [("hot".to_owned(), 7)]);
    assert_eq!(run.profiles[0].name, "pprof-profile");
}

#[test]
fn a_profile_that_fails_is_a_remark() {
    let folder = Folder::new("unprofiled");
    let answer = folder.run_fit(&pprof(answer_once(b"<html>not found</html>".to_vec())), &[]);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let run = answer.load();
    let remark = run.events.iter().find_map(|record| match &record.what {
        What::Generator { detail } if detail.contains("pprof-profile") => Some(detail),
        _ => None,
    });
    assert!(remark.is_some_and(|words| words.contains("no profile")), "{remark:?}");
    assert!(run.profiles.is_empty() && !folder.path("run/profiles").exists());
}

#[test]
fn what_is_not_installed_is_told_before_the_run() {
    let folder = Folder::new("uninstalled");
    for (profiler, advice) in [("perf", "install linux-perf"), ("py-spy", "pip install py-spy")] {
        let scenario = folder.write("s.yaml", &format!("{CROWD}{profiler}\n"));
        for command in ["check", "run"] {
            let output = Command::new(env!("CARGO_BIN_EXE_throng"))
                .arg(command)
                .arg(&scenario)
                .current_dir(folder.path("."))
                .env("PATH", folder.path("nowhere"))
                .output()
                .unwrap();
            let words = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
            assert_eq!(output.status.code(), Some(3), "{command} {profiler}: {words:?}");
            assert!(words.concat().contains(advice), "{command} {profiler}: {words:?}");
        }
    }
    assert!(!folder.path("runs").exists(), "nothing was run");
}

#[test]
fn what_cannot_be_profiled_is_told_before_the_run() {
    let folder = Folder::new("unprofilable");
    let elsewhere =
        CROWD.replace("yardstick", "{url: \"ws://127.0.0.1:1/ws\"}\nprotocol: yardstick");
    let url = "{pprof: \"http://8.8.8.8/debug/pprof/profile\"}";
    let rows = [
        (format!("{elsewhere}{{pprof: \"http://127.0.0.1:1/\"}}\n"), "refused"),
        (format!("{CROWD}{url}\n"), "--i-am-allowed-to-load 8.8.8.8"),
    ];
    for (scenario, words) in rows {
        let answer = folder.run(&scenario, &[]);
        assert_eq!(answer.code, Some(3), "{}", answer.stderr);
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
    }
}
