//! JSON with blanks, compiled once and filled in for each request.

use serde_json::Value;

/// What may stand in braces.
const BLANKS: &[(&str, Blank)] = &[
    ("room", Blank::Room),
    ("nick", Blank::Nick),
    ("name", Blank::Name),
    ("password", Blank::Password),
    ("text", Blank::Text),
    ("status", Blank::Status),
    ("limit", Blank::Limit),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blank {
    Room,
    Nick,
    Name,
    Password,
    Text,
    Status,
    Limit,
}

/// What the blanks of one request stand for; empty where they stand for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) room: &'a str,
    pub(super) nick: &'a str,
    pub(super) name: &'a str,
    pub(super) password: &'a str,
    pub(super) text: &'a str,
    pub(super) status: &'a str,
    pub(super) limit: u32,
}

#[derive(Debug, PartialEq)]
enum Piece {
    /// JSON as it is sent.
    Fixed(Box<str>),
    /// A text within a string, to be escaped.
    Blank(Blank),
}

/// JSON with blanks.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Template(Vec<Piece>);

impl Template {
    /// Compiles a JSON value whose strings may hold blanks; the error is advice for the user.
    pub(super) fn compile(value: &Value) -> Result<Template, String> {
        let mut template = Template(Vec::new());
        template.add(value)?;
        Ok(template)
    }

    /// A text with blanks that is searched for in JSON: escaped like a string, without quotes.
    pub(super) fn of_text(text: &str) -> Result<Template, String> {
        let mut template = Template(Vec::new());
        template.add_text(text)?;
        Ok(template)
    }

    pub(super) fn has(&self, blank: Blank) -> bool {
        self.0.contains(&Piece::Blank(blank))
    }

    /// Appends the filled-in template.
    pub(super) fn fill(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            let text = match piece {
                Piece::Fixed(text) => {
                    out.extend_from_slice(text.as_bytes());
                    continue;
                }
                Piece::Blank(Blank::Limit) => {
                    out.extend_from_slice(values.limit.to_string().as_bytes());
                    continue;
                }
                Piece::Blank(Blank::Room) => values.room,
                Piece::Blank(Blank::Nick) => values.nick,
                Piece::Blank(Blank::Name) => values.name,
                Piece::Blank(Blank::Password) => values.password,
                Piece::Blank(Blank::Text) => values.text,
                Piece::Blank(Blank::Status) => values.status,
            };
            escape(text, out);
        }
    }

    fn add(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::String(text) if text == "{limit}" => self.0.push(Piece::Blank(Blank::Limit)),
            Value::String(text) => {
                self.fixed("\"");
                self.add_text(text)?;
                self.fixed("\"");
            }
            Value::Array(items) => {
                self.fixed("[");
                for (place, item) in items.iter().enumerate() {
                    self.fixed(if place > 0 { "," } else { "" });
                    self.add(item)?;
                }
                self.fixed("]");
            }
            Value::Object(fields) => {
                self.fixed("{");
                for (place, (name, field)) in fields.iter().enumerate() {
                    self.fixed(if place > 0 { ",\"" } else { "\"" });
                    self.escaped(name);
                    self.fixed("\":");
                    self.add(field)?;
                }
                self.fixed("}");
            }
            other => self.fixed(&other.to_string()),
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) -> Result<(), String> {
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            self.escaped(before);
            if let Some(behind) = behind.strip_prefix('{') {
                self.fixed("{");
                rest = behind;
                continue;
            }
            let word = behind.split('}').next().unwrap_or_default();
            let blank = BLANKS.iter().find(|(name, _)| *name == word && behind.len() > word.len());
            let Some((_, blank)) = blank else {
                let known: Vec<String> = BLANKS.iter().map(|(n, _)| format!("{{{n}}}")).collect();
                return Err(format!(
                    "`{text}` has a blank that stands for nothing; there are {}, and `{{{{` is a \
                     brace",
                    known.join(", ")
                ));
            };
            self.0.push(Piece::Blank(*blank));
            rest = &behind[word.len() + 1..];
        }
        self.escaped(rest);
        Ok(())
    }

    fn escaped(&mut self, text: &str) {
        let mut bytes = Vec::new();
        escape(text, &mut bytes);
        self.fixed(&String::from_utf8_lossy(&bytes));
    }

    fn fixed(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Fixed(before)) => *before = format!("{before}{text}").into(),
            _ if text.is_empty() => {}
            _ => self.0.push(Piece::Fixed(text.into())),
        }
    }
}

/// Appends a text as the inside of a JSON string (RFC 8259 section 7).
pub(super) fn escape(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(json: &str) -> Result<String, String> {
        let template = Template::compile(&serde_json::from_str(json).unwrap())?;
        let values = Values { room: "a \"b\"\n", limit: 50, text: "{room}", ..Values::default() };
        let mut out = Vec::new();
        template.fill(&values, &mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn blanks_are_filled_in_and_escaped() {
        for (json, expect) in [
            (r#"["join","{room}"]"#, r#"["join","a \"b\"\u000a"]"#),
            (r#"["x",{"n":"{limit}","t":"<{text}>"}]"#, r#"["x",{"n":50,"t":"<{room}>"}]"#),
            (r#"["last {limit}",null,true,1.5]"#, r#"["last 50",null,true,1.5]"#),
            (r#"["{{room}"]"#, r#"["{room}"]"#),
            (r#"["tab\t"]"#, r#"["tab\u0009"]"#),
        ] {
            assert_eq!(filled(json).unwrap(), expect);
        }
        for bad in [r#"["{rom}"]"#, r#"["{room"]"#, r#"["{}"]"#] {
            assert!(filled(bad).unwrap_err().contains("{room}"), "{bad}");
        }
    }
}
