//! Profiles: profilers are started and stopped with the phases of a run, and what they saw becomes
//! folded stacks once the run is over, so that making sense of it costs the target nothing.

mod fetch;
mod fold;
mod pprof;
mod script;
mod taking;
mod tool;

use crate::clock::Clock;
use crate::probe::{Watched, with_children};
use crate::run::Sink;
use model::{Plan, ProfilePlan, Profiler, Subject, Tick};
use std::collections::BTreeSet;
use taking::Taking;
use tool::Scratch;

pub use tool::NODE_OPTIONS;

/// From one look at ending profilers to the next, nanoseconds.
const LOOK_EVERY_NS: u64 = 20_000_000;

/// A profile that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The phase.
    pub phase: String,
    /// What took it, and of whom if not of the target, as in `perf` or `perf-generator`.
    pub name: String,
    /// Folded stacks: a line each, functions from the root on parted by `;`, a space, the count.
    pub folded: String,
}

/// What was looked at before a run, and what to do if it is not enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The profiler.
    pub what: String,
    /// Advice, if it cannot work.
    pub problem: Option<String>,
}

/// Whether the plan's profilers can work here. `is_started`: throng starts the target itself.
/// `allowed`: hosts outside of private networks that may be asked.
pub fn look(plan: &Plan, is_started: bool, allowed: &[String]) -> Vec<Look> {
    let mut looks: Vec<Look> = Vec::new();
    for profile in plan.phases.iter().flat_map(|phase| &phase.profiles) {
        let what = match &profile.profiler {
            Profiler::Pprof { url } => format!("profiler pprof: {url}"),
            profiler => format!("profiler {}", profiler.name()),
        };
        let problem = tool::check(&profile.profiler)
            .and_then(|()| check_subject(profile, is_started, allowed))
            .err();
        let look = Look { what, problem };
        if !looks.contains(&look) {
            looks.push(look);
        }
    }
    looks
}

/// Whether the plan wants the names of functions in Node: the target is to be started with
/// [`NODE_OPTIONS`] then.
pub fn wants_node(plan: &Plan) -> bool {
    let mut profiles = plan.phases.iter().flat_map(|phase| &phase.profiles);
    profiles.any(|profile| profile.profiler == Profiler::Node)
}

fn check_subject(
    profile: &ProfilePlan,
    is_started: bool,
    allowed: &[String],
) -> Result<(), String> {
    if let Profiler::Pprof { url } = &profile.profiler {
        return match is_started {
            true => fetch::address(url, allowed).map(drop),
            false => fetch::reach(url, allowed),
        };
    }
    match profile.of {
        Subject::Target if !is_started => Err(format!(
            "throng does not know the processes of a target that runs already: name one, as in \
             `profile: {{{}: {{of: 1234}}}}`, or ask a pprof URL",
            profile.profiler.name()
        )),
        Subject::Process(pid) if !std::path::Path::new(&format!("/proc/{pid}")).exists() => {
            Err(format!("there is no process {pid}"))
        }
        Subject::Process(pid) if profile.profiler == Profiler::Node => check_node(pid),
        _ => Ok(()),
    }
}

fn check_node(pid: u32) -> Result<(), String> {
    match tool::node_map(pid).exists() {
        true => Ok(()),
        false => Err(format!(
            "process {pid} does not tell the names of its functions: start it with \
             NODE_OPTIONS=\"{NODE_OPTIONS}\""
        )),
    }
}

/// The profiles of a run.
pub struct Profiles {
    clock: Clock,
    watched: Watched,
    allowed: Vec<String>,
    items: Vec<Item>,
    /// Where profilers write.
    scratch: Option<Scratch>,
}

/// A profile of a phase.
struct Item {
    phase: usize,
    phase_name: String,
    plan: ProfilePlan,
    name: String,
    state: State,
}

enum State {
    /// For the phase, which began then.
    Waiting(Option<Tick>),
    Taking(Taking, Tick),
    Ending(Taking),
    /// Failed or handed over.
    Done,
}

impl Profiles {
    /// The profiles of a plan, none of them begun.
    pub(crate) fn new(
        plan: &Plan,
        clock: Clock,
        watched: Watched,
        allowed: Vec<String>,
    ) -> Profiles {
        let mut items: Vec<Item> = Vec::new();
        for (index, phase) in plan.phases.iter().enumerate() {
            for profile in &phase.profiles {
                let base = tool::name(profile);
                let is_taken = |name: &String| {
                    items.iter().any(|item| item.phase == index && item.name == *name)
                };
                let names = (2..).map(|number| format!("{base}-{number}"));
                let name = std::iter::once(base.clone()).chain(names).find(|n| !is_taken(n));
                items.push(Item {
                    phase: index,
                    phase_name: phase.name.clone(),
                    plan: profile.clone(),
                    name: name.unwrap_or(base),
                    state: State::Waiting(None),
                });
            }
        }
        Profiles { clock, watched, allowed, items, scratch: None }
    }

