//! A made-up but plausible run: three batches of a hundred people in one room of a server with one
//! thread, as in the published Prosody experiment. Seeded, so every writing of it is the same.

use model::{
    Accounts, Comparison, Counters, Crowd, Edge, FaultClass, HostSample, Interval, Limits, Measure,
    Pacer, Phase, PhaseKind, Plan, ProbeSample, Probes, ProcessSample, Program, Quantity, Record,
    Rng, RunPhase, Secret, StageTally, Tally, TargetRef, Threshold, Tick, Until, What,
};
use results::run::{Generator, HostFacts, Manifest, TargetFacts, iso_utc};
use results::{Analysis, Error, RunWriter, Status};
use std::collections::BTreeMap;
use std::path::Path;

/// How long the run takes, seconds.
const LENGTH_S: u32 = 330;
/// When the batches begin, seconds.
const STARTS_S: [f64; 3] = [19.7, 110.2, 200.7];
/// People of a batch.
const SIZE: u32 = 100;
/// People of the first batch who never get in.
const MISSING: [u32; 8] = [72, 73, 74, 75, 76, 77, 78, 99];
/// CPU seconds of one join beside n others, by batch: pictures are n², history is not.
const JOIN_COST_S: [f64; 3] = [0.0024, 0.0010, 0.0005];
/// A name that a careless report would run.
const HOSTILE: &str = "<script>alert(1)</script> |*bold*| `x` \u{1b}[31mred & \"quoted\"";

/// One person's times, seconds.
struct Person {
    batch: usize,
    due: f64,
    arrived: f64,
    entered: Option<f64>,
}

impl Person {
    fn talk(&self) -> Option<(f64, f64)> {
        self.entered.map(|at| (at + 25.0, at + 45.0))
    }

    fn leave(&self) -> Option<f64> {
        self.entered.map(|at| at + 60.0)
    }

    fn online(&self, at: f64) -> bool {
        let left = self.leave().unwrap_or(f64::MAX);
        self.entered.is_some_and(|entered| entered <= at) && at < left
    }
}

