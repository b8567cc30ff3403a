//! Stream management (XEP-0198): what has been received is counted, what has not been acknowledged
//! is kept, and a conversation whose connection was lost is taken up again.
//!
//! Stanzas are counted from `<enabled/>` on, whether they are parsed or only looked at. After
//! everything said an acknowledgment is asked for, one question at a time. What the target sends
//! again after a resumption carries a `<delay/>` in the name of the target or of the person: in a
//! conversation that was resumed such a message is a delivery, while a room's replay is none.

use super::element::{Element, Sight, is_late};
use super::session::{XmppSession, send};
use super::xml::escape;
use model::{Effects, Event, FaultClass};
use std::collections::VecDeque;

const NS: &str = "urn:xmpp:sm:3";
/// Most stanzas kept until they are acknowledged, and their bytes.
const UNACKED_MAX: usize = 1_024;
const UNACKED_BYTES_MAX: usize = 1 << 20;
/// Longest name of a conversation that is kept, bytes (4,000 characters by the XEP).
const ID_BYTES_MAX: usize = 4_000;

/// Stream management of one conversation.
#[derive(Debug, Default)]
pub(super) struct Smacks {
    /// What the target calls the conversation; empty if it cannot be taken up again.
    id: Box<str>,
    /// Stanzas received, modulo 2³².
    pub(super) received: u32,
    /// Stanzas of ours that the target has acknowledged, modulo 2³².
    acked: u32,
    /// Those it has not, the oldest first.
    unacked: VecDeque<Box<str>>,
    unacked_bytes: usize,
    /// An acknowledgment is asked for and has not come.
    is_asked: bool,
    /// The conversation has been taken up again.
    pub(super) is_resumed: bool,
}

impl Smacks {
    /// Whether the next login may take the conversation up again.
    pub(super) fn can_resume(&self) -> bool {
        !self.id.is_empty()
    }

    /// Keeps a stanza that is being sent.
    pub(super) fn keep(&mut self, stanza: &str) {
        self.unacked_bytes += stanza.len();
        self.unacked.push_back(stanza.into());
    }

    /// Whether more is kept than may be.
    pub(super) fn is_full(&self) -> bool {
        self.unacked.len() > UNACKED_MAX || self.unacked_bytes > UNACKED_BYTES_MAX
    }

    /// Whether an acknowledgment is to be asked for now; it is then taken as asked.
    pub(super) fn wants_ack(&mut self) -> bool {
        !self.unacked.is_empty() && !std::mem::replace(&mut self.is_asked, true)
    }

    /// The target says how much it has handled.
    fn hear(&mut self, element: Element<'_>) -> Result<(), String> {
        self.is_asked = false;
        match element.tag.attribute("h").and_then(|text| text.parse().ok()) {
            Some(handled) => self.acknowledge(handled),
            None => Err("an acknowledgment without a number".into()),
        }
    }

    /// The target has handled so many; fails if that is more than were sent.
    fn acknowledge(&mut self, handled: u32) -> Result<(), String> {
        let news = handled.wrapping_sub(self.acked) as usize;
        if news > self.unacked.len() {
            let most = self.acked.wrapping_add(self.unacked.len() as u32);
            return Err(format!("the target acknowledges {handled} stanzas of {most}"));
        }
        for stanza in self.unacked.drain(..news) {
            self.unacked_bytes -= stanza.len();
        }
        self.acked = handled;
        Ok(())
    }
}

/// Section 3.
pub(super) fn enable() -> String {
    format!("<enable xmlns='{NS}' resume='true'/>")
}

/// Section 4: a question for an acknowledgment.
pub(super) fn request() -> String {
    format!("<r xmlns='{NS}'/>")
}

/// Section 4: an acknowledgment.
fn ack(received: u32) -> String {
    format!("<a xmlns='{NS}' h='{received}'/>")
}

/// Section 5.
fn resume(id: &str, received: u32) -> String {
    let mut stanza = format!("<resume xmlns='{NS}' h='{received}' previd='");
    escape(&mut stanza, id);
    stanza.push_str("'/>");
    stanza
}

/// Whether the features of a stream offer it.
pub(super) fn is_offered(features: Element<'_>) -> bool {
    let is_it =
        |child: Element<'_>| child.tag.local() == "sm" && child.tag.attribute("xmlns") == Some(NS);
    features.children().any(is_it)
}

/// Whether a stanza counts: only `message`, `presence` and `iq` do.
pub(super) fn is_counted(stanza: &str) -> bool {
    ["<message", "<presence", "<iq"].iter().any(|start| stanza.starts_with(start))
}

