//! The texts of a description: bodies, patterns, templates and their blanks.

use super::near;
use super::reader::Fields;
use super::script::{ITEMS_MAX, Kept, Where};
use super::tree::{Node, Value};
use crate::script::{Blank, Body, Part, Pattern, Template};

/// Longest text between two blanks and longest path, characters.
const TEXT_MAX: usize = 10_000;

impl Kept<'_, '_> {
    pub(super) fn pattern(&mut self, node: &Node) -> Option<Pattern> {
        let Some(pairs) = node.map() else {
            return Some(Pattern::Start(self.template(node, Where::Talk)?));
        };
        let mut fields = Vec::new();
        for (key, value) in pairs {
            let path = self.reader.text(key, "a path")?;
            let value = match value.value {
                Value::Null => vec![Part::Literal("null".into())],
                _ => self.template(value, Where::Talk)?,
            };
            fields.push((path.to_owned(), value));
        }
        Some(Pattern::Fields(fields))
    }

    pub(super) fn pairs(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        place: Where,
    ) -> Option<Vec<(String, Template)>> {
        let Some(node) = fields.get(key) else { return Some(Vec::new()) };
        let Some(pairs) = node.map().filter(|pairs| pairs.len() <= ITEMS_MAX) else {
            let help = "write `name: value` pairs";
            return self.wrong(node.place, format!("`{key}` must be a map"), help);
        };
        let one = |(key, value): &(Node, Node)| {
            let name = self.reader.text(key, "a name")?.to_owned();
            Some((name, self.template(value, place)?))
        };
        pairs.iter().map(one).collect()
    }

    pub(super) fn template_of(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        place: Where,
    ) -> Option<Option<Template>> {
        match fields.get(key) {
            Some(node) => self.template(node, place).map(Some),
            None => Some(None),
        }
    }

    pub(super) fn body(&mut self, node: &Node, place: Where) -> Option<Body> {
        match &node.value {
            Value::Null => Some(Body::Bare(vec![Part::Literal("null".into())])),
            Value::List(items) => {
                let items = items.iter().map(|item| self.body(item, place));
                Some(Body::List(items.collect::<Option<_>>()?))
            }
            Value::Map(pairs) => {
                let mut map = Vec::new();
                for (key, value) in pairs {
                    let name = self.reader.text(key, "a key")?.to_owned();
                    map.push((name, self.body(value, place)?));
                }
                Some(Body::Map(map))
            }
            Value::Text(text) => match &**text {
                "{id as number}" => Some(Body::Bare(vec![Part::Blank(Blank::Id)])),
                "{limit as number}" => Some(Body::Bare(vec![Part::Blank(Blank::Limit)])),
                text if is_bare(text) && !self.is_quoted(node) => {
                    Some(Body::Bare(vec![Part::Literal(text.into())]))
                }
                _ => Some(Body::Text(self.template(node, place)?)),
            },
        }
    }

    /// Whether a text stands in quotes, and so is one, whatever it looks like.
    fn is_quoted(&self, node: &Node) -> bool {
        let line =
            self.reader.sources[node.place.source as usize].lines.get(node.place.line as usize - 1);
        let first = line.and_then(|line| line.chars().nth(node.place.column as usize - 1));
        matches!(first, Some('"' | '\''))
    }

    pub(super) fn template(&mut self, node: &Node, place: Where) -> Option<Template> {
        let text = self.reader.text(node, "this")?;
        if text.chars().count() > TEXT_MAX {
            return self.wrong(node.place, "this text is too long", "a few words will do");
        }
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            rest = &rest[at..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                literal.push_str(&rest[..1]);
                rest = &rest[2..];
                continue;
            }
            let Some((name, behind)) = rest[1..].split_once('}').filter(|_| rest.starts_with('{'))
            else {
                let help = "a brace that is meant as such is written twice";
                return self.wrong(node.place, "a brace without its other half", help);
            };
            let blank = self.blank(node, name, place)?;
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Blank(blank));
            rest = behind;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Some(parts)
    }

    fn blank(&mut self, node: &Node, name: &str, place: Where) -> Option<Blank> {
        let is_early = |blank: &Blank| matches!(blank, Blank::Name | Blank::Password);
        match known(name) {
            Some(Blank::Password) if place == Where::Talk => {
                let help = "passwords are known in `login`, `path` and `headers` only";
                self.wrong(self.reader.part(node, name), "no password here", help)
            }
            Some(blank) if place == Where::Login && !is_early(&blank) => {
                let reason = format!("`{{{name}}}` is not known before the login");
                self.wrong(self.reader.part(node, name), reason, "move it behind the login")
            }
            Some(blank) => Some(blank),
            None if self.names.iter().any(|kept| kept == name) => {
                Some(Blank::Kept(name.to_owned()))
            }
            None => {
                let names = BLANKS.iter().map(|row| row.0).chain(self.names.iter().map(|n| &**n));
                let help = near::advice(name, names, "blanks");
                self.wrong(self.reader.part(node, name), format!("no blank `{{{name}}}`"), &help)
            }
        }
    }
}

const BLANKS: [(&str, Blank); 8] = [
    ("id", Blank::Id),
    ("name", Blank::Name),
    ("password", Blank::Password),
    ("room", Blank::Room),
    ("nick", Blank::Nick),
    ("text", Blank::Text),
    ("limit", Blank::Limit),
    ("status", Blank::Status),
];

pub(super) fn known(name: &str) -> Option<Blank> {
    BLANKS.iter().find(|row| row.0 == name).map(|row| row.1.clone())
}

/// Whether a text is a number or a word of JSON.
fn is_bare(text: &str) -> bool {
    let is_number = || serde_json::from_str::<serde_json::Number>(text).is_ok();
    matches!(text, "true" | "false" | "null") || is_number()
}
