//! An XMPP session: the target says anything at any stage, and what is kept stays bounded.
//!
//! The first byte chooses how far the login has come and whether the rest are raw bytes or, cut at
//! zero bytes, payloads of text frames.
#![no_main]

mod rig;

use libfuzzer_sys::fuzz_target;
use model::{Request, RoomName};
use protocols::wire::frame::Opcode;
use protocols::xmpp::Xmpp;
use rig::Rig;

const GREETINGS: [&str; 7] = [
    "<open/>",
    "<features><mechanisms><mechanism>ANONYMOUS</mechanism></mechanisms></features>",
    "<success/>",
    "<open/>",
    "<features><bind/><sm xmlns='urn:xmpp:sm:3'/></features>",
    "<iq type='result' id='bind'/>",
    "<enabled id='one' resume='true'/>",
];
const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };
const LOGIN: Request<'static> = Request::Login { name: "", password: "" };

fuzz_target!(|data: &[u8]| {
    let Some((&mode, rest)) = data.split_first() else { return };
    let mut rig = Rig::new(&Xmpp, &[], Opcode::Text);
    rig.act(LOGIN);
    let stage = usize::from(mode & 15) % 9;
    if stage > 0 {
        rig.accept("xmpp");
        for greeting in GREETINGS.iter().take(stage - 1) {
            rig.say(greeting.as_bytes());
        }
    }
    if stage == 8 {
        rig.act(Request::Join { room: ROOM, nick: "ann", status: "" });
        rig.act(Request::History { room: ROOM, limit: 5 });
        rig.act(Request::Ping);
    }
    assert_eq!(rig.fx.close, None);
    if mode & 16 == 0 {
        rig.halves(rest);
    } else {
        for payload in rest.split(|&byte| byte == 0) {
            rig.say(payload);
            if rig.fx.close.is_some() {
                break;
            }
        }
    }
    rig.begin_anew(LOGIN);
});
