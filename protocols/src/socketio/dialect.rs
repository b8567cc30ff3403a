//! What an application says in Socket.IO: which event is which verb, and which are deliveries.
//! Written as a map in the scenario or the target, carried here as JSON, compiled once.

use super::template::{Blank, Template};
use model::Measure;
use serde_json::{Map, Value};

/// What is spoken unless somebody says otherwise.
pub(super) const DEFAULT: &str = r#"{
    "join": {"emit": ["join", "{room}"]},
    "leave": {"emit": ["leave", "{room}"]},
    "say": {"emit": ["message", {"room": "{room}", "text": "{text}"}]},
    "deliveries": ["message"],
    "announcements": ["joined"]
}"#;
/// Verbs a dialect may describe, with the blanks each can fill.
const VERBS: &[(&str, Measure, &[Blank])] = &[
    ("login", Measure::Login, &[Blank::Name, Blank::Nick, Blank::Password]),
    ("join", Measure::Join, &[Blank::Name, Blank::Nick, Blank::Room, Blank::Status]),
    ("leave", Measure::Leave, IN_ROOM),
    ("say", Measure::Say, &[Blank::Name, Blank::Nick, Blank::Room, Blank::Text]),
    ("history", Measure::History, &[Blank::Name, Blank::Nick, Blank::Room, Blank::Limit]),
    ("members", Measure::Members, IN_ROOM),
    ("presence", Measure::Presence, &[Blank::Name, Blank::Nick, Blank::Status]),
    ("typing", Measure::Typing, IN_ROOM),
    ("read", Measure::Read, IN_ROOM),
    ("ping", Measure::Ping, &[Blank::Name, Blank::Nick]),
];
const IN_ROOM: &[Blank] = &[Blank::Name, Blank::Nick, Blank::Room];
/// Keys beside the verbs.
const OTHERS: &[&str] = &["auth", "deliveries", "announcements", "echo"];
/// Most names in `deliveries` and in `announcements`.
const NAMES_MAX: usize = 64;

/// How one verb is said and answered.
#[derive(Debug)]
pub(super) struct Verb {
    pub(super) emit: Template,
    pub(super) done: Done,
    /// Text in the answer that makes it a refusal.
    pub(super) refused: Option<Box<str>>,
}

/// What answers a verb.
#[derive(Debug)]
pub(super) enum Done {
    /// The acknowledgment of the event.
    Ack,
    /// Nothing: it is over once it is sent.
    Sent,
    /// The sender's own message among the deliveries.
    Echo,
    /// An event of that beginning (`["name"`) that holds that text.
    Event(Box<[u8]>, Template),
}

/// A compiled dialect.
#[derive(Debug)]
pub(super) struct Dialect {
    verbs: Vec<(Measure, Verb)>,
    /// What is sent with CONNECT (revision 4 of Engine.IO only).
    pub(super) auth: Option<Template>,
    /// How the data of events begins that are deliveries: `["name"`.
    pub(super) deliveries: Vec<Box<[u8]>>,
    /// The same for announcements.
    pub(super) announcements: Vec<Box<[u8]>>,
    /// Whether a message comes back to its sender.
    pub(super) is_echoing: bool,
    /// Whether a join carries a stamp.
    pub(super) is_stamping: bool,
}

impl Dialect {
    /// Compiles a dialect; the error is advice for the user.
    pub(super) fn compile(text: &str) -> Result<Dialect, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        let map = value.as_object().ok_or("a map is wanted")?;
        let known = |key: &str| VERBS.iter().any(|row| row.0 == key) || OTHERS.contains(&key);
        if let Some(key) = map.keys().find(|key| !known(key)) {
            let all: Vec<&str> =
                VERBS.iter().map(|row| row.0).chain(OTHERS.iter().copied()).collect();
            return Err(format!("there is no key `{key}`; there are {}", all.join(", ")));
        }
        let mut verbs = Vec::new();
        for (name, measure, blanks) in VERBS {
            if let Some(value) = map.get(*name) {
                let verb = verb(value, blanks).map_err(|why| format!("`{name}`: {why}"))?;
                verbs.push((*measure, verb));
            }
        }
        let auth = match map.get("auth") {
            None => None,
            Some(value @ Value::Object(_)) => Some(Template::compile(value)?),
            Some(_) => return Err("`auth` is a map".into()),
        };
        let is_join = |row: &&(Measure, Verb)| row.0 == Measure::Join;
        let is_stamping =
            verbs.iter().find(is_join).is_some_and(|(_, verb)| verb.emit.has(Blank::Status));
        let is_echoing = match map.get("echo") {
            None => false,
            Some(value) => {
                let word = value.as_bool().or_else(|| value.as_str()?.parse().ok());
                word.ok_or("`echo` is true or false")?
            }
        };
        let echo_waits = verbs.iter().any(|(_, verb)| matches!(verb.done, Done::Echo));
        if echo_waits && !is_echoing {
            return Err("`done: echo` needs `echo: true`".into());
        }
        Ok(Dialect {
            verbs,
            auth,
            deliveries: events(map, "deliveries")?,
            announcements: events(map, "announcements")?,
            is_echoing,
            is_stamping,
        })
    }

    /// What can be said.
    pub(super) fn measures(&self) -> impl Iterator<Item = Measure> + '_ {
        self.verbs.iter().map(|row| row.0)
    }

    /// How a verb is said, if it is.
    pub(super) fn verb(&self, measure: Measure) -> Option<&Verb> {
        self.verbs.iter().find(|(known, _)| *known == measure).map(|(_, verb)| verb)
    }
}

