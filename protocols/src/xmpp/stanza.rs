//! What is written: stanzas as text, and the ids that carry the time they were asked at.

use super::xml::escape;
use model::{Measure, Tick, Token};
use std::borrow::Cow;

/// Something the session asks by itself; the id tells which and when, so nothing is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// XEP-0030.
    Disco,
    /// XEP-0030 about a node that many targets do not have: an error is an answer.
    DiscoNode,
    /// RFC 6121 section 2.
    Roster,
    /// XEP-0280.
    Carbons,
    /// XEP-0313.
    History,
    /// XEP-0054, a person's.
    Avatar,
    /// XEP-0054, a room's: targets without room avatars answer with an error, which is an answer.
    RoomAvatar,
}

const ASKS: [(Ask, char, Measure); 7] = [
    (Ask::Disco, 'd', Measure::Disco),
    (Ask::DiscoNode, 'n', Measure::Disco),
    (Ask::Roster, 'r', Measure::Roster),
    (Ask::Carbons, 'c', Measure::Carbons),
    (Ask::History, 'h', Measure::History),
    (Ask::Avatar, 'v', Measure::Avatars),
    (Ask::RoomAvatar, 'w', Measure::Avatars),
];

impl Ask {
    /// What it is measured as.
    pub(super) fn measure(self) -> Measure {
        ASKS[self as usize].2
    }

    /// Whether an error is the answer to be expected from a target without the thing.
    pub(super) fn tolerates_errors(self) -> bool {
        matches!(self, Ask::DiscoNode | Ask::RoomAvatar)
    }

    /// The id of such a request: letter, microseconds, and a number to make it unique.
    pub(super) fn id(self, now: Tick, serial: u32) -> String {
        let mut id = String::from(ASKS[self as usize].1);
        write_base32(&mut id, now.micros());
        id.push('-');
        write_base32(&mut id, u64::from(serial));
        id
    }
}

/// What an id of ours says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    /// The session asked by itself, then.
    Asked(Ask, Tick),
    /// A verb answered by an IQ.
    Verb(Token),
    /// A ping: any answer is a sign of life.
    Ping(Token),
    /// A message said; only a refusal carries it back.
    Said(Token),
    /// A message to one of a list; only a refusal carries it back.
    Told(Token),
    /// A message to the multicast service; only a refusal carries it back.
    Multicast(Token),
    /// A list is joined or left once this is answered.
    There(Token),
    /// The configuration of a room we made.
    Configured(Token),
    /// The list of contacts, for becoming others' contact.
    Befriend(Token),
    /// What a service offers, by its place among those asked; the first is the list of them.
    Service(u32),
    /// Resource binding.
    Bind,
    /// Session establishment.
    Session,
}

/// How an id tells what its token is about.
type OfToken = fn(Token) -> Id;

const VERBS: [(char, OfToken); 9] = [
    ('q', Id::Verb),
    ('p', Id::Ping),
    ('s', Id::Said),
    ('t', Id::Told),
    ('m', Id::Multicast),
    ('l', Id::There),
    ('o', Id::Configured),
    ('f', Id::Befriend),
    ('i', |place| Id::Service(place.0)),
];

/// Id of the resource binding.
const BIND: &str = "bind";
/// Id of the session establishment.
const SESSION: &str = "session";

impl Id {
    /// Reads an id; `None` unless it is of our making.
    pub(super) fn parse(text: &str) -> Option<Id> {
        match text {
            BIND => return Some(Id::Bind),
            SESSION => return Some(Id::Session),
            _ => {}
        }
        let mut chars = text.chars();
        let letter = chars.next()?;
        let rest = chars.as_str();
        if let Some(&(ask, ..)) = ASKS.iter().find(|row| row.1 == letter) {
            let (micros, serial) = rest.split_once('-')?;
            read_base32(serial)?;
            // Ticks are nanoseconds: a greater number was not written by us.
            let micros = read_base32(micros).filter(|&micros| micros <= u64::MAX / 1_000)?;
            return Some(Id::Asked(ask, Tick::from_micros(micros)));
        }
        let token = Token(u32::try_from(read_base32(rest)?).ok()?);
        VERBS.iter().find(|row| row.0 == letter).map(|row| row.1(token))
    }

