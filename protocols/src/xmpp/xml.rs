//! A strict, bounded pull scanner for the XML that XMPP allows (RFC 6120 section 11.1).
//!
//! No DTD, no entities beyond the five predefined ones and character references, no comments, no
//! processing instructions: a bomb of entities cannot be written down. Depth and attributes are
//! limited; nothing is allocated. Names are kept as written: the caller asks for local names.

use std::borrow::Cow;
use std::fmt;

/// Deepest nesting of elements accepted.
pub const DEPTH_MAX: usize = 64;
/// Most attributes accepted on one element.
pub const ATTRIBUTES_MAX: usize = 64;
/// Longest reference accepted between `&` and `;`, bytes (`&#x10FFFF;` needs eight).
const REFERENCE_BYTES_MAX: usize = 10;

/// What is wrong with a document, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlError {
    /// What is wrong.
    pub what: &'static str,
    /// Where, bytes from the start.
    pub at: usize,
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad XML at byte {}: {}", self.at, self.what)
    }
}

impl std::error::Error for XmlError {}

/// One piece of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A start tag. An empty element (`<a/>`) is followed by its `Close` like any other.
    Open(Tag<'a>),
    /// An end tag.
    Close(&'a str),
    /// Text, references not yet resolved (see [`unescape`]).
    Text(&'a str),
    /// Text of a CDATA section, to be taken as it is.
    Cdata(&'a str),
}

/// A start tag, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// The name as written, prefix included.
    pub name: &'a str,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// The name without its prefix.
    pub fn local(&self) -> &'a str {
        local(self.name)
    }

    /// The raw value of an attribute; the name is compared as written.
    pub fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes().find(|&(found, _)| found == name).map(|(_, value)| value)
    }

    /// The value of an attribute, references resolved.
    pub fn value(&self, name: &str) -> Option<Cow<'a, str>> {
        self.attribute(name).map(unescape)
    }

    /// All attributes: name and raw value.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        let mut rest = self.attributes;
        std::iter::from_fn(move || {
            let (name, value, behind) = split_attribute(rest)?;
            rest = behind;
            Some((name, value))
        })
    }
}