/// The whole made-up world.
struct World {
    people: Vec<Person>,
    /// Times of messages, seconds.
    says: Vec<f64>,
    rng: Rng,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed, 0);
        let (mut people, mut says) = (Vec::new(), Vec::new());
        for (batch, &start) in STARTS_S.iter().enumerate() {
            for i in 0..SIZE {
                let due = start + f64::from(i) * 0.1;
                let crowding = f64::from(i) / f64::from(SIZE);
                let lag = [3.3, 0.7, 0.3][batch] * crowding * crowding;
                let arrived = due + 0.02 + rng.unit() * 0.01;
                let missing = batch == 0 && MISSING.contains(&i);
                let entered = (!missing).then(|| arrived + 0.08 + lag + rng.unit() * 0.1);
                let person = Person { batch, due, arrived, entered };
                if let Some((from, _)) = person.talk() {
                    says.extend((1..4).map(|k| from + f64::from(k) * 5.0));
                }
                people.push(person);
            }
        }
        World { people, says, rng }
    }

    fn online(&self, at: f64) -> u64 {
        self.people.iter().filter(|person| person.online(at)).count() as u64
    }

    fn count(&self, from: f64, to: f64, time: impl Fn(&Person) -> Option<f64>) -> u64 {
        let within = |person: &&Person| time(person).is_some_and(|at| (from..to).contains(&at));
        self.people.iter().filter(within).count() as u64
    }

    fn said(&self, from: f64, to: f64) -> u64 {
        self.says.iter().filter(|&&at| (from..to).contains(&at)).count() as u64
    }

    /// The target's load, fraction of a core.
    fn load(&mut self, at: f64) -> f64 {
        let online = self.online(at) as f64;
        let batch = STARTS_S.iter().filter(|&&start| start <= at + 1.0).count().saturating_sub(1);
        let half = 0.5;
        let joins = self.count(at - half, at + half, |p| p.entered) as f64;
        let leaves = self.count(at - half, at + half, Person::leave) as f64;
        let says = self.said(at - half, at + half) as f64;
        let work = joins * (0.012 + online * JOIN_COST_S[batch])
            + says * online * 0.00032
            + leaves * 0.014;
        let noise = 0.85 + 0.3 * self.rng.unit();
        (0.004 + work * noise + 0.01 * self.rng.unit()).min(1.04)
    }

    /// A duration around a median, nanoseconds.
    fn around(&mut self, median_ms: f64, sigma: f64) -> u64 {
        (median_ms * 1e6 * (sigma * self.rng.normal()).exp()) as u64
    }

    fn interval(&mut self, second: u32) -> Interval {
        let (from, to) = (f64::from(second), f64::from(second) + 1.0);
        let mut interval = Interval::new(second);
        let online = self.online(to);
        let load = self.load((from + to) / 2.0);
        let queueing = 1.0 / (1.06 - load.min(1.0));
        let counters = &mut interval.counters;
        counters.arrivals_due = self.count(from, to, |person| Some(person.due));
        counters.arrivals = self.count(from, to, |person| Some(person.arrived));
        counters.entered = self.count(from, to, |person| person.entered);
        counters.finished = self.count(from, to, |p| p.leave().map(|at| at + 0.1));
        counters.sends_due = self.said(from, to);
        counters.sends = counters.sends_due;
        counters.deliveries = counters.sends * online;
        counters.expected = counters.deliveries;
        counters.audited = counters.deliveries / 16;
        counters.presences = counters.entered * online;
        counters.presences_expected_min = counters.presences;
        counters.presences_expected_max = counters.presences + counters.entered;
        counters.bytes_in = counters.deliveries * 700 + counters.entered * 9_500 * online;
        counters.bytes_out = counters.sends * 400 + counters.entered * 4_000;
        (interval.gauges.connected, interval.gauges.online) = (online, online);
        interval.gauges.seats = online;
        let counters = interval.counters;
        self.measures(&mut interval, &counters, online, queueing);
        let missing =
            self.count(from - 30.0, to - 30.0, |p| p.entered.is_none().then_some(p.arrived));
        for _ in 0..missing {
            interval.fault(Measure::Join, FaultClass::RequestTimeout);
            interval.counters.gave_up += 1;
        }
        for _ in 0..200 {
            let ns = self.around(0.04, 0.6);
            interval.lag.record(ns);
        }
        interval
    }

    fn measures(&mut self, interval: &mut Interval, c: &Counters, online: u64, queueing: f64) {
        let batch =
            STARTS_S.iter().filter(|&&s| s <= f64::from(interval.second) + 1.0).count().max(1) - 1;
        let avatars = if batch == 0 { c.entered * (2 * online).min(186) } else { 0 };
        let history = if batch < 2 { c.entered } else { 0 };
        for (measure, asked, median_ms) in [
            (Measure::Connect, c.arrivals, 3.0),
            (Measure::Login, c.arrivals, 9.0),
            (Measure::Join, c.entered, 14.0),
            (Measure::Roster, c.entered, 2.0),
            (Measure::Disco, c.entered * 4, 1.5),
            (Measure::History, history, 6.0),
            (Measure::Avatars, avatars, 4.0),
            (Measure::Say, c.sends, 5.0),
            (Measure::Delivery, c.deliveries.min(2_000), 6.0),
            (Measure::Leave, c.finished, 3.0),
        ] {
            if asked == 0 {
                continue;
            }
            let stats = interval.measure(measure);
            let copies = if measure == Measure::Delivery { c.deliveries / asked } else { 1 };
            stats.done = asked * copies;
            stats.asked = if measure == Measure::Delivery { 0 } else { asked };
            for _ in 0..asked {
                let service = self.around(median_ms * queueing, 0.35);
                let late = self.around(0.05, 0.5);
                let stats = interval.measure(measure);
                stats.service.record_n(service, copies);
                stats.latency.record_n(service + late, copies);
            }
        }
    }
}

