//! A closed population: `hold: viewers at 300 for 60s then 500 for 60s`.

use super::crowd::Draft;
use super::profile;
use super::prose::{self, Parsed, split_word};
use super::reader::{Fields, Reader};
use super::timeline::{self, PhaseDraft};
use super::tree::{Node, Place};
use super::unit::{self, Complaint};
use crate::stamp::PEOPLE_MAX;
use crate::{Crowd, Hold, Pacer, RunPhase, Until};
use std::collections::BTreeMap;

pub(super) const KEYS: &[&str] = &["hold", "by", "most", "without", "as", "marks", "profile"];
/// How fast people come and go if it is not written, people a second.
pub(super) const RATE: f64 = 10.0;
const EXAMPLE: &str = "as in `hold: viewers at 300 for 60s`";

/// A hold as its prose says it; without a number it is the crowd's size.
#[derive(Debug, PartialEq)]
struct Prose<'t> {
    crowd: &'t str,
    steps: Vec<(Option<u32>, u64)>,
    without: Vec<&'t str>,
}

/// `crowd [at people] for time [then people for time] [without feature, feature]`.
fn parse(text: &str) -> Parsed<'_, Prose<'_>> {
    let (head, without) = match split_word(text, "without") {
        Some((head, list)) => (head.trim(), prose::features(text, list)?),
        None => (text.trim(), Vec::new()),
    };
    let (crowd, mut rest) = head.split_once(char::is_whitespace).unwrap_or((head, ""));
    rest = rest.trim();
    rest = rest.strip_prefix("at ").unwrap_or(rest).trim();
    let mut steps = Vec::new();
    let mut more = Some(rest);
    while let Some(now) = more {
        let (now, then) = match split_word(now, "then") {
            Some((now, then)) => (now.trim(), Some(then.trim())),
            None => (now, None),
        };
        steps.push(step(text, now)?);
        more = then;
    }
    Ok(Prose { crowd, steps, without })
}

/// `300 for 60s`, or `for 60s`.
fn step<'t>(text: &'t str, step: &'t str) -> Parsed<'t, (Option<u32>, u64)> {
    let Some((people, time)) = split_word(step, "for") else {
        let part = if step.is_empty() { text } else { step };
        return Err((part, Complaint::new("this hold does not say for how long", EXAMPLE)));
    };
    let (people, time) = (people.trim(), time.trim());
    let ns = unit::duration(time).map_err(|complaint| (time, complaint))?;
    if ns == 0 {
        return Err((time, Complaint::new("a hold takes some time", "try `for 60s`")));
    }
    if people.is_empty() {
        return Ok((None, ns));
    }
    if people.contains('/') {
        let help = "write `at 300`; how fast they come is `by: 10/s`";
        return Err((people, Complaint::new("a hold keeps a number of people, not a rate", help)));
    }
    let count = unit::whole(people, 0, PEOPLE_MAX.into()).map_err(|why| (people, why))?;
    Ok((Some(count as u32), ns))
}

/// Reads a phase that holds a population.
pub(super) fn read<'n>(
    reader: &mut Reader<'_>,
    item: &'n Node,
    crowds: &[Draft<'_>],
    first: &mut u32,
) -> Option<PhaseDraft<'n>> {
    let fields = reader.fields(item, "a hold", KEYS)?;
    let (key, node) = fields.pair("hold")?;
    let prose = match parse(reader.text(node, "`hold`")?) {
        Ok(prose) => prose,
        Err((part, complaint)) => return timeline::refuse(reader, node, part, complaint),
    };
    let index = timeline::crowd_of(reader, node, prose.crowd, crowds)?;
    let crowd = &crowds[index];
    let people = |people: Option<u32>| people.map_or(Some(crowd.size), |n| scaled(crowd, n.into()));
    let steps: Option<Vec<(u32, u64)>> =
        prose.steps.iter().map(|&(count, ns)| Some((people(count)?, ns))).collect();
    let Some(steps) = steps else {
        let reason = format!("scaled, these are more than {PEOPLE_MAX} people");
        reader.wrong(node.place, reason, "scale it less");
        return None;
    };
    let count = most(reader, &fields, node, crowd, &steps)?;
    let run = RunPhase {
        crowd: index as u32,
        first: timeline::reserve(reader, node, count, first)?,
        count,
        pacer: speed(reader, &fields)?,
        features: timeline::features(reader, &fields, node, &prose.without, crowd)?,
        until: Until::Done,
        deadline_ns: 0,
        marks: BTreeMap::new(),
        hold: Some(Hold { steps }),
    };
    let name = timeline::name(reader, &fields)?;
    let marks = timeline::marks(reader, &fields)?;
    let mut draft = PhaseDraft::bringing(run, name, crowd.name, key.place, marks);
    draft.phase.profiles = profile::read(reader, fields.get("profile"))?;
    Some(draft)
}

/// A number of people as `--scale` has it; nobody stays nobody, and anybody at least one.
fn scaled(crowd: &Draft<'_>, people: u64) -> Option<u32> {
    let scaled = (people as f64 * crowd.scale).round().max(people.min(1) as f64);
    (scaled <= f64::from(PEOPLE_MAX)).then_some(scaled as u32)
}

