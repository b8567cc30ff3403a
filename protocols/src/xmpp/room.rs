//! Rooms (XEP-0045): entering, leaving, who is there, and the avatars of who is there.

use super::config::RoomConfig;
use super::element::{Element, Sight};
use super::session::{XmppSession, send};
use super::stanza::{self, Ask, Id};
use super::xml::unescape;
use super::{AVATARS, option};
use model::{Effects, Event, FaultClass, RoomId, RoomName, Tick, Token};

/// Most people in a room whose avatars one person fetches.
const OCCUPANTS_MAX: usize = 1 << 16;
/// Most bytes of names kept until the person is in the room.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Longest part of an address, bytes (RFC 7622 section 3.1).
const PART_BYTES_MAX: usize = 1023;

/// A person's seat in a room.
pub(super) struct Seat {
    pub(super) room: RoomId,
    /// `room@muc/nick`.
    occupant: Box<str>,
    /// Length of `room@muc` in it.
    bare: u16,
    stage: SeatStage,
    /// A change of presence that the room has not announced yet.
    status: Option<Token>,
    /// A change of name that the room has not announced yet, and the name.
    rename: Option<(Token, Box<str>)>,
    /// We made the room, and it has not answered to how it shall be.
    is_unset: bool,
    /// Who is there; only where avatars are fetched.
    crowd: Option<Box<Crowd>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeatStage {
    Joining(Token),
    In,
    Leaving(Token),
}

/// Whose avatars have been seen to.
#[derive(Default)]
struct Crowd {
    /// Hashes of the nicknames of those present, sorted.
    known: Vec<u64>,
    /// Nicknames of those who were there first, until the person is in; each ends with a zero.
    waiting: String,
}

impl Seat {
    pub(super) fn is_in(&self) -> bool {
        self.stage == SeatStage::In
    }

    /// `room@muc`.
    pub(super) fn address(&self) -> &str {
        &self.occupant[..usize::from(self.bare)]
    }

    /// The nickname in `from` if that is an occupant of this room, empty for the room itself.
    fn nick_of<'a>(&self, from: &'a str) -> Option<&'a str> {
        let rest = from.strip_prefix(self.address())?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    }

    /// Whether an error from `nick` (empty for the room itself) is about the name we asked for.
    fn refuses_name(&self, nick: &str) -> bool {
        self.rename.as_ref().is_some_and(|(_, wanted)| **wanted == *nick || self.status.is_none())
    }

    /// Everything that waits for this room.
    pub(super) fn into_tokens(self) -> impl Iterator<Item = Token> {
        let token = match self.stage {
            SeatStage::Joining(token) | SeatStage::Leaving(token) => Some(token),
            SeatStage::In => None,
        };
        token.into_iter().chain(self.status).chain(self.rename.map(|(token, _)| token))
    }
}

impl XmppSession {
    pub(super) fn seat(&self, room: RoomId) -> Option<&Seat> {
        self.seats.iter().find(|seat| seat.room == room)
    }

    pub(super) fn join(
        &mut self,
        now: Tick,
        token: Token,
        room: RoomName<'_>,
        (nick, status): (&str, &str),
        fx: &mut Effects,
    ) {
        let Some((occupant, bare)) = self.occupant(room.name, nick) else {
            let detail = format!("`{}` and `{nick}` make no room address", room.name);
            return fx.failed(token, FaultClass::RequestRefused, detail);
        };
        if let Some(place) = self.seats.iter().position(|seat| seat.room == room.id) {
            self.drop_seat(place, "joined again", fx);
        }
        self.greet(now, &occupant[..usize::from(bare)], fx);
        send(fx, &stanza::join(&occupant, status));
        self.ask_history(now, &occupant[..usize::from(bare)], fx);
        let crowd = self.features.has(AVATARS).then(Box::default);
        let stage = SeatStage::Joining(token);
        self.seats.push(Seat {
            room: room.id,
            occupant,
            bare,
            stage,
            status: None,
            rename: None,
            is_unset: false,
            crowd,
        });
    }

