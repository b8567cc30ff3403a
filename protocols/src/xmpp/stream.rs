//! Streams over TCP (RFC 6120 section 4): where a stanza ends, found without parsing it.
//!
//! The target's bytes come in pieces of any size. What has been looked at is not looked at again:
//! 12 bytes of state say how far the unfinished stanza has been scanned. Only brackets and quotes
//! matter here, so that a stanza costs a few searches; whether what is between them is good XML is
//! the parser's affair. Comments, declarations and processing instructions are refused at once
//! (RFC 6120 section 11.1), and so are elements nested too deeply and stanzas that get too long.

use super::xml::DEPTH_MAX;
use memchr::{memchr, memchr3, memmem};
use model::FaultClass;

const CDATA: &[u8] = b"<![CDATA[";
const DECLARATION: &[u8] = b"<?xml";
/// Longest XML declaration ahead of a stream header, bytes.
const DECLARATION_BYTES_MAX: usize = 128;

/// What the next bytes of a stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut<'a> {
    /// Not enough yet.
    More,
    /// The start tag that opens the stream.
    Header(&'a [u8]),
    /// One whole element.
    Stanza(&'a [u8]),
    /// The end tag that closes the stream.
    End,
    /// The stream cannot go on: why.
    Broken(FaultClass, &'static str),
}

/// Cuts a stream into stanzas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Splitter {
    /// Bytes of the unfinished stanza that have been scanned.
    at: u32,
    /// Elements open in it.
    depth: u16,
    place: Place,
    /// The stream header has come.
    is_open: bool,
}

/// What the byte at `at` belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Text between tags.
    #[default]
    Text,
    /// A `<`, whatever follows it.
    Bracket,
    StartTag,
    /// The value of an attribute, in this kind of quotes.
    Value(u8),
    EndTag,
    Cdata,
}

/// Whether the scan goes on.
enum Turn {
    On,
    Wait,
    /// An element has ended at depth zero, or a stream header has.
    Whole,
    StreamEnd,
    Bad(&'static str),
}

impl Splitter {
    /// Takes the next piece off the front of what has not been taken yet; also says how many bytes
    /// that were. To be called until it wants more or is broken.
    #[inline]
    pub(super) fn next<'a>(&mut self, bytes: &'a [u8], bytes_max: usize) -> (usize, Cut<'a>) {
        if self.at > 0 {
            return self.scan(bytes, 0, bytes_max);
        }
        // Between stanzas there may be white space: signs of life (RFC 6120 section 4.6.1).
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let start = bytes.iter().position(|byte| !is_space(byte)).unwrap_or(bytes.len());
        match bytes.get(start) {
            None => (start, Cut::More),
            Some(b'<') if self.is_open => {
                let (used, cut) = self.scan(&bytes[start..], start, bytes_max);
                (used, cut)
            }
            Some(b'<') => self.header(bytes, start, bytes_max),
            Some(_) if self.is_open => {
                broken(bytes, FaultClass::Protocol, "text between two stanzas")
            }
            Some(_) => broken(bytes, FaultClass::Upgrade, "what answers is no XMPP stream"),
        }
    }

