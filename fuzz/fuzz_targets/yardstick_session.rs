//! A yardstick session, in both codecs: the target says anything at any stage.
//!
//! The first byte chooses the codec, how far the conversation has come, whether compression was
//! agreed on, and whether the rest are raw bytes or payloads of frames, each behind its length in
//! one byte: compressed ones if the length is odd and they may be.
#![no_main]

mod rig;

use libfuzzer_sys::fuzz_target;
use model::{Request, RoomName};
use protocols::yardstick::{
    Answer, AnswerWhat, Encoding, Frame, FrameWhat, Millis, Welcome, Yardstick,
};
use rig::Rig;

const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };
const LOGIN: Request<'static> = Request::Login { name: "ann", password: "secret" };

fuzz_target!(|data: &[u8]| {
    let Some((&mode, rest)) = data.split_first() else { return };
    let encoding = Encoding::ALL[usize::from(mode & 1)];
    let codec = ["json", "proto"][usize::from(mode & 1)];
    let deflate = ["off", "on"][usize::from(mode >> 4 & 1)];
    let options = [("codec", codec), ("deflate", deflate)];
    let mut rig = Rig::new(&Yardstick, &options, encoding.opcode());
    rig.act(LOGIN);
    let stage = mode >> 1 & 3;
    if stage > 0 {
        rig.accept(encoding.subprotocol());
    }
    if stage > 1 {
        let name = "ann".into();
        let what = AnswerWhat::Welcome(Welcome { name, token: "t".into(), expires_ms: Millis(1) });
        let mut welcome = Vec::new();
        let answer = Answer { id: 1, what: Some(what) };
        Frame { what: Some(FrameWhat::Answer(answer)) }.encode(encoding, &mut welcome);
        rig.say(&welcome);
    }
    if stage > 2 {
        rig.act(Request::Join { room: ROOM, nick: "ann", status: "here" });
        rig.act(Request::Say { room: ROOM, text: "hi" });
        rig.act(Request::History { room: ROOM, limit: 5 });
        rig.act(Request::Members { room: ROOM });
        rig.act(Request::Typing { room: ROOM });
        rig.act(Request::Ping);
    }
    assert_eq!(rig.fx.close, None);
    match mode & 8 {
        0 => rig.halves(rest),
        _ => rig.payloads(rest, |rig, length, payload| match deflate == "on" && length % 2 == 1 {
            true => rig.say_compressed(payload),
            false => rig.say(payload),
        }),
    }
    rig.begin_anew(LOGIN);
});
