//! The rules of the house (docs/architecture.md), as far as a program can check them: who imports
//! whom, who prints, who asks what time it is, and how long things may become.

use crate::rig::{Folder, read};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 80;
const COLUMNS_MAX: usize = 100;
/// A search that finds less than this has not found the sources.
const FILES_MIN: usize = 100;

/// Which crates of the house each crate may import.
const IMPORTS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("protocols", &["model"]),
    ("engine", &["model"]),
    ("results", &["model"]),
    ("server", &["model", "protocols"]),
    ("throng", &["model", "protocols", "engine", "results", "server"]),
    ("benches", &["model", "protocols", "engine", "results", "server"]),
];

/// Who alone may write this, and why.
const RESERVED: &[(&[&str], &[&str], &str)] = &[
    (
        &["println!", "eprintln!", "print!(", "eprint!(", "process::exit"],
        &["throng/src/"],
        "only the binary prints or exits",
    ),
    (
        &["Instant::now", "SystemTime::now"],
        &["engine/src/clock.rs", "server/src/machine/event_loop.rs"],
        "time is an argument; the engine's clock and the server's loop alone ask",
    ),
    (&["TcpStream", "TcpListener", "UdpSocket"], &["engine/", "server/", "throng/"], "no sockets"),
    (&["dbg!("], &[], "left over from a search for a mistake"),
];

/// Longer functions than allowed that are there already, with their lengths: they may only become
/// shorter.
const RATCHET: &[(&str, &str, usize)] = &[];

/// A file of Rust.
struct File {
    /// Relative to the workspace, with `/`.
    name: String,
    text: String,
}

impl File {
    /// Tests, benches, examples and fuzz targets print, wait and ask for the time as they like.
    fn is_product(&self) -> bool {
        let apart = ["tests/", "benches/", "examples/", "fuzz/"];
        !self.name.ends_with("tests.rs") && !apart.iter().any(|part| self.name.contains(part))
    }

    /// The lines before the unit tests at the bottom, without comments, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        let lines = lines.take_while(|(_, line)| line.trim() != "#[cfg(test)]");
        lines.map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim().starts_with("//"))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every file below the root with that ending, outside of what was built or run.
fn files(ending: &str) -> Vec<File> {
    fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_str().unwrap();
            let is_hidden = name.starts_with('.') || ["target", "runs"].contains(&name);
            match path.is_dir() {
                true if !is_hidden => walk(&path, ending, found),
                false if name.ends_with(ending) => found.push(path),
                _ => {}
            }
        }
    }
    let mut paths = Vec::new();
    walk(root(), ending, &mut paths);
    paths.sort();
    let file = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        File { name, text: std::fs::read_to_string(&path).unwrap() }
    };
    paths.into_iter().map(file).collect()
}

fn sources() -> Vec<File> {
    let files = files(".rs");
    assert!(files.len() >= FILES_MIN, "only {} files were found", files.len());
    files
}

/// Fails with everything that was found, not only the first.
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// The functions of a file: where each begins, its name, and how many lines it has. The sources are
/// formatted, so a function ends at the first brace in the column where it began.
fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start().replacen("pub(in ", "pub(", 1);
        let words: Vec<&str> = code.split(' ').take_while(|word| *word != "fn").collect();
        let is_prefix = |word: &&str| {
            let others = ["pub", "const", "unsafe", "extern", "\"C\"", "async"];
            others.contains(word) || word.starts_with("pub(")
        };
        let before: usize = words.iter().map(|word| word.len() + 1).sum();
        let is_function = code.get(before..).is_some_and(|rest| rest.starts_with("fn "));
        if !is_function || !words.iter().all(is_prefix) {
            continue;
        }
        let name = code[before + 3..].split(['(', '<']).next().unwrap().to_owned();
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let is_whole = |line: &str| line.ends_with('}') || line.ends_with(';');
        let length = match is_whole(line) {
            true => 1,
            false => 1 + lines[at + 1..].iter().position(|line| **line == end).unwrap_or(0) + 1,
        };
        found.push((at + 1, name, length));
    }
    found
}

#[test]
fn crates_import_only_what_the_house_allows() {
    let mut wrong = Vec::new();
    for (name, allowed) in IMPORTS {
        let manifest = read(&root().join(name).join("Cargo.toml"));
        let (_, rest) = manifest.split_once("[dependencies]").unwrap();
        let section = rest.split("\n[").next().unwrap();
        let keys = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for key in keys.filter(|key| IMPORTS.iter().any(|(other, _)| other == key)) {
            if !allowed.contains(&key) {
                wrong.push(format!("{name} imports {key}"));
            }
        }
    }
    none("imports against docs/architecture.md", &wrong);
    let members = read(&root().join("Cargo.toml"));
    let members = members.split_once("members = [").unwrap().1.split(']').next().unwrap();
    let known = members.split(',').map(|name| name.trim().trim_matches('"'));
    let unknown: Vec<String> = known
        .filter(|name| !name.is_empty() && !IMPORTS.iter().any(|(other, _)| other == name))
        .map(str::to_owned)
        .collect();
    none("crates without a row in IMPORTS", &unknown);
}

#[test]
fn what_is_reserved_is_used_only_in_its_place() {
    let mut wrong = Vec::new();
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    for file in sources().iter().filter(|file| file.is_product()) {
        for (number, line) in file.code() {
            for (words, places, why) in RESERVED {
                if words.iter().any(|word| line.contains(word)) {
                    *used.entry(*why).or_default() += 1;
                    if !places.iter().any(|place| file.name.starts_with(place)) {
                        wrong.push(format!("{}:{number}: {} ({why})", file.name, line.trim()));
                    }
                }
            }
        }
    }
    none("used outside of its place", &wrong);
    let searched = RESERVED.iter().filter(|(_, places, _)| !places.is_empty());
    for (words, _, why) in searched {
        assert!(used.contains_key(why), "{words:?} occurs nowhere: is this still the word?");
    }
}

