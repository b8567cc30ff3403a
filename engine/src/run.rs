//! A run from its first order to its last interval: the one place where shards, workers, probes
//! and the conductor meet.

use crate::board::Board;
use crate::clock::Clock;
use crate::crew::{Crew, Job, Protocols};
use crate::limits;
use crate::population::{Holding, Wish};
use crate::probe::{Probe, Watched};
use crate::profile::{Profile, Profiles};
use crate::scrape::{MetricSource, Reading, Scraper};
use crate::shard::{Dispatch, Order};
use crate::timeline::{Conductor, Step};
use crate::worker::Worker;
use model::{Interval, MetricSample, ProbeSample, Record, SourceId, Tick, What};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Seconds an interval waits for shards that have not reported it.
const STRAGGLERS_S: u32 = 5;
/// How long shards may take to send everybody away.
const FAREWELL: Duration = Duration::from_secs(20);
/// Longest time between two looks whether the farewell is over.
const TURN: Duration = Duration::from_millis(10);

/// Where what happens in a run goes.
pub trait Sink {
    /// A second is over, all shards together.
    fn interval(&mut self, interval: &Interval);
    /// The processes and the machine have been read.
    fn probe(&mut self, sample: &ProbeSample);
    /// A source of metrics has been read.
    fn metrics(&mut self, samples: &[MetricSample]);
    /// Something happened.
    fn record(&mut self, record: &Record);
    /// A profile was taken.
    fn profile(&mut self, profile: &Profile);
    /// Called every turn or so: how things stand.
    fn progress(&mut self, progress: &Progress<'_>);
    /// Called every turn while a population is held, behind the intervals and readings of that
    /// turn: whoever governs the population says here what becomes of it.
    fn govern(&mut self, _now: Tick, _holding: &Holding<'_>) -> Wish {
        Wish::AsPlanned
    }
}

/// How things stand.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Since the run's epoch.
    pub now: Tick,
    /// The phase under way.
    pub phase: Option<&'a str>,
    /// Its place in the plan and how many there are.
    pub place: (usize, usize),
}

/// What a run is made of.
pub struct Run {
    /// What every process needs; its board and sources are filled in here.
    pub job: Job,
    /// The clock, whose epoch is the run's.
    pub clock: Clock,
    /// Shards in all; at least one for each process.
    pub shards: SourceId,
    /// People one process may hold.
    pub people_per_process: u64,
    /// The program to start workers with.
    pub exe: PathBuf,
    /// Finds protocols.
    pub protocols: Protocols,
    /// What the probes watch.
    pub watched: Watched,
    /// Whose metrics are read.
    pub metrics: Vec<MetricSource>,
    /// Hosts outside of private networks that may be asked for profiles.
    pub allowed: Vec<String>,
    /// Set to end the run early.
    pub stop: Arc<AtomicBool>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The plan was carried out.
    Finished,
    /// It was told to stop.
    Interrupted,
    /// A shard was lost: the figures are incomplete.
    Crippled,
}

/// The shards, here or in worker processes.
enum Staff {
    Here(Crew),
    /// Workers, and the board that they open by its path.
    Workers(Vec<Worker>, #[expect(dead_code, reason = "kept so that its path stays")] Board),
}

impl Run {
    /// How many processes the people need.
    pub fn processes(&self) -> usize {
        let people = u64::from(self.job.plan.people());
        people.div_ceil(self.people_per_process.max(1)).max(1) as usize
    }

