//! What the protocol is and can do, and its options.

use super::Encoding;
use super::session::YardstickSession;
use model::{Ack, Facts, Features, Manners, Measure, Options, PersonId, Protocol, Session, Shared};
use std::sync::Arc;

pub(super) const HISTORY: usize = 0;
pub(super) const MEMBERS: usize = 1;
pub(super) const AVATARS: usize = 2;
pub(super) const RESUME: usize = 3;

pub(super) static FACTS: Facts = Facts {
    name: "yardstick",
    about: "throng's own chat server: WebSocket, JSON or protobuf",
    schemes: &["ws", "wss"],
    verbs: &[
        Measure::Login,
        Measure::Join,
        Measure::Leave,
        Measure::Say,
        Measure::History,
        Measure::Members,
        Measure::Tell,
        Measure::Multicast,
        Measure::Typing,
        Measure::Read,
        Measure::Ping,
    ],
    features: &[
        ("history", "asks for the last 50 messages when joining"),
        ("members", "asks who is there when joining"),
        ("avatars", "has a picture, and asks once for that of everybody in the room"),
        ("resume", "comes back after a lost connection: by token, for what it has missed"),
    ],
    options: &[
        ("codec", "`proto` (protobuf, the default) or `json`"),
        ("deflate", "`off` (the default) or `on`: compressed messages (permessage-deflate)"),
        ("presence", "`off` where the server announces nobody, so that nothing is owed"),
    ],
    manners: Manners { echo: true, ack: Ack::Reply, stamped_joins: true },
};

/// The yardstick's protocol.
#[derive(Debug)]
pub struct Yardstick;

impl Protocol for Yardstick {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn manners(&self, options: &Options) -> Manners {
        Manners { stamped_joins: self.announces(options), ..FACTS.manners }
    }

    fn announces(&self, options: &Options) -> bool {
        options.get("presence").is_none_or(|presence| presence != "off")
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        let is_known = |name: &str| FACTS.options.iter().any(|option| option.0 == name);
        if let Some(name) = options.keys().find(|name| !is_known(name)) {
            let known: Vec<&str> = FACTS.options.iter().map(|option| option.0).collect();
            return Err(format!("yardstick has no option `{name}`; it has {}", known.join(", ")));
        }
        encoding(options)?;
        deflate(options)?;
        Ok(())
    }

    fn session(
        &self,
        person: PersonId,
        features: Features,
        shared: &Arc<Shared>,
    ) -> Box<dyn Session> {
        Box::new(YardstickSession::new(person, features, shared))
    }
}

pub(super) fn encoding(options: &Options) -> Result<Encoding, String> {
    match options.get("codec").map(String::as_str) {
        None | Some("proto") => Ok(Encoding::Proto),
        Some("json") => Ok(Encoding::Json),
        Some(other) => Err(format!("`codec` cannot be `{other}`; it can be `proto` or `json`")),
    }
}

pub(super) fn deflate(options: &Options) -> Result<bool, String> {
    match options.get("deflate").map(String::as_str) {
        None | Some("off") => Ok(false),
        Some("on") => Ok(true),
        Some(other) => Err(format!("`deflate` cannot be `{other}`; it can be `off` or `on`")),
    }
}
