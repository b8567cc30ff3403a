//! Parameters: names for values of the scenario, so that `--set` and a sweep can move one or
//! several of them by one word.

use super::plan;
use super::reader::Reader;
use super::set;
use super::tree::{Node, Value};

/// Most parameters, and most paths of one.
const MAX: usize = 100;

/// The paths a parameter stands for; `None` if there is no such parameter.
pub(super) fn paths(root: &Node, name: &str) -> Option<Vec<String>> {
    let Value::Map(pairs) = &root.value else { return None };
    let (_, parameters) = pairs.iter().find(|(key, _)| key.text() == Some("parameters"))?;
    let Value::Map(parameters) = &parameters.value else { return None };
    let (_, paths) = parameters.iter().find(|(key, _)| key.text() == Some(name))?;
    let texts = match &paths.value {
        Value::List(items) => items.iter().map(|item| item.text().map(str::to_owned)).collect(),
        _ => Some(vec![paths.text()?.to_owned()]),
    };
    texts.filter(|texts: &Vec<String>| texts.len() <= MAX)
}

/// Checks that every parameter leads somewhere.
pub(super) fn check(reader: &mut Reader<'_>, root: &Node, parameters: Option<&Node>) {
    let Some(node) = parameters else { return };
    let Value::Map(pairs) = &node.value else {
        let help = "as in `parameters: {people: crowds.viewers.size}`";
        reader.wrong(node.place, "`parameters` is no map of names to paths", help);
        return;
    };
    for (key, paths) in pairs.iter().take(MAX) {
        let name = key.text().unwrap_or_default();
        if name.is_empty() || name.contains('.') || plan::KEYS.contains(&name) {
            let reason = format!("`{name}` cannot name a parameter");
            reader.wrong(key.place, reason, "a word of its own, such as `destinations`");
        }
        let items = match &paths.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(paths),
        };
        for item in items.iter().take(MAX) {
            let Some(path) = reader.text(item, "a path") else { continue };
            if let Err(help) = set::find(root, path) {
                let reason = format!("`{path}` leads nowhere");
                reader.wrong(item.place, reason, help);
            }
        }
    }
}
