//! People by name: the connections of each, and what each was told, as far as it is in memory.
//!
//! Only those are here who are logged in or were told something. The connections of one person are
//! a chain through the connections themselves, so a person with one costs an entry and no more.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use protocols::yardstick::Message;
use slab::Slab;

use crate::chat::message::{self, PageRoom, page_span};
use crate::config::{INBOX_BYTES_MAX, INBOX_MESSAGES_MAX, TELL_KEYS_MAX};
use crate::delivery::conn::Conn;

/// No connection, or no inbox.
pub(crate) const NONE: u32 = u32::MAX;

/// A direct message, shared by all inboxes it is in.
#[derive(Debug)]
pub(crate) struct Told {
    sender: Rc<str>,
    text: Box<str>,
    at_ms: u64,
    /// Memory of all that were told and are not forgotten, in bytes.
    total: Rc<Cell<usize>>,
}

impl Told {
    pub(crate) fn message(&self, number: u32) -> Message<'_> {
        message::of(number, (&self.sender, &self.text, self.at_ms), None)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Memory it takes, in bytes.
    fn bytes(&self) -> usize {
        size_of::<Told>() + self.text.len()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.total.set(self.total.get() - self.bytes());
    }
}

/// What somebody was told.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// The number of the latest.
    number: u32,
    /// The latest ones; their numbers end with `number` and have no gaps.
    past: VecDeque<Rc<Told>>,
}

impl Inbox {
    /// The number of the oldest one in memory; one more than the latest if there is none.
    fn first(&self) -> u64 {
        u64::from(self.number) + 1 - self.past.len() as u64
    }
}

/// The first connection of a person, and the inbox.
#[derive(Debug, Clone, Copy)]
struct Known {
    first: u32,
    inbox: u32,
}

/// Who told something under which key.
type KeyOf = (Rc<str>, Box<str>);

/// Everybody who is logged in or was told something.
#[derive(Debug, Default)]
pub(crate) struct People {
    by_name: HashMap<Rc<str>, Known>,
    inboxes: Vec<Inbox>,
    /// Memory of all direct messages that are not forgotten, in bytes.
    told_bytes: Rc<Cell<usize>>,
    /// How many there are in all inboxes together.
    entries: usize,
    /// When something was told under a key, in Unix milliseconds; only where nothing is kept.
    keys: HashMap<Rc<KeyOf>, u64>,
    /// The same, oldest first.
    key_order: VecDeque<Rc<KeyOf>>,
}

impl People {
    fn known(&mut self, name: &Rc<str>) -> &mut Known {
        let nobody = Known { first: NONE, inbox: NONE };
        self.by_name.entry(name.clone()).or_insert(nobody)
    }

    fn inbox(&self, name: &str) -> Option<&Inbox> {
        self.inboxes.get(self.by_name.get(name)?.inbox as usize)
    }

    fn inbox_mut(&mut self, name: &Rc<str>) -> &mut Inbox {
        let next = self.inboxes.len() as u32;
        let known = self.known(name);
        if known.inbox == NONE {
            known.inbox = next;
        }
        let at = known.inbox as usize;
        if at == self.inboxes.len() {
            self.inboxes.push(Inbox::default());
        }
        &mut self.inboxes[at]
    }

    /// A connection is that person's from now on.
    pub(crate) fn link(&mut self, name: &Rc<str>, id: usize, conns: &mut Slab<Conn>) {
        let first = std::mem::replace(&mut self.known(name).first, id as u32);
        conns[id].sisters = (NONE, first);
        if let Some(next) = conns.get_mut(first as usize) {
            next.sisters.0 = id as u32;
        }
    }

    /// A connection goes.
    pub(crate) fn unlink(&mut self, id: usize, conns: &mut Slab<Conn>) {
        let Some(name) = conns[id].name.clone() else { return };
        let (before, after) = std::mem::replace(&mut conns[id].sisters, (NONE, NONE));
        if let Some(next) = conns.get_mut(after as usize) {
            next.sisters.0 = before;
        }
        if let Some(last) = conns.get_mut(before as usize) {
            last.sisters.1 = after;
            return;
        }
        let Some(known) = self.by_name.get_mut(&name) else { return };
        known.first = after;
        if after == NONE && known.inbox == NONE {
            self.by_name.remove(&name);
        }
    }

