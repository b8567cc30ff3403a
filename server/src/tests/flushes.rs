//! When rooms flush, and what of: idle at once, loaded within the window, naively if wanted.

use std::time::Duration;

use protocols::wire::rng::SplitMix;
use protocols::yardstick::Encoding;

use super::net::Net;
use crate::{Config, Encode, Flush};

/// The poller counts in milliseconds: it wakes up late by less than one.
const POLL_GRAIN_US: u64 = 1_000;
const SAY: &str = r#"{"say":{"room":"ROOM","text":"x"}}"#;

/// So many rooms and people in each, so many messages a second in all, for a second.
struct Load {
    rooms: usize,
    people: usize,
    per_second: u64,
    write_cost_us: u64,
}

/// What came of it.
struct Came {
    messages: u64,
    flushes: u64,
    /// Longest time from a turn that took a message to the turn that sent it.
    wait_max_us: u64,
    /// Messages that waited for a later turn.
    waited: u64,
}

impl Load {
    /// Serves the load as the event loop does: turns when something comes or is due.
    fn serve(&self, config: Config, seed: u64) -> Came {
        let mut rng = SplitMix::new(seed);
        let mut net = Net::new(config, seed);
        let speakers: Vec<usize> = (0..self.rooms).map(|room| self.fill(&mut net, room)).collect();
        net.wires.now.us += 2_000_000;
        net.settle();
        net.wires.write_cost_us = self.write_cost_us;
        let (start_us, flushes) = (net.wires.now.us, net.core.counters.flushes);
        let mut came = Came { messages: 0, flushes: 0, wait_max_us: 0, waited: 0 };
        let mut oldest_us = vec![None; self.rooms];
        let arrival_us = |number: u64| start_us + number * 1_000_000 / self.per_second;
        let mut due_us = None;
        while came.messages < self.per_second || oldest_us.iter().any(Option::is_some) {
            let is_more = came.messages < self.per_second;
            let arrival = is_more.then(|| arrival_us(came.messages));
            let late_us = rng.below(POLL_GRAIN_US as usize) as u64;
            let wake_us = [arrival, due_us.map(|due: u64| due + late_us)];
            let wake_us = wake_us.into_iter().flatten().min().expect("something is to come");
            net.wires.now.us = net.wires.now.us.max(wake_us);
            let now_us = net.wires.now.us;
            let mut fresh = 0;
            while came.messages < self.per_second && arrival_us(came.messages) <= now_us {
                let room = rng.below(self.rooms);
                net.ask(speakers[room], &SAY.replace("ROOM", &format!("r{room}")));
                oldest_us[room].get_or_insert(now_us);
                (came.messages, fresh) = (came.messages + 1, fresh + 1);
            }
            due_us = net.core.end_turn(net.wires.now, &mut net.wires);
            for (room, oldest) in net.core.rooms.iter().zip(&mut oldest_us) {
                if room.lanes[0].log.len() > 0 {
                    continue;
                }
                if let Some(taken_us) = oldest.take() {
                    came.wait_max_us = came.wait_max_us.max(now_us - taken_us);
                    came.waited += u64::from(now_us > taken_us);
                }
            }
        }
        came.flushes = net.core.counters.flushes - flushes;
        came
    }

