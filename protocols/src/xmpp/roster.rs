//! Contacts: becoming each other's (RFC 6121 sections 2 and 3), and their presence.

use super::direct::{StayStage, bare};
use super::element::{Element, Sight, has_stamp};
use super::room::hash_of;
use super::session::{XmppSession, send};
use super::stanza::{self, Id};
use model::{Effects, Event, FaultClass, List, RoomName, Token};

/// Longest address that is answered, bytes.
const FROM_BYTES_MAX: usize = 3071;

/// Somebody becoming a contact of everybody on a list.
pub(super) struct Befriending {
    pub(super) token: Token,
    list: u32,
    /// Hashes of the addresses that have not said yes or no, sorted.
    waiting: Vec<u64>,
    /// How many there were, and how many said no.
    people: usize,
    refused: usize,
}

impl XmppSession {
    /// The addresses of a list but oneself as sorted hashes.
    pub(super) fn hashes(&self, list: &List) -> Box<[u64]> {
        let mut hashes: Vec<u64> =
            self.addresses(list).map(|address| hash_of_address(&address)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes.into()
    }

    /// Asks for the contacts there are, which also makes the target tell of changes (RFC 6121
    /// section 2.2). Requests to those who are contacts already would not be answered (3.1.3).
    pub(super) fn befriend(&mut self, token: Token, list: RoomName<'_>, fx: &mut Effects) {
        let Some(people) = self.shared.list(list.id) else {
            return self.refuse(token, format!("`{}` is no list", list.name), fx);
        };
        let waiting = self.hashes(people).into_vec();
        let people = waiting.len();
        let fresh = Box::new(Befriending { token, list: list.id, waiting, people, refused: 0 });
        if let Some(old) = self.direct.befriending.replace(fresh) {
            self.refuse(old.token, "befriended again".into(), fx);
        }
        send(fx, &stanza::roster(&Id::of('f', token)));
    }

    /// The contacts there are: everybody else on the list is asked.
    pub(super) fn on_contacts(&mut self, token: Token, iq: Element<'_>, fx: &mut Effects) {
        let is_ours = |befriending: &mut Box<Befriending>| befriending.token == token;
        if self.direct.befriending.as_mut().is_none_or(|found| !is_ours(found)) {
            return;
        }
        if iq.tag.attribute("type") == Some("error") {
            self.direct.befriending = None;
            return self.refuse(token, iq.stanza_error(), fx);
        }
        if let Some(query) = iq.child("query") {
            self.on_items(query, fx);
        }
        let Some(befriending) = &self.direct.befriending else { return };
        let Some(people) = self.shared.list(befriending.list) else { return };
        for address in self.addresses(people) {
            if befriending.waiting.binary_search(&hash_of_address(&address)).is_ok() {
                send(fx, &stanza::subscription(&address, "subscribe"));
            }
        }
        self.finish_befriending(fx);
    }

    /// Contacts in a list or a push of the target's.
    pub(super) fn on_items(&mut self, query: Element<'_>, fx: &mut Effects) {
        for item in query.children() {
            if matches!(item.tag.attribute("subscription"), Some("to" | "both"))
                && let Some(jid) = item.tag.value("jid")
            {
                self.on_befriended(&jid, true, fx);
            }
        }
    }

    /// Somebody said yes or no.
    fn on_befriended(&mut self, from: &str, is_yes: bool, fx: &mut Effects) {
        let Some(befriending) = &mut self.direct.befriending else { return };
        let hash = hash_of_address(bare(from));
        let Ok(place) = befriending.waiting.binary_search(&hash) else { return };
        befriending.waiting.remove(place);
        befriending.refused += usize::from(!is_yes);
        self.finish_befriending(fx);
    }

    fn finish_befriending(&mut self, fx: &mut Effects) {
        let is_over = |befriending: &mut Box<Befriending>| befriending.waiting.is_empty();
        let Some(over) = self.direct.befriending.take_if(is_over) else { return };
        match over.refused {
            0 => fx.done(over.token),
            count => {
                let detail = format!("{count} of {} people do not want it", over.people);
                fx.failed(over.token, FaultClass::RequestRefused, detail);
            }
        }
    }

    /// A presence that comes from no room. `from` is without references.
    pub(super) fn on_contact(&mut self, sight: Sight<'_>, from: &str, fx: &mut Effects) {
        match sight.kind {
            "subscribe" if !from.is_empty() && from.len() <= FROM_BYTES_MAX => {
                send(fx, &stanza::subscription(bare(from), "subscribed"));
            }
            "subscribed" => self.on_befriended(from, true, fx),
            "unsubscribed" | "error" => self.on_befriended(from, false, fx),
            "" => self.on_seen(sight, from, fx),
            // That of a bare address tells that somebody has not been there (a probe's answer).
            "unavailable" if from.contains('/') => self.on_seen(sight, from, fx),
            _ => {}
        }
    }

    /// A contact comes, changes or goes. What those who were there before once showed is late.
    fn on_seen(&mut self, sight: Sight<'_>, from: &str, fx: &mut Effects) {
        if self.direct.is_me(from.as_bytes()) || !self.has_contacts() || self.is_past(sight) {
            return;
        }
        if sight.kind.is_empty() && has_stamp(sight.source) {
            return fx.deliveries(sight.source.as_bytes());
        }
        let hash = hash_of_address(bare(from));
        for stay in self.direct.stays.iter().filter(|stay| stay.stage == StayStage::Here) {
            if stay.members.binary_search(&hash).is_ok() {
                fx.events.push(Event::Presences(stay.list, 1));
            }
        }
    }

    /// Whether a list of contacts is joined.
    pub(super) fn has_contacts(&self) -> bool {
        self.direct.stays.iter().any(|stay| !stay.members.is_empty())
    }
}

/// Addresses are compared without regard to case (RFC 7622 section 3.3).
fn hash_of_address(address: &str) -> u64 {
    hash_of(address.bytes().map(|byte| byte.to_ascii_lowercase()))
}
