//! What a server with a data folder does differently: what is said is stored first, and only then
//! answered and heard.

use std::io;

use protocols::yardstick::{AnswerWhat, Done, History, Millis, Said};

use crate::access::auth::is_name;
use crate::chat::message::page_span;
use crate::chat::request::{Answered, Failure, fail};
use crate::chat::room::Stored;
use crate::config::{ROOM_BYTES_MAX, STORE_BYTES_MAX, STORE_JOBS_MAX, STORE_PAGES_MAX};
use crate::core::{Core, Now, World};
use crate::delivery::conn::Ticket;
use crate::outlook::journal::{Level, Value};
use crate::store::{self, Job, Loaded, LoadedRoom, Outcome, Past, Want};

/// What waits for the store, and how the store is.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    /// Not handed over yet.
    jobs: Vec<Job>,
    /// Not done yet, `jobs` among them.
    pub(crate) open: usize,
    /// Memory of the open ones.
    bytes: usize,
    /// How many of the open ones are pages.
    pages: usize,
    /// Nothing outlives the process: what is wanted is ordered among shards, and there is no past
    /// but that in memory.
    pub(crate) is_shallow: bool,
    /// Why the last write failed, if it did.
    pub(crate) trouble: Option<String>,
}

impl Keeping {
    /// Where nothing outlives the process, but has an order among shards.
    pub(crate) fn shallow() -> Keeping {
        Keeping { is_shallow: true, ..Keeping::default() }
    }
}

impl Core {
    /// Whether there is a room of that name, for who decides about it.
    pub(crate) fn is_room(&self, name: &str) -> bool {
        let is_shallow = self.keeping.as_ref().is_some_and(|keeping| keeping.is_shallow);
        let room = self.room_numbers.get(name).map(|number| &self.rooms[*number as usize]);
        room.is_some_and(|room| !is_shallow || room.number > 0)
    }

    /// Whether there is a store, with a past of its own.
    pub(crate) fn has_store(&self) -> bool {
        self.keeping.as_ref().is_some_and(|keeping| !keeping.is_shallow)
    }

    /// From here on everything is kept; `loaded` is what was kept before.
    pub(crate) fn restore(&mut self, loaded: Loaded) -> io::Result<()> {
        for (name, secret) in &loaded.accounts {
            if !self.accounts.restore(name, secret) {
                let why = format!("the data folder has no sound password for account {name:?}");
                return Err(io::Error::other(why));
            }
        }
        for (tag, expires_ms) in loaded.revoked {
            self.accounts.revoke(tag, expires_ms);
        }
        for (name, number) in loaded.inboxes {
            let name = self.accounts.shared(&name);
            self.people.restore(&name, number);
        }
        for room in loaded.rooms {
            let number = self.restore_room(&room)?;
            for past in room.past {
                self.remember_past(number, past);
            }
            self.restore_marks(number, room.reads);
        }
        self.keeping = Some(Keeping::default());
        Ok(())
    }

    /// A room as the store has it. The limit of rooms does not count: it was kept when the room
    /// was made, by as many as were under way.
    fn restore_room(&mut self, room: &LoadedRoom) -> io::Result<u32> {
        let is_sound = is_name(&room.name, ROOM_BYTES_MAX);
        if !is_sound || self.room_numbers.contains_key(&*room.name) {
            let why = format!("the data folder has an unsound room {:?}", room.name);
            return Err(io::Error::other(why));
        }
        let number = self.make_room(&room.name);
        self.rooms[number as usize].number = room.number;
        self.restore_rights(number, room);
        Ok(number)
    }

    fn remember_past(&mut self, room: u32, past: Past) {
        let sender = self.accounts.shared(&past.sender);
        let Past { number, text, at_ms, extra, .. } = past;
        self.remember(room, Stored { number, sender, text, at_ms, extra });
    }

    /// Puts a want on the store's desk at the end of the turn, or refuses.
    pub(crate) fn keep(&mut self, ticket: Ticket, want: Want, now_us: u64) -> Result<(), Failure> {
        let Some(keeping) = &mut self.keeping else {
            return fail("not_stored", "nothing is kept here");
        };
        let (bytes, pages) = (want.bytes(), usize::from(want.is_look_up()));
        let is_full = keeping.open >= STORE_JOBS_MAX
            || keeping.bytes + bytes > STORE_BYTES_MAX
            || keeping.pages + pages > STORE_PAGES_MAX;
        if is_full {
            self.counters.store_busy += 1;
            return fail("busy", "too much waits to be stored or looked up; try again");
        }
        keeping.open += 1;
        keeping.bytes += bytes;
        keeping.pages += pages;
        keeping.jobs.push(Job { ticket, want, since_us: now_us });
        Ok(())
    }

    /// Gives the world what is to be stored and hashed.
    pub(crate) fn hand_over(&mut self, world: &mut impl World) {
        if let Some(keeping) = &mut self.keeping {
            if !keeping.jobs.is_empty() {
                world.store(&mut keeping.jobs);
            }
            self.counters.store_queue = keeping.open as u64;
        }
        if !self.hashing.jobs.is_empty() {
            world.hash(&mut self.hashing.jobs);
        }
        self.counters.login_queue = self.hashing.open as u64;
    }

    /// The store has done a job.
    pub(crate) fn stored(&mut self, done: store::Done, now: Now) {
        let store::Done { job, outcome, begins } = done;
        if job.ticket != Ticket::FOREIGN {
            self.settle(&job, &outcome, now);
        }
        self.counters.store_commits += u64::from(begins);
        let ticket = job.ticket;
        let Some(job) = self.located(job, &outcome) else { return };
        let outcome = self.carried_out(job, outcome, now);
        let Some((id, dialect)) = self.asker(ticket) else { return };
        self.answer(id, dialect, ticket.request, outcome);
    }

