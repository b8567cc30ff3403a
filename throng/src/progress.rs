//! Live progress on stderr: one line that is written over on a terminal, a line now and then
//! elsewhere.

use engine::Progress;
use model::{Interval, Measure, Tick};
use std::io::{IsTerminal, Write, stderr};

/// From one line to the next, nanoseconds: on a terminal, and elsewhere.
const TERMINAL_EVERY_NS: u64 = 250_000_000;
const LOG_EVERY_NS: u64 = 5_000_000_000;
/// Widest line, characters: a terminal of 80 columns, less the cursor's.
const WIDTH: usize = 79;
/// Timers later than this show a generator at its limit, nanoseconds.
const LAG_NS: u64 = 50_000_000;

/// What is shown.
pub(crate) struct Live {
    is_shown: bool,
    is_terminal: bool,
    next: Tick,
    last: Interval,
    errors: u64,
}

impl Live {
    /// Shows progress unless it is not wanted.
    pub(crate) fn new(is_shown: bool) -> Live {
        let is_terminal = stderr().is_terminal();
        Live { is_shown, is_terminal, next: Tick::ZERO, last: Interval::default(), errors: 0 }
    }

    /// A second is over.
    pub(crate) fn interval(&mut self, interval: &Interval) {
        self.errors += interval.measures.values().map(|stats| stats.failed).sum::<u64>();
        self.last = interval.clone();
    }

    /// How things stand.
    pub(crate) fn progress(&mut self, progress: &Progress<'_>) {
        if !self.is_shown || progress.now < self.next {
            return;
        }
        let every = if self.is_terminal { TERMINAL_EVERY_NS } else { LOG_EVERY_NS };
        self.next = Tick(progress.now.0 + every);
        let line: String = line(progress, &self.last, self.errors).chars().take(WIDTH).collect();
        match self.is_terminal {
            true => eprint!("\r\x1b[K{line}"),
            false => eprintln!("{line}"),
        }
        // Progress that cannot be shown is no reason to stop a run.
        let _ = stderr().flush();
    }

    /// The last word: the terminal's line is free again.
    pub(crate) fn end(&self) {
        if self.is_shown && self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

fn line(progress: &Progress<'_>, last: &Interval, errors: u64) -> String {
    let seconds = progress.now.0 / 1_000_000_000;
    let (place, places) = progress.place;
    let phase = progress.phase.unwrap_or("last journeys");
    let phase: String = phase.chars().take(14).collect();
    let quantiles =
        last.measures.get(&Measure::Delivery).or(last.measures.get(&Measure::Announcement));
    let quantiles = quantiles.map_or_else(
        || "p50 – p99 –".to_owned(),
        |stats| {
            format!(
                "p50 {} p99 {}",
                short(stats.latency.quantile(0.5)),
                short(stats.latency.quantile(0.99))
            )
        },
    );
    let deliveries = last.counters.deliveries + last.counters.announcements;
    let health = match last.lag.quantile(0.99) {
        lag if lag > LAG_NS => format!("LAG {}", short(lag)),
        _ => "ok".into(),
    };
    format!(
        "{}:{:02} {place}/{places} {phase}: {} online, {}/s, {quantiles}, {errors} err, {health}",
        seconds / 60,
        seconds % 60,
        last.gauges.online,
        count(deliveries),
    )
}

fn count(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..10_000_000 => format!("{}k", n / 1_000),
        _ => format!("{}M", n / 1_000_000),
    }
}

/// A duration in three or four characters and its unit.
fn short(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    match us {
        ..1e3 => format!("{us:.0}µs"),
        ..1e4 => format!("{:.1}ms", us / 1e3),
        ..1e6 => format!("{:.0}ms", us / 1e3),
        _ => format!("{:.1}s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_eighty_columns_at_its_widest() {
        let mut last = Interval::default();
        last.gauges.online = 40_000;
        last.counters.deliveries = 3_850_000;
        last.measure(Measure::Delivery).latency.record(123_000_000);
        last.lag.record(120_000_000);
        let phase = Some("a name that is too long");
        let progress = Progress { now: Tick::from_secs(3_599), phase, place: (3, 12) };
        let line = line(&progress, &last, 12);
        let want = "59:59 3/12 a name that is: 40000 online, 3850k/s, p50 123ms p99 123ms, 12 err, LAG 120ms";
        assert_eq!(line, want);
        assert_eq!(
            (short(999_000), short(1_200_000), short(2_500_000_000)),
            ("999µs".into(), "1.2ms".into(), "2.5s".into())
        );
    }
}
