//! What all people of a shard share: network, timers, ledger marks, and the records of this second.

use super::window::Windows;
use super::{Setup, Status};
use crate::net::{Net, Slot};
use crate::wheel::Wheel;
use model::{
    Effects, Fault, FaultClass, Interval, Manners, Measure, PhaseKind, Program, Record, Rng,
    RunPhase, StageTally, Stats, Tally, Tick, What,
};
use std::collections::{BTreeMap, BTreeSet};

/// A message handed to the socket later than this after it was due is late: ten times what a
/// healthy shard needs for a whole turn.
pub(super) const LATE_NS: u64 = 10_000_000;

/// Most people of a shard who are audited for order at a time.
const AUDITED_MAX: u32 = 64;
/// Most senders whose order one audited person follows.
pub(super) const AUDITED_SENDERS_MAX: usize = 32_768;

/// What all people of a shard share.
pub(super) struct Desk<N> {
    pub(super) setup: Setup,
    pub(super) net: N,
    pub(super) wheel: Wheel,
    pub(super) fx: Effects,
    pub(super) text: String,
    pub(super) windows: Windows,
    pub(super) interval: Interval,
    /// Kept beside the interval's other measures, since a delivery is the hot path.
    pub(super) deliveries: Stats,
    pub(super) announcements: Stats,
    pub(super) gauges: model::Gauges,
    phases: Vec<Option<PhaseDesk>>,
    gates: BTreeMap<(u32, u32), u64>,
    open: BTreeSet<(u32, u32)>,
    faults_told: BTreeSet<(Measure, FaultClass)>,
    records: Vec<Record>,
    has_news: bool,
    tokens: u32,
    pub(super) audited: u32,
    pub(super) manners: Manners,
    is_silent: bool,
    pub(super) late_ns: u64,
}

/// A phase that has begun.
struct PhaseDesk {
    tally: Tally,
    is_changed: bool,
    features: model::Features,
}

impl<N: Net> Desk<N> {
    pub(super) fn new(setup: Setup, net: N) -> Desk<N> {
        let rng = Rng::new(setup.plan.seed, 0xFACE_0000 | u64::from(setup.source));
        let second = (net.now().0 / 1_000_000_000) as u32;
        let manners = setup.protocol.manners(&setup.shared.options);
        let is_silent = !setup.protocol.announces(&setup.shared.options);
        let late_ns = setup.plan.limits.late_ns;
        Desk {
            windows: Windows::new(setup.board.clone(), setup.source, setup.plan.rooms.len()),
            fx: Effects::new(setup.run, rng),
            phases: setup.plan.phases.iter().map(|_| None).collect(),
            setup,
            net,
            wheel: Wheel::new(),
            text: String::new(),
            interval: Interval::new(second),
            deliveries: Stats::default(),
            announcements: Stats::default(),
            gauges: model::Gauges::default(),
            gates: BTreeMap::new(),
            open: BTreeSet::new(),
            faults_told: BTreeSet::new(),
            records: Vec::new(),
            has_news: false,
            tokens: 0,
            audited: 0,
            manners,
            is_silent,
            late_ns,
        }
    }

    pub(super) fn run_phase(&self, phase: u32) -> &RunPhase {
        match &self.setup.plan.phases[phase as usize].kind {
            PhaseKind::Run(run) => run,
            _ => unreachable!("people only belong to phases that bring people"),
        }
    }

    pub(super) fn program(&self, phase: u32) -> &Program {
        &self.setup.plan.crowds[self.run_phase(phase).crowd as usize].program
    }

    pub(super) fn features(&self, phase: u32) -> model::Features {
        self.phases[phase as usize].as_ref().map_or_else(Default::default, |p| p.features)
    }

    /// Whether people of that phase get in by joining (else by logging in).
    pub(super) fn has_join(&self, phase: u32) -> bool {
        self.program(phase).asks().any(|measure| measure == Measure::Join)
    }

    pub(super) fn begin(&mut self, phase: u32, asked: u64) {
        let run = self.run_phase(phase);
        let stages = self.program(phase).stages.iter();
        let tally = Tally {
            phase: self.setup.plan.phases[phase as usize].name.clone(),
            asked,
            stages: stages
                .map(|name| StageTally { name: name.clone(), ..StageTally::default() })
                .collect(),
            ..Tally::default()
        };
        let known = self.setup.protocol.facts().features;
        let bits = run
            .features
            .iter()
            .filter_map(|name| known.iter().position(|(known, _)| known == name))
            .fold(0, |bits, index| bits | 1 << index);
        let features = model::Features(bits);
        self.phases[phase as usize] = Some(PhaseDesk { tally, is_changed: true, features });
        self.has_news = true;
    }

    pub(super) fn arrival(&mut self, phase: u32, due: Tick, now: Tick) {
        self.interval.counters.arrivals_due += 1;
        self.interval.lag.record(now.ns_since(due));
        let tally = self.tally(phase);
        tally.arrived += 1;
        tally.arrival_lag_ns_max = tally.arrival_lag_ns_max.max(now.ns_since(due));
        Tally::widen(&mut tally.arriving, now);
    }

