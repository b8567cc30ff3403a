//! A limit on purpose: so many deliveries a second and no more, in the order they were said.
//!
//! A message is in its room's logs at once, so that who joins later does not get it; how far the
//! logs may be sent is what the throttle decides. A message goes out to its whole room at a time,
//! and then the next one waits as long as its deliveries take at the rate allowed. What waits is
//! bounded like everything a member has yet to be sent: by its lag.

use std::collections::VecDeque;

use crate::core::Core;

const NS_PER_S: u64 = 1_000_000_000;

/// Messages that wait for their turn.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// Deliveries per second; 0 is no limit.
    rate: u64,
    /// Room and receivers of each message, oldest first.
    waiting: VecDeque<(u32, u32)>,
    /// When the next message may go, in nanoseconds since the start.
    free_at_ns: u64,
}

impl Throttle {
    pub(crate) fn new(rate: u64) -> Throttle {
        Throttle { rate, waiting: VecDeque::new(), free_at_ns: 0 }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.rate > 0
    }

    /// When the next message is due.
    pub(crate) fn next_due_us(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then(|| self.free_at_ns.div_ceil(1_000))
    }

    /// A message waits for its turn.
    pub(crate) fn push(&mut self, room: u32, receivers: u32, now_us: u64) {
        if self.waiting.is_empty() {
            // What was not used while nothing waited is lost.
            self.free_at_ns = self.free_at_ns.max(now_us * 1_000);
        }
        self.waiting.push_back((room, receivers));
    }

    /// The room whose oldest waiting message may go now. `present` tells how many are in a room:
    /// deliveries to those who are gone are not made.
    fn pop(&mut self, now_us: u64, present: impl Fn(u32) -> u32) -> Option<u32> {
        if self.next_due_us()? > now_us {
            return None;
        }
        let (room, receivers) = self.waiting.pop_front()?;
        let deliveries = u64::from(receivers.min(present(room)));
        self.free_at_ns += deliveries * NS_PER_S / self.rate;
        Some(room)
    }
}

impl Core {
    /// Lets go what the throttle allows by now.
    pub(crate) fn release_throttled(&mut self, now_us: u64) {
        let rooms = &self.rooms;
        let present = |room: u32| rooms[room as usize].len() as u32;
        let mut released = Vec::new();
        while let Some(room) = self.throttle.pop(now_us, present) {
            released.push(room);
        }
        for room in released {
            self.rooms[room as usize].waiting.pop_front();
            self.mark(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_at_the_rate_whenever_they_are_looked_for() {
        for (rate, receivers, look_every_us) in
            [(1_000, 10, 1_000), (1_000, 1, 37), (30_000, 7, 10_000), (5, 3, 100), (333, 1, 1)]
        {
            let mut throttle = Throttle::new(rate);
            let start_us = 5_000_000;
            (0..400).for_each(|_| throttle.push(0, receivers, start_us));
            let (mut now_us, mut gone) = (start_us, 0);
            while throttle.next_due_us().is_some() {
                while throttle.pop(now_us, |_| 1_000).is_some() {
                    gone += u64::from(receivers);
                }
                let allowed = rate * (now_us - start_us) / 1_000_000 + u64::from(receivers);
                let late = rate * look_every_us / 1_000_000 + 1 + u64::from(receivers);
                assert!(gone <= allowed, "{rate}/s: {gone} of {allowed}");
                assert!(gone == 400 * u64::from(receivers) || gone + late >= allowed, "{rate}/s");
                now_us += look_every_us;
            }
        }
    }

    #[test]
    fn idle_time_is_no_credit_and_the_gone_cost_nothing() {
        let mut throttle = Throttle::new(10);
        throttle.push(0, 1, 1_000_000);
        assert_eq!(throttle.pop(1_000_000, |_| 5), Some(0));
        throttle.push(1, 1, 60_000_000);
        throttle.push(2, 1, 60_000_000);
        throttle.push(3, 1, 60_000_000);
        assert_eq!(throttle.pop(60_000_000, |_| 0), Some(1));
        assert_eq!(throttle.pop(60_000_000, |_| 5), Some(2));
        assert_eq!(throttle.pop(60_000_000, |_| 5), None);
        assert_eq!(throttle.next_due_us(), Some(60_100_000));
    }
}
