//! Three nodes that are one, over a bus in memory that loses, doubles and delays, while nodes are
//! killed: what was answered is there on all of them, once, under one number.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs;

use protocols::wire::rng::SplitMix;
use protocols::yardstick::{AnswerWhat, Encoding, Frame, FrameWhat};

use super::net::Net;
use crate::bus::{Arrived, Orderer};
use crate::cluster::Cluster;
use crate::store::tests::Scratch;
use crate::store::{Job, Store, Want};
use crate::{Commit, Config, Presence};

const SEEDS: u64 = 60;
const ROUNDS: usize = 4;
const STEPS: usize = 90;
const NODES: usize = 3;
const PEOPLE: usize = 6;
const ROOMS: [&str; 2] = ["r0", "r1"];
/// A step of the virtual clock, in microseconds.
const STEP_US: u64 = 40_000;

struct Node {
    net: Net,
    store: Store,
    orderer: Orderer,
    file: String,
    /// A copy of the store as it was some time ago.
    copy: Option<String>,
    /// News that are on their way to it.
    news: VecDeque<Vec<u8>>,
}

#[derive(Default)]
struct Person {
    node: usize,
    /// `None` while it is away.
    id: Option<usize>,
    requests: u32,
    /// Room and text of what is not answered.
    asked: HashMap<u32, (&'static str, String)>,
    /// Rooms it is joining.
    joining: HashMap<u32, &'static str>,
    /// The latest number it knows of each room it is in, or was in.
    latest: BTreeMap<&'static str, u32>,
    /// The rooms it is in.
    rooms: BTreeSet<&'static str>,
    /// Who it sees in each room.
    seen: BTreeMap<&'static str, Vec<String>>,
    /// The answer to `members`.
    members: Vec<Vec<String>>,
}

struct Lab {
    seed: u64,
    rng: SplitMix,
    scratch: Scratch,
    files: usize,
    now_us: u64,
    log: Vec<Vec<u8>>,
    nodes: Vec<Node>,
    people: Vec<Person>,
    texts: u32,
    /// What was answered or heard, by room and number.
    told: BTreeMap<(String, u32), String>,
    /// Texts that were answered.
    answered: BTreeSet<String>,
    lives: u64,
    /// How many of a hundred sheets and entries are lost.
    loss: usize,
}

fn config() -> Config {
    Config { history: 10_000, presence: Presence::Batched, ..Config::default() }
}

impl Lab {
    fn new(seed: u64) -> Lab {
        let scratch = Scratch::new("several");
        let mut lab = Lab {
            seed,
            rng: SplitMix::new(seed),
            scratch,
            files: 0,
            now_us: 0,
            log: Vec::new(),
            nodes: Vec::new(),
            people: (0..PEOPLE).map(|_| Person::default()).collect(),
            texts: 0,
            told: BTreeMap::new(),
            answered: BTreeSet::new(),
            lives: 0,
            loss: 0,
        };
        for _ in 0..NODES {
            let file = lab.file();
            let node = lab.start(file);
            lab.nodes.push(node);
        }
        lab
    }

    fn file(&mut self) -> String {
        self.files += 1;
        format!("node{}", self.files)
    }

    /// A node that goes on with a file, and catches up with the log.
    fn start(&mut self, file: String) -> Node {
        self.lives += 1;
        let mut store = Store::open(&self.scratch.path(&file), Commit::Late).unwrap();
        let following = store.follow("the log").unwrap();
        let mut orderer = Orderer::new(self.lives, following.position);
        for at in following.position as usize..self.log.len() {
            follow(&mut orderer, &mut store, at, &self.log[at]);
        }
        let mut net = Net::restored(config(), self.lives, &store);
        net.core.cluster = Some(Cluster::new(self.lives));
        net.wires.now.us = self.now_us;
        Node { net, store, orderer, file, copy: None, news: VecDeque::new() }
    }

    /// A turn of a node: what it wants goes on its way, and what it announces.
    fn turn(&mut self, at: usize) {
        self.now_us += STEP_US;
        let node = &mut self.nodes[at];
        node.net.wires.now.us = self.now_us;
        node.net.turn();
        let jobs = std::mem::take(&mut node.net.wires.to_store);
        let (pages, wants): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| matches!(job.want, Want::Page { .. }));
        for done in node.store.carry_out(pages) {
            node.net.core.stored(done, node.net.wires.now);
        }
        node.orderer.offer(wants);
        while let Some(entry) = node.orderer.next() {
            let entry = entry.to_vec();
            if self.rng.below(100) >= self.loss {
                self.log.push(entry.clone());
            }
            if self.rng.below(100) < self.loss {
                self.log.push(entry);
            }
        }
        for sheet in std::mem::take(&mut self.nodes[at].net.wires.news) {
            for other in 0..NODES {
                if self.rng.below(100) >= self.loss {
                    self.nodes[other].news.push_back(sheet.clone());
                }
            }
        }
    }