impl XmppSession {
    /// Asks to take the lost conversation up again; `false` if there is none.
    pub(super) fn ask_to_resume(&mut self, fx: &mut Effects) -> bool {
        let Some(smacks) = &self.smacks else { return false };
        send(fx, &resume(&smacks.id, smacks.received));
        true
    }

    /// The target manages the stream.
    pub(super) fn on_enabled(&mut self, element: Element<'_>) {
        let can_resume = matches!(element.tag.attribute("resume"), Some("true" | "1"));
        let id = element.tag.value("id").unwrap_or_default();
        let is_kept = can_resume && id.len() <= ID_BYTES_MAX;
        let id = if is_kept { Box::from(&*id) } else { Box::default() };
        self.smacks = Some(Box::new(Smacks { id, ..Smacks::default() }));
    }

    /// The conversation goes on: what the target has not had is said again.
    pub(super) fn on_resumed(&mut self, element: Element<'_>, fx: &mut Effects) {
        let Some(smacks) = &mut self.smacks else { return };
        if let Err(detail) = smacks.hear(element) {
            return self.give_up(fx, FaultClass::Protocol, &detail);
        }
        smacks.is_resumed = true;
        smacks.unacked_bytes = 0;
        // Sending keeps and counts them again.
        for stanza in std::mem::take(&mut smacks.unacked) {
            send(fx, &stanza);
        }
        fx.events.push(Event::Resumed);
        self.come_online(fx);
    }

    /// The target acknowledges what we said; the next question follows if some of it is missing.
    pub(super) fn on_ack(&mut self, element: Element<'_>, fx: &mut Effects) {
        let Some(smacks) = &mut self.smacks else { return };
        match smacks.hear(element) {
            Err(detail) => self.give_up(fx, FaultClass::Protocol, &detail),
            Ok(()) if smacks.wants_ack() => send(fx, &request()),
            Ok(()) => {}
        }
    }

    /// The target asks how much we have handled.
    pub(super) fn on_ack_request(&self, fx: &mut Effects) {
        if let Some(smacks) = &self.smacks {
            send(fx, &ack(smacks.received));
        }
    }

    /// One more stanza has been received.
    #[inline]
    pub(super) fn count_stanza(&mut self) {
        if let Some(smacks) = &mut self.smacks {
            smacks.received = smacks.received.wrapping_add(1);
        }
    }

    /// Whether a message was said before it could be a delivery.
    pub(super) fn is_old(&self, message: Element<'_>) -> bool {
        is_late(message) && !self.is_resent(message)
    }

    /// Whether a presence is the one that a contact had before.
    pub(super) fn is_past(&self, sight: Sight<'_>) -> bool {
        sight.is_late() && !sight.element().is_some_and(|presence| self.is_resent(presence))
    }

    /// Whether a stanza is late only because the target kept it while the connection was lost: then
    /// the target says so in its own name (ejabberd) or the person's (Prosody), and not a room's.
    pub(super) fn is_resent(&self, stanza: Element<'_>) -> bool {
        let is_its = |child: Element<'_>| {
            let from = child.tag.attribute("from").unwrap_or_default();
            let is_known = from == self.home() || self.direct.is_me(from.as_bytes());
            child.tag.local() == "delay" && is_known
        };
        let is_resumed = self.smacks.as_ref().is_some_and(|smacks| smacks.is_resumed);
        is_resumed && stanza.children().any(is_its)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgments_count_modulo_two_to_the_32nd() {
        let mut smacks = Smacks { acked: u32::MAX - 1, ..Smacks::default() };
        (0..4).for_each(|number| smacks.keep(&format!("<iq id='{number}'/>")));
        assert!(smacks.wants_ack() && !smacks.wants_ack());
        assert_eq!(smacks.acknowledge(u32::MAX - 1), Ok(()));
        assert_eq!((smacks.unacked.len(), smacks.unacked_bytes), (4, 48));
        assert_eq!(smacks.acknowledge(0), Ok(()));
        assert_eq!((smacks.unacked.len(), smacks.unacked_bytes), (2, 24));
        assert!(smacks.acknowledge(u32::MAX).is_err(), "less than before");
        assert!(smacks.acknowledge(3).is_err(), "more than was sent");
        assert_eq!(smacks.acknowledge(2), Ok(()));
        assert_eq!((smacks.unacked.len(), smacks.unacked_bytes), (0, 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut smacks = Smacks::default();
        (0..UNACKED_MAX).for_each(|_| smacks.keep("<iq/>"));
        assert!(!smacks.is_full());
        smacks.keep("<iq/>");
        assert!(smacks.is_full());
        let mut smacks = Smacks::default();
        smacks.keep(&"x".repeat(UNACKED_BYTES_MAX + 1));
        assert!(smacks.is_full());
    }
}