    /// `room@muc/nick` and the length of its first part. The target folds room names to lower case
    /// (RFC 7622 section 3.3), so we do it first; nicknames keep what is ASCII of them.
    fn occupant(&self, room: &str, nick: &str) -> Option<(Box<str>, u16)> {
        let is_bad = |c: char| c.is_ascii_control() || c == ' ' || "\"&'/:<>@".contains(c);
        if room.is_empty() || !room.is_ascii() || room.contains(is_bad) {
            return None;
        }
        let nick: String = nick.chars().filter(|c| c.is_ascii() && !c.is_ascii_control()).collect();
        let nick = nick.trim();
        if nick.is_empty() || nick.len() > PART_BYTES_MAX || room.len() > PART_BYTES_MAX {
            return None;
        }
        let muc = option(&self.shared.options, "muc");
        let mut occupant = format!("{}@{muc}", room.to_ascii_lowercase());
        let bare = u16::try_from(occupant.len()).ok()?;
        occupant.push('/');
        occupant.push_str(nick);
        Some((occupant.into(), bare))
    }

    pub(super) fn leave(&mut self, token: Token, room: RoomName<'_>, fx: &mut Effects) {
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.room == room.id) else {
            let detail = format!("not in room `{}`", room.name);
            return fx.failed(token, FaultClass::RequestRefused, detail);
        };
        if let SeatStage::Joining(old) | SeatStage::Leaving(old) = seat.stage {
            fx.failed(old, FaultClass::RequestRefused, "the person left");
        }
        seat.stage = SeatStage::Leaving(token);
        send(fx, &stanza::leave(&seat.occupant));
    }

    /// Changes the presence in every room, and waits for the last of them to announce it; outside
    /// of rooms nobody announces it, so it is done when said.
    pub(super) fn change_presence(&mut self, token: Token, status: &str, fx: &mut Effects) {
        let mut last = None;
        for (place, seat) in self.seats.iter().enumerate().filter(|(_, seat)| seat.is_in()) {
            send(fx, &stanza::status(&seat.occupant, status));
            last = Some(place);
        }
        let Some(place) = last else {
            send(fx, &stanza::status("", status));
            return fx.done(token);
        };
        if let Some(old) = self.seats[place].status.replace(token) {
            fx.failed(old, FaultClass::RequestRefused, "the presence was changed again");
        }
    }

    /// Asks for another name (XEP-0045 section 7.6).
    pub(super) fn rename(
        &mut self,
        token: Token,
        room: RoomName<'_>,
        nick: &str,
        fx: &mut Effects,
    ) {
        let Some((occupant, bare)) = self.occupant(room.name, nick) else {
            let detail = format!("`{}` and `{nick}` make no room address", room.name);
            return fx.failed(token, FaultClass::RequestRefused, detail);
        };
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.room == room.id && seat.is_in())
        else {
            let detail = format!("not in room `{}`", room.name);
            return fx.failed(token, FaultClass::RequestRefused, detail);
        };
        let nick = occupant[usize::from(bare) + 1..].into();
        if let Some((old, _)) = seat.rename.replace((token, nick)) {
            fx.failed(old, FaultClass::RequestRefused, "the name was changed again");
        }
        send(fx, &stanza::rename(&occupant));
    }

    /// Whether an address (raw bytes of an attribute) is that of a room or of somebody in it.
    pub(super) fn is_occupant(&self, from: &[u8]) -> bool {
        let from = str::from_utf8(from).unwrap_or_default();
        self.seats.iter().any(|seat| seat.nick_of(from).is_some())
    }

    /// The presence of somebody else in a room. Returns `false` if it is about ourselves and has
    /// to be read in full.
    pub(super) fn on_neighbor(&mut self, now: Tick, sight: Sight<'_>, fx: &mut Effects) -> bool {
        let from = unescape(sight.from);
        let is_gone = sight.kind == "unavailable";
        for place in 0..self.seats.len() {
            let seat = &mut self.seats[place];
            let Some(nick) = seat.nick_of(&from) else { continue };
            if seat.nick_of(&seat.occupant) == Some(nick) {
                return false;
            }
            // A presence of the room itself tells of its avatar, not of anybody's coming.
            if nick.is_empty() || nick.len() > PART_BYTES_MAX {
                return true;
            }
            if !matches!(seat.stage, SeatStage::Joining(_)) {
                fx.events.push(Event::Presences(seat.room, 1));
            }
            self.see(now, place, nick, is_gone, fx);
            return true;
        }
        self.on_contact(sight, &from, fx);
        true
    }

    /// Somebody else has a new name: the presence under it counts, the end of the old one does not,
    /// and the picture is known.
    fn on_renamed(&mut self, place: usize, old: &str, presence: Element<'_>) {
        let Some(crowd) = &mut self.seats[place].crowd else { return };
        let new = muc_item(presence).and_then(|item| item.tag.value("nick"));
        if let (Some(new), Ok(at)) = (new, crowd.known.binary_search(&hash_of(old.bytes()))) {
            crowd.known.remove(at);
            let hash = hash_of(new.bytes());
            if let Err(at) = crowd.known.binary_search(&hash) {
                crowd.known.insert(at, hash);
            }
        }
    }

    /// Sees to the avatar of somebody who is in a room, once.
    fn see(&mut self, now: Tick, place: usize, nick: &str, is_gone: bool, fx: &mut Effects) {
        let seat = &mut self.seats[place];
        let is_in = seat.is_in();
        let Some(crowd) = &mut seat.crowd else { return };
        let hash = hash_of(nick.bytes());
        match crowd.known.binary_search(&hash) {
            Ok(at) if is_gone => _ = crowd.known.remove(at),
            Err(at) if !is_gone => {
                let waiting = crowd.waiting.len() + nick.len();
                if crowd.known.len() == OCCUPANTS_MAX || waiting >= WAITING_BYTES_MAX {
                    let detail = format!("more than {OCCUPANTS_MAX} people in a room with avatars");
                    return self.give_up(fx, FaultClass::TooLarge, &detail);
                }
                crowd.known.insert(at, hash);
                if is_in {
                    let address = format!("{}/{nick}", seat.address());
                    self.ask(now, Ask::Avatar, fx, |id| stanza::vcard(&address, id));
                } else {
                    crowd.waiting.push_str(nick);
                    crowd.waiting.push('\0');
                }
            }
            _ => {}
        }
    }

    /// A presence read in full: ours, a refusal, or one that only looked unusual.
    pub(super) fn on_presence(&mut self, now: Tick, element: Element<'_>, fx: &mut Effects) {
        let sight = Sight::of(&element.tag, element.source);
        let from = unescape(sight.from);
        let Some(place) = self.seats.iter().position(|seat| seat.nick_of(&from).is_some()) else {
            return self.on_contact(sight, &from, fx);
        };
        if sight.kind == "error" {
            return self.on_refusal(place, &from, &element.stanza_error(), fx);
        }
        let seat = &self.seats[place];
        let is_own = seat.nick_of(&seat.occupant) == seat.nick_of(&from);
        if !is_own && !has_status(element, "110") {
            match sight.kind == "unavailable" && has_status(element, "303") {
                true => {
                    let nick = String::from(seat.nick_of(&from).unwrap_or_default());
                    self.on_renamed(place, &nick, element);
                }
                false => _ = self.on_neighbor(now, sight, fx),
            }
            return;
        }
        match sight.kind {
            "unavailable" => self.on_removed(place, element, fx),
            _ => {
                let is_made = has_status(element, "201");
                self.on_own(now, place, (&from, is_made), fx);
            }
        }
    }

    /// Our own presence: we are in, or our change of presence or name has been announced.
    fn on_own(&mut self, now: Tick, place: usize, (from, is_made): (&str, bool), fx: &mut Effects) {
        let seat = &mut self.seats[place];
        if let Some(token) = seat.status.take() {
            fx.done(token);
        }
        let nick = seat.nick_of(from).unwrap_or_default();
        let is_new = *seat.occupant != *from;
        if let Some((token, _)) = seat.rename.take_if(|(_, wanted)| is_new || **wanted == *nick) {
            fx.done(token);
        }
        // The room may have changed the nickname (status 210, 303).
        if *seat.occupant != *from && seat.nick_of(from).is_some_and(|nick| !nick.is_empty()) {
            seat.occupant = from.into();
        }
        let SeatStage::Joining(token) = seat.stage else { return };
        if is_made && !seat.is_unset {
            // Checked before the run; what cannot be read is not said.
            let config = RoomConfig::parse(option(&self.shared.options, "room-config"));
            let fields = match config.unwrap_or(RoomConfig::None) {
                RoomConfig::None => None,
                RoomConfig::Instant => Some(Vec::new()),
                RoomConfig::Form(fields) => Some(fields),
            };
            if let Some(fields) = fields {
                seat.is_unset = true;
                let id = Id::of('o', token);
                send(fx, &stanza::configuration(seat.address(), &fields, &id));
            }
        }
        if !seat.is_unset {
            self.settle_in(now, place, token, fx);
        }
    }

    /// The room that we made has answered to how it shall be. It may refuse to be as it is: not all
    /// targets know that question.
    pub(super) fn on_configured(
        &mut self,
        now: Tick,
        token: Token,
        iq: Element<'_>,
        fx: &mut Effects,
    ) {
        let is_it = |seat: &Seat| seat.is_unset && seat.stage == SeatStage::Joining(token);
        let Some(place) = self.seats.iter().position(is_it) else { return };
        let is_form = option(&self.shared.options, "room-config") != "instant";
        if is_form && iq.tag.attribute("type") == Some("error") {
            let seat = &self.seats[place];
            send(fx, &stanza::leave(&seat.occupant));
            let detail = format!("{}: room-config: {}", seat.address(), iq.stanza_error());
            return self.drop_seat(place, &detail, fx);
        }
        self.seats[place].is_unset = false;
        self.settle_in(now, place, token, fx);
    }

    /// We are in.
    fn settle_in(&mut self, now: Tick, place: usize, token: Token, fx: &mut Effects) {
        let seat = &mut self.seats[place];
        seat.stage = SeatStage::In;
        fx.done(token);
        let Some(crowd) = &mut seat.crowd else { return };
        let waiting = std::mem::take(&mut crowd.waiting);
        let room = String::from(seat.address());
        for nick in waiting.split_terminator('\0') {
            let address = format!("{room}/{nick}");
            self.ask(now, Ask::Avatar, fx, |id| stanza::vcard(&address, id));
        }
    }

    /// Our own absence: we have left, were renamed, or were put out.
    fn on_removed(&mut self, place: usize, element: Element<'_>, fx: &mut Effects) {
        if has_status(element, "303") {
            return; // a new nickname: our presence under it follows
        }
        let room = String::from(self.seats[place].address());
        match self.seats[place].stage {
            SeatStage::Leaving(token) => {
                fx.done(token);
                self.seats[place].stage = SeatStage::In;
                self.drop_seat(place, "the person left", fx);
            }
            _ => {
                let why = REMOVALS.iter().find(|(code, _)| has_status(element, code));
                let why = why.map_or("without a reason", |row| row.1);
                let detail = format!("the target removed a person from {room}: {why}");
                self.give_up(fx, FaultClass::Closed, &detail);
            }
        }
    }

    fn on_refusal(&mut self, place: usize, from: &str, condition: &str, fx: &mut Effects) {
        let seat = &mut self.seats[place];
        let detail = format!("{}: {condition}", seat.address());
        let nick = seat.nick_of(from).unwrap_or_default();
        match seat.stage {
            // Some rooms refuse a new name under it, others in their own name (XEP-0045 7.6).
            SeatStage::In if seat.refuses_name(nick) => {
                if let Some((token, _)) = seat.rename.take() {
                    fx.failed(token, FaultClass::RequestRefused, detail);
                }
            }
            SeatStage::In => {
                if let Some(token) = seat.status.take() {
                    fx.failed(token, FaultClass::RequestRefused, detail);
                }
            }
            SeatStage::Joining(_) | SeatStage::Leaving(_) => self.drop_seat(place, &detail, fx),
        }
    }

    /// Gives a seat up; what waits for it fails.
    fn drop_seat(&mut self, place: usize, detail: &str, fx: &mut Effects) {
        for token in self.seats.swap_remove(place).into_tokens() {
            fx.failed(token, FaultClass::RequestRefused, detail);
        }
    }
}

/// Why somebody is put out of a room (XEP-0045 section 15.6.2).
const REMOVALS: [(&str, &str); 6] = [
    ("301", "banned (status 301)"),
    ("307", "kicked (status 307)"),
    ("321", "affiliation changed (status 321)"),
    ("322", "members only (status 322)"),
    ("332", "shutdown (status 332)"),
    ("333", "technical problem (status 333)"),
];

/// Whether a presence carries a status code of multi-user chat.
fn has_status(presence: Element<'_>, code: &str) -> bool {
    let mut children = muc_children(presence);
    children.any(|child| child.tag.local() == "status" && child.tag.attribute("code") == Some(code))
}

/// What a room tells of an occupant (XEP-0045 section 17.2): role, affiliation, new name.
fn muc_item(presence: Element<'_>) -> Option<Element<'_>> {
    muc_children(presence).find(|child| child.tag.local() == "item")
}

fn muc_children(presence: Element<'_>) -> impl Iterator<Item = Element<'_>> {
    presence.children().filter(|child| child.tag.local() == "x").flat_map(|x| x.children())
}

/// FNV-1a, 64 bits: two names that collide would cost one avatar request, or count one presence.
pub(super) fn hash_of(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
