//! What processes used: exact CPU seconds of any span from cumulative counters, and percentages
//! between readings.

use super::{finite, ratio};
use crate::summary::Usage;
use model::{ProbeSample, ProcessSample};
use std::collections::BTreeMap;

/// What all processes of one role did between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// The earlier reading, seconds.
    pub(crate) from_s: f64,
    /// The later reading, seconds.
    pub(crate) to_s: f64,
    /// CPU, percent of one core.
    pub(crate) cpu_percent: f64,
    /// Ready without a processor, percent of the time; threads add up.
    pub(crate) wait_percent: f64,
    /// Resident memory at the later reading, bytes.
    pub(crate) rss_bytes: u64,
    /// Address space at the later reading, bytes.
    pub(crate) virtual_bytes: u64,
}

/// One process's cumulative counters over time.
#[derive(Clone, Debug, Default)]
struct Track {
    /// When, seconds; CPU and run-queue wait so far, nanoseconds.
    points: Vec<(f64, u64, u64)>,
}

impl Track {
    /// CPU and run-queue wait between two instants, seconds, by linear interpolation. What lies
    /// outside the readings counts as nothing.
    fn used(&self, from_s: f64, to_s: f64) -> (f64, f64) {
        let ((cpu_a, queue_a), (cpu_b, queue_b)) = (self.at(from_s), self.at(to_s));
        (((cpu_b - cpu_a) / 1e9).max(0.0), ((queue_b - queue_a) / 1e9).max(0.0))
    }

    fn at(&self, s: f64) -> (f64, f64) {
        let after = self.points.partition_point(|point| point.0 < s);
        let plain = |point: &(f64, u64, u64)| (point.1 as f64, point.2 as f64);
        match (after.checked_sub(1).and_then(|i| self.points.get(i)), self.points.get(after)) {
            (Some(a), Some(b)) => {
                let share = ratio(s - a.0, b.0 - a.0);
                let between = |a: u64, b: u64| a as f64 + (b as f64 - a as f64) * share;
                (between(a.1, b.1), between(a.2, b.2))
            }
            (Some(only), None) | (None, Some(only)) => plain(only),
            (None, None) => (0.0, 0.0),
        }
    }
}

/// What was used in a span of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// How much of the span was watched.
    pub(super) watched_s: f64,
    pub(super) cpu_mean_percent: f64,
    pub(super) cpu_max_percent: f64,
    pub(super) cpu_s: f64,
    pub(super) run_queue_s: f64,
    rss_mean_bytes: f64,
    rss_peak_bytes: u64,
    virtual_peak_bytes: u64,
}

/// The processes of one role.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    tracks: Vec<Track>,
    pub(super) readings: Vec<Reading>,
    /// First and last reading, seconds.
    watched_s: Option<(f64, f64)>,
}

impl Processes {
    /// Follows the processes that `role` picks from each reading.
    pub(crate) fn of(
        probes: &[ProbeSample],
        role: impl Fn(&ProbeSample) -> &Vec<ProcessSample>,
    ) -> Processes {
        let mut processes = Processes::default();
        let mut open: BTreeMap<u32, usize> = BTreeMap::new();
        let mut before_s = None;
        for sample in probes.iter().filter(|sample| !role(sample).is_empty()) {
            let at_s = sample.at.secs_f64();
            let mut reading = Reading { to_s: at_s, ..Reading::default() };
            let (mut used_ns, mut waited_ns) = (0u64, 0u64);
            for process in role(sample) {
                let track = processes.track(&mut open, process);
                let points = &mut processes.tracks[track].points;
                let last = points.last().map(|point| (point.1, point.2));
                let last = last.unwrap_or((process.cpu_ns, process.run_queue_ns));
                used_ns = used_ns.saturating_add(process.cpu_ns - last.0);
                waited_ns = waited_ns.saturating_add(process.run_queue_ns.saturating_sub(last.1));
                points.push((at_s, process.cpu_ns, process.run_queue_ns));
                reading.rss_bytes = reading.rss_bytes.saturating_add(process.rss_bytes);
                reading.virtual_bytes = reading.virtual_bytes.saturating_add(process.virtual_bytes);
            }
            if let Some(from_s) = before_s.filter(|&from_s| from_s < at_s) {
                reading.from_s = from_s;
                let percent = |ns: u64| finite(ns as f64 / 1e7 / (at_s - from_s));
                (reading.cpu_percent, reading.wait_percent) =
                    (percent(used_ns), percent(waited_ns));
                processes.readings.push(reading);
            }
            before_s = Some(at_s);
            let first_s = processes.watched_s.map_or(at_s, |watched| watched.0);
            processes.watched_s = Some((first_s, at_s));
        }
        processes
    }

    /// The track a reading belongs to. A counter that went back is a new process of that number.
    fn track(&mut self, open: &mut BTreeMap<u32, usize>, process: &ProcessSample) -> usize {
        let known = open.get(&process.pid).copied().filter(|&track| {
            self.tracks[track].points.last().is_none_or(|last| last.1 <= process.cpu_ns)
        });
        known.unwrap_or_else(|| {
            self.tracks.push(Track::default());
            open.insert(process.pid, self.tracks.len() - 1);
            self.tracks.len() - 1
        })
    }

