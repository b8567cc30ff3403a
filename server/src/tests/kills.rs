//! A server that is killed and restarted under load, a thousand times and more: what was answered
//! or heard is there afterwards, once, and under its number. Who was not answered says it again
//! with its key: then it is there, and once as well.
//!
//! A kill is an image of the files as they are at that instant, as `kill -9` leaves them; what was
//! in memory is gone. Torn images end somewhere within what the last commit has written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;

use protocols::wire::rng::SplitMix;
use protocols::yardstick::{AnswerWhat, Encoding, Frame, FrameWhat};

use super::kills_rights::Grants;
use super::net::Net;
use crate::store::Store;
use crate::store::tests::Scratch;
use crate::{Commit, Config};

const SEEDS: u64 = 55;
const KILLS: usize = 20;
const STEPS_MAX: usize = 60;
const PEOPLE: usize = 4;
const ROOMS: [&str; 2] = ["r0", "r1"];

/// Where a kill strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    /// What waits for the store is lost.
    Before,
    /// It is stored, and nobody is told.
    Behind,
    /// The commit is cut somewhere in the middle.
    Torn,
}

#[derive(Default)]
struct Person {
    id: usize,
    token: Option<String>,
    is_in: bool,
    requests: u32,
    /// What is not answered.
    asked: HashMap<u32, Asked>,
    /// What is to be said again, with its key.
    again: Vec<Asked>,
}

/// Something that was asked for.
#[derive(Clone)]
enum Asked {
    /// To say a text in a room, with the text as its key or without one.
    Say { room: &'static str, text: String, has_key: bool },
    /// To react to a message.
    React { room: String, number: u32, reaction: String },
}

/// One server after another, and what everybody was told by any of them.
struct Lab {
    seed: u64,
    rng: SplitMix,
    scratch: Scratch,
    lives: usize,
    net: Net,
    store: Option<Store>,
    people: Vec<Person>,
    texts: u32,
    /// What was answered or heard, by room and number.
    told: BTreeMap<(String, u32), String>,
    answers: usize,
    grants: Grants,
    /// Room, number, name and reaction of each reaction that was answered.
    reactions: BTreeSet<(String, u32, String, String)>,
    /// Texts that were said with a key.
    keyed: BTreeSet<String>,
}

fn config() -> Config {
    Config { history: 5, ..Config::default() }
}

impl Lab {
    fn new(seed: u64) -> Lab {
        let scratch = Scratch::new("kills");
        let store = Store::open(&scratch.path("life0"), Commit::Late).unwrap();
        let net = Net::restored(config(), seed, &store);
        let people = (0..PEOPLE).map(|_| Person::default()).collect();
        let rng = SplitMix::new(seed);
        let (store, told) = (Some(store), BTreeMap::new());
        Lab {
            seed,
            rng,
            scratch,
            lives: 0,
            net,
            store,
            people,
            texts: 0,
            told,
            answers: 0,
            grants: Grants::default(),
            reactions: BTreeSet::new(),
            keyed: BTreeSet::new(),
        }
    }

