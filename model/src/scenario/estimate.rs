//! What a plan will do on a target that answers at once: its minds are walked without any network.

use super::plan::DEADLINE_NS;
use crate::{
    Crowd, DeedVerb, Hold, Measure, Mind, Next, Op, Pacer, PhaseKind, Plan, RoomId, RunPhase, Tick,
    Until,
};
use crate::{Rng, stamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// People of a phase who are walked; more are represented by these.
const WALKERS_MAX: u32 = 20_000;
/// Steps of all walkers of all runs together, shared out evenly; beyond, walks are broken off.
const STEPS_MAX: u32 = 4_000_000;
/// People whose journeys tell how long a journey takes, and the steps each may take.
const SCOUTS: u32 = 16;
const SCOUT_STEPS_MAX: u32 = 10_000;
/// With more rooms than this, representatives do not tell who meets whom: the mean does.
const ROOMS_EXACT_MAX: usize = 100;

/// What is expected of a plan.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// Start of each phase, seconds, and when each stage of a run begins.
    pub(super) phases: Vec<(f64, Vec<Option<f64>>)>,
    /// When everybody is done, seconds; `None` if a journey is too long to be walked to its end.
    pub(super) ends_s: Option<f64>,
    /// Some people stand for many, or a walk was broken off.
    pub(super) is_rough: bool,
    /// Most people at the same time.
    pub(super) online_max: f64,
    pub(super) sends: Flow,
    pub(super) deliveries: Flow,
    /// Others who could be told of each join.
    pub(super) sightings: Flow,
}

/// Something that happens: how often in all, and in the busiest second.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) total: f64,
    pub(super) peak: f64,
    second: u64,
    now: f64,
}

impl Flow {
    /// Adds so many at a time; times never go back.
    fn add(&mut self, at: Tick, count: f64) {
        let second = at.0 / 1_000_000_000;
        if second != self.second {
            (self.second, self.now) = (second, 0.0);
        }
        self.now += count;
        self.total += count;
        self.peak = self.peak.max(self.now);
    }
}

/// The deadline of a run that names none.
pub(super) fn deadline_ns(run: &RunPhase, crowd: &Crowd) -> u64 {
    match run.until {
        Until::Arrived | Until::In => DEADLINE_NS,
        Until::Done => {
            let lengths = (0..run.count.min(SCOUTS)).filter_map(|i| length_ns(crowd, i));
            let whole_s = lengths.max().unwrap_or(0).div_ceil(1_000_000_000);
            DEADLINE_NS + whole_s.saturating_mul(2_000_000_000)
        }
    }
}

/// How long one journey takes; `None` if it does not end.
fn length_ns(crowd: &Crowd, index: u32) -> Option<u64> {
    let mut mind = Mind::new(Rng::new(u64::from(index), 0), index, Tick::ZERO);
    let mut now = Tick::ZERO;
    for _ in 0..SCOUT_STEPS_MAX {
        match mind.next(&crowd.program, 1, now) {
            Next::Sleep(until) => now = now.max(until),
            Next::Gate(_) => mind.passed(now),
            Next::Await => mind.answered(now),
            Next::Finished => return Some(now.0),
            Next::Do { .. } | Next::Stage(_) => {}
        }
    }
    None
}

/// Something a person does, for everybody it stands for.
#[derive(Clone, Copy)]
enum Happening {
    Come,
    Go,
    /// Others see it.
    Enter(RoomId),
    /// Nobody is told.
    Appear(RoomId),
    Leave(RoomId),
    Say {
        room: RoomId,
        /// Whether the speaker is one of those who are there.
        is_there: bool,
    },
}

struct Walk<'p> {
    plan: &'p Plan,
    /// Steps each run may take.
    steps: u32,
    happenings: Vec<(Tick, Happening, f64)>,
    steps_left: u32,
    is_broken_off: bool,
}

struct Walker {
    mind: Mind,
    now: Tick,
    rooms: Vec<RoomId>,
    waits: Option<u32>,
    /// When the person goes, wherever the journey is then.
    until: Tick,
    is_done: bool,
}

