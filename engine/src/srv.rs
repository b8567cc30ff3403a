//! SRV records (RFC 2782): which hosts serve a domain. Asked once, before a run, of the name
//! servers this system is set up with (RFC 1035): a query over UDP, again over TCP if its answer
//! is cut short.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// How long one question waits for its answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Times each name server is asked, and most of them that are (resolv.conf(5)).
const TRIES: usize = 2;
const SERVERS_MAX: usize = 3;
/// Answers to other questions that are passed over.
const STRAYS_MAX: usize = 16;
/// Largest answer asked for over UDP, bytes (RFC 6891, DNS flag day 2020), and accepted at all.
const UDP_BYTES_MAX: u16 = 1_232;
const ANSWER_BYTES_MAX: usize = 1 << 16;
/// Most records read, and most jumps within one compressed name.
const RECORDS_MAX: u16 = 256;
const JUMPS_MAX: usize = 16;
/// RFC 1035 section 2.3.4.
const LABEL_BYTES_MAX: usize = 63;
const NAME_BYTES_MAX: usize = 253;

const PORT: u16 = 53;
const TYPE_SRV: u16 = 33;
const TYPE_OPT: u16 = 41;
const CLASS_IN: u16 = 1;
const NO_SUCH_NAME: u8 = 3;

/// A host that serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    /// Lower is to be tried first.
    pub priority: u16,
    /// Its share among those of the same priority, turned round so that the heaviest sorts first.
    lightness: u16,
    /// Port.
    pub port: u16,
    /// Host name; empty if the domain says that it has no such service.
    pub host: String,
}

/// The name servers this system is set up with; the local one if none is named.
pub fn name_servers() -> Vec<SocketAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let found: Vec<SocketAddr> = read_config(&text);
    match found.is_empty() {
        true => vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
        false => found,
    }
}

fn read_config(text: &str) -> Vec<SocketAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        let is_it = words.next() == Some("nameserver");
        let ip: IpAddr = words.next().filter(|_| is_it)?.parse().ok()?;
        Some(SocketAddr::new(ip, PORT))
    };
    text.lines().filter_map(address).take(SERVERS_MAX).collect()
}

/// Who serves `name` (`_service._proto.domain`), the best first; nobody if there is no such name.
/// The error says why there is no answer.
pub fn lookup(name: &str, servers: &[SocketAddr]) -> Result<Vec<Server>, String> {
    let mut error = String::from("no name server is known");
    for _ in 0..TRIES {
        for &server in servers.iter().take(SERVERS_MAX) {
            match ask(name, server) {
                Ok(mut found) => {
                    found.sort();
                    return Ok(found);
                }
                Err(why) => error = format!("name server {server}: {why}"),
            }
        }
    }
    Err(error)
}

fn ask(name: &str, server: SocketAddr) -> Result<Vec<Server>, String> {
    let id = RandomState::new().hash_one(name) as u16;
    let query = query(id, name)?;
    let answer = ask_udp(&query, id, server).map_err(|error| error.to_string())?;
    match read_answer(&answer)? {
        Answer::Found(found) => Ok(found),
        Answer::CutShort => {
            let answer = ask_tcp(&query, server).map_err(|error| error.to_string())?;
            match read_answer(&answer)? {
                Answer::Found(found) if answer[..2] == id.to_be_bytes() => Ok(found),
                _ => Err("an answer that does not fit".into()),
            }
        }
    }
}

fn ask_udp(query: &[u8], id: u16, server: SocketAddr) -> std::io::Result<Vec<u8>> {
    let any: IpAddr = match server.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Only what comes from there is let through.
    socket.connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(query)?;
    let mut buffer = vec![0; ANSWER_BYTES_MAX];
    for _ in 0..STRAYS_MAX {
        let length = socket.recv(&mut buffer)?;
        if length >= 2 && buffer[..2] == id.to_be_bytes() {
            buffer.truncate(length);
            return Ok(buffer);
        }
    }
    Err(std::io::Error::other("only answers to other questions came"))
}

