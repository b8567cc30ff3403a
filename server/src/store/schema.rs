//! The tables, and how a file of an older version becomes one of this version.

use rusqlite::{Connection, TransactionBehavior};

use super::Trouble;

/// Marks a file as ours: "yard" in ASCII.
const APPLICATION_ID: i64 = 0x7961_7264;

/// Each step makes the next version of the file, beginning with an empty one. Steps that were
/// published are never changed.
const STEPS: &[&str] = &[
    "CREATE TABLE accounts (
         name TEXT PRIMARY KEY,
         secret TEXT NOT NULL
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE rooms (
         id INTEGER PRIMARY KEY,
         name TEXT NOT NULL UNIQUE
     ) STRICT;
     CREATE TABLE messages (
         room INTEGER NOT NULL REFERENCES rooms,
         number INTEGER NOT NULL,
         sender TEXT NOT NULL,
         text TEXT NOT NULL,
         at_ms INTEGER NOT NULL,
         PRIMARY KEY (room, number)
     ) STRICT, WITHOUT ROWID;",
    "CREATE TABLE revoked (
         tag BLOB PRIMARY KEY,
         expires_ms INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;",
    "CREATE TABLE owned (
         room INTEGER PRIMARY KEY REFERENCES rooms,
         private INTEGER NOT NULL,
         slow_ms INTEGER NOT NULL
     ) STRICT;
     CREATE TABLE roles (
         room INTEGER NOT NULL REFERENCES owned,
         name TEXT NOT NULL,
         role TEXT NOT NULL,
         PRIMARY KEY (room, name)
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX owners ON roles (room, name) WHERE role = 'owner';",
    "ALTER TABLE messages ADD COLUMN reply_to INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE messages ADD COLUMN key TEXT;
     ALTER TABLE messages ADD COLUMN edited_ms INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE messages ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
     CREATE UNIQUE INDEX messages_key ON messages (room, sender, key) WHERE key IS NOT NULL;
     CREATE TABLE reactions (
         room INTEGER NOT NULL REFERENCES rooms,
         number INTEGER NOT NULL,
         reaction TEXT NOT NULL,
         name TEXT NOT NULL,
         PRIMARY KEY (room, number, reaction, name)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE reads (
         room INTEGER NOT NULL REFERENCES rooms,
         name TEXT NOT NULL,
         number INTEGER NOT NULL,
         PRIMARY KEY (room, name)
     ) STRICT, WITHOUT ROWID;",
    "CREATE TABLE told (
         id INTEGER PRIMARY KEY,
         sender TEXT NOT NULL,
         key TEXT NOT NULL,
         text TEXT NOT NULL,
         at_ms INTEGER NOT NULL
     ) STRICT;
     CREATE UNIQUE INDEX told_keys ON told (sender, key) WHERE key <> '';
     CREATE TABLE inbox (
         person TEXT NOT NULL,
         number INTEGER NOT NULL,
         told INTEGER NOT NULL REFERENCES told,
         PRIMARY KEY (person, number)
     ) STRICT, WITHOUT ROWID;",
    "CREATE TABLE log (
         id INTEGER PRIMARY KEY CHECK (id = 0),
         log TEXT NOT NULL,
         position INTEGER NOT NULL,
         key BLOB
     ) STRICT;
     CREATE TABLE lives (
         life INTEGER PRIMARY KEY,
         serial INTEGER NOT NULL
     ) STRICT;",
];

/// The version this program writes.
pub(super) const VERSION: i64 = STEPS.len() as i64;

fn number(db: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, pragma, |row| row.get(0))
}

