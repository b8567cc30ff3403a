//! The burst server: one thread that accepts WebSockets, answers what a yardstick session asks,
//! and on command writes so many messages to everybody, one write a connection.
//!
//! Commands on stdin: `await N` (says `ready` when N people are in), `wave K` (writes K messages
//! to each and says `sent`). At the end of stdin everything is closed.

use crate::clock::now_ns;
use crate::epoll::{Epoll, recv, send_all};
use engine::limits;
use model::{Stamp, Tick, stamp};
use protocols::wire::frame::{self, Limits, Opcode};
use protocols::wire::http;
use protocols::yardstick::{
    Answer, AnswerWhat, Done, Encoding, Frame, FrameWhat, Joined, Message, Millis, Pong, Request,
    RequestWhat, Said, Welcome,
};
use std::io::{self, BufRead, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// Payload of a message, bytes.
pub(crate) const PAYLOAD_BYTES: usize = 150;
const ENCODING: Encoding = Encoding::Json;
const LISTENER: u64 = u64::MAX;
const STDIN: u64 = u64::MAX - 1;
const BUFFER_BYTES: usize = 64 << 10;

struct Conn {
    stream: TcpStream,
    carry: Vec<u8>,
    is_upgraded: bool,
    /// Somebody who speaks the yardstick's protocol is in when they have joined.
    is_yardstick: bool,
    is_in: bool,
}

/// What a message is made of: the stamp somebody said, and when it was heard.
struct Template {
    stamp: Stamp,
    heard_ns: u64,
    next: u32,
}

struct Server {
    epoll: Epoll,
    listener: TcpListener,
    conns: Vec<Option<Conn>>,
    template: Template,
    awaited: Option<usize>,
    bytes: Vec<u8>,
}

/// Serves until stdin ends. Prints the address first.
pub(crate) fn serve() -> io::Result<()> {
    limits::raise_descriptors();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    // The standard library asks for a queue of 128; everybody comes at once here.
    // SAFETY: an open socket; no pointers.
    unsafe { libc::listen(listener.as_raw_fd(), 4_096) };
    say(&listener.local_addr()?.to_string())?;
    let epoll = Epoll::new()?;
    epoll.add(listener.as_raw_fd(), LISTENER)?;
    epoll.add(io::stdin().as_raw_fd(), STDIN)?;
    let mut server = Server {
        epoll,
        listener,
        conns: Vec::new(),
        template: Template::new(),
        awaited: None,
        bytes: Vec::new(),
    };
    while server.turn()? {}
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

impl Server {
    /// One turn; `false` when there is no more to do.
    fn turn(&mut self) -> io::Result<bool> {
        let tokens: Vec<u64> = self.epoll.wait()?.collect();
        for token in tokens {
            match token {
                LISTENER => self.accept()?,
                STDIN => {
                    let mut line = String::new();
                    // The driver waits for each answer, so a line comes alone.
                    if io::stdin().lock().read_line(&mut line)? == 0 {
                        return Ok(false);
                    }
                    self.command(line.trim())?;
                }
                token => self.read(token as usize)?,
            }
        }
        let here = self.conns.iter().flatten().filter(|conn| conn.is_in);
        if self.awaited.is_some_and(|awaited| here.count() >= awaited) {
            self.awaited = None;
            say("ready")?;
        }
        Ok(true)
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            stream.set_nodelay(true)?;
            self.epoll.add(stream.as_raw_fd(), self.conns.len() as u64)?;
            self.conns.push(Some(Conn {
                stream,
                carry: Vec::new(),
                is_upgraded: false,
                is_yardstick: false,
                is_in: false,
            }));
        }
    }

    fn read(&mut self, at: usize) -> io::Result<()> {
        let Some(conn) = &mut self.conns[at] else { return Ok(()) };
        let mut buffer = [0; BUFFER_BYTES];
        match recv(conn.stream.as_raw_fd(), &mut buffer) {
            Ok(n) if n > 0 => conn.carry.extend_from_slice(&buffer[..n]),
            _ => {
                self.conns[at] = None;
                return Ok(());
            }
        }
        let mut out = Vec::new();
        if !conn.take(&mut self.template, &mut out) {
            self.conns[at] = None;
            return Ok(());
        }
        send_all(conn.stream.as_raw_fd(), &out)
    }

    fn command(&mut self, line: &str) -> io::Result<()> {
        let (verb, number) = line.split_once(' ').unwrap_or((line, ""));
        let number: usize = number.parse().map_err(io::Error::other)?;
        match verb {
            "await" => self.awaited = Some(number),
            "wave" => {
                self.wave(number)?;
                say("sent")?;
            }
            _ => return Err(io::Error::other(format!("no command `{line}`"))),
        }
        Ok(())
    }

    /// Writes `count` messages to everybody, in one write each.
    fn wave(&mut self, count: usize) -> io::Result<()> {
        self.bytes.clear();
        for _ in 0..count {
            self.template.write(&mut self.bytes);
        }
        for conn in self.conns.iter().flatten().filter(|conn| conn.is_in) {
            send_all(conn.stream.as_raw_fd(), &self.bytes)?;
        }
        Ok(())
    }
}

impl Conn {
    /// Takes what has arrived; `false` if that was good-bye.
    fn take(&mut self, template: &mut Template, out: &mut Vec<u8>) -> bool {
        if !self.is_upgraded {
            let Ok(head) = http::read_request(&self.carry) else { return false };
            let Some(head) = head else { return true };
            let Some(upgrade) = head.upgrade else { return false };
            self.is_yardstick = upgrade.protocols().any(|name| name == ENCODING.subprotocol());
            upgrade.accept(out, self.is_yardstick.then_some(ENCODING.subprotocol()));
            self.is_upgraded = true;
            self.is_in = !self.is_yardstick;
            let used = head.consumed;
            self.carry.drain(..used);
        }
        let mut carry = std::mem::take(&mut self.carry);
        let mut at = 0;
        while let Ok(Some((frame, used))) = frame::decode_masked(&mut carry[at..], Limits::SERVER) {
            at += used;
            match frame.opcode {
                Opcode::Close => return false,
                Opcode::Ping => frame::write_frame(out, Opcode::Pong, frame.payload, None),
                Opcode::Text => self.answer(frame.payload, template, out),
                _ => {}
            }
        }
        carry.drain(..at);
        self.carry = carry;
        true
    }

    /// Answers a request, and listens for a stamp.
    fn answer(&mut self, payload: &[u8], template: &mut Template, out: &mut Vec<u8>) {
        let Ok(Request { id, what: Some(what) }) = Request::decode(ENCODING, payload) else {
            return;
        };
        let what = match what {
            RequestWhat::Login(_) => AnswerWhat::Welcome(Welcome::default()),
            RequestWhat::Join(_) => {
                self.is_in = true;
                AnswerWhat::Joined(Joined::default())
            }
            RequestWhat::Say(said) => {
                if let Some(stamp) = stamp::find(said.text.as_bytes()).next() {
                    *template = Template { stamp, heard_ns: now_ns(), next: stamp.number + 1 };
                }
                AnswerWhat::Said(Said::default())
            }
            RequestWhat::Ping(_) => AnswerWhat::Pong(Pong::default()),
            _ => AnswerWhat::Done(Done::default()),
        };
        let frame = Frame { what: Some(FrameWhat::Answer(Answer { id, what: Some(what) })) };
        let mut answer = Vec::new();
        frame.encode(ENCODING, &mut answer);
        frame::write_frame(out, ENCODING.opcode(), &answer, None);
    }
}

impl Template {
    /// A stamp of no run, until somebody says one.
    fn new() -> Template {
        let at = Tick::from_micros(0);
        let stamp =
            Stamp { run: 0, room: 0, source: 0, number: 0, person: 0, intended: at, sent: at };
        Template { stamp, heard_ns: now_ns(), next: 0 }
    }

    /// Appends the frame of the next message: what the speaker would say now.
    fn write(&mut self, out: &mut Vec<u8>) {
        let since = now_ns() - self.heard_ns;
        let stamp = Stamp {
            number: self.next,
            intended: Tick(self.stamp.intended.0 + since),
            sent: Tick(self.stamp.sent.0 + since),
            ..self.stamp
        };
        self.next += 1;
        let code = stamp.encode();
        let mut text = String::from_utf8_lossy(&code).into_owned();
        let bare = payload(&text, stamp.number).len();
        text.extend(std::iter::repeat_n('.', PAYLOAD_BYTES.saturating_sub(bare)));
        frame::write_frame(out, ENCODING.opcode(), &payload(&text, stamp.number), None);
    }
}

fn payload(text: &str, number: u32) -> Vec<u8> {
    let message = Message {
        room: "live".into(),
        number,
        sender: "people-0".into(),
        text: text.into(),
        at_ms: Millis(0),
        ..Message::default()
    };
    let mut payload = Vec::new();
    Frame { what: Some(FrameWhat::Message(message)) }.encode(ENCODING, &mut payload);
    payload
}
