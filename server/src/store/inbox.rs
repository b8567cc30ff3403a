//! Direct messages in the database: what was told, and under which number in whose inbox.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::{Outcome, Past, Store, Trouble};
use crate::chat::message::PageRoom;

/// Stores a direct message and numbers it in the inbox of everybody it is for, unless the sender
/// has told something under that key before.
pub(super) fn tell(
    change: &Transaction<'_>,
    to: &[Box<str>],
    sender: &str,
    text: &str,
    (key, at_ms): (&str, u64),
) -> Result<Outcome, Trouble> {
    if !key.is_empty() {
        let find = "SELECT at_ms FROM told WHERE sender = ?1 AND key = ?2 AND key <> ''";
        let found: Option<i64> =
            change.prepare_cached(find)?.query_row([sender, key], |row| row.get(0)).optional()?;
        if let Some(at_ms) = found {
            return Ok(Outcome::Told { numbers: Vec::new(), at_ms: at_ms as u64 });
        }
    }
    let insert = "INSERT INTO told (sender, key, text, at_ms) VALUES (?1, ?2, ?3, ?4)";
    change.prepare_cached(insert)?.execute(params![sender, key, text, at_ms as i64])?;
    let told = change.last_insert_rowid();
    let mut insert = change.prepare_cached(
        "INSERT INTO inbox (person, number, told) \
         SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM inbox WHERE person = ?1 \
         RETURNING number",
    )?;
    let mut number = |name: &str| -> Result<u32, Trouble> {
        let number: i64 = insert.query_row(params![name, told], |row| row.get(0))?;
        u32::try_from(number).map_err(|_| Trouble("the inbox has no more numbers".to_owned()))
    };
    let numbers = to.iter().map(|name| number(name)).collect::<Result<_, Trouble>>()?;
    Ok(Outcome::Told { numbers, at_ms })
}

impl Store {
    /// Who was told something, and the number of the latest: two steps into the index for each, as
    /// a walk over all that was ever told would take long.
    pub(super) fn inboxes(&self) -> Result<Vec<(String, u32)>, Trouble> {
        let next = "SELECT min(person) FROM inbox WHERE person > ?1";
        let mut next = self.db.prepare(next)?;
        let mut latest = self.db.prepare("SELECT max(number) FROM inbox WHERE person = ?1")?;
        let mut inboxes: Vec<(String, u32)> = Vec::new();
        loop {
            let last = inboxes.last().map_or("", |(person, _)| person);
            let person: Option<String> = next.query_row([last], |row| row.get(0))?;
            let Some(person) = person else { return Ok(inboxes) };
            let number = latest.query_row([&person], |row| row.get(0))?;
            inboxes.push((person, number));
        }
    }

    /// The latest `limit` direct messages of somebody before number `before` (0: the very latest),
    /// oldest first; fewer if they are long.
    pub(crate) fn told(
        &self,
        person: &str,
        before: u32,
        limit: usize,
    ) -> Result<Vec<Past>, Trouble> {
        let end = if before == 0 { i64::MAX } else { i64::from(before) };
        let mut select = self.db.prepare_cached(
            "SELECT number, sender, text, at_ms FROM inbox JOIN told ON id = told \
             WHERE person = ?1 AND number < ?2 ORDER BY number DESC LIMIT ?3",
        )?;
        let past = |row: &Row<'_>| -> rusqlite::Result<Past> {
            let (sender, text): (String, String) = (row.get(1)?, row.get(2)?);
            let (sender, text, at_ms): (_, _, i64) = (sender.into(), text.into(), row.get(3)?);
            Ok(Past { number: row.get(0)?, sender, text, at_ms: at_ms as u64, extra: None })
        };
        let (mut page, mut space) = (Vec::new(), PageRoom::default());
        for past in select.query_map(params![person, end, limit as i64], past)? {
            let past = past?;
            if !space.takes(&past.text, None) {
                break;
            }
            page.push(past);
        }
        page.reverse();
        Ok(page)
    }
}
