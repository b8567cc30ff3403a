//! Direct messages: to people by name, wherever they are; numbered in the inbox of each.

use std::collections::HashSet;
use std::rc::Rc;

use protocols::yardstick::{AnswerWhat, FrameWhat, GetHistory, History, Millis, Said, Tell};

use crate::chat::amend::{check_key, check_text};
use crate::chat::people::Told;
use crate::chat::request::{Answered, Failure, fail};
use crate::config::{PAGE_MESSAGES_MAX, TELL_NAMES_MAX};
use crate::core::{Core, Now};
use crate::delivery::conn::{Dialect, LANES, put_answer, put_frame};
use crate::store::{Outcome, Want};

/// The number that stands for inboxes where rooms have theirs.
const INBOX: u32 = u32::MAX;

/// A frame of a direct message in one dialect, under the number it has in some inboxes.
type Encoded = Option<(u32, Vec<u8>)>;

impl Core {
    pub(crate) fn tell(
        &mut self,
        id: usize,
        request: u32,
        tell: &Tell<'_>,
        now: Now,
    ) -> Answered<'static> {
        if tell.text.is_empty() || tell.to.is_empty() {
            return fail("empty", "a direct message has at least one byte and one name");
        }
        check_text(&tell.text)?;
        check_key(&tell.key)?;
        if tell.to.len() > TELL_NAMES_MAX {
            return fail("too_many", format!("at most {TELL_NAMES_MAX} names"));
        }
        if let Some(name) = tell.to.iter().find(|name| self.accounts.known(name).is_none()) {
            return fail("unknown_name", format!("nobody is called {:.64}", &**name));
        }
        let Some(sender) = self.conns[id].name.clone() else {
            return fail("login_first", "log in first");
        };
        let mut seen = HashSet::new();
        let names = tell.to.iter().map(|name| &**name);
        let to = names.filter(|name| seen.insert(*name)).map(Box::from).collect();
        let (sender, text, key) = ((&*sender).into(), (&*tell.text).into(), (&*tell.key).into());
        self.change(id, request, Want::Tell { to, sender, text, key, at_ms: now.unix_ms }, now)
    }

    /// What becomes of a direct message where nothing is kept.
    pub(crate) fn decide_tell(
        &self,
        to: &[Box<str>],
        sender: &str,
        key: &str,
        at_ms: u64,
    ) -> Outcome {
        let sender = self.accounts.known(sender);
        if let Some(at_ms) = sender.and_then(|sender| self.people.told_at(&sender, key)) {
            return Outcome::Told { numbers: Vec::new(), at_ms };
        }
        let number = |name| self.people.number(name).checked_add(1);
        match to.iter().map(|name| number(&**name)).collect() {
            Some(numbers) => Outcome::Told { numbers, at_ms },
            None => Outcome::Refused("full", "an inbox has no more numbers".to_owned()),
        }
    }

    /// A direct message is told for good: it goes into inboxes and to everybody's connections;
    /// without numbers it was told before.
    pub(crate) fn told(
        &mut self,
        (to, numbers): (&[Box<str>], &[u32]),
        (sender, text, key): (&str, Box<str>, &str),
        at_ms: u64,
        now: Now,
    ) -> Answered<'static> {
        if !numbers.is_empty() {
            let sender = self.accounts.shared(sender);
            if !self.has_store() {
                self.people.note_key(&sender, key, at_ms);
            }
            let told = self.people.told(sender, text, at_ms);
            self.counters.tells += 1;
            self.counters.told += numbers.len() as u64;
            self.burn_ns += self.config.cpu_per_message.as_nanos() as u64;
            let mut encoded: [Encoded; LANES] = Default::default();
            for (name, number) in to.iter().zip(numbers) {
                self.tell_one(name, *number, &told, &mut encoded, now.us);
            }
        }
        Ok(Some(AnswerWhat::Said(Said { number: 0, at_ms: Millis(at_ms) })))
    }

    /// Into one inbox, and to all connections of that person.
    fn tell_one(
        &mut self,
        name: &str,
        number: u32,
        told: &Rc<Told>,
        encoded: &mut [Encoded; LANES],
        now_us: u64,
    ) {
        let name = self.accounts.shared(name);
        self.people.remember(&name, number, told);
        let mut next = self.people.first_conn(&name);
        while let Some(id) = next {
            let Some(conn) = self.conns.get(id) else { return };
            next = conn.next_sister();
            let Some(dialect) = conn.dialect().filter(|_| !conn.doomed) else { continue };
            // People who were told as much share a number, and then the bytes.
            let slot = &mut encoded[dialect.lane()];
            if slot.as_ref().is_none_or(|(other, _)| *other != number) {
                let mut bytes = slot.take().map_or_else(Vec::new, |(_, bytes)| bytes);
                bytes.clear();
                let what = FrameWhat::Message(told.message(number));
                put_frame(dialect, what, &mut self.scratch, &mut bytes);
                *slot = Some((number, bytes));
            }
            let Some((_, bytes)) = slot else { continue };
            self.counters.deliveries += 1;
            self.burn_ns += self.config.cpu_per_delivery.as_nanos() as u64;
            if self.faulty.touches_receivers() {
                let message = (number, told.text());
                self.deliver_faulty((INBOX, ""), id as u32, message, bytes, now_us);
            } else {
                self.conns[id].out.extend_from_slice(bytes);
                self.enqueue(id);
            }
        }
    }

    /// A page of one's own direct messages.
    pub(crate) fn inbox_page(
        &mut self,
        id: usize,
        dialect: Dialect,
        request: u32,
        get: &GetHistory<'_>,
        now: Now,
    ) -> Result<(), Failure> {
        let Some(name) = self.conns[id].name.clone() else {
            return fail("login_first", "log in first");
        };
        let limit = (get.limit as usize).min(PAGE_MESSAGES_MAX);
        let before = get.before;
        if self.has_store() && self.people.is_cut_short(&name, before, limit) {
            let ticket = self.ticket(id, request);
            let want = Want::Inbox { person: (&*name).into(), before, limit };
            return self.keep(ticket, want, now.us);
        }
        let messages = self.people.page(&name, before, limit);
        let what = AnswerWhat::History(History { messages });
        put_answer(dialect, request, what, &mut self.scratch, &mut self.conns[id].out);
        Ok(())
    }
}
