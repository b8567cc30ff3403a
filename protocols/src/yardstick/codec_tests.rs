//! Both encodings of the yardstick protocol: golden bytes, equivalence, properties, garbage.
use super::golden::{answer, answers, ask, frames, message, requests};
use super::*;
use crate::wire::rng::SplitMix;

pub(super) fn encode_request(request: &Request<'_>, encoding: Encoding) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(encoding, &mut out);
    out
}

pub(super) fn encode_frame(frame: &Frame<'_>, encoding: Encoding) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(encoding, &mut out);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn requests_have_golden_bytes_in_both_encodings() {
    for (request, json, proto) in requests() {
        let bytes = encode_request(&request, Encoding::Json);
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), json);
        assert_eq!(Request::decode(Encoding::Json, &bytes), Ok(request.clone()));
        let bytes = encode_request(&request, Encoding::Proto);
        assert_eq!(hex(&bytes), proto.replace(' ', ""), "{json}");
        assert_eq!(Request::decode(Encoding::Proto, &bytes), Ok(request));
    }
}

#[test]
fn frames_have_golden_bytes_in_both_encodings_and_tell_what_they_are() {
    for (frame, json, proto) in frames().into_iter().chain(answers()) {
        let kind = match frame.what.as_ref().unwrap() {
            FrameWhat::Message(_) => Kind::Message,
            FrameWhat::Presence(_) => Kind::Presence,
            FrameWhat::Answer(_) => Kind::Answer,
            FrameWhat::Typing(_) => Kind::Typing,
            FrameWhat::Read(_) => Kind::Read,
            FrameWhat::Change(_) => Kind::Change,
            FrameWhat::Notice(_) => Kind::Notice,
        };
        let bytes = encode_frame(&frame, Encoding::Json);
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), json);
        assert_eq!(Encoding::Json.classify(&bytes), Some(kind));
        assert_eq!(Frame::decode(Encoding::Json, &bytes), Ok(frame.clone()));
        let bytes = encode_frame(&frame, Encoding::Proto);
        assert_eq!(hex(&bytes), proto.replace(' ', ""), "{json}");
        assert_eq!(Encoding::Proto.classify(&bytes), Some(kind));
        assert_eq!(Frame::decode(Encoding::Proto, &bytes), Ok(frame));
    }
    for encoding in Encoding::ALL {
        assert_eq!(encoding.classify(b""), None);
        assert_eq!(encoding.classify(b"{\"x\":1}"), None);
        assert_eq!(Encoding::of_subprotocol(encoding.subprotocol()), Some(encoding));
    }
    assert_eq!(Encoding::of_subprotocol("xmpp"), None);
}

