//! One whole run of a scenario, from a target that is ready to a run directory that is written.

use crate::cli::EngineArgs;
use crate::command::check;
use crate::failure::Failure;
use crate::governed::Governed;
use crate::host;
use crate::load::Loaded;
use crate::metrics;
use crate::progress::Live;
use crate::site::{self, Site};
use engine::clock::{self, Clock};
use engine::limits;
use engine::net::real::Route;
use engine::profile::{self, Profile};
use engine::target::{Running, launch};
use engine::{Holding, Job, MetricSource, Progress, Run, Sink, Trust, Watched, Wish};
use model::{Interval, MetricSample, Options, ProbeSample, Record, Tick, What};
use results::run::{CRIPPLED, Generator, INTERRUPTED, Manifest, Status, TargetFacts, iso_utc};
use results::{Error, RunWriter};
use sha2::{Digest, Sha256};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bits of a run's number in its stamps.
const RUN_BITS: u32 = 18;

/// How runs are carried out, whatever is run.
pub(crate) struct Setting<'a> {
    /// Threads, processes, certificates, permissions.
    pub(crate) engine: &'a EngineArgs,
    /// Set by a signal: the run is to end.
    pub(crate) interrupted: Arc<AtomicBool>,
    exe: PathBuf,
}

impl<'a> Setting<'a> {
    /// Finds this program and begins to watch for signals.
    pub(crate) fn new(engine: &'a EngineArgs) -> Result<Setting<'a>, Failure> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, interrupted.clone())
                .and_then(|_| signal_hook::flag::register(signal, interrupted.clone()))
                .map_err(|error| {
                    Failure::unmeasured(format!("cannot watch for signals: {error}"))
                })?;
        }
        let exe = std::env::current_exe()
            .map_err(|error| Failure::unmeasured(format!("cannot find this program: {error}")))?;
        Ok(Setting { engine, interrupted, exe })
    }

    /// This program.
    pub(crate) fn exe(&self) -> &Path {
        &self.exe
    }

    /// Whether a signal has come.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// Runs a scenario and writes it down in `dir`. Gives back why it was aborted; empty if it came to
/// its end.
pub(crate) fn carry_out(
    loaded: &Loaded,
    dir: &Path,
    setting: &Setting<'_>,
    governed: Option<&mut Governed>,
) -> Result<String, Failure> {
    refuse_unfit(loaded, &setting.engine.i_am_allowed_to_load)?;
    let allowed = &setting.engine.i_am_allowed_to_load;
    let mut sources = metrics::elsewhere(&loaded.plan, &loaded.site, allowed)?;
    let mut target = Target::ready(loaded, setting)?;
    sources.extend(metrics::of_target(&loaded.plan, target.running.as_ref())?);
    let run = prepare(loaded, setting, &target, sources)?;
    let manifest = manifest(loaded, &target, &run);
    let writer = RunWriter::create(dir, manifest, &loaded.text, &loaded.plan).map_err(unwritten)?;
    watch_over(run, writer, &mut target, setting, governed)
}

/// Where results go unless the user says otherwise: `runs/NAME-TIME`.
pub(crate) fn default_dir(name: &str) -> PathBuf {
    let time: String = iso_utc(clock::unix_seconds() * 1_000)
        .chars()
        .filter_map(|c| match c {
            '-' | ':' | 'Z' => None,
            'T' => Some('-'),
            c => Some(c),
        })
        .collect();
    PathBuf::from("runs").join(format!("{name}-{time}"))
}

/// A target that is ready to be loaded.
struct Target {
    running: Option<Running>,
    url: String,
    endpoints: Vec<SocketAddr>,
    options: Options,
}

impl Target {
    fn ready(loaded: &Loaded, setting: &Setting<'_>) -> Result<Target, Failure> {
        let (given, script) = (&loaded.plan.target.options, loaded.plan.script.as_ref());
        let options = |from_target: &Options| {
            site::options(given, &loaded.site, loaded.protocol, from_target, script)
        };
        match &loaded.site {
            Site::Own { spec, knobs } => {
                // Mistakes in options are told before anything is started.
                options(&Options::new())?;
                let mut spec = spec.clone();
                if profile::wants_node(&loaded.plan) {
                    let options = spec.env.entry("NODE_OPTIONS".into()).or_default();
                    *options = format!("{options} {}", profile::NODE_OPTIONS);
                }
                let running = launch(&spec, knobs, &setting.exe, &Clock::start())
                    .map_err(Failure::unmeasured)?;
                let options = options(&running.options)?;
                let (url, endpoints) = (running.url.clone(), running.endpoints.clone());
                Ok(Target { running: Some(running), url, endpoints, options })
            }
            Site::Elsewhere { url } => {
                let options = options(&Options::new())?;
                let endpoints = site::addresses(url, &setting.engine.i_am_allowed_to_load)?;
                Ok(Target { running: None, url: url.clone(), endpoints, options })
            }
        }
    }
}

