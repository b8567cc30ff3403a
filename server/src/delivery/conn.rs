//! One connection: where its conversation stands and what it has yet to be sent.

use std::rc::Rc;

use protocols::wire::deflate;
use protocols::wire::frame::{self, Assembler};
use protocols::yardstick::{Answer, AnswerWhat, Encoding, Frame, FrameWhat};

use crate::chat::people::NONE;

/// How a connection is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) encoding: Encoding,
    /// Whether compression was agreed on.
    pub(crate) deflate: bool,
}

/// How many dialects there are: as many as a room has logs.
pub(crate) const LANES: usize = 4;

impl Dialect {
    /// Every dialect; [`Dialect::lane`] is its place here.
    pub(crate) const ALL: [Dialect; LANES] = [
        Dialect { encoding: Encoding::Json, deflate: false },
        Dialect { encoding: Encoding::Proto, deflate: false },
        Dialect { encoding: Encoding::Json, deflate: true },
        Dialect { encoding: Encoding::Proto, deflate: true },
    ];

    /// The place of its log in a room.
    #[inline]
    pub(crate) fn lane(self) -> usize {
        self.encoding as usize + Encoding::ALL.len() * usize::from(self.deflate)
    }
}

/// Where a conversation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The HTTP head is not complete.
    Head,
    /// WebSocket frames travel.
    Open(Dialect),
    /// What is left is sent, then the sending side ends; input is ignored.
    Goodbye,
    /// The sending side has ended; the peer is to hang up.
    Lingering,
}

/// Which bytes a full socket has cut in two: they must be continued before any others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The connection's own answers.
    Answers,
    /// The log of a room.
    Room(u32),
}

/// A full socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocked {
    pub(crate) source: Source,
    /// When it last took anything.
    pub(crate) since_us: u64,
}

/// The place of a connection among the members of a room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) room: u32,
    pub(crate) index: u32,
}

/// Who asked: a request of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) conn: u32,
    /// Tells the connection from a later one with its number.
    pub(crate) serial: u64,
    pub(crate) request: u32,
}

impl Ticket {
    /// Of what somebody elsewhere has asked: serial numbers of connections begin with 1.
    pub(crate) const FOREIGN: Ticket = Ticket { conn: u32::MAX, serial: 0, request: u32::MAX };
}

/// One connection. It owns bytes only while something is unfinished.
#[derive(Debug)]
pub(crate) struct Conn {
    /// Never used twice, unlike the connection's number.
    pub(crate) serial: u64,
    pub(crate) phase: Phase,
    pub(crate) name: Option<Rc<str>>,
    /// The connections of the same person before and behind this one, or nobody's number.
    pub(crate) sisters: (u32, u32),
    /// A login waits for a hash or for the store.
    pub(crate) logging_in: bool,
    /// The beginning of an unfinished head or frame.
    pub(crate) inbox: Vec<u8>,
    pub(crate) parts: Assembler,
    /// Whole frames for this connection alone.
    pub(crate) out: Vec<u8>,
    /// How much of `out` is sent.
    pub(crate) out_sent: usize,
    pub(crate) blocked: Option<Blocked>,
    /// In the list of connections whose `out` is to be written at the end of the turn.
    pub(crate) queued: bool,
    /// To be closed at the end of the turn.
    pub(crate) doomed: bool,
    pub(crate) rooms: Vec<Place>,
    /// When its phase began.
    pub(crate) phase_since_us: u64,
}

impl Conn {
    pub(crate) fn new(serial: u64, now_us: u64) -> Conn {
        Conn {
            serial,
            phase: Phase::Head,
            name: None,
            sisters: (NONE, NONE),
            logging_in: false,
            inbox: Vec::new(),
            parts: Assembler::new(),
            out: Vec::new(),
            out_sent: 0,
            blocked: None,
            queued: false,
            doomed: false,
            rooms: Vec::new(),
            phase_since_us: now_us,
        }
    }

    /// The next connection of the same person.
    pub(crate) fn next_sister(&self) -> Option<usize> {
        (self.sisters.1 != NONE).then_some(self.sisters.1 as usize)
    }

    /// The dialect, once frames travel.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        if let Phase::Open(dialect) = self.phase { Some(dialect) } else { None }
    }

    pub(crate) fn place(&self, room: u32) -> Option<Place> {
        self.rooms.iter().copied().find(|place| place.room == room)
    }

    /// Bytes of `out` that are not sent.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.out[self.out_sent..]
    }

    /// Counts bytes of `out` as sent; gives the memory back when all are.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.out_sent += bytes;
        if self.out_sent == self.out.len() {
            self.out = Vec::new();
            self.out_sent = 0;
        }
    }

    /// Moves the rest of a room's log into `out`: at the end, unless the socket has cut that very
    /// log in two, in which case the rest comes first.
    pub(crate) fn take_over(&mut self, room: u32, rest: &[u8]) {
        match &mut self.blocked {
            Some(blocked) if blocked.source == Source::Room(room) => {
                blocked.source = Source::Answers;
                debug_assert_eq!(self.out_sent, 0);
                self.out.splice(0..0, rest.iter().copied());
            }
            _ => self.out.extend_from_slice(rest),
        }
    }
}

/// Appends one frame of the yardstick protocol; `scratch` is only a place to work in.
pub(crate) fn put_frame(
    dialect: Dialect,
    what: FrameWhat<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    scratch.clear();
    let Dialect { encoding, deflate } = dialect;
    Frame { what: Some(what) }.encode(encoding, scratch);
    match deflate {
        true => deflate::write_frame(out, encoding.opcode(), scratch, None),
        false => frame::write_frame(out, encoding.opcode(), scratch, None),
    }
}

/// Appends the answer to request `id`.
pub(crate) fn put_answer(
    dialect: Dialect,
    id: u32,
    what: AnswerWhat<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    put_frame(dialect, FrameWhat::Answer(Answer { id, what: Some(what) }), scratch, out);
}
