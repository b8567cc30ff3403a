//! A NATS server that is none, or not the one that was meant: what a node says then.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use super::*;
use crate::Commit;
use crate::store::tests::Scratch;

const INFO: &str = r#"{"server_id":"x","headers":true,"jetstream":true,"max_payload":1048576}"#;

/// What a server does that is not as it should be.
#[derive(Default)]
struct Script {
    /// Said first.
    greeting: String,
    /// Said to who has introduced himself, instead of PONG.
    reception: Option<&'static str>,
    /// The answer to what the log is.
    log: String,
    /// Entries that are delivered, by their places.
    entries: Vec<(u64, &'static str)>,
}

fn fine() -> Script {
    Script { greeting: format!("INFO {INFO}\r\n"), log: log(1, 1, "s.log"), ..Script::default() }
}

fn log(first: u64, last: u64, subject: &str) -> String {
    format!(
        r#"{{"config":{{"name":"s_log","subjects":["{subject}"]}},"created":"then",
            "state":{{"first_seq":{first},"last_seq":{last}}}}}"#
    )
}

/// One conversation, until the other side hangs up.
fn play(script: &Script, stream: TcpStream) -> io::Result<()> {
    let mut out = stream.try_clone()?;
    out.write_all(script.greeting.as_bytes())?;
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["PING"] => out.write_all(script.reception.unwrap_or("PONG\r\n").as_bytes())?,
            ["PUB", subject, reply, length] => {
                let length: usize = length.parse().unwrap();
                io::copy(&mut lines.by_ref().take(length as u64 + 2), &mut io::sink())?;
                if subject.contains("STREAM.INFO") {
                    let answer = &script.log;
                    write!(out, "MSG {reply} {SID_API} {}\r\n{answer}\r\n", answer.len())?;
                }
                if subject.contains("CONSUMER.CREATE") {
                    for (place, entry) in &script.entries {
                        let (sid, length) = (SID_LOG + 1, entry.len());
                        let ack = format!("$JS.ACK.s_log.c.1.{place}.1.0.0");
                        write!(out, "MSG d {sid} {ack} {length}\r\n{entry}\r\n")?;
                    }
                }
            }
            _ => {}
        }
        line.clear();
    }
    Ok(())
}

/// What a node with an empty store says that joins such a server.
#[allow(clippy::disallowed_methods)] // a node is given its clock by the event loop
fn join(script: Script, position: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let _ = play(&script, listener.accept().unwrap().0); // it ends when the node has enough
    });
    let scratch = Scratch::new("nats");
    let mut store = Store::open(&scratch.path("db"), Commit::Late).unwrap();
    if position > 0 {
        store.follow("s_log of then").unwrap();
        let jobs = Vec::new();
        let batch = Batch { position, life: 1, serial: 1, jobs };
        assert!(store.follow_batches(vec![batch]).is_ok());
    }
    let config = BusConfig { url, service: "s".to_owned(), credentials: Default::default() };
    let joined = Nats::dial(&config, 7, Instant::now());
    let why = joined.and_then(|mut nats| nats.catch_up(&mut store)).unwrap_err().to_string();
    server.join().unwrap();
    why
}

#[test]
fn servers_that_are_not_what_was_meant_are_told_apart() {
    let greet = |greeting: &str| Script { greeting: greeting.to_owned(), ..fine() };
    let rows = [
        (greet("HTTP/1.1 400 Bad Request\r\n\r\n"), "does not speak NATS"),
        (greet("PING\r\n"), "does not introduce itself"),
        (greet("INFO {\r\n"), "EOF while parsing"),
        (greet(&format!("INFO {}", "x".repeat(300_000))), "too long"),
        (greet("INFO {\"headers\":true}\r\n"), "start it with --jetstream"),
        (
            Script { reception: Some("-ERR 'Authorization Violation'\r\n"), ..fine() },
            "Authorization Violation",
        ),
        (Script { reception: Some("MSG a b c\r\n"), ..fine() }, "does not speak NATS"),
        (Script { log: "none".to_owned(), ..fine() }, "no JSON"),
        (Script { log: log(1, 1, "other"), ..fine() }, "other"),
        (Script { log: log(5, 9, "s.log"), ..fine() }, "begins with entry 5"),
        (Script { entries: vec![(1, "{}")], ..fine() }, "entry 1 of the log is none"),
        (Script { entries: vec![(1, r#"{"v":9}"#)], ..fine() }, "version 9"),
        (
            Script { entries: vec![(3, r#"{"v":1,"life":1,"serial":1,"wants":[]}"#)], ..fine() },
            "goes on with 3",
        ),
    ];
    for (script, expect) in rows {
        let why = join(script, 0);
        assert!(why.contains(expect), "{expect}: {why}");
    }
    let why = join(fine(), 2);
    assert!(why.contains("ends with entry 1, and this node has carried out 2"), "{why}");
    let why = join(Script { log: log(1, 1, "s.log").replace("then", "now"), ..fine() }, 2);
    assert!(why.contains("follows another log"), "{why}");
}

#[test]
fn places_of_servers() {
    let place = |host: &str, port, tls| Ok(Place { host: host.to_owned(), port, tls });
    let rows = [
        ("nats://a", place("a", 4222, false)),
        ("tls://a.b:1/", place("a.b", 1, true)),
        ("nats://[::1]:5", place("::1", 5, false)),
        ("nats://[::1]", place("::1", 4222, false)),
    ];
    for (url, expect) in rows {
        assert_eq!(Place::parse(url), expect, "{url}");
    }
    for wrong in ["", "a:1", "http://a", "nats://", "nats://a:b", "nats://a:70000", "nats://u:p@a"]
    {
        assert!(Place::parse(wrong).is_err(), "{wrong}");
    }
}
