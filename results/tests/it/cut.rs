//! A run that was killed still has a report, up to its last second.

use crate::fixture;
use crate::folder::Folder;
use results::run::{EVENTS, INTERVALS, MANIFEST, PROBES, SERIES};
use results::summary::{Level, Verdict};
use results::{Manifest, Status};
use std::fs;
use std::path::Path;

/// Keeps the part of a growing file that was written by second 150.
fn cut(path: &Path, keep: impl Fn(&str) -> bool) {
    let text = fs::read_to_string(path).unwrap();
    let mut kept: String =
        text.lines().filter(|line| keep(line)).map(|l| format!("{l}\n")).collect();
    // The last line is torn.
    kept.truncate(kept.len() - 3);
    fs::write(path, kept).unwrap();
}

#[test]
fn a_killed_run_is_reported_up_to_its_last_second() {
    let folder = Folder::new("killed");
    fixture::write(folder.path()).unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = fs::read_to_string(path(MANIFEST)).unwrap();
    let manifest: Manifest = serde_json::from_str(&text).unwrap();
    let running = Manifest { status: Status::Running, seconds: 0.0, result: None, ..manifest };
    fs::write(path(MANIFEST), serde_json::to_string(&running).unwrap()).unwrap();
    let before = |cell: &str| cell.parse::<f64>().map_or(true, |s| s < 151.0);
    cut(&path(SERIES), |line| before(line.split(',').next().unwrap_or_default()));
    cut(&path(PROBES), |line| before(line.split(',').next().unwrap_or_default()));
    cut(&path(INTERVALS), |line| before(line.split(',').nth(1).unwrap_or_default()));
    cut(&path(EVENTS), |line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["at"].as_u64().is_some_and(|at| at < 150_000_000_000)
    });

    let summary = results::draw(folder.path()).unwrap().summary;
    assert_eq!((summary.cut_short_s, summary.seconds), (Some(150.6), 150.6));
    assert_eq!((summary.verdict, summary.exit_code), (Verdict::CouldNotMeasure, 3));
    assert_eq!(summary.health.level, Level::Invalid);
    assert!(summary.notes.iter().any(|note| note.contains("series.csv ends in the middle")));
    // The second batch never got its tally: its seconds and stages speak for it.
    let [first, second] = &summary.phases[..] else { panic!("{:?}", summary.phases) };
    assert_eq!((first.entered, second.asked, second.entered), (92, 100, 100));
    let stages: Vec<_> = second.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(stages, ["join"], "the beginning of the next one is the torn line");
    assert_eq!(second.end_s, 150.6);
    assert!(second.target.as_ref().is_some_and(|usage| usage.cpu_s > 5.0));
}
