//! What outlives the process: accounts, rooms, messages and revoked tokens in SQLite.
//!
//! One thread owns the [`Store`]. It takes all jobs that came while it was busy and writes them in
//! one transaction; who asked is answered when that is committed, and not before.

mod folder;
mod inbox;
mod log;
mod messages;
mod read;
mod rights;
mod schema;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use crate::chat::amend::Amend;
use crate::chat::message::Extra;
use crate::chat::resume::CatchUp;
use crate::chat::rights::{Act, Refusal};
use crate::config::Commit;
use crate::delivery::conn::Ticket;

pub(crate) use folder::DataFolder;
pub(crate) use log::FollowFailed;
pub(crate) use read::{Loaded, LoadedRoom, Past, backup};

/// How long another process, a backup or an inspection, may keep us from writing.
const LOCK_TIME_MAX: Duration = Duration::from_secs(5);
/// Statements that are kept prepared: more than there are.
const STATEMENTS_MAX: usize = 64;

/// Why the store cannot do what it should, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble(pub(crate) String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        Trouble(error.to_string())
    }
}

/// The name of a room, and how far people have read there.
pub(crate) type RoomMarks = (Box<str>, Vec<(Box<str>, u32)>);

/// Something to write or to look up. Where several nodes share a log, it is an entry of it: a field
/// that is added needs `#[serde(default)]`, and one that is known here only `#[serde(skip)]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Want {
    /// A message, to be numbered. `room` is the core's number of the room, if it asked itself.
    Say {
        #[serde(skip, default = "nowhere")]
        room: u32,
        name: Box<str>,
        sender: Box<str>,
        text: Box<str>,
        at_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra: Option<Box<Extra>>,
    },
    /// A change of a message.
    Amend(Box<Amend>),
    /// How far people have read.
    Marks(Vec<RoomMarks>),
    /// A new account. The password is for who asked, and goes nowhere.
    Account {
        name: Box<str>,
        #[serde(skip)]
        password: Box<str>,
        secret: String,
    },
    /// A token that is no longer good.
    Revoke { tag: [u8; 32], expires_ms: u64 },
    /// The key of tokens of all nodes, if there is none yet.
    Key { key: [u8; 32] },
    /// Something that `by` does by right in a room, or not.
    Rights { room: Box<str>, by: Box<str>, act: Act },
    /// The latest `limit` messages before number `before`.
    #[serde(skip)]
    Page { name: Box<str>, before: u32, limit: usize },
    /// A direct message, to be numbered in each inbox.
    Tell { to: Vec<Box<str>>, sender: Box<str>, text: Box<str>, key: Box<str>, at_ms: u64 },
    /// The latest `limit` messages before number `before` of somebody's inbox.
    #[serde(skip)]
    Inbox { person: Box<str>, before: u32, limit: usize },
    /// What somebody has missed who enters a room again.
    #[serde(skip)]
    CatchUp(CatchUp),
}

/// The number of a room that somebody else has named.
pub(crate) const NOWHERE: u32 = u32::MAX;

fn nowhere() -> u32 {
    NOWHERE
}

impl Want {
    /// As it is for those who did not ask.
    pub(crate) fn by_another(&self) -> Want {
        let mut want = self.clone();
        match &mut want {
            Want::Say { room, .. } => *room = NOWHERE,
            Want::Account { password, .. } => *password = "".into(),
            _ => {}
        }
        want
    }

