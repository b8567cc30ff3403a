//! Was the generator fit to measure? Each check looks at one thing and says what to do.

use super::limits::*;
use super::processes::Processes;
use super::{ratio, starved};
use crate::run::{Run, Status};
use crate::summary::{Finding, Health, Level, Summary};
use model::{FaultClass, HostSample, Interval, ProbeSample};

/// What the checks look at.
struct Facts<'a> {
    run: &'a Run,
    total: &'a Interval,
    summary: &'a Summary,
    generator: &'a Processes,
}

/// The processes of one role in a reading.
type Role = fn(&ProbeSample) -> &Vec<model::ProcessSample>;

/// One check; what it finds is appended.
type Check = fn(&Facts, &mut Vec<Finding>);

/// All checks.
const CHECKS: &[Check] = &[
    whole,
    arrivals,
    entered,
    arrival_lag,
    late_sends,
    lag,
    generator_cpu,
    exhausted,
    descriptors,
    steal,
    starved_target,
    starved_generator,
    network,
    memory,
    calibration,
];

/// Runs all checks; the worst finding is the verdict.
pub(super) fn judge(
    run: &Run,
    total: &Interval,
    summary: &Summary,
    generator: &Processes,
) -> Health {
    let facts = Facts { run, total, summary, generator };
    let mut findings = Vec::new();
    CHECKS.iter().for_each(|check| check(&facts, &mut findings));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    Health { level: findings.first().map_or(Level::Healthy, |worst| worst.level), findings }
}

fn find(findings: &mut Vec<Finding>, level: Level, what: String, advice: &str) {
    findings.push(Finding { level, what, advice: advice.to_owned() });
}

/// The level of a value that has two bounds.
fn level(value: f64, strained: f64, invalid: f64) -> Option<Level> {
    match value {
        v if v > invalid => Some(Level::Invalid),
        v if v > strained => Some(Level::Strained),
        _ => None,
    }
}

fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        p if p < 10.0 => format!("{p:.2} %"),
        p => format!("{p:.0} %"),
    }
}

fn whole(facts: &Facts, findings: &mut Vec<Finding>) {
    let seconds = facts.summary.seconds;
    match facts.run.manifest.status {
        Status::Finished if facts.run.seconds.is_empty() => find(
            findings,
            Level::Invalid,
            "nothing was recorded".to_owned(),
            "Look at events.jsonl for the reason.",
        ),
        Status::Finished => {}
        Status::Running => find(
            findings,
            Level::Invalid,
            format!("cut short at second {seconds:.0}: the run has no end"),
            "It is still going on, or it was killed. What is here is true up to that second.",
        ),
        Status::Aborted => find(
            findings,
            Level::Invalid,
            match facts.run.manifest.reason.as_str() {
                "" => format!("aborted at second {seconds:.0}"),
                reason => format!("aborted at second {seconds:.0}: {reason}"),
            },
            "What is here is true up to that second; run it again for a result.",
        ),
    }
}

/// Without anybody inside, no number is about a crowd: not even "nothing was lost".
fn arrivals(facts: &Facts, findings: &mut Vec<Finding>) {
    let people = &facts.summary.people;
    let achieved = ratio(people.arrived as f64, people.due as f64);
    if people.due > 0 && achieved < ARRIVALS_INVALID {
        find(
            findings,
            Level::Invalid,
            format!("only {} of {} due people set out", people.arrived, people.due),
            "The load is not the one that was asked for: lower the arrival rate or use more shards.",
        );
    }
}

fn entered(facts: &Facts, findings: &mut Vec<Finding>) {
    let people = &facts.summary.people;
    let (what, level, advice) = match people.entered {
        _ if people.due == 0 => return,
        0 => (
            format!("nobody got in of {} people", people.due),
            Level::Invalid,
            "The errors say why: is this the right address, and does the target accept these \
             people?",
        ),
        n if ratio(n as f64, people.due as f64) >= ENTERED_STRAINED => return,
        n => (
            format!("only {n} of {} people got in", people.due),
            Level::Strained,
            "The errors say why. Do not compare this run with one of a full crowd.",
        ),
    };
    find(findings, level, what, advice);
}