/// Walks the plan.
pub(super) fn estimate(plan: &Plan) -> Estimate {
    let mut estimate = Estimate::default();
    let runs = plan.runs().count().max(1) as u32;
    let steps = STEPS_MAX.div_ceil(runs);
    let mut walk =
        Walk { plan, steps, happenings: Vec::new(), steps_left: 0, is_broken_off: false };
    let mut clock = Tick::ZERO;
    let mut ends = Some(Tick::ZERO);
    for phase in &plan.phases {
        let mut stages = Vec::new();
        let start = clock;
        match &phase.kind {
            PhaseKind::Run(run) => {
                let (last_in, done, firsts) = match &run.hold {
                    None => walk.run(run, start),
                    Some(hold) => walk.hold(run, hold, start),
                };
                stages = firsts.iter().map(|first| first.map(Tick::secs_f64)).collect();
                estimate.is_rough |= run.count > WALKERS_MAX || walk.is_broken_off;
                clock = if run.until == Until::Done { done.unwrap_or(last_in) } else { last_in };
                ends = ends.zip(done).map(|(a, b)| a.max(b));
            }
            PhaseKind::Rest { ns } => clock = clock + Duration::from_nanos(*ns),
            PhaseKind::Mark => {}
        }
        estimate.phases.push((start.secs_f64(), stages));
    }
    estimate.ends_s = ends.map(|end| end.max(clock).secs_f64());
    settle(&mut estimate, walk.happenings, plan.rooms.len());
    estimate
}

/// Whether a journey goes on for ever.
pub(super) fn is_endless(crowd: &Crowd) -> bool {
    crowd.program.ops.iter().any(|op| matches!(op, Op::Repeat { times: None, for_ns: None, .. }))
}

