//! The timeline: who comes when, and what ends a phase.

use super::crowd::{self, Draft};
use super::near;
use super::profile;
use super::prose;
use super::reader::{Fields, Reader};
use super::tree::{Node, Place, Value};
use super::unit::Complaint;
use crate::stamp::PEOPLE_MAX;
use crate::{Pacer, Phase, PhaseKind, RunPhase, Until};
use std::collections::BTreeMap;

/// Most phases of a timeline.
const PHASES_MAX: usize = 10_000;
pub(super) const RUN_KEYS: &[&str] =
    &["run", "at", "without", "as", "until", "deadline", "marks", "profile"];
const UNTIL: &[(&str, Until)] =
    &[("arrived", Until::Arrived), ("in", Until::In), ("done", Until::Done)];

/// A phase whose deadline and marks are still as written.
pub(super) struct PhaseDraft<'n> {
    pub(super) phase: Phase,
    pub(super) at: Place,
    /// The name came from the scenario.
    is_named: bool,
    pub(super) deadline_ns: Option<u64>,
    pub(super) marks: Vec<(&'n Node, &'n Node)>,
}

/// Reads `timeline`.
pub(super) fn read<'n>(
    reader: &mut Reader<'_>,
    fields: &Fields<'n>,
    at: Place,
    crowds: &[Draft<'_>],
) -> Option<Vec<PhaseDraft<'n>>> {
    let example = "as in `timeline: [{run: viewers at 10/s}]`";
    let Some(node) = fields.get("timeline") else {
        reader.missing(fields, at, "the scenario has no `timeline`", example);
        return None;
    };
    let items = match &node.value {
        Value::Map(_) => std::slice::from_ref(node),
        _ => reader.items(node, "`timeline`")?,
    };
    if items.is_empty() || items.len() > PHASES_MAX {
        reader.wrong(node.place, format!("a timeline has 1 to {PHASES_MAX} phases"), example);
        return None;
    }
    let before = reader.count();
    let mut first = 0;
    let phases: Vec<PhaseDraft<'n>> =
        items.iter().filter_map(|item| phase(reader, item, crowds, &mut first)).collect();
    if phases.iter().all(|draft| !matches!(draft.phase.kind, PhaseKind::Run(_))) {
        if reader.count() == before {
            reader.wrong(node.place, "nobody ever comes: there is no `run`", example);
        }
        return None;
    }
    (reader.count() == before).then(|| named(phases, crowds))
}

fn phase<'n>(
    reader: &mut Reader<'_>,
    item: &'n Node,
    crowds: &[Draft<'_>],
    first: &mut u32,
) -> Option<PhaseDraft<'n>> {
    const KINDS: [&str; 4] = ["run", "hold", "rest", "mark"];
    let kind = item.map().and_then(|pairs| {
        pairs
            .iter()
            .find_map(|(key, value)| Some((KINDS.iter().find(|k| Some(**k) == key.text())?, value)))
    });
    let Some((kind, value)) = kind else {
        let name = item.map().and_then(|pairs| pairs.first()?.0.text()).or(item.text());
        let word = name.and_then(|name| name.split_whitespace().next()).unwrap_or_default();
        let help = match near::nearest(word, KINDS) {
            Some(near) => format!("did you mean `{near}: …`?"),
            None => "a phase is `run: …`, `hold: …`, `rest: 15s` or `mark: …`".into(),
        };
        let place = item.map().and_then(|p| p.first()).map_or(item.place, |(key, _)| key.place);
        reader.wrong(place, "this is no phase of a timeline", help);
        return None;
    };
    if *kind == "run" {
        return run(reader, item, crowds, first);
    }
    if *kind == "hold" {
        return super::hold::read(reader, item, crowds, first);
    }
    let keys = [*kind, "profile"];
    let known = if *kind == "rest" { &keys[..] } else { &keys[..1] };
    let fields = reader.fields(item, &format!("the phase `{kind}`"), known)?;
    let profiles = profile::read(reader, fields.get("profile"))?;
    let (name, is_named, kind) = match *kind {
        "rest" => ("rest".into(), false, PhaseKind::Rest { ns: reader.positive(value, "a rest")? }),
        _ => {
            let name = reader.text(value, "a mark")?;
            super::plan::check_name(reader, value, "a mark", name)?;
            (name.to_owned(), false, PhaseKind::Mark)
        }
    };
    let phase = Phase { name, kind, profiles };
    Some(PhaseDraft { phase, at: item.place, is_named, deadline_ns: None, marks: Vec::new() })
}

