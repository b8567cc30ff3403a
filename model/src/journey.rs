//! Behavior: a person's journey as a small program, and the mind that walks through it.
//!
//! Steps that a real client waits for (login, join, leave, history, …) hold the person until they
//! are answered. Saying something does not: people do not wait for a server before they type on,
//! and a schedule that slips with the server would hide its delays. `due` is the person's own
//! schedule: a wait moves it by exactly the wait, however late the wait was served.

use crate::stamp::RoomId;
use crate::{Measure, Rng, Span, Tick};
use serde::{Deserialize, Serialize};

/// What is said besides the stamp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Text {
    /// So many words, evenly between the two.
    Words(u32, u32),
    /// So many bytes in all (at least the stamp), evenly between the two.
    Bytes(u32, u32),
    /// One of these lines.
    Lines(Vec<String>),
}

/// Which room a step is about, for the person who takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoomChoice {
    /// That one.
    Named(RoomId),
    /// The person's own: people are dealt out to rooms in turn.
    Own,
    /// A random one of those the person is in.
    Joined,
    /// A random one of those the person is not in.
    Another,
    /// Any, at random.
    Any,
    /// A random one of a family of lists.
    OneOf {
        /// The first of them.
        first: RoomId,
        /// How many there are.
        count: u32,
    },
    /// The person's own of a family of lists: people are dealt out to them in turn.
    OwnOf {
        /// The first of them.
        first: RoomId,
        /// How many there are.
        count: u32,
        /// How many people are on each.
        each: u32,
    },
}

/// Something to do, as the plan has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Deed {
    /// What.
    pub verb: DeedVerb,
    /// Where, if it is about a room.
    pub room: Option<RoomChoice>,
    /// What is said, if anything is.
    pub text: Option<Text>,
    /// How many at most, for pages of history.
    pub limit: u32,
}

/// What a deed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeedVerb {
    /// A request, measured by its own name.
    Ask(Measure),
    /// Close the connection.
    Disconnect,
    /// Lose the connection without a word.
    Drop,
}

impl DeedVerb {
    /// Whether a person waits for the answer before going on.
    pub fn is_awaited(self) -> bool {
        use Measure::{Befriend, History, Join, Leave, Login, Members, Rename};
        let awaited = [Befriend, History, Join, Leave, Login, Members, Rename];
        matches!(self, DeedVerb::Ask(measure) if awaited.contains(&measure))
    }
}

/// One instruction of a journey. Places are indices of [`Program::ops`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Do something.
    Do(Deed),
    /// Wait.
    Wait(Span),
    /// Join some rooms at random, so many on average, one after the other (a worn-in membership).
    JoinSome {
        /// Mean number of rooms.
        mean: f64,
        /// Out of the first so many.
        of: u32,
    },
    /// Begin a loop; its body follows and ends with [`Op::Again`].
    Repeat {
        /// So many rounds at most; `None` is endless.
        times: Option<u32>,
        /// No round begins later than this after the loop began, nanoseconds.
        for_ns: Option<u64>,
        /// From the beginning of one round to that of the next: an open schedule.
        every: Option<Span>,
        /// Whether the first round also waits for `every`.
        late_start: bool,
        /// The place behind the loop.
        end: u32,
    },
    /// End of a loop's body: back to the [`Op::Repeat`] at this place.
    Again(u32),
    /// Go on at one of these places, by weight.
    Choose(Vec<(u32, u32)>),
    /// Go on at that place.
    Jump(u32),
    /// Wait until everybody of the phase waits here (index of [`Program::gates`]).
    Gate(u32),
    /// A new stage of the journey begins (index of [`Program::stages`]).
    Stage(u32),
    /// From here on the person's waits and rounds take so many times as long, by weight: one
    /// person is slow for good, another is not.
    Pace(Vec<(u32, f32)>),
}

