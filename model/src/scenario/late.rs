//! Mistakes that only who carries the scenario out can see, told at their place in it.

use super::reader::Reader;
use super::tree::{Node, Place, Value};
use super::{Mistake, Scenario, script};
use crate::script::Misfit;
use crate::{Measure, Plan};

impl Scenario {
    /// The mistake of a description that cannot be carried out.
    pub fn misfit(&self, misfit: &Misfit) -> Mistake {
        let mut place = super::plan::start(&self.root);
        if let Some(pairs) = self.root.map()
            && let Some((key, node)) = pairs.iter().find(|row| row.0.text() == Some(script::KEY))
        {
            place = deepest(node, key.place, &misfit.path);
        }
        let help = "docs/bring-your-own-protocol.md says what can be written";
        self.mistake(place, &misfit.reason, help)
    }

    /// What people do that the target has no words for: whatever is not among `verbs`.
    pub fn unsaid(&self, plan: &Plan, verbs: &[Measure]) -> Vec<Mistake> {
        let mut told = vec![Measure::Login];
        let mut mistakes = Vec::new();
        for verb in plan.crowds.iter().flat_map(|crowd| crowd.program.asks()) {
            if verbs.contains(&verb) || told.contains(&verb) {
                continue;
            }
            told.push(verb);
            let name = verb.name();
            let crowds = self.root.at("crowds");
            let place = crowds.and_then(|node| step(node, verb));
            let place = place.unwrap_or_else(|| super::plan::start(&self.root));
            let known: Vec<String> = verbs
                .iter()
                .filter(|verb| **verb != Measure::Login)
                .map(|verb| format!("`{}`", verb.name()))
                .collect();
            let reason = format!("people `{name}`, but nothing says which event that is");
            let known = known.join(", ");
            let help = format!("add `{name}: {{emit: …}}` to `socketio`; described are {known}");
            mistakes.push(self.mistake(place, &reason, &help));
        }
        mistakes
    }

    fn mistake(&self, place: Place, reason: &str, help: &str) -> Mistake {
        let mut reader = Reader::new(&self.sources);
        reader.wrong(place, reason, help);
        let mut mistakes = reader.finish::<()>(None).err().unwrap_or_default();
        mistakes.remove(0)
    }
}

/// The place of the last key of the path that is there.
fn deepest(node: &Node, place: Place, path: &[String]) -> Place {
    let Some((first, rest)) = path.split_first() else { return place };
    match &node.value {
        Value::Map(pairs) => match pairs.iter().find(|(key, _)| key.text() == Some(first)) {
            Some((key, value)) => deepest(value, key.place, rest),
            // One that is no list counts as a list of one.
            None if first == "0" => deepest(node, place, rest),
            None => place,
        },
        Value::List(items) => match first.parse::<usize>().ok().and_then(|at| items.get(at)) {
            Some(item) => deepest(item, item.place, rest),
            None => place,
        },
        _ => node.place,
    }
}

/// Where people are first told to do that.
fn step(node: &Node, verb: Measure) -> Option<Place> {
    let is_it = |text: &str| {
        text == verb.name()
            || verb == Measure::Say && text == "talk"
            || verb == Measure::Join && text == "joined"
    };
    match &node.value {
        Value::Text(text) => is_it(text).then_some(node.place),
        Value::List(items) => items.iter().find_map(|item| step(item, verb)),
        Value::Map(pairs) => pairs.iter().find_map(|(key, value)| match key.text() {
            Some(text) if is_it(text) => Some(key.place),
            // These are names, whatever they sound like.
            Some("stage" | "gate" | "join" | "leave" | "features" | "accounts") => None,
            _ => step(value, verb),
        }),
        Value::Null => None,
    }
}
