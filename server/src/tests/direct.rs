//! Direct messages and coming back, on a server that keeps things and on one that does not.

use protocols::wire::rng::SplitMix;
use protocols::yardstick::Encoding;

use super::net::Net;
use crate::config::{INBOX_MESSAGES_MAX, KEY_BYTES_MAX, PAGE_BYTES_MAX, TELL_NAMES_MAX};
use crate::store::Store;
use crate::store::tests::Scratch;
use crate::{Commit, Config};

/// A server, and its store if it has one.
struct Lab {
    scratch: Scratch,
    store: Option<Store>,
    net: Net,
}

impl Lab {
    fn new(keeps: bool, config: Config) -> Lab {
        let scratch = Scratch::new("direct");
        let store = keeps.then(|| Store::open(&scratch.path("db"), Commit::Late).unwrap());
        let net = match &store {
            Some(store) => Net::restored(config, 1, store),
            None => Net::new(config, 1),
        };
        Lab { scratch, store, net }
    }

    fn restart(&mut self, config: Config) {
        self.store = None;
        let store = Store::open(&self.scratch.path("db"), Commit::Late).unwrap();
        self.net = Net::restored(config, 1, &store);
        self.store = Some(store);
    }

    fn settle(&mut self) {
        for _ in 0..4 {
            self.net.turn();
            if let Some(store) = &mut self.store {
                self.net.commit(store);
            }
        }
        self.net.settle();
    }

    fn ask(&mut self, id: usize, json: &str) -> Vec<String> {
        self.net.ask(id, json);
        self.settle();
        self.net.hear(id)
    }