fn ask_tcp(query: &[u8], server: SocketAddr) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // RFC 1035 section 4.2.2: the length goes ahead.
    stream.write_all(&(query.len() as u16).to_be_bytes())?;
    stream.write_all(query)?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

/// A question for SRV records, recursion desired (RFC 1035 section 4.1).
fn query(id: u16, name: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let head = [id, 0x0100, 1, 0, 0, 1];
    head.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name of {} bytes", name.len()));
    }
    for label in name.trim_end_matches('.').split('.') {
        if label.is_empty() || label.len() > LABEL_BYTES_MAX {
            return Err(format!("`{name}` is no name"));
        }
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.push(0);
    let tail = [TYPE_SRV, CLASS_IN];
    tail.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    // How much we take (RFC 6891): root name, type, size in place of the class, nothing else.
    out.push(0);
    let option = [TYPE_OPT, UDP_BYTES_MAX, 0, 0, 0];
    option.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    Ok(out)
}

enum Answer {
    Found(Vec<Server>),
    CutShort,
}

/// A look at an answer, from one place on.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

const SHORT: &str = "an answer that ends too early";

impl Reader<'_> {
    fn word(&mut self) -> Result<u16, &'static str> {
        let pair = self.bytes.get(self.at..self.at + 2).ok_or(SHORT)?;
        self.at += 2;
        Ok(u16::from_be_bytes([pair[0], pair[1]]))
    }

    fn skip(&mut self, length: usize) -> Result<(), &'static str> {
        self.at += length;
        if self.at > self.bytes.len() { Err(SHORT) } else { Ok(()) }
    }

    /// A name, compressed or not (RFC 1035 section 4.1.4).
    fn name(&mut self) -> Result<String, &'static str> {
        let (mut name, mut at, mut behind) = (String::new(), self.at, None);
        let mut jumps = 0;
        loop {
            let length = usize::from(*self.bytes.get(at).ok_or(SHORT)?);
            match length {
                0 => break,
                0xC0.. => {
                    let low = usize::from(*self.bytes.get(at + 1).ok_or(SHORT)?);
                    behind = behind.or(Some(at + 2));
                    at = (length & 0x3F) << 8 | low;
                    jumps += 1;
                }
                1..=LABEL_BYTES_MAX => {
                    let label = self.bytes.get(at + 1..at + 1 + length).ok_or(SHORT)?;
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.push_str(&String::from_utf8_lossy(label));
                    at += 1 + length;
                }
                _ => return Err("a name with a label that is none"),
            }
            if jumps > JUMPS_MAX || name.len() > NAME_BYTES_MAX {
                return Err("a name without end");
            }
        }
        self.at = behind.unwrap_or(at + 1);
        Ok(name)
    }
}

fn read_answer(bytes: &[u8]) -> Result<Answer, String> {
    let mut reader = Reader { bytes, at: 2 };
    let flags = reader.word()?;
    let (questions, answers) = (reader.word()?, reader.word()?);
    reader.skip(4)?;
    if flags & 0x8000 == 0 {
        return Err("a question for an answer".into());
    }
    if flags & 0x0200 != 0 {
        return Ok(Answer::CutShort);
    }
    match (flags & 0xF) as u8 {
        0 => {}
        NO_SUCH_NAME => return Ok(Answer::Found(Vec::new())),
        code => return Err(format!("it refuses: code {code}")),
    }
    for _ in 0..questions.min(RECORDS_MAX) {
        reader.name()?;
        reader.skip(4)?;
    }
    let mut found = Vec::new();
    for _ in 0..answers.min(RECORDS_MAX) {
        reader.name()?;
        let kind = reader.word()?;
        reader.skip(6)?; // class and time to live
        let end = usize::from(reader.word()?) + reader.at;
        if kind == TYPE_SRV {
            let (priority, weight, port) = (reader.word()?, reader.word()?, reader.word()?);
            let (host, lightness) = (reader.name()?, u16::MAX - weight);
            found.push(Server { priority, lightness, port, host });
        }
        reader.at = end;
        reader.skip(0)?;
    }
    Ok(Answer::Found(found))
}

#[cfg(test)]
#[path = "srv_tests.rs"]
mod tests;
