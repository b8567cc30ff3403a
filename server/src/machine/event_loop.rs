//! Sockets around the core: one thread, one readiness loop, one shared read buffer, the only clock.
#![allow(clippy::disallowed_methods)] // an event loop is where a server learns what time it is

use std::cmp::Reverse;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use protocols::wire::http::Refusal;

use crate::config::{Config, DESCRIPTORS_RESERVED, DRAIN_TIME_MAX};
use crate::core::{Core, Now, World};
use crate::faults::fault::{Record, Stall};
use crate::machine::secure::Secure;
use crate::machine::shards::{self, Shard};
use crate::machine::sockets::{Sockets, ring};
use crate::machine::stop::Stop;
use crate::machine::sys;
use crate::machine::workers::Workers;
use crate::outlook::counters::Counters;
use crate::outlook::journal::{Journal, Level, Value};

const LISTENER: Token = Token(usize::MAX - 1);
const WAKER: Token = Token(usize::MAX - 2);
/// Events taken from the kernel in one turn.
const EVENTS_MAX: usize = 1024;
/// Size of the read buffer all connections share, in bytes.
const READ_BYTES_MAX: usize = 64 * 1024;
/// Reads of one connection in one turn; what is left waits until the others had theirs.
const READS_PER_TURN_MAX: usize = 4;
/// Connections accepted in one turn.
const ACCEPTS_PER_TURN_MAX: usize = 256;
/// How long accepting rests when descriptors run out.
const ACCEPT_REST: Duration = Duration::from_millis(100);
/// How often counters are copied to where the handle sees them.
const PUBLISH_EVERY_US: u64 = 100_000;
/// How often a server that is to stop looks whether everybody has been sent everything.
const DRAIN_LOOK_EVERY: Duration = Duration::from_millis(20);

/// What a server leaves behind.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// All it counted.
    pub counters: Counters,
    /// The faults it committed, in order.
    pub faults: Vec<Record>,
}

/// A server that runs in its own thread.
pub struct Handle {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<Outcome>>>,
}

impl Handle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its counters, at most a tenth of a second old while it is busy.
    pub fn counters(&self) -> Counters {
        self.stop.counters()
    }

    /// Ends it and gives what it leaves behind.
    pub fn stop(mut self) -> io::Result<Outcome> {
        self.stop.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            _ => Err(io::Error::other("the server's thread panicked")),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // nobody is left to hear how it ended
        }
    }
}

/// Runs a server in a thread of its own.
pub fn spawn(config: Config, listener: TcpListener) -> io::Result<Handle> {
    let address = listener.local_addr()?;
    let stop = Stop::new();
    let signal = stop.clone();
    let thread = std::thread::Builder::new()
        .name("yardstick".to_owned())
        .spawn(move || run(config, listener, &signal))?;
    Ok(Handle { address, stop, thread: Some(thread) })
}

/// Serves on `listener` until `stop` is pulled.
pub fn run(config: Config, listener: TcpListener, stop: &Stop) -> io::Result<Outcome> {
    prepare(config, listener)?.run(stop)
}

/// A server that has all it needs and serves nobody yet.
pub struct Server {
    address: SocketAddr,
    kind: Kind,
}

enum Kind {
    One(Box<Ready>),
    Several(Box<Config>, TcpListener),
}

/// An event loop that has all it needs.
pub(crate) struct Ready {
    address: SocketAddr,
    event_loop: EventLoop,
    poll: Poll,
    waker: Arc<Waker>,
}

