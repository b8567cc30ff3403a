//! The map `socketio`: which event of an application is which verb, and which are deliveries.
//! Checked here, where mistakes have a place, and passed on as JSON in an option of the target.

use super::near;
use super::reader::Reader;
use super::tree::{Node, Value};
use serde_json::{Map, Value as Json};

/// The key, and the protocol it belongs to.
pub(super) const KEY: &str = "socketio";
/// The option that carries it.
pub(super) const OPTION: &str = "dialect";
pub(super) const VERBS: &[&str] =
    &["login", "join", "leave", "say", "history", "members", "presence", "typing", "read", "ping"];
pub(super) const OTHERS: &[&str] = &["auth", "deliveries", "announcements", "echo"];
pub(super) const VERB_KEYS: &[&str] = &["emit", "done", "refused"];
pub(super) const DONE_KEYS: &[&str] = &["event", "with"];
const DONE: &[&str] = &["ack", "sent", "echo"];
/// What may stand in braces.
const BLANKS: &[&str] = &["room", "nick", "name", "password", "text", "status", "limit"];
/// Longest map, bytes of JSON.
const BYTES_MAX: usize = 64 << 10;

/// Reads the map into JSON.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let keys = [VERBS, OTHERS].concat();
    let fields = reader.fields(node, "`socketio`", &keys)?;
    let before = reader.count();
    let mut map = Map::new();
    for key in VERBS {
        if let Some(node) = fields.get(key) {
            map.insert((*key).into(), verb(reader, node, key).unwrap_or_default());
        }
    }
    for key in ["deliveries", "announcements"] {
        let Some(node) = fields.get(key) else { continue };
        let items = reader.items(node, &format!("`{key}`")).unwrap_or_default();
        let names: Vec<Json> =
            items.iter().filter_map(|item| Some(reader.text(item, "an event")?.into())).collect();
        map.insert(key.into(), names.into());
    }
    if let Some(node) = fields.get("auth") {
        if node.map().is_none() {
            reader.wrong(node.place, "`auth` must be a map", "as in `{token: \"{password}\"}`");
        }
        map.insert("auth".into(), json(reader, node));
    }
    if let Some(node) = fields.get("echo") {
        let word = reader.text(node, "`echo`")?;
        if !matches!(word, "true" | "false") {
            let help = "`true` if a message comes back to its sender, too";
            reader.wrong(node.place, format!("`echo` cannot be `{word}`"), help);
        }
        map.insert("echo".into(), (word == "true").into());
    }
    let text = Json::Object(map).to_string();
    if text.len() > BYTES_MAX {
        let reason = format!("`socketio` has more than {BYTES_MAX} bytes");
        reader.wrong(node.place, reason, "an application needs far fewer");
    }
    (reader.count() == before).then_some(text)
}

fn verb(reader: &mut Reader<'_>, node: &Node, name: &str) -> Option<Json> {
    let fields = reader.fields(node, &format!("`{name}`"), VERB_KEYS)?;
    let Some(emit) = fields.get("emit") else {
        let help = format!("as in `{name}: {{emit: [{name}, \"{{room}}\"]}}`");
        reader.missing(&fields, node.place, &format!("`{name}` does not say what to emit"), &help);
        return None;
    };
    let mut map = Map::new();
    let items = reader.items(emit, "`emit`")?;
    if items.first().and_then(Node::text).is_none() {
        reader.wrong(
            emit.place,
            "`emit` begins with the event's name",
            "as in `[join, \"{room}\"]`",
        );
    }
    let mut arguments: Vec<Json> = items.iter().map(|item| json(reader, item)).collect();
    if let (Some(first), Some(text)) = (arguments.first_mut(), items.first().and_then(Node::text)) {
        *first = text.into();
    }
    map.insert("emit".into(), arguments.into());
    if let Some(node) = fields.get("done") {
        map.insert("done".into(), done(reader, node)?);
    }
    if let Some(node) = fields.get("refused") {
        map.insert("refused".into(), reader.text(node, "`refused`")?.into());
    }
    Some(map.into())
}

fn done(reader: &mut Reader<'_>, node: &Node) -> Option<Json> {
    const HELP: &str = "`ack`, `sent`, `echo`, or `{event: name, with: text}`";
    if let Some(word) = node.text() {
        if !DONE.contains(&word) {
            reader.wrong(node.place, format!("`done` cannot be `{word}`"), HELP);
            return None;
        }
        return Some(word.into());
    }
    let fields = reader.fields(node, "`done`", DONE_KEYS)?;
    let Some(event) = fields.get("event") else {
        reader.missing(&fields, node.place, "`done` names no event", HELP);
        return None;
    };
    let mut map = Map::new();
    map.insert("event".into(), reader.text(event, "an event")?.into());
    if let Some(with) = fields.get("with") {
        check_blanks(reader, with);
        map.insert("with".into(), reader.text(with, "`with`")?.into());
    }
    Some(map.into())
}

/// A value as JSON: what looks like a number, `true` or `false` is one.
fn json(reader: &mut Reader<'_>, node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Text(text) => {
            check_blanks(reader, node);
            match serde_json::from_str(text) {
                Ok(value @ (Json::Number(_) | Json::Bool(_))) => value,
                _ => Json::String(text.to_string()),
            }
        }
        Value::List(items) => items.iter().map(|item| json(reader, item)).collect(),
        Value::Map(pairs) => {
            let mut map = Map::new();
            for (key, value) in pairs {
                let Some(name) = reader.text(key, "a key") else { continue };
                map.insert(name.into(), json(reader, value));
            }
            map.into()
        }
    }
}

/// What stands in braces must stand for something.
fn check_blanks(reader: &mut Reader<'_>, node: &Node) {
    let mut rest = node.text().unwrap_or_default();
    while let Some((_, behind)) = rest.split_once('{') {
        if let Some(behind) = behind.strip_prefix('{') {
            rest = behind;
            continue;
        }
        let Some((word, after)) = behind.split_once('}') else {
            reader.wrong(node.place, "a `{` without its `}`", "write `{{` for a brace");
            return;
        };
        if !BLANKS.contains(&word) {
            let place = reader.part(node, word);
            let help = near::advice(word, BLANKS.iter().copied(), "blanks");
            reader.wrong(place, format!("`{{{word}}}` stands for nothing"), help);
        }
        rest = after;
    }
}
