//! The ledger: who was owed which message, and who got it.
//!
//! Messages are numbered without gaps for each (room, source), a source being the shard that
//! sends. Two marks of a source are public: `numbered` (the next number) and `settled` (all
//! below were acknowledged or given up). A person's [`Seat`] in a room compares what arrived
//! with these marks as they stood at four instants:
//!
//! ```text
//!            join begins     join done                leave begins
//!                 |              |                         |
//!   not owed      |   optional   |          owed           |   optional
//!  ---------------+--------------+-------------------------+------------> numbers
//!          settled(begin)  numbered(done)             settled(leave)
//! ```
//!
//! A message whose sending overlaps the receiver's own join or leave may or may not arrive, and
//! either is right. While all is well the numbers received from a source form one range: sixteen
//! bytes, however long the run.

use crate::stamp::{RoomId, SourceId};

/// Ranges of numbers a track remembers before it takes the oldest gap for lost.
pub const GAPS_MAX: usize = 65_536;

/// What a message of a source means to a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// Owed and received, for the first time.
    Owed,
    /// Not owed, but rightly received, for the first time.
    Optional,
    /// Received before.
    Duplicate,
    /// Neither owed nor possibly still in flight.
    Unexpected,
}

/// What a settled stay amounts to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// Messages that were owed.
    pub expected: u64,
    /// Of these: never received.
    pub lost: u64,
}

/// A set of numbers that stays small while they come in order.
#[derive(Clone, Debug, Default)]
struct Ranges {
    /// The highest range, `low..high`: where the next number usually goes.
    low: u32,
    high: u32,
    /// The ranges below, ascending and apart from each other.
    #[allow(clippy::box_collection, reason = "a healthy track has none: 8 bytes instead of 24")]
    below: Option<Box<Vec<(u32, u32)>>>,
}

impl Ranges {
    /// Adds a number; `false` if it was there.
    fn insert(&mut self, number: u32) -> bool {
        if number == self.high && self.low < self.high {
            self.high += 1;
            return true;
        }
        self.insert_elsewhere(number)
    }

    #[cold]
    fn insert_elsewhere(&mut self, number: u32) -> bool {
        if self.low == self.high {
            (self.low, self.high) = (number, number + 1);
            return true;
        }
        if number > self.high {
            let top = (self.low, self.high);
            self.below.get_or_insert_default().push(top);
            (self.low, self.high) = (number, number + 1);
            self.forget_oldest_gap();
            return true;
        }
        if number >= self.low {
            return false;
        }
        if number + 1 == self.low {
            self.low = number;
            self.join_top();
            return true;
        }
        self.insert_below(number)
    }

    /// Inserts into the lower ranges; the caller has ruled out the highest and its neighbor.
    fn insert_below(&mut self, number: u32) -> bool {
        let below = self.below.get_or_insert_default();
        let at = below.partition_point(|&(_, high)| high < number);
        match below.get_mut(at) {
            Some(&mut (low, high)) if low <= number && number < high => return false,
            Some(range) if range.1 == number => {
                range.1 += 1;
                let grown = range.1;
                if below.get(at + 1).is_some_and(|next| next.0 == grown) {
                    below[at].1 = below[at + 1].1;
                    below.remove(at + 1);
                }
            }
            Some(range) if range.0 == number + 1 => range.0 = number,
            _ => below.insert(at, (number, number + 1)),
        }
        self.join_top();
        self.forget_oldest_gap();
        true
    }

    fn join_top(&mut self) {
        let Some(below) = &mut self.below else { return };
        if below.last().is_some_and(|&(_, high)| high == self.low) {
            self.low = below.pop().map_or(self.low, |(low, _)| low);
        }
        if below.is_empty() {
            self.below = None;
        }
    }

    fn forget_oldest_gap(&mut self) {
        if let Some(below) = self.below.as_mut().filter(|below| below.len() > GAPS_MAX) {
            below[1].0 = below[1].0.max(below[0].1);
            below.remove(0);
        }
    }

    /// How many numbers of `from..to` are in the set.
    fn count_within(&self, from: u32, to: u32) -> u64 {
        let overlap =
            |&(low, high): &(u32, u32)| u64::from(high.min(to).saturating_sub(low.max(from)));
        let below = self.below.iter().flat_map(|below| below.iter());
        below.map(overlap).sum::<u64>() + overlap(&(self.low, self.high))
    }
}

/// One source's messages, as one seat sees them.
#[derive(Clone, Debug)]
struct Track {
    optional_from: u32,
    owed_from: u32,
    owed_to: u32,
    seen: Ranges,
}

/// One person's stay in one room.
#[derive(Clone, Debug)]
pub struct Seat {
    room: RoomId,
    tracks: Box<[Track]>,
}

impl Seat {
    /// A stay whose join begins now; `settled` are the sources' marks of that room, in order.
    pub fn joining(room: RoomId, settled: impl Iterator<Item = u32>) -> Seat {
        let track = |settled| Track {
            optional_from: settled,
            owed_from: u32::MAX,
            owed_to: u32::MAX,
            seen: Ranges::default(),
        };
        Seat { room, tracks: settled.map(track).collect() }
    }

