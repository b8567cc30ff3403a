//! The store by itself: what is written is there after a restart, and what is not is not.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::chat::amend::How;

/// A folder of a test's own; removed at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("yardstick-{name}-{}-{number}", std::process::id());
        // Memory where there is such a folder: thousands of syncs of a disk would only take time.
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = parent.join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // what stays is in the folder for such things
    }
}

pub(super) fn job(want: Want) -> Job {
    Job { ticket: Ticket { conn: 0, serial: 1, request: 1 }, want, since_us: 0 }
}

pub(super) fn say(name: &str, text: &str) -> Job {
    let (name, sender, text) = (name.into(), "ann".into(), text.into());
    job(Want::Say { room: 0, name, sender, text, at_ms: 1_700_000_000_000, extra: None })
}

pub(super) fn account(name: &str, secret: &str) -> Job {
    job(Want::Account { name: name.into(), password: "".into(), secret: secret.into() })
}

fn page(name: &str, before: u32, limit: usize) -> Job {
    job(Want::Page { name: name.into(), before, limit })
}

pub(super) fn open(path: &Path) -> Store {
    Store::open(path, Commit::Late).unwrap()
}

/// What came of each job, in words.
pub(super) fn outcomes(store: &mut Store, jobs: Vec<Job>) -> Vec<String> {
    let word = |done: Done| match done.outcome {
        Outcome::Page(page) => {
            let numbers: Vec<String> = page.iter().map(|past| past.number.to_string()).collect();
            format!("page {}", numbers.join(" "))
        }
        other => format!("{other:?}"),
    };
    store.carry_out(jobs).into_iter().map(word).collect()
}

#[test]
fn numbers_go_on_after_a_restart_whatever_the_commit() {
    for commit in [Commit::Message, Commit::Group, Commit::Late] {
        let scratch = Scratch::new("numbers");
        let path = scratch.path("db");
        let mut store = Store::open(&path, commit).unwrap();
        let jobs = vec![say("a", "1"), page("a", 0, 9), say("b", "1"), say("a", "2")];
        let told = outcomes(&mut store, jobs);
        assert_eq!(told, ["Numbered(1)", "Numbered(1)", "Numbered(2)", "page 1 2"]);
        drop(store);
        let mut store = Store::open(&path, commit).unwrap();
        let loaded = store.load(1, 0).unwrap();
        let rooms = loaded.rooms.iter().map(|r| (&*r.name, r.number, r.past.len()));
        assert_eq!(rooms.collect::<Vec<_>>(), [("a", 2, 1), ("b", 1, 1)]);
        assert_eq!(&*loaded.rooms[0].past[0].text, "2");
        assert!(store.load(0, 0).unwrap().rooms.iter().all(|r| r.past.is_empty() && r.number > 0));
        let told = outcomes(&mut store, vec![say("a", "3"), say("c", "1")]);
        assert_eq!(told, ["Numbered(3)", "Numbered(1)"]);
        let begins = |jobs| store.carry_out(jobs).iter().filter(|done| done.begins).count();
        let commits = [vec![say("a", "4"), say("a", "5")]].map(begins);
        assert_eq!(commits, [if commit == Commit::Message { 2 } else { 1 }]);
    }
}

#[test]
fn pages_are_bounded_by_numbers_count_and_bytes() {
    let scratch = Scratch::new("pages");
    let mut store = open(&scratch.path("db"));
    let long = "x".repeat(300 * 1024);
    let says = (1..=5).map(|n| say("r", &n.to_string())).chain((6..=9).map(|_| say("r", &long)));
    store.carry_out(says.collect());
    let rows = [
        ((0, 2), "page 8 9"),
        ((0, 100), "page 7 8 9"), // more than three of them are too long for one page
        ((6, 100), "page 1 2 3 4 5"),
        ((4, 2), "page 2 3"),
        ((1, 5), "page "),
        ((0, 0), "page "),
    ];
    for ((before, limit), expect) in rows {
        assert_eq!(outcomes(&mut store, vec![page("r", before, limit)]), [expect], "{before}");
    }
    assert_eq!(outcomes(&mut store, vec![page("elsewhere", 0, 5)]), ["page "]);
}