pub(crate) fn plan() -> Plan {
    let names = ["everything", "without avatars", "without avatars, history"];
    let run = |(i, name): (usize, &&str)| Phase {
        name: (*name).to_owned(),
        kind: PhaseKind::Run(RunPhase {
            crowd: 0,
            first: i as u32 * SIZE,
            count: SIZE,
            pacer: Pacer::Constant { rate: 10.0 },
            features: Vec::new(),
            until: Until::In,
            deadline_ns: 60_000_000_000,
            marks: BTreeMap::new(),
            hold: None,
        }),
        profiles: Vec::new(),
    };
    let threshold = |text: &str, quantity, comparison, bound| Threshold {
        quantity,
        comparison,
        bound,
        text: text.to_owned(),
    };
    let delivery = |quantile| Quantity::Latency { measure: Measure::Delivery, quantile };
    let lost = Quantity::Counter { name: "lost".to_owned() };
    Plan {
        name: "prosody-cpu".to_owned(),
        about: "What avatars, history and chatter cost a Prosody server".to_owned(),
        seed: 42,
        scale: 1.0,
        target: TargetRef { name: "prosody".to_owned(), options: BTreeMap::new() },
        protocol: "xmpp".to_owned(),
        rooms: vec!["live".to_owned()],
        lists: Vec::new(),
        crowds: vec![Crowd {
            name: "viewers".to_owned(),
            size: SIZE,
            features: vec!["avatars".to_owned(), "history".to_owned()],
            accounts: Accounts::Pattern {
                name: "user{n}".to_owned(),
                password: Secret::Pattern(String::new()),
                first: 0,
                count: 1000,
            },
            program: Program { ops: Vec::new(), stages: Vec::new(), gates: Vec::new() },
        }],
        phases: names.iter().enumerate().map(run).collect(),
        limits: Limits::default(),
        probes: Probes::default(),
        script: None,
        thresholds: vec![
            threshold("delivery p90: < 200ms", delivery(0.9), Comparison::Below, 200e6),
            threshold("delivery p99: < 1000ms", delivery(0.99), Comparison::Below, 1000e6),
            threshold(
                "join errors: < 1%",
                Quantity::FailureRate { measure: Measure::Join },
                Comparison::Below,
                0.01,
            ),
            threshold("lost: 0", lost, Comparison::Equal, 0.0),
        ],
    }
}

pub(crate) fn manifest() -> Manifest {
    let started_unix_ms = 1_769_860_800_000;
    let text = |text: &str| text.to_owned();
    Manifest {
        name: text("prosody-cpu"),
        about: text("What avatars, history and chatter cost a Prosody server"),
        throng: text("0.1.0"),
        started: iso_utc(started_unix_ms),
        started_unix_ms,
        seed: 42,
        scale: 1.0,
        scenario_hash: text(
            "sha256:5f3c1a9e77d0c2b41e6d8f0a3b5c7d9e1f2a4b6c8d0e2f4a6b8c0d1e3f5a7b9c",
        ),
        command: ["throng", "run", "scenarios/prosody-cpu.yaml"].map(text).to_vec(),
        target: TargetFacts {
            name: text("prosody"),
            version: format!("Prosody 0.12.3 {HOSTILE}"),
            protocol: text("xmpp"),
            options: [(text("storage"), text("internal"))].into(),
            processes: vec![text("lua5.4 (4711)")],
            descriptors_max: 0,
        },
        host: HostFacts {
            kernel: text("Linux 6.1.0 x86_64"),
            cpu: text("AMD EPYC 7763"),
            cores: 2,
            memory_bytes: 8 << 30,
            descriptors_max: 20_000,
            limits: [(text("nofile"), text("20000"))].into(),
        },
        generator: Generator { shards: 1, processes: 1 },
        ..Manifest::default()
    }
}

fn tick(s: f64) -> Tick {
    Tick((s * 1e9) as u64)
}

/// First and last of some times.
fn span(times: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    (times.clone().fold(f64::MAX, f64::min), times.fold(0.0, f64::max))
}

/// Everything that happened in one batch, with the marks T1 to T9.
fn records(world: &World, batch: usize, name: &str) -> Vec<Record> {
    let people = || world.people.iter().filter(move |person| person.batch == batch);
    let entered = span(people().filter_map(|p| p.entered));
    let arrived = span(people().map(|p| p.arrived));
    let (first, last) = entered;
    let stages = [
        ("join", arrived.0, arrived.0 + 0.3, last, last),
        ("talk", first + 25.0, last + 25.0, first + 45.0, last + 45.0),
        ("leave", first + 60.0, last + 60.0, first + 60.1, last + 60.1),
    ];
    let count = people().filter(|person| person.entered.is_some()).count() as u64;
    let mut records = vec![record(STARTS_S[batch], phase(name, Edge::Begin))];
    let mut tallies = Vec::new();
    for (i, (stage, first_in, last_in, first_out, last_out)) in stages.into_iter().enumerate() {
        let mark = format!("T{}", batch * 3 + i + 1);
        let what = |edge, mark| What::Stage { phase: name.into(), stage: stage.into(), edge, mark };
        records.push(record(first_in, what(Edge::Begin, Some(mark))));
        records.push(record(last_out, what(Edge::End, None)));
        tallies.push(StageTally {
            name: stage.to_owned(),
            entered: count,
            left: count,
            first_in: Some(tick(first_in)),
            last_out: Some(tick(last_out)),
            last_in: Some(tick(last_in)),
            first_out: Some(tick(first_out)),
        });
    }
    let says = count * 3;
    let tally = Tally {
        phase: name.to_owned(),
        asked: u64::from(SIZE),
        arrived: u64::from(SIZE),
        entered: count,
        finished: count,
        gave_up: u64::from(SIZE) - count,
        turned_back: u64::from(SIZE) - count,
        sends_due: says,
        sends: says,
        sends_late: 0,
        arrival_lag_ns_max: 31_000_000,
        arriving: Some((tick(arrived.0), tick(arrived.1))),
        entering: Some((tick(first), tick(last))),
        stages: tallies,
    };
    records.push(record(last + 61.0, What::Tally(tally)));
    records.push(record(last + 61.0, phase(name, Edge::End)));
    records
}

