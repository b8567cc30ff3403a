//! Scenarios with mistakes and what is said of them; every scenario; every documented example.

use super::tests::{drawn, plan, plan_of};
use super::*;
use crate::Rng;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "yaml"));
    files.sort();
    files
}

/// Compares with a golden file, or writes it with `BLESS=1`.
fn golden(path: &Path, got: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, got).unwrap();
    }
    let want = fs::read_to_string(path).unwrap_or_default();
    let name = path.display();
    assert!(got == want, "{name} differs (BLESS=1 accepts):\n{got}\ninstead of\n{want}");
}

#[test]
fn every_mistake_is_explained() {
    let files = yaml_files(&root().join("model/src/scenario/mistakes"));
    assert!(files.len() >= 90);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let mistakes = plan(&text).expect_err(&path.display().to_string());
        let shown = drawn(&mistakes);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        golden(&path.with_extension("txt"), &shown);
    }
}

#[test]
fn every_scenario_is_planned() {
    for path in yaml_files(&root().join("scenarios")) {
        let text = fs::read_to_string(&path).unwrap();
        let mut scenario = Scenario::parse("s.yaml", &text).unwrap();
        if let Some(file) = scenario.script_file() {
            let text = fs::read_to_string(path.with_file_name(file)).unwrap();
            scenario.include_script("protocol.yaml", &text).unwrap();
        }
        let plan = plan_of(&scenario).unwrap_or_else(|m| panic!("{path:?}: {}", drawn(&m)));
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(super::schema_tests::valid(&text), Ok(()), "{}", path.display());
        let shown = describe(&plan);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        golden(&root().join("model/src/scenario/plans").join(format!("{name}.txt")), &shown);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<crate::Plan>(&json).unwrap(), plan, "{name}");
    }
}

/// The fences of a document: info line and contents.
fn fences(text: &str) -> Vec<(String, String)> {
    let mut fences = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.into(), String::new())),
            (Some(_), Some(_)) => fences.extend(open.take()),
            (Some((_, body)), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => {}
        }
    }
    fences
}

/// Examples may show a part of a scenario: the rest is added.
fn completed(example: &str) -> String {
    let has = |key: &str| example.lines().any(|line| line.starts_with(key));
    let mut text = example.to_owned();
    if !has("target:") {
        text.push_str("target: prosody\n");
    }
    if !has("rooms:") {
        text.push_str("rooms: [live, lobby]\n");
    }
    if !has("crowds:") {
        text.push_str("crowds:\n  viewers:\n    size: 100\n");
        text.push_str("    features: all\n");
        text.push_str("    journey: [login, {join: live}, {talk: {every: 5s, for: 20s}}, leave]\n");
    }
    if !has("timeline:") {
        let crowd = example.lines().skip_while(|line| !line.starts_with("crowds:")).nth(1);
        let crowd = crowd.map_or("viewers", |line| line.trim().split(':').next().unwrap());
        text.push_str(&format!("timeline: [{{run: {crowd} at 10/s}}]\n"));
    }
    text
}

#[test]
fn every_example_of_the_documentation_is_true() {
    let path = root().join("docs/scenario.md");
    let text = fs::read_to_string(&path).unwrap();
    let fences = fences(&text);
    let (mut examples, mut mistakes) = (0, 0);
    let mut blessed = text.clone();
    for (i, (info, body)) in fences.iter().enumerate() {
        let result = plan(&completed(body));
        match info.as_str() {
            "yaml" => {
                examples += 1;
                result.unwrap_or_else(|m| panic!("{body}\n{}", drawn(&m)));
                let valid = super::schema_tests::valid(&completed(body));
                assert_eq!(valid, Ok(()), "{body}");
            }
            "yaml,mistake" => {
                mistakes += 1;
                let got = drawn(&result.expect_err(body));
                let want = fences.get(i + 1).filter(|(info, _)| info == "text");
                let (_, want) = want.unwrap_or_else(|| panic!("no message follows\n{body}"));
                let fence = |told: &str| format!("{body}```\n\n```text\n{told}```");
                blessed = blessed.replace(&fence(want), &fence(&got));
            }
            _ => {}
        }
    }
    assert!(examples >= 12 && mistakes >= 5, "{examples} examples, {mistakes} mistakes");
    golden(&path, &blessed);
}

