//! Targets that break every rule, each in its own way: what they do is counted under the right
//! class, said in words, and costs bounded time and memory.

mod socketio;

use crate::muc::{End, Muc, hold};
use crate::rig::{Folder, for_each, listener};
use model::What;
use protocols::wire::frame::{self, Opcode};
use protocols::wire::http;
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

const PEOPLE: u64 = 3;
/// The most memory a run of three people may ever need, KiB.
const PEAK_KIB: u64 = 200 << 10;
/// The longest a run may go on, seconds. The limits of the scenario are much shorter.
const SECONDS: f64 = 30.0;

/// A way to be hostile, and how it must be counted.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    /// How the target is reached, which protocol it claims to speak, and over which transport.
    spoken: &'static str,
    target: Target,
    /// Empty for any.
    measure: &'static str,
    class: &'static str,
    /// Part of what must be said; empty where the system chooses between an end and a reset.
    words: &'static str,
    /// Where patience is what is tested; otherwise limits are generous, for slow machines.
    limits: &'static str,
}

#[derive(Clone, Copy)]
enum Target {
    /// Does this with every connection.
    Does(fn(TcpStream)),
    /// Speaks well up to a point.
    Until(End),
    /// Never accepts a connection.
    Deaf,
}

use Target::{Deaf, Does, Until};

const fn row(name: &'static str, target: Target, fault: [&'static str; 3]) -> Row {
    let [measure, class, words] = fault;
    Row { name, spoken: "ws yardstick", target, measure, class, words, limits: "" }
}

impl Row {
    const fn spoken(self, spoken: &'static str) -> Row {
        Row { spoken, ..self }
    }

    const fn limits(self, limits: &'static str) -> Row {
        Row { limits, ..self }
    }
}

/// Reads the request for an upgrade and gives its answer.
fn asked(stream: &mut TcpStream) -> Vec<u8> {
    let mut inbox = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "the person hung up before it asked");
        inbox.extend_from_slice(&buffer[..length]);
        if let Some(head) = http::read_request(&inbox).unwrap() {
            let mut answer = Vec::new();
            let upgrade = head.upgrade.unwrap();
            upgrade.accept(&mut answer, upgrade.protocols().next());
            return answer;
        }
    }
}

fn upgraded(stream: &mut TcpStream) {
    let answer = asked(stream);
    stream.write_all(&answer).unwrap();
}

/// Says something and waits for the end, so that no reset overtakes the words.
fn say(mut stream: TcpStream, bytes: &[u8]) {
    // Whoever has heard enough hangs up: that is what is hoped for.
    let _ = stream.write_all(bytes);
    hold(stream);
}

fn answers(mut stream: TcpStream, answer: &str) {
    asked(&mut stream);
    say(stream, answer.as_bytes());
}

/// Says something over and over until nobody listens.
fn forever(mut stream: TcpStream, bytes: &[u8]) {
    while stream.write_all(bytes).is_ok() {}
}

fn after_upgrade(mut stream: TcpStream, bytes: &[u8]) {
    upgraded(&mut stream);
    say(stream, bytes);
}

fn text(payload: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_frame(&mut bytes, Opcode::Text, payload.as_bytes(), None);
    bytes
}

const BOMB: &str = "<!DOCTYPE lolz [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>\
                    <!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'>]><open>&c;</open>";

