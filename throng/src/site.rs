//! Where the target is: a folder that describes it, the yardstick, or somebody's URL.

use crate::failure::Failure;
use engine::target::Spec;
use model::script::{OPTION, Script};
use model::{Endpoint, Options, Protocol, TargetRef};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// The target that is part of throng.
const YARDSTICK: &str = include_str!("../../targets/yardstick/target.yaml");

/// What a scenario's target turned out to be.
pub(crate) enum Site {
    /// A server that throng starts, with the values of its knobs.
    Own { spec: Box<Spec>, knobs: BTreeMap<String, String> },
    /// A server that runs already.
    Elsewhere { url: String },
}

/// Folders in which targets are looked for, in order.
pub(crate) fn folders(given: Option<&Path>, scenario: Option<&Path>) -> Vec<PathBuf> {
    match given {
        Some(folder) => vec![folder.to_owned()],
        None => {
            let beside = scenario.and_then(Path::parent).map(|folder| folder.join("../targets"));
            [Some(PathBuf::from("targets")), beside].into_iter().flatten().collect()
        }
    }
}

/// The target of that name.
pub(crate) fn find(name: &str, folders: &[PathBuf]) -> Result<Spec, Failure> {
    if name == "yardstick" {
        return Spec::parse(YARDSTICK, "targets/yardstick/target.yaml").map_err(Failure::usage);
    }
    match folders
        .iter()
        .map(|folder| folder.join(name))
        .find(|path| path.join("target.yaml").exists())
    {
        Some(path) => Spec::read(&path).map_err(Failure::usage),
        None => {
            let known = names(folders).join(", ");
            let help = format!("there is no target `{name}`; there are: {known}");
            Err(Failure::usage(format!("{help}.\nA server that runs already is named by its URL.")))
        }
    }
}