    /// Starts and stops what is due. `current` is the phase under way, behind the last one when
    /// there is none. What comes back are remarks about what failed.
    pub(crate) fn turn(&mut self, now: Tick, current: usize) -> Vec<String> {
        let mut remarks = Vec::new();
        for index in 0..self.items.len() {
            if let Err(why) = self.turn_item(index, now, current) {
                remarks.push(self.items[index].remark(&why));
                self.items[index].state = State::Done;
            }
        }
        remarks
    }

    /// The run is over: tells all profilers to come to an end.
    pub(crate) fn stop(&mut self, now: Tick) {
        for item in &mut self.items {
            if let State::Taking(taking, end) = &mut item.state {
                taking.stop(now);
                *end = now;
            }
        }
    }

    fn turn_item(&mut self, index: usize, now: Tick, current: usize) -> Result<(), String> {
        let item = &mut self.items[index];
        match &mut item.state {
            State::Waiting(_) if current > item.phase => {
                return Err("the phase was over before it could begin".into());
            }
            State::Waiting(begun) if current == item.phase => {
                let begun = *begun.get_or_insert(now);
                if now.ns_since(begun) >= item.plan.after_ns {
                    let length = item.plan.for_ns.unwrap_or(u64::MAX);
                    let end = Tick(now.0.saturating_add(length));
                    let taking = self.start(index)?;
                    self.items[index].state = State::Taking(taking, end);
                }
            }
            State::Taking(taking, end) => {
                let ended_itself = taking.has_ended(now) && matches!(taking, Taking::Samples(_));
                if ended_itself || current > item.phase || now >= *end {
                    taking.stop(now);
                    if let State::Taking(taking, _) =
                        std::mem::replace(&mut item.state, State::Done)
                    {
                        item.state = State::Ending(taking);
                    }
                }
            }
            State::Ending(taking) => drop(taking.has_ended(now)),
            State::Waiting(_) | State::Done => {}
        }
        Ok(())
    }

    fn start(&mut self, index: usize) -> Result<Taking, String> {
        let item = &self.items[index];
        if let Profiler::Pprof { url } = &item.plan.profiler {
            let length = item.plan.for_ns.unwrap_or(model::profile::PPROF_NS);
            return Taking::ask(url, &self.allowed, length, self.clock);
        }
        let pids = self.processes(&item.plan)?;
        let scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => Scratch::new().map_err(|error| format!("has no place to write: {error}"))?,
        };
        let scratch = self.scratch.insert(scratch);
        Taking::sample(&self.items[index].plan, &pids, (&scratch.0, index))
    }

    /// Whom a profile looks at, now.
    fn processes(&self, profile: &ProfilePlan) -> Result<Vec<u32>, String> {
        let roots: BTreeSet<u32> = match profile.of {
            Subject::Target => self.watched.target.lock().map(|p| p.clone()).unwrap_or_default(),
            Subject::Generator => {
                self.watched.generator.lock().map(|p| p.clone()).unwrap_or_default()
            }
            Subject::Process(pid) => [pid].into(),
        };
        let all = match profile.of {
            // A generator's children are the target and this very profiler.
            Subject::Generator => roots,
            _ => with_children(roots),
        };
        let pids: Vec<u32> =
            all.into_iter().filter(|pid| tool::suits(&profile.profiler, *pid)).collect();
        match (&profile.profiler, pids.as_slice()) {
            (Profiler::Node, []) => Err("the target has no process of Node".into()),
            (Profiler::PySpy, []) => Err("the target has no process of Python".into()),
            (_, []) => Err("there is no process to look at".into()),
            (Profiler::Node, pids) => pids.iter().try_for_each(|pid| check_node(*pid)),
            _ => Ok(()),
        }?;
        Ok(pids)
    }

    /// Stops everything, and hands over what was seen. Nothing is measured any longer: this may
    /// take some seconds.
    pub fn finish(mut self, sink: &mut dyn Sink) {
        let end = self.clock.now();
        for remark in self.turn(end, usize::MAX) {
            sink.record(&crate::run::remark(end, remark));
        }
        for item in &mut self.items {
            let result = item.settle(self.clock);
            match result.transpose() {
                None => {}
                Some(Ok(folded)) => sink.profile(&Profile {
                    phase: item.phase_name.clone(),
                    name: item.name.clone(),
                    folded,
                }),
                Some(Err(why)) => sink.record(&crate::run::remark(end, item.remark(&why))),
            }
        }
    }
}

impl Item {
    /// What it saw, as folded stacks; `None` if it never began or has failed.
    fn settle(&mut self, clock: Clock) -> Result<Option<String>, String> {
        let State::Ending(taking) = &mut self.state else { return Ok(None) };
        while !taking.has_ended(clock.now()) {
            clock.sleep_until(Tick(clock.now().0 + LOOK_EVERY_NS));
        }
        let folds = taking.folds(self.plan.profiler != Profiler::PySpy, clock);
        taking.abandon();
        match folds? {
            folds if folds.is_empty() => {
                Err("it saw nothing: the processes were idle, or the time too short".into())
            }
            folds => Ok(Some(folds.text())),
        }
    }

    fn remark(&self, why: &str) -> String {
        format!("the profile `{}` of the phase {} failed: {why}", self.name, self.phase_name)
    }
}

#[cfg(test)]
mod tests;
