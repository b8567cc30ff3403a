//! The seam between a protocol and everything else: a session is told what time it is and what
//! arrived, and answers with effects. It owns no socket, no buffer and no clock.

use crate::endpoint::{Encryption, EncryptionStart, Endpoint};
use crate::script::Misfit;
use crate::stamp::{self, RoomId};
use crate::{FaultClass, Measure, PersonId, Rng, Stamp, Tick};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// A protocol: what it can do, and how to start a conversation in it.
pub trait Protocol: Send + Sync {
    /// What the protocol is and can do.
    fn facts(&self) -> &'static Facts;

    /// How messages are echoed and acknowledged and joins announced with these options: as the
    /// facts say, unless the user describes what is said.
    fn manners(&self, _: &Options) -> Manners {
        self.facts().manners
    }

    /// What people can ask with these options besides connecting: as the facts say, unless the user
    /// describes what is said.
    fn verbs(&self, _: &Options) -> Vec<Measure> {
        self.facts().verbs.to_vec()
    }

    /// Where a description that the options carry cannot be carried out.
    fn misfit(&self, _: &Options) -> Option<Misfit> {
        None
    }

    /// Whether the target tells people of each other's coming and going at all: where it does not,
    /// no announcement is expected.
    fn announces(&self, _: &Options) -> bool {
        true
    }

    /// Checks the target's options once, before anybody dials. The error is advice for the user.
    fn check(&self, options: &Options) -> Result<(), String>;

    /// How connections to that endpoint are encrypted: as its scheme says, unless the protocol has
    /// its own ways.
    fn encryption<'a>(&self, endpoint: &'a Endpoint, _: &'a Options) -> Encryption<'a> {
        let start = match endpoint.is_secure() {
            true => EncryptionStart::AtOnce,
            false => EncryptionStart::Never,
        };
        Encryption { start, name: &endpoint.host, alpn: &[] }
    }

    /// A new person's session. Everything that people share is behind `shared`.
    fn session(
        &self,
        person: PersonId,
        features: Features,
        shared: &Arc<Shared>,
    ) -> Box<dyn Session>;
}

/// What a protocol is and can do.
#[derive(Debug)]
pub struct Facts {
    /// Its name in scenarios.
    pub name: &'static str,
    /// One line for `throng protocols`.
    pub about: &'static str,
    /// URL schemes it can be reached by.
    pub schemes: &'static [&'static str],
    /// Requests it understands (besides connecting, which all do).
    pub verbs: &'static [Measure],
    /// What a crowd can switch on, with one line each.
    pub features: &'static [(&'static str, &'static str)],
    /// Options of a target of this protocol, with one line each.
    pub options: &'static [(&'static str, &'static str)],
    /// How deliveries and announcements go, unless options say otherwise.
    pub manners: Manners,
}

/// How deliveries and announcements go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// Whether the sender of a message receives it like everybody else in the room.
    pub echo: bool,
    /// What tells the sender that the target has taken a message.
    pub ack: Ack,
    /// Whether a join can carry a stamp that others see in its announcement.
    pub stamped_joins: bool,
}

/// What tells the sender that the target has taken a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ack {
    /// The session reports `Done`.
    Reply,
    /// The sender's own copy of the message.
    Echo,
    /// Nothing does: the message counts as settled after a while.
    Silence,
}

/// The features a person has, as bits in the order of [`Facts::features`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub u64);

impl Features {
    /// Whether the feature at `index` of [`Facts::features`] is on.
    pub const fn has(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }
}

/// What all sessions of a run share.
#[derive(Debug)]
pub struct Shared {
    /// Where to connect.
    pub endpoint: Endpoint,
    /// The target's options, checked.
    pub options: Options,
    /// Largest frame or stanza accepted, bytes.
    pub frame_bytes_max: usize,
    /// The lists of people, in the order of their rooms.
    pub lists: Vec<List>,
    /// What a protocol makes of the options, once.
    made: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Shared {
    /// What is shared by sessions with this endpoint.
    pub fn new(endpoint: Endpoint, options: Options, frame_bytes_max: usize) -> Shared {
        Shared { endpoint, options, frame_bytes_max, lists: Vec::new(), made: OnceLock::new() }
    }

    /// The list that has this number among the rooms, if it is a list and no room.
    pub fn list(&self, room: RoomId) -> Option<&List> {
        let at = self.lists.binary_search_by_key(&room, |list| list.room).ok()?;
        self.lists.get(at)
    }

    /// What was made by the first call, for all sessions of the run.
    pub fn made<T: Any + Send + Sync + Default>(&self, make: impl FnOnce(&Shared) -> T) -> Arc<T> {
        let made = self.made.get_or_init(|| Arc::new(make(self))).clone();
        // Of another type only if two protocols share what is one run's.
        made.downcast().unwrap_or_default()
    }
}

/// People who are written to one by one: a room that only those know who address it. Joining it is
/// to be there for what comes, leaving it to be away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Its number among the rooms.
    pub room: RoomId,
    /// The account names of those on it.
    pub names: Vec<Box<str>>,
    /// Whether the target makes them each other's contacts, so that each sees the others come, go
    /// and change their presence.
    pub is_roster: bool,
}

