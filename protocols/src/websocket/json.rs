//! JSON: bodies made ready to be written, and values found without building a tree (RFC 8259).

use super::piece::{Found, Piece, Style, escape_json, pieces};
use memchr::memchr2;
use model::script::Body;

/// The pieces of a body.
pub(super) fn body(body: &Body, kept: &[String], out: &mut Vec<Piece>) {
    let push = |out: &mut Vec<Piece>, bytes: &[u8]| out.push(Piece::Bytes(bytes.into()));
    match body {
        Body::Text(text) => {
            push(out, b"\"");
            out.extend(pieces(text, Style::Json, kept));
            push(out, b"\"");
        }
        Body::Bare(text) => out.extend(pieces(text, Style::Raw, kept)),
        Body::List(items) => {
            push(out, b"[");
            for (at, item) in items.iter().enumerate() {
                push(out, if at > 0 { b"," } else { b"" });
                self::body(item, kept, out);
            }
            push(out, b"]");
        }
        Body::Map(pairs) => {
            push(out, b"{");
            for (at, (key, value)) in pairs.iter().enumerate() {
                let mut head = if at > 0 { b",\"".to_vec() } else { b"\"".to_vec() };
                escape_json(key.as_bytes(), &mut head);
                head.extend_from_slice(b"\":");
                push(out, &head);
                self::body(value, kept, out);
            }
            push(out, b"}");
        }
    }
}

/// Whether it is JSON, in UTF-8. What is passed over takes no stack, however deep it is.
pub(super) fn is_valid(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes);
    text.is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

/// What the keys lead to: names in objects, numbers in lists. `None` if nothing is there, or if it
/// is no JSON on the way there.
pub(super) fn find<'a>(bytes: &'a [u8], keys: &[Box<str>]) -> Option<Found<'a>> {
    let mut cursor = Cursor { bytes, at: 0 };
    for key in keys {
        match cursor.next()? {
            b'{' => cursor.member(key.as_bytes())?,
            b'[' => cursor.item(key.parse().ok()?)?,
            _ => return None,
        }
    }
    match cursor.next()? {
        b'"' => {
            let (text, is_escaped) = cursor.string()?;
            Some(Found::Text(text, is_escaped))
        }
        b'{' | b'[' => Some(Found::Other),
        _ => Some(Found::Bare(cursor.bare())),
    }
}

/// A place in the text. What is passed over is not checked beyond what finding its end takes.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next byte that is no space.
    fn next(&mut self) -> Option<u8> {
        while let b' ' | b'\t' | b'\r' | b'\n' = *self.bytes.get(self.at)? {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// Goes to the value of a member of the object that begins here.
    fn member(&mut self, key: &[u8]) -> Option<()> {
        self.at += 1;
        loop {
            if self.next()? != b'"' {
                return None;
            }
            let (name, _) = self.string()?;
            self.eat(b':')?;
            if name == key {
                return Some(());
            }
            self.skip()?;
            self.eat(b',')?;
        }
    }

    /// Goes to an item of the list that begins here.
    fn item(&mut self, index: usize) -> Option<()> {
        self.at += 1;
        for _ in 0..index {
            self.skip()?;
            self.eat(b',')?;
        }
        (self.next()? != b']').then_some(())
    }

    /// The string that begins here, without its quotes, and whether it has escapes.
    fn string(&mut self) -> Option<(&'a [u8], bool)> {
        let start = self.at + 1;
        let (mut at, mut is_escaped) = (start, false);
        loop {
            let found = at + memchr2(b'"', b'\\', self.bytes.get(at..)?)?;
            if self.bytes[found] == b'"' {
                self.at = found + 1;
                return Some((&self.bytes[start..found], is_escaped));
            }
            is_escaped = true;
            at = found + 2;
        }
    }

    fn bare(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Passes over a value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.next()? {
                b'"' => _ = self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    if self.bare().is_empty() {
                        return None;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, path: &str) -> Option<String> {
        let keys: Vec<Box<str>> = path.split('.').map(Box::from).collect();
        find(text.as_bytes(), &keys).map(|found| found.text())
    }

    #[test]
    fn values_are_found() {
        let text = r#" {"a":{"b":[1,{"c":"x\"y"},[],true]}, "d" : null,"e":"é","":-1.5e3}"#;
        for (path, expect) in [
            ("a.b.0", Some("1")),
            ("a.b.1.c", Some("x\"y")),
            ("a.b.2", Some("")),
            ("a.b.3", Some("true")),
            ("d", Some("null")),
            ("e", Some("é")),
            ("", Some("-1.5e3")),
            ("a.b.4", None),
            ("a.b.x", None),
            ("z", None),
            ("d.x", None),
        ] {
            assert_eq!(at(text, path).as_deref(), expect, "{path}");
        }
    }

    #[test]
    fn the_same_is_found_as_by_a_parser() {
        let values = [r#""s""#, "7", "null", "[1,[2,\"]\"]]", r#"{"x":{"y":"}"}}"#, r#""\\\"""#];
        for (i, first) in values.iter().enumerate() {
            for second in values {
                let text = format!("{{ \"k\" : {first} ,\"l\":[{second}, {first}] }}");
                let tree: serde_json::Value = serde_json::from_str(&text).unwrap();
                let expect = match &tree["l"][1] {
                    serde_json::Value::String(text) => text.clone(),
                    value if value.is_array() || value.is_object() => String::new(),
                    value => value.to_string(),
                };
                assert_eq!(at(&text, "l.1"), Some(expect), "{i} {text}");
            }
        }
    }

    #[test]
    fn what_is_none_is_not_searched_for_ever() {
        let deep = ["[".repeat(1_000_000), "]".repeat(1_000_000)].concat();
        assert!(is_valid(deep.as_bytes()));
        for text in ["", "{", "{\"a\"", "{\"a\":", "[", "[,", "{\"a\":\"\\", "{\"x\":}", "[}"] {
            assert_eq!(at(text, "a"), None, "{text}");
            assert_eq!(at(text, "3"), None, "{text}");
        }
        assert_eq!(at(&"[".repeat(100_000), "1"), None);
    }
}
