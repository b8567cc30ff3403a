//! One room: its members by dialect, their logs, its past, and who came and went since the flush.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use protocols::yardstick::{FrameWhat, Message, Person, Presence};

use crate::chat::avatar::Look;
use crate::chat::marks::Marks;
use crate::chat::message::{self, Extra, PageRoom};
use crate::chat::owned::Owned;
use crate::cluster::{Far, Remote};
use crate::config::{
    Avatars, Config, Encode, Flush, PRESENCE_AVATAR_BYTES_MAX, PRESENCE_EVENTS_MAX,
};
use crate::delivery::conn::{Dialect, LANES, put_frame};
use crate::delivery::log::Log;
use crate::delivery::pace::Turn;

/// One connection in a room.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) conn: u32,
    /// Where in the group of arrivals it stands: it is told of those behind it only.
    pub(crate) arrival: u16,
    /// Whether it has a picture, and is to know of those of the others.
    pub(crate) avatars: bool,
    /// The serial number of the group it arrived in.
    pub(crate) group: u64,
    /// How much of the log it was sent, as an offset.
    pub(crate) cursor: u64,
    pub(crate) status: Rc<str>,
}

/// All members that speak one dialect.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) log: Log,
    pub(crate) members: Vec<Member>,
    /// Up to where the log was sent to those who could take it.
    pub(crate) flushed: u64,
}

impl Lane {
    /// Appends a frame; anew for each member if that is wanted. Gives how often it was encoded.
    fn put(
        &mut self,
        dialect: Dialect,
        what: &FrameWhat<'_>,
        encode: Encode,
        scratch: &mut Vec<u8>,
    ) -> u64 {
        put_frame(dialect, what.clone(), scratch, self.log.tail());
        if encode == Encode::Once {
            return 1;
        }
        let mut copy = Vec::new();
        for _ in 1..self.members.len() {
            copy.clear();
            put_frame(dialect, what.clone(), scratch, &mut copy);
        }
        self.members.len() as u64
    }
}

/// A message of the past.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) number: u32,
    pub(crate) sender: Rc<str>,
    pub(crate) text: Box<str>,
    pub(crate) at_ms: u64,
    pub(crate) extra: Option<Box<Extra>>,
}

impl Stored {
    /// Memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Stored>() + self.text.len() + self.extra.as_ref().map_or(0, |extra| extra.bytes())
    }

    pub(crate) fn message(&self) -> Message<'_> {
        let said = (&*self.sender, &*self.text, self.at_ms);
        message::of(self.number, said, self.extra.as_deref())
    }
}

/// Somebody who came.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) name: Rc<str>,
    pub(crate) status: Rc<str>,
    /// Whether there is a picture to be shown.
    pub(crate) avatar: bool,
}

/// Arrivals and departures that go out in one frame.
///
/// A name is never in a group twice in an order that a reader (first left, then joined) would get
/// wrong: a departure of somebody who arrived in the group opens the next one.
#[derive(Debug)]
pub(crate) struct Group {
    look: Look,
    joined: Vec<Arrival>,
    /// With the number of arrivals that came before the departure.
    left: Vec<(Rc<str>, u16)>,
}

impl Group {
    fn new(look: Look) -> Group {
        Group { look, joined: Vec::new(), left: Vec::new() }
    }

    fn frame(&self, room: &str) -> FrameWhat<'_> {
        self.frame_behind(room, 0)
    }

    /// What somebody must be told before whom `before` arrivals of the group are.
    fn frame_behind<'a>(&'a self, room: &str, before: usize) -> FrameWhat<'a> {
        let person = |arrival: &'a Arrival| {
            let (name, status) = ((&*arrival.name).into(), (&*arrival.status).into());
            let mut person = Person { name, status, ..Person::default() };
            if arrival.avatar {
                self.look.dress(&mut person);
            }
            person
        };
        FrameWhat::Presence(Presence {
            room: room.to_owned().into(),
            joined: self.joined[before..].iter().map(person).collect(),
            left: self
                .left
                .iter()
                .filter(|(_, joined_before)| usize::from(*joined_before) >= before)
                .map(|(name, _)| (&**name).into())
                .collect(),
        })
    }

    fn is_full(&self) -> bool {
        let avatars = match self.look.avatars {
            Avatars::Eager => self.joined.iter().filter(|arrival| arrival.avatar).count(),
            Avatars::Lazy | Avatars::Off => 0,
        };
        self.joined.len() + self.left.len() >= PRESENCE_EVENTS_MAX
            || avatars * self.look.bytes >= PRESENCE_AVATAR_BYTES_MAX
    }
}

