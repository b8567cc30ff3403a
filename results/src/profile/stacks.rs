//! Folded stacks as files: `profiles/<phase>.<profiler>.folded`.

use crate::error::Error;
use std::fs;
use std::path::Path;

/// The folder of profiles in a run directory.
pub const FOLDER: &str = "profiles";
/// The end of their names.
const END: &str = ".folded";
/// Largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Most files that are read.
const FILES_MAX: usize = 1_000;
/// Longest part of a file's name, characters.
const PART_MAX: usize = 64;

/// A profile of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The phase, as the file's name has it.
    pub phase: String,
    /// What took it, as in `perf` or `perf-generator`.
    pub name: String,
    /// The file, from the run directory on.
    pub file: String,
    /// Stacks, functions from the root on parted by `;`, and how often each was seen.
    pub stacks: Vec<(String, u64)>,
}

/// The name of a profile's file; `number` tells apart what would have the same name.
pub(crate) fn file_name(phase: &str, profiler: &str, number: usize) -> String {
    let more = if number > 1 { format!("-{number}") } else { String::new() };
    format!("{}.{}{more}{END}", safe(phase), safe(profiler))
}

/// A part of a file's name that is one on every system.
fn safe(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let part: String = text.chars().take(PART_MAX).map(keep).collect();
    if part.is_empty() { "-".into() } else { part }
}

/// The profiles of a run directory, still without stacks, by phase and profiler.
pub(crate) fn list(dir: &Path) -> Result<Vec<Profile>, Error> {
    let folder = dir.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(&folder)(error)),
    };
    let mut profiles = Vec::new();
    for entry in entries.take(FILES_MAX) {
        let name = entry.map_err(Error::io(&folder))?.file_name();
        let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(END)) else { continue };
        let (phase, profiler) = stem.rsplit_once('.').unwrap_or((stem, "profile"));
        profiles.push(Profile {
            phase: phase.to_owned(),
            name: profiler.to_owned(),
            file: format!("{FOLDER}/{stem}{END}"),
            stacks: Vec::new(),
        });
    }
    profiles.sort_by(|a, b| (&a.phase, &a.name, &a.file).cmp(&(&b.phase, &b.name, &b.file)));
    Ok(profiles)
}

/// Refuses a file that is too large to be one of ours.
pub(crate) fn check_size(path: &Path) -> Result<(), Error> {
    let size = fs::metadata(path).map_err(Error::io(path))?.len();
    match size > FILE_BYTES_MAX {
        true => Err(Error::corrupt(path, 0, format!("larger than {FILE_BYTES_MAX} bytes"))),
        false => Ok(()),
    }
}

/// A line: a stack, a space, how often it was seen.
pub(crate) fn parse(line: &str) -> Result<(String, u64), String> {
    let (stack, count) = line.rsplit_once(' ').ok_or("a stack without its count")?;
    let count = count.parse().map_err(|_| format!("`{count}` is no count"))?;
    if stack.is_empty() {
        return Err("a count without its stack".into());
    }
    Ok((stack.to_owned(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_harmless() {
        assert_eq!(file_name("viewers", "perf", 1), "viewers.perf.folded");
        assert_eq!(file_name("../a b/ü.x", "pprof-heap", 2), "---a-b---x.pprof-heap-2.folded");
        assert_eq!(file_name("", "", 1), "-.-.folded");
    }

    #[test]
    fn lines_are_stacks_with_counts() {
        assert_eq!(parse("a;b c d 12"), Ok(("a;b c d".to_owned(), 12)));
        for (line, what) in [("a", "without its count"), ("a b", "no count"), (" 3", "its stack")] {
            assert!(parse(line).unwrap_err().contains(what), "{line}");
        }
    }
}
