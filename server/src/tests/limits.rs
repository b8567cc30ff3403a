//! Hostile input and every limit: a clear answer, a counter, and bounded memory.

use std::time::Duration;

use protocols::wire::frame::{Opcode, SERVER_FRAME_BYTES_MAX};
use protocols::yardstick::Encoding;

use super::net::Net;
use crate::Config;
use crate::config::*;

#[test]
fn broken_frames_end_the_connection_with_the_right_code() {
    let masked = |opcode, payload: &[u8]| {
        let mut bytes = Vec::new();
        protocols::wire::frame::write_frame(&mut bytes, opcode, payload, Some([0; 4]));
        bytes
    };
    let rows: [(Vec<u8>, &str); 8] = [
        (b"\x81\x00".to_vec(), "<close> 1002"),         // not masked
        (b"\xc1\x80\0\0\0\0".to_vec(), "<close> 1002"), // a compressed frame
        (b"\x81\xff\0\0\0\0\x40\0\0\0".to_vec(), "<close> 1009"), // a gigabyte is announced
        (masked(Opcode::Continuation, b"x"), "<close> 1002"),
        (masked(Opcode::Binary, b"{}"), "<close> 1007"), // JSON in a binary frame
        (masked(Opcode::Text, b"{\"id\":"), "<close> 1007"),
        (masked(Opcode::Text, b"\xff"), "<close> 1007"),
        (masked(Opcode::Close, b"\x03"), "<close> 1002"),
    ];
    for (bytes, expect) in rows {
        let mut net = Net::new(Config::default(), 1);
        let ann = net.person("ann", Encoding::Json);
        net.send(ann, &bytes);
        net.send(ann, b"more that nobody reads");
        net.turn();
        let heard = net.hear(ann);
        assert!(heard.len() == 1 && heard[0].starts_with(expect), "{bytes:02x?}: {heard:?}");
        assert!(net.wires.list[ann].finished);
        assert_eq!(net.core.counters.protocol_errors, 1);
        net.core.hung_up(ann);
        net.turn();
        assert!(net.wires.list[ann].closed);
    }
}

#[test]
fn control_frames_are_answered() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Proto);
    net.send_frame(ann, Opcode::Ping, b"hello");
    net.turn();
    assert_eq!(net.hear(ann), ["<pong> hello"]);
    net.send_frame(ann, Opcode::Close, b"\x03\xe9bye");
    net.turn();
    assert_eq!(net.hear(ann), ["<close> 1001 "]);
    assert!(net.wires.list[ann].finished && net.core.counters.protocol_errors == 0);
}

#[test]
fn requests_arrive_in_any_pieces() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    let mut bytes = Vec::new();
    for id in 2..5 {
        let text = format!(r#"{{"id":{id},"ping":{{}}}}"#);
        let mask = Some([9, 8, 7, 6]);
        protocols::wire::frame::write_frame(&mut bytes, Opcode::Text, text.as_bytes(), mask);
    }
    for byte in bytes {
        net.send(ann, &[byte]);
    }
    net.turn();
    assert_eq!(net.hear(ann).len(), 3);
    assert_eq!(net.core.conns[ann].inbox.capacity(), 0, "nothing is kept when nothing is open");
}

#[test]
fn pages_and_refusals() {
    let rows = [
        ("GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK", "ok\n"),
        ("GET /info HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK", "\"history\": 100"),
        ("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK", "\nyardstick_connections 1\n"),
        ("GET /ws HTTP/1.1\r\n\r\n", "HTTP/1.1 426 ", ""),
        ("GET /no HTTP/1.1\r\n\r\n", "HTTP/1.1 404 ", ""),
        ("PUT /info HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", ""),
        ("\0\0", "HTTP/1.1 400 ", ""),
    ];
    for (request, start, part) in rows {
        let mut net = Net::new(Config::default(), 1);
        let id = net.connect();
        net.send(id, request.as_bytes());
        net.core.hung_up(id); // who only ended its sending side still gets the page
        net.turn();
        let text = String::from_utf8_lossy(&net.wires.list[id].received).into_owned();
        assert!(text.starts_with(start) && text.contains(part), "{request}: {text}");
        assert!(net.wires.list[id].finished, "{request}");
        net.wires.now.us += LINGER_TIME_MAX.as_micros() as u64 + 1_000_000;
        net.turn();
        assert!(net.wires.list[id].closed, "{request}: lingers for ever");
    }
}

#[test]
fn an_unfinished_head_does_not_stay() {
    let mut net = Net::new(Config::default(), 1);
    let id = net.connect();
    net.send(id, b"GET /ws HT");
    net.wires.now.us += HEAD_TIME_MAX.as_micros() as u64 - 2000;
    net.turn();
    assert!(!net.wires.list[id].closed);
    net.wires.now.us += 1_100_000;
    net.turn();
    assert!(net.wires.list[id].closed && net.core.counters.head_timeouts == 1);
}

