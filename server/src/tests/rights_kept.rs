//! Rights where things are kept: they survive, and what is disputed is decided in one order.

use super::durable::Kept;
use crate::Config;
use crate::store::{Done, Outcome, Trouble};

fn fine(id: u32) -> String {
    format!(r#"{{"answer":{{"id":{id},"done":{{}}}}}}"#)
}

fn grant(id: u32, name: &str, role: &str) -> String {
    let grant = format!(r#"{{"room":"den","name":"{name}","role":"{role}"}}"#);
    format!(r#"{{"id":{id},"grant":{grant}}}"#)
}

const CREATE: &str = r#"{"id":2,"create":{"room":"den"}}"#;
const CREATE_PRIVATE: &str = r#"{"id":2,"create":{"room":"den","private":true,"slowMs":70}}"#;
const JOIN: &str = r#"{"id":3,"join":{"room":"den"}}"#;
const RIGHTS: &str = r#"{"id":9,"rights":{"room":"den"}}"#;

/// Everything heard that is an answer with this id, without what is around its content.
fn answers(heard: &[String], id: u32) -> Vec<&str> {
    let start = format!(r#"{{"answer":{{"id":{id},"#);
    heard.iter().filter_map(|json| json.strip_prefix(&start)?.strip_suffix("}}")).collect()
}

impl Kept {
    /// Asks and lets the store do it.
    fn ask_and_wait(&mut self, id: usize, json: &str) -> Vec<String> {
        let mut heard = self.ask(id, json);
        self.commit();
        heard.extend(self.net.hear(id));
        heard
    }

    fn roles(&mut self, id: usize) -> String {
        let heard = self.ask(id, RIGHTS);
        answers(&heard, 9).join("").replace(r#""rights":"#, "").replace(r#""name":"#, "")
    }
}

#[test]
fn rights_survive_a_restart() {
    let mut kept = Kept::new(Config::default());
    let [(ann, _), (bob, _), (cyd, _)] = ["ann", "bob", "cyd"].map(|name| kept.person(name));
    assert_eq!(kept.ask(ann, CREATE_PRIVATE), [""; 0], "it is not stored yet");
    kept.commit();
    assert_eq!(kept.net.hear(ann), [fine(2)]);
    for (name, role) in [("bob", "moderator"), ("cyd", "member"), ("cyd", "muted")] {
        assert!(kept.ask_and_wait(ann, &grant(4, name, role)).contains(&fine(4)));
    }
    let given = grant(5, "bob", "none");
    assert!(kept.ask_and_wait(bob, &given).contains(&fine(5)));
    let before = kept.roles(ann);
    let expect = r#"[{"ann","role":"owner"},{"cyd","role":"muted"}]"#;
    assert_eq!(before, format!(r#"{{{expect},"private":true,"slowMs":70}}"#));
    assert_eq!(kept.net.core.counters.roles, 2);
    kept.ask_and_wait(cyd, JOIN);
    let mut kept = kept.restart(Config::default());
    let [(ann, _), (bob, _), (cyd, _)] = ["ann", "bob", "cyd"].map(|name| kept.person(name));
    assert_eq!(kept.roles(ann), before);
    assert_eq!((kept.net.core.counters.roles, kept.net.core.counters.rooms), (2, 1));
    assert_eq!(answers(&kept.ask(cyd, JOIN), 3), [r#""joined":{"role":"muted"}"#]);
    assert!(kept.ask(bob, JOIN)[0].contains("no_room"));
    let open = r#"{"id":6,"configure":{"room":"den"}}"#;
    assert!(kept.ask_and_wait(ann, open).contains(&fine(6)));
    let mut kept = kept.restart(Config::default());
    let (bob, _) = kept.person("bob");
    assert_eq!(answers(&kept.ask(bob, JOIN), 3), [r#""joined":{"role":"none"}"#]);
    assert!(!kept.roles(bob).contains("private") && !kept.roles(bob).contains("slowMs"));
}

#[test]
fn of_two_who_make_a_room_one_has_it() {
    let mut kept = Kept::new(Config::default());
    let [(ann, _), (bob, _)] = ["ann", "bob"].map(|name| kept.person(name));
    kept.ask(ann, CREATE);
    kept.ask(bob, CREATE_PRIVATE);
    kept.commit();
    assert_eq!(kept.net.hear(ann), [fine(2)]);
    let heard = kept.net.hear(bob);
    assert!(heard.len() == 1 && heard[0].contains(r#""code":"room_exists""#), "{heard:?}");
    assert_eq!(kept.roles(bob), r#"{[{"ann","role":"owner"}]}"#);
}

#[test]
fn what_is_asked_in_a_row_is_done_in_a_row() {
    let mut kept = Kept::new(Config::default());
    let [(ann, _), (bob, _), (cyd, _)] = ["ann", "bob", "cyd"].map(|name| kept.person(name));
    // Nothing of it is stored when the next one is asked.
    kept.ask(ann, CREATE);
    kept.ask(ann, &grant(3, "bob", "owner"));
    kept.ask(bob, &grant(4, "cyd", "moderator"));
    kept.ask(bob, &grant(5, "ann", "none"));
    kept.ask(ann, &grant(6, "bob", "none")); // no longer an owner
    kept.ask(cyd, &grant(7, "cyd", "owner")); // never one
    kept.ask(bob, &grant(8, "bob", "member")); // the last one now
    kept.commit();
    let heard = [ann, bob, cyd].map(|id| kept.net.hear(id));
    let code = |who: usize, id| {
        let told = answers(&heard[who], id).join("");
        told.split('"').nth(5).unwrap_or("done").to_owned()
    };
    let codes = [code(0, 2), code(0, 3), code(1, 4), code(1, 5)];
    assert_eq!(codes, ["done"; 4], "{heard:?}");
    assert_eq!([code(0, 6), code(2, 7), code(1, 8)], ["not_allowed", "not_allowed", "last_owner"]);
    let expect = r#"{[{"bob","role":"owner"},{"cyd","role":"moderator"}]}"#;
    assert_eq!(kept.roles(ann), expect);
    let mut kept = kept.restart(Config::default());
    let (ann, _) = kept.person("ann");
    assert_eq!(kept.roles(ann), expect);
}

#[test]
fn who_enters_while_a_room_is_made_is_in_a_room_with_an_owner_or_out() {
    for (create, role, is_in) in [(CREATE, "none", true), (CREATE_PRIVATE, "none", false)] {
        let mut kept = Kept::new(Config::default());
        let [(ann, _), (bob, _)] = ["ann", "bob"].map(|name| kept.person(name));
        kept.ask(ann, create);
        assert_eq!(answers(&kept.ask(bob, JOIN), 3), [r#""joined":{}"#], "no room as yet");
        kept.commit();
        let heard = kept.net.hear(bob).join("");
        assert!(heard.contains(r#""what":"configured","by":"ann""#), "{heard}");
        let say = kept.ask_and_wait(bob, r#"{"id":7,"say":{"room":"den","text":"x"}}"#);
        assert_eq!(say.join("").contains(r#""said""#), is_in, "{say:?}");
        let rooms = kept.ask(bob, r#"{"id":8,"rooms":{}}"#).join("");
        assert_eq!(rooms.contains(&format!(r#""role":"{role}""#)), is_in, "{rooms}");
        let joined = kept.ask(ann, JOIN).join("");
        let number = if is_in { r#""number":1,"# } else { "" };
        assert!(joined.contains(&format!(r#""joined":{{{number}"role":"owner"}}"#)), "{joined}");
    }
}

#[test]
fn what_is_asked_is_done_though_the_asker_has_gone() {
    let mut kept = Kept::new(Config::default());
    let [(ann, _), (bob, _)] = ["ann", "bob"].map(|name| kept.person(name));
    kept.ask_and_wait(ann, CREATE);
    kept.ask(bob, JOIN);
    kept.ask(ann, &grant(4, "bob", "banned"));
    kept.net.core.hung_up(ann);
    kept.net.turn();
    kept.commit();
    let heard = kept.net.hear(bob);
    let notice =
        r#"{"notice":{"room":"den","what":"role","name":"bob","role":"banned","by":"ann"}}"#;
    assert_eq!(heard, [notice]);
    assert!(kept.ask(bob, JOIN)[0].contains(r#""code":"banned""#));
}

#[test]
fn what_could_not_be_stored_changes_nothing() {
    let mut kept = Kept::new(Config::default());
    let [(ann, _), (bob, _)] = ["ann", "bob"].map(|name| kept.person(name));
    kept.ask_and_wait(ann, CREATE);
    kept.ask(bob, JOIN);
    kept.ask(ann, &grant(4, "bob", "banned"));
    kept.ask(ann, r#"{"id":5,"kick":{"room":"den","name":"bob"}}"#);
    kept.ask(ann, r#"{"id":6,"create":{"room":"fen"}}"#);
    for job in std::mem::take(&mut kept.net.wires.to_store) {
        let outcome = Outcome::Failed(Trouble("disk full".to_owned()));
        kept.net.core.stored(Done { job, outcome, begins: false }, kept.net.wires.now);
    }
    kept.net.settle();
    let heard = kept.net.hear(ann);
    assert_eq!(heard.iter().filter(|json| json.contains("not_stored")).count(), 3, "{heard:?}");
    assert_eq!(kept.net.hear(bob), [""; 0]);
    assert_eq!(kept.roles(bob), r#"{[{"ann","role":"owner"}]}"#);
    assert_eq!(kept.net.core.counters.rooms, 1);
}

#[test]
fn slow_mode_counts_what_is_not_stored_yet() {
    let mut kept = Kept::new(Config::default());
    let [(ann, _), (bob, _)] = ["ann", "bob"].map(|name| kept.person(name));
    kept.ask_and_wait(ann, r#"{"id":2,"create":{"room":"den","slowMs":3000}}"#);
    let _ = [ann, bob].map(|id| kept.ask(id, JOIN));
    let say = r#"{"id":7,"say":{"room":"den","text":"x"}}"#;
    assert_eq!(kept.ask(bob, say), [""; 0]);
    kept.net.wires.now.unix_ms += 2999;
    let early = kept.ask(bob, say);
    assert!(early[0].contains(r#""slow_down","text":"den is slow: wait 1 ms""#), "{early:?}");
    kept.commit(); // what is stored late does not count as said late
    kept.net.hear(bob);
    kept.net.wires.now.unix_ms += 1;
    assert_eq!(kept.ask(bob, say), [""; 0]);
    for job in std::mem::take(&mut kept.net.wires.to_store) {
        let outcome = Outcome::Failed(Trouble("disk full".to_owned()));
        kept.net.core.stored(Done { job, outcome, begins: false }, kept.net.wires.now);
    }
    let late = kept.ask_and_wait(bob, say).join("");
    assert!(late.contains("not_stored") && late.contains(r#""said":{"number":2,"#), "{late}");
}

#[test]
fn who_may_delete_is_decided_when_it_is_done() {
    let mut kept = Kept::new(Config::default());
    let [(ann, _), (bob, _), (cyd, _)] = ["ann", "bob", "cyd"].map(|name| kept.person(name));
    kept.ask_and_wait(ann, CREATE);
    kept.ask_and_wait(ann, &grant(4, "bob", "moderator"));
    for id in [ann, bob, cyd] {
        kept.ask(id, JOIN);
        for _ in 0..2 {
            kept.ask_and_wait(id, r#"{"id":7,"say":{"room":"den","text":"x"}}"#);
        }
    }
    let delete = |id: u32, number: u32| {
        format!(r#"{{"id":{id},"delete":{{"room":"den","number":{number}}}}}"#)
    };
    kept.ask(bob, &delete(11, 1)); // Ann's, who is above
    kept.ask(bob, &delete(12, 5)); // Cyd's
    kept.ask(cyd, &delete(13, 4)); // Bob's, who is a moderator as yet
    kept.ask(cyd, &grant(14, "cyd", "moderator"));
    kept.ask(ann, &grant(15, "bob", "none"));
    kept.ask(bob, &delete(16, 6)); // Cyd's, and Bob is a guest by now
    kept.ask(bob, &delete(17, 3)); // his own
    kept.ask(ann, &delete(18, 4));
    kept.commit();
    kept.net.settle();
    let heard = [ann, bob, cyd].map(|id| kept.net.hear(id)).concat();
    let told = [11, 12, 13, 14, 16, 17, 18].map(|id| answers(&heard, id).join(""));
    let codes = told.each_ref().map(|told| told.split('"').nth(5).unwrap_or("done"));
    let expect = ["not_yours", "done", "not_yours", "not_allowed", "not_yours", "done", "done"];
    assert_eq!(codes, expect, "{told:?}");
}