    /// People enter a room; gives one of them.
    fn fill(&self, net: &mut Net, room: usize) -> usize {
        let mut last = 0;
        for person in 0..self.people {
            last = net.person(&format!("p{room}x{person}"), Encoding::Json);
            net.ask(last, &format!(r#"{{"join":{{"room":"r{room}"}}}}"#));
        }
        last
    }
}

#[test]
fn an_idle_server_flushes_at_once() {
    for (rooms, people, per_second) in [(1, 100, 100), (25, 20, 300), (1, 2, 1_000)] {
        let load = Load { rooms, people, per_second, write_cost_us: 6 };
        let came = load.serve(Config::default(), 1);
        assert_eq!((came.waited, came.flushes), (0, came.messages), "{rooms} rooms of {people}");
    }
}

#[test]
fn a_loaded_server_batches_within_the_window() {
    // One busy room, and many of which none is busy by itself.
    for (rooms, people, per_second) in [(1, 100, 2_000), (40, 20, 8_000), (3, 300, 1_000)] {
        for window_ms in [2, 20, 100] {
            let flush_window = Duration::from_millis(window_ms);
            let load = Load { rooms, people, per_second, write_cost_us: 6 };
            let came = load.serve(Config { flush_window, ..Config::default() }, window_ms);
            let row = format!("{rooms} rooms of {people}, {window_ms} ms");
            // Beyond the window only the turn may reach that was under way when it ended.
            let turn_us = rooms as u64 * people as u64 * 6 + 2 * 6 * per_second / 10;
            let most_us = window_ms * 1_000 + turn_us;
            assert!(came.wait_max_us <= most_us, "{row}: waited {} us", came.wait_max_us);
            let is_batched = came.flushes * 3 < came.messages * 2;
            assert!(is_batched || window_ms == 2, "{row}: {} flushes", came.flushes);
        }
    }
}

#[test]
fn without_a_window_nothing_waits_however_busy() {
    let load = Load { rooms: 3, people: 100, per_second: 1_000, write_cost_us: 6 };
    let none = Config { flush_window: Duration::ZERO, ..Config::default() };
    let message = Config { flush: Flush::Message, ..Config::default() };
    for config in [none, message] {
        assert_eq!(load.serve(config, 1).waited, 0);
    }
}

/// A server whose flushes have taken all of the time for a while, at rest; Ann and Bob are in `r`.
fn saturated(window_ms: u64) -> (Net, [usize; 2]) {
    let flush_window = Duration::from_millis(window_ms);
    let mut net = Net::new(Config { flush_window, ..Config::default() }, 1);
    let ids = ["ann", "bob"].map(|name| net.person(name, Encoding::Json));
    ids.iter().for_each(|id| net.ask(*id, r#"{"join":{"room":"r"}}"#));
    net.settle();
    net.wires.write_cost_us = 1_000_000;
    for _ in 0..5 {
        net.ask(ids[0], &SAY.replace("ROOM", "r"));
        net.wires.now.us += window_ms * 1_000;
        net.turn();
    }
    net.wires.write_cost_us = 0;
    ids.iter().for_each(|id| _ = net.hear(*id));
    (net, ids)
}

#[test]
fn what_waits_is_due_when_the_pause_ends() {
    for (window_ms, pause_us) in [(0, 0), (5, 4_000), (20, 19_000), (50, 49_000)] {
        let (mut net, [ann, bob]) = saturated(window_ms);
        let end_us = net.wires.now.us;
        net.ask(ann, &SAY.replace("ROOM", "r"));
        let due_us = net.core.end_turn(net.wires.now, &mut net.wires);
        assert_eq!(net.hear(bob).is_empty(), window_ms > 0, "{window_ms} ms");
        if window_ms > 0 {
            assert_eq!(due_us, Some(end_us + pause_us), "{window_ms} ms");
            net.wires.now.us = end_us + pause_us;
            net.core.end_turn(net.wires.now, &mut net.wires);
            assert_eq!(net.hear(bob).len(), 1, "{window_ms} ms");
        }
    }
}

#[test]
fn much_to_send_waits_for_no_pause_and_a_server_that_stops_for_none() {
    let (mut net, [ann, bob]) = saturated(10_000);
    let text = "y".repeat(16_000);
    for number in 0..17 {
        assert!(net.hear(bob).is_empty(), "after {number}");
        net.ask(ann, &format!(r#"{{"say":{{"room":"r","text":"{text}"}}}}"#));
        net.turn();
    }
    assert_eq!(net.hear(bob).len(), 17);
    net.ask(ann, &SAY.replace("ROOM", "r"));
    net.turn();
    assert!(net.hear(bob).is_empty() && !net.core.is_settled());
    net.core.stopping = true;
    net.turn();
    assert_eq!((net.hear(bob).len(), net.core.is_settled()), (1, true));
}

#[test]
fn naive_servers_say_the_same_at_more_cost() {
    let rows = [
        (Encode::Once, Flush::Turn, 4, 4),
        (Encode::Once, Flush::Message, 4, 7),
        (Encode::Receiver, Flush::Turn, 6, 4),
        (Encode::Receiver, Flush::Message, 6, 7),
    ];
    let mut all_heard = Vec::new();
    for (encode, flush, encodings, writes) in rows {
        let config = Config { encode, flush, deflate: true, ..Config::default() };
        let mut net = Net::new(config, 1);
        let ids = [Encoding::Json, Encoding::Json, Encoding::Proto].map(|encoding| {
            let id = net.person(&format!("p{}", net.wires.list.len()), encoding);
            net.ask(id, r#"{"join":{"room":"r","members":true}}"#);
            id
        });
        net.settle();
        let before = net.core.counters.clone();
        (0..2).for_each(|_| net.ask(ids[0], &SAY.replace("ROOM", "r")));
        net.turn();
        let after = &net.core.counters;
        let row = format!("{encode:?}, {flush:?}");
        assert_eq!(after.encodings - before.encodings, encodings, "{row}");
        assert_eq!(after.writes - before.writes, writes, "{row}: and one for the answers");
        assert_eq!(after.flushes - before.flushes, 1, "{row}");
        assert!(net.core.rooms[0].ends.is_empty());
        all_heard.push(ids.map(|id| net.hear(id)));
    }
    assert!(all_heard[0].iter().all(|heard| heard.len() > 2));
    assert!(all_heard.iter().all(|heard| heard == &all_heard[0]), "{all_heard:?}");
}

#[test]
fn presence_too_is_encoded_for_each_and_written_by_itself() {
    let config = Config { encode: Encode::Receiver, flush: Flush::Message, ..Config::default() };
    let mut net = Net::new(config, 1);
    let [ann, bob, cyd] = ["ann", "bob", "cyd"].map(|name| net.person(name, Encoding::Proto));
    [ann, bob].iter().for_each(|id| net.ask(*id, r#"{"join":{"room":"r"}}"#));
    net.settle();
    let before = net.core.counters.clone();
    net.ask(ann, &SAY.replace("ROOM", "r"));
    net.ask(cyd, r#"{"join":{"room":"r"}}"#);
    net.ask(cyd, &SAY.replace("ROOM", "r"));
    net.turn();
    net.turn();
    // Two messages, to two and to three, and that Cyd has come, to three.
    assert_eq!(net.core.counters.encodings - before.encodings, 2 + 3 + 3);
    let kinds = |net: &mut Net, id| {
        let words = net.hear(id);
        words.iter().map(|json| json[2..5].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&mut net, bob).join(" "), "ans mes mes pre");
    assert_eq!(kinds(&mut net, cyd).join(" "), "ans ans mes");
}

#[test]
fn who_leaves_before_a_flush_is_told_of_those_who_came() {
    let mut net = Net::new(Config::default(), 1);
    let [ann, bob, cid] = ["ann", "bob", "cid"].map(|name| net.person(name, Encoding::Json));
    let (join, leave) = (r#"{"join":{"room":"live"}}"#, r#"{"leave":{"room":"live"}}"#);
    net.ask(ann, join);
    net.settle();
    net.hear(ann);
    for (id, what) in [(bob, join), (cid, join), (bob, leave), (ann, leave)] {
        net.ask(id, what);
    }
    net.settle();
    let came = |names: &[&str]| {
        let people: Vec<String> = names.iter().map(|n| format!(r#"{{"name":"{n}"}}"#)).collect();
        format!(r#"{{"presence":{{"room":"live","joined":[{}]}}}}"#, people.join(","))
    };
    let done = r#"{"answer":{"done":{}}}"#;
    assert_eq!(net.hear(ann), [&came(&["bob", "cid"]), done]);
    assert_eq!(net.hear(bob), [r#"{"answer":{"joined":{}}}"#, &came(&["cid"]), done]);
}