/// The part of a lane's log that one flush's presence takes, for those who arrived meanwhile.
#[derive(Debug)]
pub(crate) struct Announced {
    groups: Vec<Group>,
    /// The serial number of the first group.
    first: u64,
    /// Per lane: where the first group begins and where each ends.
    bounds: [(u64, Vec<u64>); LANES],
}

impl Announced {
    /// Whether a member arrived in one of the groups.
    #[inline]
    pub(crate) fn is_fresh(&self, member: &Member) -> bool {
        member.group >= self.first
    }

    /// The bytes a fresh member gets in place of the log up to the end of its group, and that end.
    pub(crate) fn private(
        &self,
        room: &str,
        dialect: Dialect,
        member: &Member,
        log: &Log,
        scratch: &mut Vec<u8>,
    ) -> (Vec<u8>, u64) {
        let (start, ends) = &self.bounds[dialect.lane()];
        let index = (member.group - self.first) as usize;
        let mut bytes = log.between(member.cursor, *start).to_vec();
        let what = self.groups[index].frame_behind(room, usize::from(member.arrival) + 1);
        if !matches!(&what, FrameWhat::Presence(p) if p.joined.is_empty() && p.left.is_empty()) {
            put_frame(dialect, what, scratch, &mut bytes);
        }
        (bytes, ends[index])
    }
}

/// One room.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) name: Rc<str>,
    /// The number of the latest message.
    pub(crate) number: u32,
    /// Rights, if the room has an owner.
    pub(crate) owned: Option<Box<Owned>>,
    pub(crate) past: VecDeque<Stored>,
    /// The numbers of remembered messages that were said with a key, by sender and key; empty
    /// where the store looks after keys.
    pub(crate) keys: HashMap<Box<str>, u32>,
    /// How far people have read.
    pub(crate) marks: Marks,
    pub(crate) lanes: [Lane; LANES],
    /// Who is in it on other nodes.
    pub(crate) remotes: BTreeMap<Far, Remote>,
    /// Where each message begins that the throttle holds back, by lane.
    pub(crate) waiting: VecDeque<[u64; LANES]>,
    look: Look,
    encode: Encode,
    flush: Flush,
    /// Frames encoded since the last flush.
    pub(crate) encodings: u64,
    /// Where each frame ends that is to have a write of its own, by lane.
    pub(crate) ends: VecDeque<[u64; LANES]>,
    groups: Vec<Group>,
    /// The serial number of the first of `groups`.
    group_first: u64,
    pub(crate) turn: Turn,
    /// When the oldest message was said that no flush has sent, in microseconds since the start.
    pub(crate) unflushed_since_us: Option<u64>,
}

impl Room {
    pub(crate) fn new(name: Rc<str>, look: Look, config: &Config) -> Room {
        Room {
            name,
            number: 0,
            owned: None,
            past: VecDeque::new(),
            keys: HashMap::new(),
            marks: Marks::default(),
            lanes: Default::default(),
            remotes: BTreeMap::new(),
            waiting: VecDeque::new(),
            look,
            encode: config.encode,
            flush: config.flush,
            encodings: 0,
            ends: VecDeque::new(),
            groups: Vec::new(),
            group_first: 1,
            turn: Turn::default(),
            unflushed_since_us: None,
        }
    }

