//! The XMPP session against a real Prosody; skipped, with the reason, where there is none.
//!
//! A small driver with blocking sockets stands in for the engine: the sessions and the target
//! folder are what is tested here, and the counts are compared with Prosody's own.

use model::{
    Effects, Event, FaultClass, Features, Measure, Outcome, Request, Rng, RoomName, Session,
    Shared, Stamp, Tick, Token,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[path = "prosody/people.rs"]
mod people;
#[path = "prosody/streams.rs"]
mod streams;

/// Everything that is waited for has to happen within this time.
const DEADLINE: Duration = Duration::from_secs(60);
/// Longest time in which a Prosody listens everywhere, and how many are tried.
const START_TIME: Duration = Duration::from_secs(15);
const STARTS_MAX: u32 = 4;
/// How long a socket without data is listened to before the next one's turn.
const TURN: Duration = Duration::from_millis(1);
const RUN: u32 = 77;
const PASSWORD: &str = "a <strange> pass & word";
const ROOM: RoomName<'static> = RoomName { id: 4, name: "live" };

/// A Prosody of the target folder, in a directory of its own.
struct Target {
    child: Child,
    directory: PathBuf,
    http: u16,
    c2s: u16,
    /// A port that the configuration may use.
    spare: u16,
}

impl Target {
    fn start() -> Option<Target> {
        Target::start_as(|config, _| config)
    }

    /// A Prosody whose configuration is altered; what alters it is given a free port.
    fn start_as(alter: impl Fn(String, u16) -> String) -> Option<Target> {
        if !Path::new("/usr/bin/prosody").exists() {
            eprintln!("skipped: /usr/bin/prosody is not installed");
            return None;
        }
        // Somebody else may take a port that was free: Prosody then goes on without it.
        let started = (0..STARTS_MAX).find_map(|_| Target::start_once(&alter));
        Some(started.expect("prosody did not come up"))
    }

    /// `None` if it does not listen everywhere in time.
    fn start_once(alter: impl Fn(String, u16) -> String) -> Option<Target> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../targets/prosody");
        let [c2s, http, spare] = free_ports();
        let directory = std::env::temp_dir().join(format!("throng-prosody-{http}"));
        std::fs::create_dir(&directory).unwrap();
        for file in ["prosody.cfg.lua", "mod_lab_vcard.lua"] {
            std::fs::copy(folder.join(file), directory.join(file)).unwrap();
        }
        let config = directory.join("prosody.cfg.lua");
        std::fs::write(&config, alter(std::fs::read_to_string(&config).unwrap(), spare)).unwrap();
        let accounts = directory.join("localhost/accounts");
        std::fs::create_dir_all(&accounts).unwrap();
        let account = format!("return {{ [\"password\"] = \"{PASSWORD}\"; }};\n");
        for name in &NICKS[..3] {
            std::fs::write(accounts.join(format!("{name}.dat")), &account).unwrap();
        }
        let child = Command::new("/usr/bin/prosody")
            .arg("-F")
            .arg("--config")
            .arg(directory.join("prosody.cfg.lua"))
            .env("LAB_DATA", &directory)
            .env("LAB_C2S", c2s.to_string())
            .env("LAB_HTTP", http.to_string())
            .env("LAB_ROOT", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let target = Target { child, directory, http, c2s, spare };
        let begin = clock();
        let listens = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
        while !listens(http) || !listens(c2s) {
            if begin.elapsed() > START_TIME {
                return None;
            }
            std::thread::yield_now();
        }
        Some(target)
    }

    /// The number of that name in Prosody's own statistics.
    fn count(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.http)).unwrap();
        let request = "GET /lab/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        let stats: serde_json::Value = serde_json::from_str(body).unwrap();
        stats[name].as_u64().unwrap()
    }

    fn shared(&self, options: &[(&str, &str)]) -> Arc<Shared> {
        self.shared_at(&format!("ws://127.0.0.1:{}/xmpp-websocket", self.http), options)
    }

    fn shared_at(&self, url: &str, options: &[(&str, &str)]) -> Arc<Shared> {
        let endpoint = model::Endpoint::parse(url).unwrap();
        let options = options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let mut shared = Shared::new(endpoint, options, 1 << 20);
        shared.lists = people::lists();
        Arc::new(shared)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn free_ports() -> [u16; 3] {
    let listeners = [0; 3].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

#[allow(clippy::disallowed_methods)] // this file is its own little engine
fn clock() -> Instant {
    Instant::now()
}

/// A person with a socket.
struct Person {
    session: Box<dyn Session>,
    stream: Option<TcpStream>,
    begin: Instant,
    fx: Effects,
    inbox: Vec<u8>,
    /// Everything received, to be searched.
    seen: Vec<u8>,
    events: Vec<Event>,
    tokens: u32,
}

impl Person {
    fn new(number: u32, features: u64, shared: &Arc<Shared>) -> Person {
        let protocol = protocols::protocol("xmpp").unwrap();
        Person {
            session: protocol.session(number, Features(features), shared),
            stream: None,
            begin: clock(),
            fx: Effects::new(RUN, Rng::new(1, u64::from(number))),
            inbox: Vec::new(),
            seen: Vec::new(),
            events: Vec::new(),
            tokens: 0,
        }
    }

    /// The connection is gone, and nobody has said good-bye; whether the conversation may go on.
    fn lose(&mut self) -> bool {
        self.stream = None;
        self.inbox.clear();
        self.session.lost(self.now())
    }

    fn now(&self) -> Tick {
        Tick::ZERO + self.begin.elapsed()
    }

    fn act(&mut self, request: Request<'_>, port: u16) -> Token {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.session.act(self.now(), token, request, &mut self.fx);
        if std::mem::take(&mut self.fx.dial) {
            let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_read_timeout(Some(TURN)).unwrap();
            stream.set_nodelay(true).unwrap();
            self.stream = Some(stream);
            self.session.opened(self.now(), &mut self.fx);
        }
        self.settle();
        token
    }

    /// Carries out what the session wants.
    fn settle(&mut self) {
        self.events.append(&mut self.fx.events);
        if let Some(stream) = &mut self.stream {
            stream.write_all(&self.fx.out).unwrap();
        }
        self.fx.out.clear();
        match self.fx.close.take() {
            Some(Ok(())) => self.stream = None,
            Some(Err(fault)) if fault.class == FaultClass::LoginRefused => self.stream = None,
            Some(Err(fault)) => panic!("{fault:?}"),
            None => {}
        }
    }

    /// Listens once.
    fn turn(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let mut buffer = [0; 64 << 10];
        match stream.read(&mut buffer) {
            Ok(0) => panic!("prosody closed the connection"),
            Ok(length) => {
                self.inbox.extend_from_slice(&buffer[..length]);
                self.seen.extend_from_slice(&buffer[..length]);
                let taken = self.session.receive(self.now(), &self.inbox, &mut self.fx);
                self.inbox.drain(..taken);
                self.settle();
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn is_done(&self, token: Token) -> bool {
        let outcome = self.events.iter().find_map(|event| match event {
            Event::Done(found, outcome) if *found == token => Some(outcome),
            _ => None,
        });
        outcome.is_some_and(|outcome| {
            assert_eq!(outcome, &Ok(()));
            true
        })
    }

    /// Does something and waits for how it ends.
    fn outcome(&mut self, request: Request<'_>, port: u16) -> Outcome {
        let token = self.act(request, port);
        let begin = clock();
        loop {
            let found = self.events.iter().find_map(|event| match event {
                Event::Done(found, outcome) if *found == token => Some(outcome.clone()),
                _ => None,
            });
            if let Some(outcome) = found {
                return outcome;
            }
            assert!(begin.elapsed() < DEADLINE, "no answer to {request:?}");
            self.turn();
        }
    }

    fn deliveries(&self) -> Vec<Stamp> {
        let stamp = |event: &Event| match event {
            Event::Delivery(stamp) => Some(*stamp),
            _ => None,
        };
        self.events.iter().filter_map(stamp).collect()
    }

    fn asked(&self, measure: Measure) -> u64 {
        let count = |event: &Event| match event {
            Event::Asked(found, count) if *found == measure => u64::from(*count),
            _ => 0,
        };
        self.events.iter().map(count).sum()
    }

    fn answered(&self, measure: Measure) -> u64 {
        let is_it = |event: &&Event| match event {
            Event::Answered { measure: found, outcome, .. } if *found == measure => {
                assert_eq!(outcome, &Ok(()), "{measure:?}");
                true
            }
            _ => false,
        };
        self.events.iter().filter(is_it).count() as u64
    }

    fn count(&self, needle: &str) -> usize {
        memchr::memmem::find_iter(&self.seen, needle.as_bytes()).count()
    }
}

fn until(people: &mut [Person], what: &str, done: impl Fn(&Person) -> bool) {
    let begin = clock();
    while !people.iter().all(&done) {
        assert!(begin.elapsed() < DEADLINE, "in vain: {what}");
        people.iter_mut().for_each(Person::turn);
    }
}

/// Everybody does the same and waits until it is done.
fn all(people: &mut [Person], port: u16, request: impl Fn(usize) -> Request<'static>) {
    let mut tokens = Vec::new();
    for (place, person) in people.iter_mut().enumerate() {
        tokens.push(person.act(request(place), port));
        person.turn();
    }
    let token = tokens[0];
    assert!(tokens.iter().all(|&other| other == token));
    until(people, "an answer", |person| person.is_done(token));
}

const NICKS: [&str; 10] = ["ann", "bob", "cid", "dan", "eve", "fay", "gus", "hal", "ida", "jon"];

fn enter(people: &mut [Person], port: u16) {
    all(people, port, |_| Request::Login { name: "", password: "" });
    all(people, port, |place| Request::Join { room: ROOM, nick: NICKS[place], status: "" });
}

fn leave(people: &mut [Person], port: u16) {
    all(people, port, |_| Request::Leave { room: ROOM });
    people.iter_mut().for_each(|person| _ = person.act(Request::Disconnect, port));
    until(people, "good-bye", |person| person.stream.is_none());
}

/// Everybody says `rounds` messages; returns when everybody has had all of them.
fn talk(people: &mut [Person], port: u16, rounds: u32, first: u32) {
    let before: Vec<usize> = people.iter().map(|person| person.deliveries().len()).collect();
    for round in 0..rounds {
        for place in 0..people.len() {
            let now = people[place].now();
            let stamp = Stamp {
                run: RUN,
                room: ROOM.id,
                source: 0,
                number: first + round * people.len() as u32 + place as u32,
                person: place as u32,
                intended: now,
                sent: now,
            };
            let text = format!("<hello & welcome> {}", str::from_utf8(&stamp.encode()).unwrap());
            people[place].act(Request::Say { room: ROOM, text: &text }, port);
            people[place].turn();
        }
    }
    let count = rounds as usize * people.len();
    until(people, "deliveries", |person| person.deliveries().len() >= before[0] + count);
    for (person, before) in people.iter().zip(before) {
        let mut numbers: Vec<u32> =
            person.deliveries()[before..].iter().map(|stamp| stamp.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (first..first + count as u32).collect::<Vec<_>>());
    }
}

#[test]
fn ten_people_with_all_features_and_ten_with_few() {
    let Some(target) = Target::start() else { return };
    let port = target.http;
    let shared = target.shared(&[]);
    let crowd = |count: u32, features: u64| -> Vec<Person> {
        (0..count).map(|number| Person::new(number, features, &shared)).collect()
    };

    let mut seeders = crowd(2, 0);
    enter(&mut seeders, port);
    talk(&mut seeders, port, 30, 0);
    leave(&mut seeders, port);
    assert_eq!(target.count("vcard_requests"), 0);

    let everything = 0b11111;
    let mut viewers = crowd(10, everything);
    enter(&mut viewers, port);
    talk(&mut viewers, port, 3, 1_000);
    let measures = [
        (Measure::Avatars, 11),
        (Measure::Disco, 4),
        (Measure::Roster, 1),
        (Measure::Carbons, 1),
        (Measure::History, 1),
    ];
    for (measure, each) in measures {
        until(&mut viewers, measure.name(), |person| {
            person.asked(measure) == each && person.answered(measure) == each
        });
    }
    let asked: u64 = viewers.iter().map(|person| person.asked(Measure::Avatars)).sum();
    let counted = target.count("vcard_requests");
    println!("avatars: asked {asked}, prosody counted {counted}, n(n+1) = {}", 10 * 11);
    assert_eq!((asked, counted), (110, 110));
    for person in &viewers {
        assert_eq!(person.deliveries().len(), 30);
        assert_eq!(person.count("<forwarded"), 50, "the archive's page");
        assert_eq!(person.count("<delay"), 50 + 20, "the archive's page and the room's replay");
    }
    println!("talk: 30 messages, 10 × 30 deliveries; 20 replayed, 50 from the archive each");
    leave(&mut viewers, port);

    let mut others = crowd(10, 0b01011);
    enter(&mut others, port);
    talk(&mut others, port, 2, 2_000);
    all(&mut others, port, |_| Request::Ping);
    all(&mut others, port, |_| Request::Members { room: ROOM });
    all(&mut others, port, |_| Request::Presence { list: None, status: "busy" });
    all(&mut others, port, |_| Request::Typing { room: ROOM });
    for person in &others {
        assert_eq!(person.deliveries().len(), 20);
        assert_eq!(person.count("<forwarded"), 0);
        assert_eq!(person.count("<delay"), 20, "the room's replay comes all the same");
    }
    all(&mut others, port, |_| Request::History { room: ROOM, limit: 7 });
    for person in &others {
        assert_eq!(person.count("<forwarded"), 7);
        assert_eq!(person.deliveries().len(), 20, "a page of the past is no delivery");
    }
    println!("without history and avatars: 20 replayed each, 10 × 20 deliveries");
    assert_eq!(target.count("vcard_requests"), 110);
    leave(&mut others, port);
}

#[test]
fn refusals_of_a_real_server() {
    let Some(target) = Target::start() else { return };
    let port = target.http;
    let shared = target.shared(&[]);
    let mut people: Vec<Person> = (0..2).map(|number| Person::new(number, 0, &shared)).collect();
    all(&mut people, port, |_| Request::Login { name: "", password: "" });
    let join = Request::Join { room: ROOM, nick: "same", status: "" };
    let outcomes: Vec<_> = people.iter_mut().map(|person| person.outcome(join, port)).collect();
    assert_eq!(outcomes[0], Ok(()));
    let fault = outcomes[1].clone().unwrap_err();
    println!("nick conflict: {fault:?}");
    assert!(fault.detail.contains("conflict"), "{fault:?}");
}

#[test]
fn accounts_with_a_password() {
    let Some(target) = Target::start() else { return };
    let shared = target.shared(&[("domain", "localhost")]);
    let mut ann = Person::new(0, 0, &shared);
    let login = Request::Login { name: "ann", password: PASSWORD };
    assert_eq!(ann.outcome(login, target.http), Ok(()));
    let mut eve = Person::new(1, 0, &shared);
    let login = Request::Login { name: "ann", password: "guessed" };
    let fault = eve.outcome(login, target.http).unwrap_err();
    println!("wrong password: {fault:?}");
    assert_eq!(fault.class, FaultClass::LoginRefused);
    assert!(fault.detail.contains("not-authorized") && !fault.detail.contains("guessed"));
}
