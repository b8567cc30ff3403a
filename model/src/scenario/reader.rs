//! Takes a tree apart into typed values, noting every mistake on the way instead of only the first.

use super::mistake::Mistake;
use super::near;
use super::tree::{Node, Place, Source, Value};
use super::unit::{self, Complaint};

/// Most mistakes reported at once; more would hide the first ones.
pub const MISTAKES_MAX: usize = 20;

/// Reads nodes. What cannot be read is noted and comes back as `None`.
pub(super) struct Reader<'s> {
    pub(super) sources: &'s [Source],
    mistakes: Vec<Mistake>,
}

/// A map whose keys are known to be right, each at most once.
pub(super) struct Fields<'n> {
    pub(super) place: Place,
    pairs: Vec<(&'n Node, &'n Node)>,
    /// There were keys it should not have: one of them is probably what is missing.
    is_spoiled: bool,
}

impl<'n> Fields<'n> {
    /// The value of a key, unless it is missing or left empty.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        self.pair(key).map(|(_, value)| value).filter(|node| !matches!(node.value, Value::Null))
    }

    /// A key and its value.
    pub(super) fn pair(&self, key: &str) -> Option<(&'n Node, &'n Node)> {
        self.pairs.iter().copied().find(|(name, _)| name.text() == Some(key))
    }
}

impl<'s> Reader<'s> {
    pub(super) fn new(sources: &'s [Source]) -> Reader<'s> {
        Reader { sources, mistakes: Vec::new() }
    }

    /// All mistakes, in the order of the file.
    pub(super) fn finish<T>(mut self, value: Option<T>) -> Result<T, Vec<Mistake>> {
        // What is set on the command line comes first: it was typed last.
        let rank = |file: &str| !file.starts_with("--");
        self.mistakes.sort_by_key(|m| (rank(&m.file), m.line, m.column));
        self.mistakes.dedup();
        match value {
            Some(value) if self.mistakes.is_empty() => Ok(value),
            _ => Err(self.mistakes),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.mistakes.len()
    }

    pub(super) fn wrong(
        &mut self,
        place: Place,
        reason: impl Into<String>,
        suggestion: impl Into<String>,
    ) {
        if self.mistakes.len() < MISTAKES_MAX {
            let source = &self.sources[place.source as usize];
            self.mistakes.push(source.mistake(place, reason, suggestion));
        }
    }

    /// Notes that something is missing, unless a key that is there was probably meant to be it.
    pub(super) fn missing(&mut self, fields: &Fields<'_>, place: Place, reason: &str, help: &str) {
        if !fields.is_spoiled {
            self.wrong(place, reason, help);
        }
    }

    /// The place of a part of a node's text (`part` must be a slice of `text`).
    pub(super) fn part(&self, node: &Node, part: &str) -> Place {
        let Some(text) = node.text() else { return node.place };
        let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        if start > text.len() || start + part.len() > text.len() {
            return node.place;
        }
        node.part(&self.sources[node.place.source as usize], start, part.len())
    }

    /// A map with some of these keys. `what` names it in messages, as in "a crowd".
    pub(super) fn fields<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        keys: &[&str],
    ) -> Option<Fields<'n>> {
        let Some(pairs) = node.map() else {
            let found = node.kind();
            let list = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            self.wrong(
                node.place,
                format!("{what} must be a map, not {found}"),
                format!("write `key: value` pairs; the keys are {list}"),
            );
            return None;
        };
        let mut kept: Vec<(&Node, &Node)> = Vec::new();
        let mut is_spoiled = false;
        for (key, value) in pairs {
            let Some(name) = key.text() else {
                let reason = format!("a key of {what} must be a word, not {}", key.kind());
                self.wrong(key.place, reason, "check the brackets before the colon");
                continue;
            };
            // Keys of the user's own at the top: a place for anchors.
            let is_own = name.starts_with("x-") && what == super::plan::WHAT;
            if is_own {
                continue;
            }
            if !keys.contains(&name) {
                self.unknown_key(key, value, what, keys);
                is_spoiled = true;
            } else if kept.iter().any(|(other, _)| other.text() == Some(name)) {
                let reason = format!("`{name}` is given twice in {what}");
                self.wrong(key.place, reason, "remove one of the two");
            } else {
                kept.push((key, value));
            }
        }
        Some(Fields { place: node.place, pairs: kept, is_spoiled })
    }

    fn unknown_key(&mut self, key: &Node, value: &Node, what: &str, keys: &[&str]) {
        let name = key.text().unwrap_or_default();
        let near = near::nearest(name, keys.iter().copied());
        let help = match value.value {
            // `{run: a at 1/s without b, c}`: in braces the comma ended the value.
            Value::Null if near.is_none() => {
                "inside { } a comma ends the value: put the whole value in quotes".to_owned()
            }
            _ => near::advice(name, keys.iter().copied(), "keys"),
        };
        self.wrong(key.place, format!("{what} has no key `{name}`"), help);
    }

    /// A text; numbers are texts, too.
    pub(super) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        match &node.value {
            Value::Text(text) => Some(text),
            _ => {
                let reason = format!("{what} must be a text, not {}", node.kind());
                self.wrong(node.place, reason, "write a single value here");
                None
            }
        }
    }

    /// The items of a list; one value that is no list counts as a list of one.
    pub(super) fn items<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            Value::Text(_) => Some(std::slice::from_ref(node)),
            _ => {
                let reason = format!("{what} must be a list, not {}", node.kind());
                self.wrong(
                    node.place,
                    reason,
                    "write it as in `[one, two]`, or a line with `- ` each",
                );
                None
            }
        }
    }

    /// A text, read by one of the functions of [`mod@unit`].
    pub(super) fn parsed<T>(
        &mut self,
        node: &Node,
        what: &str,
        parse: impl FnOnce(&str) -> Result<T, Complaint>,
    ) -> Option<T> {
        let text = self.text(node, what)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(complaint) => {
                let reason = format!("{what}: {}", complaint.reason);
                self.wrong(node.place, reason, complaint.suggestion);
                None
            }
        }
    }

    /// A span of time, nanoseconds.
    pub(super) fn duration(&mut self, node: &Node, what: &str) -> Option<u64> {
        self.parsed(node, what, unit::duration)
    }

    /// A span of time that takes some.
    pub(super) fn positive(&mut self, node: &Node, what: &str) -> Option<u64> {
        let ns = self.duration(node, what)?;
        if ns == 0 {
            self.wrong(node.place, format!("{what} must be longer than nothing"), "try `1s`");
            return None;
        }
        Some(ns)
    }

    /// A whole number between two bounds.
    pub(super) fn whole(&mut self, node: &Node, what: &str, low: u64, high: u64) -> Option<u64> {
        self.parsed(node, what, |text| unit::whole(text, low, high))
    }
}
