//! The slow way of a message: receiver by receiver, so that faults can strike single deliveries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

use protocols::yardstick::FrameWhat;

use crate::chat::room::Stored;
use crate::config::Config;
use crate::core::Core;
use crate::delivery::conn::{Dialect, put_frame};
use crate::faults::fault::{Fault, HOLD_TIME_MAX, Record, Records, Rules};
use crate::outlook::counters::Counters;

/// Bytes held back at once; beyond it nothing more is delayed or swapped.
const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A frame that goes out later than it should.
#[derive(Debug)]
struct Late {
    conn: u32,
    serial: u64,
    bytes: Vec<u8>,
    record: Record,
}

/// Faults under way and faults committed.
pub(crate) struct Faulty {
    rules: Rules,
    touches_receivers: bool,
    pub(crate) records: Records,
    /// Held back to be swapped, by room and the connection's serial number.
    held: HashMap<(u32, u64), Late>,
    /// Delayed, by due time; and the time-outs of `held`.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    delayed: HashMap<u64, Due>,
    sequence: u64,
    /// Bytes in `held` and `delayed`.
    held_bytes: usize,
}

#[derive(Debug)]
enum Due {
    Delayed(Late),
    Held { room: u32, serial: u64, number: u32 },
}

impl Faulty {
    pub(crate) fn new(config: &Config) -> io::Result<Faulty> {
        Ok(Faulty {
            touches_receivers: config.faults.touch_receivers(),
            rules: config.faults.clone(),
            records: Records::new(config.fault_file.as_deref())?,
            held: HashMap::new(),
            due: BinaryHeap::new(),
            delayed: HashMap::new(),
            sequence: 0,
            held_bytes: 0,
        })
    }

    #[inline]
    pub(crate) fn touches_receivers(&self) -> bool {
        self.touches_receivers
    }

    /// When the next late message is due.
    pub(crate) fn next_due_us(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due_us, _))| *due_us)
    }

    /// Notes that a fault was committed.
    pub(crate) fn commit(&mut self, record: Record, counters: &mut Counters) {
        *counters.faults.entry(record.kind).or_default() += 1;
        if self.records.push(record).is_err() {
            self.give_up_file(counters);
        }
    }

    /// Brings the fault file up to date.
    pub(crate) fn tidy(&mut self, counters: &mut Counters) {
        if self.records.flush().is_err() {
            self.give_up_file(counters);
        }
    }

    fn give_up_file(&mut self, counters: &mut Counters) {
        *counters.faults.entry("file_errors").or_default() += 1;
        self.records.drop_file();
    }

    fn schedule(&mut self, due_us: u64, due: Due) {
        self.sequence += 1;
        self.due.push(Reverse((due_us, self.sequence)));
        self.delayed.insert(self.sequence, due);
    }
}

impl Core {
    /// Gives a message to every member, or not, as the rules have it.
    pub(crate) fn put_faulty(&mut self, number: u32, stored: &Stored, now_us: u64) {
        let room_name = self.rooms[number as usize].name.clone();
        let mut receivers = Vec::new();
        for dialect in Dialect::ALL {
            let lane = &self.rooms[number as usize].lanes[dialect.lane()];
            if lane.members.is_empty() {
                continue;
            }
            let mut message = stored.message();
            message.room = (&*room_name).into();
            let mut bytes = Vec::new();
            put_frame(dialect, FrameWhat::Message(message), &mut self.scratch, &mut bytes);
            receivers.extend(lane.members.iter().map(|member| member.conn));
            for conn in receivers.drain(..) {
                let message = (stored.number, &*stored.text);
                self.deliver_faulty((number, &room_name), conn, message, &bytes, now_us);
            }
        }
    }