fn arrival_lag(facts: &Facts, findings: &mut Vec<Finding>) {
    let lag = |row: &&crate::summary::PhaseRow| row.arrival_lag_ms_max;
    let worst = facts.summary.phases.iter().max_by(|a, b| lag(a).total_cmp(&lag(b)));
    if let Some(worst) = worst.filter(|row| lag(row) > ARRIVAL_LAG_STRAINED_MS) {
        find(
            findings,
            Level::Strained,
            format!(
                "in phase “{}” people set out up to {:.1} s behind schedule",
                worst.name,
                worst.arrival_lag_ms_max / 1e3
            ),
            "The ramp is flatter than asked: use more shards, or a machine of its own.",
        );
    }
}

fn late_sends(facts: &Facts, findings: &mut Vec<Finding>) {
    let sends = &facts.summary.sends;
    let late = ratio(sends.late as f64, sends.due as f64);
    if let Some(level) = level(late, LATE_SENDS_STRAINED, LATE_SENDS_INVALID) {
        find(
            findings,
            level,
            format!("{} of the messages were sent more than 10 ms late", percent(late)),
            "The generator was too busy to keep its schedule: use more shards, fewer people, or a \
             machine of its own.",
        );
    }
}

fn lag(facts: &Facts, findings: &mut Vec<Finding>) {
    let lag = &facts.summary.lag;
    if let Some(level) = level(lag.p99_ms, LAG_P99_STRAINED_MS, LAG_P99_INVALID_MS) {
        find(
            findings,
            level,
            format!("timers fired {:.0} ms late at the 99th percentile", lag.p99_ms),
            "Latencies contain the generator's own delay: use more shards, or a machine of its own.",
        );
    } else if lag.max_ms > LAG_MAX_STRAINED_MS {
        let worst = facts.run.seconds.iter().max_by_key(|second| second.lag.max());
        find(
            findings,
            Level::Strained,
            format!(
                "a timer fired {:.0} ms late in second {}",
                lag.max_ms,
                worst.map_or(0, |second| second.second)
            ),
            "Something took the machine away for a moment; maxima of that second are not the \
             target's.",
        );
    }
}

fn generator_cpu(facts: &Facts, findings: &mut Vec<Finding>) {
    let shards = f64::from(facts.run.manifest.generator.shards.max(1));
    let readings = &facts.generator.readings;
    let busy = readings.iter().filter(|r| r.cpu_percent > GENERATOR_CPU_BUSY * 100.0 * shards);
    let share = ratio(busy.count() as f64, readings.len() as f64);
    if let Some(level) = level(share, GENERATOR_BUSY_STRAINED, GENERATOR_BUSY_INVALID) {
        find(
            findings,
            level,
            format!("the generator's shards were out of CPU {} of the time", percent(share)),
            "The generator itself was the limit: use more shards, or a larger machine.",
        );
    }
}

fn exhausted(facts: &Facts, findings: &mut Vec<Finding>) {
    let classes = facts.total.faults.values();
    let counts = classes.filter_map(|classes| classes.get(&FaultClass::Exhausted));
    let count = counts.fold(0, |sum: u64, &n| sum.saturating_add(n));
    if count > 0 {
        find(
            findings,
            Level::Invalid,
            format!("{count} connections failed for want of a local port or descriptor"),
            "Raise the limit of open files (ulimit -n) and run `throng check`.",
        );
    }
}

fn descriptors(facts: &Facts, findings: &mut Vec<Finding>) {
    let own = facts.run.manifest.host.descriptors_max;
    let theirs = match facts.run.manifest.target.descriptors_max {
        0 => own,
        known => known,
    };
    let roles: [(&str, u64, Role); 2] =
        [("the generator", own, |s| &s.generator), ("the target", theirs, |s| &s.target)];
    for (who, max, role) in roles {
        let processes = facts.run.probes.iter().flat_map(role);
        let most = processes.map(|process| process.descriptors).max().unwrap_or(0);
        if max > 0 && most as f64 > max as f64 * DESCRIPTORS_STRAINED {
            find(
                findings,
                Level::Strained,
                format!("a process of {who} had {most} of {max} descriptors open"),
                "Arrivals fail for want of descriptors, a connection needing one, often with no more \
                 than a reset: raise the limit (ulimit -n) where that process is started.",
            );
        }
    }
}

/// First and last reading of the host, and the seconds between.
fn host_ends<'a>(facts: &Facts<'a>) -> Option<(&'a HostSample, &'a HostSample, f64)> {
    let (first, last) = (facts.run.probes.first()?, facts.run.probes.last()?);
    let seconds = last.at.secs_f64() - first.at.secs_f64();
    (seconds > 0.0).then_some((&first.host, &last.host, seconds))
}