    /// The id of a verb's request.
    pub(super) fn of(letter: char, token: Token) -> String {
        let mut id = String::from(letter);
        write_base32(&mut id, u64::from(token.0));
        id
    }
}

const BASE32: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

fn write_base32(out: &mut String, value: u64) {
    let digits = (64 - value.leading_zeros()).div_ceil(5).max(1);
    for place in (0..digits).rev() {
        out.push(char::from(BASE32[(value >> (5 * place) & 31) as usize]));
    }
}

fn read_base32(text: &str) -> Option<u64> {
    if text.is_empty() || text.len() > 13 {
        return None;
    }
    text.bytes().try_fold(0u64, |value, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'v' => byte - b'a' + 10,
            _ => return None,
        };
        Some(value.checked_mul(32)? | u64::from(digit))
    })
}

/// The namespace and the feature of XEP-0033.
pub(super) const NS_ADDRESS: &str = "http://jabber.org/protocol/address";
/// The namespace and the feature of XEP-0030's questions about an entity.
pub(super) const NS_INFO: &str = "http://jabber.org/protocol/disco#info";
const NS_ITEMS: &str = "http://jabber.org/protocol/disco#items";

/// A stanza under construction: text that is trusted, values that are escaped.
struct Pen(String);

impl Pen {
    fn new(start: &str) -> Pen {
        Pen(String::from(start))
    }

    /// ` name='value'`, or nothing for an empty value.
    fn attribute(mut self, name: &str, value: &str) -> Pen {
        if !value.is_empty() {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("='");
            escape(&mut self.0, value);
            self.0.push('\'');
        }
        self
    }

    fn raw(mut self, text: &str) -> Pen {
        self.0.push_str(text);
        self
    }

    fn text(mut self, text: &str) -> Pen {
        escape(&mut self.0, text);
        self
    }
}

fn iq(kind: &str, to: &str, id: &str) -> Pen {
    Pen::new("<iq xmlns='jabber:client'")
        .attribute("type", kind)
        .attribute("to", to)
        .attribute("id", id)
        .raw(">")
}

fn presence(to: &str) -> Pen {
    Pen::new("<presence xmlns='jabber:client'").attribute("to", to)
}

/// RFC 7395 section 3.3.
pub(super) fn open(domain: &str) -> String {
    Pen::new("<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' version='1.0'")
        .attribute("to", domain)
        .raw("/>")
        .0
}

/// RFC 7395 section 3.6.
pub(super) const CLOSE: &str = "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>";

/// RFC 6120 section 6.4.2; the initial response is base64.
pub(super) fn auth(mechanism: &str, initial: &str) -> String {
    let pen = Pen::new("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl'")
        .attribute("mechanism", mechanism);
    match initial {
        "" => pen.raw("/>").0,
        _ => pen.raw(">").raw(initial).raw("</auth>").0,
    }
}

/// RFC 6120 section 7.6.
pub(super) fn bind() -> String {
    iq("set", "", BIND).raw("<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>").0
}

/// RFC 3921 section 3, where a target insists on it.
pub(super) fn session() -> String {
    iq("set", "", SESSION).raw("<session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></iq>").0
}

/// XEP-0030 section 3.1; `node` may be empty.
pub(super) fn disco_info(to: &str, node: &str, id: &str) -> String {
    let query = iq("get", to, id).raw("<query").attribute("xmlns", NS_INFO);
    query.attribute("node", node).raw("/></iq>").0
}

/// XEP-0030 section 4.1.
pub(super) fn disco_items(to: &str, id: &str) -> String {
    iq("get", to, id).raw("<query").attribute("xmlns", NS_ITEMS).raw("/></iq>").0
}

/// RFC 6121 section 2.1.3.
pub(super) fn roster(id: &str) -> String {
    iq("get", "", id).raw("<query xmlns='jabber:iq:roster'/></iq>").0
}

/// XEP-0280 section 4.
pub(super) fn carbons(id: &str) -> String {
    iq("set", "", id).raw("<enable xmlns='urn:xmpp:carbons:2'/></iq>").0
}

