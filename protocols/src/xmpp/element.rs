//! What is read: whole elements and their children, and a cheap look at a frame's first bytes.

use super::xml::{Piece, Scanner, Tag, XmlError, unescape};
use crate::wire::printable;
use memchr::memmem::Finder;
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

/// Whether a frame is one groupchat message said now: no replay, no archive page, no copy.
///
/// Looks for bytes instead of parsing. Text of people cannot deceive it: a `<` in text is written
/// `&lt;`. Whatever looks unusual is left to the parser, which knows better.
#[inline]
pub(super) fn is_live_message(frame: &[u8]) -> bool {
    static DELAY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<delay"));
    static TYPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b" type="));
    static MESSAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<message"));
    static CDATA: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<!"));
    let Some(rest) = frame.strip_prefix(b"<message") else { return false };
    if !rest.ends_with(b"</message>") {
        return false;
    }
    let Some(end) = memchr::memchr(b'>', rest) else { return false };
    let (head, body) = rest.split_at(end);
    let Some(at) = TYPE.find(head) else { return false };
    let kind = &head[at + b" type=".len()..];
    if !kind.starts_with(b"'groupchat'") && !kind.starts_with(b"\"groupchat\"") {
        return false;
    }
    // A second message inside is a forwarded one, one behind it would be a second stanza.
    DELAY.find(body).is_none() && MESSAGE.find(body).is_none() && CDATA.find(body).is_none()
}

/// Whose presence it is and whether it tells of an absence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sight<'a> {
    /// Raw value of `from`.
    pub(super) from: &'a str,
    /// Raw value of `type`; empty if there is none.
    pub(super) kind: &'a str,
}

impl<'a> Sight<'a> {
    /// Reads a start tag, in one pass.
    pub(super) fn of(tag: &Tag<'a>) -> Sight<'a> {
        let mut sight = Sight::default();
        for (name, value) in tag.attributes() {
            match name {
                "from" => sight.from = value,
                "type" => sight.kind = value,
                _ => {}
            }
        }
        sight
    }
}

/// Whose presence a frame is, if it is one presence that tells nothing about ourselves.
#[inline]
pub(super) fn plain_presence(text: &str) -> Option<Sight<'_>> {
    static SELF: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"110"));
    static PRESENCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<presence"));
    let rest = text.as_bytes().strip_prefix(b"<presence")?;
    // Either it has an end tag, or it is one empty element.
    let is_empty = memchr::memchr(b'>', rest).is_some_and(|end| end + 1 == rest.len());
    if !is_empty && !rest.ends_with(b"</presence>") {
        return None;
    }
    if SELF.find(rest).is_some() || PRESENCE.find(rest).is_some() {
        return None;
    }
    match Scanner::new(text).next_piece() {
        Ok(Some(Piece::Open(tag))) if tag.name == "presence" => {
            Some(Sight::of(&tag)).filter(|sight| sight.kind != "error")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_messages_are_told_by_their_bytes() {
        let rows = [
            ("<message type='groupchat' from='a'><body>x</body></message>", true),
            ("<message from=\"a\" type=\"groupchat\"><body>x</body></message>", true),
            ("<message type='groupchat'><body>&lt;delay</body></message>", true),
            ("<message type='groupchat'><body>x</body><delay xmlns='u'/></message>", false),
            ("<message><result><forwarded><message type='groupchat'></message>", false),
            ("<message type='groupchat'></message><message type='groupchat'></message>", false),
            ("<message type='error'><body>x</body></message>", false),
            ("<message type='chat'><body>x</body></message>", false),
            ("<message type='groupchat'><body><![CDATA[x]]></body></message>", false),
            ("<message type='groupchat'/>", false),
            ("<message type='groupchat'><body>x</body></message> ", false),
            ("<messages type='groupchat'></messages>", false),
            ("<presence type='groupchat'></message>", false),
            ("", false),
        ];
        for (frame, expect) in rows {
            assert_eq!(is_live_message(frame.as_bytes()), expect, "{frame}");
        }
    }

    #[test]
    fn plain_presences_are_told_by_their_bytes() {
        let rows = [
            ("<presence from='r/a'><x><item/></x></presence>", true),
            ("<presence from='r/a' type='unavailable'/>", true),
            ("<presence from='r/a'><status code='110'/></presence>", false),
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