fn steal(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some((first, last, seconds)) = host_ends(facts) else { return };
    let cores = f64::from(facts.run.manifest.host.cores.max(1));
    let stolen = last.steal_ns.saturating_sub(first.steal_ns) as f64 / 1e9 / seconds / cores;
    if let Some(level) = level(stolen, STEAL_STRAINED, STEAL_INVALID) {
        find(
            findings,
            level,
            format!("the hypervisor gave {} of the machine's time to others", percent(stolen)),
            "CPU figures and latencies contain other people's work: use a machine with its own \
             cores, or repeat when it is quiet.",
        );
    }
}

fn starved_target(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(starved) = starved::target(facts.summary) else { return };
    let so = "so its figures are of this machine's load, not of the server";
    let what = format!("{}, {so}", starved.words("the target"));
    find(findings, starved.level, what, &make_room(facts));
}

fn starved_generator(facts: &Facts, findings: &mut Vec<Finding>) {
    let shards = facts.run.manifest.generator.shards;
    let Some(starved) = starved::generator(facts.summary, shards) else { return };
    let what = format!("{}, which latencies contain", starved.words("the generator"));
    find(findings, starved.level, what, &make_room(facts));
}

/// What to do about processes that wait for each other, or for somebody else.
fn make_room(facts: &Facts) -> String {
    match others(facts) {
        share if share > OTHERS_TOLD => format!(
            "Other processes had {} of the machine's time: stop them, or repeat when it is quiet.",
            percent(share)
        ),
        _ => "Target and generator want more than this machine has: give each cores of its own or \
              another machine, or lower the load."
            .to_owned(),
    }
}

/// What processes beside target and generator had of the machine's time.
fn others(facts: &Facts) -> f64 {
    let Some((first, last, seconds)) = host_ends(facts) else { return 0.0 };
    let usages = [&facts.summary.target_usage, &facts.summary.generator_usage];
    let ours_s: f64 = usages.into_iter().flatten().map(|usage| usage.cpu_s).sum();
    let busy_s = last.busy_ns.saturating_sub(first.busy_ns) as f64 / 1e9;
    ratio((busy_s - ours_s).max(0.0), seconds * f64::from(facts.run.manifest.host.cores.max(1)))
}

fn network(facts: &Facts, findings: &mut Vec<Finding>) {
    // A target that throng starts is on loopback, and the counters are the whole machine's: what
    // others send elsewhere is not part of this result.
    if !facts.run.manifest.target.processes.is_empty() {
        return;
    }
    let Some((first, last, seconds)) = host_ends(facts) else { return };
    let again = last.retransmits.saturating_sub(first.retransmits);
    if ratio(again as f64, seconds) > RETRANSMITS_PER_S_STRAINED {
        find(
            findings,
            Level::Strained,
            format!("{again} TCP segments were sent again"),
            "The network is part of the result: look for a full link or a full listen queue.",
        );
    }
    let drops = last.drops.saturating_sub(first.drops);
    if drops > 0 {
        find(
            findings,
            Level::Strained,
            format!("network interfaces dropped {drops} packets"),
            "The network is part of the result: look at the interface's queues.",
        );
    }
}

fn memory(facts: &Facts, findings: &mut Vec<Finding>) {
    let whole = facts.run.manifest.host.memory_bytes;
    let least = facts.run.probes.iter().map(|sample| sample.host.available_bytes).min();
    let Some(least) = least.filter(|&bytes| bytes > 0 && whole > 0) else { return };
    if (least as f64) < whole as f64 * MEMORY_STRAINED {
        find(
            findings,
            Level::Strained,
            format!("only {} MB of memory were left", least / 1_000_000),
            "The machine may have swapped: use fewer people or more memory.",
        );
    }
}

fn calibration(facts: &Facts, findings: &mut Vec<Finding>) {
    let all = facts.run.probes.iter().map(|sample| sample.host.calibration_ns);
    let mut all: Vec<u64> = all.filter(|&ns| ns > 0).collect();
    if all.len() < CALIBRATIONS_MIN {
        return;
    }
    all.sort_unstable();
    let at = |q: f64| all[((all.len() - 1) as f64 * q) as usize] as f64;
    let spread = ratio(at(0.9), at(0.1));
    if spread > CALIBRATION_STRAINED {
        find(
            findings,
            Level::Strained,
            format!("the machine's speed varied: the same work took {spread:.2} times as long"),
            "Frequency scaling or neighbors: repeat, and compare runs only with their intervals.",
        );
    }
}
