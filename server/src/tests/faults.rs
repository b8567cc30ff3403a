//! Faults: exactly the chosen ones are committed, and the record says so.

use std::collections::{BTreeMap, BTreeSet};

use protocols::yardstick::{Encoding, Frame, FrameWhat};

use super::net::Net;
use crate::Config;
use crate::faults::fault::{Fault, Rules};

const MESSAGES: u32 = 200;

fn numbers(heard: &[String]) -> Vec<u32> {
    let frames = heard.iter().map(|json| Frame::decode(Encoding::Json, json.as_bytes()).unwrap());
    frames
        .filter_map(|frame| match frame.what {
            Some(FrameWhat::Message(message)) => Some(message.number),
            _ => None,
        })
        .collect()
}

/// What a receiver hears when the rules are applied by the book.
fn expected(rules: &Rules, name: &str) -> (Vec<u32>, BTreeMap<(u32, &'static str), usize>) {
    let mut list = Vec::new();
    let mut faults = BTreeMap::new();
    let mut held = None;
    for number in 1..=MESSAGES {
        let mut note = |fault: Fault, number| {
            *faults.entry((number, fault.word())).or_insert(0) += 1;
        };
        match rules.choose("r", number, name) {
            Some(Fault::Drop) => note(Fault::Drop, number),
            Some(Fault::Reorder) if held.is_none() => held = Some(number),
            fault => {
                if fault == Some(Fault::Duplicate) {
                    note(Fault::Duplicate, number);
                    list.push(number);
                }
                list.push(number);
                if let Some(held) = held.take() {
                    note(Fault::Reorder, held);
                    list.push(held);
                }
            }
        }
    }
    list.extend(held); // released when nobody follows: no fault
    (list, faults)
}

#[test]
fn drops_duplicates_and_swaps_are_those_the_seed_chose() {
    for seed in 0..20 {
        let rules: Rules =
            format!("seed={seed},drop=0.05,duplicate=0.05,reorder=0.05").parse().unwrap();
        let mut net = Net::new(Config { faults: rules.clone(), ..Config::default() }, seed);
        let names = ["ann", "bob", "cyd"];
        let ids: Vec<_> = names
            .into_iter()
            .enumerate()
            .map(|(i, name)| {
                let id = net.person(name, Encoding::ALL[i % 2]);
                net.ask(id, r#"{"join":{"room":"r"}}"#);
                id
            })
            .collect();
        for number in 1..=MESSAGES {
            let text = format!(r#"{{"say":{{"room":"r","text":"stamp-{number}"}}}}"#);
            net.ask(ids[number as usize % 3], &text);
            if number % 7 == 0 {
                net.turn(); // the timing of turns must not matter
            }
        }
        net.turn();
        net.wires.now.us += 2_000_000;
        net.turn();
        let records = &net.core.faulty.records.list;
        assert!(records.len() > 20, "seed {seed}: only {} faults", records.len());
        let mut found: BTreeMap<&str, BTreeMap<(u32, &str), usize>> = BTreeMap::new();
        for record in records {
            assert_eq!(record.text, format!("stamp-{}", record.number));
            let table = found.entry(&record.receiver).or_default();
            *table.entry((record.number, record.kind)).or_insert(0) += 1;
        }
        let found: BTreeMap<String, _> =
            found.into_iter().map(|(name, table)| (name.to_owned(), table)).collect();
        let found = format!("{found:?}");
        let mut by_the_book = BTreeMap::new();
        for (name, id) in names.into_iter().zip(&ids) {
            let (list, faults) = expected(&rules, name);
            assert_eq!(numbers(&net.hear(*id)), list, "seed {seed}: {name}");
            by_the_book.insert(name.to_owned(), faults);
        }
        assert_eq!(found, format!("{by_the_book:?}"), "seed {seed}");
    }
}

#[test]
fn delays_are_kept_to_the_millisecond_and_lost_with_their_receiver() {
    let rules: Rules = "seed=3,delay=0.5:200ms".parse().unwrap();
    let mut net = Net::new(Config { faults: rules.clone(), ..Config::default() }, 1);
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let id = net.person(name, Encoding::Json);
        net.ask(id, r#"{"join":{"room":"r"}}"#);
        id
    });
    for _ in 0..20 {
        net.ask(ann, r#"{"say":{"room":"r","text":"x"}}"#);
    }
    let said_us = net.wires.now.us;
    let due_us = net.turn();
    assert_eq!(due_us, Some(said_us + 200_000));
    let late = |name: &str| -> BTreeSet<u32> {
        (1..=20).filter(|number| rules.choose("r", *number, name).is_some()).collect()
    };
    let in_time = numbers(&net.hear(ann));
    assert_eq!(in_time, (1..=20).filter(|n| !late("ann").contains(n)).collect::<Vec<_>>());
    net.core.hung_up(bob);
    net.turn();
    net.wires.now.us = said_us + 198_999;
    net.turn();
    assert_eq!(numbers(&net.hear(ann)), [0; 0]);
    net.turn();
    assert_eq!(numbers(&net.hear(ann)), late("ann").into_iter().collect::<Vec<_>>());
    let count = |kind| net.core.counters.faults.get(kind).copied().unwrap_or(0);
    assert_eq!(count("delay"), late("ann").len() as u64);
    assert_eq!(count("drop"), late("bob").len() as u64, "bob was gone");
}

#[test]
fn who_leaves_gets_first_what_was_held_back() {
    let rules: Rules = "reorder=1".parse().unwrap();
    let mut net = Net::new(Config { faults: rules, ..Config::default() }, 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    net.ask(ann, r#"{"say":{"room":"r","text":"x"}}"#);
    net.ask(ann, r#"{"id":9,"leave":{"room":"r"}}"#);
    net.turn();
    let heard = net.hear(ann);
    assert_eq!(numbers(&heard), [1]);
    assert!(heard.last().unwrap().contains(r#""id":9"#));
    assert!(net.core.faulty.records.list.is_empty(), "nothing was swapped");
}

#[test]
fn the_file_holds_a_line_for_each_fault() {
    let name = format!("yardstick-faults-{}.jsonl", std::process::id());
    let path = std::env::temp_dir().join(name);
    let faults: Rules = "drop=1".parse().unwrap();
    let config = Config { faults, fault_file: Some(path.clone()), ..Config::default() };
    let mut net = Net::new(config, 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    net.ask(ann, r#"{"say":{"room":"r","text":"stamp"}}"#);
    net.wires.now.us += 2_000_000; // the file is brought up to date once a second
    net.turn();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let line = r#"{"kind":"drop","room":"r","number":1,"receiver":"ann","text":"stamp"}"#;
    assert_eq!(text, format!("{line}\n"));
}
