//! Writes a run directory as the run goes. Every call hands whole lines to the operating system,
//! so that a killed run can be read up to its last second.

use super::hlog::{self, HlogWriter};
use super::manifest::{FORMAT, Manifest, Status};
use super::probes::{self, ProbeWriter};
use super::{
    EVENTS, FAULTS, INTERVALS, MANIFEST, METRICS, PLAN, PROBES, Run, SCENARIO, SERIES, metrics,
    series,
};
use crate::analysis::Analysis;
use crate::error::Error;
use crate::profile;
use model::{Interval, MetricSample, Plan, ProbeSample, Record, Tick};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A file that only ever grows, by whole lines.
struct Growing {
    path: PathBuf,
    file: File,
}

impl Growing {
    fn create(dir: &Path, name: &str, head: &[u8]) -> Result<Growing, Error> {
        let path = dir.join(name);
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let mut growing = Growing { file: file.map_err(Error::io(&path))?, path };
        growing.append(head)?;
        Ok(growing)
    }

    fn append(&mut self, lines: &[u8]) -> Result<(), Error> {
        self.file.write_all(lines).map_err(Error::io(&self.path))
    }
}

/// Writes a run directory.
pub struct RunWriter {
    dir: PathBuf,
    manifest: Manifest,
    intervals: Growing,
    series: Growing,
    faults: Growing,
    probes: Growing,
    events: Growing,
    metrics: Option<Growing>,
    hlog: HlogWriter,
    prober: ProbeWriter,
}

impl RunWriter {
    /// Makes the directory with its manifest, scenario and plan. Refuses one that holds anything.
    pub fn create(
        dir: &Path,
        manifest: Manifest,
        scenario: &str,
        plan: &Plan,
    ) -> Result<RunWriter, Error> {
        fs::create_dir_all(dir).map_err(Error::io(dir))?;
        if fs::read_dir(dir).map_err(Error::io(dir))?.next().is_some() {
            return Err(Error::Exists { path: dir.to_owned() });
        }
        let manifest =
            Manifest { format: FORMAT, status: Status::Running, result: None, ..manifest };
        let grow = |name, head: &str| Growing::create(dir, name, head.as_bytes());
        let writer = RunWriter {
            intervals: grow(INTERVALS, &hlog::head(manifest.started_unix_ms))?,
            series: grow(SERIES, &series::head())?,
            faults: grow(FAULTS, series::FAULTS_HEAD)?,
            probes: grow(PROBES, probes::HEAD)?,
            events: grow(EVENTS, "")?,
            metrics: None,
            hlog: HlogWriter::default(),
            prober: ProbeWriter::default(),
            dir: dir.to_owned(),
            manifest,
        };
        replace(&dir.join(SCENARIO), scenario.as_bytes())?;
        replace(&dir.join(PLAN), &json(&dir.join(PLAN), plan)?)?;
        writer.write_manifest()?;
        Ok(writer)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Changes the manifest: what was learned only after the run had begun.
    pub fn amend(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), Error> {
        change(&mut self.manifest);
        self.write_manifest()
    }

    /// One second. The row of `series.csv` comes last: it completes the second.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), Error> {
        let lines = self.hlog.lines(interval).map_err(Error::io(&self.intervals.path))?;
        self.intervals.append(&lines)?;
        self.faults.append(series::fault_rows(interval).as_bytes())?;
        self.series.append(series::row(interval).as_bytes())
    }

    /// One reading of the probes.
    pub fn probe(&mut self, sample: &ProbeSample) -> Result<(), Error> {
        self.probes.append(self.prober.rows(sample).as_bytes())
    }

    /// What somebody published at one instant. The file comes into being with the first sample.
    pub fn metrics(&mut self, samples: &[MetricSample]) -> Result<(), Error> {
        let growing = match &mut self.metrics {
            Some(growing) => growing,
            None => {
                let growing = Growing::create(&self.dir, METRICS, metrics::HEAD.as_bytes())?;
                self.metrics.insert(growing)
            }
        };
        growing.append(metrics::rows(samples).as_bytes())
    }

    /// A profile, as folded stacks.
    pub fn profile(&mut self, phase: &str, profiler: &str, folded: &str) -> Result<(), Error> {
        let folder = self.dir.join(profile::FOLDER);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let paths = (1..).map(|number| folder.join(profile::file_name(phase, profiler, number)));
        let free = paths.into_iter().find(|path| !path.exists());
        free.map_or(Ok(()), |path| replace(&path, folded.as_bytes()))
    }

    /// Something that happened.
    pub fn record(&mut self, record: &Record) -> Result<(), Error> {
        let mut line = serde_json::to_vec(record)
            .map_err(|error| Error::corrupt(&self.events.path, 0, error))?;
        line.push(b'\n');
        self.events.append(&line)
    }

    /// Ends the run at `end`: analyzes what was written and puts the result into the manifest.
    /// `reason` says why it was aborted; empty if it came to its end.
    pub fn finish(mut self, status: Status, reason: &str, end: Tick) -> Result<Analysis, Error> {
        let always = [&self.intervals, &self.series, &self.faults, &self.probes, &self.events];
        for growing in always.into_iter().chain(&self.metrics) {
            growing.file.sync_data().map_err(Error::io(&growing.path))?;
        }
        self.manifest.status = status;
        self.manifest.reason = reason.to_owned();
        self.manifest.seconds = end.secs_f64();
        let mut run = Run::load(&self.dir)?;
        run.manifest = self.manifest.clone();
        let analysis = Analysis::of(&run);
        self.manifest.result = Some(analysis.summary.clone());
        self.write_manifest()?;
        Ok(analysis)
    }

    fn write_manifest(&self) -> Result<(), Error> {
        let path = self.dir.join(MANIFEST);
        replace(&path, &json(&path, &self.manifest)?)
    }
}

fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|error| Error::corrupt(path, 0, error))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Replaces a file in one step: a reader sees the old or the new one, never a part.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    let mut file = File::create(&fresh).map_err(Error::io(&fresh))?;
    file.write_all(bytes).map_err(Error::io(&fresh))?;
    file.sync_data().map_err(Error::io(&fresh))?;
    fs::rename(&fresh, path).map_err(Error::io(path))
}
