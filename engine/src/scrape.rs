//! Metrics: asks servers what they publish, and Prometheus servers what they know, each on a
//! thread of its own. Nothing they answer can hold up a run: it is counted and told.

mod promql;

use crate::clock::Clock;
use crate::http;
use model::metric::{UP, exposition};
use model::{MetricKind, MetricSample, Prometheus, Series, Tick};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a server may take for a whole answer.
const WITHIN: Duration = Duration::from_secs(2);
/// Longest answer, bytes.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Most series of a source in a whole run: labels that never repeat must not fill memory and disk.
const SERIES_MAX: usize = 1_000;
/// Most troubles of a source that are told in words; the others are only counted.
const TOLD_MAX: usize = 5;
/// Longest wait before a thread looks whether it is to stop.
const NAP_NS: u64 = 100_000_000;
/// Characters of foreign text that are told.
const FOREIGN_CHARS_MAX: usize = 200;

/// Somebody to be asked again and again.
#[derive(Clone, Debug)]
pub struct MetricSource {
    /// The source of the series read there: `target`, `host:port`, or `promql`.
    pub name: String,
    /// Who is asked.
    pub address: SocketAddr,
    /// `host:port`.
    pub authority: String,
    /// Path of the metrics, or what comes before `/api/v1/query`.
    pub path: String,
    /// From one asking to the next, nanoseconds.
    pub every_ns: u64,
    /// What is asked.
    pub asked: Asked,
}

/// What is asked.
#[derive(Clone, Debug)]
pub enum Asked {
    /// For the metrics it publishes, of which some are kept.
    Metrics(Prometheus),
    /// PromQL expressions by name.
    Queries(BTreeMap<String, String>),
}

/// What the threads report.
pub(crate) enum Reading {
    /// Samples of one source and one instant.
    Samples(Vec<MetricSample>),
    /// Something did not work, in words.
    Trouble(String),
}

/// The threads at work.
pub(crate) struct Scraper {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Scraper {
    /// Starts a thread for each source.
    pub(crate) fn start(
        clock: Clock,
        sources: Vec<MetricSource>,
        out: Sender<Reading>,
    ) -> io::Result<Scraper> {
        let mut scraper = Scraper { stop: Arc::default(), threads: Vec::new() };
        for source in sources {
            let (stop, out) = (scraper.stop.clone(), out.clone());
            let reader = Reader::new(source, clock, stop, out);
            let thread = std::thread::Builder::new().name("metrics".into());
            scraper.threads.push(thread.spawn(move || reader.work())?);
        }
        Ok(scraper)
    }

    /// Stops, at most [`WITHIN`] later.
    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has printed why.
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// What went wrong at a source, counted.
#[derive(Default)]
struct Tally {
    readings: u64,
    failed: u64,
    wrong_lines: u64,
    left_out: u64,
}

struct Reader {
    source: MetricSource,
    clock: Clock,
    stop: Arc<AtomicBool>,
    out: Sender<Reading>,
    known: HashSet<Arc<Series>>,
    tally: Tally,
    told: BTreeSet<String>,
}

impl Reader {
    fn new(
        source: MetricSource,
        clock: Clock,
        stop: Arc<AtomicBool>,
        out: Sender<Reading>,
    ) -> Reader {
        let (known, tally, told) = (HashSet::new(), Tally::default(), BTreeSet::new());
        Reader { source, clock, stop, out, known, tally, told }
    }

