//! The target: a folder's name, the yardstick, or a URL, with options.

use super::events;
use super::plan::{KEYS, WHAT, start};
use super::reader::{Fields, Reader};
use super::tree::{Node, Place, Value};
use super::{Mistake, Scenario};
use crate::{Endpoint, TargetRef};
use std::collections::BTreeMap;

/// Most options of a target.
const OPTIONS_MAX: usize = 100;

/// What a scenario says about its target.
pub(super) struct Written {
    pub(super) target: TargetRef,
    pub(super) protocol: Option<String>,
}

impl Scenario {
    /// What the scenario puts under load, to find its protocol before there is a plan.
    pub fn target(&self) -> Result<TargetRef, Vec<Mistake>> {
        let mut reader = Reader::new(&self.sources);
        let fields = reader.fields(&self.root, WHAT, KEYS);
        let written = fields.and_then(|fields| read(&mut reader, &fields, start(&self.root)));
        reader.finish(written.map(|written| written.target))
    }

    /// The protocol's name, if the scenario gives it. It must for a URL.
    pub fn protocol(&self) -> Option<String> {
        let mut reader = Reader::new(&self.sources);
        let fields = reader.fields(&self.root, WHAT, KEYS)?;
        read(&mut reader, &fields, start(&self.root))?.protocol
    }
}

/// Reads `target` and `protocol`.
pub(super) fn read(reader: &mut Reader<'_>, root: &Fields<'_>, at: Place) -> Option<Written> {
    let Some(node) = root.get("target") else {
        let help = "add `target: yardstick`, a folder's name, or a URL";
        reader.missing(root, at, "the scenario does not say what to put under load", help);
        return None;
    };
    let (mut target, at) = match &node.value {
        Value::Map(pairs) => from_map(reader, node, pairs)?,
        _ => (from_text(reader, node)?, node),
    };
    let inner = target.options.remove("protocol");
    let outer = match root.get("protocol") {
        Some(protocol) => Some(reader.text(protocol, "`protocol`")?.to_owned()),
        None => None,
    };
    let protocol = outer.or(inner);
    if let Some(node) = root.get(events::KEY) {
        // What was found wrong is reported with the plan, which is not made then.
        let map = events::read(reader, node)?;
        target.options.insert(events::OPTION.into(), map);
    }
    if target.name.contains("://") {
        if let Err(reason) = Endpoint::parse(&target.name) {
            reader.wrong(at.place, reason, "as in `ws://127.0.0.1:8080/chat`");
            return None;
        }
        if protocol.is_none() {
            let help = "add a line `protocol: …`; `throng protocols` lists them";
            reader.wrong(at.place, "a URL does not tell the protocol spoken there", help);
            return None;
        }
    } else if !is_name(target.name.split_once('@').map_or(&target.name, |(name, _)| name)) {
        let reason = format!("`{}` is neither the name of a target nor a URL", target.name);
        reader.wrong(
            at.place,
            reason,
            "as in `prosody`, `yardstick?codec=json`, `wss://chat.example/ws`",
        );
        return None;
    }
    Some(Written { target, protocol })
}

/// Folder names only: no path leads out of `targets/`.
fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(is_fine)
}

/// `name`, `name?knob=value&knob=value`, or a URL (whose query is its own).
fn from_text(reader: &mut Reader<'_>, node: &Node) -> Option<TargetRef> {
    let text = reader.text(node, "`target`")?;
    let mut options = BTreeMap::new();
    let (name, query) = match text.split_once('?') {
        Some(split) if !text.contains("://") => split,
        _ => (text, ""),
    };
    for knob in query.split('&').filter(|knob| !knob.is_empty()).take(OPTIONS_MAX) {
        let Some((key, value)) = knob.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let place = reader.part(node, knob);
            reader.wrong(
                place,
                format!("`{knob}` is not a knob"),
                format!("as in `{name}?codec=json`"),
            );
            return None;
        };
        options.insert(key.into(), value.into());
    }
    Some(TargetRef { name: name.into(), options })
}

fn from_map<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
    pairs: &'n [(Node, Node)],
) -> Option<(TargetRef, &'n Node)> {
    let Some(at) = node.at("name").or(node.at("url")) else {
        reader.wrong(
            node.place,
            "`target` needs a `name` or a `url`",
            "as in `{name: yardstick, codec: json}`",
        );
        return None;
    };
    let mut target = from_text(reader, at)?;
    for (key, value) in pairs {
        let name = reader.text(key, "the name of an option")?;
        if matches!(name, "name" | "url") {
            if !std::ptr::eq(value, at) {
                reader.wrong(key.place, "a target is given once", "keep either `name` or `url`");
                return None;
            }
            continue;
        }
        let text = reader.text(value, &format!("option `{name}` of the target"))?;
        if target.options.insert(name.into(), text.into()).is_some() {
            reader.wrong(
                key.place,
                format!("option `{name}` is given twice"),
                "remove one of the two",
            );
        }
    }
    Some((target, at))
}
