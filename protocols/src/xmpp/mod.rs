//! XMPP over WebSocket (RFC 7395) or TCP (RFC 6120): rooms by XEP-0045, and the requests a web
//! client adds to them. One session speaks over both; `link.rs` is all that tells them apart.
//!
//! What a person with features does at a join is that of the published Prosody experiment, stanza
//! by stanza and in its order ([`FEATURES`]); its two pauses of 10 and 20 ms are left out. Nothing
//! waits for an answer except login and join.
//!
//! What counts as what:
//! - a **delivery** is a message without `<delay/>`, result, forwarded or carbon copy in it, to a
//!   room or, from somebody else, to the person: the room's replay at a join, pages of the archive,
//!   what was kept while one was away, copies for one's other devices, and errors are none. On a
//!   list of contacts it is also a stamped presence, but not the one that a contact had before;
//! - a **list** is joined by becoming available and left by the opposite; both are over when a
//!   ping behind the presence is answered. Who leaves its last list while in a room only takes a
//!   negative priority (RFC 6121 section 4.7.2.3): the end of presence would end its rooms;
//! - messages to a list are not answered for: that one addressee is not there is no refusal. What
//!   the multicast service refuses, or somebody for another reason, has failed;
//! - **presences** are counted from the moment the person is in the room, or there for the list of
//!   contacts: others who come, change or go. Those who were there first, and one's own presence,
//!   are not counted; a new nickname counts once;
//! - a person accepts every request to become a contact; `befriend` is over when everybody on the
//!   list has accepted, or was a contact before, and fails if somebody refuses;
//! - an **avatar** request is refused if a person's vCard comes back as an error. A room's vCard is
//!   one that most targets do not have: its error is an answer. So is that of the disco request for
//!   a reserved nickname;
//! - a **ping** is answered by whatever comes back, also by "I do not know pings";
//! - who is put out of a room (kicked, banned, room destroyed) has lost the conversation: it is
//!   given up with the fault class `closed`;
//! - `login` always begins a new connection, unless one is open on which nobody has logged in.

mod ask;
mod config;
mod direct;
mod element;
mod link;
mod login;
mod multicast;
mod room;
mod roster;
mod sasl;
mod scram;
mod session;
mod smacks;
mod stanza;
mod stream;
pub mod xml;

use config::option;
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
        Measure::Tell,
        Measure::Multicast,
        Measure::Rename,
        Measure::Befriend,
    ],
    features: FEATURES,
    options: config::OPTIONS,
    manners: Manners { echo: true, ack: Ack::Echo, stamped_joins: false },
};

impl Protocol for Xmpp {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn check(&self, options: &Options) -> Result<(), String> {
        options.iter().try_for_each(|(name, value)| config::check(name, value))
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

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use fake::rows;
