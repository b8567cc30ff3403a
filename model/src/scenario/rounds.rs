//! Lowers what repeats and what branches: talk, loops and choices.

use super::choice::weights;
use super::lower::{Inside, Lowering, Step};
use super::reader::Fields;
use super::saying::{self, TEXT_KEYS};
use super::tree::{Node, Value};
use super::unit;
use crate::{Deed, DeedVerb, Measure, Op, RoomChoice, Span};

/// Most rounds of a loop.
const ROUNDS_MAX: u64 = u32::MAX as u64 - 1;

impl Lowering<'_, '_> {
    /// `talk: {every, for | times}`: the first message comes one full `every` after the start.
    pub(super) fn talk(&mut self, step: &Step<'_>) -> Option<()> {
        self.known(step, Measure::Say)?;
        let keys = [&["every", "for", "times", "room"][..], &TEXT_KEYS].concat();
        let value = self.value(step)?;
        let fields = self.reader.fields(value, "`talk`", &keys)?;
        let Some(every) = fields.get("every") else {
            let help = "as in `talk: {every: 5s, for: 20s}`";
            self.reader.missing(&fields, step.at, "`talk` does not say how often", help);
            return None;
        };
        let every = self.pause(every, "`every`");
        let text = saying::text(self.reader, &fields);
        let room = self.room(&fields, Measure::Say, RoomChoice::Joined);
        self.has_rooms(step.at, room)?;
        let (times, for_ns) = self.bounds(&fields)?;
        if times.is_none() && for_ns.is_none() {
            let help = "add `for: 20s` or `times: 4`";
            self.reader.missing(&fields, step.at, "`talk` does not say how long", help);
            return None;
        }
        let verb = DeedVerb::Ask(Measure::Say);
        let say = Deed { verb, room: Some(room?), text: Some(text?), limit: 0 };
        self.rounds(times, for_ns, Some(every?), true, |this| this.push(Op::Do(say)));
        Some(())
    }

    fn bounds(&mut self, fields: &Fields<'_>) -> Option<(Option<u32>, Option<u64>)> {
        let times = match fields.get("times") {
            Some(node) => Some(self.reader.whole(node, "`times`", 1, ROUNDS_MAX)? as u32),
            None => None,
        };
        let for_ns = match fields.get("for") {
            Some(node) => Some(self.reader.positive(node, "`for`")?),
            None => None,
        };
        Some((times, for_ns))
    }

    fn pause(&mut self, node: &Node, what: &str) -> Option<Span> {
        let span = saying::span(self.reader, node, what)?;
        if !saying::takes_time(&span) {
            self.reader.wrong(
                node.place,
                format!("{what} must be longer than nothing"),
                "try `1s`",
            );
            return None;
        }
        Some(span)
    }

    /// A loop around what `body` lowers.
    fn rounds(
        &mut self,
        times: Option<u32>,
        for_ns: Option<u64>,
        every: Option<Span>,
        late_start: bool,
        body: impl FnOnce(&mut Self) -> Option<()>,
    ) {
        let start = self.place();
        self.push(Op::Repeat { times, for_ns, every, late_start, end: 0 });
        body(self);
        self.push(Op::Again(start));
        let behind = self.place();
        if let Op::Repeat { end, .. } = &mut self.program.ops[start as usize] {
            *end = behind;
        }
    }

