//! A tiny Socket.IO server in memory for the conformance suite: one person, one room, a lively
//! target, over WebSocket and over polling.

use super::packet::{self, Part};
use super::{SocketIo, packet::Kind};
use crate::conformance::{Peer, Row, Wrap};
use crate::wire::deflate::{self, Inflated};
use crate::wire::frame::{self, Limits, Opcode};
use crate::wire::http;
use model::{Features, Request, RoomName};
use std::collections::VecDeque;

/// A stamp of the suite's run.
const PAST: &str = "~thrAADAAACAAAAAAAAAABAAAAAKAAAAFaKY";
const ROOM: RoomName<'static> = RoomName { id: 2, name: "live" };
/// The dialect; `$done` answers what could also go without an answer. Over polling it does not:
/// what follows would wait for a moment, and the suite has no clock.
macro_rules! dialect {
    ($done:literal) => {
        concat!(
            r#"{"login": {"emit": ["hello", "{name}", "{password}"]},
            "join": {"emit": ["join", "{room}", "{nick} {status}"],
                     "done": {"event": "in", "with": "{room}"}},
            "leave": {"emit": ["leave", "{room}"]},
            "say": {"emit": ["say", {"room": "{room}", "text": "{text}"}], "refused": "\"no\""},
            "history": {"emit": ["past", "{room}", "{limit}"]},
            "members": {"emit": ["who", "{room}"]},
            "presence": {"emit": ["mood", "{status}"], "done": ""#,
            $done,
            r#""},
            "typing": {"emit": ["typing", "{room}"], "done": ""#,
            $done,
            r#""},
            "read": {"emit": ["read", "{room}"]},
            "ping": {"emit": "sign"},
            "deliveries": ["says"],
            "announcements": ["came"],
            "echo": true}"#
        )
    };
}
const OPEN: &str =
    r#"0{"sid":"a-Z_9","upgrades":["websocket"],"pingInterval":25000,"pingTimeout":20000}"#;

/// The target of one person.
struct Fake {
    revision: u8,
    namespace: &'static str,
    deflate: bool,
    inbox: Vec<u8>,
    /// Packets go in frames.
    is_upgraded: bool,
    /// Packets for the next poll.
    waiting: Vec<Vec<u8>>,
    /// Requests of the polling to be answered in order: polls, or not.
    asked: VecDeque<bool>,
    /// Whole messages for the person.
    out: Vec<Vec<u8>>,
}

impl Peer for Fake {
    fn receive(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.inbox.extend_from_slice(bytes);
        while !self.is_upgraded && self.request() {}
        if self.is_upgraded {
            self.frames();
        } else {
            self.answer();
        }
        std::mem::take(&mut self.out)
    }
}

impl Fake {
    fn peer(revision: u8, namespace: &'static str, deflate: bool) -> Box<dyn Peer> {
        Box::new(Fake {
            revision,
            namespace,
            deflate,
            inbox: Vec::new(),
            is_upgraded: false,
            waiting: Vec::new(),
            asked: VecDeque::new(),
            out: Vec::new(),
        })
    }

    /// Takes one HTTP request; whether there was one.
    fn request(&mut self) -> bool {
        let inbox = std::mem::take(&mut self.inbox);
        let text = String::from_utf8_lossy(&inbox);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let path = head.split(' ').nth(1).unwrap();
        assert!(path.starts_with(&format!("/socket.io/?EIO={}&transport=", self.revision)));
        if path.contains("transport=websocket") {
            let is_first = self.out.is_empty() && !path.contains("sid=");
            let head = http::read_request(&inbox).unwrap().unwrap();
            let handshake = head.upgrade.unwrap();
            let mut answer = Vec::new();
            handshake.accept_with(&mut answer, None, self.deflate);
            self.out.push(answer);
            self.is_upgraded = true;
            self.inbox = inbox[head.consumed..].to_vec();
            if is_first {
                self.greet();
            }
            return true;
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        let (body, rest) = body.split_at(length);
        self.inbox = rest.as_bytes().to_vec();
        self.asked.push_back(head.starts_with("GET "));
        if !path.contains("sid=") {
            self.greet();
        }
        let mut body = body.as_bytes();
        while !body.is_empty() {
            match packet::next(&mut body, self.revision).unwrap() {
                Part::Text(packet) => self.hear(packet),
                Part::Binary(_) => panic!("the person sends nothing binary"),
            }
        }
        true
    }

    /// Answers what was asked by polling, as far as there is something to say.
    fn answer(&mut self) {
        while let Some(is_poll) = self.asked.front() {
            let body = match is_poll {
                true if self.waiting.is_empty() => return,
                true => packet::payload(&std::mem::take(&mut self.waiting), self.revision),
                false => b"ok".to_vec(),
            };
            self.asked.pop_front();
            self.out.push(answer(&body));
        }
    }

    fn frames(&mut self) {
        let mut inbox = std::mem::take(&mut self.inbox);
        let (mut at, limits) = (0, Limits::SERVER.with_compression(self.deflate));
        while let Some((part, used)) = frame::decode_masked(&mut inbox[at..], limits).unwrap() {
            let mut inflated = Inflated::default();
            let payload = match part.compressed {
                true => inflated.inflate(part.payload, limits.message_bytes_max).unwrap().to_vec(),
                false => part.payload.to_vec(),
            };
            if part.opcode == Opcode::Text {
                self.hear(&payload);
            }
            at += used;
        }
        self.inbox = inbox.split_off(at);
    }

    fn tell(&mut self, packet: &str) {
        if !self.is_upgraded {
            return self.waiting.push(packet.as_bytes().to_vec());
        }
        let mut bytes = Vec::new();
        match self.deflate {
            true => deflate::write_frame(&mut bytes, Opcode::Text, packet.as_bytes(), None),
            false => frame::write_frame(&mut bytes, Opcode::Text, packet.as_bytes(), None),
        }
        self.out.push(bytes);
    }

    fn greet(&mut self) {
        self.tell(OPEN);
        if self.revision == 3 {
            self.tell("40");
        }
    }

    /// A packet of our namespace.
    fn say(&mut self, kind: &str, rest: &str) {
        let namespace = match self.namespace {
            "/" => String::new(),
            other => format!("{other},"),
        };
        self.tell(&format!("4{kind}{namespace}{rest}"));
    }

    fn hear(&mut self, packet: &[u8]) {
        match packet {
            b"2probe" => return self.tell("3probe"),
            b"2" => return self.tell("3"),
            b"3" | b"5" => return,
            _ => {}
        }
        let packet = packet::parse(packet.strip_prefix(b"4").unwrap()).unwrap();
        assert_eq!(packet.namespace, self.namespace.as_bytes());
        match packet.kind {
            // Nobody is known from before: what is to be taken up gets a name of its own.
            Kind::Connect if self.revision == 3 => self.say("0", ""),
            Kind::Connect if packet.data.is_empty() => {
                self.say("0", "{\"sid\":\"b\",\"pid\":\"p\"}")
            }
            Kind::Connect => self.say("0", "{\"sid\":\"b\",\"pid\":\"q\"}"),
            Kind::Event => {
                let data: serde_json::Value = serde_json::from_slice(packet.data).unwrap();
                self.event(&data, packet.id);
            }
            _ => {}
        }
    }

    fn event(&mut self, data: &serde_json::Value, id: Option<u32>) {
        let name = data[0].as_str().unwrap();
        if name == "say" {
            let text = data[1]["text"].as_str().unwrap().to_owned();
            self.say(
                "2",
                &format!("[\"says\",{{\"room\":\"live\",\"from\":\"ann\",\"text\":\"{text}\"}}]"),
            );
        }
        if name == "join" {
            self.say("2", "[\"in\",\"live\"]");
        }
        if let Some(id) = id {
            // What was said before is no delivery.
            self.say("3", &format!("{id}[[\"{PAST}\"]]"));
        }
        // What the person says is followed by what a target does of its own accord.
        if name == "say" {
            self.tell(if self.revision == 4 { "2" } else { "6" });
            self.tell(&format!("42/other,[\"says\",\"{PAST}\"]"));
            self.say("2", &format!("[\"came\",\"bob {PAST}\"]"));
            self.say("2", &format!("5[\"noise\",\"{PAST}\"]"));
            self.say("2", "[\"says\",\"no stamp\"]");
            self.say("51-", "[\"picture\",{\"_placeholder\":true,\"num\":0}]");
            self.binary(PAST.as_bytes());
        }
    }

    fn binary(&mut self, bytes: &[u8]) {
        use base64::Engine as _;
        let typed = [&[4][..], bytes].concat();
        let coded = base64::engine::general_purpose::STANDARD.encode(bytes);
        match (self.is_upgraded, self.revision) {
            (false, 3) => self.waiting.push(format!("b4{coded}").into_bytes()),
            (false, _) => self.waiting.push(format!("b{coded}").into_bytes()),
            (true, revision) => {
                let payload = if revision == 3 { &typed } else { bytes };
                let mut bytes = Vec::new();
                frame::write_frame(&mut bytes, Opcode::Binary, payload, None);
                self.out.push(bytes);
            }
        }
    }
}

/// An HTTP answer.
fn answer(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The protocol's part in the conformance suite: both revisions, over each transport.
pub(crate) fn rows() -> [Row; 6] {
    let wrap = Some(answer as Wrap);
    let wrap_3 = Some((|payload| answer(&packet::payload(&[payload.to_vec()], 3))) as Wrap);
    const WEBSOCKET: (&str, &str) = ("transport", "websocket");
    const POLLING: (&str, &str) = ("transport", "polling");
    const SAID: (&str, &str) = ("dialect", dialect!("sent"));
    const ASKED: (&str, &str) = ("dialect", dialect!("ack"));
    const OLD: (&str, &str) = ("eio", "3");
    const CHAT: (&str, &str) = ("namespace", "/chat");
    [
        row(&[SAID, WEBSOCKET], None, || Fake::peer(4, "/", false), forbidden),
        row(&[SAID, WEBSOCKET, ("deflate", "on")], None, || Fake::peer(4, "/", true), forbidden),
        row(&[SAID, WEBSOCKET, OLD, CHAT], None, || Fake::peer(3, "/chat", false), forbidden_chat),
        row(&[ASKED, POLLING, CHAT], wrap, || Fake::peer(4, "/chat", false), forbidden_chat),
        row(&[ASKED, POLLING, OLD], wrap_3, || Fake::peer(3, "/", false), forbidden),
        row(
            &[SAID, ("transport", "upgrade")],
            Some(text_frame),
            || Fake::peer(4, "/", false),
            forbidden,
        ),
    ]
}

/// The upgrade begins with polling and ends with frames.
fn text_frame(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_frame(&mut bytes, Opcode::Text, payload, None);
    bytes
}

fn row(
    options: &'static [(&'static str, &'static str)],
    wrap: Option<Wrap>,
    peer: fn() -> Box<dyn Peer>,
    forbidden: fn() -> Vec<(&'static str, Vec<u8>)>,
) -> Row {
    Row {
        protocol: &SocketIo,
        url: "ws://127.0.0.1:3000/",
        options,
        features: Features::default(),
        opcode: Opcode::Text,
        wrap,
        peer,
        deeds: &[
            Request::Login { name: "ann", password: "secret" },
            Request::Join { room: ROOM, nick: "ann", status: PAST },
            Request::Say { room: ROOM, text: PAST },
            Request::History { room: ROOM, limit: 50 },
            Request::Members { room: ROOM },
            Request::Presence { list: None, status: "busy" },
            Request::Typing { room: ROOM },
            Request::Read { room: ROOM },
            Request::Ping,
            Request::Leave { room: ROOM },
            Request::Disconnect,
        ],
        forbidden,
    }
}

fn forbidden() -> Vec<(&'static str, Vec<u8>)> {
    forbidden_in("")
}

fn forbidden_chat() -> Vec<(&'static str, Vec<u8>)> {
    forbidden_in("/chat,")
}

/// The last request, a leave, has the number 10.
fn forbidden_in(namespace: &str) -> Vec<(&'static str, Vec<u8>)> {
    let rows: [(&'static str, &str, String); 18] = [
        ("text", "hello", String::new()),
        ("another type", "9", String::new()),
        ("a second handshake", "", OPEN.into()),
        ("an empty packet", "4", String::new()),
        ("another kind", "47", "[]".into()),
        ("a second welcome", "40", "{}".into()),
        ("a map for an event", "42", "{\"says\":1}".into()),
        ("an event without a name", "42", "[1]".into()),
        ("an event without an end", "42", "[\"says\",1".into()),
        ("an answer to nobody", "43", "77[]".into()),
        ("an answer twice", "43", "3[]".into()),
        ("an answer without a number", "43", "[]".into()),
        ("an answer with a huge number", "43", "4294967296[]".into()),
        ("an answer that is no JSON", "43", "10[nope]".into()),
        ("a bomb of brackets", "43", format!("10{}]", "[".repeat(4_000))),
        ("no parts", "450-", "[\"picture\"]".into()),
        ("too many parts", "4565-", "[\"picture\"]".into()),
        ("parts without end", "4599999999999999-", "[\"picture\"]".into()),
    ];
    let whole = |kind: &str, rest: String| match kind.len() {
        0 | 1 => format!("{kind}{rest}"),
        _ if kind == "hello" => kind.into(),
        _ => format!("{kind}{namespace}{rest}"),
    };
    rows.into_iter().map(|(name, kind, rest)| (name, whole(kind, rest).into_bytes())).collect()
}
