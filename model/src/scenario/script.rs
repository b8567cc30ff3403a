//! The description of a server spoken to over a WebSocket: `websocket:`, and what belongs to it.

use super::near;
use super::reader::{Fields, Reader};
use super::template::known;
use super::tree::{Node, Place, Source as Text, Value};
use super::{Mistake, Scenario, tree};
use crate::script::{
    Codec, Exchange, Heartbeat, HttpBody, HttpStep, Proto, Reply, Script, Source, VERBS,
};
use crate::{Ack, Crowd, Measure};

/// The key, which is also the protocol's name.
pub(super) const KEY: &str = "websocket";
pub(super) const KEYS: &[&str] = &[
    "codec",
    "proto",
    "path",
    "subprotocols",
    "headers",
    "login",
    "opening",
    "verbs",
    "heartbeat",
    "replies",
    "deliveries",
    "history",
    "echo",
    "ack",
];
const HTTP_KEYS: &[&str] = &["get", "post", "put", "headers", "form", "json", "status", "keep"];
const EXCHANGE_KEYS: &[&str] = &["send", "answer", "refused", "why", "keep"];
/// Most steps, patterns, verbs or headers in one list.
pub(super) const ITEMS_MAX: usize = 64;

/// Which blanks a text may have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Where {
    /// Before the person is known to the target.
    Login,
    /// In what is said to it.
    Talk,
}

impl Scenario {
    /// The file that describes the protocol, if the scenario only names it.
    pub fn script_file(&self) -> Option<&str> {
        self.root.at(KEY)?.text()
    }

    /// Puts the description in the place of the name of its file.
    pub fn include_script(&mut self, file_name: &str, text: &str) -> Result<(), Mistake> {
        let number = self.sources.len() as u16;
        let source = Text::new(file_name, text);
        let node = tree::read(&source, number, text)?;
        self.sources.push(source);
        if let Value::Map(pairs) = &mut self.root.value
            && let Some((_, value)) = pairs.iter_mut().find(|(key, _)| key.text() == Some(KEY))
        {
            *value = node;
        }
        Ok(())
    }

    /// The `.proto` file that the description names, if it does.
    pub fn proto_file(&self) -> Option<&str> {
        self.root.at(KEY)?.at("proto")?.at("file")?.text()
    }

    /// Brings the text of the `.proto` file.
    pub fn include_proto(&mut self, text: &str) {
        self.proto = Some(text.to_owned());
    }

    /// The description alone, for who needs no plan.
    pub fn script(&self) -> Result<Script, Vec<Mistake>> {
        let mut reader = Reader::new(&self.sources);
        let node = self.root.at(KEY);
        let script = node.and_then(|node| read(&mut reader, node, self.proto.as_deref()));
        reader.finish(script)
    }
}

/// Reads `websocket`.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node, proto: Option<&str>) -> Option<Script> {
    let fields = reader.fields(node, "`websocket`", KEYS)?;
    let mut kept = Kept { reader, names: Vec::new() };
    let codec = match fields.get("codec") {
        Some(node) => kept.codec(node)?,
        None => Codec::Json,
    };
    let login = kept.list(&fields, "login", Kept::http_step)?;
    let path = kept.template_of(&fields, "path", Where::Login)?;
    let headers = kept.pairs(&fields, "headers", Where::Login)?;
    let opening = kept.list(&fields, "opening", Kept::opening)?;
    let verbs = kept.verbs(&fields)?;
    let echo = kept.choice(&fields, "echo", &[("true", true), ("false", false)])?.unwrap_or(true);
    let acks = [("answer", Ack::Reply), ("echo", Ack::Echo), ("none", Ack::Silence)];
    let ack = kept.choice(&fields, "ack", &acks)?;
    let says = verbs.iter().find(|(verb, _)| *verb == Measure::Say);
    let is_answered = says.is_some_and(|(_, say)| say.answer.is_some());
    let ack = kept.ack(&fields, ack, is_answered, echo)?;
    let proto = kept.proto(&fields, codec, proto)?;
    let heartbeat = kept.heartbeat(&fields)?;
    let replies = kept.list(&fields, "replies", Kept::reply)?;
    let deliveries = kept.list(&fields, "deliveries", Kept::pattern)?;
    let history = kept.list(&fields, "history", Kept::pattern)?;
    let subprotocols = kept.list(&fields, "subprotocols", |kept, node| {
        kept.reader.text(node, "a subprotocol").map(str::to_owned)
    })?;
    Some(Script {
        codec,
        proto,
        path,
        subprotocols,
        headers,
        login,
        opening,
        verbs,
        heartbeat,
        replies,
        deliveries,
        history,
        echo,
        ack,
    })
}

