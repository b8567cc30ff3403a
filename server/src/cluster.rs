//! What the core knows of other nodes: who of their people is in which room.
//!
//! Each node tells what changes among its own people in sheets of news, numbered from 1 and sent at
//! least once a second. A sheet may be lost: who misses one, or hears of a node for the first time,
//! asks for its list, and until that comes believes what it knew. The list travels between `List`
//! and `Listed` in the same sheets, in the same order, so there is nothing to be reconciled: who is
//! not in it has left. A node that is silent for too long is lost, and so are its people.

use std::collections::BTreeMap;
use std::rc::Rc;

use protocols::yardstick::{FrameWhat, Person, Typing};
use serde::{Deserialize, Serialize};

use crate::chat::request::{Failure, fail};
use crate::chat::room::Arrival;
use crate::config::{NEWS_BYTES_MAX, NODE_BEAT, NODE_SILENCE_MAX, NODES_MAX, Presence};
use crate::core::{Core, Now, World};
use crate::store::{Job, NOWHERE, Outcome, Want};

const VERSION: u32 = 1;

/// One thing that a node tells the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum News {
    /// From here to `Listed` follow all the node's people.
    List,
    Listed,
    /// Whoever hears it lists its people soon.
    Ask,
    /// `who` is the connection's serial number, which is never used twice.
    Joined {
        room: Box<str>,
        who: u64,
        name: Box<str>,
        status: Box<str>,
        avatars: bool,
    },
    Left {
        room: Box<str>,
        who: u64,
    },
    Typing {
        room: Box<str>,
        name: Box<str>,
    },
    Read {
        room: Box<str>,
        number: u32,
        name: Box<str>,
    },
    /// The node stops.
    Bye,
}

impl News {
    /// About its size, in bytes.
    fn bytes(&self) -> usize {
        const FRAME: usize = 80;
        FRAME
            + match self {
                News::Joined { room, name, status, .. } => room.len() + name.len() + status.len(),
                News::Typing { room, name } | News::Read { room, name, .. } => {
                    room.len() + name.len()
                }
                News::Left { room, .. } => room.len(),
                News::List | News::Listed | News::Ask | News::Bye => 0,
            }
    }
}

#[derive(Serialize)]
struct Writing<'a> {
    v: u32,
    life: u64,
    serial: u64,
    news: &'a [News],
}

#[derive(Deserialize)]
struct Sheet {
    v: u32,
    life: u64,
    serial: u64,
    news: Vec<News>,
}

/// Another node.
#[derive(Debug)]
struct Peer {
    /// The number of its next sheet; `None` while its list is waited for.
    expected: Option<u64>,
    heard_us: u64,
    /// The number of its latest list.
    list: u64,
}

/// What a core has that is one of several.
#[derive(Debug)]
pub(crate) struct Cluster {
    life: u64,
    serial: u64,
    /// News since the last turn.
    noted: Vec<News>,
    peers: BTreeMap<u64, Peer>,
    beat_at_us: u64,
    /// Somebody has asked for our list.
    list_wanted: bool,
    /// We want the lists of others.
    lists_missing: bool,
    /// Neither lists nor asks before.
    rest_until_us: u64,
    /// Why what is said cannot be ordered now, if it cannot.
    pub(crate) trouble: Option<String>,
}

impl Cluster {
    /// A node that has just begun; `life` must be random.
    pub(crate) fn new(life: u64) -> Cluster {
        Cluster {
            life,
            serial: 1,
            noted: Vec::new(),
            peers: BTreeMap::new(),
            beat_at_us: 0,
            list_wanted: true,
            lists_missing: true,
            rest_until_us: 0,
            trouble: None,
        }
    }

    /// How many nodes there are, this one among them.
    pub(crate) fn nodes(&self) -> usize {
        self.peers.len() + 1
    }

    /// Notes what is to be told to the others.
    pub(crate) fn note(&mut self, news: News) {
        self.noted.push(news);
    }

    /// Everything noted, as sheets.
    fn sheets(&mut self) -> Vec<Vec<u8>> {
        let noted = std::mem::take(&mut self.noted);
        let mut sheets = Vec::new();
        let mut rest = noted.as_slice();
        loop {
            let mut bytes = 0;
            let fits = |news: &&News| {
                bytes += news.bytes();
                bytes <= NEWS_BYTES_MAX
            };
            let count = rest.iter().take_while(fits).count().max(1).min(rest.len());
            let (news, later) = rest.split_at(count);
            let sheet = Writing { v: VERSION, life: self.life, serial: self.serial, news };
            // Only a map with keys that are no texts could fail.
            sheets.push(serde_json::to_vec(&sheet).unwrap_or_default());
            self.serial += 1;
            rest = later;
            if rest.is_empty() {
                return sheets;
            }
        }
    }
}

