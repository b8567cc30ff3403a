//! The rights of a server that is killed and restarted: who was told that somebody has a role finds
//! it so afterwards, or as somebody wanted it later.

use std::collections::BTreeMap;

use protocols::wire::rng::SplitMix;

use crate::chat::rights::Role;
use crate::store::LoadedRoom;

/// The room that the first person owns.
const ROOM: &str = "owned";
const ROLES: [&str; 4] = ["moderator", "muted", "banned", "none"];
/// The request that makes the room; those that grant roles have greater numbers.
const CREATE: u32 = 1_000_000;

/// What is known of the room, and what may be so.
#[derive(Default)]
pub(super) struct Grants {
    /// Whether somebody was told that the room is there.
    is_made: bool,
    /// For each person: the role that was answered last, and later ones, each with its request.
    roles: BTreeMap<String, Vec<(u32, &'static str)>>,
    requests: u32,
    /// How many grants were answered.
    pub(super) answered: usize,
}

impl Grants {
    /// What the owner asks for next: the room, then roles for one of `people`.
    pub(super) fn request(&mut self, rng: &mut SplitMix, people: usize) -> String {
        if !self.is_made {
            return format!(r#"{{"id":{CREATE},"create":{{"room":"{ROOM}"}}}}"#);
        }
        self.requests += 1;
        let (id, role) = (CREATE + self.requests, ROLES[rng.below(ROLES.len())]);
        let who = format!("p{}", 1 + rng.below(people - 1));
        let grant = format!(r#"{{"room":"{ROOM}","name":"{who}","role":"{role}"}}"#);
        self.roles.entry(who).or_insert_with(|| vec![(0, "none")]).push((id, role));
        format!(r#"{{"id":{id},"grant":{grant}}}"#)
    }

    /// Whether an answer is to a request of these.
    pub(super) fn is_its(id: u32) -> bool {
        id >= CREATE
    }

    /// A request of these was answered; with a code if it was refused.
    pub(super) fn note(&mut self, id: u32, code: &str) {
        match (id, code) {
            // It may have been made by a request that was not answered.
            (CREATE, "" | "room_exists") => self.is_made = true,
            (_, "") => {
                self.answered += 1;
                for asked in self.roles.values_mut() {
                    let at = asked.iter().position(|(of, _)| *of == id);
                    asked.drain(..at.unwrap_or(0));
                }
            }
            // Somebody has no account yet.
            (_, "unknown_name") => {
                self.roles.values_mut().for_each(|asked| asked.retain(|(of, _)| *of != id));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Everybody has the role that was answered last, or one that was asked for later.
    pub(super) fn check(&mut self, rooms: &[LoadedRoom], what: &str) {
        let owned = rooms.iter().find_map(|room| room.owned.as_ref());
        let Some(owned) = owned else { return assert!(!self.is_made, "{what}: no room") };
        assert!(owned.roles.contains(&("p0".to_owned(), Role::Owner)), "{what}: no owner");
        for (name, asked) in &mut self.roles {
            let found = owned.roles.iter().find(|(other, _)| other == name);
            let word = found.map_or("none", |(_, role)| role.word());
            let is_one = asked.iter().any(|(_, role)| *role == word);
            assert!(is_one, "{what}: {name} is {word}, not one of {asked:?}");
            *asked = vec![(0, word)]; // what was not answered until now never will be
        }
    }
}
