//! One person's conversation with a yardstick.

use super::types::{self, AnswerWhat, Frame, FrameWhat, RequestWhat};
use super::{Encoding, Kind, Text};
use crate::wire::frame::{Opcode, close_code};
use crate::wire::printable;
use crate::wire::socket::{self, Input, Socket};
use model::{
    Ack, Effects, Facts, FaultClass, Features, Measure, Options, PersonId, Protocol, Request,
    Session, Shared, Tick, Token,
};
use std::sync::Arc;

/// Messages asked for with a join, by people who want history.
const JOIN_HISTORY: u32 = 50;
/// Most requests of one person that may wait for an answer at a time.
const PENDING_MAX: usize = 1024;
const HISTORY: usize = 0;
const MEMBERS: usize = 1;

static FACTS: Facts = Facts {
    name: "yardstick",
    about: "throng's own chat server: WebSocket, JSON or protobuf",
    schemes: &["ws", "wss"],
    verbs: &[
        Measure::Login,
        Measure::Join,
        Measure::Leave,
        Measure::Say,
        Measure::History,
        Measure::Members,
        Measure::Typing,
        Measure::Read,
        Measure::Ping,
    ],
    features: &[
        ("history", "asks for the last 50 messages when joining"),
        ("members", "asks who is there when joining"),
    ],
    options: &[("codec", "`proto` (protobuf, the default) or `json`")],
    echo: true,
    ack: Ack::Reply,
    stamped_joins: true,
};

/// The yardstick's protocol.
#[derive(Debug)]
pub struct Yardstick;

impl Protocol for Yardstick {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        match options.keys().find(|name| *name != "codec") {
            Some(name) => Err(format!("yardstick has no option `{name}`; it has `codec`")),
            None => encoding(options).map(|_| ()),
        }
    }

    fn session(&self, _: PersonId, features: Features, shared: &Arc<Shared>) -> Box<dyn Session> {
        Box::new(YardstickSession {
            encoding: encoding(&shared.options).unwrap_or(Encoding::Proto),
            shared: Arc::clone(shared),
            features,
            socket: Socket::default(),
            stage: Stage::Idle,
            pending: Vec::new(),
        })
    }
}

fn encoding(options: &Options) -> Result<Encoding, String> {
    match options.get("codec").map(String::as_str) {
        None | Some("proto") => Ok(Encoding::Proto),
        Some("json") => Ok(Encoding::Json),
        Some(other) => Err(format!("`codec` cannot be `{other}`; it can be `proto` or `json`")),
    }
}

/// How far a conversation has come.
enum Stage {
    /// No transport.
    Idle,
    /// The upgrade is to be answered; then this person logs in.
    Rising(Box<Login>),
    /// The login is to be answered.
    Entering,
    /// Everything may be asked.
    Online,
}

/// What a login needs once the socket is open.
struct Login {
    token: Token,
    name: Box<str>,
    password: Box<str>,
}

/// A request that waits for its answer; the token is its id.
struct Pending {
    token: Token,
    wants: Wants,
}

/// What a request is to be answered with, unless it is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    Welcome,
    Joined,
    Done,
    Said,
    History,
    Members,
    Pong,
}

impl Wants {
    fn of(request: &RequestWhat<'_>) -> Wants {
        match request {
            RequestWhat::Login(_) => Wants::Welcome,
            RequestWhat::Join(_) => Wants::Joined,
            RequestWhat::Leave(_) | RequestWhat::Typing(_) | RequestWhat::Read(_) => Wants::Done,
            RequestWhat::Say(_) => Wants::Said,
            RequestWhat::History(_) => Wants::History,
            RequestWhat::Members(_) => Wants::Members,
            RequestWhat::Ping(_) => Wants::Pong,
        }
    }

