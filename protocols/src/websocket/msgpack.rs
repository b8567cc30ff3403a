//! MessagePack: bodies made ready to be written, and values found without building a tree.

use super::piece::{Found, Piece, Prefix, Style, pieces};
use model::script::{Blank, Body, Part};
use rmp::{Marker, encode};

/// The pieces of a body. The error says what cannot be written.
pub(super) fn body(body: &Body, kept: &[String], out: &mut Vec<Piece>) -> Result<(), String> {
    let mut head = Vec::new();
    match body {
        Body::Text(text) => {
            let inner = pieces(text, Style::Raw, kept);
            out.push(Piece::Sized(Prefix::Pack, inner.into()));
        }
        Body::Bare(text) => out.push(bare(text, kept)?),
        Body::List(items) => {
            // A vector takes everything.
            let _ = encode::write_array_len(&mut head, items.len() as u32);
            out.push(Piece::Bytes(head.into()));
            for item in items {
                self::body(item, kept, out)?;
            }
        }
        Body::Map(pairs) => {
            let _ = encode::write_map_len(&mut head, pairs.len() as u32);
            out.push(Piece::Bytes(head.into()));
            for (key, value) in pairs {
                let mut name = Vec::new();
                let _ = encode::write_str(&mut name, key);
                out.push(Piece::Bytes(name.into()));
                self::body(value, kept, out)?;
            }
        }
    }
    Ok(())
}

fn bare(text: &[Part], kept: &[String]) -> Result<Piece, String> {
    let literal = match text {
        [Part::Blank(blank @ (Blank::Id | Blank::Limit))] => {
            return Ok(Piece::Blank(super::piece::slot(blank, kept), Style::Pack));
        }
        [Part::Literal(literal)] => literal.as_str(),
        _ => return Err("a number with a blank inside cannot be written as MessagePack".into()),
    };
    let mut bytes = Vec::new();
    let _ = match literal {
        "null" => encode::write_nil(&mut bytes).map_err(drop),
        "true" | "false" => encode::write_bool(&mut bytes, literal == "true").map_err(drop),
        _ => match (literal.parse::<i64>(), literal.parse::<u64>(), literal.parse::<f64>()) {
            (Ok(number), ..) => encode::write_sint(&mut bytes, number).map(drop).map_err(drop),
            (_, Ok(number), _) => encode::write_uint(&mut bytes, number).map(drop).map_err(drop),
            (.., Ok(number)) => encode::write_f64(&mut bytes, number).map_err(drop),
            _ => return Err(format!("`{literal}` is no number")),
        },
    };
    Ok(Piece::Bytes(bytes.into()))
}

/// What stands first.
enum Head<'a> {
    Leaf(Found<'a>),
    List(u32),
    Map(u32),
}

/// Takes the first thing off, of lists and maps only the head.
fn head<'a>(bytes: &mut &'a [u8]) -> Option<Head<'a>> {
    let (&first, mut rest) = bytes.split_first()?;
    let mut number = |size: usize| {
        let (taken, behind) = rest.split_at_checked(size)?;
        rest = behind;
        Some(taken.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte)))
    };
    let signed =
        |value: u64, bits: u32| Found::Signed((value << (64 - bits)) as i64 >> (64 - bits));
    let mut text = None;
    let mut other = None;
    let found = match Marker::from_u8(first) {
        Marker::FixPos(value) => Head::Leaf(Found::Unsigned(value.into())),
        Marker::FixNeg(value) => Head::Leaf(Found::Signed(value.into())),
        Marker::Null => Head::Leaf(Found::Bare(b"null")),
        Marker::True => Head::Leaf(Found::Bool(true)),
        Marker::False => Head::Leaf(Found::Bool(false)),
        Marker::U8 => Head::Leaf(Found::Unsigned(number(1)?)),
        Marker::U16 => Head::Leaf(Found::Unsigned(number(2)?)),
        Marker::U32 => Head::Leaf(Found::Unsigned(number(4)?)),
        Marker::U64 => Head::Leaf(Found::Unsigned(number(8)?)),
        Marker::I8 => Head::Leaf(signed(number(1)?, 8)),
        Marker::I16 => Head::Leaf(signed(number(2)?, 16)),
        Marker::I32 => Head::Leaf(signed(number(4)?, 32)),
        Marker::I64 => Head::Leaf(signed(number(8)?, 64)),
        Marker::FixArray(count) => Head::List(count.into()),
        Marker::Array16 => Head::List(number(2)? as u32),
        Marker::Array32 => Head::List(number(4)? as u32),
        Marker::FixMap(count) => Head::Map(count.into()),
        Marker::Map16 => Head::Map(number(2)? as u32),
        Marker::Map32 => Head::Map(number(4)? as u32),
        marker => {
            match marker {
                Marker::FixStr(length) => text = Some(length.into()),
                Marker::Str8 => text = Some(number(1)?),
                Marker::Str16 => text = Some(number(2)?),
                Marker::Str32 => text = Some(number(4)?),
                Marker::Bin8 => other = Some(number(1)?),
                Marker::Bin16 => other = Some(number(2)?),
                Marker::Bin32 => other = Some(number(4)?),
                Marker::F32 => other = Some(4),
                Marker::F64 => other = Some(8),
                Marker::FixExt1 => other = Some(2),
                Marker::FixExt2 => other = Some(3),
                Marker::FixExt4 => other = Some(5),
                Marker::FixExt8 => other = Some(9),
                Marker::FixExt16 => other = Some(17),
                Marker::Ext8 => other = Some(number(1)? + 1),
                Marker::Ext16 => other = Some(number(2)? + 1),
                Marker::Ext32 => other = Some(number(4)? + 1),
                _ => return None,
            }
            let (taken, behind) = rest.split_at_checked(text.or(other)? as usize)?;
            rest = behind;
            Head::Leaf(if text.is_some() { Found::Text(taken, false) } else { Found::Other })
        }
    };
    *bytes = rest;
    Some(found)
}

