//! What a run amounts to: pure functions of what its directory holds.

mod health;
pub mod limits;
mod memory;
mod phases;
mod probed;
mod processes;
pub(crate) mod starved;
pub(crate) mod thresholds;
mod totals;

use crate::run::{FORMAT, Run};
use crate::summary::{Health, Level, Outcome, PhaseRow, Rates, Summary, Verdict};
use model::{Interval, What};
pub use probed::SpanS;
pub(crate) use processes::{Processes, Reading};
pub use thresholds::judge;

/// Everything that is derived from a run.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The results, as they are kept and published.
    pub summary: Summary,
    /// All intervals merged. Its gauges mean nothing: standings do not add up over seconds.
    pub total: Interval,
    /// Every reading of the target's processes, as percentages.
    pub(crate) target: Vec<Reading>,
    /// Every reading of the generator's processes, as percentages.
    pub(crate) generator: Vec<Reading>,
}

impl Analysis {
    /// Analyzes a run.
    pub fn of(run: &Run) -> Analysis {
        let mut total = Interval::default();
        run.seconds.iter().for_each(|second| second.add_to(&mut total));
        let target = Processes::of(&run.probes, |sample| &sample.target);
        let generator = Processes::of(&run.probes, |sample| &sample.generator);
        let length_s = length_s(run);
        let mut summary = Summary {
            seconds: length_s,
            cut_short_s: run.cut_short().then_some(length_s),
            people: totals::people(run, &total),
            sends: totals::sends(&total),
            rates: rates(run, &total, length_s),
            measures: totals::measures(&total, length_s),
            ledger: totals::ledger(&total),
            lag: totals::distribution(&total.lag),
            errors: totals::errors(run, &total),
            marks: phases::marks(run),
            phases: phases::phases(run, &target, &generator, length_s),
            target_usage: target.usage(0.0, length_s),
            generator_usage: generator.usage(0.0, length_s),
            memory_per_person: memory::per_person(&run.seconds, &run.probes),
            notes: notes(run),
            profiles: run.profiles.iter().map(crate::profile::row).collect(),
            ..head(run)
        };
        let bounds = run.plan.iter().flat_map(|plan| &plan.thresholds);
        let judge = |t| judge(t, &total, &run.probes, &run.metrics, (0.0, length_s));
        summary.thresholds = bounds.map(judge).collect();
        let overdue = summary.phases.iter().filter(|phase| phase.overdue).map(overdue_note);
        summary.notes.splice(0..0, overdue.collect::<Vec<_>>());
        summary.health = health::judge(run, &total, &summary, &generator);
        summary.verdict = verdict(&summary.health, &summary);
        summary.exit_code = exit_code(summary.verdict);
        Analysis { summary, total, target: target.readings, generator: generator.readings }
    }
}

/// What the program exits with: 0 kept, 1 a threshold broken, 3 could not measure.
pub fn exit_code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Kept => 0,
        Verdict::Broken => 1,
        Verdict::CouldNotMeasure => 3,
    }
}

/// A run that could not measure has no other result; a threshold that had nothing to compare was
/// not kept, but it was not broken either.
fn verdict(health: &Health, summary: &Summary) -> Verdict {
    let any = |outcome| summary.thresholds.iter().any(|t| t.outcome == outcome);
    match () {
        () if health.level == Level::Invalid => Verdict::CouldNotMeasure,
        () if any(Outcome::Broken) => Verdict::Broken,
        () if any(Outcome::Unmeasured) => Verdict::CouldNotMeasure,
        () => Verdict::Kept,
    }
}

fn head(run: &Run) -> Summary {
    let manifest = &run.manifest;
    Summary {
        format: FORMAT,
        name: manifest.name.clone(),
        about: manifest.about.clone(),
        status: manifest.status,
        started: manifest.started.clone(),
        target: manifest.target.name.clone(),
        target_version: manifest.target.version.clone(),
        protocol: manifest.target.protocol.clone(),
        seed: manifest.seed,
        scale: finite(manifest.scale),
        ..Summary::default()
    }
}

/// How long the run took: what the manifest says, or else to the last thing written.
fn length_s(run: &Run) -> f64 {
    let said = finite(run.manifest.seconds);
    if said > 0.0 {
        return said;
    }
    let second = run.last_second().map_or(0.0, |second| f64::from(second) + 1.0);
    let probe = run.probes.last().map_or(0.0, |probe| probe.at.secs_f64());
    second.max(probe)
}

fn rates(run: &Run, total: &Interval, length_s: f64) -> Rates {
    let deliveries = run.seconds.iter().map(|second| second.counters.deliveries);
    Rates {
        deliveries_per_s_max: deliveries.max().unwrap_or(0),
        deliveries_per_s_mean: ratio(total.counters.deliveries as f64, length_s),
        bytes_in: total.counters.bytes_in,
        bytes_out: total.counters.bytes_out,
    }
}

fn overdue_note(phase: &PhaseRow) -> String {
    format!(
        "phase {} was ended by its deadline: {} of {} people got in, {} finished, {} gave up",
        phase.name, phase.entered, phase.asked, phase.finished, phase.gave_up
    )
}

fn notes(run: &Run) -> Vec<String> {
    let said = run.events.iter().filter_map(|record| match &record.what {
        What::Target { detail } => Some(("target", detail, record.at)),
        What::Generator { detail } => Some(("generator", detail, record.at)),
        _ => None,
    });
    let said = said.take(limits::NOTES_MAX);
    said.map(|(who, detail, at)| format!("{:.1} s, {who}: {detail}", at.secs_f64()))
        .chain(run.notes.iter().cloned())
        .collect()
}

/// `a / b`, or zero where that is nothing.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { finite(a / b) } else { 0.0 }
}

/// A number that JSON can hold.
pub(crate) fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}
