//! `--set path=value`: changes a value of the tree before it is understood.

use super::Scenario;
use super::mistake::Mistake;
use super::near;
use super::parameter;
use super::tree::{self, Node, Place, Source, Value};

/// Most values that can be set: places count their sources in 16 bits.
const SETS_MAX: usize = 1_000;

impl Scenario {
    /// Sets the value at a path as in `crowds.viewers.size`; items of lists are numbered from 0.
    /// The value is YAML, or plain text if it is not. A new key is added where its map exists.
    ///
    /// A path that is the name of one of the scenario's `parameters` sets all it stands for.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), Mistake> {
        match parameter::paths(&self.root, path) {
            Some(paths) => paths.iter().try_for_each(|path| self.set_one(path, value)),
            None => self.set_one(path, value),
        }
    }

    /// Whether the scenario has a parameter of that name.
    pub fn has_parameter(&self, name: &str) -> bool {
        parameter::paths(&self.root, name).is_some()
    }

    fn set_one(&mut self, path: &str, value: &str) -> Result<(), Mistake> {
        let number = self.sources.len() as u16;
        let source = Source::new(&format!("--set {path}"), value);
        let path_source = Source::new("--set", path);
        if self.sources.len() > SETS_MAX {
            let reason = format!("more than {SETS_MAX} values are set");
            return Err(path_source.mistake(word(path, path), reason, "change the file itself"));
        }
        let node = tree::read(&source, number, value).unwrap_or_else(|_| Node {
            place: Place { source: number, line: 1, column: 1, width: 1 },
            value: Value::Text(value.into()),
        });
        if path.starts_with("target.") {
            self.open_target();
        }
        place_at(&mut self.root, path, path, node)
            .map_err(|(place, reason, help)| path_source.mistake(place, reason, help))?;
        self.sources.push(source);
        Ok(())
    }

    /// A target given as text becomes a map, so that an option can be set beside its name. What
    /// stands behind the `?` of a URL is the URL's own.
    fn open_target(&mut self) {
        let Value::Map(pairs) = &mut self.root.value else { return };
        let target = pairs.iter_mut().find(|(key, _)| key.text() == Some("target"));
        let Some((_, node)) = target else { return };
        let Some(text) = node.text().map(str::to_owned) else { return };
        let part = |text: &str| Node { place: node.place, value: Value::Text(text.into()) };
        let is_url = text.contains("://");
        let (name, options) = text.split_once('?').filter(|_| !is_url).unwrap_or((&text, ""));
        let mut pairs = vec![(part("name"), part(name))];
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            pairs.push((part(key), part(value)));
        }
        *node = Node { place: node.place, value: Value::Map(pairs) };
    }
}

type Misplaced = (Place, String, String);

/// The place of a part of the path.
fn word(path: &str, part: &str) -> Place {
    let before = path.len().saturating_sub(part.len());
    let column = path.get(..before).unwrap_or_default().chars().count() as u32 + 1;
    let end = part.find('.').unwrap_or(part.len());
    let width = part.get(..end).unwrap_or_default().chars().count() as u32;
    Place { source: 0, line: 1, column, width: width.max(1) }
}

/// Puts `node` where `rest`, the end of `path`, leads from `at`.
fn place_at(at: &mut Node, path: &str, rest: &str, node: Node) -> Result<(), Misplaced> {
    match &mut at.value {
        Value::Map(pairs) => match find_key(pairs, rest) {
            Some((i, Some(tail))) => place_at(&mut pairs[i].1, path, tail, node),
            Some((i, None)) => {
                pairs[i].1 = node;
                Ok(())
            }
            None => add_key(pairs, path, rest, node),
        },
        Value::List(items) => {
            let (head, tail) = split(rest);
            let last = items.len().saturating_sub(1);
            let item = head.parse::<usize>().ok().and_then(|i| items.get_mut(i));
            let item = item.ok_or_else(|| {
                let reason = format!("this is a list, and `{head}` is no item of it");
                (word(path, rest), reason, format!("its items are numbered from 0 to {last}"))
            })?;
            match tail {
                Some(tail) => place_at(item, path, tail, node),
                None => {
                    *item = node;
                    Ok(())
                }
            }
        }
        _ => {
            let parent = path[..path.len() - rest.len()].trim_end_matches('.');
            let reason = format!("there is nothing inside of `{parent}`");
            let help = match parent {
                "" => "the scenario is empty".into(),
                parent => format!("set the whole of it: `{parent}=…`"),
            };
            Err((word(path, rest), reason, help))
        }
    }
}

