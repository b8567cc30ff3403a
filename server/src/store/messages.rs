//! Messages in the database: said, changed, reacted to, read.

use rusqlite::{OptionalExtension, Transaction, params};

use super::read::Past;
use super::rights::role;
use super::{Outcome, RoomMarks, Rooms, Store, Trouble, find_room, room};
use crate::chat::amend::{Amend, How, no_message, not_yours, reacted};
use crate::chat::message::{self, Extra};
use crate::chat::rights::may_delete;
use crate::config::{PAGE_BYTES_MAX, REACTIONS_MAX};

/// Writes a message: who said it, its text and when; unless it was written before.
pub(super) fn say(
    change: &Transaction<'_>,
    rooms: &mut Rooms,
    name: &str,
    (sender, text, at_ms): (&str, &str, u64),
    extra: Option<&Extra>,
) -> Result<Outcome, Trouble> {
    let (room, latest) = room(change, rooms, name)?;
    let Some(number) = latest.checked_add(1) else {
        return Ok(Outcome::Failed(Trouble("the room has no more numbers".to_owned())));
    };
    let plain = "INSERT INTO messages (room, number, sender, text, at_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5)";
    match extra {
        None => {
            let row = params![room, number, sender, text, at_ms as i64];
            change.prepare_cached(plain)?.execute(row)?;
        }
        Some(extra) => {
            if let Some(outcome) = said_before(change, room, sender, &extra.key)? {
                return Ok(outcome);
            }
            if extra.reply_to != 0 && !is_there(change, room, extra.reply_to)? {
                return Ok(no_message(extra.reply_to));
            }
            let insert = "INSERT INTO messages (room, number, sender, text, at_ms, reply_to, key) \
                          VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let key = Some(&extra.key).filter(|key| !key.is_empty());
            let row = params![room, number, sender, text, at_ms as i64, extra.reply_to, key];
            change.prepare_cached(insert)?.execute(row)?;
        }
    }
    rooms.insert(name.into(), (room, number));
    Ok(Outcome::Numbered(number))
}

/// What somebody has said with this key.
fn said_before(
    change: &Transaction<'_>,
    room: i64,
    sender: &str,
    key: &str,
) -> Result<Option<Outcome>, Trouble> {
    if key.is_empty() {
        return Ok(None);
    }
    let find = "SELECT number, at_ms FROM messages WHERE room = ?1 AND sender = ?2 AND key = ?3";
    let again = |row: &rusqlite::Row<'_>| {
        let at_ms: i64 = row.get(1)?;
        Ok(Outcome::Again { number: row.get(0)?, at_ms: at_ms as u64 })
    };
    Ok(change.prepare_cached(find)?.query_row(params![room, sender, key], again).optional()?)
}

/// Whether there is a message of that number, and it is not deleted.
fn is_there(change: &Transaction<'_>, room: i64, number: u32) -> Result<bool, Trouble> {
    let find = "SELECT deleted FROM messages WHERE room = ?1 AND number = ?2";
    let deleted: Option<bool> = change
        .prepare_cached(find)?
        .query_row(params![room, number], |row| row.get(0))
        .optional()?;
    Ok(deleted == Some(false))
}

/// Changes a message, if there is such a one and it may be.
pub(super) fn amend(
    change: &Transaction<'_>,
    rooms: &Rooms,
    amend: &Amend,
) -> Result<Outcome, Trouble> {
    let Some((room, _)) = find_room(change, rooms, &amend.room)? else {
        return Ok(no_message(amend.number));
    };
    let find = "SELECT sender, text, deleted FROM messages WHERE room = ?1 AND number = ?2";
    let judge = |row: &rusqlite::Row<'_>| {
        let (sender, text) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
        Ok(amend.judge(sender, text, row.get(2)?))
    };
    if is_beyond(change, room, amend)? {
        return Ok(not_yours());
    }
    let found = change.prepare_cached(find)?.query_row(params![room, amend.number], judge);
    let outcome = match (found.optional()?, &amend.how) {
        (None, _) => no_message(amend.number),
        (Some(Some(outcome)), _) => outcome,
        (Some(None), How::React { reaction, remove }) => {
            reacted(judge_reaction(change, room, amend, reaction, *remove)?)
        }
        (Some(None), _) => Outcome::Changed(false),
    };
    if matches!(outcome, Outcome::Changed(true)) {
        write(change, room, amend)?;
    }
    Ok(outcome)
}

/// Whether somebody wants to delete a message of somebody else and has no right to, or no longer.
fn is_beyond(change: &Transaction<'_>, room: i64, amend: &Amend) -> Result<bool, Trouble> {
    let find = "SELECT sender FROM messages WHERE room = ?1 AND number = ?2";
    let How::Delete { others: true } = amend.how else { return Ok(false) };
    let sender: Option<String> = change
        .prepare_cached(find)?
        .query_row(params![room, amend.number], |row| row.get(0))
        .optional()?;
    let Some(sender) = sender.filter(|sender| amend.is_of_another(sender)) else {
        return Ok(false);
    };
    let roles = (role(change, room, &amend.name)?, role(change, room, &sender)?);
    Ok(!may_delete(roles.0, roles.1))
}

