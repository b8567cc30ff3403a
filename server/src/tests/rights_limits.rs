//! Limits of rooms and roles, and people who are there more than once.

use protocols::yardstick::Encoding;

use super::net::Net;
use crate::chat::rights::Role;
use crate::config::{
    ROLES_MAX, ROLES_TOTAL_MAX, ROOM_BYTES_MAX, ROOMS_MAX, ROOMS_PAGE_MAX, SLOW_TIME_MAX,
};
use crate::{Config, Presence};

/// What one connection is told within two turns.
fn ask(net: &mut Net, id: usize, json: &str) -> String {
    net.ask(id, json);
    net.turn();
    net.turn();
    net.hear(id).join("\n")
}

fn quiet() -> Config {
    Config { presence: Presence::Off, ..Config::default() }
}

const CREATE: &str = r#"{"id":2,"create":{"room":"den"}}"#;
const JOIN: &str = r#"{"id":3,"join":{"room":"den"}}"#;

fn grant(name: &str, role: &str) -> String {
    let grant = format!(r#"{{"room":"den","name":"{name}","role":"{role}"}}"#);
    format!(r#"{{"id":4,"grant":{grant}}}"#)
}

#[test]
fn so_many_roles_fit_and_no_more() {
    let mut net = Net::new(quiet(), 1);
    let [ann, _, _] = ["ann", "bob", "cyd"].map(|name| net.person(name, Encoding::Json));
    ask(&mut net, ann, CREATE);
    for n in 0..ROLES_MAX - 2 {
        let owned = net.core.rooms[0].owned.as_mut().unwrap();
        owned.roles.insert(format!("{n:064}").into(), Role::Moderator);
    }
    let rows = [("bob", "member", ""), ("cyd", "member", "full"), ("bob", "owner", "")];
    for (name, role, code) in rows {
        let told = ask(&mut net, ann, &grant(name, role));
        assert_eq!(told.contains(r#""code":"full""#), code == "full", "{name} {role}: {told}");
    }
    assert_eq!(net.core.rooms[0].owned.as_ref().unwrap().roles.len(), ROLES_MAX);
    let rights = ask(&mut net, ann, r#"{"id":5,"rights":{"room":"den"}}"#);
    assert_eq!(rights.matches(r#""role":"#).count(), ROLES_MAX, "all come in one answer");
    assert!(ask(&mut net, ann, &grant("bob", "none")).contains(r#""done""#));
    net.core.counters.roles = ROLES_TOTAL_MAX as u64;
    let told = ask(&mut net, ann, &grant("cyd", "member"));
    assert!(told.contains(&format!("at most {ROLES_TOTAL_MAX} roles in all rooms")), "{told}");
    let told = ask(&mut net, ann, r#"{"id":2,"create":{"room":"fen"}}"#);
    assert!(told.contains(r#""code":"full""#), "its owner would be one more: {told}");
}

#[test]
fn so_many_rooms_fit_and_a_page_has_so_many() {
    let mut net = Net::new(quiet(), 1);
    let ann = net.person("ann", Encoding::Json);
    for n in 0..ROOMS_MAX - 1 {
        net.core.make_room(&format!("{n:05}"));
    }
    let rows = [
        (r#"{"limit":3}"#, 3, "00000"),
        ("{}", ROOMS_PAGE_MAX, "00000"),
        (r#"{"limit":4000000000}"#, ROOMS_PAGE_MAX, "00000"),
        (r#"{"after":"09990"}"#, 8, "09991"),
        (r#"{"after":"0999","limit":2}"#, 2, "09990"),
        (r#"{"after":"z"}"#, 0, ""),
    ];
    for (get, count, first) in rows {
        let told = ask(&mut net, ann, &format!(r#"{{"id":6,"rooms":{get}}}"#));
        assert_eq!(told.matches(r#""name":"#).count(), count, "{get}");
        assert!(count == 0 || told.contains(&format!(r#"[{{"name":"{first}"}}"#)), "{get}: {told}");
    }
    assert!(ask(&mut net, ann, CREATE).contains(r#""done""#));
    let told = ask(&mut net, ann, r#"{"id":2,"create":{"room":"fen"}}"#);
    assert!(told.contains(&format!(r#""full","text":"at most {ROOMS_MAX} rooms""#)), "{told}");
}

#[test]
fn values_outside_their_limits_are_refused() {
    let mut net = Net::new(quiet(), 1);
    let ann = net.person("ann", Encoding::Json);
    let long = "x".repeat(ROOM_BYTES_MAX + 1);
    let slow_ms = SLOW_TIME_MAX.as_millis() as u64;
    let rows = [
        (format!(r#""create":{{"room":"{long}"}}"#), "bad_room"),
        (r#""create":{"room":"a\nb"}"#.to_owned(), "bad_room"),
        (format!(r#""create":{{"room":"den","slowMs":{}}}"#, slow_ms + 1), "too_long"),
        (format!(r#""create":{{"room":"den","slowMs":{slow_ms}}}"#), ""),
        (format!(r#""configure":{{"room":"den","slowMs":{}}}"#, slow_ms + 1), "too_long"),
        (format!(r#""grant":{{"room":"{long}","name":"ann","role":"member"}}"#), "no_room"),
        (format!(r#""grant":{{"room":"den","name":"{long}","role":"member"}}"#), "unknown_name"),
        (format!(r#""grant":{{"room":"den","name":"ann","role":"{long}"}}"#), "bad_role"),
        (format!(r#""kick":{{"room":"den","name":"{long}"}}"#), "unknown_name"),
        (format!(r#""rights":{{"room":"{long}"}}"#), "no_room"),
    ];
    for (request, code) in rows {
        let told = ask(&mut net, ann, &format!(r#"{{"id":7,{request}}}"#));
        let expect = match code {
            "" => r#""done""#.to_owned(),
            code => format!(r#""code":"{code}""#),
        };
        assert!(told.contains(&expect), "{request}: {told}");
        assert!(told.len() < 300, "what was sent does not come back as it is: {told}");
    }
}

#[test]
fn all_connections_of_a_person_are_put_out_and_told_once() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    let bobs = [Encoding::Json, Encoding::Proto, Encoding::Proto].map(|e| net.person("bob", e));
    let bobby = net.person("bobby", Encoding::Proto);
    ask(&mut net, ann, CREATE);
    for id in [ann, bobs[0], bobs[1], bobby] {
        ask(&mut net, id, JOIN);
    }
    // One of them cannot take what it is sent, and is cut in the middle of a frame.
    net.wires.list[bobs[1]].space = Some(10);
    let text = "x".repeat(5000);
    ask(&mut net, ann, &format!(r#"{{"id":5,"say":{{"room":"den","text":"{text}"}}}}"#));
    net.settle();
    net.wires.list[bobs[1]].space = Some(100);
    ask(&mut net, ann, &format!(r#"{{"id":5,"say":{{"room":"den","text":"{text}"}}}}"#));
    for id in bobs.iter().chain([&bobby]) {
        net.hear(*id);
    }
    net.ask(ann, &grant("bob", "banned"));
    net.settle();
    let notice =
        r#"{"notice":{"room":"den","what":"role","name":"bob","role":"banned","by":"ann"}}"#;
    let heard = [ann, bobs[0], bobs[1], bobs[2], bobby].map(|id| net.hear(id));
    let told = heard.each_ref().map(|list| list.iter().filter(|json| *json == notice).count());
    assert_eq!(told, [1; 5]);
    let left = r#"{"presence":{"room":"den","left":["bob","bob"]}}"#;
    assert!([0, 4].iter().all(|at| heard[*at].iter().any(|json| json == left)), "{heard:?}");
    assert!(heard[2].len() == 2 && heard[2][0].contains(&text), "the rest of it, then the notice");
    assert_eq!((net.core.counters.members, net.core.rooms[0].len()), (2, 2));
}
