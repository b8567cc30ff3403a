//! Sessions against the fake server: counts of avatars, replay, limits, and what is never believed.

use super::fake::Hall;
use super::{FEATURES, Xmpp};
use crate::wire::frame::{self, Opcode};
use model::{
    Effects, Endpoint, Event, FaultClass, Features, Measure, Options, Protocol, Request, Rng,
    RoomName, Session, Shared, Stamp, Tick, Token,
};
use std::sync::Arc;

const ROOM: RoomName<'static> = RoomName { id: 3, name: "Live" };
const RUN: u32 = 5;

fn shared() -> Arc<Shared> {
    let endpoint = Endpoint::parse("ws://127.0.0.1:5280/xmpp-websocket").unwrap();
    Arc::new(Shared::new(endpoint, Options::new(), 1 << 20))
}

fn features(names: &[&str]) -> Features {
    let bit = |name: &&str| 1 << FEATURES.iter().position(|row| row.0 == *name).unwrap();
    Features(names.iter().map(bit).sum())
}

fn stamp(number: u32) -> Stamp {
    let (intended, sent) = (Tick::from_micros(50), Tick::from_micros(60));
    Stamp { run: RUN, room: ROOM.id, source: 1, number, person: 2, intended, sent }
}

fn stamp_text(number: u32) -> String {
    String::from_utf8(stamp(number).encode().to_vec()).unwrap()
}

/// People of one hall.
struct People {
    hall: Hall,
    list: Vec<(Box<dyn Session>, Effects)>,
    now: Tick,
}

impl People {
    fn new(count: usize, names: &[&str]) -> People {
        let shared = shared();
        let person = |number: usize| {
            let session = Xmpp.session(number as u32, features(names), &shared);
            (session, Effects::new(RUN, Rng::new(9, number as u64)))
        };
        let list = (0..count).map(person).collect();
        People { hall: Hall::default(), list, now: Tick::from_millis(1) }
    }

    fn act(&mut self, who: usize, token: u32, request: Request<'_>) {
        let (session, fx) = &mut self.list[who];
        session.act(self.now, Token(token), request, fx);
        if std::mem::take(&mut fx.dial) {
            session.opened(self.now, fx);
        }
        self.settle();
    }

    /// Carries bytes to and fro until nobody has anything to say.
    fn settle(&mut self) {
        let mut is_quiet = false;
        while !is_quiet {
            is_quiet = true;
            for (who, (session, fx)) in self.list.iter_mut().enumerate() {
                let out = std::mem::take(&mut fx.out);
                if !out.is_empty() {
                    self.hall.receive(who, &out);
                }
                for message in self.hall.take(who) {
                    is_quiet = false;
                    assert_eq!(session.receive(self.now, &message, fx), message.len());
                }
                is_quiet &= fx.out.is_empty();
            }
        }
    }

    fn enter(&mut self, who: usize) {
        self.act(who, 1, Request::Login { name: "", password: "" });
        let nick = format!("nick {who}");
        self.act(who, 2, Request::Join { room: ROOM, nick: &nick, status: "" });
        let done = |token| Event::Done(Token(token), Ok(()));
        assert!(self.list[who].1.events.contains(&done(1)), "{:?}", self.list[who].1.events);
        assert!(self.list[who].1.events.contains(&done(2)), "{:?}", self.list[who].1.events);
    }

    /// Bytes of a stanza out of nowhere.
    fn feed(&mut self, who: usize, text: &str) {
        let mut bytes = Vec::new();
        frame::write_frame(&mut bytes, Opcode::Text, text.as_bytes(), None);
        let (session, fx) = &mut self.list[who];
        session.receive(self.now, &bytes, fx);
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        self.list.iter().flat_map(|(_, fx)| &fx.events)
    }

    fn asked(&self, measure: Measure) -> usize {
        let count = |event: &Event| match event {
            Event::Asked(found, count) if *found == measure => *count as usize,
            _ => 0,
        };
        self.events().map(count).sum()
    }

    fn answered(&self, measure: Measure) -> usize {
        let is_it = |event: &&Event| {
            matches!(event, Event::Answered { measure: found, outcome: Ok(()), .. }
                if *found == measure)
        };
        self.events().filter(is_it).count()
    }