/// Stops before it begins what could not be measured anyway.
fn refuse_unfit(loaded: &Loaded, allowed: &[String]) -> Result<(), Failure> {
    let unfit: Vec<String> = check::look(loaded, allowed)
        .into_iter()
        .filter(|finding| !finding.is_fine)
        .map(|finding| format!("{}\n  {}", finding.what, finding.advice))
        .collect();
    match unfit.is_empty() {
        true => Ok(()),
        false => Err(Failure::unmeasured(unfit.join("\n"))),
    }
}

fn prepare(
    loaded: &Loaded,
    setting: &Setting<'_>,
    target: &Target,
    metrics: Vec<MetricSource>,
) -> Result<Run, Failure> {
    let args = setting.engine;
    let clock = Clock::start();
    let (people_per_process, shards) = engine::run::defaults();
    let trust = match (&args.ca, args.insecure) {
        (Some(file), _) => Trust::File(file.clone()),
        (None, true) => Trust::Anybody,
        (None, false) => Trust::System,
    };
    let watched = Watched::default();
    let pids = target.running.as_ref().map(Running::pids).unwrap_or_default();
    *lock(&watched.target) = pids;
    *lock(&watched.generator) = [std::process::id()].into();
    let job = Job {
        plan: loaded.plan.clone(),
        url: target.url.clone(),
        options: target.options.clone(),
        endpoints: target.endpoints.clone(),
        source_addresses: Route::loopback_sources(&target.endpoints, loaded.plan.people()),
        trust,
        folder: loaded.folder.clone(),
        run: run_number(&clock),
        epoch_ns: clock.epoch_ns(),
        board: String::new(),
        sources: 0,
    };
    Ok(Run {
        job,
        clock,
        shards: args.shards.unwrap_or(shards).max(1),
        people_per_process: args.people_per_process.unwrap_or(people_per_process).max(1),
        exe: setting.exe.clone(),
        protocols: protocols::protocol,
        watched,
        metrics,
        allowed: args.i_am_allowed_to_load.clone(),
        stop: Arc::default(),
    })
}

fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A number that differs from run to run, so that old messages are not taken for new ones.
fn run_number(clock: &Clock) -> u32 {
    let mix = clock.epoch_ns() ^ clock::unix_seconds() << 20 ^ u64::from(std::process::id()) << 40;
    (model::Rng::new(mix, 0).u64() >> (64 - RUN_BITS)) as u32
}