    /// A node reads on in the log, up to its end or not so far.
    fn read_log(&mut self, at: usize, all: bool) {
        let node = &mut self.nodes[at];
        let begin = node.orderer.position() as usize;
        let left = self.log.len() - begin;
        let count = if all { left } else { self.rng.below(left + 1) };
        for at in begin..begin + count {
            for done in follow(&mut node.orderer, &mut node.store, at, &self.log[at]) {
                node.net.core.stored(done, node.net.wires.now);
            }
        }
    }

    fn read_news(&mut self, at: usize, all: bool) {
        let node = &mut self.nodes[at];
        let count = if all { node.news.len() } else { self.rng.below(node.news.len() + 1) };
        for sheet in node.news.drain(..count) {
            node.net.core.hear_news(&sheet, node.net.wires.now);
        }
    }

    fn step(&mut self) {
        let at = self.rng.below(NODES);
        match self.rng.below(9) {
            0..=3 => self.act(),
            4 => self.read_log(at, false),
            5 => self.read_news(at, false),
            6 if self.rng.below(4) == 0 => self.nodes[at].orderer.resend(),
            7 if self.rng.below(8) == 0 => self.copy(at),
            _ => self.turn(at),
        }
        self.listen();
    }

    /// Somebody does something.
    fn act(&mut self) {
        let number = self.rng.below(PEOPLE);
        let room = ROOMS[self.rng.below(ROOMS.len())];
        let Some(id) = self.people[number].id else {
            let node = self.rng.below(NODES);
            return self.enter(number, node);
        };
        let choice = self.rng.below(20);
        self.texts += 1;
        let text = format!("text {}", self.texts);
        let person = &mut self.people[number];
        person.requests += 1;
        let request = person.requests;
        let is_joining = person.joining.values().any(|joining| *joining == room);
        let ask = match (person.rooms.contains(room), choice) {
            (false, _) if is_joining => return,
            (false, _) => {
                person.joining.insert(request, room);
                let after = person.latest.get(room).copied().unwrap_or(0);
                format!(
                    r#""join":{{"room":"{room}","after":{after},"history":1000,"members":true}}"#
                )
            }
            (true, 0) => {
                person.rooms.remove(room);
                person.seen.remove(room);
                format!(r#""leave":{{"room":"{room}"}}"#)
            }
            (_, 3) => {
                let to = self.rng.below(PEOPLE);
                format!(r#""tell":{{"to":["p{to}","p{number}"],"text":"{text}","key":"{to}"}}"#)
            }
            (true, 4) => {
                let message = 1 + self.rng.below(4);
                format!(r#""react":{{"room":"{room}","number":{message},"reaction":"+"}}"#)
            }
            (true, 5) => format!(r#""read":{{"room":"{room}"}}"#),
            (true, 6) => format!(r#""create":{{"room":"own{}"}}"#, self.rng.below(3)),
            (true, 7) => {
                let (own, whom) = (self.rng.below(3), self.rng.below(PEOPLE));
                format!(r#""grant":{{"room":"own{own}","name":"p{whom}","role":"moderator"}}"#)
            }
            (true, 1) => format!(r#""typing":{{"room":"{room}"}}"#),
            (true, 2) => {
                self.nodes[self.people[number].node].net.core.hung_up(id);
                return self.cut(number);
            }
            _ => {
                person.asked.insert(request, (room, text.clone()));
                format!(r#""say":{{"room":"{room}","text":"{text}"}}"#)
            }
        };
        let node = self.people[number].node;
        self.nodes[node].net.ask(id, &format!(r#"{{"id":{request},{ask}}}"#));
    }

    /// Somebody comes to a node, and is known there by the account of the first time.
    fn enter(&mut self, number: usize, node: usize) {
        let net = &mut self.nodes[node].net;
        let id = net.dial(Encoding::ALL[number % 2]);
        net.ask(id, &format!(r#"{{"id":0,"login":{{"name":"p{number}","password":"w"}}}}"#));
        let person = &mut self.people[number];
        (person.node, person.id) = (node, Some(id));
    }

    /// Somebody's connection has ended; what was not answered never will be.
    fn cut(&mut self, number: usize) {
        let person = &mut self.people[number];
        let latest = std::mem::take(&mut person.latest);
        let requests = person.requests;
        *person = Person { latest, requests, ..Person::default() };
    }

    /// Takes down what everybody was told.
    fn listen(&mut self) {
        for number in 0..PEOPLE {
            let Some(id) = self.people[number].id else { continue };
            let node = self.people[number].node;
            for json in self.nodes[node].net.hear(id) {
                let frame = Frame::decode(Encoding::Json, json.as_bytes()).expect(&json);
                match frame.what.unwrap() {
                    FrameWhat::Message(message) => {
                        self.heard(number, &message.room, message.number, &message.text);
                    }
                    FrameWhat::Presence(presence) => {
                        let room = ROOMS.into_iter().find(|room| **room == *presence.room).unwrap();
                        let Some(seen) = self.people[number].seen.get_mut(room) else { continue };
                        for name in &presence.left {
                            let at = seen.iter().position(|known| *known == **name);
                            let at = at.unwrap_or_else(|| panic!("seed {}: {json}", self.seed));
                            seen.remove(at);
                        }
                        seen.extend(presence.joined.iter().map(|person| person.name.to_string()));
                    }
                    FrameWhat::Answer(answer) => self.answer(number, answer.id, answer.what, &json),
                    _ => {}
                }
            }
        }
    }

    /// A message of a room is heard: the next one, and the same text as for everybody.
    fn heard(&mut self, number: usize, room: &str, message: u32, text: &str) {
        if room.is_empty() {
            return self.note(&format!("inbox of p{number}"), message, text);
        }
        self.note(room, message, text);
        let room = ROOMS.into_iter().find(|known| *known == room).unwrap();
        let person = &mut self.people[number];
        if !person.rooms.contains(room) {
            return; // said before it left, on its way since
        }
        let latest = person.latest.get_mut(room).unwrap();
        *latest += 1;
        assert_eq!(*latest, message, "seed {}: p{number} in {room}", self.seed);
    }

    fn answer(&mut self, number: usize, id: u32, what: Option<AnswerWhat<'_>>, json: &str) {
        match what.unwrap() {
            // A direct message has a number in each inbox, and none here.
            AnswerWhat::Said(said) if said.number == 0 => {}
            AnswerWhat::Said(said) => {
                let (room, text) = self.people[number].asked.remove(&id).expect("asked once");
                self.note(room, said.number, &text);
                assert!(self.answered.insert(text), "seed {}: answered twice", self.seed);
            }
            AnswerWhat::Joined(joined) => {
                let room = self.people[number].joining.remove(&id).expect("joined once");
                // What was said while it was away is in the answer, each message once.
                let after = self.people[number].latest.get(room).copied().unwrap_or(0);
                let missed: Vec<_> =
                    joined.messages.iter().filter(|message| message.number > after).collect();
                let numbers: Vec<u32> = missed.iter().map(|message| message.number).collect();
                assert!(joined.number >= after, "seed {}: {json}", self.seed);
                let expect: Vec<u32> = (after + 1..=joined.number).collect();
                assert_eq!(numbers, expect, "seed {}: {json}", self.seed);
                for message in &missed {
                    self.note(room, message.number, &message.text);
                }
                let person = &mut self.people[number];
                person.rooms.insert(room);
                person.latest.insert(room, joined.number);
                let names = joined.people.iter().map(|person| person.name.to_string());
                person.seen.insert(room, names.chain([format!("p{number}")]).collect());
            }
            AnswerWhat::Members(members) => {
                let mut names: Vec<String> =
                    members.people.iter().map(|person| person.name.to_string()).collect();
                names.sort();
                self.people[number].members.push(names);
            }
            AnswerWhat::Error(error) => {
                // Not logged in yet, or not in the room yet: nothing was done. Or it was refused.
                let is_fine = ["login_first", "not_in_room", "already_in_room", "behind"];
                let is_ruled = ["unknown_name", "no_message", "room_exists", "no_room"];
                let is_right = ["not_allowed", "open_room", "last_owner"];
                let mut known = is_fine.iter().chain(&is_ruled).chain(&is_right);
                assert!(known.any(|code| *code == &*error.code), "seed {}: {json}", self.seed);
                let person = &mut self.people[number];
                person.asked.remove(&id);
                person.joining.remove(&id);
            }
            _ => {}
        }
    }

    fn note(&mut self, room: &str, number: u32, text: &str) {
        let known = self.told.entry((room.to_owned(), number)).or_insert_with(|| text.to_owned());
        assert_eq!(known, text, "seed {}: {room} {number}", self.seed);
    }

    /// A copy of a node's store, as a disk may have it that was not synced since.
    fn copy(&mut self, at: usize) {
        let copy = self.file();
        let db = rusqlite::Connection::open(self.scratch.path(&self.nodes[at].file)).unwrap();
        let path = self.scratch.path(&copy);
        db.execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
        self.nodes[at].copy = Some(copy);
    }

    /// A node is gone from one instant to the next, and starts anew: with its store, an older one,
    /// or none.
    fn kill(&mut self, at: usize) {
        self.listen();
        for number in 0..PEOPLE {
            if self.people[number].id.is_some() && self.people[number].node == at {
                self.cut(number);
            }
        }
        let file = match (self.rng.below(3), self.nodes[at].copy.take()) {
            (0, Some(copy)) => copy,
            (1, _) => self.file(),
            _ => self.nodes[at].file.clone(),
        };
        let news = std::mem::take(&mut self.nodes[at].news);
        self.nodes[at] = self.start(file);
        self.nodes[at].news = news; // it may hear of what was before its life
    }

    /// Nothing is lost any more, and there is time enough.
    fn settle(&mut self) {
        let loss = std::mem::take(&mut self.loss);
        for round in 0..60 {
            for at in 0..NODES {
                if round % 10 == 9 {
                    self.nodes[at].orderer.resend();
                }
                self.turn(at);
                self.read_log(at, true);
                self.read_news(at, true);
                self.now_us += STEP_US;
            }
            self.listen();
        }
        for at in 0..NODES {
            self.nodes[at].net.settle();
        }
        self.listen();
        self.loss = loss;
    }

    /// All nodes have the same, and everybody sees who is there.
    fn check(&mut self) {
        let what = format!("seed {}", self.seed);
        let mut all = Vec::new();
        for node in &self.nodes {
            assert_eq!(node.orderer.position() as usize, self.log.len(), "{what}");
            let mut rooms = BTreeMap::new();
            for room in node.store.load(usize::MAX / 2, 0).unwrap().rooms {
                let texts: Vec<String> =
                    room.past.iter().map(|past| past.text.to_string()).collect();
                let numbers = room.past.iter().map(|past| past.number);
                assert!(numbers.eq(1..=texts.len() as u32), "{what}: gaps in {}", room.name);
                rooms.insert(room.name, texts);
            }
            all.push(rooms);
        }
        assert!(all.iter().all(|rooms| *rooms == all[0]), "{what}: nodes differ");
        let texts: Vec<&String> = all[0].values().flatten().collect();
        let distinct: BTreeSet<&String> = texts.iter().copied().collect();
        assert_eq!(texts.len(), distinct.len(), "{what}: something is doubled");
        let files = self.nodes.iter().map(|node| contents(&self.scratch.path(&node.file)));
        let files: Vec<Vec<String>> = files.collect();
        assert!(files.iter().all(|file| *file == files[0]), "{what}: stores differ: {files:#?}");
        for ((room, number), text) in self.told.iter().filter(|((room, _), _)| !room.contains(' '))
        {
            assert_eq!(
                all[0][room].get(*number as usize - 1),
                Some(text),
                "{what}: {room} {number}"
            );
        }
        for room in ROOMS {
            self.check_members(room);
        }
        for (number, person) in self.people.iter().enumerate() {
            for room in &person.rooms {
                let end = all[0].get(*room).map_or(0, Vec::len);
                assert_eq!(person.latest[room] as usize, end, "{what}: p{number} in {room}");
            }
        }
    }

    fn check_members(&mut self, room: &'static str) {
        let is_in = |number: &usize| self.people[*number].rooms.contains(room);
        let inside: Vec<usize> = (0..PEOPLE).filter(is_in).collect();
        let names: Vec<String> = inside.iter().map(|number| format!("p{number}")).collect();
        for number in inside {
            let (node, id) = (self.people[number].node, self.people[number].id.unwrap());
            let ask = format!(r#"{{"id":0,"members":{{"room":"{room}"}}}}"#);
            self.nodes[node].net.ask(id, &ask);
            self.nodes[node].net.turn();
            self.listen();
            let person = &mut self.people[number];
            let answers = std::mem::take(&mut person.members);
            assert_eq!(
                answers,
                std::slice::from_ref(&names),
                "seed {}: p{number} in {room}",
                self.seed
            );
            let seen = person.seen.get_mut(room).unwrap();
            seen.sort();
            assert_eq!(*seen, names, "seed {}: p{number} was told of in {room}", self.seed);
        }
    }
}

/// Every row of a store, but for how far it has come in the log: read markers and reactions,
/// inboxes and roles as well.
fn contents(file: &std::path::Path) -> Vec<String> {
    let db = rusqlite::Connection::open(file).unwrap();
    let find = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut tables = db.prepare(find).unwrap();
    let tables = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut all = Vec::new();
    for table in tables.map(Result::unwrap) {
        let mut select = db.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = select.column_count();
        let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
            let value = |at| Ok(format!("{:?}", row.get::<_, rusqlite::types::Value>(at)?));
            let values: rusqlite::Result<Vec<String>> = (0..columns).map(value).collect();
            Ok(format!("{table}: {}", values?.join(", ")))
        };
        all.extend(select.query_map([], row).unwrap().map(Result::unwrap));
    }
    all
}

/// An entry of the log reaches a node's store.
fn follow(
    orderer: &mut Orderer,
    store: &mut Store,
    at: usize,
    entry: &[u8],
) -> Vec<crate::store::Done> {
    match orderer.arrived(at as u64 + 1, entry).unwrap() {
        Arrived::Batch(batch) => match store.follow_batches(vec![batch]) {
            Ok(done) => done,
            Err(failed) => panic!("{}", failed.trouble),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn three_nodes_are_one_whatever_is_lost_and_whoever_is_killed() {
    let (mut answers, mut told, mut lost) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut lab = Lab::new(seed);
        for round in 0..ROUNDS {
            lab.loss = lab.rng.below(4) * 10;
            for _ in 0..STEPS {
                lab.step();
            }
            if round % 2 == 1 {
                let at = lab.rng.below(NODES);
                lab.kill(at);
                for _ in 0..STEPS / 3 {
                    lab.step();
                }
            }
            lab.settle();
            lab.check();
        }
        answers += lab.answered.len();
        told += lab.told.len();
        lost += lab.nodes.iter().map(|node| node.net.core.counters.nodes_lost).sum::<u64>();
    }
    assert!(answers > 1_500 && told >= answers && lost > 30, "{answers}, {told}, {lost}");
}

#[test]
fn what_nobody_understands_ends_a_node() {
    let entries = [
        (r#"{"v":2,"life":1,"serial":1,"wants":[]}"#, "version 2"),
        (r#"{"v":1,"life":1,"serial":1,"wants":[{"Conquer":{}}]}"#, "Conquer"),
        (r#"{"v":1,"life":1,"serial":1,"wants":[{"Key":{"key":[1]}}]}"#, "not understood"),
        (r#"{"v":1,"life":1,"serial":1,"wants":[],"more":1}"#, "more"),
        (r#"{"life":1}"#, "is none"),
        ("", "is none"),
    ];
    for (entry, expect) in entries {
        let mut orderer = Orderer::new(7, 0);
        let why = orderer.arrived(1, entry.as_bytes()).unwrap_err();
        assert!(why.contains(expect) && why.contains("entry 1"), "{why}");
        assert_eq!(orderer.position(), 0, "it stays before what it has not understood");
    }
}

#[test]
fn passwords_stay_where_they_are() {
    let mut orderer = Orderer::new(7, 0);
    let want = Want::Account { name: "ann".into(), password: "word".into(), secret: "s".into() };
    orderer.offer([Job { ticket: crate::delivery::conn::Ticket::FOREIGN, want, since_us: 0 }]);
    let entry = String::from_utf8(orderer.next().unwrap().to_vec()).unwrap();
    let expect = r#"{"v":1,"life":7,"serial":1,"wants":[{"Account":{"name":"ann","secret":"s"}}]}"#;
    assert_eq!(entry, expect);
}

#[test]
fn a_folder_stays_with_its_log() {
    let scratch = Scratch::new("follow");
    let open = |file: &str| Store::open(&scratch.path(file), Commit::Late).unwrap();
    let mut store = open("one");
    assert_eq!(store.follow("a").unwrap().position, 0);
    assert!(store.follow("a").is_ok());
    assert!(store.follow("b").unwrap_err().to_string().contains("another log"));
    assert!(store.check_alone().unwrap_err().to_string().contains("--nats"));
    let mut alone = open("two");
    assert!(alone.check_alone().is_ok());
    let want = Want::Account { name: "ann".into(), password: "".into(), secret: "s".into() };
    alone.carry_out(vec![Job {
        ticket: crate::delivery::conn::Ticket::FOREIGN,
        want,
        since_us: 0,
    }]);
    assert!(alone.follow("a").unwrap_err().to_string().contains("was alone"));
    fs::remove_file(scratch.path("two")).unwrap();
}
