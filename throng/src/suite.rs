//! Suites: several experiments in order, each a command of its own process in a folder of its own,
//! with one index. A suite that was interrupted goes on with what is missing.

use crate::cli::{Cli, RunArgs};
use crate::failure::{Ending, Failure};
use crate::lab;
use crate::trial::{self, Setting};
use clap::Parser;
use engine::clock::Clock;
use engine::target::wait_for;
use results::experiment::write_report;
use results::suite::{Entry, index};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commands an entry can be.
const COMMANDS: [&str; 5] = ["run", "compare", "capacity", "ablate", "sweep"];
/// Most entries of a suite.
const ENTRIES_MAX: usize = 1_000;
/// What was carried out, in a suite's folder.
const FILE: &str = "suite.json";

/// A suite as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    suite: String,
    experiments: Vec<BTreeMap<String, Value>>,
}

/// One experiment as a command line.
struct Step {
    entry: Entry,
    words: Vec<String>,
}

/// Whether the text of a file is a suite, not a scenario.
pub(crate) fn is_suite(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("suite:"))
}

/// Prints what a suite will do, a command line each.
pub(crate) fn plan(path: &Path, text: &str) -> Ending {
    let (title, steps) = read_suite(path, text)?;
    println!("{title}");
    for step in steps {
        println!("  {:<24} throng {}", step.entry.name, step.words.join(" "));
    }
    Ok(0)
}

/// Reads a suite and looks through all of it before anything is begun.
fn read_suite(path: &Path, text: &str) -> Result<(String, Vec<Step>), Failure> {
    let at = path.display();
    let suite: Suite = serde_saphyr::from_str(text)
        .map_err(|error| Failure::usage(format!("{at}: this is no suite: {error}")))?;
    if suite.experiments.len() > ENTRIES_MAX {
        return Err(Failure::usage(format!("{at}: more than {ENTRIES_MAX} experiments")));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let steps = suite.experiments.iter().enumerate().map(|(i, entry)| step(i, entry, folder));
    let steps: Result<Vec<Step>, String> = steps.collect();
    let steps = steps.map_err(|why| Failure::usage(format!("{at}: {why}")))?;
    Ok((suite.suite, steps))
}

/// Carries out what is missing of a suite. The exit code is the worst of its experiments'.
pub(crate) fn run(args: &RunArgs, text: &str) -> Ending {
    let path = &args.scenario.scenario;
    let (title, mut steps) = read_suite(path, text)?;
    let setting = Setting::new(&args.output.engine)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let dir = args.output.out.clone().unwrap_or_else(|| trial::default_dir(&stem));
    std::fs::create_dir_all(&dir)
        .map_err(|error| Failure::unmeasured(format!("cannot make {}: {error}", dir.display())))?;
    let before = read(&dir);
    for i in 0..steps.len() {
        let name = steps[i].entry.name.clone();
        if let Some(done) = before.get(&name).filter(|(words, _)| *words == steps[i].words) {
            steps[i].entry.code = Some(done.1);
        } else {
            eprintln!("{} of {}: {name}", i + 1, steps.len());
            carry_out(&mut steps[i], &dir, &setting)?;
        }
        steps[i].entry.read(&dir.join(&name)).map_err(unreadable)?;
        write(&dir, &title, &steps)?;
        if setting.is_interrupted() {
            return Err(Failure::unmeasured(format!(
                "interrupted; the same command with --out {} goes on",
                dir.display()
            )));
        }
    }
    let entries: Vec<Entry> = steps.into_iter().map(|step| step.entry).collect();
    match args.output.json {
        true => crate::command::run::print_json(&entries)?,
        false => print!("{}", index(&title, &entries).map_err(unreadable)?.text(Some(&dir))),
    }
    Ok(entries.iter().filter_map(|entry| entry.code).max().unwrap_or(0))
}

/// An entry as a command line: the first key that is a command names the scenario, the others are
/// its options.
fn step(number: usize, entry: &BTreeMap<String, Value>, folder: &Path) -> Result<Step, String> {
    let place = || format!("experiment {}", number + 1);
    let commands: Vec<&String> =
        entry.keys().filter(|key| COMMANDS.contains(&key.as_str())).collect();
    let [command] = commands[..] else {
        return Err(format!("{} must have one of: {}", place(), COMMANDS.join(", ")));
    };
    let scenario = entry[command].as_str();
    let scenario = scenario.ok_or_else(|| format!("{}: `{command}` names no file", place()))?;
    let stem = Path::new(scenario).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let label = entry.get("as").and_then(Value::as_str).map_or(stem, str::to_owned);
    let is_plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
    if !label.chars().all(is_plain) || label.starts_with('.') {
        return Err(format!("{}: `{label}` cannot name a folder", place()));
    }
    let mut words = vec![command.clone(), folder.join(scenario).to_string_lossy().into_owned()];
    for (key, value) in entry.iter().filter(|(key, _)| *key != command && *key != "as") {
        options(&mut words, key, value).map_err(|why| format!("{}: {why}", place()))?;
    }
    Cli::try_parse_from(std::iter::once("throng").chain(words.iter().map(String::as_str)))
        .map_err(|error| format!("{}: {}", place(), first_line(&error.to_string())))?;
    let name = format!("{:02}-{}", number + 1, label.replace(' ', "-"));
    Ok(Step { entry: Entry { name, command: command.clone(), ..Entry::default() }, words })
}

/// What clap complains about, without its advice on how to use the program.
fn first_line(words: &str) -> &str {
    words.lines().next().unwrap_or(words).trim_start_matches("error: ")
}

/// One key as options: `pairs: 3` is `--pairs=3`, `aa: true` is `--aa`, a list repeats, a map
/// becomes `PATH=VALUE`.
fn options(words: &mut Vec<String>, key: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Bool(true) => words.push(format!("--{key}")),
        Value::Bool(false) => {}
        Value::Array(values) => values.iter().try_for_each(|value| options(words, key, value))?,
        Value::Object(pairs) => {
            for (path, value) in pairs {
                words.push(format!("--{key}={path}={}", plain(value)?));
            }
        }
        value => words.push(format!("--{key}={}", plain(value)?)),
    }
    Ok(())
}

