//! One person's conversation in XMPP: what arrives over either transport, and who looks at it.

use super::direct::Direct;
use super::element::{Element, Live, is_copy, live, plain_presence};
use super::link::Link;
use super::login::{Login, Stage};
use super::option;
use super::room::Seat;
use super::smacks::Smacks;
use super::stanza::Id;
use super::stream::Cut;
use super::xml::Scanner;
use crate::wire::deflate::Inflated;
use crate::wire::frame::Opcode;
use crate::wire::socket::Input;
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
    /// The connection is encrypted.
    pub(super) is_secure: bool,
    /// Stream management, once the target has agreed to it.
    pub(super) smacks: Option<Box<Smacks>>,
    /// People who are written to by name.
    pub(super) direct: Direct,
    pub(super) link: Link,
}

impl XmppSession {
    pub(super) fn new(features: Features, shared: Arc<Shared>) -> XmppSession {
        let link = Link::of(&shared.endpoint);
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
            is_secure: false,
            smacks: None,
            direct: Direct::default(),
            link,
        }
    }

    /// The domain to log in to: that of the name if it carries one, else that of the target.
    pub(super) fn domain(&self) -> &str {
        match &self.login {
            Some(login) if !login.host.is_empty() => &login.host,
            _ => domain(&self.shared),
        }
    }

    pub(super) fn is_online(&self) -> bool {
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
        self.is_secure = false;
        self.smacks = None;
        self.link.reset();
    }

    /// Ends the conversation as the target's doing.
    #[cold]
    pub(super) fn give_up(&mut self, fx: &mut Effects, class: FaultClass, detail: &str) {
        self.reset(fx, class, detail);
        fx.broken(class, detail);
    }

    fn dial(&mut self, login: Login, fx: &mut Effects) {
        if self.stage != Stage::Lost {
            self.reset(fx, FaultClass::Offline, "a new login replaced the conversation");
        }
        self.login = Some(Box::new(login));
        fx.dial = true;
    }

    fn on_message(&mut self, now: Tick, opcode: Opcode, payload: &[u8], fx: &mut Effects) {
        match opcode {
            Opcode::Text if self.is_online() && self.is_live(payload) => {
                self.count_stanza();
                fx.deliveries(payload);
            }
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
            return self.count_stanza();
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
        let name = element.tag.local();
        if matches!(name, "message" | "presence" | "iq") {
            self.count_stanza();
        }
        match name {
            "error" => self.on_stream_error(element, fx),
            "close" if self.link.is_web() => self.on_stream_close(fx),
            _ if !self.is_online() => self.on_negotiation(now, element, fx),
            "r" => self.on_ack_request(fx),
            "a" => self.on_ack(element, fx),
            "message" => self.on_odd_message(element, fx),
            "presence" => self.on_presence(now, element, fx),
            "iq" => self.on_iq(now, element, fx),
            // Extensions that nobody asked for are let be.
            _ => {}
        }
    }

    /// A message that did not look like an ordinary one: replay, archive, refusal, or odd spelling.
    fn on_odd_message(&mut self, element: Element<'_>, fx: &mut Effects) {
        let from = element.tag.attribute("from").unwrap_or_default();
        match element.tag.attribute("type") {
            Some("error") => self.on_bounced(element, fx),
            Some("groupchat") if self.is_old(element) || is_copy(element) => {}
            Some("groupchat") => fx.deliveries(element.source.as_bytes()),
            _ => {
                let is_own = self.direct.is_me(from.as_bytes());
                if !is_own && !self.is_old(element) && !is_copy(element) {
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
            return self.good_bye(fx);
        }
        send(fx, self.link.closing());
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
        send(fx, self.link.closing());
        fx.wake = Some(now + CLOSE_WAIT);
    }
}

impl XmppSession {
    fn act_unsealed(&mut self, now: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        match request {
            Request::Login { name, password } => {
                let login = Login::new(token, name, password);
                match self.stage {
                    // Whoever lives elsewhere needs another stream than the one that waits.
                    Stage::Welcome(offer) if login.host.is_empty() => {
                        self.login = Some(Box::new(login));
                        self.log_in(now, offer, "…", fx);
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

    /// Frames of a WebSocket have arrived.
    fn receive_frames(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        // Taken out, so that the message it lends can be heard by the rest of the session.
        let Link::Web(socket) = &mut self.link else { return bytes.len() };
        let mut socket = std::mem::take(socket);
        let (mut at, mut inflated) = (0, Inflated::default());
        while fx.close.is_none() && at < bytes.len() && self.stage != Stage::Idle {
            let limit = self.shared.frame_bytes_max;
            let rest = &bytes[at..];
            let (used, input) = socket.read(rest, SUBPROTOCOLS, limit, &mut inflated, fx);
            at += used;
            let from = fx.out.len();
            match input {
                Input::Message(opcode, payload) => {
                    self.on_message(now, opcode, payload, fx);
                    self.seal(from, fx);
                    if fx.close == Some(Ok(())) {
                        self.link.write_close(fx);
                    }
                }
                Input::More => break,
                Input::Nothing => {}
                Input::Opened(_) => {
                    self.open_stream(fx);
                    self.seal(from, fx);
                }
                Input::Closed(fault) => self.on_transport_close(&fault, fx),
                Input::Broken(fault) => self.give_up(fx, fault.class, &fault.detail),
            }
        }
        // What comes behind the end of a conversation is of no interest to anybody.
        if fx.close.is_some() || self.stage == Stage::Idle {
            return bytes.len();
        }
        self.link = Link::Web(socket);
        at
    }

    /// A piece of a stream has arrived.
    fn receive_stream(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        let (mut at, limit) = (0, self.shared.frame_bytes_max);
        while fx.close.is_none() && at < bytes.len() && self.stage != Stage::Idle {
            if self.stage == Stage::Securing {
                // Not encrypted, so whoever sits between could have said it (RFC 6120 5.4.3.3).
                fx.secure = false;
                let detail = "something was said between <proceed/> and the TLS handshake";
                self.give_up(fx, FaultClass::Tls, detail);
                break;
            }
            let (Link::Stream(splitter) | Link::Component(splitter, _)) = &mut self.link else {
                break;
            };
            let (used, cut) = splitter.next(&bytes[at..], limit);
            at += used;
            let from = fx.out.len();
            match cut {
                Cut::Stanza(stanza) => self.on_message(now, Opcode::Text, stanza, fx),
                Cut::More => return at,
                Cut::Header(header) => self.on_header(header, fx),
                Cut::End => self.on_stream_close(fx),
                Cut::Broken(class, what) => self.give_up(fx, class, what),
            }
            self.seal(from, fx);
        }
        bytes.len()
    }
}

impl Session for XmppSession {
    fn act(&mut self, now: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        let from = fx.out.len();
        self.act_unsealed(now, token, request, fx);
        self.seal(from, fx);
    }

    fn opened(&mut self, _now: Tick, fx: &mut Effects) {
        match self.stage {
            Stage::Securing => self.is_secure = true,
            Stage::Idle | Stage::Lost => self.is_secure = self.shared.endpoint.is_secure(),
            _ => {
                let login = self.login.take();
                self.reset(fx, FaultClass::Offline, "the connection was opened anew");
                self.login = login;
                self.is_secure = self.shared.endpoint.is_secure();
            }
        }
        if self.link.is_web() {
            return self.request_upgrade(fx);
        }
        let from = fx.out.len();
        self.open_stream(fx);
        self.seal(from, fx);
    }

    #[inline]
    fn receive(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        match self.link.is_web() {
            true => self.receive_frames(now, bytes, fx),
            false => self.receive_stream(now, bytes, fx),
        }
    }

    fn wake(&mut self, _now: Tick, fx: &mut Effects) {
        if self.stage == Stage::Closing {
            self.good_bye(fx);
        }
    }

    fn lost(&mut self, _now: Tick) -> bool {
        let is_over = matches!(self.stage, Stage::Idle | Stage::Closing);
        let keeps = !is_over && self.smacks.as_ref().is_some_and(|smacks| smacks.can_resume());
        if keeps {
            self.stage = Stage::Lost;
            self.login = None;
            self.link.reset();
        }
        keeps
    }
}

/// The domain people of a run log in to: that of the option, else over TCP the host of the URL.
pub(super) fn domain(shared: &Shared) -> &str {
    let Shared { endpoint, options, .. } = shared;
    let is_address = endpoint.host.parse::<std::net::IpAddr>().is_ok();
    match endpoint.scheme.as_str() {
        "xmpp" | "xmpps" if !options.contains_key("domain") && !is_address => &endpoint.host,
        _ => option(options, "domain"),
    }
}

/// Writes a stanza down, to be sealed once the session is done with what has arrived.
pub(super) fn send(fx: &mut Effects, stanza: &str) {
    fx.out.extend_from_slice(stanza.as_bytes());
    fx.out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_small() {
        // Together with a person, this is what decides how many people a machine can hold.
        let size = size_of::<XmppSession>();
        assert!(size <= 296, "{size} bytes");
    }
}