    /// The room.
    pub fn room(&self) -> RoomId {
        self.room
    }

    /// The join is done: what the sources number from now on is owed.
    pub fn joined(&mut self, numbered: impl Iterator<Item = u32>) {
        for (track, numbered) in self.tracks.iter_mut().zip(numbered) {
            track.owed_from = numbered;
        }
    }

    /// Whether the join is done.
    pub fn is_joined(&self) -> bool {
        self.tracks.iter().all(|track| track.owed_from != u32::MAX)
    }

    /// The leave begins: what the sources have not settled by now is no longer owed.
    pub fn leaving(&mut self, settled: impl Iterator<Item = u32>) {
        for (track, settled) in self.tracks.iter_mut().zip(settled) {
            track.owed_to = track.owed_to.min(settled);
        }
    }

    /// Message `number` of `source` arrived.
    pub fn receive(&mut self, source: SourceId, number: u32) -> Receipt {
        let Some(track) = self.tracks.get_mut(usize::from(source)) else {
            return Receipt::Unexpected;
        };
        if number < track.optional_from {
            return Receipt::Unexpected;
        }
        if !track.seen.insert(number) {
            return Receipt::Duplicate;
        }
        match (track.owed_from..track.owed_to).contains(&number) {
            true => Receipt::Owed,
            false => Receipt::Optional,
        }
    }

    /// What the stay amounts to, for each source. [`Seat::leaving`] must have been called.
    pub fn settle(&self) -> impl Iterator<Item = Settlement> + '_ {
        self.tracks.iter().map(|track| {
            let expected = u64::from(track.owed_to.saturating_sub(track.owed_from));
            let received = match expected {
                0 => 0,
                _ => track.seen.count_within(track.owed_from, track.owed_to),
            };
            Settlement { expected, lost: expected - received }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use std::collections::BTreeSet;

    /// Whatever is dropped, repeated and shuffled, the seat reports exactly that.
    #[test]
    fn the_settlement_is_exact_whatever_the_order() {
        for seed in 0..400 {
            let mut rng = Rng::new(seed, 0);
            let (begin, done) = (rng.below(20) as u32, 20 + rng.below(20) as u32);
            let leave = done + rng.below(300) as u32;
            let mut seat = Seat::joining(0, [begin].into_iter());
            let mut arrivals = Vec::new();
            for number in 0..leave + 10 {
                for _ in 0..[0, 1, 1, 1, 2][rng.below(5) as usize] {
                    arrivals.push(number);
                }
            }
            for i in 0..arrivals.len() {
                let other = (i + rng.below(12) as usize).min(arrivals.len() - 1);
                arrivals.swap(i, other);
            }
            seat.joined([done].into_iter());
            let mut seen = BTreeSet::new();
            for &number in &arrivals {
                let want = match number {
                    n if n < begin => Receipt::Unexpected,
                    n if !seen.insert(n) => Receipt::Duplicate,
                    n if n < done => Receipt::Optional,
                    _ => Receipt::Owed,
                };
                assert_eq!(seat.receive(0, number), want, "seed {seed} number {number}");
            }
            seat.leaving([leave].into_iter());
            let lost = (done..leave).filter(|n| !seen.contains(n)).count() as u64;
            let want = Settlement { expected: u64::from(leave - done), lost };
            assert_eq!(seat.settle().collect::<Vec<_>>(), [want], "seed {seed}");
        }
    }

    #[test]
    fn a_healthy_stay_needs_no_memory_however_long() {
        let mut seat = Seat::joining(0, [5, 0].into_iter());
        seat.joined([7, 0].into_iter());
        for number in 7..1_000_000 {
            assert_eq!(seat.receive(0, number), Receipt::Owed);
        }
        assert!(seat.tracks.iter().all(|track| track.seen.below.is_none()));
        seat.leaving([1_000_000, 0].into_iter());
        let settled: Vec<_> = seat.settle().collect();
        assert_eq!(settled[0], Settlement { expected: 999_993, lost: 0 });
        assert_eq!(settled[1], Settlement { expected: 0, lost: 0 });
        assert!(std::mem::size_of::<Track>() <= 32);
    }

    #[test]
    fn gaps_are_bounded() {
        let mut seat = Seat::joining(0, [0].into_iter());
        seat.joined([0].into_iter());
        for number in (0..400_000).step_by(2) {
            seat.receive(0, number);
        }
        let gaps = seat.tracks[0].seen.below.as_ref().map_or(0, |below| below.len());
        assert_eq!(gaps, GAPS_MAX);
    }

    #[test]
    fn a_source_nobody_knows_is_unexpected() {
        let mut seat = Seat::joining(0, [0].into_iter());
        assert_eq!(seat.receive(3, 0), Receipt::Unexpected);
        assert!(!seat.is_joined());
    }
}