    /// The first connection of a person; each knows the next one ([`Conn::next_sister`]).
    pub(crate) fn first_conn(&self, name: &str) -> Option<usize> {
        let known = self.by_name.get(name)?;
        (known.first != NONE).then_some(known.first as usize)
    }

    /// The number of the latest direct message of a person.
    pub(crate) fn number(&self, name: &str) -> u32 {
        self.inbox(name).map_or(0, |inbox| inbox.number)
    }

    /// The store has direct messages of a person up to that number.
    pub(crate) fn restore(&mut self, name: &Rc<str>, number: u32) {
        self.inbox_mut(name).number = number;
    }

    /// A direct message, which counts until the last inbox has forgotten it.
    pub(crate) fn told(&self, sender: Rc<str>, text: Box<str>, at_ms: u64) -> Rc<Told> {
        let told = Told { sender, text, at_ms, total: self.told_bytes.clone() };
        self.told_bytes.set(self.told_bytes.get() + told.bytes());
        Rc::new(told)
    }

    /// Puts a direct message into an inbox.
    pub(crate) fn remember(&mut self, name: &Rc<str>, number: u32, told: &Rc<Told>) {
        let (total, mut entries) = (self.told_bytes.clone(), self.entries);
        let inbox = self.inbox_mut(name);
        let latest = std::mem::replace(&mut inbox.number, number);
        let past = &mut inbox.past;
        if number != latest.wrapping_add(1) {
            entries -= past.len();
            past.clear(); // what is in memory has no gaps
        }
        past.push_back(told.clone());
        entries += 1;
        let is_full =
            |entries: usize| total.get() + entries * size_of::<Rc<Told>>() > INBOX_BYTES_MAX;
        while past.len() > INBOX_MESSAGES_MAX || is_full(entries) {
            if past.pop_front().is_none() {
                break;
            }
            entries -= 1;
        }
        self.entries = entries;
    }

    /// Whether the store has more of a page than memory.
    pub(crate) fn is_cut_short(&self, name: &str, before: u32, limit: usize) -> bool {
        let Some(inbox) = self.inbox(name) else { return false };
        let (begin, end) = page_span(inbox.number, before, limit);
        begin < end && begin < inbox.first()
    }

