//! Two ends in memory: throng's own sessions against the core, with every knob both ends have.

use std::sync::Arc;

use model::{
    Effects, Endpoint, Event, Features, Measure, Options, Protocol, Request, Rng, RoomName,
    Session, Shared, Stamp, Tick, Token,
};
use protocols::yardstick::Yardstick;

use super::net::Net;
use crate::{Avatars, Config};

const RUN: u32 = 3;
const ROOM: RoomName<'static> = RoomName { id: 1, name: "live" };
const EVERYTHING: Features = Features(0b1111);

/// Somebody at this end.
struct Person {
    session: Box<dyn Session>,
    fx: Effects,
    conn: usize,
    read: usize,
    events: Vec<Event>,
}

impl Person {
    fn new(net: &mut Net, number: u32, features: Features, shared: &Arc<Shared>) -> Person {
        let mut session = Yardstick.session(number, features, shared);
        let mut fx = Effects::new(RUN, Rng::new(u64::from(number), 0));
        let name = format!("p{number}");
        let login = Request::Login { name: &name, password: "" };
        session.act(Tick(1), Token(1), login, &mut fx);
        session.opened(Tick(2), &mut fx);
        let conn = net.connect();
        Person { session, fx, conn, read: 0, events: Vec::new() }
    }

    fn act(&mut self, token: u32, request: Request<'_>) {
        self.session.act(Tick(3), Token(token), request, &mut self.fx);
    }

    /// Bytes go in both directions; `false` if there were none.
    fn exchange(&mut self, net: &mut Net) -> bool {
        let sent = std::mem::take(&mut self.fx.out);
        net.send(self.conn, &sent);
        let received = net.wires.list[self.conn].received[self.read..].to_vec();
        self.read += self.session.receive(Tick(9), &received, &mut self.fx);
        assert_eq!(self.fx.close, None);
        self.events.append(&mut self.fx.events);
        !sent.is_empty() || !received.is_empty()
    }

    fn count(&self, is_it: impl Fn(&Event) -> usize) -> usize {
        self.events.iter().map(is_it).sum()
    }
}

fn settle(net: &mut Net, people: &mut [Person]) {
    let mut quiet = 0;
    while quiet < 3 {
        let busy = people.iter_mut().map(|person| person.exchange(net)).filter(|busy| *busy);
        quiet = if busy.count() > 0 { 0 } else { quiet + 1 };
        net.turn();
    }
}

fn shared(codec: &str, deflate: &str) -> Arc<Shared> {
    let options: Options = [("codec", codec), ("deflate", deflate)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    Yardstick.check(&options).unwrap();
    let endpoint = Endpoint::parse("ws://127.0.0.1:4000/ws").unwrap();
    Arc::new(Shared::new(endpoint, options, 1 << 20))
}

fn stamp(number: u32) -> Stamp {
    let (intended, sent) = (Tick::from_millis(5), Tick::from_millis(5));
    Stamp { run: RUN, room: 1, source: 0, number, person: 0, intended, sent }
}

fn text(number: u32) -> String {
    format!("{} and some words", String::from_utf8_lossy(&stamp(number).encode()))
}

/// Everybody comes, one after the other; the first one talks; what everybody saw.
fn crowd(config: Config, shared: &Arc<Shared>, size: u32, features: Features) -> Vec<Person> {
    let mut net = Net::new(config, 1);
    let mut people = Vec::new();
    for number in 0..size {
        people.push(Person::new(&mut net, number, features, shared));
        settle(&mut net, &mut people);
        let person = people.last_mut().unwrap();
        person.act(2, Request::Join { room: ROOM, nick: "", status: &text(number) });
        settle(&mut net, &mut people);
    }
    for number in 0..10 {
        people[0].act(3 + number, Request::Say { room: ROOM, text: &text(number) });
    }
    settle(&mut net, &mut people);
    people
}

#[test]
fn sessions_and_server_agree_whatever_the_knobs() {
    const SIZE: u32 = 7;
    for (codec, deflate, avatars) in ["json", "proto"].iter().flat_map(|codec| {
        let modes = [Avatars::Eager, Avatars::Lazy, Avatars::Off];
        modes.into_iter().flat_map(move |mode| ["off", "on"].map(|deflate| (codec, deflate, mode)))
    }) {
        let what = format!("{codec}, deflate {deflate}, avatars {avatars:?}");
        let config = Config { deflate: deflate == "on", avatars, ..Config::default() };
        let people = crowd(config, &shared(codec, deflate), SIZE, EVERYTHING);
        for (number, person) in people.iter().enumerate() {
            let heard = person.count(|event| usize::from(matches!(event, Event::Delivery(_))));
            assert_eq!(heard, 10, "{what}");
            let seen = person.count(|event| usize::from(matches!(event, Event::Announcement(_))));
            assert_eq!(seen, SIZE as usize - 1 - number, "{what}: who came after {number}");
            let asked = person.count(|event| match event {
                Event::Asked(Measure::Avatars, count) => *count as usize,
                _ => 0,
            });
            let answered = person.count(|event| {
                let is_good = |event: &Event| {
                    let Event::Answered { measure, sent, outcome } = event else { return false };
                    *measure == Measure::Avatars && *sent == Tick(9) && outcome.is_ok()
                };
                usize::from(is_good(event))
            });
            let others = if avatars == Avatars::Lazy { SIZE as usize - 1 } else { 0 };
            assert_eq!((asked, answered), (others, others), "{what}: pictures of the others");
            let done = person.count(|event| usize::from(matches!(event, Event::Done(_, Ok(())))));
            assert_eq!(done, if number == 0 { 12 } else { 2 }, "{what}");
        }
    }
}

#[test]
fn without_the_feature_nothing_is_asked_and_nobody_has_a_picture() {
    let config = Config { avatars: Avatars::Lazy, ..Config::default() };
    let people = crowd(config, &shared("proto", "off"), 4, Features(0b011));
    for person in &people {
        let asks = |event: &Event| matches!(event, Event::Asked(..) | Event::Answered { .. });
        assert_eq!(person.count(|event| usize::from(asks(event))), 0);
    }
}

#[test]
fn a_server_without_compression_is_a_fault_to_who_asks_for_it() {
    let mut net = Net::new(Config::default(), 1);
    let mut person = Person::new(&mut net, 1, EVERYTHING, &shared("json", "on"));
    net.send(person.conn, &std::mem::take(&mut person.fx.out));
    net.turn();
    let answer = net.wires.list[person.conn].received.clone();
    person.session.receive(Tick(9), &answer, &mut person.fx);
    let fault = person.fx.close.unwrap().unwrap_err();
    assert_eq!(fault.class, model::FaultClass::Upgrade);
    assert!(fault.detail.contains("permessage-deflate"), "{}", fault.detail);
}
