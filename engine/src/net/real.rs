//! Real sockets: one `mio` readiness loop a shard, with an exact timer.

use super::tls::Tls;
use super::{Happening, Net, Read, Slot};
use crate::clock::Clock;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use model::{Fault, FaultClass, Tick};
use rustls::ClientConnection;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Readiness events fetched in one system call.
const EVENTS_MAX: usize = 1024;
/// Connections from one source address to one endpoint. The smallest usual range of local ports
/// (32768 to 60999) has more, but `connect` tries them one by one, at first every second one only:
/// beyond 14,000 that are taken it takes milliseconds, then seconds.
const PORTS_PER_ADDRESS: u32 = 8_000;
const TOKEN_WAKER: Token = Token(usize::MAX);
const TOKEN_TIMER: Token = Token(usize::MAX - 1);

/// Where and how connections are made.
#[derive(Clone, Debug)]
pub struct Route {
    /// The target's addresses; people are dealt out to them in turn.
    pub endpoints: Vec<SocketAddr>,
    /// How connections are encrypted, and when that begins.
    pub encryption: TlsStart,
    /// Local addresses to connect from; empty to let the system choose.
    pub sources: Vec<IpAddr>,
    /// Most bytes kept for a target that does not read.
    pub backlog_bytes_max: usize,
}

/// When connections are encrypted.
#[derive(Clone, Debug)]
pub enum TlsStart {
    /// Not at all.
    Never,
    /// With the first byte.
    AtOnce(Tls),
    /// When the session asks for it. Where TLS cannot be set up, only then it is a fault: a target
    /// that does not offer it can be loaded all the same.
    Asked(Result<Tls, String>),
}

impl Route {
    /// Loopback source addresses enough for `people`, if the target is on loopback and the ports
    /// of a single address would not do. The whole of 127.0.0.0/8 is local on Linux.
    pub fn loopback_sources(endpoints: &[SocketAddr], people: u32) -> Vec<IpAddr> {
        let each = people / endpoints.len().max(1) as u32;
        let is_loopback = endpoints.iter().all(|address| match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(_) => false,
        });
        match is_loopback && each > PORTS_PER_ADDRESS {
            false => Vec::new(),
            true => (0..=each / PORTS_PER_ADDRESS)
                .map(|k| Ipv4Addr::from(0x7F00_0001 + k).into())
                .collect(),
        }
    }
}

struct Conn {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// What the target has not taken yet.
    backlog: Vec<u8>,
    state: State,
    /// The target has closed its half: what is left is to be read to its end, since no further
    /// event will tell of it.
    is_ending: bool,
    /// Tells a reused slot from the connection an old event was about.
    generation: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Handshaking,
    Open,
    /// To be closed when the backlog is sent.
    Closing,
}

/// The sockets of one shard.
pub struct RealNet {
    clock: Clock,
    route: Arc<Route>,
    poll: Poll,
    events: Events,
    timer: OwnedFd,
    timer_set: Tick,
    conns: Vec<Option<Conn>>,
    faults: Vec<(Slot, Fault)>,
    /// Connections whose TLS handshake was over as soon as it began: no event tells of it.
    secured: Vec<Slot>,
    generation: u32,
}