fn manifest(loaded: &Loaded, target: &Target, run: &Run) -> Manifest {
    let started_unix_ms = clock::unix_seconds() * 1_000;
    let hash = Sha256::digest(loaded.text.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let running = target.running.as_ref();
    let processes = running.map(Running::pids).unwrap_or_default();
    Manifest {
        name: loaded.plan.name.clone(),
        about: loaded.plan.about.clone(),
        throng: env!("CARGO_PKG_VERSION").into(),
        started: iso_utc(started_unix_ms),
        started_unix_ms,
        seed: loaded.plan.seed,
        scale: loaded.plan.scale,
        scenario_hash: format!("sha256:{hash}"),
        command: std::env::args().collect(),
        target: TargetFacts {
            name: loaded.plan.target.name.clone(),
            version: running.map_or_else(String::new, |running| running.version.clone()),
            protocol: loaded.plan.protocol.clone(),
            options: loaded.plan.target.options.clone(),
            processes: processes.iter().map(u32::to_string).collect(),
            descriptors_max: processes
                .iter()
                .filter_map(|pid| limits::descriptors_of(*pid))
                .min()
                .unwrap_or(0),
        },
        host: host::facts(),
        generator: Generator { shards: run.shards.into(), processes: run.processes() as u32 },
        ..Manifest::default()
    }
}

/// Carries the plan out, and writes down everything on the way.
fn watch_over(
    run: Run,
    writer: RunWriter,
    target: &mut Target,
    setting: &Setting<'_>,
    governed: Option<&mut Governed>,
) -> Result<String, Failure> {
    let (clock, stop) = (run.clock, run.stop.clone());
    let mut scribe = Scribe {
        writer,
        live: Live::new(!setting.engine.quiet),
        target: target.running.as_mut(),
        governed,
        died: None,
        error: None,
        interrupted: &setting.interrupted,
        stop,
        clock,
    };
    let (ending, profiles) = run.carry_out(&mut scribe).map_err(Failure::unmeasured)?;
    let end = clock.now();
    // Everybody may have been sent away by a death that no probe has seen yet.
    scribe.look_after_target();
    scribe.ask_target();
    profiles.finish(&mut scribe);
    scribe.live.end();
    let Scribe { writer, died, error, .. } = scribe;
    if let Some(error) = error {
        return Err(unwritten(error));
    }
    let (status, reason) = match (died, ending) {
        (Some(words), _) => (Status::Aborted, words),
        (None, engine::Ending::Finished) => (Status::Finished, String::new()),
        (None, engine::Ending::Interrupted) => (Status::Aborted, INTERRUPTED.into()),
        (None, engine::Ending::Crippled) => (Status::Aborted, CRIPPLED.into()),
    };
    writer.finish(status, &reason, end).map_err(unwritten)?;
    Ok(reason)
}

/// Writes a run down, and watches over its target.
struct Scribe<'a> {
    writer: RunWriter,
    live: Live,
    target: Option<&'a mut Running>,
    governed: Option<&'a mut Governed>,
    died: Option<String>,
    error: Option<Error>,
    interrupted: &'a AtomicBool,
    /// Ends this run.
    stop: Arc<AtomicBool>,
    clock: Clock,
}

impl Scribe<'_> {
    /// A run that cannot be written down is not worth going on with.
    fn keep(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.stop.store(true, Ordering::Relaxed);
            self.error.get_or_insert(error);
        }
    }

    /// Notices a target that has ended by itself.
    fn look_after_target(&mut self) {
        let died = self.target.as_mut().and_then(|target| target.died());
        if let Some(words) = died.filter(|_| self.died.is_none()) {
            self.stop.store(true, Ordering::Relaxed);
            self.record(&Record {
                at: self.clock.now(),
                what: What::Target { detail: words.clone() },
            });
            self.died = Some(words);
        }
    }

    /// Writes down what the target counted itself.
    fn ask_target(&mut self) {
        let stats = self.target.as_ref().map(|target| target.stats()).unwrap_or_default();
        let words: Vec<String> =
            stats.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if !words.is_empty() {
            let detail = format!("counted by the target itself: {}", words.join(", "));
            self.record(&Record { at: self.clock.now(), what: What::Target { detail } });
        }
    }
}

impl Sink for Scribe<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.live.interval(interval);
        if let Some(governed) = &mut self.governed {
            governed.interval(interval);
        }
        let result = self.writer.interval(interval);
        self.keep(result);
    }

    fn probe(&mut self, sample: &ProbeSample) {
        if let Some(governed) = &mut self.governed {
            governed.probe(sample);
        }
        let result = self.writer.probe(sample);
        self.keep(result);
        self.look_after_target();
    }

    fn metrics(&mut self, samples: &[MetricSample]) {
        if let Some(governed) = &mut self.governed {
            governed.metrics(samples);
        }
        let result = self.writer.metrics(samples);
        self.keep(result);
    }

    fn record(&mut self, record: &Record) {
        let result = self.writer.record(record);
        self.keep(result);
    }

    fn profile(&mut self, profile: &Profile) {
        let result = self.writer.profile(&profile.phase, &profile.name, &profile.folded);
        self.keep(result);
    }

    fn govern(&mut self, now: Tick, holding: &Holding<'_>) -> Wish {
        match &mut self.governed {
            Some(governed) => governed.govern(now, holding),
            None => Wish::AsPlanned,
        }
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        if self.interrupted.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.live.progress(progress);
    }
}

fn unwritten(error: Error) -> Failure {
    Failure::unmeasured(error.to_string())
}
