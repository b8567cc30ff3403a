//! Random people do random things to each other's rights; a small model says what comes of it.

use std::collections::{BTreeMap, BTreeSet};

use protocols::wire::rng::SplitMix;
use protocols::yardstick::{AnswerWhat, Encoding, Frame, FrameWhat, Notice};

use super::durable::Kept;
use super::net::Net;
use crate::Config;
use crate::chat::rights::Role;

const ROUNDS: u64 = 120;
const STEPS: usize = 80;
const PEOPLE: usize = 5;
/// The first two people are there twice.
const CONNECTIONS: usize = 7;
const ROOMS: [&str; 2] = ["r0", "r1"];
const ROLES: [&str; 6] = ["owner", "moderator", "member", "muted", "banned", "none"];

/// A room as the rules in the handbook have it.
#[derive(Default)]
struct Model {
    exists: bool,
    /// Roles by name; empty in a room without owner.
    roles: BTreeMap<String, &'static str>,
    private: bool,
    /// Connections in the room.
    inside: BTreeSet<usize>,
}

/// What somebody asks for.
#[derive(Debug, Clone)]
enum Ask {
    Create { private: bool },
    Configure { private: bool },
    Grant { who: String, role: &'static str },
    Kick { who: String },
    Join,
    Leave,
    Say,
}

fn person(connection: usize) -> String {
    format!("p{}", connection % PEOPLE)
}

impl Model {
    fn role(&self, name: &str) -> &'static str {
        self.roles.get(name).copied().unwrap_or("none")
    }

    fn is_shut_to(&self, name: &str) -> bool {
        match self.role(name) {
            "banned" => true,
            "none" => self.private,
            _ => false,
        }
    }

    fn owners(&self) -> usize {
        self.roles.values().filter(|role| **role == "owner").count()
    }

    /// The code of the answer.
    fn code(&self, connection: usize, ask: &Ask) -> &'static str {
        let by = person(connection);
        let is_in = self.inside.contains(&connection);
        match ask {
            Ask::Create { .. } if self.exists => return "room_exists",
            Ask::Join if is_in => return "already_in_room",
            Ask::Leave | Ask::Say if !is_in => return "not_in_room",
            Ask::Say if self.role(&by) == "muted" => return "muted",
            Ask::Say | Ask::Leave | Ask::Create { .. } => return "",
            Ask::Join if !self.is_shut_to(&by) => return "",
            Ask::Join => {}
            _ if !self.exists => return "no_room",
            _ if self.roles.is_empty() => return "open_room",
            _ => {}
        }
        if self.is_shut_to(&by) {
            return if self.private { "no_room" } else { "banned" };
        }
        let (who, role) = match ask {
            Ask::Configure { private } => {
                let may = match self.role(&by) {
                    "owner" => true,
                    "moderator" => *private == self.private,
                    _ => false,
                };
                return if may { "" } else { "not_allowed" };
            }
            Ask::Grant { who, role } => (who, *role),
            Ask::Kick { who } => (who, ""),
            _ => return "",
        };
        let parts = *who == by && role == "none" && self.role(&by) != "muted";
        let may = match (self.role(&by), self.role(who)) {
            ("owner", _) => true,
            ("moderator", "owner" | "moderator") => parts,
            ("moderator", _) => !matches!(role, "owner" | "moderator"),
            _ => parts,
        };
        let is_known = (0..PEOPLE).any(|number| person(number) == **who);
        match may {
            _ if !is_known && matches!(self.role(&by), "owner" | "moderator") => "unknown_name",
            false => "not_allowed",
            true => {
                let goes = self.role(who) == "owner" && !matches!(role, "owner" | "");
                if goes && self.owners() == 1 { "last_owner" } else { "" }
            }
        }
    }

    /// Does what is right; gives the notice and the connections that get it.
    fn apply(&mut self, connection: usize, ask: &Ask) -> Option<(String, BTreeSet<usize>)> {
        let by = person(connection);
        let mut told = BTreeSet::new();
        let shuts = |model: &Model, told: &mut BTreeSet<usize>| {
            let out = model.inside.iter().filter(|id| model.is_shut_to(&person(**id)));
            told.extend(out.copied().collect::<Vec<_>>());
        };
        let line = match ask {
            Ask::Create { private } => {
                (self.exists, self.private) = (true, *private);
                self.roles.insert(by.clone(), "owner");
                shuts(self, &mut told);
                self.inside.retain(|id| !told.contains(id));
                format!("configured   {by} {private}")
            }
            Ask::Configure { private } => {
                self.private = *private;
                shuts(self, &mut told);
                self.inside.retain(|id| !told.contains(id));
                format!("configured   {by} {private}")
            }
            Ask::Grant { who, role } => {
                if self.role(who) == *role {
                    return None;
                }
                self.roles.insert(who.clone(), role);
                self.roles.retain(|_, role| *role != "none");
                if self.is_shut_to(who) {
                    self.inside.retain(|id| person(*id) != *who);
                }
                told.extend((0..CONNECTIONS).filter(|id| person(*id) == *who));
                format!("role {who} {role} {by} false")
            }
            Ask::Kick { who } => {
                self.inside.retain(|id| person(*id) != *who);
                told.extend((0..CONNECTIONS).filter(|id| person(*id) == *who));
                format!("kicked {who}  {by} false")
            }
            Ask::Join => {
                self.exists = true;
                self.inside.insert(connection);
                return None;
            }
            Ask::Leave => {
                self.inside.remove(&connection);
                return None;
            }
            Ask::Say => return None,
        };
        told.extend(&self.inside);
        Some((line, told))
    }
}

