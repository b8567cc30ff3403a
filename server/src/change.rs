//! Changes that outlive a connection: through the store where things are kept, at once otherwise.
//!
//! Both ways end in [`Core::carried_out`], so memory is changed, who asked is answered and others
//! are told in one place; whatever two requests could dispute is decided by the store, or by
//! [`Core::decide`] where there is none.

use crate::core::{Core, Now};
use crate::request::Answered;
use crate::store::{Job, Outcome, Want};

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

    /// What becomes of a want where nothing is kept.
    fn decide(&self, want: &Want) -> Outcome {
        match want {
            Want::Revoke { .. } => Outcome::Noted,
            // These have shorter ways of their own where nothing is kept.
            Want::Say { .. } | Want::Account { .. } | Want::Page { .. } => Outcome::Noted,
            // There is one from the beginning.
            Want::Key { .. } => Outcome::Noted,
        }
    }
}
