//! How a person makes requests.

use super::{Link, Pending, Person};
use crate::board::Cell;
use crate::net::Net;
use crate::shard::desk::{Desk, LATE_NS};
use crate::shard::stay::Stay;
use crate::shard::window::Kind;
use crate::speech::speak;
use model::{Ack, Fault, FaultClass, Measure, Request, RoomId, RoomName, Stamp, Text, Tick};

impl Person {
    /// Makes a request, and carries out what the session wants for it.
    pub(super) fn ask<N: Net>(
        &mut self,
        desk: &mut Desk<N>,
        measure: Measure,
        room: Option<RoomId>,
        text: Option<&Text>,
        limit: u32,
        intended: Tick,
    ) {
        let now = desk.net.now();
        // A presence that no list is owed is a request like others.
        let is_said = measure.is_said() && room.is_some();
        self.count_asked(desk, measure, is_said);
        if self.link == Link::Down && measure != Measure::Login {
            let fault = Fault::new(FaultClass::Offline, "there is no connection");
            return self.refuse(desk, measure, &fault, now);
        }
        let plan = desk.setup.plan.clone();
        let room = match room.map(|id| (id, plan.rooms.get(id as usize))) {
            Some((id, Some(name))) => RoomName { id, name },
            _ => RoomName { id: 0, name: "" },
        };
        let pending = Pending {
            token: desk.token(),
            measure,
            intended,
            sent: now,
            deadline: Tick(now.0 + self.patience_ns(desk, measure)),
            room: room.id,
            number: 0,
            is_numbered: is_said,
        };
        match measure {
            Measure::Login => self.login(desk, pending),
            Measure::Join => self.join(desk, pending, room),
            _ if is_said => self.say(desk, pending, room, text),
            Measure::Presence => self.show(desk, pending, text),
            Measure::Rename => self.rename(desk, pending, room),
            Measure::Leave => {
                self.begin_leave(desk, room.id);
                self.send(desk, pending, Request::Leave { room });
            }
            _ => match plain_request(measure, room, limit) {
                Some(request) => self.send(desk, pending, request),
                None => {
                    let what = format!("a person cannot `{}`", measure.name());
                    let fault = Fault::new(FaultClass::RequestRefused, what);
                    return self.refuse(desk, measure, &fault, now);
                }
            },
        }
        self.apply(desk, now);
    }

    fn count_asked<N: Net>(&mut self, desk: &mut Desk<N>, measure: Measure, is_said: bool) {
        desk.interval.measure(measure).asked += 1;
        if is_said {
            desk.interval.counters.sends_due += 1;
            desk.plain_tally(self.phase).sends_due += 1;
        }
    }

    /// A request that could not even be made.
    fn refuse<N: Net>(&mut self, desk: &mut Desk<N>, measure: Measure, fault: &Fault, now: Tick) {
        desk.fault(measure, fault);
        self.mind.answered(now);
    }

    fn send<N: Net>(&mut self, desk: &mut Desk<N>, pending: Pending, request: Request<'_>) {
        let (token, sent) = (pending.token, pending.sent);
        push_exact(&mut self.pending, pending);
        desk.gauges.waiting += 1;
        self.session.act(sent, token, request, &mut desk.fx);
    }

    fn login<N: Net>(&mut self, desk: &mut Desk<N>, pending: Pending) {
        if self.limbo.is_some() {
            desk.interval.measure(Measure::Resume).asked += 1;
        } else if self.is_used {
            // The old conversation is over: the person begins a new one.
            let setup = &desk.setup;
            let features = desk.features(self.phase);
            self.session = setup.protocol.session(self.id, features, &setup.shared);
        }
        self.is_used = true;
        self.dialed = (pending.intended, pending.sent);
        let (name, password) = self.account(desk);
        self.send(desk, pending, Request::Login { name: &name, password: &password });
    }

    fn join<N: Net>(&mut self, desk: &mut Desk<N>, mut pending: Pending, room: RoomName<'_>) {
        if let Some(at) = self.stays.iter().position(|stay| stay.room() == room.id) {
            self.end_stay(desk, at);
        }
        push_exact(&mut self.stays, Stay::begin(&desk.setup.board, room.id, desk.is_stamped()));
        desk.setup.board.bump(room.id, desk.setup.source, Cell::JoinsBegun);
        let mut status = String::new();
        if desk.stamps_joins_of(room.id) {
            let stamp = self.stamp(desk, Kind::Announcement, &mut pending);
            speak(&mut status, &stamp, None, self.mind.rng());
        }
        let (nick, _) = self.account(desk);
        self.send(desk, pending, Request::Join { room, nick: &nick, status: &status });
    }

