//! Accounts: who the people of a crowd log in as.

use super::reader::Reader;
use super::room::check_pattern;
use super::tree::{Node, Value};
use crate::stamp::PEOPLE_MAX;
use crate::{Accounts, Secret};

pub(super) const KEYS: &[&str] = &["count", "first", "name", "password", "csv"];
const SECRET_KEYS: &[&str] = &["env", "file"];

/// Reads `accounts`. `people` is how many the timeline brings: the default count.
pub(super) fn read(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    crowd: &str,
    people: u32,
) -> Option<Accounts> {
    let Some(node) = node else { return Some(default(crowd, people)) };
    let fields = reader.fields(node, "`accounts`", KEYS)?;
    if let Some(csv) = fields.get("csv") {
        for key in ["count", "first", "name", "password"] {
            if let Some((key, _)) = fields.pair(key) {
                let help = "the columns `name` and `password` of the file say it all";
                reader.wrong(key.place, "a CSV file is used as it is", help);
            }
        }
        let path = reader.text(csv, "the path of the CSV file")?;
        return Some(Accounts::File { path: path.into() });
    }
    let count = match fields.get("count") {
        Some(count) => reader.whole(count, "the count of accounts", 1, PEOPLE_MAX.into())? as u32,
        None => people.max(1),
    };
    let first = match fields.get("first") {
        Some(first) => {
            let high = u32::MAX - PEOPLE_MAX;
            reader.whole(first, "the first number", 0, high.into())? as u32
        }
        None => 0,
    };
    let name = match fields.get("name") {
        Some(at) => {
            let name = reader.text(at, "the name of the accounts")?;
            check_pattern(reader, at, name, count.into(), &["n", "crowd"])?;
            name.replace("{crowd}", crowd)
        }
        None => default_name(crowd),
    };
    let password = match fields.get("password") {
        Some(node) => secret(reader, node)?,
        None => Secret::Pattern(String::new()),
    };
    Some(Accounts::Pattern { name, password, first, count })
}

fn default(crowd: &str, people: u32) -> Accounts {
    Accounts::Pattern {
        name: default_name(crowd),
        password: Secret::Pattern(String::new()),
        first: 0,
        count: people.max(1),
    }
}

fn default_name(crowd: &str) -> String {
    format!("{crowd}-{{n}}")
}

fn secret(reader: &mut Reader<'_>, node: &Node) -> Option<Secret> {
    if let Value::Text(text) = &node.value {
        check_pattern(reader, node, text, 1, &["n"])?;
        return Some(Secret::Pattern(text.to_string()));
    }
    let fields = reader.fields(node, "`password`", SECRET_KEYS)?;
    match (fields.get("env"), fields.get("file")) {
        (Some(env), None) => Some(Secret::Env(reader.text(env, "the variable's name")?.into())),
        (None, Some(file)) => Some(Secret::File(reader.text(file, "the file's path")?.into())),
        _ => {
            let help = "as in `\"user{n}\"`, `{env: CHAT_PASSWORD}` or `{file: secret.txt}`";
            reader.missing(&fields, node.place, "`password` needs one source", help);
            None
        }
    }
}
