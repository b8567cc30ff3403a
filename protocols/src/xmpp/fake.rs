//! A tiny XMPP server in memory for tests: one domain, one MUC, any number of people.

use super::Xmpp;
use super::element::Element;
use super::scram::Verifier;
use super::stream::{Cut, Splitter};
use super::xml::{Scanner, escape};
use crate::conformance::rig::LIST;
use crate::conformance::{Peer, Row};
use crate::wire::frame::{self, Limits, Opcode};
use crate::wire::http;
use model::{Features, Request, RoomName};
use std::collections::BTreeMap;

/// A server with rooms; connections are numbers.
#[derive(Default)]
pub(crate) struct Hall {
    guests: BTreeMap<usize, Guest>,
    /// vCard requests received, to whomever.
    pub(crate) vcards: usize,
    /// Messages replayed to whoever enters a room.
    pub(crate) past: Vec<String>,
}

#[derive(Default)]
struct Guest {
    inbox: Vec<u8>,
    /// It speaks without frames.
    is_stream: bool,
    splitter: Splitter,
    /// What has to be proven, once that is asked.
    verifier: Option<Verifier>,
    /// Stanzas it has sent since the stream is managed.
    managed: Option<u32>,
    is_upgraded: bool,
    is_known: bool,
    /// Addresses of occupants it has.
    seats: Vec<String>,
    /// Whole messages for it: the HTTP answer, then frames.
    out: Vec<Vec<u8>>,
}

impl Hall {
    /// Somebody who has been in a room before everybody else, without a connection to speak of.
    pub(crate) fn seat(&mut self, who: usize, occupant: &str) {
        self.guests.entry(who).or_default().seats.push(occupant.into());
    }

    /// Bytes of one connection have arrived.
    pub(crate) fn receive(&mut self, who: usize, bytes: &[u8]) {
        let guest = self.guests.entry(who).or_default();
        guest.inbox.extend_from_slice(bytes);
        guest.is_stream |= guest.inbox.first() == Some(&b'<');
        if guest.is_stream {
            return self.receive_stream(who);
        }
        loop {
            let guest = self.guests.get_mut(&who).unwrap();
            if !guest.is_upgraded {
                let Some(head) = http::read_request(&guest.inbox).unwrap() else { return };
                let mut answer = Vec::new();
                head.upgrade.unwrap().accept(&mut answer, Some("xmpp"));
                guest.out.push(answer);
                let consumed = head.consumed;
                guest.inbox.drain(..consumed);
                guest.is_upgraded = true;
            }
            let mut inbox = std::mem::take(&mut guest.inbox);
            let Some((part, length)) = frame::decode_masked(&mut inbox, Limits::SERVER).unwrap()
            else {
                self.guests.get_mut(&who).unwrap().inbox = inbox;
                return;
            };
            if part.opcode == Opcode::Text {
                let text = String::from_utf8(part.payload.to_vec()).unwrap();
                self.on_text(who, &text);
            }
            inbox.drain(..length);
            self.guests.get_mut(&who).unwrap().inbox = inbox;
        }
    }

    fn receive_stream(&mut self, who: usize) {
        loop {
            let guest = self.guests.get_mut(&who).unwrap();
            let inbox = std::mem::take(&mut guest.inbox);
            let (used, cut) = guest.splitter.next(&inbox, 1 << 20);
            guest.inbox = inbox[used..].to_vec();
            match cut {
                Cut::More => return,
                Cut::Header(_) => self.on_open(who),
                Cut::Stanza(stanza) => self.on_text(who, str::from_utf8(stanza).unwrap()),
                Cut::End => self.send(who, "</stream:stream>"),
                Cut::Broken(_, what) => panic!("{what}"),
            }
        }
    }

