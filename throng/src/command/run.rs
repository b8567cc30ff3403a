//! `throng run`: from a scenario to a report.

use crate::cli::RunArgs;
use crate::command::check;
use crate::failure::{Ending, Failure};
use crate::host;
use crate::load::{Loaded, load};
use crate::progress::Live;
use crate::site::{self, Site};
use engine::clock::{self, Clock};
use engine::net::real::Route;
use engine::profile::{self, Profile};
use engine::target::{Running, launch};
use engine::{Job, Progress, Run, Sink, Trust, Watched};
use model::{Interval, Options, ProbeSample, Record, What};
use results::run::{Generator, Manifest, Status, TargetFacts, iso_utc};
use results::{Analysis, Error, RunWriter};
use sha2::{Digest, Sha256};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bits of a run's number in its stamps.
const RUN_BITS: u32 = 18;

/// Runs a scenario and reports.
pub(crate) fn run(args: &RunArgs) -> Ending {
    let loaded = load(&args.scenario)?;
    refuse_unfit(&loaded, args)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .map_err(|error| Failure::unmeasured(format!("cannot watch for signals: {error}")))?;
    }
    let exe = std::env::current_exe()
        .map_err(|error| Failure::unmeasured(format!("cannot find this program: {error}")))?;
    let mut target = Target::ready(&loaded, args, &exe)?;
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&loaded.plan.name));
    let run = prepare(&loaded, args, &target, exe, stop.clone())?;
    let manifest = manifest(&loaded, &target, &run, args);
    let writer =
        RunWriter::create(&dir, manifest, &loaded.text, &loaded.plan).map_err(unwritten)?;
    let analysis = carry_out(run, writer, &mut target, args, &stop)?;
    drop(target);
    results::draw(&dir).map_err(unwritten)?;
    print(&analysis, &dir, args.json)?;
    Ok(results::exit_code(analysis.summary.verdict))
}

/// The whole life of a worker process.
pub(crate) fn worker() -> Ending {
    engine::worker::serve(protocols::protocol).map_err(Failure::unmeasured)?;
    Ok(0)
}

/// Prints the summary, for people or for machines.
pub(crate) fn print(analysis: &Analysis, dir: &Path, json: bool) -> Result<(), Failure> {
    match json {
        false => print!("{}", results::summary_text(&analysis.summary, dir)),
        true => {
            let text = serde_json::to_string_pretty(&analysis.summary);
            println!("{}", text.map_err(|error| Failure::usage(error.to_string()))?);
        }
    }
    Ok(())
}

/// A target that is ready to be loaded.
struct Target {
    running: Option<Running>,
    url: String,
    endpoints: Vec<SocketAddr>,
    options: Options,
}

impl Target {
    fn ready(loaded: &Loaded, args: &RunArgs, exe: &Path) -> Result<Target, Failure> {
        let given = &loaded.plan.target.options;
        match &loaded.site {
            Site::Own { spec, knobs } => {
                // Mistakes in options are told before anything is started.
                site::options(given, &loaded.site, loaded.protocol, &Options::new())?;
                let mut spec = spec.clone();
                if profile::wants_node(&loaded.plan) {
                    let options = spec.env.entry("NODE_OPTIONS".into()).or_default();
                    *options = format!("{options} {}", profile::NODE_OPTIONS);
                }
                let running =
                    launch(&spec, knobs, exe, &Clock::start()).map_err(Failure::unmeasured)?;
                let options =
                    site::options(given, &loaded.site, loaded.protocol, &running.options)?;
                let (url, endpoints) = (running.url.clone(), running.endpoints.clone());
                Ok(Target { running: Some(running), url, endpoints, options })
            }
            Site::Elsewhere { url } => {
                let options = site::options(given, &loaded.site, loaded.protocol, &Options::new())?;
                let endpoints = site::addresses(url, &args.i_am_allowed_to_load)?;
                Ok(Target { running: None, url: url.clone(), endpoints, options })
            }
        }
    }
}

/// Stops before it begins what could not be measured anyway.
fn refuse_unfit(loaded: &Loaded, args: &RunArgs) -> Result<(), Failure> {
    let unfit: Vec<String> = check::look(loaded, &args.i_am_allowed_to_load)
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
    args: &RunArgs,
    target: &Target,
    exe: PathBuf,
    stop: Arc<AtomicBool>,
) -> Result<Run, Failure> {
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
        exe,
        protocols: protocols::protocol,
        watched,
        allowed: args.i_am_allowed_to_load.clone(),
        stop,
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

fn manifest(loaded: &Loaded, target: &Target, run: &Run, args: &RunArgs) -> Manifest {
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
        scale: args.scenario.scale,
        scenario_hash: format!("sha256:{hash}"),
        command: std::env::args().collect(),
        target: TargetFacts {
            name: loaded.plan.target.name.clone(),
            version: running.map_or_else(String::new, |running| running.version.clone()),
            protocol: loaded.plan.protocol.clone(),
            options: loaded.plan.target.options.clone(),
            processes: processes.iter().map(u32::to_string).collect(),
        },
        host: host::facts(),
        generator: Generator { shards: run.shards.into(), processes: run.processes() as u32 },
        ..Manifest::default()
    }
}

fn default_dir(name: &str) -> PathBuf {
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

/// Carries the plan out, and writes down everything on the way.
fn carry_out(
    run: Run,
    writer: RunWriter,
    target: &mut Target,
    args: &RunArgs,
    stop: &AtomicBool,
) -> Result<Analysis, Failure> {
    let clock = run.clock;
    let mut scribe = Scribe {
        writer,
        live: Live::new(!args.quiet),
        target: target.running.as_mut(),
        died: None,
        error: None,
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
        (None, engine::Ending::Interrupted) => (Status::Aborted, "interrupted by a signal".into()),
        (None, engine::Ending::Crippled) => {
            (Status::Aborted, "a part of the generator was lost".into())
        }
    };
    writer.finish(status, &reason, end).map_err(unwritten)
}

/// Writes a run down, and watches over its target.
struct Scribe<'a> {
    writer: RunWriter,
    live: Live,
    target: Option<&'a mut Running>,
    died: Option<String>,
    error: Option<Error>,
    stop: &'a AtomicBool,
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
        let result = self.writer.interval(interval);
        self.keep(result);
    }

    fn probe(&mut self, sample: &ProbeSample) {
        let result = self.writer.probe(sample);
        self.keep(result);
        self.look_after_target();
    }

    fn record(&mut self, record: &Record) {
        let result = self.writer.record(record);
        self.keep(result);
    }

    fn profile(&mut self, profile: &Profile) {
        let result = self.writer.profile(&profile.phase, &profile.name, &profile.folded);
        self.keep(result);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.live.progress(progress);
    }
}

fn unwritten(error: Error) -> Failure {
    Failure::unmeasured(error.to_string())
}