/// Whether description and protocol belong together, and everything people do is described.
pub(super) fn check(
    reader: &mut Reader<'_>,
    pair: Option<(&Node, &Node)>,
    script: Option<&Script>,
    crowds: &[Crowd],
    protocol: &str,
    at: Place,
) {
    let place = pair.map_or(at, |(key, _)| key.place);
    match (pair, protocol == KEY) {
        (None, true) => {
            let help = "describe the server under `websocket:`; docs/bring-your-own-protocol.md";
            reader.wrong(place, "the scenario does not describe its server", help);
        }
        (Some(_), false) => {
            let reason = format!("`websocket` describes a server, but `{protocol}` is spoken");
            reader.wrong(place, reason, "remove it, or say `protocol: websocket`");
        }
        _ => {}
    }
    let Some(script) = script else { return };
    let mut known: Vec<Measure> = script.verbs.iter().map(|(verb, _)| *verb).collect();
    known.push(Measure::Login);
    for verb in crowds.iter().flat_map(|crowd| crowd.program.asks()) {
        if !known.contains(&verb) {
            // Told once.
            known.push(verb);
            let reason = format!("people `{0}`, but `verbs` does not say how", verb.name());
            reader.wrong(place, reason, format!("add `{}: {{send: …}}` to it", verb.name()));
        }
    }
}

/// A reader that knows which names have been kept so far.
pub(super) struct Kept<'r, 's> {
    pub(super) reader: &'r mut Reader<'s>,
    pub(super) names: Vec<String>,
}

impl Kept<'_, '_> {
    pub(super) fn wrong<T>(
        &mut self,
        place: Place,
        reason: impl Into<String>,
        help: &str,
    ) -> Option<T> {
        self.reader.wrong(place, reason, help);
        None
    }

    fn codec(&mut self, node: &Node) -> Option<Codec> {
        let name = self.reader.text(node, "`codec`")?;
        let known = Codec::of(name);
        if known.is_none() {
            let names = Codec::ALL.iter().map(|row| row.0);
            let help = near::advice(name, names, "codecs");
            self.reader.wrong(node.place, format!("there is no codec `{name}`"), help);
        }
        known
    }