/// Somebody who is connected to another node.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) name: Rc<str>,
    pub(crate) status: Rc<str>,
    pub(crate) avatars: bool,
    /// The serial number of the group it arrived in.
    group: u64,
    /// The number of the list it was last in, or was noted behind.
    list: u64,
}

impl Remote {
    /// As the member list shows it, before it is given a picture.
    pub(crate) fn person(&self) -> Person<'_> {
        let (name, status) = ((&*self.name).into(), (&*self.status).into());
        Person { name, status, ..Person::default() }
    }
}

/// Which connection of which node.
pub(crate) type Far = (u64, u64);

impl Core {
    /// Notes news for the others, if there are any.
    pub(crate) fn tell_nodes(&mut self, news: impl FnOnce() -> News) {
        if let Some(cluster) = &mut self.cluster {
            cluster.note(news());
        }
    }

    /// Gives the world what the others are to be told; gives the time of the next sign of life.
    pub(crate) fn tell_news(&mut self, now: Now, world: &mut impl World) -> Option<u64> {
        self.lose_silent(now);
        let is_rested = |cluster: &Cluster| now.us >= cluster.rest_until_us;
        if self.cluster.as_ref().is_some_and(|c| is_rested(c) && (c.list_wanted || c.lists_missing))
        {
            self.list_own(now);
        }
        let cluster = self.cluster.as_mut()?;
        if !cluster.noted.is_empty() || now.us >= cluster.beat_at_us {
            cluster.beat_at_us = now.us + NODE_BEAT.as_micros() as u64;
            world.announce(&mut cluster.sheets());
        }
        self.counters.nodes = cluster.nodes() as u64;
        Some(cluster.beat_at_us)
    }

    /// Tells everybody who is here, or asks who is there, or both.
    fn list_own(&mut self, now: Now) {
        let Some(cluster) = &mut self.cluster else { return };
        cluster.rest_until_us = now.us + NODE_BEAT.as_micros() as u64;
        if std::mem::take(&mut cluster.lists_missing) {
            cluster.note(News::Ask);
        }
        if !std::mem::take(&mut cluster.list_wanted) {
            return;
        }
        // Who is noted already is in the list as well; hearing of somebody twice does no harm.
        cluster.note(News::List);
        for room in &self.rooms {
            for member in room.lanes.iter().flat_map(|lane| &lane.members) {
                let conn = &self.conns[member.conn as usize];
                let name = conn.name.as_deref().unwrap_or("").into();
                let (room, status) = ((&*room.name).into(), (&*member.status).into());
                let (who, avatars) = (conn.serial, member.avatars);
                cluster.note(News::Joined { room, who, name, status, avatars });
            }
        }
        cluster.note(News::Listed);
    }

    /// A sheet of another node has arrived, or one of our own.
    pub(crate) fn hear_news(&mut self, sheet: &[u8], now: Now) {
        let Some(cluster) = &mut self.cluster else { return };
        let sheet = match serde_json::from_slice::<Sheet>(sheet) {
            Ok(sheet) if sheet.v == VERSION => sheet,
            _ => {
                self.counters.news_refused += 1;
                return;
            }
        };
        let life = sheet.life;
        if life == cluster.life {
            return;
        }
        if !cluster.peers.contains_key(&life) {
            if cluster.nodes() >= NODES_MAX {
                self.counters.news_refused += 1;
                return;
            }
            cluster.peers.insert(life, Peer { expected: None, heard_us: now.us, list: 0 });
        }
        let Some(peer) = cluster.peers.get_mut(&life) else { return };
        peer.heard_us = now.us;
        if peer.expected.is_some_and(|expected| expected != sheet.serial) {
            peer.expected = None;
        }
        let mut is_known = peer.expected.is_some();
        for news in sheet.news {
            if !is_known && news == News::List {
                is_known = true;
            }
            match news {
                News::Ask => self.list_wanted(),
                News::Bye => return self.lose(life),
                news if is_known => self.hear(life, news),
                _ => {}
            }
        }
        let Some(cluster) = &mut self.cluster else { return };
        if let Some(peer) = cluster.peers.get_mut(&life) {
            peer.expected = is_known.then_some(sheet.serial + 1);
            cluster.lists_missing |= !is_known;
        }
    }