/// A name without its prefix.
pub fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Walks a document, or several one after the other, piece by piece.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    open: [&'a str; DEPTH_MAX],
    /// The last tag was an empty element: its end comes next.
    closing: bool,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of `text`.
    pub fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0, depth: 0, open: [""; DEPTH_MAX], closing: false }
    }

    /// Bytes scanned so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Elements open: 0 between documents.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The next piece; `None` at a clean end, between two documents.
    pub fn next_piece(&mut self) -> Result<Option<Piece<'a>>, XmlError> {
        if self.closing {
            self.closing = false;
            self.depth -= 1;
            return Ok(Some(Piece::Close(self.open[self.depth])));
        }
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return if self.depth == 0 { Ok(None) } else { self.fail("it ends too early") };
        }
        let Some(behind) = rest.strip_prefix('<') else { return self.text(rest).map(Some) };
        match behind.as_bytes().first() {
            Some(b'/') => self.close(&behind[1..]).map(Some),
            Some(b'!') => self.cdata(&behind[1..]).map(Some),
            Some(b'?') => self.fail("a processing instruction is not allowed"),
            _ => self.open(behind).map(Some),
        }
    }

    /// Passes everything up to the end of the innermost open element.
    pub fn skip(&mut self) -> Result<(), XmlError> {
        let depth = self.depth;
        while self.depth >= depth && depth > 0 {
            if self.next_piece()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn text(&mut self, rest: &'a str) -> Result<Piece<'a>, XmlError> {
        let end = memchr::memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
        let text = &rest[..end];
        if let Err((what, at)) = check_text(text) {
            self.at += at;
            return self.fail(what);
        }
        if self.depth == 0 && !text.bytes().all(is_space) {
            return self.fail("text outside of an element");
        }
        self.at += end;
        Ok(Piece::Text(text))
    }

    fn cdata(&mut self, behind: &'a str) -> Result<Piece<'a>, XmlError> {
        const START: &str = "[CDATA[";
        if self.depth == 0 || !behind.starts_with(START) {
            return self.fail("a declaration or comment is not allowed");
        }
        let body = &behind[START.len()..];
        let Some(end) = memchr::memmem::find(body.as_bytes(), b"]]>") else {
            return self.fail("a CDATA section without end");
        };
        if !is_plain(&body[..end]) {
            return self.fail("a control character");
        }
        self.at += 2 + START.len() + end + 3;
        Ok(Piece::Cdata(&body[..end]))
    }

    fn close(&mut self, behind: &'a str) -> Result<Piece<'a>, XmlError> {
        let Some(end) = memchr::memchr(b'>', behind.as_bytes()) else {
            return self.fail("a tag without end");
        };
        let name = behind[..end].trim_end_matches([' ', '\t', '\r', '\n']);
        if self.depth == 0 || self.open[self.depth - 1] != name {
            return self.fail("an end tag that does not match");
        }
        self.depth -= 1;
        self.at += 2 + end + 1;
        Ok(Piece::Close(name))
    }

    fn open(&mut self, behind: &'a str) -> Result<Piece<'a>, XmlError> {
        if self.depth == DEPTH_MAX {
            return self.fail("elements nested too deeply");
        }
        let end = behind.bytes().position(|byte| !is_name(byte)).unwrap_or(behind.len());
        let (name, rest) = behind.split_at(end);
        if !is_good_name(name) {
            return self.fail("a bad element name");
        }
        let (attributes, length) = match scan_attributes(rest) {
            Ok(found) => found,
            Err(what) => return self.fail(what),
        };
        self.closing = rest.as_bytes()[length] == b'/';
        self.open[self.depth] = name;
        self.depth += 1;
        self.at += 1 + end + length + if self.closing { 2 } else { 1 };
        Ok(Piece::Open(Tag { name, attributes }))
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, XmlError> {
        Err(XmlError { what, at: self.at })
    }
}

/// Checks the attributes at the start of `rest`; they end before `>` or `/>`, at `length`.
fn scan_attributes(rest: &str) -> Result<(&str, usize), &'static str> {
    let mut names = [""; ATTRIBUTES_MAX];
    let mut count = 0;
    let mut tail = rest;
    loop {
        let trimmed = skip_space(tail);
        let length = rest.len() - trimmed.len();
        if trimmed.starts_with('>') || trimmed.starts_with("/>") {
            return Ok((&rest[..length], length));
        }
        if trimmed.is_empty() {
            return Err("a tag without end");
        }
        if trimmed.len() == tail.len() {
            return Err("no space before an attribute");
        }
        let (name, value, behind) = split_attribute(trimmed).ok_or("a bad attribute")?;
        check_value(value)?;
        if !is_good_name(name) || names[..count].contains(&name) {
            return Err("a bad or repeated attribute");
        }
        if count == ATTRIBUTES_MAX {
            return Err("too many attributes");
        }
        names[count] = name;
        count += 1;
        tail = behind;
    }
}

/// Takes ` name = "value"` off the front: name, raw value, and what is behind it.
fn split_attribute(text: &str) -> Option<(&str, &str, &str)> {
    let text = skip_space(text);
    let end = text.bytes().position(|byte| !is_name(byte))?;
    let (name, rest) = text.split_at(end);
    let rest = skip_space(rest).strip_prefix('=')?;
    let rest = skip_space(rest);
    let quote = *rest.as_bytes().first().filter(|&&byte| byte == b'"' || byte == b'\'')?;
    let close = memchr::memchr(quote, &rest.as_bytes()[1..])?;
    Some((name, &rest[1..=close], &rest[close + 2..]))
}

fn check_value(value: &str) -> Result<(), &'static str> {
    if memchr::memchr(b'<', value.as_bytes()).is_some() {
        return Err("`<` in an attribute");
    }
    check_text(value).map_err(|(what, _)| what)
}

/// Checks characters and references; the error says what is wrong and where.
fn check_text(text: &str) -> Result<(), (&'static str, usize)> {
    if !is_plain(text) {
        let at = text.bytes().position(|byte| !is_char(byte)).unwrap_or(0);
        return Err(("a control character", at));
    }
    for at in memchr::memchr_iter(b'&', text.as_bytes()) {
        if resolve(&text[at..]).is_none() {
            return Err(("an unknown entity or bad character reference", at));
        }
    }
    Ok(())
}

/// The character that the reference at the start of `text` stands for, and the reference's length.
fn resolve(text: &str) -> Option<(char, usize)> {
    let window = &text.as_bytes()[1..text.len().min(1 + REFERENCE_BYTES_MAX)];
    let end = 1 + memchr::memchr(b';', window)?;
    let name = text.get(1..end)?;
    let found = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let digits = name.strip_prefix('#')?;
            let (digits, radix) = match digits.strip_prefix('x') {
                Some(hex) => (hex, 16),
                None => (digits, 10),
            };
            if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            let found = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
            let legal = found >= ' ' || matches!(found, '\t' | '\n' | '\r');
            Some(found).filter(|_| legal && !matches!(found, '\u{FFFE}' | '\u{FFFF}'))?
        }
    };
    Some((found, end + 1))
}

/// Resolves the references of scanned text. What is no reference stays as it is.
pub fn unescape(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(at) = next {
        out.push_str(&rest[..at]);
        let (found, length) = resolve(&rest[at..]).unwrap_or(('&', 1));
        out.push(found);
        rest = &rest[at + length..];
        next = memchr::memchr(b'&', rest.as_bytes());
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Appends text so that it is itself inside an element or a quoted attribute. Characters that XML
/// cannot carry are left out.
pub fn escape(out: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | '\r' => out.push(char),
            '\0'..'\x20' | '\u{FFFE}' | '\u{FFFF}' => {}
            _ => out.push(char),
        }
    }
}

/// Whether all bytes are characters of XML; in blocks without early exit, which vectorizes.
fn is_plain(text: &str) -> bool {
    let is_plain = |block: &[u8]| block.iter().fold(true, |all, &byte| all & is_char(byte));
    text.as_bytes().chunks(64).all(is_plain)
}

fn skip_space(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_space(byte)).unwrap_or(text.len());
    &text[end..]
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_char(byte: u8) -> bool {
    byte >= b' ' || is_space(byte)
}

/// Bytes a name may hold; beyond ASCII everything is let through.
fn is_name(byte: u8) -> bool {
    NAME[usize::from(byte)]
}

static NAME: [bool; 256] = {
    let mut name = [false; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        name[at] = byte.is_ascii_alphanumeric()
            || byte >= 0x80
            || matches!(byte, b':' | b'_' | b'-' | b'.');
        at += 1;
    }
    name
};

fn is_good_name(name: &str) -> bool {
    !matches!(name.as_bytes().first(), None | Some(b'0'..=b'9' | b'-' | b'.' | b':'))
}

#[cfg(test)]
#[path = "xml_tests.rs"]
mod tests;
