//! A Socket.IO session, both revisions, over WebSocket and over polling: the target says anything
//! at any stage.
//!
//! The first byte chooses the revision, the transport, how far the conversation has come, whether
//! compression was agreed on, and whether the rest are raw bytes or payloads of frames or polls,
//! each behind its length in one byte.
#![no_main]

mod rig;

use libfuzzer_sys::fuzz_target;
use model::{Request, RoomName};
use protocols::socketio::SocketIo;
use protocols::wire::frame::Opcode;
use rig::Rig;

const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };
const LOGIN: Request<'static> = Request::Login { name: "ann", password: "secret" };
const OPEN: &str = r#"0{"sid":"a","upgrades":[],"pingInterval":25000,"pingTimeout":20000}"#;
const DIALECT: &str = r#"{"join":{"emit":["join","{room}","{status}"],"done":{"event":"in","with":"{room}"}},
    "say":{"emit":["say","{text}"],"done":"echo"},"history":{"emit":["past","{limit}"]},
    "members":{"emit":"who"},"typing":{"emit":"typing","done":"sent"},"ping":{"emit":"sign"},
    "deliveries":["says"],"announcements":["came"],"echo":true}"#;

/// A payload as the body of an answer to a poll.
fn answer(payload: &[u8], revision: &str) -> Vec<u8> {
    let units = String::from_utf8_lossy(payload).encode_utf16().count();
    let measure = if revision == "3" { format!("{units}:") } else { String::new() };
    let length = measure.len() + payload.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{measure}");
    [head.as_bytes(), payload].concat()
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, rest)) = data.split_first() else { return };
    let revision = ["4", "3"][usize::from(mode & 1)];
    let transport = ["websocket", "polling"][usize::from(mode >> 1 & 1)];
    let deflate = ["off", "on"][usize::from(mode >> 5 & 1)];
    let options =
        [("eio", revision), ("transport", transport), ("deflate", deflate), ("dialect", DIALECT)];
    let mut rig = Rig::new(&SocketIo, &options, Opcode::Text);
    let is_polling = transport == "polling";
    let say = |rig: &mut Rig, payload: &[u8]| match is_polling {
        true => rig.feed(&answer(payload, revision)),
        false => rig.say(payload),
    };
    rig.act(LOGIN);
    let stage = mode >> 2 & 3;
    if stage > 0 && !is_polling {
        rig.accept("");
    }
    if stage > 1 {
        say(&mut rig, OPEN.as_bytes());
    }
    if stage > 2 {
        if is_polling && revision == "4" {
            rig.feed(&answer(b"ok", "4"));
        }
        say(&mut rig, br#"40{"pid":"p"}"#);
        rig.act(Request::Join { room: ROOM, nick: "ann", status: "here" });
        rig.act(Request::Say { room: ROOM, text: "hi" });
        rig.act(Request::History { room: ROOM, limit: 5 });
        rig.act(Request::Members { room: ROOM });
        rig.act(Request::Typing { room: ROOM });
        rig.act(Request::Ping);
    }
    assert_eq!(rig.fx.close, None);
    let is_deflating = !is_polling && deflate == "on";
    match mode & 16 {
        0 => rig.halves(rest),
        _ => rig.payloads(rest, |rig, length, payload| match is_deflating && length % 2 == 1 {
            true => rig.say_compressed(payload),
            false => say(rig, payload),
        }),
    }
    rig.begin_anew(LOGIN);
});