    /// What has been written to one connection since the last call.
    pub(crate) fn take(&mut self, who: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.guests.entry(who).or_default().out)
    }

    fn send(&mut self, who: usize, text: &str) {
        let guest = self.guests.get_mut(&who).unwrap();
        let mut bytes = Vec::new();
        match guest.is_stream {
            true => bytes.extend_from_slice(text.as_bytes()),
            false => frame::write_frame(&mut bytes, Opcode::Text, text.as_bytes(), None),
        }
        guest.out.push(bytes);
    }

    fn on_text(&mut self, who: usize, text: &str) {
        let mut scanner = Scanner::new(text);
        let element = Element::next_root(&mut scanner, text).unwrap().unwrap();
        let guest = self.guests.get_mut(&who).unwrap();
        if matches!(element.tag.name, "iq" | "presence" | "message") {
            guest.managed = guest.managed.map(|count| count + 1);
        }
        match element.tag.name {
            "open" => self.on_open(who),
            "auth" if element.tag.attribute("mechanism") == Some("SCRAM-SHA-1") => {
                let verifier = Verifier::new(&element.text());
                let challenge = format!("<challenge>{}</challenge>", verifier.challenge());
                guest.verifier = Some(verifier);
                self.send(who, &challenge);
            }
            "auth" => self.let_in(who, ""),
            "response" => {
                let last = guest.verifier.take().unwrap().verify(&element.text(), PASSWORD);
                self.let_in(who, &last);
            }
            "enable" => {
                guest.managed = Some(0);
                self.send(who, "<enabled xmlns='urn:xmpp:sm:3' id='one' resume='true'/>");
            }
            "r" => {
                let answer = format!("<a xmlns='urn:xmpp:sm:3' h='{}'/>", guest.managed.unwrap());
                self.send(who, &answer);
            }
            "a" => {}
            // Nobody is remembered here.
            "resume" => self.send(who, "<failed xmlns='urn:xmpp:sm:3'><item-not-found/></failed>"),
            "close" => self.send(who, "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>"),
            "iq" => self.on_iq(who, element),
            "presence" => self.on_presence(who, element),
            "message" => self.on_message(who, element),
            other => panic!("what is {other}?"),
        }
    }

    fn let_in(&mut self, who: usize, last: &str) {
        let guest = self.guests.get_mut(&who).unwrap();
        guest.is_known = true;
        guest.splitter = Splitter::default();
        let success = "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>";
        self.send(who, &format!("{success}{last}</success>"));
    }

    fn on_open(&mut self, who: usize) {
        self.send(
            who,
            match self.guests[&who].is_stream {
                false => "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' version='1.0' id='1'/>",
                true => {
                    "<?xml version='1.0'?><stream:stream xmlns='jabber:client' version='1.0' \
                     xmlns:stream='http://etherx.jabber.org/streams' id='1'>"
                }
            },
        );
        let offer = match self.guests[&who].is_known {
            false => {
                "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
                 <mechanism>SCRAM-SHA-1</mechanism><mechanism>PLAIN</mechanism>\
                 <mechanism>ANONYMOUS</mechanism></mechanisms>"
            }
            true => {
                "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><required/></bind>\
                 <sm xmlns='urn:xmpp:sm:3'/>"
            }
        };
        let features = format!(
            "<stream:features xmlns:stream='http://etherx.jabber.org/streams'>{offer}\
             </stream:features>"
        );
        self.send(who, &features);
    }

    fn on_iq(&mut self, who: usize, iq: Element<'_>) {
        let id = iq.tag.attribute("id").unwrap();
        let to = iq.tag.attribute("to").unwrap_or("");
        let is_vcard = iq.child("vCard").is_some();
        self.vcards += usize::from(is_vcard);
        let answer = match is_vcard && to.contains('@') && !to.contains('/') {
            true => format!(
                "<iq xmlns='jabber:client' type='error' id='{id}' from='{to}'><error \
                 type='cancel'><item-not-found/></error></iq>"
            ),
            false if iq.child("bind").is_some() => format!(
                "<iq type='result' id='{id}'><bind><jid>ann@anon.localhost/r1</jid></bind></iq>"
            ),
            false if iq.child("query").is_some_and(|query| query.source.contains("#items")) => {
                format!(
                    "<iq type='result' id='{id}' from='{to}'><query><item jid='many.localhost'/>\
                     </query></iq>"
                )
            }
            false if to == "many.localhost" => format!(
                "<iq type='result' id='{id}' from='{to}'><query><feature \
                 var='http://jabber.org/protocol/address'/></query></iq>"
            ),
            false if is_vcard => format!(
                "<iq id='{id}' from='{to}' type='result'><vCard xmlns='vcard-temp'><PHOTO>\
                 <BINVAL>{}</BINVAL></PHOTO></vCard></iq>",
                "QUJD".repeat(20)
            ),
            false => format!("<iq type='result' id='{id}'/>"),
        };
        self.send(who, &answer);
    }

    fn on_presence(&mut self, who: usize, presence: Element<'_>) {
        let to = presence.tag.attribute("to").unwrap_or_default().to_owned();
        if !to.contains('/') {
            return self.on_contact(who, &to, presence);
        }
        let (room, _) = to.split_once('/').unwrap();
        let others: Vec<(usize, String)> = self
            .guests
            .iter()
            .flat_map(|(&guest, data)| data.seats.iter().map(move |seat| (guest, seat.clone())))
            .filter(|(guest, seat)| *guest != who && seat.starts_with(room))
            .collect();
        let own = "<x xmlns='http://jabber.org/protocol/muc#user'><status code='110'/></x>";
        if presence.tag.attribute("type") == Some("unavailable") {
            let gone = format!("<presence type='unavailable' from='{to}'>");
            self.guests.get_mut(&who).unwrap().seats.retain(|seat| *seat != to);
            others.iter().for_each(|(guest, _)| self.send(*guest, &format!("{gone}</presence>")));
            return self.send(who, &format!("{gone}{own}</presence>"));
        }
        let here =
            |seat: &str| format!("<presence from='{seat}'><x><item role='a'/></x></presence>");
        for (guest, seat) in &others {
            self.send(who, &here(seat));
            self.send(*guest, &here(&to));
        }
        self.guests.get_mut(&who).unwrap().seats.push(to.clone());
        self.send(who, &format!("<presence from='{to}'>{own}</presence>"));
        for old in self.past.clone() {
            let replay = format!(
                "<message type='groupchat' from='{room}/old'><body>{old}</body>\
                 <delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/></message>"
            );
            self.send(who, &replay);
        }
    }

    /// A presence that concerns no room: it comes back, and contacts answer.
    fn on_contact(&mut self, who: usize, to: &str, presence: Element<'_>) {
        match presence.tag.attribute("type") {
            Some("subscribe") => {
                self.send(who, &format!("<presence from='{to}' type='subscribe'/>"));
                self.send(who, &format!("<presence from='{to}' type='subscribed'/>"));
            }
            None if presence.child("status").is_none() => {
                self.send(who, "<presence from='ann@anon.localhost/r1'/>");
                let bob = "<presence from='bob@anon.localhost/x'>";
                let delay = "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>";
                self.send(who, &format!("{bob}{delay}</presence>"));
            }
            None => {
                let status = presence.child("status").unwrap().source;
                self.send(
                    who,
                    &format!("<presence from='bob@anon.localhost/x'>{status}</presence>"),
                );
            }
            _ => {}
        }
    }

    /// A message to somebody, or to many by one of them, who says the same back.
    fn on_chat(&mut self, who: usize, body: &str) {
        let many = "<addresses xmlns='http://jabber.org/protocol/address'/>";
        let bob = "from='bob@anon.localhost/x'";
        self.send(who, &format!("<message type='chat' {bob}>{many}{body}</message>"));
    }

    fn on_message(&mut self, who: usize, message: Element<'_>) {
        let room = message.tag.attribute("to").unwrap();
        let Some(body) = message.child("body") else { return };
        if message.tag.attribute("type") == Some("chat") {
            return self.on_chat(who, body.source);
        }
        let from = self.guests[&who].seats.iter().find(|seat| seat.starts_with(room)).unwrap();
        let mut text = String::new();
        escape(&mut text, &body.text());
        let copy = format!("<message type='groupchat' from='{from}'><body>{text}</body></message>");
        let everybody: Vec<usize> = self
            .guests
            .iter()
            .filter(|(_, guest)| guest.seats.iter().any(|seat| seat.starts_with(room)))
            .map(|(&guest, _)| guest)
            .collect();
        everybody.into_iter().for_each(|guest| self.send(guest, &copy));
    }
}

