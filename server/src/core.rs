//! The server without sockets or clock: bytes of connections come in, writes go out to a [`World`].

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use protocols::wire::deflate::Inflated;
use protocols::wire::frame::{self, Frame, Limits, Opcode, close_code};
use protocols::wire::{http, origin};
use protocols::yardstick::{self, Encoding, Request};
use slab::Slab;

use crate::access::auth::Accounts;
use crate::access::door::Door;
use crate::access::login::{HashJob, Hashing};
use crate::chat::marks::MarkWriter;
use crate::chat::people::People;
use crate::chat::request::fail;
use crate::chat::room::Room;
use crate::cluster::Cluster;
use crate::config::{Config, HEAD_TIME_MAX, LINGER_TIME_MAX};
use crate::delivery::conn::{Conn, Dialect, Phase, Ticket};
use crate::delivery::pace::Pace;
use crate::delivery::throttle::Throttle;
use crate::durable::Keeping;
use crate::faults::faulty::Faulty;
use crate::outlook::counters::Counters;
use crate::outlook::journal::{Field, Journal, Level, Value};
use crate::outlook::pages;
use crate::outlook::web;
use crate::store;

/// How often connections are looked through for those that take too long.
const SWEEP_EVERY_US: u64 = 1_000_000;

/// What one connection is to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) conn: u32,
    /// The place among the members of its lane, for who asked for the write.
    pub(crate) place: u32,
    pub(crate) bytes: &'a [u8],
}

/// What the core needs of the machine.
pub(crate) trait World {
    /// Writes what the socket takes now; `WouldBlock` if nothing.
    fn write(&mut self, conn: usize, bytes: &[u8]) -> io::Result<usize>;
    /// One write to each of several connections, all different; `done` gets what [`World::write`]
    /// would have given for each, in order.
    fn write_many(&mut self, writes: &[Write<'_>], done: &mut Vec<io::Result<usize>>) {
        done.extend(writes.iter().map(|write| self.write(write.conn as usize, write.bytes)));
    }
    /// Ends the sending side.
    fn finish(&mut self, conn: usize);
    /// Closes the socket; the number may be used again.
    fn close(&mut self, conn: usize);
    /// Microseconds since the start.
    fn now_us(&mut self) -> u64;
    /// Uses up that much processor time for nothing.
    fn burn(&mut self, nanoseconds: u64);
    /// Takes what is to be stored; [`Core::stored`] is told of each when it is done.
    fn store(&mut self, jobs: &mut Vec<store::Job>);
    /// Takes news for the other nodes; [`Core::hear_news`] is told of theirs.
    fn announce(&mut self, sheets: &mut Vec<Vec<u8>>);
    /// Takes passwords that are to be hashed; [`Core::hashed`] is told of each when it is done.
    fn hash(&mut self, jobs: &mut Vec<HashJob>);
    /// Takes back the passwords of a connection, by its serial number, that are not begun; gives
    /// how many: of these [`Core::hashed`] is not told.
    fn unhash(&mut self, serial: u64) -> usize;
}

/// The time at which something arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Microseconds since the start.
    pub(crate) us: u64,
    /// Milliseconds since 1970.
    pub(crate) unix_ms: u64,
}

/// All of the server's state.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) accounts: Accounts,
    pub(crate) conns: Slab<Conn>,
    pub(crate) rooms: Vec<Room>,
    pub(crate) room_numbers: HashMap<Rc<str>, u32>,
    /// The same in the order of names.
    pub(crate) rooms_by_name: BTreeMap<Rc<str>, u32>,
    pub(crate) counters: Counters,
    /// What the other shards of this process have counted, at most a tenth of a second ago.
    pub(crate) others: Vec<Counters>,
    pub(crate) faulty: Faulty,
    /// Rooms with something to flush.
    pub(crate) pace: Pace,
    /// Connections with answers to send.
    pub(crate) queue: Vec<u32>,
    /// Connections to close at the end of the turn.
    pub(crate) doomed: Vec<u32>,
    /// Bytes of what rooms remember.
    pub(crate) history_bytes: usize,
    pub(crate) scratch: Vec<u8>,
    pub(crate) throttle: Throttle,
    /// Processor time to burn before this turn's flushes, in nanoseconds.
    pub(crate) burn_ns: u64,
    /// What waits for the store; `None` where nothing is kept.
    pub(crate) keeping: Option<Keeping>,
    pub(crate) hashing: Hashing,
    /// What it knows of other nodes; `None` where it is alone.
    pub(crate) cluster: Option<Cluster>,
    pub(crate) door: Door,
    pub(crate) journal: Journal,
    /// When the server was started, Unix milliseconds.
    pub(crate) start_ms: u64,
    /// Read markers that are to be written.
    pub(crate) marks: MarkWriter,
    pub(crate) people: People,
    /// The server is about to stop: rooms do not wait for a fuller flush.
    pub(crate) stopping: bool,
    serial: u64,
    sweep_at_us: u64,
}