fn plain(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(is) => Ok(is.to_string()),
        // Lists and maps are YAML as they are.
        Value::Array(_) | Value::Object(_) => Ok(value.to_string()),
        Value::Null => Err("a value is missing".to_owned()),
    }
}

/// Starts the command and waits for its end. What it says is in its folder.
fn carry_out(step: &mut Step, dir: &Path, setting: &Setting<'_>) -> Result<(), Failure> {
    let folder = dir.join(&step.entry.name);
    if step.entry.command == "run" && folder.exists() {
        // A run that did not come to its end is made again; experiments go on by themselves.
        std::fs::remove_dir_all(&folder).map_err(|error| {
            Failure::unmeasured(format!("cannot remove {}: {error}", folder.display()))
        })?;
    }
    let clock = Clock::start();
    let unstarted = |error| Failure::unmeasured(format!("cannot start throng: {error}"));
    let mut child = Command::new(setting.exe())
        .args(&step.words)
        .arg("--json")
        .args(setting.engine.quiet.then_some("--quiet"))
        .arg("--out")
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(unstarted)?;
    let status = wait_for(&mut child, || setting.is_interrupted()).map_err(unstarted)?;
    step.entry.seconds = clock.now().secs_f64();
    // Killed by a signal: nothing was measured.
    step.entry.code = Some(status.code().map_or(crate::failure::UNMEASURED, |code| code as u8));
    Ok(())
}

/// What was carried out before: command line and exit code by name. Only what came to an answer
/// counts: what failed is tried again.
fn read(dir: &Path) -> BTreeMap<String, (Vec<String>, u8)> {
    let text = std::fs::read_to_string(dir.join(FILE)).unwrap_or_default();
    let all: BTreeMap<String, (Vec<String>, u8)> = serde_json::from_str(&text).unwrap_or_default();
    all.into_iter().filter(|(_, (_, code))| *code < crate::failure::USAGE).collect()
}

fn write(dir: &Path, title: &str, steps: &[Step]) -> Result<(), Failure> {
    let done = steps
        .iter()
        .filter_map(|step| Some((step.entry.name.clone(), (step.words.clone(), step.entry.code?))));
    let done: BTreeMap<String, (Vec<String>, u8)> = done.collect();
    let text = serde_json::to_string_pretty(&done)
        .map_err(|error| Failure::unmeasured(error.to_string()))?;
    lab::write(&PathBuf::from(dir).join(FILE), &(text + "\n"))?;
    let entries: Vec<Entry> = steps.iter().map(|step| step.entry.clone()).collect();
    let drawn = index(title, &entries).map_err(unreadable)?;
    write_report(dir, &drawn).map_err(unreadable)
}

fn unreadable(error: results::Error) -> Failure {
    Failure::unmeasured(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_command_lines() {
        let words = |text: &str| {
            let entry = serde_saphyr::from_str(text).unwrap();
            step(1, &entry, Path::new("s")).map(|step| (step.entry.name, step.words.join(" ")))
        };
        for (text, name, line) in [
            ("run: a.yaml", "02-a", "run s/a.yaml"),
            ("{run: a.yaml, as: my run, scale: 0.2}", "02-my-run", "run s/a.yaml --scale=0.2"),
            (
                "{compare: a.yaml, candidate: '?codec=json', pairs: 3, aa: false, json: true}",
                "02-a",
                "compare s/a.yaml --candidate=?codec=json --json --pairs=3",
            ),
            (
                "{ablate: a.yaml, set: {rooms.count: 5, timeline.0.rest: 1s}, features: [a, b]}",
                "02-a",
                "ablate s/a.yaml --features=a --features=b --set=rooms.count=5 \
                 --set=timeline.0.rest=1s",
            ),
        ] {
            assert_eq!(words(text), Ok((name.into(), line.into())), "{text}");
        }
        for (text, why) in [
            ("{scale: 2}", "must have one of"),
            ("{run: a.yaml, sweep: b.yaml}", "must have one of"),
            ("{run: 5}", "names no file"),
            ("{run: a.yaml, as: ../up}", "cannot name a folder"),
            ("{run: a.yaml, seed: }", "missing"),
            ("{run: a.yaml, sede: 7}", "unexpected argument '--sede'"),
            ("{compare: a.yaml, aa: true, pairs: 2}", "invalid value '2'"),
        ] {
            let error = words(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
