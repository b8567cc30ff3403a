//! Runs that are ended from outside, kindly or not: what was written is not lost, and nothing is
//! left running.

use crate::rig::{Folder, Started, children, is_alive, read, wait_until};
use results::{Status, Verdict};
use std::path::Path;

/// Forty people who talk for longer than any test lasts.
const SCENARIO: &str = "
target: yardstick
rooms: [lobby]
crowds: {people: {size: 40, journey: [login, join, {talk: {every: 200ms, for: 10m}}, leave]}}
timeline: [{run: people at 40/s}]
thresholds: {lost: 0}
";

/// A run that has written some seconds, and the processes it has started.
fn under_way(folder: &Folder, more: &[&str], processes: usize) -> (Started, Vec<u32>) {
    let started = folder.start_run(SCENARIO, more);
    wait_until("four seconds are written", || lines(&folder.path("run/series.csv")) >= 5);
    let pids = children(started.pid);
    assert_eq!(pids.len(), processes, "the yardstick, and workers if there are any");
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    (started, pids)
}

fn lines(path: &Path) -> usize {
    read(path).lines().count()
}

/// What can be said of a run however it ended.
fn check_what_is_left(folder: &Folder, summary: &results::Summary) {
    assert_eq!(summary.verdict, Verdict::CouldNotMeasure);
    assert_eq!((summary.people.entered, summary.people.online_max), (40, 40));
    let page = read(&folder.path("run/report.html"));
    assert!(page.contains("</html>"), "the page is whole");
    assert!(read(&folder.path("run/report.md")).contains("lost"));
}

/// `kill -9` in mid-run, and the report of what is left.
fn kill(more: &[&str], processes: usize) {
    let folder = Folder::new("killed");
    let (started, pids) = under_way(&folder, more, processes);
    started.signal(libc::SIGKILL);
    let killed = started.end();
    assert_eq!(killed.code, None, "a signal ended it");
    wait_until("its processes have ended with it", || !pids.iter().any(|&pid| is_alive(pid)));
    let rows = lines(&folder.path("run/series.csv"));
    assert!(!folder.path("run/report.html").exists());
    let report = folder.throng(["report", "run", "--json"]);
    assert_eq!(report.code, Some(3), "{}{}", report.stdout, report.stderr);
    let summary = report.summary();
    assert_eq!(summary.status, Status::Running, "nobody wrote that it ended");
    let seconds = killed.load().seconds.len();
    assert_eq!(seconds, rows - 1, "every row below the head is a second");
    let end = summary.cut_short_s.unwrap();
    assert!(end >= seconds as f64 && end < seconds as f64 + 2.0, "cut short at {end}");
    assert!(summary.sends.sent as usize > 40 * 5 * (seconds - 3), "{:?}", summary.sends);
    let told = summary.health.findings.iter().any(|f| f.what.contains("cut short"));
    assert!(told, "{:?}", summary.health);
    check_what_is_left(&folder, &summary);
    let words = folder.throng(["report", "run"]);
    assert!(words.stdout.contains("cut short"), "{}", words.stdout);
}

#[test]
fn a_killed_run_is_reported_up_to_its_last_second() {
    kill(&[], 1);
}

#[test]
fn workers_end_with_the_one_who_started_them() {
    kill(&["--people-per-process", "20"], 3);
}

#[test]
fn an_interrupted_run_sends_everybody_away_and_reports() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let folder = Folder::new("interrupted");
        let (started, pids) = under_way(&folder, &[], 1);
        started.signal(signal);
        let answer = started.end();
        assert_eq!(answer.code, Some(3), "{}{}", answer.stdout, answer.stderr);
        assert!(!pids.iter().any(|&pid| is_alive(pid)), "the target was stopped");
        let summary = answer.summary();
        assert_eq!((summary.status, summary.cut_short_s), (Status::Aborted, None));
        let told = |text: &str| text.contains("interrupted by a signal");
        assert!(summary.health.findings.iter().any(|f| told(&f.what)), "{:?}", summary.health);
        let run = answer.load();
        let last = run.seconds.last().unwrap();
        assert_eq!((last.gauges.connected, last.gauges.seats), (0, 0), "everybody has left");
        // Who is sent away may miss what was acknowledged and still on its way: at most a message
        // of each to each, and mostly nothing.
        let ledger = &summary.ledger;
        assert!(ledger.owed > 5_000 && ledger.lost <= 40 * 40, "{ledger:?}");
        check_what_is_left(&folder, &summary);
    }
}

#[test]
fn the_folder_of_a_killed_run_is_removed_at_the_next_start() {
    let folder = Folder::new("left-behind");
    let (started, _) = under_way(&folder, &[], 1);
    let left = std::env::temp_dir().join(format!("throng-{}-0", started.pid));
    assert!(left.is_dir(), "{} is where the target runs", left.display());
    started.signal(libc::SIGKILL);
    started.end();
    let visit = "target: yardstick\nrooms: [lobby]\ntimeline: [{run: people at once}]\n\
                 crowds: {people: {size: 1, journey: [login, join, leave]}}\n";
    let file = folder.write("visit.yaml", visit);
    let words = ["run".as_ref(), file.as_os_str(), "--quiet".as_ref()];
    let next = folder.throng(words);
    assert_eq!(next.code, Some(0), "{}{}", next.stdout, next.stderr);
    assert!(!left.exists());
}
