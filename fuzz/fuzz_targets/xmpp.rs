//! An XMPP session: the target says anything at any stage, and what is kept stays bounded.
//!
//! The first byte chooses how far the login has come and whether the rest are raw bytes or, cut at
//! zero bytes, payloads of text frames.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{
    Effects, Endpoint, Features, Options, Protocol, Request, Rng, RoomName, Session, Shared, Tick,
    Token,
};
use protocols::wire::frame::{self, Opcode};
use protocols::wire::http;
use protocols::xmpp::Xmpp;
use std::sync::Arc;

const FRAME_BYTES_MAX: usize = 4096;
const GREETINGS: [&str; 6] = [
    "<open/>",
    "<features><mechanisms><mechanism>ANONYMOUS</mechanism></mechanisms></features>",
    "<success/>",
    "<open/>",
    "<features><bind/></features>",
    "<iq type='result' id='bind'/>",
];
const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };

fuzz_target!(|data: &[u8]| {
    let Some((&mode, rest)) = data.split_first() else { return };
    let endpoint = Endpoint::parse("ws://localhost/ws").unwrap();
    let shared = Shared { endpoint, options: Options::new(), frame_bytes_max: FRAME_BYTES_MAX };
    let mut session = Xmpp.session(1, Features(0b11111), &Arc::new(shared));
    let mut fx = Effects::new(1, Rng::new(1, 1));
    session.act(Tick(1), Token(1), Request::Login { name: "", password: "" }, &mut fx);
    session.opened(Tick(2), &mut fx);
    let stage = usize::from(mode & 7);
    if stage > 0 {
        let mut answer = Vec::new();
        let head = http::read_request(&fx.out).unwrap().unwrap();
        head.upgrade.unwrap().accept(&mut answer, Some("xmpp"));
        session.receive(Tick(3), &answer, &mut fx);
        for greeting in GREETINGS.iter().take(stage - 1) {
            say(session.as_mut(), greeting.as_bytes(), &mut fx);
        }
    }
    if stage == 7 {
        let join = Request::Join { room: ROOM, nick: "ann", status: "" };
        session.act(Tick(4), Token(2), join, &mut fx);
        session.act(Tick(4), Token(3), Request::Ping, &mut fx);
    }
    assert_eq!(fx.close, None);
    fx.out.clear();
    if mode & 8 == 0 {
        let taken = session.receive(Tick(5), rest, &mut fx);
        assert!(taken <= rest.len());
        let kept = rest.len() - taken;
        assert!(fx.close.is_some() || kept <= FRAME_BYTES_MAX + 14 || stage == 0 && kept <= 8192);
    } else {
        for payload in rest.split(|&byte| byte == 0) {
            if fx.close.is_none() {
                say(session.as_mut(), payload, &mut fx);
            }
        }
    }
    assert!(fx.out.len() <= 64 * (rest.len() + 64) && fx.events.len() <= rest.len() + 16);
});

fn say(session: &mut dyn Session, payload: &[u8], fx: &mut Effects) {
    let mut bytes = Vec::new();
    frame::write_frame(&mut bytes, Opcode::Text, payload, None);
    assert_eq!(session.receive(Tick(5), &bytes, fx), bytes.len());
}
