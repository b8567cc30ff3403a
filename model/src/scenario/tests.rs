//! The language as a whole: scenarios in, plans or mistakes out.

use super::*;
use crate::*;

const YARDSTICK_VERBS: &[Measure] = &[
    Measure::Login,
    Measure::Join,
    Measure::Leave,
    Measure::Say,
    Measure::History,
    Measure::Members,
    Measure::Presence,
    Measure::Typing,
    Measure::Read,
    Measure::Ping,
    Measure::Tell,
    Measure::Multicast,
];

/// Protocols for the tests, with the features the documentation speaks of.
static YARDSTICK: Facts = facts_of(
    "yardstick",
    YARDSTICK_VERBS,
    &[("avatars", ""), ("history", ""), ("members", ""), ("resume", "")],
);
static SOCKETIO: Facts = facts_of("socketio", YARDSTICK_VERBS, &[]);
/// Does not know `read`.
static XMPP: Facts = facts_of(
    "xmpp",
    &[
        Measure::Login,
        Measure::Join,
        Measure::Leave,
        Measure::Say,
        Measure::History,
        Measure::Members,
        Measure::Presence,
        Measure::Typing,
        Measure::Ping,
        Measure::Tell,
        Measure::Multicast,
        Measure::Rename,
        Measure::Befriend,
    ],
    &[("disco", ""), ("roster", ""), ("avatars", ""), ("carbons", ""), ("history", "")],
);

static WEBSOCKET: Facts = facts_of("websocket", YARDSTICK_VERBS, &[]);

const fn facts_of(
    name: &'static str,
    verbs: &'static [Measure],
    features: &'static [(&'static str, &'static str)],
) -> Facts {
    Facts {
        name,
        about: "for tests",
        schemes: &["ws"],
        verbs,
        features,
        options: &[],
        manners: Manners { echo: true, ack: Ack::Reply, stamped_joins: false },
    }
}

pub(super) fn facts(name: &str) -> Option<&'static Facts> {
    [&YARDSTICK, &SOCKETIO, &XMPP, &WEBSOCKET].into_iter().find(|facts| facts.name == name)
}

/// Plans as the program does: the target tells the protocol.
pub(super) fn plan_of(scenario: &Scenario) -> Result<Plan, Vec<Mistake>> {
    let target = scenario.target()?;
    let protocol = match target.name.as_str() {
        "prosody" | "ejabberd" => "xmpp".into(),
        "river" => "socketio".into(),
        "described" => "websocket".into(),
        _ if scenario.root.at("websocket").is_some() => "websocket".into(),
        name if name.contains("://") => scenario.protocol().unwrap_or_default(),
        _ => "yardstick".to_owned(),
    };
    let options = PlanOptions { name: "test".into(), ..PlanOptions::default() };
    scenario.plan(&options, &facts, &protocol)
}

pub(super) fn plan(text: &str) -> Result<Plan, Vec<Mistake>> {
    let scenario = Scenario::parse("s.yaml", text).map_err(|mistake| vec![mistake])?;
    plan_of(&scenario)
}

/// A plan of what must be right.
pub(super) fn good(text: &str) -> Plan {
    plan(text).unwrap_or_else(|mistakes| panic!("{}", drawn(&mistakes)))
}

pub(super) fn drawn(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
}

const PROSODY: &str = r#"
about: What avatars, history and chatter cost a Prosody server
target: prosody                      # a folder in targets/: installed? started, watched, stopped
rooms: [live]
crowds:
  seeders: {size: 2, journey: [login, {join: live}, {talk: {every: 100ms, for: 6s}}, leave]}
  viewers:
    size: 100
    features: [disco, roster, avatars, carbons, history]   # each can be switched off by name
    journey: [login, {join: live}, {wait: 25s}, {talk: {every: 5s, for: 20s}}, {wait: 15s}, leave]
timeline:
  - run: seeders at 10/s
  - rest: 15s
  - run: viewers at 10/s
  - rest: 80s
  - run: viewers at 10/s without avatars
  - rest: 80s
  - run: viewers at 10/s without avatars, history
"#;

const CHATTR: &str = r#"
about: 250 people talk in ten channels of a token-authenticated chat
target: fastapi-chat
rooms: {count: 10, name: "test_{n}"}
crowds:
  people:
    size: 250
    accounts: {count: 1000, name: "user{n}", password: "user{n}"}
    joined: 6.3 of 10                # a worn-in database, see EXPERIMENTS.md
    journey:
      - login
      - wait: 62.5s                  # everybody is in before anybody talks
      - repeat: 40
        think: 6s
        choose: {94%: {say: {room: joined, words: 1..10}}, 3%: {join: another}, 3%: {leave: joined}}
      - disconnect
timeline: [{run: people at 4/s}]
thresholds:
  delivery p90: < 200ms
  delivery p95: < 500ms
  delivery p99: < 1000ms
  lost: 0
