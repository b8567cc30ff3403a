//! What a person costs the target in memory: how much it grew while people came, over how many
//! there were.

use super::limits::*;
use super::ratio;
use crate::run::Second;
use crate::summary::PersonMemory;
use model::ProbeSample;

/// Resident memory per person online, above what the target had before anybody came. `None` if it
/// was not watched, or there were too few people to tell.
pub(super) fn per_person(seconds: &[Second], probes: &[ProbeSample]) -> Option<PersonMemory> {
    let most = seconds.iter().map(|second| second.gauges.online).max()?;
    if most < MEMORY_PEOPLE_MIN {
        return None;
    }
    let readings: Vec<(f64, u64)> = probes.iter().filter_map(resident).collect();
    let first = seconds.iter().find(|second| second.gauges.online > 0)?;
    let nobody = readings.partition_point(|reading| reading.0 <= f64::from(first.second));
    // A crowd that comes at once leaves only the first reading.
    let rest_bytes = readings.get(nobody.saturating_sub(1))?.1;
    let peak_bytes = readings.iter().map(|reading| reading.1).max()?;
    let grown =
        |bytes: u64, people: u64| ratio(bytes.saturating_sub(rest_bytes) as f64, people as f64);
    let full = |second: &&Second| second.gauges.online as f64 >= most as f64 * MEMORY_STEADY_ONLINE;
    let each: Vec<f64> = seconds
        .iter()
        .filter(full)
        .flat_map(|second| {
            within(&readings, second).map(|bytes| grown(bytes, second.gauges.online))
        })
        .collect();
    let mean = ratio(each.iter().sum(), each.len() as f64);
    Some(PersonMemory {
        rest_bytes,
        peak_bytes: grown(peak_bytes, most).round() as u64,
        steady_bytes: (each.len() >= MEMORY_STEADY_READINGS_MIN).then_some(mean.round() as u64),
    })
}

/// When, in seconds, and what all processes of the target had; `None` if there were none.
fn resident(sample: &ProbeSample) -> Option<(f64, u64)> {
    let sizes = sample.target.iter().map(|process| process.rss_bytes);
    let bytes = sizes.fold(0, u64::saturating_add);
    (!sample.target.is_empty()).then(|| (sample.at.secs_f64(), bytes))
}

/// The readings of a second.
fn within<'a>(readings: &'a [(f64, u64)], second: &Second) -> impl Iterator<Item = u64> + 'a {
    let start_s = f64::from(second.second);
    let from = readings.partition_point(|reading| reading.0 < start_s);
    let to = readings.partition_point(|reading| reading.0 < start_s + 1.0);
    readings[from..to].iter().map(|reading| reading.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Gauges, ProcessSample, Tick};

    /// People online at the end of each second, and the target's memory at its beginning and five
    /// times within: what a person costs at the peak and in the steady crowd.
    fn check(online: &[u64], rss: impl Fn(f64) -> u64, want: Option<(u64, u64, Option<u64>)>) {
        let second = |(number, &online): (usize, &u64)| Second {
            second: number as u32,
            gauges: Gauges { online, ..Gauges::default() },
            ..Second::default()
        };
        let seconds: Vec<Second> = online.iter().enumerate().map(second).collect();
        let probe = |fifth: usize| {
            let half =
                ProcessSample { rss_bytes: rss(fifth as f64 / 5.0) / 2, ..Default::default() };
            let at = Tick(fifth as u64 * 200_000_000);
            ProbeSample { at, target: vec![half.clone(), half], ..ProbeSample::default() }
        };
        let probes: Vec<ProbeSample> = (0..=online.len() * 5).map(probe).collect();
        let got = per_person(&seconds, &probes);
        let got = got.map(|m| (m.rest_bytes, m.peak_bytes, m.steady_bytes));
        assert_eq!(got, want, "{online:?}");
        assert_eq!(per_person(&seconds, &[]), None, "a target that nobody watched");
    }

    #[test]
    fn growth_is_shared_among_those_who_are_there() {
        // It starts with 1,000, and each of 100 people takes 40; while they come, 20 more.
        let crowd = |s: f64| match s {
            s if s <= 1.0 => 1_000,
            s if s < 2.0 => 7_000,
            _ => 5_000,
        };
        check(&[0, 100, 100, 100], crowd, Some((1_000, 60, Some(43))));
        check(&[0, 80, 100, 96, 50], crowd, Some((1_000, 60, Some(41))));
        // Everybody is there from the start.
        check(&[100, 100], |s| if s == 0.0 { 1_000 } else { 2_000 }, Some((1_000, 10, Some(9))));
        // It gave back more than it took.
        check(&[0, 100], |s| if s <= 1.0 { 9_000 } else { 1_000 }, Some((9_000, 0, Some(0))));
        check(&[0, 9, 9], |_| 1_000, None);
        check(&[], |_| 1_000, None);
    }
}