    /// What comes ahead of the first stanza: perhaps a declaration, then the header.
    #[cold]
    fn header<'a>(&mut self, bytes: &'a [u8], start: usize, max: usize) -> (usize, Cut<'a>) {
        let rest = &bytes[start..];
        let known = rest.len().min(DECLARATION.len());
        if rest[..known] != DECLARATION[..known] {
            return self.scan(rest, start, max);
        }
        let window = &rest[..rest.len().min(DECLARATION_BYTES_MAX)];
        match memmem::find(window, b"?>") {
            Some(end) => {
                let behind = start + end + 2;
                let (used, cut) = self.next(&bytes[behind..], max);
                (behind + used, cut)
            }
            None if window.len() < DECLARATION_BYTES_MAX => (start, Cut::More),
            None => broken(bytes, FaultClass::Upgrade, "an XML declaration without end"),
        }
    }

    /// Goes on with the scan of what begins at the first byte of `bytes`; `skipped` bytes before it
    /// have been passed over.
    #[inline]
    fn scan<'a>(&mut self, bytes: &'a [u8], skipped: usize, max: usize) -> (usize, Cut<'a>) {
        let mut state = *self;
        let turn = loop {
            match state.step(bytes) {
                Turn::On => {}
                turn => break turn,
            }
        };
        let length = state.at as usize;
        match turn {
            Turn::Whole if length > max => too_large(bytes, skipped),
            Turn::Wait if bytes.len() > max => too_large(bytes, skipped),
            Turn::Whole if !self.is_open => {
                *self = Splitter { is_open: true, ..Splitter::default() };
                (skipped + length, Cut::Header(&bytes[..length]))
            }
            Turn::Whole => {
                *self = Splitter { is_open: true, ..Splitter::default() };
                (skipped + length, Cut::Stanza(&bytes[..length]))
            }
            Turn::StreamEnd => {
                *self = Splitter { is_open: true, ..Splitter::default() };
                (skipped + length, Cut::End)
            }
            Turn::Bad(what) => {
                let class = match self.is_open {
                    true => FaultClass::Protocol,
                    false => FaultClass::Upgrade,
                };
                (skipped + bytes.len(), Cut::Broken(class, what))
            }
            Turn::Wait | Turn::On => {
                *self = state;
                (skipped, Cut::More)
            }
        }
    }

    /// Scans to the next byte that matters.
    #[inline]
    fn step(&mut self, bytes: &[u8]) -> Turn {
        let at = self.at as usize;
        let rest = &bytes[at..];
        match self.place {
            Place::Text => match memchr(b'<', rest) {
                Some(found) => self.go(at + found, Place::Bracket),
                None => self.wait(bytes.len()),
            },
            Place::Bracket => self.bracket(at, rest),
            Place::StartTag => match memchr3(b'>', b'\'', b'"', rest) {
                Some(found) if rest[found] == b'>' => self.start(bytes, at + found),
                Some(found) => self.go(at + found + 1, Place::Value(rest[found])),
                None => self.wait(bytes.len()),
            },
            Place::Value(quote) => match memchr(quote, rest) {
                Some(found) => self.go(at + found + 1, Place::StartTag),
                None => self.wait(bytes.len()),
            },
            Place::EndTag => match memchr(b'>', rest) {
                Some(found) => self.end(at + found + 1),
                None => self.wait(bytes.len()),
            },
            Place::Cdata => match memmem::find(rest, b"]]>") {
                Some(found) => self.go(at + found + 3, Place::Text),
                // The end may have come in part.
                None => self.wait(at.max(bytes.len().saturating_sub(2))),
            },
        }
    }

    #[inline]
    fn go(&mut self, at: usize, place: Place) -> Turn {
        self.at = at as u32;
        self.place = place;
        Turn::On
    }

    fn wait(&mut self, at: usize) -> Turn {
        self.at = at as u32;
        Turn::Wait
    }

    /// A `<`: what it begins.
    #[inline]
    fn bracket(&mut self, at: usize, rest: &[u8]) -> Turn {
        match rest.get(1) {
            None => self.wait(at),
            Some(b'/') => self.go(at + 2, Place::EndTag),
            Some(b'!') => {
                let known = rest.len().min(CDATA.len());
                if self.depth == 0 || rest[..known] != CDATA[..known] {
                    return Turn::Bad("a declaration or comment is not allowed");
                }
                match known == CDATA.len() {
                    true => self.go(at + known, Place::Cdata),
                    false => self.wait(at),
                }
            }
            Some(b'?') => Turn::Bad("a processing instruction is not allowed"),
            Some(_) => self.go(at + 1, Place::StartTag),
        }
    }

    /// The `>` at `end` ends a start tag.
    #[inline]
    fn start(&mut self, bytes: &[u8], end: usize) -> Turn {
        let is_empty = bytes[end - 1] == b'/';
        self.at = end as u32 + 1;
        self.place = Place::Text;
        match (self.is_open, is_empty) {
            (false, true) => return Turn::Bad("the stream is closed where it is opened"),
            (false, false) => return Turn::Whole,
            (true, true) if self.depth == 0 => return Turn::Whole,
            (true, true) => {}
            (true, false) if usize::from(self.depth) == DEPTH_MAX => {
                return Turn::Bad("elements nested too deeply");
            }
            (true, false) => self.depth += 1,
        }
        Turn::On
    }

    /// An end tag has ended before `at`.
    #[inline]
    fn end(&mut self, at: usize) -> Turn {
        self.at = at as u32;
        self.place = Place::Text;
        match self.depth {
            0 if self.is_open => return Turn::StreamEnd,
            0 => return Turn::Bad("the stream is closed before it is opened"),
            1 => return Turn::Whole,
            _ => self.depth -= 1,
        }
        Turn::On
    }
}

#[cold]
fn broken<'a>(bytes: &[u8], class: FaultClass, what: &'static str) -> (usize, Cut<'a>) {
    (bytes.len(), Cut::Broken(class, what))
}

#[cold]
fn too_large<'a>(bytes: &[u8], skipped: usize) -> (usize, Cut<'a>) {
    (skipped + bytes.len(), Cut::Broken(FaultClass::TooLarge, "a stanza above the limit"))
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