    /// The latest `limit` direct messages before number `before` (0: the very latest) that are in
    /// memory, oldest first; fewer if they are long.
    pub(crate) fn page(&self, name: &str, before: u32, limit: usize) -> Vec<Message<'_>> {
        let Some(inbox) = self.inbox(name) else { return Vec::new() };
        let (begin, end) = page_span(inbox.number, before, limit);
        let first = inbox.first();
        let numbers = (begin.max(first)..end).rev();
        let mut space = PageRoom::default();
        let mut page: Vec<Message<'_>> = numbers
            .map(|number| (number, &inbox.past[(number - first) as usize]))
            .take_while(|(_, told)| space.takes(&told.text, None))
            .map(|(number, told)| told.message(number as u32))
            .collect();
        page.reverse();
        page
    }

    /// When the person has told something under that key, if it is remembered.
    pub(crate) fn told_at(&self, sender: &Rc<str>, key: &str) -> Option<u64> {
        if key.is_empty() || self.keys.is_empty() {
            return None;
        }
        self.keys.get(&(sender.clone(), Box::from(key))).copied()
    }

    /// The person has told something under that key.
    pub(crate) fn note_key(&mut self, sender: &Rc<str>, key: &str, at_ms: u64) {
        if key.is_empty() {
            return;
        }
        if self.key_order.len() >= TELL_KEYS_MAX
            && let Some(oldest) = self.key_order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        let key = Rc::new((sender.clone(), Box::from(key)));
        self.keys.insert(key.clone(), at_ms);
        self.key_order.push_back(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PAGE_BYTES_MAX;

    fn told(people: &People, bytes: usize) -> Rc<Told> {
        people.told("ann".into(), "x".repeat(bytes).into(), 1)
    }

    #[test]
    fn connections_of_a_person_are_found_in_any_order_of_coming_and_going() {
        use protocols::wire::rng::SplitMix;
        for seed in 0..200 {
            let mut rng = SplitMix::new(seed);
            let (mut people, mut conns) = (People::default(), Slab::new());
            let names: Vec<Rc<str>> = ["a", "b", "c"].map(Rc::from).to_vec();
            let mut there: Vec<(usize, usize)> = Vec::new();
            for _ in 0..60 {
                if there.is_empty() || rng.below(5) < 3 {
                    let who = rng.below(names.len());
                    let id = conns.insert(Conn::new(1, 0));
                    conns[id].name = Some(names[who].clone());
                    people.link(&names[who], id, &mut conns);
                    there.push((who, id));
                } else {
                    let (_, id) = there.swap_remove(rng.below(there.len()));
                    people.unlink(id, &mut conns);
                    conns.remove(id);
                }
                for (who, name) in names.iter().enumerate() {
                    let mut expect: Vec<usize> =
                        there.iter().filter(|at| at.0 == who).map(|at| at.1).collect();
                    let mut next = people.first_conn(name);
                    let mut found = Vec::new();
                    while let Some(id) = next {
                        found.push(id);
                        next = conns[id].next_sister();
                    }
                    expect.sort_unstable();
                    found.sort_unstable();
                    assert_eq!(found, expect, "seed {seed}");
                    assert_eq!(people.by_name.contains_key(name), !expect.is_empty());
                }
            }
        }
    }

    #[test]
    fn inboxes_are_bounded_each_and_together() {
        let mut people = People::default();
        let names: Vec<Rc<str>> = (0..50).map(|n| Rc::from(format!("p{n}"))).collect();
        for number in 1..=INBOX_MESSAGES_MAX as u32 + 5 {
            let told = told(&people, 3);
            people.remember(&names[0], number, &told);
        }
        let numbers: Vec<u32> = people.page("p0", 0, 3).iter().map(|m| m.number).collect();
        assert_eq!(numbers, [1003, 1004, 1005]);
        assert!(people.is_cut_short("p0", 8, 3) && !people.is_cut_short("p0", 9, 3));
        assert_eq!(people.inbox("p0").unwrap().past.len(), INBOX_MESSAGES_MAX);
        let (each, mut most) = (16 * 1024, 0);
        for number in 1..=400 {
            // One to everybody, and one to each.
            let everybody = told(&people, each);
            for name in &names[1..] {
                people.remember(name, 2 * number - 1, &everybody);
            }
            drop(everybody);
            for name in &names[1..] {
                let alone = told(&people, each);
                people.remember(name, 2 * number, &alone);
            }
            most = most.max(people.told_bytes.get());
        }
        assert!(most <= INBOX_BYTES_MAX + each && most > INBOX_BYTES_MAX / 2, "{most}");
        // One page is no longer than what a page may hold.
        let pages = names.iter().map(|name| people.page(name, 0, 1_000).len());
        assert!(pages.skip(1).max().unwrap() <= PAGE_BYTES_MAX / each);
        let entries: usize = people.inboxes.iter().map(|inbox| inbox.past.len()).sum();
        assert_eq!(entries, people.entries);
        people.inboxes.clear();
        assert_eq!(people.told_bytes.get(), 0, "nothing is counted twice");
    }

    #[test]
    fn so_many_keys_are_remembered() {
        let (mut people, ann) = (People::default(), Rc::from("ann"));
        (0..=TELL_KEYS_MAX as u64).for_each(|n| people.note_key(&ann, &format!("k{n}"), n));
        let at = |key: &str| people.told_at(&ann, key);
        assert_eq!((at("k0"), at("k1"), at("k65536"), at("")), (None, Some(1), Some(65536), None));
        assert_eq!(people.told_at(&Rc::from("bob"), "k1"), None);
    }
}
