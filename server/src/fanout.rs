//! Sending: a connection is a cursor into each of its rooms' logs, and gets one write a flush.

use std::io;

use crate::config::{ANSWER_BYTES_MAX, FLUSH_BYTES_MAX};
use crate::conn::{Blocked, Conn, Dialect, Phase, Source};
use crate::core::{Core, World};
use crate::counters::Counters;
use crate::room::Announced;

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

    /// Flushes the rooms that are due.
    pub(crate) fn flush_rooms(&mut self, now_us: u64, world: &mut impl World) {
        for number in std::mem::take(&mut self.dirty) {
            let room = &mut self.rooms[number as usize];
            let can_wait = room.flush_at_us > now_us && !self.stopping;
            if can_wait && room.bytes_waiting() < FLUSH_BYTES_MAX {
                self.dirty.push(number);
                continue;
            }
            room.dirty = false;
            let start_us = world.now_us();
            self.flush_room(number, world);
            let end_us = world.now_us();
            // Half of the time at most goes into a room's flushes, unless the window is shorter.
            let window_us = self.config.flush_window.as_micros() as u64;
            let pause_us = end_us.saturating_sub(start_us).min(window_us);
            self.rooms[number as usize].flush_at_us = end_us + pause_us;
        }
    }

    fn flush_room(&mut self, number: u32, world: &mut impl World) {
        self.counters.flushes += 1;
        self.note_flush_wait(number, world);
        let announced = self.rooms[number as usize].announce(&mut self.scratch);
        for dialect in Dialect::ALL {
            self.flush_lane(number, dialect, announced.as_ref(), world);
        }
    }

    fn flush_lane(
        &mut self,
        number: u32,
        dialect: Dialect,
        announced: Option<&Announced>,
        world: &mut impl World,
    ) {
        let room = &mut self.rooms[number as usize];
        let sendable = room.sendable(dialect.lane());
        let lane = &mut room.lanes[dialect.lane()];
        let (log, end) = (&lane.log, lane.log.end());
        let mut passed = end;
        for member in &mut lane.members {
            let id = member.conn as usize;
            let conn = &mut self.conns[id];
            if let Some(announced) = announced.filter(|announced| announced.is_fresh(member)) {
                let scratch = &mut self.scratch;
                let (bytes, cursor) = announced.private(&room.name, dialect, member, log, scratch);
                conn.take_over(number, &bytes);
                member.cursor = cursor;
            }
            if conn.blocked.is_none() && !conn.doomed {
                let source = Source::Room(number);
                let mut outcome = send_out(conn, id, world, &mut self.counters);
                if matches!(outcome, Outcome::Sent) && member.cursor < sendable {
                    let bytes = log.between(member.cursor, sendable);
                    let sent = send(conn, id, bytes, source, world, &mut self.counters);
                    member.cursor += sent.0 as u64;
                    outcome = sent.1;
                }
                if matches!(outcome, Outcome::Broken) {
                    conn.doomed = true;
                    self.doomed.push(member.conn);
                }
            }
            let lag = (end - member.cursor) as usize;
            let waits = conn.blocked.is_some() || sendable < end;
            if lag > self.config.lag_bytes_max && waits && !conn.doomed {
                self.counters.cut_off("lag");
                self.journal.cut_off(conn.name.as_deref(), self.door.address(id), "lag");
                conn.doomed = true;
                self.doomed.push(member.conn);
            }
            passed = passed.min(member.cursor);
        }
        lane.log.trim(passed);
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
