//! Messages after they were said: edits, deletions and reactions; and replies and keys, which are
//! about messages that were said before.
//!
//! The store decides where things are kept, memory otherwise, both by [`Amend::judge`] and
//! [`message::judge`](crate::chat::message::judge).

use protocols::yardstick::{AnswerWhat, Change, Delete, Done, Edit, FrameWhat, Millis, React};
use serde::{Deserialize, Serialize};

use crate::chat::message::{Extra, Verdict};
use crate::chat::request::{Answered, Failure, fail};
use crate::chat::rights;
use crate::chat::room::{Room, Stored};
use crate::config::{
    KEY_BYTES_MAX, REACTION_BYTES_MAX, REACTION_NAMES_MAX, REACTIONS_MAX, TEXT_BYTES_MAX,
};
use crate::core::{Core, Now};
use crate::store::{Outcome, Want};

/// A change of one message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amend {
    pub(crate) room: Box<str>,
    pub(crate) number: u32,
    /// Who changes it.
    pub(crate) name: Box<str>,
    pub(crate) at_ms: u64,
    pub(crate) how: How,
}

/// What is to become of a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum How {
    /// It has this text.
    Edit(Box<str>),
    /// It has no text and no reactions; `others` tells whether it may be anybody's.
    Delete { others: bool },
    /// Somebody reacts, or no longer.
    React { reaction: Box<str>, remove: bool },
}

impl Amend {
    /// Memory it holds, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let text = match &self.how {
            How::Edit(text) | How::React { reaction: text, .. } => text.len(),
            How::Delete { .. } => 0,
        };
        size_of::<Amend>() + self.room.len() + self.name.len() + text
    }

    /// What becomes of it, given the message; `None` if its reactions have to be looked at.
    pub(crate) fn judge(&self, sender: &str, text: &str, deleted: bool) -> Option<Outcome> {
        let is_own = sender == &*self.name;
        match &self.how {
            How::Delete { others } if is_own || *others => Some(Outcome::Changed(!deleted)),
            _ if deleted => Some(no_message(self.number)),
            How::Edit(new) if is_own => Some(Outcome::Changed(**new != *text)),
            How::Edit(_) | How::Delete { .. } => Some(not_yours()),
            How::React { .. } => None,
        }
    }

    /// Whether it is to delete by right what somebody else has said.
    pub(crate) fn is_of_another(&self, sender: &str) -> bool {
        matches!(self.how, How::Delete { others: true }) && sender != &*self.name
    }

    /// What everybody in the room is told.
    fn frame(&self) -> Change<'_> {
        let mut change = Change {
            room: (&*self.room).into(),
            number: self.number,
            name: (&*self.name).into(),
            at_ms: Millis(self.at_ms),
            ..Change::default()
        };
        match &self.how {
            How::Edit(text) => change.text = (&**text).into(),
            How::Delete { .. } => change.deleted = true,
            How::React { reaction, remove } => {
                change.reaction = (&**reaction).into();
                change.removed = *remove;
            }
        }
        change
    }

    /// Changes the message in memory.
    fn apply(&self, stored: &mut Stored) {
        let extra = stored.extra.get_or_insert_default();
        match &self.how {
            How::Edit(text) => {
                stored.text = text.clone();
                extra.edited_ms = self.at_ms;
            }
            How::Delete { .. } => {
                stored.text = "".into();
                extra.deleted = true;
                extra.reactions = Vec::new();
            }
            How::React { reaction, remove } => extra.react(reaction, &self.name, *remove),
        }
        if **extra == Extra::default() {
            stored.extra = None;
        }
    }
}

/// The refusal of what is about a message that is not there, or no longer.
pub(crate) fn no_message(number: u32) -> Outcome {
    Outcome::Refused("no_message", format!("there is no message {number}"))
}

/// The refusal of a change of what somebody else has said.
pub(crate) fn not_yours() -> Outcome {
    Outcome::Refused("not_yours", "only who said it can change it".to_owned())
}

