//! The stand-in for the engine: one session, what is left over of its bytes, and its bounds.

use super::{FRAME_BYTES_MAX, Row};
use crate::wire::frame;
use crate::wire::http::HEAD_BYTES_MAX;
use model::{
    Ack, Effects, Endpoint, Event, Fault, List, Request, Rng, RoomName, Session, Shared, Tick,
    Token,
};
use std::sync::Arc;

/// The run whose stamps count.
pub(crate) const RUN: u32 = 3;
/// Bytes a session may leave unread, waiting for more.
const CARRY_MAX: usize = FRAME_BYTES_MAX + frame::HEADER_BYTES_MAX;
/// The list of contacts that every rig has: `ann` (usually the person), `bob` and `cid`.
pub(crate) const LIST: RoomName<'static> = RoomName { id: 7, name: "friends" };
/// Those on it but the person.
pub(super) const OTHERS: usize = 2;
/// What a session may write for each byte that arrives, and for each thing it does.
const WRITTEN_PER_BYTE: usize = 20;
const WRITTEN_PER_DEED: usize = 8 << 10;

/// What was to be seen of a session.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Trace {
    pub(super) events: Vec<Event>,
    pub(super) written: Vec<u8>,
    pub(super) close: Option<Result<(), Fault>>,
}

pub(super) struct Rig<'r> {
    row: std::marker::PhantomData<&'r Row>,
    ack: Ack,
    session: Box<dyn Session>,
    fx: Effects,
    now: Tick,
    carry: Vec<u8>,
    tokens: u32,
    received: usize,
    /// Requests that have to be answered for.
    owed: Vec<Token>,
    pub(super) trace: Trace,
}

impl<'r> Rig<'r> {
    pub(super) fn new(row: &'r Row) -> Rig<'r> {
        let endpoint = Endpoint::parse(row.url).unwrap();
        let options = row.target_options();
        row.protocol.check(&options).unwrap();
        let ack = row.protocol.manners(&options).ack;
        let mut shared = Shared::new(endpoint, options, FRAME_BYTES_MAX);
        let names = ["ann", "bob", "cid"].map(Box::from).to_vec();
        shared.lists.push(List { room: LIST.id, names, is_roster: true });
        let shared = Arc::new(shared);
        Rig {
            row: std::marker::PhantomData,
            ack,
            session: row.protocol.session(1, row.features, &shared),
            fx: Effects::new(RUN, Rng::new(11, 0)),
            now: Tick::from_millis(1),
            carry: Vec::new(),
            tokens: 0,
            received: 0,
            owed: Vec::new(),
            trace: Trace::default(),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.trace.close.is_none()
    }

    /// How the conversation ended, if by the target's fault.
    pub(super) fn fault(&self) -> Option<&Fault> {
        self.trace.close.as_ref()?.as_ref().err()
    }

    /// What the session wrote since the last call.
    pub(super) fn take_written(&mut self, from: &mut usize) -> Vec<u8> {
        let bytes = self.trace.written[*from..].to_vec();
        *from = self.trace.written.len();
        bytes
    }

    /// Does something; dials at once where that is wanted.
    pub(super) fn act(&mut self, request: Request<'_>) {
        self.now = Tick(self.now.0 + 1_000_000);
        self.tokens += 1;
        let token = Token(self.tokens);
        let is_owed = match request {
            Request::Say { .. } => self.ack == Ack::Reply,
            Request::Tell { .. } | Request::Multicast { .. } => false,
            Request::Presence { list: Some(_), .. } | Request::Disconnect => false,
            _ => true,
        };
        if is_owed {
            self.owed.push(token);
        }
        self.session.act(self.now, token, request, &mut self.fx);
        if std::mem::take(&mut self.fx.dial) {
            self.session.opened(self.now, &mut self.fx);
        }
        self.settle();
    }

    /// Bytes arrive.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if !self.is_open() {
            return;
        }
        self.received += bytes.len();
        self.carry.extend_from_slice(bytes);
        let taken = self.session.receive(self.now, &self.carry, &mut self.fx);
        assert!(taken <= self.carry.len(), "more taken than there was");
        self.carry.drain(..taken);
        self.settle();
        if self.is_open() {
            let limit = CARRY_MAX.max(HEAD_BYTES_MAX);
            assert!(self.carry.len() <= limit, "{} bytes are waited for", self.carry.len());
        }
    }

    /// The session and its effects, for who wants nothing written down.
    pub(super) fn parts(&mut self) -> (&mut dyn Session, &mut Effects) {
        (self.session.as_mut(), &mut self.fx)
    }

    fn settle(&mut self) {
        for event in self.fx.events.drain(..) {
            if let Event::Done(token, _) = &event {
                self.owed.retain(|owed| owed != token);
            }
            self.trace.events.push(event);
        }
        self.trace.written.append(&mut self.fx.out);
        let bound =
            WRITTEN_PER_BYTE * self.received + WRITTEN_PER_DEED * (1 + self.tokens as usize);
        assert!(self.trace.written.len() <= bound, "{} bytes written", self.trace.written.len());
        assert!(self.trace.events.len() <= 64 + self.received, "too many events");
        if let Some(close) = self.fx.close.take() {
            if close.is_err() {
                assert_eq!(self.owed, [], "a broken conversation answers for all requests");
            }
            self.trace.close = Some(close);
        }
    }

    /// The connection breaks without a word: there is nobody to say anything to.
    pub(super) fn lost(&mut self) {
        self.session.lost(self.now);
        assert!(self.fx.out.is_empty() && self.fx.events.is_empty());
    }

    /// The connection is gone; the next login begins anew.
    pub(super) fn disconnected(&mut self) {
        self.carry.clear();
        self.trace = Trace::default();
        self.received = 0;
    }

    /// What is still to be answered for.
    pub(super) fn owed(&self) -> &[Token] {
        &self.owed
    }
}