impl Walk<'_> {
    /// Walks a run; when the last person set out, when the last one is done, and when the first
    /// one entered each stage.
    fn run(&mut self, run: &RunPhase, start: Tick) -> (Tick, Option<Tick>, Vec<Option<Tick>>) {
        let crowd = &self.plan.crowds[run.crowd as usize];
        let count = run.count.min(WALKERS_MAX);
        let weight = f64::from(run.count) / f64::from(count);
        let mut firsts = vec![None; crowd.program.stages.len()];
        let mut last_in = start;
        let stride = u64::from(run.count);
        let mut next = 0u64;
        let mut walkers = Vec::new();
        for (k, at) in run.pacer.times(run.count, self.plan.seed).enumerate() {
            let at = start + Duration::from_nanos(at.0);
            last_in = last_in.max(at);
            if k as u64 * u64::from(count) < next * stride {
                continue;
            }
            next += 1;
            let index = k as u32;
            let person = run.first.min(stamp::PEOPLE_MAX) + index;
            let mind = Mind::new(Rng::new(self.plan.seed, person.into()), index, at);
            self.happenings.push((at, Happening::Come, weight));
            walkers.push(Walker {
                mind,
                now: at,
                rooms: Vec::new(),
                waits: None,
                until: Tick::NEVER,
                is_done: false,
            });
        }
        self.steps_left = self.steps;
        self.is_broken_off = false;
        let share = self.steps.div_ceil(count.max(1));
        while walkers.iter().any(|walker| !walker.is_done) && self.steps_left > 0 {
            for walker in &mut walkers {
                self.walk(crowd, walker, weight, share, &mut firsts);
            }
            // A gate opens when everybody who is still on the way waits.
            let waiting = walkers.iter().filter(|walker| !walker.is_done);
            let Some(opens) = waiting.map(|walker| walker.now).max() else { break };
            for walker in walkers.iter_mut().filter(|walker| walker.waits.is_some()) {
                walker.waits = None;
                walker.now = opens;
                walker.mind.passed(opens);
            }
        }
        let done = walkers.iter().map(|walker| walker.now).max().unwrap_or(last_in);
        (last_in, (!self.is_broken_off).then_some(done), firsts)
    }

    /// Walks a population: at each place one person after the other, as long as somebody is to be
    /// there. It has no last arrival: the first figure is its end.
    fn hold(
        &mut self,
        run: &RunPhase,
        hold: &Hold,
        start: Tick,
    ) -> (Tick, Option<Tick>, Vec<Option<Tick>>) {
        let crowd = &self.plan.crowds[run.crowd as usize];
        let mut firsts = vec![None; crowd.program.stages.len()];
        let count = run.count.min(WALKERS_MAX);
        let weight = f64::from(run.count) / f64::from(count);
        (self.steps_left, self.is_broken_off) = (self.steps, false);
        let share = self.steps.div_ceil(count.max(1));
        for place in
            (0..count).map(|i| (u64::from(i) * u64::from(run.count) / u64::from(count)) as u32)
        {
            for (from, to) in presences(hold, &run.pacer, place, start) {
                let mut now = from;
                for turn in 0.. {
                    let rng = Rng::new(self.plan.seed ^ turn, (run.first + place).into());
                    let mind = Mind::new(rng, place, now);
                    let rooms = Vec::new();
                    let mut walker =
                        Walker { mind, now, rooms, waits: None, until: to, is_done: false };
                    self.happenings.push((now, Happening::Come, weight));
                    self.walk(crowd, &mut walker, weight, share, &mut firsts);
                    // A journey without a wait would begin again at the same instant for ever.
                    let is_over = walker.now >= to || walker.now <= now || !walker.is_done;
                    if is_over || self.steps_left == 0 {
                        break;
                    }
                    now = walker.now;
                }
            }
        }
        let end = start + Duration::from_nanos(hold.ns());
        (end, (!self.is_broken_off).then_some(end), firsts)
    }

    /// Walks one person to a gate or the end, in at most `steps`.
    fn walk(
        &mut self,
        crowd: &Crowd,
        walker: &mut Walker,
        weight: f64,
        steps: u32,
        firsts: &mut [Option<Tick>],
    ) {
        let rooms = self.plan.room_count();
        for step in 0.. {
            if walker.is_done || walker.waits.is_some() {
                return;
            }
            if step >= steps || self.steps_left == 0 {
                self.is_broken_off = true;
                walker.is_done = true;
                return;
            }
            self.steps_left -= 1;
            match walker.mind.next(&crowd.program, rooms, walker.now) {
                Next::Sleep(until) if until >= walker.until => {
                    walker.now = walker.now.max(walker.until);
                    self.go(walker, weight);
                    walker.is_done = true;
                }
                Next::Sleep(until) => walker.now = walker.now.max(until),
                Next::Await => walker.mind.answered(walker.now),
                Next::Gate(gate) => walker.waits = Some(gate),
                Next::Stage(stage) => {
                    let first = &mut firsts[stage as usize];
                    *first = [*first, Some(walker.now)].into_iter().flatten().min();
                }
                Next::Do { verb, room, .. } => self.deed(walker, verb, room, weight),
                Next::Finished => {
                    self.go(walker, weight);
                    walker.is_done = true;
                }
            }
        }
    }

    fn deed(&mut self, walker: &mut Walker, verb: DeedVerb, room: Option<RoomId>, weight: f64) {
        let happening = match (verb, room) {
            (DeedVerb::Ask(Measure::Join), Some(room)) if !walker.rooms.contains(&room) => {
                walker.rooms.push(room);
                match self.plan.list(room) {
                    None => walker.mind.joined(room),
                    Some(list) if !list.is_roster => {
                        self.happenings.push((walker.now, Happening::Appear(room), weight));
                        return;
                    }
                    Some(_) => {}
                }
                Happening::Enter(room)
            }
            (DeedVerb::Ask(Measure::Leave), Some(room)) if walker.rooms.contains(&room) => {
                walker.mind.left(room);
                walker.rooms.retain(|&other| other != room);
                Happening::Leave(room)
            }
            (DeedVerb::Ask(measure), Some(room)) if measure.is_said() => {
                Happening::Say { room, is_there: walker.rooms.contains(&room) }
            }
            (DeedVerb::Disconnect | DeedVerb::Drop, _) => {
                for room in std::mem::take(&mut walker.rooms) {
                    walker.mind.left(room);
                    self.happenings.push((walker.now, Happening::Leave(room), weight));
                }
                return;
            }
            _ => return,
        };
        self.happenings.push((walker.now, happening, weight));
    }

    fn go(&mut self, walker: &mut Walker, weight: f64) {
        for room in std::mem::take(&mut walker.rooms) {
            self.happenings.push((walker.now, Happening::Leave(room), weight));
        }
        self.happenings.push((walker.now, Happening::Go, weight));
    }
}

/// From when to when somebody is at a place of a population.
fn presences(hold: &Hold, pacer: &Pacer, place: u32, start: Tick) -> Vec<(Tick, Tick)> {
    let after = |people: u32, ns: u64| match pacer {
        Pacer::Constant { rate } => ns + (f64::from(people) / rate * 1e9) as u64,
        _ => ns,
    };
    let mut presences: Vec<(u64, u64)> = Vec::new();
    let (mut ns, mut before) = (0, 0);
    for &(people, length) in &hold.steps {
        let end = ns + length;
        if place < people {
            let from = if place < before { ns } else { after(place - before, ns).min(end) };
            match presences.last_mut().filter(|(_, to)| *to >= from) {
                Some((_, to)) => *to = end,
                None => presences.push((from, end)),
            }
        } else if place < before {
            // Whoever has to go goes in turn, the last who came first.
            if let Some((_, to)) = presences.last_mut() {
                *to = after(before - 1 - place, ns).min(end);
            }
        }
        (ns, before) = (end, people);
    }
    let at = |ns| start + Duration::from_nanos(ns);
    presences.into_iter().map(|(from, to)| (at(from), at(to))).collect()
}