impl Server {
    /// Serves until `stop` is pulled.
    pub fn run(self, stop: &Stop) -> io::Result<Outcome> {
        match self.kind {
            Kind::One(ready) => ready.run(stop),
            Kind::Several(config, listener) => shards::run(*config, listener, stop, unix_ms()),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Ready {
    /// Serves until `stop` is pulled.
    pub(crate) fn run(mut self, stop: &Stop) -> io::Result<Outcome> {
        self.event_loop.core.tell_start(self.address, self.event_loop.shard);
        stop.wakes(self.waker);
        self.event_loop.run(self.poll, stop)
    }
}

/// Opens what is kept and starts the threads; connections wait until it runs. Of several shards
/// each does so by itself, when it runs.
pub fn prepare(config: Config, listener: TcpListener) -> io::Result<Server> {
    let address = listener.local_addr()?;
    let kind = match config.shards {
        1 => Kind::One(Box::new(prepare_shard(config, listener, None)?)),
        _ => Kind::Several(Box::new(config), listener),
    };
    Ok(Server { address, kind })
}

/// One event loop, which may be one of several.
pub(crate) fn prepare_shard(
    mut config: Config,
    listener: TcpListener,
    shard: Option<Shard>,
) -> io::Result<Ready> {
    let descriptors = sys::raise_descriptor_limit()?;
    let connections_max = descriptors.saturating_sub(DESCRIPTORS_RESERVED);
    config.connections_max = config.connections_max.min(connections_max);
    sys::lengthen_backlog(&listener)?;
    listener.set_nonblocking(true)?;
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    let address = listener.local_addr()?;
    let mut listener = mio::net::TcpListener::from_std(listener);
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut stalls = config.faults.stalls.clone();
    stalls.sort_by_key(|stall| Reverse(stall.after));
    let ring = ring(&config)?;
    let journal = Journal::new(config.log, io::stderr(), unix_ms())?;
    let (secure, pin) = (config.tls.clone().map(Secure::new), config.pin);
    let start = Instant::now();
    let number = shard.as_ref().map_or(0, |shard| shard.number);
    let (mut core, workers) = match shard {
        None => Workers::start(config, &waker, (start, unix_ms()))?,
        Some(shard) => Workers::of_shard(config, shard, &waker)?,
    };
    if let Some(first) = pin.0 {
        // Only now, or the other threads would be pinned with it.
        sys::pin(sys::processor_behind(first, number))?;
    }
    core.start_ms = unix_ms();
    core.journal = journal;
    let sockets = Sockets {
        registry: poll.registry().try_clone()?,
        streams: Vec::new(),
        secure,
        start,
        workers,
        ring,
    };
    let event_loop = EventLoop {
        core,
        sockets,
        listener: Some(listener),
        buffer: vec![0; READ_BYTES_MAX].into_boxed_slice(),
        unread: Vec::new(),
        accept_at_us: None,
        stalls,
        publish_at_us: 0,
        shard: number,
        reloads: 0,
    };
    Ok(Ready { address, event_loop, poll, waker })
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

struct EventLoop {
    core: Core,
    sockets: Sockets,
    /// `None` once the server is to stop.
    listener: Option<mio::net::TcpListener>,
    buffer: Box<[u8]>,
    /// Connections that had more to read than a turn allows.
    unread: Vec<usize>,
    /// When to accept again although the listener says nothing new.
    accept_at_us: Option<u64>,
    /// Stalls to come, the next one last.
    stalls: Vec<Stall>,
    publish_at_us: u64,
    /// Its number among the shards.
    shard: usize,
    /// How often the certificate was read again.
    reloads: u64,
}

impl EventLoop {
    fn run(mut self, mut poll: Poll, stop: &Stop) -> io::Result<Outcome> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut due_us = None;
        while !stop.is_wanted() {
            self.reload(stop);
            match poll.poll(&mut events, self.patience(due_us)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.stall(stop);
            let now = self.now();
            let start_us = now.us;
            self.sockets.workers.report(&mut self.core, now)?;
            for id in std::mem::take(&mut self.unread) {
                self.read(id, true, now);
            }
            for event in &events {
                self.handle(event, now);
            }
            if self.accept_at_us.is_some_and(|at_us| at_us <= now.us) {
                self.accept(now);
            }
            let now = self.now();
            due_us = self.core.end_turn(now, &mut self.sockets);
            let end_us = self.sockets.now_us();
            self.core.counters.turns.add(end_us.saturating_sub(start_us));
            self.publish(stop, now.us);
        }
        self.drain(&mut poll, &mut events)?;
        self.sockets.workers.close();
        self.publish_at_us = 0;
        self.publish(stop, u64::MAX);
        self.core.tell_stop(self.shard);
        let faults = std::mem::take(&mut self.core.faulty.records.list);
        Ok(Outcome { counters: self.core.counters, faults })
    }

    /// Takes nothing more; answers, stores and sends what was taken, within a bound; says goodbye.
    fn drain(&mut self, poll: &mut Poll, events: &mut Events) -> io::Result<()> {
        self.listener = None;
        self.core.stopping = true;
        let end_us = self.sockets.now_us() + DRAIN_TIME_MAX.as_micros() as u64;
        loop {
            let now = self.now();
            self.sockets.workers.report(&mut self.core, now)?;
            self.core.end_turn(now, &mut self.sockets);
            let is_sent = self.sockets.secure.as_ref().is_none_or(|secure| !secure.is_waiting());
            if self.core.is_settled() && is_sent || now.us >= end_us {
                break;
            }
            match poll.poll(events, Some(DRAIN_LOOK_EVERY)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in events.iter().filter(|event| event.is_writable()) {
                self.writable(event.token().0);
            }
        }
        let now = self.now();
        self.core.shut_down(now, &mut self.sockets);
        self.core.tell_bye(&mut self.sockets);
        Ok(())
    }

    fn now(&mut self) -> Now {
        let now = Now { us: self.sockets.now_us(), unix_ms: unix_ms() };
        self.core.journal.now_ms = now.unix_ms;
        now
    }

    /// Reads the certificate again if that is asked for; the old one stays if it cannot be read.
    fn reload(&mut self, stop: &Stop) {
        let reloads = stop.reloads();
        if std::mem::replace(&mut self.reloads, reloads) == reloads {
            return;
        }
        let Some(secure) = &mut self.sockets.secure else { return };
        let outcome = secure.reload();
        self.core.tell_reload(outcome);
    }

    /// How long the next turn may wait for events.
    fn patience(&mut self, due_us: Option<u64>) -> Option<Duration> {
        if !self.unread.is_empty() {
            return Some(Duration::ZERO);
        }
        let stall_us = self.stalls.last().map(|stall| stall.after.as_micros() as u64);
        let next_us = [due_us, self.accept_at_us, stall_us].into_iter().flatten().min()?;
        Some(Duration::from_micros(next_us.saturating_sub(self.sockets.now_us())))
    }

    fn handle(&mut self, event: &Event, now: Now) {
        match event.token() {
            LISTENER => self.accept(now),
            WAKER => {}
            Token(id) => {
                if event.is_writable() {
                    self.writable(id);
                }
                if event.is_readable() || event.is_read_closed() || event.is_error() {
                    let ended = event.is_read_closed() || event.is_error();
                    self.read(id, ended, now);
                }
            }
        }
    }

    fn writable(&mut self, id: usize) {
        match self.sockets.flush(id) {
            Ok(true) => self.core.writable(id, &mut self.sockets),
            Ok(false) => {}
            Err(_) => self.core.broke(id),
        }
    }

    fn accept(&mut self, now: Now) {
        self.accept_at_us = None;
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, peer)) if self.core.has_place(peer.ip()) => {
                    let _ = stream.set_nodelay(true); // without it only latency suffers
                    let id = self.core.open(Some(peer.ip()), now);
                    if self.sockets.put(id, stream).is_err() {
                        self.core.broke(id);
                    }
                }
                Ok((stream, _)) => self.turn_away(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    let why = error.to_string();
                    self.core.note(
                        Level::Error,
                        "accept_failed",
                        None,
                        &[("why", Value::Text(&why))],
                    );
                    // Out of descriptors or memory: what waits in the backlog is tried again.
                    self.core.counters.accept_errors += 1;
                    self.accept_at_us = Some(now.us + ACCEPT_REST.as_micros() as u64);
                    return;
                }
            }
        }
        self.accept_at_us = Some(now.us);
    }

    fn turn_away(&mut self, mut stream: TcpStream) {
        if self.sockets.secure.is_some() {
            return; // nothing can be said before a handshake, which is what costs
        }
        let mut answer = Vec::new();
        Refusal::Unavailable.write(&mut answer);
        let _ = stream.read(&mut self.buffer); // unread bytes would turn our answer into a reset
        let _ = stream.write(&answer); // a courtesy to a connection we do not keep
        let _ = stream.shutdown(Shutdown::Write);
    }

    /// Reads what has arrived. A read that does not fill the buffer has emptied the socket, so it
    /// is the last one, unless the peer has `ended`: its end is told by one more read.
    fn read(&mut self, id: usize, ended: bool, now: Now) {
        for _ in 0..READS_PER_TURN_MAX {
            let Some(stream) = self.sockets.stream(id) else { return };
            match stream.read(&mut self.buffer) {
                Ok(0) => return self.core.hung_up(id),
                Ok(length) => {
                    if !self.receive(id, length, now) {
                        return;
                    }
                    if length < READ_BYTES_MAX && !ended {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.core.broke(id),
            }
        }
        self.unread.push(id);
    }

    /// Gives the core what was read; whether the connection goes on.
    #[inline]
    fn receive(&mut self, id: usize, length: usize, now: Now) -> bool {
        let EventLoop { core, sockets, buffer, .. } = self;
        let bytes = &mut buffer[..length];
        match (&mut sockets.secure, sockets.streams.get_mut(id)) {
            (Some(secure), Some(Some(stream))) => secure.read(id, stream, bytes, core, now),
            _ => {
                core.receive(id, bytes, now);
                true
            }
        }
    }

    /// Serves nobody for as long as the rules have it.
    fn stall(&mut self, stop: &Stop) {
        const NAP: Duration = Duration::from_millis(10);
        let now_us = u128::from(self.sockets.now_us());
        let is_due = |stall: &mut Stall| stall.after.as_micros() <= now_us;
        let Some(stall) = self.stalls.pop_if(is_due) else { return };
        self.core.faulty.commit(Record::stall(), &mut self.core.counters);
        let end_us = now_us + stall.duration.as_micros();
        while u128::from(self.sockets.now_us()) < end_us && !stop.is_wanted() {
            let left_us = end_us.saturating_sub(u128::from(self.sockets.now_us()));
            std::thread::sleep(NAP.min(Duration::from_micros(left_us as u64)));
        }
    }

    fn publish(&mut self, stop: &Stop, now_us: u64) {
        if now_us >= self.publish_at_us {
            self.publish_at_us = now_us.saturating_add(PUBLISH_EVERY_US);
            self.core.others = stop.publish(self.shard, &self.core.counters);
        }
    }
}