    pub(super) fn repeat(&mut self, step: &Step<'_>) -> Option<()> {
        let keys = ["repeat", "every", "think", "do", "choose"];
        let fields = self.reader.fields(step.whole, "the step `repeat`", &keys)?;
        let meant = self.value(step)?;
        let (times, for_ns) = self.rounds_meant(meant)?;
        let every = match fields.get("every") {
            Some(node) => Some(self.pause(node, "`every`")?),
            None => None,
        };
        let think = match fields.get("think") {
            Some(node) => Some(self.pause(node, "`think`")?),
            None => None,
        };
        if let (Some(_), Some((think, _))) = (&every, fields.pair("think")) {
            let help = "`every` keeps a schedule, `think` pauses after each round: keep one";
            self.reader.wrong(think.place, "`think` beside `every`", help);
            return None;
        }
        let (list, weighed) = (fields.get("do"), fields.get("choose"));
        if list.is_some() == weighed.is_some() {
            let help = "as in `{repeat: 10, think: 5s, do: [say]}`";
            self.reader.missing(&fields, step.at, "`repeat` needs either `do` or `choose`", help);
            return None;
        }
        let start = self.place() as usize;
        let outside = std::mem::replace(&mut self.inside, Inside::Loop);
        let before = self.reader.count();
        self.rounds(times, for_ns, every.clone(), false, |this| {
            match (list, weighed) {
                (Some(list), _) => this.block(list, "`do`"),
                (_, Some(arms)) => this.choose(arms),
                _ => None,
            };
            think.map_or(Some(()), |think| this.push(Op::Wait(think)))
        });
        self.inside = outside;
        let pauses = every.is_some() || self.program.ops[start..].iter().any(pauses);
        if times.is_none() && !pauses && self.reader.count() == before {
            let help = "add `every: 1s`, `think: 1s` or a `wait` to its steps";
            self.reader.wrong(step.at, "this loop never pauses", help);
        }
        Some(())
    }

    /// How often: `40`, `forever`, `{times: 4, for: 60s}`.
    fn rounds_meant(&mut self, node: &Node) -> Option<(Option<u32>, Option<u64>)> {
        if node.text() == Some("forever") {
            return Some((None, None));
        }
        if let Value::Map(_) = node.value {
            let fields = self.reader.fields(node, "`repeat`", &["times", "for"])?;
            let bounds = self.bounds(&fields)?;
            if bounds == (None, None) {
                self.reader.wrong(
                    node.place,
                    "`repeat` does not say how often",
                    "as in `{for: 60s}`",
                );
                return None;
            }
            return Some(bounds);
        }
        let text = self.reader.text(node, "`repeat`")?;
        if unit::duration(text).is_ok() {
            let reason = format!("`{text}` is a span of time, not a number of rounds");
            self.reader.wrong(node.place, reason, format!("did you mean `{{for: {text}}}`?"));
            return None;
        }
        Some((Some(self.reader.whole(node, "`repeat`", 1, ROUNDS_MAX)? as u32), None))
    }

    /// One step or a list of them.
    fn block(&mut self, node: &Node, what: &str) -> Option<()> {
        match &node.value {
            Value::Map(_) => self.steps(std::slice::from_ref(node)),
            _ => {
                let items = self.reader.items(node, what)?;
                self.steps(items);
            }
        }
        Some(())
    }

    /// `{94%: step, 6%: [steps]}`, or a list of such pairs.
    pub(super) fn choose(&mut self, node: &Node) -> Option<()> {
        let arms = weights(self.reader, node, "`choose`")?;
        let outside = std::mem::replace(&mut self.inside, Inside::Choice);
        let at = self.place() as usize;
        self.push(Op::Choose(Vec::new()));
        let (mut places, mut jumps) = (Vec::new(), Vec::new());
        for (weight, steps) in arms {
            places.push((weight, self.place()));
            if !matches!(steps.value, Value::Null) {
                self.block(steps, "an arm of `choose`");
            }
            jumps.push(self.place() as usize);
            self.push(Op::Jump(0));
        }
        let end = self.place();
        for jump in jumps {
            self.program.ops[jump] = Op::Jump(end);
        }
        self.program.ops[at] = Op::Choose(places);
        self.inside = outside;
        Some(())
    }
}

/// Whether a loop with this instruction in it lets time pass.
fn pauses(op: &Op) -> bool {
    match op {
        Op::Wait(span) => saying::takes_time(span),
        Op::Do(deed) => deed.verb.is_awaited(),
        Op::Repeat { every, .. } => every.is_some(),
        _ => false,
    }
}
