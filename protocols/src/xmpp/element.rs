//! What is read: whole elements and their children, and a cheap look at a frame's first bytes.

use super::xml::{Piece, Scanner, Tag, XmlError, unescape};
use crate::wire::printable;
use memchr::memmem::Finder;
use model::stamp::PREFIX;
use std::sync::LazyLock;

/// An element that has been scanned to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    /// Its start tag.
    pub(super) tag: Tag<'a>,
    /// All of it, tags included.
    pub(super) source: &'a str,
}

impl<'a> Element<'a> {
    /// Takes the next top-level element; `None` at the end of the text.
    pub(super) fn next_root(scanner: &mut Scanner<'a>, text: &'a str) -> Root<'a> {
        loop {
            let start = scanner.position();
            match scanner.next_piece()? {
                None => return Ok(None),
                Some(Piece::Open(tag)) => {
                    scanner.skip()?;
                    let source = &text[start..scanner.position()];
                    return Ok(Some(Element { tag, source }));
                }
                Some(_) => {}
            }
        }
    }

    /// Its children that are elements.
    pub(super) fn children(&self) -> impl Iterator<Item = Element<'a>> + use<'a> {
        let source = self.source;
        let mut scanner = Scanner::new(source);
        // Scanned before, so there are no errors; if there were, the children would end there.
        let _ = scanner.next_piece();
        std::iter::from_fn(move || {
            loop {
                let start = scanner.position();
                match scanner.next_piece() {
                    Ok(Some(Piece::Open(tag))) => {
                        scanner.skip().ok()?;
                        return Some(Element { tag, source: &source[start..scanner.position()] });
                    }
                    Ok(Some(Piece::Text(_) | Piece::Cdata(_))) => {}
                    _ => return None,
                }
            }
        })
    }

    /// The first child of that local name.
    pub(super) fn child(&self, name: &str) -> Option<Element<'a>> {
        self.children().find(|child| child.tag.local() == name)
    }

    /// The text directly inside, references resolved.
    pub(super) fn text(&self) -> String {
        let mut scanner = Scanner::new(self.source);
        let mut text = String::new();
        while let Ok(Some(piece)) = scanner.next_piece() {
            match piece {
                Piece::Text(part) if scanner.depth() == 1 => text.push_str(&unescape(part)),
                Piece::Cdata(part) if scanner.depth() == 1 => text.push_str(part),
                _ => {}
            }
        }
        text
    }

    /// The condition inside an error (stream, SASL or stanza), with its text: `conflict: taken`.
    pub(super) fn condition(&self) -> String {
        let mut condition = String::from("undefined-condition");
        let mut text = String::new();
        for (place, child) in self.children().enumerate() {
            match child.tag.local() {
                "text" => text = child.text(),
                name if place == 0 => condition = printable(name),
                _ => {}
            }
        }
        if !text.is_empty() {
            condition.push_str(": ");
            condition.push_str(&printable(&text));
        }
        condition
    }

    /// The condition of the `<error/>` in a stanza.
    pub(super) fn stanza_error(&self) -> String {
        self.child("error").map_or_else(|| "no condition".into(), |error| error.condition())
    }
}

/// What looking for a top-level element brings.
pub(super) type Root<'a> = Result<Option<Element<'a>>, XmlError>;

/// What a frame is that its bytes tell to carry words said now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Live<'a> {
    /// One groupchat message: no replay, no archive page, no copy.
    Room,
    /// One message for this person alone; raw value of `from`, empty without one.
    Chat(&'a [u8]),
    /// One stamped presence of somebody available; raw value of `from`.
    Presence(&'a [u8]),
}

/// Tells what is live by looking for bytes instead of parsing.
///
/// Text of people cannot deceive it: a `<` in text is written `&lt;`. Whatever looks unusual is
/// left to the parser, which knows better: a word about a delay, CDATA, a second stanza inside (an
/// archive's page, a carbon copy) or behind it.
#[inline]
pub(super) fn live(frame: &[u8]) -> Option<Live<'_>> {
    static FROM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b" from="));
    static TYPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b" type="));
    static MESSAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<message"));
    static PRESENCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<presence"));
    static STAMP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PREFIX));
    let (rest, again, is_message) = match frame.strip_prefix(b"<message") {
        Some(rest) if rest.ends_with(b"</message>") => (rest, &MESSAGE, true),
        Some(_) => return None,
        None => (frame.strip_prefix(b"<presence")?, &PRESENCE, false),
    };
    if !is_message && (!rest.ends_with(b"</presence>") || STAMP.find(rest).is_none()) {
        return None;
    }
    let (head, body) = rest.split_at(memchr::memchr(b'>', rest)?);
    let kind = value(head, &TYPE);
    let from = value(head, &FROM).unwrap_or_default();
    let found = match (is_message, kind) {
        (true, Some(b"groupchat")) => Live::Room,
        (true, Some(b"chat")) => Live::Chat(from),
        (false, None) if !from.is_empty() => Live::Presence(from),
        _ => return None,
    };
    let is_plain = again.find(body).is_none() && !may_be_late(body) && !has_cdata(body);
    is_plain.then_some(found)
}

