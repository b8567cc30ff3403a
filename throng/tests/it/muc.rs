//! A small XMPP server with rooms (RFC 7395, XEP-0045) that commits faults on purpose and keeps a
//! record of them, as the yardstick does: one domain, anonymous people, one thread a connection.

use crate::rig::listener;
use protocols::wire::frame::{self, Limits, Opcode};
use protocols::wire::http;
use server::fault::{Fault, Record, Rules};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

/// The server, until it is stopped.
pub(crate) struct Muc {
    address: SocketAddr,
    hall: Arc<Mutex<Hall>>,
}

/// What becomes of a connection in the end.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// It is closed when this many stanzas have been answered.
    Closed(usize),
    /// It stays open, and nothing more is read from it.
    Unread(usize),
    /// Everything more is read, and nothing is answered.
    Unanswered(usize),
}

/// Everybody and everything said.
struct Hall {
    rules: Rules,
    end: Option<End>,
    /// Who is in which room: occupant addresses and the way to them.
    seats: Vec<(String, TcpStream)>,
    /// Messages said in each room.
    said: HashMap<String, u32>,
    /// Held back to be swapped with the next one, by occupant.
    held: HashMap<String, (Vec<u8>, Record)>,
    records: Vec<Record>,
}

impl Muc {
    /// A server with faults in the form of the yardstick's command line; it knows no delays.
    pub(crate) fn start(faults: &str) -> Muc {
        Muc::with_end(faults, None)
    }

    /// A server that serves every connection up to a point only.
    pub(crate) fn start_until(end: End) -> Muc {
        Muc::with_end("", Some(end))
    }

    fn with_end(faults: &str, end: Option<End>) -> Muc {
        let listener = listener();
        let address = listener.local_addr().unwrap();
        let hall = Arc::new(Mutex::new(Hall {
            rules: faults.parse().unwrap(),
            end,
            seats: Vec::new(),
            said: HashMap::new(),
            held: HashMap::new(),
            records: Vec::new(),
        }));
        let shared = hall.clone();
        // The thread ends with the test's process; nothing is waited for.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hall = shared.clone();
                std::thread::spawn(move || serve(stream, &hall));
            }
        });
        Muc { address, hall }
    }

    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The beginning of a scenario that has it for a target.
    pub(crate) fn target(&self) -> String {
        format!("target: \"ws://{}/xmpp-websocket\"\nprotocol: xmpp\n", self.address)
    }

    /// The faults it committed. What is still held back never came: that is a drop.
    pub(crate) fn stop(self) -> Vec<Record> {
        let mut hall = self.hall.lock().unwrap();
        let mut records = std::mem::take(&mut hall.records);
        let never = hall.held.drain().map(|(_, (_, record))| record);
        records.extend(never.map(|record| Record { kind: Fault::Drop.word(), ..record }));
        records
    }
}

/// One connection, from the upgrade to its end.
fn serve(mut stream: TcpStream, hall: &Mutex<Hall>) {
    let mut inbox = Vec::new();
    let mut is_upgraded = false;
    let mut is_known = false;
    let mut heard = 0;
    let end = hall.lock().unwrap().end;
    let mut buffer = [0; 16 << 10];
    loop {
        match end {
            Some(End::Closed(count)) if is_upgraded && heard >= count => break,
            Some(End::Unread(count)) if heard >= count => return hold(stream),
            _ => {}
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => inbox.extend_from_slice(&buffer[..length]),
        }
        if !is_upgraded {
            let Some(head) = http::read_request(&inbox).unwrap() else { continue };
            let mut answer = Vec::new();
            head.upgrade.unwrap().accept(&mut answer, Some("xmpp"));
            let consumed = head.consumed;
            inbox.drain(..consumed);
            stream.write_all(&answer).unwrap();
            is_upgraded = true;
        }
        while let Some((part, length)) = frame::decode_masked(&mut inbox, Limits::SERVER).unwrap() {
            if part.opcode == Opcode::Text {
                let text = std::str::from_utf8(part.payload).unwrap();
                is_known |= text.starts_with("<auth");
                if !matches!(end, Some(End::Unanswered(count)) if heard >= count) {
                    hall.lock().unwrap().hear(&stream, text, is_known);
                }
                heard += 1;
            }
            inbox.drain(..length);
        }
    }
    // The peer has gone, or we have: either is the end.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Keeps a connection until its peer closes it, without reading.
pub(crate) fn hold(stream: TcpStream) {
    let mut poll = libc::pollfd { fd: stream.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one pollfd, live for the whole call. With no events asked for, poll returns when
    // the connection breaks, or after the time, which is longer than any test.
    unsafe { libc::poll(&mut poll, 1, 120_000) };
}

/// The value of an attribute of a stanza's first tag, as our own sessions write them.
fn attribute<'a>(stanza: &'a str, name: &str) -> Option<&'a str> {
    let tag = &stanza[..stanza.find('>')?];
    ["'", "\""].into_iter().find_map(|quote| {
        let (_, rest) = tag.split_once(&format!(" {name}={quote}"))?;
        Some(rest.split_once(quote)?.0)
    })
}

