//! What happens is told: each event of the log, brought about.

use std::net::SocketAddr;
use std::sync::mpsc::Receiver;

use protocols::yardstick::Encoding;

use super::net::Net;
use crate::config::{ANSWER_BYTES_MAX, LOG_LINES_PER_SECOND};
use crate::outlook::journal::tests::sink;
use crate::outlook::journal::{Journal, LogForm};
use crate::{Config, config};

/// A server whose connections come from one address, and what its journal writes.
fn net(config: Config) -> (Net, Receiver<String>) {
    let (sink, heard) = sink();
    let mut net = Net::new(config, 1);
    net.address = Some("10.0.0.1".parse().unwrap());
    net.core.journal = Journal::new(LogForm::Text, sink, net.wires.now.unix_ms).unwrap();
    (net, heard)
}

/// All lines, without their times.
fn lines(net: Net, heard: &Receiver<String>) -> Vec<String> {
    drop(net);
    let text: String = heard.iter().collect();
    let line = |line: &str| line.split_once("Z ").expect(line).1.to_owned();
    text.lines().map(line).collect()
}

#[test]
fn refusals_have_a_cause_and_an_address() {
    let (mut net, heard) = net(Config { connections_max: 1, ..Config::default() });
    let id = net.connect();
    assert!(!net.core.has_place("::1".parse().unwrap()));
    let head = "GET /ws HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\nUpgrade: websocket\r\n\
                Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: yardstick.v1.json\r\n\r\n";
    net.send(id, head.as_bytes());
    net.turn();
    let expect = [
        "warn refused cause=full address=::1",
        "warn refused cause=origin origin=http://b address=10.0.0.1",
    ];
    assert_eq!(lines(net, &heard), expect);
}

#[test]
fn logins_that_fail_are_told_without_what_was_tried() {
    let (mut net, heard) = net(Config { login_failures: 1, ..Config::default() });
    let ann = net.dial(Encoding::Json);
    for (name, password) in [("ann", "pass1"), ("ann", "pass2"), ("ann", "pass3")] {
        let id = net.dial(Encoding::Json);
        let json = format!(r#"{{"login":{{"name":"{name}","password":"{password}"}}}}"#);
        net.ask(id, &json);
    }
    net.ask(ann, r#"{"login":{"token":"ann.1.token"}}"#);
    net.turn();
    let expect = [
        "warn login_failed name=ann address=10.0.0.1",
        "warn limit code=too_many_tries name=\"\" address=10.0.0.1",
        "warn token_refused address=10.0.0.1",
    ];
    assert_eq!(lines(net, &heard), expect);
}

#[test]
fn who_does_not_read_is_told_by_cause() {
    for cause in ["lag", "answers", "unwritable"] {
        let lag_bytes_max = if cause == "lag" { 1_000 } else { usize::MAX };
        let (mut net, heard) = net(Config { lag_bytes_max, ..Config::default() });
        let [ann, bob] = ["ann", "bob"].map(|name| {
            let id = net.person(name, Encoding::Json);
            net.ask(id, r#"{"join":{"room":"r"}}"#);
            id
        });
        net.turn();
        net.wires.list[bob].space = Some(0);
        let text = "y".repeat(config::TEXT_BYTES_MAX);
        net.ask(ann, &format!(r#"{{"say":{{"room":"r","text":"{text}"}}}}"#));
        net.turn();
        match cause {
            "answers" => {
                for _ in 0..=ANSWER_BYTES_MAX / config::TEXT_BYTES_MAX {
                    net.ask(bob, r#"{"history":{"room":"r","limit":1}}"#);
                }
            }
            "unwritable" => net.wires.now.us += 60_000_000,
            _ => {}
        }
        net.turn();
        assert!(net.wires.list[bob].closed, "{cause}");
        assert_eq!(net.core.counters.slow_causes.get(cause), Some(&1), "{cause}");
        let expect = format!("warn slow_consumer cause={cause} name=bob address=10.0.0.1");
        assert_eq!(lines(net, &heard), [expect]);
    }
}

#[test]
fn an_exposed_server_says_so() {
    let rows = [("127.0.0.1:1", true, 1), ("0.0.0.0:1", true, 2), ("10.0.0.1:1", false, 2)];
    for (address, registration, count) in rows {
        let (mut net, heard) = net(Config { registration, ..Config::default() });
        net.core.tell_start(address.parse::<SocketAddr>().unwrap(), 0);
        let lines = lines(net, &heard);
        assert_eq!(lines.len(), count, "{lines:?}");
        assert!(lines[0].starts_with(&format!("info start listen={address} ")), "{lines:?}");
        assert!(lines[1..].iter().all(|line| line.starts_with("warn exposed ")), "{lines:?}");
    }
}

#[test]
fn a_storm_of_requests_is_a_few_lines_and_a_count() {
    let (mut net, heard) = net(Config { requests_per_second: 1, ..Config::default() });
    let ann = net.person("ann", Encoding::Json);
    (0..500).for_each(|_| net.ask(ann, r#"{"ping":{}}"#));
    net.turn();
    let lines = lines(net, &heard);
    let most = LOG_LINES_PER_SECOND as usize;
    assert_eq!(lines.len(), most + 1);
    assert_eq!(lines[0], "warn limit code=too_fast name=ann address=10.0.0.1");
    assert_eq!(lines[most], format!("warn more of=limit count={}", 500 - most));
}
