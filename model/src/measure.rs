//! What people do (verbs), what is measured (measures) and how things fail (fault classes).

use serde::{Deserialize, Serialize};

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$item_doc])* $item,)+ }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$item,)+];
            /// How many there are.
            pub const COUNT: usize = $name::ALL.len();

            /// Its name in scenarios, reports and data files.
            pub const fn name(self) -> &'static str {
                match self { $($name::$item => $text,)+ }
            }

            /// The one of that name.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|item| item.name() == name)
            }
        }
    };
}

named! {
    /// What is measured: each verb by its own name, and what arrives without having been asked for.
    /// For a verb, latency runs from when it should have begun to its answer.
    Measure {
        /// From the dial to a transport that is ready to speak (TCP, TLS, upgrade).
        Connect = "connect",
        /// Authentication and whatever the protocol needs before a room can be joined.
        Login = "login",
        /// Entering a room, until it is usable.
        Join = "join",
        /// Leaving a room.
        Leave = "leave",
        /// Saying something, until the target acknowledged it.
        Say = "say",
        /// Answering a message.
        Reply = "reply",
        /// Changing a message.
        Edit = "edit",
        /// Reacting to a message.
        React = "react",
        /// Reading a page of the past.
        History = "history",
        /// Listing a room's members.
        Members = "members",
        /// Fetching one person's picture.
        Avatars = "avatars",
        /// Changing one's presence.
        Presence = "presence",
        /// Showing that one is typing.
        Typing = "typing",
        /// Marking as read.
        Read = "read",
        /// Asking for a sign of life.
        Ping = "ping",
        /// Saying something to a list of people.
        Multicast = "multicast",
        /// Asking what the target offers.
        Disco = "disco",
        /// Fetching the list of contacts.
        Roster = "roster",
        /// Switching on copies for one's other devices.
        Carbons = "carbons",
        /// A message's way from its sender to one receiver.
        Delivery = "delivery",
        /// A stamped announcement's way (somebody entered) to one receiver.
        Announcement = "announcement",
        /// From one transport to a better one; failed where the first one had to do.
        Upgrade = "upgrade",
        /// Saying something to everybody on a list, to each by a message of its own.
        Tell = "tell",
        /// Changing the name one is seen by in a room.
        Rename = "rename",
        /// Becoming a contact of everybody on a list.
        Befriend = "befriend",
        /// Taking a conversation up again whose connection was lost; failed where a new one had to
        /// be begun.
        Resume = "resume",
        /// Making the account that one logs in with.
        Register = "register",
    }
}

named! {
    /// Why something failed, as a class that can be counted.
    FaultClass {
        /// TCP connection refused, reset or unreachable.
        Refused = "refused",
        /// No free local port or descriptor.
        Exhausted = "exhausted",
        /// Not answered in time: connecting.
        ConnectTimeout = "connect-timeout",
        /// TLS failed: certificate, version, alert.
        Tls = "tls",
        /// The upgrade was answered with something else.
        Upgrade = "upgrade",
        /// Not answered in time: TLS handshake or upgrade.
        HandshakeTimeout = "handshake-timeout",
        /// Credentials or mechanism refused.
        LoginRefused = "login-refused",
        /// Not answered in time: login.
        LoginTimeout = "login-timeout",
        /// The target answered a request with an error.
        RequestRefused = "request-refused",
        /// Not answered in time: any other request.
        RequestTimeout = "request-timeout",
        /// Bytes that are not of the protocol.
        Protocol = "protocol",
        /// A frame or stanza above the limit.
        TooLarge = "too-large",
        /// The target closed the connection without being asked.
        Closed = "closed",
        /// The target did not read: the bounded output queue was full.
        Backlog = "backlog",
        /// The connection was gone when a request was due.
        Offline = "offline",
    }
}

impl Measure {
    /// Whether what is said by it in a room or to a list is owed to those who are there. (A
    /// presence outside of lists is not.)
    pub fn is_said(self) -> bool {
        matches!(self, Measure::Say | Measure::Tell | Measure::Multicast | Measure::Presence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for &measure in Measure::ALL {
            assert_eq!(Measure::from_name(measure.name()), Some(measure));
            assert_eq!(Measure::ALL[measure as usize], measure);
        }
        for &class in FaultClass::ALL {
            assert_eq!(FaultClass::from_name(class.name()), Some(class));
            assert_eq!(FaultClass::ALL[class as usize], class);
        }
    }
}
