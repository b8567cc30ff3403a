//! One person's conversation in XMPP: transport, frames, and who looks at which stanza.

use super::direct::Direct;
use super::element::{Element, Live, is_copy, is_late, live, plain_presence};
use super::login::{Login, Stage};
use super::option;
use super::room::Seat;
use super::stanza::{self, Id};
use super::xml::Scanner;
use crate::wire::deflate::Inflated;
use crate::wire::frame::{Opcode, close_code};
use crate::wire::socket::{self, Input, Socket};
use model::{Effects, Fault, FaultClass, Features, Request, Session, Shared, Tick, Token};
use std::sync::Arc;
use std::time::Duration;

/// What is spoken over the WebSocket (RFC 7395 section 3.1).
pub(super) const SUBPROTOCOLS: &[&str] = &["xmpp"];
/// How long to wait for the target's half of the good-bye.
const CLOSE_WAIT: Duration = Duration::from_secs(2);
/// Most verbs of one person that may wait for an answer at a time.
pub(super) const PENDING_MAX: usize = 1024;

/// A person's side of an XMPP conversation.
pub(super) struct XmppSession {
    pub(super) shared: Arc<Shared>,
    pub(super) features: Features,
    pub(super) stage: Stage,
    /// What the login under way needs; gone once online.
    pub(super) login: Option<Box<Login>>,
    /// Rooms being entered, inhabited or left.
    pub(super) seats: Vec<Seat>,
    /// Verbs that wait for an IQ.
    pub(super) pending: Vec<Token>,
    /// Questions of our own that are open.
    pub(super) open_asks: u32,
    /// Number of the last question of our own.
    pub(super) serial: u32,
    /// Whether what is asked once a conversation has been asked.
    pub(super) warmed: bool,
    /// People who are written to by name.
    pub(super) direct: Direct,
    pub(super) socket: Socket,
}

impl XmppSession {
    pub(super) fn new(features: Features, shared: Arc<Shared>) -> XmppSession {
        XmppSession {
            shared,
            features,
            stage: Stage::Idle,
            login: None,
            seats: Vec::new(),
            pending: Vec::new(),
            open_asks: 0,
            serial: 0,
            warmed: false,
            direct: Direct::default(),
            socket: Socket::default(),
        }
    }

    /// The domain to log in to: that of the name if it carries one, else that of the target.
    pub(super) fn domain(&self) -> &str {
        match &self.login {
            Some(login) if !login.host.is_empty() => &login.host,
            _ => option(&self.shared.options, "domain"),
        }
    }

    fn is_online(&self) -> bool {
        matches!(self.stage, Stage::Online | Stage::Closing)
    }

    /// Fails everything that is open and forgets the conversation.
    pub(super) fn reset(&mut self, fx: &mut Effects, class: FaultClass, detail: &str) {
        let login = self.login.take().map(|login| login.token);
        let seats = self.seats.drain(..).flat_map(Seat::into_tokens);
        let direct = std::mem::take(&mut self.direct).into_tokens();
        let tokens = login.into_iter().chain(seats).chain(direct);
        for token in tokens.chain(self.pending.drain(..)) {
            fx.failed(token, class, detail);
        }
        self.stage = Stage::Idle;
        self.open_asks = 0;
        self.serial = 0;
        self.warmed = false;
        self.socket = Socket::default();
    }

    /// Ends the conversation as the target's doing.
    #[cold]
    pub(super) fn give_up(&mut self, fx: &mut Effects, class: FaultClass, detail: &str) {
        self.reset(fx, class, detail);
        fx.broken(class, detail);
    }

    fn dial(&mut self, login: Login, fx: &mut Effects) {
        self.reset(fx, FaultClass::Offline, "a new login replaced the conversation");
        self.login = Some(Box::new(login));
        fx.dial = true;
    }

    fn on_message(&mut self, now: Tick, opcode: Opcode, payload: &[u8], fx: &mut Effects) {
        match opcode {
            Opcode::Text if self.is_online() && self.is_live(payload) => fx.deliveries(payload),
            Opcode::Text => self.on_text(now, payload, fx),
            _ => self.give_up(fx, FaultClass::Protocol, "a binary frame; XMPP is text"),
        }
    }

    /// Whether the bytes of a frame tell that what it says is said now, to this person.
    #[inline]
    fn is_live(&self, frame: &[u8]) -> bool {
        match live(frame) {
            None => false,
            Some(Live::Room) => true,
            Some(Live::Chat(from)) => !self.direct.is_me(from),
            Some(Live::Presence(from)) => {
                self.has_contacts() && !self.direct.is_me(from) && !self.is_occupant(from)
            }
        }
    }

    /// The target closed the WebSocket, which is its right once the streams are closed.
    fn on_transport_close(&mut self, fault: &Fault, fx: &mut Effects) {
        match self.stage {
            Stage::Closing => self.good_bye(fx),
            _ => self.give_up(fx, fault.class, &fault.detail),
        }
    }

    fn on_text(&mut self, now: Tick, payload: &[u8], fx: &mut Effects) {
        let Ok(text) = std::str::from_utf8(payload) else {
            return self.give_up(fx, FaultClass::Protocol, "a text frame that is not UTF-8");
        };
        if self.is_online()
            && let Some(sight) = plain_presence(text)
            && self.on_neighbor(now, sight, fx)
        {
            return;
        }
        // RFC 7395 wants one stanza a frame; several are understood all the same.
        let mut scanner = Scanner::new(text);
        while fx.close.is_none() {
            match Element::next_root(&mut scanner, text) {
                Ok(None) => return,
                Ok(Some(element)) => self.on_element(now, element, fx),
                Err(error) => {
                    return self.give_up(fx, FaultClass::Protocol, &error.to_string());
                }
            }
        }
    }