/// Most people at a time: of the steps, or what is written for whoever moves the population.
fn most(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    at: &Node,
    crowd: &Draft<'_>,
    steps: &[(u32, u64)],
) -> Option<u32> {
    let most = steps.iter().map(|step| step.0).max().unwrap_or(0);
    if most == 0 && fields.get("most").is_none() {
        reader.wrong(at.place, "nobody ever comes to this hold", EXAMPLE);
        return None;
    }
    let Some(node) = fields.get("most") else { return Some(most) };
    let written = reader.whole(node, "`most`", 1, PEOPLE_MAX.into())?;
    match scaled(crowd, written) {
        Some(written) if written >= most => Some(written),
        Some(written) => {
            let reason = format!("this hold needs {most} people, but has {written} at most");
            reader.wrong(node.place, reason, format!("write `most: {most}`, or leave it out"));
            None
        }
        None => {
            let reason = format!("scaled, these are more than {PEOPLE_MAX} people");
            reader.wrong(node.place, reason, "scale it less");
            None
        }
    }
}

/// How fast people come and go.
fn speed(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Pacer> {
    let Some(node) = fields.get("by") else { return Some(Pacer::Constant { rate: RATE }) };
    let text = reader.text(node, "`by`")?;
    if text == "once" {
        return Some(Pacer::AtOnce);
    }
    match prose::positive(text) {
        Ok(rate) => Some(Pacer::Constant { rate }),
        Err((part, complaint)) => timeline::refuse(reader, node, part, complaint),
    }
}

/// What needs the journey: a gate would wait for a last person who never comes.
pub(super) fn check(
    reader: &mut Reader<'_>,
    at: Place,
    run: &RunPhase,
    crowd: &Crowd,
) -> Option<()> {
    if run.hold.is_some() && !crowd.program.gates.is_empty() {
        let reason = format!("`{}` wait at a gate, but in a hold nobody is the last", crowd.name);
        reader.wrong(at, reason, "bring them by `run: …`, or take the gate out of the journey");
        return None;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::{PlanOptions, Scenario};
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn prose_is_understood() {
        let check = |text: &str, steps: &[(Option<u32>, u64)], without: &[&str]| {
            let hold = parse(text).unwrap_or_else(|(part, why)| panic!("{text}: {part}: {why:?}"));
            assert_eq!((hold.crowd, &hold.steps[..], &hold.without[..]), ("v", steps, without));
        };
        check("v for 60s", &[(None, 60 * S)], &[]);
        check("v at 300 for 60s", &[(Some(300), 60 * S)], &[]);
        check("v at 2 for 1s then 0 for 2s", &[(Some(2), S), (Some(0), 2 * S)], &[]);
        check(
            "v at 2 for 1s then for 2s without a, b",
            &[(Some(2), S), (None, 2 * S)],
            &["a", "b"],
        );
    }

    #[test]
    fn a_hold_becomes_a_phase() {
        let text = "
target: yardstick
rooms: [a]
crowds: {p: {size: 9, journey: [login, join, {repeat: forever, every: 1s, do: say}]}}
timeline:
  - run: p at once
  - {hold: p for 2s then 40 for 1s then 0 for 1s, most: 60, by: 4/s}
  - {hold: p at 0 for 1s, most: 30, as: empty, by: once}
";
        let options = PlanOptions { scale: 0.5, ..PlanOptions::default() };
        let scenario = Scenario::parse("s.yaml", text).unwrap();
        let plan = scenario.plan(&options, &super::super::tests::facts, "yardstick").unwrap();
        let names: Vec<&str> = plan.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["p-1", "p-2", "empty"]);
        let held: Vec<&RunPhase> = plan.runs().skip(1).collect();
        assert_eq!((held[0].first, held[0].count), (5, 30));
        assert_eq!((held[1].first, held[1].count), (35, 15));
        let steps = |run: &RunPhase| run.hold.as_ref().map(|hold| hold.steps.clone());
        assert_eq!(steps(held[0]), Some(vec![(5, 2 * S), (20, S), (0, S)]), "scaled by a half");
        assert_eq!(held[0].pacer, Pacer::Constant { rate: 4.0 });
        assert_eq!(held[1].pacer, Pacer::AtOnce);
        let crate::Accounts::Pattern { count, .. } = plan.crowds[0].accounts else { panic!() };
        assert_eq!(count, 5 + 2 * 30 + 2 * 15, "two for each place");
        let mut longer = plan.clone();
        assert!(longer.lengthen(3.0));
        assert_eq!(longer.runs().nth(2).unwrap().hold.as_ref().unwrap().ns(), 3 * S);
    }

    #[test]
    fn complaints_point_at_their_part() {
        let check = |text: &str, want: &str| match parse(text) {
            Err((part, why)) => assert_eq!(part, want, "{text}: {why:?}"),
            Ok(hold) => panic!("{text}: {hold:?}"),
        };
        check("v", "v");
        check("v at 300", "300");
        check("v at 10/s for 60s", "10/s");
        check("v at 10 for 60", "60");
        check("v at 10 for 0s", "0s");
        check("v at many for 6s", "many");
    }

    #[test]
    fn a_population_is_read_off_its_steps() {
        let hold = Hold { steps: vec![(20, 2 * S), (60, S), (10, S)] };
        let at = [0, 2 * S - 1, 2 * S, 3 * S, 4 * S - 1, 4 * S].map(|ns| hold.population(ns));
        assert_eq!(at, [Some(20), Some(20), Some(60), Some(10), Some(10), None]);
        assert_eq!(hold.ns(), 4 * S);
    }
}
