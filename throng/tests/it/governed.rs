//! Known truth: a governor that moves the population of a real run until a criterion allows no
//! more. The criterion is a count that grows with the square of the people, so the right number is
//! known whatever the machine.

use crate::rig::yardstick;
use engine::clock::Clock;
use engine::profile::Profile;
use engine::{Ending, Holding, Job, Progress, Run, Sink, Trust, Watched, Wish};
use model::scenario::{PlanOptions, Scenario};
use model::{Facts, Interval, MetricSample, Plan, ProbeSample, Record, Tick};
use results::capacity::Window;
use results::capacity::continuous::{Act, End, Governor, Settings, Sight};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// So many people deliver as much in two seconds as is allowed: each says five things a second, to
/// everybody.
const CAPACITY: u64 = 30;
const WINDOW_S: u32 = 2;
/// How far off the mean of a short saw-tooth may be, people.
const OFF_MAX: u64 = 5;
/// How often it is tried: on a machine that stalls, deliveries come in heaps.
const TRIES_MAX: u32 = 3;

fn plan(url: &str) -> Plan {
    let deliveries = CAPACITY * CAPACITY * 5 * u64::from(WINDOW_S);
    let text = format!(
        "target: {{url: \"{url}\", codec: proto}}
protocol: yardstick
rooms: [lobby]
crowds:
  people:
    size: 5
    journey: [login, join, {{repeat: forever, every: {{exponential: 200ms}}, do: say}}]
timeline: [{{hold: people for 1h, by: once, most: 80}}]
thresholds: {{deliveries: at most {deliveries}}}
"
    );
    let facts = |name: &str| -> Option<&'static Facts> { Some(protocols::protocol(name)?.facts()) };
    let scenario = Scenario::parse("governed", &text).unwrap();
    scenario.plan(&PlanOptions::default(), &facts, "yardstick").unwrap()
}

fn settings() -> Settings {
    Settings {
        people: (5, 80),
        every_s: 0.5,
        increase: 2,
        decrease: 3,
        rest_s: 3.0,
        grace_s: 3.0,
        window_s: WINDOW_S,
        steady_s: 8.0,
        slope_max: 0.3,
        seconds_max: 50.0,
    }
}

/// What `throng capacity` does in its continuous style, in small.
struct Governed {
    plan: Plan,
    window: Window,
    governor: Governor,
    total: Interval,
    last: Interval,
}

impl Sink for Governed {
    fn interval(&mut self, interval: &Interval) {
        self.window.push(interval);
        self.total.merge(interval);
        self.last = interval.clone();
    }
    fn probe(&mut self, _: &ProbeSample) {}
    fn metrics(&mut self, _: &[MetricSample]) {}
    fn profile(&mut self, _: &Profile) {}
    fn record(&mut self, _: &Record) {}
    fn progress(&mut self, _: &Progress<'_>) {}

    fn govern(&mut self, now: Tick, holding: &Holding<'_>) -> Wish {
        let now_s = now.secs_f64() - holding.begun.secs_f64();
        let see = || Sight {
            present: holding.present,
            criteria: self.window.judge(&self.plan.thresholds),
            generator_limit: None,
        };
        match self.governor.decide(now_s, see) {
            Act::People(people) => Wish::People(people),
            Act::Done => Wish::Enough,
        }
    }
}

#[test]
fn a_population_settles_where_the_criterion_allows_no_more() {
    for _ in 0..TRIES_MAX {
        let governed = govern_a_run();
        let counters = governed.total.counters;
        assert!(counters.finished > 30 && counters.expected > 10_000, "{counters:?}");
        assert_eq!((counters.lost, counters.duplicate, counters.unexpected), (0, 0, 0));
        assert_eq!(counters.finished, counters.arrivals, "everybody went home in the end");
        assert_eq!(governed.last.gauges, Default::default());
        let settled = governed.governor.settled();
        let Some(supported) = settled.supported.map(u64::from) else { continue };
        assert_eq!((settled.ended, settled.alerts.len()), (End::Steady, 1), "{:?}", settled.alerts);
        if supported.abs_diff(CAPACITY) <= OFF_MAX {
            return;
        }
    }
    panic!("it never settled near {CAPACITY} in {TRIES_MAX} tries");
}

fn govern_a_run() -> Governed {
    let server = yardstick("");
    let url = format!("ws://{}/ws", server.address());
    let plan = plan(&url);
    let clock = Clock::start();
    let job = Job {
        plan: plan.clone(),
        url,
        options: plan.target.options.clone(),
        endpoints: vec![server.address()],
        source_addresses: Vec::new(),
        trust: Trust::System,
        folder: ".".into(),
        run: 1,
        epoch_ns: clock.epoch_ns(),
        board: String::new(),
        sources: 0,
    };
    let run = Run {
        job,
        clock,
        shards: 2,
        people_per_process: 1_000,
        exe: env!("CARGO_BIN_EXE_throng").into(),
        protocols: protocols::protocol,
        watched: Watched::default(),
        metrics: Vec::new(),
        allowed: Vec::new(),
        stop: Arc::new(AtomicBool::new(false)),
    };
    let mut governed = Governed {
        plan,
        window: Window::new(WINDOW_S),
        governor: Governor::new(settings()),
        total: Interval::default(),
        last: Interval::default(),
    };
    assert_eq!(run.carry_out(&mut governed).map(|(ending, _)| ending), Ok(Ending::Finished));
    governed
}
