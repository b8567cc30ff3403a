//! The one mergeable record: what a shard, a process or a whole run saw in one second.

use crate::{FaultClass, Histo, Measure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name { $($(#[$field_doc])* pub $field: u64,)+ }

        impl $name {
            /// Adds every field of `other`.
            pub fn merge(&mut self, other: &$name) {
                $(self.$field = self.$field.saturating_add(other.$field);)+
            }

            /// Every field with its name, in order.
            pub fn fields(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)+]
            }

            /// Sets the field of that name; `false` if there is none.
            pub fn set(&mut self, name: &str, value: u64) -> bool {
                match name { $(stringify!($field) => self.$field = value,)+ _ => return false }
                true
            }
        }
    };
}

counters! {
    /// What happened in the second, as counts.
    Counters {
        /// People whose arrival was due.
        arrivals_due,
        /// People who set out (dialed for the first time).
        arrivals,
        /// People who got in: through their first join, or their login if they join nothing.
        entered,
        /// People who came to the end of their journey.
        finished,
        /// People whose journey ended early, by a fault.
        gave_up,
        /// Messages that were due to be said.
        sends_due,
        /// Messages handed to a socket.
        sends,
        /// Messages handed to a socket more than 10 ms after they were due.
        sends_late,
        /// Stamped messages received by people in the room, first copies.
        deliveries,
        /// Of these: sent while the receiver was joining or leaving, so not owed.
        optional,
        /// Of these: more than the plan's `late` limit after they were sent.
        late,
        /// Of the deliveries audited for order: older than one already received of that sender.
        misordered,
        /// Deliveries audited for order.
        audited,
        /// Further copies of a message already received.
        duplicate,
        /// Stamped messages to somebody to whom they were not owed and could not be in flight.
        unexpected,
        /// Stamps of another run.
        foreign,
        /// Messages owed to people whose stay in a room has been settled.
        expected,
        /// Of these: never received.
        lost,
        /// Stamped announcements received, first copies.
        announcements,
        /// Of these: sent while the receiver was joining or leaving, so not owed.
        announcements_optional,
        /// Stamped announcements owed to people whose stay has been settled.
        announcements_expected,
        /// Of these: never received.
        announcements_lost,
        /// Further copies of an announcement already received.
        announcements_duplicate,
        /// Announcements in the target's own words (without a stamp): somebody came or went.
        presences,
        /// The least number of such announcements owed, for stays that have been settled.
        presences_expected_min,
        /// The greatest number of such announcements possible, for stays that have been settled.
        presences_expected_max,
        /// Bytes read from sockets.
        bytes_in,
        /// Bytes written to sockets.
        bytes_out,
        /// Reads from sockets that brought something.
        reads,
        /// Turns of shard loops.
        turns,
        /// Connections closed by the target without being asked.
        drops,
    }
}

counters! {
    /// How things stood at the end of the second. Gauges of different shards add up;
    /// gauges of different seconds do not.
    Gauges {
        /// Open connections.
        connected,
        /// People logged in.
        online,
        /// Stays in rooms (a person in two rooms counts twice).
        seats,
        /// Requests that wait for their answers.
        waiting,
    }
}

/// One measure in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Requests made (for deliveries: zero).
    pub asked: u64,
    /// Requests answered, or deliveries received.
    pub done: u64,
    /// Requests that failed, for whatever reason.
    pub failed: u64,
    /// done - intended: the corrected latency, free of coordinated omission.
    pub latency: Histo,
    /// done - sent: the service time, which hides what the sender could not send.
    pub service: Histo,
}

impl Stats {
    /// Adds everything `other` saw.
    pub fn merge(&mut self, other: &Stats) {
        self.asked = self.asked.saturating_add(other.asked);
        self.done = self.done.saturating_add(other.done);
        self.failed = self.failed.saturating_add(other.failed);
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
    }
}

/// How often a measure failed in each way.
pub type Faults = BTreeMap<Measure, BTreeMap<FaultClass, u64>>;

/// Everything seen in one second. `merge` is associative and commutative, so that a shard, a
/// worker process and a fleet are one and the same thing to whoever reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Which second since the run's epoch.
    pub second: u32,
    /// Counts.
    pub counters: Counters,
    /// Standings at the end of the second.
    pub gauges: Gauges,
    /// Measures that saw anything.
    pub measures: BTreeMap<Measure, Stats>,
    /// Failures by measure and class.
    pub faults: Faults,
    /// How late timers fired: the generator's own health.
    pub lag: Histo,
}

impl Interval {
    /// An empty second.
    pub fn new(second: u32) -> Interval {
        Interval { second, ..Interval::default() }
    }

    /// Adds everything `other` saw; the later of the two seconds is kept.
    pub fn merge(&mut self, other: &Interval) {
        self.second = self.second.max(other.second);
        self.counters.merge(&other.counters);
        self.gauges.merge(&other.gauges);
        for (&measure, stats) in &other.measures {
            self.measures.entry(measure).or_default().merge(stats);
        }
        for (&measure, classes) in &other.faults {
            let mine = self.faults.entry(measure).or_default();
            for (&class, count) in classes {
                let mine = mine.entry(class).or_default();
                *mine = mine.saturating_add(*count);
            }
        }
        self.lag.merge(&other.lag);
    }

    /// The measure's record, made if it is the first time.
    pub fn measure(&mut self, measure: Measure) -> &mut Stats {
        self.measures.entry(measure).or_default()
    }

    /// Counts one failure.
    pub fn fault(&mut self, measure: Measure, class: FaultClass) {
        self.measure(measure).failed += 1;
        *self.faults.entry(measure).or_default().entry(class).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn random(rng: &mut Rng) -> Interval {
        let mut interval = Interval::new(rng.below(5) as u32);
        for _ in 0..rng.below(40) {
            let measure = Measure::ALL[rng.below(Measure::COUNT as u64) as usize];
            let stats = interval.measure(measure);
            stats.asked += 1;
            stats.latency.record(rng.below(1 << 40));
            interval.fault(measure, FaultClass::ALL[rng.below(15) as usize]);
            interval.counters.deliveries += rng.below(9);
            interval.gauges.online += rng.below(9);
            interval.lag.record(rng.below(1 << 20));
        }
        interval
    }

    #[test]
    fn merge_is_associative_and_commutative() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed, 0);
            let (a, b, c) = (random(&mut rng), random(&mut rng), random(&mut rng));
            let sum = |parts: [&Interval; 3]| {
                let mut total = parts[0].clone();
                total.merge(parts[1]);
                total.merge(parts[2]);
                total
            };
            let mut right = b.clone();
            right.merge(&c);
            let mut nested = a.clone();
            nested.merge(&right);
            assert_eq!(sum([&a, &b, &c]), nested, "seed {seed}");
            assert_eq!(sum([&a, &b, &c]), sum([&c, &a, &b]), "seed {seed}");
        }
    }

    #[test]
    fn fields_can_be_set_by_their_names() {
        let mut counters = Counters::default();
        for (i, (name, _)) in Counters::default().fields().into_iter().enumerate() {
            assert!(counters.set(name, i as u64));
        }
        assert!(!counters.set("nonsense", 1));
        assert!(counters.fields().iter().enumerate().all(|(i, &(_, v))| v == i as u64));
    }
}