    /// Carries out the plan, and gives back the profiles, whose samples are still to be made sense
    /// of. The error is advice for the user.
    pub fn carry_out(mut self, sink: &mut dyn Sink) -> Result<(Ending, Profiles), String> {
        let processes = self.processes();
        self.shards = self.shards.max(processes as SourceId);
        self.job.sources = self.shards;
        let rooms = self.job.plan.rooms.len();
        let board = Board::new(rooms, self.shards.into())
            .map_err(|error| format!("cannot make the board of {rooms} rooms: {error}"))?;
        self.job.board = board.path();
        let (sender, dispatches) = channel();
        let (probe_sender, samples) = channel();
        let mut staff = self.hire(board, processes, &sender)?;
        drop(sender);
        if let (Staff::Workers(workers, _), Ok(mut pids)) = (&staff, self.watched.generator.lock())
        {
            pids.extend(workers.iter().map(Worker::pid));
        }
        let probe = Probe::start(self.clock, self.watched.clone(), probe_sender)
            .map_err(|error| format!("cannot start the probe: {error}"))?;
        let (reading_sender, readings) = channel();
        let scraper = Scraper::start(self.clock, std::mem::take(&mut self.metrics), reading_sender)
            .map_err(|error| format!("cannot start reading metrics: {error}"))?;
        let probes = Probes { samples, readings };
        let plan = &self.job.plan;
        let mut profiles =
            Profiles::new(plan, self.clock, self.watched.clone(), self.allowed.clone());
        let ending = self.conduct(&mut staff, (&dispatches, &probes), &mut profiles, sink);
        probe.stop();
        scraper.stop();
        probes.pass_on(self.clock.now(), sink);
        for words in staff.join() {
            sink.record(&remark(self.clock.now(), words));
        }
        Ok((ending, profiles))
    }

    fn hire(
        &self,
        board: Board,
        processes: usize,
        out: &Sender<Dispatch>,
    ) -> Result<Staff, String> {
        if processes == 1 {
            let all = 0..self.shards;
            return self.job.clone().start(board, all, self.protocols, out).map(Staff::Here);
        }
        let share = |k: usize| (usize::from(self.shards) * k / processes) as SourceId;
        let start = |k| Worker::start(&self.exe, &self.job, share(k)..share(k + 1), out.clone());
        let workers: Result<Vec<Worker>, _> = (0..processes).map(start).collect();
        // The board stays with the parent: workers open it by its path.
        workers
            .map(|workers| Staff::Workers(workers, board))
            .map_err(|error| format!("cannot start a worker: {error}"))
    }

    fn conduct(
        &self,
        staff: &mut Staff,
        (dispatches, probes): (&Receiver<Dispatch>, &Probes),
        profiles: &mut Profiles,
        sink: &mut dyn Sink,
    ) -> Ending {
        let mut conductor = Conductor::new(Arc::new(self.job.plan.clone()), self.shards);
        let mut collector = Collector::new(self.shards.into());
        let mut now = self.clock.now();
        let ending = loop {
            let pause = Duration::from_nanos(conductor.next_due(now).ns_since(now));
            match dispatches.recv_timeout(pause) {
                Ok(dispatch) => collector.take(dispatch, &mut conductor, sink),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ending::Crippled,
            }
            for dispatch in dispatches.try_iter() {
                collector.take(dispatch, &mut conductor, sink);
            }
            now = self.clock.now();
            probes.pass_on(now, sink);
            if let Some(wish) = conductor.holding().map(|holding| sink.govern(now, &holding)) {
                conductor.govern(wish);
            }
            carry_out(conductor.steps(now), staff, sink);
            for words in profiles.turn(now, conductor.current()) {
                sink.record(&remark(now, words));
            }
            let phase = conductor.phase().map(|phase| phase.name.as_str());
            sink.progress(&Progress { now, phase, place: conductor.place() });
            if conductor.is_finished() {
                break Ending::Finished;
            }
            if self.stop.load(Ordering::Relaxed) {
                break Ending::Interrupted;
            }
            if collector.has_ended() {
                break Ending::Crippled;
            }
        };
        profiles.stop(self.clock.now());
        staff.order(&Order::Stop);
        self.say_farewell(dispatches, &mut conductor, &mut collector, sink);
        carry_out(conductor.finish(self.clock.now()), staff, sink);
        collector.flush_all(sink);
        match collector.is_whole() {
            true => ending,
            false => Ending::Crippled,
        }
    }

