//! Throng's own sessions against the core: connections are lost at random instants, the server is
//! restarted, people come back. Whatever was said in a room or told is heard exactly once and in
//! order by everybody who stayed.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    Effects, Endpoint, Event, Features, List, Options, Protocol, Request, Rng, RoomName, Session,
    Shared, Stamp, Tick, Token,
};
use protocols::wire::rng::SplitMix;
use protocols::yardstick::Yardstick;

use super::net::Net;
use crate::store::Store;
use crate::store::tests::Scratch;
use crate::{Commit, Config};

const SEEDS: u64 = 200;
const STEPS: usize = 260;
const PEOPLE: usize = 5;
const RUN: u32 = 3;
const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };
const LIST: RoomName<'static> = RoomName { id: 10, name: "all" };
/// The one that comes back.
const RESUME: Features = Features(0b1000);

struct Person {
    session: Box<dyn Session>,
    fx: Effects,
    name: String,
    conn: Option<usize>,
    read: usize,
    tokens: u32,
    login: Token,
    is_online: bool,
    /// Requests that are to be answered.
    open: Vec<Token>,
    /// Numbers of stamps heard in the room, and told.
    heard: Vec<u32>,
    told: Vec<u32>,
    resumed: usize,
}

impl Person {
    fn new(number: usize, shared: &Arc<Shared>) -> Person {
        Person {
            session: Yardstick.session(number as u32, RESUME, shared),
            fx: Effects::new(RUN, Rng::new(number as u64, 0)),
            name: format!("p{number}"),
            conn: None,
            read: 0,
            tokens: 0,
            login: Token(0),
            is_online: false,
            open: Vec::new(),
            heard: Vec::new(),
            told: Vec::new(),
            resumed: 0,
        }
    }

    fn act(&mut self, request: Request<'_>, is_awaited: bool) -> Token {
        self.tokens += 1;
        let token = Token(self.tokens);
        if is_awaited {
            self.open.push(token);
        }
        self.session.act(Tick(3), token, request, &mut self.fx);
        self.take_events();
        token
    }

    fn log_in(&mut self, net: &mut Net) {
        let name = self.name.clone();
        self.login = self.act(Request::Login { name: &name, password: "pw" }, true);
        assert!(std::mem::take(&mut self.fx.dial));
        (self.conn, self.read) = (Some(net.connect()), 0);
        self.session.opened(Tick(4), &mut self.fx);
    }

    /// The connection is gone, with all that was under way.
    fn lose(&mut self) {
        self.conn = None;
        self.is_online = false;
        assert!(self.session.lost(Tick(5)), "there is a conversation to go on with");
        self.fx.out.clear();
    }

    /// Bytes go in both directions, `most` of them in.
    fn exchange(&mut self, net: &mut Net, most: usize) -> bool {
        let Some(conn) = self.conn else { return false };
        let sent = std::mem::take(&mut self.fx.out);
        net.send(conn, &sent);
        let wire = &net.wires.list[conn];
        let end = wire.received.len().min(self.read + most);
        let used = self.session.receive(Tick(9), &wire.received[self.read..end], &mut self.fx);
        self.read += used;
        assert_eq!(self.fx.close, None);
        self.take_events();
        !sent.is_empty() || used > 0
    }

