//! Reports of the made-up run, letter by letter, and what every report must keep.

use crate::fixture;
use crate::folder::Folder;
use results::{Analysis, Run, Summary};
use std::fs;
use std::path::Path;

/// Compares with a file of `golden/`; `BLESS=1` rewrites it.
pub(crate) fn golden(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, got).unwrap();
        return;
    }
    let want = fs::read_to_string(&path).unwrap_or_default();
    let line = want.lines().zip(got.lines()).position(|(want, got)| want != got);
    let at = line.unwrap_or(want.lines().count().min(got.lines().count()));
    assert!(
        want == got,
        "{name} differs from line {} on:\n  golden: {}\n  now:    {}\nif it is meant to: \
         BLESS=1 cargo test -p results --test it golden",
        at + 1,
        want.lines().nth(at).unwrap_or("(end)"),
        got.lines().nth(at).unwrap_or("(end)"),
    );
}

#[test]
fn reports_are_as_they_were() {
    let folder = Folder::new("golden");
    let analysis = fixture::write(folder.path()).unwrap();
    golden("summary.txt", &results::summary_text(&analysis.summary, Path::new("runs/fixture")));
    results::draw(folder.path()).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    golden("report.md", &read("report.md"));
    golden("target-cpu.svg", &read("charts/target-cpu.svg"));
    let run = Run::load(folder.path()).unwrap();
    golden("flame.svg", &results::profile::flame(&run.profiles[0]));
    golden("summary.json", &(serde_json::to_string_pretty(&analysis.summary).unwrap() + "\n"));
}

#[test]
fn drawing_again_changes_nothing_that_was_measured() {
    let folder = Folder::new("again");
    fixture::write(folder.path()).unwrap();
    let files = ["run.json", "plan.json", "scenario.yaml", "intervals.hlog", "series.csv"];
    let files = || files.into_iter().chain(["faults.csv", "probes.csv", "events.jsonl"]);
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let before: Vec<_> = files().map(read).collect();
    let first = results::draw(folder.path()).unwrap();
    let pages = [read("report.html"), read("report.md"), read("charts/people.svg")];
    let stale = folder.path().join("charts/stale.svg");
    fs::write(&stale, "").unwrap();
    let second = results::draw(folder.path()).unwrap();
    assert_eq!(first.summary, second.summary);
    assert_eq!(pages, [read("report.html"), read("report.md"), read("charts/people.svg")]);
    assert_eq!(before, files().map(read).collect::<Vec<_>>());
    assert!(!stale.exists());
}

/// What the run wrote into its manifest is what the directory still says.
#[test]
fn the_manifest_keeps_the_result() {
    let folder = Folder::new("manifest");
    let analysis = fixture::write(folder.path()).unwrap();
    let run = Run::load(folder.path()).unwrap();
    let again = Analysis::of(&run).summary;
    let close = |a: &Summary, b: &Summary| {
        serde_json::to_value(a).unwrap() == serde_json::to_value(b).unwrap()
    };
    assert!(run.manifest.result.as_ref().is_some_and(|kept| close(kept, &again)));
    assert!(close(&analysis.summary, &again));
}

#[test]
fn nothing_foreign_means_anything_in_a_report() {
    let folder = Folder::new("foreign");
    let analysis = fixture::write(folder.path()).unwrap();
    results::draw(folder.path()).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let page = read("report.html");
    assert!(page.contains("alert(1)") && !page.contains("<script>alert(1)"));
    assert_eq!(page.matches("<script").count(), 3, "data, uPlot, ours");
    for name in ["report.html", "report.md", "charts/target-cpu.svg"] {
        assert!(!read(name).contains('\u{1b}'), "{name}");
    }
    let markdown = read("report.md");
    assert!(!markdown.contains("<script") && !markdown.contains("|*bold*|"));
    let text = results::summary_text(&analysis.summary, folder.path());
    assert!(!text.contains('\u{1b}'));
    let report = text.lines().last().unwrap_or_default();
    for line in text.lines().filter(|&line| line != report) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_page_needs_no_network() {
    let folder = Folder::new("offline");
    fixture::write(folder.path()).unwrap();
    results::draw(folder.path()).unwrap();
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    for remote in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(remote), "{remote}");
    }
    assert!(page.len() < 600_000, "{} bytes", page.len());
}

/// A field that nobody documented is a field that nobody can use.
#[test]
fn every_field_of_the_summary_is_documented() {
    let folder = Folder::new("documented");
    let analysis = fixture::write(folder.path()).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/run-format.md");
    let document = fs::read_to_string(path).unwrap();
    let mut value = serde_json::to_value(&analysis.summary).unwrap();
    let finding = results::summary::Finding::default();
    value["health"]["findings"] = serde_json::json!([finding]);
    let manifest = fs::read_to_string(folder.path().join("run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    for value in [&value, &manifest] {
        check_documented(&document, "", value);
    }
}

/// Keys whose own keys are data.
const MAPS: [&str; 3] = ["requests", "options", "limits"];

fn check_documented(document: &str, path: &str, value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                assert!(document.contains(&format!("`{key}`")), "{path}.{key} is not documented");
                if !MAPS.contains(&key.as_str()) {
                    check_documented(document, &format!("{path}.{key}"), value);
                }
            }
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|item| check_documented(document, path, item));
        }
        _ => {}
    }
}

/// An hour with every measure in every second is still a page that opens at once.
#[test]
fn an_hour_is_a_small_page() {
    use model::{Interval, Measure, ProbeSample, ProcessSample, Tick};
    /// Largest page, bytes.
    const PAGE_BYTES_MAX: usize = 2_000_000;
    let folder = Folder::new("hour");
    let (manifest, plan) = (fixture::manifest(), fixture::plan());
    let mut writer = results::RunWriter::create(folder.path(), manifest, "", &plan).unwrap();
    let mut interval = Interval::default();
    for (i, &measure) in Measure::ALL.iter().enumerate() {
        let stats = interval.measure(measure);
        stats.done = 3;
        for ns in [1_234_567, 23_456_789, 345_678_901] {
            stats.latency.record(ns * (i as u64 + 1));
            stats.service.record(ns);
        }
    }
    for second in 0..3_600u64 {
        // Histograms are the slow part of an unoptimized build: every twentieth second will do.
        let quiet = Interval::new(second as u32);
        interval.second = second as u32;
        interval.counters.deliveries = second * 7_919 % 100_003;
        writer.interval(if second % 20 == 0 { &interval } else { &quiet }).unwrap();
        for fifth in 0..5 {
            let process = ProcessSample {
                pid: 1,
                cpu_ns: second * 1_000_000_000 + fifth * (second * 7_919 % 200_000_000),
                rss_bytes: 50_000_000 + second * 12_347,
                ..ProcessSample::default()
            };
            let at = Tick::from_millis(second * 1_000 + fifth * 200);
            let (target, generator) = (vec![process.clone()], vec![process]);
            writer.probe(&ProbeSample { at, target, generator, ..Default::default() }).unwrap();
        }
    }
    drop(writer);
    results::draw(folder.path()).unwrap();
    let page = fs::metadata(folder.path().join("report.html")).unwrap().len() as usize;
    assert!(page < PAGE_BYTES_MAX, "{page} bytes");
}