/// What became of a reaction.
pub(crate) fn reacted(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Changed => Outcome::Changed(true),
        Verdict::Unchanged => Outcome::Changed(false),
        Verdict::Full => {
            let most = format!("{REACTIONS_MAX} reactions, each of {REACTION_NAMES_MAX} people");
            Outcome::Refused("full", format!("a message has up to {most}"))
        }
    }
}

/// Refuses a text that no message can have.
pub(crate) fn check_text(text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return fail("empty", "a message has at least one byte");
    }
    if text.len() > TEXT_BYTES_MAX {
        return fail("too_long", format!("a message has up to {TEXT_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// Refuses a key that is too long for one.
pub(crate) fn check_key(key: &str) -> Result<(), Failure> {
    if key.len() > KEY_BYTES_MAX {
        return fail("too_long", format!("a key has up to {KEY_BYTES_MAX} bytes"));
    }
    Ok(())
}

impl Core {
    pub(crate) fn edit(
        &mut self,
        id: usize,
        request: u32,
        edit: &Edit<'_>,
        now: Now,
    ) -> Answered<'static> {
        check_text(&edit.text)?;
        let room = self.room_of(id, &edit.room)?;
        self.check_voice(id, room)?;
        self.amend(id, request, (&edit.room, edit.number), How::Edit((&*edit.text).into()), now)
    }

    pub(crate) fn delete(
        &mut self,
        id: usize,
        request: u32,
        delete: &Delete<'_>,
        now: Now,
    ) -> Answered<'static> {
        let room = self.room_of(id, &delete.room)?;
        let others = self.may_delete_others(room);
        self.amend(id, request, (&delete.room, delete.number), How::Delete { others }, now)
    }

    pub(crate) fn react(
        &mut self,
        id: usize,
        request: u32,
        react: &React<'_>,
        now: Now,
    ) -> Answered<'static> {
        if react.reaction.is_empty() {
            return fail("empty", "a reaction has at least one byte");
        }
        if react.reaction.len() > REACTION_BYTES_MAX {
            return fail("too_long", format!("a reaction has up to {REACTION_BYTES_MAX} bytes"));
        }
        let room = self.room_of(id, &react.room)?;
        self.check_voice(id, room)?;
        let how = How::React { reaction: (&*react.reaction).into(), remove: react.remove };
        self.amend(id, request, (&react.room, react.number), how, now)
    }

    fn amend(
        &mut self,
        id: usize,
        request: u32,
        (room, number): (&str, u32),
        how: How,
        now: Now,
    ) -> Answered<'static> {
        let name = self.conns[id].name.as_deref().unwrap_or_default().into();
        let amend = Amend { room: room.into(), number, name, at_ms: now.unix_ms, how };
        self.change(id, request, Want::Amend(Box::new(amend)), now)
    }

    /// Whether somebody may perhaps delete what others have said in a room. It is decided later,
    /// when it is known what those are and what the asker is then.
    fn may_delete_others(&self, room: u32) -> bool {
        self.rooms[room as usize].owned.is_some()
    }

    /// What becomes of a change where nothing is kept: it is of a message that is remembered.
    pub(crate) fn decide_amend(&self, amend: &Amend) -> Outcome {
        let room = self.room_numbers.get(&*amend.room).map(|room| &self.rooms[*room as usize]);
        let Some(stored) = room.and_then(|room| room.message(amend.number)) else {
            return no_message(amend.number);
        };
        let deleted = stored.extra.as_ref().is_some_and(|extra| extra.deleted);
        let owned = room.and_then(|room| room.owned.as_ref());
        let role = |name: &str| owned.and_then(|owned| owned.role(name));
        if amend.is_of_another(&stored.sender)
            && !rights::may_delete(role(&amend.name), role(&stored.sender))
        {
            return not_yours();
        }
        if let Some(outcome) = amend.judge(&stored.sender, &stored.text, deleted) {
            return outcome;
        }
        let How::React { reaction, remove } = &amend.how else { return Outcome::Changed(false) };
        let nothing = Extra::default();
        let extra = stored.extra.as_deref().unwrap_or(&nothing);
        reacted(extra.judge(reaction, &amend.name, *remove))
    }

    /// What becomes of a message where nothing is kept.
    pub(crate) fn decide_say(&self, room: &str, sender: &str, extra: Option<&Extra>) -> Outcome {
        let Some(room) = self.room_numbers.get(room) else { return no_message(0) };
        let room = &self.rooms[*room as usize];
        if let Some(extra) = extra {
            if let Some(first) = room.said_with(sender, &extra.key) {
                return Outcome::Again { number: first.number, at_ms: first.at_ms };
            }
            let is_there = |stored: &Stored| stored.extra.as_ref().is_none_or(|e| !e.deleted);
            if extra.reply_to != 0 && !room.message(extra.reply_to).is_some_and(is_there) {
                return no_message(extra.reply_to);
            }
        }
        Outcome::Numbered(room.number.wrapping_add(1))
    }

    /// What memory has of a message besides its text: keys are the store's affair, if there is one.
    pub(crate) fn remembered(&self, extra: Option<Box<Extra>>) -> Option<Box<Extra>> {
        let mut extra = extra?;
        if self.has_store() {
            extra.key = "".into();
        }
        (*extra != Extra::default()).then_some(extra)
    }

    /// A message is changed, or was so already: memory follows and everybody is told, once.
    pub(crate) fn amended(&mut self, amend: &Amend, is_new: bool) -> AnswerWhat<'static> {
        let number = self.room_numbers.get(&*amend.room).copied().filter(|_| is_new);
        if let Some(number) = number {
            let room = &mut self.rooms[number as usize];
            if let Some(stored) = room.message_mut(amend.number) {
                self.history_bytes -= stored.bytes();
                amend.apply(stored);
                self.history_bytes += stored.bytes();
            }
            room.put(&FrameWhat::Change(amend.frame()), &mut self.scratch);
            self.mark(number);
            self.forget_old(number);
        }
        AnswerWhat::Done(Done {})
    }

    /// The latest message of a room was perhaps said with a key.
    pub(crate) fn remember_key(&mut self, room: u32) {
        let room = &mut self.rooms[room as usize];
        let Some(latest) = room.past.back() else { return };
        if let Some(key) = latest.extra.as_deref().and_then(|extra| whole_key(latest, extra)) {
            room.keys.insert(key, latest.number);
        }
    }
}