fn run<'n>(
    reader: &mut Reader<'_>,
    item: &'n Node,
    crowds: &[Draft<'_>],
    first: &mut u32,
) -> Option<PhaseDraft<'n>> {
    let fields = reader.fields(item, "a run", RUN_KEYS)?;
    let (key, node) = fields.pair("run")?;
    let text = reader.text(node, "`run`")?;
    let prose = match prose::run(text) {
        Ok(prose) => prose,
        Err((part, complaint)) => return refuse(reader, node, part, complaint),
    };
    let index = crowd_of(reader, node, prose.crowd, crowds)?;
    let crowd = &crowds[index];
    let pacer = arrival(reader, &fields, key.place, prose.arrival, prose.crowd)?;
    let features = features(reader, &fields, node, &prose.without, crowd);
    let until = until(reader, &fields);
    let deadline_ns = match fields.get("deadline") {
        Some(node) => Some(reader.positive(node, "the deadline")?),
        None => None,
    };
    let profiles = profile::read(reader, fields.get("profile"));
    let name = name(reader, &fields)?;
    let run = RunPhase {
        crowd: index as u32,
        first: reserve(reader, node, crowd.size, first)?,
        count: crowd.size,
        pacer,
        features: features?,
        until: until?,
        deadline_ns: 0,
        marks: BTreeMap::new(),
        hold: None,
    };
    let marks = marks(reader, &fields)?;
    let mut draft = PhaseDraft::bringing(run, name, crowd.name, key.place, marks);
    draft.deadline_ns = deadline_ns;
    draft.phase.profiles = profiles?;
    Some(draft)
}

impl<'n> PhaseDraft<'n> {
    /// A phase that brings people; without a name of its own it has its crowd's.
    pub(super) fn bringing(
        run: RunPhase,
        name: Option<String>,
        crowd: &str,
        at: Place,
        marks: Vec<(&'n Node, &'n Node)>,
    ) -> PhaseDraft<'n> {
        let is_named = name.is_some();
        let name = name.unwrap_or_else(|| crowd.into());
        let phase = Phase { name, kind: PhaseKind::Run(run), profiles: Vec::new() };
        PhaseDraft { phase, at, is_named, deadline_ns: None, marks }
    }
}

