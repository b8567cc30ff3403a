//! The health verdict: one table of runs and what must be found in them.

use crate::directory::plan;
use model::{
    Comparison, FaultClass, HostSample, Interval, Measure, ProbeSample, ProcessSample, Quantity,
    Threshold, Tick,
};
use results::analysis::Analysis;
use results::run::{Buckets, Generator, HostFacts, Manifest, MeasureSecond, Second};
use results::summary::{Level, Verdict};
use results::{Run, Status, exit_code};

/// Seconds of the made-up runs.
const SECONDS: u32 = 20;

/// What a case spoils of an otherwise healthy run.
#[derive(Default)]
struct Case {
    status: Option<Status>,
    sends_late: u64,
    lag_ms: u64,
    arrivals_missing: u64,
    kept_out: u64,
    exhausted: u64,
    /// Percent of a core.
    generator_cpu: u64,
    /// Percent of all cores.
    steal: u64,
    /// Percent of a core waited for beside half a core used.
    target_waits: u64,
    /// The same of the generator.
    generator_waits: u64,
    /// Percent of all cores that others use.
    others: u64,
    retransmits_per_s: u64,
    drops: u64,
    descriptors: u64,
    slow_calibration: bool,
    thresholds: Vec<Threshold>,
}

fn second(case: &Case, number: u32) -> Second {
    let mut interval = Interval::new(number);
    let counters = &mut interval.counters;
    (counters.sends_due, counters.sends) = (1_000, 1_000);
    (counters.arrivals_due, counters.arrivals) = (100, 100 - case.arrivals_missing);
    counters.entered = 100 - case.kept_out;
    counters.sends_late = case.sends_late;
    for _ in 0..case.exhausted {
        interval.fault(Measure::Connect, FaultClass::Exhausted);
    }
    interval.measure(Measure::Say).latency.record(20_000_000);
    interval.lag.record_n(case.lag_ms.max(1) * 1_000_000, 100);
    let measures = interval.measures.iter().map(|(&measure, stats)| {
        let (failed, latency) = (stats.failed, Buckets::from(&stats.latency));
        (measure, MeasureSecond { done: latency.count(), failed, latency, ..Default::default() })
    });
    Second {
        second: number,
        counters: interval.counters,
        gauges: interval.gauges,
        measures: measures.collect(),
        faults: interval.faults.clone(),
        lag: Buckets::from(&interval.lag),
    }
}

fn probe(case: &Case, number: u64) -> ProbeSample {
    let process = |pid, cpu_percent: u64, wait_percent: u64| ProcessSample {
        pid,
        cpu_ns: number * cpu_percent * 10_000_000,
        run_queue_ns: number * wait_percent * 10_000_000,
        descriptors: case.descriptors,
        ..ProcessSample::default()
    };
    ProbeSample {
        at: Tick::from_secs(number),
        target: vec![process(1, 50, case.target_waits)],
        generator: vec![process(2, case.generator_cpu, case.generator_waits)],
        host: HostSample {
            busy_ns: number * (50 + case.generator_cpu + case.others * 2) * 10_000_000,
            steal_ns: number * case.steal * 2 * 10_000_000,
            retransmits: number * case.retransmits_per_s,
            drops: number * case.drops,
            calibration_ns: if case.slow_calibration && number > 10 { 1_500 } else { 1_000 },
            ..HostSample::default()
        },
    }
}

fn run(case: &Case) -> Run {
    let mut plan = plan();
    plan.thresholds.clone_from(&case.thresholds);
    Run {
        manifest: Manifest {
            status: case.status.unwrap_or(Status::Finished),
            host: HostFacts { cores: 2, descriptors_max: 1_000, ..HostFacts::default() },
            generator: Generator { shards: 1, processes: 1 },
            ..Manifest::default()
        },
        plan: Some(plan),
        scenario: String::new(),
        seconds: (0..SECONDS).map(|number| second(case, number)).collect(),
        probes: (0..=u64::from(SECONDS)).map(|number| probe(case, number)).collect(),
        metrics: Vec::new(),
        events: Vec::new(),
        profiles: Vec::new(),
        notes: Vec::new(),
    }
}

#[track_caller]
fn check(case: &Case, level: Level, words: &str) -> Analysis {
    let analysis = Analysis::of(&run(case));
    let health = &analysis.summary.health;
    assert_eq!(health.level, level, "{health:?}");
    let found = health.findings.iter().any(|finding| finding.what.contains(words));
    assert!(found || words.is_empty(), "{words}: {health:?}");
    assert!(health.findings.iter().all(|finding| !finding.advice.is_empty()));
    analysis
}