impl RealNet {
    /// A loop without connections, and the waker others may call it with.
    pub fn new(clock: Clock, route: Arc<Route>) -> io::Result<(RealNet, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), TOKEN_WAKER)?;
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is open and owned by nobody else.
        let timer = unsafe { OwnedFd::from_raw_fd(fd) };
        poll.registry().register(&mut SourceFd(&fd), TOKEN_TIMER, Interest::READABLE)?;
        let net = RealNet {
            clock,
            route,
            poll,
            events: Events::with_capacity(EVENTS_MAX),
            timer,
            timer_set: Tick::NEVER,
            conns: Vec::new(),
            faults: Vec::new(),
            secured: Vec::new(),
            generation: 0,
        };
        Ok((net, waker))
    }

    /// Arms the exact timer: `epoll` itself only counts milliseconds.
    fn set_timer(&mut self, until: Tick) {
        if self.timer_set == until {
            return;
        }
        self.timer_set = until;
        let ns = match until {
            Tick::NEVER => 0,
            until => self.clock.epoch_ns().saturating_add(until.0).max(1),
        };
        let value = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        let spec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: value,
        };
        let fd = self.timer.as_raw_fd();
        // SAFETY: `fd` is our timer, `spec` a valid itimerspec; the old value is not asked for.
        unsafe { libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &spec, std::ptr::null_mut()) };
    }

    fn open_socket(&self, slot: Slot, spread: u32) -> io::Result<TcpStream> {
        let endpoints = &self.route.endpoints;
        let address = endpoints[spread as usize % endpoints.len()];
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if !self.route.sources.is_empty() {
            let turn = spread as usize / endpoints.len();
            let source = self.route.sources[turn % self.route.sources.len()];
            bind_address_no_port(&socket)?;
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        let mut stream = TcpStream::from_std(socket.into());
        let token = token(slot, self.generation);
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, token, both)?;
        Ok(stream)
    }

    fn ready(&mut self, slot: Slot, read: bool, write: bool, out: &mut Vec<Happening>) {
        let Some(Some(conn)) = self.conns.get_mut(slot as usize) else { return };
        let was_connecting = conn.state == State::Connecting;
        let result = match conn.state {
            State::Connecting => conn.connected(write),
            State::Handshaking => conn.handshake(),
            State::Open | State::Closing => conn.flush().map(|()| None),
        };
        match result {
            Ok(Some(State::Open)) => {
                out.push(Happening::Opened(slot));
                // Bytes that came with the end of the handshake raise no event of their own.
                if read || conn.tls.is_some() {
                    out.push(Happening::Readable(slot));
                }
            }
            Ok(None) if was_connecting && conn.state == State::Handshaking => {
                out.push(Happening::Accepted(slot));
            }
            Ok(_) if conn.state == State::Closing && conn.is_flushed() => {
                self.conns[slot as usize] = None;
            }
            Ok(_) if conn.state == State::Open && read => out.push(Happening::Readable(slot)),
            Ok(_) => {}
            Err(fault) => {
                self.faults.push((slot, fault));
                out.push(Happening::Broken(slot));
            }
        }
    }
}

impl Conn {
    /// After a connect: is it open, or why not.
    fn connected(&mut self, writable: bool) -> Result<Option<State>, Fault> {
        if let Ok(Some(error)) | Err(error) = self.stream.take_error() {
            return Err(refused(&error));
        }
        match self.stream.peer_addr() {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotConnected && !writable => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(None),
            Err(error) => return Err(refused(&error)),
        }
        self.state = State::Handshaking;
        self.handshake()
    }

    /// Goes on with the TLS handshake; without TLS there is none.
    fn handshake(&mut self) -> Result<Option<State>, Fault> {
        if let Some(tls) = &mut self.tls {
            while tls.is_handshaking() {
                match tls.complete_io(&mut self.stream) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                    Err(error) => return Err(Fault::new(FaultClass::Tls, error.to_string())),
                }
            }
        }
        self.state = State::Open;
        Ok(Some(State::Open))
    }

    fn is_flushed(&self) -> bool {
        self.backlog.is_empty() && self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Sends what was kept, as far as the target takes it.
    fn flush(&mut self) -> Result<(), Fault> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                match tls.write_tls(&mut self.stream) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(closed(&error)),
                }
            }
        }
        while !self.backlog.is_empty() {
            match self.stream.write(&self.backlog) {
                Ok(n) => drop(self.backlog.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(closed(&error)),
            }
        }
        self.backlog = Vec::new();
        Ok(())
    }

    fn send_plain(&mut self, mut bytes: &[u8], backlog_bytes_max: usize) -> Result<(), Fault> {
        while self.backlog.is_empty() && !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(closed(&error)),
            }
        }
        if self.backlog.len() + bytes.len() > backlog_bytes_max {
            return Err(Fault::new(
                FaultClass::Backlog,
                format!("the target did not read while {backlog_bytes_max} bytes waited"),
            ));
        }
        self.backlog.extend_from_slice(bytes);
        Ok(())
    }

    fn read_tls(&mut self, buffer: &mut [u8]) -> Result<Read, Fault> {
        let Some(tls) = &mut self.tls else { return Ok(Read::Last(0)) };
        let mut is_ended = false;
        let mut is_drained = false;
        while tls.wants_read() && !is_drained && !is_ended {
            match tls.read_tls(&mut self.stream) {
                Ok(0) => is_ended = true,
                Ok(_) => {
                    let state = tls
                        .process_new_packets()
                        .map_err(|error| Fault::new(FaultClass::Tls, error.to_string()))?;
                    is_ended |= state.peer_has_closed();
                    if state.plaintext_bytes_to_read() >= buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => is_drained = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(closed(&error)),
            }
        }
        match tls.reader().read(buffer) {
            Ok(n) if n > 0 => Ok(Read::Some(n)),
            Ok(_) => Ok(Read::End),
            Err(error) if error.kind() == ErrorKind::WouldBlock && !is_ended => Ok(Read::Last(0)),
            Err(_) => Ok(Read::End),
        }
    }
}

