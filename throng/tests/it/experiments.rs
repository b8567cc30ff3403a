//! Experiments end to end, on runs of a second: that they make the right trials, go on where they
//! were, and say so when a target dies.

use crate::rig::{Answer, Folder};
use results::compare::{Comparison, RowVerdict, SideBySide, Verdict};
use results::experiment::told;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const SCENARIO: &str = "about: A few people talk for a second
target: yardstick
rooms: [lobby]
crowds:
  people:
    size: 6
    features: [history, members]
    journey:
      - login
      - join
      - gate: all are in
      - talk: {every: 50ms, times: 10}
      - leave
timeline: [{run: people at once}]
";

/// Starts a command on the scenario, into the folder `out`.
fn experiment(folder: &Folder, words: &[&str]) -> Answer {
    let scenario = folder.write("scenario.yaml", SCENARIO);
    let mut all = vec![words[0].to_owned(), scenario.to_string_lossy().into_owned()];
    all.extend(words[1..].iter().map(|&word| word.to_owned()));
    all.extend(["--quiet", "--json", "--out", "out"].map(str::to_owned));
    folder.throng(all)
}

fn trials(folder: &Folder) -> Vec<String> {
    let told = told(&folder.path("out")).unwrap().unwrap();
    told.trials.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_comparison_interleaves_its_runs_and_goes_on_where_it_was() {
    let folder = Folder::new("compare");
    let words = ["compare", "--base", "?codec=json", "--candidate", "?codec=proto", "--pairs", "3"];
    let words = [&words[..], &["--junit", "junit.xml"]].concat();
    let answer = experiment(&folder, &words);
    let comparison: Comparison = serde_json::from_str(&answer.stdout).unwrap();
    let row = |name: &str| comparison.rows.iter().find(|row| row.name == name).unwrap();
    let bytes = row("bytes received per delivery");
    assert!(bytes.difference.unwrap() < -0.2, "protobuf is smaller than JSON: {bytes:?}");
    assert_eq!(comparison.base.load.sent, comparison.candidate.load.sent);
    let made = trials(&folder);
    let order: Vec<&str> = made.iter().take(6).map(String::as_str).collect();
    assert_eq!(order[..4], ["001-base", "002-candidate", "003-candidate", "004-base"]);
    assert!(fs::read_to_string(folder.path("junit.xml")).unwrap().contains("<testsuite"));
    assert!(folder.path("out/report.html").exists() && folder.path("out/report.md").exists());

    // Its last trial is cut short and the one before untouched.
    let (kept, cut) = (made[4].clone(), made[5].clone());
    let manifest = |name: &str| folder.path(&format!("out/trials/{name}/run.json"));
    let before = fs::read(manifest(&kept)).unwrap();
    let text = fs::read_to_string(manifest(&cut)).unwrap();
    fs::write(manifest(&cut), text.replacen("\"finished\"", "\"running\"", 1)).unwrap();
    let again = experiment(&folder, &words);
    assert_eq!(again.code, answer.code, "{}", again.stderr);
    assert_eq!(trials(&folder)[..6], made[..6]);
    assert_eq!(fs::read(manifest(&kept)).unwrap(), before);
    assert!(fs::read_to_string(manifest(&cut)).unwrap().contains("\"finished\""));

    let other = experiment(&folder, &["compare", "--aa", "--pairs", "3"]);
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("another experiment is in this folder"), "{}", other.stderr);

    let made = trials(&folder);
    let again: Comparison = serde_json::from_str(&again.stdout).unwrap();
    let dirs = |side: &str| -> String {
        let of_side = made.iter().filter(|name| name.ends_with(side));
        of_side.map(|name| format!("out/trials/{name}")).collect::<Vec<_>>().join(",")
    };
    let stored = folder.throng(["compare", &dirs("-base"), &dirs("-candidate"), "--json"]);
    let stored: Comparison = serde_json::from_str(&stored.stdout).unwrap();
    assert_eq!(stored.rows, again.rows);
}