    /// How many are in the room.
    pub(crate) fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.members.len()).sum()
    }

    /// Most bytes of a log that may be sent and have not been flushed.
    pub(crate) fn bytes_waiting(&self) -> usize {
        let bytes = |at: usize| self.sendable(at).saturating_sub(self.lanes[at].flushed) as usize;
        (0..LANES).map(bytes).max().unwrap_or(0)
    }

    /// Up to where the log of a lane may be sent.
    #[inline]
    pub(crate) fn sendable(&self, lane: usize) -> u64 {
        match self.waiting.front() {
            None => self.lanes[lane].log.end(),
            Some(starts) => starts[lane],
        }
    }

    /// The throttle holds back what is put from here on.
    pub(crate) fn hold(&mut self) {
        let starts = std::array::from_fn(|lane| self.lanes[lane].log.end());
        self.waiting.push_back(starts);
    }

    /// Appends a frame to the log of each lane that has members.
    pub(crate) fn put(&mut self, what: &FrameWhat<'_>, scratch: &mut Vec<u8>) {
        for dialect in Dialect::ALL {
            let lane = &mut self.lanes[dialect.lane()];
            if !lane.members.is_empty() {
                self.encodings += lane.put(dialect, what, self.encode, scratch);
            }
        }
        if self.flush == Flush::Message {
            self.ends.push_back(std::array::from_fn(|at| self.lanes[at].log.end()));
        }
    }

    /// Where the next frame ends that is to have a write of its own, before `sendable`.
    pub(crate) fn next_ends(&mut self, sendable: &[u64; LANES]) -> Option<[u64; LANES]> {
        let is_passed = |ends: &[u64; LANES]| ends.iter().zip(sendable).all(|(end, to)| end <= to);
        while self.ends.front().is_some_and(is_passed) {
            let ends = self.ends.pop_front();
            if ends.as_ref() != Some(sendable) {
                return ends;
            }
        }
        None
    }

    /// Notes an arrival; gives the group and the place in it.
    pub(crate) fn note_joined(&mut self, arrival: Arrival) -> (u64, u16) {
        let group = self.open_group();
        group.joined.push(arrival);
        let arrival = (group.joined.len() - 1) as u16;
        (self.group_now(), arrival)
    }

    /// Notes a departure of a member that arrived in `group`.
    pub(crate) fn note_left(&mut self, name: Rc<str>, group: u64) {
        if group >= self.group_first && group == self.group_now() {
            self.groups.push(Group::new(self.look));
        }
        let group = self.open_group();
        let joined_before = group.joined.len() as u16;
        group.left.push((name, joined_before));
    }

    /// Tells a member that leaves of those who came before, and are announced only after.
    pub(crate) fn tell_of_arrivals(
        &self,
        member: &Member,
        dialect: Dialect,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        for (at, group) in self.groups.iter().enumerate() {
            let before = match (self.group_first + at as u64).cmp(&member.group) {
                Ordering::Less => continue,
                Ordering::Equal => usize::from(member.arrival) + 1,
                Ordering::Greater => 0,
            };
            if before < group.joined.len() {
                put_frame(dialect, group.frame_behind(&self.name, before), scratch, out);
            }
        }
    }

    fn open_group(&mut self) -> &mut Group {
        if self.groups.last().is_none_or(Group::is_full) {
            self.groups.push(Group::new(self.look));
        }
        self.groups.last_mut().expect("one was pushed if there was none")
    }

    fn group_now(&self) -> u64 {
        self.group_first + self.groups.len() as u64 - 1
    }

    /// Writes what was noted into the logs.
    pub(crate) fn announce(&mut self, scratch: &mut Vec<u8>) -> Option<Announced> {
        if self.groups.is_empty() {
            return None;
        }
        let groups = std::mem::take(&mut self.groups);
        let mut bounds: [(u64, Vec<u64>); LANES] = Default::default();
        for dialect in Dialect::ALL {
            let lane = &mut self.lanes[dialect.lane()];
            let (start, ends) = &mut bounds[dialect.lane()];
            *start = lane.log.end();
            if lane.members.is_empty() {
                continue;
            }
            for group in &groups {
                let what = group.frame(&self.name);
                self.encodings += lane.put(dialect, &what, self.encode, scratch);
                ends.push(lane.log.end());
            }
        }
        if self.flush == Flush::Message {
            let ends_of = |group: usize| {
                let end = |at: usize| bounds[at].1.get(group).copied();
                std::array::from_fn(|at| end(at).unwrap_or(self.lanes[at].log.end()))
            };
            self.ends.extend((0..groups.len()).map(ends_of));
        }
        let first = self.group_first;
        self.group_first += groups.len() as u64;
        Some(Announced { groups, first, bounds })
    }

    /// The latest `limit` messages before number `before` (0: the very latest), oldest first;
    /// fewer if they are long.
    pub(crate) fn page(&self, before: u32, limit: usize) -> Vec<Message<'_>> {
        let end = match before {
            0 => self.past.len(),
            _ => self.past.partition_point(|stored| stored.number < before),
        };
        let start = end.saturating_sub(limit);
        let mut room = PageRoom::default();
        let fits = |stored: &&Stored| room.takes(&stored.text, stored.extra.as_deref());
        let count = self.past.range(start..end).rev().take_while(fits).count();
        self.past.range(end - count..end).map(Stored::message).collect()
    }
}
