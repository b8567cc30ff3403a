//! A population on the move: how many people a hold is to have now, on its way from one number to
//! the next. Pure: it is told the time.

use model::{Pacer, SourceId, Tick};
use std::collections::BTreeMap;

/// What whoever governs a population wants of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// As the timeline has it.
    #[default]
    AsPlanned,
    /// So many people; more than the phase sets aside are not to be had.
    People(u32),
    /// The phase is to end now.
    Enough,
}

/// How a population stands: what whoever governs it may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding<'a> {
    /// The phase's name.
    pub phase: &'a str,
    /// When it began, since the run's epoch.
    pub begun: Tick,
    /// How many people are asked for at this instant, on the way to what is wished.
    pub asked: u32,
    /// How many the shards last said are there, or on the way home.
    pub present: u64,
    /// Most people it may have.
    pub most: u32,
}

/// One hold's population.
#[derive(Debug)]
pub(crate) struct Population {
    pub(crate) begun: Tick,
    pub(crate) wish: Wish,
    pub(crate) is_over: bool,
    asked: u32,
    order: u32,
    /// Time that has not been spent on comings and goings yet, nanoseconds, and up to when.
    saved_ns: u64,
    looked: Tick,
    /// On the way to another number.
    is_moving: bool,
    /// By shard: the last order it has carried out, and how many of its people are there.
    shards: BTreeMap<SourceId, (u32, u64)>,
}

impl Population {
    pub(crate) fn new(begun: Tick) -> Population {
        Population {
            begun,
            wish: Wish::AsPlanned,
            is_over: false,
            asked: 0,
            order: 0,
            saved_ns: 0,
            looked: Tick::ZERO,
            is_moving: false,
            shards: BTreeMap::new(),
        }
    }

    /// A shard has told how its part stands.
    pub(crate) fn hear(&mut self, source: SourceId, standing: (u32, u64)) {
        self.shards.insert(source, standing);
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked
    }

    pub(crate) fn present(&self) -> u64 {
        self.shards.values().map(|(_, here)| here).sum()
    }

    /// Whether everybody was sent home and has gone.
    pub(crate) fn is_gone(&self, sources: u64) -> bool {
        let knows = |(order, here): &(u32, u64)| *order == self.order && *here == 0;
        let is_told = self.shards.len() as u64 >= sources && self.shards.values().all(knows);
        self.is_over && self.asked == 0 && (is_told || self.order == 0)
    }

    /// Moves towards what is wanted as fast as `pacer` allows: the new number and the order's,
    /// if it has changed.
    pub(crate) fn advance(&mut self, wanted: u32, pacer: &Pacer, now: Tick) -> Option<(u32, u32)> {
        let apart = self.asked.abs_diff(wanted);
        if apart == 0 || now < self.begun {
            self.is_moving = false;
            return None;
        }
        let step_ns = match pacer {
            Pacer::Constant { rate } => (1e9 / rate).clamp(1.0, 1e15) as u64,
            _ => 0,
        };
        // Whoever has been idle may move one person at once, but has saved up no more.
        match std::mem::replace(&mut self.is_moving, true) {
            true => self.saved_ns += now.ns_since(self.looked),
            false => self.saved_ns = step_ns,
        }
        self.looked = now;
        let steps = match step_ns {
            0 => u64::from(apart),
            step_ns => (self.saved_ns / step_ns).min(apart.into()),
        };
        if steps == 0 {
            return None;
        }
        self.saved_ns -= steps * step_ns;
        let steps = steps as u32;
        self.asked = if self.asked < wanted { self.asked + steps } else { self.asked - steps };
        self.order += 1;
        Some((self.asked, self.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every 10 ms; when the population had each of these sizes first, milliseconds.
    fn times(population: &mut Population, wanted: u32, rate: f64, from_ms: u64) -> Vec<(u64, u32)> {
        let pacer = Pacer::Constant { rate };
        let looks = (0..=200).map(|look| from_ms + look * 10);
        let moved = looks.filter_map(|ms| {
            let moved = population.advance(wanted, &pacer, Tick(ms * 1_000_000))?;
            Some((ms, moved.0))
        });
        moved.collect()
    }

    #[test]
    fn people_come_and_go_one_by_one() {
        let mut population = Population::new(Tick(20_000_000));
        assert_eq!(times(&mut population, 3, 10.0, 0), [(20, 1), (120, 2), (220, 3)]);
        let many = times(&mut population, 103, 1_000.0, 3_000);
        assert_eq!(many.len(), 11, "ten a turn, and one at once: {many:?}");
        assert_eq!(times(&mut population, 101, 10.0, 6_000), [(6_000, 102), (6_100, 101)]);
    }

    #[test]
    fn at_once_is_at_once() {
        let mut population = Population::new(Tick::ZERO);
        assert_eq!(population.advance(40, &Pacer::AtOnce, Tick(5)), Some((40, 1)));
        assert_eq!(population.advance(40, &Pacer::AtOnce, Tick(6)), None);
        assert_eq!(population.advance(7, &Pacer::AtOnce, Tick(7)), Some((7, 2)));
    }

    #[test]
    fn it_is_gone_when_every_shard_says_so() {
        let mut population = Population::new(Tick::ZERO);
        population.advance(2, &Pacer::AtOnce, Tick(5));
        population.hear(0, (1, 1));
        population.hear(1, (1, 0));
        population.is_over = true;
        population.advance(0, &Pacer::AtOnce, Tick(6));
        population.hear(0, (1, 0));
        assert!(!population.is_gone(2), "the last order is not known everywhere");
        population.hear(0, (2, 0));
        assert!(!population.is_gone(2));
        population.hear(1, (2, 0));
        assert!(population.is_gone(2));
        assert!(!population.is_gone(3), "a shard has said nothing yet");
    }
}