"#;

const S: u64 = 1_000_000_000;

fn deed(verb: Measure, room: Option<RoomChoice>) -> Op {
    let text = (verb == Measure::Say).then_some(Text::Words(1, 10));
    Op::Do(Deed { verb: DeedVerb::Ask(verb), room, text, limit: 0 })
}

#[test]
fn the_prosody_experiment_is_planned() {
    let plan = good(PROSODY);
    assert_eq!(plan.target.name, "prosody");
    assert_eq!(plan.rooms, ["live"]);
    assert_eq!(plan.people(), 302);
    let viewers = &plan.crowds[1];
    assert_eq!(viewers.program.stages, ["join", "talk", "leave"]);
    let live = Some(RoomChoice::Named(0));
    let repeat = Op::Repeat {
        times: None,
        for_ns: Some(20 * S),
        every: Some(Span::Fixed(5 * S)),
        late_start: true,
        end: 8,
    };
    let want = [
        Op::Stage(0),
        deed(Measure::Login, None),
        deed(Measure::Join, live),
        Op::Wait(Span::Fixed(25 * S)),
        Op::Stage(1),
        repeat,
        deed(Measure::Say, Some(RoomChoice::Joined)),
        Op::Again(5),
        Op::Wait(Span::Fixed(15 * S)),
        Op::Stage(2),
        deed(Measure::Leave, Some(RoomChoice::Joined)),
    ];
    assert_eq!(viewers.program.ops, want);
    let names: Vec<&str> = plan.phases.iter().map(|phase| phase.name.as_str()).collect();
    let want = ["seeders", "rest-1", "viewers-1", "rest-2", "viewers-2", "rest-3", "viewers-3"];
    assert_eq!(names, want);
    let runs: Vec<(u32, u32, usize)> =
        plan.runs().map(|run| (run.first, run.count, run.features.len())).collect();
    assert_eq!(runs, [(0, 2, 0), (2, 100, 5), (102, 100, 4), (202, 100, 3)]);
    assert_eq!(plan.phases[1].kind, PhaseKind::Rest { ns: 15 * S });
    let last = plan.runs().last().unwrap();
    assert_eq!(last.features, ["disco", "roster", "carbons"]);
    assert_eq!(last.pacer, Pacer::Constant { rate: 10.0 });
    assert_eq!((last.until, last.deadline_ns), (Until::In, 60 * S));
}

#[test]
fn the_chattr_experiment_is_planned() {
    let plan = good(CHATTR);
    assert_eq!(plan.rooms.len(), 10);
    assert_eq!((plan.rooms[0].as_str(), plan.rooms[9].as_str()), ("test_0", "test_9"));
    let people = &plan.crowds[0];
    let accounts = Accounts::Pattern {
        name: "user{n}".into(),
        password: Secret::Pattern("user{n}".into()),
        first: 0,
        count: 1000,
    };
    assert_eq!(people.accounts, accounts);
    let repeat =
        Op::Repeat { times: Some(40), for_ns: None, every: None, late_start: false, end: 15 };
    let want = [
        Op::Stage(0),
        deed(Measure::Login, None),
        Op::JoinSome { mean: 6.3, of: 10 },
        Op::Wait(Span::Fixed(62_500_000_000)),
        Op::Stage(1),
        repeat,
        Op::Choose(vec![(94, 7), (3, 9), (3, 11)]),
        deed(Measure::Say, Some(RoomChoice::Joined)),
        Op::Jump(13),
        deed(Measure::Join, Some(RoomChoice::Another)),
        Op::Jump(13),
        deed(Measure::Leave, Some(RoomChoice::Joined)),
        Op::Jump(13),
        Op::Wait(Span::Fixed(6 * S)),
        Op::Again(5),
        Op::Stage(2),
        Op::Do(Deed { verb: DeedVerb::Disconnect, room: None, text: None, limit: 0 }),
    ];
    assert_eq!(people.program.ops, want);
    let bounds: Vec<f64> = plan.thresholds.iter().map(|t| t.bound).collect();
    assert_eq!(bounds, [200e6, 500e6, 1e9, 0.0]);
    let p90 = Quantity::Latency { measure: Measure::Delivery, quantile: 0.9 };
    assert_eq!(plan.thresholds[0].quantity, p90);
    assert_eq!(plan.thresholds[3].comparison, Comparison::Equal);
}

