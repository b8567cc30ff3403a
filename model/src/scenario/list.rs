//! Lists: people who are written to one by one, by the names of their accounts.

use super::crowd::Draft;
use super::near;
use super::reader::{Fields, Reader};
use super::room::{Family, Rooms};
use super::tree::{Node, Value};
use crate::stamp::PEOPLE_MAX;
use crate::{Accounts, ListPlan};

pub(super) const KEYS: &[&str] = &["of", "first", "each", "roster"];

/// What crowds a list may be of: names, and the accounts of each as far as they were understood.
pub(super) struct Crowds<'a, 'n> {
    pub(super) drafts: &'a [Draft<'n>],
    pub(super) accounts: &'a [Option<Accounts>],
}

/// Reads `lists`, and adds them to the rooms.
pub(super) fn read(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    crowds: &Crowds<'_, '_>,
    rooms: &mut Rooms,
) -> Option<Vec<ListPlan>> {
    let Some(node) = node else { return Some(Vec::new()) };
    let Value::Map(pairs) = &node.value else {
        let help = "as in `lists: {friends: {of: people}}`";
        reader.wrong(node.place, "`lists` is a map of lists by name", help);
        return None;
    };
    let before = reader.count();
    let mut lists = Vec::new();
    for (key, value) in pairs {
        let Some(name) = reader.text(key, "the name of a list") else { continue };
        let Some(fields) = reader.fields(value, &format!("the list `{name}`"), KEYS) else {
            continue;
        };
        if let Some(family) = family(reader, &fields, key, crowds)
            && rooms.add_lists(reader, key, name, &family).is_some()
        {
            lists.extend(family.lists);
        }
    }
    (reader.count() == before).then_some(lists)
}

fn family(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    key: &Node,
    crowds: &Crowds<'_, '_>,
) -> Option<Family> {
    let Some(of) = fields.get("of") else {
        let help = "as in `{of: people}`, people being a crowd";
        reader.missing(fields, key.place, "this list does not say who is on it", help);
        return None;
    };
    let whole = |reader: &mut Reader<'_>, name: &str, what: &str| match fields.get(name) {
        Some(node) => reader.whole(node, what, 1, PEOPLE_MAX.into()).map(|n| Some(n as u32)),
        None => Some(None),
    };
    let first = whole(reader, "first", "how many are on the list")?;
    let each = whole(reader, "each", "how many are on each list")?;
    let is_roster = match fields.get("roster") {
        None => false,
        Some(node) => reader.parsed(node, "`roster`", super::unit::switch)?,
    };
    let of = who(reader, of, crowds)?;
    let plan = |skip, take| ListPlan { of: of.clone(), skip, take, is_roster };
    let Some(each) = each else {
        return Some(Family { each: u32::MAX, lists: vec![plan(0, first.unwrap_or(PEOPLE_MAX))] });
    };
    let Some(known) = count(&of, crowds) else {
        let reason = "how many accounts there are is not known before the run";
        reader.wrong(key.place, reason, "`each` needs accounts by a pattern");
        return None;
    };
    let total = first.map_or(known, |first| first.min(known));
    let lists = (0..total.div_ceil(each)).map(|k| plan(k * each, each.min(total - k * each)));
    Some(Family { each, lists: lists.collect() })
}

/// The crowds that are named, one or several.
fn who(reader: &mut Reader<'_>, node: &Node, crowds: &Crowds<'_, '_>) -> Option<Vec<u32>> {
    let names = super::crowd::list(node);
    let mut of = Vec::new();
    for item in names {
        let name = reader.text(item, "a crowd")?;
        let Some(index) = crowds.drafts.iter().position(|draft| draft.name == name) else {
            let known = crowds.drafts.iter().map(|draft| draft.name);
            let help = near::advice(name, known, "crowds");
            reader.wrong(item.place, format!("there is no crowd `{name}`"), help);
            return None;
        };
        of.push(index as u32);
    }
    if of.is_empty() {
        reader.wrong(node.place, "a list of nobody", "name a crowd, as in `of: people`");
        return None;
    }
    Some(of)
}

/// How many accounts these crowds have; `None` if that is not known before the run.
fn count(of: &[u32], crowds: &Crowds<'_, '_>) -> Option<u32> {
    of.iter().try_fold(0u32, |sum, &crowd| match crowds.accounts.get(crowd as usize) {
        Some(Some(Accounts::Pattern { count, .. })) => Some(sum.saturating_add(*count)),
        _ => None,
    })
}
