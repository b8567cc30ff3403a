//! Rooms: a list of names, or so many of a pattern.

use super::near;
use super::reader::Reader;
use super::tree::{Node, Value};
use crate::stamp::ROOMS_MAX;
use crate::{ListPlan, RoomChoice, RoomId};
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

/// The rooms and lists of a scenario, by number and name.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// Names of the rooms and, behind them, of the lists.
    pub(super) names: Vec<String>,
    numbers: HashMap<String, u32>,
    lists: HashMap<String, Lists>,
    list_count: u32,
}

/// Lists that go by one name.
pub(super) struct Family {
    /// How many people are on each.
    pub(super) each: u32,
    /// The lists, one if they are not numbered.
    pub(super) lists: Vec<ListPlan>,
}

/// Where the lists of one name stand.
#[derive(Clone, Copy, Debug)]
struct Lists {
    first: RoomId,
    count: u32,
    each: u32,
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

    /// How many rooms there are, lists not counted.
    pub(super) fn count(&self) -> u32 {
        self.names.len() as u32 - self.list_count
    }

    /// Adds lists of one name behind all rooms.
    pub(super) fn add_lists(
        &mut self,
        reader: &mut Reader<'_>,
        key: &Node,
        name: &str,
        family: &Family,
    ) -> Option<()> {
        self.named_well(reader, key, name)?;
        if self.numbers.contains_key(name) || self.lists.contains_key(name) {
            let reason = format!("there is another room or list `{name}`");
            reader.wrong(key.place, reason, "give the list a name of its own");
            return None;
        }
        let (first, count) = (self.names.len() as RoomId, family.lists.len() as u32);
        if first.saturating_add(count) > ROOMS_NAMED_MAX {
            let reason = format!("more than {ROOMS_NAMED_MAX} rooms and lists");
            reader.wrong(key.place, reason, "put more people on each list");
            return None;
        }
        self.lists.insert(name.into(), Lists { first, count, each: family.each });
        self.list_count += count;
        match count {
            1 => self.names.push(name.into()),
            _ => self.names.extend((0..count).map(|n| format!("{name}-{n}"))),
        }
        Some(())
    }

    /// Whether a step names a list there.
    pub(super) fn is_list(&self, node: &Node) -> bool {
        node.text().is_some_and(|name| self.lists.contains_key(name))
    }

    /// The list a step means: the person's own of several, or any of them.
    pub(super) fn choose_list(
        &self,
        reader: &mut Reader<'_>,
        node: &Node,
        is_own: bool,
    ) -> Option<RoomChoice> {
        let name = reader.text(node, "a list")?;
        let Some(&Lists { first, count, each }) = self.lists.get(name) else {
            let reason = match self.numbers.contains_key(name) {
                true => format!("`{name}` is a room, not a list of people"),
                false => format!("there is no list `{name}`"),
            };
            let known = self.lists.keys().map(String::as_str);
            let help = match self.lists.is_empty() {
                true => "add a line such as `lists: {friends: {of: people}}`".into(),
                false => near::advice(name, known, "lists"),
            };
            reader.wrong(node.place, reason, help);
            return None;
        };
        Some(match (count, is_own) {
            (1, _) => RoomChoice::Named(first),
            (_, true) => RoomChoice::OwnOf { first, count, each },
            (_, false) => RoomChoice::OneOf { first, count },
        })
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
        let rooms = self.names.iter().take(self.count() as usize);
        let names = rooms.take(COMPARED_MAX).map(String::as_str);
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
