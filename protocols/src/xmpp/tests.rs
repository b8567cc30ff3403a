//! Sessions against the fake server: counts of avatars, replay, limits, and what is never believed.

use super::fake::Hall;
use super::{FEATURES, Xmpp};
use crate::wire::frame::{self, Opcode};
use model::{
    Effects, Endpoint, Event, FaultClass, Features, List, Measure, Options, Protocol, Request, Rng,
    RoomName, Session, Shared, Stamp, Tick, Token,
};
use std::sync::Arc;

const ROOM: RoomName<'static> = RoomName { id: 3, name: "Live" };
const LIST: RoomName<'static> = RoomName { id: 8, name: "friends" };
const RUN: u32 = 5;

fn shared() -> Arc<Shared> {
    let endpoint = Endpoint::parse("ws://127.0.0.1:5280/xmpp-websocket").unwrap();
    let mut shared = Shared::new(endpoint, Options::new(), 1 << 20);
    let names = ["ann", "bob", "cid"].map(Box::from).to_vec();
    shared.lists.push(List { room: LIST.id, names, is_roster: true });
    Arc::new(shared)
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
    let ids = ["v0-1", "d0-1", "q3", "p9", "q1", "l1", "o2", "f1", "i0", "i1", "bind", "session"];
    for id in ids {
        people.feed(0, &format!("<iq type='result' id='{id}'/>"));
    }
    assert_eq!(people.events().count(), before);
}

/// Deliveries and presences of somebody who is there for the list, hears this, and answers nothing.
fn heard_from(frame: &str) -> (usize, usize) {
    let mut people = People::new(1, &[]);
    people.enter(0);
    people.act(0, 3, Request::Join { room: LIST, nick: "", status: "" });
    assert_eq!(people.list[0].1.events.last(), Some(&Event::Done(Token(3), Ok(()))));
    people.feed(0, frame);
    assert_eq!((&people.list[0].1.close, people.list[0].1.out.len()), (&None, 0), "{frame}");
    let presences = people.events().filter(|event| **event == Event::Presences(LIST.id, 1)).count();
    (people.deliveries(), presences)
}

#[test]
fn what_is_said_in_somebody_elses_name_counts_nothing() {
    let text = stamp_text(7);
    let body = format!("<body>{text}</body>");
    let chat = |head: &str| format!("<message type='chat' {head}>{body}</message>");
    let status = |head: &str| format!("<presence {head}><status>{text}</status></presence>");
    let rows: [(String, (usize, usize)); 17] = [
        (chat("from='bob@anon.localhost/x'"), (1, 0)),
        (chat("from='ann@anon.localhost/x'"), (0, 0)),
        (chat("from='ann@anon.localhost'"), (0, 0)),
        (chat("from=\"ann@anon.localhost\""), (0, 0)),
        (format!(" {}", chat("from='ann@anon.localhost'")), (0, 0)),
        (chat("from='ann@anon.localhost.example/x'"), (1, 0)),
        (chat(""), (1, 0)),
        (chat("from='bob@anon.localhost/x'").replace("chat", "headline"), (1, 0)),
        (chat("from='bob@anon.localhost/x'").replace("chat", "error"), (0, 0)),
        (status("from='bob@anon.localhost/x'"), (1, 0)),
        (status("from='ann@anon.localhost/r1'"), (0, 0)),
        (status("from='live@room.localhost/bob'"), (0, 0)),
        (status("from='bob@anon.localhost/x' type='error'"), (0, 0)),
        (status("from='bob@anon.localhost/x' type='probe'"), (0, 0)),
        (status("from='bob@anon.localhost/x' type='unavailable'"), (0, 1)),
        ("<presence from='cid@anon.localhost/x'/>".into(), (0, 1)),
        ("<presence from='dan@anon.localhost/x'/>".into(), (0, 0)),
    ];
    for (frame, expect) in rows {
        assert_eq!(heard_from(&frame), expect, "{frame}");
    }
}

#[test]
fn a_domain_with_many_services_is_asked_about_a_few() {
    let mut people = People::new(1, &[]);
    people.enter(0);
    let (session, fx) = &mut people.list[0];
    for token in 0..70 {
        let text = stamp_text(token);
        session.act(
            people.now,
            Token(10 + token),
            Request::Multicast { list: LIST, text: &text },
            fx,
        );
    }
    let is_backlog = |event: &&Event| match event {
        Event::Done(_, Err(fault)) => fault.class == FaultClass::Backlog,
        _ => false,
    };
    assert_eq!(fx.events.iter().filter(is_backlog).count(), 70 - 64, "the others wait");
    fx.out.clear();
    let items: String = (0..5_000).map(|n| format!("<item jid='s{n}.localhost'/>")).collect();
    let answer =
        format!("<iq type='result' id='i0' from='anon.localhost'><query>{items}</query></iq>");
    people.feed(0, &answer);
    let written = people.list[0].1.out.len();
    assert!((1..32 * 200).contains(&written), "{written} bytes");
    people.feed(0, &answer);
    assert_eq!(people.list[0].1.out.len(), written, "asked once");
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