/// The index of the crowd of that name.
pub(super) fn crowd_of(
    reader: &mut Reader<'_>,
    node: &Node,
    name: &str,
    crowds: &[Draft<'_>],
) -> Option<usize> {
    let index = crowds.iter().position(|crowd| crowd.name == name);
    if index.is_none() {
        let place = reader.part(node, name);
        let names = crowds.iter().map(|crowd| crowd.name);
        let help = near::advice(name, names, "crowds");
        reader.wrong(place, format!("there is no crowd `{name}`"), help);
    }
    index
}

/// Sets so many people aside for a phase: the number of the first.
pub(super) fn reserve(
    reader: &mut Reader<'_>,
    node: &Node,
    people: u32,
    first: &mut u32,
) -> Option<u32> {
    if people > PEOPLE_MAX - *first {
        let reason = format!("with this run more than {PEOPLE_MAX} people take part");
        reader.wrong(node.place, reason, "make the crowds smaller");
        return None;
    }
    *first += people;
    Some(*first - people)
}

/// The name that a phase is given, if any. The outer `None` is a mistake.
pub(super) fn name(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Option<String>> {
    let Some(node) = fields.get("as") else { return Some(None) };
    let name = reader.text(node, "the name of a run")?;
    super::plan::check_name(reader, node, "a run", name)?;
    Some(Some(name.to_owned()))
}

/// Stages and their marks, as written.
pub(super) fn marks<'n>(
    reader: &mut Reader<'_>,
    fields: &Fields<'n>,
) -> Option<Vec<(&'n Node, &'n Node)>> {
    let Some(node) = fields.get("marks") else { return Some(Vec::new()) };
    let Some(pairs) = node.map() else {
        let help = "stages and marks, as in `{join: T1, talk: T2}`";
        reader.wrong(node.place, "`marks` must be a map", help);
        return None;
    };
    Some(pairs.iter().map(|(key, value)| (key, value)).collect())
}

pub(super) fn refuse<T>(
    reader: &mut Reader<'_>,
    node: &Node,
    part: &str,
    complaint: Complaint,
) -> Option<T> {
    let place = reader.part(node, part);
    reader.wrong(place, complaint.reason, complaint.suggestion);
    None
}

/// How people arrive: in the prose, or as `at`, where a list gives steps.
fn arrival(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    at: Place,
    prose: Option<Pacer>,
    crowd: &str,
) -> Option<Pacer> {
    match (fields.get("at"), prose) {
        (None, Some(pacer)) => Some(pacer),
        (None, None) => {
            let help = format!("as in `run: {crowd} at 10/s`, or `{crowd} at once`");
            reader.wrong(at, "this run does not say how fast people come", help);
            None
        }
        (Some(node), Some(_)) => {
            reader.wrong(
                node.place,
                "this run says twice how fast people come",
                "keep one of the two",
            );
            None
        }
        (Some(node), None) => {
            if let Value::List(items) = &node.value {
                let mut steps = Vec::new();
                for item in items {
                    match arrival_of(reader, item)? {
                        Pacer::Steps { steps: more } => steps.extend(more),
                        Pacer::Constant { rate } => steps.push((rate, 1.0)),
                        _ => {
                            let help = "as in `[1/s for 30s, 10/s for 30s]`";
                            reader.wrong(item.place, "this is no step of arrivals", help);
                            return None;
                        }
                    }
                }
                return Some(Pacer::Steps { steps }).filter(|_| !items.is_empty());
            }
            arrival_of(reader, node)
        }
    }
}

fn arrival_of(reader: &mut Reader<'_>, node: &Node) -> Option<Pacer> {
    let text = reader.text(node, "`at`")?;
    match prose::arrival(text) {
        Ok(pacer) => Some(pacer),
        Err((part, complaint)) => refuse(reader, node, part, complaint),
    }
}

/// The crowd's features, less those switched off here.
pub(super) fn features(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    prose_node: &Node,
    prose: &[&str],
    crowd: &Draft<'_>,
) -> Option<Vec<String>> {
    // A mistake in the crowd's features has been told; what goes without them is not known.
    let Some(had) = &crowd.features else { return Some(Vec::new()) };
    let before = reader.count();
    let mut without: Vec<(Place, &str)> =
        prose.iter().map(|name| (reader.part(prose_node, name), *name)).collect();
    for node in fields.get("without").map(crowd::list).unwrap_or_default() {
        without.push((node.place, reader.text(node, "a feature")?));
    }
    for (place, name) in &without {
        if !had.iter().any(|feature| feature == name) {
            let reason =
                format!("the crowd `{}` has no feature `{name}` to go without", crowd.name);
            let help = near::advice(name, had.iter().map(String::as_str), "features of this crowd");
            reader.wrong(*place, reason, help);
        }
    }
    let kept = had.iter().filter(|feature| !without.iter().any(|(_, name)| name == feature));
    (reader.count() == before).then(|| kept.cloned().collect())
}

fn until(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Until> {
    let Some(node) = fields.get("until") else { return Some(Until::In) };
    let text = reader.text(node, "`until`")?;
    if let Some((_, until)) = UNTIL.iter().find(|(word, _)| *word == text) {
        return Some(*until);
    }
    let words = UNTIL.iter().map(|(word, _)| *word);
    let reason = format!("a run does not last until `{text}`");
    reader.wrong(node.place, reason, near::advice(text, words, "ends of a run"));
    None
}

/// Gives every phase a name of its own.
fn named<'n>(mut phases: Vec<PhaseDraft<'n>>, crowds: &[Draft<'_>]) -> Vec<PhaseDraft<'n>> {
    let mut taken: std::collections::HashSet<String> =
        phases.iter().filter(|p| p.is_named).map(|p| p.phase.name.clone()).collect();
    let mut uses: BTreeMap<String, u32> = BTreeMap::new();
    for draft in phases.iter().filter(|draft| !draft.is_named) {
        *uses.entry(draft.phase.name.clone()).or_default() += 1;
    }
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let is_crowd = |name: &str| crowds.iter().any(|crowd| crowd.name == name);
    for draft in phases.iter_mut().filter(|draft| !draft.is_named) {
        let base = draft.phase.name.clone();
        let is_run = matches!(draft.phase.kind, PhaseKind::Run(_));
        let mut name = base.clone();
        let is_alone = uses.get(&base) == Some(&1) && (is_run || !is_crowd(&base));
        while !is_alone || taken.contains(&name) {
            let number = numbers.entry(base.clone()).or_default();
            *number += 1;
            name = format!("{base}-{number}");
            if !taken.contains(&name) {
                break;
            }
        }
        taken.insert(name.clone());
        draft.phase.name = name;
    }
    phases
}
