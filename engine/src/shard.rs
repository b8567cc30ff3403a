//! A shard: one thread's people, sockets and timers. Everything here happens in one loop, without
//! locks; what it saw leaves as intervals and tallies.

mod desk;
mod person;
mod places;
mod stay;
mod window;

use crate::accounts::AccountBook;
use crate::board::Board;
use crate::net::{Happening, Net, Read, Slot};
use desk::Desk;
use model::{
    Fault, FaultClass, Interval, PersonId, PhaseKind, Plan, Protocol, Record, Shared, SourceId,
    Tally, Tick,
};
use person::{Birth, Person};
use places::Places;
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes read from a socket in one system call; one buffer serves all people of a shard.
const READ_BYTES: usize = 256 << 10;
/// Reads from one socket before everybody else has a turn: a target that never stops sending to one
/// person must not keep the others waiting.
const READS_PER_TURN: usize = 8;
/// How often a shard reports where its people are, nanoseconds.
const STATUS_EVERY_NS: u64 = 50_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// What a shard needs to begin.
#[derive(Clone)]
pub struct Setup {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Its protocol.
    pub protocol: &'static dyn Protocol,
    /// What the sessions share.
    pub shared: Arc<Shared>,
    /// Who people log in as.
    pub accounts: Arc<AccountBook>,
    /// The marks of all shards.
    pub board: Board,
    /// This shard.
    pub source: SourceId,
    /// How many shards there are.
    pub sources: SourceId,
    /// Which run: 18 bits that tell its stamps from those of another.
    pub run: u32,
}

/// What a shard is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// A phase of the plan begins at this time.
    Begin {
        /// Its index.
        phase: u32,
        /// When.
        at: Tick,
    },
    /// So many people of a phase that holds a population are to be there, in all shards together.
    Populate {
        /// The phase.
        phase: u32,
        /// How many people.
        people: u32,
        /// Numbers the orders of the phase, so that it can be told which one a shard knows.
        order: u32,
        /// When; who comes is due then.
        at: Tick,
    },
    /// Everybody who waits at this gate may pass.
    Open {
        /// The phase.
        phase: u32,
        /// The gate.
        gate: u32,
    },
    /// Everybody leaves now; the shard ends.
    Stop,
}

/// What a shard says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Dispatch {
    /// A second is over.
    Interval(Box<Interval>),
    /// Where people are.
    Status(Box<Status>),
    /// The shard has ended, and has said everything.
    Ended {
        /// Which shard.
        source: SourceId,
    },
    /// The shard's process is gone without the shard's last words.
    Lost {
        /// Which shard.
        source: SourceId,
    },
}

/// Where a shard's people are. Everything counts from the run's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Which shard.
    pub source: SourceId,
    /// Phases that have begun here, with how far they have come.
    pub tallies: Vec<(u32, Tally)>,
    /// People who wait at gates, by (phase, gate).
    pub gates: BTreeMap<(u32, u32), u64>,
    /// What happened since the last status.
    pub records: Vec<Record>,
    /// Of phases that hold a population: the last order carried out, and how many of this
    /// shard's people are there or on the way home.
    pub populations: BTreeMap<u32, (u32, u64)>,
}

/// Somebody who is yet to arrive.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    due: Tick,
    phase: u32,
    person: PersonId,
    index: u32,
    /// How many held the place before; zero where people are not replaced.
    turn: u32,
}

/// One thread's people, sockets and timers.
pub struct Shard<N> {
    desk: Desk<N>,
    people: Slab<Person>,
    arrivals: VecDeque<Arrival>,
    /// Populations, by phase.
    populations: BTreeMap<u32, Places>,
    happenings: Vec<Happening>,
    /// Sockets that had more to read than their turn allowed.
    unread: Vec<Slot>,
    buffer: Vec<u8>,
    next_status: Tick,
    is_stopped: bool,
}

impl<N: Net> Shard<N> {
    /// A shard without people.
    pub fn new(setup: Setup, net: N) -> Shard<N> {
        Shard {
            desk: Desk::new(setup, net),
            people: Slab::new(),
            arrivals: VecDeque::new(),
            populations: BTreeMap::new(),
            happenings: Vec::new(),
            unread: Vec::new(),
            buffer: vec![0; READ_BYTES],
            next_status: Tick::ZERO,
            is_stopped: false,
        }
    }

    /// The first half of a turn of the loop: what is due.
    pub fn tend(&mut self, emit: &mut dyn FnMut(Dispatch)) {
        let now = self.desk.net.now();
        self.desk.interval.counters.turns += 1;
        self.close_seconds(now, emit);
        self.arrive(now);
        while let Some((due, slot)) = self.desk.wheel.pop(now) {
            self.fire(slot, due, now);
        }
        if now >= self.next_status {
            self.next_status = Tick(now.0 + STATUS_EVERY_NS);
            self.report(emit);
        }
    }