fn verb(value: &Value, blanks: &[Blank]) -> Result<Verb, String> {
    let fields = value.as_object().ok_or("it needs `emit: [event, …]`")?;
    if let Some(key) = fields.keys().find(|key| !["emit", "done", "refused"].contains(&&***key)) {
        return Err(format!("there is no key `{key}`; there are emit, done, refused"));
    }
    let emit = match fields.get("emit") {
        Some(Value::Array(items)) if matches!(items.first(), Some(Value::String(_))) => {
            Template::compile(&fields["emit"])?
        }
        Some(Value::String(name)) => Template::compile(&Value::from(vec![name.as_str()]))?,
        _ => return Err("`emit` is a list that begins with the event's name".into()),
    };
    let done = done(fields.get("done"))?;
    let refused = match fields.get("refused") {
        None => None,
        Some(Value::String(text)) if !text.is_empty() => Some(text.as_str().into()),
        Some(_) => return Err("`refused` is a text to be found in the answer".into()),
    };
    let all = [
        Blank::Room,
        Blank::Nick,
        Blank::Name,
        Blank::Password,
        Blank::Text,
        Blank::Status,
        Blank::Limit,
    ];
    let is_used = |blank: &Blank| {
        emit.has(*blank) || matches!(&done, Done::Event(_, with) if with.has(*blank))
    };
    if let Some(blank) = all.iter().find(|blank| is_used(blank) && !blanks.contains(blank)) {
        let name = format!("{blank:?}").to_lowercase();
        return Err(format!("`{{{name}}}` means nothing here"));
    }
    Ok(Verb { emit, done, refused })
}

fn done(value: Option<&Value>) -> Result<Done, String> {
    const HELP: &str = "`done` is `ack`, `sent`, `echo` or `{event: name, with: text}`";
    match value {
        None => Ok(Done::Ack),
        Some(Value::String(word)) => match word.as_str() {
            "ack" => Ok(Done::Ack),
            "sent" => Ok(Done::Sent),
            "echo" => Ok(Done::Echo),
            _ => Err(HELP.into()),
        },
        Some(Value::Object(fields)) => {
            let known = |key: &String| ["event", "with"].contains(&key.as_str());
            let text = |key: &str| fields.get(key).map(|v| v.as_str().ok_or(HELP)).transpose();
            let event = text("event")?.ok_or(HELP)?;
            if !fields.keys().all(known) {
                return Err(HELP.into());
            }
            Ok(Done::Event(beginning(event), Template::of_text(text("with")?.unwrap_or(""))?))
        }
        Some(_) => Err(HELP.into()),
    }
}

/// How the data of an event of that name begins.
fn beginning(event: &str) -> Box<[u8]> {
    let mut bytes = b"[\"".to_vec();
    super::template::escape(event, &mut bytes);
    bytes.push(b'"');
    bytes.into()
}

fn events(map: &Map<String, Value>, key: &str) -> Result<Vec<Box<[u8]>>, String> {
    let help = || format!("`{key}` is a list of up to {NAMES_MAX} names of events");
    let names: Vec<&Value> = match map.get(key) {
        None => return Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().collect(),
        Some(one) => vec![one],
    };
    if names.len() > NAMES_MAX {
        return Err(help());
    }
    names.into_iter().map(|name| Ok(beginning(name.as_str().ok_or_else(help)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_one() {
        let dialect = Dialect::compile(DEFAULT).unwrap();
        assert!(!dialect.is_echoing && !dialect.is_stamping);
        assert_eq!(dialect.deliveries, [b"[\"message\"".to_vec().into()]);
        assert!(dialect.verb(Measure::Join).is_some() && dialect.verb(Measure::Ping).is_none());
    }

    #[test]
    fn mistakes_are_told() {
        for (text, words) in [
            ("[]", "a map"),
            ("{", "not JSON"),
            (r#"{"jion": {}}"#, "no key `jion`"),
            (r#"{"join": {}}"#, "`join`: `emit`"),
            (r#"{"join": {"emit": []}}"#, "`emit`"),
            (r#"{"join": {"emit": [1]}}"#, "`emit`"),
            (r#"{"join": {"emit": "x", "dune": 1}}"#, "no key `dune`"),
            (r#"{"join": {"emit": ["x", "{text}"]}}"#, "{text}"),
            (r#"{"join": {"emit": "x", "done": "never"}}"#, "`done`"),
            (r#"{"join": {"emit": "x", "done": {"with": "a"}}}"#, "`done`"),
            (r#"{"join": {"emit": "x", "refused": ""}}"#, "`refused`"),
            (r#"{"say": {"emit": "x", "done": "echo"}}"#, "echo: true"),
            (r#"{"auth": 1}"#, "`auth`"),
            (r#"{"deliveries": [1]}"#, "names of events"),
        ] {
            let why = Dialect::compile(text).map(|_| ()).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
