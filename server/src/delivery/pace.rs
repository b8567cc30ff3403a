//! When rooms flush: at once while flushes take little time, and the later the more they take.
//!
//! What counts is the share of all rooms' flushes in the time that has just gone by: a thousand
//! rooms that each flush a little are as much work as one that flushes a lot. Below `SHARE_IDLE`
//! nothing waits. From there a room's next flush starts the longer after its last one, up to the
//! window at `SHARE_BUSY`. A room that has not flushed for as long as the window never waits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::config::{Config, FLUSH_BYTES_MAX, Flush};
use crate::core::Core;

/// Up to this share of the time in flushes nothing waits.
const SHARE_IDLE: f64 = 0.125;
/// From this share on rooms wait for the whole window.
const SHARE_BUSY: f64 = 0.5;
/// How far back the share looks: time constant of its average, in microseconds.
const MEMORY_US: f64 = 100_000.0;
/// The poller wakes up this much late at worst, in microseconds: it counts in milliseconds.
const POLL_GRAIN_US: u64 = 1_000;
/// In place of the time of a room's last flush: it is not to wait.
const AT_ONCE: u64 = 0;

/// The rooms that have something to flush, and how busy flushes are.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Longest pause between two flushes of a room.
    pause_max_us: u64,
    /// Share of the time that flushes took, as of `seen_us`.
    share: f64,
    seen_us: u64,
    /// The time of each room's last flush, or [`AT_ONCE`], and its number. All rooms pause for the
    /// same time, so that the one that flushed first is due first.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Pace {
    pub(crate) fn new(config: &Config) -> Pace {
        let window_us = match config.flush {
            Flush::Turn => u64::try_from(config.flush_window.as_micros()).unwrap_or(u64::MAX),
            Flush::Message => 0,
        };
        let pause_max_us = window_us - POLL_GRAIN_US.min(window_us / 2);
        Pace { pause_max_us, share: 0.0, seen_us: 0, waiting: BinaryHeap::new() }
    }

    /// How long rooms pause between two flushes as of now.
    fn pause_us(&self, now_us: u64) -> u64 {
        let idle_us = now_us.saturating_sub(self.seen_us) as f64;
        let share = self.share * MEMORY_US / (MEMORY_US + idle_us);
        let wish = ((share - SHARE_IDLE) / (SHARE_BUSY - SHARE_IDLE)).clamp(0.0, 1.0);
        (self.pause_max_us as f64 * wish) as u64
    }

    /// Flushes took from `start_us` to `end_us`.
    fn spent(&mut self, start_us: u64, end_us: u64) {
        let passed_us = end_us.saturating_sub(self.seen_us) as f64;
        let busy_us = end_us.saturating_sub(start_us) as f64;
        self.share = (self.share * MEMORY_US + busy_us.min(passed_us)) / (MEMORY_US + passed_us);
        self.seen_us = end_us;
    }

    fn due_us(&self, flushed_at_us: u64, now_us: u64) -> u64 {
        if flushed_at_us == AT_ONCE {
            return AT_ONCE;
        }
        flushed_at_us.saturating_add(self.pause_us(now_us))
    }

    /// When the next room is due, if one has something to flush.
    pub(crate) fn next_due_us(&self, now_us: u64) -> Option<u64> {
        let Reverse((flushed_at_us, _)) = *self.waiting.peek()?;
        Some(self.due_us(flushed_at_us, now_us))
    }

    /// Whether no room has anything to flush.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the next room that is due; all are where nothing may wait.
    fn pop(&mut self, now_us: u64, is_hasty: bool) -> Option<(u64, u32)> {
        if !is_hasty && self.next_due_us(now_us)? > now_us {
            return None;
        }
        self.waiting.pop().map(|Reverse(entry)| entry)
    }
}

/// Where a room stands with its flushes.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// When the room last flushed; at 0 it never has.
    flushed_at_us: u64,
    /// Its entry among those that wait; others of its number are out of date.
    entry: Option<u64>,
}

impl Core {
    /// The room has something to flush.
    pub(crate) fn mark(&mut self, number: u32) {
        let room = &mut self.rooms[number as usize];
        let is_much = room.bytes_waiting() >= FLUSH_BYTES_MAX;
        let entry = if is_much { AT_ONCE } else { room.turn.flushed_at_us };
        if room.turn.entry.is_none_or(|now| entry < now) {
            room.turn.entry = Some(entry);
            self.pace.waiting.push(Reverse((entry, number)));
        }
    }

    /// Flushes the rooms that are due.
    pub(crate) fn flush_rooms(&mut self, now_us: u64, world: &mut impl crate::core::World) {
        let mut start_us = None;
        let mut end_us = now_us;
        while let Some((entry, number)) = self.pace.pop(now_us, self.stopping) {
            if self.rooms[number as usize].turn.entry != Some(entry) {
                continue;
            }
            start_us.get_or_insert_with(|| world.now_us());
            self.flush_room(number, world);
            end_us = world.now_us();
            self.rooms[number as usize].turn = Turn { flushed_at_us: end_us, entry: None };
        }
        if let Some(start_us) = start_us {
            self.pace.spent(start_us, end_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pace(window_ms: u64) -> Pace {
        let flush_window = Duration::from_millis(window_ms);
        Pace::new(&Config { flush_window, ..Config::default() })
    }

    /// Flushes that take `busy_us` of every `period_us`, for a second; the pause they come to.
    fn pause_after(busy_us: u64, period_us: u64) -> u64 {
        let mut pace = pace(21);
        let mut now_us = 0;
        while now_us < 1_000_000 {
            now_us += period_us;
            pace.spent(now_us - busy_us, now_us);
        }
        pace.pause_us(now_us)
    }

    #[test]
    fn the_pause_grows_with_the_share_whatever_the_flushes_are_made_of() {
        for period_us in [100, 1_000, 5_000] {
            let row = [0, 10, 20, 30, 40, 55, 80, 100]
                .map(|percent| pause_after(period_us * percent / 100, period_us));
            assert_eq!((row[0], row[1], row[5], row[7]), (0, 0, 20_000, 20_000), "{period_us} us");
            assert!(row.is_sorted() && row[2] > 2_000 && row[4] < 17_000, "{row:?}");
        }
    }

    #[test]
    fn what_was_is_forgotten() {
        let mut pace = pace(20);
        pace.spent(0, 3_000_000);
        assert_eq!(pace.pause_us(3_000_000), 19_000);
        assert!(pace.pause_us(3_200_000) < 12_000);
        assert_eq!(pace.pause_us(4_000_000), 0);
    }

    #[test]
    fn windows_shorter_than_the_pollers_grain_are_half_used() {
        let most = |window_us| {
            let flush_window = Duration::from_micros(window_us);
            Pace::new(&Config { flush_window, ..Config::default() }).pause_max_us
        };
        assert_eq!([0, 1, 1_000, 2_000, 20_000].map(most), [0, 1, 500, 1_000, 19_000]);
        let message = Config { flush: Flush::Message, ..Config::default() };
        assert_eq!(Pace::new(&message).pause_max_us, 0);
    }
}
