//! Every verb that throng's yardstick session has, against the core: in both encodings, with and
//! without compression, on a server that keeps things and on one that does not.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    Effects, Endpoint, Event, FaultClass, Features, List, Measure, Options, Protocol, Request, Rng,
    RoomName, Session, Shared, Stamp, Tick, Token,
};
use protocols::yardstick::Yardstick;

use super::net::Net;
use crate::store::Store;
use crate::store::tests::Scratch;
use crate::{Commit, Config};

const RUN: u32 = 3;
const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };
const LIST: RoomName<'static> = RoomName { id: 10, name: "friends" };
const EVERYTHING: Features = Features(0b1111);
const OTHERS: usize = 2;

struct Person {
    session: Box<dyn Session>,
    fx: Effects,
    conn: usize,
    read: usize,
    events: Vec<Event>,
}

/// A server, its store if it has one, and three people: who acts, and those who see it.
struct Lab {
    _scratch: Scratch,
    store: Option<Store>,
    net: Net,
    people: Vec<Person>,
    tokens: u32,
}

impl Lab {
    fn new(codec: &str, deflate: &str, keeps: bool) -> Lab {
        let scratch = Scratch::new("verbs");
        let store = keeps.then(|| Store::open(&scratch.path("db"), Commit::Group).unwrap());
        let config = Config { deflate: deflate == "on", ..Config::default() };
        let net = match &store {
            Some(store) => Net::restored(config, 1, store),
            None => Net::new(config, 1),
        };
        let options: Options = [("codec", codec), ("deflate", deflate)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let endpoint = Endpoint::parse("ws://127.0.0.1:4000/ws").unwrap();
        let mut shared = Shared::new(endpoint, options, 1 << 20);
        let names = ["p0", "p1", "p2"].map(Box::from).to_vec();
        shared.lists.push(List { room: LIST.id, names, is_roster: false });
        let shared = Arc::new(shared);
        let person = |number| Person {
            session: Yardstick.session(number, EVERYTHING, &shared),
            fx: Effects::new(RUN, Rng::new(u64::from(number), 0)),
            conn: 0,
            read: 0,
            events: Vec::new(),
        };
        let people = (0..=OTHERS as u32).map(person).collect();
        Lab { _scratch: scratch, store, net, people, tokens: 0 }
    }

    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 4 {
            let mut is_busy = false;
            for person in &mut self.people {
                let sent = std::mem::take(&mut person.fx.out);
                self.net.send(person.conn, &sent);
                let received = &self.net.wires.list[person.conn].received[person.read..];
                is_busy |= !sent.is_empty() || !received.is_empty();
                person.read += person.session.receive(Tick(9), received, &mut person.fx);
                assert_eq!(person.fx.close, None);
                person.events.append(&mut person.fx.events);
            }
            if let Some(store) = &mut self.store {
                is_busy |= !self.net.wires.to_store.is_empty();
                self.net.commit(store);
            }
            self.net.turn();
            quiet = if is_busy { 0 } else { quiet + 1 };
        }
    }

    /// Somebody does something; gives the events of everybody.
    fn act(&mut self, who: usize, request: Request<'_>) -> (Token, Vec<Vec<Event>>) {
        self.tokens += 1;
        let token = Token(self.tokens);
        let person = &mut self.people[who];
        person.session.act(Tick(3), token, request, &mut person.fx);
        if std::mem::take(&mut person.fx.dial) {
            (person.conn, person.read) = (self.net.connect(), 0);
            person.session.opened(Tick(4), &mut person.fx);
        }
        self.settle();
        (token, self.people.iter_mut().map(|person| std::mem::take(&mut person.events)).collect())
    }
}

fn text(room: RoomName<'_>, number: u32) -> String {
    let (intended, sent) = (Tick(5), Tick(5));
    let stamp = Stamp { run: RUN, room: room.id, source: 0, number, person: 0, intended, sent };
    format!("{} and \"words\"", String::from_utf8_lossy(&stamp.encode()))
}

/// Events of one kind: deliveries, announcements, or requests that are done.
fn count(events: &[Event], kind: &str) -> usize {
    let is_it = |event: &&Event| match event {
        Event::Delivery(_) => kind == "delivery",
        Event::Announcement(_) => kind == "announcement",
        Event::Done(_, Ok(())) => kind == "done",
        Event::Resumed => kind == "resumed",
        _ => false,
    };
    events.iter().filter(is_it).count()
}

#[test]
fn every_verb_does_what_it_should() {
    for codec in ["json", "proto"] {
        for (deflate, keeps) in [("off", false), ("off", true), ("on", false), ("on", true)] {
            let what = format!("{codec}, deflate {deflate}, keeps {keeps}");
            converse(&mut Lab::new(codec, deflate, keeps), &what);
        }
    }
}