/// Counts who meets whom.
fn settle(estimate: &mut Estimate, mut happenings: Vec<(Tick, Happening, f64)>, rooms: usize) {
    happenings.sort_by_key(|(at, ..)| *at);
    let by_mean = rooms > ROOMS_EXACT_MAX && happenings.iter().any(|&(.., weight)| weight > 1.0);
    let mut people: BTreeMap<RoomId, f64> = BTreeMap::new();
    let (mut online, mut seats) = (0.0, 0.0);
    for (at, happening, weight) in happenings {
        match happening {
            Happening::Come => {
                online += weight;
                estimate.online_max = f64::max(estimate.online_max, online);
            }
            Happening::Go => online -= weight,
            Happening::Leave(room) => {
                seats -= weight;
                *people.entry(room).or_default() -= weight;
            }
            Happening::Enter(room) | Happening::Appear(room) => {
                let entry = people.entry(room).or_default();
                let present = if by_mean { seats / rooms as f64 } else { *entry };
                seats += weight;
                *entry += weight;
                if let Happening::Enter(_) = happening {
                    estimate.sightings.add(at, weight * present);
                }
            }
            Happening::Say { room, is_there } => {
                let entry = people.entry(room).or_default();
                let present = if by_mean { seats / rooms as f64 } else { *entry };
                let others = present - f64::from(u8::from(is_there));
                estimate.sends.add(at, weight);
                estimate.deliveries.add(at, weight * others.max(0.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::good;
    use super::*;

    #[test]
    fn a_small_plan_is_counted_by_hand() {
        let plan = good(
            "target: yardstick
rooms: [a, b]
crowds:
  people:
    size: 4
    journey: [login, {join: a}, {gate: all}, {talk: {every: 2s, times: 3}}, {wait: 1s}, leave]
timeline: [{run: people at 1/s}, {rest: 2s}]",
        );
        let estimate = estimate(&plan);
        // The gate opens with the last arrival, at 3 s; all say at 5, 7 and 9 s.
        assert_eq!(estimate.sends.total, 12.0);
        assert_eq!(estimate.sends.peak, 4.0);
        assert_eq!(estimate.deliveries.total, 36.0);
        assert_eq!(estimate.sightings.total, 6.0);
        assert_eq!(estimate.online_max, 4.0);
        assert_eq!(estimate.ends_s, Some(10.0));
        assert_eq!(estimate.phases[1].0, 3.0);
        assert_eq!(estimate.phases[0].1, [Some(0.0), Some(3.0), Some(10.0)]);
        assert!(!estimate.is_rough);
    }

    #[test]
    fn a_held_population_is_counted_by_hand() {
        let plan = good(
            "target: yardstick
rooms: [a]
crowds: {p: {size: 9, journey: [login, join, {wait: 500ms}, say, {wait: 500ms}, leave]}}
timeline: [{hold: p at 2 for 10s then 4 for 10s then 1 for 10s, by: once}]",
        );
        let estimate = estimate(&plan);
        // Each place has a journey a second: 2 × 10 + 4 × 10 + 10.
        assert_eq!((estimate.sends.total, estimate.online_max), (70.0, 4.0));
        assert_eq!(estimate.ends_s, Some(30.0));
    }

    #[test]
    fn many_people_are_represented_by_some() {
        let text = "target: yardstick
rooms: [a]
crowds: {people: {size: 60000, journey: [login, join, {wait: 10s}, say, {wait: 10s}, leave]}}
timeline: [{run: people at 10000/s}]";
        let estimate = estimate(&good(text));
        assert!(estimate.is_rough);
        assert!((estimate.sends.total / 60_000.0 - 1.0).abs() < 0.01, "{:?}", estimate.sends);
        let want = 60_000.0 * 59_999.0;
        assert!((estimate.deliveries.total / want - 1.0).abs() < 0.01);
    }

    #[test]
    fn an_endless_journey_does_not_end() {
        let text = "target: yardstick
rooms: [a]
crowds: {p: {size: 2, journey: [login, join, {repeat: forever, every: 1s, do: say}]}}
timeline: [{run: p at once}]";
        let estimate = estimate(&good(text));
        assert_eq!(estimate.ends_s, None);
        assert!(estimate.is_rough && estimate.sends.total > 1_000.0);
    }
}
