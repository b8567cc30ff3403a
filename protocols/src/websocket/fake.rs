//! Described servers in memory for the conformance suite: Phoenix-like in JSON, and a small one in
//! MessagePack and protobuf.

use super::WebSocket;
use super::compile::Compiled;
use super::piece::{Blanks, Piece, write};
use crate::conformance::{Peer, Row};
use crate::wire::frame::{self, Limits, Opcode};
use crate::wire::http;
use model::scenario::Scenario;
use model::script::{Codec, OPTION, Script};
use model::{Features, Request, RoomName};

/// A stamp of the suite's run.
const PAST: &str = "~thrAADAAACAAAAAAAAAABAAAAAKAAAAFaKY";
const ROOM: RoomName<'static> = RoomName { id: 2, name: "live" };

const PROTO: &str = "syntax = \"proto3\";\n\
    message Said { string text = 1; string room = 2; }\n\
    message Frame { string type = 1; uint32 id = 2; Said said = 3; bool ok = 4; string why = 5; }\n";

/// A description that has everything.
const DESCRIPTION: &str = r#"
websocket:
  proto: {file: x.proto, message: Frame}
  subprotocols: [chat.v2]
  headers: {Origin: "http://{name}.example"}
  opening:
    - {send: {type: hello, why: "{name}"}, answer: {type: hello}, refused: {type: no}}
  verbs:
    join: {send: {type: join, id: "{id as number}", why: "{room}"}, answer: {type: re, id: "{id}"}}
    leave: {send: {type: leave, id: "{id as number}", why: "{room}"}, answer: {type: re, id: "{id}"}}
    say:
      send: {type: say, id: "{id as number}", said: {text: "{text}", room: "{room}"}}
      answer: {type: re, id: "{id}", ok: "true"}
      refused: {type: re, id: "{id}", ok: "false"}
      why: why
    history: {send: {type: page, id: "{id as number}"}, answer: {type: re, id: "{id}"}}
    typing: {send: {type: typing}}
    ping: {send: {type: ping, id: "{id as number}"}, answer: {type: re, id: "{id}"}}
  history: [{type: past}]
  replies: [{when: {type: beat}, send: {type: beat, why: "{name}"}}]
  heartbeat: {every: 30s}
"#;

/// A description as the option that a session finds it in.
pub(crate) fn options(description: &str, proto: &str) -> String {
    let mut scenario = Scenario::parse("x.yaml", description).unwrap();
    scenario.include_proto(proto);
    let script = scenario.script().unwrap_or_else(|mistakes| {
        panic!("{}", mistakes.iter().map(ToString::to_string).collect::<String>())
    });
    serde_json::to_string(&script).unwrap()
}

/// A description of the documentation, by its number there.
pub(crate) fn example(number: usize) -> String {
    let page = include_str!("../../../docs/bring-your-own-protocol.md");
    let fence = page.split("```yaml\n").nth(number + 1).unwrap();
    options(fence.split("```").next().unwrap(), "")
}

/// Writes and reads what the peer says with the codecs under test, which have tests of their own.
struct Fake {
    codec: Codec,
    says: Compiled,
    inbox: Vec<u8>,
    is_upgraded: bool,
    out: Vec<Vec<u8>>,
}

/// What the peer says: each a verb of a description of the other side.
const OTHER_SIDE: &str = r#"
websocket:
  proto: {file: x.proto, message: Frame}
  verbs:
    join: {send: {type: hello}}
    say: {send: {type: said, said: {room: live, text: "{text}"}}}
    history: {send: {type: past, said: {room: live, text: "{text}"}}}
    read: {send: {type: re, id: "{limit as number}", ok: true, why: "{text}"}}
    typing: {send: {type: beat}}
"#;

impl Fake {
    fn fair(codec: Codec) -> Box<dyn Peer> {
        let script: Script = serde_json::from_str(&options(OTHER_SIDE, PROTO)).unwrap();
        let says = Compiled::of(&script, codec, false).unwrap();
        let (inbox, out) = (Vec::new(), Vec::new());
        Box::new(Fake { codec, says, inbox, is_upgraded: false, out })
    }

    fn tell(&mut self, verb: model::Measure, blanks: Blanks<'_>) {
        let found = self.says.verbs.iter().find(|(known, _)| *known == verb).unwrap();
        let pieces: &[Piece] = found.1.send.as_deref().unwrap();
        let (mut payload, mut bytes) = (Vec::new(), Vec::new());
        write(pieces, &blanks, &mut payload);
        frame::write_frame(&mut bytes, self.says.opcode(), &payload, None);
        self.out.push(bytes);
    }

