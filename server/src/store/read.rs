//! Reading the database: what a server starts with, pages of the past, and backups.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use protocols::yardstick::Message;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::rights::{self, LoadedRights};
use super::{LOCK_TIME_MAX, Store, Trouble, Want, folder};
use crate::chat::message::{self, Extra, PageRoom};
use crate::config::PAGE_MESSAGES_MAX;

/// Between two tries to begin a backup while something else keeps the database.
const BACKUP_PAUSE: Duration = Duration::from_millis(20);

/// A message of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) number: u32,
    pub(crate) sender: Box<str>,
    pub(crate) text: Box<str>,
    pub(crate) at_ms: u64,
    pub(crate) extra: Option<Box<Extra>>,
}

impl Past {
    pub(crate) fn message(&self) -> Message<'_> {
        let said = (&*self.sender, &*self.text, self.at_ms);
        message::of(self.number, said, self.extra.as_deref())
    }

    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Past> {
        let (sender, text): (String, String) = (row.get(1)?, row.get(2)?);
        let (at_ms, edited_ms): (i64, i64) = (row.get(3)?, row.get(5)?);
        let (sender, text) = (sender.into(), text.into());
        let (reply_to, deleted) = (row.get(4)?, row.get(6)?);
        let extra = Extra { reply_to, edited_ms: edited_ms as u64, deleted, ..Extra::default() };
        let extra = (extra != Extra::default()).then(|| Box::new(extra));
        Ok(Past { number: row.get(0)?, sender, text, at_ms: at_ms as u64, extra })
    }
}

/// A room as it was left.
#[derive(Debug)]
pub(crate) struct LoadedRoom {
    pub(crate) name: String,
    /// The number of the latest message.
    pub(crate) number: u32,
    /// The latest messages, oldest first.
    pub(crate) past: Vec<Past>,
    /// If it has an owner.
    pub(crate) owned: Option<LoadedRights>,
    /// How far people have read.
    pub(crate) reads: Vec<(Box<str>, u32)>,
}

/// All that a server starts with.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Names and secrets.
    pub(crate) accounts: Vec<(String, String)>,
    pub(crate) rooms: Vec<LoadedRoom>,
    /// Revoked tokens and when they end, in Unix milliseconds.
    pub(crate) revoked: Vec<([u8; 32], u64)>,
    /// Who was told something, and the number of the latest.
    pub(crate) inboxes: Vec<(String, u32)>,
}

impl Store {
    /// Reads everything a server starts with; forgets revoked tokens that have ended by now.
    pub(crate) fn load(&self, history: usize, now_ms: u64) -> Result<Loaded, Trouble> {
        self.db.execute("DELETE FROM revoked WHERE expires_ms <= ?1", [now_ms as i64])?;
        let mut accounts = self.db.prepare("SELECT name, secret FROM accounts")?;
        let accounts = accounts.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut revoked = self.db.prepare("SELECT tag, expires_ms FROM revoked")?;
        let revoked = revoked.query_map([], |row| {
            let expires_ms: i64 = row.get(1)?;
            Ok((row.get(0)?, expires_ms as u64))
        })?;
        let mut rooms = self.db.prepare("SELECT id, name FROM rooms ORDER BY id")?;
        let rooms = rooms.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rooms = rooms.map(|room| self.load_room(room?, history));
        Ok(Loaded {
            accounts: accounts.collect::<Result<_, _>>()?,
            rooms: rooms.collect::<Result<_, Trouble>>()?,
            revoked: revoked.collect::<Result<_, _>>()?,
            inboxes: self.inboxes()?,
        })
    }

    fn load_room(&self, (id, name): (i64, String), history: usize) -> Result<LoadedRoom, Trouble> {
        let past = self.messages(&name, (0, 0), history.max(1))?;
        let number = past.last().map_or(0, |last| last.number);
        let keep = past.len().min(history);
        let past = past[past.len() - keep..].to_vec();
        let (owned, reads) = (rights::load(&self.db, id)?, self.reads(&name)?);
        Ok(LoadedRoom { name, number, past, owned, reads })
    }