/// Whether there is a value at a path; the error says what there is instead.
pub(super) fn find(at: &Node, path: &str) -> Result<(), String> {
    find_in(at, path, path)
}

fn find_in(at: &Node, path: &str, rest: &str) -> Result<(), String> {
    match &at.value {
        Value::Map(pairs) => match find_key(pairs, rest) {
            Some((i, Some(tail))) => find_in(&pairs[i].1, path, tail),
            Some((_, None)) => Ok(()),
            // A target's options need not be written to be set.
            None if path.strip_prefix("target.") == Some(rest) => Ok(()),
            None => {
                let keys: Vec<&str> = pairs.iter().filter_map(|(key, _)| key.text()).collect();
                Err(nearest_path(path, rest, &keys))
            }
        },
        Value::List(items) => {
            let (head, tail) = split(rest);
            match (head.parse::<usize>().ok().and_then(|i| items.get(i)), tail) {
                (Some(item), Some(tail)) => find_in(item, path, tail),
                (Some(_), None) => Ok(()),
                (None, _) => Err(format!(
                    "its items are numbered from 0 to {}",
                    items.len().saturating_sub(1)
                )),
            }
        }
        _ if path.strip_prefix("target.") == Some(rest) => Ok(()),
        _ => Err("a path is written as in `crowds.viewers.size`".into()),
    }
}

/// The first part of a path, and what comes behind it.
fn split(path: &str) -> (&str, Option<&str>) {
    path.split_once('.').map_or((path, None), |(head, tail)| (head, Some(tail)))
}

/// Adds a key to a map; `limits` and `thresholds` may come into being on the way.
fn add_key(
    pairs: &mut Vec<(Node, Node)>,
    path: &str,
    rest: &str,
    node: Node,
) -> Result<(), Misplaced> {
    // Names of thresholds may contain dots: `delivery p99.9`.
    let (head, tail) = match path.strip_prefix("thresholds.") {
        Some(name) if name == rest => (rest, None),
        _ => split(rest),
    };
    let is_open = rest.len() == path.len() && matches!(head, "limits" | "thresholds");
    if head.is_empty() {
        let help = "write a path as in `crowds.viewers.size`";
        return Err((word(path, rest), "the path has an empty part".into(), help.into()));
    }
    if tail.is_some() && !is_open {
        let keys: Vec<&str> = pairs.iter().filter_map(|(key, _)| key.text()).collect();
        let help = nearest_path(path, rest, &keys);
        return Err((word(path, rest), format!("there is no `{head}` here"), help));
    }
    let named = |name: &str| Node { place: node.place, value: Value::Text(name.into()) };
    let (key, inner) = (named(head), tail.map(named));
    let value = match inner {
        Some(inner) => Node { place: node.place, value: Value::Map(vec![(inner, node)]) },
        None => node,
    };
    pairs.push((key, value));
    Ok(())
}

/// The key that `rest` begins with (keys may contain dots), and what comes behind it.
fn find_key<'p>(pairs: &[(Node, Node)], rest: &'p str) -> Option<(usize, Option<&'p str>)> {
    pairs
        .iter()
        .enumerate()
        .filter_map(|(i, (key, _))| {
            let key = key.text()?;
            let behind = rest.strip_prefix(key)?;
            match behind.strip_prefix('.') {
                Some(tail) => Some((key.len(), i, Some(tail))),
                None if behind.is_empty() => Some((key.len(), i, None)),
                None => None,
            }
        })
        .max_by_key(|&(len, ..)| len)
        .map(|(_, i, tail)| (i, tail))
}

fn nearest_path(path: &str, rest: &str, keys: &[&str]) -> String {
    let (head, tail) = rest.split_once('.').unwrap_or((rest, ""));
    let before = &path[..path.len() - rest.len()];
    match near::nearest(head, keys.iter().copied()) {
        Some(near) if tail.is_empty() => format!("did you mean `{before}{near}`?"),
        Some(near) => format!("did you mean `{before}{near}.{tail}`?"),
        None => near::advice(head, keys.iter().copied(), "keys"),
    }
}
