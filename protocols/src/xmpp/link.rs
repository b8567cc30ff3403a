//! What a conversation is carried by: frames of a WebSocket (RFC 7395), or a stream over TCP (RFC
//! 6120), a person's or a component's (XEP-0114). Everything else is the same session.
//!
//! The session writes bare stanzas, each with a zero byte behind it, which XML cannot contain
//! ([`send`](super::session::send)); when it is done with what has arrived, they are sealed here:
//! framed, addressed, counted.

use super::session::XmppSession;
use super::smacks;
use super::stanza;
use super::stream::Splitter;
use super::xml::escape;
use crate::wire::frame::{Opcode, close_code};
use crate::wire::socket::{self, Socket};
use model::{Effects, Endpoint, FaultClass};

/// The scheme of component connections.
pub(super) const COMPONENT: &str = "xmpp-component";
/// Closes a stream over TCP (RFC 6120 section 4.4).
const END: &str = "</stream:stream>";
/// The namespace every stanza is written with; on a component's stream it is another.
const NS_CLIENT: &str = " xmlns='jabber:client'";

/// What a conversation is carried by.
pub(super) enum Link {
    /// A WebSocket.
    Web(Socket),
    /// A stream of a person.
    Stream(Splitter),
    /// A stream of a component, and the address it speaks from.
    Component(Splitter, Box<str>),
}

impl Link {
    /// What the scheme of that endpoint asks for.
    pub(super) fn of(endpoint: &Endpoint) -> Link {
        match endpoint.scheme.as_str() {
            "xmpp" | "xmpps" => Link::Stream(Splitter::default()),
            COMPONENT => Link::Component(Splitter::default(), Box::default()),
            _ => Link::Web(Socket::default()),
        }
    }

    /// None yet.
    pub(super) fn none() -> Link {
        Link::Stream(Splitter::default())
    }

    /// Forgets what was before.
    pub(super) fn reset(&mut self) {
        match self {
            Link::Web(socket) => *socket = Socket::default(),
            Link::Stream(splitter) => *splitter = Splitter::default(),
            Link::Component(splitter, from) => {
                *splitter = Splitter::default();
                *from = Box::default();
            }
        }
    }

    /// A new stream begins on the same connection (RFC 6120 section 4.3.3).
    pub(super) fn restart(&mut self) {
        if let Link::Stream(splitter) | Link::Component(splitter, _) = self {
            *splitter = Splitter::default();
        }
    }

    pub(super) fn is_web(&self) -> bool {
        matches!(self, Link::Web(_))
    }

    /// What opens a stream to that domain (RFC 6120 section 4.7, RFC 7395 section 3.3, XEP-0114
    /// section 3).
    pub(super) fn opening(&self, domain: &str) -> String {
        let namespace = match self {
            Link::Web(_) => return stanza::open(domain),
            Link::Stream(_) => "jabber:client",
            Link::Component(..) => "jabber:component:accept",
        };
        let mut header = format!(
            "<?xml version='1.0'?><stream:stream xmlns='{namespace}' \
             xmlns:stream='http://etherx.jabber.org/streams'"
        );
        if matches!(self, Link::Stream(_)) {
            header.push_str(" version='1.0'");
        }
        header.push_str(" to='");
        escape(&mut header, domain);
        header.push_str("'>");
        header
    }

    /// What closes a stream.
    pub(super) fn closing(&self) -> &'static str {
        match self {
            Link::Web(_) => stanza::CLOSE,
            Link::Stream(_) | Link::Component(..) => END,
        }
    }

    /// Writes one stanza as it goes over the wire.
    fn write(&self, stanza: &[u8], fx: &mut Effects) {
        match self {
            Link::Web(_) => socket::write(Opcode::Text, stanza, fx),
            Link::Stream(_) => fx.out.extend_from_slice(stanza),
            Link::Component(_, from) => write_addressed(stanza, from, fx),
        }
    }

    /// Says good-bye below the stanzas, where that is done.
    pub(super) fn write_close(&self, fx: &mut Effects) {
        if self.is_web() {
            socket::write_close(close_code::NORMAL, fx);
        }
    }
}

/// A component's stanza says whom it is from (XEP-0114 section 3), and has the stream's namespace.
fn write_addressed(stanza: &[u8], from: &str, fx: &mut Effects) {
    let place = memchr::memmem::find(stanza, NS_CLIENT.as_bytes());
    let name = stanza.iter().position(|byte| matches!(byte, b' ' | b'>' | b'/'));
    match (place, name) {
        (Some(at), Some(name)) if at == name => {
            fx.out.extend_from_slice(&stanza[..at]);
            fx.out.extend_from_slice(b" from='");
            fx.out.extend_from_slice(from.as_bytes());
            fx.out.push(b'\'');
            fx.out.extend_from_slice(&stanza[at + NS_CLIENT.len()..]);
        }
        _ => fx.out.extend_from_slice(stanza),
    }
}

impl XmppSession {
    /// Puts what the session has written since `from` into the form in which it is sent.
    #[inline]
    pub(super) fn seal(&mut self, from: usize, fx: &mut Effects) {
        if fx.out.len() > from {
            self.seal_all(from, fx);
        }
    }

    fn seal_all(&mut self, from: usize, fx: &mut Effects) {
        let written = fx.out.split_off(from);
        for stanza in written.split(|byte| *byte == 0).filter(|stanza| !stanza.is_empty()) {
            self.link.write(stanza, fx);
            if let Some(smacks) = &mut self.smacks
                && let Ok(text) = str::from_utf8(stanza)
                && smacks::is_counted(text)
            {
                smacks.keep(text);
            }
        }
        let is_online = self.is_online();
        let Some(smacks) = &mut self.smacks else { return };
        if smacks.is_full() {
            let detail = "the target does not acknowledge what it is sent (XEP-0198)";
            return self.give_up(fx, FaultClass::Backlog, detail);
        }
        if is_online && smacks.wants_ack() {
            self.link.write(smacks::request().as_bytes(), fx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rng;

    #[test]
    fn a_components_stanzas_say_whom_they_are_from() {
        let rows = [
            ("<iq xmlns='jabber:client' to='a'/>", "<iq from='b@c/d' to='a'/>"),
            ("<presence xmlns='jabber:client'/>", "<presence from='b@c/d'/>"),
            ("</stream:stream>", "</stream:stream>"),
            ("<a> xmlns='jabber:client'</a>", "<a> xmlns='jabber:client'</a>"),
        ];
        for (stanza, expect) in rows {
            let mut fx = Effects::new(1, Rng::new(1, 1));
            write_addressed(stanza.as_bytes(), "b@c/d", &mut fx);
            assert_eq!(String::from_utf8(fx.out).unwrap(), expect);
        }
    }
}
