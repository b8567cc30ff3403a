//! `experiment.json`: what was asked, which runs answered, and the answer.

use super::{Arm, Drawn, Trial};
use crate::error::Error;
use crate::run::{CHARTS, INTERRUPTED, MANIFEST, Manifest, Run, SCENARIO, Status, replace};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Version of the format; a reader refuses a newer one.
const FORMAT: u32 = 1;
/// The file in an experiment's folder.
const FILE: &str = "experiment.json";
/// The folder of its runs.
pub const TRIALS: &str = "trials";
/// Largest `experiment.json` that is read, bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Longest part of a folder's name that is made of an arm's label, characters.
const LABEL_CHARS_MAX: usize = 40;

/// What an experiment's folder tells about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Told {
    /// Version of the format.
    pub format: u32,
    /// The command: `compare`, `capacity`, `ablate`, `sweep`.
    pub kind: String,
    /// The scenario's name.
    pub name: String,
    /// Everything that decides which trials are made; two equal questions make the same trials.
    pub question: serde_json::Value,
    /// The command line, an argument each.
    pub command: Vec<String>,
    /// Version of throng.
    pub throng: String,
    /// When it began: ISO 8601, UTC.
    pub started: String,
    /// The trials, in order: folder in `trials/` and what was tried.
    pub trials: Vec<(String, Arm)>,
    /// The answer in a word or two; empty while there is none.
    pub verdict: String,
    /// The answer in a sentence.
    pub sentence: String,
    /// The answer in full; null while there is none.
    pub answer: serde_json::Value,
}

/// An experiment's folder.
#[derive(Debug)]
pub struct Experiment {
    dir: PathBuf,
    told: Told,
}

impl Experiment {
    /// Begins an experiment in `dir`, or goes on with the one that is there. It must be the same:
    /// of the same kind, with the same question and scenario.
    pub fn open(dir: &Path, told: Told, scenario: &str) -> Result<Experiment, Error> {
        let path = dir.join(FILE);
        let told = Told { format: FORMAT, ..told };
        if !path.exists() {
            fs::create_dir_all(dir.join(TRIALS)).map_err(Error::io(dir))?;
            let experiment = Experiment { dir: dir.to_owned(), told };
            replace(&dir.join(SCENARIO), scenario.as_bytes())?;
            experiment.write()?;
            return Ok(experiment);
        }
        let there = read(&path)?;
        let text = fs::read_to_string(dir.join(SCENARIO)).unwrap_or_default();
        let same = (&there.kind, &there.question) == (&told.kind, &told.question);
        match same && text == scenario {
            true => Ok(Experiment { dir: dir.to_owned(), told: there }),
            false => Err(Error::corrupt(
                &path,
                0,
                "another experiment is in this folder already; name another folder",
            )),
        }
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The trials that were made, read from their run directories. One that was cut short is
    /// forgotten and its directory removed, so that it is made again.
    pub fn trials(&mut self) -> Result<Vec<Trial>, Error> {
        let mut done = Vec::new();
        for (name, arm) in self.told.trials.clone() {
            let dir = self.dir.join(TRIALS).join(&name);
            match is_over(&dir) {
                true => done.push(trial(&dir, arm)?),
                false => break,
            }
        }
        for (name, _) in self.told.trials.split_off(done.len()) {
            let dir = self.dir.join(TRIALS).join(name);
            if dir.exists() {
                fs::remove_dir_all(&dir).map_err(Error::io(&dir))?;
            }
        }
        self.write()?;
        Ok(done)
    }

    /// Makes room for the next trial: the directory to run into.
    pub fn begin(&mut self, arm: &Arm) -> Result<PathBuf, Error> {
        let name = file_name(&format!("{:03}-{}", self.told.trials.len() + 1, arm.label));
        let dir = self.dir.join(TRIALS).join(&name);
        self.told.trials.push((name, arm.clone()));
        self.write()?;
        Ok(dir)
    }

    /// Writes down the answer and the report.
    pub fn conclude(&mut self, answer: &impl Serialize, drawn: &Drawn) -> Result<(), Error> {
        let path = self.dir.join(FILE);
        self.told.answer =
            serde_json::to_value(answer).map_err(|error| Error::corrupt(&path, 0, error))?;
        (self.told.verdict, self.told.sentence) = (drawn.verdict(), drawn.sentence());
        self.write()?;
        write_report(&self.dir, drawn)
    }

    fn write(&self) -> Result<(), Error> {
        let path = self.dir.join(FILE);
        let mut bytes = serde_json::to_vec_pretty(&self.told)
            .map_err(|error| Error::corrupt(&path, 0, error))?;
        bytes.push(b'\n');
        replace(&path, &bytes)
    }
}

/// Writes the files of a report into a folder.
pub fn write_report(dir: &Path, drawn: &Drawn) -> Result<(), Error> {
    let charts = dir.join(CHARTS);
    fs::create_dir_all(&charts).map_err(Error::io(&charts))?;
    let write = |(name, text): &(String, String)| replace(&dir.join(name), text.as_bytes());
    drawn.files.iter().try_for_each(write)
}

/// A run that was made before, as a trial.
pub fn stored(dir: &Path) -> Result<Trial, Error> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    trial(dir, Arm::named(&name))
}

