//! Lowers the steps of a journey to the instructions of a [`Program`].

use super::choice::weights;
use super::near;
use super::reader::{Fields, Reader};
use super::room::Rooms;
use super::saying::{self, TEXT_KEYS};
use super::tree::{Node, Place, Value};
use crate::{Deed, DeedVerb, Facts, Measure, Op, Program, RoomChoice, Span, Text};

/// Messages in a page of history, if nothing else is written.
const PAGE: u32 = 50;
/// Largest page of history.
const PAGE_MAX: u64 = 10_000;
/// Most rounds of a loop.
const ROUNDS_MAX: u64 = u32::MAX as u64 - 1;
/// Everything a step can begin with.
pub(super) const VERBS: &[&str] = &[
    "login",
    "join",
    "leave",
    "say",
    "talk",
    "wait",
    "repeat",
    "choose",
    "gate",
    "stage",
    "history",
    "members",
    "typing",
    "read",
    "ping",
    "presence",
    "disconnect",
];

/// A step taken apart: its verb, where that stands, its value, and the map around it, if any.
pub(super) struct Step<'n> {
    pub(super) verb: &'static str,
    at: Place,
    key: &'n Node,
    value: Option<&'n Node>,
    whole: &'n Node,
}

/// Where steps stand: some are only sensible in some places.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Journey,
    Loop,
    Choice,
}

/// Builds one program.
pub(super) struct Lowering<'r, 's> {
    pub(super) reader: &'r mut Reader<'s>,
    pub(super) rooms: &'r Rooms,
    pub(super) facts: &'r Facts,
    pub(super) program: Program,
    inside: Inside,
    lacks_rooms: bool,
}

impl<'r, 's> Lowering<'r, 's> {
    pub(super) fn new(
        reader: &'r mut Reader<'s>,
        rooms: &'r Rooms,
        facts: &'r Facts,
    ) -> Lowering<'r, 's> {
        let program = Program::default();
        Lowering { reader, rooms, facts, program, inside: Inside::Journey, lacks_rooms: false }
    }

