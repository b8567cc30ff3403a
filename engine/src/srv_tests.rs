//! Name servers on loopback: fair ones, silent ones, and such as lie.

use super::*;
use std::net::TcpListener;

const NAME: &str = "_xmpp-client._tcp.example.org";

/// Makes an answer of a query.
type Make = fn(&[u8]) -> Vec<u8>;

/// A record of the name that the question was about.
fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut out = vec![0xC0, 12];
    [kind, CLASS_IN, 0, 60, data.len() as u16]
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    out.extend_from_slice(data);
    out
}

fn srv(priority: u16, weight: u16, port: u16, host: &[u8]) -> Vec<u8> {
    let words = [priority, weight, port].map(u16::to_be_bytes).concat();
    record(TYPE_SRV, &[&words[..], host].concat())
}

/// An answer to `query` with these flags and records.
fn answer(query: &[u8], flags: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = query[..2].to_vec();
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&(records.len() as u16).to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    let end = query.len() - 11; // less our own option
    out.extend_from_slice(&query[12..end]);
    out.extend(records.concat());
    out
}

/// A name server that gives `make(query)` to every question, in that order.
fn serve(make: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            for answer in make(&buffer[..length]) {
                socket.send_to(&answer, from).unwrap();
            }
        }
    });
    address
}

fn shown(found: Result<Vec<Server>, String>) -> Result<String, String> {
    let show = |server: &Server| format!("{} {}:{}", server.priority, server.host, server.port);
    found.map(|servers| servers.iter().map(show).collect::<Vec<_>>().join(", "))
}

#[test]
fn servers_are_found_the_best_first() {
    let long = [&[1, b'a', 2, b'b', b'c'][..], &[0]].concat();
    // `b.example.org`, the end of which stands in the question.
    let short = [1, b'b', 0xC0, 12 + 18];
    let records = vec![
        srv(20, 0, 5224, &long),
        srv(10, 1, 5222, &long),
        srv(10, 9, 5223, &short),
        record(1, &[127, 0, 0, 1]),
    ];
    let server = serve(move |query| vec![answer(query, 0x8180, &records)]);
    let found = shown(lookup(NAME, &[server]));
    assert_eq!(found.as_deref(), Ok("10 b.example.org:5223, 10 a.bc:5222, 20 a.bc:5224"));
}

#[test]
fn answers_that_are_none() {
    let none = serve(|query| vec![answer(query, 0x8183, &[])]);
    assert_eq!(shown(lookup(NAME, &[none])).as_deref(), Ok(""));
    let no_service = serve(|query| vec![answer(query, 0x8180, &[srv(0, 0, 0, &[0])])]);
    assert_eq!(shown(lookup(NAME, &[no_service])).as_deref(), Ok("0 :0"));
    let rows: [(&str, Make); 7] = [
        ("refuses: code 5", |query| answer(query, 0x8185, &[])),
        ("a question for an answer", |query| query.to_vec()),
        ("without end", |query| answer(query, 0x8180, &[srv(0, 0, 1, &[0xC0, 12 + 35 + 18])])),
        ("ends too early", |query| answer(query, 0x8180, &[srv(0, 0, 1, &[5, b'a'])])),
        ("ends too early", |query| query[..2].to_vec()),
        ("label that is none", |query| answer(query, 0x8180, &[srv(0, 0, 1, &[0x80, 1])])),
        ("ends too early", |query| {
            let mut bytes = answer(query, 0x8180, &[srv(0, 0, 1, &[0])]);
            bytes[7] = 9; // more records than there are
            bytes
        }),
    ];
    for (expect, make) in rows {
        let server = serve(move |query| vec![make(query)]);
        let error = lookup(NAME, &[server]).unwrap_err();
        assert!(error.contains(expect), "{expect}: {error}");
    }
}

#[test]
fn answers_to_other_questions_are_passed_over() {
    let server = serve(|query| {
        let good = answer(query, 0x8180, &[srv(1, 1, 7, &[1, b'a', 0])]);
        let mut other = answer(query, 0x8180, &[srv(0, 0, 6, &[1, b'e', 0])]);
        other[0] ^= 1;
        vec![other, vec![], good]
    });
    assert_eq!(shown(lookup(NAME, &[server])).as_deref(), Ok("1 a:7"));
}

#[test]
fn who_is_cut_short_is_asked_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let socket = UdpSocket::bind(address).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&answer(&buffer[..length], 0x8380, &[]), from).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut query = vec![0; length + 2];
        stream.read_exact(&mut query).unwrap();
        let full = answer(&query[2..], 0x8180, &[srv(1, 1, 7, &[1, b'a', 0])]);
        stream.write_all(&(full.len() as u16).to_be_bytes()).unwrap();
        stream.write_all(&full).unwrap();
    });
    assert_eq!(shown(lookup(NAME, &[address])).as_deref(), Ok("1 a:7"));
}

#[test]
fn the_next_server_is_asked_if_one_is_not_there() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = serve(|query| vec![answer(query, 0x8180, &[srv(1, 1, 7, &[1, b'a', 0])])]);
    assert_eq!(shown(lookup(NAME, &[closed, server])).as_deref(), Ok("1 a:7"));
    assert!(lookup(NAME, &[closed]).is_err());
    assert!(lookup(NAME, &[]).is_err());
    for name in ["a..b", &"x".repeat(64), &"a.".repeat(200), ""] {
        assert!(lookup(name, &[server]).is_err(), "{name}");
    }
}

#[test]
fn the_systems_servers_are_read() {
    let text = "# comment\nsearch example.org\nnameserver 10.0.0.1\nnameserver ::1 # x\n\
                nameserver nobody\n nameserver 10.0.0.2\nnameserver 10.0.0.3\n";
    let found: Vec<String> = read_config(text).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["10.0.0.1:53", "[::1]:53", "10.0.0.2:53"]);
}
