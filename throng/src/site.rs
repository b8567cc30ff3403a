//! Where the target is: a folder that describes it, the yardstick, or somebody's URL.

use crate::failure::Failure;
use engine::srv;
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
    let mut found = Vec::new();
    for (name, port) in hosts(&endpoint, srv::name_servers)? {
        let addresses = (name.as_str(), port).to_socket_addrs();
        found.extend(addresses.map_err(|error| {
            Failure::unmeasured(format!("cannot find the host `{name}`: {error}"))
        })?);
    }
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

/// What SRV records call the services of schemes whose URL may name a domain (RFC 6120 section
/// 3.2.1, XEP-0368).
const SERVICES: [(&str, &str); 2] =
    [("xmpp", "_xmpp-client._tcp"), ("xmpps", "_xmpps-client._tcp")];

/// Hosts and ports that serve an endpoint, the best first: itself, unless the URL names a domain
/// without a port and the domain names others. Where nobody answers for the domain it is itself.
fn hosts(
    endpoint: &Endpoint,
    name_servers: impl FnOnce() -> Vec<SocketAddr>,
) -> Result<Vec<(String, u16)>, Failure> {
    let host = endpoint.host.as_str();
    let itself = || vec![(host.to_owned(), endpoint.port)];
    let is_domain = host.contains('.') && host.parse::<IpAddr>().is_err();
    let service = SERVICES.iter().find(|row| row.0 == endpoint.scheme).map(|row| row.1);
    let Some(service) = service.filter(|_| is_domain && !endpoint.is_port_given) else {
        return Ok(itself());
    };
    let found = srv::lookup(&format!("{service}.{host}"), &name_servers()).unwrap_or_default();
    if found.is_empty() {
        return Ok(itself());
    }
    // A sole root says that there is no such service (RFC 2782).
    let found: Vec<(String, u16)> = found
        .into_iter()
        .filter(|server| !server.host.is_empty())
        .map(|server| (server.host, server.port))
        .collect();
    match found.is_empty() {
        true => Err(Failure::usage(format!("`{host}` says that it has no {service}"))),
        false => Ok(found),
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

    /// A name server on loopback that knows one service: `chat.example`, at a host and port.
    fn name_server(host: &'static [u8], port: u16) -> SocketAddr {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query) {
                // The question again, without our own option, and one record behind it.
                let mut answer = query[..length - 11].to_vec();
                let known = b"\x0c_xmpp-client\x04_tcp\x04chat\x07example\x00";
                let is_known = answer[12..].starts_with(known);
                answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
                if !is_known {
                    answer[3] = 0x83;
                    answer[7] = 0;
                } else {
                    answer.extend_from_slice(&[0xC0, 12, 0, 33, 0, 1, 0, 0, 0, 60]);
                    answer.extend_from_slice(&(6 + host.len() as u16).to_be_bytes());
                    answer.extend_from_slice(&[0, 10, 0, 0]);
                    answer.extend_from_slice(&port.to_be_bytes());
                    answer.extend_from_slice(host);
                }
                socket.send_to(&answer, from).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_domain_says_who_serves_it() {
        let server = name_server(b"\x01b\x04chat\x07example\x00", 5333);
        let found = |url: &str, server: SocketAddr| {
            let endpoint = Endpoint::parse(url).unwrap();
            let found = hosts(&endpoint, || vec![server]).map_err(|failure| failure.message)?;
            Ok(found.iter().map(|(host, port)| format!("{host}:{port}")).collect::<Vec<_>>())
        };
        let rows = [
            ("xmpp://chat.example", "b.chat.example:5333"),
            ("xmpp://chat.example:5222", "chat.example:5222"),
            ("xmpps://chat.example", "chat.example:5223"),
            ("xmpp://other.example", "other.example:5222"),
            ("xmpp://localhost", "localhost:5222"),
            ("xmpp://10.0.0.1", "10.0.0.1:5222"),
            ("ws://chat.example", "chat.example:80"),
        ];
        for (url, expect) in rows {
            assert_eq!(found(url, server), Ok(vec![expect.to_owned()]), "{url}");
        }
        let nobody = name_server(b"\x00", 0);
        let error: String = found("xmpp://chat.example", nobody).unwrap_err();
        assert!(error.contains("has no _xmpp-client._tcp"), "{error}");
    }

    #[test]
    fn the_yardstick_is_always_there() {
        let spec = find("yardstick", &[]).unwrap();
        assert_eq!(spec.protocol, "yardstick");
        assert!(find("yardstik", &[]).unwrap_err().message.contains("yardstick"));
    }
}
