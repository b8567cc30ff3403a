//! One person's conversation with a server that its user describes.

use super::compile::{Compiled, Exchange};
use super::http;
use super::piece::{Blanks, write};
use crate::wire::deflate::Inflated;
use crate::wire::frame::{Opcode, close_code};
use crate::wire::printable;
use crate::wire::socket::{self, Input, Socket};
use model::script::Codec;
use model::{Effects, Endpoint, Fault, FaultClass, Measure, Request, Session, Shared, Tick, Token};
use std::sync::Arc;

/// Most requests of one person that may wait for an answer at a time.
const PENDING_MAX: usize = 1024;

/// How far a conversation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No transport.
    Idle,
    /// This step of the login is to be answered over HTTP.
    Http(u8),
    /// The upgrade is to be answered.
    Rising,
    /// This step behind the upgrade is to be answered.
    Opening(u8),
    /// Everything may be asked.
    Online,
}

/// What is known of the person; small or gone behind the login.
#[derive(Default)]
struct Known {
    name: Box<str>,
    password: Box<str>,
    kept: Box<[Box<str>]>,
}

/// A request that waits for its answer.
struct Pending {
    token: Token,
    /// Place of its verb in the description.
    verb: u8,
    /// The room, if the answer names it.
    room: Box<str>,
}

/// A person.
pub(super) struct Described {
    shared: Arc<Shared>,
    compiled: Arc<Compiled>,
    socket: Socket,
    stage: Stage,
    login: Option<Token>,
    known: Option<Box<Known>>,
    pending: Vec<Pending>,
}

impl Described {
    pub(super) fn new(shared: Arc<Shared>, compiled: Arc<Compiled>) -> Described {
        Described {
            shared,
            compiled,
            socket: Socket::default(),
            stage: Stage::Idle,
            login: None,
            known: None,
            pending: Vec::new(),
        }
    }

    fn log_in(&mut self, token: Token, name: &str, password: &str, fx: &mut Effects) {
        self.reset(FaultClass::Offline, "a new login replaced the conversation", fx);
        let kept = vec![Box::default(); self.compiled.kept].into();
        self.known = Some(Box::new(Known { name: name.into(), password: password.into(), kept }));
        self.login = Some(token);
        self.stage = match self.compiled.login.is_empty() {
            true => Stage::Rising,
            false => Stage::Http(0),
        };
        fx.dial = true;
    }

