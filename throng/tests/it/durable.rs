//! The yardstick with a data folder: what it has answered outlives `kill -9`, SIGTERM drains it,
//! and a copy that is taken under load is whole.

use crate::rig::{Folder, Started, wait_until};
use protocols::wire::frame::{self, Limits, Opcode};
use protocols::wire::http::UpgradeRequest;
use protocols::yardstick::{AnswerWhat, Encoding, Frame, FrameWhat, PATH, Request};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const KILLS: usize = 10;
const PEOPLE: usize = 3;
/// Messages of one person that are not answered yet.
const OPEN_MAX: usize = 8;
/// Messages that are answered before a server is ended.
const ANSWERS: usize = 200;
/// Long enough for any machine; a test that works never waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was answered: texts by their number.
pub(crate) type Answered = BTreeMap<u32, String>;

/// Starts a server on a folder; gives its address as well.
fn serve(folder: &Folder, data: &str) -> (Started, String) {
    let words = ["serve", "--listen", "127.0.0.1:0", "--data", data, "--hash-cost", "low"];
    let server = folder.start(words);
    wait_until("the server listens", || server.stderr().contains(PATH));
    let stderr = server.stderr();
    let (_, rest) = stderr.split_once("ws://").unwrap();
    let address = rest.split('/').next().unwrap().to_owned();
    (server, address)
}

pub(crate) struct Client {
    stream: TcpStream,
    inbox: Vec<u8>,
    requests: u32,
}

