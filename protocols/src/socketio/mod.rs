//! Socket.IO 2 to 4 over Engine.IO 3 and 4: WebSocket, long polling, and the way from one to the
//! other. What an application says in it is a dialect, a map of the scenario or the target.

mod answer;
mod dialect;
#[cfg(test)]
mod fake;
mod packet;
mod session;
mod template;
#[cfg(test)]
mod tests;
mod transport;

#[cfg(test)]
pub(crate) use fake::rows;

use dialect::Dialect;
use model::{Ack, Facts, Features, Manners, Measure, Options, PersonId, Protocol, Session, Shared};
use std::sync::{Arc, Mutex, PoisonError};

const NAME: &str = "socketio";
const OPTIONS: &[(&str, &str)] = &[
    ("transport", "`upgrade` (polling first, the default), `websocket` or `polling`"),
    ("eio", "revision of Engine.IO: `4` (Socket.IO 3 and 4, the default) or `3` (Socket.IO 2)"),
    ("path", "path of Engine.IO, unless the URL has one: `/socket.io/`"),
    ("namespace", "namespace of Socket.IO: `/`"),
    ("query", "more of the query, as in `token=x&room=y`"),
    ("deflate", "`off` (the default) or `on`: compressed messages (permessage-deflate)"),
    ("dialect", "what is said, as JSON; written as the map `socketio` of the scenario"),
];
/// Longest path, namespace and query, bytes.
const PART_BYTES_MAX: usize = 1_000;

/// Socket.IO, as a dialect makes it.
#[derive(Debug)]
pub struct SocketIo;

static FACTS: Facts = Facts {
    name: NAME,
    about: "Socket.IO 2 to 4 over WebSocket or polling; the application's events are a map",
    schemes: &["ws", "wss", "http", "https"],
    verbs: &[
        Measure::Login,
        Measure::Join,
        Measure::Leave,
        Measure::Say,
        Measure::History,
        Measure::Members,
        Measure::Presence,
        Measure::Typing,
        Measure::Read,
        Measure::Ping,
    ],
    features: &[],
    options: OPTIONS,
    manners: Manners { echo: false, ack: Ack::Reply, stamped_joins: false },
};

impl Protocol for SocketIo {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn manners(&self, options: &Options) -> Manners {
        let Ok(setting) = Setting::of(options) else { return FACTS.manners };
        let dialect = setting.dialect;
        Manners { echo: dialect.is_echoing, stamped_joins: dialect.is_stamping, ..FACTS.manners }
    }

    fn verbs(&self, options: &Options) -> Vec<Measure> {
        match Setting::of(options) {
            Ok(setting) => setting.dialect.measures().chain([Measure::Login]).collect(),
            Err(_) => FACTS.verbs.to_vec(),
        }
    }

    /// A dialect knows announcements by the stamps in them.
    fn announces(&self, options: &Options) -> bool {
        self.manners(options).stamped_joins
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        Setting::of(options).map(|_| ())
    }

    fn session(&self, _: PersonId, _: Features, shared: &Arc<Shared>) -> Box<dyn Session> {
        Box::new(session::SocketIoSession::new(Arc::clone(shared), setting(shared)))
    }
}

/// Which transports are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Upgrade,
    WebSocket,
    Polling,
}

/// The options, read and compiled.
#[derive(Debug)]
struct Setting {
    transport: Transport,
    /// 3 or 4.
    revision: u8,
    /// Path and query up to the session's number.
    path: String,
    /// Begins with `/`; that alone is the default one.
    namespace: String,
    deflate: bool,
    dialect: Dialect,
}

impl Setting {
    fn of(options: &Options) -> Result<Setting, String> {
        if let Some(name) = options.keys().find(|name| !OPTIONS.iter().any(|row| row.0 == **name)) {
            let all: Vec<&str> = OPTIONS.iter().map(|row| row.0).collect();
            return Err(format!("{NAME} has no option `{name}`; it has {}", all.join(", ")));
        }
        let one_of = |name: &str, words: &[&str]| -> Result<usize, String> {
            let Some(word) = options.get(name) else { return Ok(0) };
            words.iter().position(|known| known == word).ok_or_else(|| {
                format!("`{name}` cannot be `{word}`; it can be {}", words.join(", "))
            })
        };
        let transports = [Transport::Upgrade, Transport::WebSocket, Transport::Polling];
        let transport = transports[one_of("transport", &["upgrade", "websocket", "polling"])?];
        let revision = [4, 3][one_of("eio", &["4", "3"])?];
        let deflate = one_of("deflate", &["off", "on"])? == 1;
        let text = |name: &str, default: &str| -> Result<String, String> {
            let text = options.get(name).map_or(default, String::as_str);
            let is_fine = text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b',' | b'#'));
            match is_fine && text.len() <= PART_BYTES_MAX {
                true => Ok(text.into()),
                false => Err(format!("`{name}` holds what cannot be a part of a URL")),
            }
        };
        let (path, namespace) = (text("path", "/socket.io/")?, text("namespace", "/")?);
        if !path.starts_with('/') || path.contains('?') || !namespace.starts_with('/') {
            return Err("`path` and `namespace` begin with `/`; there is an option `query`".into());
        }
        let query = text("query", "")?;
        let and = if query.is_empty() { "" } else { "&" };
        let dialect = options.get("dialect").map_or(dialect::DEFAULT, String::as_str);
        let dialect = Dialect::compile(dialect).map_err(|why| format!("`{NAME}`: {why}"))?;
        if dialect.auth.is_some() && revision == 3 {
            return Err("`auth` came with `eio: 4`; older servers read the `query`".into());
        }
        let path = format!("{path}?{query}{and}EIO={revision}");
        Ok(Setting { transport, revision, path, namespace, deflate, dialect })
    }
}

/// The setting for these options: compiled once, however many people there are.
fn setting(shared: &Shared) -> Arc<Setting> {
    static LAST: Mutex<Option<(Options, Arc<Setting>)>> = Mutex::new(None);
    let mut options = shared.options.clone();
    let whole = shared.endpoint.path.as_str();
    let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
    if path != "/" {
        options.insert("path".into(), path.into());
    }
    if !query.is_empty() {
        options.entry("query".into()).or_insert_with(|| query.into());
    }
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match &*last {
        Some((known, setting)) if *known == options => Arc::clone(setting),
        _ => {
            // The options were checked before the first session; an odd path is left out.
            let made = Setting::of(&options).or_else(|_| Setting::of(&shared.options));
            let made = made.or_else(|_| Setting::of(&Options::new()));
            let setting = Arc::new(made.unwrap_or_else(|why| unreachable!("the default: {why}")));
            *last = Some((options, Arc::clone(&setting)));
            setting
        }
    }
}
