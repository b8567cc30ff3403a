//! Protobuf messages of the user's own `.proto`: read once, written and searched as bytes.

use super::piece::{Found, Piece, Prefix, Style, pieces, slot, varint};
use model::script::{Blank, Body, Misfit, Part, Proto};
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

/// The name under which the user's file is known to the compiler.
const FILE: &str = "described.proto";

/// What a number on the wire means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    Text,
    Unsigned,
    Signed,
    Zigzag,
    Bool,
    Other,
}

/// A way through messages: numbers of fields, and what the last one is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Way {
    fields: Box<[u32]>,
    leaf: Leaf,
}

/// The messages that are spoken.
pub(super) struct Schema {
    sent: MessageDescriptor,
    received: MessageDescriptor,
}

struct OneFile(String);

impl FileResolver for OneFile {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name == FILE {
            true => File::from_source(name, &self.0),
            false => Err(protox::Error::file_not_found(name)),
        }
    }
}

impl Schema {
    /// Reads the file. The error is the compiler's.
    pub(super) fn read(proto: &Proto) -> Result<Schema, Misfit> {
        let mut files = ChainFileResolver::new();
        files.add(OneFile(proto.text.clone()));
        files.add(GoogleFileResolver::new());
        let mut compiler = protox::Compiler::with_file_resolver(files);
        compiler.include_imports(true);
        let compiled = compiler
            .open_file(FILE)
            .map_err(|error| Misfit::from(format!("{error:?}")).within("file"))?;
        let pool: DescriptorPool = compiled.descriptor_pool();
        let message = |name: &str, key: &str| {
            let is_it =
                |message: &MessageDescriptor| message.name() == name || message.full_name() == name;
            let mut all = pool.all_messages();
            all.find(is_it).ok_or_else(|| {
                let reason = format!("the .proto file has no message `{name}`");
                let key = if proto.sent == proto.received { "message" } else { key };
                Misfit::from(reason).within(key)
            })
        };
        let (sent, received) = (message(&proto.sent, "sent"), message(&proto.received, "received"));
        Ok(Schema { sent: sent?, received: received? })
    }

    /// The pieces of a message.
    pub(super) fn body(&self, body: &Body, kept: &[String]) -> Result<Vec<Piece>, Misfit> {
        let mut out = Vec::new();
        write_message(&self.sent, body, kept, &mut out)?;
        Ok(out)
    }

    /// The way to a field of what is received.
    pub(super) fn way(&self, path: &str) -> Result<Way, String> {
        let mut message = Some(self.received.clone());
        let (mut fields, mut leaf) = (Vec::new(), Leaf::Other);
        for name in path.split('.') {
            let at = message.as_ref().ok_or_else(|| format!("`{path}` goes on behind a value"))?;
            let field = field_of(at, name)?;
            fields.push(field.number());
            message = field.kind().as_message().cloned();
            leaf = leaf_of(&field.kind());
        }
        Ok(Way { fields: fields.into(), leaf })
    }
}

fn field_of(message: &MessageDescriptor, name: &str) -> Result<FieldDescriptor, String> {
    let field = message.get_field_by_name(name).or_else(|| message.get_field_by_json_name(name));
    field.ok_or_else(|| format!("the message `{}` has no field `{name}`", message.name()))
}

fn leaf_of(kind: &Kind) -> Leaf {
    match kind {
        Kind::String | Kind::Bytes => Leaf::Text,
        Kind::Int32 | Kind::Int64 | Kind::Sfixed32 | Kind::Sfixed64 | Kind::Enum(_) => Leaf::Signed,
        Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64 => Leaf::Unsigned,
        Kind::Sint32 | Kind::Sint64 => Leaf::Zigzag,
        Kind::Bool => Leaf::Bool,
        Kind::Message(_) | Kind::Float | Kind::Double => Leaf::Other,
    }
}

fn write_message(
    message: &MessageDescriptor,
    body: &Body,
    kept: &[String],
    out: &mut Vec<Piece>,
) -> Result<(), Misfit> {
    let Body::Map(pairs) = body else {
        return Err(format!("the message `{}` is written as a map", message.name()).into());
    };
    for (name, value) in pairs {
        write_value(message, name, value, kept, out).map_err(|why| why.within(name))?;
    }
    Ok(())
}

fn write_value(
    message: &MessageDescriptor,
    name: &str,
    value: &Body,
    kept: &[String],
    out: &mut Vec<Piece>,
) -> Result<(), Misfit> {
    let field = field_of(message, name)?;
    if field.is_map() {
        return Err(format!("`{name}` is a map field, which cannot be written").into());
    }
    match value {
        Body::List(items) if field.is_list() => {
            for (place, item) in items.iter().enumerate() {
                write_field(&field, item, kept, out)
                    .map_err(|why| why.within(place.to_string()))?;
            }
            Ok(())
        }
        value => write_field(&field, value, kept, out),
    }
}

