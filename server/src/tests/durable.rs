//! What a server with a store does: it stores first, answers then, and refuses what it cannot hold.

use protocols::yardstick::Encoding;

use super::net::Net;
use crate::access::login::Hashed;
use crate::access::password::Hasher;
use crate::config::{LOGIN_JOBS_MAX, STORE_JOBS_MAX, STORE_PAGES_MAX};
use crate::store::tests::Scratch;
use crate::store::{Outcome, Store, Trouble};
use crate::{Commit, Config, HashCost};

/// A server that keeps things, and its store, which works when a test says so.
pub(super) struct Kept {
    scratch: Scratch,
    pub(super) store: Store,
    pub(super) net: Net,
}

impl Kept {
    pub(super) fn new(config: Config) -> Kept {
        let scratch = Scratch::new("durable");
        let store = Store::open(&scratch.path("db"), Commit::Late).unwrap();
        let net = Net::restored(config, 1, &store);
        Kept { scratch, store, net }
    }

    /// The next server goes on with the same store; its key is the same, as the folder keeps it.
    pub(super) fn restart(self, config: Config) -> Kept {
        let Kept { scratch, store, .. } = self;
        drop(store);
        let store = Store::open(&scratch.path("db"), Commit::Late).unwrap();
        let net = Net::restored(config, 1, &store);
        Kept { scratch, store, net }
    }

    pub(super) fn commit(&mut self) {
        self.net.turn();
        self.net.commit(&mut self.store);
    }