    fn is_wanted(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn work(mut self) {
        let mut due = self.clock.now();
        while self.is_wanted() {
            let at = self.clock.now();
            let samples = self.ask(at);
            if !self.is_wanted() || self.out.send(Reading::Samples(samples)).is_err() {
                break;
            }
            due.0 = (due.0 + self.source.every_ns).max(self.clock.now().0);
            while self.is_wanted() && self.clock.now() < due {
                let nap = Tick(due.0.min(self.clock.now().0 + NAP_NS));
                self.clock.sleep_until(nap);
            }
        }
        self.sum_up();
    }

    /// Reads everything once.
    fn ask(&mut self, at: Tick) -> Vec<MetricSample> {
        let mut samples = Vec::new();
        let failed = match self.source.asked.clone() {
            Asked::Metrics(kept) => self.metrics(at, &kept, &mut samples).err(),
            Asked::Queries(queries) => {
                let answer = |(name, text): (&String, &String)| {
                    let result = self.query(at, name, text, &mut samples);
                    result.err().map(|why| format!("the query {name}: {why}"))
                };
                queries.iter().map(answer).fold(None, Option::or)
            }
        };
        if !self.is_wanted() {
            return samples;
        }
        self.tally.readings += 1;
        self.tally.failed += u64::from(failed.is_some());
        // Several Prometheus servers share a source: a label tells them apart.
        let labels = match &self.source.asked {
            Asked::Metrics(_) => Vec::new(),
            Asked::Queries(_) => vec![("server".into(), self.source.authority.clone())],
        };
        let (source, name) = (self.source.name.clone(), UP.into());
        let up = Series { source, name, labels, kind: MetricKind::Gauge };
        samples.extend(self.sample(at, up, if failed.is_none() { 1.0 } else { 0.0 }));
        if let Some(why) = failed {
            self.tell(&why);
        }
        samples
    }

    fn metrics(
        &mut self,
        at: Tick,
        kept: &Prometheus,
        samples: &mut Vec<MetricSample>,
    ) -> Result<(), String> {
        let body = self.get(&self.source.path, false)?;
        let text = String::from_utf8_lossy(&body);
        let source = self.source.name.clone();
        let understood = exposition::read(
            &text,
            |name| kept.keeps(name),
            |found| {
                let (name, labels, kind) = (found.name.to_owned(), found.labels, found.kind);
                let series = Series { source: source.clone(), name, labels, kind };
                samples.extend(self.sample(at, series, found.value));
            },
        );
        self.tally.wrong_lines += understood.wrong;
        match understood.samples {
            0 => Err("no line of the answer is a metric".into()),
            _ => Ok(()),
        }
    }

    fn query(
        &mut self,
        at: Tick,
        name: &str,
        text: &str,
        samples: &mut Vec<MetricSample>,
    ) -> Result<(), String> {
        let path = promql::path(&self.source.path, text);
        let body = self.get(&path, true)?;
        for (labels, value) in promql::read(&body)? {
            let (source, name) = (self.source.name.clone(), name.to_owned());
            let series = Series { source, name, labels, kind: MetricKind::Gauge };
            samples.extend(self.sample(at, series, value));
        }
        Ok(())
    }

    /// A page of the source; one of Prometheus also says what is wrong with a query.
    fn get(&self, path: &str, is_query: bool) -> Result<Vec<u8>, String> {
        let request = http::Request {
            address: self.source.address,
            authority: &self.source.authority,
            path,
            within: WITHIN,
            body_bytes_max: BODY_BYTES_MAX,
        };
        let answer = http::get(request, &self.clock, &|| self.is_wanted())?;
        match answer.status {
            200 => Ok(answer.body),
            400 | 422 if is_query => Ok(answer.body),
            status => Err(format!("the answer has HTTP status {status}")),
        }
    }

    /// A sample, unless there are too many series already.
    fn sample(&mut self, at: Tick, series: Series, value: f64) -> Option<MetricSample> {
        let series = match self.known.get(&series) {
            Some(known) => known.clone(),
            None if self.known.len() >= SERIES_MAX => {
                self.tally.left_out += 1;
                return None;
            }
            None => {
                let series = Arc::new(series);
                self.known.insert(series.clone());
                series
            }
        };
        Some(MetricSample { at, series, value })
    }

    /// Tells a trouble the first time.
    fn tell(&mut self, why: &str) {
        let why: String = why.chars().take(FOREIGN_CHARS_MAX).collect();
        if self.told.len() < TOLD_MAX && self.told.insert(why.clone()) {
            self.say(format!("metrics of {}: {why}", self.source.authority));
        }
    }

    /// Tells at the end what was counted.
    fn sum_up(&self) {
        let Tally { readings, failed, wrong_lines, left_out } = self.tally;
        let mut words = Vec::new();
        if failed > 0 {
            words.push(format!("{failed} of {readings} readings failed"));
        }
        if wrong_lines > 0 {
            words.push(format!("{wrong_lines} lines are no metrics"));
        }
        if left_out > 0 {
            words.push(format!(
                "{left_out} samples were left out, because more than {SERIES_MAX} series are not \
                 kept: name those you need in `keep`"
            ));
        }
        if !words.is_empty() {
            self.say(format!("metrics of {}: {}", self.source.authority, words.join("; ")));
        }
    }

    fn say(&self, words: String) {
        // A run that no longer listens is over.
        let _ = self.out.send(Reading::Trouble(words));
    }
}
