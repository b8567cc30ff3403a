//! From a scenario to a plan: every part is read, and what is missing is filled in once.

use super::crowd::{self, Draft};
use super::reader::Reader;
use super::room::Rooms;
use super::timeline::{self, PhaseDraft};
use super::tree::{Node, Place, Source};
use super::{
    Mistake, Scenario, estimate, events, hold, limit, list, near, parameter, probes, script,
    target, threshold, unit,
};
use crate::stamp::PEOPLE_MAX;
use crate::{Accounts, Crowd, Facts, Phase, PhaseKind, Plan, Until};

/// Seed of a run that names none.
pub const SEED: u64 = 42;
/// Longest time from the last arrival to the end of a phase, if none is written, nanoseconds;
/// a phase until everybody is done has twice the expected length of the journey on top.
pub const DEADLINE_NS: u64 = 60_000_000_000;
/// Longest name of a crowd, phase, stage, gate or mark, characters.
const NAME_MAX: usize = 64;
/// Longest `about`, characters.
const ABOUT_MAX: usize = 1_000;
/// Bounds of `--scale`.
const SCALE: std::ops::RangeInclusive<f64> = 1e-6..=1e6;
pub(super) const WHAT: &str = "a scenario";
pub(super) const KEYS: &[&str] = &[
    "about",
    "target",
    "protocol",
    "socketio",
    "websocket",
    "rooms",
    "lists",
    "crowds",
    "timeline",
    "thresholds",
    "probes",
    "limits",
    "parameters",
    "seed",
];

/// What the command line says about a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Short name, from the file's.
    pub name: String,
    /// Replaces the scenario's seed.
    pub seed: Option<u64>,
    /// Factor for the sizes of all crowds.
    pub scale: f64,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions { name: "scenario".into(), seed: None, scale: 1.0 }
    }
}

impl Scenario {
    /// Resolves the scenario for a target that speaks `protocol`. `facts` knows the protocols by
    /// name; what the protocol lacks is refused here.
    pub fn plan(
        &self,
        options: &PlanOptions,
        facts: &dyn Fn(&str) -> Option<&'static Facts>,
        protocol: &str,
    ) -> Result<Plan, Vec<Mistake>> {
        if !SCALE.contains(&options.scale) {
            let text = options.scale.to_string();
            let place = Place { source: 0, line: 1, column: 1, width: text.len() as u32 };
            let source = Source::new("--scale", &text);
            let reason = "the scale is out of range";
            return Err(vec![source.mistake(place, reason, "try `--scale 0.2`")]);
        }
        let mut reader = Reader::new(&self.sources);
        let plan = self.read(&mut reader, options, facts(protocol), protocol);
        reader.finish(plan)
    }

    /// The plan without the description of its protocol, which is read behind it.
    fn read(
        &self,
        reader: &mut Reader<'_>,
        options: &PlanOptions,
        facts: Option<&'static Facts>,
        protocol: &str,
    ) -> Option<Plan> {
        let pair = reader.fields(&self.root, WHAT, KEYS)?.pair(script::KEY);
        let proto = self.proto.as_deref();
        let described = pair.and_then(|(_, node)| script::read(reader, node, proto));
        let plan = read(reader, &self.root, options, facts, protocol);
        let crowds = plan.as_ref().map_or(&[][..], |plan| &plan.crowds);
        let start = start(&self.root);
        script::check(reader, pair, described.as_ref(), crowds, protocol, start);
        Some(Plan { script: described, ..plan? })
    }
}

fn read(
    reader: &mut Reader<'_>,
    root: &Node,
    options: &PlanOptions,
    facts: Option<&'static Facts>,
    protocol: &str,
) -> Option<Plan> {
    let fields = reader.fields(root, WHAT, KEYS)?;
    let start = start(root);
    let about = match fields.get("about") {
        Some(node) => about(reader, node),
        None => Some(String::new()),
    };
    let seed = match fields.get("seed") {
        Some(node) => reader.whole(node, "`seed`", 0, 1 << 53),
        None => Some(SEED),
    };
    let written = target::read(reader, &fields, start);
    if facts.is_none() {
        let place = fields.get("protocol").or(fields.get("target")).map_or(start, |n| n.place);
        let reason = format!("there is no protocol `{protocol}`");
        reader.wrong(place, reason, "`throng protocols` lists them");
    }
    parameter::check(reader, root, fields.get("parameters"));
    if let Some((key, _)) = fields.pair(events::KEY).filter(|_| protocol != events::KEY) {
        let reason = format!("`{}` says nothing to a target that speaks `{protocol}`", events::KEY);
        reader.wrong(key.place, reason, "remove it, or name a target that speaks Socket.IO");
    }
    let mut rooms = Rooms::read(reader, fields.get("rooms"));
    let drafts = crowd::drafts(reader, &fields, start, options.scale, facts);
    let drafts = drafts.unwrap_or_default();
    let phases = match drafts.is_empty() {
        true => None,
        false => timeline::read(reader, &fields, start, &drafts),
    };
    let accounts = accounts(reader, &drafts, phases.as_deref());
    let lists = match &mut rooms {
        Some(rooms) => {
            let known = list::Crowds { drafts: &drafts, accounts: &accounts };
            list::read(reader, fields.get("lists"), &known, rooms)
        }
        None => None,
    };
    // Without its lists, a journey would be told to lack them.
    let rooms_known = rooms.as_ref().filter(|_| lists.is_some());
    let crowds = crowds(reader, &drafts, accounts, rooms_known, facts);
    let limits = limit::read(reader, fields.get("limits"));
    let thresholds = threshold::read(reader, fields.get("thresholds"));
    let probes = {
        let bounds = thresholds.as_deref().unwrap_or_default();
        let probes = probes::read(reader, fields.get("probes"), bounds);
        if let Some(probes) = &probes {
            probes::check(reader, fields.get("thresholds"), bounds, probes);
        }
        probes
    };
    let crowds = crowds?;
    let phases = finish(reader, phases?, &crowds);
    Some(Plan {
        name: options.name.clone(),
        about: about?,
        seed: options.seed.or(seed)?,
        scale: options.scale,
        target: written?.target,
        protocol: protocol.into(),
        rooms: rooms?.names,
        lists: lists?,
        crowds,
        phases: phases?,
        limits: limits?,
        thresholds: thresholds?,
        probes: probes?,
        script: None,
    })
}

