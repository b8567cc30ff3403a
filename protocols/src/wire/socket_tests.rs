//! A client's WebSocket against bytes of a target, as a table.

use super::*;
use model::Rng;

const BYTES_MAX: usize = 64;
const OFFERED: &[&str] = &["one", "two"];

/// An input, fit to be compared and kept.
#[derive(Debug, PartialEq)]
enum Seen {
    Opened(Option<String>),
    Text(Vec<u8>),
    Binary(Vec<u8>),
    Nothing,
    Closed(String),
    Broken(FaultClass, String),
}

/// A socket and what it had to say.
struct Rig {
    socket: Socket,
    fx: Effects,
    seen: Vec<Seen>,
    carry: Vec<u8>,
    bytes_max: usize,
}

impl Rig {
    /// A socket whose upgrade has been asked for.
    fn asked(offered: &[&str]) -> Rig {
        let endpoint = Endpoint::parse("ws://h:1/p").unwrap();
        let mut fx = Effects::new(1, Rng::new(4, 0));
        let mut socket = Socket::default();
        socket.upgrade(&endpoint, &[("Origin", "http://h")], offered, &mut fx).unwrap();
        Rig { socket, fx, seen: Vec::new(), carry: Vec::new(), bytes_max: BYTES_MAX }
    }

    /// A socket that is open.
    fn open() -> Rig {
        let mut rig = Rig::asked(OFFERED);
        let answer = rig.answer(Some("one"));
        rig.feed(&answer, OFFERED);
        assert_eq!(rig.seen, [Seen::Opened(Some("one".into()))]);
        assert_eq!(rig.fx.events, [Event::Connected]);
        rig.seen.clear();
        rig
    }

    /// A fair answer to the upgrade.
    fn answer(&mut self, protocol: Option<&str>) -> Vec<u8> {
        let request = std::mem::take(&mut self.fx.out);
        let head = http::read_request(&request).unwrap().unwrap();
        assert_eq!((head.path, head.consumed), ("/p", request.len()));
        let mut answer = Vec::new();
        head.upgrade.unwrap().accept(&mut answer, protocol);
        answer
    }

    fn feed(&mut self, bytes: &[u8], offered: &[&str]) {
        self.carry.extend_from_slice(bytes);
        loop {
            let carry = std::mem::take(&mut self.carry);
            let (mut inflated, fx) = (Inflated::default(), &mut self.fx);
            let (used, input) =
                self.socket.read(&carry, offered, self.bytes_max, &mut inflated, fx);
            let seen = match input {
                Input::More => None,
                Input::Opened(protocol) => Some(Seen::Opened(protocol.map(Into::into))),
                Input::Message(Opcode::Text, payload) => Some(Seen::Text(payload.into())),
                Input::Message(_, payload) => Some(Seen::Binary(payload.into())),
                Input::Nothing => Some(Seen::Nothing),
                Input::Closed(fault) => {
                    assert_eq!(fault.class, FaultClass::Closed);
                    Some(Seen::Closed(fault.detail))
                }
                Input::Broken(fault) => Some(Seen::Broken(fault.class, fault.detail)),
            };
            self.carry = carry[used..].to_vec();
            let Some(seen) = seen else { return assert_eq!(used, 0) };
            let is_end = matches!(seen, Seen::Closed(_) | Seen::Broken(..));
            self.seen.push(seen);
            if is_end {
                return;
            }
        }
    }

    /// The frames that were written, unmasked.
    fn written(&mut self) -> Vec<(Opcode, Vec<u8>)> {
        let mut out = std::mem::take(&mut self.fx.out);
        let (mut frames, mut at) = (Vec::new(), 0);
        while let Some((part, used)) = frame::decode_masked(&mut out[at..], Limits::CLIENT).unwrap()
        {
            frames.push((part.opcode, part.payload.to_vec()));
            at += used;
        }
        assert_eq!(at, out.len());
        frames
    }
}

fn part(fin: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_part(&mut bytes, fin, opcode, payload, None);
    bytes
}

fn close(code: u16, reason: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_close(&mut bytes, code, reason, None);
    bytes
}