    /// What was used from one instant to another; `None` if nothing was watched then.
    pub(crate) fn usage(&self, from_s: f64, to_s: f64) -> Option<Usage> {
        let used = self.used(from_s, to_s)?;
        Some(Usage {
            cpu_mean_percent: tenth(used.cpu_mean_percent),
            cpu_max_percent: tenth(used.cpu_max_percent),
            cpu_s: millionth(used.cpu_s),
            run_queue_s: millionth(used.run_queue_s),
            rss_mean_bytes: used.rss_mean_bytes as u64,
            rss_peak_bytes: used.rss_peak_bytes,
            virtual_peak_bytes: used.virtual_peak_bytes,
        })
    }

    /// As [`Processes::usage`], not rounded.
    pub(super) fn used(&self, from_s: f64, to_s: f64) -> Option<Used> {
        let (first_s, last_s) = self.watched_s?;
        let (from_s, to_s) = (from_s.max(first_s), to_s.min(last_s));
        if from_s >= to_s {
            return None;
        }
        let (mut cpu_s, mut run_queue_s) = (0.0, 0.0);
        for track in &self.tracks {
            let (cpu, queue) = track.used(from_s, to_s);
            cpu_s += cpu;
            run_queue_s += queue;
        }
        let mean = cpu_s / (to_s - from_s) * 100.0;
        let middle = |reading: &Reading| (reading.from_s + reading.to_s) / 2.0;
        let start = self.readings.partition_point(|reading| middle(reading) < from_s);
        let end = self.readings.partition_point(|reading| middle(reading) <= to_s);
        // A span shorter than the time between readings has the reading around it.
        let within = match self.readings.get(start..end) {
            Some(within) if !within.is_empty() => within,
            _ => self.readings.get(start.saturating_sub(1)..start).unwrap_or_default(),
        };
        let peak = within.iter().map(|reading| reading.cpu_percent).fold(mean, f64::max);
        let rss = within.iter().map(|reading| reading.rss_bytes);
        let spaces = within.iter().map(|reading| reading.virtual_bytes);
        let rss_sum: f64 = rss.clone().map(|bytes| bytes as f64).sum();
        Some(Used {
            watched_s: to_s - from_s,
            cpu_mean_percent: mean,
            cpu_max_percent: peak,
            cpu_s,
            run_queue_s,
            rss_mean_bytes: ratio(rss_sum, within.len() as f64),
            rss_peak_bytes: rss.max().unwrap_or(0),
            virtual_peak_bytes: spaces.max().unwrap_or(0),
        })
    }
}

fn tenth(value: f64) -> f64 {
    finite((value * 10.0).round() / 10.0)
}

fn millionth(value: f64) -> f64 {
    finite((value * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Tick;

    /// Readings of one process: (seconds, pid, CPU seconds, bytes).
    fn processes(readings: &[(f64, u32, f64, u64)]) -> Processes {
        let sample = |&(at_s, pid, cpu_s, rss_bytes): &(f64, u32, f64, u64)| ProbeSample {
            at: Tick((at_s * 1e9) as u64),
            target: vec![ProcessSample {
                pid,
                cpu_ns: (cpu_s * 1e9) as u64,
                run_queue_ns: (cpu_s * 5e8) as u64,
                rss_bytes,
                ..ProcessSample::default()
            }],
            ..ProbeSample::default()
        };
        let probes: Vec<ProbeSample> = readings.iter().map(sample).collect();
        Processes::of(&probes, |sample| &sample.target)
    }

    #[test]
    fn cpu_of_a_span_is_interpolated_at_its_edges() {
        let processes = processes(&[
            (0.0, 1, 5.0, 10),
            (1.0, 1, 5.5, 30),
            (2.0, 1, 6.5, 20),
            (3.0, 1, 6.5, 20),
        ]);
        for (from, to, cpu_s, mean, max) in [
            (0.0, 3.0, 1.5, 50.0, 100.0),
            (0.0, 1.0, 0.5, 50.0, 50.0),
            (0.5, 1.5, 0.75, 75.0, 100.0),
            (1.2, 1.3, 0.1, 100.0, 100.0),
            (2.0, 9.0, 0.0, 0.0, 0.0),
        ] {
            let usage = processes.usage(from, to).expect("watched");
            assert_eq!((usage.cpu_s, usage.cpu_mean_percent), (cpu_s, mean), "{from}..{to}");
            assert_eq!(usage.cpu_max_percent, max, "{from}..{to}");
            assert_eq!(usage.run_queue_s, cpu_s / 2.0, "{from}..{to}");
        }
        assert_eq!(processes.usage(0.0, 3.0).map(|usage| usage.rss_peak_bytes), Some(30));
        assert_eq!(processes.usage(7.0, 8.0), None);
        assert_eq!(processes.usage(2.0, 2.0), None);
    }

    #[test]
    fn a_restarted_process_costs_nothing_twice() {
        let processes =
            processes(&[(0.0, 1, 5.0, 0), (1.0, 1, 6.0, 0), (2.0, 1, 0.1, 0), (3.0, 1, 0.6, 0)]);
        assert_eq!(processes.usage(0.0, 3.0).map(|usage| usage.cpu_s), Some(1.5));
    }
}