    fn report(&mut self, emit: &mut dyn FnMut(Dispatch)) {
        if let Some(mut status) = self.desk.status() {
            places::report(&self.populations, &mut status);
            emit(Dispatch::Status(Box::new(status)));
        }
    }

    /// The second half: waits for whatever the network has to say, and takes it in. Returns
    /// whether the shard has been called to fetch orders.
    pub fn wait(&mut self) -> bool {
        let until = if self.unread.is_empty() { self.next_due() } else { Tick::ZERO };
        let mut happenings = std::mem::take(&mut self.happenings);
        self.desk.net.poll(until, &mut happenings);
        for slot in std::mem::take(&mut self.unread) {
            self.read(slot);
        }
        let mut is_called = false;
        for happening in happenings.drain(..) {
            match happening {
                Happening::Called => is_called = true,
                Happening::Readable(slot) => self.read(slot),
                Happening::Accepted(slot) => self.with_person(slot, |person, desk| {
                    person.accepted(desk);
                }),
                Happening::Opened(slot) => self.with_person(slot, |person, desk| {
                    person.opened(desk);
                }),
                Happening::Broken(slot) => {
                    let fault = self.desk.net.fault(slot);
                    self.with_person(slot, |person, desk| person.broken(desk, fault));
                }
            }
        }
        self.happenings = happenings;
        is_called
    }

    /// Carries out an order.
    pub fn obey(&mut self, order: &Order) {
        match *order {
            Order::Begin { phase, at } => self.begin(phase, at),
            Order::Populate { phase, people, order, at } => self.populate(phase, people, order, at),
            Order::Open { phase, gate } => self.open_gate(phase, gate),
            Order::Stop => self.is_stopped = true,
        }
    }

    /// Whether the shard was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Now, as its network tells.
    pub fn now(&self) -> Tick {
        self.desk.net.now()
    }

    /// Sends everybody away and says the last words.
    pub fn end(&mut self, emit: &mut dyn FnMut(Dispatch)) {
        let slots: Vec<Slot> = self.people.iter().map(|(slot, _)| slot as Slot).collect();
        for slot in slots {
            self.with_person(slot, |person, desk| person.sent_away(desk));
        }
        let now = self.desk.net.now();
        self.close_seconds(now, emit);
        emit(Dispatch::Interval(Box::new(self.desk.take_interval())));
        self.report(emit);
        emit(Dispatch::Ended { source: self.desk.setup.source });
    }

    /// Queues the arrivals of a phase, as far as they are this shard's.
    fn begin(&mut self, phase: u32, at: Tick) {
        let plan = self.desk.setup.plan.clone();
        let Some(PhaseKind::Run(run)) = plan.phases.get(phase as usize).map(|phase| &phase.kind)
        else {
            return;
        };
        if run.hold.is_some() {
            self.populations.insert(phase, Places::default());
            return self.desk.begin(phase, 0);
        }
        let before = accounts_before(&plan, phase);
        let (source, sources) = (self.desk.setup.source, self.desk.setup.sources);
        let is_mine = |index: u32| index % u32::from(sources) == u32::from(source);
        let times = run.pacer.times(run.count, plan.seed ^ u64::from(run.first));
        let mine: Vec<Arrival> = (0..)
            .zip(times)
            .filter(|&(index, _)| is_mine(index))
            .map(|(index, after)| Arrival {
                due: Tick(at.0 + after.0),
                phase,
                person: run.first + index,
                index: before + index,
                turn: 0,
            })
            .collect();
        self.desk.begin(phase, mine.len() as u64);
        self.arrivals.extend(mine);
        self.arrivals.make_contiguous().sort_by_key(|arrival| arrival.due);
    }

    /// Brings a population to that size, as far as its places are this shard's.
    fn populate(&mut self, phase: u32, people: u32, order: u32, at: Tick) {
        let shards = (self.desk.setup.source, self.desk.setup.sources);
        let Some(places) = self.populations.get_mut(&phase) else { return };
        let moves = places.populate(people, order, shards);
        self.desk.tally(phase);
        for (place, turn) in moves.come {
            self.invite(phase, place, turn, at);
        }
        for slot in moves.go {
            self.with_person(slot, |person, desk| person.sent_home(desk));
        }
    }

    /// Queues somebody for a place of a population.
    fn invite(&mut self, phase: u32, place: u32, turn: u32, due: Tick) {
        let before = accounts_before(&self.desk.setup.plan, phase);
        let person = self.desk.run_phase(phase).first + place;
        let arrival = Arrival { due, phase, person, index: before + place, turn };
        let at = self.arrivals.partition_point(|other| other.due <= due);
        self.arrivals.insert(at, arrival);
    }