fn record(at_s: f64, what: What) -> Record {
    Record { at: tick(at_s), what }
}

fn phase(name: &str, edge: Edge) -> What {
    What::Phase { name: name.to_owned(), edge, overdue: false }
}

/// Cumulative counters of the probes.
#[derive(Default)]
struct Meters {
    target_ns: u64,
    generator_ns: u64,
    rss_bytes: u64,
}

fn probe(world: &mut World, meters: &mut Meters, at: f64) -> ProbeSample {
    let load = world.load(at);
    let online = world.online(at);
    meters.target_ns += (load * 0.2e9) as u64;
    meters.generator_ns += ((0.01 + load * 0.12) * 0.2e9) as u64;
    meters.rss_bytes = meters.rss_bytes.max(38_000_000 + online * 190_000);
    let process = |pid, name: &str, cpu_ns: u64, rss_bytes| ProcessSample {
        pid,
        name: name.to_owned(),
        cpu_ns,
        user_ns: cpu_ns * 3 / 4,
        run_queue_ns: cpu_ns / 40,
        rss_bytes,
        threads: 1,
        descriptors: online + 12,
        ..ProcessSample::default()
    };
    ProbeSample {
        at: tick(at),
        target: vec![process(4711, "lua5.4", meters.target_ns, meters.rss_bytes)],
        generator: vec![process(4720, "throng", meters.generator_ns, 21_000_000 + online * 1_100)],
        host: HostSample {
            busy_ns: meters.target_ns + meters.generator_ns,
            steal_ns: (at * 2e6) as u64,
            load: load * 1.3,
            available_bytes: 5 << 30,
            calibration_ns: 1_000_000 + world.rng.below(50_000),
            ..HostSample::default()
        },
    }
}

/// A profile with names of every kind.
pub(crate) fn folded() -> String {
    let stacks = [
        ("prosody;main;dispatch;send;tcp_sendmsg_[k]", 310),
        ("prosody;main;dispatch;send", 25),
        ("prosody;main;dispatch;parse;std::vec<a, (b)>::push(c const&)", 140),
        ("prosody;main;dispatch;parse", 60),
        ("prosody;main;collect garbage;collect garbage", 88),
        ("prosody;main;epoll_wait_[k]", 9),
    ];
    let mut text: String = stacks.iter().map(|(stack, seen)| format!("{stack} {seen}\n")).collect();
    text.push_str(&format!("prosody;{} 77\n", HOSTILE.replace([';', '\n'], ":")));
    text
}

/// Writes the whole run, finished.
pub(crate) fn write(dir: &Path) -> Result<Analysis, Error> {
    let mut world = World::new(42);
    let plan = plan();
    let scenario = "about: What avatars, history and chatter cost a Prosody server\n";
    let mut writer = RunWriter::create(dir, manifest(), scenario, &plan)?;
    let mut meters = Meters::default();
    for second in 0..LENGTH_S {
        for fifth in 0..5 {
            let at = f64::from(second) + f64::from(fifth) * 0.2;
            writer.probe(&probe(&mut world, &mut meters, at))?;
        }
        writer.interval(&world.interval(second))?;
    }
    let said = What::Target { detail: format!("ready: {HOSTILE}") };
    writer.record(&record(0.4, said))?;
    let fault = What::Fault {
        measure: Measure::Join,
        class: FaultClass::RequestTimeout,
        detail: format!("no answer within 30 s: {HOSTILE}"),
    };
    writer.record(&record(56.9, fault))?;
    for (batch, phase) in plan.phases.iter().enumerate() {
        for record in records(&world, batch, &phase.name) {
            writer.record(&record)?;
        }
    }
    writer.profile("viewers 2", "perf", &folded())?;
    writer.finish(Status::Finished, "", Tick::from_secs(u64::from(LENGTH_S)))
}
