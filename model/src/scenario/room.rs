//! Rooms: a list of names, or so many of a pattern.

use super::near;
use super::reader::Reader;
use super::tree::{Node, Value};
use crate::RoomChoice;
use crate::stamp::ROOMS_MAX;
use std::collections::HashMap;

/// Most rooms of a plan, which keeps each by its name (a stamp could tell [`ROOMS_MAX`]).
const ROOMS_NAMED_MAX: u32 = if ROOMS_MAX < 1 << 20 { ROOMS_MAX } else { 1 << 20 };
/// Longest name of a room, characters.
const NAME_MAX: usize = 200;
/// Most bytes of all names that a pattern makes.
const NAMES_BYTES_MAX: u64 = 32 << 20;
/// Rooms compared with a mistyped name.
const COMPARED_MAX: usize = 1_000;
/// Words that choose a room without naming it.
pub(super) const CHOICES: &[(&str, RoomChoice)] = &[
    ("joined", RoomChoice::Joined),
    ("own", RoomChoice::Own),
    ("another", RoomChoice::Another),
    ("any", RoomChoice::Any),
];
const KEYS: &[&str] = &["count", "name", "first"];

/// The rooms of a scenario, by number and name.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    pub(super) names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Rooms {
    /// Reads the value of `rooms`.
    pub(super) fn read(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Rooms> {
        let mut rooms = Rooms::default();
        let Some(node) = node else { return Some(rooms) };
        if matches!(node.value, Value::Map(_)) {
            rooms.pattern(reader, node)?;
            return Some(rooms);
        }
        let before = reader.count();
        for item in reader.items(node, "`rooms`")? {
            let Some(name) = reader.text(item, "the name of a room") else { continue };
            rooms.named(reader, item, name);
        }
        (reader.count() == before).then_some(rooms)
    }

    fn pattern(&mut self, reader: &mut Reader<'_>, node: &Node) -> Option<()> {
        let fields = reader.fields(node, "`rooms`", KEYS)?;
        let Some(count) = fields.get("count") else {
            reader.missing(
                &fields,
                node.place,
                "`rooms` needs a `count`",
                "as in `{count: 10, name: \"room-{n}\"}`",
            );
            return None;
        };
        let count = reader.whole(count, "the count of rooms", 1, ROOMS_NAMED_MAX.into())?;
        let first = match fields.get("first") {
            Some(first) => reader.whole(first, "the first number", 0, u32::MAX.into())?,
            None => 0,
        };
        let (name, at) = match fields.get("name") {
            Some(at) => (reader.text(at, "the name of the rooms")?, at),
            None => ("room-{n}", node),
        };
        check_pattern(reader, at, name, count, &["n"])?;
        self.named_well(reader, at, name)?;
        if name.len() as u64 * count > NAMES_BYTES_MAX {
            let reason = format!("{count} names as long as `{name}` are too much to keep");
            reader.wrong(at.place, reason, "use a shorter name");
            return None;
        }
        for n in first..first + count {
            self.add(name.replace("{n}", &n.to_string()));
        }
        Some(())
    }

    fn named(&mut self, reader: &mut Reader<'_>, item: &Node, name: &str) {
        if self.named_well(reader, item, name).is_none() {
            return;
        }
        if self.numbers.contains_key(name) {
            let reason = format!("there are two rooms `{name}`");
            reader.wrong(item.place, reason, "give each room its own name");
        } else if name.contains("{n}") {
            let reason = "a list names each room by itself";
            let help = format!("did you mean `rooms: {{count: 10, name: \"{name}\"}}`?");
            reader.wrong(item.place, reason, help);
        } else {
            self.add(name.into());
        }
    }

    fn named_well(&self, reader: &mut Reader<'_>, at: &Node, name: &str) -> Option<()> {
        if CHOICES.iter().any(|(word, _)| *word == name) {
            let reason =
                format!("`{name}` cannot be the name of a room: steps use it to choose one");
            reader.wrong(at.place, reason, format!("try `{name}-room`"));
            return None;
        }
        if name.is_empty() || name.len() > NAME_MAX || name.chars().any(char::is_control) {
            let reason = format!("a room needs a name of 1 to {NAME_MAX} printable characters");
            reader.wrong(at.place, reason, "try `lobby`");
            return None;
        }
        Some(())
    }

    fn add(&mut self, name: String) {
        self.numbers.insert(name.clone(), self.names.len() as u32);
        self.names.push(name);
    }

    /// The room a step means.
    pub(super) fn choose(&self, reader: &mut Reader<'_>, node: &Node) -> Option<RoomChoice> {
        let name = reader.text(node, "a room")?;
        if let Some((_, choice)) = CHOICES.iter().find(|(word, _)| *word == name) {
            return Some(*choice);
        }
        if let Some(&room) = self.numbers.get(name) {
            return Some(RoomChoice::Named(room));
        }
        let names = self.names.iter().take(COMPARED_MAX).map(String::as_str);
        let words = CHOICES.iter().map(|(word, _)| *word);
        let help = near::advice(name, names.chain(words), "rooms");
        reader.wrong(node.place, format!("there is no room `{name}`"), help);
        None
    }
}

/// Checks that a pattern makes `count` different names of the places it knows.
pub(super) fn check_pattern(
    reader: &mut Reader<'_>,
    at: &Node,
    pattern: &str,
    count: u64,
    known: &[&str],
) -> Option<()> {
    let mut rest = pattern;
    while let Some((_, behind)) = rest.split_once('{') {
        let Some((word, behind)) = behind.split_once('}') else { break };
        if !known.contains(&word) {
            let list = known.iter().map(|w| format!("`{{{w}}}`")).collect::<Vec<_>>().join(", ");
            let place = reader.part(at, word);
            reader.wrong(
                place,
                format!("`{{{word}}}` is not replaced by anything"),
                format!("a name may contain {list}"),
            );
            return None;
        }
        rest = behind;
    }
    if count > 1 && !pattern.contains("{n}") {
        let reason = format!("`{pattern}` gives {count} times the same name");
        let help = format!("put `{{n}}` where the number goes, as in `\"{pattern}-{{n}}\"`");
        reader.wrong(at.place, reason, help);
        return None;
    }
    Some(())
}
