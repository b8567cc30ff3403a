//! A tiny yardstick in memory for the conformance suite: one person, one room, a lively target.

use super::{
    Answer, AnswerWhat, Avatar, Bytes, Change, Done, Encoding, Error, Frame, FrameWhat, History,
    Joined, Members, Message, Millis, Person, Pong, Presence, Read, Request, RequestWhat, Rights,
    Rooms, Said, Typing, Welcome, Yardstick,
};
use crate::conformance::rig::LIST;
use crate::conformance::{Peer, Row};
use crate::wire::deflate::{self, Inflated};
use crate::wire::frame::{self, Limits};
use crate::wire::http;
use model::{Features, RoomName};

/// A stamp of the suite's run.
const PAST: &str = "~thrAADAAACAAAAAAAAAABAAAAAKAAAAFaKY";
/// The same in the suite's list.
const TOLD: &str = "~thrAADAAAHAAAAAAAAAABAAAAAKAAAAF2Pp";
const ROOM: RoomName<'static> = RoomName { id: 2, name: "live" };

/// The target of one person.
struct Fake {
    encoding: Encoding,
    deflate: bool,
    inbox: Vec<u8>,
    is_upgraded: bool,
    /// Whole messages for the person.
    out: Vec<Vec<u8>>,
}

impl Peer for Fake {
    fn receive(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.inbox.extend_from_slice(bytes);
        let mut inbox = std::mem::take(&mut self.inbox);
        let mut at = 0;
        if !self.is_upgraded {
            let head = http::read_request(&inbox).unwrap().unwrap();
            let handshake = head.upgrade.unwrap();
            assert_eq!(handshake.protocols().next(), Some(self.encoding.subprotocol()));
            let mut answer = Vec::new();
            assert_eq!(handshake.offers_deflate, self.deflate);
            handshake.accept_with(&mut answer, Some(self.encoding.subprotocol()), self.deflate);
            self.out.push(answer);
            self.is_upgraded = true;
            at = head.consumed;
        }
        let limits = Limits::SERVER.with_compression(self.deflate);
        while let Some((part, used)) = frame::decode_masked(&mut inbox[at..], limits).unwrap() {
            let mut inflated = Inflated::default();
            let payload = match part.compressed {
                true => inflated.inflate(part.payload, limits.message_bytes_max).unwrap(),
                false => part.payload,
            };
            if part.opcode == self.encoding.opcode() {
                self.request(payload);
            }
            at += used;
        }
        self.inbox = inbox.split_off(at);
        std::mem::take(&mut self.out)
    }
}

impl Fake {
    fn row_peer(encoding: Encoding, deflate: bool) -> Box<dyn Peer> {
        let (inbox, out) = (Vec::new(), Vec::new());
        Box::new(Fake { encoding, deflate, inbox, is_upgraded: false, out })
    }

    fn tell(&mut self, what: FrameWhat<'_>) {
        let mut payload = Vec::new();
        Frame { what: Some(what) }.encode(self.encoding, &mut payload);
        let mut bytes = Vec::new();
        match self.deflate {
            true => deflate::write_frame(&mut bytes, self.encoding.opcode(), &payload, None),
            false => frame::write_frame(&mut bytes, self.encoding.opcode(), &payload, None),
        }
        // Otherwise nobody would know what a compressed delivery does.
        let is_compressed = bytes[0] & 0x40 != 0;
        let is_long = payload.len() > 80;
        assert!(!is_long || is_compressed == self.deflate, "{} bytes", payload.len());
        self.out.push(bytes);
    }

