//! People who write to each other by name, are each other's contacts, and change rooms and names.

use super::*;
use model::List;

const FRIENDS: RoomName<'static> = RoomName { id: 10, name: "friends" };
const EVERYBODY: RoomName<'static> = RoomName { id: 11, name: "everybody" };

/// The lists of all tests: one with somebody who does not exist, and one of contacts.
pub(super) fn lists() -> Vec<List> {
    let list = |room: RoomName<'_>, names: &[&str], is_roster| List {
        room: room.id,
        names: names.iter().map(|&name| name.into()).collect(),
        is_roster,
    };
    vec![
        list(FRIENDS, &["ann", "bob", "cid@localhost", "nobody"], false),
        list(EVERYBODY, &["ann", "bob", "cid"], true),
    ]
}

/// Ann, Bob and Cid, logged in.
fn people(target: &Target, features: u64, options: &[(&str, &str)]) -> Vec<Person> {
    let options: Vec<_> = options.iter().copied().chain([("domain", "localhost")]).collect();
    let shared = target.shared(&options);
    let mut people: Vec<Person> =
        (0..3).map(|number| Person::new(number, features, &shared)).collect();
    all(&mut people, target.http, login);
    people
}

fn login(place: usize) -> Request<'static> {
    Request::Login { name: NICKS[place], password: PASSWORD }
}

