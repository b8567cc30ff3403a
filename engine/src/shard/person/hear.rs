//! How a person takes in what comes back: bytes, answers, deliveries, and the end.

use super::{Link, Pending, Person};
use crate::board::Cell;
use crate::net::Net;
use crate::shard::closed_by_target;
use crate::shard::desk::{AUDITED_SENDERS_MAX, Desk};
use crate::shard::stay::Stay;
use crate::shard::window::Kind;
use model::{
    Ack, Counters, Event, Fault, FaultClass, Measure, Outcome, Receipt, Request, Stamp, Tick, Token,
};

/// Unfinished bytes a person may keep beyond the largest frame allowed: the frame's own head.
const CARRY_SLACK: usize = 64 << 10;

impl Person {
    /// The connection was accepted; the time limit is now that of the handshakes.
    pub(in crate::shard) fn accepted<N: Net>(&mut self, desk: &mut Desk<N>) {
        self.begin_handshake(desk.net.now(), desk);
        self.settle_down(desk);
    }

    fn begin_handshake<N: Net>(&mut self, now: Tick, desk: &Desk<N>) {
        if self.link_deadline.1 != FaultClass::HandshakeTimeout {
            let deadline = Tick(now.0 + desk.setup.plan.limits.handshake_ns);
            self.link_deadline = (deadline, FaultClass::HandshakeTimeout);
        }
    }

    /// The transport is open.
    pub(in crate::shard) fn opened<N: Net>(&mut self, desk: &mut Desk<N>) {
        let now = desk.net.now();
        self.begin_handshake(now, desk);
        // A connection that is encrypted later opens twice.
        if self.link == Link::Dialed {
            self.link = Link::Rising;
            desk.gauges.connected += 1;
        }
        self.session.opened(now, &mut desk.fx);
        self.apply(desk, now);
        self.settle_down(desk);
    }

    /// Bytes have arrived; `false` if the person wants no more.
    pub(in crate::shard) fn received<N: Net>(&mut self, desk: &mut Desk<N>, bytes: &[u8]) -> bool {
        let now = desk.net.now();
        desk.interval.counters.bytes_in += bytes.len() as u64;
        desk.interval.counters.reads += 1;
        if self.carry.is_empty() {
            let used = self.session.receive(now, bytes, &mut desk.fx);
            if used < bytes.len() {
                self.carry.extend_from_slice(&bytes[used..]);
            }
        } else {
            let mut carry = std::mem::take(&mut self.carry);
            carry.extend_from_slice(bytes);
            let used = self.session.receive(now, &carry, &mut desk.fx).min(carry.len());
            carry.drain(..used);
            // An empty buffer is given back: most people need none.
            self.carry = if carry.is_empty() { Vec::new() } else { carry };
        }
        let limit = desk.setup.plan.limits.frame_bytes_max as usize + CARRY_SLACK;
        if self.carry.len() > limit && desk.fx.close.is_none() {
            desk.fx.broken(FaultClass::TooLarge, format!("a frame of more than {limit} bytes"));
        }
        self.apply(desk, now);
        if self.is_runnable || self.is_finishing || self.is_unsettled {
            self.is_unsettled = false;
            self.settle_down(desk);
        }
        !matches!(self.link, Link::Gone | Link::Down | Link::Dialed)
    }

    /// Carries out what the session wants.
    pub(super) fn apply<N: Net>(&mut self, desk: &mut Desk<N>, now: Tick) {
        let mut close = desk.fx.close.take();
        if std::mem::take(&mut desk.fx.dial) {
            close = self.dial(desk, now).err().map(Err).or(close);
        }
        if let Some(wake) = desk.fx.wake.take() {
            self.wake = wake;
            self.is_unsettled = true;
        }
        let mut sent = desk.flush(self.slot);
        if std::mem::take(&mut desk.fx.secure) && sent.is_ok() {
            sent = desk.net.secure(self.slot);
        }
        let mut events = std::mem::take(&mut desk.fx.events);
        for event in events.drain(..) {
            if self.link != Link::Gone {
                self.happen(desk, event, now);
            }
        }
        desk.fx.events = events;
        match (close, sent) {
            (Some(Ok(())), _) => self.put_down(desk),
            (Some(Err(fault)), _) | (None, Err(fault)) => self.broken(desk, fault),
            (None, Ok(())) => {}
        }
    }

