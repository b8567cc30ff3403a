//! A journey: its steps, the stages it falls into, and what must be true of the whole.

use super::choice::weights;
use super::lower::{Lowering, Step};
use super::reader::{Fields, Reader};
use super::room::Rooms;
use super::tree::{Node, Place, Value};
use super::unit::{self, Complaint};
use crate::{DeedVerb, Facts, Measure, Op, Program, RoomChoice};

/// Slowest and fastest pace of a class of people, as a factor of their waits.
const PACE: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;
/// Stages of a journey that names none.
const JOIN: &str = "join";
const TALK: &str = "talk";
const LEAVE: &str = "leave";

/// Reads `journey`, `joined` and `pace` of a crowd. `at` is where the crowd's name stands.
pub(super) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    at: Place,
    rooms: &Rooms,
    facts: &Facts,
) -> Option<Program> {
    let Some((key, node)) = fields.pair("journey") else {
        let help = "add `journey: [login, join, {talk: {every: 5s, for: 20s}}, leave]`";
        reader.missing(fields, at, "this crowd has no `journey`", help);
        return None;
    };
    let nodes = match &node.value {
        Value::Map(_) => std::slice::from_ref(node),
        Value::Null => &[],
        _ => reader.items(node, "`journey`")?,
    };
    if nodes.is_empty() {
        reader.wrong(key.place, "this journey has no steps", "it begins with `- login`");
        return None;
    }
    let classes = match fields.get("pace") {
        Some(pace) => Some(pace_classes(reader, pace)?),
        None => None,
    };
    let joined = match fields.pair("joined") {
        Some((key, node)) => Some((key.place, joined(reader, node, rooms)?)),
        None => None,
    };
    let before = reader.count();
    let mut lowering = Lowering::new(reader, rooms, facts);
    lowering.program.ops.extend(classes.map(Op::Pace));
    let steps: Vec<Step<'_>> = nodes.iter().filter_map(|node| lowering.step(node)).collect();
    lower(&mut lowering, &steps, joined);
    let program = lowering.program;
    if reader.count() > before {
        return None;
    }
    check(reader, key.place, &program)?;
    Some(program)
}

/// Lowers the steps, beginning stages where none are written.
fn lower(lowering: &mut Lowering<'_, '_>, steps: &[Step<'_>], joined: Option<(Place, Op)>) {
    let is_staged = steps.iter().any(|step| step.verb == "stage");
    let (talk, leave) = boundaries(steps);
    let starts_named = steps.first().is_some_and(|step| step.verb == "stage");
    if is_staged && !starts_named {
        lowering.begin_stage("start");
    }
    let mut joined = joined;
    for (i, step) in steps.iter().enumerate() {
        if !is_staged {
            match i {
                _ if Some(i) == leave => lowering.begin_stage(LEAVE),
                _ if Some(i) == talk => lowering.begin_stage(TALK),
                0 => lowering.begin_stage(JOIN),
                _ => {}
            }
        }
        lowering.lower(step);
        if step.verb == "login"
            && let Some((_, op)) = joined.take()
        {
            lowering.program.ops.push(op);
        }
    }
    if let Some((place, _)) = joined {
        let help = "put `- login` among the steps of the journey itself";
        lowering.reader.wrong(place, "`joined` happens right after the login", help);
    }
}

/// Where people begin to talk, and where they begin to leave for good.
fn boundaries(steps: &[Step<'_>]) -> (Option<usize>, Option<usize>) {
    let is_talk = |step: &Step<'_>| matches!(step.verb, "talk" | "say" | "repeat");
    let is_leave = |step: &Step<'_>| matches!(step.verb, "leave" | "disconnect");
    let talk = steps.iter().position(is_talk);
    let leave = steps.iter().rposition(is_leave).map(|mut at| {
        while at > 0 && is_leave(&steps[at - 1]) {
            at -= 1;
        }
        at
    });
    (talk, leave.filter(|&leave| talk.is_none_or(|talk| leave > talk)))
}

/// `6.3 of 10`: so many rooms on average, of the first so many.
fn joined(reader: &mut Reader<'_>, node: &Node, rooms: &Rooms) -> Option<Op> {
    let count = rooms.count();
    let (mean, of) = reader.parsed(node, "`joined`", |text| {
        let wrong = || {
            let reason = format!("`{text}` does not say how many of how many rooms");
            Complaint::new(reason, "write it as in `6.3 of 10`")
        };
        let (mean, of) = text.split_once(" of ").ok_or_else(wrong)?;
        let mean = unit::number(mean.trim()).ok_or_else(wrong)?;
        let of = unit::whole(of.trim(), 1, u64::from(count).max(1))?;
        if mean < 1.0 || mean > of as f64 {
            let help = format!("it must lie between 1 and {of}");
            return Err(Complaint::new(format!("{mean} of {of} rooms cannot be"), help));
        }
        Ok((mean, of as u32))
    })?;
    if count == 0 {
        reader.wrong(node.place, "the scenario has no rooms", "add a line `rooms: [lobby]`");
        return None;
    }
    Some(Op::JoinSome { mean, of })
}

/// `{30%: 10, 70%: 1}`: how many times as long people's waits take, by weight.
fn pace_classes(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<(u32, f32)>> {
    let mut classes = Vec::new();
    for (weight, node) in weights(reader, node, "`pace`")? {
        let factor = reader.parsed(node, "a pace", |text| {
            unit::number(text).filter(|f| PACE.contains(f)).ok_or_else(|| {
                let help = "a factor between 0.001 and 1000: `10` is ten times slower";
                Complaint::new(format!("`{text}` is not a factor"), help)
            })
        })?;
        classes.push((weight, factor as f32));
    }
    Some(classes)
}

/// What a program must keep as a whole.
fn check(reader: &mut Reader<'_>, at: Place, program: &Program) -> Option<()> {
    let mut deeds = program.ops.iter().filter_map(|op| match op {
        Op::Do(deed) => Some(deed),
        _ => None,
    });
    let login = DeedVerb::Ask(Measure::Login);
    if deeds.clone().next().is_none_or(|deed| deed.verb != login) {
        reader.wrong(at, "this journey does not begin with a login", "let it begin with `- login`");
        return None;
    }
    let joins = |op: &Op| match op {
        Op::JoinSome { .. } => true,
        Op::Do(deed) => deed.verb == DeedVerb::Ask(Measure::Join),
        _ => false,
    };
    let lost = deeds.find(|deed| {
        deed.room == Some(RoomChoice::Joined) || deed.verb == DeedVerb::Ask(Measure::Say)
    });
    if let (Some(lost), false) = (lost, program.ops.iter().any(joins)) {
        let verb = match lost.verb {
            DeedVerb::Ask(measure) => measure.name(),
            DeedVerb::Disconnect => "disconnect",
            DeedVerb::Drop => "drop",
        };
        let reason = format!("`{verb}` needs a room, but nobody ever joins one");
        reader.wrong(at, reason, "add `- join: …` behind the login, or `joined: 1 of 1`");
        return None;
    }
    Some(())
}