fn converse(lab: &mut Lab, what: &str) {
    let room = |number| text(ROOM, number);
    let texts = [room(1), room(2), text(LIST, 3), text(LIST, 4), room(5), text(LIST, 6)];
    for (who, name) in [(1, "p1"), (2, "p2")] {
        lab.act(who, Request::Login { name, password: "" });
        lab.act(who, Request::Join { room: ROOM, nick: "", status: "" });
        lab.act(who, Request::Join { room: LIST, nick: "", status: "" });
    }
    // What p0 does: whether it is answered, what it hears itself, what each of the others hears.
    let rows: [(Request<'_>, bool, usize, usize, usize); 14] = [
        (Request::Login { name: "p0", password: "" }, true, 0, 0, 0),
        (Request::Join { room: ROOM, nick: "", status: &texts[0] }, true, 0, 0, 1),
        (Request::Say { room: ROOM, text: &texts[1] }, true, 1, 1, 0),
        (Request::History { room: ROOM, limit: 9 }, true, 0, 0, 0),
        (Request::Members { room: ROOM }, true, 0, 0, 0),
        (Request::Tell { list: LIST, text: &texts[2] }, false, 0, 1, 0),
        (Request::Multicast { list: LIST, text: &texts[3] }, false, 0, 1, 0),
        (Request::Join { room: LIST, nick: "", status: "" }, true, 0, 0, 0),
        (Request::Typing { room: ROOM }, true, 0, 0, 0),
        (Request::Read { room: ROOM }, true, 0, 0, 0),
        (Request::Ping, true, 0, 0, 0),
        (Request::Leave { room: LIST }, true, 0, 0, 0),
        (Request::Leave { room: ROOM }, true, 0, 0, 0),
        (Request::Say { room: ROOM, text: &texts[4] }, false, 0, 0, 0),
    ];
    let mut verbs = BTreeSet::new();
    for (request, is_answered, own, heard, announced) in rows {
        verbs.extend(request.measure());
        let what = format!("{what}: {request:?}");
        let (token, events) = lab.act(0, request);
        let done = events[0].contains(&Event::Done(token, Ok(())));
        assert_eq!(done, is_answered, "{what}: {events:?}");
        assert_eq!(count(&events[0], "delivery"), own, "{what}");
        for events in &events[1..] {
            assert_eq!(count(events, "delivery"), heard, "{what}");
            assert_eq!(count(events, "announcement"), announced, "{what}");
        }
    }
    let facts = Yardstick.facts().verbs.iter().copied().collect::<BTreeSet<Measure>>();
    assert_eq!(verbs, facts, "every verb is in the table");
    come_back(lab, &texts, what);
}

/// p1 loses the connection; p2 talks meanwhile.
fn come_back(lab: &mut Lab, texts: &[String], what: &str) {
    assert!(lab.people[1].session.lost(Tick(7)), "{what}");
    let conn = lab.people[1].conn;
    lab.net.core.broke(conn);
    (lab.people[1].conn, lab.people[1].read) = (lab.net.connect(), 0); // nothing is said there
    lab.act(2, Request::Say { room: ROOM, text: &texts[4] });
    lab.act(2, Request::Tell { list: LIST, text: &texts[5] });
    let (token, events) = lab.act(1, Request::Login { name: "p1", password: "" });
    let numbers: Vec<u32> = events[1]
        .iter()
        .filter_map(|event| if let Event::Delivery(s) = event { Some(s.number) } else { None })
        .collect();
    assert_eq!(numbers, [5, 6], "{what}: {:?}", events[1]);
    let place = |is_it: &dyn Fn(&Event) -> bool| events[1].iter().position(is_it).unwrap();
    let resumed = place(&|event| *event == Event::Resumed);
    assert!(resumed < place(&|event| *event == Event::Done(token, Ok(()))), "{what}");
    let (_, events) = lab.act(1, Request::Say { room: ROOM, text: &texts[1] });
    assert_eq!((count(&events[1], "done"), count(&events[2], "delivery")), (1, 1), "{what}");
}

#[test]
fn what_a_list_is_refused_is_reported_once_and_absence_is_no_refusal() {
    for keeps in [false, true] {
        let mut lab = Lab::new("json", "off", keeps);
        lab.act(0, Request::Login { name: "p0", password: "" });
        lab.act(1, Request::Login { name: "p1", password: "" });
        let text = text(LIST, 1);
        let (_, events) = lab.act(0, Request::Tell { list: LIST, text: &text });
        assert_eq!(events[0], [], "p2 has no account, and p1 is told");
        assert_eq!(events[1], [], "who has not joined the list is owed nothing of it");
        assert_eq!(lab.net.core.people.number("p1"), 1);
        let long = text.repeat(1_000);
        for request in [
            Request::Tell { list: LIST, text: &long },
            Request::Multicast { list: LIST, text: &text },
            Request::Tell { list: ROOM, text: &text },
            Request::Leave { room: LIST },
        ] {
            let (token, events) = lab.act(0, request);
            let [Event::Done(found, Err(fault))] = &events[0][..] else { panic!("{events:?}") };
            assert_eq!((*found, fault.class), (token, FaultClass::RequestRefused), "{fault:?}");
        }
        assert_eq!(lab.net.core.people.number("p1"), 1);
    }
}
