//! Templates made ready: pieces of bytes with blanks between them, written without looking anything
//! up, and compared with what arrives without allocating.

use model::script::{Blank, Part};
use std::io::Write as _;

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// As it is.
    Bytes(Box<[u8]>),
    /// Filled in.
    Blank(Slot, Style),
    /// Behind its own length.
    Sized(Prefix, Box<[Piece]>),
}

/// What is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Id,
    Name,
    Password,
    Room,
    Nick,
    Text,
    Limit,
    Status,
    /// What was kept, by number.
    Kept(u8),
}

/// How it is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// As it is.
    Raw,
    /// Inside of a JSON string.
    Json,
    /// In a URL or a form.
    Url,
    /// A protobuf number.
    Varint,
    /// A MessagePack number.
    Pack,
}

/// How a length is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    /// Protobuf.
    Varint,
    /// A MessagePack string.
    Pack,
}

/// What blanks are filled with.
#[derive(Clone, Copy, Default)]
pub(super) struct Blanks<'a> {
    pub(super) id: u32,
    pub(super) limit: u32,
    pub(super) name: &'a str,
    pub(super) password: &'a str,
    pub(super) room: &'a str,
    pub(super) nick: &'a str,
    pub(super) text: &'a str,
    pub(super) status: &'a str,
    pub(super) kept: &'a [Box<str>],
}

/// A number in decimal, without allocating.
struct Decimal([u8; 24], usize);

impl Decimal {
    fn of(number: impl std::fmt::Display) -> Decimal {
        let mut decimal = Decimal([0; 24], 0);
        let mut rest = &mut decimal.0[..];
        let before = rest.len();
        // The longest number of 64 bits has 20 characters.
        let _ = write!(rest, "{number}");
        decimal.1 = before - rest.len();
        decimal
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

impl<'a> Blanks<'a> {
    fn text(&self, slot: Slot) -> &'a str {
        match slot {
            Slot::Name => self.name,
            Slot::Password => self.password,
            Slot::Room => self.room,
            Slot::Nick => self.nick,
            Slot::Text => self.text,
            Slot::Status => self.status,
            Slot::Kept(at) => self.kept.get(usize::from(at)).map_or("", |text| text),
            Slot::Id | Slot::Limit => "",
        }
    }

    fn number(&self, slot: Slot) -> Option<u32> {
        match slot {
            Slot::Id => Some(self.id),
            Slot::Limit => Some(self.limit),
            _ => None,
        }
    }
}

/// Appends a message.
pub(super) fn write(pieces: &[Piece], blanks: &Blanks<'_>, out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Blank(slot, style) => fill(*slot, *style, blanks, out),
            Piece::Sized(prefix, inner) => {
                let start = out.len();
                write(inner, blanks, out);
                let mut head = Vec::new();
                prefix.write(out.len() - start, &mut head);
                out.splice(start..start, head);
            }
        }
    }
}

impl Prefix {
    pub(super) fn write(self, length: usize, out: &mut Vec<u8>) {
        match self {
            Prefix::Varint => varint(length as u64, out),
            // A vector takes everything.
            Prefix::Pack => drop(rmp::encode::write_str_len(out, length as u32)),
        }
    }
}

fn fill(slot: Slot, style: Style, blanks: &Blanks<'_>, out: &mut Vec<u8>) {
    let decimal;
    let text = match (blanks.number(slot), style) {
        (Some(number), Style::Varint) => return varint(number.into(), out),
        (Some(number), Style::Pack) => {
            // A vector takes everything.
            let _ = rmp::encode::write_uint(out, number.into());
            return;
        }
        (Some(number), _) => {
            decimal = Decimal::of(number);
            decimal.bytes()
        }
        (None, _) => blanks.text(slot).as_bytes(),
    };
    match style {
        Style::Json => escape_json(text, out),
        Style::Url => escape_url(text, out),
        _ => out.extend_from_slice(text),
    }
}

/// A protobuf varint.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The inside of a JSON string (RFC 8259 section 7).
pub(super) fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => _ = write!(out, "\\u{byte:04x}"),
            _ => out.push(byte),
        }
    }
}

/// Percent-encoding of everything that is not unreserved (RFC 3986 section 2.3).
pub(super) fn escape_url(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(byte),
            false => _ = write!(out, "%{byte:02X}"),
        }
    }
}

