//! The same over TCP: proofs, managed streams that are resumed, accounts and components.

use super::*;

/// Bits of the features `smacks` and `register`.
const SMACKS: u64 = 1 << 5;
const REGISTER: u64 = 1 << 6;
const LOGINS: [Request<'static>; 3] = [
    Request::Login { name: "ann", password: PASSWORD },
    Request::Login { name: "bob", password: PASSWORD },
    Request::Login { name: "cid", password: PASSWORD },
];

/// A Prosody that also manages streams, makes accounts and lets components in.
fn start() -> Option<Target> {
    Target::start_as(|config, component_port| {
        let rows = [
            (
                "modules_enabled = { \"roster\"",
                "modules_enabled = { \"smacks\", \"register_ibr\", \"roster\"".to_owned(),
            ),
            ("component_ports = {}", format!("component_ports = {{ {component_port} }}")),
            (
                "c2s_require_encryption = false",
                "c2s_require_encryption = false\nallow_registration = true".to_owned(),
            ),
        ];
        let mut config = rows.iter().fold(config, |config, (old, new)| {
            assert!(config.contains(old), "the configuration has no `{old}` any more");
            config.replacen(old, new, 1)
        });
        config.push_str("\nComponent \"bot.localhost\"\n\tcomponent_secret = \"shared\"\n");
        config
    })
}

fn crowd(target: &Target, features: u64, sasl: &[&str]) -> Vec<Person> {
    let person = |(number, sasl): (usize, &&str)| {
        let mut options = vec![("domain", "localhost")];
        if !sasl.is_empty() {
            options.push(("sasl", *sasl));
        }
        let shared = target.shared_at(&format!("xmpp://127.0.0.1:{}", target.c2s), &options);
        Person::new(number as u32, features, &shared)
    };
    sasl.iter().enumerate().map(person).collect()
}

fn enter(people: &mut [Person], port: u16) {
    all(people, port, |place| LOGINS[place]);
    all(people, port, |place| Request::Join { room: ROOM, nick: NICKS[place], status: "" });
}

#[test]
fn three_people_prove_themselves_and_talk() {
    let Some(target) = start() else { return };
    let mut people = crowd(&target, SMACKS, &["", "scram-sha-1", "plain"]);
    enter(&mut people, target.c2s);
    assert_eq!(people[0].count("v="), 0, "what a proof says is base64");
    assert_eq!(
        people.iter().map(|person| person.count("<challenge")).collect::<Vec<_>>(),
        [1, 1, 0]
    );
    talk(&mut people, target.c2s, 5, 0);
    assert!(people.iter().all(|person| person.count("<a ") > 0), "acknowledgments");
    all(&mut people, target.c2s, |_| Request::Ping);
    leave(&mut people, target.c2s);
    let mut eve = crowd(&target, 0, &[""]).remove(0);
    let login = Request::Login { name: "ann", password: "guessed" };
    let fault = eve.outcome(login, target.c2s).unwrap_err();
    assert_eq!(fault.class, FaultClass::LoginRefused, "{fault:?}");
}

#[test]
fn a_lost_conversation_is_resumed_and_nothing_is_missed() {
    let Some(target) = start() else { return };
    let port = target.c2s;
    let mut people = crowd(&target, SMACKS, &["", ""]);
    enter(&mut people, port);
    talk(&mut people, port, 2, 0);
    for round in 0..3u32 {
        let mut ann = people.remove(0);
        let before = ann.deliveries().len();
        assert!(ann.lose(), "it may be resumed");
        // Only the other one talks, and hears itself.
        talk(&mut people, port, 5, 100 * (round + 1));
        ann.events.clear();
        let token = ann.act(LOGINS[0], port);
        people.insert(0, ann);
        until(&mut people[..1], "resumption", |person| person.is_done(token));
        assert_eq!(people[0].events.iter().filter(|event| **event == Event::Resumed).count(), 1);
        until(&mut people[..1], "what was missed", |person| person.deliveries().len() == 5);
        println!("round {round}: {before} deliveries before, 5 after the resumption");
        people[0].events.clear();
        talk(&mut people, port, 2, 1_000 + 100 * round);
    }
    people.iter_mut().for_each(|person| _ = person.act(Request::Disconnect, port));
    until(&mut people, "good-bye", |person| person.stream.is_none());
}

#[test]
fn accounts_are_made_once() {
    let Some(target) = start() else { return };
    let login = Request::Login { name: "newcomer", password: "of today" };
    for _ in 0..2 {
        let mut person = crowd(&target, REGISTER, &[""]).remove(0);
        assert_eq!(person.outcome(login, target.c2s), Ok(()));
        assert_eq!(person.answered(Measure::Register), 1);
        person.act(Request::Disconnect, target.c2s);
    }
    let mut person = crowd(&target, 0, &[""]).remove(0);
    assert_eq!(person.outcome(login, target.c2s), Ok(()), "it is there");
}

#[test]
fn a_component_enters_a_room_and_talks() {
    let Some(target) = start() else { return };
    let port = target.spare;
    let begin = clock();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begin.elapsed() < DEADLINE, "no component can connect");
        std::thread::yield_now();
    }
    let shared =
        target.shared_at(&format!("xmpp-component://127.0.0.1:{port}"), &[("domain", "localhost")]);
    let mut guess = Person::new(7, 0, &shared);
    let fault = guess.outcome(Request::Login { name: "bot", password: "guess" }, port).unwrap_err();
    assert_eq!(fault.class, FaultClass::LoginRefused, "{fault:?}");
    let mut people = crowd(&target, 0, &[""]);
    enter(&mut people, target.c2s);
    let mut bot = Person::new(8, 0, &shared);
    assert_eq!(bot.outcome(Request::Login { name: "bot", password: "shared" }, port), Ok(()));
    let join = Request::Join { room: ROOM, nick: "bot", status: "" };
    assert_eq!(bot.outcome(join, port), Ok(()));
    people.push(bot);
    talk(&mut people, port, 3, 0);
}