#[test]
fn protocols_know_no_names_of_each_other_and_the_engine_knows_none() {
    let names: Vec<&str> = protocols::PROTOCOLS.iter().map(|p| p.facts().name).collect();
    let mut wrong = Vec::new();
    for file in sources().iter().filter(|file| file.is_product()) {
        let is_neutral = ["model/", "engine/", "results/"].iter().any(|c| file.name.starts_with(c));
        let is_wire = file.name.starts_with("protocols/src/wire/");
        for (number, line) in file.code().filter(|_| is_neutral || is_wire) {
            let line = line.to_lowercase();
            for name in names.iter().filter(|name| line.contains(&format!("{name}::"))) {
                wrong.push(format!("{}:{number}: {name}", file.name));
            }
        }
    }
    none("names of protocols where none belong", &wrong);
}

#[test]
fn every_file_says_first_what_it_is() {
    let silent = |file: &&File| {
        let first = file.text.lines().next().unwrap_or("");
        first.strip_prefix("//! ").is_none_or(|words| words.len() < 10)
    };
    let files = sources();
    let wrong: Vec<String> = files.iter().filter(silent).map(|file| file.name.clone()).collect();
    none("files that do not begin with a `//!` sentence", &wrong);
}

#[test]
fn files_functions_and_lines_are_short() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in sources() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            wrong.push(format!("{}: {lines} lines", file.name));
        }
        for (number, name, length) in functions(&file.text) {
            count += 1;
            let known = RATCHET.iter().find(|row| (row.0, row.1) == (&*file.name, &*name));
            if length > known.map_or(FUNCTION_LINES_MAX, |row| row.2) {
                wrong.push(format!("{}:{number}: {name} has {length} lines", file.name));
            }
        }
        for (at, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            // A literal is data: it may be as long as what it shows.
            let is_data = line.contains('"') || line.ends_with('\\');
            if columns > COLUMNS_MAX && !is_data {
                wrong.push(format!("{}:{}: {columns} columns", file.name, at + 1));
            }
        }
    }
    none("too long", &wrong);
    assert!(count > 1_000, "only {count} functions were found");
}

#[test]
fn functions_are_measured_by_their_braces() {
    let text = "fn one() {}\npub(crate) fn two<T>(\n    a: T,\n) {\n    if a {\n    }\n}\n\
                impl X {\n    pub const fn three(&self) -> u8 {\n        1\n    }\n    fn four();\n}\n\
                let fnord = |x| {\n};\npub(in crate::shard) fn five() {\n}\n";
    let found: Vec<(String, usize)> =
        functions(text).into_iter().map(|(_, name, length)| (name, length)).collect();
    let expect = [("one", 1), ("two", 6), ("three", 3), ("four", 1), ("five", 2)];
    assert_eq!(found, expect.map(|(name, length)| (name.to_owned(), length)));
}

#[test]
fn nothing_is_left_to_do() {
    // Put together, so that this file does not find itself.
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"]].map(|parts| parts.concat());
    let mut wrong = Vec::new();
    for ending in [".rs", ".md", ".yaml", ".lua", ".toml"] {
        for file in files(ending) {
            for (at, line) in file.text.lines().enumerate() {
                if words.iter().any(|word| line.contains(word.as_str())) {
                    wrong.push(format!("{}:{}: {}", file.name, at + 1, line.trim()));
                }
            }
        }
    }
    none("left to do", &wrong);
}

#[test]
fn every_scenario_plans_and_says_what_it_is_about() {
    let scenarios: Vec<File> =
        files(".yaml").into_iter().filter(|file| file.name.starts_with("scenarios/")).collect();
    assert!(scenarios.len() >= 4, "{} scenarios", scenarios.len());
    let folder = Folder::new("plans");
    for scenario in scenarios {
        let path = root().join(&scenario.name).into_os_string();
        let answer = folder.throng(["plan".into(), path]);
        assert_eq!(answer.code, Some(0), "{}: {}", scenario.name, answer.stderr);
        assert!(scenario.text.contains("\nabout: "), "{} has no `about`", scenario.name);
    }
}

#[test]
fn every_protocol_and_feature_is_documented() {
    let page = read(&root().join("docs/protocols.md"));
    let mut wrong = Vec::new();
    for protocol in protocols::PROTOCOLS {
        let facts = protocol.facts();
        let features = facts.features.iter().map(|(name, _)| *name);
        for name in features.chain([facts.name]) {
            // The page may be missing only until it is written.
            if !page.is_empty() && !page.contains(name) {
                wrong.push(format!("{}: {name}", facts.name));
            }
        }
    }
    none("not in docs/protocols.md", &wrong);
}

#[test]
fn every_target_names_a_protocol_there_is_and_how_to_get_it() {
    let targets: Vec<File> =
        files("target.yaml").into_iter().filter(|file| file.name.starts_with("targets/")).collect();
    assert!(targets.len() >= 2);
    for target in targets {
        let value = |key: &str| {
            let lines = target.text.lines();
            lines
                .filter_map(|line| line.strip_prefix(key))
                .next()
                .map(|rest| rest.trim().to_owned())
        };
        let name = value("protocol:").unwrap();
        assert!(protocols::protocol(&name).is_some(), "{}: protocol {name}", target.name);
        assert!(value("about:").is_some_and(|about| about.len() > 10), "{}", target.name);
        let needs = target.text.matches("- command:").count();
        assert_eq!(target.text.matches("install:").count(), needs, "{}", target.name);
    }
}