/// A hall for the conformance suite: two neighbors, a past, and a lively target.
struct Lively(Hall);

const PERSON: usize = 0;
const NEIGHBOR: usize = 1;

impl Peer for Lively {
    fn receive(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.0.receive(PERSON, bytes);
        let mut out = self.0.take(PERSON);
        // A message of the person's is followed by what a target does of its own accord.
        if out.iter().any(|message| memchr::memmem::find(message, b"<body>").is_some()) {
            for text in [
                "<presence from='live@room.localhost/cid'><x><item role='participant'/></x></presence>",
                "<iq type='get' id='ask' from='anon.localhost'><ping xmlns='urn:xmpp:ping'/></iq>",
                "<message type='groupchat' from='live@room.localhost/bob'><body>hi</body></message>",
                "<stream:noise xmlns:stream='urn:x'/>",
                "<r xmlns='urn:xmpp:sm:3'/>",
                "<presence type='unavailable' from='live@room.localhost/cid'/>",
            ] {
                self.0.send(PERSON, text);
            }
            out.append(&mut self.0.take(PERSON));
        }
        out
    }
}

/// The protocol's parts in the conformance suite.
pub(crate) fn rows() -> [Row; 3] {
    let newcomer = Row {
        options: &[("sasl", "plain")],
        features: Features(1 << super::REGISTER),
        ..stream_row()
    };
    [row(), stream_row(), newcomer]
}

