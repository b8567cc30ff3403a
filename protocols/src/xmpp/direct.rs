//! Lists: being there for those who write to one by name, and what is said to them (RFC 6121).

use super::element::Element;
use super::multicast::Service;
use super::roster::Befriending;
use super::session::{XmppSession, domain, send};
use super::stanza::{self, Id};
use model::{Effects, FaultClass, List, RoomId, RoomName, Tick, Token};
use std::borrow::Cow;

/// Longest address, bytes (RFC 7622 section 3.1).
const ADDRESS_BYTES_MAX: usize = 3071;
/// Refusals of one person who is not there: nobody owes it the message (RFC 6120 section 8.3.3).
const NOT_THERE: [&str; 4] =
    ["service-unavailable", "recipient-unavailable", "item-not-found", "gone"];

/// What a conversation knows of people who are written to by name.
#[derive(Default)]
pub(super) struct Direct {
    /// The address that the target bound, `name@domain/resource`; empty before.
    me: Box<str>,
    /// Lists being joined, inhabited or left.
    pub(super) stays: Vec<Stay>,
    /// The last message to a list that was refused: the refusals of its other copies are no news.
    refused: Option<Token>,
    pub(super) service: Service,
    pub(super) befriending: Option<Box<Befriending>>,
}

/// A person's being there for one list.
pub(super) struct Stay {
    pub(super) list: RoomId,
    /// Hashes of the addresses of its members, sorted; only of lists of contacts.
    pub(super) members: Box<[u64]>,
    pub(super) stage: StayStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StayStage {
    Coming(Token),
    Here,
    Going(Token),
}

impl Stay {
    fn is_leaving(&self) -> bool {
        matches!(self.stage, StayStage::Going(_))
    }

    fn token(&self) -> Option<Token> {
        match self.stage {
            StayStage::Coming(token) | StayStage::Going(token) => Some(token),
            StayStage::Here => None,
        }
    }
}

impl Direct {
    /// Everything that waits here.
    pub(super) fn into_tokens(self) -> impl Iterator<Item = Token> {
        let stays = self.stays.into_iter().filter_map(|stay| stay.token());
        let befriending = self.befriending.map(|befriending| befriending.token);
        stays.chain(befriending).chain(self.service.into_tokens())
    }

    /// `name@domain` that was bound; empty before.
    fn bare(&self) -> &str {
        bare(&self.me)
    }

    /// Notes one's own address, where it is not the target that gives it.
    pub(super) fn be(&mut self, address: &str) {
        self.me = address.into();
    }

    /// Whether an address (raw bytes of an attribute) is the person's own, with any resource.
    pub(super) fn is_me(&self, from: &[u8]) -> bool {
        let me = self.bare().as_bytes();
        let rest = from.strip_prefix(me);
        !me.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// Whether others see the person and write to it.
    fn is_available(&self) -> bool {
        self.stays.iter().any(|stay| !stay.is_leaving())
    }
}

/// An address without its resource.
pub(super) fn bare(address: &str) -> &str {
    address.split_once('/').map_or(address, |(bare, _)| bare)
}

impl XmppSession {
    /// Notes the address that the target bound (RFC 6120 section 7.6.1).
    pub(super) fn note_address(&mut self, iq: Element<'_>) {
        let jid = iq.child("bind").and_then(|bind| bind.child("jid"));
        let jid = jid.map(|jid| jid.text()).unwrap_or_default();
        if jid.len() <= ADDRESS_BYTES_MAX {
            self.direct.me = jid.into();
        }
    }

    /// The domain the person lives at.
    pub(super) fn home(&self) -> &str {
        match self.direct.bare().split_once('@') {
            Some((_, domain)) => domain,
            None => self.domain(),
        }
    }

    /// The addresses of those on a list but oneself: names may carry their domain, else they are
    /// of the target's, wherever the person itself lives.
    pub(super) fn addresses<'a>(&'a self, list: &'a List) -> impl Iterator<Item = Cow<'a, str>> {
        let domain = domain(&self.shared);
        let address = move |name: &'a str| match name.contains('@') {
            true => Cow::Borrowed(name),
            false => Cow::Owned(format!("{name}@{domain}")),
        };
        let me = self.direct.bare();
        list.names
            .iter()
            .map(move |name| address(name))
            .filter(move |address| !address.eq_ignore_ascii_case(me))
    }

