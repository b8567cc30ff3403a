//! The whole server under TLS, over real sockets: who does not read, who is there at the end.

use std::net::TcpStream;
use std::sync::Arc;

use protocols::yardstick::Encoding;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::loopback::{Client, connect, start};
use super::tls::{Folder, certificate, client};
use crate::{Config, Handle, Keys};

/// A server under TLS and a client that believes it.
fn secure(name: &str, config: Config) -> (Handle, Arc<ClientConfig>) {
    let folder = Folder::new(name);
    let (file, key, client) = certificate(&folder, "own");
    let tls = Some(Keys::load(&file, &key).unwrap());
    (start(Config { tls, ..config }), client)
}

fn stream(server: &Handle, config: &Arc<ClientConfig>) -> StreamOwned<ClientConnection, TcpStream> {
    StreamOwned::new(client(config), connect(server))
}

#[test]
fn who_does_not_read_is_cut_off_and_holds_nobody_up() {
    let lag_bytes_max = 100_000;
    let (server, config) = secure("lag", Config { lag_bytes_max, ..Config::default() });
    let mut people = ["ann", "bob"].map(|name| {
        let mut client = Client::over(stream(&server, &config), name, Encoding::Proto);
        client.ask(r#"{"id":2,"join":{"room":"r"}}"#);
        assert!(client.hear().contains("joined"));
        client
    });
    let ann = &mut people[0];
    let text = "y".repeat(16_000);
    let mut said = 0;
    while server.counters().slow_consumers == 0 {
        said += 1;
        assert!(said < 10_000, "nobody is cut off");
        ann.ask(&format!(r#"{{"id":{said},"say":{{"room":"r","text":"{text}"}}}}"#));
        while !ann.hear().contains("\"message\"") {}
    }
    ann.ask(r#"{"id":1,"members":{"room":"r"}}"#);
    let people = loop {
        let heard = ann.hear();
        if heard.contains("\"members\"") {
            break heard;
        }
    };
    assert!(people.contains("ann") && !people.contains("bob"), "{people}");
    let counters = server.stop().unwrap().counters;
    assert_eq!((counters.tls_handshakes, counters.tls_errors), (2, 0));
    assert_eq!(counters.slow_causes["lag"], 1);
}

#[test]
fn the_end_is_told_and_is_no_truncation() {
    let (server, config) = secure("end", Config::default());
    let mut ann = Client::over(stream(&server, &config), "ann", Encoding::Json);
    ann.ask(r#"{"id":2,"join":{"room":"r"}}"#);
    assert!(ann.hear().contains("joined"));
    server.stop().unwrap();
    let mut rest = Vec::new();
    ann.stream.read_to_end(&mut rest).expect("an end that TLS vouches for");
    let close = rest.windows(2).any(|code| code == 1001_u16.to_be_bytes());
    assert!(close, "{rest:02x?}");
}

#[test]
fn a_full_server_turns_away_before_a_handshake() {
    let (server, config) = secure("full", Config { connections_max: 1, ..Config::default() });
    let _ann = Client::over(stream(&server, &config), "ann", Encoding::Json);
    let mut bob = stream(&server, &config);
    assert!(bob.conn.complete_io(&mut bob.sock).is_err());
    let counters = server.stop().unwrap().counters;
    assert_eq!((counters.refused, counters.tls_handshakes), (1, 1));
}