    fn deliveries(&self) -> usize {
        self.events().filter(|event| matches!(event, Event::Delivery(_))).count()
    }
}

#[test]
fn n_people_fetch_n_times_n_plus_one_avatars() {
    for n in [1, 2, 5, 10] {
        let mut people = People::new(n, &["avatars"]);
        (0..n).for_each(|who| people.enter(who));
        assert_eq!(people.asked(Measure::Avatars), n * (n + 1), "{n} people");
        assert_eq!(people.hall.vcards, n * (n + 1), "{n} people");
        assert_eq!(people.answered(Measure::Avatars), n * (n + 1), "{n} people");
    }
}

#[test]
fn people_who_enter_at_once_also_fetch_each_avatar_once() {
    let n = 5;
    let mut people = People::new(n, &["avatars"]);
    (0..n).for_each(|who| people.act(who, 1, Request::Login { name: "", password: "" }));
    for who in 0..n {
        let nick = format!("nick {who}");
        let request = Request::Join { room: ROOM, nick: &nick, status: "" };
        let (session, fx) = &mut people.list[who];
        session.act(people.now, Token(2), request, fx);
    }
    people.settle();
    assert_eq!(people.hall.vcards, n * (n + 1));
}

#[test]
fn somebody_who_comes_back_or_changes_is_not_asked_twice_while_there() {
    let mut people = People::new(1, &["avatars"]);
    people.enter(0);
    let before = people.asked(Measure::Avatars);
    let from = "from='live@room.localhost/x'";
    people.feed(0, &format!("<presence {from}/>"));
    people.feed(0, &format!("<presence {from}><show>away</show></presence>"));
    assert_eq!(people.asked(Measure::Avatars), before + 1);
    people.feed(0, &format!("<presence {from} type='unavailable'/>"));
    people.feed(0, &format!("<presence {from}/>"));
    assert_eq!(people.asked(Measure::Avatars), before + 2);
    let presences = people.events().filter(|event| **event == Event::Presences(ROOM.id, 1));
    assert_eq!(presences.count(), 4);
}

#[test]
fn everything_is_asked_once_each() {
    let mut people = People::new(1, &["disco", "roster", "avatars", "carbons", "history"]);
    people.enter(0);
    let rows = [
        (Measure::Disco, 4),
        (Measure::Roster, 1),
        (Measure::Avatars, 2),
        (Measure::Carbons, 1),
        (Measure::History, 1),
    ];
    for (measure, count) in rows {
        assert_eq!(people.asked(measure), count, "{measure:?}");
        assert_eq!(people.answered(measure), count, "{measure:?}");
    }
    let second = RoomName { id: 4, name: "other" };
    people.act(0, 3, Request::Join { room: second, nick: "n", status: "" });
    let counts = rows.map(|(measure, _)| people.asked(measure));
    assert_eq!(counts, [6, 1, 3, 1, 2], "a second room is asked about what concerns it");
}

#[test]
fn deliveries_are_counted_and_replays_are_not() {
    let mut people = People::new(3, &[]);
    people.hall.past = (100..120).map(stamp_text).collect();
    (0..3).for_each(|who| people.enter(who));
    assert_eq!(people.deliveries(), 0);
    people.act(1, 3, Request::Say { room: ROOM, text: &stamp_text(0) });
    let found: Vec<Stamp> = people
        .events()
        .filter_map(|event| match event {
            Event::Delivery(stamp) => Some(*stamp),
            _ => None,
        })
        .collect();
    assert_eq!(found, [stamp(0); 3]);
}

