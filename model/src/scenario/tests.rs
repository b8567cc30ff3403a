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
];

/// Protocols for the tests, with the features the documentation speaks of.
static YARDSTICK: Facts =
    facts_of("yardstick", YARDSTICK_VERBS, &[("history", ""), ("members", ""), ("presence", "")]);
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
    ],
    &[("disco", ""), ("roster", ""), ("avatars", ""), ("carbons", ""), ("history", "")],
);

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
        echo: true,
        ack: Ack::Reply,
        stamped_joins: false,
    }
}

pub(super) fn facts(name: &str) -> Option<&'static Facts> {
    [&YARDSTICK, &XMPP].into_iter().find(|facts| facts.name == name)
}

/// Plans as the program does: the target tells the protocol.
pub(super) fn plan_of(scenario: &Scenario) -> Result<Plan, Vec<Mistake>> {
    let target = scenario.target()?;
    let protocol = match target.name.as_str() {
        "prosody" => "xmpp".into(),
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