    /// Looks a page up.
    pub(super) fn page(&self, want: &Want) -> Result<Vec<Past>, Trouble> {
        match want {
            Want::Page { name, before, limit } => self.messages(name, (0, *before), *limit),
            Want::CatchUp(join) => self.messages(&join.room, (join.after, 0), PAGE_MESSAGES_MAX),
            Want::Inbox { person, before, limit } => self.told(person, *before, *limit),
            _ => Ok(Vec::new()),
        }
    }

    /// The latest `limit` messages of a room behind number `after` and before number `before` (0:
    /// the very latest), oldest first; fewer if they are long.
    fn messages(
        &self,
        room: &str,
        (after, before): (u32, u32),
        limit: usize,
    ) -> Result<Vec<Past>, Trouble> {
        let find = "SELECT id FROM rooms WHERE name = ?1";
        let id: Option<i64> =
            self.db.prepare_cached(find)?.query_row([room], |row| row.get(0)).optional()?;
        let Some(id) = id else { return Ok(Vec::new()) };
        let end = if before == 0 { i64::MAX } else { i64::from(before) };
        let mut select = self.db.prepare_cached(
            "SELECT number, sender, text, at_ms, reply_to, edited_ms, deleted FROM messages \
             WHERE room = ?1 AND number > ?2 AND number < ?3 ORDER BY number DESC LIMIT ?4",
        )?;
        let mut page = Vec::new();
        let mut room = PageRoom::default();
        for past in select.query_map(params![id, after, end, limit as i64], Past::of)? {
            let past = past?;
            if !room.takes(&past.text, None) {
                break;
            }
            page.push(past);
        }
        self.add_reactions(id, &mut page)?;
        let mut room = PageRoom::default();
        let fits = |past: &&Past| room.takes(&past.text, past.extra.as_deref());
        page.truncate(page.iter().take_while(fits).count());
        page.reverse();
        Ok(page)
    }
}

/// Copies the database of a data folder into a new file, as it is at one instant; a server may be
/// writing to it meanwhile, and is not held up.
pub(crate) fn backup(data: &Path, file: &Path) -> Result<(), Trouble> {
    let source = folder::database(data);
    let wrong = |why: Trouble| Trouble(format!("{}: {why}", source.display()));
    if file.exists() {
        return Err(Trouble(format!("{} exists", file.display())));
    }
    let mut partial = file.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    let written = copy(&source, partial).map_err(wrong);
    let moved = written.and_then(|()| {
        let keep = || -> io::Result<()> {
            fs::File::open(partial)?.sync_all()?;
            fs::rename(partial, file)
        };
        keep().map_err(|error| Trouble(format!("{}: {error}", file.display())))
    });
    if moved.is_err() {
        let _ = fs::remove_file(partial); // the error says more than this could
    }
    moved
}

fn copy(source: &Path, partial: &Path) -> Result<(), Trouble> {
    let no_new_file = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(source, no_new_file)?;
    source.busy_timeout(LOCK_TIME_MAX)?;
    // It holds hashes of passwords: nobody else is to read it.
    let options =
        fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).to_owned();
    options.open(partial).map_err(|error| Trouble(error.to_string()))?;
    let mut copy = Connection::open(partial)?;
    {
        let backup = Backup::new(&source, &mut copy)?;
        // All pages in one step: the copy is of one instant, and a log needs no second look.
        let tries_max = LOCK_TIME_MAX.as_millis() / BACKUP_PAUSE.as_millis();
        let mut result = backup.step(-1)?;
        for _ in 0..tries_max {
            if result == StepResult::Done {
                break;
            }
            std::thread::sleep(BACKUP_PAUSE);
            result = backup.step(-1)?;
        }
        if result != StepResult::Done {
            return Err(Trouble("it is locked by another process".to_owned()));
        }
    }
    let verdict: String = copy.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    match &*verdict {
        "ok" => Ok(copy.close().map_err(|(_, error)| error)?),
        _ => Err(Trouble(format!("the copy is damaged: {verdict}"))),
    }
}