/// Names of all targets.
pub(crate) fn names(folders: &[PathBuf]) -> Vec<String> {
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let mut names: Vec<String> = entries
        .flat_map(|entries| entries.flatten())
        .filter(|entry| entry.path().join("target.yaml").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .chain(["yardstick".to_owned()])
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Finds the target and the protocol spoken with it.
pub(crate) fn resolve(
    target: &TargetRef,
    protocol: Option<&str>,
    folders: &[PathBuf],
) -> Result<(Site, &'static dyn Protocol), Failure> {
    if !target.name.contains("://") {
        let (name, program) = match target.name.split_once('@') {
            Some((name, program)) => (name, Some(program)),
            None => (target.name.as_str(), None),
        };
        let mut spec = Box::new(find(name, folders)?);
        if let Some(program) = program {
            replace_program(&mut spec, program)?;
        }
        let knobs = spec.knobs(&target.options).map_err(Failure::usage)?;
        let protocol = protocol_of(protocol.unwrap_or(&spec.protocol))?;
        return Ok((Site::Own { spec, knobs }, protocol));
    }
    let Some(name) = protocol else {
        let known: Vec<&str> = protocols::PROTOCOLS.iter().map(|p| p.facts().name).collect();
        return Err(Failure::usage(format!(
            "the scenario gives a URL but no `protocol`; it can be {}",
            known.join(", ")
        )));
    };
    let endpoint = Endpoint::parse(&target.name).map_err(Failure::usage)?;
    let protocol = protocol_of(name)?;
    let schemes = protocol.facts().schemes;
    if !schemes.contains(&endpoint.scheme.as_str()) {
        let schemes = schemes.join("://, ");
        return Err(Failure::usage(format!(
            "`{name}` is reached by {schemes}://, not `{}`",
            target.name
        )));
    }
    Ok((Site::Elsewhere { url: target.name.clone() }, protocol))
}

/// Another build of a target: its program is replaced in every command that begins with it.
fn replace_program(spec: &mut Spec, program: &str) -> Result<(), Failure> {
    let path = std::fs::canonicalize(program).map_err(|error| {
        Failure::usage(format!("cannot find the program `{program}` of the target: {error}"))
    })?;
    let path = path.to_string_lossy().into_owned();
    let old = spec.command.first().cloned();
    let version = spec.version.iter_mut().map(|version| &mut version.command);
    for command in version.chain([&mut spec.command]) {
        if let Some(first) = command.first_mut().filter(|first| Some(&**first) == old.as_ref()) {
            first.clone_from(&path);
        }
    }
    Ok(())
}

/// The changes that make a scenario's target another one: `?knob=value&…` for knobs of the same
/// target, `NAME`, `NAME@PROGRAM`, `NAME?knob=value` or a URL for another one.
pub(crate) fn changes(variant: &str) -> Result<Vec<(String, String)>, Failure> {
    let Some(knobs) = variant.strip_prefix('?') else {
        return Ok(vec![("target".to_owned(), variant.to_owned())]);
    };
    let pair = |pair: &str| match pair.split_once('=') {
        Some((knob, value)) => Ok((format!("target.{knob}"), value.to_owned())),
        None => Err(Failure::usage(format!("`?{knobs}` needs the form ?knob=value&knob=value"))),
    };
    knobs.split('&').map(pair).collect()
}

fn protocol_of(name: &str) -> Result<&'static dyn Protocol, Failure> {
    protocols::protocol(name).ok_or_else(|| {
        let known: Vec<&str> = protocols::PROTOCOLS.iter().map(|p| p.facts().name).collect();
        Failure::usage(format!("there is no protocol `{name}`; there are {}", known.join(", ")))
    })
}

/// The options that are the protocol's, checked.
pub(crate) fn options(
    given: &Options,
    site: &Site,
    protocol: &dyn Protocol,
    from_target: &Options,
    script: Option<&Script>,
) -> Result<Options, Failure> {
    let options = with_script(given, site, protocol, from_target, script)?;
    protocol.check(&options).map_err(Failure::usage)?;
    Ok(options)
}

/// The options that are the protocol's: what the scenario gives beyond the target's knobs, on
/// top of what the target's folder says.
pub(crate) fn with_script(
    given: &Options,
    site: &Site,
    protocol: &dyn Protocol,
    from_target: &Options,
    script: Option<&Script>,
) -> Result<Options, Failure> {
    let knobs = match site {
        Site::Own { knobs, .. } => knobs.keys().map(String::as_str).collect(),
        Site::Elsewhere { .. } => Vec::new(),
    };
    let known = protocol.facts().options;
    let mut options = from_target.clone();
    for (name, value) in given.iter().filter(|(name, _)| !knobs.contains(&name.as_str())) {
        if !known.iter().any(|(known, _)| known == name) {
            let all = known.iter().map(|(known, _)| *known).chain(knobs.iter().copied());
            let all: Vec<&str> = all.collect();
            let help = format!("the target has no option `{name}`; it has {}", all.join(", "));
            return Err(Failure::usage(help));
        }
        options.insert(name.clone(), value.clone());
    }
    if let Some(script) = script {
        let text = serde_json::to_string(script).map_err(|e| Failure::usage(e.to_string()))?;
        options.insert(OPTION.to_owned(), text);
    }
    Ok(options)
}

/// Addresses of a server that runs already, if it may be loaded.
pub(crate) fn addresses(url: &str, allowed: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    let endpoint = Endpoint::parse(url).map_err(Failure::usage)?;
    let host = endpoint.host.as_str();
    let found = (host, endpoint.port).to_socket_addrs();
    let found: Vec<SocketAddr> = found
        .map_err(|error| Failure::unmeasured(format!("cannot find the host `{host}`: {error}")))?
        .collect();
    let is_fine =
        |address: &SocketAddr| is_private(address.ip()) || allowed.iter().any(|a| a == host);
    match found.iter().find(|address| !is_fine(address)) {
        Some(address) => Err(Failure::usage(format!(
            "{host} ({}) is neither on loopback nor in a private network. A load test of a server \
             that is not yours is an attack. If you may do this, say so with \
             --i-am-allowed-to-load {host}",
            address.ip()
        ))),
        None => Ok(found.into_iter().take(1).collect()),
    }
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_hosts_without_permission() {
        let check = |url: &str, allowed: &[&str]| {
            addresses(url, &allowed.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>()).is_ok()
        };
        assert!(check("ws://127.0.0.1:5/", &[]));
        assert!(check("ws://10.1.2.3/", &[]));
        assert!(check("ws://[fd00::1]:1/", &[]));
        assert!(!check("ws://8.8.8.8/", &[]));
        assert!(!check("ws://8.8.8.8/", &["8.8.4.4"]));
        assert!(check("ws://8.8.8.8/", &["8.8.8.8"]));
    }

    #[test]
    fn the_yardstick_is_always_there() {
        let spec = find("yardstick", &[]).unwrap();
        assert_eq!(spec.protocol, "yardstick");
        assert!(find("yardstik", &[]).unwrap_err().message.contains("yardstick"));
    }
}
