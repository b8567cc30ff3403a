//! Conversations for every request: `ann>` asks, `ann<` hears, `ann!` hangs up.

use std::collections::HashMap;

use protocols::yardstick::Encoding;

use super::net::Net;
use crate::{Config, Presence};

/// Plays a talk with every mix of encodings of its first two people, plain and compressed.
pub(super) fn play(config: &Config, talk: &str) {
    for mix in 0..16 {
        let encodings = [Encoding::ALL[mix & 1], Encoding::ALL[mix >> 1 & 1]];
        let deflate = [mix & 4 != 0, mix & 8 != 0];
        let config = Config { deflate: mix & 12 != 0, ..config.clone() };
        play_once(config, talk, encodings, deflate);
    }
}

fn play_once(config: Config, talk: &str, encodings: [Encoding; 2], deflate: [bool; 2]) {
    let mut net = Net::new(config, 1);
    let mut people: HashMap<&str, usize> = HashMap::new();
    let mut heard: HashMap<usize, Vec<String>> = HashMap::new();
    let lines = talk.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in lines.clone() {
        let (name, rest) = line.split_at(3);
        let (mark, text) = (&rest[..1], rest[1..].trim());
        if !people.contains_key(name) {
            let encoding = encodings[people.len() % 2];
            let id = match deflate[people.len() % 2] {
                true => net.dial_deflated(encoding),
                false => net.dial(encoding),
            };
            people.insert(name, id);
        }
        let id = people[name];
        for (id, list) in people.values().map(|id| (*id, net.hear(*id))) {
            heard.entry(id).or_default().extend(list);
        }
        match mark {
            ">" => net.ask(id, text),
            "!" => net.core.hung_up(id),
            "<" => {
                let list = heard.entry(id).or_default();
                assert!(!list.is_empty(), "{encodings:?}: silence instead of {line}");
                assert_eq!(hide_token(&list.remove(0)), text, "{encodings:?}: {line}");
                continue;
            }
            _ => panic!("bad line {line}"),
        }
        net.turn();
        net.turn();
    }
    for (name, id) in people {
        let mut rest = heard.remove(&id).unwrap_or_default();
        rest.extend(net.hear(id));
        assert_eq!(rest, Vec::<String>::new(), "{encodings:?}: {name} heard more");
    }
}

