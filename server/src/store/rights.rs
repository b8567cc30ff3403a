//! Rooms with an owner, and roles: what is right is decided in the order of the wants.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{Outcome, Trouble};
use crate::chat::rights::{self, Act, Case, Role, Standing, Target};

/// The rights in a room as they were left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoadedRights {
    pub(crate) private: bool,
    pub(crate) slow_ms: u32,
    /// By name.
    pub(crate) roles: Vec<(String, Role)>,
}

/// Does what somebody wants to do by right, if it is right.
pub(super) fn put(
    change: &Transaction<'_>,
    room: &str,
    by: &str,
    act: &Act,
) -> Result<Outcome, Trouble> {
    let find = "SELECT rooms.id, owned.private FROM rooms LEFT JOIN owned ON owned.room = rooms.id \
                WHERE name = ?1";
    let found: Option<(i64, Option<bool>)> = change
        .prepare_cached(find)?
        .query_row([room], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let case = match found {
        None => case_of_none(change, act)?,
        Some((id, private)) => case(change, id, private, by, act)?,
    };
    let outcome = Outcome::judged(rights::judge(act, &case), room);
    if let Outcome::Noted = outcome {
        write(change, found.map(|(id, _)| id), room, by, act)?;
    }
    Ok(outcome)
}

fn case_of_none(change: &Transaction<'_>, act: &Act) -> Result<Case, Trouble> {
    let target = act.who().map(|who| target(change, None, "", who)).transpose()?;
    Ok(Case { standing: Standing::Missing, asker: None, target })
}

fn case(
    change: &Transaction<'_>,
    room: i64,
    private: Option<bool>,
    by: &str,
    act: &Act,
) -> Result<Case, Trouble> {
    let standing = private.map_or(Standing::Open, |private| Standing::Owned { private });
    let target = act.who().map(|who| target(change, Some(room), by, who)).transpose()?;
    Ok(Case { standing, asker: role(change, room, by)?, target })
}

fn target(
    change: &Transaction<'_>,
    room: Option<i64>,
    by: &str,
    who: &str,
) -> Result<Target, Trouble> {
    let find = "SELECT 1 FROM accounts WHERE name = ?1";
    let is_known = change.prepare_cached(find)?.exists([who])?;
    let role = match room {
        Some(room) => role(change, room, who)?,
        None => None,
    };
    let find = "SELECT 1 FROM roles WHERE room = ?1 AND role = 'owner' AND name <> ?2";
    let is_last_owner =
        role == Some(Role::Owner) && !change.prepare_cached(find)?.exists(params![room, who])?;
    Ok(Target { is_known, role, is_self: by == who, is_last_owner })
}

/// What somebody is in a room.
pub(super) fn role(
    change: &Transaction<'_>,
    room: i64,
    name: &str,
) -> Result<Option<Role>, Trouble> {
    let find = "SELECT role FROM roles WHERE room = ?1 AND name = ?2";
    let found: Option<String> =
        change.prepare_cached(find)?.query_row(params![room, name], |row| row.get(0)).optional()?;
    found.map(|word| sound(&word)).transpose()
}

fn sound(word: &str) -> Result<Role, Trouble> {
    Role::of_word(word).ok_or_else(|| Trouble(format!("it has an unknown role {word:?}")))
}

/// Writes an act that is right. Who is kicked is not written down.
fn write(
    change: &Transaction<'_>,
    room: Option<i64>,
    name: &str,
    by: &str,
    act: &Act,
) -> Result<(), Trouble> {
    let set = "INSERT OR REPLACE INTO roles (room, name, role) VALUES (?1, ?2, ?3)";
    let set = |room, who: &str, role: Role| -> Result<(), Trouble> {
        change.prepare_cached(set)?.execute(params![room, who, role.word()])?;
        Ok(())
    };
    match (act, room) {
        (Act::Create { private, slow_ms }, _) => {
            change.execute("INSERT INTO rooms (name) VALUES (?1)", [name])?;
            let room = change.last_insert_rowid();
            let insert = "INSERT INTO owned (room, private, slow_ms) VALUES (?1, ?2, ?3)";
            change.execute(insert, params![room, private, slow_ms])?;
            set(room, by, Role::Owner)
        }
        (Act::Configure { private, slow_ms }, Some(room)) => {
            let update = "UPDATE owned SET private = ?2, slow_ms = ?3 WHERE room = ?1";
            change.execute(update, params![room, private, slow_ms])?;
            Ok(())
        }
        (Act::Grant { who, role: Some(role) }, Some(room)) => set(room, who, *role),
        (Act::Grant { who, role: None }, Some(room)) => {
            let delete = "DELETE FROM roles WHERE room = ?1 AND name = ?2";
            change.prepare_cached(delete)?.execute(params![room, who])?;
            Ok(())
        }
        (Act::Kick { .. }, _) | (_, None) => Ok(()),
    }
}

/// The rights in a room; `None` if it has no owner.
pub(super) fn load(db: &Connection, room: i64) -> Result<Option<LoadedRights>, Trouble> {
    let find = "SELECT private, slow_ms FROM owned WHERE room = ?1";
    let found: Option<(bool, u32)> = db
        .prepare_cached(find)?
        .query_row([room], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((private, slow_ms)) = found else { return Ok(None) };
    let find = "SELECT name, role FROM roles WHERE room = ?1 ORDER BY name";
    let mut find = db.prepare_cached(find)?;
    let rows = find.query_map([room], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let roles = rows.map(|row| {
        let (name, word): (String, String) = row?;
        Ok((name, sound(&word)?))
    });
    Ok(Some(LoadedRights { private, slow_ms, roles: roles.collect::<Result<_, Trouble>>()? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Want;
    use crate::store::tests::{Scratch, account, job, open, outcomes, say};

    #[test]
    fn rights_are_loaded_as_they_were_left_and_a_role_that_nobody_knows_is_told() {
        let scratch = Scratch::new("rights");
        let mut store = open(&scratch.path("db"));
        let act = |by: &str, act| job(Want::Rights { room: "den".into(), by: by.into(), act });
        let grant = |by, who: &str, role| act(by, Act::Grant { who: who.into(), role });
        let create = act("ann", Act::Create { private: true, slow_ms: 7 });
        let jobs = vec![
            account("ann", "s"),
            account("bob", "s"),
            say("live", "x"),
            create.clone(),
            create,
            grant("ann", "bob", Some(Role::Moderator)),
            grant("ann", "cyd", Some(Role::Member)), // nobody of that name
            grant("bob", "ann", None),
            act("ann", Act::Kick { who: "bob".into() }),
            act("bob", Act::Configure { private: true, slow_ms: 9 }),
            act("bob", Act::Configure { private: false, slow_ms: 9 }),
        ];
        let told = outcomes(&mut store, jobs);
        let starts = [
            "Added",
            "Added",
            "Numbered(1)",
            "Noted",
            "Refused(\"room_exists\"",
            "Noted",
            "Refused(\"unknown_name\"",
            "Refused(\"not_allowed\"",
            "Noted",
            "Noted",
            "Refused(\"not_allowed\"",
        ];
        let is_told = |(told, start): (&String, &&str)| told.starts_with(start);
        assert!(told.iter().zip(&starts).all(is_told), "{told:?}");
        let rooms = store.load(0, 0).unwrap().rooms;
        assert!(rooms[0].owned.is_none() && rooms.len() == 2);
        let owned = rooms[1].owned.as_ref().unwrap();
        let roles = [("ann".to_owned(), Role::Owner), ("bob".to_owned(), Role::Moderator)];
        assert_eq!((owned.private, owned.slow_ms, &*owned.roles), (true, 9, &roles[..]));
        store.db.execute_batch("UPDATE roles SET role = 'king' WHERE name = 'bob'").unwrap();
        let why = store.load(0, 0).unwrap_err().to_string();
        assert!(why.contains("king"), "{why}");
    }
}
