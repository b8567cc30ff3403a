//! Random people, rooms and sockets: everybody gets exactly what was said while they were in.

use std::collections::{BTreeSet, HashMap};

use protocols::wire::rng::SplitMix;
use protocols::yardstick::{AnswerWhat, Encoding, Frame, FrameWhat};

use super::net::Net;
use crate::{Config, Encode, Flush, Presence};

const ROOMS: [&str; 3] = ["r0", "r1", "r2"];
const ROUNDS: u64 = 300;
const STEPS: usize = 120;

/// A person, what they should have heard, and whom they should see.
struct Person {
    id: usize,
    name: String,
    rooms: BTreeSet<&'static str>,
    expected: HashMap<&'static str, Vec<u32>>,
    /// Rooms in the order of joins and of leaves, to tell their answers apart.
    joins: Vec<&'static str>,
    leaves: Vec<&'static str>,
    said: usize,
}

fn step(
    net: &mut Net,
    people: &mut [Person],
    numbers: &mut HashMap<&str, u32>,
    rng: &mut SplitMix,
) {
    let who = rng.below(people.len());
    let room = ROOMS[rng.below(ROOMS.len())];
    let is_in = people[who].rooms.contains(room);
    let id = people[who].id;
    match rng.below(10) {
        0..=2 if !is_in => {
            net.ask(id, &format!(r#"{{"id":9,"join":{{"room":"{room}","members":true}}}}"#));
            people[who].rooms.insert(room);
            people[who].joins.push(room);
        }
        0 if is_in => {
            net.ask(id, &format!(r#"{{"id":9,"leave":{{"room":"{room}"}}}}"#));
            people[who].rooms.remove(room);
            people[who].leaves.push(room);
        }
        1..=6 if is_in => {
            let text = "t".repeat(1 + rng.below(300));
            net.ask(id, &format!(r#"{{"id":9,"say":{{"room":"{room}","text":"{text}"}}}}"#));
            people[who].said += 1;
            let number = numbers.entry(room).or_default();
            *number += 1;
            for person in people.iter_mut().filter(|person| person.rooms.contains(room)) {
                person.expected.entry(room).or_default().push(*number);
            }
        }
        7 => net.wires.list[id].space = Some(rng.below(400)),
        8 => {
            net.wires.list[id].space = (rng.below(2) == 0).then(|| 1 + rng.below(1000));
            net.core.writable(id, &mut net.wires);
        }
        _ => {
            net.turn();
        }
    }
}

#[test]
fn every_member_gets_exactly_what_was_said_between_join_and_leave() {
    for seed in 0..ROUNDS {
        let mut rng = SplitMix::new(seed);
        let presence = [Presence::Batched, Presence::Eager, Presence::Off][rng.below(3)];
        let encode = [Encode::Once, Encode::Receiver][rng.below(2)];
        let flush = [Flush::Turn, Flush::Message][rng.below(2)];
        let mut net = Net::new(Config { presence, encode, flush, ..Config::default() }, seed);
        net.wires.write_cost_us = [0, 300][rng.below(2)];
        let mut people: Vec<_> = (0..6)
            .map(|number| {
                let name = format!("p{number}");
                let id = net.person(&name, Encoding::ALL[rng.below(2)]);
                let (rooms, expected) = (BTreeSet::new(), HashMap::new());
                let (joins, leaves) = (Vec::new(), Vec::new());
                Person { id, name, rooms, expected, joins, leaves, said: 0 }
            })
            .collect();
        let mut numbers = HashMap::new();
        for _ in 0..STEPS {
            step(&mut net, &mut people, &mut numbers, &mut rng);
        }
        net.wires.write_cost_us = 0;
        net.wires.now.us += 1_000_000;
        net.settle();
        for person in &people {
            check(&mut net, person, &people, presence, seed);
        }
    }
}

/// A reader of the protocol, which keeps a list of who is where.
fn check(net: &mut Net, person: &Person, people: &[Person], presence: Presence, seed: u64) {
    let mut heard: HashMap<&str, Vec<u32>> = HashMap::new();
    let mut seen: HashMap<&str, BTreeSet<String>> = HashMap::new();
    let (mut joins, mut leaves) = (person.joins.iter(), person.leaves.iter());
    let mut said = 0;
    let name = &person.name;
    for json in &net.hear(person.id) {
        let frame = Frame::decode(Encoding::Json, json.as_bytes()).unwrap();
        match frame.what.unwrap() {
            FrameWhat::Message(message) => {
                let room = ROOMS.into_iter().find(|room| *room == &*message.room).unwrap();
                heard.entry(room).or_default().push(message.number);
            }
            FrameWhat::Presence(diff) => {
                let set = seen.get_mut(&*diff.room).expect("only told of rooms they are in");
                for gone in &diff.left {
                    assert!(set.remove(&**gone), "seed {seed}: {name}: {} left twice", &**gone);
                }
                for new in &diff.joined {
                    assert_ne!(&*new.name, name, "seed {seed}: told of themselves");
                    assert!(set.insert(new.name.to_string()), "seed {seed}: {name} told twice");
                }
            }
            FrameWhat::Answer(answer) => match answer.what.unwrap() {
                AnswerWhat::Joined(joined) => {
                    let set = joined.people.iter().map(|person| person.name.to_string()).collect();
                    seen.insert(joins.next().unwrap(), set);
                }
                AnswerWhat::Done(_) => {
                    seen.remove(leaves.next().unwrap());
                }
                AnswerWhat::Said(_) => said += 1,
                other => panic!("seed {seed}: {other:?}"),
            },
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert_eq!(heard, person.expected, "seed {seed}: {name}");
    assert_eq!((joins.len(), leaves.len(), said), (0, 0, person.said), "seed {seed}: {name}");
    for (room, set) in seen.iter().filter(|_| presence != Presence::Off) {
        let others = people.iter().filter(|other| other.id != person.id);
        let there = others.filter(|other| other.rooms.contains(room));
        let there: BTreeSet<_> = there.map(|other| other.name.clone()).collect();
        assert_eq!(set, &there, "seed {seed}: {name} in {room}");
    }
}