    /// The verb of a step and what belongs to it.
    pub(super) fn step<'n>(&mut self, node: &'n Node) -> Option<Step<'n>> {
        match &node.value {
            Value::Text(text) => {
                let verb = VERBS.iter().find(|verb| **verb == &**text);
                let Some(verb) = verb else {
                    self.unknown(node, text);
                    return None;
                };
                Some(Step { verb, at: node.place, key: node, value: None, whole: node })
            }
            Value::Map(pairs) => {
                let is_verb = |key: &Node| VERBS.iter().find(|v| Some(**v) == key.text()).copied();
                let verbs: Vec<_> =
                    pairs.iter().filter_map(|(k, v)| Some((is_verb(k)?, k, v))).collect();
                let repeat = verbs.iter().find(|(verb, ..)| *verb == "repeat");
                let Some(&(verb, key, value)) = repeat.or(verbs.first()) else {
                    match pairs.first() {
                        Some((key, _)) => self.unknown(key, key.text().unwrap_or_default()),
                        None => self.reader.wrong(node.place, "an empty step", "remove it"),
                    }
                    return None;
                };
                let others = verbs.iter().filter(|(_, k, _)| !std::ptr::eq(*k, key));
                for (other, at, _) in others.filter(|(o, ..)| verb != "repeat" || *o != "choose") {
                    let help = "a step does one thing: write two steps, each with its own `- `";
                    self.reader.wrong(
                        at.place,
                        format!("`{other}` in a step that has `{verb}`"),
                        help,
                    );
                    return None;
                }
                let value = Some(value).filter(|value| !matches!(value.value, Value::Null));
                Some(Step { verb, at: key.place, key, value, whole: node })
            }
            _ => {
                let reason = format!("a step must be a verb, not {}", node.kind());
                self.reader.wrong(node.place, reason, "as in `- login` or `- join: live`");
                None
            }
        }
    }

    fn unknown(&mut self, node: &Node, text: &str) {
        let first = text.split([' ', ':']).next().unwrap_or_default();
        let rest = text[first.len()..].trim_start_matches([' ', ':']);
        let is_feature = self.facts.features.iter().any(|(name, _)| *name == text);
        let help = match VERBS.contains(&first) {
            true => format!("did you mean `{first}: {rest}`?"),
            false if is_feature => {
                format!("`{text}` is a feature of a crowd: `features: [{text}]`")
            }
            false => near::advice(first, VERBS.iter().copied(), "steps"),
        };
        self.reader.wrong(node.place, format!("there is no step `{text}`"), help);
    }

    /// Lowers one step after the other.
    pub(super) fn steps(&mut self, nodes: &[Node]) {
        for node in nodes {
            if let Some(step) = self.step(node) {
                self.lower(&step);
            }
        }
    }

    /// Lowers one step; `None` if it has a mistake.
    pub(super) fn lower(&mut self, step: &Step<'_>) -> Option<()> {
        let is_block = matches!(step.verb, "repeat" | "choose");
        if !is_block {
            self.alone(step)?;
        }
        match step.verb {
            "login" => self.bare(step, DeedVerb::Ask(Measure::Login)),
            "disconnect" => self.bare(step, DeedVerb::Disconnect),
            "ping" => self.bare(step, DeedVerb::Ask(Measure::Ping)),
            "join" => self.about(step, Measure::Join, RoomChoice::Own, &["room"]),
            "leave" => self.about(step, Measure::Leave, RoomChoice::Joined, &["room"]),
            "members" => self.about(step, Measure::Members, RoomChoice::Joined, &["room"]),
            "typing" => self.about(step, Measure::Typing, RoomChoice::Joined, &["room"]),
            "read" => self.about(step, Measure::Read, RoomChoice::Joined, &["room"]),
            "history" => self.about(step, Measure::History, RoomChoice::Joined, &["room", "limit"]),
            "say" => {
                let keys = [&["room"][..], &TEXT_KEYS].concat();
                self.about(step, Measure::Say, RoomChoice::Joined, &keys)
            }
            "presence" => self.presence(step),
            "wait" => {
                let value = self.value(step)?;
                let span = saying::span(self.reader, value, "a wait")?;
                self.push(Op::Wait(span))
            }
            "talk" => self.talk(step),
            "repeat" => self.repeat(step),
            "choose" => {
                self.alone(step)?;
                let value = self.value(step)?;
                self.choose(value)
            }
            "gate" => self.gate(step),
            _ => self.stage(step),
        }
    }

    /// Refuses keys beside the verb, as a wrong indentation brings them about.
    fn alone(&mut self, step: &Step<'_>) -> Option<()> {
        let pairs = step.whole.map().unwrap_or_default();
        let other = pairs.iter().map(|(key, _)| key).find(|key| !std::ptr::eq(*key, step.key));
        let Some(other) = other else { return Some(()) };
        let (verb, name) = (step.verb, other.text().unwrap_or_default());
        let reason = format!("`{name}` stands beside `{verb}`, not in it");
        let help = format!("did you mean `{verb}: {{…, {name}: …}}`?");
        self.reader.wrong(other.place, reason, help);
        None
    }

    fn push(&mut self, op: Op) -> Option<()> {
        self.program.ops.push(op);
        Some(())
    }

    fn place(&self) -> u32 {
        self.program.ops.len() as u32
    }

    /// A step's value, which it must have.
    fn value<'n>(&mut self, step: &Step<'n>) -> Option<&'n Node> {
        if step.value.is_none() {
            let help = match step.verb {
                "wait" => "as in `wait: 25s`",
                "talk" => "as in `talk: {every: 5s, for: 20s}`",
                "repeat" => "as in `{repeat: 10, think: 5s, do: [say]}`",
                "choose" => "as in `choose: {90%: say, 10%: leave}`",
                "presence" => "as in `presence: away`",
                _ => "give it a name, as in `stage: talk`",
            };
            self.reader.wrong(step.at, format!("`{}` needs a value", step.verb), help);
        }
        step.value
    }

    fn bare(&mut self, step: &Step<'_>, verb: DeedVerb) -> Option<()> {
        if let Some(value) = step.value {
            let reason = format!("`{}` takes no value", step.verb);
            self.reader.wrong(value.place, reason, format!("write `- {}` alone", step.verb));
            return None;
        }
        // Everybody can log in and go; the rest a protocol may lack.
        if let DeedVerb::Ask(measure) = verb
            && measure != Measure::Login
        {
            self.known(step, measure)?;
        }
        self.push(Op::Do(Deed { verb, room: None, text: None, limit: 0 }))
    }

    /// Refuses what the protocol lacks.
    fn known(&mut self, step: &Step<'_>, measure: Measure) -> Option<()> {
        if self.facts.verbs.contains(&measure) {
            return Some(());
        }
        let list: Vec<String> =
            self.facts.verbs.iter().map(|verb| format!("`{}`", verb.name())).collect();
        let reason = format!("the protocol `{}` has no `{}`", self.facts.name, measure.name());
        self.reader.wrong(step.key.place, reason, format!("it has {}", list.join(", ")));
        None
    }

    /// A step about a room: `verb`, `verb: room`, or `verb: {room: …, …}`.
    fn about(
        &mut self,
        step: &Step<'_>,
        measure: Measure,
        default: RoomChoice,
        keys: &[&str],
    ) -> Option<()> {
        self.known(step, measure)?;
        if self.rooms.names.is_empty() {
            self.no_rooms(step.at);
            return None;
        }
        let mut deed = Deed {
            verb: DeedVerb::Ask(measure),
            room: Some(default),
            text: (measure == Measure::Say).then_some(Text::Words(1, 10)),
            limit: if measure == Measure::History { PAGE } else { 0 },
        };
        if let Some(value) = step.value {
            if let Value::Map(_) = value.value {
                let fields = self.reader.fields(value, &format!("`{}`", step.verb), keys)?;
                deed.room = Some(self.room(&fields, measure, default)?);
                if measure == Measure::Say {
                    deed.text = Some(saying::text(self.reader, &fields)?);
                }
                if let Some(limit) = fields.get("limit") {
                    deed.limit = self.reader.whole(limit, "the limit", 1, PAGE_MAX)? as u32;
                }
            } else {
                deed.room = Some(self.choice(value, measure)?);
            }
        }
        self.push(Op::Do(deed))
    }

    /// Said once, however many steps need one.
    fn no_rooms(&mut self, place: Place) {
        if std::mem::replace(&mut self.lacks_rooms, true) {
            return;
        }
        self.reader.wrong(place, "the scenario has no rooms", "add a line `rooms: [lobby]`");
    }

    fn room(
        &mut self,
        fields: &Fields<'_>,
        measure: Measure,
        default: RoomChoice,
    ) -> Option<RoomChoice> {
        match fields.get("room") {
            Some(node) => self.choice(node, measure),
            None => Some(default),
        }
    }

    fn choice(&mut self, node: &Node, measure: Measure) -> Option<RoomChoice> {
        let choice = self.rooms.choose(self.reader, node)?;
        let (reason, help) = match (measure, choice) {
            (Measure::Join, RoomChoice::Joined) => {
                ("people are in the room `joined` already", "did you mean `another`?")
            }
            (Measure::Leave | Measure::Say, RoomChoice::Another) => {
                ("people are not in the room `another`", "did you mean `joined`?")
            }
            _ => return Some(choice),
        };
        self.reader.wrong(node.place, reason, help);
        None
    }

    fn presence(&mut self, step: &Step<'_>) -> Option<()> {
        self.known(step, Measure::Presence)?;
        let status = self.value(step)?;
        let status = self.reader.text(status, "a presence")?.to_owned();
        let text = Some(Text::Lines(vec![status]));
        self.push(Op::Do(Deed {
            verb: DeedVerb::Ask(Measure::Presence),
            room: None,
            text,
            limit: 0,
        }))
    }

    /// `talk: {every, for | times}`: the first message comes one full `every` after the start.
    fn talk(&mut self, step: &Step<'_>) -> Option<()> {
        self.known(step, Measure::Say)?;
        if self.rooms.names.is_empty() {
            self.no_rooms(step.at);
            return None;
        }
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

    fn repeat(&mut self, step: &Step<'_>) -> Option<()> {
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
        if super::unit::duration(text).is_ok() {
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
    fn choose(&mut self, node: &Node) -> Option<()> {
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

    fn gate(&mut self, step: &Step<'_>) -> Option<()> {
        let name = self.name(step, "a gate")?;
        if self.inside == Inside::Choice {
            let help = "put it before or after the choice";
            self.reader.wrong(
                step.at,
                "a gate in a choice would wait for people who never come",
                help,
            );
            return None;
        }
        if self.inside == Inside::Loop || self.program.gates.contains(&name) {
            let help = "give each gate its own name, outside of loops";
            self.reader.wrong(step.at, format!("the gate `{name}` would have to open twice"), help);
            return None;
        }
        self.push(Op::Gate(self.program.gates.len() as u32));
        self.program.gates.push(name);
        Some(())
    }

    fn stage(&mut self, step: &Step<'_>) -> Option<()> {
        let name = self.name(step, "a stage")?;
        if self.inside != Inside::Journey {
            let help = "put it among the steps of the journey itself";
            self.reader.wrong(step.at, "a stage cannot begin in a loop or a choice", help);
            return None;
        }
        if self.program.stages.contains(&name) {
            self.reader.wrong(
                step.at,
                format!("the stage `{name}` begins twice"),
                "give each its own name",
            );
            return None;
        }
        self.begin_stage(&name);
        Some(())
    }

    fn name(&mut self, step: &Step<'_>, what: &str) -> Option<String> {
        let node = self.value(step)?;
        let name = self.reader.text(node, &format!("the name of {what}"))?;
        super::plan::check_name(self.reader, node, what, name)?;
        Some(name.into())
    }

    pub(super) fn begin_stage(&mut self, name: &str) {
        self.push(Op::Stage(self.program.stages.len() as u32));
        self.program.stages.push(name.into());
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