    fn upgrade(&mut self, fx: &mut Effects) -> Result<(), Fault> {
        let compiled = Arc::clone(&self.compiled);
        let blanks = blanks_of(&self.known);
        let mut headers: Vec<(&str, String)> = Vec::new();
        for (name, value) in &compiled.headers {
            headers.push((name, http::text(value, &blanks)?));
        }
        let mut endpoint: Endpoint = self.shared.endpoint.clone();
        if let Some(path) = &compiled.path {
            endpoint.path = http::text(path, &blanks)?;
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let offered: Vec<&str> = compiled.subprotocols.iter().map(String::as_str).collect();
        self.socket.upgrade_with(&endpoint, &headers, &offered, compiled.deflate, fx)
    }

    /// Bytes of an answer over HTTP. Says how many are done with.
    fn read_http(&mut self, step: u8, bytes: &[u8], fx: &mut Effects) -> usize {
        let compiled = Arc::clone(&self.compiled);
        let Some(this) = compiled.login.get(usize::from(step)) else { return bytes.len() };
        let result =
            match http::read(bytes, self.shared.frame_bytes_max.min(http::ANSWER_BYTES_MAX)) {
                Ok(None) => return 0,
                Ok(Some(answer)) => answer.check(this).and_then(|()| {
                    let kept = self.known.as_mut().map(|known| &mut *known.kept);
                    answer.keep(this, kept.unwrap_or_default())
                }),
                Err(fault) => Err(fault),
            };
        match result {
            Err(fault) => self.give_up(fault.class, &fault.detail, fx),
            Ok(()) => {
                self.stage = match usize::from(step) + 1 < compiled.login.len() {
                    true => Stage::Http(step + 1),
                    false => Stage::Rising,
                };
                fx.dial = true;
            }
        }
        bytes.len()
    }

    /// Goes on with what is said behind the upgrade, until something has to be waited for.
    fn open(&mut self, now: Tick, mut step: u8, fx: &mut Effects) {
        let compiled = Arc::clone(&self.compiled);
        self.stage = Stage::Opening(step);
        while let Some(exchange) = compiled.opening.get(usize::from(step)) {
            if let Some(send) = &exchange.send {
                let id = self.login.map_or(0, |token| token.0);
                let blanks = Blanks { id, ..blanks_of(&self.known) };
                say(&compiled, send, &blanks, fx);
            }
            if exchange.answer.is_some() {
                return;
            }
            step += 1;
            self.stage = Stage::Opening(step);
        }
        self.stage = Stage::Online;
        if compiled.remembers {
            if let Some(known) = &mut self.known {
                known.password = Box::default();
            }
        } else {
            self.known = None;
        }
        if let Some((every_ns, _)) = &compiled.heartbeat {
            fx.wake = Some(Tick(now.0 + every_ns));
        }
        if let Some(token) = self.login.take() {
            fx.done(token);
        }
    }

    /// A frame of the step behind the upgrade that is under way; whether it was its answer.
    fn opened_further(&mut self, now: Tick, step: u8, payload: &[u8], fx: &mut Effects) -> bool {
        let compiled = Arc::clone(&self.compiled);
        let Some(exchange) = compiled.opening.get(usize::from(step)) else { return false };
        let id = self.login.map_or(0, |token| token.0);
        let blanks = Blanks { id, ..blanks_of(&self.known) };
        match verdict(&compiled, exchange, payload, &blanks) {
            None => return false,
            Some(Err(why)) => self.give_up(FaultClass::LoginRefused, &why, fx),
            Some(Ok(())) => match self.keep(exchange, payload) {
                Ok(()) => self.open(now, step + 1, fx),
                Err(why) => self.give_up(FaultClass::LoginRefused, &why, fx),
            },
        }
        true
    }

    fn keep(&mut self, exchange: &Exchange, payload: &[u8]) -> Result<(), String> {
        let Some(known) = &mut self.known else { return Ok(()) };
        for (at, path) in &exchange.keep {
            let found = path.find(self.compiled.codec(), payload).map(|found| found.text());
            let fits = |text: &String| !text.is_empty() && text.len() <= http::KEPT_BYTES_MAX;
            let found = found.filter(fits).ok_or("the answer lacks what is to be kept of it")?;
            if let Some(place) = known.kept.get_mut(usize::from(*at)) {
                *place = found.into();
            }
        }
        Ok(())
    }

    /// A whole frame, which may hold several messages.
    #[inline]
    fn hear(&mut self, now: Tick, opcode: Opcode, payload: &[u8], fx: &mut Effects) {
        if opcode != self.compiled.opcode() {
            return self.give_up(FaultClass::Protocol, "a frame of the other kind", fx);
        }
        if self.compiled.codec() != Codec::JsonLines {
            return self.hear_one(now, payload, fx);
        }
        let mut lines = payload.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        while let Some(line) = lines.next().filter(|_| fx.close.is_none()) {
            self.hear_one(now, line, fx);
        }
    }

    #[inline]
    fn hear_one(&mut self, now: Tick, payload: &[u8], fx: &mut Effects) {
        let is_answer = match self.stage {
            Stage::Opening(step) => self.opened_further(now, step, payload, fx),
            _ => !self.pending.is_empty() && self.answered(payload, fx),
        };
        if is_answer {
            return;
        }
        let blanks = blanks_of(&self.known);
        if self.compiled.is_live(payload, &blanks) {
            let before = (fx.events.len(), fx.foreign);
            fx.deliveries(payload);
            if before != (fx.events.len(), fx.foreign) {
                return;
            }
        }
        self.hear_other(payload, fx);
    }

    /// A frame that is neither answer nor delivery.
    fn hear_other(&mut self, payload: &[u8], fx: &mut Effects) {
        let compiled = Arc::clone(&self.compiled);
        if !compiled.is_valid(payload) {
            let detail = "a frame that is no message in the codec described";
            return self.give_up(FaultClass::Protocol, detail, fx);
        }
        let blanks = blanks_of(&self.known);
        let is_meant = |when: &super::compile::Pattern| when.is(compiled.codec(), payload, &blanks);
        if let Some((_, send)) = compiled.replies.iter().find(|(when, _)| is_meant(when)) {
            say(&compiled, send, &blanks, fx);
        }
    }

    /// Whether a frame answers a request.
    fn answered(&mut self, payload: &[u8], fx: &mut Effects) -> bool {
        let compiled = Arc::clone(&self.compiled);
        let known = blanks_of(&self.known);
        let mut found = None;
        for (at, pending) in self.pending.iter().enumerate() {
            let Some((_, exchange)) = compiled.verbs.get(usize::from(pending.verb)) else {
                continue;
            };
            let blanks = Blanks { id: pending.token.0, room: &pending.room, ..known };
            if let Some(verdict) = verdict(&compiled, exchange, payload, &blanks) {
                found = Some((at, verdict));
                break;
            }
        }
        let Some((at, verdict)) = found else { return false };
        let token = self.pending.remove(at).token;
        match verdict {
            Ok(()) => fx.done(token),
            Err(why) => fx.failed(token, FaultClass::RequestRefused, why),
        }
        true
    }

    fn ask(&mut self, token: Token, verb: Measure, blanks: Blanks<'_>, fx: &mut Effects) {
        let compiled = Arc::clone(&self.compiled);
        let Some(at) = compiled.verbs.iter().position(|(known, _)| *known == verb) else {
            let detail = format!("`verbs` does not describe `{}`", verb.name());
            return fx.failed(token, FaultClass::RequestRefused, detail);
        };
        let exchange = &compiled.verbs[at].1;
        let known = blanks_of(&self.known);
        let blanks = Blanks { id: token.0, name: known.name, kept: known.kept, ..blanks };
        if exchange.answer.is_some() {
            if self.pending.len() >= PENDING_MAX {
                let detail = format!("{PENDING_MAX} requests wait for their answers");
                return fx.failed(token, FaultClass::Backlog, detail);
            }
            let room = if exchange.needs_room { blanks.room } else { "" };
            self.pending.push(Pending { token, verb: at as u8, room: room.into() });
        }
        if let Some(send) = &exchange.send {
            say(&compiled, send, &blanks, fx);
        }
        // What is not answered is over once it is sent; what is said ends with its echo.
        if exchange.answer.is_none() && verb != Measure::Say {
            fx.done(token);
        }
    }

    /// Fails everything that is open and forgets the conversation.
    fn reset(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        let login = self.login.take();
        for token in login.into_iter().chain(self.pending.drain(..).map(|p| p.token)) {
            fx.failed(token, class, detail);
        }
        self.pending = Vec::new();
        self.known = None;
        self.stage = Stage::Idle;
        self.socket = Socket::default();
    }

    /// Ends the conversation as the target's doing.
    #[cold]
    fn give_up(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        self.reset(class, detail, fx);
        fx.broken(class, detail);
    }

    fn disconnect(&mut self, fx: &mut Effects) {
        if matches!(self.stage, Stage::Opening(_) | Stage::Online) {
            socket::write_close(close_code::NORMAL, fx);
        }
        self.reset(FaultClass::Offline, "the person disconnected first", fx);
        fx.close = Some(Ok(()));
    }
}

fn blanks_of(known: &Option<Box<Known>>) -> Blanks<'_> {
    match known {
        None => Blanks::default(),
        Some(known) => Blanks {
            name: &known.name,
            password: &known.password,
            kept: &known.kept,
            ..Blanks::default()
        },
    }
}