#[test]
fn a_failed_batch_leaves_nothing_and_the_next_one_has_its_numbers() {
    let scratch = Scratch::new("failing");
    let mut store = open(&scratch.path("db"));
    store.carry_out(vec![say("r", "1")]);
    let trigger = "CREATE TRIGGER full BEFORE INSERT ON messages WHEN NEW.text = 'poison' \
                   BEGIN SELECT raise(ABORT, 'disk full'); END";
    store.db.execute_batch(trigger).unwrap();
    let told = outcomes(&mut store, vec![say("r", "2"), account("bob", "s"), say("r", "poison")]);
    assert!(told.iter().all(|word| word.contains("disk full")), "{told:?}");
    assert!(store.load(9, 0).unwrap().accounts.is_empty());
    assert_eq!(
        outcomes(&mut store, vec![say("r", "again"), say("new", "1")]),
        ["Numbered(2)", "Numbered(1)"]
    );
    let last = format!(
        "INSERT INTO messages (room, number, sender, text, at_ms) \
         SELECT room, {}, 'a', 't', 0 FROM messages LIMIT 1",
        u32::MAX
    );
    store.db.execute_batch(&last).unwrap();
    store.rooms.clear();
    let told = outcomes(&mut store, vec![say("r", "one too many"), say("new", "2")]);
    assert!(told[0].contains("no more numbers") && told[1] == "Numbered(2)", "{told:?}");
}

#[test]
fn a_full_disk_fails_what_does_not_fit_and_nothing_else() {
    let scratch = Scratch::new("full");
    let mut store = open(&scratch.path("db"));
    store.carry_out(vec![say("r", "1")]);
    let limit = |store: &Store, pages: u32| {
        store.db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    };
    limit(&store, 1); // as many as there are
    let long = "x".repeat(50_000);
    let told = outcomes(&mut store, vec![say("r", &long), say("r", "2")]);
    assert!(told.iter().all(|word| word.contains("full")), "{told:?}");
    let told = outcomes(&mut store, vec![page("r", 0, 9), say("r", "small")]);
    assert_eq!(told, ["Numbered(2)", "page 1 2"]);
    limit(&store, 1_000);
    assert_eq!(outcomes(&mut store, vec![say("r", &long)]), ["Numbered(3)"]);
}

#[test]
fn accounts_are_added_once_and_revoked_tokens_are_forgotten_when_they_end() {
    let scratch = Scratch::new("accounts");
    let mut store = open(&scratch.path("db"));
    let jobs = vec![account("ann", "first"), account("ann", "second")];
    assert_eq!(outcomes(&mut store, jobs), ["Added(true)", "Added(false)"]);
    let revoke = |byte, expires_ms| job(Want::Revoke { tag: [byte; 32], expires_ms });
    let jobs = vec![revoke(1, 100), revoke(2, 200), revoke(2, 200)];
    assert_eq!(outcomes(&mut store, jobs), ["Noted", "Noted", "Noted"]);
    let loaded = store.load(9, 100).unwrap();
    assert_eq!(loaded.accounts, [("ann".to_owned(), "first".to_owned())]);
    assert_eq!(loaded.revoked, [([2; 32], 200)]);
}

#[test]
fn a_backup_is_of_one_instant_while_the_store_goes_on() {
    let scratch = Scratch::new("backup");
    let data = scratch.path("data");
    let folder = DataFolder::open(&data).unwrap();
    let mut store = Store::open(&folder.database(), Commit::Group).unwrap();
    store.carry_out((0..500).map(|_| say("r", "before")).collect());
    let copies: Vec<PathBuf> = (0..3).map(|n| scratch.path(&format!("copy{n}"))).collect();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..50 {
                // Both or none of the two are in a copy.
                let told = outcomes(&mut store, vec![say("r", "x"), say("s", "y")]);
                assert!(told.iter().all(|word| word.starts_with("Numbered")), "{told:?}");
            }
        });
        copies.iter().for_each(|copy| backup(&data, copy).unwrap());
        writer.join().unwrap();
    });
    let again = backup(&data, &copies[0]).unwrap_err().to_string();
    assert!(again.contains("exists"), "{again}");
    assert!(backup(&scratch.path("nowhere"), &scratch.path("copy")).is_err());
    assert!(!scratch.path("copy").exists() && !scratch.path("copy.partial").exists());
    for copy in &copies {
        let rooms = open(copy).load(1, 0).unwrap().rooms;
        let number = |name| rooms.iter().find(|room| room.name == name).map_or(0, |r| r.number);
        assert_eq!(number("r"), 500 + number("s"));
    }
}