/// The request as it is sent.
fn json(id: u32, room: &str, ask: &Ask) -> String {
    let what = match ask {
        Ask::Create { private } => format!(r#""create":{{"room":"{room}","private":{private}}}"#),
        Ask::Configure { private } => {
            format!(r#""configure":{{"room":"{room}","private":{private}}}"#)
        }
        Ask::Grant { who, role } => {
            format!(r#""grant":{{"room":"{room}","name":"{who}","role":"{role}"}}"#)
        }
        Ask::Kick { who } => format!(r#""kick":{{"room":"{room}","name":"{who}"}}"#),
        Ask::Join => format!(r#""join":{{"room":"{room}"}}"#),
        Ask::Leave => format!(r#""leave":{{"room":"{room}"}}"#),
        Ask::Say => format!(r#""say":{{"room":"{room}","text":"x"}}"#),
    };
    format!(r#"{{"id":{id},{what}}}"#)
}

/// A right or wrong thing to do to rights.
fn random_act(rng: &mut SplitMix) -> Ask {
    // One more than there are people: nobody has the last name.
    let who = format!("p{}", rng.below(PEOPLE + 1));
    match rng.below(9) {
        0 => Ask::Create { private: rng.below(2) == 0 },
        1 => Ask::Configure { private: rng.below(2) == 0 },
        2 => Ask::Kick { who },
        _ => Ask::Grant { who, role: ROLES[rng.below(ROLES.len())] },
    }
}

/// Servers, with and without a store, and what the model has of them.
struct Lab {
    seed: u64,
    kept: Kept,
    keeps: bool,
    ids: Vec<usize>,
    models: BTreeMap<&'static str, Model>,
    /// For each connection: what it is to hear.
    answers: Vec<Vec<(u32, &'static str)>>,
    notices: Vec<Vec<String>>,
    requests: u32,
    allowed: usize,
}

impl Lab {
    fn new(seed: u64) -> Lab {
        let keeps = seed.is_multiple_of(2);
        let mut kept = Kept::new(Config::default());
        if !keeps {
            kept.net = Net::new(Config::default(), seed);
        }
        let ids = (0..CONNECTIONS).map(|number| kept.person(&person(number)).0).collect();
        let models = ROOMS.map(|room| (room, Model::default())).into();
        let (answers, notices) = (vec![Vec::new(); CONNECTIONS], vec![Vec::new(); CONNECTIONS]);
        Lab { seed, kept, keeps, ids, models, answers, notices, requests: 0, allowed: 0 }
    }

    fn ask(&mut self, connection: usize, room: &'static str, ask: &Ask) {
        self.requests += 1;
        let request = json(self.requests, room, ask);
        self.kept.net.ask(self.ids[connection], &request);
        let model = self.models.get_mut(room).unwrap();
        let code = model.code(connection, ask);
        self.answers[connection].push((self.requests, code));
        if !code.is_empty() {
            return;
        }
        self.allowed += usize::from(!matches!(ask, Ask::Join | Ask::Leave | Ask::Say));
        if let Some((notice, told)) = model.apply(connection, ask) {
            told.iter().for_each(|id| self.notices[*id].push(format!("{room} {notice}")));
        }
    }

    fn commit(&mut self) {
        self.kept.commit();
        self.kept.net.settle();
    }

    fn check(&mut self, last: &str) {
        for number in 0..CONNECTIONS {
            let (mut answers, mut notices) = (Vec::new(), Vec::new());
            for json in self.kept.net.hear(self.ids[number]) {
                let frame = Frame::decode(Encoding::Json, json.as_bytes()).unwrap();
                match frame.what.unwrap() {
                    FrameWhat::Answer(answer) => {
                        let code = match answer.what.unwrap() {
                            AnswerWhat::Error(error) => error.code.to_string(),
                            _ => String::new(),
                        };
                        answers.push((answer.id, code));
                    }
                    FrameWhat::Notice(Notice { room, what, name, role, by, private, .. }) => {
                        let [room, what] = [&*room, &*what];
                        let [name, role, by] = [&*name, &*role, &*by];
                        notices.push(format!("{room} {what} {name} {role} {by} {private}"));
                    }
                    _ => {}
                }
            }
            // What is refused at once overtakes what the store has yet to decide.
            answers.sort_unstable();
            let expect = std::mem::take(&mut self.answers[number]);
            let expect: Vec<_> = expect.into_iter().map(|(id, code)| (id, code.into())).collect();
            let whose = format!("seed {}, c{number}, behind {last}", self.seed);
            assert_eq!(answers, expect, "{whose}");
            let mut expect = std::mem::take(&mut self.notices[number]);
            notices.sort_unstable();
            expect.sort_unstable();
            assert_eq!(notices, expect, "{whose}");
        }
        for (room, model) in &self.models {
            self.check_room(room, model, last);
        }
    }

    fn check_room(&self, name: &str, model: &Model, last: &str) {
        let what = format!("seed {}, {name} behind {last}", self.seed);
        let core = &self.kept.net.core;
        let number = core.room_numbers.get(name);
        assert_eq!(number.is_some(), model.exists, "{what}");
        let Some(room) = number.map(|number| &core.rooms[*number as usize]) else { return };
        let members = room.lanes.iter().flat_map(|lane| &lane.members);
        let inside: BTreeSet<usize> = members.map(|member| member.conn as usize).collect();
        assert_eq!(inside, model.inside.iter().map(|number| self.ids[*number]).collect(), "{what}");
        let Some(owned) = &room.owned else { return assert!(model.roles.is_empty(), "{what}") };
        let role = |(name, role): (&std::rc::Rc<str>, &Role)| (name.to_string(), role.word());
        let roles: BTreeMap<_, _> = owned.roles.iter().map(role).collect();
        assert_eq!((owned.private, roles), (model.private, model.roles.clone()), "{what}");
        assert!(model.owners() > 0, "{what}");
    }

    fn step(&mut self, rng: &mut SplitMix) {
        let room = ROOMS[rng.below(ROOMS.len())];
        let connection = rng.below(CONNECTIONS);
        // Somebody's socket is full; what they are owed waits, and is whole.
        let slow = self.ids[rng.below(CONNECTIONS)];
        self.kept.net.wires.list[slow].space = Some(rng.below(200));
        let mut last = String::new();
        if rng.below(3) == 0 {
            let ask = [Ask::Join, Ask::Join, Ask::Leave, Ask::Say][rng.below(4)].clone();
            self.ask(connection, room, &ask);
            last = format!("{room} {connection} {ask:?}");
        } else {
            // Several in a row are decided in a row, in one commit where there are commits.
            for _ in 0..=rng.below(4) {
                let (connection, ask) = (rng.below(CONNECTIONS), random_act(rng));
                self.ask(connection, room, &ask);
                last += &format!("{room} {connection} {ask:?}; ");
            }
        }
        self.commit();
        self.check(&last);
    }
}

#[test]
fn rights_are_what_the_rules_say_and_all_whom_it_concerns_are_told() {
    let mut allowed = 0;
    for seed in 0..ROUNDS {
        let mut rng = SplitMix::new(seed);
        let mut lab = Lab::new(seed);
        // Somebody begins, or there would often be nothing to fight for.
        lab.ask(rng.below(CONNECTIONS), ROOMS[0], &Ask::Create { private: seed % 3 == 0 });
        lab.commit();
        for _ in 0..STEPS {
            lab.step(&mut rng);
        }
        if lab.keeps {
            lab.kept = lab.kept.restart(Config::default());
            lab.models.values_mut().for_each(|model| model.inside.clear());
            lab.models.values_mut().for_each(|model| model.exists &= !model.roles.is_empty());
            lab.models.retain(|_, model| model.exists); // open rooms may be kept or not
            lab.ids.clear();
            for (room, model) in &lab.models {
                lab.check_room(room, model, "a restart");
            }
        }
        allowed += lab.allowed;
    }
    assert!(allowed > 20 * ROUNDS as usize, "{allowed}");
}