/// The value behind ` name=`, quoted either way.
fn value<'a>(head: &'a [u8], name: &Finder<'static>) -> Option<&'a [u8]> {
    let rest = &head[name.find(head)? + name.needle().len()..];
    let quote = *rest.first().filter(|&&byte| byte == b'\'' || byte == b'"')?;
    let end = memchr::memchr(quote, &rest[1..])?;
    Some(&rest[1..=end])
}

/// Whether the word `delay` is in it: an element of XEP-0203, or of XEP-0091, or only text.
fn may_be_late(bytes: &[u8]) -> bool {
    static DELAY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"delay"));
    DELAY.find(bytes).is_some()
}

fn has_cdata(bytes: &[u8]) -> bool {
    static CDATA: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<!"));
    CDATA.find(bytes).is_some()
}

/// Whether a stanza says that it was said at another time (XEP-0203, XEP-0091).
pub(super) fn is_late(stanza: Element<'_>) -> bool {
    let is_delay = |child: Element<'_>| {
        child.tag.local() == "delay" || child.tag.attribute("xmlns") == Some("jabber:x:delay")
    };
    may_be_late(stanza.source.as_bytes()) && stanza.children().any(is_delay)
}

/// Whether a message is a page of an archive or a copy of another one: its own, one for another
/// device (XEP-0280, XEP-0297, XEP-0313).
pub(super) fn is_copy(message: Element<'_>) -> bool {
    let names = ["result", "forwarded", "sent", "received"];
    message.children().any(|child| names.contains(&child.tag.local()))
}

/// Whether somebody's stamp may be in it.
pub(super) fn has_stamp(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), PREFIX).is_some()
}

/// Whose presence it is and whether it tells of an absence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight<'a> {
    /// Raw value of `from`.
    pub(super) from: &'a str,
    /// Raw value of `type`; empty if there is none.
    pub(super) kind: &'a str,
    /// All of the presence.
    pub(super) source: &'a str,
}

impl<'a> Sight<'a> {
    /// Reads a start tag, in one pass.
    pub(super) fn of(tag: &Tag<'a>, source: &'a str) -> Sight<'a> {
        let mut sight = Sight { source, ..Sight::default() };
        for (name, value) in tag.attributes() {
            match name {
                "from" => sight.from = value,
                "type" => sight.kind = value,
                _ => {}
            }
        }
        sight
    }

    /// Whether it tells of the past, as answers to a probe do (RFC 6121 section 4.3.2).
    pub(super) fn is_late(&self) -> bool {
        // What cannot be read is not counted.
        may_be_late(self.source.as_bytes()) && self.element().is_none_or(is_late)
    }

    /// The presence itself, read in full.
    pub(super) fn element(&self) -> Option<Element<'a>> {
        Element::next_root(&mut Scanner::new(self.source), self.source).ok()?
    }
}

