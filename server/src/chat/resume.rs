//! Coming back: who enters a room again is answered with what it has missed, and hears what is said
//! from then on; nothing twice, and nothing is missing.
//!
//! The answer carries what is behind `after` up to the room's latest number, and goes out before
//! anything live of that room. What memory no longer has is looked up first, and the person enters
//! when that is done: what is said meanwhile is then in memory, and joins the answer.

use protocols::yardstick::{AnswerWhat, Join, Message, Text};

use crate::chat::message::PageRoom;
use crate::chat::request::{Answered, Failure, fail};
use crate::chat::room::{Room, Stored};
use crate::config::PAGE_MESSAGES_MAX;
use crate::core::{Core, Now};
use crate::delivery::conn::Ticket;
use crate::store::{Past, Want};

/// How often the past is looked up for one join, if a room says more meanwhile than memory holds.
const LOOK_UPS_MAX: u8 = 4;

/// A join that waits for the past.
#[derive(Debug, Clone)]
pub(crate) struct CatchUp {
    pub(crate) room: Box<str>,
    pub(crate) status: Box<str>,
    pub(crate) members: bool,
    pub(crate) avatars: bool,
    pub(crate) reads: bool,
    pub(crate) after: u32,
    /// How often the past was looked up before.
    pub(crate) tries: u8,
}

impl CatchUp {
    fn of(join: &Join<'_>, tries: u8) -> CatchUp {
        CatchUp {
            room: (&*join.room).into(),
            status: (&*join.status).into(),
            members: join.members,
            avatars: join.avatars,
            reads: join.reads,
            after: join.after,
            tries,
        }
    }

    fn join(&self) -> Join<'_> {
        Join {
            room: Text::from(&*self.room),
            status: Text::from(&*self.status),
            history: 0,
            members: self.members,
            avatars: self.avatars,
            after: self.after,
            reads: self.reads,
        }
    }
}

/// What is known of the past of a room that somebody enters again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    /// What was looked up, oldest first, and how often; `None` if nothing was.
    pub(crate) page: Option<(&'a [Past], u8)>,
}

impl Known<'_> {
    /// Nothing was looked up.
    pub(crate) const MEMORY: Known<'static> = Known { page: None };

    /// Up to which number there is nothing to be found in memory that is not known.
    fn number(&self, after: u32) -> u32 {
        let last = self.page.and_then(|(page, _)| page.last());
        last.map_or(after, |last| last.number.max(after))
    }
}

impl Core {
    /// Puts a join off until the store has looked up what memory lacks of what was missed; `false`
    /// if memory has all there is to have.
    pub(crate) fn put_off(
        &mut self,
        ticket: Ticket,
        join: &Join<'_>,
        number: u32,
        known: Known<'_>,
        now: Now,
    ) -> Result<bool, Failure> {
        let room = &self.rooms[number as usize];
        let begin = u64::from(known.number(join.after)) + 1;
        let begin = begin.max(u64::from(room.number).saturating_sub(PAGE_MESSAGES_MAX as u64) + 1);
        let end = u64::from(room.number) + 1;
        let oldest = room.past.front().map_or(end, |oldest| oldest.number.into());
        if join.after == 0 || !self.has_store() || begin >= end || begin >= oldest {
            return Ok(false);
        }
        let tries = known.page.map_or(0, |(_, tries)| tries);
        if tries >= LOOK_UPS_MAX {
            return fail("busy", "the room says more than can be looked up; try again");
        }
        self.keep(ticket, Want::CatchUp(CatchUp::of(join, tries + 1)), now.us)?;
        Ok(true)
    }

    /// The past was looked up: the person enters now, if it still may.
    pub(crate) fn caught_up(
        &mut self,
        ticket: Ticket,
        join: &CatchUp,
        page: &[Past],
        now: Now,
    ) -> Answered<'static> {
        let Some((id, dialect)) = self.asker(ticket) else { return Ok(None) };
        let known = Known { page: Some((page, join.tries)) };
        self.join(id, dialect, ticket.request, (&join.join(), known), now)?;
        Ok(None::<AnswerWhat<'static>>)
    }
}

/// All messages of a room behind number `after`, the latest that fit into a page, oldest first.
pub(crate) fn missed<'a>(room: &'a Room, after: u32, known: Known<'a>) -> Vec<Message<'a>> {
    let page = known.page.map_or(&[][..], |(page, _)| page);
    let seen = known.number(after);
    let begin = room.past.partition_point(|stored| stored.number <= seen);
    let of_page = |past: &'a Past| (&*past.text, past.extra.as_deref(), past.message());
    let of_room = |stored: &'a Stored| (&*stored.text, stored.extra.as_deref(), stored.message());
    let mut space = PageRoom::default();
    let mut messages: Vec<Message<'a>> = page
        .iter()
        .filter(|past| past.number > after)
        .map(of_page)
        .chain(room.past.range(begin..).map(of_room))
        .rev()
        .take(PAGE_MESSAGES_MAX)
        .take_while(|(text, extra, _)| space.takes(text, *extra))
        .map(|(.., message)| message)
        .collect();
    messages.reverse();
    messages
}