/// The password of everybody who has one.
const PASSWORD: &str = "pencil";

/// The same over TCP, by a proof instead of anonymously, on a managed stream.
fn stream_row() -> Row {
    static DEEDS: std::sync::LazyLock<Vec<Request<'static>>> = std::sync::LazyLock::new(|| {
        let mut deeds = row().deeds.to_vec();
        deeds[0] = Request::Login { name: "ann", password: PASSWORD };
        deeds
    });
    Row {
        url: "xmpp://127.0.0.1:5222",
        features: Features(0b11_1111),
        wrap: Some(|payload| payload.to_vec()),
        deeds: &DEEDS,
        // On a stream the end of a stanza may always be still to come.
        forbidden: || forbidden().into_iter().filter(|row| row.0 != "no end").collect(),
        ..row()
    }
}

fn row() -> Row {
    const ROOM: RoomName<'static> = RoomName { id: 2, name: "live" };
    Row {
        protocol: &Xmpp,
        url: "ws://127.0.0.1:5280/xmpp-websocket",
        options: &[],
        features: Features(0b11111),
        opcode: Opcode::Text,
        wrap: None,
        peer: || {
            let mut hall = Hall { past: vec![PAST.into()], ..Hall::default() };
            hall.seat(NEIGHBOR, "live@room.localhost/bob");
            Box::new(Lively(hall))
        },
        deeds: &[
            Request::Login { name: "", password: "" },
            Request::Join { room: ROOM, nick: "ann", status: "" },
            Request::Say { room: ROOM, text: PAST },
            Request::History { room: ROOM, limit: 50 },
            Request::Members { room: ROOM },
            Request::Presence { list: None, status: "busy" },
            Request::Typing { room: ROOM },
            Request::Ping,
            Request::Rename { room: ROOM, nick: "eve" },
            Request::Join { room: LIST, nick: "ann", status: "" },
            Request::Befriend { list: LIST },
            Request::Tell { list: LIST, text: PAST },
            Request::Multicast { list: LIST, text: PAST },
            Request::Presence { list: Some(LIST), status: PAST },
            Request::Leave { room: LIST },
            Request::Leave { room: ROOM },
            Request::Disconnect,
        ],
        forbidden,
    }
}

/// A stamp of the suite's run.
const PAST: &str = "~thrAADAAACAAAAAAAAAABAAAAAKAAAAFaKY";

fn forbidden() -> Vec<(&'static str, Vec<u8>)> {
    let nest = |depth: usize| format!("<iq type='set'>{}", "<a>".repeat(depth)).into_bytes();
    let attributes: String = (0..100).map(|n| format!(" a{n}=''")).collect();
    let laughs = "<!DOCTYPE lolz [<!ENTITY lol 'lol'><!ENTITY lol2 '&lol;&lol;&lol;&lol;&lol;'>]>\
                  <message><body>&lol2;</body></message>";
    vec![
        ("a bomb of entities", laughs.into()),
        ("an external entity", "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a/>".into()),
        ("an unknown entity", "<message><body>&lol2;</body></message>".into()),
        ("deep nesting", nest(4_000)),
        ("many attributes", format!("<iq{attributes}/>").into()),
        ("no end", "<iq type='result' id='p1'>".into()),
        ("a wrong end", "<iq type='result' id='p1'></presence>".into()),
        ("a comment", "<iq><!-- --></iq>".into()),
        ("an instruction", "<?xml version='1.0'?><iq/>".into()),
        ("no UTF-8", b"<iq a='\xff\xfe'/>".to_vec()),
        ("text", "hello".into()),
    ]
}