    /// Memory it holds, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = match self {
            Want::Say { name, sender, text, extra, .. } => {
                let extra = extra.as_ref().map_or(0, |extra| extra.bytes());
                name.len() + sender.len() + text.len() + extra
            }
            Want::Amend(amend) => amend.bytes(),
            Want::Marks(rooms) => {
                let mark = |(name, _): &(Box<str>, u32)| name.len() + size_of::<(Box<str>, u32)>();
                let marks = rooms.iter().flat_map(|(_, marks)| marks).map(mark);
                marks.sum::<usize>() + size_of::<RoomMarks>() * rooms.len()
            }
            Want::Account { name, password, secret } => name.len() + password.len() + secret.len(),
            Want::Page { name, .. } => name.len(),
            Want::Rights { room, by, act } => {
                room.len() + by.len() + act.who().unwrap_or_default().len()
            }
            Want::Revoke { .. } | Want::Key { .. } => 0,
            Want::Tell { to, sender, text, key, .. } => {
                let names = to.iter().map(|name| size_of::<Box<str>>() + name.len());
                names.sum::<usize>() + sender.len() + text.len() + key.len()
            }
            Want::Inbox { person, .. } => person.len(),
            Want::CatchUp(join) => join.room.len() + join.status.len(),
        };
        size_of::<Job>() + texts
    }

    /// Whether it changes nothing and is answered by [`Outcome::Page`].
    pub(crate) fn is_look_up(&self) -> bool {
        matches!(self, Want::Page { .. } | Want::Inbox { .. } | Want::CatchUp(_))
    }
}

/// A want and who has it.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) ticket: Ticket,
    pub(crate) want: Want,
    /// When it was asked, in microseconds since the start.
    pub(crate) since_us: u64,
}

/// What became of a job.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The message is stored under this number.
    Numbered(u32),
    /// It was said before, under this number and at that time; it is not said again.
    Again { number: u32, at_ms: u64 },
    /// The message is changed; `false` if it was so already.
    Changed(bool),
    /// The account is stored; `false` if there was one of that name.
    Added(bool),
    /// It is noted.
    Noted,
    /// What was looked up, oldest first.
    Page(Vec<Past>),
    /// The direct message is stored, said at `at_ms`, under these numbers of the inboxes, in the
    /// order of the names; without numbers if it was told before under that key.
    Told { numbers: Vec<u32>, at_ms: u64 },
    /// It must not be, for that reason: a code for machines and a sentence for people.
    Refused(&'static str, String),
    /// Nothing was stored.
    Failed(Trouble),
}

impl Outcome {
    /// What becomes of an act in a room.
    pub(crate) fn judged(judgment: Result<(), Refusal>, room: &str) -> Outcome {
        match judgment.map_err(|why| why.explain(room)) {
            Ok(()) => Outcome::Noted,
            Err((code, text)) => Outcome::Refused(code, text),
        }
    }
}

/// A job that is done.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) job: Job,
    pub(crate) outcome: Outcome,
    /// Whether it is the first of a transaction.
    pub(crate) begins: bool,
}

/// The open database.
pub(crate) struct Store {
    db: Connection,
    commit: Commit,
    /// The row of each room that was written to, and the number of its latest message.
    rooms: Rooms,
}

/// The rows of rooms, and the number of the latest message of each.
type Rooms = HashMap<Box<str>, (i64, u32)>;

impl Store {
    /// Opens a database, makes it if there is none, and brings it up to this version.
    pub(crate) fn open(path: &Path, commit: Commit) -> Result<Store, Trouble> {
        let wrong = |why: Trouble| Trouble(format!("{}: {why}", path.display()));
        let open = || -> Result<Connection, Trouble> {
            let mut db = Connection::open(path)?;
            db.busy_timeout(LOCK_TIME_MAX)?;
            db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
            // FULL syncs the log at each commit, NORMAL only when it is written back.
            let level = if commit == Commit::Late { "NORMAL" } else { "FULL" };
            db.pragma_update(None, "synchronous", level)?;
            // What is deleted or replaced is overwritten with zeros.
            db.pragma_update_and_check(None, "secure_delete", "ON", |_| Ok(()))?;
            schema::migrate(&mut db)?;
            db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
            Ok(db)
        };
        Ok(Store { db: open().map_err(wrong)?, commit, rooms: HashMap::new() })
    }