/// Answers that are no upgrade, and connections that end early.
const NO_UPGRADE: &[Row] = &[
    row(
        "an answer of 200",
        Does(|s| answers(s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")),
        ["connect", "upgrade", "HTTP status 200"],
    ),
    row(
        "a redirect",
        Does(|s| answers(s, "HTTP/1.1 301 Moved\r\nLocation: ws://192.0.2.7/\r\n\r\n")),
        ["connect", "upgrade", "HTTP status 301"],
    ),
    row(
        "a wrong accept key",
        Does(|mut s| {
            let answer = String::from_utf8(asked(&mut s)).unwrap();
            let key = answer.find("Accept: ").unwrap() + 8;
            say(s, format!("{}AAAA{}", &answer[..key], &answer[key + 4..]).as_bytes());
        }),
        ["connect", "upgrade", "Sec-WebSocket-Accept"],
    ),
    row(
        "another subprotocol",
        Does(|mut s| {
            let answer = String::from_utf8(asked(&mut s)).unwrap();
            let start = answer.find("Protocol: ").unwrap() + 10;
            let end = start + answer[start..].find('\r').unwrap();
            say(s, format!("{}soap{}", &answer[..start], &answer[end..]).as_bytes());
        }),
        ["connect", "upgrade", "soap"],
    ),
    row(
        "an SSH server",
        Does(|s| say(s, b"SSH-2.0-OpenSSH_9.2\r\n")),
        ["connect", "upgrade", "not HTTP/1.1"],
    ),
    row(
        "an endless HTTP head",
        Does(|mut s| {
            asked(&mut s);
            s.write_all(b"HTTP/1.1 101 Switching Protocols\r\n").unwrap();
            forever(
                s,
                b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
            );
        }),
        ["connect", "upgrade", "HTTP head above"],
    ),
    row("closed at once", Does(drop), ["connect", "closed", ""]),
    row(
        "closed instead of an answer",
        Does(|mut s| drop(asked(&mut s))),
        ["connect", "closed", ""],
    ),
    row(
        "closed in the answer",
        Does(|mut s| {
            let answer = asked(&mut s);
            s.write_all(&answer[..40]).unwrap();
        }),
        ["connect", "closed", ""],
    ),
    row(
        "plain text where TLS was expected",
        Does(|s| say(s, b"HTTP/1.1 400 Bad Request\r\n\r\n")),
        ["connect", "tls", ""],
    )
    .spoken("wss yardstick"),
];

/// What is no conversation, behind a proper upgrade.
const NO_CONVERSATION: &[Row] = &[
    row("closed behind the upgrade", Does(|mut s| upgraded(&mut s)), ["login", "closed", ""]),
    row(
        "closed in WebSocket's own way",
        Does(|s| after_upgrade(s, b"\x88\x05\x03\xE9bye")),
        ["login", "closed", "1001 bye"],
    ),
    row(
        "garbage",
        Does(|s| after_upgrade(s, &[0xB7; 300])),
        ["login", "protocol", "reserved bits"],
    ),
    row(
        "a garbage message",
        Does(|s| after_upgrade(s, &text("\u{1}{[}"))),
        ["login", "protocol", ""],
    ),
    row(
        "a frame of 1 GiB",
        Does(|mut s| {
            upgraded(&mut s);
            s.write_all(&[0x82, 127, 0, 0, 0, 0, 0x40, 0, 0, 0]).unwrap();
            forever(s, &[b'x'; 1 << 16]);
        }),
        ["login", "too-large", "1073741824 bytes"],
    ),
    row(
        "a frame of 2^63 bytes",
        Does(|s| after_upgrade(s, &[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0])),
        ["login", "too-large", "bytes"],
    ),
    row(
        "a message in endless parts",
        Does(|mut s| {
            upgraded(&mut s);
            let mut part = Vec::new();
            frame::write_part(&mut part, false, Opcode::Binary, &[b'x'; 60_000], None);
            s.write_all(&part).unwrap();
            let mut next = Vec::new();
            frame::write_part(&mut next, false, Opcode::Continuation, &[b'x'; 60_000], None);
            forever(s, &next);
        }),
        ["login", "too-large", "bytes"],
    )
    .limits(", frame: 4MiB"),
    row(
        "a compressed bomb",
        // A deflate block that repeats zeros; nobody agreed on compression.
        Does(|s| after_upgrade(s, &[&[0xC2, 126, 4, 0][..], &[0x62; 1024]].concat())),
        ["login", "protocol", "reserved bits"],
    ),
    row("an entity bomb", Does(|s| after_upgrade(s, &text(BOMB))), ["login", "protocol", ""])
        .spoken("ws xmpp"),
    row(
        "deep nesting",
        Does(|s| after_upgrade(s, &text(&format!("<open>{}", "<a>".repeat(100_000))))),
        ["login", "protocol", ""],
    )
    .spoken("ws xmpp"),
    row(
        "half a stanza",
        Does(|s| after_upgrade(s, &text("<open xmlns='urn"))),
        ["login", "protocol", ""],
    )
    .spoken("ws xmpp"),
    row(
        "endless pings, and nobody reads the answers",
        Does(|mut s| {
            upgraded(&mut s);
            forever(
                s,
                &b"\x89\x7Dxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
                         xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                    .repeat(512),
            );
        }),
        ["login", "backlog", "did not read"],
    )
    .limits(", backlog: 64KiB"),
];

/// A login over HTTP that goes well, and what is done with the connection behind it.
fn behind_login(mut stream: TcpStream, act: fn(TcpStream)) {
    let mut start = [0; 4];
    while stream.peek(&mut start).unwrap() < 4 {}
    if &start != b"POST" {
        return act(stream);
    }
    posted(&mut stream);
    say(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"token\":\"t\"}");
}

/// Reads a login, whose form is `a=b`.
fn posted(stream: &mut TcpStream) {
    let mut inbox = Vec::new();
    let mut buffer = [0; 4096];
    while !inbox.ends_with(b"\r\n\r\na=b") {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "the person hung up before it asked");
        inbox.extend_from_slice(&buffer[..length]);
    }
}

fn answers_login(mut stream: TcpStream, answer: &str) {
    posted(&mut stream);
    say(stream, answer.as_bytes());
}

/// Servers that are described by their user, and do not keep to it.
const DESCRIBED: &[Row] = &[
    row(
        "a login that is refused",
        Does(|s| answers_login(s, "HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nnope")),
        ["login", "login-refused", "401: nope"],
    ),
    row(
        "a token that breaks the header",
        Does(|s| {
            let body = "{\"token\":\"a\\r\\nb\"}";
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            answers_login(s, &(head + body));
        }),
        ["login", "login-refused", "line break"],
    ),
    row(
        "an answer of 1 GiB",
        Does(|s| answers_login(s, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n{")),
        ["login", "too-large", "above 1048576 bytes"],
    ),
    row(
        "an answer in endless chunks",
        Does(|mut s| {
            posted(&mut s);
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            s.write_all(head).unwrap();
            forever(s, format!("10000\r\n{}\r\n", "x".repeat(0x10000)).as_bytes());
        }),
        ["login", "too-large", "above 1048576 bytes"],
    ),
    row(
        "garbage for an answer",
        Does(|s| answers_login(s, "SSH-2.0-OpenSSH_9.2\r\n")),
        ["login", "protocol", "HTTP"],
    ),
    row("closed at the login", Does(|mut s| posted(&mut s)), ["login", "closed", ""]),
    row(
        "no answer to the login",
        Does(|mut s| {
            posted(&mut s);
            hold(s);
        }),
        ["login", "handshake-timeout", "not answered in time"],
    )
    .limits(", handshake: 300ms"),
    row(
        "no upgrade behind the login",
        Does(|s| behind_login(s, |s| answers(s, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"))),
        ["login", "upgrade", "HTTP status 403"],
    ),
    row("closed behind the login", Does(|s| behind_login(s, drop)), ["login", "closed", ""]),
    row(
        "a garbage message behind the login",
        Does(|s| behind_login(s, |s| after_upgrade(s, &text("\u{1}{[}")))),
        ["login", "protocol", "no message"],
    ),
    row(
        "deep nesting behind the login",
        Does(|s| behind_login(s, |s| after_upgrade(s, &text(&"[".repeat(100_000))))),
        ["login", "protocol", "no message"],
    ),
    row(
        "a frame of 1 GiB behind the login",
        Does(|s| behind_login(s, |s| after_upgrade(s, &[0x81, 127, 0, 0, 0, 0, 0x40, 0, 0, 0]))),
        ["login", "too-large", "1073741824 bytes"],
    ),
];

/// What a described server is said to be like.
const DESCRIPTION: &str = "
websocket:
  login: [{post: /login, form: {a: b}, keep: {token: token}}]
  headers: {Authorization: \"Bearer {token}\"}
  opening: [{answer: {hello: world}}]
  verbs: {join: {send: {join: \"{room}\"}}, leave: {send: {leave: \"{room}\"}}, say: {send: {say: \"{text}\"}}}
";

/// A proper conversation that is closed after each of its steps: the streams' opening and the
/// authentication, the binding, the join, the first thing said.
const CLOSED: &[Row] = &[
    row("closed before the first stanza", Until(End::Closed(0)), ["login", "closed", ""]),
    row("closed behind the opening", Until(End::Closed(1)), ["login", "closed", ""]),
    row("closed behind the success", Until(End::Closed(2)), ["login", "closed", ""]),
    row("closed behind the second opening", Until(End::Closed(3)), ["login", "closed", ""]),
    row("closed behind the binding", Until(End::Closed(4)), ["join", "closed", ""]),
    // Who has said something already misses the acknowledgment, and others the connection.
    row("closed behind the join", Until(End::Closed(5)), ["", "closed", ""]),
];

/// Targets that let people wait, each against the limit that ends it.
const SILENT: &[Row] = &[
    row("never accepted", Deaf, ["connect", "connect-timeout", "not accepted in time"])
        .limits(", connect: 300ms"),
    row("no answer", Does(hold), ["connect", "handshake-timeout", "not answered in time"])
        .limits(", handshake: 300ms"),
    row("no TLS", Does(hold), ["connect", "handshake-timeout", "not answered in time"])
        .spoken("wss yardstick")
        .limits(", handshake: 300ms"),
    row(
        "an answer in drips",
        Does(|mut s| {
            let answer = asked(&mut s);
            for byte in answer.iter().cycle().take(100) {
                if s.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(50)); // this is the behavior
            }
        }),
        ["connect", "handshake-timeout", "not answered in time"],
    )
    .limits(", handshake: 300ms"),
    row(
        "no login",
        Does(|mut s| {
            upgraded(&mut s);
            hold(s);
        }),
        ["login", "login-timeout", "`login` was not answered"],
    )
    .limits(", login: 300ms"),
    row(
        "no join",
        Until(End::Unanswered(4)),
        ["join", "request-timeout", "`join` was not answered"],
    )
    .limits(", request: 300ms"),
    row("nothing read", Until(End::Unread(5)), ["say", "backlog", "did not read"])
        .limits(", backlog: 256KiB"),
];

fn scenario(url: &str, protocol: &str, limits: &str) -> String {
    format!(
        "
target: {url}
protocol: {protocol}
rooms: [lobby]
crowds:
  people:
    size: {PEOPLE}
    journey: [login, join, {{talk: {{every: 4ms, times: 4000, bytes: 16000}}}}, leave]
timeline: [{{run: people at once}}]
limits: {{late: 20s{limits}}}
{}",
        if protocol == "websocket" { DESCRIPTION } else { "" }
    )
}

/// A listener whose queue is full: whoever connects waits for an answer that never comes.
fn deaf() -> (Socket, Vec<Socket>, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap();
    let waiting = (0..4).map(|_| {
        let guest = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        guest.set_nonblocking(true).unwrap();
        // The first is queued, the others fill what the kernel allows beyond.
        let _ = guest.connect(&address);
        guest
    });
    let waiting = waiting.collect();
    let address = address.as_socket().unwrap();
    (socket, waiting, address)
}

fn test(row: &Row) {
    let mut kept = None;
    let address = match row.target {
        Until(end) => Muc::start_until(end).address(),
        Deaf => {
            let (socket, guests, address) = deaf();
            kept = Some((socket, guests));
            address
        }
        Does(act) => {
            let listener = listener();
            let address = listener.local_addr().unwrap();
            // The thread ends with the test's process.
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    std::thread::spawn(move || act(stream));
                }
            });
            address
        }
    };
    let mut words = row.spoken.split(' ');
    let (scheme, protocol) = (words.next().unwrap(), words.next().unwrap());
    let protocol = if matches!(row.target, Until(_)) { "xmpp" } else { protocol };
    let folder = Folder::new("hostile");
    let url = match words.next() {
        None => format!("{scheme}://{address}/ws"),
        Some(transport) => format!("{{url: \"{scheme}://{address}/\", transport: {transport}}}"),
    };
    let answer = folder.run(&scenario(&url, protocol, row.limits), &["--insecure"]);
    drop(kept);
    let name = row.name;
    assert!(answer.code.is_some(), "{name}: ended by a signal\n{}", answer.stderr);
    assert!(!answer.stderr.contains("panicked"), "{name}: {}", answer.stderr);
    let summary = answer.summary();
    let people = &summary.people;
    assert_eq!((people.arrived, people.gave_up, people.finished), (PEOPLE, PEOPLE, 0), "{name}");
    let is_it = |measure: &str, class: &str| {
        class == row.class && (row.measure.is_empty() || measure == row.measure)
    };
    let errors = summary.errors.iter().filter(|e| is_it(&e.measure, &e.class));
    let count: u64 = errors.map(|e| e.count).sum();
    assert!(count >= PEOPLE, "{name}: {:?}", summary.errors);
    let told = answer.load().events.into_iter().find_map(|record| match record.what {
        What::Fault { measure, class, detail } if is_it(measure.name(), class.name()) => {
            Some(detail)
        }
        _ => None,
    });
    let told = told.unwrap_or_else(|| panic!("{name}: not told in events.jsonl"));
    assert!(told.contains(row.words) && !told.is_empty(), "{name}: {told:?}");
    assert!(answer.code == Some(3) || people.entered > 0, "{name}: nobody was measured");
    assert!(summary.seconds < SECONDS, "{name}: {} s", summary.seconds);
    assert!(answer.peak_kib < PEAK_KIB, "{name}: {} KiB", answer.peak_kib);
}

#[test]
fn answers_that_are_no_upgrade() {
    for_each(NO_UPGRADE, test);
}

#[test]
fn bytes_that_are_no_conversation() {
    for_each(NO_CONVERSATION, test);
}

#[test]
fn described_servers_that_are_otherwise() {
    let rows: Vec<Row> =
        DESCRIBED.iter().map(|row| Row { spoken: "ws websocket", ..*row }).collect();
    for_each(&rows, test);
}

#[test]
fn conversations_that_are_closed_at_each_step() {
    for_each(CLOSED, test);
}

#[test]
fn socketio_that_is_none() {
    for_each(socketio::ROWS, test);
}

#[test]
fn silence_ends_at_its_limit() {
    for_each(SILENT, test);
}
