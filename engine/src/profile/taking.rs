//! A profile being taken: a profiler at work on processes, or a URL being asked.

use super::fold::Folds;
use super::{fetch, pprof, script, tool};
use crate::clock::Clock;
use model::{ProfilePlan, Profiler, Tick};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a profiler may take to end once it is told to.
const STOP_WITHIN_NS: u64 = 15_000_000_000;
/// How long making sense of samples may take.
const SCRIPT_WITHIN: Duration = Duration::from_secs(120);
/// How much longer than it was asked to look a URL may take.
const ANSWER_WITHIN_NS: u64 = 20_000_000_000;
/// How long after its deadline the thread that asks a URL is waited for.
const GRACE: Duration = Duration::from_secs(1);

/// A profile being taken.
pub(super) enum Taking {
    Samples(Vec<Sampler>),
    Url { answer: Receiver<Result<Vec<u8>, String>>, stop: Arc<AtomicBool>, until: Tick },
}

/// One profiler process.
pub(super) struct Sampler {
    child: Child,
    /// The name of the process it looks at.
    process: String,
    data: PathBuf,
    words: PathBuf,
    told_to_stop: Option<Tick>,
    has_ended: bool,
    was_killed: bool,
}

impl Taking {
    /// Starts the profilers for these processes.
    pub(super) fn sample(
        profile: &ProfilePlan,
        pids: &[u32],
        (folder, number): (&Path, usize),
    ) -> Result<Taking, String> {
        // py-spy looks at one process, perf at all at once.
        let parts: Vec<&[u32]> = match profile.profiler {
            Profiler::PySpy => pids.chunks(1).collect(),
            _ => vec![pids],
        };
        let mut samplers = Vec::new();
        for (part, pids) in parts.into_iter().enumerate() {
            let data = folder.join(format!("{number}-{part}.data"));
            let words = folder.join(format!("{number}-{part}.words"));
            let mut command = tool::record(profile, pids, &data)?;
            let started = tool::prepare(&mut command, &words).and_then(|()| command.spawn());
            match started {
                Ok(child) => samplers.push(Sampler {
                    child,
                    process: process_name(pids[0]),
                    data,
                    words,
                    told_to_stop: None,
                    has_ended: false,
                    was_killed: false,
                }),
                Err(error) => {
                    drop(samplers);
                    return Err(format!("cannot be started: {error}"));
                }
            }
        }
        Ok(Taking::Samples(samplers))
    }

    /// Asks a URL, in a thread of its own.
    pub(super) fn ask(
        url: &str,
        allowed: &[String],
        length_ns: u64,
        clock: Clock,
    ) -> Result<Taking, String> {
        let (sender, answer) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let seconds = length_ns.div_ceil(1_000_000_000);
        let until = Tick(clock.now().0 + seconds * 1_000_000_000 + ANSWER_WITHIN_NS);
        let (url, allowed, stopped) = (url.to_owned(), allowed.to_vec(), stop.clone());
        std::thread::Builder::new()
            .name("pprof".into())
            .spawn(move || {
                // Nobody may be waiting any longer.
                let time = (clock, until);
                let _ = sender.send(fetch::fetch(&url, &allowed, seconds, time, &stopped));
            })
            .map_err(|error| error.to_string())?;
        Ok(Taking::Url { answer, stop, until })
    }

    /// Tells the profilers to come to an end. A URL ends by itself.
    pub(super) fn stop(&mut self, now: Tick) {
        if let Taking::Samples(samplers) = self {
            samplers.iter_mut().for_each(|sampler| sampler.stop(now));
        }
    }

    /// Whether everything has ended; what hangs is killed.
    pub(super) fn has_ended(&mut self, now: Tick) -> bool {
        match self {
            // Whoever collects the answer waits for it.
            Taking::Url { .. } => true,
            Taking::Samples(samplers) => {
                samplers.iter_mut().map(|sampler| sampler.has_ended(now)).fold(true, |a, b| a & b)
            }
        }
    }