/// Something a path led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// A string; with escapes of JSON in it.
    Text(&'a [u8], bool),
    /// A number or word of JSON.
    Bare(&'a [u8]),
    Unsigned(u64),
    Signed(i64),
    Bool(bool),
    /// Something else, which is there.
    Other,
    /// Not there, which in protobuf means this.
    Missing(&'static str),
}

impl Found<'_> {
    /// Whether it is what the pieces say; one `*` is anything.
    pub(super) fn is(&self, pieces: &[Piece], blanks: &Blanks<'_>) -> bool {
        if let [Piece::Bytes(only)] = pieces
            && **only == *b"*"
        {
            return !matches!(self, Found::Missing(_));
        }
        let decimal;
        let text = match self {
            Found::Text(text, false) | Found::Bare(text) => *text,
            Found::Text(_, true) => {
                return begins(pieces, blanks, self.text().as_bytes()) == Some(0);
            }
            Found::Unsigned(number) => {
                decimal = Decimal::of(number);
                decimal.bytes()
            }
            Found::Signed(number) => {
                decimal = Decimal::of(number);
                decimal.bytes()
            }
            Found::Bool(true) => b"true",
            Found::Bool(false) => b"false",
            Found::Missing(default) => default.as_bytes(),
            Found::Other => return false,
        };
        begins(pieces, blanks, text) == Some(0)
    }

    /// It as text.
    pub(super) fn text(&self) -> String {
        match self {
            Found::Text(text, true) => {
                let quoted = [b"\"", *text, b"\""].concat();
                serde_json::from_slice(&quoted).unwrap_or_default()
            }
            Found::Text(text, false) | Found::Bare(text) => {
                String::from_utf8_lossy(text).into_owned()
            }
            Found::Unsigned(number) => number.to_string(),
            Found::Signed(number) => number.to_string(),
            Found::Bool(value) => value.to_string(),
            Found::Missing(default) => (*default).to_owned(),
            Found::Other => String::new(),
        }
    }
}

/// Whether a text begins with the pieces: how many of its bytes are left behind them.
pub(super) fn begins(pieces: &[Piece], blanks: &Blanks<'_>, text: &[u8]) -> Option<usize> {
    let mut rest = text;
    for piece in pieces {
        rest = match piece {
            Piece::Bytes(bytes) => rest.strip_prefix(&**bytes)?,
            Piece::Blank(slot, _) => match blanks.number(*slot) {
                Some(number) => rest.strip_prefix(Decimal::of(number).bytes())?,
                None => rest.strip_prefix(blanks.text(*slot).as_bytes())?,
            },
            Piece::Sized(..) => return None,
        };
    }
    Some(rest.len())
}

/// The pieces of a text, its own parts escaped as its blanks will be.
pub(super) fn pieces(parts: &[Part], style: Style, kept: &[String]) -> Vec<Piece> {
    let one = |part: &Part| match part {
        Part::Literal(text) => {
            let mut bytes = Vec::new();
            match style {
                Style::Json => escape_json(text.as_bytes(), &mut bytes),
                _ => bytes.extend_from_slice(text.as_bytes()),
            }
            Piece::Bytes(bytes.into())
        }
        Part::Blank(blank) => Piece::Blank(slot(blank, kept), style),
    };
    parts.iter().map(one).collect()
}

/// The place of a blank.
pub(super) fn slot(blank: &Blank, kept: &[String]) -> Slot {
    match blank {
        Blank::Id => Slot::Id,
        Blank::Name => Slot::Name,
        Blank::Password => Slot::Password,
        Blank::Room => Slot::Room,
        Blank::Nick => Slot::Nick,
        Blank::Text => Slot::Text,
        Blank::Limit => Slot::Limit,
        Blank::Status => Slot::Status,
        Blank::Kept(name) => {
            Slot::Kept(kept.iter().position(|known| known == name).unwrap_or(255) as u8)
        }
    }
}

/// Whether a blank occurs.
pub(super) fn uses(pieces: &[Piece], slot: Slot) -> bool {
    pieces.iter().any(|piece| match piece {
        Piece::Bytes(_) => false,
        Piece::Blank(found, _) => *found == slot,
        Piece::Sized(_, inner) => uses(inner, slot),
    })
}

/// Puts neighboring bytes together, lengths that are known included.
pub(super) fn joined(pieces: Vec<Piece>) -> Box<[Piece]> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        let piece = match piece {
            Piece::Sized(prefix, inner) if inner.iter().all(|p| matches!(p, Piece::Bytes(_))) => {
                let mut bytes = Vec::new();
                write(&[Piece::Sized(prefix, inner)], &Blanks::default(), &mut bytes);
                Piece::Bytes(bytes.into())
            }
            other => other,
        };
        match (all.last_mut(), &piece) {
            (Some(Piece::Bytes(before)), Piece::Bytes(bytes)) => {
                *before = [&**before, &**bytes].concat().into();
            }
            _ => all.push(piece),
        }
    }
    all.into()
}
