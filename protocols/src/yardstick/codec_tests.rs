//! Both encodings of the yardstick protocol: golden bytes, equivalence, properties, garbage.
use super::*;
use crate::wire::rng::SplitMix;

fn encode_request(request: &Request<'_>, encoding: Encoding) -> Vec<u8> {
    let mut out = Vec::new();
    request.encode(encoding, &mut out);
    out
}

fn encode_frame(frame: &Frame<'_>, encoding: Encoding) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(encoding, &mut out);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ask(id: u32, what: RequestWhat<'static>) -> Request<'static> {
    Request { id, what: Some(what) }
}

fn tell(what: FrameWhat<'static>) -> Frame<'static> {
    Frame { what: Some(what) }
}

fn answer(id: u32, what: AnswerWhat<'static>) -> Frame<'static> {
    tell(FrameWhat::Answer(Answer { id, what: Some(what) }))
}

fn person(name: &'static str, status: &'static str) -> Person<'static> {
    Person { name: name.into(), status: status.into(), ..Person::default() }
}

fn picture() -> Bytes<'static> {
    Bytes(vec![1, 2, 255].into())
}

fn message(number: u32, text: &'static str) -> Message<'static> {
    let (room, sender) = ("live".into(), "ann".into());
    let at_ms = Millis(1_700_000_000_000);
    Message { room, number, sender, text: text.into(), at_ms, ..Message::default() }
}

fn requests() -> Vec<(Request<'static>, &'static str, &'static str)> {
    use RequestWhat as W;
    let room = || Text::from("live");
    let redeem = W::Login(Login { token: "a.1.x".into(), ..Login::default() });
    let revoke = W::Revoke(Revoke { token: "a.1.x".into() });
    vec![
        (
            ask(
                1,
                W::Login(Login { name: "ann".into(), password: "pw".into(), ..Login::default() }),
            ),
            r#"{"id":1,"login":{"name":"ann","password":"pw"}}"#,
            "080112090a03616e6e12027077",
        ),
        (ask(1, redeem), r#"{"id":1,"login":{"token":"a.1.x"}}"#, "080112071a05612e312e78"),
        (
            ask(1, W::Join(Join { room: room(), ..Join::default() })),
            r#"{"id":1,"join":{"room":"live"}}"#,
            "08011a060a046c697665",
        ),
        (
            ask(1, W::Join(Join { room: room(), avatars: true, ..Join::default() })),
            r#"{"id":1,"join":{"room":"live","avatars":true}}"#,
            "08011a080a046c6976652801",
        ),
        (
            ask(
                300,
                W::Join(Join {
                    room: room(),
                    status: "s".into(),
                    history: 100,
                    members: true,
                    ..Join::default()
                }),
            ),
            r#"{"id":300,"join":{"room":"live","status":"s","history":100,"members":true}}"#,
            "08ac021a0d0a046c69766512017318642001",
        ),
        (
            ask(2, W::Leave(Leave { room: room() })),
            r#"{"id":2,"leave":{"room":"live"}}"#,
            "080222060a046c697665",
        ),
        (
            ask(3, W::Say(Say { room: room(), text: "a\"\\\n\u{1}é".into(), ..Say::default() })),
            r#"{"id":3,"say":{"room":"live","text":"a\"\\\n\u0001é"}}"#,
            "08032a0f0a046c697665120761225c0a01c3a9",
        ),
        (
            ask(4, W::History(GetHistory { room: room(), before: 9, limit: 5 })),
            r#"{"id":4,"history":{"room":"live","before":9,"limit":5}}"#,
            "0804320a0a046c69766510091805",
        ),
        (
            ask(5, W::Members(GetMembers { room: room() })),
            r#"{"id":5,"members":{"room":"live"}}"#,
            "08053a060a046c697665",
        ),
        (
            ask(6, W::Typing(Typing { room: room(), ..Typing::default() })),
            r#"{"id":6,"typing":{"room":"live"}}"#,
            "080642060a046c697665",
        ),
        (
            ask(7, W::Read(Read { room: room(), number: 9, ..Read::default() })),
            r#"{"id":7,"read":{"room":"live","number":9}}"#,
            "08074a080a046c6976651009",
        ),
        (ask(8, W::Ping(Ping {})), r#"{"id":8,"ping":{}}"#, "08085200"),
        (
            ask(9, W::Avatar(GetAvatar { hash: "00ff".into() })),
            r#"{"id":9,"avatar":{"hash":"00ff"}}"#,
            "08095a060a0430306666",
        ),
        (ask(10, revoke), r#"{"id":10,"revoke":{"token":"a.1.x"}}"#, "080a62070a05612e312e78"),
        (Request::default(), "{}", ""),
    ]
}

fn frames() -> Vec<(Frame<'static>, &'static str, &'static str)> {
    vec![
        (
            tell(FrameWhat::Message(message(7, "hi"))),
            r#"{"message":{"room":"live","number":7,"sender":"ann","text":"hi","atMs":"1700000000000"}}"#,
            "0a180a046c69766510071a03616e6e2202686928 80d095ffbc31",
        ),
        (
            tell(FrameWhat::Presence(Presence {
                room: "live".into(),
                joined: vec![person("ann", "s"), person("bob", "")],
                left: vec!["cy".into()],
            })),
            r#"{"presence":{"room":"live","joined":[{"name":"ann","status":"s"},{"name":"bob"}],"left":["cy"]}}"#,
            "121b0a046c69766512080a03616e6e12017312050a03626f621a026379",
        ),
        (
            tell(FrameWhat::Presence(Presence {
                joined: vec![Person {
                    avatar: picture(),
                    avatar_hash: "ab".into(),
                    ..person("a", "")
                }],
                ..Presence::default()
            })),
            r#"{"presence":{"joined":[{"name":"a","avatar":"AQL/","avatarHash":"ab"}]}}"#,
            "120e120c0a01611a030102ff22026162",
        ),
        (
            tell(FrameWhat::Typing(Typing { room: "live".into(), name: "ann".into() })),
            r#"{"typing":{"room":"live","name":"ann"}}"#,
            "220b0a046c6976651203616e6e",
        ),
        (
            tell(FrameWhat::Read(Read { room: "live".into(), number: 9, name: "ann".into() })),
            r#"{"read":{"room":"live","number":9,"name":"ann"}}"#,
            "2a0d0a046c69766510091a03616e6e",
        ),
    ]
}

fn answers() -> Vec<(Frame<'static>, &'static str, &'static str)> {
    use AnswerWhat as A;
    let at_ms = Millis(1_700_000_000_000);
    vec![
        (
            answer(1, A::Error(Error { code: "denied".into(), text: "no".into() })),
            r#"{"answer":{"id":1,"error":{"code":"denied","text":"no"}}}"#,
            "1a100801120c0a0664656e69656412026e6f",
        ),
        (
            answer(
                1,
                A::Welcome(Welcome {
                    name: "a".into(),
                    token: "t".into(),
                    expires_ms: Millis(5),
                    told: 0,
                }),
            ),
            r#"{"answer":{"id":1,"welcome":{"name":"a","token":"t","expiresMs":"5"}}}"#,
            "1a0c08011a080a01611201741805",
        ),
        (
            answer(
                2,
                A::Joined(Joined {
                    number: 1,
                    messages: vec![message(1, "x")],
                    people: vec![person("b", "")],
                    ..Joined::default()
                }),
            ),
            r#"{"answer":{"id":2,"joined":{"number":1,"messages":[{"room":"live","number":1,"sender":"ann","text":"x","atMs":"1700000000000"}],"people":[{"name":"b"}]}}}"#,
            "1a2408022220080112170a046c69766510011a03616e6e2201782880d095ffbc311a030a0162",
        ),
        (answer(3, A::Done(Done {})), r#"{"answer":{"id":3,"done":{}}}"#, "1a0408032a00"),
        (
            answer(4, A::Said(Said { number: 7, at_ms })),
            r#"{"answer":{"id":4,"said":{"number":7,"atMs":"1700000000000"}}}"#,
            "1a0d080432090807 1080d095ffbc31",
        ),
        (
            answer(5, A::History(History { messages: vec![Message::default()] })),
            r#"{"answer":{"id":5,"history":{"messages":[{}]}}}"#,
            "1a0608053a020a00",
        ),
        (
            answer(6, A::Members(Members { people: vec![person("b", "")] })),
            r#"{"answer":{"id":6,"members":{"people":[{"name":"b"}]}}}"#,
            "1a09080642050a030a0162",
        ),
        (
            answer(7, A::Pong(Pong { at_ms: Millis(1) })),
            r#"{"answer":{"id":7,"pong":{"atMs":"1"}}}"#,
            "1a0608074a020801",
        ),
        (
            answer(8, A::Avatar(Avatar { picture: picture() })),
            r#"{"answer":{"id":8,"avatar":{"picture":"AQL/"}}}"#,
            "1a09080852050a030102ff",
        ),
    ]
}

#[test]
fn requests_have_golden_bytes_in_both_encodings() {
    for (request, json, proto) in requests() {
        let bytes = encode_request(&request, Encoding::Json);
        assert_eq!(String::from_utf8(bytes.clone()).unwrap(), json);
        assert_eq!(Request::decode(Encoding::Json, &bytes), Ok(request.clone()));
        let bytes = encode_request(&request, Encoding::Proto);
        assert_eq!(hex(&bytes), proto, "{json}");
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

fn random_frame(rng: &mut SplitMix) -> Frame<'static> {
    fn message(rng: &mut SplitMix) -> Message<'static> {
        Message {
            room: random_text(rng),
            number: rng.next_u64() as u32,
            sender: random_text(rng),
            text: random_text(rng),
            at_ms: Millis(rng.next_u64()),
            ..Message::default()
        }
    }
    let person = |rng: &mut SplitMix| {
        let length = rng.below(9);
        Person {
            name: random_text(rng),
            status: random_text(rng),
            avatar: Bytes(rng.bytes(length).into()),
            avatar_hash: random_text(rng),
        }
    };
    let what = match rng.below(3) {
        0 => FrameWhat::Message(message(rng)),
        1 => FrameWhat::Presence(Presence {
            room: random_text(rng),
            joined: (0..rng.below(4)).map(|_| person(rng)).collect(),
            left: (0..rng.below(4)).map(|_| random_text(rng)).collect(),
        }),
        _ => FrameWhat::Answer(Answer {
            id: rng.next_u64() as u32,
            what: Some(AnswerWhat::Joined(Joined {
                number: rng.below(3) as u32,
                messages: (0..rng.below(4)).map(|_| message(rng)).collect(),
                people: (0..rng.below(4)).map(|_| person(rng)).collect(),
                ..Joined::default()
            })),
        }),
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
    assert_eq!(kinds.len(), 20, "there is an example of every request");
}