    /// Becomes available, and asks for a ping behind it: its answer tells that the target has taken
    /// the presence, since stanzas of one stream are taken in order (RFC 6120 section 10.1).
    pub(super) fn join_list(&mut self, now: Tick, token: Token, list: &List, fx: &mut Effects) {
        let was_available = self.direct.is_available();
        let old = self.direct.stays.iter().position(|stay| stay.list == list.room);
        if let Some(token) = old.and_then(|place| self.direct.stays.swap_remove(place).token()) {
            fx.failed(token, FaultClass::RequestRefused, "joined again");
        }
        self.warm(now, fx);
        if !was_available {
            send(fx, stanza::AVAILABLE);
        }
        let members = if list.is_roster { self.hashes(list) } else { Box::default() };
        let stage = StayStage::Coming(token);
        self.direct.stays.push(Stay { list: list.room, members, stage });
        send(fx, &stanza::ping(self.home(), &Id::of('l', token)));
    }

    /// Becomes unavailable if no other list is joined. That would end rooms too (RFC 6121 section
    /// 4.6.2): who is in one only stops being sent messages.
    pub(super) fn leave_list(&mut self, token: Token, list: RoomName<'_>, fx: &mut Effects) {
        let Some(stay) = self.direct.stays.iter_mut().find(|stay| stay.list == list.id) else {
            return self.refuse(token, format!("not there for list `{}`", list.name), fx);
        };
        if let Some(old) = stay.token() {
            fx.failed(old, FaultClass::RequestRefused, "the person left");
        }
        let was_leaving = stay.is_leaving();
        stay.stage = StayStage::Going(token);
        if !was_leaving && !self.direct.is_available() {
            send(fx, if self.seats.is_empty() { stanza::UNAVAILABLE } else { stanza::DEAF });
        }
        send(fx, &stanza::ping(self.home(), &Id::of('l', token)));
    }

    /// The ping behind a presence was answered.
    pub(super) fn on_there(&mut self, token: Token, fx: &mut Effects) {
        let stays = &mut self.direct.stays;
        let Some(place) = stays.iter().position(|stay| stay.token() == Some(token)) else { return };
        match stays[place].stage {
            StayStage::Going(_) => _ = stays.swap_remove(place),
            _ => stays[place].stage = StayStage::Here,
        }
        fx.done(token);
    }

    /// One message to each on a list.
    pub(super) fn tell(&self, token: Token, list: RoomName<'_>, text: &str, fx: &mut Effects) {
        let Some(people) = self.shared.list(list.id) else {
            return self.refuse(token, format!("`{}` is no list", list.name), fx);
        };
        let id = Id::of('t', token);
        for address in self.addresses(people) {
            send(fx, &stanza::tell(&address, text, &id));
        }
    }

    /// Shows everybody who has the person as a contact a stamped status.
    pub(super) fn show(&self, token: Token, list: RoomName<'_>, status: &str, fx: &mut Effects) {
        let is_there = self.direct.stays.iter().any(|stay| stay.list == list.id);
        match is_there && self.direct.is_available() {
            true => send(fx, &stanza::status("", status)),
            false => self.refuse(token, format!("not there for list `{}`", list.name), fx),
        }
    }

    /// A message to a list came back: that one of many is not there is no refusal of the message.
    pub(super) fn on_bounce(&mut self, token: Token, condition: &str, fx: &mut Effects) {
        let is_absence = NOT_THERE.iter().any(|name| condition.starts_with(name));
        if !is_absence && self.direct.refused != Some(token) {
            self.direct.refused = Some(token);
            self.refuse(token, format!("message refused: {condition}"), fx);
        }
    }

    pub(super) fn refuse(&self, token: Token, detail: String, fx: &mut Effects) {
        fx.failed(token, FaultClass::RequestRefused, detail);
    }
}
