//! Sending: a connection is a cursor into each of its rooms' logs, and gets one write a flush.

use std::io;

use slab::Slab;

use crate::access::door::Door;
use crate::chat::room::Announced;
use crate::config::ANSWER_BYTES_MAX;
use crate::core::{Core, World, Write};
use crate::delivery::conn::{Blocked, Conn, Dialect, LANES, Phase, Source};
use crate::outlook::counters::Counters;
use crate::outlook::journal::Journal;

/// Writes handed over at a time in a flush.
const WRITES_MAX: usize = 256;

/// What became of a write.
enum Outcome {
    /// All was taken.
    Sent,
    /// The socket is full.
    Full,
    /// The socket is broken.
    Broken,
}

impl Core {
    /// Writes the answers that this turn has brought about.
    pub(crate) fn flush_queue(&mut self, world: &mut impl World) {
        for id in std::mem::take(&mut self.queue) {
            let Some(conn) = self.conns.get_mut(id as usize) else { continue };
            conn.queued = false;
            if conn.doomed {
                continue;
            }
            if conn.blocked.is_none() {
                self.send_answers(id as usize, world);
            }
            let Some(conn) = self.conns.get(id as usize) else { continue };
            if conn.pending().len() > ANSWER_BYTES_MAX && !conn.doomed {
                self.counters.cut_off("answers");
                let address = self.door.address(id as usize);
                self.journal.cut_off(conn.name.as_deref(), address, "answers");
                self.doom(id as usize);
            }
        }
    }

    /// Writes `out` of a connection that is not blocked elsewhere.
    fn send_answers(&mut self, id: usize, world: &mut impl World) {
        match send_out(&mut self.conns[id], id, world, &mut self.counters) {
            Outcome::Sent => self.goodbye_sent(id, world),
            Outcome::Full => {}
            Outcome::Broken => self.doom(id),
        }
    }

    fn goodbye_sent(&mut self, id: usize, world: &mut impl World) {
        let conn = &mut self.conns[id];
        if conn.phase == Phase::Goodbye {
            conn.phase = Phase::Lingering;
            conn.phase_since_us = world.now_us();
            world.finish(id);
        }
    }

    /// Sends every member what it may be sent and has not been.
    pub(crate) fn flush_room(&mut self, number: u32, world: &mut impl World) {
        self.counters.flushes += 1;
        self.note_flush_wait(number, world);
        let room = &mut self.rooms[number as usize];
        let mut announced = room.announce(&mut self.scratch);
        self.counters.encodings += std::mem::take(&mut room.encodings);
        let sendable: [u64; LANES] = std::array::from_fn(|lane| room.sendable(lane));
        while let Some(ends) = self.rooms[number as usize].next_ends(&sendable) {
            self.flush_lanes(number, &ends, announced.take().as_ref(), world);
        }
        self.flush_lanes(number, &sendable, announced.as_ref(), world);
    }

    fn flush_lanes(
        &mut self,
        number: u32,
        ends: &[u64; LANES],
        announced: Option<&Announced>,
        world: &mut impl World,
    ) {
        for dialect in Dialect::ALL {
            if let Some(announced) = announced {
                self.brief(number, dialect, announced);
            }
            self.flush_lane(number, dialect.lane(), ends[dialect.lane()], world);
        }
    }

    /// Members that arrived since the last flush get announcements of their own.
    fn brief(&mut self, number: u32, dialect: Dialect, announced: &Announced) {
        let room = &mut self.rooms[number as usize];
        let lane = &mut room.lanes[dialect.lane()];
        for member in lane.members.iter_mut().filter(|member| announced.is_fresh(member)) {
            let (bytes, cursor) =
                announced.private(&room.name, dialect, member, &lane.log, &mut self.scratch);
            self.conns[member.conn as usize].take_over(number, &bytes);
            member.cursor = cursor;
        }
    }

    /// Sends a lane's log up to `upto`, to some members at a time.
    fn flush_lane(&mut self, number: u32, lane: usize, upto: u64, world: &mut impl World) {
        let room = &mut self.rooms[number as usize];
        let is_held = !room.waiting.is_empty();
        let lane = &mut room.lanes[lane];
        let (log, end) = (&lane.log, lane.log.end());
        let batch_max = lane.members.len().min(WRITES_MAX);
        let (mut writes, mut done) = (Vec::with_capacity(batch_max), Vec::with_capacity(batch_max));
        let mut sender = Sender {
            conns: &mut self.conns,
            counters: &mut self.counters,
            doomed: &mut self.doomed,
            journal: &mut self.journal,
            door: &self.door,
            room: number,
        };
        let mut passed = end;
        for members in lane.members.chunks_mut(WRITES_MAX) {
            for (place, member) in members.iter().enumerate() {
                if sender.is_ready(member.conn, world) && member.cursor < upto {
                    let bytes = log.between(member.cursor, upto);
                    writes.push(Write { conn: member.conn, place: place as u32, bytes });
                }
            }
            sender.counters.writes += writes.len() as u64;
            world.write_many(&writes, &mut done);
            for (write, result) in writes.drain(..).zip(done.drain(..)) {
                let sent = sender.note(write, result, world);
                members[write.place as usize].cursor += sent as u64;
            }
            for member in members {
                if member.cursor < end {
                    let lag = (end - member.cursor) as usize;
                    sender.check_lag(member.conn, lag > self.config.lag_bytes_max, is_held);
                    passed = passed.min(member.cursor);
                }
            }
        }
        lane.log.trim(passed);
        lane.flushed = upto;
    }