fn join(room: RoomName<'static>) -> impl Fn(usize) -> Request<'static> {
    move |place| Request::Join { room, nick: NICKS[place], status: "" }
}

fn stamped(room: RoomName<'_>, number: u32, person: &Person) -> String {
    let now = person.now();
    let stamp =
        Stamp { run: RUN, room: room.id, source: 0, number, person: 0, intended: now, sent: now };
    String::from_utf8(stamp.encode().to_vec()).unwrap()
}

/// Waits until everything said so far has arrived: Prosody has one thread, and takes and delivers
/// what is said before it answers a ping.
fn calm(people: &mut [Person], port: u16) {
    for _ in 0..2 {
        for person in people.iter_mut() {
            assert_eq!(person.outcome(Request::Ping, port), Ok(()));
        }
    }
}

/// The numbers delivered to each, sorted: two people speak at once.
fn heard(people: &[Person]) -> Vec<Vec<u32>> {
    let numbers = |person: &Person| {
        let mut numbers: Vec<u32> = person.deliveries().iter().map(|stamp| stamp.number).collect();
        numbers.sort_unstable();
        numbers
    };
    people.iter().map(numbers).collect()
}

/// How many presences each has counted in a room or list.
fn seen(people: &[Person], room: RoomName<'_>) -> Vec<u32> {
    let count = |event: &Event| match event {
        Event::Presences(found, count) if *found == room.id => *count,
        _ => 0,
    };
    people.iter().map(|person| person.events.iter().map(count).sum()).collect()
}

fn failures(people: &[Person]) -> Vec<&Event> {
    let is_failure = |event: &&Event| matches!(event, Event::Done(_, Err(_)));
    people.iter().flat_map(|person| &person.events).filter(is_failure).collect()
}

#[test]
fn three_people_who_write_to_each_other_by_name() {
    let Some(target) = Target::start() else { return };
    let port = target.http;
    let mut people = people(&target, 0b01000, &[]);
    let text = stamped(FRIENDS, 1, &people[0]);
    people[0].act(Request::Tell { list: FRIENDS, text: &text }, port);
    calm(&mut people, port);
    assert_eq!(heard(&people), [[0; 0]; 3], "nobody is there yet");

    for (place, person) in people.iter_mut().enumerate() {
        assert_eq!(person.outcome(join(FRIENDS)(place), port), Ok(()));
    }
    for (place, number) in [(0, 2), (1, 3)] {
        let text = stamped(FRIENDS, number, &people[place]);
        people[place].act(Request::Tell { list: FRIENDS, text: &text }, port);
    }
    calm(&mut people, port);
    assert_eq!(heard(&people), [vec![3], vec![2], vec![2, 3]]);
    assert_eq!(failures(&people), [] as [&Event; 0], "that nobody is nobody is no refusal");
    assert!(people[0].count("type='error'") > 0, "Prosody sent back what was for nobody");

    // The same account once more: what the first says is copied to it.
    let shared = target.shared(&[("domain", "localhost")]);
    let mut other = Person::new(9, 0b01000, &shared);
    assert_eq!(other.outcome(login(0), port), Ok(()));
    assert_eq!(other.outcome(join(FRIENDS)(0), port), Ok(()));
    let text = stamped(FRIENDS, 4, &people[0]);
    people[0].act(Request::Tell { list: FRIENDS, text: &text }, port);
    calm(&mut people, port);
    assert_eq!(other.outcome(Request::Ping, port), Ok(()));
    assert_eq!(heard(&people), [vec![3], vec![2, 4], vec![2, 3, 4]]);
    assert_eq!((other.count("<sent "), other.deliveries().len()), (3, 0), "copies");

    let multicast = people[0].act(Request::Multicast { list: FRIENDS, text: "all" }, port);
    calm(&mut people, port);
    let failures = failures(&people);
    println!("multicast: {failures:?}");
    assert!(matches!(failures[..], [Event::Done(token, _)] if *token == multicast), "no service");
}

#[test]
fn three_people_become_contacts() {
    let Some(target) = Target::start() else { return };
    let port = target.http;
    let mut people = people(&target, 0, &[]);
    all(&mut people, port, join(EVERYBODY));
    all(&mut people, port, |_| Request::Befriend { list: EVERYBODY });
    all(&mut people, port, |_| Request::Befriend { list: EVERYBODY });
    calm(&mut people, port);
    let before = seen(&people, EVERYBODY);
    println!("befriended: presences {before:?}");

    let text = stamped(EVERYBODY, 1, &people[0]);
    people[0].act(Request::Presence { list: Some(EVERYBODY), status: &text }, port);
    calm(&mut people, port);
    assert_eq!(heard(&people), [vec![], vec![1], vec![1]]);
    assert_eq!(seen(&people, EVERYBODY), before, "a stamped presence is counted as a delivery");

    let leave = Request::Leave { room: EVERYBODY };
    assert_eq!(people[1].outcome(leave, port), Ok(()));
    let text = stamped(EVERYBODY, 2, &people[2]);
    people[2].act(Request::Presence { list: Some(EVERYBODY), status: &text }, port);
    calm(&mut people, port);
    assert_eq!(heard(&people), [vec![2], vec![1], vec![1]]);
    let gone: Vec<u32> = before.iter().zip([1, 0, 1]).map(|(count, more)| count + more).collect();
    assert_eq!(seen(&people, EVERYBODY), gone);

    assert_eq!(people[1].outcome(join(EVERYBODY)(1), port), Ok(()));
    calm(&mut people, port);
    assert!(people[1].count("urn:xmpp:delay") > 0, "Prosody showed what the others showed before");
    assert_eq!(heard(&people), [vec![2], vec![1], vec![1]], "which is not said now");
    let back: Vec<u32> = before.iter().zip([2, 0, 2]).map(|(count, more)| count + more).collect();
    assert_eq!(seen(&people, EVERYBODY), back);
    assert_eq!(failures(&people), [] as [&Event; 0]);
}

fn locking(config: String, _: u16) -> String {
    let altered = config.replace("muc_room_locking = false", "muc_room_locking = true");
    assert_ne!(config, altered);
    altered
}

#[test]
fn a_room_that_is_locked_until_its_maker_says_how_it_shall_be() {
    let Some(target) = Target::start_as(locking) else { return };
    let port = target.http;
    let mut people = people(&target, 0, &[]);
    for (place, person) in people.iter_mut().enumerate() {
        assert_eq!(person.outcome(join(ROOM)(place), port), Ok(()));
    }
    calm(&mut people, port);
    let before = seen(&people, ROOM);
    assert_eq!(before, [2, 1, 0]);

    let rename = |nick| Request::Rename { room: ROOM, nick };
    assert_eq!(people[0].outcome(rename("eve"), port), Ok(()));
    calm(&mut people, port);
    assert_eq!(seen(&people, ROOM), [2, 2, 1], "a new name counts once");
    let fault = people[1].outcome(rename("eve"), port).unwrap_err();
    println!("a name that is taken: {fault:?}");
    assert!(fault.detail.contains("conflict"), "{fault:?}");
    talk(&mut people, port, 2, 0);
    let leave = Request::Leave { room: ROOM };
    assert_eq!(people[0].outcome(leave, port), Ok(()), "under the new name");
}

#[test]
fn a_room_that_lets_nobody_speak() {
    let Some(target) = Target::start_as(locking) else { return };
    let port = target.http;
    let config = "moderatedroom=1;presencebroadcast=moderator";
    let mut people = people(&target, 0, &[("room-config", config)]);
    for (place, person) in people.iter_mut().enumerate() {
        assert_eq!(person.outcome(join(ROOM)(place), port), Ok(()));
    }
    calm(&mut people, port);
    assert_eq!(seen(&people, ROOM), [0, 0, 0], "who is no moderator is not announced");
    let fault = people[1].outcome(Request::Say { room: ROOM, text: "hi" }, port).unwrap_err();
    println!("without a voice: {fault:?}");
    assert!(fault.detail.contains("forbidden"), "{fault:?}");
}