    fn request(&mut self, payload: &[u8]) {
        let request = Request::decode(self.encoding, payload).unwrap();
        let what = request.what.unwrap();
        if let RequestWhat::Say(say) = &what {
            self.tell(FrameWhat::Message(message("live", &say.text)));
        }
        if let RequestWhat::Tell(tell) = &what {
            assert!(!tell.to.is_empty() && tell.to.iter().all(|name| &**name != "ann"));
            self.tell(FrameWhat::Message(message("", &tell.text)));
        }
        let is_say = matches!(what, RequestWhat::Say(_));
        self.tell(FrameWhat::Answer(Answer { id: request.id, what: Some(answer(what)) }));
        // What the person says is followed by what a target does of its own accord.
        if is_say {
            self.tell(FrameWhat::Typing(Typing { room: "live".into(), name: "bob".into() }));
            self.tell(FrameWhat::Message(message("live", "hi")));
            self.tell(FrameWhat::Presence(Presence {
                room: "live".into(),
                joined: vec![person("cid", PAST)],
                left: vec!["dan".into()],
            }));
            let read = Read { room: "live".into(), number: 2, name: "bob".into() };
            self.tell(FrameWhat::Read(read));
            // An edited message is no delivery, whatever its text.
            let (room, name, text) = ("live".into(), "bob".into(), PAST.into());
            self.tell(FrameWhat::Change(Change {
                room,
                number: 2,
                name,
                text,
                ..Change::default()
            }));
        }
    }
}

/// Somebody whose picture is to be asked for.
fn person(name: &'static str, status: &'static str) -> Person<'static> {
    let avatar_hash = format!("hash of {name}").into();
    Person { name: name.into(), status: status.into(), avatar_hash, avatar: Bytes::default() }
}

fn message<'a>(room: &'a str, text: &'a str) -> Message<'a> {
    Message {
        room: room.into(),
        number: 2,
        sender: "bob".into(),
        text: text.into(),
        at_ms: Millis(1_700_000_000_000),
        ..Message::default()
    }
}

