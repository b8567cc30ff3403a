//! Packets of Socket.IO (protocol revisions 4 and 5) and payloads of Engine.IO's long polling
//! (revisions 3 and 4), read without allocating.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Most binary attachments one packet may announce.
pub(super) const ATTACHMENTS_MAX: u32 = 64;
/// Longest number of an acknowledgment, digits.
const ID_DIGITS_MAX: usize = 10;
/// What stands between the packets of a payload since revision 4.
const SEPARATOR: u8 = 0x1e;

/// What a Socket.IO packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Connect,
    Disconnect,
    Event,
    Ack,
    Error,
}

/// A Socket.IO packet, behind the `4` of Engine.IO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) kind: Kind,
    /// How many binary frames belong to it and follow.
    pub(super) attachments: u32,
    /// `/` unless it says otherwise; without a query.
    pub(super) namespace: &'a [u8],
    /// Number of the acknowledgment it asks for or is.
    pub(super) id: Option<u32>,
    /// JSON, unchecked.
    pub(super) data: &'a [u8],
}

/// Reads `<type>[<attachments>-][<namespace>,][<id>][<data>]`; the error says what is wrong.
#[inline]
pub(super) fn parse(bytes: &[u8]) -> Result<Packet<'_>, &'static str> {
    let (&first, mut rest) = bytes.split_first().ok_or("an empty packet")?;
    let (kind, is_binary) = match first {
        b'0' => (Kind::Connect, false),
        b'1' => (Kind::Disconnect, false),
        b'2' => (Kind::Event, false),
        b'3' => (Kind::Ack, false),
        b'4' => (Kind::Error, false),
        b'5' => (Kind::Event, true),
        b'6' => (Kind::Ack, true),
        _ => return Err("a packet of an unknown type"),
    };
    let mut attachments = 0;
    if is_binary {
        let (count, behind) = number(rest)?.ok_or("a binary packet without its number of parts")?;
        attachments = count;
        rest = behind.strip_prefix(b"-").ok_or("a binary packet without its number of parts")?;
        if attachments == 0 || attachments > ATTACHMENTS_MAX {
            return Err("a binary packet with too many parts, or none");
        }
    }
    let mut namespace: &[u8] = b"/";
    if rest.first() == Some(&b'/') {
        let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
        let query = memchr::memchr(b'?', &rest[..end]).unwrap_or(end);
        (namespace, rest) = (&rest[..query], rest.get(end + 1..).unwrap_or_default());
    }
    let mut id = None;
    if let Some((value, behind)) = number(rest)? {
        (id, rest) = (Some(value), behind);
    }
    match (kind, id) {
        (Kind::Ack, None) => return Err("an acknowledgment without a number"),
        (Kind::Connect | Kind::Disconnect | Kind::Error, Some(_)) => {
            return Err("a number where none belongs");
        }
        _ => {}
    }
    let is_list = rest.len() >= 2 && rest[0] == b'[' && rest[rest.len() - 1] == b']';
    let is_fine = match kind {
        Kind::Event => is_list && rest[1] == b'"',
        Kind::Ack => is_list,
        _ => true,
    };
    match is_fine {
        true => Ok(Packet { kind, attachments, namespace, id, data: rest }),
        false => Err("a packet whose data is no list"),
    }
}

/// A decimal number at the start, if there is one.
fn number(bytes: &[u8]) -> Result<Option<(u32, &[u8])>, &'static str> {
    let digits = bytes.iter().take(ID_DIGITS_MAX + 1).take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return Ok(None);
    }
    let text = bytes[..digits].iter().fold(0u64, |sum, b| sum * 10 + u64::from(b - b'0'));
    match u32::try_from(text) {
        Ok(value) if digits <= ID_DIGITS_MAX => Ok(Some((value, &bytes[digits..]))),
        _ => Err("a number that is too large"),
    }
}

/// A packet of Engine.IO as a payload holds it.
#[derive(Debug, PartialEq)]
pub(super) enum Part<'a> {
    Text(&'a [u8]),
    Binary(Vec<u8>),
}

/// The next packet of a payload of revision 4 (packets with a separator between) or 3 (each behind
/// its length in UTF-16 units); the payload shrinks to what is behind it.
pub(super) fn next<'a>(payload: &mut &'a [u8], revision: u8) -> Result<Part<'a>, &'static str> {
    let packet = match revision {
        3 => measured(payload)?,
        _ => {
            let end = memchr::memchr(SEPARATOR, payload).unwrap_or(payload.len());
            let packet = &payload[..end];
            *payload = payload.get(end + 1..).unwrap_or_default();
            packet
        }
    };
    match packet.strip_prefix(b"b") {
        None => Ok(Part::Text(packet)),
        Some(coded) => {
            // Revision 3 has the type of the packet before the base64.
            let coded = if revision == 3 { coded.strip_prefix(b"4") } else { Some(coded) };
            let binary = coded.and_then(|coded| STANDARD.decode(coded).ok());
            Ok(Part::Binary(binary.ok_or("a binary packet that is no base64")?))
        }
    }
}

