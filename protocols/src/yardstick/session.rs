//! One person's conversation with a yardstick.

use super::avatars::Avatars;
use super::types::{self, AnswerWhat, Frame, FrameWhat, Person, RequestWhat};
use super::{Encoding, Kind, Text};
use crate::wire::deflate::Inflated;
use crate::wire::frame::{Opcode, close_code};
use crate::wire::printable;
use crate::wire::socket::{self, Input, Socket};
use model::{
    Ack, Effects, Event, Facts, Fault, FaultClass, Features, Manners, Measure, Options, PersonId,
    Protocol, Request, Session, Shared, Tick, Token,
};
use std::sync::Arc;

/// Messages asked for with a join, by people who want history.
const JOIN_HISTORY: u32 = 50;
/// Most requests of one person that may wait for an answer at a time.
const PENDING_MAX: usize = 1024;
const HISTORY: usize = 0;
const MEMBERS: usize = 1;
const AVATARS: usize = 2;

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
        ("avatars", "has a picture, and asks once for that of everybody in the room"),
    ],
    options: &[
        ("codec", "`proto` (protobuf, the default) or `json`"),
        ("deflate", "`off` (the default) or `on`: compressed messages (permessage-deflate)"),
        ("presence", "`off` where the server announces nobody, so that nothing is owed"),
    ],
    manners: Manners { echo: true, ack: Ack::Reply, stamped_joins: true },
};

/// The yardstick's protocol.
#[derive(Debug)]
pub struct Yardstick;

impl Protocol for Yardstick {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn manners(&self, options: &Options) -> Manners {
        Manners { stamped_joins: self.announces(options), ..FACTS.manners }
    }

    fn announces(&self, options: &Options) -> bool {
        options.get("presence").is_none_or(|presence| presence != "off")
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        let is_known = |name: &str| FACTS.options.iter().any(|option| option.0 == name);
        if let Some(name) = options.keys().find(|name| !is_known(name)) {
            let known: Vec<&str> = FACTS.options.iter().map(|option| option.0).collect();
            return Err(format!("yardstick has no option `{name}`; it has {}", known.join(", ")));
        }
        encoding(options)?;
        deflate(options)?;
        Ok(())
    }