fn say(compiled: &Compiled, pieces: &[super::piece::Piece], blanks: &Blanks<'_>, fx: &mut Effects) {
    let mut payload = Vec::with_capacity(128);
    write(pieces, blanks, &mut payload);
    match compiled.deflate {
        true => socket::write_deflated(compiled.opcode(), &payload, fx),
        false => socket::write(compiled.opcode(), &payload, fx),
    }
}

/// What a frame says about a request: nothing, yes, or no and why.
fn verdict(
    compiled: &Compiled,
    exchange: &Exchange,
    payload: &[u8],
    blanks: &Blanks<'_>,
) -> Option<Result<(), String>> {
    let codec = compiled.codec();
    let is = |pattern: &Option<super::compile::Pattern>| {
        pattern.as_ref().is_some_and(|pattern| pattern.is(codec, payload, blanks))
    };
    if is(&exchange.refused) {
        let why = exchange.why.as_ref().and_then(|path| path.find(codec, payload));
        let why = why.map_or_else(|| "the target refused".to_owned(), |found| found.text());
        return Some(Err(printable(&why)));
    }
    is(&exchange.answer).then_some(Ok(()))
}

impl Session for Described {
    fn act(&mut self, _: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        let none = Blanks::default();
        let (verb, blanks) = match request {
            Request::Login { name, password } => return self.log_in(token, name, password, fx),
            Request::Disconnect => return self.disconnect(fx),
            _ if self.stage != Stage::Online => {
                return fx.failed(token, FaultClass::Offline, "not logged in");
            }
            Request::Join { room, nick, .. } => {
                (Measure::Join, Blanks { room: room.name, nick, ..none })
            }
            Request::Leave { room } => (Measure::Leave, Blanks { room: room.name, ..none }),
            Request::Say { room, text } => (Measure::Say, Blanks { room: room.name, text, ..none }),
            Request::History { room, limit } => {
                (Measure::History, Blanks { room: room.name, limit, ..none })
            }
            Request::Members { room } => (Measure::Members, Blanks { room: room.name, ..none }),
            Request::Typing { room } => (Measure::Typing, Blanks { room: room.name, ..none }),
            Request::Read { room } => (Measure::Read, Blanks { room: room.name, ..none }),
            Request::Presence { status, .. } => (Measure::Presence, Blanks { status, ..none }),
            Request::Ping => (Measure::Ping, none),
            _ => return fx.lacks(token, &super::FACTS, &request),
        };
        self.ask(token, verb, blanks, fx);
    }