#[test]
fn figures_and_metrics_are_thresholds() {
    let check = |name: &str, bound: &str, want: Quantity, value: f64| {
        let text = format!(
            "target: yardstick\ncrowds: {{p: {{size: 1, journey: [login]}}}}\n\
             timeline: [{{run: p at once}}]\nthresholds: {{'{name}': '{bound}'}}\n\
             probes: {{promql: {{url: 'http://h', queries: {{in-flight: up}}}}}}\n"
        );
        let threshold = good(&text).thresholds.remove(0);
        assert_eq!((threshold.quantity, threshold.bound), (want, value), "{name}: {bound}");
    };
    let of = |role, figure| Quantity::Process { role, figure };
    let target = |figure| of(Role::Target, figure);
    check("target cpu", "< 80%", target(Figure::CpuMean), 0.8);
    check("target cpu max", "< 350%", target(Figure::CpuMax), 3.5);
    check("target cpu time", "< 30s", target(Figure::CpuTime), 30e9);
    check("target cpu per delivery", "< 20us", target(Figure::CpuPerDelivery), 20e3);
    check("target run-queue", "< 5%", target(Figure::RunQueue), 0.05);
    check("target run-queue wait", "< 5%", target(Figure::RunQueue), 0.05);
    check("target memory", "< 500MiB", target(Figure::MemoryMax), 524_288_000.0);
    check("target memory mean", "< 1kB", target(Figure::MemoryMean), 1e3);
    check("generator  pss", "at most 1GB", of(Role::Generator, Figure::PssMax), 1e9);
    check("target threads", "<= 64", target(Figure::Threads), 64.0);
    check("target descriptors", "< 1_000", target(Figure::Descriptors), 1e3);
    check("host steal", "< 1%", Quantity::Steal, 0.01);
    let selector = |text: &str| Selector::parse(text).unwrap();
    let metric = |text: &str, fold| Quantity::Metric { selector: selector(text), fold };
    check("metric in_flight", "< 100", metric("in_flight", Fold::Every), 100.0);
    check("metric max(rss_bytes)", "< 5MB", metric("rss_bytes", Fold::Max), 5e6);
    let hits = metric("hits_total{code!=\"200\",path=\"(\"}", Fold::Rate);
    check("metric rate(hits_total{code!=\"200\",path=\"(\"})", "> -0.5", hits, -0.5);
    check("metric mean( delay_seconds )", "< 20ms", metric("delay_seconds", Fold::Mean), 0.02);
    let name = Selector { name: "in-flight".into(), labels: Vec::new() };
    check(
        "promql last(in-flight)",
        "< 5",
        Quantity::Query { selector: name, fold: Fold::Last },
        5.0,
    );
}

#[test]
fn metrics_of_thresholds_are_read() {
    let plan = |probes: &str| {
        let text = format!(
            "target: yardstick\ncrowds: {{p: {{size: 1, journey: [login]}}}}\n\
             timeline: [{{run: p at once}}]\nthresholds: {{metric b: < 1}}\n{probes}"
        );
        good(&text).probes.prometheus
    };
    let own = Prometheus { at: MetricsAt::Target, every_ns: 1_000_000_000, keep: vec!["b".into()] };
    assert_eq!(plan(""), [own]);
    let all = &plan("probes: {prometheus: {url: 'http://h/m'}}")[0];
    assert!(all.keep.is_empty() && all.keeps("anything"));
    let some = &plan("probes: {prometheus: {every: 250ms, keep: [c*, a]}}")[0];
    assert_eq!((some.every_ns, some.keep.join(" ").as_str()), (250_000_000, "a b c*"));
    assert!(some.keeps("a") && some.keeps("cc") && !some.keeps("aa"));
}

#[test]
fn a_parameter_sets_all_it_stands_for() {
    let text = "target: prosody\nrooms: [live]\nparameters: {n: [crowds.a.size, crowds.b.size]}\n\
                crowds:\n  a: {size: 1, journey: [login, disconnect]}\n  \
                b: {size: 1, journey: [login, disconnect]}\n\
                timeline: [{run: a at once}, {run: b at once}]\n";
    let mut scenario = Scenario::parse("s.yaml", text).unwrap();
    scenario.set("n", "7").unwrap();
    let sizes: Vec<u32> = plan_of(&scenario).unwrap().crowds.iter().map(|c| c.size).collect();
    assert_eq!(sizes, [7, 7]);
    assert!(scenario.set("m", "7").is_ok(), "an unknown key is told by the plan");
    assert!(plan_of(&scenario).is_err());
}

#[test]
fn an_option_that_is_written_behind_the_name_can_be_set() {
    let text = "target: prosody?gc=shipped&vcard=lab\nrooms: [live]\n\
                crowds: {a: {size: 1, journey: [login, disconnect]}}\ntimeline: [{run: a at once}]\n";
    let mut scenario = Scenario::parse("s.yaml", text).unwrap();
    scenario.set("target.gc", "generational").unwrap();
    let target = plan_of(&scenario).unwrap().target;
    assert_eq!(target.name, "prosody");
    let options = [("gc", "generational"), ("vcard", "lab")];
    assert_eq!(target.options, options.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
}
