//! The hot path's parts by themselves: nanoseconds each, without a kernel in between.

use crate::clock::{now_ns, thread_cpu_ns};
use crate::stats::Spread;
use model::{Effects, Event, Histo, Protocol, Rng, Seat, Stamp, Tick, stamp};
use protocols::wire::frame::{self, Limits};
use protocols::wire::http;
use protocols::yardstick::{Encoding, Frame, FrameWhat, Message, Millis, Yardstick};
use std::hint::black_box;

#[path = "stanzas.rs"]
mod stanzas;

const ROUNDS: usize = 11;
/// How long a round takes about, nanoseconds.
const ROUND_NS: u64 = 50_000_000;
/// Bytes of text around the stamp, as in the other benchmarks.
const TEXT_BYTES: usize = 90;
const RUN: u32 = 77;

/// Measures all parts; prints Markdown.
pub(crate) fn measure() {
    println!("\n| part | ns, {ROUNDS} rounds |\n| --- | --- |");
    for (name, payload) in payloads() {
        bench(&format!("stamp search and decoding, {name}, {} bytes", payload.len()), |_| {
            stamp::find(black_box(&payload)).count() as u64
        });
    }
    let [(_, json), ..] = payloads();
    let nothing = vec![b'x'; json.len()];
    bench("stamp search where there is none, as many bytes", |_| {
        stamp::find(black_box(&nothing)).count() as u64
    });
    let code = stamp(3).encode();
    bench("stamp decoding", |_| Stamp::decode(black_box(&code)).map_or(0, |s| s.number.into()));
    let mut framed = Vec::new();
    frame::write_frame(&mut framed, frame::Opcode::Text, &json, None);
    bench("frame decoding", |_| match frame::decode(black_box(&framed), Limits::CLIENT) {
        Ok(Some((_, used))) => used as u64,
        _ => 0,
    });
    let mut fx = Effects::new(RUN, Rng::new(1, 1));
    bench("deliveries of a frame, as events", |_| {
        fx.deliveries(black_box(&json));
        fx.events.drain(..).map(|event| u64::from(matches!(event, Event::Delivery(_)))).sum()
    });
    sessions(&framed);
    let mut seat = Seat::joining(0, [0].into_iter());
    seat.joined([0].into_iter());
    let mut next = 0;
    bench("ledger receive, in order", |_| {
        next += 1;
        seat.receive(0, black_box(next)) as u64
    });
    let mut histo = Histo::default();
    bench("histogram record", |i| {
        histo.record(black_box(50_000 + (i & 0xFFFF) * 40));
        i
    });
    bench("reading the clock", |_| now_ns());
    stanzas::measure();
}

/// A yardstick session that a live message arrives at: without features, and one that comes back.
fn sessions(live: &[u8]) {
    for (name, features) in [("", 0), (" that comes back", 0b1000)] {
        let options = [("codec".to_owned(), "json".to_owned())].into();
        let endpoint = model::Endpoint::parse("ws://127.0.0.1:1/ws").expect("sound");
        let shared = std::sync::Arc::new(model::Shared::new(endpoint, options, 1 << 20));
        let mut session = Yardstick.session(1, model::Features(features), &shared);
        let mut fx = Effects::new(RUN, Rng::new(1, 1));
        let act = |session: &mut Box<dyn model::Session>, fx: &mut Effects, token, request| {
            session.act(Tick(1), model::Token(token), request, fx);
        };
        let login = model::Request::Login { name: "ann", password: "" };
        act(&mut session, &mut fx, 1, login);
        session.opened(Tick(1), &mut fx);
        let head = http::read_request(&fx.out).expect("sound").expect("whole");
        let mut answer = Vec::new();
        let handshake = head.upgrade.expect("an upgrade");
        handshake.accept(&mut answer, Some(Encoding::Json.subprotocol()));
        let text = |json: &str, out: &mut Vec<u8>| {
            frame::write_frame(out, frame::Opcode::Text, json.as_bytes(), None);
        };
        text(r#"{"answer":{"id":1,"welcome":{"name":"ann","token":"t"}}}"#, &mut answer);
        session.receive(Tick(2), &answer, &mut fx);
        for (token, name) in [(2, "den"), (3, "live")] {
            let room = model::RoomName { id: token, name };
            let join = model::Request::Join { room, nick: "", status: "" };
            act(&mut session, &mut fx, token, join);
            let mut answer = Vec::new();
            text(&format!(r#"{{"answer":{{"id":{token},"joined":{{}}}}}}"#), &mut answer);
            session.receive(Tick(2), &answer, &mut fx);
        }
        fx.events.clear();
        bench(&format!("a message at a session{name}"), |_| {
            session.receive(Tick(3), black_box(live), &mut fx);
            fx.events.drain(..).map(|event| u64::from(matches!(event, Event::Delivery(_)))).sum()
        });
        assert_eq!(fx.close, None);
    }
}

/// Runs `part` many times, several rounds; prints nanoseconds a time.
fn bench(name: &str, mut part: impl FnMut(u64) -> u64) {
    let mut round = |times: u64| {
        let begin = thread_cpu_ns();
        for i in 0..times {
            black_box(part(i));
        }
        thread_cpu_ns() - begin
    };
    let mut times = 1_000;
    while round(times) < ROUND_NS / 4 {
        times *= 2;
    }
    let times = times * 2;
    let figures = (0..ROUNDS).map(|_| round(times) as f64 / times as f64);
    println!("| {name} | {} |", Spread::of(figures));
}

fn stamp(number: u32) -> Stamp {
    let at = Tick::from_micros(5_000_000);
    Stamp { run: RUN, room: 4, source: 0, number, person: 12, intended: at, sent: at }
}

/// The same message in three protocols' words.
fn payloads() -> [(&'static str, Vec<u8>); 3] {
    let code = stamp(3).encode();
    let mut text = String::from_utf8_lossy(&code).into_owned();
    text.extend(std::iter::repeat_n('.', TEXT_BYTES - stamp::LEN));
    let encoded = |encoding| {
        let message = Message {
            room: "live".into(),
            number: 3,
            sender: "people-12".into(),
            text: text.as_str().into(),
            at_ms: Millis(1_800_000_000_000),
            ..Message::default()
        };
        let mut payload = Vec::new();
        Frame { what: Some(FrameWhat::Message(message)) }.encode(encoding, &mut payload);
        payload
    };
    let xml = format!(
        "<message xmlns='jabber:client' from='live@rooms.localhost/people-12' id='a7' \
         to='people-3@localhost/x' type='groupchat'><body>{text}</body></message>"
    );
    [
        ("JSON", encoded(Encoding::Json)),
        ("protobuf", encoded(Encoding::Proto)),
        ("XML", xml.into_bytes()),
    ]
}