fn code(code: u16) -> (Opcode, Vec<u8>) {
    (Opcode::Close, code.to_be_bytes().to_vec())
}

#[test]
fn upgrades() {
    let rows: [(&[&str], Option<&str>, Seen); 6] = [
        (OFFERED, Some("one"), Seen::Opened(Some("one".into()))),
        (OFFERED, Some("two"), Seen::Opened(Some("two".into()))),
        (&[], None, Seen::Opened(None)),
        (
            OFFERED,
            None,
            Seen::Broken(
                FaultClass::Upgrade,
                "the upgrade was accepted without the subprotocol one or two".into(),
            ),
        ),
        (
            OFFERED,
            Some("three"),
            Seen::Broken(
                FaultClass::Upgrade,
                "the server chose the subprotocol \"three\", which was not offered".into(),
            ),
        ),
        (
            &[],
            Some("one"),
            Seen::Broken(
                FaultClass::Upgrade,
                "the server chose the subprotocol \"one\", which was not offered".into(),
            ),
        ),
    ];
    for (offered, chosen, expect) in rows {
        let mut rig = Rig::asked(offered);
        let answer = rig.answer(chosen);
        let (head, last) = answer.split_at(answer.len() - 1);
        rig.feed(head, offered);
        assert_eq!((rig.seen.len(), rig.fx.events.len()), (0, 0), "it is not whole");
        rig.feed(last, offered);
        let is_open = matches!(expect, Seen::Opened(_));
        assert_eq!(rig.fx.events.contains(&Event::Connected), is_open, "{offered:?} {chosen:?}");
        assert_eq!(rig.seen, [expect], "{offered:?} {chosen:?}");
        assert_eq!(rig.written(), [], "nothing is said to somebody who speaks no WebSocket");
    }
}

#[test]
fn upgrades_that_cannot_be_asked_for() {
    let endpoint = Endpoint::parse("ws://h/a b").unwrap();
    let mut fx = Effects::new(1, Rng::new(4, 0));
    let fault = Socket::default().upgrade(&endpoint, &[], OFFERED, &mut fx).unwrap_err();
    assert_eq!(fault.class, FaultClass::Upgrade);
    assert_eq!((fx.out.len(), fx.close), (0, None));
}

