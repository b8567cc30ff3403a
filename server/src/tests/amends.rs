//! Conversations about messages that were said: replies, keys, edits, deletions, reactions.

use protocols::yardstick::Encoding;

use super::net::Net;
use super::talks::{ANN_IN, BOB_IN, play};
use crate::Config;
use crate::chat::amend::{Amend, How};
use crate::config::*;

/// Ann says `one`, and both hear it.
const ONE: &str = r#"
    ann> {"id":3,"say":{"room":"live","text":"one"}}
    ann< {"answer":{"id":3,"said":{"number":1,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":1,"sender":"ann","text":"one","atMs":"1700000000000"}}
    bob< {"message":{"room":"live","number":1,"sender":"ann","text":"one","atMs":"1700000000000"}}
"#;

fn talk(config: &Config, rest: &str) {
    play(config, &format!("{ANN_IN}{BOB_IN}{ONE}{rest}"));
}

#[test]
fn a_reply_names_the_message_it_is_about() {
    let rest = r#"
    bob> {"id":4,"say":{"room":"live","text":"two","replyTo":1}}
    bob< {"answer":{"id":4,"said":{"number":2,"atMs":"1700000000000"}}}
    bob< {"message":{"room":"live","number":2,"sender":"bob","text":"two","atMs":"1700000000000","replyTo":1}}
    ann< {"message":{"room":"live","number":2,"sender":"bob","text":"two","atMs":"1700000000000","replyTo":1}}
    bob> {"id":5,"say":{"room":"live","text":"x","replyTo":3}}
    bob< {"answer":{"id":5,"error":{"code":"no_message","text":"there is no message 3"}}}
    bob> {"id":6,"history":{"room":"live","limit":1}}
    bob< {"answer":{"id":6,"history":{"messages":[{"number":2,"sender":"bob","text":"two","atMs":"1700000000000","replyTo":1}]}}}
    ann> {"id":7,"delete":{"room":"live","number":1}}
    ann< {"answer":{"id":7,"done":{}}}
    ann< {"change":{"room":"live","number":1,"name":"ann","deleted":true,"atMs":"1700000000000"}}
    bob< {"change":{"room":"live","number":1,"name":"ann","deleted":true,"atMs":"1700000000000"}}
    bob> {"id":8,"say":{"room":"live","text":"x","replyTo":1}}
    bob< {"answer":{"id":8,"error":{"code":"no_message","text":"there is no message 1"}}}
    "#;
    talk(&Config::default(), rest);
}

#[test]
fn only_who_said_it_edits_it_and_everybody_is_told_once() {
    let rest = r#"
    ann> {"id":4,"edit":{"room":"live","number":1,"text":"uno"}}
    ann< {"answer":{"id":4,"done":{}}}
    ann< {"change":{"room":"live","number":1,"name":"ann","text":"uno","atMs":"1700000000000"}}
    bob< {"change":{"room":"live","number":1,"name":"ann","text":"uno","atMs":"1700000000000"}}
    ann> {"id":5,"edit":{"room":"live","number":1,"text":"uno"}}
    ann< {"answer":{"id":5,"done":{}}}
    bob> {"id":6,"edit":{"room":"live","number":1,"text":"mine"}}
    bob< {"answer":{"id":6,"error":{"code":"not_yours","text":"only who said it can change it"}}}
    ann> {"id":7,"edit":{"room":"live","number":2,"text":"uno"}}
    ann< {"answer":{"id":7,"error":{"code":"no_message","text":"there is no message 2"}}}
    ann> {"id":8,"edit":{"room":"live","number":1}}
    ann< {"answer":{"id":8,"error":{"code":"empty","text":"a message has at least one byte"}}}
    ann> {"id":9,"edit":{"room":"den","number":1,"text":"x"}}
    ann< {"answer":{"id":9,"error":{"code":"not_in_room","text":"not in den"}}}
    cyd> {"id":1,"login":{"name":"cyd"}}
    cyd< {"answer":{"id":1,"welcome":{"name":"cyd","token":"*","expiresMs":"1700086400000"}}}
    cyd> {"id":2,"join":{"room":"live","history":5}}
    cyd< {"answer":{"id":2,"joined":{"number":1,"messages":[{"number":1,"sender":"ann","text":"uno","atMs":"1700000000000","editedMs":"1700000000000"}]}}}
    ann< {"presence":{"room":"live","joined":[{"name":"cyd"}]}}
    bob< {"presence":{"room":"live","joined":[{"name":"cyd"}]}}
    "#;
    talk(&Config::default(), rest);
}

#[test]
fn what_is_deleted_leaves_its_number_only() {
    let rest = r#"
    bob> {"id":4,"react":{"room":"live","number":1,"reaction":"+1"}}
    bob< {"answer":{"id":4,"done":{}}}
    bob< {"change":{"room":"live","number":1,"name":"bob","reaction":"+1","atMs":"1700000000000"}}
    ann< {"change":{"room":"live","number":1,"name":"bob","reaction":"+1","atMs":"1700000000000"}}
    bob> {"id":5,"delete":{"room":"live","number":1}}
    bob< {"answer":{"id":5,"error":{"code":"not_yours","text":"only who said it can change it"}}}
    ann> {"id":6,"delete":{"room":"live","number":1}}
    ann< {"answer":{"id":6,"done":{}}}
    ann< {"change":{"room":"live","number":1,"name":"ann","deleted":true,"atMs":"1700000000000"}}
    bob< {"change":{"room":"live","number":1,"name":"ann","deleted":true,"atMs":"1700000000000"}}
    ann> {"id":7,"delete":{"room":"live","number":1}}
    ann< {"answer":{"id":7,"done":{}}}
    ann> {"id":8,"edit":{"room":"live","number":1,"text":"again"}}
    ann< {"answer":{"id":8,"error":{"code":"no_message","text":"there is no message 1"}}}
    bob> {"id":9,"react":{"room":"live","number":1,"reaction":"+1","remove":true}}
    bob< {"answer":{"id":9,"error":{"code":"no_message","text":"there is no message 1"}}}
    bob> {"id":10,"delete":{"room":"live","number":1}}
    bob< {"answer":{"id":10,"error":{"code":"no_message","text":"there is no message 1"}}}
    bob> {"id":11,"history":{"room":"live","limit":5}}
    bob< {"answer":{"id":11,"history":{"messages":[{"number":1,"sender":"ann","atMs":"1700000000000","deleted":true}]}}}
    "#;
    talk(&Config::default(), rest);
}

#[test]
fn reactions_are_announced_when_something_changes() {
    let rest = r#"
    bob> {"id":4,"react":{"room":"live","number":1,"reaction":"+1"}}
    bob< {"answer":{"id":4,"done":{}}}
    bob< {"change":{"room":"live","number":1,"name":"bob","reaction":"+1","atMs":"1700000000000"}}
    ann< {"change":{"room":"live","number":1,"name":"bob","reaction":"+1","atMs":"1700000000000"}}
    bob> {"id":5,"react":{"room":"live","number":1,"reaction":"+1"}}
    bob< {"answer":{"id":5,"done":{}}}
    ann> {"id":6,"react":{"room":"live","number":1,"reaction":"+1"}}
    ann< {"answer":{"id":6,"done":{}}}
    ann< {"change":{"room":"live","number":1,"name":"ann","reaction":"+1","atMs":"1700000000000"}}
    bob< {"change":{"room":"live","number":1,"name":"ann","reaction":"+1","atMs":"1700000000000"}}
    ann> {"id":7,"history":{"room":"live","limit":5}}
    ann< {"answer":{"id":7,"history":{"messages":[{"number":1,"sender":"ann","text":"one","atMs":"1700000000000","reactions":[{"reaction":"+1","names":["ann","bob"]}]}]}}}
    bob> {"id":8,"react":{"room":"live","number":1,"reaction":"+1","remove":true}}
    bob< {"answer":{"id":8,"done":{}}}
    bob< {"change":{"room":"live","number":1,"name":"bob","reaction":"+1","removed":true,"atMs":"1700000000000"}}
    ann< {"change":{"room":"live","number":1,"name":"bob","reaction":"+1","removed":true,"atMs":"1700000000000"}}
    bob> {"id":9,"react":{"room":"live","number":1,"reaction":"+1","remove":true}}
    bob< {"answer":{"id":9,"done":{}}}
    bob> {"id":10,"react":{"room":"live","number":1}}
    bob< {"answer":{"id":10,"error":{"code":"empty","text":"a reaction has at least one byte"}}}
    bob> {"id":11,"react":{"room":"live","number":1,"reaction":"123456789012345678901234567890123"}}
    bob< {"answer":{"id":11,"error":{"code":"too_long","text":"a reaction has up to 32 bytes"}}}
    "#;
    talk(&Config::default(), rest);
}

#[test]
fn what_is_said_again_with_its_key_is_answered_as_then() {
    let rest = r#"
    ann> {"id":4,"say":{"room":"live","text":"two","key":"k"}}
    ann< {"answer":{"id":4,"said":{"number":2,"atMs":"1700000000000"}}}
    ann< {"message":{"room":"live","number":2,"sender":"ann","text":"two","atMs":"1700000000000"}}
    bob< {"message":{"room":"live","number":2,"sender":"ann","text":"two","atMs":"1700000000000"}}
    ann> {"id":5,"say":{"room":"live","text":"two","key":"k"}}
    ann< {"answer":{"id":5,"said":{"number":2,"atMs":"1700000000000"}}}
    bob> {"id":6,"say":{"room":"live","text":"mine","key":"k"}}
    bob< {"answer":{"id":6,"said":{"number":3,"atMs":"1700000000000"}}}
    bob< {"message":{"room":"live","number":3,"sender":"bob","text":"mine","atMs":"1700000000000"}}
    ann< {"message":{"room":"live","number":3,"sender":"bob","text":"mine","atMs":"1700000000000"}}
    ann> {"id":7,"delete":{"room":"live","number":2}}
    ann< {"answer":{"id":7,"done":{}}}
    ann< {"change":{"room":"live","number":2,"name":"ann","deleted":true,"atMs":"1700000000000"}}
    bob< {"change":{"room":"live","number":2,"name":"ann","deleted":true,"atMs":"1700000000000"}}
    ann> {"id":8,"say":{"room":"live","text":"two","key":"k"}}
    ann< {"answer":{"id":8,"said":{"number":2,"atMs":"1700000000000"}}}
    ann> {"id":9,"say":{"room":"live","text":"x","key":"12345678901234567890123456789012345678901234567890123456789012345"}}
    ann< {"answer":{"id":9,"error":{"code":"too_long","text":"a key has up to 64 bytes"}}}
    "#;
    talk(&Config::default(), rest);
}

#[test]
fn a_key_is_of_one_room_and_counts_as_long_as_its_message_is_remembered() {
    let mut net = Net::new(Config { history: 2, ..Config::default() }, 1);
    let ann = net.person("ann", Encoding::Json);
    let mut say = |room: &str, key: &str| {
        net.ask(ann, &format!(r#"{{"join":{{"room":"{room}"}}}}"#));
        net.turn();
        net.hear(ann);
        net.ask(ann, &format!(r#"{{"say":{{"room":"{room}","text":"x","key":"{key}"}}}}"#));
        net.turn();
        let heard = net.hear(ann);
        let number = heard[0].split(r#""said":{"number":"#).nth(1).expect(&heard[0]);
        let keys: usize = net.core.rooms.iter().map(|room| room.keys.len()).sum();
        (number.split(',').next().unwrap().parse::<u32>().unwrap(), keys)
    };
    assert_eq!([say("r", "a"), say("s", "a"), say("r", "a")], [(1, 1), (1, 2), (1, 2)]);
    assert_eq!([say("r", "b"), say("r", "a")], [(2, 3), (1, 3)]);
    assert_eq!([say("r", "c"), say("r", "b")], [(3, 3), (2, 3)]);
    assert_eq!([say("r", "a"), say("r", "c")], [(4, 3), (3, 3)]);
    let none = say("r", "");
    assert_eq!(none, (5, 2), "keys are forgotten with their messages");
}

#[test]
fn what_is_forgotten_is_no_message_where_nothing_is_kept() {
    let mut net = Net::new(Config { history: 2, ..Config::default() }, 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    (0..3).for_each(|_| net.ask(ann, r#"{"say":{"room":"r","text":"x"}}"#));
    net.turn();
    net.hear(ann);
    let requests = [
        r#"{"edit":{"room":"r","number":N,"text":"y"}}"#,
        r#"{"react":{"room":"r","number":N,"reaction":"+"}}"#,
        r#"{"say":{"room":"r","text":"z","replyTo":N}}"#,
        r#"{"delete":{"room":"r","number":N}}"#,
    ];
    for request in requests {
        for number in [0, 1, 99] {
            net.ask(ann, &request.replace('N', &number.to_string()));
            net.turn();
            let heard = net.hear(ann);
            let is_refused = heard[0].contains(r#""code":"no_message""#);
            let is_plain = number == 0 && request.contains("replyTo"); // it replies to nothing
            assert_eq!(is_refused, !is_plain, "{request} {number}: {heard:?}");
        }
    }
}

#[test]
fn reactions_have_limits_and_memory_is_given_back() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    net.ask(ann, r#"{"say":{"room":"r","text":"x"}}"#);
    net.settle();
    net.hear(ann);
    let before = net.core.history_bytes;
    let mut react = |kind: usize, remove: bool| {
        let react = format!(r#"{{"room":"r","number":1,"reaction":"k{kind}","remove":{remove}}}"#);
        net.ask(ann, &format!(r#"{{"react":{react}}}"#));
        net.settle();
        let heard = net.hear(ann);
        (heard.len(), heard[0].contains(r#""code":"full""#))
    };
    for kind in 0..REACTIONS_MAX {
        assert_eq!(react(kind, false), (2, false), "{kind}");
    }
    assert_eq!(react(99, false), (1, true));
    assert_eq!(react(0, false), (1, false));
    assert_eq!([react(0, true), react(99, false)], [(2, false); 2]);
    for kind in (1..REACTIONS_MAX).chain([99]) {
        react(kind, true);
    }
    assert_eq!(net.core.history_bytes, before);
    assert!(net.core.rooms[0].past[0].extra.is_none());
}

#[test]
fn an_edit_cannot_make_memory_grow_beyond_its_limit() {
    let mut net = Net::new(Config::default(), 1);
    let ann = net.person("ann", Encoding::Json);
    net.ask(ann, r#"{"join":{"room":"r"}}"#);
    (0..3).for_each(|_| net.ask(ann, r#"{"say":{"room":"r","text":"x"}}"#));
    net.settle();
    net.hear(ann);
    // As if other rooms had nearly all of it.
    net.core.history_bytes = HISTORY_BYTES_MAX;
    let text = "y".repeat(100);
    net.ask(ann, &format!(r#"{{"edit":{{"room":"r","number":3,"text":"{text}"}}}}"#));
    net.settle();
    let heard = net.hear(ann);
    assert!(heard[1].contains(&text), "{heard:?}");
    assert!(net.core.history_bytes <= HISTORY_BYTES_MAX && net.core.rooms[0].past.len() < 3);
}

#[test]
fn who_may_do_what_to_which_message() {
    let edit = |text: &str| How::Edit(text.into());
    let delete = |others| How::Delete { others };
    let react = || How::React { reaction: "+1".into(), remove: false };
    let (done, so_already) = ("Changed(true)", "Changed(false)");
    // who, what, is it deleted, and what comes of it
    let rows = [
        ("ann", edit("new"), false, done),
        ("ann", edit("old"), false, so_already),
        ("ann", edit("new"), true, "no_message"),
        ("bob", edit("new"), false, "not_yours"),
        ("bob", edit("new"), true, "no_message"),
        ("ann", delete(false), false, done),
        ("ann", delete(false), true, so_already),
        ("bob", delete(false), false, "not_yours"),
        ("bob", delete(false), true, "no_message"),
        ("bob", delete(true), false, done),
        ("bob", delete(true), true, so_already),
        ("bob", react(), false, "None"),
        ("bob", react(), true, "no_message"),
    ];
    for (name, how, deleted, expect) in rows {
        let what = format!("{name}, {how:?}, {deleted}");
        let (room, name) = ("r".into(), name.into());
        let amend = Amend { room, number: 1, name, at_ms: 5, how };
        let outcome = format!("{:?}", amend.judge("ann", "old", deleted));
        assert!(outcome.contains(expect), "{what}: {outcome}");
    }
}

#[test]
fn a_plain_message_takes_one_pointer_more() {
    let size = size_of::<crate::chat::room::Stored>();
    assert!(size <= 56, "{size} bytes");
    let size = size_of::<crate::store::Job>();
    assert!(size <= 112, "{size} bytes");
}