    fn dial<N: Net>(&mut self, desk: &mut Desk<N>, now: Tick) -> Result<(), Fault> {
        let deadline = Tick(now.0 + desk.setup.plan.limits.connect_ns);
        if self.link == Link::Down {
            desk.interval.measure(Measure::Connect).asked += 1;
            desk.interval.counters.arrivals += 1;
        } else {
            // One connection after the other: what counts as the connect is the last of them,
            // unless the one before could speak already.
            desk.interval.measure(Measure::Connect).asked += u64::from(self.link == Link::Up);
            desk.gauges.connected -= u64::from(self.link != Link::Dialed);
            self.dialed = (now, now);
            self.carry = Vec::new();
            self.is_unsettled = true;
        }
        self.link = Link::Dialed;
        self.link_deadline = (deadline, FaultClass::ConnectTimeout);
        desk.net.dial(self.slot, self.index)
    }

    fn happen<N: Net>(&mut self, desk: &mut Desk<N>, event: Event, now: Tick) {
        match event {
            Event::Delivery(stamp) => self.deliver(desk, &stamp, now),
            Event::Announcement(stamp) => self.hear_of(desk, &stamp, now),
            Event::Presences(_, count) => {
                desk.interval.counters.presences += u64::from(count);
            }
            Event::Done(token, outcome) => self.answered(desk, token, outcome, now),
            Event::Asked(measure, count) => {
                desk.interval.measure(measure).asked += u64::from(count);
            }
            Event::Answered { measure, sent, outcome: Ok(()) } => {
                let stats = desk.interval.measure(measure);
                stats.done += 1;
                stats.latency.record(now.ns_since(sent));
                stats.service.record(now.ns_since(sent));
            }
            Event::Answered { measure, outcome: Err(fault), .. } => desk.fault(measure, &fault),
            Event::Resumed => self.resumed(desk, now),
            Event::Connected => {
                self.link = Link::Up;
                self.link_deadline.0 = Tick::NEVER;
                let stats = desk.interval.measure(Measure::Connect);
                stats.done += 1;
                stats.latency.record(now.ns_since(self.dialed.0));
                stats.service.record(now.ns_since(self.dialed.1));
            }
        }
    }

    /// A stamped message has arrived: the hot path.
    fn deliver<N: Net>(&mut self, desk: &mut Desk<N>, stamp: &Stamp, now: Tick) {
        let is_stamped = desk.is_stamped();
        let receipt = match self.stay(stamp.room) {
            Some(stay) => stay.receive(stamp, is_stamped, false),
            None => Receipt::Unexpected,
        };
        let counters = &mut desk.interval.counters;
        match receipt {
            Receipt::Unexpected => counters.unexpected += 1,
            Receipt::Duplicate => counters.duplicate += 1,
            Receipt::Owed | Receipt::Optional => {
                counters.deliveries += 1;
                counters.optional += u64::from(receipt == Receipt::Optional);
                let service = now.ns_since(stamp.sent);
                counters.late += u64::from(service > desk.late_ns);
                self.audit(counters, stamp);
                desk.deliveries.done += 1;
                desk.deliveries.latency.record(now.ns_since(stamp.intended));
                desk.deliveries.service.record(service);
            }
        }
        if stamp.person == self.id && desk.manners.ack == Ack::Echo {
            self.heard_self(desk, stamp, now);
        }
    }

    /// Whether the sender's messages come in the order they were sent.
    fn audit(&mut self, counters: &mut Counters, stamp: &Stamp) {
        let Some(audit) = &mut self.audit else { return };
        let key = (stamp.room, stamp.person);
        if audit.len() >= AUDITED_SENDERS_MAX && !audit.contains_key(&key) {
            return;
        }
        let last = audit.entry(key).or_insert(stamp.number);
        counters.audited += 1;
        counters.misordered += u64::from(stamp.number < *last);
        *last = stamp.number.max(*last);
    }

    /// A stamped announcement has arrived.
    fn hear_of<N: Net>(&mut self, desk: &mut Desk<N>, stamp: &Stamp, now: Tick) {
        let receipt = self.stay(stamp.room).map(|stay| stay.receive(stamp, true, true));
        let counters = &mut desk.interval.counters;
        match receipt {
            None | Some(Receipt::Unexpected) => counters.unexpected += 1,
            Some(Receipt::Duplicate) => counters.announcements_duplicate += 1,
            Some(receipt) => {
                counters.announcements += 1;
                counters.announcements_optional += u64::from(receipt == Receipt::Optional);
                desk.announcements.done += 1;
                desk.announcements.latency.record(now.ns_since(stamp.intended));
                desk.announcements.service.record(now.ns_since(stamp.sent));
            }
        }
    }

    /// The sender's own copy acknowledges the message.
    fn heard_self<N: Net>(&mut self, desk: &mut Desk<N>, stamp: &Stamp, now: Tick) {
        let is_this = |pending: &Pending| {
            pending.measure == Measure::Say
                && (pending.room, pending.number) == (stamp.room, stamp.number)
        };
        if let Some(token) = self.pending.iter().find(|p| is_this(p)).map(|p| p.token) {
            self.answered(desk, token, Ok(()), now);
        }
    }

