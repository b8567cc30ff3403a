//! What a session of XMPP spends on each stanza that arrives, over either transport.

use super::{RUN, bench, stamp};
use model::{
    Effects, Endpoint, Features, Options, Request, Rng, RoomName, Session, Shared, Tick, Token,
};
use protocols::wire::frame::{self, Opcode};
use protocols::wire::http;
use std::hint::black_box;
use std::sync::Arc;

/// Bytes of each stanza.
const STANZA_BYTES: usize = 300;
/// Bytes of a picture before base64, as targets/prosody has them.
const PHOTO_BYTES: usize = 6_900;
/// Stanzas that come with one read.
const PER_READ: usize = 8;
const ROOM: RoomName<'static> = RoomName { id: 4, name: "live" };
const URLS: [&str; 2] = ["ws://localhost/ws", "xmpp://localhost"];

/// Measures all of them; prints rows of a table.
pub(super) fn measure() {
    for url in URLS {
        let over = if url.starts_with("ws") { "WebSocket" } else { "TCP" };
        for (what, stanza) in stanzas() {
            let (mut session, mut fx) = person(url);
            let bytes = carried(url, &stanza).repeat(PER_READ);
            let name = format!("XMPP over {over}: {what}, {} bytes, × {PER_READ}", stanza.len());
            bench(&name, |_| {
                fx.events.clear();
                session.receive(Tick(1_000_000), black_box(&bytes), &mut fx) as u64
            });
            assert_eq!(
                (&fx.close, fx.out.len()),
                (&None, 0),
                "{what}: the stanza is an ordinary one"
            );
        }
    }
}

fn carried(url: &str, stanza: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match url.starts_with("ws") {
        true => frame::write_frame(&mut bytes, Opcode::Text, stanza.as_bytes(), None),
        false => bytes.extend_from_slice(stanza.as_bytes()),
    }
    bytes
}

/// As Prosody writes them; what is missing of their length is text.
fn stanzas() -> [(&'static str, String); 3] {
    let padded = |start: &str, end: &str| {
        let missing = STANZA_BYTES.saturating_sub(start.len() + end.len());
        format!("{start}{}{end}", "x".repeat(missing))
    };
    let text = String::from_utf8_lossy(&stamp(3).encode()).into_owned();
    let message = format!(
        "<message xmlns='jabber:client' from='live@room.localhost/bob' type='groupchat' id='s7' \
         to='ann@localhost/yINeIBAqJpaC' xml:lang='en'><body>{text}"
    );
    let presence = "<presence xmlns='jabber:client' from='live@room.localhost/bob' \
                    to='ann@localhost/yINeIBAqJpaC' xml:lang='en'><status>";
    let item = "</status><x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='none' \
                role='participant'/></x></presence>";
    let picture = format!(
        "<iq xmlns='jabber:client' type='result' id='v0-1' from='live@room.localhost/bob'>\
         <vCard xmlns='vcard-temp'><PHOTO><TYPE>image/jpeg</TYPE><BINVAL>{}</BINVAL></PHOTO></vCard>\
         </iq>",
        "QUJD".repeat(PHOTO_BYTES / 3)
    );
    [
        ("a stamped message", padded(&message, "</body></message>")),
        ("a presence", padded(presence, item)),
        ("a picture", picture),
    ]
}

/// Somebody who is in a room with one other.
fn person(url: &str) -> (Box<dyn Session>, Effects) {
    let is_web = url.starts_with("ws");
    let options = Options::from([("domain".to_owned(), "localhost".to_owned())]);
    let shared = Shared::new(Endpoint::parse(url).unwrap(), options, 1 << 20);
    let protocol = protocols::protocol("xmpp").unwrap();
    let mut session = protocol.session(1, Features(0b11111), &Arc::new(shared));
    let mut fx = Effects::new(RUN, Rng::new(1, 1));
    let now = Tick(1);
    session.act(now, Token(1), Request::Login { name: "", password: "" }, &mut fx);
    session.opened(now, &mut fx);
    if is_web {
        let mut answer = Vec::new();
        let head = http::read_request(&fx.out).unwrap().unwrap();
        head.upgrade.unwrap().accept(&mut answer, Some("xmpp"));
        session.receive(now, &answer, &mut fx);
    }
    let opening = if is_web { "<open/>" } else { "<stream:stream>" };
    let presence = "<presence from='live@room.localhost";
    for said in [
        opening,
        "<features><mechanisms><mechanism>ANONYMOUS</mechanism></mechanisms></features>",
        "<success/>",
        opening,
        "<features><bind/></features>",
        "<iq type='result' id='bind'/>",
    ] {
        session.receive(now, &carried(url, said), &mut fx);
    }
    session.act(now, Token(2), Request::Join { room: ROOM, nick: "ann", status: "" }, &mut fx);
    for said in [
        format!("{presence}/bob'/>"),
        format!("{presence}/ann'><x><status code='110'/></x></presence>"),
    ] {
        session.receive(now, &carried(url, &said), &mut fx);
    }
    assert_eq!(fx.close, None);
    fx.out.clear();
    fx.events.clear();
    (session, fx)
}
