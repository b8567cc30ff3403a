//! A session that is described by its user, in every codec: the target says anything at any stage.
//!
//! The first byte chooses the codec, how far the conversation has come, and whether the rest are
//! raw bytes or payloads of frames, each behind its length in one byte.
#![no_main]

mod rig;

use libfuzzer_sys::fuzz_target;
use model::scenario::Scenario;
use model::script::OPTION;
use model::{Request, RoomName};
use protocols::websocket::WebSocket;
use protocols::wire::frame::Opcode;
use rig::Rig;
use std::sync::OnceLock;

const DESCRIPTION: &str = r#"
websocket:
  proto: {file: x.proto, message: M}
  verbs:
    join: {send: {a: "{room}"}, answer: {a: "{room}", m.a: "*"}, refused: {m.m.a: no}, why: a}
    say: {send: {a: "{text}"}}
    history: {send: {a: past}, answer: {n: "{id}"}}
    ping: {send: {a: ping}, answer: {z: "-7"}}
  history: [{m.a: past}]
  replies: [{when: {m.n: 3}, send: {a: again}}]
"#;
const PROTO: &str =
    "syntax = \"proto3\"; message M { string a = 1; uint32 n = 2; M m = 3; sint64 z = 4; }";
const CODECS: [&str; 4] = ["json", "json-lines", "msgpack", "protobuf"];
const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };
const LOGIN: Request<'static> = Request::Login { name: "ann", password: "" };

fn description() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut scenario = Scenario::parse("x.yaml", DESCRIPTION).unwrap();
        scenario.include_proto(PROTO);
        serde_json::to_string(&scenario.script().unwrap()).unwrap()
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, rest)) = data.split_first() else { return };
    let codec = CODECS[usize::from(mode & 3)];
    let opcode = if mode & 2 == 0 { Opcode::Text } else { Opcode::Binary };
    let mut rig = Rig::new(&WebSocket, &[(OPTION, description()), ("codec", codec)], opcode);
    rig.act(LOGIN);
    let stage = mode >> 2 & 3;
    if stage > 0 {
        rig.accept("");
    }
    if stage > 1 {
        rig.act(Request::Join { room: ROOM, nick: "ann", status: "" });
        rig.act(Request::History { room: ROOM, limit: 5 });
        rig.act(Request::Ping);
    }
    assert_eq!(rig.fx.close, None);
    match mode & 16 {
        0 => rig.halves(rest),
        _ => rig.payloads(rest, |rig, _, payload| rig.say(payload)),
    }
    rig.begin_anew(LOGIN);
});
