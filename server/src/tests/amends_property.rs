//! Random people say, edit, delete, react and read: answers, what is heard, memory and store agree
//! with a small model, where nothing is kept and over restarts where it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use protocols::wire::rng::SplitMix;
use protocols::yardstick::{Answer, AnswerWhat, Done, History, Said};
use protocols::yardstick::{
    Change, Encoding, Frame, FrameWhat, Joined, Message, Millis, Reaction, Read,
};

use super::durable::Kept;
use super::net::Net;
use crate::Config;

const ROUNDS: u64 = 120;
const STEPS: usize = 150;
const HISTORY: usize = 6;
const NAMES: [&str; 4] = ["ann", "bob", "cyd", "eve"];
/// She only listens.
const EVE: usize = 3;

/// A message of the model.
#[derive(Default)]
struct Line {
    message: Message<'static>,
    reactions: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

impl Line {
    fn told(&self) -> Message<'static> {
        let reaction = |(reaction, names): (&&'static str, &BTreeSet<&'static str>)| Reaction {
            reaction: (*reaction).into(),
            names: names.iter().map(|name| (*name).into()).collect(),
        };
        let reactions = self.reactions.iter().map(reaction).collect();
        Message { reactions, ..self.message.clone() }
    }
}

/// What a request comes to.
type Verdict = Result<AnswerWhat<'static>, &'static str>;

struct Lab {
    seed: u64,
    keeps: bool,
    rng: SplitMix,
    kept: Kept,
    ids: [usize; 4],
    requests: u32,
    at_ms: u64,
    lines: Vec<Line>,
    /// How many of them everybody has heard.
    heard: usize,
    keys: HashMap<(&'static str, u32), u32>,
    reads: BTreeMap<&'static str, u32>,
    /// What is to be answered to each, by request.
    answers: [BTreeMap<u32, Verdict>; 4],
    /// What Eve is to hear: messages and changes, and readings.
    live: Vec<Frame<'static>>,
    live_reads: Vec<Frame<'static>>,
}

fn config() -> Config {
    Config { history: HISTORY, ..Config::default() }
}

fn json(frame: &Frame<'_>) -> String {
    let mut bytes = Vec::new();
    frame.encode(Encoding::Json, &mut bytes);
    String::from_utf8(bytes).unwrap()
}

impl Lab {
    fn new(seed: u64, keeps: bool) -> Lab {
        let mut kept = Kept::new(config());
        if !keeps {
            kept.net = Net::new(config(), seed);
        }
        let rng = SplitMix::new(seed);
        let mut lab = Lab {
            seed,
            keeps,
            rng,
            kept,
            ids: [0; 4],
            requests: 10,
            at_ms: 1_700_000_000_000,
            lines: Vec::new(),
            heard: 0,
            keys: HashMap::new(),
            reads: BTreeMap::new(),
            answers: Default::default(),
            live: Vec::new(),
            live_reads: Vec::new(),
        };
        lab.enter();
        lab
    }

