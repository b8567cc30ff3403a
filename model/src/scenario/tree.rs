//! YAML text as a tree whose every node knows its place; bounded in size, depth and aliases.

use super::mistake::Mistake;
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Largest scenario, bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Most nodes a scenario may have once its aliases are expanded.
pub const NODES_MAX: usize = 100_000;
/// Deepest nesting.
pub const DEPTH_MAX: usize = 64;

/// A text with places in it: the file, or one `--set`.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) lines: Vec<String>,
}

impl Source {
    pub(super) fn new(name: &str, text: &str) -> Source {
        Source { name: name.into(), lines: text.lines().map(str::to_owned).collect() }
    }

    pub(super) fn mistake(
        &self,
        place: Place,
        reason: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Mistake {
        let line = place.line.clamp(1, self.lines.len().max(1) as u32);
        Mistake {
            file: self.name.clone(),
            line,
            column: if line == place.line { place.column } else { 1 },
            width: place.width,
            text: self.lines.get(line as usize - 1).cloned().unwrap_or_default(),
            reason: reason.into(),
            suggestion: suggestion.into(),
        }
    }
}

/// Where something stands: source, line and column from 1, width in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) source: u16,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) width: u32,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    /// A scalar; everything is text until somebody wants a number.
    Text(Arc<str>),
    List(Vec<Node>),
    /// In order; keys may be there twice, which a weighted choice allows.
    Map(Vec<(Node, Node)>),
}

impl Node {
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn map(&self) -> Option<&[(Node, Node)]> {
        match &self.value {
            Value::Map(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The value of a key.
    pub(super) fn at(&self, key: &str) -> Option<&Node> {
        self.map()?.iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }

    /// What it is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    fn count(&self) -> usize {
        1 + match &self.value {
            Value::Null | Value::Text(_) => 0,
            Value::List(items) => items.iter().map(Node::count).sum(),
            Value::Map(pairs) => pairs.iter().map(|(k, v)| k.count() + v.count()).sum(),
        }
    }

    /// The place of a part of a text, given in bytes of its value. Exact when the file shows the
    /// value as it is; otherwise the whole.
    pub(super) fn part(&self, source: &Source, start: usize, len: usize) -> Place {
        let whole = self.place;
        let Some(text) = self.text() else { return whole };
        let Some(line) = source.lines.get((whole.line as usize).wrapping_sub(1)) else {
            return whole;
        };
        let shown: String = line.chars().skip(whole.column as usize - 1).collect();
        let quote = u32::from(!shown.starts_with(text));
        if quote == 1 && !shown.get(1..).is_some_and(|inner| inner.starts_with(text)) {
            return whole;
        }
        let chars = |part: Option<&str>| part.unwrap_or_default().chars().count() as u32;
        let before = chars(text.get(..start));
        let width = chars(text.get(start..start + len)).max(1);
        Place { column: whole.column + quote + before, width, ..whole }
    }
}

/// What is being built: the items of a list, or the pairs of a map with a key that waits.
struct Open {
    place: Place,
    anchor: usize,
    items: Vec<Node>,
    is_map: bool,
}

struct Builder<'s> {
    source: &'s Source,
    number: u16,
    open: Vec<Open>,
    anchors: HashMap<usize, (usize, Node)>,
    nodes: usize,
    root: Option<Node>,
}

/// Reads YAML. `number` is the source's number in the places.
pub(super) fn read(source: &Source, number: u16, text: &str) -> Result<Node, Mistake> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(source.mistake(
            Place { source: number, line: 1, column: 1, width: 1 },
            format!("the scenario has {} bytes; at most {TEXT_BYTES_MAX} are read", text.len()),
            "keep long lists of accounts in a CSV file: `accounts: {csv: people.csv}`",
        ));
    }
    let mut builder =
        Builder { source, number, open: Vec::new(), anchors: HashMap::new(), nodes: 0, root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| builder.syntax(&error))?;
        let place = builder.place(&span);
        builder.event(event, place)?;
    }
    Ok(builder.root.unwrap_or(Node {
        place: Place { source: number, line: 1, column: 1, width: 1 },
        value: Value::Null,
    }))
}