    /// Does jobs: what is to be written first, in one transaction or one each, then what is to be
    /// looked up. What is given back keeps the order of what was written.
    pub(crate) fn carry_out(&mut self, jobs: Vec<Job>) -> Vec<Done> {
        let (pages, mut writes): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| job.want.is_look_up());
        let mut done = Vec::with_capacity(pages.len() + writes.len());
        while !writes.is_empty() {
            let count = if self.commit == Commit::Message { 1 } else { writes.len() };
            let batch = writes.drain(..count).collect();
            self.commit(batch, &mut done);
        }
        for job in pages {
            let outcome = self.page(&job.want).map_or_else(Outcome::Failed, Outcome::Page);
            done.push(Done { job, outcome, begins: false });
        }
        done
    }

    fn commit(&mut self, batch: Vec<Job>, done: &mut Vec<Done>) {
        let outcomes = self.write(&batch).unwrap_or_else(|trouble| {
            self.forget_unwritten();
            batch.iter().map(|_| Outcome::Failed(trouble.clone())).collect()
        });
        let pairs = batch.into_iter().zip(outcomes).enumerate();
        done.extend(pairs.map(|(at, (job, outcome))| Done { job, outcome, begins: at == 0 }));
    }

    /// What was noted beside a transaction that is not: the numbers that were given are not.
    fn forget_unwritten(&mut self) {
        self.rooms.clear();
    }

    fn write(&mut self, batch: &[Job]) -> Result<Vec<Outcome>, Trouble> {
        let change = self.db.transaction()?;
        let outcomes = batch
            .iter()
            .map(|job| put(&change, &mut self.rooms, &job.want))
            .collect::<Result<Vec<Outcome>, Trouble>>()?;
        change.commit()?;
        Ok(outcomes)
    }
}

/// Writes one want into a transaction.
fn put(change: &Transaction<'_>, rooms: &mut Rooms, want: &Want) -> Result<Outcome, Trouble> {
    match want {
        Want::Say { name, sender, text, at_ms, extra, .. } => {
            messages::say(change, rooms, name, (sender, text, *at_ms), extra.as_deref())
        }
        Want::Amend(amend) => messages::amend(change, rooms, amend),
        Want::Marks(marks) => messages::mark(change, rooms, marks),
        Want::Account { name, secret, .. } => {
            let insert = "INSERT OR IGNORE INTO accounts (name, secret) VALUES (?1, ?2)";
            let count = change.prepare_cached(insert)?.execute(params![name, secret])?;
            Ok(Outcome::Added(count == 1))
        }
        Want::Revoke { tag, expires_ms } => {
            let insert = "INSERT OR IGNORE INTO revoked (tag, expires_ms) VALUES (?1, ?2)";
            change.prepare_cached(insert)?.execute(params![&tag[..], *expires_ms as i64])?;
            Ok(Outcome::Noted)
        }
        Want::Rights { room, by, act } => rights::put(change, room, by, act),
        Want::Key { key } => log::put_key(change, key),
        Want::Tell { to, sender, text, key, at_ms } => {
            inbox::tell(change, to, sender, text, (key, *at_ms))
        }
        // Looked up, never written.
        Want::Page { .. } | Want::Inbox { .. } | Want::CatchUp(_) => Ok(Outcome::Page(Vec::new())),
    }
}

/// The row of a room, made if there is none, and the number of its latest message.
fn room(change: &Transaction<'_>, rooms: &Rooms, name: &str) -> Result<(i64, u32), Trouble> {
    if let Some(found) = find_room(change, rooms, name)? {
        return Ok(found);
    }
    change.execute("INSERT INTO rooms (name) VALUES (?1)", [name])?;
    Ok((change.last_insert_rowid(), 0))
}

/// The row of a room, if there is one, and the number of its latest message.
fn find_room(
    change: &Transaction<'_>,
    rooms: &Rooms,
    name: &str,
) -> Result<Option<(i64, u32)>, Trouble> {
    if let Some(known) = rooms.get(name) {
        return Ok(Some(*known));
    }
    let find = "SELECT id, (SELECT coalesce(max(number), 0) FROM messages WHERE room = id) \
                FROM rooms WHERE name = ?1";
    let mut find = change.prepare_cached(find)?;
    Ok(find.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}