/// The beginning of the file: where things are missing.
pub(super) fn start(root: &Node) -> Place {
    Place { line: 1, column: 1, width: 1, ..root.place }
}

fn about(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let text = reader.text(node, "`about`")?;
    if text.chars().count() > ABOUT_MAX {
        let reason = format!("`about` has more than {ABOUT_MAX} characters");
        reader.wrong(node.place, reason, "say it in a sentence; a comment may be longer");
        return None;
    }
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Who the people of each crowd log in as: as many accounts as the timeline brings people, if the
/// scenario does not say.
fn accounts(
    reader: &mut Reader<'_>,
    drafts: &[Draft<'_>],
    phases: Option<&[PhaseDraft<'_>]>,
) -> Vec<Option<Accounts>> {
    let people = |index: usize| -> u32 {
        let runs = phases.unwrap_or_default().iter().filter_map(|draft| match &draft.phase.kind {
            PhaseKind::Run(run) if run.crowd as usize == index => Some(run.accounts()),
            _ => None,
        });
        runs.fold(0, u32::saturating_add).min(PEOPLE_MAX)
    };
    let each = drafts.iter().enumerate();
    each.map(|(i, draft)| crowd::accounts(reader, draft, people(i))).collect()
}

fn crowds(
    reader: &mut Reader<'_>,
    drafts: &[Draft<'_>],
    accounts: Vec<Option<Accounts>>,
    rooms: Option<&Rooms>,
    facts: Option<&Facts>,
) -> Option<Vec<Crowd>> {
    let crowds: Vec<Option<Crowd>> = drafts
        .iter()
        .zip(accounts)
        .map(|(draft, accounts)| crowd::finish(reader, draft, accounts, rooms, facts))
        .collect();
    crowds.into_iter().collect()
}

/// Deadlines and marks, which need the journeys; names, which must differ.
fn finish(
    reader: &mut Reader<'_>,
    drafts: Vec<PhaseDraft<'_>>,
    crowds: &[Crowd],
) -> Option<Vec<Phase>> {
    let mut phases: Vec<Phase> = Vec::new();
    let mut is_fine = true;
    let mut marks_seen: Vec<&str> = Vec::new();
    for draft in drafts {
        let mut phase = draft.phase;
        if let PhaseKind::Run(run) = &mut phase.kind {
            let crowd = &crowds[run.crowd as usize];
            run.deadline_ns =
                draft.deadline_ns.unwrap_or_else(|| estimate::deadline_ns(run, crowd));
            is_fine &= hold::check(reader, draft.at, run, crowd).is_some();
            let waits =
                run.hold.is_none() && run.until == Until::Done && draft.deadline_ns.is_none();
            if waits && estimate::is_endless(crowd) {
                let reason =
                    format!("the journey of `{}` never ends, nor does this run", crowd.name);
                reader.wrong(draft.at, reason, "give it a `deadline`, or end it `until: in`");
            }
            for (stage, mark) in draft.marks {
                let Some((stage, name)) = mark_of(reader, stage, mark, crowd) else {
                    is_fine = false;
                    continue;
                };
                if marks_seen.contains(&name) {
                    reader.wrong(
                        mark.place,
                        format!("there are two marks `{name}`"),
                        "number them",
                    );
                }
                marks_seen.push(name);
                run.marks.insert(stage.into(), name.into());
            }
        }
        phases.push(phase);
    }
    is_fine.then_some(phases)
}

fn mark_of<'n>(
    reader: &mut Reader<'_>,
    stage: &'n Node,
    mark: &'n Node,
    crowd: &Crowd,
) -> Option<(&'n str, &'n str)> {
    let name = reader.text(stage, "a stage")?;
    let stages = crowd.program.stages.iter().map(String::as_str);
    if !crowd.program.stages.iter().any(|known| known == name) {
        let reason = format!("the journey of `{}` has no stage `{name}`", crowd.name);
        reader.wrong(stage.place, reason, near::advice(name, stages, "stages"));
        return None;
    }
    let text = reader.text(mark, "a mark")?;
    check_name(reader, mark, "a mark", text)?;
    Some((name, text))
}

/// Names appear in reports and data files: short, printable, without commas.
pub(super) fn check_name(reader: &mut Reader<'_>, at: &Node, what: &str, name: &str) -> Option<()> {
    let is_fine = |c: char| !c.is_control() && !matches!(c, ',' | '"' | '{' | '}');
    let spaced = what == "a crowd" && name.chars().any(char::is_whitespace);
    let length = name.chars().count();
    if length == 0 || length > NAME_MAX || !name.chars().all(is_fine) || spaced {
        let reason = format!("`{}` cannot be the name of {what}", unit::short(name));
        let help = match what {
            "a crowd" => "use up to 64 letters, digits and hyphens",
            _ => "use up to 64 printable characters without commas, quotes and braces",
        };
        reader.wrong(at.place, reason, help);
        return None;
    }
    Some(())
}