    fn say<N: Net>(
        &mut self,
        desk: &mut Desk<N>,
        mut pending: Pending,
        room: RoomName<'_>,
        text: Option<&Text>,
    ) {
        let stamp = self.stamp(desk, Kind::Message, &mut pending);
        let is_late = u64::from(pending.sent.ns_since(pending.intended) > LATE_NS);
        desk.interval.counters.sends += 1;
        desk.interval.counters.sends_late += is_late;
        let tally = desk.plain_tally(self.phase);
        tally.sends += 1;
        tally.sends_late += is_late;
        let manners = desk.manners;
        let is_stamped = desk.is_stamped();
        let has_own_copy = manners.echo && !pending.is_silent();
        if !has_own_copy {
            let board = desk.setup.board.clone();
            if let Some(stay) = self.stay(room.id) {
                stay.said(&board, &stamp, is_stamped);
            }
        }
        let mut said = std::mem::take(&mut desk.text);
        speak(&mut said, &stamp, text, self.mind.rng());
        let request = match pending.measure {
            Measure::Tell => Request::Tell { list: room, text: &said },
            Measure::Multicast => Request::Multicast { list: room, text: &said },
            Measure::Presence => Request::Presence { list: Some(room), status: &said },
            _ => Request::Say { room, text: &said },
        };
        match manners.ack {
            _ if pending.is_silent() => {
                pending.deadline = Tick(pending.sent.0 + desk.setup.plan.limits.settle_ns);
                self.send(desk, pending, request);
            }
            Ack::Silence => self.session.act(pending.sent, pending.token, request, &mut desk.fx),
            _ => self.send(desk, pending, request),
        }
        desk.text = said;
    }

    /// Changes the presence to one that nobody is owed.
    fn show<N: Net>(&mut self, desk: &mut Desk<N>, pending: Pending, text: Option<&Text>) {
        let status = match text {
            Some(Text::Lines(lines)) => lines.first().map_or("", String::as_str),
            _ => "",
        };
        self.send(desk, pending, Request::Presence { list: None, status });
    }

    /// Takes a name that nobody had before in this run.
    fn rename<N: Net>(&mut self, desk: &mut Desk<N>, pending: Pending, room: RoomName<'_>) {
        let (name, _) = self.account(desk);
        let nick = format!("{name}-{}", pending.token.0);
        desk.setup.board.bump(room.id, desk.setup.source, Cell::JoinsBegun);
        if let Some(stay) = self.stay(room.id) {
            stay.renamed();
        }
        self.send(desk, pending, Request::Rename { room, nick: &nick });
    }

    /// Numbers what is about to be sent, and stamps it.
    fn stamp<N: Net>(&self, desk: &mut Desk<N>, kind: Kind, pending: &mut Pending) -> Stamp {
        pending.number = desk.windows.number(kind, pending.room, pending.sent);
        Stamp {
            run: desk.setup.run,
            room: pending.room,
            source: desk.setup.source,
            number: pending.number,
            person: self.id,
            intended: pending.intended,
            sent: pending.sent,
        }
    }

    fn begin_leave<N: Net>(&mut self, desk: &mut Desk<N>, room: RoomId) {
        desk.setup.board.bump(room, desk.setup.source, Cell::LeavesBegun);
        let (board, is_stamped) = (desk.setup.board.clone(), desk.is_stamped());
        let source = desk.setup.source;
        if let Some(stay) = self.stay(room) {
            stay.leaving(&board, source, is_stamped);
        }
    }

    /// Settles a stay: what was owed, what came.
    pub(super) fn end_stay<N: Net>(&mut self, desk: &mut Desk<N>, at: usize) {
        let mut stay = self.stays.swap_remove(at);
        desk.gauges.seats -= u64::from(stay.is_joined());
        let is_seen = desk.setup.plan.list(stay.room()).is_none_or(|list| list.is_roster);
        let (is_stamped, is_told) = (desk.is_stamped(), desk.is_told_in_words());
        let counters = &mut desk.interval.counters;
        stay.settle(&desk.setup.board, desk.setup.source, is_stamped, counters);
        if is_told && is_seen {
            stay.expect_presences(&desk.setup.board, counters);
        }
    }

    pub(super) fn stay(&mut self, room: RoomId) -> Option<&mut Stay> {
        self.stays.iter_mut().find(|stay| stay.room() == room)
    }

    fn account<N: Net>(&self, desk: &Desk<N>) -> (String, String) {
        let crowd = desk.run_phase(self.phase).crowd as usize;
        desk.setup.accounts.account_in_turn(
            crowd,
            self.index,
            self.turn,
            desk.run_phase(self.phase).count,
        )
    }

    fn patience_ns<N: Net>(&self, desk: &Desk<N>, measure: Measure) -> u64 {
        let limits = &desk.setup.plan.limits;
        match measure {
            Measure::Login => limits.login_ns,
            _ => limits.request_ns,
        }
    }
}

/// Pushes without room to spare: most people have one of a thing, and there are many people.
fn push_exact<T>(items: &mut Vec<T>, item: T) {
    if items.len() == items.capacity() {
        items.reserve_exact(1);
    }
    items.push(item);
}

/// Requests that carry nothing but a room.
fn plain_request(measure: Measure, room: RoomName<'_>, limit: u32) -> Option<Request<'_>> {
    Some(match measure {
        Measure::History => Request::History { room, limit },
        Measure::Members => Request::Members { room },
        Measure::Typing => Request::Typing { room },
        Measure::Read => Request::Read { room },
        Measure::Ping => Request::Ping,
        Measure::Befriend => Request::Befriend { list: room },
        _ => return None,
    })
}