/// Whose presence a frame is, if it is one presence that tells nothing about ourselves (status 110)
/// and of no new nickname (303).
#[inline]
pub(super) fn plain_presence(text: &str) -> Option<Sight<'_>> {
    static SELF: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"110"));
    static RENAMED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"303"));
    static PRESENCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<presence"));
    let rest = text.as_bytes().strip_prefix(b"<presence")?;
    // Either it has an end tag, or it is one empty element.
    let is_empty = memchr::memchr(b'>', rest).is_some_and(|end| end + 1 == rest.len());
    if !is_empty && !rest.ends_with(b"</presence>") {
        return None;
    }
    let is_odd = SELF.find(rest).is_some() || RENAMED.find(rest).is_some();
    if is_odd || PRESENCE.find(rest).is_some() {
        return None;
    }
    match Scanner::new(text).next_piece() {
        Ok(Some(Piece::Open(tag))) if tag.name == "presence" => {
            Some(Sight::of(&tag, text)).filter(|sight| sight.kind != "error")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_live_is_told_by_its_bytes() {
        let stamped = format!("<status>{}</status>", str::from_utf8(PREFIX).unwrap());
        let presence =
            |head: &str, more: &str| format!("<presence{head}>{stamped}{more}</presence>");
        let chat = |from| Some(Live::Chat(from));
        let rows: [(&str, Option<Live<'_>>); 25] = [
            ("<message type='groupchat' from='a'><body>x</body></message>", Some(Live::Room)),
            ("<message from=\"a\" type=\"groupchat\"><body>x</body></message>", Some(Live::Room)),
            ("<message type='groupchat'><body>&lt;x</body></message>", Some(Live::Room)),
            ("<message type='groupchat'><body>delay</body></message>", None),
            ("<message type='groupchat'><body>x</body><delay xmlns='u'/></message>", None),
            ("<message type='chat'><d:delay xmlns:d='urn:xmpp:delay'/></message>", None),
            ("<message type='chat'><x xmlns='jabber:x:delay'/></message>", None),
            ("<message><result><forwarded><message type='groupchat'></message>", None),
            ("<message type='chat'><sent><message type='chat'></message></sent></message>", None),
            ("<message type='groupchat'></message><message type='groupchat'></message>", None),
            ("<message type='error'><body>x</body></message>", None),
            ("<message type='headline'><body>x</body></message>", None),
            ("<message><body>x</body></message>", None),
            ("<message type='chat'><body>x</body></message>", chat(b"")),
            ("<message from='a@b/c' type='chat'><body>x</body></message>", chat(b"a@b/c")),
            ("<message type='groupchat'><body><![CDATA[x]]></body></message>", None),
            ("<message type='groupchat'/>", None),
            ("<message type='groupchat'><body>x</body></message> ", None),
            ("<messages type='groupchat'></messages>", None),
            ("<presence type='groupchat'></message>", None),
            ("<presence from='a'><status>x</status></presence>", None),
            (&presence(" from='a@b/c'", ""), Some(Live::Presence(b"a@b/c"))),
            (&presence(" from='a@b/c' type='unavailable'", ""), None),
            (&presence(" from='a'", "<delay xmlns='urn:xmpp:delay'/>"), None),
            ("", None),
        ];
        for (frame, expect) in rows {
            assert_eq!(live(frame.as_bytes()), expect, "{frame}");
        }
        assert_eq!(live(presence("", "").as_bytes()), None);
        assert_eq!(live(presence(" from='a'", "<presence/>").as_bytes()), None);
    }

    #[test]
    fn delays_are_told_from_words_about_them() {
        let rows = [
            ("<presence><delay xmlns='urn:xmpp:delay'/></presence>", true),
            ("<presence><x xmlns='jabber:x:delay'/></presence>", true),
            ("<presence><status>delay</status></presence>", false),
            ("<presence/>", false),
            ("<presence><delay", true),
        ];
        for (source, expect) in rows {
            assert_eq!(Sight { source, ..Sight::default() }.is_late(), expect, "{source}");
        }
    }

    #[test]
    fn plain_presences_are_told_by_their_bytes() {
        let rows = [
            ("<presence from='r/a'><x><item/></x></presence>", true),
            ("<presence from='r/a' type='unavailable'/>", true),
            ("<presence from='r/a'><status code='110'/></presence>", false),
            ("<presence from='r/a'><x><status code='303'/></x></presence>", false),
            ("<presence from='r/a' type='error'><error/></presence>", false),
            ("<presence from='r/a'/><presence from='r/b'/>", false),
            ("<presence from='r/a'/><iq/>", false),
            ("<presence from='r/a'><x/><iq/>", false),
            ("<presences from='r/a'/>", false),
            ("<presence", false),
            ("<iq/>", false),
        ];
        for (frame, expect) in rows {
            assert_eq!(plain_presence(frame).is_some(), expect, "{frame}");
        }
    }

    #[test]
    fn elements_are_taken_apart() {
        let text = "<e><conflict/><text>&lt;a</text></e> <f/>";
        let mut scanner = Scanner::new(text);
        let first = Element::next_root(&mut scanner, text).unwrap().unwrap();
        assert_eq!(first.condition(), "conflict: <a");
        assert_eq!(first.child("text").unwrap().source, "<text>&lt;a</text>");
        assert_eq!(first.children().count(), 2);
        let second = Element::next_root(&mut scanner, text).unwrap().unwrap();
        assert_eq!((second.tag.name, second.source), ("f", "<f/>"));
        assert!(Element::next_root(&mut scanner, text).unwrap().is_none());
    }
}