fn measured<'a>(payload: &mut &'a [u8]) -> Result<&'a [u8], &'static str> {
    const WHY: &str = "a payload whose lengths are wrong";
    let (units, rest) = number(payload)?.ok_or(WHY)?;
    let rest = rest.strip_prefix(b":").ok_or(WHY)?;
    let text = match str::from_utf8(rest) {
        Ok(text) => text,
        Err(_) => return Err("a payload that is no UTF-8"),
    };
    let (mut units, mut end) = (units as usize, 0);
    let mut chars = text.chars();
    while units > 0 {
        let char = chars.next().ok_or(WHY)?;
        units = units.checked_sub(char.len_utf16()).ok_or(WHY)?;
        end += char.len_utf8();
    }
    *payload = &rest[end..];
    Ok(&rest[..end])
}

/// Packets as the body of a request.
pub(super) fn payload(packets: &[Vec<u8>], revision: u8) -> Vec<u8> {
    let mut body = Vec::new();
    for (place, packet) in packets.iter().enumerate() {
        match revision {
            3 => {
                let text: Cow<'_, str> = String::from_utf8_lossy(packet);
                let units: usize = text.chars().map(char::len_utf16).sum();
                body.extend_from_slice(format!("{units}:").as_bytes());
            }
            _ if place > 0 => body.push(SEPARATOR),
            _ => {}
        }
        body.extend_from_slice(packet);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_apart() {
        let read = |text: &'static str| {
            let packet = parse(text.as_bytes())?;
            let text = |bytes| str::from_utf8(bytes).unwrap();
            Ok((
                packet.kind,
                packet.attachments,
                text(packet.namespace),
                packet.id,
                text(packet.data),
            ))
        };
        for (text, expect) in [
            ("0", Ok((Kind::Connect, 0, "/", None, ""))),
            ("0{\"sid\":\"x\"}", Ok((Kind::Connect, 0, "/", None, "{\"sid\":\"x\"}"))),
            ("0/chat", Ok((Kind::Connect, 0, "/chat", None, ""))),
            ("0/chat?token=1,", Ok((Kind::Connect, 0, "/chat", None, ""))),
            ("1/chat,", Ok((Kind::Disconnect, 0, "/chat", None, ""))),
            ("2[\"a\",1]", Ok((Kind::Event, 0, "/", None, "[\"a\",1]"))),
            ("2/chat,12[\"a\"]", Ok((Kind::Event, 0, "/chat", Some(12), "[\"a\"]"))),
            ("312[]", Ok((Kind::Ack, 0, "/", Some(12), "[]"))),
            ("4\"no\"", Ok((Kind::Error, 0, "/", None, "\"no\""))),
            ("52-[\"a\",{}]", Ok((Kind::Event, 2, "/", None, "[\"a\",{}]"))),
            ("61-/chat,7[{}]", Ok((Kind::Ack, 1, "/chat", Some(7), "[{}]"))),
            ("", Err("an empty packet")),
            ("7", Err("a packet of an unknown type")),
            ("3[]", Err("an acknowledgment without a number")),
            ("07", Err("a number where none belongs")),
            ("2{}", Err("a packet whose data is no list")),
            ("2[\"a\"", Err("a packet whose data is no list")),
            ("2[1]", Err("a packet whose data is no list")),
            ("5[\"a\"]", Err("a binary packet without its number of parts")),
            ("50-[\"a\"]", Err("a binary packet with too many parts, or none")),
            ("565-[\"a\"]", Err("a binary packet with too many parts, or none")),
            ("34294967296[]", Err("a number that is too large")),
            ("399999999999999999999[]", Err("a number that is too large")),
        ] {
            assert_eq!(read(text), expect, "{text}");
        }
    }

    #[test]
    fn payloads_are_read_as_they_are_written() {
        let packets = ["40", "42[\"é\u{1F600}\"]", "3"].map(|text| text.as_bytes().to_vec());
        for revision in [3, 4] {
            let body = payload(&packets, revision);
            let mut rest = &body[..];
            for packet in &packets {
                assert_eq!(next(&mut rest, revision), Ok(Part::Text(packet)), "{revision}");
            }
            assert!(rest.is_empty());
        }
        assert_eq!(payload(&packets[1..2], 3), "9:42[\"é\u{1F600}\"]".as_bytes());
        let hi = || Ok(Part::Binary(b"hi".to_vec()));
        assert_eq!(next(&mut &b"baGk="[..], 4), hi());
        assert_eq!(next(&mut &b"6:b4aGk="[..], 3), hi());
        for bad in ["9:42", "x", "99999999999:1", "1\u{e9}"] {
            assert!(next(&mut bad.as_bytes(), 3).is_err(), "{bad}");
        }
        assert!(next(&mut &b"b!"[..], 4).is_err());
        assert!(next(&mut "1:\u{1F600}".as_bytes(), 3).is_err(), "half a character");
    }
}
