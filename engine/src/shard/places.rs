//! Places of held populations: who is there, who is to come. Place `k` belongs to the shard
//! `k % shards`, so that shards need not agree on who comes next.

use super::Status;
use crate::net::Slot;
use model::SourceId;
use std::collections::BTreeMap;
use std::ops::Range;

/// A place of somebody who gave up stays empty for so long, nanoseconds: a target that refuses
/// everybody is not stormed.
pub(super) const PAUSE_NS: u64 = 1_000_000_000;

/// Who holds a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Holder {
    #[default]
    Nobody,
    /// Somebody whose arrival is queued.
    Coming,
    /// Somebody who is there, or on the way home.
    Here(Slot),
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    holder: Holder,
    /// How many have held it before.
    turn: u32,
}

/// The places of one phase that are this shard's.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Place>,
    population: u32,
    order: u32,
    here: u64,
}

/// What an order means to a shard.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// Places that somebody is to come to, with the turn there.
    pub(super) come: Vec<(u32, u32)>,
    /// People who are to go home.
    pub(super) go: Vec<Slot>,
}

impl Places {
    /// So many people are to be there in all shards together.
    pub(super) fn populate(
        &mut self,
        people: u32,
        order: u32,
        (source, sources): (SourceId, SourceId),
    ) -> Moves {
        let mine = |range: Range<u32>| {
            let (source, sources) = (u32::from(source), u32::from(sources));
            let skip = (source + sources - range.start % sources) % sources;
            range.skip(skip as usize).step_by(sources as usize)
        };
        let mut moves = Moves::default();
        self.order = order;
        let before = std::mem::replace(&mut self.population, people);
        for place in mine(before..people) {
            let at = (place / u32::from(sources)) as usize;
            self.places.resize(self.places.len().max(at + 1), Place::default());
            let place_at = &mut self.places[at];
            if place_at.holder == Holder::Nobody {
                place_at.holder = Holder::Coming;
                moves.come.push((place, place_at.turn));
            }
        }
        for place in mine(people..before) {
            let at = (place / u32::from(sources)) as usize;
            if let Some(Holder::Here(slot)) = self.places.get(at).map(|place| place.holder) {
                moves.go.push(slot);
            }
        }
        moves
    }

    /// Somebody's arrival is due; `false` if nobody is wanted there any more.
    pub(super) fn arrive(&mut self, place: u32, sources: SourceId, slot: Slot) -> bool {
        let Some(at) = self.places.get_mut((place / u32::from(sources)) as usize) else {
            return false;
        };
        let is_wanted = place < self.population;
        at.holder = if is_wanted { Holder::Here(slot) } else { Holder::Nobody };
        self.here += u64::from(is_wanted);
        is_wanted
    }

    /// Somebody has gone; the turn of whoever is to come instead, if anybody is.
    pub(super) fn go(&mut self, place: u32, sources: SourceId) -> Option<u32> {
        let at = self.places.get_mut((place / u32::from(sources)) as usize)?;
        self.here -= u64::from(matches!(at.holder, Holder::Here(_)));
        at.turn = at.turn.wrapping_add(1);
        let is_wanted = place < self.population;
        at.holder = if is_wanted { Holder::Coming } else { Holder::Nobody };
        is_wanted.then_some(at.turn)
    }
}

/// Writes the standings of all populations into a status.
pub(super) fn report(phases: &BTreeMap<u32, Places>, status: &mut Status) {
    let standing = |(&phase, places): (&u32, &Places)| (phase, (places.order, places.here));
    status.populations = phases.iter().map(standing).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rng;

    /// Three shards carry out random orders; whenever all is quiet, exactly the people asked for
    /// are there, each at a place of its own.
    #[test]
    fn shards_agree_without_talking() {
        const SOURCES: SourceId = 3;
        for seed in 0..200 {
            let mut rng = Rng::new(seed, 1);
            let mut shards: Vec<Places> = (0..SOURCES).map(|_| Places::default()).collect();
            for order in 1..12 {
                let people = rng.below(40) as u32;
                for (source, shard) in (0..SOURCES).zip(&mut shards) {
                    let moves = shard.populate(people, order, (source, SOURCES));
                    let mut queue = moves.come;
                    for slot in moves.go {
                        assert!(slot % u32::from(SOURCES) == u32::from(source), "seed {seed}");
                        assert_eq!(shard.go(slot, SOURCES), None, "seed {seed}");
                    }
                    // Some finish and are replaced, some arrive.
                    while let Some((place, _)) = queue.pop() {
                        assert!(shard.arrive(place, SOURCES, place), "seed {seed}");
                        if rng.below(3) == 0 {
                            let turn = shard.go(place, SOURCES).expect("somebody else comes");
                            assert!(turn > 0);
                            queue.push((place, turn));
                        }
                    }
                }
                let here: u64 = shards.iter().map(|shard| shard.here).sum();
                assert_eq!(here, u64::from(people), "seed {seed}, order {order}");
            }
        }
    }

    #[test]
    fn who_is_still_leaving_keeps_the_place() {
        let mut places = Places::default();
        assert_eq!(places.populate(1, 1, (0, 1)).come, [(0, 0)]);
        assert!(places.arrive(0, 1, 9));
        assert_eq!(places.populate(0, 2, (0, 1)).go, [9]);
        assert_eq!(places.populate(1, 3, (0, 1)), Moves::default(), "nobody new beside a leaver");
        assert_eq!(places.go(0, 1), Some(1), "but instead");
        assert_eq!(places.populate(0, 4, (0, 1)), Moves::default());
        assert!(!places.arrive(0, 1, 9), "no longer wanted");
    }
}