/// Changes a text at random: bytes replaced, pieces repeated, moved or cut.
fn mutate(rng: &mut Rng, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=rng.below(4) {
        let len = bytes.len() as u64;
        let from = rng.below(len + 1) as usize;
        let to = (from + rng.below(12) as usize).min(bytes.len());
        match rng.below(5) {
            0 => drop(bytes.drain(from..to)),
            1 => {
                let piece = bytes[from..to].to_vec();
                let at = rng.below(len + 1) as usize;
                bytes.splice(at..at, piece);
            }
            2 => {
                const SPICE: &[&str] = &[
                    "{",
                    "}",
                    "[",
                    "]",
                    ": ",
                    "- ",
                    "\n",
                    "\t",
                    "*a ",
                    "&a ",
                    "<<: ",
                    "%",
                    "..",
                    "0",
                    "9999999999999",
                    "\"",
                    "'",
                    "#",
                    "|\n",
                    ">\n",
                    "? ",
                    "!!int ",
                    "---\n",
                    "é",
                    "\u{0}",
                    "~",
                    "without ",
                    " at ",
                    "null",
                ];
                let word = SPICE[rng.below(SPICE.len() as u64) as usize];
                bytes.splice(from..from, word.bytes());
            }
            3 if from < bytes.len() => bytes[from] = rng.below(256) as u8,
            _ => bytes.truncate(bytes.len() - (rng.below(len / 8 + 1) as usize)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn nothing_makes_it_panic() {
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    let doc = fences(&read(root().join("docs/scenario.md")));
    let doc = doc.into_iter().filter(|(info, _)| info == "yaml").map(|(_, body)| completed(&body));
    // The largest crowd is made smaller: its plans take long to walk.
    let right: Vec<String> = yaml_files(&root().join("scenarios"))
        .into_iter()
        .map(|path| read(path).replace("19500", "195"))
        .chain(doc)
        .collect();
    let mistakes = root().join("model/src/scenario/mistakes");
    let wrong: Vec<String> = yaml_files(&mistakes).into_iter().map(read).collect();
    let rounds = std::env::var("FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
    let mut planned = 0;
    for seed in 0..rounds {
        let mut rng = Rng::new(seed, 0xF022);
        let texts = if rng.below(4) == 0 { &wrong } else { &right };
        let which = rng.below(texts.len() as u64) as usize;
        let text = mutate(&mut rng, &texts[which]);
        let result = std::panic::catch_unwind(|| match plan(&text) {
            Ok(plan) if plan.people() < 1_000 && plan.rooms.len() < 1_000 => {
                assert!(!describe(&plan).is_empty());
                true
            }
            Ok(_) => true,
            Err(mistakes) => {
                assert!(!mistakes.is_empty() && mistakes.len() <= MISTAKES_MAX);
                assert!(mistakes.iter().all(|m| m.line >= 1 && !m.suggestion.is_empty()));
                assert!(!drawn(&mistakes).is_empty());
                false
            }
        });
        planned += u32::from(result.unwrap_or_else(|_| panic!("seed {seed}:\n{text}")));
    }
    assert!(planned > rounds as u32 / 20, "only {planned} of {rounds} were understood");
}

#[test]
fn hostile_texts_are_refused_in_bounded_time() {
    let many = |piece: &str, count: usize| piece.repeat(count);
    let texts = [
        many("[", 500_000),
        many("{a: ", 200_000),
        many("- ", 400_000),
        many("a: b\n", 200_000),
        many("&a *a ", 100_000),
        many("- &a x\n- *a\n", 60_000),
        many(" ", 1_000_000),
        many("x", 1_000_000),
        many("? ", 400_000),
        many("\"", 999_999),
        many("a: |\n  b\n", 90_000),
        format!("crowds:\n{}", many("  p: {size: 1}\n", 60_000)),
        format!("timeline:\n{}", many("  - run: x\n", 80_000)),
        format!("x: {}", many("y", TEXT_BYTES_MAX)),
        format!("rooms: {{count: 1000000, name: \"{}{{n}}\"}}", many("r", 190)),
    ];
    for text in texts {
        assert!(plan(&text).is_err(), "{}", &text[..60]);
    }
}

#[test]
fn a_long_plan_is_described_in_bounded_time() {
    let mut text = "target: yardstick
rooms: [a]
crowds: {p: {size: 100, journey: [login, join, {repeat: forever, every: 1ms, do: say}]}}
timeline:
"
    .to_owned();
    text.push_str(&"  - run: p at once\n".repeat(2_000));
    let shown = describe(&plan(&text).unwrap());
    assert!(shown.contains("goes on until it is interrupted"));
}

#[test]
fn values_are_set_by_path() {
    let text = fs::read_to_string(root().join("scenarios/river-yardstick.yaml")).unwrap();
    let set = |path: &str, value: &str| {
        let mut scenario = Scenario::parse("river.yaml", &text).unwrap();
        scenario.set(path, value).map_err(|mistake| mistake.to_string())?;
        plan_of(&scenario).map_err(|mistakes| drawn(&mistakes))
    };
    assert_eq!(set("crowds.people.size", "200").unwrap().people(), 200);
    let plan = set("crowds.people.journey.6.wait", "0s..20s").unwrap();
    let waits = plan.crowds[0].program.ops.iter();
    assert!(
        waits.clone().any(|op| *op == crate::Op::Wait(crate::Span::Uniform(0, 20_000_000_000)))
    );
    assert_eq!(set("timeline.0.run", "people at once").unwrap().phases.len(), 1);
    assert_eq!(set("limits.late", "2s").unwrap().limits.late_ns, 2_000_000_000);
    assert_eq!(set("thresholds.join p99", "< 9s").unwrap().thresholds[3].bound, 9e9);
    assert_eq!(set("thresholds.delivery p99.9", "< 1s").unwrap().thresholds.len(), 5);
    assert_eq!(set("thresholds.deliveries", "> 5").unwrap().thresholds[4].bound, 5.0);
    let target = set("target.codec", "json").unwrap().target;
    assert_eq!((target.name.as_str(), target.options["codec"].as_str()), ("yardstick", "json"));
    assert_eq!(set("rooms", "[river, b, c]").unwrap().rooms.len(), 3);
    let wrong = [
        ("crowds.viewers.size", "200"),
        ("crowds.peeple.size", "200"),
        ("crowds.people.sise", "200"),
        ("crowds.people.size", "many"),
        ("crowds.people.journey.77", "login"),
        ("target.name.x", "1"),
        ("timeline.0.run", "people at 5"),
        ("", "1"),
        ("crowds..size", "1"),
    ];
    let mut said = String::new();
    for (path, value) in wrong {
        said += &format!("--set {path}={value}\n{}\n", set(path, value).unwrap_err());
    }
    golden(&root().join("model/src/scenario/mistakes/set.txt"), &said);
}

#[test]
fn sizes_are_scaled_and_seeds_replaced() {
    let text = fs::read_to_string(root().join("scenarios/prosody-cpu.yaml")).unwrap();
    let scenario = Scenario::parse("s.yaml", &text).unwrap();
    let facts = |_: &str| super::tests::facts("xmpp");
    let plan = |scale: f64, seed| {
        let options = PlanOptions { name: "s".into(), seed, scale };
        scenario.plan(&options, &facts, "xmpp")
    };
    let sizes = |plan: crate::Plan| plan.crowds.iter().map(|c| c.size).collect::<Vec<_>>();
    assert_eq!(sizes(plan(0.2, None).unwrap()), [1, 20]);
    assert_eq!(sizes(plan(2.5, None).unwrap()), [5, 250]);
    assert_eq!(plan(1.0, Some(9)).unwrap().seed, 9);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert_eq!(plan(bad, None).unwrap_err()[0].file, "--scale");
    }
    assert!(plan(1e6, None).is_err(), "more people than a stamp can tell");
}
