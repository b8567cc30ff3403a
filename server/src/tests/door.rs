//! Who may come and how: pages from elsewhere, addresses, haste, wrong passwords.

use std::net::IpAddr;

use protocols::wire::http::UpgradeRequest;
use protocols::yardstick::{Encoding, PATH};

use super::net::Net;
use crate::{Config, HashCost};

/// Times that are told are those that were waited.
#[test]
fn the_oldest_message_of_a_flush_tells_how_long_it_has_waited() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    net.settle();
    let before = net.core.counters.flush_waits.count();
    let say = r#"{"say":{"room":"r","text":"x"}}"#;
    net.ask(ann, say);
    net.wires.now.us += 3_000;
    net.ask(ann, say);
    net.settle();
    let text = net.core.counters.prometheus(&[]);
    assert_eq!(net.core.counters.flush_waits.count(), before + 1, "one of two: {text}");
    assert!(text.contains("flush_wait_seconds_sum 0.004\n"), "{text}");
}

const MINUTE_US: u64 = 60_000_000;

fn login(net: &mut Net, name: &str, password: &str) -> String {
    let id = net.dial(Encoding::Json);
    let json = format!(r#"{{"id":1,"login":{{"name":"{name}","password":"{password}"}}}}"#);
    net.ask(id, &json);
    net.turn();
    net.hash();
    let heard = net.hear(id).remove(0);
    net.core.hung_up(id);
    net.turn();
    let code = heard.split(r#""code":""#).nth(1).and_then(|rest| rest.split('"').next());
    code.unwrap_or("welcome").to_owned()
}

#[test]
fn pages_from_elsewhere_are_refused_and_others_let_in() {
    let origins = vec!["https://chat.example".parse().unwrap()];
    let rows: [(&[&str], u16); 6] = [
        (&[], 101),
        (&["http://test"], 101),
        (&["https://chat.example"], 101),
        (&["http://evil.example"], 403),
        (&["null"], 403),
        (&["http://test", "http://evil.example"], 400),
    ];
    for (values, status) in rows {
        let mut net = Net::new(Config { origins: origins.clone(), ..Config::default() }, 1);
        let id = net.connect();
        let headers: Vec<(&str, &str)> = values.iter().map(|value| ("Origin", *value)).collect();
        let request = UpgradeRequest {
            path: PATH,
            host: "test",
            headers: &headers,
            protocols: &[Encoding::Json.subprotocol()],
            key: [1; 16],
            deflate: false,
        };
        let mut bytes = Vec::new();
        request.write(&mut bytes).unwrap();
        net.send(id, &bytes);
        net.turn();
        let answer = String::from_utf8_lossy(&net.wires.list[id].received).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{values:?}: {answer}");
        let refused = net.core.counters.refused_origin;
        assert_eq!(refused, u64::from(status == 403), "{values:?}");
        assert_eq!(net.wires.list[id].finished, status != 101, "{values:?}");
    }
}

#[test]
fn requests_that_come_too_fast_are_answered_and_not_done() {
    let mut net = Net::new(Config { requests_per_second: 4, ..Config::default() }, 1);
    let [ann, bob] = ["ann", "bob"].map(|name| net.person(name, Encoding::Json));
    for id in 2..9 {
        net.ask(ann, &format!(r#"{{"id":{id},"ping":{{}}}}"#));
    }
    net.ask(bob, r#"{"id":2,"ping":{}}"#);
    net.turn();
    let heard = net.hear(ann);
    let pongs = heard.iter().filter(|json| json.contains("pong")).count();
    let refused = heard.iter().filter(|json| json.contains(r#""code":"too_fast""#)).count();
    assert_eq!((pongs, refused), (3, 4), "the login was the first: {heard:?}");
    assert_eq!(net.core.counters.errors["too_fast"], 4);
    assert!(net.hear(bob)[0].contains("pong"), "others are not held up");
    net.wires.now.us += 1_000_000;
    net.ask(ann, r#"{"id":9,"ping":{}}"#);
    net.turn();
    assert!(net.hear(ann)[0].contains("pong"));
}

#[test]
fn guessing_ends_for_a_name_whatever_a_password_costs() {
    for hash_cost in [HashCost::Off, HashCost::Low] {
        let config = Config { login_failures: 3, hash_cost, ..Config::default() };
        let mut net = Net::new(config, 1);
        assert_eq!(login(&mut net, "ann", "right"), "welcome");
        for _ in 0..20 {
            assert_eq!(login(&mut net, "ann", "right"), "welcome", "success does not count");
        }
        for _ in 0..3 {
            assert_eq!(login(&mut net, "ann", "wrong"), "denied");
        }
        for password in ["wrong", "right"] {
            assert_eq!(login(&mut net, "ann", password), "too_many_tries", "{hash_cost:?}");
        }
        assert_eq!(login(&mut net, "bob", "other"), "welcome");
        net.wires.now.us += MINUTE_US;
        assert_eq!(login(&mut net, "ann", "right"), "welcome");
        assert_eq!(net.core.counters.errors["too_many_tries"], 2);
    }
}

#[test]
fn guesses_that_are_hashed_at_once_tell_no_more_than_one_by_one() {
    let config = Config { login_failures: 3, hash_cost: HashCost::Low, ..Config::default() };
    let mut net = Net::new(config, 1);
    assert_eq!(login(&mut net, "ann", "right"), "welcome");
    let ids: Vec<usize> = (0..10).map(|_| net.dial(Encoding::Json)).collect();
    for (at, id) in ids.iter().enumerate() {
        let password = if at == 9 { "right" } else { "wrong" };
        net.ask(*id, &format!(r#"{{"id":1,"login":{{"name":"ann","password":"{password}"}}}}"#));
    }
    net.turn();
    assert_eq!(net.wires.to_hash.len(), 10);
    net.hash();
    let codes: Vec<bool> = ids.iter().map(|id| net.hear(*id)[0].contains("too_many")).collect();
    assert_eq!(codes, [[false; 3].as_slice(), &[true; 7]].concat());
}

#[test]
fn guessing_ends_for_an_address_and_a_token_still_opens() {
    let config = Config { login_failures_per_address: 5, ..Config::default() };
    let mut net = Net::new(config, 1);
    let at = |text: &str| Some(text.parse::<IpAddr>().unwrap());
    net.address = at("10.0.0.1");
    let ann = net.dial(Encoding::Json);
    net.ask(ann, r#"{"id":1,"login":{"name":"ann","password":"right"}}"#);
    net.turn();
    let welcome = net.hear(ann).remove(0);
    let token = welcome.split(r#""token":""#).nth(1).unwrap().split('"').next().unwrap();
    for number in 0..5 {
        let name = format!("n{number}");
        assert_eq!(login(&mut net, &name, "its own"), "welcome");
        assert_eq!(login(&mut net, &name, "wrong"), "denied");
    }
    assert_eq!(login(&mut net, "ann", "right"), "too_many_tries");
    let again = net.dial(Encoding::Json);
    net.ask(again, &format!(r#"{{"id":1,"login":{{"token":"{token}"}}}}"#));
    net.turn();
    assert!(net.hear(again)[0].contains("welcome"), "tokens are no guesses");
    net.address = at("10.0.0.2");
    assert_eq!(login(&mut net, "ann", "right"), "welcome");
}

#[test]
fn an_address_has_so_many_connections() {
    let config = Config { connections_per_address: 2, connections_max: 3, ..Config::default() };
    let mut net = Net::new(config, 1);
    let [here, there] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<IpAddr>().unwrap());
    net.address = Some(here);
    let first = net.connect();
    assert!(net.core.has_place(here));
    net.connect();
    assert!(!net.core.has_place(here) && net.core.has_place(there));
    net.core.hung_up(first);
    net.turn();
    assert!(net.core.has_place(here));
    net.connect();
    net.address = Some(there);
    net.connect();
    assert!(!net.core.has_place(there));
    let counters = &net.core.counters;
    assert_eq!((counters.refused_address, counters.refused), (1, 1));
}