    /// Logs in; gives the connection and the welcome.
    fn person(&mut self, name: &str, encoding: Encoding) -> (usize, String) {
        let id = self.net.dial(encoding);
        let heard = self.ask(id, &format!(r#"{{"id":1,"login":{{"name":"{name}"}}}}"#));
        assert!(heard[0].contains("welcome"), "{heard:?}");
        (id, heard[0].clone())
    }
}

/// Numbers of all messages in what was heard, in order.
fn numbers(heard: &[String]) -> Vec<u32> {
    let message = |json: &str| -> Vec<u32> {
        let of_messages = json.split(r#""number":"#).skip(1);
        of_messages
            .filter(|rest| rest.contains(r#""sender""#))
            .filter_map(|rest| rest.split(',').next()?.parse().ok())
            .collect()
    };
    heard.iter().flat_map(|json| message(json)).collect()
}

fn tell(to: &[&str], text: &str, key: &str) -> String {
    let to = to.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(",");
    format!(r#"{{"id":7,"tell":{{"to":[{to}],"text":"{text}","key":"{key}"}}}}"#)
}

#[test]
fn everybody_named_is_told_on_every_connection_and_inboxes_have_no_gaps() {
    for keeps in [true, false] {
        let mut lab = Lab::new(keeps, Config::default());
        let (ann, _) = lab.person("ann", Encoding::Json);
        let (bob, _) = lab.person("bob", Encoding::Proto);
        let (again, _) = lab.person("bob", Encoding::Json);
        let (cid, _) = lab.person("cid", Encoding::Json);
        let said = lab.ask(ann, &tell(&["bob", "ann", "bob"], "psst", ""));
        assert_eq!(said.len(), 2, "{said:?}");
        let answer = said.iter().find(|json| json.contains(r#""said":{"atMs""#));
        assert!(answer.is_some(), "number 0 is left out: {said:?}");
        let live =
            r#"{"message":{"number":1,"sender":"ann","text":"psst","atMs":"1700000000000"}}"#;
        assert!(said.iter().any(|json| json == live), "to oneself: {said:?}");
        for id in [bob, again] {
            assert_eq!(lab.net.hear(id), [live], "once, though named twice");
        }
        assert!(lab.net.hear(cid).is_empty());
        lab.ask(cid, &tell(&["bob", "cid"], "hey", ""));
        assert_eq!(numbers(&lab.net.hear(again)), [2]);
        let page = lab.ask(again, r#"{"id":8,"history":{"limit":9}}"#);
        assert_eq!(numbers(&page), [1, 2], "{page:?}");
        assert!(page[0].contains(r#""sender":"cid","text":"hey""#));
        let (_, welcome) = lab.person("bob", Encoding::Json);
        assert!(welcome.contains(r#""told":2"#), "{welcome}");
        let (_, welcome) = lab.person("dan", Encoding::Json);
        assert!(!welcome.contains("told"), "{welcome}");
        let counters = &lab.net.core.counters;
        assert_eq!((counters.tells, counters.told, counters.deliveries), (2, 4, 3 + 3));
    }
}

#[test]
fn what_cannot_be_told_is_told_to_nobody() {
    for keeps in [true, false] {
        let mut lab = Lab::new(keeps, Config::default());
        let (ann, _) = lab.person("ann", Encoding::Json);
        let (bob, _) = lab.person("bob", Encoding::Json);
        let many: Vec<&str> = vec!["bob"; TELL_NAMES_MAX + 1];
        let long = "x".repeat(16 * 1024 + 1);
        let long_key = "k".repeat(KEY_BYTES_MAX + 1);
        let rows = [
            (tell(&["bob", "nobody"], "x", ""), "unknown_name"),
            (tell(&many, "x", ""), "too_many"),
            (tell(&[], "x", ""), "empty"),
            (tell(&["bob"], "", ""), "empty"),
            (tell(&["bob"], &long, ""), "too_long"),
            (tell(&["bob"], "x", &long_key), "too_long"),
        ];
        for (request, code) in rows {
            let heard = lab.ask(ann, &request).join("");
            assert!(heard.contains(&format!(r#""code":"{code}""#)), "{code}: {heard}");
        }
        assert!(lab.net.hear(bob).is_empty());
        let said = lab.ask(ann, &tell(&many[1..], "x", &long_key[1..])).join("");
        assert!(said.contains("said"), "{said}");
        assert_eq!(numbers(&lab.net.hear(bob)), [1]);
    }
}

#[test]
fn what_is_told_again_under_its_key_is_not_told_twice() {
    for keeps in [true, false] {
        let mut lab = Lab::new(keeps, Config::default());
        let (ann, _) = lab.person("ann", Encoding::Json);
        let (bob, _) = lab.person("bob", Encoding::Json);
        let failed = lab.ask(ann, &tell(&["nobody"], "x", "k1")).join("");
        assert!(failed.contains("unknown_name"), "what fails takes no key: {failed}");
        // Twice in one turn, and once more later.
        lab.net.ask(ann, &tell(&["bob"], "x", "k1"));
        lab.net.ask(ann, &tell(&["bob"], "x", "k1"));
        lab.settle();
        lab.net.wires.now.unix_ms += 5_000;
        let mut heard = lab.net.hear(ann);
        heard.extend(lab.ask(ann, &tell(&["bob"], "x", "k1")));
        let answer = r#"{"answer":{"id":7,"said":{"atMs":"1700000000000"}}}"#;
        assert_eq!(heard, [answer; 3]);
        assert_eq!(numbers(&lab.ask(bob, &tell(&["bob"], "y", "k1"))), [1, 2], "another's key");
        lab.ask(ann, &tell(&["bob"], "z", "k2"));
        assert_eq!(numbers(&lab.net.hear(bob)), [3]);
        if keeps {
            lab.restart(Config::default());
            let (ann, _) = lab.person("ann", Encoding::Json);
            assert_eq!(lab.ask(ann, &tell(&["bob"], "x", "k1")), [answer]);
            let (_, welcome) = lab.person("bob", Encoding::Json);
            assert!(welcome.contains(r#""told":3"#), "{welcome}");
        }
    }
}

#[test]
fn inboxes_go_on_after_a_restart_and_their_past_is_looked_up() {
    let mut lab = Lab::new(true, Config::default());
    let (ann, _) = lab.person("ann", Encoding::Json);
    lab.person("bob", Encoding::Json);
    for _ in 0..5 {
        lab.ask(ann, &tell(&["bob", "ann"], "x", ""));
    }
    lab.restart(Config::default());
    let (bob, welcome) = lab.person("bob", Encoding::Json);
    assert!(welcome.contains(r#""told":5"#), "{welcome}");
    lab.ask(bob, &tell(&["bob"], "y", ""));
    // before, limit, numbers
    let rows: [(u32, u32, &[u32]); 6] = [
        (0, 1, &[6]),
        (0, 3, &[4, 5, 6]),
        (6, 2, &[4, 5]),
        (3, 9, &[1, 2]),
        (1, 9, &[]),
        (0, 0, &[]),
    ];
    for (before, limit, expect) in rows {
        let get = format!(r#"{{"id":5,"history":{{"before":{before},"limit":{limit}}}}}"#);
        assert_eq!(numbers(&lab.ask(bob, &get)), expect, "{limit} before {before}");
    }
    assert_eq!(lab.net.core.counters.store_pages, 3);
}

#[test]
fn without_a_store_an_inbox_forgets_its_oldest() {
    let mut lab = Lab::new(false, Config::default());
    let (ann, _) = lab.person("ann", Encoding::Json);
    (0..INBOX_MESSAGES_MAX + 3).for_each(|_| lab.net.ask(ann, &tell(&["ann"], "x", "")));
    lab.settle();
    lab.net.hear(ann);
    let page = numbers(&lab.ask(ann, r#"{"id":5,"history":{"before":9,"limit":99}}"#));
    assert_eq!(page, [4, 5, 6, 7, 8]);
}

fn join(after: u32) -> String {
    format!(r#"{{"id":2,"join":{{"room":"live","history":3,"after":{after}}}}}"#)
}

const SAY: &str = r#"{"id":3,"say":{"room":"live","text":"hello"}}"#;

#[test]
fn who_comes_back_is_answered_with_what_it_missed_whether_memory_has_it_or_not() {
    for (keeps, history) in [(true, 3), (true, 0), (true, 100), (false, 100)] {
        let mut lab = Lab::new(keeps, Config { history, ..Config::default() });
        let (ann, _) = lab.person("ann", Encoding::Json);
        lab.ask(ann, &join(0));
        (0..9).for_each(|_| drop(lab.ask(ann, SAY)));
        let rows: [(u32, &[u32]); 5] =
            [(4, &[5, 6, 7, 8, 9]), (8, &[9]), (9, &[]), (1, &[2, 3, 4, 5, 6, 7, 8, 9]), (70, &[])];
        for (after, expect) in rows {
            let (bob, _) = lab.person("bob", Encoding::Proto);
            let heard = lab.ask(bob, &join(after));
            assert_eq!(numbers(&heard), expect, "after {after} of {history}: {heard:?}");
            assert!(heard[0].contains(r#""joined":{"number":9"#), "{heard:?}");
            lab.net.core.hung_up(bob);
            lab.settle();
        }
    }
}

#[test]
fn what_is_said_while_the_past_is_looked_up_comes_once() {
    // So many more than memory holds are said before the store has looked.
    for said in [0, 1, 3, 4, 12] {
        let mut lab = Lab::new(true, Config { history: 3, ..Config::default() });
        let (ann, _) = lab.person("ann", Encoding::Json);
        let (bob, _) = lab.person("bob", Encoding::Json);
        lab.ask(ann, &join(0));
        (0..9).for_each(|_| drop(lab.ask(ann, SAY)));
        lab.net.ask(bob, &join(2));
        lab.net.turn();
        assert!(lab.net.hear(bob).is_empty(), "it waits for the store");
        let early = lab.net.wires.to_store.split_off(0);
        (0..said).for_each(|_| lab.net.ask(ann, SAY));
        lab.net.turn();
        let later = lab.net.wires.to_store.split_off(0);
        // The page is read before those are said, and told after them.
        let store = lab.store.as_mut().unwrap();
        let mut done = store.carry_out(early);
        let mut said_done = store.carry_out(later);
        said_done.append(&mut done);
        said_done.into_iter().for_each(|done| lab.net.core.stored(done, lab.net.wires.now));
        lab.settle();
        lab.ask(ann, SAY);
        let heard = lab.net.hear(bob);
        let expect: Vec<u32> = (3..=9 + said + 1).collect();
        assert_eq!(numbers(&heard), expect, "{said} meanwhile: {heard:?}");
        assert!(heard[0].contains("joined"), "the answer comes first: {heard:?}");
    }
}

#[test]
fn who_waits_for_the_past_is_not_in_the_room_and_may_think_better_of_it() {
    let mut lab = Lab::new(true, Config { history: 1, ..Config::default() });
    let (ann, _) = lab.person("ann", Encoding::Json);
    lab.ask(ann, &join(0));
    (0..5).for_each(|_| drop(lab.ask(ann, SAY)));
    let (bob, _) = lab.person("bob", Encoding::Json);
    let (cid, _) = lab.person("cid", Encoding::Json);
    lab.net.ask(bob, &join(2));
    lab.net.ask(cid, &join(2));
    lab.net.ask(bob, &join(4));
    lab.net.ask(bob, SAY);
    lab.net.core.hung_up(cid);
    lab.settle();
    let heard = lab.net.hear(bob);
    // The second one needs nothing of the store, and is answered at once.
    assert_eq!(numbers(&heard[..1]), [5], "{heard:?}");
    let late = heard.iter().find(|json| json.contains("already_in_room"));
    assert!(late.is_some(), "{heard:?}");
    assert_eq!(lab.net.core.counters.members, 2);
}

#[test]
fn an_answer_holds_so_much_and_the_rest_is_paged() {
    let text = "x".repeat(16 * 1024);
    let say = format!(r#"{{"id":3,"say":{{"room":"live","text":"{text}"}}}}"#);
    for (keeps, history) in [(true, 5), (true, 1_000), (false, 1_000)] {
        let mut lab = Lab::new(keeps, Config { history, ..Config::default() });
        let (ann, _) = lab.person("ann", Encoding::Json);
        lab.ask(ann, &join(0));
        for _ in 0..100 {
            lab.net.ask(ann, &say);
        }
        lab.settle();
        let (bob, _) = lab.person("bob", Encoding::Json);
        let held = numbers(&lab.ask(bob, &join(1)));
        let most = PAGE_BYTES_MAX / text.len();
        assert_eq!(held, (101 - most as u32..=100).collect::<Vec<_>>(), "history {history}");
    }
}

/// Throttled and batched: what a member has not been sent when it goes is in the answer when it
/// comes back.
#[test]
fn nothing_is_missed_whatever_holds_messages_back() {
    for seed in 0..40 {
        let mut rng = SplitMix::new(seed);
        let rate = [0, 50][rng.below(2)];
        let config = Config { deliveries_per_second: rate, ..Config::default() };
        let mut lab = Lab::new(rng.below(2) == 0, config);
        lab.net.wires.write_cost_us = [0, 500][rng.below(2)];
        let (ann, _) = lab.person("ann", Encoding::Json);
        lab.ask(ann, &join(0));
        let (mut bob, _) = lab.person("bob", Encoding::ALL[rng.below(2)]);
        lab.ask(bob, &join(0));
        lab.ask(ann, SAY);
        let mut heard = Vec::new();
        for _ in 0..12 {
            (0..rng.below(9)).for_each(|_| lab.net.ask(ann, SAY));
            (0..rng.below(4)).for_each(|_| _ = lab.net.turn());
            lab.settle();
            heard.extend(numbers(&lab.net.hear(bob)));
            if let Some(&last) = heard.last().filter(|_| rng.below(2) == 0) {
                lab.net.core.broke(bob);
                (bob, _) = lab.person("bob", Encoding::ALL[rng.below(2)]);
                lab.net.ask(bob, &join(last));
            }
        }
        lab.net.wires.now.us += 60_000_000;
        lab.settle();
        lab.net.wires.now.us += 60_000_000;
        lab.settle();
        heard.extend(numbers(&lab.net.hear(bob)));
        let number = lab.net.core.rooms[0].number;
        assert_eq!(heard, (1..=number).collect::<Vec<_>>(), "seed {seed}, rate {rate}");
    }
}