#[test]
fn what_was_deleted_or_replaced_is_not_in_the_files() {
    let scratch = Scratch::new("secure");
    let path = scratch.path("db");
    let mut store = open(&path);
    let texts = ["first secret", "second secret", "harmless"];
    store.carry_out(texts.iter().map(|text| say("r", text)).collect());
    let amend = |number, how| {
        let (room, name) = ("r".into(), "ann".into());
        job(Want::Amend(Box::new(Amend { room, number, name, at_ms: 5, how })))
    };
    let react = How::React { reaction: "third secret".into(), remove: false };
    store.carry_out(vec![amend(2, react)]);
    let on_disk = |what: &str| {
        let files = ["", "-wal"].map(|end| std::fs::read(scratch.path(&format!("db{end}"))));
        let has = |bytes: Vec<u8>| bytes.windows(what.len()).any(|part| part == what.as_bytes());
        files.into_iter().any(|bytes| bytes.is_ok_and(has))
    };
    assert!(on_disk("first secret") && on_disk("third secret"));
    let edit = amend(1, How::Edit("short".into()));
    let told = outcomes(&mut store, vec![edit, amend(2, How::Delete { others: false })]);
    assert_eq!(told, ["Changed(true)", "Changed(true)"]);
    drop(store); // the end of the last connection empties the log
    for (text, is_there) in [
        ("harmless", true),
        ("short", true),
        ("first secret", false),
        ("second secret", false),
        ("third secret", false),
    ] {
        assert_eq!(on_disk(text), is_there, "{text}");
    }
}

#[test]
fn a_page_with_many_reactions_is_cut_and_the_same_as_in_memory() {
    use crate::config::{REACTION_NAMES_MAX, REACTIONS_MAX};
    let scratch = Scratch::new("reactions");
    let mut store = open(&scratch.path("db"));
    store.carry_out((1..=4).map(|_| say("r", "x")).collect());
    let name = |at: usize| format!("{at:064}").into();
    let react = |(number, kind, at): (u32, usize, usize)| {
        let how = How::React { reaction: format!("{kind:032}").into(), remove: false };
        job(Want::Amend(Box::new(Amend {
            room: "r".into(),
            number,
            name: name(at),
            at_ms: 5,
            how,
        })))
    };
    for number in [1, 2, 4] {
        let kinds = 0..REACTIONS_MAX;
        let all = kinds.flat_map(|kind| (0..REACTION_NAMES_MAX).map(move |at| (number, kind, at)));
        let told = outcomes(&mut store, all.map(react).collect());
        assert!(told.iter().all(|word| word == "Changed(true)"));
    }
    let told = outcomes(&mut store, vec![react((1, 0, REACTION_NAMES_MAX)), react((3, 0, 0))]);
    assert!(told[0].contains("\"full\"") && told[1] == "Changed(true)", "{told:?}");
    let rows = [(0, "page 3 4"), (4, "page 2 3"), (3, "page 2"), (2, "page 1")];
    for (before, expect) in rows {
        assert_eq!(outcomes(&mut store, vec![page("r", before, 9)]), [expect], "{before}");
    }
    let page = store.load(9, 0).unwrap().rooms.remove(0).past;
    let reactions = page[1].extra.as_ref().unwrap().reactions.iter();
    assert!(reactions.clone().count() == REACTIONS_MAX);
    assert!(reactions.clone().all(|reacted| reacted.names.len() == REACTION_NAMES_MAX));
}