    /// Gives up waiting for a URL.
    pub(super) fn abandon(&self) {
        if let Taking::Url { stop, .. } = self {
            stop.store(true, Ordering::Relaxed);
        }
    }

    /// The stacks. To be called when everything has ended; may take long.
    pub(super) fn folds(&mut self, is_perf: bool, clock: Clock) -> Result<Folds, String> {
        match self {
            Taking::Url { answer, until, .. } => {
                let patience = Duration::from_nanos(until.ns_since(clock.now())) + GRACE;
                let bytes =
                    answer.recv_timeout(patience).map_err(|_| "did not answer in time")??;
                pprof::fold(&bytes)
            }
            Taking::Samples(samplers) => {
                let mut folds = Folds::default();
                for sampler in samplers {
                    if sampler.was_killed {
                        return Err("did not end when it was told to, and was killed".into());
                    }
                    match is_perf {
                        true => folds = fold_perf(&sampler.data, &sampler.words)?,
                        false => sampler.fold_py_spy(&mut folds)?,
                    }
                }
                Ok(folds)
            }
        }
    }
}

impl Sampler {
    fn stop(&mut self, now: Tick) {
        if self.told_to_stop.is_none() && !self.has_ended {
            // SAFETY: a signal to a child that has not been waited for: the number is still its.
            unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        }
        self.told_to_stop.get_or_insert(now);
    }

    fn has_ended(&mut self, now: Tick) -> bool {
        if !self.has_ended && !matches!(self.child.try_wait(), Ok(None)) {
            self.has_ended = true;
        }
        let is_hanging = self.told_to_stop.is_some_and(|at| now.ns_since(at) > STOP_WITHIN_NS);
        if is_hanging && !self.has_ended {
            self.end();
            self.was_killed = true;
        }
        self.has_ended
    }

    /// Kills it.
    fn end(&mut self) {
        // It may just have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.has_ended = true;
    }

    fn fold_py_spy(&self, folds: &mut Folds) -> Result<(), String> {
        let file = File::open(&self.data).map_err(|_| tool::last_words(&self.words))?;
        script::py_spy(BufReader::new(file), &self.process, folds).map_err(|e| e.to_string())
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end();
        }
    }
}

/// Lets `perf` tell what it has seen, within a bound.
fn fold_perf(data: &Path, words: &Path) -> Result<Folds, String> {
    if fs::metadata(data).map_or(true, |file| file.len() == 0) {
        return Err(match fs::metadata(words).is_ok_and(|file| file.len() > 0) {
            true => tool::last_words(words),
            false => "the time was too short for it to begin".into(),
        });
    }
    let mut command = tool::script(data);
    let complaint = data.with_extension("script-words");
    tool::prepare(&mut command, &complaint).map_err(|error| error.to_string())?;
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let stdout = child.stdout.take().ok_or("says nothing")?;
    let (sender, folded) = channel();
    let reader = std::thread::Builder::new().name("perf script".into()).spawn(move || {
        // Nobody may be waiting any longer.
        let _ = sender.send(script::perf(BufReader::new(stdout)));
    });
    let result = reader
        .map_err(|error| error.to_string())
        .and_then(|_| folded.recv_timeout(SCRIPT_WITHIN).map_err(|_| too_long()))
        .and_then(|folds| folds.map_err(|error| error.to_string()));
    // It has ended or takes too long.
    let _ = child.kill();
    let _ = child.wait();
    match result {
        Ok(folds) if folds.is_empty() && fs::metadata(&complaint).is_ok_and(|f| f.len() > 0) => {
            Err(format!("saw nothing; `perf script` says: {}", tool::last_words(&complaint)))
        }
        result => result,
    }
}

fn too_long() -> String {
    format!("`perf script` needs more than {} s for the samples", SCRIPT_WITHIN.as_secs())
}

fn process_name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} ({pid})", name.trim())
}
