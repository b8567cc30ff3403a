//! Profiles of a phase: `profile: perf`, or a map of profilers with what they are told.

use super::near;
use super::reader::Reader;
use super::tree::{Node, Value};
use super::unit;
use crate::profile::{PPROF_NS, PROFILE_HZ, PROFILE_HZ_MAX, PROFILES_MAX};
use crate::{ProfilePlan, Profiler, Subject};

/// Profilers by name.
pub(super) const PROFILERS: &[&str] = &["perf", "node", "py-spy", "pprof"];
/// What a profiler of processes is told.
pub(super) const SAMPLER_KEYS: &[&str] = &["hz", "for", "after", "of"];
/// What a pprof URL is told.
pub(super) const PPROF_KEYS: &[&str] = &["url", "for", "after"];
const PPROF_EXAMPLE: &str =
    "as in `profile: {pprof: \"http://127.0.0.1:6060/debug/pprof/profile\"}`";

/// Reads `profile`: a profiler's name, a map of profilers, or a list of these.
pub(super) fn read(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Vec<ProfilePlan>> {
    let Some(node) = node else { return Some(Vec::new()) };
    let items = match &node.value {
        Value::Map(_) => std::slice::from_ref(node),
        _ => reader.items(node, "`profile`")?,
    };
    let before = reader.count();
    let mut profiles = Vec::new();
    for item in items {
        match item.map() {
            None => profiles.extend(named(reader, item)),
            Some(pairs) => {
                reader.fields(item, "`profile`", PROFILERS)?;
                let found = pairs.iter().filter_map(|(key, told)| one(reader, key, told));
                profiles.extend(found.collect::<Vec<_>>());
            }
        }
    }
    if profiles.len() > PROFILES_MAX {
        let reason = format!("a phase has at most {PROFILES_MAX} profiles");
        reader.wrong(node.place, reason, "leave some out, or take them in other phases");
    }
    (reader.count() == before).then_some(profiles)
}

/// A profiler by its name alone.
fn named(reader: &mut Reader<'_>, node: &Node) -> Option<ProfilePlan> {
    let name = reader.text(node, "a profiler")?;
    if !PROFILERS.contains(&name) {
        let help = near::advice(name, PROFILERS.iter().copied(), "profilers");
        reader.wrong(node.place, format!("there is no profiler `{name}`"), help);
        return None;
    }
    one(reader, node, &Node { value: Value::Null, ..node.clone() })
}

/// A profiler with what it is told.
fn one(reader: &mut Reader<'_>, key: &Node, told: &Node) -> Option<ProfilePlan> {
    match key.text()? {
        "pprof" => pprof(reader, key, told),
        "perf" => sampler(reader, Profiler::Perf, told),
        "node" => sampler(reader, Profiler::Node, told),
        _ => sampler(reader, Profiler::PySpy, told),
    }
}

fn sampler(reader: &mut Reader<'_>, profiler: Profiler, told: &Node) -> Option<ProfilePlan> {
    let mut profile =
        ProfilePlan { profiler, of: Subject::Target, hz: PROFILE_HZ, after_ns: 0, for_ns: None };
    if matches!(told.value, Value::Null) {
        return Some(profile);
    }
    let what = format!("the profiler `{}`", profile.profiler.name());
    let fields = reader.fields(told, &what, SAMPLER_KEYS)?;
    if let Some(node) = fields.get("hz") {
        profile.hz = reader.whole(node, "`hz`", 1, PROFILE_HZ_MAX.into())? as u32;
    }
    if let Some(node) = fields.get("for") {
        profile.for_ns = Some(reader.positive(node, "`for`")?);
    }
    if let Some(node) = fields.get("after") {
        profile.after_ns = reader.duration(node, "`after`")?;
    }
    if let Some(node) = fields.get("of") {
        profile.of = subject(reader, node)?;
    }
    Some(profile)
}

fn subject(reader: &mut Reader<'_>, node: &Node) -> Option<Subject> {
    const HELP: &str = "it is `target`, `generator`, or the number of a process";
    match reader.text(node, "`of`")? {
        "target" => Some(Subject::Target),
        "generator" => Some(Subject::Generator),
        text => match unit::whole(text, 1, i32::MAX as u64) {
            Ok(pid) => Some(Subject::Process(pid as u32)),
            Err(_) => {
                reader.wrong(node.place, format!("nobody can be profiled as `{text}`"), HELP);
                None
            }
        },
    }
}

fn pprof(reader: &mut Reader<'_>, key: &Node, told: &Node) -> Option<ProfilePlan> {
    let (mut after_ns, mut for_ns) = (0, PPROF_NS);
    let url = match &told.value {
        Value::Map(_) => {
            let fields = reader.fields(told, "the profiler `pprof`", PPROF_KEYS)?;
            if let Some(node) = fields.get("for") {
                for_ns = reader.positive(node, "`for`")?;
            }
            if let Some(node) = fields.get("after") {
                after_ns = reader.duration(node, "`after`")?;
            }
            fields.get("url")
        }
        Value::Null => None,
        _ => Some(told),
    };
    let Some(url) = url else {
        reader.wrong(key.place, "the profiler `pprof` needs a URL", PPROF_EXAMPLE);
        return None;
    };
    let text = reader.text(url, "the URL of a profile")?;
    if !text.starts_with("http://") || text.chars().any(|c| c.is_control() || c == ' ') {
        reader.wrong(url.place, "the URL of a profile must begin with `http://`", PPROF_EXAMPLE);
        return None;
    }
    if let Err(why) = crate::Endpoint::parse(text) {
        reader.wrong(url.place, why, PPROF_EXAMPLE);
        return None;
    }
    let profiler = Profiler::Pprof { url: text.to_owned() };
    let for_ns = Some(for_ns);
    Some(ProfilePlan { profiler, of: Subject::Target, hz: 0, after_ns, for_ns })
}