#[test]
fn limits_of_requests_have_codes_and_counters() {
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let rows = [
        (format!(r#"{{"say":{{"room":"r","text":"{long}"}}}}"#), "too_long"),
        (format!(r#"{{"join":{{"room":"{}"}}}}"#, &long[..ROOM_BYTES_MAX + 1]), "bad_room"),
        (
            format!(r#"{{"join":{{"room":"s","status":"{}"}}}}"#, &long[..STATUS_BYTES_MAX + 1]),
            "too_long",
        ),
    ];
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    net.turn();
    net.hear(ann);
    for (request, code) in rows {
        net.ask(ann, &request);
        net.turn();
        let heard = net.hear(ann).remove(0);
        assert!(heard.contains(&format!(r#""code":"{code}""#)), "{heard}");
    }
    assert_eq!(net.core.counters.errors["too_long"], 2);
    for number in 1..ROOMS_PER_PERSON_MAX {
        net.ask(ann, &format!(r#"{{"join":{{"room":"r{number}"}}}}"#));
    }
    net.ask(ann, r#"{"join":{"room":"one more"}}"#);
    net.turn();
    let heard = net.hear(ann);
    assert!(heard.last().unwrap().contains("too_many_rooms"), "{heard:?}");
    let text = net.core.counters.prometheus(&[]);
    assert!(text.contains("yardstick_errors_total{code=\"too_many_rooms\"} 1\n"), "{text}");
}

#[test]
fn who_does_not_read_is_cut_off_by_bytes_or_by_time() {
    let lag_bytes_max = 10_000;
    for by_time in [false, true] {
        let unwritable_max = Duration::from_secs(5);
        let config = Config { lag_bytes_max, unwritable_max, ..Config::default() };
        let mut net = Net::new(config, 1);
        let [ann, bob] = ["ann", "bob"].map(|name| {
            let id = net.person(name, Encoding::Json);
            net.ask(id, r#"{"join":{"room":"r"}}"#);
            id
        });
        net.turn();
        net.wires.list[bob].space = Some(100);
        let text = "y".repeat(1000);
        for round in 0..20 {
            net.ask(ann, &format!(r#"{{"say":{{"room":"r","text":"{text}"}}}}"#));
            net.turn();
            let lag = net.core.rooms[0].lanes[0].log.len();
            assert!(lag < lag_bytes_max + 3000, "round {round}: the log holds {lag} bytes");
            if by_time && round == 5 {
                break;
            }
        }
        assert_eq!(net.wires.list[bob].closed, !by_time);
        net.wires.now.us += 4_000_000;
        net.turn();
        assert_eq!(net.wires.list[bob].closed, !by_time);
        net.wires.now.us += 2_000_000;
        net.turn();
        net.turn();
        assert!(net.wires.list[bob].closed && !net.wires.list[ann].closed);
        assert_eq!(net.core.counters.slow_consumers, 1);
        let told = net.hear(ann).iter().any(|json| json.contains(r#""left":["bob"]"#));
        assert!(told, "the others are told");
        assert_eq!(net.core.rooms[0].lanes[0].log.len(), 0, "nothing is kept for the gone");
    }
}

#[test]
fn who_asks_without_reading_is_cut_off() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    let text = "y".repeat(TEXT_BYTES_MAX);
    for _ in 0..60 {
        net.ask(ann, &format!(r#"{{"say":{{"room":"r","text":"{text}"}}}}"#));
    }
    net.turn();
    net.wires.list[ann].space = Some(0);
    for _ in 0..20 {
        net.ask(ann, r#"{"history":{"room":"r","limit":60}}"#);
        net.turn();
        if net.wires.list[ann].closed {
            break;
        }
        let held = net.core.conns[ann].pending().len();
        assert!(held <= ANSWER_BYTES_MAX, "{held} bytes are held");
    }
    assert!(net.wires.list[ann].closed && net.core.counters.slow_consumers == 1);
}

#[test]
fn a_frame_of_the_largest_size_is_taken() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    let mut text = r#"{"id":9,"ping":{}}"#.to_owned();
    text.extend(std::iter::repeat_n(' ', SERVER_FRAME_BYTES_MAX - text.len()));
    net.send_frame(ann, Opcode::Text, text.as_bytes());
    net.turn();
    assert!(net.hear(ann)[0].contains("pong"));
}

#[test]
fn an_idle_connection_is_small() {
    let size = size_of::<crate::delivery::conn::Conn>() + size_of::<crate::chat::room::Member>();
    assert!(size <= 320, "{size} bytes before heap");
}