    fn is(self, answer: &AnswerWhat<'_>) -> bool {
        let found = match answer {
            AnswerWhat::Welcome(_) => Wants::Welcome,
            AnswerWhat::Joined(_) => Wants::Joined,
            AnswerWhat::Done(_) => Wants::Done,
            AnswerWhat::Said(_) => Wants::Said,
            AnswerWhat::History(_) => Wants::History,
            AnswerWhat::Members(_) => Wants::Members,
            AnswerWhat::Pong(_) => Wants::Pong,
            AnswerWhat::Error(_) => return false,
        };
        self == found
    }
}

struct YardstickSession {
    shared: Arc<Shared>,
    features: Features,
    encoding: Encoding,
    socket: Socket,
    stage: Stage,
    pending: Vec<Pending>,
}

impl YardstickSession {
    fn send(&mut self, token: Token, what: RequestWhat<'_>, fx: &mut Effects) {
        if self.pending.len() >= PENDING_MAX {
            let detail = format!("{PENDING_MAX} requests wait for their answers");
            return fx.failed(token, FaultClass::Backlog, detail);
        }
        self.pending.push(Pending { token, wants: Wants::of(&what) });
        let mut payload = Vec::with_capacity(128);
        types::Request { id: token.0, what: Some(what) }.encode(self.encoding, &mut payload);
        socket::write(self.encoding.opcode(), &payload, fx);
    }

    fn log_in(&mut self, fx: &mut Effects) {
        if let Stage::Rising(login) = std::mem::replace(&mut self.stage, Stage::Entering) {
            let what = types::Login {
                name: (&*login.name).into(),
                password: (&*login.password).into(),
                token: Text::default(),
            };
            self.send(login.token, RequestWhat::Login(what), fx);
        }
    }

    /// A whole message: the first bytes tell what it is.
    fn hear(&mut self, opcode: Opcode, payload: &[u8], fx: &mut Effects) {
        if opcode != self.encoding.opcode() {
            return self.give_up(FaultClass::Protocol, "a frame of the other encoding", fx);
        }
        match self.encoding.classify(payload) {
            Some(Kind::Message) => fx.deliveries(payload),
            Some(Kind::Presence) => fx.announcements(payload),
            Some(Kind::Answer) => self.answered(payload, fx),
            Some(Kind::Typing | Kind::Read) => {}
            None => self.give_up(FaultClass::Protocol, "a frame that is no yardstick message", fx),
        }
    }

    fn answered(&mut self, payload: &[u8], fx: &mut Effects) {
        let answer = match Frame::decode(self.encoding, payload) {
            Ok(Frame { what: Some(FrameWhat::Answer(answer)) }) => answer,
            Ok(_) => return self.give_up(FaultClass::Protocol, "an answer that is none", fx),
            Err(error) => return self.give_up(FaultClass::Protocol, &error.to_string(), fx),
        };
        let token = Token(answer.id);
        let Some(at) = self.pending.iter().position(|pending| pending.token == token) else {
            let detail = "an answer to a request nobody made";
            return self.give_up(FaultClass::Protocol, detail, fx);
        };
        let wants = self.pending[at].wants;
        match answer.what {
            Some(AnswerWhat::Error(error)) => self.refused(at, &error, fx),
            Some(what) if wants.is(&what) => {
                self.pending.swap_remove(at);
                if wants == Wants::Welcome {
                    self.stage = Stage::Online;
                }
                fx.done(token);
            }
            _ => self.give_up(FaultClass::Protocol, "an answer of the wrong kind", fx),
        }
    }

    fn refused(&mut self, at: usize, error: &types::Error<'_>, fx: &mut Effects) {
        let detail = format!("{}: {}", printable(&error.code), printable(&error.text));
        if self.pending[at].wants == Wants::Welcome {
            return self.give_up(FaultClass::LoginRefused, &detail, fx);
        }
        let token = self.pending.swap_remove(at).token;
        fx.failed(token, FaultClass::RequestRefused, detail);
    }

    /// Fails everything that is open and forgets the conversation.
    fn reset(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        if let Stage::Rising(login) = std::mem::replace(&mut self.stage, Stage::Idle) {
            fx.failed(login.token, class, detail);
        }
        for pending in self.pending.drain(..) {
            fx.failed(pending.token, class, detail);
        }
        self.socket = Socket::default();
    }