/// What the experiment in a folder tells about itself; `None` if there is none.
pub fn told(dir: &Path) -> Result<Option<Told>, Error> {
    let path = dir.join(FILE);
    path.exists().then(|| read(&path)).transpose()
}

/// Reads `experiment.json`.
fn read(path: &Path) -> Result<Told, Error> {
    if fs::metadata(path).map_err(Error::io(path))?.len() > FILE_BYTES_MAX {
        return Err(Error::corrupt(path, 0, format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    let bytes = fs::read(path).map_err(Error::io(path))?;
    let told: Told = serde_json::from_slice(&bytes)
        .map_err(|error| Error::corrupt(path, error.line(), error))?;
    if told.format > FORMAT {
        let reason = format!("format {} is newer than ours ({FORMAT})", told.format);
        return Err(Error::corrupt(path, 0, reason));
    }
    // Folders of trials are removed when they are made again: none may lie elsewhere.
    match told.trials.iter().find(|(name, _)| *name != file_name(name) || name.starts_with('.')) {
        Some((name, _)) => {
            Err(Error::corrupt(path, 0, format!("`{name}` is no folder of a trial")))
        }
        None => Ok(told),
    }
}

/// Whether a run came to its own end. One that was aborted did too, unless the user did it: what
/// stopped it (a target that died) is a result.
fn is_over(dir: &Path) -> bool {
    let manifest = fs::read(dir.join(MANIFEST)).ok();
    let manifest: Option<Manifest> = manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    manifest.is_some_and(|m| match m.status {
        Status::Running => false,
        Status::Finished => true,
        Status::Aborted => m.reason != INTERRUPTED,
    })
}

/// A trial from its run directory.
fn trial(dir: &Path, arm: Arm) -> Result<Trial, Error> {
    let run = Run::load(dir)?;
    let summary = crate::Analysis::of(&run).summary;
    Ok(Trial { arm, dir: dir.to_owned(), summary, reason: run.manifest.reason })
}

/// A label as a part of a file's name.
fn file_name(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.=".contains(c) { c } else { '-' };
    label.chars().take(LABEL_CHARS_MAX).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_never_elsewhere() {
        for (name, is_fine) in [
            ("001-base", true),
            ("002-people=5", true),
            ("../x", false),
            ("/x", false),
            ("..", false),
        ] {
            let told = Told { trials: vec![(name.into(), Arm::default())], ..Told::default() };
            let path =
                std::env::temp_dir().join(format!("throng-told-{}.json", std::process::id()));
            fs::write(&path, serde_json::to_vec(&told).unwrap()).unwrap();
            assert_eq!(read(&path).is_ok(), is_fine, "{name}");
            fs::remove_file(&path).unwrap();
        }
    }
}
