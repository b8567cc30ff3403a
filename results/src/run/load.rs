//! Reads a run directory back, also one whose run was killed in the middle of a line.

use super::buckets::Buckets;
use super::csv::Header;
use super::hlog::{self, About};
use super::lines::Lines;
use super::manifest::{FORMAT, Manifest, Status};
use super::metrics::MetricReader;
use super::probes::ProbeReader;
use super::{EVENTS, FAULTS, INTERVALS, MANIFEST, METRICS, PLAN, PROBES, SCENARIO, SERIES, series};
use crate::error::Error;
use crate::profile::{self, Profile};
use model::{Counters, Faults, Gauges, Interval, Measure, MetricSample, Plan, ProbeSample, Record};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Most seconds a run may have: some two weeks. A file that claims more is not ours.
const SECONDS_MAX: usize = 1_200_000;
/// Most readings of probes: five a second for as long.
const READINGS_MAX: usize = 5 * SECONDS_MAX;
/// Most samples of metrics: a hundred series, every second for a day.
const SAMPLES_MAX: usize = 10_000_000;
/// Most events: they are few a phase, and failures only tell of the first of their kind.
const EVENTS_MAX: usize = 1_000_000;
/// Largest file that is read as a whole (manifest, plan, scenario), bytes.
const DOCUMENT_BYTES_MAX: u64 = 64 << 20;

/// One measure in one second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasureSecond {
    /// Requests made.
    pub asked: u64,
    /// Requests answered, or deliveries received.
    pub done: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Corrected latency, nanoseconds.
    pub latency: Buckets,
    /// Service time, nanoseconds.
    pub service: Buckets,
}

/// One second of a run: an `Interval` with lean histograms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// Which second since the run's epoch.
    pub second: u32,
    /// Counts.
    pub counters: Counters,
    /// Standings at the end of the second.
    pub gauges: Gauges,
    /// Measures that saw anything.
    pub measures: BTreeMap<Measure, MeasureSecond>,
    /// Failures by measure and class.
    pub faults: Faults,
    /// How late the generator's timers fired.
    pub lag: Buckets,
}

impl Second {
    /// Adds this second to `total`.
    pub fn add_to(&self, total: &mut Interval) {
        let mut interval = Interval::new(self.second);
        interval.counters = self.counters;
        interval.gauges = self.gauges;
        interval.faults = self.faults.clone();
        total.merge(&interval);
        for (&measure, mine) in &self.measures {
            let stats = total.measure(measure);
            stats.asked = stats.asked.saturating_add(mine.asked);
            stats.done = stats.done.saturating_add(mine.done);
            stats.failed = stats.failed.saturating_add(mine.failed);
            mine.latency.add_to(&mut stats.latency);
            mine.service.add_to(&mut stats.service);
        }
        self.lag.add_to(&mut total.lag);
    }

    /// Adds counts of the same second, of another row.
    fn merge_counts(&mut self, other: &Second) {
        self.counters.merge(&other.counters);
        self.gauges.merge(&other.gauges);
        for (&measure, theirs) in &other.measures {
            let mine = self.measures.entry(measure).or_default();
            mine.asked = mine.asked.saturating_add(theirs.asked);
            mine.done = mine.done.saturating_add(theirs.done);
            mine.failed = mine.failed.saturating_add(theirs.failed);
        }
    }
}

/// A run as its directory tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The manifest.
    pub manifest: Manifest,
    /// The plan; `None` if the file is missing.
    pub plan: Option<Plan>,
    /// The scenario's text; empty if the file is missing.
    pub scenario: String,
    /// The seconds, in order, each once. Seconds in which nothing was written are absent.
    pub seconds: Vec<Second>,
    /// Readings of the probes, in order.
    pub probes: Vec<ProbeSample>,
    /// What servers published about themselves, in order.
    pub metrics: Vec<MetricSample>,
    /// What happened, in the order written.
    pub events: Vec<Record>,
    /// Profiles, by phase and profiler.
    pub profiles: Vec<Profile>,
    /// Oddities that did not prevent reading, one sentence each.
    pub notes: Vec<String>,
}

impl Run {
    /// Reads a run directory. A torn last line is left out and noted; anything else that is wrong
    /// is an error that names file and line.
    pub fn load(dir: &Path) -> Result<Run, Error> {
        let manifest: Manifest = document(&dir.join(MANIFEST))?.ok_or_else(|| {
            Error::corrupt(&dir.join(MANIFEST), 0, "missing, so this is not a run directory")
        })?;
        if manifest.format > FORMAT {
            let reason = format!("format {} is newer than ours ({FORMAT})", manifest.format);
            return Err(Error::corrupt(&dir.join(MANIFEST), 0, reason));
        }
        let mut run = Run {
            manifest,
            plan: document(&dir.join(PLAN))?,
            scenario: text(&dir.join(SCENARIO))?.unwrap_or_default(),
            seconds: Vec::new(),
            probes: Vec::new(),
            metrics: Vec::new(),
            events: Vec::new(),
            profiles: Vec::new(),
            notes: Vec::new(),
        };
        run.read_events(dir)?;
        let mut seconds = run.read_series(dir)?;
        run.read_faults(dir, &mut seconds)?;
        run.read_intervals(dir, &mut seconds)?;
        run.seconds = seconds.into_values().collect();
        run.read_probes(dir)?;
        run.read_metrics(dir)?;
        run.read_profiles(dir)?;
        Ok(run)
    }

    /// The last second that was written; `None` if there is none.
    pub fn last_second(&self) -> Option<u32> {
        self.seconds.last().map(|second| second.second)
    }

    /// Whether the run was killed (or goes on): its manifest never got an end.
    pub fn cut_short(&self) -> bool {
        self.manifest.status == Status::Running
    }