/// XEP-0054 section 3.1; without `to` one's own.
pub(super) fn vcard(to: &str, id: &str) -> String {
    iq("get", to, id).raw("<vCard xmlns='vcard-temp'/></iq>").0
}

/// XEP-0313 section 4.1 with RSM (XEP-0059): the last page of at most `limit` messages.
pub(super) fn archive(room: &str, limit: u32, id: &str) -> String {
    iq("set", room, id)
        .raw("<query xmlns='urn:xmpp:mam:2'><x xmlns='jabber:x:data' type='submit'>")
        .raw("<field var='FORM_TYPE' type='hidden'><value>urn:xmpp:mam:2</value></field></x>")
        .raw("<set xmlns='http://jabber.org/protocol/rsm'><max>")
        .raw(&limit.to_string())
        .raw("</max><before/></set></query></iq>")
        .0
}

/// XEP-0199 section 4.2.
pub(super) fn ping(to: &str, id: &str) -> String {
    iq("get", to, id).raw("<ping xmlns='urn:xmpp:ping'/></iq>").0
}

/// The answer to a request of the target's.
pub(super) fn result(to: &str, id: &str) -> String {
    iq("result", to, id).raw("</iq>").0
}

/// The refusal of a request of the target's (RFC 6120 section 8.3.3.19).
pub(super) fn refusal(to: &str, id: &str) -> String {
    iq("error", to, id)
        .raw("<error type='cancel'><service-unavailable")
        .raw(" xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>")
        .0
}

/// XEP-0045 section 7.2; no `<history/>`, as the emulated client does it.
pub(super) fn join(occupant: &str, status: &str) -> String {
    let pen = presence(occupant).raw("><x xmlns='http://jabber.org/protocol/muc'/>");
    match status {
        "" => pen.raw("</presence>").0,
        _ => pen.raw("<status>").text(status).raw("</status></presence>").0,
    }
}

/// XEP-0045 section 7.6.
pub(super) fn rename(occupant: &str) -> String {
    presence(occupant).raw("/>").0
}

/// XEP-0045 section 7.14.
pub(super) fn leave(occupant: &str) -> String {
    presence(occupant).attribute("type", "unavailable").raw("/>").0
}

/// A change of presence (XEP-0045 section 7.7; without `to` RFC 6121 section 4.4).
pub(super) fn status(to: &str, status: &str) -> String {
    presence(to).raw("><status>").text(status).raw("</status></presence>").0
}

fn message(room: &str, id: &str) -> Pen {
    Pen::new("<message xmlns='jabber:client' type='groupchat'")
        .attribute("to", room)
        .attribute("id", id)
        .raw(">")
}

/// XEP-0045 section 7.4.
pub(super) fn say(room: &str, text: &str, id: &str) -> String {
    message(room, id).raw("<body>").text(text).raw("</body></message>").0
}

/// XEP-0085 section 5.5.
pub(super) fn typing(room: &str) -> String {
    let composing = "<composing xmlns='http://jabber.org/protocol/chatstates'/></message>";
    message(room, "").raw(composing).0
}

/// Initial presence (RFC 6121 section 4.2).
pub(super) const AVAILABLE: &str = "<presence xmlns='jabber:client'/>";
/// The end of it (RFC 6121 section 4.5).
pub(super) const UNAVAILABLE: &str = "<presence xmlns='jabber:client' type='unavailable'/>";
/// Present without being sent messages (RFC 6121 section 4.7.2.3).
pub(super) const DEAF: &str = "<presence xmlns='jabber:client'><priority>-1</priority></presence>";

/// A request for a subscription, or its answer (RFC 6121 section 3.1).
pub(super) fn subscription(to: &str, kind: &str) -> String {
    presence(to).attribute("type", kind).raw("/>").0
}

fn chat(to: &str, id: &str) -> Pen {
    Pen::new("<message xmlns='jabber:client' type='chat'")
        .attribute("to", to)
        .attribute("id", id)
        .raw(">")
}

/// RFC 6121 section 5.2.
pub(super) fn tell(to: &str, text: &str, id: &str) -> String {
    chat(to, id).raw("<body>").text(text).raw("</body></message>").0
}