/// Options of a target: name and value.
pub type Options = std::collections::BTreeMap<String, String>;

/// Names one of a person's requests until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// Something a person does, to be said in the protocol's own words.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Connect if need be, and authenticate.
    Login {
        /// Account name.
        name: &'a str,
        /// Password; empty if the account has none.
        password: &'a str,
    },
    /// Enter a room.
    Join {
        /// The room.
        room: RoomName<'a>,
        /// The name to be seen by.
        nick: &'a str,
        /// A stamp for the announcement; empty unless [`Manners::stamped_joins`].
        status: &'a str,
    },
    /// Leave a room.
    Leave {
        /// The room.
        room: RoomName<'a>,
    },
    /// Say something, stamp included.
    Say {
        /// The room.
        room: RoomName<'a>,
        /// What is said.
        text: &'a str,
    },
    /// Read the newest page of a room's past.
    History {
        /// The room.
        room: RoomName<'a>,
        /// At most so many messages.
        limit: u32,
    },
    /// List a room's members.
    Members {
        /// The room.
        room: RoomName<'a>,
    },
    /// Say something to everybody on a list, to each by a message of its own, stamp included.
    Tell {
        /// The list.
        list: RoomName<'a>,
        /// What is said.
        text: &'a str,
    },
    /// Say something to everybody on a list by one message, stamp included.
    Multicast {
        /// The list.
        list: RoomName<'a>,
        /// What is said.
        text: &'a str,
    },
    /// Change one's presence.
    Presence {
        /// The list of contacts whose members are owed the change; none if nobody counts it.
        list: Option<RoomName<'a>>,
        /// What others shall see; with a list, stamp included.
        status: &'a str,
    },
    /// Change the name one is seen by in a room.
    Rename {
        /// The room.
        room: RoomName<'a>,
        /// The new name.
        nick: &'a str,
    },
    /// Become a contact of everybody on a list, so that each sees the other's presence.
    Befriend {
        /// The list.
        list: RoomName<'a>,
    },
    /// Show that one is typing.
    Typing {
        /// The room.
        room: RoomName<'a>,
    },
    /// Mark the newest message as read.
    Read {
        /// The room.
        room: RoomName<'a>,
    },
    /// Ask for a sign of life.
    Ping,
    /// Say good-bye and close the connection.
    Disconnect,
}

impl Request<'_> {
    /// The name it is measured by; none for a good-bye.
    pub fn measure(&self) -> Option<Measure> {
        Some(match self {
            Request::Login { .. } => Measure::Login,
            Request::Join { .. } => Measure::Join,
            Request::Leave { .. } => Measure::Leave,
            Request::Say { .. } => Measure::Say,
            Request::History { .. } => Measure::History,
            Request::Members { .. } => Measure::Members,
            Request::Tell { .. } => Measure::Tell,
            Request::Multicast { .. } => Measure::Multicast,
            Request::Presence { .. } => Measure::Presence,
            Request::Rename { .. } => Measure::Rename,
            Request::Befriend { .. } => Measure::Befriend,
            Request::Typing { .. } => Measure::Typing,
            Request::Read { .. } => Measure::Read,
            Request::Ping => Measure::Ping,
            Request::Disconnect => return None,
        })
    }
}

/// A room, by number and name.
#[derive(Clone, Copy, Debug)]
pub struct RoomName<'a> {
    /// Its number in the plan.
    pub id: RoomId,
    /// Its name at the target.
    pub name: &'a str,
}

/// What a session reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The transport is ready to speak (the upgrade was accepted).
    Connected,
    /// Ahead of the login's `Done`: the conversation before it goes on, rooms and all, and what was
    /// missed follows.
    Resumed,
    /// A request is over.
    Done(Token, Outcome),
    /// A stamped message has arrived.
    Delivery(Stamp),
    /// A stamped announcement has arrived.
    Announcement(Stamp),
    /// So many announcements in the target's own words have arrived for a room.
    Presences(RoomId, u32),
    /// The session asked something by itself (a feature at work), so many times.
    Asked(Measure, u32),
    /// Something the session asked by itself was answered.
    Answered {
        /// What was asked.
        measure: Measure,
        /// When it was asked.
        sent: Tick,
        /// How it went.
        outcome: Outcome,
    },
}

