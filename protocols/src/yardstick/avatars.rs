//! The pictures of the others: whose has been asked for, and what is still to be answered.

use super::Text;
use model::Tick;
use std::collections::{BTreeSet, VecDeque};

/// Own requests have this bit in their id; a person's tokens count from one.
const OWN: u32 = 1 << 31;
/// Longest hash of a picture, in bytes.
const HASH_BYTES_MAX: usize = 64;
/// Most pictures that one person asks for in a conversation.
const KNOWN_MAX: usize = 1 << 16;
/// Most pictures that one person waits for at a time; the others are asked for after them.
const OPEN_MAX: usize = 64;

/// Each hash is asked for once in a conversation: the client keeps what it has seen.
#[derive(Default)]
pub(super) struct Avatars {
    known: BTreeSet<Box<str>>,
    waiting: VecDeque<Box<str>>,
    /// Id and time of what is to be answered.
    open: Vec<(u32, Tick)>,
    serial: u32,
}

impl Avatars {
    /// Whether an id is one of ours.
    pub(super) fn is_own(id: u32) -> bool {
        id & OWN != 0
    }

    /// A picture is announced by its hash; `false` if no hash can be so long.
    pub(super) fn notice(&mut self, hash: &Text<'_>) -> bool {
        let is_new = !hash.is_empty() && !self.known.contains(&**hash);
        if is_new && hash.len() <= HASH_BYTES_MAX && self.known.len() < KNOWN_MAX {
            self.known.insert((&**hash).into());
            self.waiting.push_back((&**hash).into());
        }
        hash.len() <= HASH_BYTES_MAX
    }

    /// What is to be asked for now, and under which id.
    pub(super) fn next(&mut self, now: Tick) -> Option<(u32, Box<str>)> {
        if self.open.len() >= OPEN_MAX {
            return None;
        }
        let hash = self.waiting.pop_front()?;
        self.serial = self.serial.wrapping_add(1) & !OWN;
        let id = self.serial | OWN;
        self.open.push((id, now));
        Some((id, hash))
    }

    /// Takes a request off the list; gives the time it was asked at.
    pub(super) fn answered(&mut self, id: u32) -> Option<Tick> {
        let place = self.open.iter().position(|open| open.0 == id)?;
        Some(self.open.swap_remove(place).1)
    }
}
