//! What was said before, where things are kept: the store decides, also about what memory has
//! forgotten, and what is on its way.

use super::durable::Kept;
use crate::Config;
use crate::config::*;

const JOIN: &str = r#"{"id":2,"join":{"room":"r"}}"#;
const ALL: &str = r#"{"id":9,"history":{"room":"r","limit":100}}"#;

/// A server that remembers two messages, and Ann and Bob in a room.
fn pair() -> (Kept, usize, usize) {
    let mut kept = Kept::new(Config { history: 2, ..Config::default() });
    let [ann, bob] = ["ann", "bob"].map(|name| kept.person(name).0);
    enter(&mut kept, &[ann, bob]);
    (kept, ann, bob)
}

fn enter(kept: &mut Kept, ids: &[usize]) {
    for id in ids {
        kept.net.ask(*id, JOIN);
        kept.net.settle();
    }
    ids.iter().for_each(|id| drop(kept.net.hear(*id)));
}

/// Asks, lets the store work, and gives what the asker hears of it.
fn ask(kept: &mut Kept, id: usize, json: &str) -> Vec<String> {
    kept.net.ask(id, json);
    kept.commit();
    kept.net.settle();
    kept.net.hear(id)
}

fn say(kept: &mut Kept, id: usize, rest: &str) -> Vec<String> {
    ask(kept, id, &format!(r#"{{"id":3,"say":{{"room":"r","text":"hello"{rest}}}}}"#))
}

fn said(number: u32) -> String {
    format!(r#"{{"answer":{{"id":3,"said":{{"number":{number},"atMs":"1700000000000"}}}}}}"#)
}

#[test]
fn the_same_key_twice_in_one_commit_is_one_message() {
    let (mut kept, ann, bob) = pair();
    let key = r#"{"id":3,"say":{"room":"r","text":"once","key":"k"}}"#;
    for id in [ann, ann, bob, bob, ann] {
        kept.net.ask(id, key);
    }
    kept.net.turn();
    assert_eq!(kept.net.wires.to_store.len(), 5, "the store decides");
    kept.commit();
    kept.net.settle();
    for (id, number, count) in [(ann, 1, 3), (bob, 2, 2)] {
        let heard = kept.net.hear(id);
        let answers = heard.iter().filter(|json| **json == said(number)).count();
        let messages = heard.iter().filter(|json| json.starts_with(r#"{"message""#)).count();
        assert_eq!((answers, messages), (count, 2), "{heard:?}");
    }
    // Later, when memory has forgotten it, and after a restart.
    (0..3).for_each(|_| drop(say(&mut kept, ann, "")));
    assert_eq!(say(&mut kept, ann, r#","key":"k""#), [said(1)]);
    let mut kept = kept.restart(Config::default());
    let [ann, bob] = ["ann", "bob"].map(|name| kept.person(name).0);
    enter(&mut kept, &[ann, bob]);
    assert_eq!(say(&mut kept, bob, r#","key":"k""#), [said(2)]);
    assert_eq!(say(&mut kept, ann, r#","key":"k","replyTo":77"#), [said(1)]);
    assert_eq!(say(&mut kept, ann, r#","key":"other""#)[0], said(6));
    assert!(kept.net.core.rooms[0].keys.is_empty(), "memory needs no keys");
    assert!(kept.net.core.rooms[0].past.iter().all(|stored| stored.extra.is_none()));
}

#[test]
fn nobody_hears_of_a_change_before_it_is_stored() {
    let (mut kept, ann, bob) = pair();
    say(&mut kept, ann, "");
    kept.net.hear(bob);
    kept.net.ask(ann, r#"{"id":4,"edit":{"room":"r","number":1,"text":"new"}}"#);
    kept.net.ask(ann, r#"{"id":5,"edit":{"room":"r","number":1,"text":"new"}}"#);
    kept.net.settle();
    assert!(kept.net.hear(ann).is_empty() && kept.net.hear(bob).is_empty());
    let page = kept.ask(bob, r#"{"id":9,"history":{"room":"r","limit":1}}"#);
    assert!(page[0].contains("hello"), "{page:?}");
    kept.commit();
    kept.net.settle();
    let change =
        r#"{"change":{"room":"r","number":1,"name":"ann","text":"new","atMs":"1700000000000"}}"#;
    let [first, second] = [4, 5].map(|id| format!(r#"{{"answer":{{"id":{id},"done":{{}}}}}}"#));
    assert_eq!(kept.net.hear(ann), [&*first, &second, change]);
    // Whoever asked may be gone: the effect does not depend on it.
    kept.net.hear(bob);
    kept.net.ask(ann, r#"{"id":6,"delete":{"room":"r","number":1}}"#);
    kept.net.core.hung_up(ann);
    kept.commit();
    kept.net.settle();
    let heard = kept.net.hear(bob);
    assert!(heard.iter().any(|json| json.contains(r#""deleted":true"#)), "{heard:?}");
    assert_eq!(&*kept.net.core.rooms[0].past[0].text, "");
}

#[test]
fn what_memory_has_forgotten_the_store_changes() {
    let (mut kept, ann, bob) = pair();
    (0..5).for_each(|_| drop(say(&mut kept, ann, "")));
    kept.net.hear(bob);
    let rows = [
        (ann, r#""edit":{"room":"r","number":1,"text":"first"}"#, "done", true),
        (bob, r#""edit":{"room":"r","number":1,"text":"mine"}"#, "not_yours", false),
        (bob, r#""react":{"room":"r","number":1,"reaction":"+1"}"#, "done", true),
        (bob, r#""react":{"room":"r","number":1,"reaction":"+1"}"#, "done", false),
        (ann, r#""react":{"room":"r","number":1,"reaction":"+1"}"#, "done", true),
        (bob, r#""react":{"room":"r","number":2,"reaction":"-1"}"#, "done", true),
        (ann, r#""delete":{"room":"r","number":2}"#, "done", true),
        (ann, r#""delete":{"room":"r","number":2}"#, "done", false),
        (bob, r#""react":{"room":"r","number":2,"reaction":"-1"}"#, "no_message", false),
        (bob, r#""delete":{"room":"r","number":3}"#, "not_yours", false),
        (bob, r#""edit":{"room":"r","number":6,"text":"x"}"#, "no_message", false),
        (bob, r#""say":{"room":"r","text":"x","replyTo":2}"#, "no_message", false),
        (bob, r#""say":{"room":"r","text":"x","replyTo":6}"#, "no_message", false),
        (bob, r#""say":{"room":"r","text":"x","replyTo":1}"#, "said", false),
    ];
    for (id, request, answer, is_told) in rows {
        let heard = ask(&mut kept, id, &format!(r#"{{"id":4,{request}}}"#));
        assert!(heard[0].contains(&format!("\"{answer}\"")), "{request}: {heard:?}");
        for other in [ann, bob] {
            let told = if other == id { heard.clone() } else { kept.net.hear(other) };
            let changes = told.iter().filter(|json| json.starts_with(r#"{"change""#)).count();
            assert_eq!(changes, usize::from(is_told), "{request}: {told:?}");
        }
    }
    let page = r#"{"answer":{"id":9,"history":{"messages":[{"number":1,"sender":"ann","text":"first","atMs":"1700000000000","editedMs":"1700000000000","reactions":[{"reaction":"+1","names":["ann","bob"]}]},{"number":2,"sender":"ann","atMs":"1700000000000","deleted":true},{"number":3,"#;
    let heard = ask(&mut kept, ann, ALL);
    assert!(heard[0].starts_with(page), "{heard:?}");
    assert!(heard[0].ends_with(r#""text":"x","atMs":"1700000000000","replyTo":1}]}}}"#));
    assert_eq!(kept.net.core.rooms[0].past.len(), 2);
    // A restart that remembers more tells the same.
    let mut kept = kept.restart(Config::default());
    let (ann, _) = kept.person("ann");
    enter(&mut kept, &[ann]);
    assert_eq!(kept.ask(ann, ALL), heard);
    assert!(kept.net.wires.to_store.is_empty());
}

#[test]
fn reactions_have_the_same_limits_in_the_store() {
    let (mut kept, ann, bob) = pair();
    (0..4).for_each(|_| drop(say(&mut kept, ann, "")));
    let mut react = |id: usize, reaction: &str, remove: bool| {
        let react = format!(r#""reaction":"{reaction}","remove":{remove}"#);
        let react = format!(r#"{{"id":4,"react":{{"room":"r","number":1,{react}}}}}"#);
        let heard = ask(&mut kept, id, &react);
        heard.iter().any(|json| json.contains(r#""code":"full""#))
    };
    let fulls: Vec<bool> =
        (0..REACTIONS_MAX).map(|n| react(ann, &format!("k{n}"), false)).collect();
    assert_eq!(fulls, [false; REACTIONS_MAX]);
    let rows = [
        (bob, "new", false, true),
        (bob, "k3", false, false),
        (ann, "k0", true, false),
        (bob, "new", false, false),
        (ann, "k0", false, true),
        (ann, "k0", true, false),
    ];
    for (id, reaction, remove, is_full) in rows {
        assert_eq!(react(id, reaction, remove), is_full, "{reaction} {remove}");
    }
}
