//! XMPP over WebSocket (RFC 7395) or TCP (RFC 6120): rooms by XEP-0045, and the requests a web
//! client adds to them. One session speaks over both; `link.rs` is all that tells them apart.
//!
//! What a person with features does at a join is that of the published Prosody experiment, stanza
//! by stanza and in its order ([`FEATURES`]); its two pauses of 10 and 20 ms are left out. Nothing
//! waits for an answer except login and join.
//!
//! What counts as what:
//! - a **delivery** is a groupchat message without `<delay/>`, result, forwarded or carbon copy in
//!   it: the room's replay at a join and pages of the archive are none;
//! - **presences** are counted from the moment the person is in the room: others who come, change
//!   or go. The list of those who were there first, and one's own presence, are not counted;
//! - an **avatar** request is refused if a person's vCard comes back as an error. A room's vCard is
//!   one that most targets do not have: its error is an answer. So is that of the disco request for
//!   a reserved nickname;
//! - a **ping** is answered by whatever comes back, also by "I do not know pings";
//! - who is put out of a room (kicked, banned, room destroyed) has lost the conversation: it is
//!   given up with the fault class `closed`;
//! - `login` always begins a new connection, unless one is open on which nobody has logged in.

mod ask;
mod element;
mod link;
mod login;
mod room;
mod sasl;
mod scram;
mod session;
mod smacks;
mod stanza;
mod stream;
pub mod xml;

use model::{
    Ack, Encryption, EncryptionStart, Endpoint, Facts, Features, Manners, Measure, Options,
    PersonId, Protocol, Session, Shared,
};
use std::sync::Arc;

/// The protocol's row in the table.
#[derive(Debug)]
pub struct Xmpp;

/// What a crowd can switch on, in the order of the bits of [`Features`].
pub const FEATURES: &[(&str, &str)] = &[
    ("disco", "asks domain and room what they offer, and for its reserved nickname (XEP-0030)"),
    ("roster", "fetches the list of contacts (RFC 6121)"),
    (
        "avatars",
        "fetches the vCard of itself, the room, everybody present, each newcomer (XEP-0054)",
    ),
    ("carbons", "switches on copies for its other devices (XEP-0280)"),
    ("history", "reads the newest page of the room's archive, 50 messages (XEP-0313)"),
    ("smacks", "counts and acknowledges stanzas, and resumes a lost conversation (XEP-0198)"),
    ("register", "makes the account before it logs in; one that is there is fine (XEP-0077)"),
];

const DISCO: usize = 0;
const ROSTER: usize = 1;
const AVATARS: usize = 2;
const CARBONS: usize = 3;
const HISTORY: usize = 4;
const SMACKS: usize = 5;
const REGISTER: usize = 6;

const OPTIONS: &[(&str, &str)] = &[
    (
        "domain",
        "domain people log in to (default over TCP the URL's host name, else anon.localhost)",
    ),
    ("muc", "domain of the rooms (default room.localhost)"),
    ("sasl", "plain, scram-sha-1 or scram-sha-256 (default the strongest that is offered)"),
    ("tls", "xmpp:// only: starttls if offered (default), required, or off"),
];
const DEFAULTS: [(&str, &str); 3] =
    [("domain", "anon.localhost"), ("muc", "room.localhost"), ("tls", "starttls")];
/// Options that take one of a few words.
const CHOICES: [(&str, &[&str]); 2] = [
    ("sasl", &["plain", "scram-sha-1", "scram-sha-256"]),
    ("tls", &["starttls", "required", "off"]),
];

static FACTS: Facts = Facts {
    name: "xmpp",
    about: "XMPP over WebSocket or TCP with multi-user chat (RFC 6120, 7395; XEP-0045)",
    schemes: &["ws", "wss", "xmpp", "xmpps", link::COMPONENT],
    verbs: &[
        Measure::Login,
        Measure::Join,
        Measure::Leave,
        Measure::Say,
        Measure::History,
        Measure::Members,
        Measure::Presence,
        Measure::Typing,
        Measure::Ping,
    ],
    features: FEATURES,
    options: OPTIONS,
    manners: Manners { echo: true, ack: Ack::Echo, stamped_joins: false },
};

impl Protocol for Xmpp {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        for (name, value) in options {
            if !OPTIONS.iter().any(|(known, _)| known == name) {
                let known: Vec<&str> = OPTIONS.iter().map(|row| row.0).collect();
                return Err(format!("xmpp has no option `{name}`; it has {}", known.join(", ")));
            }
            if let Some((_, words)) = CHOICES.iter().find(|row| row.0 == name) {
                if !words.contains(&value.as_str()) {
                    let words = words.join(", ");
                    return Err(format!("`{value}` is nothing for option `{name}`: {words}"));
                }
            } else if !is_domain(value) {
                return Err(format!(
                    "`{value}` is no domain for option `{name}`: it may hold lower-case letters, \
                     digits, `.`, `-` and `_`, as in room.localhost"
                ));
            }
        }
        Ok(())
    }

    /// STARTTLS and direct TLS (XEP-0368). What the target has to prove to be is the domain people
    /// log in to (RFC 6120 section 13.7.2.1), if that is given.
    fn encryption<'a>(&self, endpoint: &'a Endpoint, options: &'a Options) -> Encryption<'a> {
        let name = options.get("domain").map_or(endpoint.host.as_str(), String::as_str);
        let host = endpoint.host.as_str();
        let of = |start, name, alpn| Encryption { start, name, alpn };
        match endpoint.scheme.as_str() {
            "xmpp" if option(options, "tls") == "off" => of(EncryptionStart::Never, name, &[]),
            "xmpp" => of(EncryptionStart::Asked, name, &[]),
            "xmpps" => of(EncryptionStart::AtOnce, name, &["xmpp-client"]),
            _ if endpoint.is_secure() => of(EncryptionStart::AtOnce, host, &[]),
            _ => of(EncryptionStart::Never, host, &[]),
        }
    }

    fn session(
        &self,
        _person: PersonId,
        features: Features,
        shared: &Arc<Shared>,
    ) -> Box<dyn Session> {
        Box::new(session::XmppSession::new(features, Arc::clone(shared)))
    }
}

/// The value of an option, or its default.
fn option<'a>(options: &'a Options, name: &str) -> &'a str {
    let default = DEFAULTS.iter().find(|(known, _)| *known == name).map_or("", |row| row.1);
    options.get(name).map_or(default, String::as_str)
}

/// Lower case only, so that what the target sends back can be compared byte by byte.
fn is_domain(text: &str) -> bool {
    let fits = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
    };
    !text.is_empty() && text.len() <= 253 && text.bytes().all(fits)
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use fake::row;
