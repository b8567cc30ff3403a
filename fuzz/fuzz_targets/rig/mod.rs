//! The stand-in for the engine in fuzz targets of sessions, and what it demands of every session.

use model::{Effects, Endpoint, Event, Features, Options, Protocol, Request, Rng, Session, Shared};
use model::{Tick, Token};
use protocols::wire::frame::{self, Opcode};
use protocols::wire::http;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Largest frame a session accepts, bytes.
const FRAME_BYTES_MAX: usize = 4_096;
/// Longest head of an answer to an upgrade that may be waited for, bytes.
const HEAD_BYTES_MAX: usize = http::HEAD_BYTES_MAX;
/// What may be written and reported beside what arriving bytes bring about.
const SLACK: usize = 4_096;
/// What may be written for each byte that arrives.
const WRITTEN_PER_BYTE: usize = 64;

pub struct Rig {
    session: Box<dyn Session>,
    pub fx: Effects,
    carry: Vec<u8>,
    opcode: Opcode,
    tokens: u32,
    received: usize,
    owed: BTreeSet<u32>,
    answered: BTreeSet<u32>,
}

#[allow(dead_code)] // no target needs all of it
impl Rig {
    pub fn new(protocol: &dyn Protocol, options: &[(&str, &str)], opcode: Opcode) -> Rig {
        Rig::at("ws://localhost/ws", protocol, options, opcode)
    }

    /// A session with a target somewhere else.
    pub fn at(url: &str, protocol: &dyn Protocol, options: &[(&str, &str)], opcode: Opcode) -> Rig {
        let endpoint = Endpoint::parse(url).unwrap();
        let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let options: Options = options.iter().map(pair).collect();
        protocol.check(&options).unwrap();
        let shared = Arc::new(Shared::new(endpoint, options, FRAME_BYTES_MAX));
        let features = Features((1 << protocol.facts().features.len()) - 1);
        Rig {
            session: protocol.session(1, features, &shared),
            fx: Effects::new(1, Rng::new(1, 1)),
            carry: Vec::new(),
            opcode,
            tokens: 0,
            received: 0,
            owed: BTreeSet::new(),
            answered: BTreeSet::new(),
        }
    }

    /// Does something that has to be answered for.
    pub fn act(&mut self, request: Request<'_>) {
        self.tokens += 1;
        self.owed.insert(self.tokens);
        self.session.act(Tick(1), Token(self.tokens), request, &mut self.fx);
        if std::mem::take(&mut self.fx.dial) {
            self.session.opened(Tick(2), &mut self.fx);
        }
        self.settle();
    }

    /// A fair answer to the upgrade.
    pub fn accept(&mut self, subprotocol: &str) {
        let mut answer = Vec::new();
        let head = http::read_request(&self.fx.out).unwrap().unwrap();
        let handshake = head.upgrade.unwrap();
        let subprotocol = Some(subprotocol).filter(|name| !name.is_empty());
        handshake.accept_with(&mut answer, subprotocol, handshake.offers_deflate);
        self.fx.out.clear();
        self.feed(&answer);
    }

    /// A whole message arrives.
    pub fn say(&mut self, payload: &[u8]) {
        let mut bytes = Vec::new();
        frame::write_frame(&mut bytes, self.opcode, payload, None);
        self.feed(&bytes);
        assert!(self.fx.close.is_some() || self.carry.is_empty(), "a whole frame is taken whole");
    }

    /// A whole message arrives that claims to be compressed.
    pub fn say_compressed(&mut self, payload: &[u8]) {
        let mut bytes = Vec::new();
        frame::write_compressed(&mut bytes, self.opcode, payload, None);
        self.feed(&bytes);
    }

    /// The connection is lost.
    pub fn lose(&mut self) {
        self.session.lost(Tick(5));
        self.carry.clear();
        self.fx.out.clear();
    }

    /// What is left of the input arrives as raw bytes, torn in the middle.
    pub fn halves(&mut self, rest: &[u8]) {
        let (left, right) = rest.split_at(rest.len() / 2);
        self.feed(left);
        self.feed(right);
    }

    /// What is left of the input arrives as payloads, each behind its length in one byte and said
    /// by `say`, until the conversation ends.
    pub fn payloads(&mut self, mut rest: &[u8], say: impl Fn(&mut Rig, u8, &[u8])) {
        while let Some((&length, behind)) = rest.split_first() {
            let (payload, next) = behind.split_at(behind.len().min(length.into()));
            say(self, length, payload);
            rest = next;
            if self.fx.close.is_some() {
                break;
            }
        }
    }

    /// Bytes arrive.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.fx.close.is_some() {
            return;
        }
        self.received += bytes.len();
        self.carry.extend_from_slice(bytes);
        let taken = self.session.receive(Tick(5), &self.carry, &mut self.fx);
        assert!(taken <= self.carry.len(), "more taken than there was");
        self.carry.drain(..taken);
        let kept_max = HEAD_BYTES_MAX.max(FRAME_BYTES_MAX + frame::HEADER_BYTES_MAX);
        assert!(self.fx.close.is_some() || self.carry.len() <= kept_max, "too much waited for");
        self.settle();
    }

    fn settle(&mut self) {
        let written_max = WRITTEN_PER_BYTE * self.received + SLACK;
        assert!(self.fx.out.len() <= written_max, "too much written");
        assert!(self.fx.events.len() <= self.received + SLACK, "too much reported");
        for event in self.fx.events.drain(..) {
            if let Event::Done(token, outcome) = event {
                // Where the echo is the answer, the session keeps no list of what was said: it
                // takes the target's word for a refusal, and the engine knows what is open.
                let is_first = self.answered.insert(token.0);
                assert!(is_first || outcome.is_err(), "{token:?} answered twice");
                self.owed.remove(&token.0);
            }
        }
        if let Some(Err(fault)) = &self.fx.close {
            assert!(self.owed.is_empty(), "not answered for after {fault:?}: {:?}", self.owed);
        }
    }

    /// However the conversation ended or stands, the next login begins anew.
    pub fn begin_anew(&mut self, login: Request<'_>) {
        self.fx.close = None;
        self.fx.secure = false;
        self.fx.out.clear();
        self.carry.clear();
        self.received = 0;
        self.act(login);
        // A stream, a request for an upgrade, or the first one of polling.
        let is_stream = self.fx.out.starts_with(b"<?xml");
        assert!(is_stream || http::read_request(&self.fx.out).unwrap().is_some());
        assert!(self.fx.close.is_none());
        assert_eq!(self.owed.len(), 1, "only the new login is open");
    }
}
