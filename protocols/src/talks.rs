//! Plays the conversations in the `talks/` of a protocol: what a person does and the target sends
//! is read from the file, what the session sends and reports is compared with it. `BLESS=1`
//! rewrites the files. A protocol takes part by one [`Stage`] in [`STAGES`].
//!
//! ```text
//! after: NAME                  first plays talks/NAME.talk
//! url: xmpps://localhost      where the target is, if not where the others are
//! options: domain=localhost    options of the target
//! features: avatars history    features of the person
//! list: friends ann bob        a list of people, before the first verb
//! contacts: all ann bob        a list of people who are each other's contacts
//! time: 250us                  it is that late now
//! user does: join live as ann  a verb; requests are numbered from 1
//! connection breaks            without a word; the person keeps the conversation or forgets it
//! peer opens                   the connection is open
//! peer accepts                 the upgrade is accepted
//! peer answers: 200 {}         an answer over HTTP before the upgrade: status and body
//! peer sends: <iq/>            a text frame, or bytes of a stream; {stamp 7} is a stamp,
//!                              {stamp 7 of 10} one of the first list
//! peer sends raw: ping abc     another frame: ping, close CODE REASON, binary, part, rest
//! user wakes                   the time asked for has come
//! user …                       what is to be seen of the session after the line above
//! ```

