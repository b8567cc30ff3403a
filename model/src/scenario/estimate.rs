//! What a plan will do on a target that answers at once: lengths, rates, deliveries.

use super::plan::DEADLINE_NS;
use crate::{Crowd, Mind, Next, Rng, RunPhase, Tick, Until};

/// Deeds after which a walk is broken off: the journey may be endless.
const DEEDS_MAX: u32 = 10_000;
/// People whose journeys tell how long a journey takes.
const WALKERS: u32 = 16;

/// The deadline of a run that names none.
pub(super) fn deadline_ns(run: &RunPhase, crowd: &Crowd) -> u64 {
    match run.until {
        Until::Arrived | Until::In => DEADLINE_NS,
        Until::Done => {
            let walks = (0..run.count.min(WALKERS)).filter_map(|i| length_ns(crowd, i)).max();
            DEADLINE_NS + 2 * walks.unwrap_or(0)
        }
    }
}

/// How long one journey takes; `None` if it does not end.
fn length_ns(crowd: &Crowd, index: u32) -> Option<u64> {
    let rng = Rng::new(u64::from(index), 0);
    let mut mind = Mind::new(rng, index, 1, Tick::ZERO);
    let mut now = Tick::ZERO;
    for _ in 0..DEEDS_MAX {
        match mind.next(&crowd.program, 1, now) {
            Next::Sleep(until) => now = now.max(until),
            Next::Gate(_) => mind.passed(now),
            Next::Await => mind.answered(now),
            Next::Finished => return Some(now.0),
            Next::Do { .. } | Next::Stage(_) => {}
        }
    }
    None
}