    fn list_wanted(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            cluster.list_wanted = true;
        }
    }

    fn hear(&mut self, life: u64, news: News) {
        match news {
            News::List => {
                if let Some(peer) = self.peer(life) {
                    peer.list += 1;
                }
            }
            News::Listed => {
                let Some(list) = self.peer(life).map(|peer| peer.list) else { return };
                self.forget_remotes(life, list);
            }
            News::Joined { room, who, name, status, avatars } => {
                let arrival =
                    Arrival { name: (*name).into(), status: (*status).into(), avatar: avatars };
                self.remote_joined(&room, (life, who), arrival);
            }
            News::Left { room, who } => {
                if let Some(number) = self.room_numbers.get(&*room).copied() {
                    self.remote_left(number, (life, who));
                }
            }
            News::Typing { room, name } => {
                let what = Typing { room: (&*room).into(), name: (&*name).into() };
                self.tell_room(&room, &FrameWhat::Typing(what));
            }
            News::Read { room, number, name } => {
                self.far_read(&room, &name, number);
            }
            News::Ask | News::Bye => {}
        }
    }

    fn peer(&mut self, life: u64) -> Option<&mut Peer> {
        self.cluster.as_mut()?.peers.get_mut(&life)
    }

    /// A frame for everybody here who is in a room, if there is such a room.
    fn tell_room(&mut self, room: &str, what: &FrameWhat<'_>) {
        if let Some(number) = self.room_numbers.get(room).copied() {
            self.rooms[number as usize].put(what, &mut self.scratch);
            self.mark(number);
        }
    }

    fn remote_joined(&mut self, room: &str, far: Far, arrival: Arrival) {
        let Some(list) = self.peer(far.0).map(|peer| peer.list) else { return };
        let Ok(number) = self.room_or_new(room) else {
            self.counters.news_refused += 1;
            return;
        };
        let room = &mut self.rooms[number as usize];
        if let Some(known) = room.remotes.get_mut(&far) {
            known.list = list;
            return;
        }
        let Arrival { name, status, avatar } = arrival;
        let name = self.accounts.shared(&name);
        let mut group = 0;
        if self.config.presence != Presence::Off {
            self.counters.presence_deliveries += room.len() as u64;
            let arrival = Arrival { name: name.clone(), status: status.clone(), avatar };
            (group, _) = room.note_joined(arrival);
        }
        room.remotes.insert(far, Remote { name, status, avatars: avatar, group, list });
        self.remotes_changed(number);
    }

    fn remote_left(&mut self, number: u32, far: Far) {
        let room = &mut self.rooms[number as usize];
        let Some(remote) = room.remotes.remove(&far) else { return };
        if self.config.presence != Presence::Off {
            self.counters.presence_deliveries += room.len() as u64;
            room.note_left(remote.name, remote.group);
        }
        self.remotes_changed(number);
    }

    fn remotes_changed(&mut self, number: u32) {
        match self.config.presence {
            Presence::Off => return,
            Presence::Batched => {}
            Presence::Eager => drop(self.rooms[number as usize].announce(&mut self.scratch)),
        }
        self.mark(number);
    }

    /// Whoever of a node is not in its list with this number, or behind it, has left.
    fn forget_remotes(&mut self, life: u64, list: u64) {
        for number in 0..self.rooms.len() as u32 {
            let remotes = self.rooms[number as usize].remotes.range((life, 0)..=(life, u64::MAX));
            let gone = remotes.filter(|(_, remote)| remote.list < list).map(|(far, _)| *far);
            for far in gone.collect::<Vec<Far>>() {
                self.remote_left(number, far);
            }
        }
    }

    /// A node is gone, and its people with it.
    fn lose(&mut self, life: u64) {
        self.forget_remotes(life, u64::MAX);
        if let Some(cluster) = &mut self.cluster {
            cluster.peers.remove(&life);
        }
    }

    fn lose_silent(&mut self, now: Now) {
        let Some(cluster) = &self.cluster else { return };
        let silence_us = NODE_SILENCE_MAX.as_micros() as u64;
        let is_silent = |peer: &Peer| now.us.saturating_sub(peer.heard_us) > silence_us;
        let silent = cluster.peers.iter().filter(|(_, peer)| is_silent(peer));
        let silent: Vec<u64> = silent.map(|(life, _)| *life).collect();
        for life in silent {
            self.counters.nodes_lost += 1;
            self.lose(life);
        }
    }

    /// The last sheet: this node stops.
    pub(crate) fn tell_bye(&mut self, world: &mut impl World) {
        if let Some(cluster) = &mut self.cluster {
            cluster.note(News::Bye);
            world.announce(&mut cluster.sheets());
        }
    }

    /// Who comes from a node that is further in the log would hear twice what is between the two.
    pub(crate) fn check_not_behind(&self, room: u32, after: u32) -> Result<(), Failure> {
        let number = self.rooms[room as usize].number;
        if self.cluster.is_some() && after > number {
            let text = format!("this node has only come to message {number}; try again");
            return fail("behind", text);
        }
        Ok(())
    }

    /// A job with the number that its room has here; `None` if it changes nothing here. Rooms of
    /// the log have no limit of this node's own, since it cannot refuse what the others have.
    pub(crate) fn located(&mut self, mut job: Job, outcome: &Outcome) -> Option<Job> {
        if let Want::Say { room, name, .. } = &mut job.want
            && *room == NOWHERE
        {
            let Outcome::Numbered(_) = outcome else { return None };
            let known = self.room_numbers.get(&**name).copied();
            *room = known.unwrap_or_else(|| self.make_room(name));
        }
        Some(job)
    }
}