/// Brings a file up to this version, in one transaction.
pub(super) fn migrate(db: &mut Connection) -> Result<(), Trouble> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (version, owner) = (number(&change, "user_version")?, number(&change, "application_id")?);
    if version == 0 {
        let tables: i64 =
            change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if owner != 0 || tables > 0 {
            return Err(Trouble("it is a database of something else".to_owned()));
        }
        change.pragma_update(None, "application_id", APPLICATION_ID)?;
    } else if owner != APPLICATION_ID {
        return Err(Trouble("it is a database of something else".to_owned()));
    }
    if !(0..=VERSION).contains(&version) {
        let text = format!("it has version {version}; this program knows up to {VERSION}");
        return Err(Trouble(text));
    }
    for step in &STEPS[version as usize..] {
        change.execute_batch(step)?;
    }
    if version < VERSION {
        change.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(change.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as version 1 has left it, with one row in each table.
    fn version_one() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(STEPS[0]).unwrap();
        db.execute_batch(
            "INSERT INTO accounts VALUES ('ann', 'secret');
             INSERT INTO rooms VALUES (1, 'live');
             INSERT INTO messages VALUES (1, 1, 'ann', 'hello', 1700000000000);",
        )
        .unwrap();
        db.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        db.pragma_update(None, "user_version", 1).unwrap();
        db
    }

    #[test]
    fn an_old_file_becomes_a_new_one_and_keeps_what_it_has() {
        let mut db = version_one();
        assert!(db.execute("INSERT INTO revoked VALUES (x'00', 1)", []).is_err());
        assert!(db.execute("INSERT INTO inbox VALUES ('bob', 1, 1)", []).is_err());
        for _ in 0..2 {
            migrate(&mut db).unwrap(); // the second time there is nothing to do
            assert_eq!(number(&db, "user_version").unwrap(), VERSION);
        }
        db.execute("INSERT INTO revoked VALUES (x'00', 1)", []).unwrap();
        db.execute("INSERT INTO owned VALUES (1, 0, 0)", []).unwrap();
        db.execute("INSERT INTO roles VALUES (1, 'ann', 'owner')", []).unwrap();
        db.execute("INSERT INTO told VALUES (1, 'ann', '', 'psst', 1)", []).unwrap();
        db.execute("INSERT INTO inbox VALUES ('bob', 1, 1)", []).unwrap();
        let text: String = db.query_row("SELECT text FROM messages", [], |row| row.get(0)).unwrap();
        assert_eq!(text, "hello");
    }

    /// What the messages of version 2 become: as if nobody had replied, edited or reacted.
    #[test]
    fn old_messages_have_nothing_of_what_came_later() {
        let mut db = version_one();
        db.execute_batch(STEPS[1]).unwrap();
        db.pragma_update(None, "user_version", 2).unwrap();
        migrate(&mut db).unwrap();
        let select = "SELECT reply_to, key IS NULL, edited_ms, deleted FROM messages";
        let row = db
            .query_row(select, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
        assert_eq!(row, Ok((0, true, 0, false)));
        let insert = "INSERT INTO messages (room, number, sender, text, at_ms, key) \
                      VALUES (1, ?1, ?2, 'x', 5, ?3)";
        let rows = [(2, "ann", Some("k"), true), (3, "ann", Some("k"), false)];
        let others = [(3, "bob", Some("k"), true), (4, "ann", None, true), (5, "ann", None, true)];
        for (number, sender, key, is_fine) in rows.into_iter().chain(others) {
            let result = db.execute(insert, rusqlite::params![number, sender, key]);
            assert_eq!(result.is_ok(), is_fine, "{number} {sender} {key:?}");
        }
        let plan = "EXPLAIN QUERY PLAN SELECT number FROM messages \
                    WHERE room = 1 AND sender = 'ann' AND key = 'k'";
        let plan: String = db.query_row(plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("messages_key"), "{plan}");
    }

    #[test]
    fn an_empty_file_is_filled_and_others_are_refused() {
        let mut empty = Connection::open_in_memory().unwrap();
        migrate(&mut empty).unwrap();
        assert_eq!(number(&empty, "application_id").unwrap(), APPLICATION_ID);
        let rows = [
            ("CREATE TABLE t (a)", "something else"),
            ("PRAGMA application_id = 7", "something else"),
            ("PRAGMA user_version = 1", "something else"),
            ("PRAGMA application_id = 2036429412; PRAGMA user_version = 99", "version 99"),
            ("PRAGMA application_id = 2036429412; PRAGMA user_version = -1", "version -1"),
        ];
        for (statements, expect) in rows {
            let mut db = Connection::open_in_memory().unwrap();
            db.execute_batch(statements).unwrap();
            let why = migrate(&mut db).unwrap_err().to_string();
            assert!(why.contains(expect), "{statements}: {why}");
            let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'accounts'";
            assert_eq!(db.query_row(tables, [], |row| row.get(0)), Ok(0), "{statements}");
        }
    }
}
