//! Long series made short enough to draw, without losing what matters: histograms are merged
//! (their percentiles stay exact), rates are averaged, readings keep their extremes.

use crate::analysis::Reading;
use crate::run::{Buckets, Second};

/// Most points of a line that has one a second.
pub(super) const SECONDS_SHOWN_MAX: usize = 600;
/// Most points of a line of readings; an even number, two for each bin.
const READINGS_SHOWN_MAX: usize = 2_000;

/// Seconds grouped so that no more than [`SECONDS_SHOWN_MAX`] groups remain.
pub(crate) struct Bins<'a> {
    /// Middle of each group, seconds.
    pub(crate) x: Vec<f64>,
    groups: Vec<&'a [Second]>,
}

impl<'a> Bins<'a> {
    /// Groups of equal length; groups without a second are left out.
    pub(crate) fn of(seconds: &'a [Second]) -> Bins<'a> {
        let span = match (seconds.first(), seconds.last()) {
            (Some(first), Some(last)) => (last.second - first.second) as usize + 1,
            _ => 0,
        };
        let width = span.div_ceil(SECONDS_SHOWN_MAX).max(1) as u32;
        let groups: Vec<&[Second]> =
            seconds.chunk_by(|a, b| a.second / width == b.second / width).collect();
        let middle = |group: &&[Second]| {
            group.first().map_or(0.0, |s| (f64::from(s.second / width) + 0.5) * f64::from(width))
        };
        Bins { x: groups.iter().map(middle).collect(), groups }
    }

    /// A counter, a second.
    pub(crate) fn rate(&self, of: impl Fn(&Second) -> u64) -> Vec<Option<f64>> {
        let mean = |group: &&[Second]| {
            let sum = group.iter().map(&of).fold(0, u64::saturating_add);
            Some(round(sum as f64 / group.len() as f64))
        };
        self.groups.iter().map(mean).collect()
    }

    /// A gauge, as it stood at the end.
    pub(crate) fn last(&self, of: impl Fn(&Second) -> u64) -> Vec<Option<f64>> {
        self.groups.iter().map(|group| group.last().map(|second| of(second) as f64)).collect()
    }

    /// Histograms, merged.
    pub(crate) fn merged(&self, of: impl Fn(&'a Second) -> Option<&'a Buckets>) -> Vec<Buckets> {
        let merge = |group: &&'a [Second]| {
            let mut sum = Buckets::default();
            group.iter().filter_map(&of).for_each(|buckets| sum.merge(buckets));
            sum
        };
        self.groups.iter().map(merge).collect()
    }
}

/// Readings: all of them if they are few, else the lowest and the highest of each bin, in order.
pub(crate) fn extremes(
    readings: &[Reading],
    of: impl Fn(&Reading) -> f64,
) -> (Vec<f64>, Vec<Option<f64>>) {
    let point = |reading: &Reading| ((reading.to_s * 1e3).round() / 1e3, Some(round(of(reading))));
    if readings.len() <= READINGS_SHOWN_MAX {
        return readings.iter().map(point).unzip();
    }
    let bin = readings.len().div_ceil(READINGS_SHOWN_MAX / 2);
    let mut points = Vec::new();
    for bin in readings.chunks(bin) {
        let by = |a: &&Reading, b: &&Reading| of(a).total_cmp(&of(b));
        let (Some(low), Some(high)) = (bin.iter().min_by(by), bin.iter().max_by(by)) else {
            continue;
        };
        let (first, second) = if low.to_s <= high.to_s { (low, high) } else { (high, low) };
        points.push(point(first));
        points.push(point(second));
    }
    points.into_iter().unzip()
}

/// Two decimals: a page is not made for more.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_keep_their_extremes() {
        let reading = |i: usize| Reading {
            from_s: i as f64,
            to_s: i as f64 + 1.0,
            cpu_percent: if i == 7_777 { 400.0 } else { (i % 50) as f64 },
            ..Reading::default()
        };
        let readings: Vec<Reading> = (0..18_000).map(reading).collect();
        let (x, y) = extremes(&readings, |reading| reading.cpu_percent);
        assert!(x.len() <= READINGS_SHOWN_MAX && x.len() == y.len());
        assert!(y.contains(&Some(400.0)) && y.contains(&Some(0.0)));
        assert!(x.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn long_runs_have_few_bins_and_lose_no_count() {
        let second = |i: u32| {
            let mut second = Second { second: i * 3, ..Second::default() };
            second.counters.sends = 5;
            second
        };
        let seconds: Vec<Second> = (0..4_000).map(second).collect();
        let bins = Bins::of(&seconds);
        assert!(bins.x.len() <= SECONDS_SHOWN_MAX + 1);
        assert!(bins.rate(|s| s.counters.sends).iter().all(|&rate| rate == Some(5.0)));
        let far = [Second::default(), Second { second: u32::MAX, ..Second::default() }];
        assert_eq!(Bins::of(&far).x.len(), 2);
    }
}