    /// A socket takes bytes again: first what was cut in two, then all that has waited.
    pub(crate) fn writable(&mut self, id: usize, world: &mut impl World) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let Some(blocked) = conn.blocked.filter(|_| !conn.doomed) else { return };
        conn.blocked = None;
        if let Source::Room(room) = blocked.source {
            conn.blocked = Some(blocked); // so that `since_us` stays if nothing is taken
            self.send_room(id, room, world);
        }
        if self.conns[id].blocked.is_none() && !self.conns[id].doomed {
            // Kept for the same reason; send_out clears it.
            self.conns[id].blocked = Some(Blocked { source: Source::Answers, ..blocked });
            self.send_answers(id, world);
        }
        let mut index = 0;
        while let Some(place) = self.conns[id].rooms.get(index).copied() {
            if self.conns[id].blocked.is_some() || self.conns[id].doomed {
                break;
            }
            self.send_room(id, place.room, world);
            index += 1;
        }
    }

    fn send_room(&mut self, id: usize, number: u32, world: &mut impl World) {
        let conn = &mut self.conns[id];
        let (Some(place), Some(dialect)) = (conn.place(number), conn.dialect()) else { return };
        let room = &mut self.rooms[number as usize];
        let sendable = room.sendable(dialect.lane());
        let lane = &mut room.lanes[dialect.lane()];
        let member = &mut lane.members[place.index as usize];
        let bytes = lane.log.between(member.cursor, sendable.max(member.cursor));
        let source = Source::Room(number);
        let (sent, outcome) = send(conn, id, bytes, source, world, &mut self.counters);
        member.cursor += sent as u64;
        if matches!(outcome, Outcome::Broken) {
            self.doom(id);
        }
    }
}

/// What a flush needs of the core beside the room.
struct Sender<'a> {
    conns: &'a mut Slab<Conn>,
    counters: &'a mut Counters,
    doomed: &'a mut Vec<u32>,
    journal: &'a mut Journal,
    door: &'a Door,
    room: u32,
}

impl Sender<'_> {
    /// Whether a connection can be sent the log now. Its answers come first.
    #[inline]
    fn is_ready(&mut self, id: u32, world: &mut impl World) -> bool {
        let conn = &self.conns[id as usize];
        if conn.blocked.is_some() || conn.doomed {
            return false;
        }
        conn.out.is_empty() || self.send_answers(id, world)
    }

    #[cold]
    fn send_answers(&mut self, id: u32, world: &mut impl World) -> bool {
        let conn = &mut self.conns[id as usize];
        match send_out(conn, id as usize, world, self.counters) {
            Outcome::Sent => true,
            Outcome::Full => false,
            Outcome::Broken => {
                self.doom(id);
                false
            }
        }
    }

    /// What became of a write of the log; gives how many bytes were taken.
    #[inline]
    fn note(
        &mut self,
        write: Write<'_>,
        result: io::Result<usize>,
        world: &mut impl World,
    ) -> usize {
        if let Ok(sent) = result
            && sent == write.bytes.len()
        {
            self.counters.bytes_out += sent as u64;
            return sent;
        }
        self.note_cut(write.conn, result, world)
    }

    #[cold]
    fn note_cut(&mut self, id: u32, result: io::Result<usize>, world: &mut impl World) -> usize {
        let sent = match result {
            Ok(sent) if sent > 0 => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            _ => {
                self.doom(id);
                return 0;
            }
        };
        self.counters.bytes_out += sent as u64;
        let source = Source::Room(self.room);
        self.conns[id as usize].blocked = Some(Blocked { source, since_us: world.now_us() });
        sent
    }

    /// A member has not been sent all; if that is `much`, and not for want of a flush, it goes.
    #[cold]
    fn check_lag(&mut self, id: u32, is_much: bool, is_held: bool) {
        let conn = &self.conns[id as usize];
        if is_much && (conn.blocked.is_some() || is_held) && !conn.doomed {
            self.counters.cut_off("lag");
            let address = self.door.address(id as usize);
            self.journal.cut_off(conn.name.as_deref(), address, "lag");
            self.doom(id);
        }
    }

    fn doom(&mut self, id: u32) {
        self.conns[id as usize].doomed = true;
        self.doomed.push(id);
    }
}

/// Writes `out`; the answers of a connection come before the logs of its rooms.
#[inline]
fn send_out(
    conn: &mut Conn,
    id: usize,
    world: &mut impl World,
    counters: &mut Counters,
) -> Outcome {
    if conn.out.is_empty() {
        conn.blocked = None;
        return Outcome::Sent;
    }
    let out = std::mem::take(&mut conn.out);
    let (sent, outcome) = send(conn, id, &out[conn.out_sent..], Source::Answers, world, counters);
    conn.out = out;
    conn.sent(sent);
    outcome
}

/// One write; notes in the connection whether and where it is cut.
#[inline]
fn send(
    conn: &mut Conn,
    id: usize,
    bytes: &[u8],
    source: Source,
    world: &mut impl World,
    counters: &mut Counters,
) -> (usize, Outcome) {
    if bytes.is_empty() {
        conn.blocked = None;
        return (0, Outcome::Sent);
    }
    counters.writes += 1;
    let sent = match world.write(id, bytes) {
        Ok(0) => return (0, Outcome::Broken),
        Ok(sent) => sent,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(_) => return (0, Outcome::Broken),
    };
    counters.bytes_out += sent as u64;
    if sent == bytes.len() {
        conn.blocked = None;
        return (sent, Outcome::Sent);
    }
    let since_us = match conn.blocked {
        Some(blocked) if sent == 0 => blocked.since_us,
        _ => world.now_us(),
    };
    conn.blocked = Some(Blocked { source, since_us });
    (sent, Outcome::Full)
}
