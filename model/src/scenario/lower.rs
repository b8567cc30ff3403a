//! Lowers the steps of a journey to the instructions of a [`Program`].

use super::near;
use super::reader::{Fields, Reader};
use super::room::Rooms;
use super::saying::{self, TEXT_KEYS};
use super::tree::{Node, Place, Value};
use crate::{Deed, DeedVerb, Facts, Measure, Op, Program, RoomChoice, Text};

/// Messages in a page of history, if nothing else is written.
const PAGE: u32 = 50;
/// Largest page of history.
const PAGE_MAX: u64 = 10_000;
/// Everything a step can begin with.
pub(super) const VERBS: &[&str] = &[
    "login",
    "join",
    "leave",
    "say",
    "tell",
    "multicast",
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
    "rename",
    "befriend",
    "drop",
    "disconnect",
];

/// A step taken apart: its verb, where that stands, its value, and the map around it, if any.
pub(super) struct Step<'n> {
    pub(super) verb: &'static str,
    pub(super) at: Place,
    pub(super) key: &'n Node,
    pub(super) value: Option<&'n Node>,
    pub(super) whole: &'n Node,
}

/// Where steps stand: some are only sensible in some places.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Inside {
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
    pub(super) inside: Inside,
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
                let mut others = verbs.iter().filter(|(_, k, _)| !std::ptr::eq(*k, key));
                if let Some((other, at, _)) =
                    others.find(|(other, ..)| verb != "repeat" || *other != "choose")
                {
                    let help = "a step does one thing: write two steps, each with its own `- `";
                    let reason = format!("`{other}` in a step that has `{verb}`");
                    self.reader.wrong(at.place, reason, help);
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
            "drop" => self.bare(step, DeedVerb::Drop),
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
            "tell" => self.toward_list(step, Measure::Tell),
            "multicast" => self.toward_list(step, Measure::Multicast),
            "befriend" => self.toward_list(step, Measure::Befriend),
            "rename" => self.about(step, Measure::Rename, RoomChoice::Joined, &["room"]),
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

    pub(super) fn push(&mut self, op: Op) -> Option<()> {
        self.program.ops.push(op);
        Some(())
    }

    pub(super) fn place(&self) -> u32 {
        self.program.ops.len() as u32
    }

    /// A step's value, which it must have.
    pub(super) fn value<'n>(&mut self, step: &Step<'n>) -> Option<&'n Node> {
        if step.value.is_none() {
            let help = match step.verb {
                "wait" => "as in `wait: 25s`",
                "talk" => "as in `talk: {every: 5s, for: 20s}`",
                "repeat" => "as in `{repeat: 10, think: 5s, do: [say]}`",
                "choose" => "as in `choose: {90%: say, 10%: leave}`",
                "presence" => "as in `presence: away` or `presence: {list: friends}`",
                "tell" | "multicast" | "befriend" => "name a list, as in `tell: friends`",
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
    pub(super) fn known(&mut self, step: &Step<'_>, measure: Measure) -> Option<()> {
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
        self.has_rooms(step.at, deed.room)?;
        self.push(Op::Do(deed))
    }

    /// A step about a list: `verb: list`, or `verb: {list: …, …}` with what is said.
    fn toward_list(&mut self, step: &Step<'_>, measure: Measure) -> Option<()> {
        self.known(step, measure)?;
        let value = self.value(step)?;
        let mut text = (measure != Measure::Befriend).then_some(Text::Words(1, 10));
        let list = match &value.value {
            Value::Map(_) if text.is_some() => {
                let keys = [&["list"][..], &TEXT_KEYS].concat();
                let fields = self.reader.fields(value, &format!("`{}`", step.verb), &keys)?;
                text = Some(saying::text(self.reader, &fields)?);
                self.list(step, &fields)?
            }
            _ => self.rooms.choose_list(self.reader, value, false)?,
        };
        let verb = DeedVerb::Ask(measure);
        self.push(Op::Do(Deed { verb, room: Some(list), text, limit: 0 }))
    }

    fn list(&mut self, step: &Step<'_>, fields: &Fields<'_>) -> Option<RoomChoice> {
        let Some(list) = fields.get("list") else {
            let reason = format!("`{}` does not say to whom", step.verb);
            let help = format!("as in `{}: {{list: friends}}`", step.verb);
            self.reader.missing(fields, step.at, &reason, &help);
            return None;
        };
        self.rooms.choose_list(self.reader, list, false)
    }

    /// Refuses to choose among rooms where there are none.
    pub(super) fn has_rooms(&mut self, place: Place, choice: Option<RoomChoice>) -> Option<()> {
        use RoomChoice::{Another, Any, Joined, Own};
        let is_among_rooms = matches!(choice, Some(Own | Joined | Another | Any));
        if is_among_rooms && self.rooms.count() == 0 {
            self.no_rooms(place);
            return None;
        }
        Some(())
    }

    /// Said once, however many steps need one.
    pub(super) fn no_rooms(&mut self, place: Place) {
        if std::mem::replace(&mut self.lacks_rooms, true) {
            return;
        }
        self.reader.wrong(place, "the scenario has no rooms", "add a line `rooms: [lobby]`");
    }

    pub(super) fn room(
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
        if self.rooms.is_list(node) {
            if matches!(measure, Measure::Join | Measure::Leave) {
                return self.rooms.choose_list(self.reader, node, true);
            }
            let name = node.text().unwrap_or_default();
            let reason = format!("`{name}` is a list of people, not a room");
            let help = format!("did you mean `tell: {name}`?");
            self.reader.wrong(node.place, reason, help);
            return None;
        }
        if self.rooms.names.is_empty() {
            self.no_rooms(node.place);
            return None;
        }
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
        let value = self.value(step)?;
        let verb = DeedVerb::Ask(Measure::Presence);
        if let Value::Map(_) = value.value {
            let fields = self.reader.fields(value, "`presence`", &["list"])?;
            let (room, text) = (Some(self.list(step, &fields)?), Some(Text::Words(0, 0)));
            return self.push(Op::Do(Deed { verb, room, text, limit: 0 }));
        }
        let status = self.reader.text(value, "a presence")?.to_owned();
        let text = Some(Text::Lines(vec![status]));
        self.push(Op::Do(Deed { verb, room: None, text, limit: 0 }))
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