use crate::wire::frame::{self, Opcode};
use crate::wire::http;
use model::{
    Effects, Endpoint, Event, Features, List, Options, Protocol, Request, Rng, RoomName, Session,
    Shared, Stamp, Tick, Token,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RUN: u32 = 1;
const ROOMS: [&str; 2] = ["live", "other"];
/// The number of the first list, and that of rooms and lists that are none.
const LISTS: usize = 10;
const NOWHERE: usize = 9;

/// Where the talks of one protocol are played. Only text frames can be written in a talk.
struct Stage {
    protocol: &'static dyn Protocol,
    /// Its folder in `src/`.
    folder: &'static str,
    url: &'static str,
    /// The one it offers; empty if it offers none.
    subprotocol: &'static str,
    /// Where the protocol is described by its user: how.
    described: Option<fn() -> String>,
    /// Options of the target, unless a talk has others.
    options: &'static [(&'static str, &'static str)],
    /// So many talks there are at least.
    talks_min: usize,
}

static STAGES: &[Stage] = &[
    Stage {
        protocol: &crate::socketio::SocketIo,
        folder: "socketio",
        url: "ws://127.0.0.1:3000/",
        subprotocol: "",
        options: &[("transport", "websocket")],
        talks_min: 14,
        described: None,
    },
    Stage {
        protocol: &crate::websocket::WebSocket,
        folder: "websocket/phoenix",
        url: "ws://127.0.0.1:4000/",
        subprotocol: "",
        described: Some(|| crate::websocket::example(0)),
        options: &[],
        talks_min: 6,
    },
    Stage {
        protocol: &crate::websocket::WebSocket,
        folder: "websocket/centrifugo",
        url: "ws://127.0.0.1:8000/",
        subprotocol: "centrifuge-json",
        described: Some(|| crate::websocket::example(1)),
        options: &[],
        talks_min: 3,
    },
    Stage {
        protocol: &crate::xmpp::Xmpp,
        folder: "xmpp",
        url: "ws://127.0.0.1:5280/xmpp-websocket",
        subprotocol: "xmpp",
        described: None,
        options: &[],
        talks_min: 45,
    },
    Stage {
        protocol: &crate::xmpp::Xmpp,
        folder: "xmpp/stream",
        url: "xmpp://localhost",
        subprotocol: "",
        described: None,
        options: &[],
        talks_min: 18,
    },
    Stage {
        protocol: &crate::yardstick::Yardstick,
        folder: "yardstick",
        url: "ws://127.0.0.1:4000/ws",
        subprotocol: "yardstick.v1.json",
        described: None,
        options: &[("codec", "json")],
        talks_min: 10,
    },
];

struct Player {
    stage: &'static Stage,
    url: String,
    options: Options,
    features: Features,
    /// Names and lists.
    lists: Vec<(String, List)>,
    session: Option<Box<dyn Session>>,
    fx: Effects,
    now: Tick,
    tokens: u32,
    /// What the session wrote, and the file with what is to be seen of it.
    written: Vec<u8>,
    is_upgraded: bool,
    page: Vec<String>,
}

impl Player {
    fn new(stage: &'static Stage) -> Player {
        let pair = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let script = stage.described.map(|text| (model::script::OPTION.to_owned(), text()));
        Player {
            stage,
            url: stage.url.into(),
            options: stage.options.iter().map(pair).chain(script).collect(),
            features: Features::default(),
            lists: Vec::new(),
            session: None,
            fx: Effects::new(RUN, Rng::new(1, 1)),
            now: Tick::ZERO,
            tokens: 0,
            written: Vec::new(),
            is_upgraded: false,
            page: Vec::new(),
        }
    }

    /// Plays a file; the page is then the file as it should be.
    fn play(&mut self, path: &Path) {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for line in text.lines() {
            let is_outcome = ["user ", "  "].iter().any(|start| line.starts_with(start))
                && !line.starts_with("user does: ")
                && line != "user wakes";
            if is_outcome {
                continue;
            }
            if let Some(name) = line.strip_prefix("after: ") {
                let page = std::mem::take(&mut self.page);
                self.play(&path.with_file_name(format!("{name}.talk")));
                self.page = page;
            }
            self.page.push(line.into());
            self.input(line);
            self.observe();
        }
    }

    fn input(&mut self, line: &str) {
        let (what, rest) = line.split_once(": ").unwrap_or((line, ""));
        match what {
            "url" => self.url = rest.into(),
            "options" => {
                let pairs = rest.split(' ').map(|pair| pair.split_once('=').unwrap());
                self.options = pairs.map(|(name, value)| (name.into(), value.into())).collect();
            }
            "features" => {
                let known = self.stage.protocol.facts().features;
                let place = |name| known.iter().position(|row| row.0 == name).unwrap();
                self.features = Features(rest.split(' ').map(|name| 1 << place(name)).sum());
            }
            "list" | "contacts" => {
                let (name, names) = rest.split_once(' ').unwrap();
                let room = (LISTS + self.lists.len()) as u32;
                let names = names.split(' ').map(Box::from).collect();
                let list = List { room, names, is_roster: what == "contacts" };
                self.lists.push((name.into(), list));
            }
            "time" => {
                let micros = rest.strip_suffix("us").unwrap().parse().unwrap();
                self.now = Tick::from_micros(micros);
            }
            "user does" => self.act(rest),
            "user wakes" => {
                self.now = self.fx.wake.take().expect("nobody asked to be woken");
                self.session.as_mut().unwrap().wake(self.now, &mut self.fx);
            }
            "connection breaks" => {
                let is_kept = self.session.as_mut().unwrap().lost(self.now);
                let what = if is_kept { "keeps" } else { "forgets" };
                self.page.push(format!("user {what} the conversation"));
            }
            "peer opens" => {
                self.is_upgraded = false;
                self.session.as_mut().unwrap().opened(self.now, &mut self.fx);
            }
            "peer accepts" => {
                let head = http::read_request(&self.written).unwrap().unwrap();
                let handshake = head.upgrade.unwrap();
                let offered = Some(self.stage.subprotocol).filter(|name| !name.is_empty());
                assert_eq!(handshake.protocols().next(), offered);
                let mut answer = Vec::new();
                handshake.accept(&mut answer, offered);
                self.written.clear();
                self.is_upgraded = true;
                self.receive(&answer);
            }
            "peer answers" => {
                let (status, body) = rest.split_once(' ').unwrap();
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}");
                self.written.clear();
                self.receive(answer.as_bytes());
            }
            "peer sends" if self.is_stream() => self.receive(with_stamps(rest).as_bytes()),
            "peer sends" => {
                let mut bytes = Vec::new();
                let text = with_stamps(rest);
                frame::write_frame(&mut bytes, Opcode::Text, text.as_bytes(), None);
                self.receive(&bytes);
            }
            "peer sends raw" => self.receive(&raw(&with_stamps(rest))),
            _ => assert!(line.is_empty() || line.starts_with('#') || what == "after", "{line}"),
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let taken = self.session.as_mut().unwrap().receive(self.now, bytes, &mut self.fx);
        assert_eq!(taken, bytes.len(), "whole frames are taken whole");
    }

    fn act(&mut self, text: &str) {
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (name, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let room = RoomName { id: self.number(name), name };
        let said = with_stamps(more);
        let request = match verb {
            "login" => Request::Login { name, password: more },
            "join" => Request::Join { room, nick: more.strip_prefix("as ").unwrap(), status: "" },
            "leave" => Request::Leave { room },
            "say" => Request::Say { room, text: &said },
            "history" => Request::History { room, limit: more.parse().unwrap() },
            "members" => Request::Members { room },
            "presence" => Request::Presence { list: None, status: rest },
            "show" => Request::Presence { list: Some(room), status: &said },
            "tell" => Request::Tell { list: room, text: &said },
            "multicast" => Request::Multicast { list: room, text: &said },
            "befriend" => Request::Befriend { list: room },
            "rename" => Request::Rename { room, nick: more.strip_prefix("to ").unwrap() },
            "typing" => Request::Typing { room },
            "read" => Request::Read { room },
            "ping" => Request::Ping,
            "disconnect" => Request::Disconnect,
            _ => panic!("`{verb}` is no verb"),
        };
        if self.session.is_none() {
            let Stage { protocol, .. } = self.stage;
            protocol.check(&self.options).unwrap();
            let endpoint = Endpoint::parse(&self.url).unwrap();
            let options = self.options.clone();
            let mut shared = Shared::new(endpoint, options, 4_096);
            shared.lists = self.lists.iter().map(|(_, list)| list.clone()).collect();
            self.session = Some(protocol.session(1, self.features, &Arc::new(shared)));
        }
        self.tokens += 1;
        let session = self.session.as_mut().unwrap();
        session.act(self.now, Token(self.tokens), request, &mut self.fx);
    }

    /// The number of a room or list.
    fn number(&self, name: &str) -> u32 {
        let room = ROOMS.iter().position(|room| *room == name);
        let list = self.lists.iter().position(|(list, _)| list == name);
        room.or(list.map(|place| LISTS + place)).unwrap_or(NOWHERE) as u32
    }

    /// The name of a room or list.
    fn name(&self, number: u32) -> &str {
        match (number as usize).checked_sub(LISTS) {
            None => ROOMS[number as usize],
            Some(place) => &self.lists[place].0,
        }
    }

    /// Writes down what is to be seen of the session.
    fn observe(&mut self) {
        let has_written = !self.fx.out.is_empty();
        self.written.append(&mut self.fx.out);
        if std::mem::take(&mut self.fx.dial) {
            self.page.push("user dials".into());
        }
        if std::mem::take(&mut self.fx.secure) {
            self.page.push("user begins TLS".into());
        }
        if self.is_upgraded {
            self.observe_frames();
        } else if has_written && self.is_stream() {
            let text = String::from_utf8(std::mem::take(&mut self.written)).unwrap();
            self.page.push(format!("user sends: {text}"));
        } else if has_written {
            self.page.push(match http::read_request(&self.written) {
                Ok(Some(head)) if head.upgrade.is_some() => {
                    format!("user asks for an upgrade: {}", head.path)
                }
                _ => {
                    let text = String::from_utf8_lossy(&self.written);
                    let (head, body) = text.split_once("\r\n\r\n").unwrap();
                    let what = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1");
                    format!("user asks over HTTP: {what} {body}").trim_end().to_owned()
                }
            });
        }
        for event in std::mem::take(&mut self.fx.events) {
            let event = self.show(&event);
            self.page.push(format!("user reports: {event}"));
        }
        match self.fx.close.take() {
            None => {}
            Some(Ok(())) => self.page.push("user closes".into()),
            Some(Err(fault)) => {
                self.page.push(format!("user gives up: {}: {}", fault.class.name(), fault.detail));
            }
        }
    }

    /// Whether bytes go without frames.
    fn is_stream(&self) -> bool {
        self.url.starts_with("xmpp")
    }

    fn observe_frames(&mut self) {
        let mut at = 0;
        while let Some((part, length)) =
            frame::decode_masked(&mut self.written[at..], frame::Limits::SERVER).unwrap()
        {
            let text = String::from_utf8_lossy(part.payload);
            self.page.push(match part.opcode {
                Opcode::Text => format!("user sends: {text}"),
                Opcode::Close => match frame::read_close(part.payload).unwrap() {
                    Some((code, _)) => format!("user sends raw: close {code}"),
                    None => "user sends raw: close".into(),
                },
                other => format!("user sends raw: {other:?} {text}").to_lowercase(),
            });
            at += length;
        }
        self.written.drain(..at);
    }

    fn show(&self, event: &Event) -> String {
        match event {
            Event::Connected => "connected".into(),
            Event::Resumed => "resumed".into(),
            Event::Done(token, Ok(())) => format!("done {}", token.0),
            Event::Done(token, Err(fault)) => {
                format!("failed {}: {}: {}", token.0, fault.class.name(), fault.detail)
            }
            Event::Delivery(stamp) => format!("delivery {}", stamp.number),
            Event::Announcement(stamp) => format!("announcement {}", stamp.number),
            Event::Presences(room, count) => format!("presences {count} in {}", self.name(*room)),
            Event::Asked(measure, count) => format!("asked {} {count}", measure.name()),
            Event::Answered { measure, sent, outcome } => {
                let outcome = match outcome {
                    Ok(()) => "ok".into(),
                    Err(fault) => format!("{}: {}", fault.class.name(), fault.detail),
                };
                format!("answered {} of {}us: {outcome}", measure.name(), sent.micros())
            }
        }
    }
}

fn with_stamps(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{stamp ") {
        let (number, behind) = behind.split_once('}').unwrap();
        let (number, room) = number.split_once(" of ").unwrap_or((number, "0"));
        let (number, room) = (number.parse().unwrap(), room.parse().unwrap());
        let stamp = Stamp {
            run: RUN,
            room,
            source: 0,
            number,
            person: 0,
            intended: Tick::ZERO,
            sent: Tick::ZERO,
        };
        out.push_str(before);
        out.push_str(str::from_utf8(&stamp.encode()).unwrap());
        rest = behind;
    }
    out + rest
}

fn raw(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    match kind {
        "ping" => frame::write_frame(&mut out, Opcode::Ping, rest.as_bytes(), None),
        "binary" => frame::write_frame(&mut out, Opcode::Binary, rest.as_bytes(), None),
        "part" => frame::write_part(&mut out, false, Opcode::Text, rest.as_bytes(), None),
        "rest" => frame::write_part(&mut out, true, Opcode::Continuation, rest.as_bytes(), None),
        "close" => {
            let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            frame::write_close(&mut out, code.parse().unwrap(), reason, None);
        }
        _ => panic!("`{kind}` is no frame"),
    }
    out
}

#[test]
fn talks() {
    let mut differing = Vec::new();
    for stage in STAGES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(stage.folder);
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join("talks"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(files.len() >= stage.talks_min, "where are the talks of {}?", stage.folder);
        differing.extend(files.iter().filter_map(|file| play(stage, file)));
    }
    assert!(
        differing.is_empty(),
        "{}\nBLESS=1 cargo test -p protocols talks rewrites them",
        differing.join("\n")
    );
}

/// Plays a talk, and tells where it differs from its file, unless that is rewritten.
fn play(stage: &'static Stage, file: &Path) -> Option<String> {
    let mut player = Player::new(stage);
    player.play(file);
    let played = player.page.join("\n") + "\n";
    let found = std::fs::read_to_string(file).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file, &played).unwrap();
        return None;
    }
    (found != played).then(|| difference(file, &found, &played))
}

/// The first line in which a file differs from what was played.
fn difference(file: &Path, found: &str, played: &str) -> String {
    let (mut left, mut right) = (found.lines(), played.lines());
    let mut number = 0;
    loop {
        number += 1;
        let pair = (left.next(), right.next());
        if pair.0 != pair.1 || pair.0.is_none() {
            let name = file.file_name().unwrap();
            return format!("{name:?}:{number}: written {:?}\nplayed  {:?}", pair.0, pair.1);
        }
    }
}