impl Net for RealNet {
    fn now(&self) -> Tick {
        self.clock.now()
    }

    fn dial(&mut self, slot: Slot, spread: u32) -> Result<(), Fault> {
        let at = slot as usize;
        if self.conns.len() <= at {
            self.conns.resize_with(at + 1, || None);
        }
        self.generation = self.generation.wrapping_add(1);
        let tls = match &self.route.encryption {
            TlsStart::AtOnce(tls) => Some(tls.connection()?),
            TlsStart::Never | TlsStart::Asked(_) => None,
        };
        let stream = self.open_socket(slot, spread).map_err(|error| refused(&error))?;
        let generation = self.generation;
        self.conns[at] = Some(Conn {
            stream,
            tls,
            backlog: Vec::new(),
            state: State::Connecting,
            is_ending: false,
            generation,
        });
        Ok(())
    }

    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Read, Fault> {
        let Some(Some(conn)) = self.conns.get_mut(slot as usize) else { return Ok(Read::Last(0)) };
        if conn.state == State::Handshaking {
            // What arrives belongs to the handshake, and its own events go on with it.
            return Ok(Read::Last(0));
        }
        if conn.tls.is_some() {
            return conn.read_tls(buffer);
        }
        loop {
            return match conn.stream.read(buffer) {
                Ok(0) => Ok(Read::End),
                // A short read has emptied the socket; an end still to come raises another event.
                Ok(n) if n < buffer.len() && !conn.is_ending => Ok(Read::Last(n)),
                Ok(n) => Ok(Read::Some(n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Read::Last(0)),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(closed(&error)),
            };
        }
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Fault> {
        let Some(Some(conn)) = self.conns.get_mut(slot as usize) else {
            return Err(Fault::new(FaultClass::Offline, "there is no connection"));
        };
        let limit = self.route.backlog_bytes_max;
        match &mut conn.tls {
            None => conn.send_plain(bytes, limit),
            Some(tls) => {
                tls.set_buffer_limit(Some(limit));
                let taken = tls.writer().write(bytes).unwrap_or(0);
                conn.flush()?;
                match taken == bytes.len() {
                    true => Ok(()),
                    false => Err(Fault::new(
                        FaultClass::Backlog,
                        format!("the target did not read while {limit} bytes waited"),
                    )),
                }
            }
        }
    }

    fn secure(&mut self, slot: Slot) -> Result<(), Fault> {
        let Some(Some(conn)) = self.conns.get_mut(slot as usize) else {
            return Err(Fault::new(FaultClass::Offline, "there is no connection"));
        };
        let tls = match &self.route.encryption {
            TlsStart::Asked(Ok(tls)) => tls.connection()?,
            TlsStart::Asked(Err(advice)) => {
                return Err(Fault::new(FaultClass::Tls, advice.as_str()));
            }
            TlsStart::Never | TlsStart::AtOnce(_) => {
                return Err(Fault::new(FaultClass::Tls, "TLS was not expected here"));
            }
        };
        if conn.state != State::Open || conn.tls.is_some() || !conn.backlog.is_empty() {
            return Err(Fault::new(FaultClass::Tls, "TLS cannot begin in the middle of something"));
        }
        conn.tls = Some(tls);
        conn.state = State::Handshaking;
        // Our half goes out at once; its answer raises an event, unless it is here already.
        if conn.handshake()? == Some(State::Open) {
            self.secured.push(slot);
        }
        Ok(())
    }

    fn close(&mut self, slot: Slot) {
        let Some(entry) = self.conns.get_mut(slot as usize) else { return };
        let Some(conn) = entry else { return };
        if let Some(tls) = &mut conn.tls {
            tls.send_close_notify();
            // A target that is gone already does not mind.
            let _ = conn.flush();
        }
        match conn.state == State::Open && !conn.is_flushed() {
            true => conn.state = State::Closing,
            false => *entry = None,
        }
    }

    fn poll(&mut self, until: Tick, happenings: &mut Vec<Happening>) {
        for slot in self.secured.drain(..) {
            let conn = self.conns.get(slot as usize).and_then(Option::as_ref);
            if conn.is_some_and(|conn| conn.state == State::Open) {
                happenings.extend([Happening::Opened(slot), Happening::Readable(slot)]);
            }
        }
        let is_due = until <= self.clock.now() || !happenings.is_empty();
        if !is_due {
            self.set_timer(until);
        }
        let timeout = is_due.then_some(std::time::Duration::ZERO);
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return,
            Err(error) => unreachable!("a registered poll cannot fail: {error}"),
        }
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in &events {
            match event.token() {
                TOKEN_WAKER => happenings.push(Happening::Called),
                TOKEN_TIMER => self.timer_set = Tick::NEVER,
                Token(number) => {
                    let (slot, generation) = (number as u32, (number >> 32) as u32);
                    let conn = self.conns.get_mut(slot as usize).and_then(Option::as_mut);
                    let conn = conn.filter(|conn| conn.generation & GENERATIONS == generation);
                    if let Some(conn) = conn {
                        let is_ending = event.is_read_closed() || event.is_error();
                        conn.is_ending |= is_ending;
                        let read = event.is_readable() || is_ending;
                        self.ready(slot, read, event.is_writable(), happenings);
                    }
                }
            }
        }
        self.events = events;
    }

    fn fault(&mut self, slot: Slot) -> Fault {
        let found = self.faults.iter().position(|(broken, _)| *broken == slot);
        match found {
            Some(at) => self.faults.swap_remove(at).1,
            None => Fault::new(FaultClass::Closed, "the connection broke"),
        }
    }
}

/// Generations that fit beside a slot without touching the two special tokens.
const GENERATIONS: u32 = 0x7FFF_FFFF;

fn token(slot: Slot, generation: u32) -> Token {
    Token(((generation & GENERATIONS) as usize) << 32 | slot as usize)
}

fn refused(error: &io::Error) -> Fault {
    let class = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::EADDRNOTAVAIL | libc::ENOBUFS) => {
            FaultClass::Exhausted
        }
        Some(libc::ETIMEDOUT) => FaultClass::ConnectTimeout,
        _ => FaultClass::Refused,
    };
    let advice = match error.raw_os_error() {
        Some(libc::EMFILE) => " (descriptor limit of this process; see `throng check`)",
        Some(libc::EADDRNOTAVAIL) => " (no free local port; see `throng check`)",
        _ => "",
    };
    Fault::new(class, format!("{error}{advice}"))
}

fn closed(error: &io::Error) -> Fault {
    Fault::new(FaultClass::Closed, error.to_string())
}

/// Lets the system choose the port at connect time, so that one port can serve several targets
/// (`IP_BIND_ADDRESS_NO_PORT`, Linux 4.2).
fn bind_address_no_port(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the socket is open and `on` is a valid int of the stated size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