    fn arrive(&mut self, now: Tick) {
        while let Some(arrival) = self.arrivals.front().copied().filter(|a| a.due <= now) {
            self.arrivals.pop_front();
            let entry = self.people.vacant_entry();
            let slot = entry.key() as Slot;
            let (phase, id) = (arrival.phase, arrival.person);
            if let Some(places) = self.populations.get_mut(&phase) {
                let place = id - self.desk.run_phase(phase).first;
                if !places.arrive(place, self.desk.setup.sources, slot) {
                    continue;
                }
                self.desk.tally(phase).asked += 1;
            }
            self.desk.arrival(phase, arrival.due, now);
            let Arrival { due, index, turn, .. } = arrival;
            let birth = Birth { id, phase, index, turn, due };
            entry.insert(Person::new(&mut self.desk, slot, birth));
            self.with_person(slot, |person, desk| person.advance(desk));
        }
    }

    fn fire(&mut self, slot: Slot, due: Tick, now: Tick) {
        if self.people.get(slot as usize).is_some_and(|person| person.is_armed_for(due)) {
            self.with_person(slot, |person, desk| person.fire(desk, due, now));
        }
    }

    fn open_gate(&mut self, phase: u32, gate: u32) {
        self.desk.open_gate(phase, gate);
        let slots: Vec<Slot> = self
            .people
            .iter()
            .filter(|(_, person)| person.waits_at(phase, gate))
            .map(|(slot, _)| slot as Slot)
            .collect();
        for slot in slots {
            self.with_person(slot, |person, desk| person.pass(desk));
        }
    }

    /// Reads what a person's socket has, into the one shared buffer.
    fn read(&mut self, slot: Slot) {
        let mut goes_on = true;
        for _ in 0..READS_PER_TURN {
            let result = self.desk.net.read(slot, &mut self.buffer);
            let Some(person) = self.people.get_mut(slot as usize) else { return };
            goes_on = match result {
                Ok(Read::Some(n)) => person.received(&mut self.desk, &self.buffer[..n]),
                Ok(Read::Last(0)) => false,
                Ok(Read::Last(n)) => {
                    person.received(&mut self.desk, &self.buffer[..n]);
                    false
                }
                Ok(Read::End) => {
                    person.ended(&mut self.desk);
                    false
                }
                Err(fault) => {
                    person.broken(&mut self.desk, fault);
                    false
                }
            };
            if !goes_on {
                break;
            }
        }
        if goes_on {
            self.unread.push(slot);
        }
        self.bury(slot);
    }

    /// Lets something happen to a person, and takes away who has gone.
    fn with_person(&mut self, slot: Slot, act: impl FnOnce(&mut Person, &mut Desk<N>)) {
        if let Some(person) = self.people.get_mut(slot as usize) {
            act(person, &mut self.desk);
            self.bury(slot);
        }
    }

    fn bury(&mut self, slot: Slot) {
        if self.people.get(slot as usize).is_some_and(Person::is_gone) {
            let person = self.people.remove(slot as usize);
            self.replace(&person);
        }
    }

    /// Somebody new comes to the place of a population that has become free.
    fn replace(&mut self, gone: &Person) {
        let (phase, id) = gone.origin();
        let Some(places) = self.populations.get_mut(&phase) else { return };
        let place = id - self.desk.run_phase(phase).first;
        if let Some(turn) = places.go(place, self.desk.setup.sources) {
            let pause_ns = if gone.has_finished() { 0 } else { places::PAUSE_NS };
            let due = Tick(self.desk.net.now().0 + pause_ns);
            self.invite(phase, place, turn, due);
        }
    }

    fn close_seconds(&mut self, now: Tick, emit: &mut dyn FnMut(Dispatch)) {
        while u64::from(self.desk.interval.second) < now.0 / SECOND_NS {
            let interval = self.desk.take_interval();
            emit(Dispatch::Interval(Box::new(interval)));
            self.desk.windows_expire(now);
        }
    }

    fn next_due(&self) -> Tick {
        let arrival = self.arrivals.front().map_or(Tick::NEVER, |arrival| arrival.due);
        let second = Tick((u64::from(self.desk.interval.second) + 1) * SECOND_NS);
        let status = if self.desk.has_news() { self.next_status } else { Tick::NEVER };
        self.desk.wheel.next().min(arrival).min(second).min(status)
    }
}

/// The accounts of a crowd that its earlier phases use: a crowd that runs several times does not
/// begin anew.
fn accounts_before(plan: &Plan, phase: u32) -> u32 {
    let crowd = |kind: &PhaseKind| match kind {
        PhaseKind::Run(run) => Some((run.crowd, run.accounts())),
        _ => None,
    };
    let Some((mine, _)) = crowd(&plan.phases[phase as usize].kind) else { return 0 };
    let earlier = plan.phases[..phase as usize].iter().filter_map(|phase| crowd(&phase.kind));
    earlier.filter(|(crowd, _)| *crowd == mine).fold(0, |sum, (_, n)| sum.saturating_add(n))
}

/// The fault of a connection that its target closed.
fn closed_by_target() -> Fault {
    Fault::new(FaultClass::Closed, "the target closed the connection")
}
