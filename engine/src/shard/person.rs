//! One virtual person: a mind, a session and a connection, tied together. Here the journey goes
//! on; `ask.rs` makes requests, `hear.rs` takes in what comes back, `resume.rs` loses
//! connections and takes conversations up again.

mod ask;
mod hear;
mod resume;

use super::desk::Desk;
use super::stay::Stay;
use crate::net::{Net, Slot};
use model::{
    DeedVerb, FaultClass, Measure, Mind, Next, PersonId, Rng, RoomId, Session, Tick, Token,
};
use std::collections::HashMap;

const NO_STAGE: u32 = u32::MAX;

/// A request that waits for its answer.
struct Pending {
    token: Token,
    measure: Measure,
    intended: Tick,
    sent: Tick,
    deadline: Tick,
    room: RoomId,
    number: u32,
    /// It is a message with that number in that room.
    is_numbered: bool,
}

impl Pending {
    /// Whether it is a message to a list, which is answered only if it is refused.
    fn is_silent(&self) -> bool {
        self.is_numbered && self.measure != Measure::Say
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// Not connected (yet, or any more).
    Down,
    /// Dialed; not open yet.
    Dialed,
    /// Open; the session has not said that it is connected.
    Rising,
    /// The session can speak.
    Up,
    /// The journey is over; the person can be taken away.
    Gone,
}

/// One virtual person.
pub(super) struct Person {
    slot: Slot,
    id: PersonId,
    phase: u32,
    index: u32,
    turn: u32,
    mind: Mind,
    session: Box<dyn Session>,
    link: Link,
    /// The connection's own deadline, and what it means to miss it.
    link_deadline: (Tick, FaultClass),
    dialed: (Tick, Tick),
    carry: Vec<u8>,
    pending: Vec<Pending>,
    stays: Vec<Stay>,
    /// What the stays would amount to if the conversation that was lost is not taken up again.
    #[allow(clippy::box_collection, reason = "few people lose a connection: 8 bytes not 24")]
    limbo: Option<Box<Vec<Stay>>>,
    sleep: Tick,
    wake: Tick,
    armed: Tick,
    stage: u32,
    gate: Option<u32>,
    is_online: bool,
    is_entered: bool,
    is_finishing: bool,
    is_homebound: bool,
    has_finished: bool,
    is_runnable: bool,
    is_used: bool,
    /// Timers may have to be set anew.
    is_unsettled: bool,
    /// Last number heard of each sender in each room, for those who are audited for order.
    #[allow(clippy::box_collection, reason = "most people are not audited: 8 bytes instead of 48")]
    audit: Option<Box<HashMap<(RoomId, PersonId), u32>>>,
}

/// What a person is made of.
pub(super) struct Birth {
    pub(super) id: PersonId,
    pub(super) phase: u32,
    /// Place in the crowd.
    pub(super) index: u32,
    /// How many held the place before.
    pub(super) turn: u32,
    /// When the journey begins.
    pub(super) due: Tick,
}

impl Person {
    pub(super) fn new<N: Net>(desk: &mut Desk<N>, slot: Slot, birth: Birth) -> Person {
        let Birth { id, phase, index, turn, due } = birth;
        let is_audited = desk.audits(id);
        let setup = &desk.setup;
        // Whoever comes to a place later walks the journey with dice of its own.
        let seed = setup.plan.seed ^ u64::from(turn) << 32;
        Person {
            slot,
            id,
            phase,
            index,
            turn,
            mind: Mind::new(Rng::new(seed, id.into()), index, due),
            session: setup.protocol.session(id, desk.features(phase), &setup.shared),
            link: Link::Down,
            link_deadline: (Tick::NEVER, FaultClass::ConnectTimeout),
            dialed: (due, due),
            carry: Vec::new(),
            pending: Vec::new(),
            stays: Vec::new(),
            limbo: None,
            sleep: Tick::NEVER,
            wake: Tick::NEVER,
            armed: Tick::NEVER,
            stage: NO_STAGE,
            gate: None,
            is_online: false,
            is_entered: false,
            is_finishing: false,
            is_homebound: false,
            has_finished: false,
            is_runnable: false,
            is_used: false,
            is_unsettled: false,
            audit: is_audited.then(Box::default),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.link == Link::Gone
    }

    /// The phase that brought the person, and who it is.
    pub(super) fn origin(&self) -> (u32, PersonId) {
        (self.phase, self.id)
    }

    /// Whether the journey was ended by its end, or by a good-bye, and not by a fault.
    pub(super) fn has_finished(&self) -> bool {
        self.has_finished
    }

    pub(super) fn is_armed_for(&self, due: Tick) -> bool {
        self.armed == due
    }

    pub(super) fn waits_at(&self, phase: u32, gate: u32) -> bool {
        self.phase == phase && self.gate == Some(gate)
    }

    /// Walks on with the journey as far as it goes now, and sets the timer.
    pub(super) fn advance<N: Net>(&mut self, desk: &mut Desk<N>) {
        self.is_runnable = true;
        self.settle_down(desk);
    }

    /// After anything that happened: walks on if there is reason to, ends the journey if it is
    /// over and everything said has been acknowledged, and sets the timer.
    fn settle_down<N: Net>(&mut self, desk: &mut Desk<N>) {
        self.is_runnable |= self.is_homebound && self.pending.is_empty();
        while std::mem::take(&mut self.is_runnable) && self.link != Link::Gone {
            self.walk(desk);
        }
        if self.is_finishing && self.pending.is_empty() && self.link != Link::Gone {
            self.hang_up(desk);
            self.go(desk, true);
        }
        self.rearm(desk);
    }

    /// Takes steps until one has to be waited for.
    fn walk<N: Net>(&mut self, desk: &mut Desk<N>) {
        if self.is_homebound {
            return self.walk_home(desk);
        }
        let plan = desk.setup.plan.clone();
        let crowd = desk.run_phase(self.phase).crowd as usize;
        let program = &plan.crowds[crowd].program;
        let rooms = plan.room_count();
        self.sleep = Tick::NEVER;
        while self.link != Link::Gone && !self.is_finishing {
            match self.mind.next(program, rooms, desk.net.now()) {
                Next::Do { verb: DeedVerb::Disconnect, .. } => self.hang_up(desk),
                Next::Do { verb: DeedVerb::Drop, .. } => self.lose_link(desk),
                Next::Do { verb: DeedVerb::Ask(measure), room, text, limit, intended } => {
                    self.ask(desk, measure, room, text, limit, intended);
                }
                Next::Sleep(until) => {
                    self.sleep = until;
                    return;
                }
                Next::Gate(gate) if desk.reach_gate(self.phase, gate) => {
                    self.mind.passed(desk.net.now());
                }
                Next::Gate(gate) => {
                    self.gate = Some(gate);
                    return;
                }
                Next::Stage(stage) => self.enter_stage(desk, stage),
                Next::Await => return,
                Next::Finished => self.is_finishing = true,
            }
        }
    }

    /// The person is not needed any more, wherever the journey is: once everything asked for is
    /// answered, it leaves its rooms and hangs up.
    pub(super) fn sent_home<N: Net>(&mut self, desk: &mut Desk<N>) {
        self.is_homebound = true;
        self.advance(desk);
    }

    fn walk_home<N: Net>(&mut self, desk: &mut Desk<N>) {
        self.sleep = Tick::NEVER;
        let can_leave = desk.setup.protocol.facts().verbs.contains(&Measure::Leave);
        while self.pending.is_empty() && self.link == Link::Up && can_leave {
            let Some(room) = self.stays.first().map(Stay::room) else { break };
            let now = desk.net.now();
            self.ask(desk, Measure::Leave, Some(room), None, 0, now);
        }
        self.is_finishing |= self.pending.is_empty();
    }

    /// The gate is open.
    pub(super) fn pass<N: Net>(&mut self, desk: &mut Desk<N>) {
        self.gate = None;
        self.mind.passed(desk.net.now());
        self.advance(desk);
    }

    fn enter_stage<N: Net>(&mut self, desk: &mut Desk<N>, stage: u32) {
        self.leave_stage(desk);
        self.stage = stage;
        let now = desk.net.now();
        let tally = &mut desk.tally(self.phase).stages[stage as usize];
        tally.entered += 1;
        tally.first_in.get_or_insert(now);
        tally.last_in = Some(now);
    }

    fn leave_stage<N: Net>(&mut self, desk: &mut Desk<N>) {
        if self.stage != NO_STAGE {
            let now = desk.net.now();
            let tally = &mut desk.tally(self.phase).stages[self.stage as usize];
            tally.left += 1;
            tally.first_out.get_or_insert(now);
            tally.last_out = Some(now);
            self.stage = NO_STAGE;
        }
    }

    /// The journey is over, by its end or by a fault.
    fn go<N: Net>(&mut self, desk: &mut Desk<N>, is_finished: bool) {
        self.leave_stage(desk);
        self.has_finished = is_finished;
        desk.audited -= u32::from(self.audit.take().is_some());
        if let Some(gate) = self.gate.take() {
            desk.quit_gate(self.phase, gate);
        }
        let (finished, gave_up) = (u64::from(is_finished), u64::from(!is_finished));
        desk.interval.counters.finished += finished;
        desk.interval.counters.gave_up += gave_up;
        let is_entered = self.is_entered;
        let tally = desk.tally(self.phase);
        tally.finished += finished;
        tally.gave_up += gave_up;
        tally.turned_back += u64::from(!is_entered);
        self.link = Link::Gone;
    }

    /// The run is over before the journey.
    pub(super) fn sent_away<N: Net>(&mut self, desk: &mut Desk<N>) {
        self.hang_up(desk);
        self.leave_stage(desk);
        self.link = Link::Gone;
    }

    /// The timer fired.
    pub(super) fn fire<N: Net>(&mut self, desk: &mut Desk<N>, due: Tick, now: Tick) {
        self.armed = Tick::NEVER;
        if self.link_deadline.0 <= now {
            self.miss_link_deadline(desk);
        }
        self.miss_deadlines(desk, now);
        if self.wake <= now && self.link != Link::Gone {
            self.wake = Tick::NEVER;
            self.session.wake(now, &mut desk.fx);
            self.apply(desk, now);
        }
        if self.sleep <= now {
            desk.interval.lag.record(now.ns_since(due));
            self.is_runnable = true;
        }
        self.settle_down(desk);
    }

    fn rearm<N: Net>(&mut self, desk: &mut Desk<N>) {
        if self.link == Link::Gone {
            return;
        }
        let deadlines = self.pending.iter().map(|pending| pending.deadline);
        let due = deadlines.fold(self.sleep.min(self.wake).min(self.link_deadline.0), Tick::min);
        if due < self.armed {
            self.armed = due;
            desk.wheel.set(due, self.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_small() {
        // Together with a session, this is what decides how many people a machine can hold.
        for (size, max) in
            [(size_of::<Person>(), 320), (size_of::<Pending>(), 48), (size_of::<Stay>(), 104)]
        {
            assert!(size <= max, "{size} bytes instead of {max}");
        }
    }
}