impl Core {
    /// A server without rooms that keeps nothing; `key` must be random and secret.
    pub(crate) fn new(config: Config, key: [u8; 32]) -> io::Result<Core> {
        Ok(Core {
            accounts: Accounts::new(key, config.registration, config.hash_cost.cost()),
            conns: Slab::new(),
            rooms: Vec::new(),
            room_numbers: HashMap::new(),
            rooms_by_name: BTreeMap::new(),
            counters: Counters {
                errors: BTreeMap::new(),
                faults: BTreeMap::new(),
                ..Counters::default()
            },
            others: Vec::new(),
            faulty: Faulty::new(&config)?,
            pace: Pace::new(&config),
            queue: Vec::new(),
            doomed: Vec::new(),
            history_bytes: 0,
            scratch: Vec::new(),
            throttle: Throttle::new(config.deliveries_per_second),
            burn_ns: 0,
            keeping: None,
            hashing: Hashing::default(),
            cluster: None,
            door: Door::new(&config),
            journal: Journal::off(),
            start_ms: 0,
            marks: MarkWriter::default(),
            people: People::default(),
            stopping: false,
            serial: 0,
            sweep_at_us: SWEEP_EVERY_US,
            config,
        })
    }

    /// Whether one more connection, from there, fits; one that does not is counted.
    pub(crate) fn has_place(&mut self, address: IpAddr) -> bool {
        let cause = if self.conns.len() >= self.config.connections_max {
            self.counters.refused += 1;
            "full"
        } else if !self.door.has_place(address) {
            self.counters.refused_address += 1;
            "address"
        } else {
            return true;
        };
        self.note(Level::Warn, "refused", Some(address), &[("cause", Value::Text(cause))]);
        false
    }

    /// Tells of an event and where it comes from.
    pub(crate) fn note(
        &mut self,
        level: Level,
        event: &'static str,
        address: Option<IpAddr>,
        fields: &[Field<'_>],
    ) {
        self.journal.note_of(level, event, address, fields);
    }

    /// A connection was accepted; gives its number.
    pub(crate) fn open(&mut self, address: Option<IpAddr>, now: Now) -> usize {
        self.serial += 1;
        self.counters.accepted += 1;
        let id = self.conns.insert(Conn::new(self.serial, now.us));
        self.door.opened(id, address);
        self.counters.connections = self.conns.len() as u64;
        id
    }

    /// The peer ended its sending side.
    pub(crate) fn hung_up(&mut self, id: usize) {
        // Who only ended its sending side still gets its page; the sweep closes it.
        if self.conns.get(id).is_none_or(|conn| conn.phase != Phase::Goodbye) {
            self.doom(id);
        }
    }

    /// The socket broke.
    pub(crate) fn broke(&mut self, id: usize) {
        self.doom(id);
    }

    /// Bytes arrived.
    pub(crate) fn receive(&mut self, id: usize, bytes: &mut [u8], now: Now) {
        self.counters.bytes_in += bytes.len() as u64;
        let Some(conn) = self.conns.get_mut(id) else { return };
        if conn.inbox.is_empty() {
            let used = self.consume(id, bytes, now);
            self.keep_unread(id, &bytes[used..]);
            return;
        }
        let mut inbox = std::mem::take(&mut conn.inbox);
        inbox.extend_from_slice(bytes);
        let used = self.consume(id, &mut inbox, now);
        self.keep_unread(id, &inbox[used..]);
    }

    fn keep_unread(&mut self, id: usize, rest: &[u8]) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let listens = matches!(conn.phase, Phase::Head | Phase::Open(_)) && !conn.doomed;
        if listens && !rest.is_empty() {
            conn.inbox = rest.to_vec();
        }
    }

