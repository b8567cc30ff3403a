//! A toy protocol for simulations: lines of text, and a server of forty lines that can drop,
//! repeat and swap what it passes on.
//!
//! ```text
//! person: L token | J token room | P token room | S token room text | M token
//!         T token list text | R token heard
//! server: a token | D text | r token | f token
//! ```
//!
//! A list is passed on to those who joined it. Where the option `resume` is on, a person who lost
//! the connection says `R`, how many deliveries it has heard, and once more what was not
//! acknowledged; the server answers `r` and goes on from there, or `f` and begins anew.

use crate::net::Slot;
use model::{
    Ack, Effects, Event, Facts, FaultClass, Features, Manners, Measure, Options, PersonId,
    Protocol, Request, Rng, Session, Shared, Tick, Token,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

static FACTS: Facts = Facts {
    name: "toy",
    about: "lines of text",
    schemes: &["toy"],
    verbs: &[Measure::Join, Measure::Leave, Measure::Say, Measure::Tell, Measure::Members],
    features: &[],
    options: &[("resume", "whether conversations are taken up again")],
    manners: Manners { echo: true, ack: Ack::Reply, stamped_joins: false },
};

pub(crate) struct Toy;

impl Protocol for Toy {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn check(&self, _: &Options) -> Result<(), String> {
        Ok(())
    }

    fn session(&self, _: PersonId, _: Features, shared: &Arc<Shared>) -> Box<dyn Session> {
        let can_resume = shared.options.contains_key("resume");
        let redials = shared.options.contains_key(REDIALS);
        Box::new(ToySession { can_resume, redials, ..ToySession::default() })
    }
}

/// The option with which a session changes to another connection once the first has let it in.
pub(crate) const REDIALS: &str = "redials";

#[derive(Default)]
struct ToySession {
    login: Option<Token>,
    redials: bool,
    has_redialed: bool,
    can_resume: bool,
    is_lost: bool,
    heard: u32,
    unanswered: Vec<(u32, String)>,
}

impl Session for ToySession {
    fn act(&mut self, _: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        let line = match request {
            Request::Login { .. } => {
                self.login = Some(token);
                fx.dial = true;
                return;
            }
            Request::Disconnect => {
                fx.close = Some(Ok(()));
                return;
            }
            Request::Join { room, .. } => format!("J {} {}\n", token.0, room.id),
            Request::Leave { room } => format!("P {} {}\n", token.0, room.id),
            Request::Say { room, text } => format!("S {} {} {text}\n", token.0, room.id),
            Request::Members { .. } => format!("M {}\n", token.0),
            Request::Tell { list, text } => format!("T {} {} {text}\n", token.0, list.id),
            _ => return fx.failed(token, FaultClass::RequestRefused, "not in this toy"),
        };
        if self.can_resume {
            self.unanswered.push((token.0, line.clone()));
        }
        fx.out.extend_from_slice(line.as_bytes());
    }

    fn opened(&mut self, _: Tick, fx: &mut Effects) {
        fx.events.push(Event::Connected);
        let Some(token) = self.login else { return };
        let line = match self.is_lost {
            true => format!("R {} {}\n", token.0, self.heard),
            false => format!("L {}\n", token.0),
        };
        fx.out.extend_from_slice(line.as_bytes());
    }

    fn lost(&mut self, _: Tick) -> bool {
        self.is_lost = self.can_resume;
        self.can_resume
    }

    fn receive(&mut self, _: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        let mut used = 0;
        while let Some(end) = bytes[used..].iter().position(|&byte| byte == b'\n') {
            let line = &bytes[used..used + end];
            used += end + 1;
            match std::str::from_utf8(line).ok().and_then(|line| line.split_once(' ')) {
                Some(("a", _)) if self.redials && !self.has_redialed => {
                    self.has_redialed = true;
                    fx.dial = true;
                }
                Some(("a", token)) => {
                    let token = token.parse().unwrap();
                    self.unanswered.retain(|(other, _)| *other != token);
                    fx.done(Token(token));
                }
                Some(("D", _)) => {
                    self.heard += 1;
                    fx.deliveries(line);
                }
                Some(("r", token)) => {
                    fx.events.push(Event::Resumed);
                    fx.done(Token(token.parse().unwrap()));
                    self.unanswered
                        .iter()
                        .for_each(|(_, line)| fx.out.extend_from_slice(line.as_bytes()));
                }
                Some(("f", token)) => {
                    (self.heard, self.unanswered) = (0, Vec::new());
                    fx.done(Token(token.parse().unwrap()));
                }
                _ => fx.broken(FaultClass::Protocol, "a line that is none"),
            }
        }
        used
    }

    fn wake(&mut self, _: Tick, _: &mut Effects) {}
}

/// What the server did wrong on purpose.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Mischief {
    pub(crate) dropped: u64,
    pub(crate) duplicated: u64,
    pub(crate) swapped: u64,
}

