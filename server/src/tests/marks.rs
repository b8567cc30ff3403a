//! Read markers: they grow, everybody is told, and they are kept without a row for each reading.

use protocols::yardstick::Encoding;

use super::durable::Kept;
use super::net::Net;
use super::talks::{ANN_IN, BOB_IN, play};
use crate::Config;
use crate::config::*;
use crate::store::{Done, Outcome, Trouble, Want};

#[test]
fn markers_grow_and_who_joins_is_told_how_far_everybody_is() {
    let talk = r#"
    bob> {"id":3,"read":{"room":"live"}}
    bob< {"answer":{"id":3,"done":{}}}
    ann> {"id":3,"say":{"room":"live","text":"a"}}
    ann< {"answer":{"id":3,"said":{"number":1,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":1,"sender":"ann","text":"a","atMs":"1700000000000"}}
    bob< {"message":{"room":"live","number":1,"sender":"ann","text":"a","atMs":"1700000000000"}}
    ann> {"id":4,"say":{"room":"live","text":"b"}}
    ann< {"answer":{"id":4,"said":{"number":2,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":2,"sender":"ann","text":"b","atMs":"1700000000000"}}
    bob< {"message":{"room":"live","number":2,"sender":"ann","text":"b","atMs":"1700000000000"}}
    bob> {"id":4,"read":{"room":"live","number":1,"name":"forged"}}
    bob< {"answer":{"id":4,"done":{}}}
    bob< {"read":{"room":"live","number":1,"name":"bob"}}
    ann< {"read":{"room":"live","number":1,"name":"bob"}}
    bob> {"id":5,"read":{"room":"live","number":1}}
    bob< {"answer":{"id":5,"done":{}}}
    bob> {"id":6,"read":{"room":"live","number":77}}
    bob< {"answer":{"id":6,"done":{}}}
    bob< {"read":{"room":"live","number":2,"name":"bob"}}
    ann< {"read":{"room":"live","number":2,"name":"bob"}}
    bob> {"id":7,"read":{"room":"live","number":1}}
    bob< {"answer":{"id":7,"done":{}}}
    ann> {"id":5,"read":{"room":"live"}}
    ann< {"answer":{"id":5,"done":{}}}
    ann< {"read":{"room":"live","number":2,"name":"ann"}}
    bob< {"read":{"room":"live","number":2,"name":"ann"}}
    ann> {"id":6,"read":{"room":"den"}}
    ann< {"answer":{"id":6,"error":{"code":"not_in_room","text":"not in den"}}}
    bob> {"id":8,"leave":{"room":"live"}}
    bob< {"answer":{"id":8,"done":{}}}
    ann< {"presence":{"room":"live","left":["bob"]}}
    bob> {"id":9,"join":{"room":"live","reads":true}}
    bob< {"answer":{"id":9,"joined":{"number":2,"reads":[{"number":2,"name":"ann"},{"number":2,"name":"bob"}]}}}
    ann< {"presence":{"room":"live","joined":[{"name":"bob"}]}}
    "#;
    play(&Config::default(), &format!("{ANN_IN}{BOB_IN}{talk}"));
}

#[test]
fn a_room_holds_so_many_markers_and_no_more() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    net.ask(ann, r#"{"say":{"room":"r","text":"x"}}"#);
    net.settle();
    net.hear(ann);
    let others = (1..MARKS_PER_ROOM_MAX).map(|number| (format!("p{number}").into(), 1));
    net.core.restore_marks(0, others.collect());
    let bob = net.person("bob", Encoding::Json);
    net.ask(bob, r#"{"join":{"room":"r"}}"#);
    for (id, is_full) in [(ann, false), (bob, true), (ann, false)] {
        net.settle();
        net.hear(id);
        net.ask(id, r#"{"id":7,"read":{"room":"r"}}"#);
        net.turn();
        assert_eq!(net.hear(id)[0].contains(r#""code":"full""#), is_full);
    }
}

/// Ann and `count` others in a room in which something was said.
fn crowd(count: usize) -> (Kept, Vec<usize>) {
    let mut kept = Kept::new(Config::default());
    let (ann, _) = kept.person("ann");
    let mut ids: Vec<usize> = (0..count).map(|n| kept.person(&format!("p{n:04}")).0).collect();
    ids.push(ann);
    for id in &ids {
        kept.net.ask(*id, r#"{"id":2,"join":{"room":"r"}}"#);
    }
    say(&mut kept, ann);
    (kept, ids)
}

fn say(kept: &mut Kept, id: usize) {
    kept.net.ask(id, r#"{"id":3,"say":{"room":"r","text":"x"}}"#);
    kept.commit();
    kept.net.settle();
}

fn read_all(kept: &mut Kept, ids: &[usize]) {
    ids.iter().for_each(|id| kept.net.ask(*id, r#"{"id":4,"read":{"room":"r"}}"#));
}

/// How many markers each job has that the store was given.
fn given(kept: &Kept) -> Vec<usize> {
    let marks = |want: &Want| match want {
        Want::Marks(rooms) => rooms.iter().map(|(_, marks)| marks.len()).sum(),
        other => panic!("{other:?}"),
    };
    kept.net.wires.to_store.iter().map(|job| marks(&job.want)).collect()
}

fn stored(kept: &Kept) -> Vec<(Box<str>, u32)> {
    let rooms = kept.store.load(0, 0).unwrap().rooms;
    rooms.into_iter().flat_map(|room| room.reads).collect()
}

#[test]
fn the_latest_of_everybody_is_written_once_a_second() {
    let (mut kept, ids) = crowd(40);
    let count = ids.len();
    read_all(&mut kept, &ids[..1]);
    kept.net.turn();
    assert_eq!(given(&kept), [1], "at once, if nothing was written for long");
    read_all(&mut kept, &ids);
    kept.net.turn();
    assert_eq!(given(&kept), [1], "the next ones wait");
    kept.commit();
    for _ in 0..5 {
        say(&mut kept, ids[0]);
        read_all(&mut kept, &ids);
        let due_us = kept.net.turn().unwrap();
        assert!(given(&kept).is_empty() && due_us <= kept.net.wires.now.us + 1_000_000);
    }
    assert_eq!(stored(&kept).len(), 1);
    kept.net.wires.now.us += MARKS_WRITE_EVERY.as_micros() as u64;
    kept.net.turn();
    assert_eq!(given(&kept), [count], "one row for each person, not for each reading");
    assert!(!kept.net.core.is_settled());
    kept.commit();
    assert!(kept.net.core.is_settled());
    assert!(stored(&kept).len() == count && stored(&kept).iter().all(|mark| mark.1 == 6));
    // Nothing is due any more.
    kept.net.wires.now.us += 10_000_000;
    kept.net.turn();
    assert!(given(&kept).is_empty());
}

#[test]
fn markers_survive_a_restart_and_the_end_does_not_wait() {
    let (mut kept, ids) = crowd(3);
    read_all(&mut kept, &ids[..1]);
    kept.net.turn();
    read_all(&mut kept, &ids[1..]);
    kept.net.core.stopping = true;
    kept.commit();
    kept.commit();
    assert!(kept.net.core.is_settled());
    let mut kept = kept.restart(Config::default());
    let (eve, _) = kept.person("eve");
    let joined = kept.ask(eve, r#"{"id":2,"join":{"room":"r","reads":true}}"#);
    let reads = r#""reads":[{"number":1,"name":"ann"},{"number":1,"name":"p0000"},"#;
    assert!(joined[0].contains(reads), "{joined:?}");
    // What was read before is known: nobody is told again.
    let (ann, _) = kept.person("ann");
    kept.ask(ann, r#"{"id":2,"join":{"room":"r"}}"#);
    let heard = kept.ask(ann, r#"{"id":3,"read":{"room":"r"}}"#);
    assert_eq!(heard, [r#"{"answer":{"id":3,"done":{}}}"#]);
}

#[test]
fn many_markers_are_written_in_parts_one_after_the_other() {
    let (mut kept, ids) = crowd(1);
    let many = 2 * MARKS_PER_WRITE_MAX + 500;
    // As if a write of all these had failed.
    let marks: Vec<(Box<str>, u32)> = (0..many).map(|n| (format!("q{n}").into(), 1)).collect();
    kept.net.core.restore_marks(0, marks.clone());
    kept.net.core.marks_written(vec![("r".into(), marks)], false, kept.net.wires.now.us);
    kept.net.turn();
    assert!(given(&kept).is_empty(), "after a failure they wait");
    kept.net.wires.now.us += MARKS_WRITE_EVERY.as_micros() as u64;
    kept.net.turn();
    read_all(&mut kept, &ids);
    for expect in [MARKS_PER_WRITE_MAX, MARKS_PER_WRITE_MAX, 500] {
        kept.net.turn();
        assert_eq!(given(&kept), [expect]);
        kept.net.commit(&mut kept.store);
    }
    kept.net.turn();
    assert!(given(&kept).is_empty(), "who came meanwhile is in the next round");
    kept.net.wires.now.us += MARKS_WRITE_EVERY.as_micros() as u64;
    kept.net.turn();
    assert_eq!(given(&kept), [ids.len()]);
    kept.commit();
    assert_eq!(stored(&kept).len(), many + ids.len());
}

#[test]
fn what_could_not_be_written_is_written_later_and_never_goes_back() {
    let (mut kept, ids) = crowd(2);
    read_all(&mut kept, &ids);
    kept.net.turn();
    let job = kept.net.wires.to_store.pop().unwrap();
    say(&mut kept, ids[0]);
    read_all(&mut kept, &ids[..1]); // waits already when the others wait again
    let late = job.clone();
    let outcome = Outcome::Failed(Trouble("disk full".to_owned()));
    kept.net.core.stored(Done { job, outcome, begins: true }, kept.net.wires.now);
    kept.net.turn();
    assert!(given(&kept).is_empty() && stored(&kept).is_empty());
    kept.net.wires.now.us += MARKS_WRITE_EVERY.as_micros() as u64;
    kept.net.turn();
    assert_eq!(given(&kept), [3]);
    kept.commit();
    let numbers = |kept: &Kept| stored(kept).into_iter().map(|mark| mark.1).collect::<Vec<_>>();
    assert_eq!(numbers(&kept), [1, 2, 1]);
    kept.store.carry_out(vec![late]);
    assert_eq!(numbers(&kept), [1, 2, 1], "an older number does not count");
}