impl Builder<'_> {
    fn place(&self, span: &saphyr_parser::Span) -> Place {
        let same_line = span.start.line() == span.end.line();
        let width = if same_line { span.end.col().saturating_sub(span.start.col()) } else { 1 };
        Place {
            source: self.number,
            line: span.start.line() as u32,
            column: span.start.col() as u32 + 1,
            width: width.max(1) as u32,
        }
    }

    fn event(&mut self, event: Event<'_>, place: Place) -> Result<(), Mistake> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                let reason = "a second document begins here";
                Err(self.wrong(place, reason, "a scenario is one document; remove the `---`"))
            }
            Event::Scalar(text, style, anchor, _) => {
                let is_null = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null");
                let value = if is_null { Value::Null } else { Value::Text(text.into()) };
                self.add(Node { place, value }, anchor, 1)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                // Counted before it is copied: a small file must not fill the memory.
                Some((count, _)) if self.nodes + count > NODES_MAX => Err(self.too_many(place)),
                Some((count, node)) => {
                    let (count, node) = (*count, node.clone());
                    self.add(node, 0, count)
                }
                None => {
                    let reason = "this alias is used inside of what it stands for";
                    Err(self.wrong(place, reason, "an alias can only repeat what is complete"))
                }
            },
            Event::SequenceStart(anchor, _) => self.begin(place, anchor, false),
            Event::MappingStart(anchor, _) => self.begin(place, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, anchor: usize, is_map: bool) -> Result<(), Mistake> {
        if self.open.len() >= DEPTH_MAX {
            let reason = format!("nested more than {DEPTH_MAX} levels deep");
            return Err(self.wrong(
                place,
                reason,
                "a scenario needs far fewer: is a bracket open?",
            ));
        }
        self.open.push(Open { place, anchor, items: Vec::new(), is_map });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Mistake> {
        let Some(Open { place, anchor, items, is_map }) = self.open.pop() else { return Ok(()) };
        let value = if is_map { Value::Map(pairs(items)) } else { Value::List(items) };
        self.add(Node { place, value }, anchor, 1)
    }

    fn add(&mut self, node: Node, anchor: usize, count: usize) -> Result<(), Mistake> {
        self.nodes += count;
        if self.nodes > NODES_MAX {
            return Err(self.too_many(node.place));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (node.count(), node.clone()));
        }
        match self.open.last_mut() {
            Some(open) => open.items.push(node),
            None => self.root = Some(node),
        }
        Ok(())
    }

    fn too_many(&self, place: Place) -> Mistake {
        let reason = format!("the scenario has more than {NODES_MAX} parts, aliases included");
        self.wrong(place, reason, "use `repeat`, `rooms: {count: …}` or `accounts: {csv: …}`")
    }

    fn wrong(&self, place: Place, reason: impl Into<String>, help: &str) -> Mistake {
        self.source.mistake(place, reason, help)
    }

    /// A mistake in the YAML itself, with advice for the usual causes.
    fn syntax(&self, error: &saphyr_parser::ScanError) -> Mistake {
        let marker = error.marker();
        let place = Place {
            source: self.number,
            line: marker.line() as u32,
            column: marker.col() as u32 + 1,
            width: 1,
        };
        let line = self.source.lines.get((place.line as usize).wrapping_sub(1));
        let line = line.map(|line| line.trim_start()).unwrap_or_default();
        let has_tab = line.is_empty()
            || self.source.lines.iter().take(place.line as usize).any(|l| l.starts_with('\t'));
        let help = if has_tab && self.source.lines.iter().any(|l| l.starts_with('\t')) {
            "indent with spaces; YAML does not allow tabs"
        } else if line.contains(": >") {
            "put a value that begins with `>` in quotes, or write `above 5`, `at least 5`"
        } else if let Some(number) = self.open_bracket(place.line as usize) {
            &format!("a `{{` or `[` opened in line {number} is not closed")
        } else if line.contains(['{', '[', '}', ']']) {
            "check that every `{` and `[` is closed, with commas between"
        } else if line.contains('"') || line.contains('\'') {
            "check that every quote is closed"
        } else {
            "check the indentation and that each key ends with a colon and a space"
        };
        self.wrong(place, format!("this is not YAML: {}", error.info()), help)
    }
}

impl Builder<'_> {
    /// The last line up to `line` that opens more brackets than it closes.
    fn open_bracket(&self, line: usize) -> Option<usize> {
        let count = |text: &str, set: [char; 2]| text.matches(set).count();
        let is_open = |text: &String| {
            let text = text.split(" #").next().unwrap_or_default();
            count(text, ['{', '[']) > count(text, ['}', ']'])
        };
        self.source.lines.iter().take(line).rposition(is_open).map(|at| at + 1)
    }
}

/// Keys and values in turn become pairs; `<<: *other` brings the keys that are not there yet.
fn pairs(items: Vec<Node>) -> Vec<(Node, Node)> {
    let mut pairs: Vec<(Node, Node)> = Vec::with_capacity(items.len() / 2);
    let mut merged = Vec::new();
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        match (key.text(), value.value) {
            (Some("<<"), Value::Map(other)) => merged.extend(other),
            (_, inner) => pairs.push((key, Node { place: value.place, value: inner })),
        }
    }
    if !merged.is_empty() {
        let known: HashSet<String> =
            pairs.iter().filter_map(|(key, _)| key.text().map(str::to_owned)).collect();
        let is_new = |key: &Node| !key.text().is_some_and(|text| known.contains(text));
        pairs.extend(merged.into_iter().filter(|(key, _)| is_new(key)));
    }
    pairs
}