/// Replaces the value of a token by a star.
fn hide_token(json: &str) -> String {
    match json.split_once(r#""token":""#) {
        Some((before, rest)) => {
            let (_, after) = rest.split_once('"').expect("a closed string");
            format!(r#"{before}"token":"*"{after}"#)
        }
        None => json.to_owned(),
    }
}

pub(super) const ANN_IN: &str = r#"
    ann> {"id":1,"login":{"name":"ann","password":"pw"}}
    ann< {"answer":{"id":1,"welcome":{"name":"ann","token":"*","expiresMs":"1700086400000"}}}
    ann> {"id":2,"join":{"room":"live","status":"st-a"}}
    ann< {"answer":{"id":2,"joined":{}}}
"#;
pub(super) const BOB_IN: &str = r#"
    bob> {"id":1,"login":{"name":"bob"}}
    bob< {"answer":{"id":1,"welcome":{"name":"bob","token":"*","expiresMs":"1700086400000"}}}
    bob> {"id":2,"join":{"room":"live","status":"st-b","members":true}}
    bob< {"answer":{"id":2,"joined":{"people":[{"name":"ann","status":"st-a"}]}}}
    ann< {"presence":{"room":"live","joined":[{"name":"bob","status":"st-b"}]}}
"#;

#[test]
fn messages_reach_everybody_the_sender_too() {
    let talk = r#"
    ann> {"id":3,"say":{"room":"live","text":"one"}}
    ann< {"answer":{"id":3,"said":{"number":1,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":1,"sender":"ann","text":"one","atMs":"1700000000000"}}
    bob< {"message":{"room":"live","number":1,"sender":"ann","text":"one","atMs":"1700000000000"}}
    bob> {"id":3,"typing":{"room":"live","name":"forged"}}
    bob< {"answer":{"id":3,"done":{}}}
    bob< {"typing":{"room":"live","name":"bob"}}
    ann< {"typing":{"room":"live","name":"bob"}}
    bob> {"id":4,"read":{"room":"live","number":1}}
    bob< {"answer":{"id":4,"done":{}}}
    bob< {"read":{"room":"live","number":1,"name":"bob"}}
    ann< {"read":{"room":"live","number":1,"name":"bob"}}
    bob> {"id":5,"leave":{"room":"live"}}
    bob< {"answer":{"id":5,"done":{}}}
    ann< {"presence":{"room":"live","left":["bob"]}}
    ann> {"id":6,"say":{"room":"live","text":"two"}}
    ann< {"answer":{"id":6,"said":{"number":2,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":2,"sender":"ann","text":"two","atMs":"1700000000000"}}
    "#;
    play(&Config::default(), &format!("{ANN_IN}{BOB_IN}{talk}"));
}

#[test]
fn who_hangs_up_has_left() {
    let talk = r#"
    bob!
    ann< {"presence":{"room":"live","left":["bob"]}}
    ann> {"id":3,"members":{"room":"live"}}
    ann< {"answer":{"id":3,"members":{"people":[{"name":"ann","status":"st-a"}]}}}
    "#;
    play(&Config::default(), &format!("{ANN_IN}{BOB_IN}{talk}"));
}

#[test]
fn the_past_is_kept_up_to_a_limit_and_paged() {
    let config = Config { history: 2, ..Config::default() };
    let talk = r#"
    ann> {"id":3,"say":{"room":"live","text":"a"}}
    ann< {"answer":{"id":3,"said":{"number":1,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":1,"sender":"ann","text":"a","atMs":"1700000000000"}}
    ann> {"id":4,"say":{"room":"live","text":"b"}}
    ann< {"answer":{"id":4,"said":{"number":2,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":2,"sender":"ann","text":"b","atMs":"1700000000000"}}
    ann> {"id":5,"say":{"room":"live","text":"c"}}
    ann< {"answer":{"id":5,"said":{"number":3,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":3,"sender":"ann","text":"c","atMs":"1700000000000"}}
    ann> {"id":6,"history":{"room":"live","limit":9}}
    ann< {"answer":{"id":6,"history":{"messages":[{"number":2,"sender":"ann","text":"b","atMs":"1700000000000"},{"number":3,"sender":"ann","text":"c","atMs":"1700000000000"}]}}}
    ann> {"id":7,"history":{"room":"live","limit":1,"before":3}}
    ann< {"answer":{"id":7,"history":{"messages":[{"number":2,"sender":"ann","text":"b","atMs":"1700000000000"}]}}}
    ann> {"id":8,"history":{"room":"live","limit":1,"before":2}}
    ann< {"answer":{"id":8,"history":{}}}
    bob> {"id":1,"login":{"name":"bob"}}
    bob< {"answer":{"id":1,"welcome":{"name":"bob","token":"*","expiresMs":"1700086400000"}}}
    bob> {"id":2,"join":{"room":"live","history":1}}
    bob< {"answer":{"id":2,"joined":{"number":3,"messages":[{"number":3,"sender":"ann","text":"c","atMs":"1700000000000"}]}}}
    ann< {"presence":{"room":"live","joined":[{"name":"bob"}]}}
    "#;
    play(&config, &format!("{ANN_IN}{talk}"));
}

#[test]
fn what_goes_wrong_is_answered() {
    let talk = r#"
    ann> {"id":1,"ping":{}}
    ann< {"answer":{"id":1,"error":{"code":"login_first","text":"log in first"}}}
    ann> {"id":1,"join":{"room":"live"}}
    ann< {"answer":{"id":1,"error":{"code":"login_first","text":"log in first"}}}
    ann> {"id":2,"login":{"name":"a\tb"}}
    ann< {"answer":{"id":2,"error":{"code":"bad_name","text":"a name has 1 to 64 bytes, none of control"}}}
    ann> {"id":3,"login":{"token":"ann.99999999999999.AAAA"}}
    ann< {"answer":{"id":3,"error":{"code":"denied","text":"wrong name, password or token"}}}
    ann> {"id":4,"login":{"name":"ann","password":"pw"}}
    ann< {"answer":{"id":4,"welcome":{"name":"ann","token":"*","expiresMs":"1700086400000"}}}
    ann> {"id":5,"login":{"name":"ann","password":"pw"}}
    ann< {"answer":{"id":5,"error":{"code":"already_logged_in","text":"this connection is logged in"}}}
    bob> {"id":1,"login":{"name":"ann","password":"guess"}}
    bob< {"answer":{"id":1,"error":{"code":"denied","text":"wrong name, password or token"}}}
    ann> {"id":6,"ping":{}}
    ann< {"answer":{"id":6,"pong":{"atMs":"1700000000000"}}}
    ann> {"id":7,"say":{"room":"live","text":"x"}}
    ann< {"answer":{"id":7,"error":{"code":"not_in_room","text":"not in live"}}}
    ann> {"id":8,"leave":{"room":"live"}}
    ann< {"answer":{"id":8,"error":{"code":"not_in_room","text":"not in live"}}}
    ann> {"id":9,"join":{}}
    ann< {"answer":{"id":9,"error":{"code":"bad_room","text":"a room's name has 1 to 64 bytes, none of control"}}}
    ann> {"id":10,"join":{"room":"live"}}
    ann< {"answer":{"id":10,"joined":{}}}
    ann> {"id":11,"join":{"room":"live"}}
    ann< {"answer":{"id":11,"error":{"code":"already_in_room","text":"already in live"}}}
    ann> {"id":12,"say":{"room":"live"}}
    ann< {"answer":{"id":12,"error":{"code":"empty","text":"a message has at least one byte"}}}
    ann> {"id":13}
    ann< {"answer":{"id":13,"error":{"code":"unknown_request","text":"this server does not know this request"}}}
    "#;
    play(&Config::default(), talk);
}

#[test]
fn nobody_is_announced_where_presence_is_off() {
    let config = Config { presence: Presence::Off, ..Config::default() };
    let bob_in = BOB_IN.lines().filter(|line| !line.contains(r#"ann< {"presence"#));
    let bob_in: Vec<_> = bob_in.collect();
    play(&config, &format!("{ANN_IN}{}\nbob!", bob_in.join("\n")));
}

#[test]
fn a_token_of_one_connection_serves_another() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.dial(Encoding::Json);
    net.ask(ann, r#"{"id":1,"login":{"name":"ann","password":"pw"}}"#);
    net.turn();
    let welcome = net.hear(ann).remove(0);
    let token = welcome.split(r#""token":""#).nth(1).unwrap().split('"').next().unwrap();
    let again = net.dial(Encoding::Proto);
    net.ask(again, &format!(r#"{{"id":9,"login":{{"token":"{token}"}}}}"#));
    net.turn();
    let heard = net.hear(again).remove(0);
    assert_eq!(heard.replace(r#""id":9"#, r#""id":1"#), welcome, "same name, token and expiry");
}

#[test]
fn arrivals_of_one_turn_share_a_frame_and_nobody_hears_of_themselves() {
    for (presence, expect_ann) in [
        (
            Presence::Batched,
            vec![
                r#"{"presence":{"room":"r","joined":[{"name":"bob"},{"name":"cyd"}]}}"#,
                r#"{"presence":{"room":"r","left":["bob"]}}"#,
            ],
        ),
        (
            Presence::Eager,
            vec![
                r#"{"presence":{"room":"r","joined":[{"name":"bob"}]}}"#,
                r#"{"presence":{"room":"r","joined":[{"name":"cyd"}]}}"#,
                r#"{"presence":{"room":"r","left":["bob"]}}"#,
            ],
        ),
    ] {
        let mut net = Net::new(Config { presence, ..Config::default() }, 1);
        let [ann, bob, cyd] = ["ann", "bob", "cyd"].map(|name| net.person(name, Encoding::Json));
        net.ask(ann, r#"{"id":2,"join":{"room":"r"}}"#);
        net.turn();
        net.hear(ann);
        net.ask(bob, r#"{"id":2,"join":{"room":"r"}}"#);
        net.ask(cyd, r#"{"id":2,"join":{"room":"r"}}"#);
        net.ask(bob, r#"{"id":3,"leave":{"room":"r"}}"#);
        let writes = net.wires.writes;
        net.turn();
        assert_eq!(net.hear(ann), expect_ann, "{presence:?}");
        let left = r#"{"presence":{"room":"r","left":["bob"]}}"#;
        assert_eq!(net.hear(cyd)[1..], [left], "{presence:?}");
        assert!(net.wires.writes - writes <= 5, "{} writes", net.wires.writes - writes);
    }
}
