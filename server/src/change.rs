//! Changes that outlive a connection: through the store where things are kept, at once otherwise.
//!
//! Both ways end in [`Core::carried_out`], so memory is changed, who asked is answered and others
//! are told in one place; whatever two requests could dispute is decided by the store, or by
//! [`Core::decide`] where there is none.

use crate::chat::request::Answered;
use crate::chat::rights;
use crate::core::{Core, Now};
use crate::store::{Done, Job, Outcome, Want};

impl Core {
    /// Does what a request of `id` wants, now or once it is stored.
    pub(crate) fn change(
        &mut self,
        id: usize,
        request: u32,
        want: Want,
        now: Now,
    ) -> Answered<'static> {
        let ticket = self.ticket(id, request);
        if self.keeping.is_some() {
            self.keep(ticket, want, now.us)?;
            return Ok(None);
        }
        let outcome = self.decide(&want);
        self.carried_out(Job { ticket, want, since_us: now.us }, outcome, now)
    }

    /// A want has come in the order of all shards, where nothing is kept: all decide alike.
    pub(crate) fn ordered(&mut self, job: Job, now: Now) {
        if let Want::Say { name, .. } = &job.want
            && !self.room_numbers.contains_key(&**name)
        {
            self.make_room(name);
        }
        let outcome = self.decide(&job.want);
        self.stored(Done { job, outcome, begins: false }, now);
    }

    /// What becomes of a want where nothing is kept.
    fn decide(&self, want: &Want) -> Outcome {
        match want {
            Want::Revoke { .. } => Outcome::Noted,
            Want::Rights { room, by, act } => {
                Outcome::judged(rights::judge(act, &self.case(room, by, act)), room)
            }
            Want::Say { name, sender, extra, .. } => {
                self.decide_say(name, sender, extra.as_deref())
            }
            Want::Amend(amend) => self.decide_amend(amend),
            // It comes here from an order of shards only; else there is a shorter way.
            Want::Account { name, .. } => Outcome::Added(self.accounts.known(name).is_none()),
            // There is nothing to decide.
            Want::Page { .. } | Want::Marks(_) | Want::Key { .. } => Outcome::Noted,
            Want::Inbox { .. } | Want::CatchUp(_) => Outcome::Noted,
            Want::Tell { to, sender, key, at_ms, .. } => self.decide_tell(to, sender, key, *at_ms),
        }
    }
}
