//! Simulation: a shard on a made-up network with a made-up clock, so that what is measured can be
//! compared with what is known, and the same seed gives the same intervals byte for byte.

mod held;
mod lists;
mod tests;
pub(crate) mod toy;

use crate::net::{Happening, Net, Read, Slot};
use crate::population::{Holding, Wish};
use crate::shard::{Dispatch, Setup, Shard};
use crate::timeline::{Conductor, Step};
use model::{Fault, FaultClass, Interval, Record, Rng, Tick};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use toy::ToyServer;

/// Way of a byte from one end to the other, nanoseconds: at least, and how much more by chance.
const WAY_NS: (u64, u64) = (50_000, 20_000);
/// Longest simulation.
const END: Tick = Tick::from_secs(3_600);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Open,
    ToServer(Vec<u8>),
    ToPerson(Vec<u8>),
    ServerCloses,
}

/// When, in which order, at whose connection, of which dial, what.
type Due = (Tick, u64, Slot, u32, Event);

/// A network in which nothing happens by itself.
pub(crate) struct SimNet {
    now: Tick,
    events: BinaryHeap<Reverse<Due>>,
    serial: u64,
    rng: Rng,
    server: ToyServer,
    /// The server serves nobody in this time.
    stall: Range<Tick>,
    conns: BTreeMap<Slot, Conn>,
    dials: u32,
}

#[derive(Default)]
struct Conn {
    dial: u32,
    inbox: VecDeque<u8>,
    is_ended: bool,
    /// Bytes keep their order: nothing arrives before what was sent earlier.
    last: [Tick; 2],
}

impl SimNet {
    pub(crate) fn new(seed: u64, server: ToyServer, stall: Range<Tick>) -> SimNet {
        SimNet {
            now: Tick::ZERO,
            events: BinaryHeap::new(),
            serial: 0,
            rng: Rng::new(seed, 0x51E7),
            server,
            stall,
            conns: BTreeMap::new(),
            dials: 0,
        }
    }

    fn send_off(&mut self, slot: Slot, direction: usize, event: Event) {
        let way = WAY_NS.0 + self.rng.below(WAY_NS.1);
        let Some(conn) = self.conns.get_mut(&slot) else { return };
        let mut at = Tick(self.now.0 + way);
        if direction == 0 && self.stall.contains(&at) {
            at = self.stall.end;
        }
        at = at.max(conn.last[direction]);
        conn.last[direction] = at;
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, slot, conn.dial, event)));
    }

    fn happen(&mut self, slot: Slot, dial: u32, event: Event, happenings: &mut Vec<Happening>) {
        if self.conns.get(&slot).is_none_or(|conn| conn.dial != dial) {
            return;
        }
        match event {
            Event::Open => happenings.push(Happening::Opened(slot)),
            Event::ToServer(bytes) => {
                for (to, bytes) in self.server.receive(slot, &bytes) {
                    let event =
                        if bytes.is_empty() { Event::ServerCloses } else { Event::ToPerson(bytes) };
                    self.send_off(to, 1, event);
                }
            }
            Event::ToPerson(bytes) => {
                if let Some(conn) = self.conns.get_mut(&slot) {
                    conn.inbox.extend(bytes);
                }
                happenings.push(Happening::Readable(slot));
            }
            Event::ServerCloses => {
                if let Some(conn) = self.conns.get_mut(&slot) {
                    conn.is_ended = true;
                }
                happenings.push(Happening::Readable(slot));
            }
        }
    }
}

impl Net for SimNet {
    fn now(&self) -> Tick {
        self.now
    }

    fn dial(&mut self, slot: Slot, _: u32) -> Result<(), Fault> {
        self.dials += 1;
        if self.conns.contains_key(&slot) {
            // One connection after the other: the first is closed.
            self.server.gone(slot);
        }
        self.conns.insert(slot, Conn { dial: self.dials, ..Conn::default() });
        self.send_off(slot, 1, Event::Open);
        Ok(())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Read, Fault> {
        let Some(conn) = self.conns.get_mut(&slot) else { return Ok(Read::Last(0)) };
        let count = conn.inbox.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(conn.inbox.drain(..count)) {
            *to = from;
        }
        Ok(if count == 0 && conn.is_ended { Read::End } else { Read::Last(count) })
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Fault> {
        self.send_off(slot, 0, Event::ToServer(bytes.to_vec()));
        Ok(())
    }

    fn secure(&mut self, _: Slot) -> Result<(), Fault> {
        Err(Fault::new(FaultClass::Tls, "simulated connections are not encrypted"))
    }

    fn close(&mut self, slot: Slot) {
        if self.conns.remove(&slot).is_some() {
            self.server.gone(slot);
        }
    }

    fn poll(&mut self, until: Tick, happenings: &mut Vec<Happening>) {
        let Some(Reverse((at, ..))) = self.events.peek() else {
            self.now = self.now.max(until.min(END));
            return;
        };
        if *at > until {
            self.now = self.now.max(until);
            return;
        }
        if let Some(Reverse((at, _, slot, dial, event))) = self.events.pop() {
            self.now = self.now.max(at);
            self.happen(slot, dial, event, happenings);
        }
    }

    fn fault(&mut self, _: Slot) -> Fault {
        unreachable!("simulated connections do not break")
    }
}

/// What a simulated run leaves behind.
pub(crate) struct Outcome {
    pub(crate) intervals: Vec<Interval>,
    pub(crate) records: Vec<Record>,
}

impl Outcome {
    /// All seconds together.
    pub(crate) fn total(&self) -> Interval {
        let mut total = Interval::default();
        self.intervals.iter().for_each(|interval| total.merge(interval));
        total
    }
}

/// Carries out the plan of `setup` with one shard.
pub(crate) fn simulate(setup: Setup, net: SimNet) -> Outcome {
    simulate_governed(setup, net, &mut |_, _| Wish::AsPlanned)
}

/// As [`simulate`], with somebody who governs populations.
pub(crate) fn simulate_governed(
    setup: Setup,
    net: SimNet,
    govern: &mut dyn FnMut(Tick, &Holding<'_>) -> Wish,
) -> Outcome {
    let mut conductor = Conductor::new(Arc::clone(&setup.plan), setup.sources);
    let mut shard = Shard::new(setup, net);
    let mut outcome = Outcome { intervals: Vec::new(), records: Vec::new() };
    let mut dispatches = Vec::new();
    while shard.now() < END {
        shard.tend(&mut |dispatch| dispatches.push(dispatch));
        outcome.take(&mut dispatches, &mut conductor);
        if let Some(wish) = conductor.holding().map(|holding| govern(shard.now(), &holding)) {
            conductor.govern(wish);
        }
        for step in conductor.steps(shard.now()) {
            match step {
                Step::Order(order) => shard.obey(&order),
                Step::Record(record) => outcome.records.push(record),
            }
        }
        if conductor.is_finished() {
            break;
        }
        shard.wait();
    }
    shard.end(&mut |dispatch| dispatches.push(dispatch));
    outcome.take(&mut dispatches, &mut conductor);
    for step in conductor.finish(shard.now()) {
        if let Step::Record(record) = step {
            outcome.records.push(record);
        }
    }
    outcome
}

impl Outcome {
    fn take(&mut self, dispatches: &mut Vec<Dispatch>, conductor: &mut Conductor) {
        for dispatch in dispatches.drain(..) {
            match dispatch {
                Dispatch::Interval(interval) => self.intervals.push(*interval),
                Dispatch::Status(status) => conductor.hear(*status),
                Dispatch::Ended { .. } | Dispatch::Lost { .. } => {}
            }
        }
    }
}