    /// The items of a list, each read; one that is no list counts as a list of one.
    fn list<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        mut one: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(node) = fields.get(key) else { return Some(Vec::new()) };
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        if items.len() > ITEMS_MAX {
            let reason = format!("`{key}` has more than {ITEMS_MAX} items");
            return self.wrong(node.place, reason, "a server needs far fewer");
        }
        items.iter().map(|item| one(self, item)).collect()
    }

    fn choice<T: Copy>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        choices: &[(&str, T)],
    ) -> Option<Option<T>> {
        let Some(node) = fields.get(key) else { return Some(None) };
        let name = self.reader.text(node, &format!("`{key}`"))?;
        match choices.iter().find(|choice| choice.0 == name) {
            Some(choice) => Some(Some(choice.1)),
            None => {
                let names: Vec<&str> = choices.iter().map(|choice| choice.0).collect();
                let help = format!("it can be {}", names.join(", "));
                self.wrong(node.place, format!("`{key}` cannot be `{name}`"), &help)
            }
        }
    }

    fn ack(
        &mut self,
        fields: &Fields<'_>,
        given: Option<Ack>,
        is_answered: bool,
        echo: bool,
    ) -> Option<Ack> {
        let place = fields.get("ack").map_or(fields.place, |node| node.place);
        match given {
            Some(Ack::Reply) if !is_answered => {
                self.wrong(place, "`say` has no answer to wait for", "add `answer: …` to `say`")
            }
            Some(Ack::Echo) if !echo => {
                self.wrong(place, "there is no echo to wait for", "`ack: none`, or `echo: true`")
            }
            Some(ack) => Some(ack),
            None if is_answered => Some(Ack::Reply),
            None if echo => Some(Ack::Echo),
            None => Some(Ack::Silence),
        }
    }

    fn proto(
        &mut self,
        fields: &Fields<'_>,
        codec: Codec,
        text: Option<&str>,
    ) -> Option<Option<Proto>> {
        let Some(node) = fields.get("proto") else {
            return match codec {
                Codec::Protobuf => {
                    let help = "as in `proto: {file: chat.proto, message: ChatMessage}`";
                    self.wrong(fields.place, "protobuf needs a `proto`", help)
                }
                _ => Some(None),
            };
        };
        let keys = &["file", "message", "sent", "received"];
        let fields = self.reader.fields(node, "`proto`", keys)?;
        let both = match fields.get("message") {
            Some(node) => Some(self.reader.text(node, "`message`")?),
            None => None,
        };
        let mut name = |key: &str| match (fields.get(key), both) {
            (Some(node), _) => self.reader.text(node, "a message's name").map(str::to_owned),
            (None, Some(both)) => Some(both.to_owned()),
            (None, None) => {
                let help = "name it as in `message: ChatMessage`";
                self.reader.wrong(node.place, "`proto` does not say which message", help);
                None
            }
        };
        let (sent, received) = (name("sent")?, name("received")?);
        if fields.get("file").is_none() {
            let help = "name it as in `file: chat.proto`";
            return self.wrong(node.place, "`proto` does not say which file", help);
        }
        Some(Some(Proto { text: text.unwrap_or_default().to_owned(), sent, received }))
    }

    fn http_step(&mut self, node: &Node) -> Option<HttpStep> {
        let fields = self.reader.fields(node, "a step of `login`", HTTP_KEYS)?;
        let methods = ["get", "post", "put"];
        let mut given = methods.iter().filter_map(|m| Some((*m, fields.get(m)?)));
        let Some((method, path)) = given.next() else {
            let help = "as in `- post: /auth/token`";
            return self.wrong(node.place, "this step does not say what to ask for", help);
        };
        if let Some((other, at)) = given.next() {
            let reason = format!("`{method}` and `{other}` in one step");
            return self.wrong(at.place, reason, "write two steps");
        }
        let path_text = self.template(path, Where::Login)?;
        if !path.text().is_some_and(|text| text.starts_with('/')) {
            let help = "it begins with `/`; host and port are the target's";
            return self.wrong(path.place, "this is no path", help);
        }
        let headers = self.pairs(&fields, "headers", Where::Login)?;
        let body = match (fields.get("form"), fields.get("json")) {
            (Some(_), Some(json)) => {
                return self.wrong(json.place, "a form and JSON in one step", "keep one of them");
            }
            (Some(_), None) => HttpBody::Form(self.pairs(&fields, "form", Where::Login)?),
            (None, Some(json)) => HttpBody::Json(self.body(json, Where::Login)?),
            (None, None) => HttpBody::Nothing,
        };
        let status = match fields.get("status") {
            Some(node) => self.reader.whole(node, "`status`", 100, 599)? as u16,
            None => 0,
        };
        let keep = self.keep(&fields, true)?;
        let method = method.to_uppercase();
        Some(HttpStep { method, path: path_text, headers, body, status, keep })
    }

    fn keep(&mut self, fields: &Fields<'_>, is_http: bool) -> Option<Vec<(String, Source)>> {
        let Some(node) = fields.get("keep") else { return Some(Vec::new()) };
        let Some(pairs) = node.map().filter(|pairs| pairs.len() <= ITEMS_MAX) else {
            let help = "as in `keep: {token: access_token}`";
            return self.wrong(node.place, "`keep` is a map of names and paths", help);
        };
        let mut kept = Vec::new();
        for (key, value) in pairs {
            let name = self.reader.text(key, "a name")?;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if known(name).is_some() || name.is_empty() || !name.chars().all(is_word) {
                let reason = format!("nothing can be kept as `{name}`");
                return self.wrong(key.place, reason, "use another word of letters and digits");
            }
            let source = match &value.value {
                Value::Text(path) => Source::Path(path.to_string()),
                _ if is_http => {
                    let fields = self.reader.fields(value, "`keep`", &["header", "cookie"])?;
                    match (fields.get("header"), fields.get("cookie")) {
                        (Some(node), None) => Source::Header(self.reader.text(node, "it")?.into()),
                        (None, Some(node)) => Source::Cookie(self.reader.text(node, "it")?.into()),
                        _ => {
                            let help = "as in `{header: x-token}` or `{cookie: session}`";
                            return self.wrong(value.place, "one of two is needed", help);
                        }
                    }
                }
                _ => return self.wrong(value.place, "a path is needed", "as in `data.token`"),
            };
            if !self.names.iter().any(|other| other == name) {
                self.names.push(name.to_owned());
            }
            kept.push((name.to_owned(), source));
        }
        Some(kept)
    }

    fn opening(&mut self, node: &Node) -> Option<Exchange> {
        let exchange = self.exchange(node)?;
        if exchange.send.is_none() && exchange.answer.is_none() {
            return self.wrong(node.place, "this step does nothing", "add `send` or `answer`");
        }
        Some(exchange)
    }

    fn exchange(&mut self, node: &Node) -> Option<Exchange> {
        let fields = self.reader.fields(node, "an exchange", EXCHANGE_KEYS)?;
        let send = match fields.get("send") {
            Some(node) => Some(self.body(node, Where::Talk)?),
            None => None,
        };
        let mut pattern = |key: &str| match fields.get(key) {
            Some(node) => self.pattern(node).map(Some),
            None => Some(None),
        };
        let (answer, refused) = (pattern("answer")?, pattern("refused")?);
        let why = match fields.get("why") {
            Some(node) => Some(self.reader.text(node, "`why`")?.to_owned()),
            None => None,
        };
        let keep = self.keep(&fields, false)?;
        Some(Exchange { send, answer, refused, why, keep })
    }

    fn verbs(&mut self, fields: &Fields<'_>) -> Option<Vec<(Measure, Exchange)>> {
        let Some((key, node)) = fields.pair("verbs") else {
            let help = "add `verbs: {join: {send: …}, say: {send: …}}`";
            return self.wrong(fields.place, "`websocket` does not say how to talk", help);
        };
        let Some(pairs) = node.map() else {
            return self.wrong(key.place, "`verbs` is a map", "as in `say: {send: {…}}`");
        };
        let mut verbs = Vec::new();
        // The first is the login.
        let exchanges = &VERBS[1..];
        for (key, value) in pairs {
            let name = self.reader.text(key, "a verb")?;
            let Some(verb) = exchanges.iter().copied().find(|verb| verb.name() == name) else {
                let help = near::advice(name, exchanges.iter().map(|verb| verb.name()), "verbs");
                return self.wrong(key.place, format!("there is no verb `{name}`"), &help);
            };
            let exchange = self.exchange(value)?;
            if !exchange.keep.is_empty() {
                let help = "what is kept is kept by `login` and `opening`";
                return self.wrong(value.place, format!("`{name}` keeps nothing"), help);
            }
            verbs.push((verb, exchange));
        }
        Some(verbs)
    }

    fn heartbeat(&mut self, fields: &Fields<'_>) -> Option<Option<Heartbeat>> {
        let Some(node) = fields.get("heartbeat") else { return Some(None) };
        let fields = self.reader.fields(node, "`heartbeat`", &["every", "send"])?;
        let Some(every) = fields.get("every") else {
            return self.wrong(node.place, "how often?", "as in `heartbeat: {every: 30s}`");
        };
        let every_ns = self.reader.positive(every, "`every`")?;
        let send = match fields.get("send") {
            Some(node) => Some(self.body(node, Where::Talk)?),
            None => None,
        };
        Some(Some(Heartbeat { every_ns, send }))
    }

    fn reply(&mut self, node: &Node) -> Option<Reply> {
        let fields = self.reader.fields(node, "a reply", &["when", "send"])?;
        let (Some(when), Some(send)) = (fields.get("when"), fields.get("send")) else {
            let help = "as in `{when: {type: ping}, send: {type: pong}}`";
            return self.wrong(node.place, "a reply needs `when` and `send`", help);
        };
        Some(Reply { when: self.pattern(when)?, send: self.body(send, Where::Talk)? })
    }
}
