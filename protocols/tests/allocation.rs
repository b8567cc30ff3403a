//! What arrives most often in a crowded XMPP room is received without an allocation.

use model::{
    Effects, Endpoint, Features, List, Options, Request, Rng, RoomName, Session, Shared, Stamp,
    Tick, Token,
};
use protocols::wire::frame::{self, Opcode};
use protocols::wire::http;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting for each thread.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `alloc` above, hence from the system.
        unsafe { System.dealloc(block, layout) }
    }
}

const ROOM: RoomName<'static> = RoomName { id: 4, name: "live" };
const LIST: RoomName<'static> = RoomName { id: 9, name: "friends" };
const RUN: u32 = 6;

/// What a stanza is carried by.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Over {
    WebSocket,
    /// A managed stream over TCP.
    Tcp,
}

impl Over {
    fn text(self, payload: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Over::WebSocket => {
                frame::write_frame(&mut bytes, Opcode::Text, payload.as_bytes(), None);
            }
            Over::Tcp => bytes.extend_from_slice(payload.as_bytes()),
        }
        bytes
    }

    fn url(self) -> &'static str {
        match self {
            Over::WebSocket => "ws://localhost/ws",
            Over::Tcp => "xmpp://localhost",
        }
    }

    /// What a target says until somebody is online.
    fn greetings(self) -> &'static [&'static str] {
        match self {
            Over::WebSocket => &[
                "<open/>",
                "<features><mechanisms><mechanism>ANONYMOUS</mechanism></mechanisms></features>",
                "<success/>",
                "<open/>",
                "<features><bind/></features>",
                "<iq type='result' id='bind'/>",
            ],
            Over::Tcp => &[
                "<stream:stream>",
                "<features><mechanisms><mechanism>ANONYMOUS</mechanism></mechanisms></features>",
                "<success/>",
                "<stream:stream>",
                "<features><bind/><sm xmlns='urn:xmpp:sm:3'/></features>",
                "<iq type='result' id='bind'/>",
                "<enabled id='one' resume='true'/>",
            ],
        }
    }
}

/// Somebody in a room.
fn person(over: Over) -> (Box<dyn Session>, Effects) {
    let endpoint = Endpoint::parse(over.url()).unwrap();
    let options = Options::from([("domain".to_owned(), "anon.localhost".to_owned())]);
    let mut shared = Shared::new(endpoint, options, 1 << 16);
    let names = (0..300).map(|number| format!("user{number}").into()).collect();
    shared.lists.push(List { room: LIST.id, names, is_roster: true });
    let protocol = protocols::protocol("xmpp").unwrap();
    let features = if over == Over::Tcp { 0b11_1111 } else { 0b1_1111 };
    let mut session = protocol.session(1, Features(features), &Arc::new(shared));
    let mut fx = Effects::new(RUN, Rng::new(1, 1));
    session.act(Tick(1), Token(1), Request::Login { name: "", password: "" }, &mut fx);
    session.opened(Tick(1), &mut fx);
    if over == Over::WebSocket {
        let mut answer = Vec::new();
        let head = http::read_request(&fx.out).unwrap().unwrap();
        head.upgrade.unwrap().accept(&mut answer, Some("xmpp"));
        session.receive(Tick(1), &answer, &mut fx);
    }
    for greeting in over.greetings() {
        session.receive(Tick(1), &over.text(greeting), &mut fx);
    }
    let join = Request::Join { room: ROOM, nick: "ann", status: "" };
    session.act(Tick(1), Token(2), join, &mut fx);
    for presence in [
        "<presence from='live@room.localhost/bob'/>",
        "<presence from='live@room.localhost/ann'><x><status code='110'/></x></presence>",
    ] {
        session.receive(Tick(1), &over.text(presence), &mut fx);
    }
    let join = Request::Join { room: LIST, nick: "", status: "" };
    session.act(Tick(1), Token(3), join, &mut fx);
    session.receive(Tick(1), &over.text("<iq type='result' id='l3'/>"), &mut fx);
    assert_eq!(fx.close, None);
    (session, fx)
}

#[test]
fn messages_presences_and_pictures_allocate_nothing() {
    let stamp = Stamp {
        run: RUN,
        room: ROOM.id,
        source: 0,
        number: 1,
        person: 2,
        intended: Tick::ZERO,
        sent: Tick::ZERO,
    };
    let stamp = String::from_utf8(stamp.encode().to_vec()).unwrap();
    let contact = "from='user299@anon.localhost/x'";
    let from = "from='live@room.localhost/bob'";
    let rows = [
        ("a message", format!("<message type='groupchat' {from}><body>{stamp}</body></message>")),
        (
            "a message to oneself",
            format!("<message type='chat' {contact}><body>{stamp}</body></message>"),
        ),
        ("a contact's status", format!("<presence {contact}><status>{stamp}</status></presence>")),
        ("a contact's coming", format!("<presence {contact}/>")),
        ("a presence", format!("<presence {from}><x><item role='participant'/></x></presence>")),
        (
            "a picture",
            format!(
                "<iq type='result' id='v0-1' {from}><vCard xmlns='vcard-temp'><PHOTO><BINVAL>{}\
                 </BINVAL></PHOTO></vCard></iq>",
                "QUJD".repeat(2_000)
            ),
        ),
    ];
    let both = rows.iter().flat_map(|row| [(Over::WebSocket, row), (Over::Tcp, row)]);
    for (over, (what, payload)) in both {
        let (mut session, mut fx) = person(over);
        let bytes = over.text(payload);
        let mut events = 0;
        let mut allocations = 0;
        for _ in 0..3 {
            fx.events.clear();
            let before = ALLOCATIONS.get();
            assert_eq!(session.receive(Tick(1_000_000), &bytes, &mut fx), bytes.len());
            allocations += ALLOCATIONS.get() - before;
            events += fx.events.len();
        }
        assert_eq!((allocations, events), (0, 3), "{what} over {over:?}");
    }
}
