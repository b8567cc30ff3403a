//! The knobs, each against what it says: compression, pictures, throttle, history, flushes.

use std::time::Duration;

use protocols::wire::deflate;
use protocols::wire::frame::{self, Opcode};
use protocols::wire::http::{HttpError, UpgradeRequest};
use protocols::yardstick::{Encoding, PATH};

use super::net::Net;
use crate::{Avatars, Config, Encode, Flush};

/// People who are in the room `r`; what they heard until then is gone.
fn in_room<const N: usize>(net: &mut Net, names: [&str; N], encoding: Encoding) -> [usize; N] {
    let ids = names.map(|name| {
        let id = net.person(name, encoding);
        net.ask(id, r#"{"join":{"room":"r","avatars":true}}"#);
        id
    });
    (0..3).for_each(|_| _ = net.turn());
    ids.iter().for_each(|id| _ = net.hear(*id));
    ids
}

fn say(net: &mut Net, id: usize, text: &str) {
    net.ask(id, &format!(r#"{{"say":{{"room":"r","text":"{text}"}}}}"#));
}

fn messages(net: &mut Net, id: usize) -> usize {
    net.hear(id).iter().filter(|json| json.starts_with(r#"{"message""#)).count()
}

#[test]
fn a_message_is_compressed_once_for_everybody_who_hears_it() {
    for encoding in Encoding::ALL {
        let mut net = Net::new(Config { deflate: true, ..Config::default() }, 1);
        let text = "to be or not to be, ".repeat(20);
        let ids = [true, true, false].map(|deflate| {
            let id = if deflate { net.dial_deflated(encoding) } else { net.dial(encoding) };
            net.ask(id, &format!(r#"{{"login":{{"name":"n{id}"}}}}"#));
            net.ask(id, r#"{"join":{"room":"r"}}"#);
            id
        });
        (0..3).for_each(|_| _ = net.turn());
        ids.iter().for_each(|id| _ = net.hear(*id));
        let before = ids.map(|id| net.wires.list[id].received.len());
        let compressed = ids.map(|id| net.wires.list[id].compressed);
        say(&mut net, ids[2], &text);
        net.turn();
        let bytes = |at: usize| net.wires.list[ids[at]].received[before[at]..].to_vec();
        assert_eq!(bytes(0), bytes(1), "the same bytes for both");
        assert!(bytes(0).len() * 3 < bytes(2).len(), "{} bytes", bytes(0).len());
        let heard = ids.map(|id| net.hear(id));
        assert!(heard[0][0].contains(&text) && heard[0][0] == heard[2][1], "{heard:?}");
        let fresh = ids.map(|id| net.wires.list[id].compressed);
        assert_eq!([fresh[0], fresh[1]], [compressed[0] + 1, compressed[1] + 1]);
        assert_eq!(fresh[2], 0, "who did not ask for it hears nothing compressed");
    }
}

#[test]
fn compression_is_agreed_on_by_both() {
    for (has, asks) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut net = Net::new(Config { deflate: has, ..Config::default() }, 1);
        let id = net.connect();
        let protocols = &[Encoding::Json.subprotocol()];
        let (path, host, headers, key) = (PATH, "test", &[][..], [1; 16]);
        let request = UpgradeRequest { path, host, headers, protocols, key, deflate: asks };
        let mut bytes = Vec::new();
        request.write(&mut bytes).unwrap();
        net.send(id, &bytes);
        net.turn();
        let answer = request.read_response(&net.wires.list[id].received);
        match asks && !has {
            true => assert_eq!(answer, Err(HttpError::NoDeflate)),
            false => assert!(answer.unwrap().is_some()),
        }
    }
}

#[test]
fn bombs_and_garbage_end_the_connection() {
    let mut bomb = Vec::new();
    deflate::write_frame(&mut bomb, Opcode::Text, &vec![b' '; 10_000_000], Some([0; 4]));
    assert!(bomb.len() < 20_000);
    let mut garbage = Vec::new();
    frame::write_compressed(&mut garbage, Opcode::Text, &[7, 7, 7], Some([0; 4]));
    for (bytes, deflated, code) in
        [(&bomb, true, 1009), (&bomb, false, 1002), (&garbage, true, 1007)]
    {
        let mut net = Net::new(Config { deflate: true, ..Config::default() }, 1);
        let dial = if deflated { Net::dial_deflated } else { Net::dial };
        let id = dial(&mut net, Encoding::Json);
        net.send(id, bytes);
        net.turn();
        let heard = net.hear(id);
        assert!(heard[0].starts_with(&format!("<close> {code} ")), "{heard:?}");
        assert_eq!(net.core.counters.protocol_errors, 1);
    }
}

#[test]
fn pictures_are_pushed_or_announced_or_not_there() {
    for encoding in Encoding::ALL {
        for (avatars, has) in [
            (Avatars::Eager, r#""avatar":""#),
            (Avatars::Lazy, r#""avatarHash":""#),
            (Avatars::Off, r#"{"name":"ann"}"#),
        ] {
            let mut net = Net::new(Config { avatars, ..Config::default() }, 1);
            let [ann] = in_room(&mut net, ["ann"], encoding);
            let bob = net.person("bob", encoding);
            net.ask(bob, r#"{"id":2,"join":{"room":"r","members":true,"avatars":true}}"#);
            net.turn();
            net.ask(bob, r#"{"id":3,"members":{"room":"r"}}"#);
            let cyd = net.person("cyd", encoding);
            net.ask(cyd, r#"{"id":2,"join":{"room":"r","members":true}}"#);
            net.turn();
            net.turn();
            let (ann, bob, cyd) = (net.hear(ann), net.hear(bob), net.hear(cyd));
            let off = has.replace("ann", "bob");
            let shown = if avatars == Avatars::Off { &off } else { has };
            assert!(ann[0].contains(shown), "{avatars:?}: presence of bob: {}", ann[0]);
            assert!(ann[1].contains(r#"{"name":"cyd"}"#), "cyd has none: {}", ann[1]);
            assert!(bob[0].contains(has), "{avatars:?}: answer to the join: {}", bob[0]);
            assert_eq!(bob[1].matches(shown).count(), if avatars == Avatars::Off { 1 } else { 2 });
            assert!(!cyd[0].contains("avatar"), "who does not want pictures: {}", cyd[0]);
            let long = avatars == Avatars::Eager;
            assert_eq!(bob[0].len() > crate::config::AVATAR_BYTES, long, "{avatars:?}");
        }
    }
}

#[test]
fn a_picture_is_given_to_who_asks_by_its_hash() {
    for (avatars, hash, expect) in [
        (Avatars::Lazy, "0123456789abcdef", r#""avatar":{"picture":""#),
        (Avatars::Eager, "0123456789abcdef", r#""avatar":{"picture":""#),
        (Avatars::Lazy, "0123", r#""code":"bad_hash""#),
        (Avatars::Off, "0123456789abcdef", r#""code":"no_avatars""#),
    ] {
        let mut net = Net::new(Config { avatars, avatar_bytes: 300, ..Config::default() }, 1);
        let ann = net.person("ann", Encoding::Json);
        net.ask(ann, &format!(r#"{{"id":2,"avatar":{{"hash":"{hash}"}}}}"#));
        net.turn();
        let heard = net.hear(ann).remove(0);
        assert!(heard.contains(expect), "{avatars:?}, {hash}: {heard}");
        let given = u64::from(expect.contains("picture"));
        assert_eq!((net.core.counters.avatars, heard.len() > 400), (given, given == 1));
    }
}

#[test]
fn presence_frames_with_pictures_are_bounded() {
    let avatar_bytes = crate::config::AVATAR_BYTES_MAX;
    let config = Config { avatars: Avatars::Eager, avatar_bytes, ..Config::default() };
    let mut net = Net::new(config, 1);
    let [ann] = in_room(&mut net, ["ann"], Encoding::Proto);
    let ids: Vec<usize> =
        (0..20).map(|number| net.person(&format!("p{number}"), Encoding::Proto)).collect();
    ids.iter().for_each(|id| net.ask(*id, r#"{"join":{"room":"r","avatars":true}}"#));
    net.turn();
    net.turn();
    let heard = net.hear(ann);
    let counts: Vec<usize> =
        heard.iter().map(|json| json.matches(r#""avatar":"#).count()).collect();
    assert_eq!(counts, [16, 4]);
}

/// A server that hands out so many deliveries a second, and three people in a room.
fn throttled(deliveries_per_second: u64, lag_bytes_max: usize) -> (Net, [usize; 3]) {
    let config = Config { deliveries_per_second, lag_bytes_max, ..Config::default() };
    let mut net = Net::new(config, 1);
    let ids = in_room(&mut net, ["ann", "bob", "cyd"], Encoding::Proto);
    (net, ids)
}

#[test]
fn so_many_deliveries_a_second_and_no_more() {
    for (rate, count) in [(30, 20), (300, 200), (1_000, 500)] {
        let (mut net, ids) = throttled(rate, 1 << 20);
        let start_us = net.wires.now.us;
        (0..count).for_each(|_| say(&mut net, ids[0], "x"));
        let mut gone = 0;
        while gone < 3 * count {
            let due_us = net.turn().unwrap();
            assert!(due_us > net.wires.now.us, "the loop is not to spin");
            gone += ids.map(|id| messages(&mut net, id)).iter().sum::<usize>();
            let allowed = rate as usize * (net.wires.now.us - start_us) as usize / 1_000_000;
            assert!(gone <= allowed + 3, "{rate}/s: {gone} in place of {allowed}");
            assert!(gone == 3 * count || gone + 6 >= allowed, "{rate}/s: only {gone} of {allowed}");
        }
        assert_eq!(net.core.counters.deliveries, 3 * count as u64);
        assert!(net.core.rooms[0].waiting.is_empty() && net.core.throttle.next_due_us().is_none());
        assert_eq!(net.core.rooms[0].lanes[1].log.len(), 0);
    }
}

#[test]
fn what_waits_is_for_those_who_were_there_and_stay() {
    let (mut net, [ann, bob, cyd]) = throttled(3, 1 << 20);
    (0..4).for_each(|_| say(&mut net, ann, "x"));
    net.turn();
    net.hear(ann);
    assert_eq!((messages(&mut net, bob), messages(&mut net, cyd)), (1, 1));
    net.ask(cyd, r#"{"id":3,"leave":{"room":"r"}}"#);
    let dan = net.person("dan", Encoding::Proto);
    net.ask(dan, r#"{"id":2,"join":{"room":"r"}}"#);
    net.turn();
    assert_eq!(messages(&mut net, cyd), 0, "who leaves does not get what waits");
    say(&mut net, bob, "y");
    for _ in 0..6 {
        net.turn();
        net.wires.now.us += 1_000_000;
        net.turn();
    }
    let heard = net.hear(dan);
    let of_dan: Vec<_> = heard.iter().filter(|json| json.starts_with(r#"{"message"#)).collect();
    assert!(of_dan.len() == 1 && of_dan[0].contains(r#""number":5"#), "{heard:?}");
    assert_eq!(messages(&mut net, bob), 4, "all that was said after the first");
}

#[test]
fn what_waits_is_bounded_by_the_lag() {
    let (mut net, ids) = throttled(1, 20_000);
    let text = "z".repeat(1_000);
    for _ in 0..40 {
        say(&mut net, ids[0], &text);
        net.turn();
        net.wires.now.us += 1_000;
        let bytes = net.core.rooms[0].lanes.iter().map(|lane| lane.log.len()).max();
        assert!(bytes < Some(24_000), "{bytes:?} bytes wait");
    }
    assert_eq!(net.core.counters.slow_consumers, 3);
    assert!(ids.iter().all(|id| net.wires.list[*id].closed));
    net.wires.now.us += 5_000_000;
    net.turn();
    assert!(net.core.throttle.next_due_us().is_none(), "nothing waits for the gone");
}

#[test]
fn processor_time_is_burnt_for_messages_and_deliveries() {
    for (message_us, delivery_us, burnt_us) in [(0, 0, 0), (20, 0, 40), (0, 7, 42), (5, 1, 16)] {
        let config = Config {
            cpu_per_message: Duration::from_micros(message_us),
            cpu_per_delivery: Duration::from_micros(delivery_us),
            ..Config::default()
        };
        let mut net = Net::new(config, 1);
        let ids = in_room(&mut net, ["ann", "bob", "cyd"], Encoding::Json);
        (0..2).for_each(|_| say(&mut net, ids[0], "x"));
        net.turn();
        net.turn();
        assert_eq!(net.wires.burnt_ns, burnt_us * 1_000, "{message_us} and {delivery_us} us");
    }
}

#[test]
fn a_room_remembers_so_many_messages() {
    for history in [0, 1, 3, 100] {
        let mut net = Net::new(Config { history, ..Config::default() }, 1);
        let [ann] = in_room(&mut net, ["ann"], Encoding::Json);
        (0..5).for_each(|_| say(&mut net, ann, "x"));
        net.turn();
        net.hear(ann);
        net.ask(ann, r#"{"id":7,"history":{"room":"r","limit":50}}"#);
        let bob = net.person("bob", Encoding::Json);
        net.ask(bob, r#"{"id":2,"join":{"room":"r","history":50}}"#);
        net.turn();
        net.turn();
        let page = net.hear(ann).into_iter().find(|json| json.contains(r#""id":7"#)).unwrap();
        let joined = net.hear(bob).remove(0);
        for answer in [page, joined] {
            assert_eq!(answer.matches("sender").count(), history.min(5), "{answer}");
        }
        assert_eq!(net.core.history_bytes > 0, history > 0);
    }
}

#[test]
fn the_page_tells_every_knob() {
    let config = Config {
        deflate: true,
        avatars: Avatars::Eager,
        avatar_bytes: 77,
        deliveries_per_second: 5,
        cpu_per_message: Duration::from_nanos(1_500),
        encode: Encode::Receiver,
        flush: Flush::Message,
        ..Config::default()
    };
    let core = crate::core::Core::new(config, [0; 32]).unwrap();
    let page = crate::outlook::pages::page("/info", &core).unwrap().body;
    for line in [
        r#""deflate": "on""#,
        r#""avatars": "eager""#,
        r#""avatar_bytes": 77"#,
        r#""deliveries_per_second": 5"#,
        r#""cpu_per_message_us": 1.5"#,
        r#""cpu_per_delivery_us": 0.0"#,
        r#""presence": "batched""#,
        r#""flush_window_ms": 20"#,
        r#""encode": "receiver""#,
        r#""flush": "message""#,
        r#""io": "auto""#,
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
}
