//! The conductor: walks through the plan's phases by what the shards report. Pure: it is told the
//! time and what happened, and answers with orders and records.

use crate::population::{Holding, Population, Wish};
use crate::shard::{Order, Status};
use model::{Edge, Phase, PhaseKind, Plan, Record, RunPhase, SourceId, Tally, Tick, Until, What};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long before its beginning a phase is announced to the shards, so that none is late.
const LEAD_NS: u64 = 20_000_000;
/// Longest time between two looks at the plan.
const LOOK_NS: u64 = 100_000_000;
/// As [`LOOK_NS`] while a population is held, which moves one person at a time.
const LOOK_CLOSELY_NS: u64 = 10_000_000;
/// How often a phase's tally is recorded while it changes.
const TALLY_EVERY_NS: u64 = 1_000_000_000;

/// What the conductor wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Tell all shards.
    Order(Order),
    /// Write down.
    Record(Record),
}

/// Walks through a plan.
pub struct Conductor {
    plan: Arc<Plan>,
    /// By phase, then by shard.
    tallies: Vec<BTreeMap<u16, Tally>>,
    gates: BTreeMap<u16, BTreeMap<(u32, u32), u64>>,
    opened: Vec<(u32, u32)>,
    begun: Vec<Option<Tick>>,
    /// When the phase under way ends at the latest.
    ends: Tick,
    /// Of the phases that hold one and have begun.
    populations: BTreeMap<usize, Population>,
    sources: u64,
    current: usize,
    is_finished: bool,
    recorded: Vec<Recorded>,
    steps: Vec<Step>,
}

/// What has been written down of a phase.
#[derive(Clone, Debug, Default)]
struct Recorded {
    tally: Tally,
    at: Tick,
    stages: Vec<(bool, bool)>,
}

impl Conductor {
    /// A conductor of so many shards at the start of the plan.
    pub fn new(plan: Arc<Plan>, sources: SourceId) -> Conductor {
        let phases = plan.phases.len();
        Conductor {
            plan,
            tallies: vec![BTreeMap::new(); phases],
            gates: BTreeMap::new(),
            opened: Vec::new(),
            begun: vec![None; phases],
            ends: Tick::NEVER,
            populations: BTreeMap::new(),
            sources: sources.into(),
            current: 0,
            is_finished: false,
            recorded: vec![Recorded::default(); phases],
            steps: Vec::new(),
        }
    }

    /// A shard has reported.
    pub fn hear(&mut self, status: Status) {
        for (phase, tally) in status.tallies {
            self.tallies[phase as usize].insert(status.source, tally);
        }
        for (phase, standing) in status.populations {
            if let Some(population) = self.populations.get_mut(&(phase as usize)) {
                population.hear(status.source, standing);
            }
        }
        self.gates.insert(status.source, status.gates);
        self.steps.extend(status.records.into_iter().map(Step::Record));
    }

    /// How far a phase has come, all shards together.
    pub fn tally(&self, phase: usize) -> Tally {
        let mut shards = self.tallies[phase].values();
        let mut total = shards.next().cloned().unwrap_or_default();
        shards.for_each(|tally| total.merge(tally));
        total
    }

    /// The phase under way, if any.
    pub fn phase(&self) -> Option<&Phase> {
        self.plan.phases.get(self.current)
    }