/// A journey, ready to be walked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Program {
    /// The instructions; the journey ends behind the last.
    pub ops: Vec<Op>,
    /// Names of the stages.
    pub stages: Vec<String>,
    /// Names of the gates.
    pub gates: Vec<String>,
}

impl Program {
    /// Whether some of its loops never end by themselves: such a journey ends with the run.
    pub fn is_endless(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Repeat { times: None, for_ns: None, .. }))
    }

    /// What is asked of the target, as often as it is written.
    pub fn asks(&self) -> impl Iterator<Item = Measure> + '_ {
        self.ops.iter().filter_map(|op| match op {
            Op::Do(Deed { verb: DeedVerb::Ask(measure), .. }) => Some(*measure),
            Op::JoinSome { .. } => Some(Measure::Join),
            _ => None,
        })
    }
}

/// What a mind wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next<'p> {
    /// Do this now; it was due at `intended`.
    Do {
        /// What.
        verb: DeedVerb,
        /// Where.
        room: Option<RoomId>,
        /// What is said.
        text: Option<&'p Text>,
        /// How many at most.
        limit: u32,
        /// When it should have been done.
        intended: Tick,
    },
    /// Nothing before this time.
    Sleep(Tick),
    /// Nothing before the gate opens.
    Gate(u32),
    /// A stage has begun; ask again.
    Stage(u32),
    /// Nothing before the awaited answer is in.
    Await,
    /// The journey is over.
    Finished,
}

#[derive(Clone, Debug)]
struct Round {
    start: u32,
    left: Option<u32>,
    until: Tick,
    next: Tick,
}

/// Where a person is in the journey.
#[derive(Clone, Debug)]
pub struct Mind {
    rng: Rng,
    due: Tick,
    place: u32,
    index: u32,
    awaiting: bool,
    pace: f32,
    rounds: Vec<Round>,
    rooms: Vec<RoomId>,
    some: Vec<RoomId>,
}

/// Steps a mind may take without anything happening before it must yield: a loop without a
/// wait would otherwise never return.
const IDLE_STEPS_MAX: u32 = 10_000;

impl Mind {
    /// A person at the start of the journey. `index` is the person's place in the crowd.
    pub fn new(rng: Rng, index: u32, start: Tick) -> Mind {
        Mind {
            rng,
            due: start,
            place: 0,
            index,
            awaiting: false,
            pace: 1.0,
            rounds: Vec::new(),
            rooms: Vec::new(),
            some: Vec::new(),
        }
    }

    /// The person's own randomness, for what is said.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// The awaited answer is in: the person's schedule goes on from now.
    pub fn answered(&mut self, now: Tick) {
        self.awaiting = false;
        self.due = self.due.max(now);
    }

    /// The gate has opened: the person's schedule goes on from now.
    pub fn passed(&mut self, now: Tick) {
        self.place += 1;
        self.due = self.due.max(now);
    }

    /// The person is in a room now (not: on a list).
    pub fn joined(&mut self, room: RoomId) {
        if !self.rooms.contains(&room) {
            self.rooms.push(room);
        }
    }

    /// The person is no longer in a room.
    pub fn left(&mut self, room: RoomId) {
        self.rooms.retain(|&other| other != room);
    }