#[test]
fn other_ways_to_write_the_same_json() {
    let join =
        ask(1, RequestWhat::Join(Join { room: "live".into(), history: 2, ..Join::default() }));
    let rows = [
        (r#"{"id":1,"join":{"room":"live","history":2}}"#, Some(&join)),
        (r#" { "join" : {"history":"2","room":"l\u0069ve"} , "id" : "1" } "#, Some(&join)),
        (r#"{"id":1,"new":[{"a":1}],"join":{"room":"live","history":2,"x":null}}"#, Some(&join)),
        (r#"{"id":1,"leave":null,"join":{"room":"live","history":2,"status":null}}"#, Some(&join)),
        (r#"{"id":1,"join":{"room":"live","history":-2}}"#, None),
        (r#"{"id":1,"join":{"room":"live","history":4294967296}}"#, None),
        (r#"{"id":1,"join":{"room":"live","history":2.5}}"#, None),
        (r#"{"id":1,"join":{"room":7}}"#, None),
        (r#"{"id":1,"join":[]}"#, None),
        (r#"{"id":1,"leave":{},"join":{"room":"live"}}"#, None),
        (r#"{"id":1} x"#, None),
        (r#"[1]"#, None),
        (r#"{"id":1"#, None),
        ("", None),
    ];
    for (text, expect) in rows {
        let found = Request::decode(Encoding::Json, text.as_bytes());
        assert_eq!(found.as_ref().ok(), expect, "{text}: {found:?}");
    }
    for (text, expect) in [
        ("AQL/", Some(&[1, 2, 255][..])),
        ("AQL_", Some(&[1, 2, 255])),
        ("AQI=", Some(&[1, 2])),
        ("AQI", Some(&[1, 2])),
        ("", Some(&[])),
        ("AQ L", None),
        ("A", None),
    ] {
        let json = format!(r#"{{"answer":{{"avatar":{{"picture":"{text}"}}}}}}"#);
        let found = Frame::decode(Encoding::Json, json.as_bytes());
        let avatar = |bytes: &[u8]| Avatar { picture: Bytes(bytes.to_vec().into()) };
        let expect = expect.map(|bytes| answer(0, AnswerWhat::Avatar(avatar(bytes))));
        assert_eq!(found.ok(), expect, "{text}");
    }
    let message = br#"{"message":{"at_ms":5}}"#;
    let Ok(Frame { what: Some(FrameWhat::Message(found)) }) =
        Frame::decode(Encoding::Json, message)
    else {
        panic!("not a message");
    };
    assert_eq!(found.at_ms, Millis(5));
}

#[test]
fn wrong_and_unknown_protobuf() {
    let rows: [(&[u8], Result<u32, DecodeError>); 9] = [
        (b"\x08\x05", Ok(5)),
        (b"\x08\x05\x08\x06", Ok(6)),     // the last one counts
        (b"\xa8\x06\x01\x08\x05", Ok(5)), // field 101 is skipped
        (b"\xad\x06\x01\x02\x03\x04\x08\x05", Ok(5)), // so is a fixed32
        (b"\x08", Err(DecodeError::Truncated)),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Err(DecodeError::BadVarint)),
        (b"\x00\x01", Err(DecodeError::BadVarint)),
        (b"\x0b", Err(DecodeError::BadWireType)),
        (b"\x2a\x03\x0a\x01\xff", Err(DecodeError::NotUtf8)),
    ];
    for (bytes, expect) in rows {
        let found = Request::decode(Encoding::Proto, bytes).map(|request| request.id);
        assert_eq!(found, expect, "{bytes:02x?}");
    }
    let many = Presence { left: vec![Text::default(); LIST_ITEMS_MAX + 1], ..Presence::default() };
    let many = Frame { what: Some(FrameWhat::Presence(many)) };
    for encoding in Encoding::ALL {
        let bytes = encode_frame(&many, encoding);
        assert!(Frame::decode(encoding, &bytes).is_err(), "{encoding:?}");
    }
}

#[test]
fn a_stamp_survives_verbatim() {
    let stamp = "~thr1.k3.r12.p00042.s0000007.c9A!#$%&'()*+,-./:;<=>?@[]^_`{|}";
    let mut said = message(1, "");
    said.text = stamp.into();
    let frame = Frame { what: Some(FrameWhat::Message(said)) };
    for encoding in Encoding::ALL {
        let bytes = encode_frame(&frame, encoding);
        let found = bytes.windows(stamp.len()).filter(|part| *part == stamp.as_bytes()).count();
        assert_eq!(found, 1, "{encoding:?}");
    }
}

fn random_text(rng: &mut SplitMix) -> Text<'static> {
    const PARTS: [&str; 9] = ["a", "\"", "\\", "\n", "\u{7f}", "é", "𝄞", "\0", "xyz "];
    let text: String = (0..rng.below(60)).map(|_| PARTS[rng.below(PARTS.len())]).collect();
    text.into()
}

fn random_list<T>(rng: &mut SplitMix, item: impl Fn(&mut SplitMix) -> T) -> Vec<T> {
    (0..rng.below(4)).map(|_| item(rng)).collect()
}

fn random_message(rng: &mut SplitMix) -> Message<'static> {
    let reaction = |rng: &mut SplitMix| Reaction {
        reaction: random_text(rng),
        names: random_list(rng, random_text),
    };
    Message {
        room: random_text(rng),
        number: rng.next_u64() as u32,
        sender: random_text(rng),
        text: random_text(rng),
        at_ms: Millis(rng.next_u64()),
        reply_to: rng.below(3) as u32,
        edited_ms: Millis(rng.below(2) as u64 * rng.next_u64()),
        deleted: rng.below(2) == 0,
        reactions: random_list(rng, reaction),
    }
}

fn random_read(rng: &mut SplitMix) -> Read<'static> {
    Read { room: random_text(rng), number: rng.next_u64() as u32, name: random_text(rng) }
}

fn random_person(rng: &mut SplitMix) -> Person<'static> {
    let length = rng.below(9);
    Person {
        name: random_text(rng),
        status: random_text(rng),
        avatar: Bytes(rng.bytes(length).into()),
        avatar_hash: random_text(rng),
    }
}

fn random_answer(rng: &mut SplitMix) -> AnswerWhat<'static> {
    let right = |rng: &mut SplitMix| Right { name: random_text(rng), role: random_text(rng) };
    let room = |rng: &mut SplitMix| Room {
        name: random_text(rng),
        number: rng.next_u64() as u32,
        people: rng.below(3) as u32,
        read: rng.below(3) as u32,
        private: rng.below(2) == 0,
        role: random_text(rng),
    };
    match rng.below(5) {
        0 => AnswerWhat::Joined(Joined {
            number: rng.below(3) as u32,
            messages: random_list(rng, random_message),
            people: random_list(rng, random_person),
            reads: random_list(rng, random_read),
            role: random_text(rng),
        }),
        1 => AnswerWhat::Rights(Rights {
            rights: random_list(rng, right),
            private: rng.below(2) == 0,
            slow_ms: rng.below(3) as u32,
        }),
        2 => AnswerWhat::Rooms(Rooms { rooms: random_list(rng, room) }),
        3 => AnswerWhat::Welcome(Welcome {
            name: random_text(rng),
            token: random_text(rng),
            expires_ms: Millis(rng.next_u64()),
            told: rng.below(3) as u32,
        }),
        _ => AnswerWhat::History(History { messages: random_list(rng, random_message) }),
    }
}

fn random_frame(rng: &mut SplitMix) -> Frame<'static> {
    let what = match rng.below(6) {
        0 => FrameWhat::Message(random_message(rng)),
        1 => FrameWhat::Presence(Presence {
            room: random_text(rng),
            joined: random_list(rng, random_person),
            left: random_list(rng, random_text),
        }),
        2 => FrameWhat::Change(Change {
            room: random_text(rng),
            number: rng.next_u64() as u32,
            name: random_text(rng),
            text: random_text(rng),
            deleted: rng.below(2) == 0,
            reaction: random_text(rng),
            removed: rng.below(2) == 0,
            at_ms: Millis(rng.next_u64()),
        }),
        3 => FrameWhat::Notice(Notice {
            room: random_text(rng),
            what: random_text(rng),
            name: random_text(rng),
            role: random_text(rng),
            by: random_text(rng),
            private: rng.below(2) == 0,
            slow_ms: rng.next_u64() as u32,
        }),
        4 => FrameWhat::Read(random_read(rng)),
        _ => {
            FrameWhat::Answer(Answer { id: rng.next_u64() as u32, what: Some(random_answer(rng)) })
        }
    };
    Frame { what: Some(what) }
}

#[test]
fn what_is_written_is_read_and_no_prefix_panics() {
    for seed in 0..500 {
        let mut rng = SplitMix::new(seed);
        let frame = random_frame(&mut rng);
        for encoding in Encoding::ALL {
            let bytes = encode_frame(&frame, encoding);
            assert_eq!(Frame::decode(encoding, &bytes).as_ref(), Ok(&frame), "seed {seed}");
            let cut = rng.below(bytes.len());
            let part = Frame::decode(encoding, &bytes[..cut]);
            assert_ne!(part.as_ref(), Ok(&frame), "seed {seed}, {cut} bytes");
        }
    }
}

#[test]
fn garbage_never_panics() {
    for seed in 0..5_000 {
        let mut rng = SplitMix::new(seed);
        for encoding in Encoding::ALL {
            let mut bytes = encode_frame(&random_frame(&mut rng), encoding);
            for _ in 0..1 + rng.below(5) {
                let at = rng.below(bytes.len());
                bytes[at] = rng.next_u64() as u8;
            }
            let _ = Frame::decode(encoding, &bytes);
            let _ = Request::decode(encoding, &bytes);
            let length = rng.below(30);
            let _ = Request::decode(encoding, &rng.bytes(length));
        }
    }
    let deep = "{\"x\":".repeat(100_000);
    assert!(Request::decode(Encoding::Json, deep.as_bytes()).is_err());
}

#[test]
fn the_examples_of_the_document_are_canonical() {
    let page = include_str!("../../../docs/yardstick.md");
    let mut kinds = std::collections::HashSet::new();
    for line in page.lines() {
        if let Some(json) = line.strip_prefix("→ ") {
            let request = Request::decode(Encoding::Json, json.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(encode_request(&request, Encoding::Json)).unwrap(), json);
            kinds.insert(std::mem::discriminant(&request.what.unwrap()));
        } else if let Some(json) = line.strip_prefix("← ") {
            let frame = Frame::decode(Encoding::Json, json.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(encode_frame(&frame, Encoding::Json)).unwrap(), json);
            assert!(frame.what.is_some(), "{json}");
        }
    }
    assert_eq!(kinds.len(), 21, "there is an example of every request");
}
