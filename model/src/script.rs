//! A chat protocol as a user describes it: plain data, which a protocol may be played from.

use crate::{Ack, Measure};
use serde::{Deserialize, Serialize};

/// The option under which a protocol is handed its description, as JSON.
pub const OPTION: &str = "script";

/// What a described protocol can do: the login, which is described by itself, and the verbs that
/// are exchanges.
pub const VERBS: &[Measure] = &[
    Measure::Login,
    Measure::Join,
    Measure::Leave,
    Measure::Say,
    Measure::History,
    Measure::Members,
    Measure::Typing,
    Measure::Read,
    Measure::Ping,
    Measure::Presence,
];

/// What is said to a server that is described by its user, and how its answers are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Script {
    /// How messages are written.
    pub codec: Codec,
    /// The messages of protobuf.
    pub proto: Option<Proto>,
    /// Path and query of the WebSocket; none for that of the target's URL.
    pub path: Option<Template>,
    /// Subprotocols offered.
    pub subprotocols: Vec<String>,
    /// Further headers of the upgrade.
    pub headers: Vec<(String, Template)>,
    /// What is asked over HTTP before, in order.
    pub login: Vec<HttpStep>,
    /// What is said and waited for behind the upgrade, in order.
    pub opening: Vec<Exchange>,
    /// What each verb says.
    pub verbs: Vec<(Measure, Exchange)>,
    /// A sign of life, given regularly.
    pub heartbeat: Option<Heartbeat>,
    /// What is answered to frames that ask for it.
    pub replies: Vec<Reply>,
    /// Which frames may hold deliveries; none for all.
    pub deliveries: Vec<Pattern>,
    /// Which frames hold messages of the past.
    pub history: Vec<Pattern>,
    /// Whether the sender receives its own messages.
    pub echo: bool,
    /// What acknowledges a message.
    pub ack: Ack,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// JSON in text frames.
    Json,
    /// JSON in text frames, several values in one frame parted by line feeds.
    JsonLines,
    /// Text in text frames.
    Text,
    /// MessagePack in binary frames.
    Msgpack,
    /// Protobuf in binary frames.
    Protobuf,
}

impl Codec {
    /// The codec of that name.
    pub fn of(name: &str) -> Option<Codec> {
        Codec::ALL.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// All codecs with their names.
    pub const ALL: [(&'static str, Codec); 5] = [
        ("json", Codec::Json),
        ("json-lines", Codec::JsonLines),
        ("text", Codec::Text),
        ("msgpack", Codec::Msgpack),
        ("protobuf", Codec::Protobuf),
    ];
}

/// Protobuf messages of the user's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Proto {
    /// The text of the `.proto` file.
    pub text: String,
    /// The message that people send.
    pub sent: String,
    /// The message that the target sends.
    pub received: String,
}

/// Text with blanks.
pub type Template = Vec<Part>;

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// As it stands.
    Literal(String),
    /// To be filled in.
    Blank(Blank),
}

/// What is filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blank {
    /// The number of the request.
    Id,
    /// The account's name.
    Name,
    /// The account's password.
    Password,
    /// The room's name.
    Room,
    /// The name to be seen by in the room.
    Nick,
    /// What is said, stamp included.
    Text,
    /// How many messages of history are wanted.
    Limit,
    /// What others shall see as presence.
    Status,
    /// What was kept of an earlier answer, by its name.
    Kept(String),
}

/// What a message is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// A string.
    Text(Template),
    /// A number, `true`, `false` or `null`.
    Bare(Template),
    /// A list.
    List(Vec<Body>),
    /// An object.
    Map(Vec<(String, Body)>),
}

/// By what a frame is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// It begins with this.
    Start(Template),
    /// All these paths (keys and indexes, parted by points) lead to these values; a value `*` is
    /// any.
    Fields(Vec<(String, Template)>),
}

/// Something said and answered over the WebSocket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Exchange {
    /// What is said; nothing if something is only waited for.
    pub send: Option<Body>,
    /// How the answer is known; without one the request is over once it is sent.
    pub answer: Option<Pattern>,
    /// How a refusal is known.
    pub refused: Option<Pattern>,
    /// Path of the words of a refusal.
    pub why: Option<String>,
    /// What is kept of the answer: name and path.
    pub keep: Vec<(String, Source)>,
}

/// A request over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HttpStep {
    /// `GET`, `POST` or `PUT`.
    pub method: String,
    /// Path and query.
    pub path: Template,
    /// Headers.
    pub headers: Vec<(String, Template)>,
    /// What is sent with it.
    pub body: HttpBody,
    /// The status that means success; 0 for any from 200 to 299.
    pub status: u16,
    /// What is kept of the answer.
    pub keep: Vec<(String, Source)>,
}

/// The body of a request over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpBody {
    /// None.
    Nothing,
    /// `application/x-www-form-urlencoded`.
    Form(Vec<(String, Template)>),
    /// JSON.
    Json(Body),
}

/// Where something is kept from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A path in the body.
    Path(String),
    /// A header of the answer.
    Header(String),
    /// A cookie that the answer sets.
    Cookie(String),
}

/// A sign of life, given regularly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Heartbeat {
    /// How often, nanoseconds.
    pub every_ns: u64,
    /// What is said; a ping of the WebSocket if nothing is.
    pub send: Option<Body>,
}

/// What is answered to frames that ask for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reply {
    /// Which frames.
    pub when: Pattern,
    /// What is said.
    pub send: Body,
}

/// What is wrong with a description, and where in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Misfit {
    /// The way there: keys, and places in lists.
    pub path: Vec<String>,
    /// What is wrong.
    pub reason: String,
}

impl Misfit {
    /// The same, seen from one step further out.
    #[must_use]
    pub fn within(mut self, step: impl Into<String>) -> Misfit {
        self.path.insert(0, step.into());
        self
    }
}

impl From<String> for Misfit {
    fn from(reason: String) -> Misfit {
        Misfit { path: Vec::new(), reason }
    }
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.is_empty() {
            true => write!(f, "{}", self.reason),
            false => write!(f, "`{}`: {}", self.path.join("."), self.reason),
        }
    }
}