fn text_frame(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_frame(&mut bytes, Opcode::Text, text.as_bytes(), None);
    bytes
}

fn send(mut stream: &TcpStream, text: &str) {
    // Somebody who has hung up gets nothing more.
    let _ = stream.write_all(&text_frame(text));
}

impl Hall {
    fn hear(&mut self, from: &TcpStream, stanza: &str, is_known: bool) {
        let name = stanza[1..].split([' ', '/', '>']).next().unwrap();
        match name {
            "open" => open(from, is_known),
            "auth" => send(from, "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"),
            "close" => send(from, "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>"),
            "iq" => {
                let id = attribute(stanza, "id").unwrap();
                send(from, &format!("<iq type='result' id='{id}'/>"));
            }
            "presence" => self.presence(from, stanza),
            "message" => self.message(stanza, from),
            other => panic!("what is {other}?"),
        }
    }

    fn presence(&mut self, from: &TcpStream, stanza: &str) {
        let Some(to) = attribute(stanza, "to") else { return };
        let (room, _) = to.split_once('/').unwrap();
        let own = "<x xmlns='http://jabber.org/protocol/muc#user'><status code='110'/></x>";
        if attribute(stanza, "type") == Some("unavailable") {
            self.seats.retain(|(seat, _)| seat != to);
            let gone = format!("<presence type='unavailable' from='{to}'>");
            self.to_all(room, &format!("{gone}</presence>"));
            return send(from, &format!("{gone}{own}</presence>"));
        }
        let here = |seat: &str| format!("<presence from='{seat}'><x><item/></x></presence>");
        for (seat, _) in self.seats.iter().filter(|(seat, _)| is_in(seat, room)) {
            send(from, &here(seat));
        }
        self.to_all(room, &here(to));
        self.seats.push((to.to_owned(), from.try_clone().unwrap()));
        send(from, &format!("<presence from='{to}'>{own}</presence>"));
    }

    fn to_all(&self, room: &str, text: &str) {
        self.seats.iter().filter(|(seat, _)| is_in(seat, room)).for_each(|(_, to)| send(to, text));
    }

    fn message(&mut self, stanza: &str, from: &TcpStream) {
        let room = attribute(stanza, "to").unwrap().to_owned();
        let Some((_, body)) = stanza.split_once("<body>") else { return };
        let body = body.split_once("</body>").unwrap().0.to_owned();
        let peer = from.peer_addr().unwrap();
        let is_speaker = |seat: &&(String, TcpStream)| {
            is_in(&seat.0, &room) && seat.1.peer_addr().ok() == Some(peer)
        };
        let Some((speaker, _)) = self.seats.iter().find(is_speaker) else { return };
        let copy =
            format!("<message type='groupchat' from='{speaker}'><body>{body}</body></message>");
        let number = self.said.entry(room.clone()).or_default();
        *number += 1;
        let number = *number;
        for at in 0..self.seats.len() {
            if is_in(&self.seats[at].0, &room) {
                self.deliver(at, &room, number, &copy, &body);
            }
        }
    }

    /// Gives a message to one occupant, or not, as the rules have it.
    fn deliver(&mut self, at: usize, room: &str, number: u32, copy: &str, body: &str) {
        let (seat, stream) = &self.seats[at];
        let record = |fault| Record::new(fault, room, number, seat, body);
        let mut out = text_frame(copy);
        match self.rules.choose(room, number, seat) {
            Some(Fault::Drop) => return self.records.push(record(Fault::Drop)),
            Some(Fault::Reorder) if !self.held.contains_key(seat) => {
                let late = (out, record(Fault::Reorder));
                self.held.insert(seat.clone(), late);
                return;
            }
            Some(Fault::Duplicate) => {
                out.extend_from_within(..);
                self.records.push(record(Fault::Duplicate));
            }
            _ => {}
        }
        if let Some((bytes, record)) = self.held.remove(seat) {
            out.extend_from_slice(&bytes);
            self.records.push(record);
        }
        let mut stream: &TcpStream = stream;
        // Somebody who has hung up gets nothing more.
        let _ = stream.write_all(&out);
    }
}

fn is_in(seat: &str, room: &str) -> bool {
    seat.strip_prefix(room).is_some_and(|rest| rest.starts_with('/'))
}

fn open(to: &TcpStream, is_known: bool) {
    send(to, "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' version='1.0' id='1'/>");
    let offer = match is_known {
        false => {
            "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
             <mechanism>ANONYMOUS</mechanism></mechanisms>"
        }
        true => "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><required/></bind>",
    };
    send(
        to,
        &format!(
            "<stream:features xmlns:stream='http://etherx.jabber.org/streams'>{offer}\
             </stream:features>"
        ),
    );
}
