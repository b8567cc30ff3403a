//! Lists: people who are written to by name, one by one or all at once.
//!
//! The server has no lists: who is logged in hears what it is told. A person who has not joined a
//! list is owed nothing of it, so the session reports of direct messages only what belongs to a
//! list it is there for.

use super::pending::{Pending, Wants};
use super::session::{PENDING_MAX, YardstickSession, in_words};
use super::types::{self, RequestWhat, Tell};
use super::{Encoding, Text};
use model::{Effects, Event, FaultClass, List, RoomId, RoomName, Token};

/// Names in one request, and their bytes: with the text they fit into what a server reads.
const NAMES_MAX: usize = 1_000;
const NAMES_BYTES_MAX: usize = 40 << 10;

/// What a person knows of lists.
#[derive(Default)]
pub(super) struct Direct {
    /// The own name, which is written to nobody; known where there are lists.
    pub(super) me: Box<str>,
    /// Lists the person is there for, and the request to leave, if it was made.
    here: Vec<(RoomId, Option<Token>)>,
}

impl Direct {
    /// A ping was answered: a list is left if it was asked for that.
    pub(super) fn ponged(&mut self, token: Token) {
        self.here.retain(|(_, leaving)| *leaving != Some(token));
    }

    /// A new conversation begins: the person is there for no list.
    pub(super) fn clear(&mut self) {
        self.here.clear();
    }

    /// Keeps of the deliveries behind `mark` those of lists the person is there for.
    pub(super) fn keep_own(&self, fx: &mut Effects, mark: usize) {
        let is_here = |room: RoomId| self.here.iter().any(|(list, _)| *list == room);
        let mut at = 0;
        fx.events.retain(|event| {
            at += 1;
            at <= mark || !matches!(event, Event::Delivery(stamp) if !is_here(stamp.room))
        });
    }
}

/// Whether a live message is a direct one: its room, the first field, is left out.
#[inline]
pub(super) fn is_direct(encoding: Encoding, payload: &[u8]) -> bool {
    match encoding {
        Encoding::Json => !payload.starts_with(b"{\"message\":{\"room\":"),
        Encoding::Proto => {
            let length = payload.iter().skip(1).take_while(|byte| **byte & 0x80 != 0).count();
            payload.get(length + 2) != Some(&0x0a)
        }
    }
}

impl YardstickSession {
    /// Is there for a list, once the server has taken all that was asked before.
    pub(super) fn join_list(&mut self, token: Token, list: &List, fx: &mut Effects) {
        self.direct.here.retain(|(other, _)| *other != list.room);
        self.direct.here.push((list.room, None));
        self.send(token, RequestWhat::Ping(types::Ping {}), fx);
    }

    /// Is away, once all has come that was on its way.
    pub(super) fn leave_list(&mut self, token: Token, list: RoomName<'_>, fx: &mut Effects) {
        let Some(stay) = self.direct.here.iter_mut().find(|(room, _)| *room == list.id) else {
            let detail = format!("not there for list `{}`", list.name);
            return fx.failed(token, FaultClass::RequestRefused, detail);
        };
        stay.1 = Some(token);
        self.send(token, RequestWhat::Ping(types::Ping {}), fx);
    }

    /// To everybody on a list but oneself: to each by a request of its own, or to all by as few as
    /// can be.
    pub(super) fn tell(
        &mut self,
        token: Token,
        list: RoomName<'_>,
        text: &str,
        (wants, fx): (Wants, &mut Effects),
    ) {
        let shared = self.shared.clone();
        let Some(people) = shared.list(list.id) else {
            let detail = format!("`{}` is no list", list.name);
            return fx.failed(token, FaultClass::RequestRefused, detail);
        };
        if self.pending.len() >= PENDING_MAX {
            let detail = format!("{PENDING_MAX} requests wait for their answers");
            return fx.failed(token, FaultClass::Backlog, detail);
        }
        let names =
            people.names.iter().map(|name| &**name).filter(|name| *name != &*self.direct.me);
        let names: Vec<&str> = names.collect();
        let most = if wants == Wants::Multicast { NAMES_MAX } else { 1 };
        let (mut left, mut again, mut rest) = (0, Vec::new(), &names[..]);
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |name: &&&str| {
                bytes += name.len();
                bytes <= NAMES_BYTES_MAX
            };
            let count = rest.iter().take(most).take_while(fits).count().max(1);
            let to = rest[..count].iter().map(|name| Text::from(*name)).collect();
            let key = self.key(token, left, fx);
            let what = RequestWhat::Tell(Tell { to, text: text.into(), key });
            let payload = self.encode(token.0, what);
            self.write(&payload, fx);
            if self.resume.is_some() {
                again.push(payload.into());
            }
            (left, rest) = (left + 1, &rest[count..]);
        }
        if left > 0 {
            self.pending.push(Pending { token, wants, left, again });
        }
    }

    /// One of the requests of a message to a list was refused.
    pub(super) fn untold(&mut self, at: usize, error: &types::Error<'_>, fx: &mut Effects) {
        let pending = &mut self.pending[at];
        let is_absence = pending.wants == Wants::Told && &*error.code == "unknown_name";
        if !is_absence && std::mem::replace(&mut pending.wants, Wants::Refused) != Wants::Refused {
            fx.failed(pending.token, FaultClass::RequestRefused, in_words(error));
        }
        self.one_answered(at);
    }

    /// One of the requests of a pending one is over; whether all are.
    pub(super) fn one_answered(&mut self, at: usize) -> bool {
        self.pending[at].left -= 1;
        let is_over = self.pending[at].left == 0;
        if is_over {
            self.pending.swap_remove(at);
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::{Frame, FrameWhat, Message};
    use super::*;

    #[test]
    fn a_direct_message_is_told_from_its_first_bytes() {
        for (encoding, length) in
            Encoding::ALL.iter().flat_map(|e| [1, 100, 200, 20_000].map(|l| (*e, l)))
        {
            for room in ["", "live", "\"quoted\"", &"r".repeat(200)] {
                let text = "x".repeat(length);
                let message = Message {
                    room: room.into(),
                    number: 7,
                    sender: "ann".into(),
                    text: (&*text).into(),
                    ..Message::default()
                };
                let mut payload = Vec::new();
                Frame { what: Some(FrameWhat::Message(message)) }.encode(encoding, &mut payload);
                assert_eq!(is_direct(encoding, &payload), room.is_empty(), "{encoding:?} {room}");
            }
        }
        assert!(is_direct(Encoding::Proto, &[0x0a]), "nothing is read beyond the end");
    }
}
