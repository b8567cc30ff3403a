//! Who waited for a processor rather than ran: run-queue wait against CPU time, over the whole run
//! and over each phase, so that a starved minute does not hide in a quiet hour.

use super::limits::*;
use super::ratio;
use crate::summary::{Level, PhaseRow, Summary, Usage};

/// Processes that waited too long for what they ran.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Starved {
    /// The phase, if it was not the whole run.
    phase: Option<String>,
    waited_s: f64,
    ran_s: f64,
    pub(super) level: Level,
}

impl Starved {
    /// Whoever it was waited so long for so much.
    pub(crate) fn words(&self, who: &str) -> String {
        let within =
            self.phase.as_ref().map_or(String::new(), |name| format!(" in phase “{name}”"));
        let (waited_s, ran_s) = (self.waited_s, self.ran_s);
        format!(
            "{who} was starved{within}: it waited {waited_s:.1} s for a processor for {ran_s:.1} s \
             it ran"
        )
    }
}

/// Whether the target was starved. Its waiting alone makes no run invalid: a target that wants more
/// than the machine has is a finding.
pub(crate) fn target(summary: &Summary) -> Option<Starved> {
    let starved = find(summary, summary.target_usage.as_ref(), |phase| phase.target.as_ref());
    starved.map(|(starved, _)| starved)
}

/// Whether the generator was starved, and whether so much that it measured itself.
pub(super) fn generator(summary: &Summary, shards: u32) -> Option<Starved> {
    let usage = summary.generator_usage.as_ref();
    let (starved, seconds) = find(summary, usage, |phase| phase.generator.as_ref())?;
    let share = ratio(starved.waited_s, starved.waited_s + starved.ran_s);
    let of_span = ratio(starved.waited_s, seconds * f64::from(shards.max(1)));
    let is_whole = starved.phase.is_none();
    let is_invalid = share > RUN_QUEUE_INVALID && of_span > RUN_QUEUE_OF_RUN_INVALID && is_whole;
    Some(Starved { level: if is_invalid { Level::Invalid } else { Level::Strained }, ..starved })
}

/// The whole run, or else its worst phase; with the length of that span.
fn find<'a>(
    summary: &'a Summary,
    whole: Option<&Usage>,
    of_phase: fn(&'a PhaseRow) -> Option<&'a Usage>,
) -> Option<(Starved, f64)> {
    let whole = whole.and_then(|usage| judge(None, usage, summary.seconds));
    let phases = summary.phases.iter().filter_map(|phase| {
        judge(Some(&phase.name), of_phase(phase)?, phase.end_s - phase.start_s)
    });
    whole.or_else(|| phases.max_by(|a, b| a.0.waited_s.total_cmp(&b.0.waited_s)))
}

fn judge(phase: Option<&str>, usage: &Usage, seconds: f64) -> Option<(Starved, f64)> {
    let (waited_s, ran_s) = (usage.run_queue_s, usage.cpu_s);
    let is_busy = waited_s + ran_s >= RUN_QUEUE_WANTED_S_MIN;
    let share = ratio(waited_s, waited_s + ran_s);
    let is_long = ratio(waited_s, seconds) > RUN_QUEUE_OF_RUN_MIN;
    let phase = phase.map(str::to_owned);
    let starved = Starved { phase, waited_s, ran_s, level: Level::Strained };
    (is_busy && is_long && share > RUN_QUEUE_STRAINED).then_some((starved, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage((waited_s, ran_s): (f64, f64)) -> Option<Usage> {
        Some(Usage { run_queue_s: waited_s, cpu_s: ran_s, ..Usage::default() })
    }

    /// A run of 100 s whose only phase is its last 10 s.
    fn summary(whole: (f64, f64), phase: (f64, f64)) -> Summary {
        let (target, generator) = (usage(phase), usage(phase));
        let row =
            PhaseRow { name: "storm".into(), start_s: 90.0, end_s: 100.0, ..Default::default() };
        Summary {
            seconds: 100.0,
            target_usage: usage(whole),
            generator_usage: usage(whole),
            phases: vec![PhaseRow { target, generator, ..row }],
            ..Summary::default()
        }
    }

    #[test]
    fn waiting_is_judged() {
        use Level::{Invalid, Strained};
        // Waited and ran in the whole run and in the phase: what is said of target and generator
        // (of one shard), and of what span.
        for (whole, phase, want) in [
            ((0.0, 50.0), (0.0, 5.0), None),
            ((9.0, 40.0), (0.9, 4.0), None),
            ((11.0, 40.0), (0.0, 4.0), Some((Strained, ""))),
            ((40.0, 40.0), (4.0, 4.0), Some((Strained, ""))),
            ((24.0, 6.0), (0.0, 0.0), Some((Strained, ""))),
            ((26.0, 6.0), (0.0, 0.0), Some((Invalid, ""))),
            ((26.0, 10.0), (0.0, 0.0), Some((Strained, ""))),
            // It hardly got to run at all: no small user, but a starved one.
            ((30.0, 0.1), (0.0, 0.0), Some((Invalid, ""))),
            // Wake-ups of a quiet run add up to nothing.
            ((1.9, 1.0), (0.1, 0.1), None),
            ((0.4, 0.5), (0.4, 0.5), None),
            // A storm at the end of a quiet run.
            ((5.0, 40.0), (4.9, 3.0), Some((Strained, " in phase “storm”"))),
            ((9.0, 40.0), (9.0, 1.0), Some((Strained, " in phase “storm”"))),
        ] {
            let summary = summary(whole, phase);
            let got = generator(&summary, 1);
            assert_eq!(got.as_ref().map(|s| s.level), want.map(|w| w.0), "{whole:?} {phase:?}");
            let starved = target(&summary);
            assert_eq!(starved.is_some(), want.is_some(), "{whole:?} {phase:?}");
            if let Some((starved, (_, span))) = starved.zip(want) {
                assert_eq!(starved.level, Strained, "the target's waiting is a finding");
                let words = starved.words("the target");
                assert!(words.contains(&format!("starved{span}: it waited")), "{words}");
            }
        }
        let many = generator(&summary((26.0, 6.0), (0.0, 0.0)), 2);
        assert_eq!(many.map(|starved| starved.level), Some(Strained), "two shards wait in turn");
    }
}
