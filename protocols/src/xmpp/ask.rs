//! Requests and their answers: the verbs of a person, and what its features ask by themselves.

use super::element::Element;
use super::session::{PENDING_MAX, XmppSession, send};
use super::stanza::{self, Ask, Id};
use super::{AVATARS, CARBONS, DISCO, HISTORY, ROSTER};
use model::{Effects, Event, Fault, FaultClass, Request, RoomName, Tick, Token};
use std::sync::Arc;

/// Messages in the page of the archive that the feature `history` reads.
const HISTORY_PAGE: u32 = 50;
/// Longest id of a request of the target's that is answered, bytes.
const FOREIGN_ID_BYTES_MAX: usize = 256;
/// Longest address that is answered, bytes (RFC 7622 section 3.1).
const FROM_BYTES_MAX: usize = 3071;
/// The node by which a room is asked for one's reserved nickname (XEP-0045 section 7.12).
const NICK_NODE: &str = "x-roomuser-item";

impl XmppSession {
    /// A verb of somebody who is online.
    pub(super) fn act_online(
        &mut self,
        now: Tick,
        token: Token,
        request: Request<'_>,
        fx: &mut Effects,
    ) {
        let shared = Arc::clone(&self.shared);
        match request {
            Request::Join { room, nick, status } => match shared.list(room.id) {
                Some(list) => self.join_list(now, token, list, fx),
                None => self.join(now, token, room, (nick, status), fx),
            },
            Request::Leave { room } if shared.list(room.id).is_some() => {
                self.leave_list(token, room, fx);
            }
            Request::Leave { room } => self.leave(token, room, fx),
            Request::Rename { room, nick } => self.rename(token, room, nick, fx),
            Request::Tell { list, text } => self.tell(token, list, text, fx),
            Request::Multicast { list, text } => self.multicast(token, list, text, fx),
            Request::Befriend { list } => self.befriend(token, list, fx),
            Request::Presence { list: Some(list), status } => self.show(token, list, status, fx),
            Request::Say { room, text } => {
                self.in_room(token, room, fx, |to| stanza::say(to, text, &Id::of('s', token)));
            }
            Request::Typing { room } => {
                if self.in_room(token, room, fx, stanza::typing) {
                    fx.done(token);
                }
            }
            Request::History { room, limit } => {
                self.verb(token, room, fx, |to, id| stanza::archive(to, limit, id));
            }
            Request::Members { room } => self.verb(token, room, fx, stanza::disco_items),
            Request::Presence { list: None, status } => self.change_presence(token, status, fx),
            Request::Ping => {
                if self.remember(token, fx) {
                    send(fx, &stanza::ping(self.home(), &Id::of('p', token)));
                }
            }
            _ => fx.lacks(token, &super::FACTS, &request),
        }
    }

    /// Sends something that goes to a room the person is in.
    fn in_room(
        &self,
        token: Token,
        room: RoomName<'_>,
        fx: &mut Effects,
        stanza: impl FnOnce(&str) -> String,
    ) -> bool {
        let seat = self.seat(room.id).filter(|seat| seat.is_in());
        match seat {
            Some(seat) => send(fx, &stanza(seat.address())),
            None => {
                let detail = format!("not in room `{}`", room.name);
                fx.failed(token, FaultClass::RequestRefused, detail);
            }
        }
        seat.is_some()
    }

    /// Sends an IQ to a room the person is in, and remembers to answer for it.
    fn verb(
        &mut self,
        token: Token,
        room: RoomName<'_>,
        fx: &mut Effects,
        stanza: impl FnOnce(&str, &str) -> String,
    ) {
        let id = Id::of('q', token);
        if self.remember(token, fx) && !self.in_room(token, room, fx, |to| stanza(to, &id)) {
            self.pending.pop();
        }
    }

    fn remember(&mut self, token: Token, fx: &mut Effects) -> bool {
        if self.pending.len() == PENDING_MAX {
            let detail = format!("{PENDING_MAX} requests of one person wait already");
            fx.failed(token, FaultClass::Backlog, detail);
            return false;
        }
        self.pending.push(token);
        true
    }

    /// What the features ask before the presence that joins a room, in the order of the
    /// published experiment; what does not concern the room is asked at the first one only.
    pub(super) fn greet(&mut self, now: Tick, room: &str, fx: &mut Effects) {
        let is_first = !std::mem::replace(&mut self.warmed, true);
        let features = self.features;
        let domain = self.home().to_owned();
        if features.has(DISCO) && is_first {
            self.ask(now, Ask::Disco, fx, |id| stanza::disco_info(&domain, "", id));
        }
        if features.has(ROSTER) && is_first {
            self.ask(now, Ask::Roster, fx, stanza::roster);
        }
        if features.has(AVATARS) {
            if is_first {
                self.ask(now, Ask::Avatar, fx, |id| stanza::vcard("", id));
            }
            self.ask(now, Ask::RoomAvatar, fx, |id| stanza::vcard(room, id));
        }
        if features.has(DISCO) {
            self.ask(now, Ask::Disco, fx, |id| stanza::disco_info(room, "", id));
            if is_first {
                self.ask(now, Ask::Disco, fx, |id| stanza::disco_items(&domain, id));
            }
            self.ask(now, Ask::DiscoNode, fx, |id| stanza::disco_info(room, NICK_NODE, id));
        }
        if features.has(CARBONS) && is_first {
            self.ask(now, Ask::Carbons, fx, stanza::carbons);
        }
    }