    /// A request is over.
    fn answered<N: Net>(&mut self, desk: &mut Desk<N>, token: Token, outcome: Outcome, now: Tick) {
        let Some(at) = self.pending.iter().position(|pending| pending.token == token) else {
            return;
        };
        let pending = self.pending.swap_remove(at);
        desk.gauges.waiting -= 1;
        self.is_unsettled = true;
        match &outcome {
            Ok(()) => {
                let stats = desk.interval.measure(pending.measure);
                stats.done += 1;
                stats.latency.record(now.ns_since(pending.intended));
                stats.service.record(now.ns_since(pending.sent));
            }
            Err(fault) => {
                // A login that fails before the transport could speak is a connect that failed.
                if pending.measure == Measure::Login && self.link != Link::Up {
                    desk.fault(Measure::Connect, fault);
                }
                desk.fault(pending.measure, fault);
            }
        }
        let is_ok = outcome.is_ok();
        match pending.measure {
            Measure::Login => self.logged_in(desk, is_ok),
            Measure::Join => self.joined(desk, &pending, is_ok),
            Measure::Leave => self.left(desk, &pending),
            Measure::Rename => {
                desk.setup.board.bump(pending.room, desk.setup.source, Cell::JoinsDone);
            }
            _ if pending.is_numbered => {
                desk.windows.settle(Kind::Message, pending.room, pending.number);
            }
            _ => {}
        }
        if model::DeedVerb::Ask(pending.measure).is_awaited() {
            self.mind.answered(now);
            self.is_runnable = true;
        }
    }

    fn logged_in<N: Net>(&mut self, desk: &mut Desk<N>, is_ok: bool) {
        if !is_ok {
            return self.give_up(desk);
        }
        self.forget_lost(desk);
        self.is_online = true;
        desk.gauges.online += 1;
        if !desk.has_join(self.phase) {
            self.entered(desk);
        }
    }

    fn joined<N: Net>(&mut self, desk: &mut Desk<N>, pending: &Pending, is_ok: bool) {
        let (room, source) = (pending.room, desk.setup.source);
        desk.setup.board.bump(room, source, Cell::JoinsDone);
        if desk.stamps_joins_of(room) {
            desk.windows.settle(Kind::Announcement, room, pending.number);
        }
        if !is_ok {
            return self.give_up(desk);
        }
        let (board, is_stamped) = (desk.setup.board.clone(), desk.is_stamped());
        if let Some(stay) = self.stay(room) {
            stay.joined(&board, is_stamped);
            desk.gauges.seats += 1;
        }
        if desk.setup.plan.list(room).is_none() {
            self.mind.joined(room);
        }
        self.entered(desk);
    }

    fn entered<N: Net>(&mut self, desk: &mut Desk<N>) {
        if !std::mem::replace(&mut self.is_entered, true) {
            let now = desk.net.now();
            desk.interval.counters.entered += 1;
            let tally = desk.tally(self.phase);
            tally.entered += 1;
            model::Tally::widen(&mut tally.entering, now);
        }
    }

    fn left<N: Net>(&mut self, desk: &mut Desk<N>, pending: &Pending) {
        let room = pending.room;
        desk.setup.board.bump(room, desk.setup.source, Cell::LeavesDone);
        self.mind.left(room);
        if let Some(at) = self.stays.iter().position(|stay| stay.room() == room) {
            self.end_stay(desk, at);
        }
        // What was said here and not acknowledged by now never will be.
        let fault =
            Fault::new(FaultClass::RequestTimeout, "not acknowledged before the room was left");
        self.abandon(desk, &fault, |other| other.is_numbered && other.room == room);
    }

    /// Takes requests as failed that cannot be answered any more.
    pub(super) fn abandon<N: Net>(
        &mut self,
        desk: &mut Desk<N>,
        fault: &Fault,
        is_lost: impl Fn(&Pending) -> bool,
    ) {
        while let Some(at) = self.pending.iter().position(&is_lost) {
            let pending = self.pending.swap_remove(at);
            desk.gauges.waiting -= 1;
            desk.fault(pending.measure, fault);
            match pending.measure {
                _ if pending.is_numbered => {
                    desk.windows.settle(Kind::Message, pending.room, pending.number);
                }
                Measure::Join if desk.stamps_joins_of(pending.room) => {
                    desk.windows.settle(Kind::Announcement, pending.room, pending.number);
                }
                _ => {}
            }
        }
    }

