//! An XMPP session over TCP: the target says anything at any stage, also after the connection was
//! lost and the conversation is taken up again, and what is kept stays bounded.
//!
//! The first byte chooses how far the login has come, whether the connection is lost then, and
//! whether the account has a password; the rest are bytes of the stream.
#![no_main]

mod rig;

use libfuzzer_sys::fuzz_target;
use model::{Request, RoomName};
use protocols::wire::frame::Opcode;
use protocols::xmpp::Xmpp;
use rig::Rig;

const GREETINGS: [&str; 7] = [
    "<?xml version='1.0'?><stream:stream id='1'>",
    "<features><mechanisms><mechanism>ANONYMOUS</mechanism></mechanisms></features>",
    "<success/>",
    "<stream:stream>",
    "<features><bind/><sm xmlns='urn:xmpp:sm:3'/></features>",
    "<iq type='result' id='bind'/>",
    "<enabled id='one' resume='true'/>",
];
const PROVEN: [&str; 3] = [
    "<stream:stream><features><mechanisms><mechanism>SCRAM-SHA-256</mechanism></mechanisms></features>",
    "<iq type='error' id='register'><error><conflict/></error></iq>",
    "<challenge>",
];
const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };
const LOGIN: Request<'static> = Request::Login { name: "", password: "" };
const PROOF: Request<'static> = Request::Login { name: "ann", password: "pencil" };

fuzz_target!(|data: &[u8]| {
    let Some((&mode, rest)) = data.split_first() else { return };
    let mut rig = Rig::at("xmpp://localhost", &Xmpp, &[], Opcode::Text);
    let stage = usize::from(mode & 15) % 9;
    if mode & 16 != 0 {
        rig.act(PROOF);
        PROVEN.iter().take(stage % 4).for_each(|said| rig.feed(said.as_bytes()));
    } else {
        rig.act(LOGIN);
        GREETINGS.iter().take(stage).for_each(|said| rig.feed(said.as_bytes()));
        if stage == 8 {
            rig.act(Request::Join { room: ROOM, nick: "ann", status: "" });
            rig.act(Request::Ping);
        }
        if mode & 32 != 0 {
            rig.lose();
            rig.act(LOGIN);
            GREETINGS.iter().take(5).for_each(|said| rig.feed(said.as_bytes()));
        }
    }
    assert_eq!(rig.fx.close, None);
    rig.halves(rest);
    rig.begin_anew(LOGIN);
});