#[test]
fn what_carries_a_stamp_and_is_no_delivery() {
    let text = stamp_text(7);
    let live = format!("<message type='groupchat' from='r/a'><body>{text}</body></message>");
    let rows: [(String, usize); 9] = [
        (live.clone(), 1),
        (format!("{live}{live}"), 2),
        (format!(" {live}\n"), 1),
        (live.replace("groupchat", "error"), 0),
        (live.replace("groupchat", "chat"), 1),
        (live.replace("</body>", "</body><delay xmlns='urn:xmpp:delay'/>"), 0),
        (
            format!(
                "<message><result xmlns='urn:xmpp:mam:2'><forwarded>{live}</forwarded></result>\
                 </message>"
            ),
            0,
        ),
        (
            format!(
                "<message type='groupchat'><sent xmlns='urn:xmpp:carbons:2'><forwarded>{live}\
                 </forwarded></sent></message>"
            ),
            0,
        ),
        (format!("<iq type='result' id='x'><a>{text}</a></iq>"), 0),
    ];
    for (frame, count) in rows {
        let mut people = People::new(1, &[]);
        people.enter(0);
        people.feed(0, &frame);
        assert_eq!(people.deliveries(), count, "{frame}");
        assert_eq!(people.list[0].1.close, None, "{frame}");
    }
}

#[test]
fn stamps_of_other_runs_are_foreign() {
    let mut people = People::new(1, &[]);
    people.enter(0);
    let other = Stamp { run: RUN + 1, ..stamp(1) };
    let text = String::from_utf8(other.encode().to_vec()).unwrap();
    people.feed(0, &format!("<message type='groupchat'><body>{text}</body></message>"));
    assert_eq!((people.deliveries(), people.list[0].1.foreign), (0, 1));
}

#[test]
fn answers_that_were_never_asked_for_are_not_believed() {
    let mut people = People::new(1, &[]);
    people.enter(0);
    let before = people.events().count();
    for id in ["v0-1", "d0-1", "q3", "p9", "q1", "bind", "session"] {
        people.feed(0, &format!("<iq type='result' id='{id}'/>"));
    }
    assert_eq!(people.events().count(), before);
}

#[test]
fn a_crowd_beyond_the_limit_is_refused() {
    let mut people = People::new(1, &["avatars"]);
    people.enter(0);
    for number in 0..70_000 {
        if people.list[0].1.close.is_some() {
            break;
        }
        people.feed(0, &format!("<presence from='live@room.localhost/n{number}'/>"));
        people.list[0].1.out.clear();
    }
    let close = people.list[0].1.close.clone();
    assert_eq!(close.unwrap().unwrap_err().class, FaultClass::TooLarge);
}

#[test]
fn names_that_make_no_address_are_refused() {
    let rows = [
        ("live", "ann", true),
        ("LIVE", "ann o'nym", true),
        ("live", "änn", true),
        ("live", "ä", false),
        ("live", " ", false),
        ("", "ann", false),
        ("a b", "ann", false),
        ("a@b", "ann", false),
        ("a/b", "ann", false),
        ("über", "ann", false),
    ];
    for (name, nick, is_good) in rows {
        let mut people = People::new(1, &[]);
        people.act(0, 1, Request::Login { name: "", password: "" });
        people.act(0, 2, Request::Join { room: RoomName { id: 1, name }, nick, status: "" });
        let last = people.list[0].1.events.last();
        let is_done = last == Some(&Event::Done(Token(2), Ok(())));
        assert_eq!(is_done, is_good, "{name} {nick}: {last:?}");
    }
}

#[test]
fn requests_that_wait_are_bounded() {
    let mut people = People::new(1, &[]);
    people.enter(0);
    let (session, fx) = &mut people.list[0];
    for token in 0..2_000 {
        session.act(people.now, Token(10 + token), Request::Ping, fx);
    }
    let is_backlog = |event: &&Event| match event {
        Event::Done(_, Err(fault)) => fault.class == FaultClass::Backlog,
        _ => false,
    };
    assert_eq!(fx.events.iter().filter(is_backlog).count(), 2_000 - 1_024);
}

#[test]
fn options_are_checked() {
    let check =
        |name: &str, value: &str| Xmpp.check(&Options::from([(name.to_owned(), value.to_owned())]));
    assert_eq!(check("domain", "localhost"), Ok(()));
    assert_eq!(check("muc", "conference.chat-1.example"), Ok(()));
    for (name, value) in [("muc", "a b"), ("muc", ""), ("muc", "A"), ("domain", "a'/>"), ("x", "y")]
    {
        assert!(check(name, value).is_err(), "{name} {value}");
    }
}
