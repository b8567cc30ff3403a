//! Crowds: how many people of a kind, with which features, accounts and journey.

use super::near;
use super::reader::{Fields, Reader};
use super::room::Rooms;
use super::tree::{Node, Place, Value};
use super::{account, journey};
use crate::stamp::PEOPLE_MAX;
use crate::{Accounts, Crowd, Facts};

pub(super) const KEYS: &[&str] = &["size", "features", "accounts", "joined", "pace", "journey"];
/// Most crowds of a scenario.
const CROWDS_MAX: usize = 1_000;

/// A crowd whose name and size are known; the timeline needs no more.
pub(super) struct Draft<'n> {
    pub(super) name: &'n str,
    pub(super) size: u32,
    /// Factor for numbers of people.
    pub(super) scale: f64,
    /// `None` if it has a mistake; its features are then unknown.
    pub(super) features: Option<Vec<String>>,
    at: Place,
    fields: Option<Fields<'n>>,
}

/// Reads names, sizes and features of `crowds`.
pub(super) fn drafts<'n>(
    reader: &mut Reader<'_>,
    root: &Fields<'n>,
    at: Place,
    scale: f64,
    facts: Option<&Facts>,
) -> Option<Vec<Draft<'n>>> {
    let example = "as in `crowds: {people: {size: 100, journey: [login, join, say, leave]}}`";
    let node = root.get("crowds");
    let Some(pairs) = node.and_then(Node::map).filter(|pairs| !pairs.is_empty()) else {
        let place = node.map_or(at, |node| node.place);
        let reason = "the scenario needs `crowds`: a map of people by name";
        reader.missing(root, place, reason, example);
        return None;
    };
    if pairs.len() > CROWDS_MAX {
        let help = "crowds of one kind are one crowd that runs several times";
        reader.wrong(pairs[0].0.place, format!("more than {CROWDS_MAX} crowds"), help);
        return None;
    }
    let mut drafts: Vec<Draft<'n>> = Vec::new();
    for (key, value) in pairs {
        let Some(name) = reader.text(key, "a crowd's name") else { continue };
        if super::plan::check_name(reader, key, "a crowd", name).is_none() {
            continue;
        }
        if drafts.iter().any(|other| other.name == name) {
            reader.wrong(key.place, format!("there are two crowds `{name}`"), "rename one of them");
            continue;
        }
        let fields = reader.fields(value, &format!("the crowd `{name}`"), KEYS);
        let size = fields.as_ref().and_then(|fields| size(reader, fields, key.place, scale));
        let features = match (&fields, facts) {
            (Some(fields), Some(facts)) => features(reader, fields, facts),
            _ => None,
        };
        let size = size.unwrap_or(1);
        drafts.push(Draft { name, size, scale, features, at: key.place, fields });
    }
    Some(drafts)
}

fn size(reader: &mut Reader<'_>, fields: &Fields<'_>, at: Place, scale: f64) -> Option<u32> {
    let Some(node) = fields.get("size") else {
        reader.missing(
            fields,
            at,
            "this crowd does not say how many people it has",
            "add `size: 100`",
        );
        return None;
    };
    let size = reader.whole(node, "the size of a crowd", 1, PEOPLE_MAX.into())?;
    let scaled = (size as f64 * scale).round().max(1.0);
    if scaled > f64::from(PEOPLE_MAX) {
        let reason = format!("{size} people times {scale} are more than {PEOPLE_MAX}");
        reader.wrong(node.place, reason, "scale it less");
        return None;
    }
    Some(scaled as u32)
}

fn features(reader: &mut Reader<'_>, fields: &Fields<'_>, facts: &Facts) -> Option<Vec<String>> {
    let known: Vec<&str> = facts.features.iter().map(|(name, _)| *name).collect();
    match fields.get("features") {
        None => Some(Vec::new()),
        Some(node) if node.text() == Some("all") => {
            Some(known.iter().map(|&name| name.to_owned()).collect())
        }
        Some(node) => {
            let items = reader.items(node, "`features`")?;
            names(reader, items, &known, facts.name)
        }
    }
}

/// Names of features, each known and given once.
fn names(
    reader: &mut Reader<'_>,
    items: &[Node],
    known: &[&str],
    protocol: &str,
) -> Option<Vec<String>> {
    let before = reader.count();
    let mut names: Vec<String> = Vec::new();
    for item in items {
        let Some(name) = reader.text(item, "a feature") else { continue };
        if !known.contains(&name) {
            let reason = format!("the protocol `{protocol}` has no feature `{name}`");
            reader.wrong(item.place, reason, near::advice(name, known.iter().copied(), "features"));
        } else if names.iter().any(|other| other == name) {
            let reason = format!("the feature `{name}` is given twice");
            reader.wrong(item.place, reason, "remove one of the two");
        } else {
            names.push(name.into());
        }
    }
    (reader.count() == before).then_some(names)
}

/// Reads who the people of a crowd log in as. `people` is how many the timeline brings.
pub(super) fn accounts(
    reader: &mut Reader<'_>,
    draft: &Draft<'_>,
    people: u32,
) -> Option<Accounts> {
    account::read(reader, draft.fields.as_ref()?.get("accounts"), draft.name, people)
}

/// Reads the rest of a crowd.
pub(super) fn finish(
    reader: &mut Reader<'_>,
    draft: &Draft<'_>,
    accounts: Option<Accounts>,
    rooms: Option<&Rooms>,
    facts: Option<&Facts>,
) -> Option<Crowd> {
    let fields = draft.fields.as_ref()?;
    let program = journey::read(reader, fields, draft.at, rooms?, facts?);
    Some(Crowd {
        name: draft.name.into(),
        size: draft.size,
        features: draft.features.clone()?,
        accounts: accounts?,
        program: program?,
    })
}

/// The value as a list of names, if it is one: for `without`.
pub(super) fn list(node: &Node) -> Vec<&Node> {
    match &node.value {
        Value::List(items) => items.iter().collect(),
        Value::Null => Vec::new(),
        _ => vec![node],
    }
}
