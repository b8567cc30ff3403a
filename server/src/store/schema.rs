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
        for _ in 0..2 {
            migrate(&mut db).unwrap(); // the second time there is nothing to do
            assert_eq!(number(&db, "user_version").unwrap(), VERSION);
        }
        db.execute("INSERT INTO revoked VALUES (x'00', 1)", []).unwrap();
        let text: String = db.query_row("SELECT text FROM messages", [], |row| row.get(0)).unwrap();
        assert_eq!(text, "hello");
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