/// A key with whose it is: there is no control character in a name.
fn whole_key(stored: &Stored, extra: &Extra) -> Option<Box<str>> {
    (!extra.key.is_empty()).then(|| format!("{}\n{}", stored.sender, extra.key).into())
}

impl Room {
    /// A message that is remembered.
    fn message(&self, number: u32) -> Option<&Stored> {
        let place = self.past.binary_search_by_key(&number, |stored| stored.number);
        place.ok().and_then(|at| self.past.get(at))
    }

    fn message_mut(&mut self, number: u32) -> Option<&mut Stored> {
        let place = self.past.binary_search_by_key(&number, |stored| stored.number);
        place.ok().and_then(|at| self.past.get_mut(at))
    }

    /// What somebody has said with this key, if it is remembered.
    fn said_with(&self, sender: &str, key: &str) -> Option<&Stored> {
        if key.is_empty() {
            return None;
        }
        let number = self.keys.get(&*format!("{sender}\n{key}"))?;
        self.message(*number)
    }

    /// A message is forgotten, and its key with it.
    pub(crate) fn forget_key(&mut self, stored: &Stored) {
        if let Some(key) = stored.extra.as_deref().and_then(|extra| whole_key(stored, extra)) {
            self.keys.remove(&key);
        }
    }
}
