//! One person's conversation with a yardstick.

use super::types::{self, AnswerWhat, Frame, FrameWhat, RequestWhat};
use super::{Encoding, Kind, Text};
use crate::wire::frame::{Opcode, close_code};
use crate::wire::socket::{self, Input, Socket};
use model::{
    Ack, Effects, Facts, FaultClass, Features, Measure, Options, PersonId, Protocol, Request,
    Session, Shared, Tick, Token,
};
use std::sync::Arc;

/// Messages asked for with a join, by people who want history.
const JOIN_HISTORY: u32 = 50;
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
        encoding(options).map(|_| ())
    }

    fn session(&self, _: PersonId, features: Features, shared: &Arc<Shared>) -> Box<dyn Session> {
        Box::new(YardstickSession {
            encoding: encoding(&shared.options).unwrap_or(Encoding::Proto),
            shared: shared.clone(),
            features,
            socket: Socket::default(),
            login: None,
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

struct YardstickSession {
    shared: Arc<Shared>,
    features: Features,
    encoding: Encoding,
    socket: Socket,
    /// Who logs in once the socket is open.
    login: Option<Box<(Token, String, String)>>,
    /// Requests that wait for their answers. Their ids are their tokens.
    pending: Vec<Token>,
}

impl YardstickSession {
    fn send(&mut self, token: Token, what: RequestWhat<'_>, fx: &mut Effects) {
        let mut payload = Vec::with_capacity(128);
        types::Request { id: token.0, what: Some(what) }.encode(self.encoding, &mut payload);
        socket::write(self.encoding.opcode(), &payload, fx);
        self.pending.push(token);
    }

    fn log_in(&mut self, fx: &mut Effects) {
        if let Some(login) = self.login.take() {
            let (token, name, password) = *login;
            let login = types::Login {
                name: Text::from(name.as_str()),
                password: Text::from(password.as_str()),
                token: Text::default(),
            };
            self.send(token, RequestWhat::Login(login), fx);
        }
    }

    /// A whole message: the first bytes tell what it is.
    fn hear(&mut self, opcode: Opcode, payload: &[u8], fx: &mut Effects) {
        if opcode != self.encoding.opcode() {
            return self.broken(FaultClass::Protocol, "a frame of the other encoding", fx);
        }
        match self.encoding.classify(payload) {
            Some(Kind::Message) => fx.deliveries(payload),
            Some(Kind::Presence) => fx.announcements(payload),
            Some(Kind::Answer) => self.answered(payload, fx),
            Some(Kind::Typing | Kind::Read) => {}
            None => self.broken(FaultClass::Protocol, "a frame that is no yardstick message", fx),
        }
    }

    fn answered(&mut self, payload: &[u8], fx: &mut Effects) {
        let answer = match Frame::decode(self.encoding, payload) {
            Ok(Frame { what: Some(FrameWhat::Answer(answer)) }) => answer,
            Ok(_) => return self.broken(FaultClass::Protocol, "an answer that is none", fx),
            Err(error) => return self.broken(FaultClass::Protocol, error.to_string(), fx),
        };
        let token = Token(answer.id);
        let Some(at) = self.pending.iter().position(|&pending| pending == token) else {
            return self.broken(FaultClass::Protocol, "an answer to a request nobody made", fx);
        };
        self.pending.swap_remove(at);
        match answer.what {
            Some(AnswerWhat::Error(error)) => {
                let class = match &*error.code {
                    "credentials" | "token" | "unauthenticated" => FaultClass::LoginRefused,
                    _ => FaultClass::RequestRefused,
                };
                let text = error.text.escape_debug();
                fx.failed(token, class, format!("{}: {text}", error.code.escape_debug()));
            }
            Some(_) => fx.done(token),
            None => self.broken(FaultClass::Protocol, "an empty answer", fx),
        }
    }

    /// Gives the conversation up, and with it every open request.
    #[cold]
    fn broken(&mut self, class: FaultClass, detail: impl Into<String>, fx: &mut Effects) {
        let detail = detail.into();
        let login = self.login.take().map(|login| login.0);
        for token in login.into_iter().chain(std::mem::take(&mut self.pending)) {
            fx.failed(token, class, detail.as_str());
        }
        fx.broken(class, detail);
    }
}

impl Session for YardstickSession {
    fn act(&mut self, _: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        let what = match request {
            Request::Login { name, password } => {
                self.login = Some(Box::new((token, name.into(), password.into())));
                fx.dial = true;
                return;
            }
            Request::Disconnect => {
                socket::write_close(close_code::NORMAL, fx);
                fx.close = Some(Ok(()));
                return;
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
                return fx.failed(token, FaultClass::RequestRefused, "a yardstick has no presence");
            }
        };
        self.send(token, what, fx);
    }

    fn opened(&mut self, _: Tick, fx: &mut Effects) {
        let offered = [self.encoding.subprotocol()];
        self.socket.upgrade(&self.shared.endpoint, &[], &offered, fx);
    }

    fn receive(&mut self, _: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        let mut socket = std::mem::take(&mut self.socket);
        let offered = [self.encoding.subprotocol()];
        let mut at = 0;
        let bytes_max = self.shared.frame_bytes_max;
        while fx.close.is_none() {
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
                Input::Opened(Some(_)) => self.log_in(fx),
                Input::Opened(None) => {
                    let detail = "the upgrade was accepted without a yardstick subprotocol";
                    self.broken(FaultClass::Upgrade, detail, fx);
                }
                Input::Broken(fault) => self.broken(fault.class, fault.detail, fx),
            }
        }
        if fx.close.is_none() {
            self.socket = socket;
        }
        at
    }

    fn wake(&mut self, _: Tick, _: &mut Effects) {}
}
