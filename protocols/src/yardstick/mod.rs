//! The yardstick protocol: one contract (`yardstick.proto`), two encodings, no I/O.
mod avatars;
mod direct;
mod facts;
mod field;
mod json;
mod pending;
mod proto;
mod resume;
mod session;
mod types;

use std::fmt;

pub use facts::Yardstick;
pub use field::{Bytes, Millis, Text};
pub use types::*;

/// Path of the WebSocket endpoint.
pub const PATH: &str = "/ws";
/// Most items of one list in a frame we read: bounds what a hostile peer can make us allocate.
pub const LIST_ITEMS_MAX: usize = 65_536;

/// How requests and frames are written; the WebSocket subprotocol says which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Proto3's canonical JSON in text frames.
    Json,
    /// Protobuf in binary frames.
    Proto,
}

impl Encoding {
    /// Every encoding; `encoding as usize` is its place here.
    pub const ALL: [Encoding; 2] = [Encoding::Json, Encoding::Proto];

    /// The WebSocket subprotocol.
    pub fn subprotocol(self) -> &'static str {
        match self {
            Encoding::Json => "yardstick.v1.json",
            Encoding::Proto => "yardstick.v1.proto",
        }
    }

    /// The encoding a subprotocol stands for.
    pub fn of_subprotocol(name: &str) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.subprotocol() == name)
    }

    /// The kind of WebSocket frame it travels in.
    pub fn opcode(self) -> crate::wire::frame::Opcode {
        match self {
            Encoding::Json => crate::wire::frame::Opcode::Text,
            Encoding::Proto => crate::wire::frame::Opcode::Binary,
        }
    }

    /// Tells what a server frame is from its first bytes, without parsing; `None` if it is none.
    #[inline]
    pub fn classify(self, payload: &[u8]) -> Option<Kind> {
        match self {
            Encoding::Proto => match payload.first()? {
                0x0a => Some(Kind::Message),
                0x12 => Some(Kind::Presence),
                0x1a => Some(Kind::Answer),
                0x22 => Some(Kind::Typing),
                0x2a => Some(Kind::Read),
                0x32 => Some(Kind::Change),
                0x3a => Some(Kind::Notice),
                _ => None,
            },
            Encoding::Json => match payload.get(..3)? {
                b"{\"m" => Some(Kind::Message),
                b"{\"p" => Some(Kind::Presence),
                b"{\"a" => Some(Kind::Answer),
                b"{\"t" => Some(Kind::Typing),
                b"{\"r" => Some(Kind::Read),
                b"{\"c" => Some(Kind::Change),
                b"{\"n" => Some(Kind::Notice),
                _ => None,
            },
        }
    }
}

/// What a server frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A live message: a delivery.
    Message,
    /// Who came and went.
    Presence,
    /// The answer to a request.
    Answer,
    /// Somebody is typing.
    Typing,
    /// Somebody has read.
    Read,
    /// A message was edited, deleted or reacted to.
    Change,
    /// Somebody's rights, or a room, have changed.
    Notice,
}

/// Why bytes are not a message of this protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The protobuf ends inside a field.
    Truncated,
    /// A varint of more than ten bytes, or a field number of 0.
    BadVarint,
    /// A wire type protobuf 3 does not have, or the wrong one for a field.
    BadWireType,
    /// A string that is not UTF-8.
    NotUtf8,
    /// A list of more than [`LIST_ITEMS_MAX`] items.
    TooManyItems,
    /// Not the JSON we expect; says where and why.
    Json(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Truncated => write!(f, "protobuf ends inside a field"),
            DecodeError::BadVarint => write!(f, "protobuf with a bad varint"),
            DecodeError::BadWireType => write!(f, "protobuf field with a wrong wire type"),
            DecodeError::NotUtf8 => write!(f, "protobuf string that is not UTF-8"),
            DecodeError::TooManyItems => write!(f, "a list of more than {LIST_ITEMS_MAX} items"),
            DecodeError::Json(why) => write!(f, "JSON: {why}"),
        }
    }
}

impl std::error::Error for DecodeError {}

macro_rules! document {
    ($name:ident) => {
        impl<'a> $name<'a> {
            /// Appends the payload of one WebSocket frame.
            pub fn encode(&self, encoding: Encoding, out: &mut Vec<u8>) {
                match encoding {
                    Encoding::Json => json::write_object(self, out),
                    Encoding::Proto => proto::write(self, out),
                }
            }

            /// Reads the payload of one WebSocket frame.
            pub fn decode(encoding: Encoding, payload: &'a [u8]) -> Result<Self, DecodeError> {
                match encoding {
                    Encoding::Json => json::read(payload),
                    Encoding::Proto => proto::read(payload),
                }
            }
        }
    };
}

document!(Request);
document!(Frame);

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod golden;
#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;

#[cfg(test)]
pub(crate) use fake::rows;
