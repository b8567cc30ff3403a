//! A timer wheel: a million timers at the cost of a few, each firing to the nanosecond.
//!
//! Far timers wait in slots of three levels (1 ms, 268 ms, 69 s wide); when their millisecond
//! comes they move to a small heap that orders them exactly. Timers are never cancelled: whoever
//! owns one remembers what it wants and ignores what is stale.

use model::Tick;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Width of a slot of each level, as a power of two of nanoseconds.
const SHIFTS: [u32; 3] = [20, 28, 36];
/// Slots of a level.
const SLOTS: u64 = 256;

type Timer = (Tick, u32);

/// Timers of a shard. The `u32` is whatever the owner wants back.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The millisecond up to which slots have been emptied.
    reached: u64,
    soon: BinaryHeap<Reverse<Timer>>,
    levels: [Vec<Vec<Timer>>; 3],
    /// Timers beyond the last level (more than 4.9 hours away).
    far: Vec<Timer>,
    waiting: usize,
}

impl Wheel {
    /// An empty wheel at the epoch.
    pub(crate) fn new() -> Wheel {
        let level = || (0..SLOTS).map(|_| Vec::new()).collect();
        Wheel {
            reached: 0,
            soon: BinaryHeap::new(),
            levels: [level(), level(), level()],
            far: Vec::new(),
            waiting: 0,
        }
    }

    /// Sets a timer.
    pub(crate) fn set(&mut self, due: Tick, owner: u32) {
        let now = self.reached << SHIFTS[0];
        if due.0 >> SHIFTS[0] <= self.reached {
            self.soon.push(Reverse((due, owner)));
            return;
        }
        self.waiting += 1;
        for (level, shift) in SHIFTS.iter().enumerate() {
            if (due.0 >> shift) - (now >> shift) < SLOTS {
                let slot = (due.0 >> shift) % SLOTS;
                self.levels[level][slot as usize].push((due, owner));
                return;
            }
        }
        self.far.push((due, owner));
    }

    /// The next timer that is due at `now`, earliest first.
    pub(crate) fn pop(&mut self, now: Tick) -> Option<Timer> {
        self.advance(now);
        match self.soon.peek() {
            Some(Reverse((due, _))) if *due <= now => self.soon.pop().map(|Reverse(timer)| timer),
            _ => None,
        }
    }

    /// A time by which to ask again: no timer fires before it.
    pub(crate) fn next(&self) -> Tick {
        if let Some(Reverse((due, _))) = self.soon.peek() {
            return *due;
        }
        if self.waiting == 0 {
            return Tick::NEVER;
        }
        // The first occupied slot of the finest level, or the next turn of the one above.
        let turn = (self.reached / SLOTS + 1) * SLOTS;
        let slot = (self.reached + 1..turn)
            .find(|slot| !self.levels[0][(slot % SLOTS) as usize].is_empty())
            .unwrap_or(turn);
        Tick(slot << SHIFTS[0])
    }

    fn advance(&mut self, now: Tick) {
        let goal = now.0 >> SHIFTS[0];
        if self.waiting == 0 {
            self.reached = self.reached.max(goal);
            return;
        }
        while self.reached < goal {
            self.reached += 1;
            if self.reached.is_multiple_of(SLOTS) {
                self.cascade();
            }
            let slot = &mut self.levels[0][(self.reached % SLOTS) as usize];
            self.waiting -= slot.len();
            self.soon.extend(slot.drain(..).map(Reverse));
        }
    }

    /// Deals the coarser slots that begin now out to finer ones.
    fn cascade(&mut self) {
        let now = self.reached << SHIFTS[0];
        if now.trailing_zeros() >= SHIFTS[2] {
            if (now >> SHIFTS[2]).is_multiple_of(SLOTS) {
                let far = std::mem::take(&mut self.far);
                self.deal(far);
            }
            let slot = ((now >> SHIFTS[2]) % SLOTS) as usize;
            let timers = std::mem::take(&mut self.levels[2][slot]);
            self.deal(timers);
        }
        let slot = ((now >> SHIFTS[1]) % SLOTS) as usize;
        let timers = std::mem::take(&mut self.levels[1][slot]);
        self.deal(timers);
    }

    fn deal(&mut self, timers: Vec<Timer>) {
        self.waiting -= timers.len();
        for (due, owner) in timers {
            self.set(due, owner);
        }
    }
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rng;

    /// Whatever is set when, everything fires in order, never early, and never forgotten.
    #[test]
    fn every_timer_fires_once_in_order() {
        for seed in 0..40 {
            check(seed, 37);
        }
        check(40, 45);
    }

    fn check(seed: u64, bits_max: u64) {
        {
            let mut rng = Rng::new(seed, 0);
            let (mut wheel, mut now) = (Wheel::new(), Tick(rng.below(1 << 36)));
            let mut want = Vec::new();
            let mut got = Vec::new();
            for round in 0..150u32 {
                for _ in 0..rng.below(20) {
                    let bits = rng.between(1, bits_max);
                    let due = Tick(now.0 + rng.below(1 << bits));
                    wheel.set(due, round);
                    want.push((due, round));
                }
                while let Some(timer) = wheel.pop(now) {
                    assert!(timer.0 <= now, "seed {seed}: early");
                    got.push(timer);
                }
                let next = wheel.next();
                assert!(next > now, "seed {seed}: a due timer did not fire");
                let earliest = want.iter().filter(|t| t.0 > now).map(|t| t.0).min();
                assert!(earliest.is_none_or(|due| next <= due), "seed {seed}: would be late");
                let bits = rng.between(1, bits_max - 7);
                now = Tick(now.0 + rng.below(1 << bits));
            }
            let end = Tick(now.0 + (2 << bits_max));
            while let Some(timer) = wheel.pop(end) {
                got.push(timer);
            }
            want.sort();
            got.sort();
            assert_eq!(got, want, "seed {seed}");
            assert_eq!(wheel.next(), Tick::NEVER);
        }
    }
}
