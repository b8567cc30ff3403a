//! Where healthy ends: every constant of the health verdict, with its reason.

/// Fraction of sends later than 10 ms above which a run is strained. Below it, lateness cannot
/// reach a 99th percentile; the project promises this much for its own benchmarks.
pub const LATE_SENDS_STRAINED: f64 = 0.001;
/// Fraction of late sends above which the load was not the load that was asked for.
pub const LATE_SENDS_INVALID: f64 = 0.05;

/// 99th percentile of shard lag above which a run is strained, ms: the bound of a "late" send.
pub const LAG_P99_STRAINED_MS: f64 = 10.0;
/// 99th percentile of shard lag above which the generator measures itself, ms: as long as a
/// delivery across a continent.
pub const LAG_P99_INVALID_MS: f64 = 50.0;
/// A single lag above which the run is strained, ms: somebody took the machine away.
pub const LAG_MAX_STRAINED_MS: f64 = 500.0;

/// Fraction of due arrivals that must have set out.
pub const ARRIVALS_INVALID: f64 = 0.95;
/// Fraction of the people asked for that must get in; below it, the target had less of a crowd
/// than the scenario says, and its figures are not comparable with those of a full one.
pub const ENTERED_STRAINED: f64 = 0.99;

/// Lateness of an arrival behind its schedule above which a run is strained, ms: a ramp of ten a
/// second has lost its shape when arrivals are late by ten people.
pub const ARRIVAL_LAG_STRAINED_MS: f64 = 1_000.0;

/// Fraction of its shards' cores that the generator may use between readings; above it, there is
/// no room left for a burst.
pub const GENERATOR_CPU_BUSY: f64 = 0.90;
/// Fraction of readings above [`GENERATOR_CPU_BUSY`] from which the run is strained.
pub const GENERATOR_BUSY_STRAINED: f64 = 0.05;
/// The same, from which the generator was the bottleneck.
pub const GENERATOR_BUSY_INVALID: f64 = 0.50;

/// Fraction of the machine's time that the hypervisor may give to others.
pub const STEAL_STRAINED: f64 = 0.05;
/// The same, above which CPU figures mean nothing.
pub const STEAL_INVALID: f64 = 0.25;

/// Time waited for a processor, as a fraction of waiting and running together, above which
/// processes are starved: a fifth of their delays is not their own. Without rivals it is a few
/// percent; runs with much of it have shown medians a hundred times those of the same run without.
pub const RUN_QUEUE_STRAINED: f64 = 0.20;
/// The same of the generator, above which it measured itself: what it did took four times as long
/// as it needed.
pub const RUN_QUEUE_INVALID: f64 = 0.75;
/// The waiting as a fraction of the run (or phase): below it, what adds up over a long quiet run is
/// the moment it takes to wake up, not a lack of processors.
pub const RUN_QUEUE_OF_RUN_MIN: f64 = 0.02;
/// The same of each of the generator's shards, which an invalid run exceeds as well: in short turns
/// even a long wait is a matter of microseconds.
pub const RUN_QUEUE_OF_RUN_INVALID: f64 = 0.25;
/// Seconds of running and waiting together below which a process is idle and its waiting says
/// nothing. Running alone would not do: the worst starved hardly run at all.
pub const RUN_QUEUE_WANTED_S_MIN: f64 = 1.0;
/// Fraction of the machine's time from which processes beside target and generator are named as
/// those who were waited for.
pub const OTHERS_TOLD: f64 = 0.10;

/// TCP segments sent again, a second, above which the network is part of the result. A loopback
/// interface that drops nothing has none.
pub const RETRANSMITS_PER_S_STRAINED: f64 = 10.0;

/// Fraction of a process's descriptors in use above which the next arrivals may fail.
pub const DESCRIPTORS_STRAINED: f64 = 0.95;

/// Fraction of the machine's memory that must stay available: below it, it may swap.
pub const MEMORY_STRAINED: f64 = 0.05;

/// Slowest over fastest calibration (of CPU time, 90th over 10th percentile) above which the
/// machine's own speed varied too much to compare one second with another.
pub const CALIBRATION_STRAINED: f64 = 1.25;
/// Calibrations below which their spread says nothing.
pub const CALIBRATIONS_MIN: usize = 10;

/// Most notes of target and generator that are kept in a summary.
pub const NOTES_MAX: usize = 100;

/// People online below which memory per person is the noise of a few pages.
pub const MEMORY_PEOPLE_MIN: u64 = 10;
/// Fraction of the most people ever online from which a second counts as one of the full crowd.
pub const MEMORY_STEADY_ONLINE: f64 = 0.95;
/// Readings of the full crowd below which there is no steady memory: a second of them.
pub const MEMORY_STEADY_READINGS_MIN: usize = 5;