#[test]
fn a_candidate_that_dies_has_regressed_and_its_last_words_are_told() {
    let folder = Folder::new("crash");
    let program = folder.write(
        "dies",
        &format!(
            "#!/bin/sh\nif [ \"$1\" = serve ]; then echo 'out of luck' >&2; \
             (sleep 2; kill -9 $$) & fi\nexec '{throng}' \"$@\"\n",
            throng = env!("CARGO_BIN_EXE_throng")
        ),
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let candidate = format!("yardstick@{}", program.display());
    let longer = "crowds.people.journey.3.talk.times=100";
    let words = ["compare", "--candidate", &candidate, "--pairs", "3", "--set", longer];
    let answer = experiment(&folder, &words);
    assert_eq!(answer.code, Some(1), "{}", answer.stderr);
    let comparison: Comparison = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(comparison.verdict, Verdict::Regressed);
    assert_eq!((comparison.base.crashes.len(), comparison.candidate.crashes.len()), (0, 3));
    let crash = &comparison.candidate.crashes[0];
    assert!(
        crash.contains("the target ended by itself") && crash.contains("out of luck"),
        "{crash}"
    );
}

#[test]
fn an_ablation_tries_everything_each_and_nothing() {
    let folder = Folder::new("ablate");
    let words = ["ablate", "--features", "history,presence=off", "--rounds", "2"];
    let answer = experiment(&folder, &words);
    let ablation: results::ablate::Ablation = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(ablation.features, ["history", "presence"]);
    let made = trials(&folder);
    let labels: Vec<&str> = made.iter().map(|name| &name[4..]).collect();
    let round = ["everything", "without-history", "without-presence", "nothing"];
    assert_eq!(labels[..4], round);
    assert_eq!(labels[4], "nothing", "the second round goes backwards");
    let plan = |name: &str| {
        let path: PathBuf = folder.path(&format!("out/trials/{name}/plan.json"));
        let text = fs::read_to_string(path).unwrap();
        serde_json::from_str::<model::Plan>(&text).unwrap()
    };
    let (full, bare) = (plan(&made[0]), plan(&made[3]));
    assert_eq!(full.crowds[0].features, ["history", "members"]);
    assert_eq!(bare.crowds[0].features, ["members"]);
    assert_eq!(bare.target.options["presence"], "off");
    assert!(folder.path("out/charts/costs.svg").exists());
    let wrong = folder.throng(["ablate", "scenario.yaml", "--features", "histry"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("used are: history, members"), "{}", wrong.stderr);
}

/// How many people there are is itself the criterion, so the capacity is known exactly.
#[test]
fn a_capacity_is_found_and_held() {
    let folder = Folder::new("capacity");
    let text = "target: yardstick
rooms: [lobby]
crowds: {people: {size: 10, journey: [login, join, {repeat: forever, every: 100ms, do: say}]}}
timeline: [{hold: people for 300ms, by: once}]
thresholds: {arrivals: at most 17, lost: 0}
";
    let scenario = folder.write("scenario.yaml", text);
    let scenario = scenario.to_string_lossy();
    let words = ["capacity", &scenario, "--people", "5..60", "--quiet", "--json", "--out", "out"];
    let answer = folder.throng(words);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let found: results::capacity::Capacity = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((found.people, found.failed), (Some(17), Some(18)), "{found:?}");
    assert!(found.held >= 2);
    let page = fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(page.contains("17 people") && page.contains("<svg"));

    let words = ["compare", &scenario, "--candidate", "?codec=json", "--pairs", "3"];
    let more = ["--capacity", "14..20", "--quiet", "--json", "--out", "both"];
    let answer = folder.throng([&words[..], &more[..]].concat());
    let both: Comparison = serde_json::from_str(&answer.stdout).unwrap();
    let row = &both.rows[0];
    assert_eq!((row.name.as_str(), row.verdict), ("people it holds", RowVerdict::NoDifference));
    assert_eq!((row.base_mean, row.candidate_mean), (17.0, 17.0), "{}", answer.stderr);
    assert!(folder.path("both/capacity-candidate/report.html").exists());

    let bare = folder.write("bare.yaml", &text.replace("thresholds", "x-thresholds"));
    let bare = folder.throng(["capacity", &bare.to_string_lossy(), "--people", "5..60"]);
    assert_eq!(bare.code, Some(2));
    assert!(bare.stderr.contains("no `thresholds`"), "{}", bare.stderr);
}

/// Everybody hears everybody: the law is known.
#[test]
fn a_sweep_finds_the_law() {
    let folder = Folder::new("sweep");
    let words = ["sweep", "--vary", "people=4,8,12,16,20,24", "--rounds", "2"];
    let answer = experiment(&folder, &words);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let told: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    let deliveries = &told["costs"][0];
    assert_eq!(deliveries["cost"], "deliveries");
    let exponent = deliveries["exponents"][0]["value"].as_f64().unwrap();
    assert!((1.8..2.2).contains(&exponent), "{deliveries}");
    let rows = deliveries["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    let text = fs::read_to_string(folder.path("out/report.md")).unwrap();
    assert!(text.contains("![deliveries by people](charts/sweep-deliveries.svg)"), "{text}");
}

/// Knobs of a known effect beside each other, and one side whose load is another.
#[test]
fn several_candidates_are_laid_side_by_side() {
    let folder = Folder::new("beside");
    let words = ["compare", "--base", "?codec=proto", "--candidate", "?codec=json", "--candidate"];
    let words = [&words[..], &["?codec=proto&presence=off", "--pairs", "3"]].concat();
    let answer = experiment(&folder, &words);
    let told: SideBySide = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(trials(&folder)[..3], ["001-base", "002-candidate-1", "003-candidate-2"]);
    let names: Vec<&str> = told.sides.iter().map(|side| side.name.as_str()).collect();
    assert_eq!(names, ["?codec=proto", "?codec=json", "?codec=proto&presence=off"]);
    let bytes = told.rows.iter().find(|row| row.name == "bytes received per delivery").unwrap();
    let ratio = bytes.cells[1].ratio.expect("equal loads");
    assert!(ratio > 1.2, "JSON is larger than protobuf: {bytes:?}");
    assert!(told.sides.iter().all(|side| side.load.owed == told.sides[0].load.owed), "{told:?}");
    for file in ["report.html", "report.md", "charts/beside-1.svg"] {
        assert!(folder.path("out").join(file).exists(), "{file}");
    }
    let refused = experiment(&folder, &[&words[..], &["--junit", "x.xml"]].concat());
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("need a single candidate"), "{}", refused.stderr);
}

#[test]
fn a_suite_goes_on_with_what_is_missing() {
    let folder = Folder::new("suite");
    folder.write("parts/scenario.yaml", SCENARIO);
    let suite = "suite: Two experiments\nexperiments:\n  - run: scenario.yaml\n    as: small\n    \
                 set: {crowds.people.size: 2}\n  - ablate: scenario.yaml\n    rounds: 2\n    \
                 features: [history]\n";
    let file = folder.write("parts/suite.yaml", suite);
    let words = ["run", &file.to_string_lossy(), "--quiet", "--json", "--out", "out"];
    let answer = folder.throng(words);
    let names = ["01-small", "02-scenario"];
    let manifest = |name: &str| fs::read(folder.path(&format!("out/{name}/run.json")));
    let first = manifest(names[0]).unwrap();
    assert!(folder.path("out/02-scenario/experiment.json").exists(), "{}", answer.stderr);
    let index = fs::read_to_string(folder.path("out/report.html")).unwrap();
    names.iter().for_each(|name| assert!(index.contains(&format!("{name}/report.html"))));

    // Only the second one is taken out of the record of what was done.
    let record = fs::read_to_string(folder.path("out/suite.json")).unwrap();
    fs::write(folder.path("out/suite.json"), record.replace("02-scenario", "02-other")).unwrap();
    let again = folder.throng(words);
    assert_eq!(again.code, answer.code, "{}", again.stderr);
    if answer.code == Some(0) {
        assert_eq!(manifest(names[0]).unwrap(), first, "a finished run is not made again");
        assert!(!again.stderr.contains("01-small") && again.stderr.contains("02-scenario"));
    }
    let wrong = folder.write("parts/wrong.yaml", "suite: x\nexperiments: [{rnu: a.yaml}]\n");
    let wrong = folder.throng(["run", &wrong.to_string_lossy()]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("experiment 1 must have one of"), "{}", wrong.stderr);
}