/// What a fair target answers. Messages of the past carry stamps and are no deliveries.
fn answer(request: RequestWhat<'_>) -> AnswerWhat<'static> {
    let people = || vec![person("bob", PAST), person("eve", "")];
    match request {
        // What a token says was said to another target.
        RequestWhat::Login(login) if !login.token.is_empty() => {
            AnswerWhat::Error(Error { code: "denied".into(), text: "unknown token".into() })
        }
        RequestWhat::Login(login) => AnswerWhat::Welcome(Welcome {
            name: login.name.to_string().into(),
            token: "t.1.x".into(),
            expires_ms: Millis(1_800_000_000_000),
            told: 0,
        }),
        RequestWhat::Join(join) => {
            assert!(join.members && join.avatars && join.history > 0, "all features are on");
            let messages = vec![message("", PAST), message("", "hello")];
            let people = people();
            AnswerWhat::Joined(Joined { number: 1, messages, people, ..Joined::default() })
        }
        RequestWhat::Say(_) | RequestWhat::Tell(_) => {
            AnswerWhat::Said(Said { number: 2, at_ms: Millis(1_700_000_000_001) })
        }
        RequestWhat::History(_) => {
            AnswerWhat::History(History { messages: vec![message("", PAST)] })
        }
        RequestWhat::Members(_) => AnswerWhat::Members(Members { people: people() }),
        RequestWhat::Leave(_)
        | RequestWhat::Typing(_)
        | RequestWhat::Read(_)
        | RequestWhat::Revoke(_)
        | RequestWhat::Edit(_)
        | RequestWhat::Delete(_)
        | RequestWhat::React(_)
        | RequestWhat::Create(_)
        | RequestWhat::Configure(_)
        | RequestWhat::Grant(_)
        | RequestWhat::Kick(_) => AnswerWhat::Done(Done {}),
        RequestWhat::Rights(_) => AnswerWhat::Rights(Rights::default()),
        RequestWhat::Rooms(_) => AnswerWhat::Rooms(Rooms::default()),
        RequestWhat::Ping(_) => AnswerWhat::Pong(Pong { at_ms: Millis(1_700_000_000_002) }),
        RequestWhat::Avatar(_) => {
            AnswerWhat::Avatar(Avatar { picture: Bytes(PAST.as_bytes().into()) })
        }
    }
}

/// The protocol's part in the conformance suite: a row for each encoding, without and with
/// compression.
pub(crate) fn rows() -> [Row; 4] {
    use Encoding::{Json, Proto};
    [
        row(&[("codec", "json")], Json, || Fake::row_peer(Json, false), forbidden_json),
        row(&[], Proto, || Fake::row_peer(Proto, false), forbidden_proto),
        row(
            &[("codec", "json"), ("deflate", "on")],
            Json,
            || Fake::row_peer(Json, true),
            forbidden_json,
        ),
        row(&[("deflate", "on")], Proto, || Fake::row_peer(Proto, true), forbidden_proto),
    ]
}

fn row(
    options: &'static [(&'static str, &'static str)],
    encoding: Encoding,
    peer: fn() -> Box<dyn Peer>,
    forbidden: fn() -> Vec<(&'static str, Vec<u8>)>,
) -> Row {
    use model::Request;
    Row {
        protocol: &Yardstick,
        url: "ws://127.0.0.1:4000/ws",
        options,
        features: Features(0b1111),
        opcode: encoding.opcode(),
        wrap: None,
        peer,
        deeds: &[
            Request::Login { name: "ann", password: "secret" },
            Request::Join { room: ROOM, nick: "ann", status: PAST },
            Request::Say { room: ROOM, text: PAST },
            Request::History { room: ROOM, limit: 50 },
            Request::Members { room: ROOM },
            Request::Join { room: LIST, nick: "ann", status: "" },
            Request::Tell { list: LIST, text: TOLD },
            Request::Multicast { list: LIST, text: TOLD },
            Request::Leave { room: LIST },
            Request::Typing { room: ROOM },
            Request::Read { room: ROOM },
            Request::Ping,
            Request::Leave { room: ROOM },
            Request::Disconnect,
        ],
        forbidden,
    }
}

/// An answer of that content to a request of that number, as a target would write it.
fn answer_bytes(encoding: Encoding, id: u32, what: AnswerWhat<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    let answer = Answer { id, what: Some(what) };
    Frame { what: Some(FrameWhat::Answer(answer)) }.encode(encoding, &mut payload);
    payload
}

/// Answers that nobody can have asked for.
fn unasked(encoding: Encoding) -> Vec<(&'static str, Vec<u8>)> {
    let refusal = Error { code: "full".into(), text: "too many".into() };
    vec![
        ("an answer to nobody", answer_bytes(encoding, 77, AnswerWhat::Done(Done {}))),
        ("a refusal of nothing", answer_bytes(encoding, 77, AnswerWhat::Error(refusal))),
        ("an answer twice", answer_bytes(encoding, 1, AnswerWhat::Done(Done {}))),
    ]
}

fn forbidden_json() -> Vec<(&'static str, Vec<u8>)> {
    let nest = |open: &str| format!("{{\"answer\":{{\"x\":{}", open.repeat(2_000)).into_bytes();
    let mut all = unasked(Encoding::Json);
    all.extend([
        ("nothing", Vec::new()),
        ("text", b"hello".to_vec()),
        ("an empty object", b"{}".to_vec()),
        ("another kind", b"{\"zebra\":{}}".to_vec()),
        ("deep lists", nest("[")),
        ("deep objects", nest("{\"x\":")),
        ("no end", b"{\"answer\":{\"id\":7,\"done\":{}".to_vec()),
        ("two documents", b"{\"answer\":{\"id\":7,\"done\":{}}}{}".to_vec()),
        ("a huge number", b"{\"answer\":{\"id\":4294967296,\"done\":{}}}".to_vec()),
        ("a negative number", b"{\"answer\":{\"id\":-1,\"done\":{}}}".to_vec()),
        ("half a surrogate", b"{\"answer\":{\"id\":7,\"error\":{\"code\":\"\\ud800\"}}}".to_vec()),
        ("no UTF-8", b"{\"answer\":{\"id\":7,\"error\":{\"code\":\"\xff\"}}}".to_vec()),
    ]);
    all
}

fn forbidden_proto() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = unasked(Encoding::Proto);
    all.extend([
        ("nothing", Vec::new()),
        ("text", b"hello".to_vec()),
        ("field 0", vec![0x1a, 2, 0x00, 0x00]),
        ("a group", vec![0x1a, 1, 0x0b]),
        ("an endless number", [&[0x1a, 12, 0x08][..], &[0xff; 11]].concat()),
        ("a length beyond the end", vec![0x1a, 0x7f, 0x08, 7]),
        ("a length of 2^63", vec![0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
        ("no UTF-8", vec![0x1a, 7, 0x08, 7, 0x12, 3, 0x0a, 1, 0xff]),
        ("a number for a message", vec![0x18, 7]),
        ("an empty answer", vec![0x1a, 2, 0x08, 7]),
    ]);
    all
}