/// XEP-0033 section 4: one message to the service, with an address of that kind for each.
pub(super) fn multicast<'a>(
    service: &str,
    (kind, addresses): (&str, impl Iterator<Item = Cow<'a, str>>),
    text: &str,
    id: &str,
) -> String {
    let mut pen = chat(service, id).raw("<addresses").attribute("xmlns", NS_ADDRESS).raw(">");
    for address in addresses {
        let start = pen.raw("<address").attribute("type", kind);
        pen = start.attribute("jid", &address).raw("/>");
    }
    pen.raw("</addresses><body>").text(text).raw("</body></message>").0
}

/// A form for the owner of a room (XEP-0045 section 10.1.3); without fields the room is as the
/// target has it (section 10.1.2). A name that comes several times is one field of several values.
pub(super) fn configuration(room: &str, fields: &[(String, String)], id: &str) -> String {
    let mut pen = iq("set", room, id)
        .raw("<query xmlns='http://jabber.org/protocol/muc#owner'>")
        .raw("<x xmlns='jabber:x:data' type='submit'>");
    if !fields.is_empty() {
        let kind = "http://jabber.org/protocol/muc#roomconfig";
        pen = pen.raw("<field var='FORM_TYPE'><value>").raw(kind).raw("</value></field>");
    }
    for (place, (name, _)) in fields.iter().enumerate() {
        if fields[..place].iter().any(|(other, _)| other == name) {
            continue;
        }
        pen = pen.raw("<field").attribute("var", name).raw(">");
        for (_, value) in fields.iter().filter(|(other, _)| other == name) {
            pen = pen.raw("<value>").text(value).raw("</value>");
        }
        pen = pen.raw("</field>");
    }
    pen.raw("</x></query></iq>").0
}

/// What we are and can do (XEP-0030 section 3.1).
pub(super) fn about_us(to: &str, id: &str) -> String {
    let mut pen = iq("result", to, id).raw("<query").attribute("xmlns", NS_INFO).raw(">");
    pen = pen.raw("<identity category='client' type='bot' name='throng'/>");
    for feature in [NS_INFO, "urn:xmpp:ping", NS_ADDRESS] {
        pen = pen.raw("<feature").attribute("var", feature).raw("/>");
    }
    pen.raw("</query></iq>").0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_what_was_asked_and_when() {
        for (place, &(ask, ..)) in ASKS.iter().enumerate() {
            assert_eq!(ask as usize, place);
            for micros in [0, 31, 32, 1 << 36, u64::MAX / 1_000] {
                let now = Tick::from_micros(micros);
                let id = ask.id(now, u32::MAX);
                assert_eq!(Id::parse(&id), Some(Id::Asked(ask, now)), "{id}");
            }
        }
        for token in [Token(0), Token(u32::MAX)] {
            for (letter, make) in VERBS {
                assert_eq!(Id::parse(&Id::of(letter, token)), Some(make(token)));
                assert!(ASKS.iter().all(|row| row.1 != letter), "{letter}");
            }
        }
        assert_eq!(Id::parse("bind"), Some(Id::Bind));
        assert_eq!(Id::parse("session"), Some(Id::Session));
    }

    #[test]
    fn ids_of_others_are_not_ours() {
        let rows = ["", "v", "v-", "v1", "v-1", "vX-1", "v1-", "q", "qw", "é1", "x1", "v1-1-1"];
        for id in rows {
            assert_eq!(Id::parse(id), None, "{id}");
        }
        assert_eq!(Id::parse("q4000000"), None, "above 32 bits");
        assert_eq!(Id::parse("vvvvvvvvvvvvvv-1"), None, "above 64 bits");
        assert_eq!(Id::parse("vfvvvvvvvvvvvv-1"), None, "above the last tick");
    }

    #[test]
    fn values_are_escaped() {
        assert_eq!(
            say("a'b", "<&>", "i"),
            "<message xmlns='jabber:client' type='groupchat' to='a&apos;b' id='i'>\
             <body>&lt;&amp;&gt;</body></message>"
        );
        assert_eq!(
            vcard("", "v0-1"),
            "<iq xmlns='jabber:client' type='get' id='v0-1'><vCard xmlns='vcard-temp'/></iq>"
        );
    }
}