/// The server: rooms of connections.
#[derive(Default)]
pub(crate) struct ToyServer {
    rooms: BTreeMap<String, BTreeSet<Slot>>,
    /// Randomness, and chances in a thousand to drop, repeat and swap a delivery.
    mischief: Option<(Rng, [u64; 3])>,
    held: BTreeMap<Slot, Vec<u8>>,
    /// Who has logged in how often.
    pub(crate) logins: Arc<std::sync::Mutex<BTreeMap<Slot, u32>>>,
    /// A line is begun and never ended behind the first login.
    pub(crate) is_rambling: bool,
    /// Whether lost conversations go on; `None` if the server has no idea of it.
    pub(crate) resumes: Option<bool>,
    /// Everything ever delivered, and every message taken, for those who may come back.
    delivered: BTreeMap<Slot, Vec<Vec<u8>>>,
    taken: BTreeSet<String>,
    away: BTreeSet<Slot>,
    pub(crate) done: Arc<std::sync::Mutex<Mischief>>,
}

impl ToyServer {
    pub(crate) fn mischievous(seed: u64, per_mille: [u64; 3]) -> ToyServer {
        ToyServer { mischief: Some((Rng::new(seed, 3), per_mille)), ..ToyServer::default() }
    }

    /// Takes what a person sent; what goes to whom. Empty bytes close a connection.
    pub(crate) fn receive(&mut self, from: Slot, bytes: &[u8]) -> Vec<(Slot, Vec<u8>)> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let mut out = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            if words[0] == "L" {
                self.away.remove(&from);
            }
            if words[0] == "R" {
                self.resume(from, words[1], words[2].parse().unwrap(), &mut out);
                continue;
            }
            match words[0] {
                "S" | "T" if self.resumes.is_some() && !self.taken.insert(words[1].into()) => {}
                "J" => drop(self.rooms.entry(words[2].into()).or_default().insert(from)),
                "P" => drop(self.rooms.entry(words[2].into()).or_default().remove(&from)),
                "S" | "T" => {
                    let members = self.rooms.get(words[2]).cloned().unwrap_or_default();
                    for to in members.into_iter().filter(|to| words[0] == "S" || *to != from) {
                        self.pass_on(to, format!("D {}\n", words[3]).into_bytes(), &mut out);
                    }
                }
                _ => {}
            }
            if words[0] == "P" {
                out.extend(self.held.remove(&from).map(|held| (from, held)));
            }
            // What goes to a list is not acknowledged.
            if words[0] != "T" {
                out.push((from, format!("a {}\n", words[1]).into_bytes()));
            }
            if words[0] == "L" {
                out.extend(self.logged_in(from).map(|line| (from, line)));
            }
        }
        if self.resumes.is_some() {
            for (to, line) in out.iter().filter(|(_, line)| line.starts_with(b"D ")) {
                self.delivered.entry(*to).or_default().push(line.clone());
            }
            out.retain(|(to, _)| !self.away.contains(to));
        }
        out
    }

    fn resume(&mut self, from: Slot, token: &str, heard: usize, out: &mut Vec<(Slot, Vec<u8>)>) {
        self.away.remove(&from);
        let goes_on = self.resumes == Some(true);
        let answer = if goes_on { "r" } else { "f" };
        out.push((from, format!("{answer} {token}\n").into_bytes()));
        let delivered = self.delivered.entry(from).or_default();
        match goes_on {
            // Heard again, they are added to the record once more: it begins behind them.
            true => out.extend(delivered.split_off(heard).into_iter().map(|line| (from, line))),
            false => delivered.clear(),
        }
        if !goes_on {
            self.rooms.values_mut().for_each(|room| _ = room.remove(&from));
        }
    }

    /// Counts a login; what is said behind it.
    fn logged_in(&self, who: Slot) -> Option<Vec<u8>> {
        let mut logins = self.logins.lock().unwrap();
        let count = logins.entry(who).or_default();
        *count += 1;
        (self.is_rambling && *count == 1).then(|| b"and another thing".to_vec())
    }

    fn pass_on(&mut self, to: Slot, line: Vec<u8>, out: &mut Vec<(Slot, Vec<u8>)>) {
        let Some((rng, chances)) = &mut self.mischief else { return out.push((to, line)) };
        let mut done = self.done.lock().unwrap();
        let mut chance = |per_mille| rng.below(1_000) < per_mille;
        if chance(chances[0]) {
            done.dropped += 1;
            return;
        }
        if chance(chances[1]) {
            done.duplicated += 1;
            out.push((to, line.clone()));
        }
        if let Some(held) = self.held.remove(&to) {
            done.swapped += 1;
            out.extend([(to, line), (to, held)]);
        } else if chance(chances[2]) {
            self.held.insert(to, line);
        } else {
            out.push((to, line));
        }
    }

    pub(crate) fn gone(&mut self, slot: Slot) {
        if self.resumes.is_some() {
            self.away.insert(slot);
            return;
        }
        self.rooms.values_mut().for_each(|room| _ = room.remove(&slot));
    }
}