    fn on_element(&mut self, now: Tick, element: Element<'_>, fx: &mut Effects) {
        match element.tag.local() {
            "error" => self.on_stream_error(element, fx),
            "close" => self.on_stream_close(fx),
            _ if !self.is_online() => self.on_negotiation(element, fx),
            "message" => self.on_odd_message(element, fx),
            "presence" => self.on_presence(now, element, fx),
            "iq" => self.on_iq(now, element, fx),
            // Extensions that nobody asked for (stream management and the like) are let be.
            _ => {}
        }
    }

    /// A message that did not look like an ordinary one: replay, archive, refusal, or odd spelling.
    fn on_odd_message(&mut self, element: Element<'_>, fx: &mut Effects) {
        let from = element.tag.attribute("from").unwrap_or_default();
        match element.tag.attribute("type") {
            Some("error") => self.on_bounced(element, fx),
            Some("groupchat") if is_late(element) || is_copy(element) => {}
            Some("groupchat") => fx.deliveries(element.source.as_bytes()),
            _ => {
                let is_own = self.direct.is_me(from.as_bytes());
                if !is_own && !is_late(element) && !is_copy(element) {
                    fx.deliveries(element.source.as_bytes());
                }
            }
        }
    }

    /// A message that came back.
    fn on_bounced(&mut self, error: Element<'_>, fx: &mut Effects) {
        match error.tag.attribute("id").and_then(Id::parse) {
            Some(Id::Said(token)) => {
                let detail = format!("message refused: {}", error.stanza_error());
                fx.failed(token, FaultClass::RequestRefused, detail);
            }
            Some(Id::Told(token)) => self.on_bounce(token, &error.stanza_error(), fx),
            Some(Id::Multicast(token)) => self.on_multicast_bounce(token, error, fx),
            _ => {}
        }
    }

    fn on_stream_error(&mut self, element: Element<'_>, fx: &mut Effects) {
        let class = self.class_of_close();
        self.give_up(fx, class, &format!("stream error: {}", element.condition()));
    }

    fn on_stream_close(&mut self, fx: &mut Effects) {
        if self.stage == Stage::Closing {
            socket::write_close(close_code::NORMAL, fx);
            return self.good_bye(fx);
        }
        send(fx, stanza::CLOSE);
        let class = self.class_of_close();
        self.give_up(fx, class, "the target closed the stream");
    }

    /// A target that hangs up before somebody is online has refused the login.
    fn class_of_close(&self) -> FaultClass {
        if self.is_online() { FaultClass::Closed } else { FaultClass::LoginRefused }
    }

    fn good_bye(&mut self, fx: &mut Effects) {
        self.reset(fx, FaultClass::Offline, "the person disconnected first");
        fx.close = Some(Ok(()));
    }

    fn disconnect(&mut self, now: Tick, fx: &mut Effects) {
        if self.stage != Stage::Online {
            return self.good_bye(fx);
        }
        self.stage = Stage::Closing;
        send(fx, stanza::CLOSE);
        fx.wake = Some(now + CLOSE_WAIT);
    }
}

impl Session for XmppSession {
    fn act(&mut self, now: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        match request {
            Request::Login { name, password } => {
                let login = Login::new(token, name, password);
                match self.stage {
                    // Whoever lives elsewhere needs another stream than the one that waits.
                    Stage::Welcome(offer) if login.host.is_empty() => {
                        self.login = Some(Box::new(login));
                        self.authenticate(offer, "…", fx);
                    }
                    _ => self.dial(login, fx),
                }
            }
            Request::Disconnect => self.disconnect(now, fx),
            _ if self.stage != Stage::Online => {
                fx.failed(token, FaultClass::Offline, "not logged in");
            }
            _ => self.act_online(now, token, request, fx),
        }
    }

    fn opened(&mut self, _now: Tick, fx: &mut Effects) {
        if self.stage != Stage::Idle {
            let login = self.login.take();
            self.reset(fx, FaultClass::Offline, "the connection was opened anew");
            self.login = login;
        }
        self.request_upgrade(fx);
    }

    fn receive(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        // Taken out, so that the message it lends can be heard by the rest of the session.
        let mut socket = std::mem::take(&mut self.socket);
        let (mut at, mut inflated) = (0, Inflated::default());
        while fx.close.is_none() && at < bytes.len() && self.stage != Stage::Idle {
            let limit = self.shared.frame_bytes_max;
            let rest = &bytes[at..];
            let (used, input) = socket.read(rest, SUBPROTOCOLS, limit, &mut inflated, fx);
            at += used;
            match input {
                Input::Message(opcode, payload) => self.on_message(now, opcode, payload, fx),
                Input::More => break,
                Input::Nothing => {}
                Input::Opened(_) => self.open_stream(fx),
                Input::Closed(fault) => self.on_transport_close(&fault, fx),
                Input::Broken(fault) => self.give_up(fx, fault.class, &fault.detail),
            }
        }
        // What comes behind the end of a conversation is of no interest to anybody.
        if fx.close.is_some() || self.stage == Stage::Idle {
            return bytes.len();
        }
        self.socket = socket;
        at
    }

    fn wake(&mut self, _now: Tick, fx: &mut Effects) {
        if self.stage == Stage::Closing {
            self.good_bye(fx);
        }
    }
}

/// Appends a stanza as one text frame.
pub(super) fn send(fx: &mut Effects, stanza: &str) {
    socket::write(Opcode::Text, stanza.as_bytes(), fx);
}