    /// Gives a message, by number and text, to one connection, or not.
    pub(crate) fn deliver_faulty(
        &mut self,
        (room, room_name): (u32, &str),
        conn_number: u32,
        (message, text): (u32, &str),
        bytes: &[u8],
        now_us: u64,
    ) {
        let id = conn_number as usize;
        let conn = &mut self.conns[id];
        let Some(name) = conn.name.clone().filter(|_| !conn.doomed) else { return };
        let serial = conn.serial;
        let faulty = &mut self.faulty;
        let full = faulty.held_bytes + bytes.len() > HELD_BYTES_MAX;
        let mut fault = faulty.rules.choose(room_name, message, &name);
        if full && matches!(fault, Some(Fault::Delay | Fault::Reorder)) {
            fault = None;
        }
        if fault == Some(Fault::Reorder) && faulty.held.contains_key(&(room, serial)) {
            fault = None; // it is the successor another message waits for
        }
        let record = |fault| Record::new(fault, room_name, message, &name, text);
        let late = |fault| Late {
            conn: conn_number,
            serial,
            bytes: bytes.to_vec(),
            record: record(fault),
        };
        match fault {
            Some(Fault::Drop) => return faulty.commit(record(Fault::Drop), &mut self.counters),
            Some(Fault::Delay) => {
                let due_us = now_us + faulty.rules.delay_time.as_micros() as u64;
                faulty.held_bytes += bytes.len();
                return faulty.schedule(due_us, Due::Delayed(late(Fault::Delay)));
            }
            Some(Fault::Reorder) => {
                faulty.held_bytes += bytes.len();
                faulty.held.insert((room, serial), late(Fault::Reorder));
                let timeout = Due::Held { room, serial, number: message };
                return faulty.schedule(now_us + HOLD_TIME_MAX.as_micros() as u64, timeout);
            }
            Some(Fault::Duplicate) => {
                conn.out.extend_from_slice(bytes);
                faulty.commit(record(Fault::Duplicate), &mut self.counters);
            }
            None => {}
        }
        conn.out.extend_from_slice(bytes);
        if let Some(held) = faulty.held.remove(&(room, serial)) {
            faulty.held_bytes -= held.bytes.len();
            conn.out.extend_from_slice(&held.bytes);
            faulty.commit(held.record, &mut self.counters);
        }
        self.enqueue(id);
    }

    /// Sends what is due of the delayed and the held.
    pub(crate) fn release_late(&mut self, now_us: u64) {
        while self.faulty.next_due_us().is_some_and(|due_us| due_us <= now_us) {
            let Some(Reverse((_, sequence))) = self.faulty.due.pop() else { return };
            match self.faulty.delayed.remove(&sequence) {
                Some(Due::Delayed(late)) => {
                    // Whoever is gone has lost it: what was done then is a drop.
                    let mut record = late.record.clone();
                    if !self.put_late(late) {
                        record.kind = Fault::Drop.word();
                    }
                    self.faulty.commit(record, &mut self.counters);
                }
                Some(Due::Held { room, serial, number }) => {
                    let held = self.faulty.held.get(&(room, serial));
                    if held.is_some_and(|late| late.record.number == number) {
                        self.release(room, serial);
                    }
                }
                None => {}
            }
        }
    }

    /// A member leaves: what is held back for a swap goes out as if nothing had been.
    pub(crate) fn release_held(&mut self, id: usize, room: u32) {
        if let Some(serial) = self.conns.get(id).map(|conn| conn.serial) {
            self.release(room, serial);
        }
    }

    fn release(&mut self, room: u32, serial: u64) {
        if let Some(late) = self.faulty.held.remove(&(room, serial)) {
            self.put_late(late);
        }
    }

    /// Whether the receiver is still there.
    fn put_late(&mut self, late: Late) -> bool {
        self.faulty.held_bytes -= late.bytes.len();
        let id = late.conn as usize;
        let conn = self.conns.get_mut(id);
        let Some(conn) = conn.filter(|conn| conn.serial == late.serial && !conn.doomed) else {
            return false;
        };
        conn.out.extend_from_slice(&late.bytes);
        self.enqueue(id);
        true
    }
}