    fn take_events(&mut self) {
        for event in std::mem::take(&mut self.fx.events) {
            match event {
                Event::Delivery(stamp) if stamp.room == ROOM.id => self.heard.push(stamp.number),
                Event::Delivery(stamp) => self.told.push(stamp.number),
                Event::Resumed => self.resumed += 1,
                Event::Done(token, outcome) => {
                    let at = self.open.iter().position(|open| *open == token);
                    self.open.swap_remove(at.expect("answered once"));
                    let is_login = token == self.login;
                    assert!(outcome.is_ok() || is_login || !self.is_online, "{outcome:?}");
                    self.is_online |= is_login && outcome.is_ok();
                }
                Event::Connected => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

struct Lab {
    seed: u64,
    rng: SplitMix,
    scratch: Scratch,
    store: Option<Store>,
    net: Net,
    people: Vec<Person>,
    stamps: u32,
    drops: usize,
    restarts: usize,
}

fn config(keeps: bool, rng: &mut SplitMix) -> Config {
    let history = if keeps { [0, 2, 5, 1_000][rng.below(4)] } else { 100_000 };
    let deliveries_per_second = [0, 0, 300][rng.below(3)];
    Config { history, deliveries_per_second, deflate: true, ..Config::default() }
}

fn shared(rng: &mut SplitMix) -> Arc<Shared> {
    let options: Options =
        [("codec", ["json", "proto"][rng.below(2)]), ("deflate", ["off", "on"][rng.below(2)])]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    let endpoint = Endpoint::parse("ws://127.0.0.1:4000/ws").unwrap();
    let mut shared = Shared::new(endpoint, options, 1 << 20);
    let names = (0..PEOPLE).map(|number| format!("p{number}").into()).collect();
    shared.lists.push(List { room: LIST.id, names, is_roster: false });
    Arc::new(shared)
}

impl Lab {
    fn new(seed: u64) -> Lab {
        let mut rng = SplitMix::new(seed);
        let keeps = rng.below(3) > 0;
        let scratch = Scratch::new("comebacks");
        let store = keeps.then(|| Store::open(&scratch.path("db"), Commit::Late).unwrap());
        let config = config(keeps, &mut rng);
        let net = match &store {
            Some(store) => Net::restored(config, seed, store),
            None => Net::new(config, seed),
        };
        let people = (0..PEOPLE).map(|number| Person::new(number, &shared(&mut rng))).collect();
        let (stamps, drops, restarts) = (0, 0, 0);
        Lab { seed, rng, scratch, store, net, people, stamps, drops, restarts }
    }

    /// Everything that is under way arrives.
    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 4 {
            let mut is_busy = false;
            for person in &mut self.people {
                is_busy |= person.exchange(&mut self.net, 1 << 30);
            }
            self.net.turn();
            if let Some(store) = &mut self.store {
                is_busy |= !self.net.wires.to_store.is_empty();
                self.net.commit(store);
            }
            if let Some(due) = self.net.core.throttle.next_due_us() {
                is_busy = true;
                self.net.wires.now.us = self.net.wires.now.us.max(due);
            }
            quiet = if is_busy { 0 } else { quiet + 1 };
        }
    }

    fn text(&mut self, room: u32) -> String {
        self.stamps += 1;
        let (intended, sent, number) = (Tick(5), Tick(5), self.stamps);
        let stamp = Stamp { run: RUN, room, source: 0, number, person: 0, intended, sent };
        format!("{} words", String::from_utf8_lossy(&stamp.encode()))
    }

    fn step(&mut self) {
        let who = self.rng.below(PEOPLE);
        match self.rng.below(20) {
            0..=5 if self.people[who].is_online => {
                let text = self.text(ROOM.id);
                self.people[who].act(Request::Say { room: ROOM, text: &text }, true);
            }
            6..=8 if self.people[who].is_online => {
                let text = self.text(LIST.id);
                let tell = Request::Tell { list: LIST, text: &text };
                let multicast = Request::Multicast { list: LIST, text: &text };
                let request = if self.rng.below(2) == 0 { tell } else { multicast };
                self.people[who].act(request, false);
            }
            9 if self.people[who].conn.is_some() => {
                // Whoever has never been in has nothing to come back to.
                let conn = self.people[who].conn.unwrap();
                self.people[who].lose();
                match self.rng.below(2) {
                    0 => self.net.core.broke(conn),
                    _ => self.net.core.hung_up(conn),
                }
                self.drops += 1;
            }
            10..=12 if self.people[who].conn.is_none() => self.people[who].log_in(&mut self.net),
            13 if self.rng.below(12) == 0 => self.restart(),
            14 | 15 => self.commit(),
            16..=18 => {
                let most = 1 + self.rng.below(900);
                self.people[who].exchange(&mut self.net, most);
            }
            _ => {
                self.net.turn();
            }
        }
    }

    /// The store does the older part of what it was given.
    fn commit(&mut self) {
        let Some(store) = &mut self.store else { return };
        let jobs = &mut self.net.wires.to_store;
        let later = jobs.split_off(jobs.len() - self.rng.below(jobs.len() + 1));
        self.net.commit(store);
        self.net.wires.to_store.splice(0..0, later);
    }

    /// The server is gone from one instant to the next; what waits for the store is stored and
    /// nobody is told, or it is lost.
    fn restart(&mut self) {
        let Some(mut store) = self.store.take() else { return };
        if self.rng.below(2) == 0 {
            store.carry_out(std::mem::take(&mut self.net.wires.to_store));
        }
        drop(store);
        let store = Store::open(&self.scratch.path("db"), Commit::Late).unwrap();
        self.net = Net::restored(self.net.core.config.clone(), self.seed, &store);
        self.store = Some(store);
        self.restarts += 1;
        for person in self.people.iter_mut().filter(|person| person.conn.is_some()) {
            person.lose();
            self.drops += 1;
        }
    }

    /// Numbers of the stamps of the room, in order, and of what a person was told.
    fn truth(&mut self, name: &str) -> [Vec<u32>; 2] {
        let texts: [Vec<Box<str>>; 2] = match &self.store {
            Some(store) => {
                let mut rooms = store.load(usize::MAX / 2, 0).unwrap().rooms;
                let room = rooms.pop().map(|room| room.past).unwrap_or_default();
                let told = store.told(name, 0, 100_000).unwrap();
                [room, told].map(|list| list.into_iter().map(|past| past.text).collect())
            }
            None => {
                let room = self.net.core.rooms[0].past.iter().map(|past| past.text.clone());
                let told = self.net.core.people.page(name, 0, 100_000);
                [room.collect(), told.iter().map(|message| (&*message.text).into()).collect()]
            }
        };
        let number = |text: &str| Stamp::decode(text.as_bytes()).unwrap().number;
        texts.map(|list| list.iter().map(|text| number(text)).collect())
    }
}

#[test]
fn whoever_comes_back_hears_everything_once_and_in_order() {
    let (mut drops, mut restarts, mut heard, mut told, mut resumed) = (0, 0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut lab = Lab::new(seed);
        for who in 0..PEOPLE {
            lab.people[who].log_in(&mut lab.net);
            lab.settle();
            lab.people[who].act(Request::Join { room: ROOM, nick: "", status: "" }, true);
            lab.people[who].act(Request::Join { room: LIST, nick: "", status: "" }, true);
        }
        lab.settle();
        (0..STEPS).for_each(|_| lab.step());
        lab.settle();
        for who in 0..PEOPLE {
            if lab.people[who].conn.is_none() {
                lab.people[who].log_in(&mut lab.net);
            }
        }
        lab.settle();
        for who in 0..PEOPLE {
            let name = lab.people[who].name.clone();
            let [in_room, in_inbox] = lab.truth(&name);
            let person = &lab.people[who];
            assert_eq!(person.heard, in_room, "seed {seed}: {name} in the room");
            assert_eq!(person.told, in_inbox, "seed {seed}: {name} was told");
            assert_eq!(person.open, [], "seed {seed}: {name} is owed answers");
            for (list, what) in [(in_inbox, "told"), (in_room, "said")] {
                let count = list.len();
                let once: BTreeSet<u32> = list.into_iter().collect();
                assert_eq!(once.len(), count, "seed {seed}: {what} twice");
            }
            heard += person.heard.len();
            told += person.told.len();
            resumed += person.resumed;
        }
        drops += lab.drops;
        restarts += lab.restarts;
    }
    let done = format!("{drops} drops, {restarts} restarts, {resumed} resumed, {heard}, {told}");
    assert!(drops >= 1_500 && restarts >= 100 && resumed >= 800, "{done}");
    assert!(heard > 20_000 && told > 6_000, "{done}");
}
