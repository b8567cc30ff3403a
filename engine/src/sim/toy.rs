//! A toy protocol for simulations: lines of text, and a server of forty lines that can drop,
//! repeat and swap what it passes on.
//!
//! ```text
//! person: L token | J token room | P token room | S token room text | M token
//! server: a token | D text
//! ```

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
    verbs: &[Measure::Join, Measure::Leave, Measure::Say, Measure::Members],
    features: &[],
    options: &[],
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
        let redials = shared.options.contains_key(REDIALS);
        Box::new(ToySession { login: None, redials, has_redialed: false })
    }
}

/// The option with which a session changes to another connection once the first has let it in.
pub(crate) const REDIALS: &str = "redials";

struct ToySession {
    login: Option<Token>,
    redials: bool,
    has_redialed: bool,
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
            _ => return fx.failed(token, FaultClass::RequestRefused, "not in this toy"),
        };
        fx.out.extend_from_slice(line.as_bytes());
    }

    fn opened(&mut self, _: Tick, fx: &mut Effects) {
        fx.events.push(Event::Connected);
        if let Some(token) = self.login {
            fx.out.extend_from_slice(format!("L {}\n", token.0).as_bytes());
        }
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
                Some(("a", token)) => fx.done(Token(token.parse().unwrap())),
                Some(("D", _)) => fx.deliveries(line),
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
            match words[0] {
                "J" => drop(self.rooms.entry(words[2].into()).or_default().insert(from)),
                "P" => drop(self.rooms.entry(words[2].into()).or_default().remove(&from)),
                "S" => {
                    let members = self.rooms.get(words[2]).cloned().unwrap_or_default();
                    for to in members {
                        self.pass_on(to, format!("D {}\n", words[3]).into_bytes(), &mut out);
                    }
                }
                _ => {}
            }
            if words[0] == "P" {
                out.extend(self.held.remove(&from).map(|held| (from, held)));
            }
            out.push((from, format!("a {}\n", words[1]).into_bytes()));
            if words[0] == "L" {
                let mut logins = self.logins.lock().unwrap();
                let count = logins.entry(from).or_default();
                *count += 1;
                if self.is_rambling && *count == 1 {
                    out.push((from, b"and another thing".to_vec()));
                }
            }
        }
        out
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
        self.rooms.values_mut().for_each(|room| _ = room.remove(&slot));
    }
}