    /// Ends the conversation as the target's doing.
    #[cold]
    fn give_up(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        self.reset(class, detail, fx);
        fx.broken(class, detail);
    }

    fn disconnect(&mut self, fx: &mut Effects) {
        if matches!(self.stage, Stage::Entering | Stage::Online) {
            socket::write_close(close_code::NORMAL, fx);
        }
        self.reset(FaultClass::Offline, "the person disconnected first", fx);
        fx.close = Some(Ok(()));
    }
}

impl Session for YardstickSession {
    fn act(&mut self, _: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        let what = match request {
            Request::Login { name, password } => {
                self.reset(FaultClass::Offline, "a new login replaced the conversation", fx);
                let login = Login { token, name: name.into(), password: password.into() };
                self.stage = Stage::Rising(Box::new(login));
                fx.dial = true;
                return;
            }
            Request::Disconnect => return self.disconnect(fx),
            _ if !matches!(self.stage, Stage::Online) => {
                return fx.failed(token, FaultClass::Offline, "not logged in");
            }
            Request::Join { room, status, .. } => RequestWhat::Join(types::Join {
                room: room.name.into(),
                status: status.into(),
                history: if self.features.has(HISTORY) { JOIN_HISTORY } else { 0 },
                members: self.features.has(MEMBERS),
            }),
            Request::Leave { room } => RequestWhat::Leave(types::Leave { room: room.name.into() }),
            Request::Say { room, text } => {
                RequestWhat::Say(types::Say { room: room.name.into(), text: text.into() })
            }
            Request::History { room, limit } => {
                RequestWhat::History(types::GetHistory { room: room.name.into(), before: 0, limit })
            }
            Request::Members { room } => {
                RequestWhat::Members(types::GetMembers { room: room.name.into() })
            }
            Request::Typing { room } => {
                RequestWhat::Typing(types::Typing { room: room.name.into(), name: Text::default() })
            }
            Request::Read { room } => RequestWhat::Read(types::Read {
                room: room.name.into(),
                number: 0,
                name: Text::default(),
            }),
            Request::Ping => RequestWhat::Ping(types::Ping {}),
            Request::Presence { .. } => {
                let detail = "yardstick has no verb `presence`";
                return fx.failed(token, FaultClass::RequestRefused, detail);
            }
        };
        self.send(token, what, fx);
    }

    fn opened(&mut self, _: Tick, fx: &mut Effects) {
        let offered = [self.encoding.subprotocol()];
        if let Err(fault) = self.socket.upgrade(&self.shared.endpoint, &[], &offered, fx) {
            self.give_up(fault.class, &fault.detail, fx);
        }
    }

    fn receive(&mut self, _: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        // Taken out, so that the message it lends can be heard by the rest of the session.
        let mut socket = std::mem::take(&mut self.socket);
        let offered = [self.encoding.subprotocol()];
        let mut at = 0;
        let bytes_max = self.shared.frame_bytes_max;
        while fx.close.is_none() && at < bytes.len() && !matches!(self.stage, Stage::Idle) {
            if let Some((used, opcode, payload)) = socket.message(&bytes[at..], bytes_max) {
                at += used;
                self.hear(opcode, payload, fx);
                continue;
            }
            let (used, input) = socket.read(&bytes[at..], &offered, bytes_max, fx);
            at += used;
            match input {
                Input::Message(opcode, payload) => self.hear(opcode, payload, fx),
                Input::More => break,
                Input::Nothing => {}
                Input::Opened(_) => self.log_in(fx),
                Input::Closed(fault) | Input::Broken(fault) => {
                    self.give_up(fault.class, &fault.detail, fx);
                }
            }
        }
        // What comes behind the end of a conversation is of no interest to anybody.
        if fx.close.is_some() || matches!(self.stage, Stage::Idle) {
            return bytes.len();
        }
        self.socket = socket;
        at
    }

    fn wake(&mut self, _: Tick, _: &mut Effects) {}
}