/// A name, what arrives once the socket is open (in pieces), what is seen of it, and what is
/// answered.
type Case = (&'static str, Vec<Vec<u8>>, Vec<Seen>, Vec<(Opcode, Vec<u8>)>);

/// A message of the largest size, and one byte more.
const LONG: [u8; BYTES_MAX + 1] = [b'x'; BYTES_MAX + 1];

fn good_cases() -> Vec<Case> {
    let text = |text: &str| Seen::Text(text.into());
    let longest = &LONG[1..];
    vec![
        ("text", vec![part(true, Opcode::Text, b"hi")], vec![text("hi")], vec![]),
        ("empty", vec![part(true, Opcode::Text, b"")], vec![text("")], vec![]),
        ("binary", vec![part(true, Opcode::Binary, b"\0")], vec![Seen::Binary(vec![0])], vec![]),
        (
            "the longest",
            vec![part(true, Opcode::Binary, longest)],
            vec![Seen::Binary(longest.to_vec())],
            vec![],
        ),
        (
            "ping",
            vec![part(true, Opcode::Ping, b"abc")],
            vec![Seen::Nothing],
            vec![(Opcode::Pong, b"abc".to_vec())],
        ),
        ("pong", vec![part(true, Opcode::Pong, b"abc")], vec![Seen::Nothing], vec![]),
        (
            "parts with a ping between them, then a whole one",
            vec![
                part(false, Opcode::Text, b"a"),
                part(true, Opcode::Ping, b""),
                part(false, Opcode::Continuation, b"b"),
                part(true, Opcode::Continuation, b"c"),
                part(true, Opcode::Text, b"d"),
            ],
            vec![Seen::Nothing, Seen::Nothing, Seen::Nothing, text("abc"), text("d")],
            vec![(Opcode::Pong, vec![])],
        ),
    ]
}

fn close_cases() -> Vec<Case> {
    let closed = |detail: &str| vec![Seen::Closed(detail.into())];
    vec![
        (
            "close",
            vec![close(1001, "going\nhome"), part(true, Opcode::Text, b"too late")],
            closed("the target closed the WebSocket: 1001 going home"),
            vec![code(1000)],
        ),
        (
            "close without a reason",
            vec![close(1000, "")],
            closed("the target closed the WebSocket: 1000"),
            vec![code(1000)],
        ),
        (
            "close without a code",
            vec![part(true, Opcode::Close, b"")],
            closed("the target closed the WebSocket"),
            vec![code(1000)],
        ),
    ]
}

fn bad_cases() -> Vec<Case> {
    use FaultClass::{Protocol, TooLarge};
    let broken = |class, detail: &str| vec![Seen::Broken(class, detail.into())];
    let (long, longest) = (&LONG, &LONG[1..]);
    vec![
        (
            "close with half a code",
            vec![part(true, Opcode::Close, b"\x03")],
            broken(Protocol, "malformed WebSocket close frame"),
            vec![code(1002)],
        ),
        (
            "too long",
            vec![part(true, Opcode::Text, long)],
            broken(TooLarge, "WebSocket message of 65 bytes where 64 are allowed"),
            vec![code(1009)],
        ),
        (
            "too long in parts",
            vec![part(false, Opcode::Text, longest), part(true, Opcode::Continuation, b"x")],
            vec![
                Seen::Nothing,
                Seen::Broken(TooLarge, "WebSocket message of 65 bytes where 64 are allowed".into()),
            ],
            vec![code(1009)],
        ),
        (
            "a rest of nothing",
            vec![part(true, Opcode::Continuation, b"x")],
            broken(Protocol, "WebSocket Continuation frame out of sequence"),
            vec![code(1002)],
        ),
        (
            "masked",
            vec![vec![0x81, 0x80, 1, 2, 3, 4]],
            broken(Protocol, "the server sent a masked WebSocket frame"),
            vec![code(1002)],
        ),
    ]
}

#[test]
fn conversations() {
    let cases = [good_cases(), close_cases(), bad_cases()];
    for (name, pieces, expect, answered) in cases.into_iter().flatten() {
        let mut rig = Rig::open();
        pieces.iter().for_each(|piece| {
            if !matches!(rig.seen.last(), Some(Seen::Closed(_) | Seen::Broken(..))) {
                rig.feed(piece, OFFERED);
            }
        });
        assert_eq!(rig.seen, expect, "{name}");
        assert_eq!(rig.written(), answered, "{name}");
        let mut torn = Rig::open();
        for byte in pieces.concat() {
            if !matches!(torn.seen.last(), Some(Seen::Closed(_) | Seen::Broken(..))) {
                torn.feed(&[byte], OFFERED);
            }
        }
        assert_eq!((torn.seen, !torn.fx.out.is_empty()), (expect, !answered.is_empty()), "{name}");
    }
}

#[test]
fn what_is_written_is_masked_with_changing_keys() {
    let mut rig = Rig::open();
    write(Opcode::Text, b"hello", &mut rig.fx);
    write(Opcode::Text, b"hello", &mut rig.fx);
    let (first, second) = rig.fx.out.split_at(rig.fx.out.len() / 2);
    assert_ne!(first, second);
    write_close(close_code::GOING_AWAY, &mut rig.fx);
    let hello = (Opcode::Text, b"hello".to_vec());
    assert_eq!(rig.written(), [hello.clone(), hello, code(1001)]);
}

#[test]
fn an_upgrade_forgets_what_was_before() {
    let mut rig = Rig::open();
    rig.feed(&part(false, Opcode::Text, b"unfinished"), OFFERED);
    let endpoint = Endpoint::parse("ws://h:1/p").unwrap();
    rig.socket.upgrade(&endpoint, &[], OFFERED, &mut rig.fx).unwrap();
    let answer = rig.answer(Some("two"));
    rig.seen.clear();
    rig.feed(&answer, OFFERED);
    rig.feed(&part(true, Opcode::Text, b"new"), OFFERED);
    assert_eq!(rig.seen, [Seen::Opened(Some("two".into())), Seen::Text(b"new".to_vec())]);
}

/// A socket that agreed to compression.
fn open_deflated() -> Rig {
    let endpoint = Endpoint::parse("ws://h:1/p").unwrap();
    let mut rig = Rig::asked(OFFERED);
    rig.fx.out.clear();
    rig.socket.upgrade_with(&endpoint, &[], OFFERED, true, &mut rig.fx).unwrap();
    let request = std::mem::take(&mut rig.fx.out);
    let handshake = http::read_request(&request).unwrap().unwrap().upgrade.unwrap();
    let mut answer = Vec::new();
    handshake.accept_with(&mut answer, Some("one"), true);
    rig.feed(&answer, OFFERED);
    assert_eq!(rig.seen, [Seen::Opened(Some("one".into()))]);
    rig.seen.clear();
    rig
}

#[test]
fn compressed_messages_are_inflated_within_bounds() {
    let compressed = |payload: &[u8]| {
        let mut bytes = Vec::new();
        frame::write_compressed(&mut bytes, Opcode::Text, payload, None);
        bytes
    };
    let hello: &[u8] = &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let mut first = part(false, Opcode::Text, &hello[..3]);
    first[0] |= 0x40;
    let parts =
        [first, part(true, Opcode::Ping, b"?"), part(true, Opcode::Continuation, &hello[3..])];
    let mut marked = part(false, Opcode::Text, b"a");
    marked.extend(part(true, Opcode::Continuation, b"b"));
    marked[3] |= 0x40; // only the first part of a message is marked
    let mut ping = part(true, Opcode::Ping, b"");
    ping[0] |= 0x40;
    let mut bomb = Vec::new();
    deflate::write_frame(&mut bomb, Opcode::Text, &[b' '; 5_000], None);
    assert!(bomb.len() < BYTES_MAX);
    let (text, nothing) = (|text: &str| Seen::Text(text.into()), || Seen::Nothing);
    let broken = |class, detail: &str| Seen::Broken(class, detail.into());
    let bits = "WebSocket frame with reserved bits 0x40 that nothing agreed on allows";
    let rows: [(&str, Vec<u8>, Vec<Seen>); 7] = [
        ("compressed", compressed(hello), vec![text("Hello")]),
        ("not compressed", part(true, Opcode::Text, b"hi"), vec![text("hi")]),
        ("in parts", parts.concat(), vec![nothing(), nothing(), text("Hello")]),
        (
            "garbage",
            compressed(&[7, 7]),
            vec![broken(FaultClass::Protocol, "malformed compressed WebSocket message")],
        ),
        ("marked twice", marked, vec![nothing(), broken(FaultClass::Protocol, bits)]),
        ("a marked ping", ping, vec![broken(FaultClass::Protocol, bits)]),
        ("a bomb", bomb, Vec::new()),
    ];
    for (name, bytes, expect) in rows {
        for piece in [1, bytes.len()] {
            let mut rig = open_deflated();
            bytes.chunks(piece).for_each(|piece| rig.feed(piece, OFFERED));
            if name == "a bomb" {
                let is_fault = |seen: &Seen| matches!(seen, Seen::Broken(FaultClass::TooLarge, _));
                assert!(rig.seen.len() == 1 && is_fault(&rig.seen[0]), "{:?}", rig.seen);
                continue;
            }
            assert_eq!(rig.seen, expect, "{name}");
        }
    }
}

#[test]
fn what_is_said_is_compressed_where_that_is_shorter() {
    let mut rig = open_deflated();
    for (payload, is_shorter) in [("x".repeat(500), true), ("x".to_owned(), false)] {
        write_deflated(Opcode::Text, payload.as_bytes(), &mut rig.fx);
        let mut out = std::mem::take(&mut rig.fx.out);
        let limits = Limits::SERVER.with_compression(true);
        let (part, _) = frame::decode_masked(&mut out, limits).unwrap().unwrap();
        assert_eq!(part.compressed, is_shorter);
        if is_shorter {
            let mut inflated = Inflated::default();
            assert_eq!(inflated.inflate(part.payload, 500), Ok(payload.as_bytes()));
        }
    }
}