/// How a request ended.
pub type Outcome = Result<(), Fault>;

/// A failure with the words to tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its class, to be counted.
    pub class: FaultClass,
    /// What happened and where, without secrets; shown once for each kind.
    pub detail: String,
}

impl Fault {
    /// A failure of that class.
    pub fn new(class: FaultClass, detail: impl Into<String>) -> Fault {
        Fault { class, detail: detail.into() }
    }
}

/// What a session wants done, collected in one place that is used again for every call.
#[derive(Debug)]
pub struct Effects {
    /// Bytes to send, in order.
    pub out: Vec<u8>,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Open a connection to the shared endpoint, in place of the one there is, if any.
    pub dial: bool,
    /// Encrypt the connection once `out` is sent; [`Session::opened`] tells when that is done.
    /// Nothing that arrived before may be believed: the session has taken all of it.
    pub secure: bool,
    /// Close the connection once `out` is sent. With a fault, it is the target's doing.
    pub close: Option<Result<(), Fault>>,
    /// Call [`Session::wake`] at this time; replaces what was asked for before.
    pub wake: Option<Tick>,
    /// Randomness (mask keys, nonces).
    pub rng: Rng,
    /// Stamps of other runs are not ours to count as deliveries.
    pub run: u32,
    /// How many stamps of other runs were seen.
    pub foreign: u64,
}

impl Effects {
    /// Nothing wanted yet.
    pub fn new(run: u32, rng: Rng) -> Effects {
        Effects {
            out: Vec::new(),
            events: Vec::new(),
            dial: false,
            secure: false,
            close: None,
            wake: None,
            rng,
            run,
            foreign: 0,
        }
    }

    /// Reports every stamp in the raw bytes of a frame as a delivery: the hot path.
    pub fn deliveries(&mut self, frame: &[u8]) {
        let mut rest = frame;
        while let Some(stamp) = stamp::next(&mut rest) {
            match stamp.run == self.run {
                true => self.events.push(Event::Delivery(stamp)),
                false => self.foreign += 1,
            }
        }
    }

    /// Reports every stamp in the raw bytes of a frame as an announcement.
    pub fn announcements(&mut self, frame: &[u8]) {
        let mut rest = frame;
        while let Some(stamp) = stamp::next(&mut rest) {
            match stamp.run == self.run {
                true => self.events.push(Event::Announcement(stamp)),
                false => self.foreign += 1,
            }
        }
    }

    /// Reports that a request succeeded.
    pub fn done(&mut self, token: Token) {
        self.events.push(Event::Done(token, Ok(())));
    }

    /// Reports that a request failed.
    pub fn failed(&mut self, token: Token, class: FaultClass, detail: impl Into<String>) {
        self.events.push(Event::Done(token, Err(Fault::new(class, detail))));
    }

    /// Reports that the protocol has no such verb.
    #[cold]
    pub fn lacks(&mut self, token: Token, protocol: &Facts, request: &Request<'_>) {
        let verb = request.measure().map_or("disconnect", Measure::name);
        let detail = format!("{} has no verb `{verb}`", protocol.name);
        self.failed(token, FaultClass::RequestRefused, detail);
    }

    /// Gives the conversation up: the target broke the rules.
    pub fn broken(&mut self, class: FaultClass, detail: impl Into<String>) {
        self.close = Some(Err(Fault::new(class, detail)));
    }
}

/// One person's conversation with the target: a state machine without I/O.
///
/// The engine calls exactly one method at a time and carries out the effects before the next.
/// A session never waits: needing more bytes is a return value, needing time is `wake`.
pub trait Session: Send {
    /// The person wants something. Must be answered by `Done(token, …)` sooner or later, except
    /// `Say` of a protocol whose [`Ack`] is not `Reply`, and `Disconnect`.
    fn act(&mut self, now: Tick, token: Token, request: Request<'_>, fx: &mut Effects);

    /// The transport is open (TCP, and TLS if the endpoint is secure), or encrypted as was asked
    /// for by [`Effects::secure`].
    fn opened(&mut self, now: Tick, fx: &mut Effects);

    /// Bytes have arrived. Returns how many from the start are done with; the rest comes again
    /// with more behind it. A frame that can never fit must be refused, not waited for.
    fn receive(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize;

    /// The time asked for by `wake` has come.
    fn wake(&mut self, now: Tick, fx: &mut Effects);

    /// The connection was lost without a good-bye: whether the next login may take the conversation
    /// up again. Where it says so, the session is kept for that login, and reports
    /// [`Event::Resumed`] if the target agrees.
    fn lost(&mut self, _now: Tick) -> bool {
        false
    }
}