impl Client {
    /// Connects, logs in by token if there is one, and joins the room.
    pub(crate) fn enter(address: &str, name: &str, token: &mut Option<String>) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client { stream, inbox: Vec::new(), requests: 0 };
        let request = UpgradeRequest {
            path: PATH,
            host: "localhost",
            headers: &[],
            protocols: &[Encoding::Json.subprotocol()],
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
            assert!(client.fill());
        };
        client.inbox.drain(..used);
        let login = match token {
            Some(token) => format!(r#"{{"token":"{token}"}}"#),
            None => format!(r#"{{"name":"{name}","password":"word"}}"#),
        };
        client.ask("login", &login);
        let welcome = client.hear().unwrap();
        let (_, rest) = welcome.split_once(r#""token":""#).expect(&welcome);
        *token = rest.split('"').next().map(str::to_owned);
        client.ask("join", r#"{"room":"live"}"#);
        assert!(client.hear().unwrap().contains("joined"));
        client
    }

    /// `false` if the server has gone.
    fn fill(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let length = self.stream.read(&mut buffer).unwrap_or(0);
        self.inbox.extend_from_slice(&buffer[..length]);
        length > 0
    }

    /// `None` if the server has gone.
    pub(crate) fn ask(&mut self, what: &str, json: &str) -> Option<u32> {
        self.requests += 1;
        let json = format!(r#"{{"id":{},"{what}":{json}}}"#, self.requests);
        assert!(Request::decode(Encoding::Json, json.as_bytes()).is_ok(), "{json}");
        let mut bytes = Vec::new();
        frame::write_frame(&mut bytes, Opcode::Text, json.as_bytes(), Some([1, 2, 3, 4]));
        self.stream.write_all(&bytes).ok().map(|()| self.requests)
    }

    /// The next frame, as JSON or as the close code; `None` if the server has gone.
    pub(crate) fn hear(&mut self) -> Option<String> {
        loop {
            if let Some((frame, used)) = frame::decode(&self.inbox, Limits::CLIENT).unwrap() {
                let text = match frame.opcode {
                    Opcode::Close => {
                        let close = frame::read_close(frame.payload).unwrap();
                        format!("<close> {}", close.unwrap_or_default().0)
                    }
                    _ => String::from_utf8(frame.payload.to_vec()).unwrap(),
                };
                self.inbox.drain(..used);
                return Some(text);
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Talks until the server goes; gives what was answered and the last thing that was heard.
    pub(crate) fn talk(&mut self, prefix: &str, count: &AtomicUsize) -> (Answered, String) {
        let (mut answered, mut last) = (Answered::new(), String::new());
        let mut open = HashMap::new();
        for number in 0.. {
            let text = format!("{prefix} {number}");
            let say = format!(r#"{{"room":"live","text":"{text}"}}"#);
            let asked = self.ask("say", &say);
            open.extend(asked.map(|id| (id, text)));
            // Who cannot write any more may still have something to read, up to the end.
            while asked.is_none() || open.len() >= OPEN_MAX || last.starts_with("<close>") {
                let Some(json) = self.hear() else { return (answered, last) };
                if let Some((id, number)) = said(&json) {
                    answered.insert(number, open.remove(&id).expect("asked once"));
                    count.fetch_add(1, Ordering::Relaxed);
                }
                last = json;
            }
        }
        (answered, last)
    }

    /// Everything that was ever said, from page to page.
    pub(crate) fn everything(&mut self) -> Answered {
        let (mut all, mut before) = (Answered::new(), 0);
        loop {
            self.ask("history", &format!(r#"{{"room":"live","before":{before},"limit":70}}"#));
            let json = loop {
                let json = self.hear().unwrap();
                if json.contains(r#""history""#) {
                    break json;
                }
            };
            let frame = Frame::decode(Encoding::Json, json.as_bytes()).unwrap();
            let Some(FrameWhat::Answer(answer)) = frame.what else { panic!("{json}") };
            let Some(AnswerWhat::History(page)) = answer.what else { panic!("{json}") };
            let Some(first) = page.messages.first() else { return all };
            before = first.number;
            let texts = page.messages.iter().map(|m| (m.number, m.text.to_string()));
            all.extend(texts);
        }
    }
}

/// Request and number, if it is the answer to something said.
fn said(json: &str) -> Option<(u32, u32)> {
    let frame = Frame::decode(Encoding::Json, json.as_bytes()).ok()?;
    match frame.what {
        Some(FrameWhat::Answer(answer)) => match answer.what {
            Some(AnswerWhat::Said(said)) => Some((answer.id, said.number)),
            other => panic!("{other:?}"),
        },
        _ => None,
    }
}

/// People talk until enough is answered, and `end` ends the server; what they were answered goes
/// into `answered`, and what they heard last is given.
fn life(
    address: &str,
    name: &str,
    tokens: &mut [Option<String>],
    answered: &mut Answered,
    end: impl FnOnce(),
) -> Vec<String> {
    let count = AtomicUsize::new(0);
    let enter = |(number, token): (usize, &mut Option<String>)| {
        (number, Client::enter(address, &format!("p{number}"), token))
    };
    // All are in before anybody talks: otherwise the server may go while one is logging in.
    let people: Vec<(usize, Client)> = tokens.iter_mut().enumerate().map(enter).collect();
    let talk =
        |(number, mut client): (usize, Client)| client.talk(&format!("{name} p{number}"), &count);
    let told: Vec<(Answered, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            people.into_iter().map(|person| scope.spawn(move || talk(person))).collect();
        wait_until("enough is answered", || count.load(Ordering::Relaxed) >= ANSWERS);
        end();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut last = Vec::new();
    for (texts, heard) in told {
        for (number, text) in texts {
            assert_eq!(answered.insert(number, text), None, "{name}: {number} was given twice");
        }
        last.push(heard);
    }
    last
}

/// Nothing that was answered is lost or doubled, and the numbers have no gaps.
pub(crate) fn check(all: &Answered, answered: &Answered, what: &str) {
    let numbers: Vec<u32> = all.keys().copied().collect();
    assert_eq!(numbers, (1..=all.len() as u32).collect::<Vec<u32>>(), "{what}");
    assert_eq!(all.values().collect::<BTreeSet<_>>().len(), all.len(), "{what}: doubled");
    for (number, text) in answered {
        assert_eq!(all.get(number), Some(text), "{what}: {number}");
    }
}

#[test]
fn what_was_answered_outlives_kill_9() {
    let folder = Folder::new("durable");
    let (mut tokens, mut answered) = (vec![None; PEOPLE], Answered::new());
    for kill in 0..KILLS {
        let (server, address) = serve(&folder, "data");
        let all = Client::enter(&address, "reader", &mut None).everything();
        check(&all, &answered, &format!("after {kill} kills"));
        life(&address, &format!("life {kill}"), &mut tokens, &mut answered, || {
            server.signal(libc::SIGKILL);
        });
        assert_eq!(server.end().code, None);
    }
    assert!(answered.len() >= KILLS * ANSWERS);
    let (server, address) = serve(&folder, "data");
    let all = Client::enter(&address, "reader", &mut None).everything();
    check(&all, &answered, "in the end");
    server.signal(libc::SIGTERM);
    assert_eq!(server.end().code, Some(0));
}

#[test]
fn a_stop_drains_and_a_copy_under_load_is_whole() {
    let folder = Folder::new("drained");
    let (mut tokens, mut answered) = (vec![None; PEOPLE], Answered::new());
    let (server, address) = serve(&folder, "data");
    let second = serve_refused(&folder);
    assert!(second.contains("another server is using it"), "{second}");
    let last = life(&address, "first", &mut tokens, &mut answered, || {
        let copy = folder.throng(["serve", "--data", "data", "--backup", "copy"]);
        assert_eq!(copy.code, Some(0), "{}", copy.stderr);
        server.signal(libc::SIGTERM);
    });
    assert_eq!(last, vec!["<close> 1001"; PEOPLE]);
    assert_eq!(server.end().code, Some(0));
    assert!(!folder.path("data/yardstick.sqlite-wal").exists(), "the store was closed");

    let (server, address) = serve(&folder, "data");
    let all = Client::enter(&address, "reader", &mut None).everything();
    check(&all, &answered, "after a stop");
    server.signal(libc::SIGTERM);
    server.end();

    std::fs::create_dir(folder.path("restored")).unwrap();
    std::fs::rename(folder.path("copy"), folder.path("restored/yardstick.sqlite")).unwrap();
    let (server, address) = serve(&folder, "restored");
    let copied = Client::enter(&address, "p0", &mut None).everything();
    assert!(copied.len() >= ANSWERS && copied.len() <= all.len());
    assert!(copied.iter().eq(all.iter().take(copied.len())), "the copy is of one instant");
    server.signal(libc::SIGTERM);
    server.end();
}

/// A second server on the same folder ends at once; gives what it says.
fn serve_refused(folder: &Folder) -> String {
    let answer = folder.throng(["serve", "--listen", "127.0.0.1:0", "--data", "data"]);
    assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    answer.stderr
}