    /// The number of the phase under way; how many there are when all are over.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Whether the plan is over and everybody has come to an end.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The population that is held just now, if any.
    pub fn holding(&self) -> Option<Holding<'_>> {
        let population = self.populations.get(&self.current)?;
        let phase = self.phase()?;
        let PhaseKind::Run(run) = &phase.kind else { return None };
        Some(Holding {
            phase: &phase.name,
            begun: population.begun,
            asked: population.asked(),
            present: population.present(),
            most: run.count,
        })
    }

    /// Takes in what whoever governs the population that is held wants of it.
    pub fn govern(&mut self, wish: Wish) {
        if let Some(population) = self.populations.get_mut(&self.current) {
            population.wish = wish;
        }
    }

    /// What is to be done now.
    pub fn steps(&mut self, now: Tick) -> Vec<Step> {
        while self.current < self.plan.phases.len() {
            if self.begun[self.current].is_none() {
                self.begin(now);
            }
            let Some(is_overdue) = self.has_ended(now) else { break };
            self.record(now, self.edge(self.current, Edge::End, is_overdue));
            if let Some(population) = self.populations.get_mut(&self.current) {
                population.is_over = true;
            }
            self.current += 1;
        }
        self.move_populations(now);
        self.open_gates();
        for phase in 0..self.plan.phases.len() {
            self.record_progress(phase, now);
        }
        self.is_finished = self.current == self.plan.phases.len() && self.is_everybody_done();
        std::mem::take(&mut self.steps)
    }

    /// When to ask for steps again if no shard reports before.
    pub fn next_due(&self, now: Tick) -> Tick {
        let look = match self.populations.is_empty() {
            true => LOOK_NS,
            false => LOOK_CLOSELY_NS,
        };
        // What has not begun begins with the next look.
        let is_begun = self.begun.get(self.current).is_none_or(Option::is_some);
        if is_begun { self.ends.min(Tick(now.0 + look)) } else { now }
    }

    /// The place of the phase under way, and how many phases there are.
    pub fn place(&self) -> (usize, usize) {
        ((self.current + 1).min(self.plan.phases.len()), self.plan.phases.len())
    }

    /// Writes the last word on every phase.
    pub fn finish(&mut self, now: Tick) -> Vec<Step> {
        for phase in 0..self.plan.phases.len() {
            self.recorded[phase].at = Tick::ZERO;
            self.record_progress(phase, Tick(now.0 + TALLY_EVERY_NS));
            self.record_last_stages(phase);
        }
        if let Some(phase) = self.phase().filter(|_| self.begun[self.current].is_some()) {
            let what = What::Phase { name: phase.name.clone(), edge: Edge::End, overdue: false };
            self.record(now, what);
        }
        std::mem::take(&mut self.steps)
    }

    fn begin(&mut self, now: Tick) {
        let index = self.current;
        let at = if index == 0 { Tick(now.0 + LEAD_NS) } else { now };
        self.begun[index] = Some(at);
        self.ends = self.latest_end(index, at);
        match &self.plan.phases[index].kind {
            PhaseKind::Mark => {
                let name = self.plan.phases[index].name.clone();
                self.record(now, What::Mark { name });
            }
            PhaseKind::Rest { .. } => self.record(at, self.edge(index, Edge::Begin, false)),
            PhaseKind::Run(run) => {
                if run.hold.is_some() {
                    self.populations.insert(index, Population::new(at));
                }
                self.record(at, self.edge(index, Edge::Begin, false));
                self.steps.push(Step::Order(Order::Begin { phase: index as u32, at }));
            }
        }
    }

    /// Brings every population nearer to what it should be.
    fn move_populations(&mut self, now: Tick) {
        for (&index, population) in &mut self.populations {
            let PhaseKind::Run(run) = &self.plan.phases[index].kind else { continue };
            let after_ns = now.ns_since(population.begun);
            let planned = || run.hold.as_ref().and_then(|hold| hold.population(after_ns));
            let wanted = match population.wish {
                _ if population.is_over => 0,
                Wish::People(people) => people.min(run.count),
                Wish::AsPlanned | Wish::Enough => planned().unwrap_or(0),
            };
            if let Some((people, order)) = population.advance(wanted, &run.pacer, now) {
                let phase = index as u32;
                self.steps.push(Step::Order(Order::Populate { phase, people, order, at: now }));
            }
        }
    }

    fn edge(&self, phase: usize, edge: Edge, overdue: bool) -> What {
        What::Phase { name: self.plan.phases[phase].name.clone(), edge, overdue }
    }

    fn record(&mut self, at: Tick, what: What) {
        self.steps.push(Step::Record(Record { at, what }));
    }

    /// When a phase that begins at `at` ends by its length, or by its deadline.
    fn latest_end(&self, index: usize, at: Tick) -> Tick {
        let ns = match &self.plan.phases[index].kind {
            PhaseKind::Mark => 0,
            PhaseKind::Rest { ns } => *ns,
            PhaseKind::Run(RunPhase { hold: Some(hold), .. }) => hold.ns(),
            PhaseKind::Run(run) => {
                let times = run.pacer.times(run.count, self.plan.seed ^ u64::from(run.first));
                let last = times.last().unwrap_or(Tick::ZERO).0;
                last.saturating_add(run.deadline_ns)
            }
        };
        Tick(at.0.saturating_add(ns))
    }

    /// Whether the phase under way is over, and if so whether by its deadline.
    fn has_ended(&self, now: Tick) -> Option<bool> {
        self.begun[self.current]?;
        let is_due = now >= self.ends;
        match &self.plan.phases[self.current].kind {
            PhaseKind::Mark | PhaseKind::Rest { .. } => is_due.then_some(false),
            PhaseKind::Run(RunPhase { hold: Some(_), .. }) => {
                let wish = self.populations.get(&self.current).map(|population| population.wish);
                (is_due || wish == Some(Wish::Enough)).then_some(false)
            }
            PhaseKind::Run(run) if is_reached(run, &self.tally(self.current)) => Some(false),
            PhaseKind::Run(_) => is_due.then_some(true),
        }
    }

    fn runs(&self) -> impl Iterator<Item = (usize, &RunPhase)> {
        self.plan.phases.iter().enumerate().filter_map(|(index, phase)| match &phase.kind {
            PhaseKind::Run(run) => Some((index, run)),
            _ => None,
        })
    }

    fn is_everybody_done(&self) -> bool {
        self.runs().all(|(index, run)| {
            if run.hold.is_some() {
                let population = self.populations.get(&index);
                return population.is_some_and(|population| population.is_gone(self.sources));
            }
            let tally = self.tally(index);
            let program = &self.plan.crowds[run.crowd as usize].program;
            program.is_endless() || tally.finished + tally.gave_up >= u64::from(run.count)
        })
    }

    /// Opens the gates at which everybody waits who still can.
    fn open_gates(&mut self) {
        let mut waiting: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (gate, count) in self.gates.values().flatten() {
            *waiting.entry(*gate).or_default() += count;
        }
        let ready: Vec<(u32, u32)> = waiting
            .into_iter()
            .filter(|(gate, _)| !self.opened.contains(gate))
            .filter(|((phase, _), count)| {
                let tally = self.tally(*phase as usize);
                let still = tally.asked.saturating_sub(tally.finished + tally.gave_up);
                *count > 0 && *count >= still
            })
            .map(|(gate, _)| gate)
            .collect();
        for (phase, gate) in ready {
            self.opened.push((phase, gate));
            self.steps.push(Step::Order(Order::Open { phase, gate }));
        }
    }

    /// Writes down what is new of a phase: stages that begin or end, and its tally now and then.
    fn record_progress(&mut self, phase: usize, now: Tick) {
        let tally = self.tally(phase);
        if tally == self.recorded[phase].tally || self.tallies[phase].is_empty() {
            return;
        }
        self.recorded[phase].stages.resize(tally.stages.len(), (false, false));
        for (index, stage) in tally.stages.iter().enumerate() {
            let (has_begun, has_ended) = self.recorded[phase].stages[index];
            if let Some(at) = stage.first_in.filter(|_| !has_begun) {
                self.recorded[phase].stages[index].0 = true;
                self.record_stage(phase, &stage.name, Edge::Begin, at);
            }
            let is_held = self.populations.get(&phase).is_some_and(|held| !held.is_over);
            let is_over = stage.left >= tally.asked && tally.asked > 0 && !is_held;
            if let Some(at) = stage.last_out.filter(|_| is_over && !has_ended) {
                self.recorded[phase].stages[index].1 = true;
                self.record_stage(phase, &stage.name, Edge::End, at);
            }
        }
        if now.ns_since(self.recorded[phase].at) >= TALLY_EVERY_NS {
            self.record(now, What::Tally(tally.clone()));
            self.recorded[phase].at = now;
            self.recorded[phase].tally = tally;
        }
    }

    /// Stages that some never reached end with the last who did.
    fn record_last_stages(&mut self, phase: usize) {
        let tally = self.tally(phase);
        for (index, stage) in tally.stages.iter().enumerate() {
            let has_ended = self.recorded[phase].stages.get(index).is_none_or(|stage| stage.1);
            if let Some(at) = stage.last_out.filter(|_| !has_ended) {
                self.record_stage(phase, &stage.name, Edge::End, at);
            }
        }
    }

    fn record_stage(&mut self, phase: usize, stage: &str, edge: Edge, at: Tick) {
        let mark = match (&self.plan.phases[phase].kind, edge) {
            (PhaseKind::Run(run), Edge::Begin) => run.marks.get(stage).cloned(),
            _ => None,
        };
        let name = self.plan.phases[phase].name.clone();
        self.record(at, What::Stage { phase: name, stage: stage.into(), edge, mark });
    }
}

fn is_reached(run: &RunPhase, tally: &Tally) -> bool {
    let count = u64::from(run.count);
    match run.until {
        Until::Arrived => tally.arrived >= count,
        Until::In => tally.entered + tally.turned_back >= count,
        Until::Done => tally.finished + tally.gave_up >= count,
    }
}