    /// Takes whole heads and frames off the front of `bytes`; gives how many bytes that was.
    fn consume(&mut self, id: usize, bytes: &mut [u8], now: Now) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            let Some(conn) = self.conns.get(id).filter(|conn| !conn.doomed) else { break };
            let taken = match conn.phase {
                Phase::Head => self.read_head(id, &bytes[used..], now),
                Phase::Open(dialect) => self.read_frame(id, dialect, &mut bytes[used..], now),
                Phase::Goodbye | Phase::Lingering => return bytes.len(),
            };
            let Some(taken) = taken else { break };
            used += taken;
        }
        used
    }

    fn read_head(&mut self, id: usize, bytes: &[u8], now: Now) -> Option<usize> {
        let head = match http::read_request(bytes) {
            Ok(head) => head?,
            Err(refusal) => {
                self.counters.protocol_errors += 1;
                self.refuse(id, refusal, now);
                return None;
            }
        };
        match head.upgrade {
            Some(handshake) if head.path == yardstick::PATH => {
                if !self.is_from_here(id, &handshake) {
                    let why = "this page is from elsewhere; --origin lets it in";
                    self.refuse(id, http::Refusal::Forbidden(why), now);
                    return None;
                }
                let chosen = handshake.protocols().find_map(Encoding::of_subprotocol);
                let Some(encoding) = chosen else {
                    let why = "Sec-WebSocket-Protocol offers no yardstick.v1.json or .proto";
                    self.refuse(id, http::Refusal::BadRequest(why), now);
                    return None;
                };
                let conn = &mut self.conns[id];
                let deflate = self.config.deflate && handshake.offers_deflate;
                handshake.accept_with(&mut conn.out, Some(encoding.subprotocol()), deflate);
                conn.phase = Phase::Open(Dialect { encoding, deflate });
                conn.phase_since_us = now.us;
                self.enqueue(id);
                Some(head.consumed)
            }
            _ => {
                if let Some(file) = self.config.page.then(|| web::at(head.path)).flatten() {
                    file.write(head.if_none_match, &mut self.conns[id].out);
                    self.say_goodbye(id, now);
                    return None;
                }
                let page = pages::page(head.path, self);
                match page {
                    Ok(pages::Page { status, content_type, body }) => {
                        let out = &mut self.conns[id].out;
                        http::write_response(out, status, &[], content_type, body.as_bytes());
                        self.say_goodbye(id, now);
                    }
                    Err(refusal) => self.refuse(id, refusal, now),
                }
                None
            }
        }
    }

    /// Whether who asks is no page, or one that may connect.
    fn is_from_here(&mut self, id: usize, handshake: &http::Handshake<'_>) -> bool {
        let Some(from) = handshake.origin else { return true };
        if origin::is_allowed(from, handshake.host, &self.config.origins) {
            return true;
        }
        self.counters.refused_origin += 1;
        let fields = [("cause", Value::Text("origin")), ("origin", Value::Text(from))];
        self.note(Level::Warn, "refused", self.door.address(id), &fields);
        false
    }

    fn refuse(&mut self, id: usize, refusal: http::Refusal, now: Now) {
        refusal.write(&mut self.conns[id].out);
        self.say_goodbye(id, now);
    }

    fn read_frame(
        &mut self,
        id: usize,
        dialect: Dialect,
        bytes: &mut [u8],
        now: Now,
    ) -> Option<usize> {
        match frame::decode_masked(bytes, limits(dialect)) {
            Ok(None) => None,
            Ok(Some((frame, used))) => {
                self.take_frame(id, dialect, frame, now);
                Some(used)
            }
            Err(error) => {
                self.break_off(id, error.close_code(), &error.to_string(), now);
                None
            }
        }
    }

    fn take_frame(&mut self, id: usize, dialect: Dialect, frame: Frame<'_>, now: Now) {
        let mut parts = std::mem::take(&mut self.conns[id].parts);
        match parts.push(frame, limits(dialect)) {
            Ok(Some(Frame { opcode, payload, compressed: false, .. })) => {
                self.take_message(id, dialect, opcode, payload, now);
            }
            Ok(Some(Frame { opcode, payload, .. })) => {
                let mut inflated = Inflated::default();
                match inflated.inflate(payload, Limits::SERVER.message_bytes_max) {
                    Ok(payload) => self.take_message(id, dialect, opcode, payload, now),
                    Err(error) => self.break_off(id, error.close_code(), &error.to_string(), now),
                }
            }
            Ok(None) => {}
            Err(error) => self.break_off(id, error.close_code(), &error.to_string(), now),
        }
        if let Some(conn) = self.conns.get_mut(id) {
            conn.parts = parts;
        }
    }

    fn take_message(
        &mut self,
        id: usize,
        dialect: Dialect,
        opcode: Opcode,
        payload: &[u8],
        now: Now,
    ) {
        let encoding = dialect.encoding;
        match opcode {
            Opcode::Ping => {
                frame::write_frame(&mut self.conns[id].out, Opcode::Pong, payload, None);
                self.enqueue(id);
            }
            Opcode::Pong | Opcode::Continuation => {}
            Opcode::Close => self.close_back(id, payload, now),
            opcode if opcode != encoding.opcode() => {
                self.break_off(id, close_code::BAD_DATA, "JSON is text, protobuf is binary", now);
            }
            _ => match Request::decode(encoding, payload) {
                Ok(request) if self.door.is_too_fast(id, now.us) => {
                    let limit = self.config.requests_per_second;
                    let refusal = fail("too_fast", format!("at most {limit} requests a second"));
                    self.answer(id, dialect, request.id, refusal);
                }
                Ok(request) => self.request(id, dialect, request, now),
                Err(error) => self.break_off(id, close_code::BAD_DATA, &error.to_string(), now),
            },
        }
    }

    fn close_back(&mut self, id: usize, payload: &[u8], now: Now) {
        match frame::read_close(payload) {
            Ok(close) => {
                let code = close.map_or(close_code::NORMAL, |(code, _)| code);
                self.leave_all(id);
                frame::write_close(&mut self.conns[id].out, code, "", None);
                self.say_goodbye(id, now);
            }
            Err(error) => self.break_off(id, error.close_code(), &error.to_string(), now),
        }
    }

    /// The peer broke a rule: says so and ends the connection.
    fn break_off(&mut self, id: usize, code: u16, why: &str, now: Now) {
        self.counters.protocol_errors += 1;
        self.leave_all(id);
        frame::write_close(&mut self.conns[id].out, code, why, None);
        self.say_goodbye(id, now);
    }

    /// Sends what is left and then ends.
    fn say_goodbye(&mut self, id: usize, now: Now) {
        let conn = &mut self.conns[id];
        conn.phase = Phase::Goodbye;
        conn.phase_since_us = now.us;
        self.enqueue(id);
    }

    /// What tells a request of `id` from all others.
    pub(crate) fn ticket(&self, id: usize, request: u32) -> Ticket {
        Ticket { conn: id as u32, serial: self.conns[id].serial, request }
    }

    /// The connection that holds a ticket, if it still listens.
    pub(crate) fn asker(&self, ticket: Ticket) -> Option<(usize, Dialect)> {
        let conn = self.conns.get(ticket.conn as usize)?;
        let is_it = conn.serial == ticket.serial && !conn.doomed;
        conn.dialect().filter(|_| is_it).map(|dialect| (ticket.conn as usize, dialect))
    }

    /// The answers of `id` are written at the end of the turn.
    pub(crate) fn enqueue(&mut self, id: usize) {
        let conn = &mut self.conns[id];
        if !conn.queued {
            conn.queued = true;
            self.queue.push(id as u32);
        }
    }

    /// `id` is closed at the end of the turn.
    pub(crate) fn doom(&mut self, id: usize) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        if !conn.doomed {
            conn.doomed = true;
            self.doomed.push(id as u32);
        }
    }

    /// Does what is due: answers, rooms, late messages, closings. Gives the time by which it wants
    /// to be called again though nothing may arrive.
    pub(crate) fn end_turn(&mut self, now: Now, world: &mut impl World) -> Option<u64> {
        self.release_late(now.us);
        self.release_throttled(now.us);
        if self.burn_ns > 0 {
            world.burn(std::mem::take(&mut self.burn_ns));
        }
        self.flush_queue(world);
        self.flush_rooms(now.us, world);
        if now.us >= self.sweep_at_us {
            self.sweep_at_us = now.us + SWEEP_EVERY_US;
            self.sweep(now.us);
            self.faulty.tidy(&mut self.counters);
            self.journal.tidy();
            self.counters.log_dropped = self.journal.dropped();
        }
        self.close_doomed(world);
        self.write_marks(now.us);
        self.hand_over(world);
        let beat = self.tell_news(now, world);
        let rooms = self.pace.next_due_us(now.us);
        let sweep = (!self.conns.is_empty()).then_some(self.sweep_at_us);
        let throttle = self.throttle.next_due_us();
        let marks = self.marks.next_due_us();
        [rooms, self.faulty.next_due_us(), throttle, marks, sweep, beat].into_iter().flatten().min()
    }

    /// Looks for connections that take too long.
    fn sweep(&mut self, now_us: u64) {
        let older = |since_us: u64, limit: Duration| {
            u128::from(now_us.saturating_sub(since_us)) > limit.as_micros()
        };
        let mut late = Vec::new();
        for (id, conn) in &self.conns {
            match conn.phase {
                Phase::Head if older(conn.phase_since_us, HEAD_TIME_MAX) => {
                    self.counters.head_timeouts += 1;
                    late.push(id);
                }
                Phase::Lingering if older(conn.phase_since_us, LINGER_TIME_MAX) => late.push(id),
                _ => {}
            }
            let stuck = |blocked: crate::delivery::conn::Blocked| {
                older(blocked.since_us, self.config.unwritable_max)
            };
            if conn.blocked.is_some_and(stuck) && !conn.doomed {
                self.counters.cut_off("unwritable");
                let (name, address) = (conn.name.as_deref(), self.door.address(id));
                self.journal.cut_off(name, address, "unwritable");
                late.push(id);
            }
        }
        for id in late {
            self.doom(id);
        }
    }

    pub(crate) fn close_doomed(&mut self, world: &mut impl World) {
        for id in std::mem::take(&mut self.doomed) {
            let id = id as usize;
            self.leave_all(id);
            self.people.unlink(id, &mut self.conns);
            let conn = self.conns.remove(id);
            self.door.closed(id);
            if conn.logging_in {
                self.forget_login(conn.serial, world);
            }
            world.close(id);
        }
        self.counters.connections = self.conns.len() as u64;
    }

    /// Whether all that was taken is answered, stored and sent.
    pub(crate) fn is_settled(&self) -> bool {
        let is_kept = self.keeping.as_ref().is_none_or(|keeping| keeping.open == 0);
        let is_sent = |conn: &Conn| conn.out.is_empty() && conn.blocked.is_none();
        is_kept
            && self.hashing.open == 0
            && self.marks.is_empty()
            && self.pace.is_empty()
            && self.conns.iter().all(|(_, conn)| conn.doomed || is_sent(conn))
    }

    /// Tells everybody who has been sent everything that the server goes away.
    pub(crate) fn shut_down(&mut self, now: Now, world: &mut impl World) {
        let mut bytes = Vec::new();
        frame::write_close(&mut bytes, close_code::GOING_AWAY, "the server stops", None);
        let is_told = |conn: &Conn| matches!(conn.phase, Phase::Open(_)) && conn.blocked.is_none();
        let told: Vec<usize> =
            self.conns.iter().filter(|(_, conn)| is_told(conn)).map(|(id, _)| id).collect();
        for id in told {
            self.conns[id].out.extend_from_slice(&bytes);
            self.say_goodbye(id, now);
        }
        self.flush_queue(world);
        self.faulty.tidy(&mut self.counters);
    }
}

/// What is accepted of a client that speaks so.
fn limits(dialect: Dialect) -> Limits {
    Limits::SERVER.with_compression(dialect.deflate)
}