    fn request(&mut self, payload: &[u8]) {
        use model::Measure::{History, Join, Read, Say, Typing};
        let path = |name: &str| match self.codec {
            Codec::Protobuf => super::proto::find(payload, &schema().way(name).unwrap()),
            Codec::Msgpack => super::msgpack::find(payload, &[name.into()]),
            _ => super::json::find(payload, &[name.into()]),
        };
        let kind = path("type").unwrap().text();
        let id: u32 = path("id").map_or(0, |id| id.text().parse().unwrap());
        let none = Blanks::default();
        match kind.as_str() {
            "hello" => {
                assert_eq!(path("why").unwrap().text(), "ann");
                self.tell(Typing, none);
                self.tell(Join, none);
            }
            "typing" => self.tell(Typing, none),
            "beat" => assert_eq!(path("why").unwrap().text(), "ann"),
            "join" => {
                self.tell(History, Blanks { text: PAST, ..none });
                self.tell(Read, Blanks { limit: id, text: PAST, ..none });
            }
            "say" => {
                self.tell(Say, Blanks { text: PAST, ..none });
                self.tell(Read, Blanks { limit: id, ..none });
                self.tell(Say, Blanks { text: "hi \"bob\"", ..none });
            }
            _ => self.tell(Read, Blanks { limit: id, ..none }),
        }
    }
}

fn schema() -> super::proto::Schema {
    let name = "Frame".to_owned();
    let proto = model::script::Proto { text: PROTO.into(), sent: name.clone(), received: name };
    super::proto::Schema::read(&proto).unwrap()
}

impl Peer for Fake {
    fn receive(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.inbox.extend_from_slice(bytes);
        let mut inbox = std::mem::take(&mut self.inbox);
        let mut at = 0;
        if !self.is_upgraded {
            let head = http::read_request(&inbox).unwrap().unwrap();
            let text = String::from_utf8_lossy(&inbox).into_owned();
            assert!(text.contains("Origin: http://ann.example\r\n"), "{text}");
            let mut answer = Vec::new();
            head.upgrade.unwrap().accept(&mut answer, Some("chat.v2"));
            self.out.push(answer);
            self.is_upgraded = true;
            at = head.consumed;
        }
        while let Some((part, used)) =
            frame::decode_masked(&mut inbox[at..], Limits::SERVER).unwrap()
        {
            if part.opcode == self.says.opcode() {
                self.request(part.payload);
            }
            at += used;
        }
        self.inbox = inbox.split_off(at);
        std::mem::take(&mut self.out)
    }
}

/// The protocol's part in the conformance suite: a row for each way of writing.
pub(crate) fn rows() -> [Row; 3] {
    [
        row(Codec::Json, "json", Opcode::Text, || Fake::fair(Codec::Json), forbidden_json),
        row(
            Codec::Msgpack,
            "msgpack",
            Opcode::Binary,
            || Fake::fair(Codec::Msgpack),
            forbidden_pack,
        ),
        row(
            Codec::Protobuf,
            "protobuf",
            Opcode::Binary,
            || Fake::fair(Codec::Protobuf),
            forbidden_proto,
        ),
    ]
}

fn row(
    _: Codec,
    name: &'static str,
    opcode: Opcode,
    peer: fn() -> Box<dyn Peer>,
    forbidden: fn() -> Vec<(&'static str, Vec<u8>)>,
) -> Row {
    // The suite lives as long as the process.
    let script: &'static str = options(DESCRIPTION, PROTO).leak();
    Row {
        protocol: &WebSocket,
        url: "ws://127.0.0.1:4000/ws",
        options: Box::leak(Box::new([(OPTION, script), ("codec", name)])),
        features: Features::default(),
        opcode,
        wrap: None,
        peer,
        deeds: &[
            Request::Login { name: "ann", password: "secret" },
            Request::Join { room: ROOM, nick: "ann", status: "" },
            Request::Say { room: ROOM, text: PAST },
            Request::History { room: ROOM, limit: 50 },
            Request::Typing { room: ROOM },
            Request::Ping,
            Request::Leave { room: ROOM },
            Request::Disconnect,
        ],
        forbidden,
    }
}

fn forbidden_json() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("nothing", Vec::new()),
        ("text", b"hello".to_vec()),
        ("deep lists", "[".repeat(5_000).into_bytes()),
        ("deep objects", "{\"x\":".repeat(2_000).into_bytes()),
        ("no end", b"{\"type\":\"re\"".to_vec()),
        ("two documents", b"{}{}".to_vec()),
        ("no UTF-8", b"{\"a\":\"\xff\"}".to_vec()),
    ]
}

fn forbidden_pack() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("nothing", Vec::new()),
        ("text", b"hello".to_vec()),
        ("a marker that is none", vec![0xC1]),
        ("a list of 2^32 - 1", vec![0xDD, 0xFF, 0xFF, 0xFF, 0xFF]),
        ("lists in lists", [0xDD, 0xFF, 0xFF, 0xFF, 0xFF].repeat(500)),
        ("a text without end", vec![0xDB, 0xFF, 0xFF, 0xFF, 0xFF, b'x']),
    ]
}

fn forbidden_proto() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("text", b"hello".to_vec()),
        ("field 0", vec![0x00, 0x00]),
        ("a group", vec![0x0b]),
        ("an endless number", [&[0x08][..], &[0xff; 11]].concat()),
        ("a length beyond the end", vec![0x1a, 0x7f, 0x08, 7]),
        ("a length of 2^63", vec![0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
    ]
}