fn judge_reaction(
    change: &Transaction<'_>,
    room: i64,
    amend: &Amend,
    reaction: &str,
    remove: bool,
) -> Result<message::Verdict, Trouble> {
    let find = "SELECT count(*), coalesce(max(name = ?4), 0) FROM reactions \
                WHERE room = ?1 AND number = ?2 AND reaction = ?3";
    let row = params![room, amend.number, reaction, amend.name];
    let mut find = change.prepare_cached(find)?;
    let (names, has): (u32, bool) = find.query_row(row, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let kinds = if names == 0 && !remove { kinds(change, room, amend.number)? } else { 0 };
    Ok(message::judge(remove, has, names as usize, || kinds))
}

/// How many different reactions a message has: a look at one row of each.
fn kinds(change: &Transaction<'_>, room: i64, number: u32) -> Result<usize, Trouble> {
    let next = "SELECT min(reaction) FROM reactions \
                WHERE room = ?1 AND number = ?2 AND reaction > ?3";
    let mut next = change.prepare_cached(next)?;
    let mut last = String::new();
    for count in 0..REACTIONS_MAX {
        let found: Option<String> =
            next.query_row(params![room, number, last], |row| row.get(0))?;
        let Some(found) = found else { return Ok(count) };
        last = found;
    }
    Ok(REACTIONS_MAX)
}

/// Writes a change that was decided.
fn write(change: &Transaction<'_>, room: i64, amend: &Amend) -> Result<(), Trouble> {
    let number = amend.number;
    match &amend.how {
        How::Edit(text) => {
            let update = "UPDATE messages SET text = ?3, edited_ms = ?4 \
                          WHERE room = ?1 AND number = ?2";
            let row = params![room, number, text, amend.at_ms as i64];
            change.prepare_cached(update)?.execute(row)?;
        }
        How::Delete { .. } => {
            let update = "UPDATE messages SET text = '', deleted = 1 \
                          WHERE room = ?1 AND number = ?2";
            change.prepare_cached(update)?.execute(params![room, number])?;
            let delete = "DELETE FROM reactions WHERE room = ?1 AND number = ?2";
            change.prepare_cached(delete)?.execute(params![room, number])?;
        }
        How::React { reaction, remove } => {
            let statement = match remove {
                false => "INSERT INTO reactions VALUES (?1, ?2, ?3, ?4)",
                true => {
                    "DELETE FROM reactions \
                     WHERE room = ?1 AND number = ?2 AND reaction = ?3 AND name = ?4"
                }
            };
            let row = params![room, number, reaction, amend.name];
            change.prepare_cached(statement)?.execute(row)?;
        }
    }
    Ok(())
}

/// Writes how far people have read; no marker goes back.
pub(super) fn mark(
    change: &Transaction<'_>,
    rooms: &Rooms,
    marks: &[RoomMarks],
) -> Result<Outcome, Trouble> {
    let mut insert = change.prepare_cached(
        "INSERT INTO reads VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE \
         SET number = max(number, excluded.number)",
    )?;
    for (room, marks) in marks {
        // Where nothing was ever said there is nothing to be read.
        let Some((room, _)) = find_room(change, rooms, room)? else { continue };
        for (name, number) in marks {
            insert.execute(params![room, name, number])?;
        }
    }
    Ok(Outcome::Noted)
}

impl Store {
    /// Adds the reactions to messages that follow each other, latest first: to as many as a page
    /// can hold with them, and at most one more.
    pub(super) fn add_reactions(&self, room: i64, page: &mut [Past]) -> Result<(), Trouble> {
        let (Some(newest), Some(oldest)) = (page.first(), page.last()) else { return Ok(()) };
        let (newest, oldest) = (newest.number, oldest.number);
        let mut select = self.db.prepare_cached(
            "SELECT number, reaction, name FROM reactions \
             WHERE room = ?1 AND number BETWEEN ?2 AND ?3 ORDER BY number DESC, reaction, name",
        )?;
        let mut rows = select.query(params![room, oldest, newest])?;
        let (mut bytes, mut last) = (0, newest);
        while let Some(row) = rows.next()? {
            let number: u32 = row.get(0)?;
            if number != last && bytes > PAGE_BYTES_MAX {
                break;
            }
            last = number;
            let at = page.binary_search_by(|past| number.cmp(&past.number));
            let Some(past) = at.ok().and_then(|at| page.get_mut(at)) else { continue };
            let (reaction, name): (String, String) = (row.get(1)?, row.get(2)?);
            bytes += reaction.len() + name.len();
            past.extra.get_or_insert_default().react(&reaction, &name, false);
        }
        Ok(())
    }

    /// How far people have read in a room.
    pub(super) fn reads(&self, room: &str) -> Result<Vec<(Box<str>, u32)>, Trouble> {
        let mut select = self.db.prepare_cached(
            "SELECT reads.name, number FROM reads JOIN rooms ON id = room WHERE rooms.name = ?1",
        )?;
        let reads = select.query_map([room], |row| {
            let name: String = row.get(0)?;
            Ok((name.into(), row.get(1)?))
        })?;
        Ok(reads.collect::<Result<_, _>>()?)
    }
}