    /// What the person does next. `rooms` is how many the plan has, lists not counted.
    pub fn next<'p>(&mut self, program: &'p Program, rooms: u32, now: Tick) -> Next<'p> {
        if self.awaiting {
            return Next::Await;
        }
        for _ in 0..IDLE_STEPS_MAX {
            if self.due > now {
                return Next::Sleep(self.due);
            }
            if let Some(next) = self.step(program, rooms) {
                return next;
            }
        }
        self.due = now + std::time::Duration::from_millis(1);
        Next::Sleep(self.due)
    }

    /// Takes one step; `None` if it needs nobody else.
    fn step<'p>(&mut self, program: &'p Program, rooms: u32) -> Option<Next<'p>> {
        let Some(op) = program.ops.get(self.place as usize) else {
            return Some(Next::Finished);
        };
        match op {
            Op::Do(deed) => {
                self.place += 1;
                return self.deed(deed, rooms);
            }
            Op::Wait(span) => {
                self.due = self.due + self.paced(span);
                self.place += 1;
            }
            Op::JoinSome { mean, of } => return self.join_some(*mean, (*of).min(rooms)),
            Op::Repeat { times, for_ns, every, late_start, end } => {
                let until = for_ns.map_or(Tick::NEVER, |span| self.due + ns(span));
                self.rounds.reserve_exact(1);
                self.rounds.push(Round { start: self.place, left: *times, until, next: self.due });
                self.begin_round(every.as_ref().filter(|_| *late_start), *end);
            }
            Op::Again(start) => self.again(program, *start),
            Op::Choose(arms) => self.choose(arms),
            Op::Jump(place) => self.place = *place,
            Op::Gate(gate) => return Some(Next::Gate(*gate)),
            Op::Stage(stage) => {
                self.place += 1;
                return Some(Next::Stage(*stage));
            }
            Op::Pace(classes) => {
                self.pace = self.weighted(classes).unwrap_or(1.0);
                self.place += 1;
            }
        }
        None
    }

    fn deed<'p>(&mut self, deed: &'p Deed, rooms: u32) -> Option<Next<'p>> {
        let room = match deed.room {
            Some(choice) => Some(self.pick(choice, rooms)?),
            None => None,
        };
        Some(self.ask(deed.verb, room, deed.text.as_ref(), deed.limit))
    }

    fn ask<'p>(
        &mut self,
        verb: DeedVerb,
        room: Option<RoomId>,
        text: Option<&'p Text>,
        limit: u32,
    ) -> Next<'p> {
        self.awaiting = verb.is_awaited();
        Next::Do { verb, room, text, limit, intended: self.due }
    }

    /// The room meant; `None` if there is none such (a step about it is then left out).
    fn pick(&mut self, choice: RoomChoice, rooms: u32) -> Option<RoomId> {
        match choice {
            RoomChoice::Named(room) => Some(room),
            RoomChoice::Own => Some(self.index % rooms.max(1)),
            RoomChoice::OneOf { first, count } => {
                Some(first + self.rng.below(count.into()) as RoomId)
            }
            RoomChoice::OwnOf { first, count, each } => {
                Some(first + self.index / each.max(1) % count.max(1))
            }
            RoomChoice::Any => (rooms > 0).then(|| self.rng.below(rooms.into()) as RoomId),
            RoomChoice::Joined => {
                let at = self.rng.below(self.rooms.len() as u64) as usize;
                self.rooms.get(at).copied()
            }
            RoomChoice::Another => {
                let others = u64::from(rooms).saturating_sub(self.rooms.len() as u64);
                let nth = self.rng.below(others) as usize;
                (0..rooms).filter(|room| !self.rooms.contains(room)).nth(nth)
            }
        }
    }

    fn join_some<'p>(&mut self, mean: f64, of: u32) -> Option<Next<'p>> {
        if self.some.is_empty() {
            let extra = u32::from(self.rng.unit() < mean.fract());
            let count = (mean as u32 + extra).clamp(1, of.max(1)) as usize;
            self.some = (0..of).collect();
            for i in 0..count.min(self.some.len()) {
                let other = self.rng.between(i as u64, self.some.len() as u64 - 1) as usize;
                self.some.swap(i, other);
            }
            self.some.truncate(count);
        }
        let room = self.some.pop();
        if self.some.is_empty() {
            self.some = Vec::new();
            self.place += 1;
        }
        room.map(|room| self.ask(DeedVerb::Ask(Measure::Join), Some(room), None, 0))
    }

    /// Begins a round of the innermost loop `delay` after the one before (an open schedule, which
    /// a slow round does not move), or leaves the loop for `end`.
    fn begin_round(&mut self, delay: Option<&Span>, end: u32) {
        let delay = delay.map(|delay| self.paced(delay));
        let Some(round) = self.rounds.last_mut() else {
            self.place = end;
            return;
        };
        let begin = match delay {
            Some(delay) => round.next + delay,
            None => self.due,
        };
        let is_over = begin >= round.until;
        if is_over || round.left == Some(0) {
            self.due = if is_over { self.due.max(round.until) } else { self.due };
            self.place = end;
            self.rounds.pop();
            return;
        }
        round.left = round.left.map(|left| left - 1);
        round.next = begin;
        self.due = begin;
        self.place = round.start + 1;
    }

    fn again(&mut self, program: &Program, start: u32) {
        match program.ops.get(start as usize) {
            Some(Op::Repeat { every, end, .. }) => self.begin_round(every.as_ref(), *end),
            _ => self.place = u32::MAX,
        }
    }

    fn choose(&mut self, arms: &[(u32, u32)]) {
        self.place = self.weighted(arms).unwrap_or(self.place + 1);
    }

    /// One of the items, by weight.
    fn weighted<T: Copy>(&mut self, items: &[(u32, T)]) -> Option<T> {
        let total: u64 = items.iter().map(|&(weight, _)| u64::from(weight)).sum();
        let mut left = self.rng.below(total);
        for &(weight, item) in items {
            if left < u64::from(weight) {
                return Some(item);
            }
            left -= u64::from(weight);
        }
        None
    }

    /// Draws a span at the person's own pace.
    fn paced(&mut self, span: &Span) -> std::time::Duration {
        let drawn = ns(span.draw(&mut self.rng));
        if self.pace == 1.0 { drawn } else { drawn.mul_f32(self.pace) }
    }
}

