//! Following a log that several nodes share: its batches are carried out together with the place
//! they have in it, so that a restart goes on just behind what is kept.

use rusqlite::{OptionalExtension, Transaction, params};

use super::{Done, Outcome, Store, Trouble, put};
use crate::bus::Batch;

/// How far this store has come in which log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Following {
    /// What tells the log from all others.
    pub(crate) log: String,
    /// The place of the latest entry that was carried out.
    pub(crate) position: u64,
    /// The key of tokens, once one was carried out.
    pub(crate) key: Option<[u8; 32]>,
}

impl Store {
    /// How far this store has come; `None` if it has followed no log yet.
    pub(crate) fn following(&self) -> Result<Option<Following>, Trouble> {
        let find = "SELECT log, position, key FROM log";
        let of_row = |row: &rusqlite::Row<'_>| {
            let position: i64 = row.get(1)?;
            Ok(Following { log: row.get(0)?, position: position as u64, key: row.get(2)? })
        };
        Ok(self.db.query_row(find, [], of_row).optional()?)
    }

    /// Begins to follow a log, or goes on with it. A store that has a past of its own, or that of
    /// another log, is refused.
    pub(crate) fn follow(&mut self, log: &str) -> Result<Following, Trouble> {
        if let Some(following) = self.following()? {
            return match following.log == log {
                true => Ok(following),
                false => Err(Trouble(format!(
                    "the data folder follows another log: it has come to entry {} of {}, and the \
                     NATS server has {log}; begin with an empty folder, or a copy of another node's",
                    following.position, following.log
                ))),
            };
        }
        let used = "SELECT (SELECT count(*) FROM accounts) + (SELECT count(*) FROM rooms)";
        if self.db.query_row(used, [], |row| row.get::<_, i64>(0))? > 0 {
            let why = "the data folder is that of a server that was alone, and what is in it is \
                       not in the log; begin with an empty folder";
            return Err(Trouble(why.to_owned()));
        }
        self.db.execute("INSERT INTO log (id, log, position) VALUES (0, ?1, 0)", [log])?;
        Ok(Following { log: log.to_owned(), position: 0, key: None })
    }

    /// A store that follows a log is not for a server that is alone: it would leave the log.
    pub(crate) fn check_alone(&self) -> Result<(), Trouble> {
        match self.following()? {
            None => Ok(()),
            Some(following) => Err(Trouble(format!(
                "the data folder is that of one of several nodes (it follows {}): --nats is missing",
                following.log
            ))),
        }
    }

    /// Carries out batches of the log in one transaction; if that fails nothing of them is done.
    pub(crate) fn follow_batches(
        &mut self,
        batches: Vec<Batch>,
    ) -> Result<Vec<Done>, FollowFailed> {
        match self.write_batches(&batches) {
            Ok(outcomes) => {
                let jobs = batches.into_iter().flat_map(|batch| batch.jobs);
                let counted = jobs.zip(outcomes).filter_map(|(job, outcome)| Some((job, outcome?)));
                let done = |(at, (job, outcome))| Done { job, outcome, begins: at == 0 };
                Ok(counted.enumerate().map(done).collect())
            }
            Err(trouble) => {
                self.forget_unwritten();
                Err(FollowFailed { trouble, batches })
            }
        }
    }

    /// What became of each job; `None` if its batch did not count.
    fn write_batches(&mut self, batches: &[Batch]) -> Result<Vec<Option<Outcome>>, Trouble> {
        let change = self.db.transaction()?;
        let mut outcomes = Vec::new();
        for batch in batches {
            let counts = is_next(&change, batch)?;
            for job in &batch.jobs {
                outcomes.push(match counts {
                    true => Some(put(&change, &mut self.rooms, &job.want)?),
                    false => None,
                });
            }
        }
        if let Some(last) = batches.last() {
            change.execute("UPDATE log SET position = ?1", [last.position as i64])?;
        }
        change.commit()?;
        Ok(outcomes)
    }
}

/// Batches that could not be carried out, given back.
pub(crate) struct FollowFailed {
    pub(crate) trouble: Trouble,
    pub(crate) batches: Vec<Batch>,
}

/// Whether a batch is the next one of its life: what was said twice, or behind a gap, does not
/// count.
fn is_next(change: &Transaction<'_>, batch: &Batch) -> Result<bool, Trouble> {
    let (life, serial) = (batch.life as i64, batch.serial as i64);
    let find = "SELECT serial FROM lives WHERE life = ?1";
    let mut find = change.prepare_cached(find)?;
    let last: i64 = find.query_row([life], |row| row.get(0)).optional()?.unwrap_or(0);
    if last.checked_add(1) != Some(serial) {
        return Ok(false);
    }
    let note = "INSERT OR REPLACE INTO lives (life, serial) VALUES (?1, ?2)";
    change.prepare_cached(note)?.execute(params![life, serial])?;
    Ok(true)
}

/// The first key of tokens in the log is everybody's; later ones come too late.
pub(super) fn put_key(change: &Transaction<'_>, key: &[u8; 32]) -> Result<Outcome, Trouble> {
    change.execute("UPDATE log SET key = ?1 WHERE key IS NULL", [&key[..]])?;
    Ok(Outcome::Noted)
}
