//! Any chat server over a WebSocket, as its user describes it: no code, templates made ready once.
mod compile;
mod http;
mod json;
mod msgpack;
mod piece;
mod proto;
mod session;

use compile::Compiled;
use model::script::{Codec, Misfit, OPTION, Script, VERBS};
use model::{Ack, Facts, Features, Manners, Options, PersonId, Protocol, Session, Shared};
use std::sync::Arc;

static FACTS: Facts = Facts {
    name: "websocket",
    about: "any chat over a WebSocket, as the scenario describes it under `websocket:`",
    schemes: &["ws", "wss"],
    verbs: VERBS,
    features: &[],
    options: &[
        ("codec", "in place of the description's: json, json-lines, text, msgpack, protobuf"),
        ("deflate", "`off` (the default) or `on`: compressed messages (permessage-deflate)"),
    ],
    manners: Manners { echo: true, ack: Ack::Echo, stamped_joins: false },
};

/// Whatever the user describes.
#[derive(Debug)]
pub struct WebSocket;

impl Protocol for WebSocket {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn manners(&self, options: &Options) -> Manners {
        match script(options) {
            Ok(Some(script)) => Manners { echo: script.echo, ack: script.ack, ..FACTS.manners },
            _ => FACTS.manners,
        }
    }

    /// A description knows no announcements.
    fn announces(&self, _: &Options) -> bool {
        false
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        let is_known = |name: &str| name == OPTION || FACTS.options.iter().any(|o| o.0 == name);
        if let Some(name) = options.keys().find(|name| !is_known(name)) {
            return Err(format!("websocket has no option `{name}`; it has `codec`, `deflate`"));
        }
        compile(options).map(drop).map_err(|misfit| misfit.to_string())
    }

    fn misfit(&self, options: &Options) -> Option<Misfit> {
        compile(options).err()
    }

    fn session(&self, _: PersonId, _: Features, shared: &Arc<Shared>) -> Box<dyn Session> {
        // A description that does not compile has been refused before anybody dials.
        let made = shared.made(|shared| compile(&shared.options).unwrap_or_default());
        Box::new(session::Described::new(Arc::clone(shared), made))
    }
}

fn script(options: &Options) -> Result<Option<Script>, String> {
    let Some(text) = options.get(OPTION) else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| format!("the description: {error}"))
}

fn compile(options: &Options) -> Result<Compiled, Misfit> {
    let deflate = match options.get("deflate").map(String::as_str) {
        None | Some("off") => false,
        Some("on") => true,
        Some(other) => {
            let reason = format!("`deflate` cannot be `{other}`; it can be `off` or `on`");
            return Err(reason.into());
        }
    };
    let codec = options.get("codec").map(|name| {
        let names: Vec<&str> = Codec::ALL.iter().map(|row| row.0).collect();
        let help = format!("`codec` cannot be `{name}`; it can be {}", names.join(", "));
        Codec::of(name).ok_or(help)
    });
    let codec = codec.transpose()?;
    // Whether there has to be a description is the scenario's affair: it is read behind options.
    match script(options)? {
        Some(script) => Compiled::of(&script, codec.unwrap_or(script.codec), deflate),
        None => Ok(Compiled::default()),
    }
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use fake::{example, rows};