fn ns(span: u64) -> std::time::Duration {
    std::time::Duration::from_nanos(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deed(verb: Measure, room: Option<RoomChoice>) -> Op {
        Op::Do(Deed { verb: DeedVerb::Ask(verb), room, text: None, limit: 0 })
    }

    /// Walks the journey with a target that answers after `answer_s`; (seconds, verb) of each deed.
    fn walk(ops: Vec<Op>, answer_s: u64) -> Vec<(f64, &'static str)> {
        let program = Program { ops, stages: vec!["s".into()], gates: vec![] };
        let mut mind = Mind::new(Rng::new(1, 1), 0, Tick::ZERO);
        let (mut now, mut deeds) = (Tick::ZERO, Vec::new());
        loop {
            match mind.next(&program, 3, now) {
                Next::Do { verb: DeedVerb::Ask(verb), intended, room, .. } => {
                    deeds.push((intended.secs_f64(), verb.name()));
                    match (verb, room) {
                        (Measure::Join, Some(room)) => mind.joined(room),
                        (Measure::Leave, Some(room)) => mind.left(room),
                        _ => {}
                    }
                }
                Next::Await => {
                    now = now + std::time::Duration::from_secs(answer_s);
                    mind.answered(now);
                }
                Next::Sleep(until) => now = now.max(until),
                Next::Finished => return deeds,
                _ => {}
            }
        }
    }

    const S: u64 = 1_000_000_000;

    fn every(seconds: u64, for_s: u64, end: u32) -> Op {
        Op::Repeat {
            times: None,
            for_ns: Some(for_s * S),
            every: Some(Span::Fixed(seconds * S)),
            late_start: true,
            end,
        }
    }

    #[test]
    fn talk_is_relative_to_the_own_join_and_excludes_its_end() {
        let say = || deed(Measure::Say, Some(RoomChoice::Joined));
        let ops = vec![
            deed(Measure::Login, None),
            deed(Measure::Join, Some(RoomChoice::Named(0))),
            Op::Wait(Span::Fixed(25 * S)),
            every(5, 20, 6),
            say(),
            Op::Again(3),
            Op::Wait(Span::Fixed(15 * S)),
            deed(Measure::Leave, Some(RoomChoice::Named(0))),
        ];
        let says = [(34.0, "say"), (39.0, "say"), (44.0, "say")];
        let want = [&[(0.0, "login"), (2.0, "join")], &says[..], &[(64.0, "leave")]].concat();
        assert_eq!(walk(ops, 2), want);
    }

    #[test]
    fn an_open_schedule_is_not_moved_by_slow_answers() {
        let repeat = Op::Repeat {
            times: Some(4),
            for_ns: None,
            every: Some(Span::Fixed(S)),
            late_start: false,
            end: 3,
        };
        let ops = vec![repeat, deed(Measure::History, Some(RoomChoice::Own)), Op::Again(0)];
        let dues: Vec<f64> = walk(ops, 7).iter().map(|d| d.0).collect();
        assert_eq!(dues, [0.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_closed_loop_waits_and_thinks() {
        let repeat =
            Op::Repeat { times: Some(3), for_ns: None, every: None, late_start: false, end: 4 };
        let think = Op::Wait(Span::Fixed(6 * S));
        let ops = vec![repeat, deed(Measure::Members, Some(RoomChoice::Own)), think, Op::Again(0)];
        let dues: Vec<f64> = walk(ops, 1).iter().map(|d| d.0).collect();
        assert_eq!(dues, [0.0, 7.0, 14.0]);
    }

    #[test]
    fn rooms_are_chosen_among_those_meant() {
        let ops = vec![
            Op::JoinSome { mean: 2.0, of: 3 },
            deed(Measure::Join, Some(RoomChoice::Another)),
            deed(Measure::Join, Some(RoomChoice::Another)),
            deed(Measure::Leave, Some(RoomChoice::Joined)),
        ];
        let verbs: Vec<&str> = walk(ops, 0).iter().map(|d| d.1).collect();
        assert_eq!(verbs, ["join", "join", "join", "leave"], "the fourth room does not exist");
    }

    #[test]
    fn choices_follow_their_weights() {
        let ops = vec![
            Op::Repeat {
                times: Some(10_000),
                for_ns: None,
                every: None,
                late_start: false,
                end: 6,
            },
            Op::Choose(vec![(94, 2), (6, 4)]),
            deed(Measure::Ping, None),
            Op::Jump(5),
            deed(Measure::Typing, Some(RoomChoice::Any)),
            Op::Again(0),
        ];
        let typing = walk(ops, 0).iter().filter(|d| d.1 == "typing").count();
        assert!((500..700).contains(&typing), "{typing}");
    }

    #[test]
    fn a_slow_person_is_slow_for_good() {
        let ops = vec![
            Op::Pace(vec![(1, 10.0)]),
            Op::Wait(Span::Fixed(S)),
            deed(Measure::Ping, None),
            every(2, 50, 6),
            deed(Measure::Ping, None),
            Op::Again(3),
        ];
        let dues: Vec<f64> = walk(ops, 0).iter().map(|d| d.0).collect();
        assert_eq!(dues, [10.0, 30.0, 50.0]);
    }

    #[test]
    fn an_empty_endless_loop_yields() {
        let repeat =
            Op::Repeat { times: None, for_ns: None, every: None, late_start: false, end: 2 };
        let program = Program { ops: vec![repeat, Op::Again(0)], ..Program::default() };
        let mut mind = Mind::new(Rng::new(1, 1), 0, Tick::ZERO);
        let next = mind.next(&program, 1, Tick::ZERO);
        assert_eq!(next, Next::Sleep(Tick::from_millis(1)));
    }

    #[test]
    fn spans_keep_their_means() {
        for span in
            [Span::Fixed(S), Span::Uniform(S, 3 * S), Span::Exponential(S), Span::LogNormal(S, 0.5)]
        {
            let mut rng = Rng::new(9, 9);
            let n = 100_000;
            let mean = (0..n).map(|_| span.draw(&mut rng) as f64).sum::<f64>() / f64::from(n);
            assert!((mean / span.mean_ns() - 1.0).abs() < 0.02, "{span:?}: {mean}");
        }
    }
}