    pub(super) fn miss_link_deadline<N: Net>(&mut self, desk: &mut Desk<N>) {
        let what = match self.link_deadline.1 {
            FaultClass::ConnectTimeout => "the connection was not accepted in time",
            _ => "the TLS handshake or the upgrade was not answered in time",
        };
        self.broken(desk, Fault::new(self.link_deadline.1, what));
    }

    pub(super) fn miss_deadlines<N: Net>(&mut self, desk: &mut Desk<N>, now: Tick) {
        while let Some(pending) = self.pending.iter().find(|pending| pending.deadline <= now) {
            if pending.is_silent() {
                // Nobody acknowledges it: not refused by now is as good as taken.
                let token = pending.token;
                self.settled(desk, token);
                continue;
            }
            let class = match pending.measure {
                Measure::Login => FaultClass::LoginTimeout,
                _ => FaultClass::RequestTimeout,
            };
            let waited = pending.deadline.ns_since(pending.sent) / 1_000_000_000;
            let what = format!("`{}` was not answered in {waited} s", pending.measure.name());
            self.answered(desk, pending.token, Err(Fault::new(class, what)), now);
        }
    }

    /// A message that nobody acknowledges was not refused in time.
    fn settled<N: Net>(&mut self, desk: &mut Desk<N>, token: Token) {
        let Some(at) = self.pending.iter().position(|pending| pending.token == token) else {
            return;
        };
        let pending = self.pending.swap_remove(at);
        desk.gauges.waiting -= 1;
        desk.interval.measure(pending.measure).done += 1;
        desk.windows.settle(Kind::Message, pending.room, pending.number);
        self.is_unsettled = true;
    }

    /// The target has closed the connection.
    pub(in crate::shard) fn ended<N: Net>(&mut self, desk: &mut Desk<N>) {
        if !matches!(self.link, Link::Gone | Link::Down) {
            desk.interval.counters.drops += 1;
            self.broken(desk, closed_by_target());
        }
    }

    /// The connection is of no use any more, and that is a fault: the journey ends.
    pub(in crate::shard) fn broken<N: Net>(&mut self, desk: &mut Desk<N>, fault: Fault) {
        if matches!(self.link, Link::Gone | Link::Down) {
            return;
        }
        if self.link != Link::Up || self.pending.is_empty() {
            desk.fault(Measure::Connect, &fault);
        }
        self.abandon(desk, &fault, |_| true);
        self.give_up(desk);
    }

    fn give_up<N: Net>(&mut self, desk: &mut Desk<N>) {
        self.put_down(desk);
        self.go(desk, false);
    }

    /// Says good-bye and closes the connection, if there is one.
    pub(super) fn hang_up<N: Net>(&mut self, desk: &mut Desk<N>) {
        if self.link == Link::Up {
            let token = desk.token();
            let now = desk.net.now();
            self.session.act(now, token, Request::Disconnect, &mut desk.fx);
            // Good-bye is said on the way out; whatever else the session wants comes too late.
            let _ = desk.flush(self.slot);
            desk.fx.events.clear();
            desk.fx.close = None;
            desk.fx.wake = None;
        }
        self.put_down(desk);
    }

    /// Closes the connection and settles everything that depended on it.
    pub(super) fn put_down<N: Net>(&mut self, desk: &mut Desk<N>) {
        let fault = Fault::new(FaultClass::Offline, "the person hung up before the answer");
        self.abandon(desk, &fault, |_| true);
        let stays = match self.limbo.take() {
            Some(limbo) => *limbo,
            None => std::mem::take(&mut self.stays),
        };
        self.end_stays(desk, stays);
        self.unlink(desk);
    }

    /// Settles all stays as these ones.
    pub(super) fn end_stays<N: Net>(&mut self, desk: &mut Desk<N>, stays: Vec<Stay>) {
        self.stays = stays;
        while !self.stays.is_empty() {
            let room = self.stays[0].room();
            self.mind.left(room);
            desk.setup.board.bump(room, desk.setup.source, Cell::LeavesBegun);
            desk.setup.board.bump(room, desk.setup.source, Cell::LeavesDone);
            self.end_stay(desk, 0);
        }
    }

    /// Closes the connection.
    pub(super) fn unlink<N: Net>(&mut self, desk: &mut Desk<N>) {
        if matches!(self.link, Link::Rising | Link::Up) {
            desk.gauges.connected -= 1;
        }
        desk.gauges.online -= u64::from(std::mem::take(&mut self.is_online));
        desk.net.close(self.slot);
        self.link = Link::Down;
        self.link_deadline.0 = Tick::NEVER;
        self.wake = Tick::NEVER;
        self.carry = Vec::new();
    }
}