fn write_field(
    field: &FieldDescriptor,
    value: &Body,
    kept: &[String],
    out: &mut Vec<Piece>,
) -> Result<(), Misfit> {
    let tag = |wire: u32| {
        let mut bytes = Vec::new();
        varint(u64::from(field.number() << 3 | wire), &mut bytes);
        bytes
    };
    let text = match value {
        Body::Text(text) | Body::Bare(text) => text.as_slice(),
        _ => &[],
    };
    match field.kind() {
        Kind::Message(inner) => {
            let mut pieces = Vec::new();
            write_message(&inner, value, kept, &mut pieces)?;
            out.push(Piece::Bytes(tag(2).into()));
            out.push(Piece::Sized(Prefix::Varint, super::piece::joined(pieces)));
        }
        Kind::String | Kind::Bytes => {
            out.push(Piece::Bytes(tag(2).into()));
            out.push(Piece::Sized(Prefix::Varint, pieces(text, Style::Raw, kept).into()));
        }
        kind => match text {
            [Part::Blank(blank @ (Blank::Id | Blank::Limit))]
                if matches!(leaf_of(&kind), Leaf::Signed | Leaf::Unsigned)
                    && wire_type(&kind) == 0 =>
            {
                out.push(Piece::Bytes(tag(0).into()));
                out.push(Piece::Blank(slot(blank, kept), Style::Varint));
            }
            [Part::Literal(literal)] => {
                let mut bytes = tag(wire_type(&kind));
                number(&kind, literal, &mut bytes).ok_or_else(|| {
                    format!("`{literal}` does not fit the field `{}`", field.name())
                })?;
                out.push(Piece::Bytes(bytes.into()));
            }
            _ => return Err(format!("the field `{}` needs a number", field.name()).into()),
        },
    }
    Ok(())
}

fn wire_type(kind: &Kind) -> u32 {
    match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => 1,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => 5,
        _ => 0,
    }
}

fn number(kind: &Kind, text: &str, out: &mut Vec<u8>) -> Option<()> {
    match kind {
        Kind::Double => out.extend(text.parse::<f64>().ok()?.to_le_bytes()),
        Kind::Float => out.extend(text.parse::<f32>().ok()?.to_le_bytes()),
        Kind::Fixed64 => out.extend(text.parse::<u64>().ok()?.to_le_bytes()),
        Kind::Sfixed64 => out.extend(text.parse::<i64>().ok()?.to_le_bytes()),
        Kind::Fixed32 => out.extend(text.parse::<u32>().ok()?.to_le_bytes()),
        Kind::Sfixed32 => out.extend(text.parse::<i32>().ok()?.to_le_bytes()),
        Kind::Bool => varint(u64::from(text.parse::<bool>().ok()?), out),
        Kind::Uint32 | Kind::Uint64 => varint(text.parse::<u64>().ok()?, out),
        Kind::Int32 | Kind::Int64 => varint(text.parse::<i64>().ok()? as u64, out),
        Kind::Sint32 | Kind::Sint64 => {
            let value = text.parse::<i64>().ok()?;
            varint((value << 1 ^ value >> 63) as u64, out);
        }
        Kind::Enum(names) => {
            let named = names.get_value_by_name(text).map(|value| value.number());
            varint(i64::from(named.or(text.parse().ok())?) as u64, out);
        }
        _ => return None,
    }
    Some(())
}

/// A field as it stands on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << (7 * shift);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<(u32, Wire<'a>)> {
    let tag = u32::try_from(take_varint(bytes)?).ok().filter(|tag| tag >> 3 > 0)?;
    let mut take = |count: usize| {
        let (taken, rest) = bytes.split_at_checked(count)?;
        *bytes = rest;
        Some(taken)
    };
    let little = |taken: &[u8]| taken.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
    let value = match tag & 7 {
        0 => Wire::Number(take_varint(bytes)?),
        1 => Wire::Number(little(take(8)?)),
        5 => Wire::Number(little(take(4)?)),
        2 => {
            let length = take_varint(bytes)?;
            let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            *bytes = rest;
            Wire::Bytes(taken)
        }
        _ => return None,
    };
    Some((tag >> 3, value))
}

/// Whether it is a row of fields.
pub(super) fn is_valid(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        if take_field(&mut bytes).is_none() {
            return false;
        }
    }
    true
}

/// What the way leads to.
pub(super) fn find<'a>(bytes: &'a [u8], way: &Way) -> Option<Found<'a>> {
    let (last, first) = way.fields.split_last()?;
    let mut at = bytes;
    for &number in first {
        match field(at, number)?? {
            Wire::Bytes(inner) => at = inner,
            Wire::Number(_) => return None,
        }
    }
    Some(match (field(at, *last)?, way.leaf) {
        (Some(Wire::Bytes(bytes)), Leaf::Text) => Found::Text(bytes, false),
        (Some(Wire::Number(value)), Leaf::Unsigned) => Found::Unsigned(value),
        (Some(Wire::Number(value)), Leaf::Signed) => Found::Signed(value as i64),
        (Some(Wire::Number(value)), Leaf::Bool) => Found::Bool(value != 0),
        (Some(Wire::Number(value)), Leaf::Zigzag) => {
            Found::Signed((value >> 1) as i64 ^ -((value & 1) as i64))
        }
        (Some(_), _) => Found::Other,
        (None, Leaf::Text) => Found::Missing(""),
        (None, Leaf::Bool) => Found::Missing("false"),
        (None, Leaf::Other) => return None,
        (None, _) => Found::Missing("0"),
    })
}

/// The last field of that number; the outer `None` if it is no protobuf.
fn field(mut bytes: &[u8], number: u32) -> Option<Option<Wire<'_>>> {
    let mut found = None;
    while !bytes.is_empty() {
        let (other, value) = take_field(&mut bytes)?;
        if other == number {
            found = Some(value);
        }
    }
    Some(found)
}