#[test]
fn what_is_found() {
    let case = Case::default;
    check(&case(), Level::Healthy, "");
    check(&Case { sends_late: 1, ..case() }, Level::Healthy, "");
    check(&Case { sends_late: 2, ..case() }, Level::Strained, "0.20 % of the messages");
    check(&Case { sends_late: 60, ..case() }, Level::Invalid, "6.00 % of the messages");
    check(&Case { lag_ms: 9, ..case() }, Level::Healthy, "");
    check(&Case { lag_ms: 20, ..case() }, Level::Strained, "timers fired 20 ms late");
    check(&Case { lag_ms: 60, ..case() }, Level::Invalid, "timers fired 60 ms late");
    check(&Case { arrivals_missing: 4, ..case() }, Level::Healthy, "");
    check(&Case { kept_out: 1, ..case() }, Level::Healthy, "");
    check(&Case { kept_out: 2, ..case() }, Level::Strained, "only 1960 of 2000");
    check(&Case { kept_out: 100, ..case() }, Level::Invalid, "nobody got in of 2000");
    check(&Case { arrivals_missing: 6, ..case() }, Level::Invalid, "only 1880 of 2000");
    check(&Case { exhausted: 1, ..case() }, Level::Invalid, "20 connections failed");
    check(&Case { generator_cpu: 80, ..case() }, Level::Healthy, "");
    check(&Case { generator_cpu: 95, ..case() }, Level::Invalid, "out of CPU 100 %");
    check(&Case { steal: 4, ..case() }, Level::Healthy, "");
    check(&Case { steal: 10, ..case() }, Level::Strained, "gave 10 %");
    check(&Case { steal: 30, ..case() }, Level::Invalid, "gave 30 %");
    check(&Case { target_waits: 10, ..case() }, Level::Healthy, "");
    check(
        &Case { target_waits: 40, ..case() },
        Level::Strained,
        "the target was starved: it waited 8.0 s for a processor for 10.0 s it ran, so its figures are",
    );
    let generator = |cpu, waits| Case { generator_cpu: cpu, generator_waits: waits, ..case() };
    check(&generator(80, 10), Level::Healthy, "");
    check(&generator(80, 30), Level::Strained, "the generator was starved: it waited 6.0 s for a");
    check(&generator(10, 50), Level::Invalid, "the generator was starved: it waited 10.0 s for a");
    check(&Case { retransmits_per_s: 20, ..case() }, Level::Strained, "400 TCP segments");
    check(&Case { drops: 1, ..case() }, Level::Strained, "dropped 20 packets");
    check(&Case { descriptors: 990, ..case() }, Level::Strained, "990 of 1000 descriptors");
    check(&Case { slow_calibration: true, ..case() }, Level::Strained, "1.50 times");
    let running = Some(Status::Running);
    check(&Case { status: running, ..case() }, Level::Invalid, "cut short at second 20");
    let aborted = Some(Status::Aborted);
    check(&Case { status: aborted, ..case() }, Level::Invalid, "aborted at second 20");
}

/// Who took the processors decides what is to be done.
#[test]
fn a_starved_target_is_told_who_took_its_processor() {
    for (others, want) in [(0, "want more than this machine has"), (50, "had 50 % of the machine")]
    {
        let case = Case { target_waits: 40, others, ..Case::default() };
        let health = check(&case, Level::Strained, "the target was starved").summary.health;
        assert!(health.findings[0].advice.contains(want), "{others} %: {health:?}");
    }
}

#[test]
fn verdicts_and_exit_codes() {
    let threshold = |measure, bound_ms: f64| Threshold {
        quantity: Quantity::Latency { measure, quantile: 0.9 },
        comparison: Comparison::Below,
        bound: bound_ms * 1e6,
        text: format!("{} p90: < {bound_ms}ms", measure.name()),
    };
    let kept = || threshold(Measure::Say, 30.0);
    let broken = || threshold(Measure::Say, 10.0);
    let unmeasured = || threshold(Measure::Edit, 10.0);
    for (thresholds, lag_ms, verdict, code) in [
        (vec![], 0, Verdict::Kept, 0),
        (vec![kept()], 0, Verdict::Kept, 0),
        (vec![kept()], 20, Verdict::Kept, 0),
        (vec![kept(), broken()], 0, Verdict::Broken, 1),
        (vec![unmeasured(), broken()], 0, Verdict::Broken, 1),
        (vec![kept(), unmeasured()], 0, Verdict::CouldNotMeasure, 3),
        (vec![kept()], 60, Verdict::CouldNotMeasure, 3),
        (vec![broken()], 60, Verdict::CouldNotMeasure, 3),
    ] {
        let summary = Analysis::of(&run(&Case { thresholds, lag_ms, ..Case::default() })).summary;
        assert_eq!(summary.verdict, verdict, "{:?}", summary.thresholds);
        assert_eq!((summary.exit_code, exit_code(verdict)), (code, code));
    }
}