    /// A row of `series.csv` completes its second, so rows elsewhere without one are left out.
    fn read_series(&mut self, dir: &Path) -> Result<BTreeMap<u32, Second>, Error> {
        let mut seconds: BTreeMap<u32, Second> = BTreeMap::new();
        self.read_table(dir, SERIES, |header, row| {
            let second = series::parse(header, row)?;
            if seconds.len() >= SECONDS_MAX {
                return Err(format!("more than {SECONDS_MAX} seconds"));
            }
            match seconds.get_mut(&second.second) {
                Some(mine) => mine.merge_counts(&second),
                None => drop(seconds.insert(second.second, second)),
            }
            Ok(())
        })?;
        Ok(seconds)
    }

    fn read_faults(
        &mut self,
        dir: &Path,
        seconds: &mut BTreeMap<u32, Second>,
    ) -> Result<(), Error> {
        self.read_table(dir, FAULTS, |header, row| {
            let Some((second, measure, class, count)) = series::parse_fault(header, row)? else {
                return Ok(());
            };
            if let Some(mine) = seconds.get_mut(&second) {
                let mine = mine.faults.entry(measure).or_default().entry(class).or_default();
                *mine = mine.saturating_add(count);
            }
            Ok(())
        })
    }

    fn read_intervals(
        &mut self,
        dir: &Path,
        seconds: &mut BTreeMap<u32, Second>,
    ) -> Result<(), Error> {
        self.read_lines(dir, INTERVALS, |_, line| {
            let Some((second, about, buckets)) = hlog::parse(line)? else { return Ok(()) };
            let Some(mine) = seconds.get_mut(&second) else { return Ok(()) };
            let place = match about {
                About::Latency(measure) => &mut mine.measures.entry(measure).or_default().latency,
                About::Service(measure) => &mut mine.measures.entry(measure).or_default().service,
                About::Lag => &mut mine.lag,
            };
            place.merge(&buckets);
            Ok(())
        })
    }

    fn read_probes(&mut self, dir: &Path) -> Result<(), Error> {
        let mut reader = ProbeReader::default();
        let mut probes: Vec<ProbeSample> = Vec::new();
        self.read_table(dir, PROBES, |header, row| {
            let Some(sample) = reader.row(header, row)? else { return Ok(()) };
            if probes.last().is_some_and(|last| last.at > sample.at) {
                return Err("at_s: earlier than the reading before".to_owned());
            }
            if probes.len() >= READINGS_MAX {
                return Err(format!("more than {READINGS_MAX} readings"));
            }
            probes.push(sample);
            Ok(())
        })?;
        self.probes = probes;
        Ok(())
    }

    /// Sources are read beside each other, so their rows are not in order.
    fn read_metrics(&mut self, dir: &Path) -> Result<(), Error> {
        let mut reader = MetricReader::default();
        let mut samples: Vec<MetricSample> = Vec::new();
        self.read_table(dir, METRICS, |header, row| {
            if samples.len() >= SAMPLES_MAX {
                return Err(format!("more than {SAMPLES_MAX} samples"));
            }
            samples.push(reader.row(header, row)?);
            Ok(())
        })?;
        samples.sort_by_key(|sample| sample.at);
        self.metrics = samples;
        Ok(())
    }

    fn read_events(&mut self, dir: &Path) -> Result<(), Error> {
        let mut events: Vec<Record> = Vec::new();
        self.read_lines(dir, EVENTS, |_, line| {
            if events.len() >= EVENTS_MAX {
                return Err(format!("more than {EVENTS_MAX} events"));
            }
            events.push(serde_json::from_str(line).map_err(|error| error.to_string())?);
            Ok(())
        })?;
        self.events = events;
        Ok(())
    }

    fn read_profiles(&mut self, dir: &Path) -> Result<(), Error> {
        let mut profiles = profile::list(dir)?;
        for one in &mut profiles {
            profile::check_size(&dir.join(&one.file))?;
            self.read_lines(dir, &one.file, |_, line| {
                one.stacks.push(profile::parse(line)?);
                Ok(())
            })?;
        }
        self.profiles = profiles;
        Ok(())
    }

    fn read_table(
        &mut self,
        dir: &Path,
        name: &str,
        mut take: impl FnMut(&Header, &str) -> Result<(), String>,
    ) -> Result<(), Error> {
        let mut header = None;
        self.read_lines(dir, name, |_, line| match &header {
            Some(header) => take(header, line),
            None => {
                header = Some(Header::parse(line)?);
                Ok(())
            }
        })
    }

    fn read_lines(
        &mut self,
        dir: &Path,
        name: &str,
        mut take: impl FnMut(usize, &str) -> Result<(), String>,
    ) -> Result<(), Error> {
        let path = dir.join(name);
        let mut lines = Lines::open(&path)?;
        while let Some((number, line)) = lines.next()? {
            take(number, line).map_err(|reason| Error::corrupt(&path, number, reason))?;
        }
        if lines.torn() {
            self.notes.push(format!("{name} ends in the middle of a line, which was left out"));
        }
        Ok(())
    }
}

/// A JSON document; `None` if there is no such file.
fn document<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let Some(text) = text(path)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| Error::corrupt(path, error.line(), error))
}

/// A whole text; `None` if there is no such file.
fn text(path: &Path) -> Result<Option<String>, Error> {
    let size = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path)(error)),
    };
    if size > DOCUMENT_BYTES_MAX {
        return Err(Error::corrupt(path, 0, format!("larger than {DOCUMENT_BYTES_MAX} bytes")));
    }
    let bytes = fs::read(path).map_err(Error::io(path))?;
    String::from_utf8(bytes).map(Some).map_err(|_| Error::corrupt(path, 0, "not UTF-8"))
}