/// Passes over a value. Each part takes at least a byte, so this ends with the bytes.
fn skip(bytes: &mut &[u8]) -> Option<()> {
    let mut left = 1u64;
    while left > 0 {
        left = left - 1
            + match head(bytes)? {
                Head::Leaf(_) => 0,
                Head::List(count) => u64::from(count),
                Head::Map(count) => 2 * u64::from(count),
            };
    }
    Some(())
}

/// Whether it is exactly one value.
pub(super) fn is_valid(mut bytes: &[u8]) -> bool {
    skip(&mut bytes).is_some() && bytes.is_empty()
}

/// What the keys lead to: names in maps, numbers in lists.
pub(super) fn find<'a>(mut bytes: &'a [u8], keys: &[Box<str>]) -> Option<Found<'a>> {
    for key in keys {
        match head(&mut bytes)? {
            Head::Leaf(_) => return None,
            Head::List(count) => {
                let index: u32 = key.parse().ok().filter(|&index| index < count)?;
                for _ in 0..index {
                    skip(&mut bytes)?;
                }
            }
            Head::Map(count) => {
                let mut is_found = false;
                for _ in 0..count {
                    let mut name = bytes;
                    skip(&mut bytes)?;
                    let is_it = match head(&mut name) {
                        Some(Head::Leaf(Found::Text(text, _))) => text == key.as_bytes(),
                        _ => false,
                    };
                    if is_it {
                        is_found = true;
                        break;
                    }
                    skip(&mut bytes)?;
                }
                if !is_found {
                    return None;
                }
            }
        }
    }
    match head(&mut bytes)? {
        Head::Leaf(found) => Some(found),
        _ => Some(Found::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::{Blanks, joined, write};
    use super::*;

    #[test]
    fn what_is_written_is_found() {
        let literal = |text: &str| vec![Part::Literal(text.into())];
        let map = Body::Map(vec![
            ("id".into(), Body::Bare(vec![Part::Blank(Blank::Id)])),
            ("text".into(), Body::Text(vec![Part::Blank(Blank::Text)])),
            (
                "list".into(),
                Body::List(vec![Body::Bare(literal("-70000")), Body::Bare(literal("null"))]),
            ),
            ("on".into(), Body::Bare(literal("true"))),
            ("pi".into(), Body::Bare(literal("3.25"))),
        ]);
        let mut pieces = Vec::new();
        body(&map, &[], &mut pieces).unwrap();
        for length in [0, 3, 31, 32, 255, 256, 70_000] {
            let text = "x".repeat(length);
            let blanks = Blanks { id: 300, text: &text, ..Blanks::default() };
            let mut bytes = Vec::new();
            write(&joined(pieces.clone()), &blanks, &mut bytes);
            assert!(is_valid(&bytes), "{length}");
            let at = |path: &str| {
                let keys: Vec<Box<str>> = path.split('.').map(Box::from).collect();
                find(&bytes, &keys).map(|found| found.text())
            };
            assert_eq!(at("id").as_deref(), Some("300"));
            assert_eq!(at("text"), Some(text.clone()));
            assert_eq!(at("list.0").as_deref(), Some("-70000"));
            assert_eq!(at("list.1").as_deref(), Some("null"));
            assert_eq!(at("list.2"), None);
            assert_eq!(at("on").as_deref(), Some("true"));
            assert_eq!(at("pi").as_deref(), Some(""));
            for end in 0..bytes.len().min(300) {
                assert!(!is_valid(&bytes[..end]), "{end}");
            }
        }
    }

    #[test]
    fn bombs_do_not_explode() {
        // A list of 2^32 - 1 lists of as many.
        let bomb = [0xDD, 0xFF, 0xFF, 0xFF, 0xFF].repeat(1_000);
        assert!(!is_valid(&bomb));
        assert_eq!(find(&bomb, &["1".into()]), None);
        assert!(!is_valid(&[0xC1]));
    }
}