    /// A phase's tally, to be changed by something the conductor may wait for.
    pub(super) fn tally(&mut self, phase: u32) -> &mut Tally {
        self.has_news = true;
        self.plain_tally(phase)
    }

    /// A phase's tally, to be changed by what is told once a second, since nothing depends on it.
    pub(super) fn plain_tally(&mut self, phase: u32) -> &mut Tally {
        let desk = self.phases[phase as usize].as_mut().expect("people's phases have begun");
        desk.is_changed = true;
        &mut desk.tally
    }

    pub(super) fn token(&mut self) -> model::Token {
        self.tokens = self.tokens.wrapping_add(1);
        model::Token(self.tokens)
    }

    /// Whether that person is to be audited for order: one in so many, up to a limit, since the
    /// audit remembers every sender.
    pub(super) fn audits(&mut self, id: model::PersonId) -> bool {
        let one_in = self.setup.plan.limits.audit_one_in.max(1);
        let is_audited = id.is_multiple_of(one_in) && self.audited < AUDITED_MAX;
        self.audited += u32::from(is_audited);
        is_audited
    }

    /// Counts a failure, and tells the first of its kind in words.
    pub(super) fn fault(&mut self, measure: Measure, fault: &Fault) {
        self.interval.fault(measure, fault.class);
        if self.faults_told.insert((measure, fault.class)) {
            let (class, detail) = (fault.class, fault.detail.clone());
            let what = What::Fault { measure, class, detail };
            self.records.push(Record { at: self.net.now(), what });
            self.has_news = true;
        }
    }

    /// Somebody reached a gate; `true` if it is open.
    pub(super) fn reach_gate(&mut self, phase: u32, gate: u32) -> bool {
        let is_open = self.open.contains(&(phase, gate));
        if !is_open {
            *self.gates.entry((phase, gate)).or_default() += 1;
            self.has_news = true;
        }
        is_open
    }

    /// Somebody who waited at a gate has gone away.
    pub(super) fn quit_gate(&mut self, phase: u32, gate: u32) {
        if let Some(waiting) = self.gates.get_mut(&(phase, gate)) {
            *waiting = waiting.saturating_sub(1);
            self.has_news = true;
        }
    }

    pub(super) fn open_gate(&mut self, phase: u32, gate: u32) {
        self.open.insert((phase, gate));
        self.gates.remove(&(phase, gate));
    }

    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    /// What is new since the last status, if anything is.
    pub(super) fn status(&mut self) -> Option<Status> {
        if !std::mem::take(&mut self.has_news) {
            return None;
        }
        let changed = self.phases.iter_mut().enumerate().filter_map(|(index, desk)| {
            let desk = desk.as_mut()?;
            let is_changed = std::mem::take(&mut desk.is_changed);
            is_changed.then(|| (index as u32, desk.tally.clone()))
        });
        Some(Status {
            source: self.setup.source,
            tallies: changed.collect(),
            gates: self.gates.clone(),
            records: std::mem::take(&mut self.records),
            populations: BTreeMap::new(),
        })
    }

    /// Closes the current second and opens the next.
    pub(super) fn take_interval(&mut self) -> Interval {
        self.has_news |= self.phases.iter().flatten().any(|phase| phase.is_changed);
        let next = Interval::new(self.interval.second + 1);
        let mut interval = std::mem::replace(&mut self.interval, next);
        interval.gauges = self.gauges;
        interval.counters.foreign += std::mem::take(&mut self.fx.foreign);
        let hot = [
            (Measure::Delivery, &mut self.deliveries),
            (Measure::Announcement, &mut self.announcements),
        ];
        for (measure, stats) in hot {
            if stats.done > 0 {
                interval.measures.insert(measure, std::mem::take(stats));
            }
        }
        interval
    }

    pub(super) fn windows_expire(&mut self, now: Tick) {
        let limits = &self.setup.plan.limits;
        let patience = match self.manners.ack {
            model::Ack::Silence => limits.settle_ns,
            _ => limits.request_ns.max(limits.settle_ns) + 1_000_000_000,
        };
        self.windows.age(Tick(now.0.saturating_sub(patience)));
    }

    /// Whether joins carry stamps, so that announcements are accounted for like messages.
    pub(super) fn is_stamped(&self) -> bool {
        self.manners.stamped_joins
    }

    /// Whether joins of that room are: who joins a list is announced to nobody.
    pub(super) fn stamps_joins_of(&self, room: model::RoomId) -> bool {
        self.is_stamped() && self.setup.plan.list(room).is_none()
    }

    /// Whether the target announces people in its own words, which are counted.
    pub(super) fn is_told_in_words(&self) -> bool {
        !self.is_stamped() && !self.is_silent
    }

    /// Sends what the session has written; the bytes are counted when the socket has them.
    pub(super) fn flush(&mut self, slot: Slot) -> Result<(), Fault> {
        if self.fx.out.is_empty() {
            return Ok(());
        }
        self.interval.counters.bytes_out += self.fx.out.len() as u64;
        let result = self.net.send(slot, &self.fx.out);
        self.fx.out.clear();
        result
    }
}