    fn opened(&mut self, _: Tick, fx: &mut Effects) {
        let result = match self.stage {
            Stage::Http(step) => match self.compiled.login.get(usize::from(step)) {
                Some(step) => {
                    let blanks = blanks_of(&self.known);
                    http::ask(step, &self.shared.endpoint, &blanks, &mut fx.out)
                }
                None => Ok(()),
            },
            _ => self.upgrade(fx),
        };
        if let Err(fault) = result {
            self.give_up(fault.class, &fault.detail, fx);
        }
    }

    fn receive(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        if let Stage::Http(step) = self.stage {
            return self.read_http(step, bytes, fx);
        }
        // Taken out, so that the message it lends can be heard by the rest of the session.
        let mut socket = std::mem::take(&mut self.socket);
        let compiled = Arc::clone(&self.compiled);
        let (mut at, mut inflated) = (0, Inflated::default());
        let bytes_max = self.shared.frame_bytes_max;
        while fx.close.is_none() && at < bytes.len() && self.stage != Stage::Idle {
            if let Some((used, opcode, payload)) = socket.message(&bytes[at..], bytes_max) {
                at += used;
                self.hear(now, opcode, payload, fx);
                continue;
            }
            let offered: Vec<&str> = match self.stage {
                Stage::Rising => compiled.subprotocols.iter().map(String::as_str).collect(),
                _ => Vec::new(),
            };
            let rest = &bytes[at..];
            let (used, input) = socket.read(rest, &offered, bytes_max, &mut inflated, fx);
            at += used;
            match input {
                Input::Message(opcode, payload) => self.hear(now, opcode, payload, fx),
                Input::More => break,
                Input::Nothing => {}
                Input::Opened(_) => self.open(now, 0, fx),
                Input::Closed(fault) | Input::Broken(fault) => {
                    self.give_up(fault.class, &fault.detail, fx);
                }
            }
        }
        // What comes behind the end of a conversation is of no interest to anybody.
        if fx.close.is_some() || self.stage == Stage::Idle {
            return bytes.len();
        }
        self.socket = socket;
        at
    }

    fn wake(&mut self, now: Tick, fx: &mut Effects) {
        let compiled = Arc::clone(&self.compiled);
        let Some((every_ns, send)) = compiled.heartbeat.as_ref() else { return };
        if self.stage != Stage::Online {
            return;
        }
        match send {
            Some(send) => say(&compiled, send, &blanks_of(&self.known), fx),
            None => socket::write(Opcode::Ping, b"", fx),
        }
        fx.wake = Some(Tick(now.0 + every_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_small() {
        // Behind the login nothing else is kept, unless the description needs the name.
        for (size, max) in [(size_of::<Described>(), 112), (size_of::<Pending>(), 24)] {
            assert!(size <= max, "{size} bytes instead of {max}");
        }
    }
}