    /// Counts a job as done.
    fn settle(&mut self, job: &Job, outcome: &Outcome, now: Now) {
        let Some(keeping) = &mut self.keeping else { return };
        keeping.open -= 1;
        keeping.bytes -= job.want.bytes();
        keeping.pages -= usize::from(job.want.is_look_up());
        match outcome {
            Outcome::Failed(trouble) => {
                if !job.want.is_look_up() {
                    keeping.trouble = Some(trouble.to_string());
                }
                self.counters.store_errors += 1;
                let why = trouble.to_string();
                self.journal.note(Level::Error, "store_failed", &[("why", Value::Text(&why))]);
            }
            Outcome::Page(_) => self.counters.store_pages += 1,
            _ => keeping.trouble = None,
        }
        self.counters.store_wait_us += now.us.saturating_sub(job.since_us);
    }

    /// A change is done: memory follows, others are told; gives the answer to who asked.
    pub(crate) fn carried_out(
        &mut self,
        job: Job,
        outcome: Outcome,
        now: Now,
    ) -> Answered<'static> {
        match (job.want, outcome) {
            (Want::Say { room, sender, text, at_ms, extra, .. }, Outcome::Numbered(number)) => {
                let sender = self.accounts.shared(&sender);
                self.spoke(room, &sender, at_ms);
                let extra = self.remembered(extra);
                self.publish(room, Stored { number, sender, text, at_ms, extra }, now.us);
                Ok(Some(AnswerWhat::Said(Said { number, at_ms: Millis(at_ms) })))
            }
            (Want::Say { room, sender, .. }, Outcome::Again { number, at_ms }) => {
                self.not_spoke(room, &sender);
                Ok(Some(AnswerWhat::Said(Said { number, at_ms: Millis(at_ms) })))
            }
            (Want::Amend(amend), Outcome::Changed(is_new)) => {
                Ok(Some(self.amended(&amend, is_new)))
            }
            (Want::Marks(rooms), Outcome::Noted) if job.ticket == Ticket::FOREIGN => {
                self.marks_of_log(rooms);
                Ok(None)
            }
            (Want::Marks(rooms), outcome) => {
                self.marks_written(rooms, matches!(outcome, Outcome::Noted), now.us);
                Ok(None)
            }
            (Want::Account { name, password, secret }, Outcome::Added(is_new)) => {
                self.registered(job.ticket, is_new, (&name, &password, &secret), now)
            }
            (Want::Revoke { tag, expires_ms }, Outcome::Noted) => {
                self.accounts.revoke(tag, expires_ms);
                Ok(Some(AnswerWhat::Done(Done {})))
            }
            (Want::Rights { room, by, act }, Outcome::Noted) => {
                self.ruled(&room, &by, &act);
                Ok(Some(AnswerWhat::Done(Done {})))
            }
            (Want::Tell { to, sender, text, key, .. }, Outcome::Told { numbers, at_ms }) => {
                self.told((&to, &numbers), (&sender, text, &key), at_ms, now)
            }
            (Want::CatchUp(join), Outcome::Page(page)) => {
                self.caught_up(job.ticket, &join, &page, now)
            }
            (Want::Page { .. } | Want::Inbox { .. }, Outcome::Page(page)) => {
                let messages = page.iter().map(Past::message).collect();
                self.answer_page(job.ticket, History { messages });
                Ok(None)
            }
            (Want::Key { .. }, _) => Ok(None),
            (Want::Rights { room, .. }, Outcome::Refused(code, text)) => {
                Err(self.refused(&room, (code, text)))
            }
            (Want::Say { room, sender, .. }, Outcome::Refused(code, text)) => {
                self.not_spoke(room, &sender);
                fail(code, text)
            }
            (_, Outcome::Refused(code, text)) => fail(code, text),
            (want, _) => {
                if let Want::Say { room, sender, .. } = &want {
                    self.not_spoke(*room, sender);
                }
                if let (Want::Account { .. }, Some((id, _))) = (want, self.asker(job.ticket)) {
                    self.conns[id].logging_in = false;
                }
                fail("not_stored", "the server could not store or look up this; it is not done")
            }
        }
    }

    fn answer_page(&mut self, ticket: Ticket, history: History<'_>) {
        if let Some((id, dialect)) = self.asker(ticket) {
            let what = AnswerWhat::History(history);
            self.answer(id, dialect, ticket.request, Ok(Some(what)));
        }
    }

    /// Whether memory lacks the beginning of a page that the store has.
    pub(crate) fn is_cut_short(&self, room: u32, before: u32, limit: usize) -> bool {
        let room = &self.rooms[room as usize];
        let (begin, end) = page_span(room.number, before, limit);
        let oldest = room.past.front().map_or(u64::from(room.number) + 1, |m| m.number.into());
        self.has_store() && begin < end && begin < oldest
    }

    /// Why the server is not well, if it is not.
    pub(crate) fn trouble(&self) -> Option<String> {
        if let Some(trouble) = self.cluster.as_ref().and_then(|cluster| cluster.trouble.clone()) {
            return Some(trouble);
        }
        let keeping = self.keeping.as_ref()?;
        if let Some(trouble) = &keeping.trouble {
            return Some(format!("the last write to the store failed: {trouble}"));
        }
        let is_full = keeping.open >= STORE_JOBS_MAX;
        is_full.then(|| format!("{} requests wait for the store", keeping.open))
    }
}