    /// What the features ask before a list is joined, of what is asked once: in the same order.
    pub(super) fn warm(&mut self, now: Tick, fx: &mut Effects) {
        if std::mem::replace(&mut self.warmed, true) {
            return;
        }
        let features = self.features;
        let domain = self.home().to_owned();
        if features.has(DISCO) {
            self.ask(now, Ask::Disco, fx, |id| stanza::disco_info(&domain, "", id));
        }
        if features.has(ROSTER) {
            self.ask(now, Ask::Roster, fx, stanza::roster);
        }
        if features.has(AVATARS) {
            self.ask(now, Ask::Avatar, fx, |id| stanza::vcard("", id));
        }
        if features.has(DISCO) {
            self.ask(now, Ask::Disco, fx, |id| stanza::disco_items(&domain, id));
        }
        if features.has(CARBONS) {
            self.ask(now, Ask::Carbons, fx, stanza::carbons);
        }
    }

    /// The page of the archive that follows the presence.
    pub(super) fn ask_history(&mut self, now: Tick, room: &str, fx: &mut Effects) {
        if self.features.has(HISTORY) {
            self.ask(now, Ask::History, fx, |id| stanza::archive(room, HISTORY_PAGE, id));
        }
    }

    /// Asks something by itself.
    pub(super) fn ask(
        &mut self,
        now: Tick,
        ask: Ask,
        fx: &mut Effects,
        stanza: impl FnOnce(&str) -> String,
    ) {
        self.serial = self.serial.wrapping_add(1);
        self.open_asks = self.open_asks.saturating_add(1);
        send(fx, &stanza(&ask.id(now, self.serial)));
        match fx.events.last_mut() {
            Some(Event::Asked(measure, count)) if *measure == ask.measure() => *count += 1,
            _ => fx.events.push(Event::Asked(ask.measure(), 1)),
        }
    }

    /// An IQ of somebody online: an answer to us, or a request to be answered.
    pub(super) fn on_iq(&mut self, now: Tick, iq: Element<'_>, fx: &mut Effects) {
        let is_error = match iq.tag.attribute("type") {
            Some("result") => false,
            Some("error") => true,
            _ => return self.answer(iq, fx),
        };
        match iq.tag.attribute("id").and_then(Id::parse) {
            Some(Id::Asked(ask, sent)) => self.on_answered(now, ask, sent, is_error, iq, fx),
            Some(Id::Verb(token)) if self.forget(token) => match is_error {
                true => fx.failed(token, FaultClass::RequestRefused, iq.stanza_error()),
                false => fx.done(token),
            },
            Some(Id::Ping(token)) if self.forget(token) => {
                let detail = if is_error { iq.stanza_error() } else { String::new() };
                // Whoever does not know pings says so, and thereby that it is alive (XEP-0199).
                let knows_not = ["service-unavailable", "feature-not-implemented"];
                match is_error && !knows_not.iter().any(|name| detail.starts_with(name)) {
                    true => fx.failed(token, FaultClass::RequestRefused, detail),
                    false => fx.done(token),
                }
            }
            Some(Id::There(token)) => self.on_there(token, fx),
            Some(Id::Configured(token)) => self.on_configured(now, token, iq, fx),
            Some(Id::Befriend(token)) => self.on_contacts(token, iq, fx),
            Some(Id::Service(place)) => self.on_service(place, iq, fx),
            _ => {}
        }
    }

    fn on_answered(
        &mut self,
        now: Tick,
        ask: Ask,
        sent: Tick,
        is_error: bool,
        iq: Element<'_>,
        fx: &mut Effects,
    ) {
        // Nothing open, or asked in the future: the target made the id up.
        if self.open_asks == 0 || sent > now {
            return;
        }
        self.open_asks -= 1;
        let outcome = match is_error && !ask.tolerates_errors() {
            true => Err(Fault::new(FaultClass::RequestRefused, iq.stanza_error())),
            false => Ok(()),
        };
        fx.events.push(Event::Answered { measure: ask.measure(), sent, outcome });
    }

    /// Takes a verb off the list of those that wait.
    fn forget(&mut self, token: Token) -> bool {
        let place = self.pending.iter().position(|&other| other == token);
        if let Some(place) = place {
            self.pending.swap_remove(place);
        }
        place.is_some()
    }

    /// Answers a request of the target's, as every entity must (RFC 6120 section 8.2.3).
    pub(super) fn answer(&mut self, iq: Element<'_>, fx: &mut Effects) {
        let is_set = match iq.tag.attribute("type") {
            Some("set") => true,
            Some("get") => false,
            _ => return,
        };
        let id = iq.tag.value("id").unwrap_or_default();
        let from = iq.tag.value("from").unwrap_or_default();
        if id.len() > FOREIGN_ID_BYTES_MAX || from.len() > FROM_BYTES_MAX {
            return;
        }
        let Some(query) = iq.children().next() else {
            return send(fx, &stanza::refusal(&from, &id));
        };
        match query.tag.attribute("xmlns") {
            Some("urn:xmpp:ping") => send(fx, &stanza::result(&from, &id)),
            // Nobody but the own server may change the list of contacts (RFC 6121 section 2.1.6).
            Some("jabber:iq:roster")
                if is_set && (from.is_empty() || self.direct.is_me(from.as_bytes())) =>
            {
                send(fx, &stanza::result(&from, &id));
                self.on_items(query, fx);
            }
            Some(stanza::NS_INFO) if !is_set && query.tag.attribute("node").is_none() => {
                send(fx, &stanza::about_us(&from, &id));
            }
            _ => send(fx, &stanza::refusal(&from, &id)),
        }
    }
}