    fn session(&self, _: PersonId, features: Features, shared: &Arc<Shared>) -> Box<dyn Session> {
        Box::new(YardstickSession {
            encoding: encoding(&shared.options).unwrap_or(Encoding::Proto),
            deflate: deflate(&shared.options).unwrap_or(false),
            avatars: None, // until the first login
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

fn deflate(options: &Options) -> Result<bool, String> {
    match options.get("deflate").map(String::as_str) {
        None | Some("off") => Ok(false),
        Some("on") => Ok(true),
        Some(other) => Err(format!("`deflate` cannot be `{other}`; it can be `off` or `on`")),
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
    Avatar,
    Rights,
    Rooms,
}

impl Wants {
    fn of(request: &RequestWhat<'_>) -> Wants {
        match request {
            RequestWhat::Login(_) => Wants::Welcome,
            RequestWhat::Join(_) => Wants::Joined,
            RequestWhat::Leave(_) | RequestWhat::Typing(_) | RequestWhat::Read(_) => Wants::Done,
            RequestWhat::Revoke(_) | RequestWhat::Edit(_) | RequestWhat::Delete(_) => Wants::Done,
            RequestWhat::React(_) | RequestWhat::Create(_) => Wants::Done,
            RequestWhat::Configure(_) | RequestWhat::Grant(_) | RequestWhat::Kick(_) => Wants::Done,
            RequestWhat::Say(_) | RequestWhat::Tell(_) => Wants::Said,
            RequestWhat::History(_) => Wants::History,
            RequestWhat::Members(_) => Wants::Members,
            RequestWhat::Ping(_) => Wants::Pong,
            RequestWhat::Avatar(_) => Wants::Avatar,
            RequestWhat::Rights(_) => Wants::Rights,
            RequestWhat::Rooms(_) => Wants::Rooms,
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
            AnswerWhat::Avatar(_) => Wants::Avatar,
            AnswerWhat::Rights(_) => Wants::Rights,
            AnswerWhat::Rooms(_) => Wants::Rooms,
            AnswerWhat::Error(_) => return false,
        };
        self == found
    }
}

struct YardstickSession {
    shared: Arc<Shared>,
    features: Features,
    encoding: Encoding,
    /// Whether compression is asked for.
    deflate: bool,
    /// Nothing in it without the feature.
    avatars: Option<Box<Avatars>>,
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
        self.write(token.0, what, fx);
    }

    fn write(&self, id: u32, what: RequestWhat<'_>, fx: &mut Effects) {
        let mut payload = Vec::with_capacity(128);
        types::Request { id, what: Some(what) }.encode(self.encoding, &mut payload);
        match self.deflate {
            true => socket::write_deflated(self.encoding.opcode(), &payload, fx),
            false => socket::write(self.encoding.opcode(), &payload, fx),
        }
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
    fn hear(&mut self, now: Tick, opcode: Opcode, payload: &[u8], fx: &mut Effects) {
        if opcode != self.encoding.opcode() {
            return self.give_up(FaultClass::Protocol, "a frame of the other encoding", fx);
        }
        match self.encoding.classify(payload) {
            Some(Kind::Message) => fx.deliveries(payload),
            Some(Kind::Presence) => {
                fx.announcements(payload);
                if self.avatars.is_some() {
                    self.newcomers(now, payload, fx);
                }
            }
            Some(Kind::Answer) => self.answered(now, payload, fx),
            Some(Kind::Typing | Kind::Read | Kind::Change | Kind::Notice) => {}
            None => self.give_up(FaultClass::Protocol, "a frame that is no yardstick message", fx),
        }
    }

    fn answered(&mut self, now: Tick, payload: &[u8], fx: &mut Effects) {
        let answer = match Frame::decode(self.encoding, payload) {
            Ok(Frame { what: Some(FrameWhat::Answer(answer)) }) => answer,
            Ok(_) => return self.give_up(FaultClass::Protocol, "an answer that is none", fx),
            Err(error) => return self.give_up(FaultClass::Protocol, &error.to_string(), fx),
        };
        if Avatars::is_own(answer.id) {
            return self.pictured(now, &answer, fx);
        }
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
                match &what {
                    AnswerWhat::Joined(joined) => self.look_at(now, &joined.people, fx),
                    AnswerWhat::Members(members) => self.look_at(now, &members.people, fx),
                    _ => {}
                }
            }
            _ => self.give_up(FaultClass::Protocol, "an answer of the wrong kind", fx),
        }
    }

    /// Who came into the room, to somebody who wants to see their pictures.
    fn newcomers(&mut self, now: Tick, payload: &[u8], fx: &mut Effects) {
        match Frame::decode(self.encoding, payload) {
            Ok(Frame { what: Some(FrameWhat::Presence(presence)) }) => {
                self.look_at(now, &presence.joined, fx);
            }
            Ok(_) => self.give_up(FaultClass::Protocol, "a presence that is none", fx),
            Err(error) => self.give_up(FaultClass::Protocol, &error.to_string(), fx),
        }
    }

    /// Asks for the pictures of those who have one that is not known.
    fn look_at(&mut self, now: Tick, people: &[Person<'_>], fx: &mut Effects) {
        let Some(avatars) = &mut self.avatars else { return };
        if !people.iter().all(|person| avatars.notice(&person.avatar_hash)) {
            return self.give_up(FaultClass::Protocol, "a hash too long for one", fx);
        }
        self.ask_for_avatars(now, fx);
    }

    fn ask_for_avatars(&mut self, now: Tick, fx: &mut Effects) {
        let mut count = 0;
        while let Some((id, hash)) = self.avatars.as_mut().and_then(|avatars| avatars.next(now)) {
            let hash = (&*hash).into();
            self.write(id, RequestWhat::Avatar(types::GetAvatar { hash }), fx);
            count += 1;
        }
        if count > 0 {
            fx.events.push(Event::Asked(Measure::Avatars, count));
        }
    }

    /// The answer to one of the session's own requests.
    fn pictured(&mut self, now: Tick, answer: &types::Answer<'_>, fx: &mut Effects) {
        let sent = self.avatars.as_mut().and_then(|avatars| avatars.answered(answer.id));
        let outcome = match &answer.what {
            Some(AnswerWhat::Avatar(_)) => Ok(()),
            Some(AnswerWhat::Error(error)) => {
                Err(Fault::new(FaultClass::RequestRefused, in_words(error)))
            }
            _ => return self.give_up(FaultClass::Protocol, "an answer of the wrong kind", fx),
        };
        let Some(sent) = sent else {
            let detail = "an answer to a request nobody made";
            return self.give_up(FaultClass::Protocol, detail, fx);
        };
        fx.events.push(Event::Answered { measure: Measure::Avatars, sent, outcome });
        self.ask_for_avatars(now, fx);
    }

    fn refused(&mut self, at: usize, error: &types::Error<'_>, fx: &mut Effects) {
        let detail = in_words(error);
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
        self.avatars = self.features.has(AVATARS).then(Box::default);
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

/// A refusal in one printable line.
fn in_words(error: &types::Error<'_>) -> String {
    format!("{}: {}", printable(&error.code), printable(&error.text))
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
                members: self.features.has(MEMBERS) || self.features.has(AVATARS),
                avatars: self.features.has(AVATARS),
                ..types::Join::default()
            }),
            Request::Leave { room } => RequestWhat::Leave(types::Leave { room: room.name.into() }),
            Request::Say { room, text } => RequestWhat::Say(types::Say {
                room: room.name.into(),
                text: text.into(),
                ..types::Say::default()
            }),
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
            _ => return fx.lacks(token, &FACTS, &request),
        };
        self.send(token, what, fx);
    }

    fn opened(&mut self, _: Tick, fx: &mut Effects) {
        let offered = [self.encoding.subprotocol()];
        let endpoint = &self.shared.endpoint;
        let upgraded = self.socket.upgrade_with(endpoint, &[], &offered, self.deflate, fx);
        if let Err(fault) = upgraded {
            self.give_up(fault.class, &fault.detail, fx);
        }
    }

    fn receive(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        // Taken out, so that the message it lends can be heard by the rest of the session.
        let mut socket = std::mem::take(&mut self.socket);
        let offered = [self.encoding.subprotocol()];
        let (mut at, mut inflated) = (0, Inflated::default());
        let bytes_max = self.shared.frame_bytes_max;
        while fx.close.is_none() && at < bytes.len() && !matches!(self.stage, Stage::Idle) {
            if let Some((used, opcode, payload)) = socket.message(&bytes[at..], bytes_max) {
                at += used;
                self.hear(now, opcode, payload, fx);
                continue;
            }
            let rest = &bytes[at..];
            let (used, input) = socket.read(rest, &offered, bytes_max, &mut inflated, fx);
            at += used;
            match input {
                Input::Message(opcode, payload) => self.hear(now, opcode, payload, fx),
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