    /// Takes in the last words of all shards.
    fn say_farewell(
        &self,
        dispatches: &Receiver<Dispatch>,
        conductor: &mut Conductor,
        collector: &mut Collector,
        sink: &mut dyn Sink,
    ) {
        let deadline = self.clock.now() + FAREWELL;
        while !collector.is_over() && self.clock.now() < deadline {
            match dispatches.recv_timeout(TURN) {
                Ok(dispatch) => collector.take(dispatch, conductor, sink),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// What is read on threads beside the run.
struct Probes {
    samples: Receiver<ProbeSample>,
    readings: Receiver<Reading>,
}

impl Probes {
    fn pass_on(&self, now: Tick, sink: &mut dyn Sink) {
        self.samples.try_iter().for_each(|sample| sink.probe(&sample));
        for reading in self.readings.try_iter() {
            match reading {
                Reading::Samples(samples) => sink.metrics(&samples),
                Reading::Trouble(detail) => sink.record(&remark(now, detail)),
            }
        }
    }
}

impl Staff {
    fn order(&mut self, order: &Order) {
        match self {
            Staff::Here(crew) => crew.order(order),
            Staff::Workers(workers, _) => workers.iter_mut().for_each(|worker| worker.order(order)),
        }
    }

    /// Waits until all have ended; gives how those did that did not end well.
    fn join(self) -> Vec<String> {
        match self {
            Staff::Here(crew) => {
                crew.join();
                Vec::new()
            }
            Staff::Workers(workers, _) => workers.into_iter().filter_map(Worker::join).collect(),
        }
    }
}

fn carry_out(steps: Vec<Step>, staff: &mut Staff, sink: &mut dyn Sink) {
    for step in steps {
        match step {
            Step::Order(order) => staff.order(&order),
            Step::Record(record) => sink.record(&record),
        }
    }
}

/// Merges the shards' intervals into the run's, second by second.
struct Collector {
    sources: u64,
    /// Shards that have said their last words.
    ended: BTreeSet<SourceId>,
    /// Shards that are gone without them.
    lost: BTreeSet<SourceId>,
    seconds: BTreeMap<u32, (Interval, u64)>,
}

impl Collector {
    fn new(sources: u64) -> Collector {
        let (ended, lost) = (BTreeSet::new(), BTreeSet::new());
        Collector { sources, ended, lost, seconds: BTreeMap::new() }
    }

    /// Whether a shard is no longer there, for whatever reason.
    fn has_ended(&self) -> bool {
        !self.ended.is_empty() || !self.lost.is_empty()
    }

    /// Whether nothing more will be heard.
    fn is_over(&self) -> bool {
        (self.ended.len() + self.lost.len()) as u64 >= self.sources
    }

    /// Whether every shard has said everything.
    fn is_whole(&self) -> bool {
        self.ended.len() as u64 >= self.sources
    }

    fn take(&mut self, dispatch: Dispatch, conductor: &mut Conductor, sink: &mut dyn Sink) {
        match dispatch {
            Dispatch::Status(status) => conductor.hear(*status),
            Dispatch::Ended { source } => drop(self.ended.insert(source)),
            Dispatch::Lost { source } => drop(self.lost.insert(source)),
            Dispatch::Interval(interval) => {
                let second = interval.second;
                let entry =
                    self.seconds.entry(second).or_insert_with(|| (Interval::new(second), 0));
                entry.0.merge(&interval);
                entry.1 += 1;
                self.flush(second, sink);
            }
        }
    }

    /// Passes on the seconds that are complete, or too old to wait for, in order.
    fn flush(&mut self, newest: u32, sink: &mut dyn Sink) {
        while let Some(entry) = self.seconds.first_entry() {
            let is_old = entry.key() + STRAGGLERS_S < newest;
            if entry.get().1 < self.sources && !is_old {
                return;
            }
            sink.interval(&entry.remove().0);
        }
    }

    fn flush_all(&mut self, sink: &mut dyn Sink) {
        for (interval, _) in std::mem::take(&mut self.seconds).into_values() {
            sink.interval(&interval);
        }
    }
}

/// A remark of the generator about itself.
pub fn remark(now: Tick, detail: impl Into<String>) -> Record {
    Record { at: now, what: What::Generator { detail: detail.into() } }
}

/// People one process may hold, and shards to use, unless the user says otherwise: half of the
/// processors are left to the target.
pub fn defaults() -> (u64, SourceId) {
    let shards = (limits::processors() / 2).clamp(1, 64);
    (limits::connections_per_process(), shards as SourceId)
}