    fn enter(&mut self) {
        for (at, name) in NAMES.iter().enumerate() {
            self.ids[at] = self.kept.person(name).0;
            self.kept.net.ask(self.ids[at], r#"{"join":{"room":"r"}}"#);
        }
        self.settle();
        self.ids.iter().for_each(|id| drop(self.kept.net.hear(*id)));
    }

    /// Everything is stored, sent and heard.
    fn settle(&mut self) {
        for _ in 0..3 {
            self.kept.commit();
            self.kept.net.settle();
        }
        self.heard = self.lines.len();
    }

    /// A message that can still be changed.
    fn line(&mut self, number: u32) -> Option<&mut Line> {
        let oldest = if self.keeps { 0 } else { self.lines.len().saturating_sub(HISTORY) };
        let at = (number as usize).checked_sub(1).filter(|at| *at >= oldest)?;
        self.lines.get_mut(at)
    }

    fn step(&mut self) {
        self.at_ms += 1;
        self.kept.net.wires.now.unix_ms = self.at_ms;
        let who = self.rng.below(EVE);
        let number = self.rng.below(self.lines.len() + 2) as u32;
        match self.rng.below(16) {
            0..=4 => self.say(who, number),
            5..=6 => self.edit(who, number),
            7 => self.delete(who, number),
            8..=10 => self.react(who, number),
            11 => self.read(who, number),
            12..=13 => self.settle(),
            14 if self.rng.below(4) == 0 => self.check(),
            15 if self.rng.below(8) == 0 => self.restart(),
            _ => drop(self.kept.net.turn()),
        }
    }

    fn ask(&mut self, who: usize, verb: &str, rest: &str, verdict: Verdict) {
        self.requests += 1;
        let request = format!(r#"{{"id":{},"{verb}":{{"room":"r",{rest}}}}}"#, self.requests);
        self.answers[who].insert(self.requests, verdict);
        self.kept.net.ask(self.ids[who], &request);
        if !self.keeps {
            self.heard = self.lines.len();
        }
    }

    fn say(&mut self, who: usize, number: u32) {
        let reply_to = if self.rng.below(3) == 0 { number } else { 0 };
        let key = if self.rng.below(2) == 0 { 1 + self.rng.below(30) as u32 } else { 0 };
        let text = format!("text {}", self.requests);
        let known = self.keys.get(&(NAMES[who], key)).copied().filter(|_| key != 0);
        let known = known.and_then(|number| self.line(number));
        let is_there = |line: &mut Line| !line.message.deleted;
        let verdict = if let Some(line) = known {
            Ok((line.message.number, line.message.at_ms))
        } else if reply_to != 0 && !self.line(reply_to).is_some_and(is_there) {
            Err("no_message")
        } else {
            let (number, at_ms) = (self.lines.len() as u32 + 1, Millis(self.at_ms));
            let (sender, text) = (NAMES[who].into(), text.clone().into());
            let message = Message { number, sender, text, at_ms, reply_to, ..Message::default() };
            let live = Message { room: "r".into(), ..message.clone() };
            self.live.push(Frame { what: Some(FrameWhat::Message(live)) });
            self.lines.push(Line { message, ..Line::default() });
            self.keys.insert((NAMES[who], key), number);
            Ok((number, at_ms))
        };
        let verdict = verdict.map(|(number, at_ms)| AnswerWhat::Said(Said { number, at_ms }));
        let key = if key == 0 { String::new() } else { key.to_string() };
        let rest = format!(r#""text":"{text}","replyTo":{reply_to},"key":"{key}""#);
        self.ask(who, "say", &rest, verdict);
    }

    /// Everybody is told of a change.
    fn changed(&mut self, who: usize, number: u32, change: Change<'static>) {
        let (room, name, at_ms) = ("r".into(), NAMES[who].into(), Millis(self.at_ms));
        let change = Change { room, number, name, at_ms, ..change };
        self.live.push(Frame { what: Some(FrameWhat::Change(change)) });
    }

    fn edit(&mut self, who: usize, number: u32) {
        let text = format!("edit {}", self.rng.below(2));
        let at_ms = Millis(self.at_ms);
        let mut is_new = false;
        let verdict = match self.line(number) {
            Some(line) if line.message.deleted => Err("no_message"),
            Some(line) if &*line.message.sender != NAMES[who] => Err("not_yours"),
            Some(line) => {
                is_new = *line.message.text != *text;
                if is_new {
                    line.message.text = text.clone().into();
                    line.message.edited_ms = at_ms;
                }
                Ok(AnswerWhat::Done(Done {}))
            }
            None => Err("no_message"),
        };
        if is_new {
            let change = Change { text: text.clone().into(), ..Change::default() };
            self.changed(who, number, change);
        }
        self.ask(who, "edit", &format!(r#""number":{number},"text":"{text}""#), verdict);
    }

    fn delete(&mut self, who: usize, number: u32) {
        let mut is_new = false;
        let verdict = match self.line(number) {
            Some(line) if &*line.message.sender == NAMES[who] => {
                is_new = !line.message.deleted;
                line.message.deleted = true;
                line.message.text = "".into();
                line.reactions.clear();
                Ok(AnswerWhat::Done(Done {}))
            }
            Some(line) if !line.message.deleted => Err("not_yours"),
            _ => Err("no_message"),
        };
        if is_new {
            self.changed(who, number, Change { deleted: true, ..Change::default() });
        }
        self.ask(who, "delete", &format!(r#""number":{number}"#), verdict);
    }

    fn react(&mut self, who: usize, number: u32) {
        let reaction = ["+1", "-1", "\u{1f600}"][self.rng.below(3)];
        let remove = self.rng.below(3) == 0;
        let mut is_new = false;
        let verdict = match self.line(number) {
            Some(line) if !line.message.deleted => {
                let names = line.reactions.entry(reaction).or_default();
                is_new = if remove { names.remove(NAMES[who]) } else { names.insert(NAMES[who]) };
                line.reactions.retain(|_, names| !names.is_empty());
                Ok(AnswerWhat::Done(Done {}))
            }
            _ => Err("no_message"),
        };
        if is_new {
            let (reaction, removed) = (reaction.into(), remove);
            self.changed(who, number, Change { reaction, removed, ..Change::default() });
        }
        let rest = format!(r#""number":{number},"reaction":"{reaction}","remove":{remove}"#);
        self.ask(who, "react", &rest, verdict);
    }

    fn read(&mut self, who: usize, number: u32) {
        let latest = self.heard as u32;
        let read = if number == 0 { latest } else { number.min(latest) };
        if read > self.reads.get(NAMES[who]).copied().unwrap_or(0) {
            self.reads.insert(NAMES[who], read);
            let frame = Read { room: "r".into(), number: read, name: NAMES[who].into() };
            self.live_reads.push(Frame { what: Some(FrameWhat::Read(frame)) });
        }
        let done = Ok(AnswerWhat::Done(Done {}));
        self.ask(who, "read", &format!(r#""number":{number}"#), done);
    }

    /// Everybody was told what the model says, and the past is the same wherever one looks.
    fn check(&mut self) {
        self.settle();
        let seed = self.seed;
        for (at, id) in self.ids.into_iter().enumerate() {
            let heard = self.kept.net.hear(id);
            let of_kind = |kinds: &[&str]| -> Vec<String> {
                let is_it = |json: &&String| kinds.iter().any(|kind| json.starts_with(kind));
                heard.iter().filter(is_it).cloned().collect()
            };
            let live = of_kind(&[r#"{"message""#, r#"{"change""#]);
            assert_eq!(live, self.live.iter().map(json).collect::<Vec<_>>(), "seed {seed}");
            let reads = of_kind(&[r#"{"read""#]);
            assert_eq!(reads, self.live_reads.iter().map(json).collect::<Vec<_>>(), "seed {seed}");
            let mut expected = std::mem::take(&mut self.answers[at]);
            for answer in of_kind(&[r#"{"answer""#]) {
                let frame = Frame::decode(Encoding::Json, answer.as_bytes()).unwrap();
                let Some(FrameWhat::Answer(told)) = frame.what else { panic!("{answer}") };
                let expect = expected.remove(&told.id).expect(&answer);
                match (told.what.unwrap(), expect) {
                    (AnswerWhat::Error(error), Err(code)) => {
                        assert_eq!(&*error.code, code, "seed {seed}: {answer}");
                    }
                    (what, expect) => assert_eq!(Ok(what), expect, "seed {seed}: {answer}"),
                }
            }
            assert!(expected.is_empty(), "seed {seed}: no answer to {expected:?}");
        }
        self.live.clear();
        self.live_reads.clear();
        self.check_past();
    }

    fn answer(&mut self, request: &str) -> String {
        let id = self.ids[EVE];
        self.kept.net.ask(id, request);
        self.settle();
        let heard = self.kept.net.hear(id);
        assert_eq!(heard.len(), 1, "seed {}: {heard:?}", self.seed);
        heard.into_iter().next().unwrap()
    }

    fn check_past(&mut self) {
        let told: Vec<Message<'static>> = self.lines.iter().map(Line::told).collect();
        let page = |messages: &[Message<'static>]| {
            let what = AnswerWhat::History(History { messages: messages.to_vec() });
            json(&Frame { what: Some(FrameWhat::Answer(Answer { id: 1, what: Some(what) })) })
        };
        let recent = &told[told.len().saturating_sub(HISTORY)..];
        let all = if self.keeps { &told[..] } else { recent };
        let seed = self.seed;
        let limit = recent.len();
        let get = format!(r#"{{"id":1,"history":{{"room":"r","limit":{limit}}}}}"#);
        assert_eq!(self.answer(&get), page(recent), "seed {seed}: memory");
        let get = r#"{"id":1,"history":{"room":"r","limit":1000}}"#;
        assert_eq!(self.answer(get), page(all), "seed {seed}: store");
        self.answer(r#"{"id":1,"leave":{"room":"r"}}"#);
        let name = NAMES[EVE];
        let joined = self.answer(r#"{"id":1,"join":{"room":"r","history":1000,"reads":true}}"#);
        let read = |(name, number): (&&'static str, &u32)| {
            let (name, number) = ((*name).into(), *number);
            Read { name, number, ..Read::default() }
        };
        let (number, messages) = (told.len() as u32, recent.to_vec());
        let reads = self.reads.iter().map(read).collect();
        let what = AnswerWhat::Joined(Joined { number, messages, reads, ..Joined::default() });
        let frame = Frame { what: Some(FrameWhat::Answer(Answer { id: 1, what: Some(what) })) };
        assert_eq!(joined, json(&frame), "seed {seed}: {name} joins");
        for id in &self.ids[..EVE] {
            self.kept.net.hear(*id); // that Eve has gone and come
        }
    }

    /// Another server goes on.
    fn restart(&mut self) {
        if !self.keeps {
            return;
        }
        self.kept.net.core.stopping = true;
        self.check();
        assert!(self.kept.net.core.is_settled());
        let placeholder = Kept::new(config());
        let kept = std::mem::replace(&mut self.kept, placeholder);
        self.kept = kept.restart(config());
        self.enter();
        self.check_past();
    }
}

#[test]
fn people_memory_and_store_agree_on_what_messages_have_become() {
    let mut lines = 0;
    for seed in 0..ROUNDS {
        let mut lab = Lab::new(seed, seed % 3 > 0);
        for _ in 0..STEPS {
            lab.step();
        }
        lab.check();
        lab.restart();
        lines += lab.lines.len();
    }
    assert!(lines as u64 > ROUNDS * 10, "{lines}");
}
