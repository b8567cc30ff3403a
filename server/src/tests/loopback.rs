//! The whole server in a thread, over real sockets.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use protocols::wire::frame::{self, Limits};
use protocols::wire::http::UpgradeRequest;
use protocols::yardstick::{Encoding, Frame, FrameWhat, PATH, Request};

use crate::machine::uring::Ring;
use crate::{Config, Handle, Io, spawn};

/// Long enough for any machine; a test that works never waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn start(config: Config) -> Handle {
    spawn(config, TcpListener::bind("127.0.0.1:0").unwrap()).unwrap()
}

pub(super) fn connect(server: &Handle) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What a client talks through.
pub(super) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

pub(super) struct Client {
    pub(super) stream: Box<dyn Stream>,
    encoding: Encoding,
    inbox: Vec<u8>,
}

impl Client {
    fn new(server: &Handle, name: &str, encoding: Encoding) -> Client {
        Client::over(connect(server), name, encoding)
    }

    /// Speaks over a stream that is there, and logs in.
    pub(super) fn over(stream: impl Stream + 'static, name: &str, encoding: Encoding) -> Client {
        let mut client = Client { stream: Box::new(stream), encoding, inbox: Vec::new() };
        let request = UpgradeRequest {
            path: PATH,
            host: "localhost",
            headers: &[],
            protocols: &[encoding.subprotocol()],
            key: [1; 16],
            deflate: false,
        };
        let mut bytes = Vec::new();
        request.write(&mut bytes).unwrap();
        client.stream.write_all(&bytes).unwrap();
        let used = loop {
            if let Some(accepted) = request.read_response(&client.inbox).unwrap() {
                break accepted.consumed;
            }
            client.fill();
        };
        client.inbox.drain(..used);
        client.ask(&format!(r#"{{"id":1,"login":{{"name":"{name}"}}}}"#));
        assert!(client.hear().contains("welcome"));
        client
    }

    fn fill(&mut self) {
        let mut buffer = [0; 4096];
        let length = self.stream.read(&mut buffer).unwrap();
        assert!(length > 0, "the server hung up");
        self.inbox.extend_from_slice(&buffer[..length]);
    }

    pub(super) fn ask(&mut self, json: &str) {
        let mut payload = Vec::new();
        let request = Request::decode(Encoding::Json, json.as_bytes()).unwrap();
        request.encode(self.encoding, &mut payload);
        let mut bytes = Vec::new();
        frame::write_frame(&mut bytes, self.encoding.opcode(), &payload, Some([5, 6, 7, 8]));
        self.stream.write_all(&bytes).unwrap();
    }

    /// The next frame as JSON.
    pub(super) fn hear(&mut self) -> String {
        loop {
            if let Some((frame, used)) = frame::decode(&self.inbox, Limits::CLIENT).unwrap() {
                assert_eq!(frame.opcode, self.encoding.opcode());
                let mut json = Vec::new();
                let parsed = Frame::decode(self.encoding, frame.payload).unwrap();
                parsed.encode(Encoding::Json, &mut json);
                self.inbox.drain(..used);
                return String::from_utf8(json).unwrap();
            }
            self.fill();
        }
    }
}

#[test]
fn people_talk_over_sockets() {
    const PEOPLE: usize = 5;
    const EACH: usize = 200;
    let server = start(Config::default());
    let mut people: Vec<_> = (0..PEOPLE)
        .map(|n| {
            let mut client = Client::new(&server, &format!("p{n}"), Encoding::ALL[n % 2]);
            client.ask(r#"{"id":2,"join":{"room":"live"}}"#);
            assert!(client.hear().contains(r#""joined":"#));
            client
        })
        .collect();
    for _ in 0..EACH {
        for client in &mut people {
            client.ask(r#"{"id":3,"say":{"room":"live","text":"hello"}}"#);
        }
    }
    for client in &mut people {
        let (mut next, mut acks) = (1, 0);
        while (next as usize) <= PEOPLE * EACH || acks < EACH {
            let json = client.hear();
            match Frame::decode(Encoding::Json, json.as_bytes()).unwrap().what {
                Some(FrameWhat::Message(message)) => {
                    assert_eq!(message.number, next);
                    next += 1;
                }
                Some(FrameWhat::Answer(_)) => acks += 1,
                _ => {}
            }
        }
    }
    let counters = server.stop().unwrap().counters;
    assert_eq!(counters.messages, (PEOPLE * EACH) as u64);
    assert_eq!(counters.deliveries, (PEOPLE * PEOPLE * EACH) as u64);
    assert_eq!((counters.slow_consumers, counters.protocol_errors), (0, 0));
}

/// Ways to write that this machine has.
fn ways() -> Vec<Io> {
    let all = [Io::Epoll, Io::Auto, Io::Uring];
    all.into_iter().filter(|io| *io != Io::Uring || Ring::new().is_ok()).collect()
}

#[test]
fn who_reads_late_gets_everything_in_order_however_it_is_written() {
    const PEOPLE: usize = 6;
    const COUNT: u32 = 800;
    for io in ways() {
        let server = start(Config { io, lag_bytes_max: 1 << 30, ..Config::default() });
        let mut people: Vec<_> = (0..PEOPLE)
            .map(|n| {
                let mut client = Client::new(&server, &format!("p{n}"), Encoding::Proto);
                client.ask(r#"{"id":2,"join":{"room":"live"}}"#);
                assert!(client.hear().contains(r#""joined":"#));
                client
            })
            .collect();
        // More than the sockets hold: each is full for a while, and writes are cut.
        let say = format!(r#"{{"say":{{"room":"live","text":"{}"}}}}"#, "z".repeat(16_000));
        (0..COUNT).for_each(|_| people[0].ask(&say));
        for client in &mut people {
            let mut next = 1;
            while next <= COUNT {
                let json = client.hear();
                let frame = Frame::decode(Encoding::Json, json.as_bytes()).unwrap();
                if let Some(FrameWhat::Message(message)) = frame.what {
                    assert_eq!((message.number, message.text.len()), (next, 16_000), "{io:?}");
                    next += 1;
                }
            }
        }
        // Who goes while others are written to does no harm.
        people.truncate(4);
        people[0].ask(r#"{"say":{"room":"live","text":"the end"}}"#);
        while !people[3].hear().contains("the end") {}
        let counters = server.stop().unwrap().counters;
        assert_eq!((counters.slow_consumers, counters.protocol_errors), (0, 0), "{io:?}");
        assert_eq!(counters.messages, u64::from(COUNT) + 1, "{io:?}");
    }
}

#[test]
fn a_page_and_a_full_server() {
    let server = start(Config { connections_max: 1, ..Config::default() });
    let mut first = connect(&server);
    let page = |stream: &mut TcpStream, path: &str| {
        let mut text = String::new();
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    // The first is in before the second is looked at: both wait in one queue.
    let mut second = connect(&server);
    let mut refusal = String::new();
    second.read_to_string(&mut refusal).unwrap();
    assert!(refusal.starts_with("HTTP/1.1 503 "), "{refusal}");
    let text = page(&mut first, "/metrics");
    assert!(text.contains("\nyardstick_refused_total{cause=\"full\"} 1\n"), "{text}");
    drop(first);
    assert_eq!(server.stop().unwrap().counters.refused, 1);
}

#[test]
fn a_stall_is_recorded_and_everything_is_served_afterwards() {
    let faults = "stall=0ms:50ms".parse().unwrap();
    let server = start(Config { faults, ..Config::default() });
    let mut ann = Client::new(&server, "ann", Encoding::Json);
    ann.ask(r#"{"id":2,"ping":{}}"#);
    assert!(ann.hear().contains("pong"));
    let outcome = server.stop().unwrap();
    assert_eq!(outcome.faults.len(), 1);
    assert_eq!(outcome.faults[0].kind, "stall");
}