    /// Dials and logs in, whatever that takes; gives the token.
    pub(super) fn person(&mut self, name: &str) -> (usize, String) {
        let id = self.net.dial(Encoding::Json);
        let heard = self.login(id, name, "pw");
        let (_, rest) = heard.split_once(r#""token":""#).expect(&heard);
        (id, rest.split('"').next().unwrap().to_owned())
    }

    pub(super) fn login(&mut self, id: usize, name: &str, password: &str) -> String {
        let login = format!(r#"{{"id":1,"login":{{"name":"{name}","password":"{password}"}}}}"#);
        self.net.ask(id, &login);
        for _ in 0..3 {
            self.net.turn();
            self.net.hash();
            self.commit();
        }
        self.net.hear(id).join("\n")
    }

    pub(super) fn redeem(&mut self, token: &str) -> String {
        let id = self.net.dial(Encoding::Proto);
        self.net.ask(id, &format!(r#"{{"id":1,"login":{{"token":"{token}"}}}}"#));
        self.net.turn();
        self.net.hear(id).join("\n")
    }

    pub(super) fn ask(&mut self, id: usize, json: &str) -> Vec<String> {
        self.net.ask(id, json);
        self.net.turn();
        self.net.turn();
        self.net.hear(id)
    }

    pub(super) fn page(&mut self, path: &str) -> String {
        let id = self.net.connect();
        self.net.send(id, format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes());
        self.net.turn();
        String::from_utf8_lossy(&self.net.wires.list[id].received).into_owned()
    }
}

const JOIN: &str = r#"{"id":2,"join":{"room":"live","history":10}}"#;
const SAY: &str = r#"{"id":3,"say":{"room":"live","text":"hello"}}"#;

#[test]
fn nobody_is_answered_and_nobody_hears_before_it_is_stored() {
    let mut kept = Kept::new(Config::default());
    let (ann, _) = kept.person("ann");
    let (bob, _) = kept.person("bob");
    kept.ask(ann, JOIN);
    kept.ask(bob, JOIN);
    kept.net.settle();
    let _ = [ann, bob].map(|id| kept.net.hear(id));
    assert_eq!(kept.ask(ann, SAY), Vec::<String>::new());
    assert!(kept.net.hear(bob).is_empty() && kept.net.wires.to_store.len() == 1);
    let cid = kept.net.dial(Encoding::Json);
    kept.login(cid, "cid", "pw");
    // The commit of that login was the commit of the message as well.
    let heard = [ann, bob].map(|id| kept.net.hear(id));
    assert!(heard[0][0].contains(r#""said":{"number":1,"#), "{heard:?}");
    assert!(heard.iter().all(|list| list.iter().any(|json| json.contains(r#"{"message":"#))));
    let joined = kept.ask(cid, JOIN);
    assert!(joined[0].contains(r#""joined":{"number":1,"messages":[{"number":1,"#), "{joined:?}");
    assert_eq!(kept.net.core.counters.messages, 1);
}

#[test]
fn who_comes_while_a_message_waits_hears_it_and_who_has_gone_does_not_matter() {
    let mut kept = Kept::new(Config::default());
    let (ann, _) = kept.person("ann");
    let (bob, _) = kept.person("bob");
    kept.ask(ann, JOIN);
    kept.ask(ann, SAY);
    let joined = kept.ask(bob, JOIN);
    assert!(joined[0].contains(r#""joined":{}"#), "it is not said yet: {joined:?}");
    kept.net.core.hung_up(ann);
    kept.net.turn();
    let new = kept.net.dial(Encoding::Json);
    assert_eq!(new, ann, "the number is used again");
    kept.commit();
    kept.net.settle();
    assert!(kept.net.hear(new).is_empty(), "what was asked by another is not answered to it");
    let heard = kept.net.hear(bob);
    assert!(heard.iter().any(|json| json.contains(r#""text":"hello""#)), "{heard:?}");
}

#[test]
fn a_restart_keeps_accounts_tokens_numbers_and_the_past() {
    let mut kept = Kept::new(Config::default());
    let (ann, token) = kept.person("ann");
    let (_, other) = kept.person("bob");
    kept.ask(ann, JOIN);
    (0..7).for_each(|_| drop(kept.ask(ann, SAY)));
    kept.commit();
    let mut kept = kept.restart(Config { history: 3, ..Config::default() });
    assert!(kept.redeem(&token).contains(r#""name":"ann""#));
    assert!(kept.redeem(&token.replacen("ann", "bob", 1)).contains("denied"));
    let id = kept.net.dial(Encoding::Json);
    assert!(kept.login(id, "bob", "wrong").contains("denied"));
    assert!(kept.login(id, "bob", "pw").contains("welcome"));
    let joined = kept.ask(id, JOIN);
    let numbers = r#""joined":{"number":7,"messages":[{"number":5,"#;
    assert!(joined[0].contains(numbers), "{joined:?}");
    assert_eq!(kept.net.core.counters.rooms, 1);
    kept.ask(id, SAY);
    kept.commit();
    assert!(kept.net.hear(id).iter().any(|json| json.contains(r#""said":{"number":8,"#)));
    assert!(kept.redeem(&other).contains("welcome"));
}

#[test]
fn what_memory_has_forgotten_the_store_looks_up() {
    let mut kept = Kept::new(Config { history: 3, ..Config::default() });
    let (ann, _) = kept.person("ann");
    kept.ask(ann, JOIN);
    (0..9).for_each(|_| drop(kept.ask(ann, SAY)));
    kept.commit();
    kept.net.hear(ann);
    // before, limit, numbers, and whether the store is asked
    let rows: [(u32, u32, &[u32], bool); 9] = [
        (0, 3, &[7, 8, 9], false),
        (0, 4, &[6, 7, 8, 9], true),
        (8, 1, &[7], false),
        (8, 2, &[6, 7], true),
        (7, 2, &[5, 6], true),
        (3, 100, &[1, 2], true),
        (1, 5, &[], false),
        (0, 0, &[], false),
        (4_000_000_000, 2, &[8, 9], false),
    ];
    for (before, limit, numbers, is_asked) in rows {
        let what = format!("{limit} before {before}");
        let get = format!(r#"{{"room":"live","before":{before},"limit":{limit}}}"#);
        let at_once = kept.ask(ann, &format!(r#"{{"id":5,"history":{get}}}"#));
        assert_eq!(
            (at_once.is_empty(), kept.net.wires.to_store.len()),
            (is_asked, is_asked.into())
        );
        kept.commit();
        let heard = at_once.into_iter().chain(kept.net.hear(ann)).collect::<Vec<_>>().join("");
        let told: Vec<u32> = heard
            .split(r#""number":"#)
            .skip(1)
            .map(|rest| rest.split(',').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(told, numbers, "{what}: {heard}");
    }
    assert_eq!(kept.net.core.counters.store_pages, 4);
}

#[test]
fn the_store_is_asked_for_no_more_than_it_can_hold() {
    let mut kept = Kept::new(Config { history: 1, ..Config::default() });
    let (ann, _) = kept.person("ann");
    kept.ask(ann, JOIN);
    (0..3).for_each(|_| drop(kept.ask(ann, SAY)));
    kept.commit();
    kept.net.hear(ann);
    let get = r#"{"id":5,"history":{"room":"live","limit":3}}"#;
    let refused: Vec<String> = (0..STORE_PAGES_MAX + 2).flat_map(|_| kept.ask(ann, get)).collect();
    assert!(refused.len() == 2 && refused[0].contains(r#""code":"busy""#), "{refused:?}");
    let room_left = STORE_JOBS_MAX - STORE_PAGES_MAX;
    (0..room_left + 1).for_each(|_| kept.net.ask(ann, SAY));
    kept.net.turn();
    let refused = kept.net.hear(ann);
    assert!(refused.len() == 1 && refused[0].contains(r#""code":"busy""#), "{}", refused.len());
    assert_eq!(kept.net.core.counters.store_busy, 3);
    let page = kept.page("/healthz");
    assert!(page.starts_with("HTTP/1.1 503 ") && page.contains("wait for the store"), "{page}");
    let page = kept.page("/metrics");
    assert!(page.contains(&format!("\nyardstick_store_queue {STORE_JOBS_MAX}\n")), "{page}");
    kept.commit();
    assert!(kept.page("/healthz").starts_with("HTTP/1.1 200 "));
    let answers = kept.net.hear(ann);
    let said = answers.iter().filter(|json| json.contains(r#""said":"#)).count();
    let pages = answers.iter().filter(|json| json.contains(r#""history":"#)).count();
    assert_eq!((said, pages), (room_left, STORE_PAGES_MAX));
    assert!(kept.page("/metrics").contains("\nyardstick_store_queue 0\n"));
}

#[test]
fn what_could_not_be_stored_is_said_to_be_so_and_the_server_is_not_well() {
    let mut kept = Kept::new(Config::default());
    let (ann, _) = kept.person("ann");
    kept.ask(ann, JOIN);
    kept.ask(ann, SAY);
    let cid = kept.net.dial(Encoding::Json);
    kept.net.ask(cid, r#"{"id":1,"login":{"name":"cid"}}"#);
    kept.net.turn();
    let mut done = kept.store.carry_out(Vec::new());
    for job in std::mem::take(&mut kept.net.wires.to_store) {
        let outcome = Outcome::Failed(Trouble("disk full".to_owned()));
        done.push(crate::store::Done { job, outcome, begins: true });
    }
    done.into_iter().for_each(|done| kept.net.core.stored(done, kept.net.wires.now));
    kept.net.settle();
    for id in [ann, cid] {
        let heard = kept.net.hear(id);
        assert!(heard.len() == 1 && heard[0].contains(r#""code":"not_stored""#), "{heard:?}");
    }
    assert_eq!((kept.net.core.counters.messages, kept.net.core.counters.store_errors), (0, 2));
    let page = kept.page("/healthz");
    assert!(page.starts_with("HTTP/1.1 503 ") && page.contains("disk full"), "{page}");
    assert!(kept.login(cid, "cid", "pw").contains("welcome"), "a later login is stored");
    assert!(kept.page("/healthz").starts_with("HTTP/1.1 200 "));
}

#[test]
fn passwords_are_hashed_apart_and_of_two_who_register_a_name_one_is_denied() {
    for keeps in [true, false] {
        let config = Config { hash_cost: HashCost::Low, ..Config::default() };
        let mut kept = Kept::new(config.clone());
        if !keeps {
            kept.net = Net::new(config, 1);
        }
        let ids = [0, 1].map(|_| kept.net.dial(Encoding::Json));
        let logins = ["one", "two"]
            .map(|word| format!(r#"{{"id":1,"login":{{"name":"ann","password":"{word}"}}}}"#));
        ids.iter().zip(&logins).for_each(|(id, login)| kept.net.ask(*id, login));
        kept.net.turn();
        assert!(kept.net.hear(ids[0]).is_empty() && kept.net.wires.to_hash.len() == 2);
        let again = kept.ask(ids[0], &logins[0]);
        assert!(again[0].contains("already_logged_in"), "{again:?}");
        let early = kept.ask(ids[0], r#"{"id":2,"ping":{}}"#);
        assert!(early[0].contains("login_first"), "{early:?}");
        for _ in 0..4 {
            kept.net.hash();
            kept.commit();
        }
        let heard = ids.map(|id| kept.net.hear(id).join(""));
        assert!(heard[0].contains("welcome") && heard[1].contains("denied"), "{heard:?}");
        let id = kept.net.dial(Encoding::Json);
        assert!(kept.login(id, "ann", "two").contains("denied"));
        assert!(kept.login(id, "ann", "one").contains("welcome"));
        assert_eq!(kept.net.core.hashing.open, 0);
    }
}

#[test]
fn without_registration_only_those_who_are_known_get_in() {
    let config = Config { hash_cost: HashCost::Low, ..Config::default() };
    let mut kept = Kept::new(config.clone());
    let (_, token) = kept.person("ann");
    let mut kept = kept.restart(Config { registration: false, ..config });
    let id = kept.net.dial(Encoding::Json);
    assert!(kept.login(id, "bob", "pw").contains("denied"));
    assert!(kept.login(id, "ann", "no").contains("denied"));
    assert!(kept.login(id, "ann", "pw").contains("welcome"));
    assert!(kept.redeem(&token).contains("welcome"));
    assert_eq!(kept.store.load(0, 0).unwrap().accounts.len(), 1);
}

#[test]
fn so_many_logins_wait_and_no_more_and_the_gone_are_forgotten() {
    let config = Config { hash_cost: HashCost::Low, ..Config::default() };
    let mut net = Net::new(config, 1);
    let ids: Vec<usize> = (0..LOGIN_JOBS_MAX + 1).map(|_| net.dial(Encoding::Proto)).collect();
    for (number, id) in ids.iter().enumerate() {
        net.ask(*id, &format!(r#"{{"id":1,"login":{{"name":"p{number}"}}}}"#));
    }
    net.turn();
    let last = net.hear(ids[LOGIN_JOBS_MAX]);
    assert!(last.len() == 1 && last[0].contains(r#""code":"busy""#), "{last:?}");
    assert_eq!((net.core.counters.login_busy, net.core.counters.login_queue), (1, 512));
    // Somebody goes while the hash waits, somebody while it is made, somebody before that.
    net.core.hung_up(ids[0]);
    let begun = net.wires.to_hash.remove(1);
    net.core.hung_up(ids[1]);
    net.turn();
    let again = net.dial(Encoding::Json);
    net.ask(again, r#"{"id":1,"login":{"name":"late"}}"#);
    net.core.hung_up(again);
    net.turn();
    assert_eq!(net.core.hashing.open, LOGIN_JOBS_MAX - 1);
    let hashed = Hashed { verdict: Hasher::default().run(begun.task, b""), job: begun };
    net.core.hashed(hashed, net.wires.now);
    ids[3..].iter().for_each(|id| net.core.hung_up(*id));
    net.turn();
    assert_eq!((net.core.hashing.open, net.wires.to_hash.len()), (1, 1));
    net.hash();
    assert!(net.hear(ids[2])[0].contains("welcome"));
    assert_eq!((net.core.hashing.open, net.core.counters.logins), (0, 1));
    let is_known = ["p0", "p1", "p3"].map(|name| net.core.accounts.known(name).is_some());
    assert_eq!(is_known, [false; 3], "nobody was told of it");
}

#[test]
fn a_token_that_was_revoked_stays_so() {
    for keeps in [true, false] {
        let mut kept = Kept::new(Config::default());
        if !keeps {
            kept.net = Net::new(Config::default(), 1);
        }
        let (ann, token) = kept.person("ann");
        let (bob, _) = kept.person("bob");
        let revoke = format!(r#"{{"id":4,"revoke":{{"token":"{token}"}}}}"#);
        let others = kept.ask(bob, &revoke);
        assert!(others[0].contains("denied"), "{others:?}");
        let mut heard = kept.ask(ann, &revoke);
        assert_eq!(heard.is_empty(), keeps);
        kept.commit();
        heard.extend(kept.net.hear(ann));
        assert_eq!(heard, [r#"{"answer":{"id":4,"done":{}}}"#]);
        assert!(kept.redeem(&token).contains("denied"));
        assert!(kept.ask(ann, r#"{"id":5,"ping":{}}"#)[0].contains("pong"), "she is still in");
        if keeps {
            let mut kept = kept.restart(Config::default());
            assert!(kept.redeem(&token).contains("denied"));
        }
    }
}