    /// Everybody comes (back), and those who have a token are known.
    fn enter(&mut self) {
        for number in 0..PEOPLE {
            let id = self.net.dial(Encoding::ALL[number % 2]);
            let person = &mut self.people[number];
            let token = person.token.take();
            let is_again = |asked: &Asked| matches!(asked, Asked::Say { has_key: true, .. });
            let mut again = std::mem::take(&mut person.again);
            again.extend(person.asked.drain().map(|(_, asked)| asked).filter(is_again));
            *person = Person { id, again, ..Person::default() };
            let login = match &token {
                Some(token) => format!(r#"{{"id":1,"login":{{"token":"{token}"}}}}"#),
                None => format!(r#"{{"id":1,"login":{{"name":"p{number}","password":"w"}}}}"#),
            };
            self.net.ask(id, &login);
            self.net.turn();
            if token.is_some() {
                let heard = self.net.hear(id);
                let is_known = heard.len() == 1 && heard[0].contains("welcome");
                assert!(is_known, "seed {}: p{number} is unknown: {heard:?}", self.seed);
                self.people[number].token = token;
                self.join(number);
            }
        }
    }

    fn join(&mut self, number: usize) {
        for room in ROOMS {
            let join = format!(r#"{{"id":0,"join":{{"room":"{room}","history":100}}}}"#);
            self.net.ask(self.people[number].id, &join);
        }
        self.people[number].is_in = true;
        for asked in std::mem::take(&mut self.people[number].again) {
            self.ask(number, asked);
        }
    }

    fn ask(&mut self, number: usize, asked: Asked) {
        let person = &mut self.people[number];
        person.requests += 1;
        let id = person.requests;
        let request = match &asked {
            Asked::Say { room, text, has_key } => {
                let key = if *has_key { text } else { "" };
                format!(r#""say":{{"room":"{room}","text":"{text}","key":"{key}"}}"#)
            }
            Asked::React { room, number, reaction } => {
                let react = format!(r#""number":{number},"reaction":"{reaction}""#);
                format!(r#""react":{{"room":"{room}",{react}}}"#)
            }
        };
        person.asked.insert(id, asked);
        self.net.ask(person.id, &format!(r#"{{"id":{id},{request}}}"#));
    }

    fn say(&mut self, number: usize) {
        let room = ROOMS[self.rng.below(ROOMS.len())];
        self.texts += 1;
        let text = format!("text {}", self.texts);
        let has_key = self.rng.below(2) == 0;
        if has_key {
            self.keyed.insert(text.clone());
        }
        self.ask(number, Asked::Say { room, text, has_key });
    }

    /// Reacts to something that somebody was told of.
    fn react(&mut self, number: usize) {
        let at = self.rng.below(self.told.len().max(1));
        let Some((room, message)) = self.told.keys().nth(at).cloned() else { return };
        let reaction = format!("r{}", self.rng.below(3));
        self.ask(number, Asked::React { room, number: message, reaction });
    }

    fn step(&mut self) {
        let number = self.rng.below(PEOPLE);
        let is_in = self.people[number].is_in;
        match self.rng.below(10) {
            0..=3 if is_in => self.say(number),
            9 if is_in => self.react(number),
            4 => self.page(number),
            5 => self.commit(),
            6 => self.listen(),
            7 if self.people[0].is_in => {
                let request = self.grants.request(&mut self.rng, PEOPLE);
                self.net.ask(self.people[0].id, &request);
            }
            _ => {
                self.net.turn();
            }
        }
    }

    fn page(&mut self, number: usize) {
        let (before, limit) = (self.rng.below(30), 1 + self.rng.below(20));
        if self.people[number].is_in {
            let get = format!(r#"{{"room":"r0","before":{before},"limit":{limit}}}"#);
            self.net.ask(self.people[number].id, &format!(r#"{{"id":0,"history":{get}}}"#));
        }
    }

    /// The store commits all it has been given, or the older part of it.
    fn commit(&mut self) {
        let jobs = &mut self.net.wires.to_store;
        let later = jobs.split_off(jobs.len() - self.rng.below(jobs.len() + 1));
        self.net.commit(self.store.as_mut().unwrap());
        self.net.wires.to_store.splice(0..0, later);
    }

    /// Takes down what everybody was told; two that were told of the same number agree.
    fn listen(&mut self) {
        for number in 0..PEOPLE {
            for json in self.net.hear(self.people[number].id) {
                let frame = Frame::decode(Encoding::Json, json.as_bytes()).unwrap();
                match frame.what.unwrap() {
                    FrameWhat::Message(message) => {
                        self.note(&message.room, message.number, &message.text);
                    }
                    FrameWhat::Answer(answer) => self.note_answer(number, answer.id, answer.what),
                    _ => {}
                }
            }
        }
    }

    fn note_answer(&mut self, number: usize, id: u32, what: Option<AnswerWhat<'_>>) {
        match what.unwrap() {
            AnswerWhat::Done(_) if Grants::is_its(id) => self.grants.note(id, ""),
            AnswerWhat::Error(error) if Grants::is_its(id) => self.grants.note(id, &error.code),
            AnswerWhat::Said(said) => {
                let asked = self.people[number].asked.remove(&id).expect("asked once");
                let Asked::Say { room, text, .. } = asked else { panic!("nothing was said") };
                self.answers += 1;
                self.note(room, said.number, &text);
            }
            AnswerWhat::Done(_) => {
                let asked = self.people[number].asked.remove(&id).expect("asked once");
                let Asked::React { room, number: message, reaction } = asked else {
                    panic!("nobody reacted");
                };
                self.reactions.insert((room, message, format!("p{number}"), reaction));
            }
            AnswerWhat::Welcome(welcome) => {
                self.people[number].token = Some(welcome.token.to_string());
                self.join(number);
            }
            AnswerWhat::History(page) => {
                for message in page.messages {
                    self.note("r0", message.number, &message.text);
                }
            }
            AnswerWhat::Joined(_) => {}
            other => panic!("seed {}: {other:?}", self.seed),
        }
    }

    fn note(&mut self, room: &str, number: u32, text: &str) {
        let known = self.told.entry((room.to_owned(), number)).or_insert_with(|| text.to_owned());
        assert_eq!(known, text, "seed {}: {room} {number}", self.seed);
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.scratch.path(&format!("life{}{ending}", self.lives))
    }

    fn log_bytes(&self) -> u64 {
        fs::metadata(self.file("-wal")).map_or(0, |found| found.len())
    }

    /// The server is gone from one instant to the next, and another one takes its place.
    fn kill(&mut self, kill: Kill) {
        self.listen();
        let before = self.log_bytes();
        let mut store = self.store.take().unwrap();
        if kill != Kill::Before {
            store.carry_out(std::mem::take(&mut self.net.wires.to_store));
        }
        let old = ["", "-wal"].map(|ending| self.file(ending));
        let written = self.log_bytes().saturating_sub(before);
        self.lives += 1;
        let new = ["", "-wal"].map(|ending| self.file(ending));
        for (old, new) in old.iter().zip(&new).filter(|(old, _)| old.exists()) {
            fs::copy(old, new).unwrap();
        }
        if kill == Kill::Torn && written > 0 {
            let cut = before + self.rng.below(written as usize + 1) as u64;
            fs::OpenOptions::new().write(true).open(&new[1]).unwrap().set_len(cut).unwrap();
        }
        drop(store);
        let store = Store::open(&new[0], Commit::Late).unwrap();
        self.check(&store, kill);
        self.net = Net::restored(config(), self.seed, &store);
        self.store = Some(store);
    }

    /// Numbers have no gaps, no text is there twice, and all that was told is there.
    fn check(&mut self, store: &Store, kill: Kill) {
        let what = format!("seed {}, life {}, {kill:?}", self.seed, self.lives);
        let mut told = self.told.clone();
        let mut reactions = self.reactions.clone();
        let mut texts = BTreeSet::new();
        let rooms = store.load(usize::MAX / 2, 0).unwrap().rooms;
        self.grants.check(&rooms, &what);
        for room in rooms {
            for (index, past) in room.past.iter().enumerate() {
                assert_eq!(past.number as usize, index + 1, "{what}: {}", room.name);
                assert!(texts.insert(past.text.clone()), "{what}: {} is doubled", past.text);
                if let Some(text) = told.remove(&(room.name.clone(), past.number)) {
                    assert_eq!(*text, *past.text, "{what}: {} {}", room.name, past.number);
                }
                for reacted in past.extra.iter().flat_map(|extra| &extra.reactions) {
                    for name in &reacted.names {
                        let (room, reaction) = (room.name.clone(), reacted.reaction.to_string());
                        reactions.remove(&(room, past.number, name.to_string(), reaction));
                    }
                }
            }
            assert_eq!(room.number as usize, room.past.len(), "{what}");
        }
        assert_eq!(told, BTreeMap::new(), "{what}: lost");
        assert_eq!(reactions, BTreeSet::new(), "{what}: lost");
    }

    /// Everybody comes back a last time and is answered; gives how many texts had a key.
    fn finish(&mut self) -> usize {
        self.enter();
        for _ in 0..3 {
            self.net.turn();
            self.net.commit(self.store.as_mut().unwrap());
            self.listen();
        }
        assert!(self.people.iter().all(|person| person.asked.is_empty()));
        let store = self.store.take().unwrap();
        self.check(&store, Kill::Behind);
        let rooms = store.load(usize::MAX / 2, 0).unwrap().rooms;
        let texts: BTreeSet<_> =
            rooms.iter().flat_map(|room| &room.past).map(|past| past.text.to_string()).collect();
        let lost: Vec<_> = self.keyed.difference(&texts).collect();
        assert!(lost.is_empty(), "seed {}: {lost:?} had a key", self.seed);
        self.keyed.len()
    }
}

#[test]
fn what_was_answered_or_heard_survives_a_thousand_kills() {
    let (mut kills, mut answers, mut told, mut keyed, mut granted) = (0, 0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut lab = Lab::new(seed);
        for _ in 0..KILLS {
            lab.enter();
            for _ in 0..lab.rng.below(STEPS_MAX) {
                lab.step();
            }
            let kill = [Kill::Before, Kill::Behind, Kill::Torn][lab.rng.below(3)];
            lab.kill(kill);
            kills += 1;
        }
        keyed += lab.finish();
        answers += lab.answers;
        told += lab.told.len();
        granted += lab.grants.answered;
    }
    assert!(granted > 1_000, "{granted} roles");
    assert!(kills >= 1_000 && answers > 2_000 && told > 2_000, "{kills}, {answers}, {told}");
    assert!(keyed > 2_000, "{keyed}");
}
