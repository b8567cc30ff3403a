//! How a person loses the connection, and what becomes of the rooms it was in.
//!
//! Protocols that can take a conversation up again owe whatever was said meanwhile, so that the
//! stays in rooms go on as if nothing had happened. Whether the target agrees is only known at the
//! next login: until then, what the stays amount to without it is kept beside them, in limbo.

use super::{Link, Person};
use crate::net::Net;
use crate::shard::desk::Desk;
use model::{Fault, FaultClass, Measure, Tick};

impl Person {
    /// Loses the connection without a word to the target.
    pub(super) fn lose_link<N: Net>(&mut self, desk: &mut Desk<N>) {
        if self.link != Link::Up || !self.session.lost(desk.net.now()) {
            return self.put_down(desk);
        }
        let (board, is_stamped) = (desk.setup.board.clone(), desk.is_stamped());
        let source = desk.setup.source;
        let without = self.stays.iter().map(|stay| stay.cut_off_now(&board, source, is_stamped));
        self.limbo = Some(Box::new(without.collect()));
        self.unlink(desk);
    }

    /// The target goes on with the conversation: nothing was lost but time.
    pub(super) fn resumed<N: Net>(&mut self, desk: &mut Desk<N>, now: Tick) {
        let Some(login) = self.pending.iter().find(|p| p.measure == Measure::Login) else { return };
        if self.limbo.take().is_some() {
            let stats = desk.interval.measure(Measure::Resume);
            stats.done += 1;
            stats.latency.record(now.ns_since(login.intended));
            stats.service.record(now.ns_since(login.sent));
        }
    }

    /// A conversation that was lost will not be taken up again: the rooms were left when it was.
    pub(super) fn forget_lost<N: Net>(&mut self, desk: &mut Desk<N>) {
        let Some(limbo) = self.limbo.take() else { return };
        let fault = Fault::new(FaultClass::Closed, "the target began a new conversation");
        desk.fault(Measure::Resume, &fault);
        // What was asked in the old one will not be answered in the new one.
        self.abandon(desk, &fault, |_| true);
        self.end_stays(desk, *limbo);
    }
}
