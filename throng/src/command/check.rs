//! `throng check`: what this machine allows against what the plan needs, with advice.

use crate::cli::ScenarioArgs;
use crate::failure::{Ending, UNMEASURED};
use crate::load::{Loaded, load};
use crate::site::Site;
use engine::limits;

/// Process memory of a person, bytes, with everything its session and connection keep: what was
/// measured for a person in a room, with a reserve for rosters and histories under way.
const PERSON_BYTES: u64 = 4 << 10;
/// Kernel memory of a connection on loopback, both ends, bytes.
const KERNEL_BYTES: u64 = 10 << 10;

/// One line of the check: what was looked at, and what to do if it is not enough.
pub(crate) struct Finding {
    pub(crate) is_fine: bool,
    /// Whether it is only told: a run is not refused for it.
    pub(crate) is_risk: bool,
    pub(crate) what: String,
    pub(crate) advice: String,
}

/// Prints what was found; the exit code tells whether the scenario can be run here.
pub(crate) fn check(args: &ScenarioArgs) -> Ending {
    let loaded = load(args)?;
    let mut findings = look(&loaded, &[]);
    findings.push(target(&loaded));
    findings.extend(target_descriptors(&loaded, limits::raise_descriptors().1));
    for finding in &findings {
        let word = match (finding.is_fine, finding.is_risk) {
            (true, _) => "ok  ",
            (false, true) => "RISK",
            (false, false) => "NOT ",
        };
        println!("{word} {}", finding.what);
        if !finding.is_fine {
            println!("     {}", finding.advice);
        }
    }
    let is_possible = |finding: &Finding| finding.is_fine || finding.is_risk;
    Ok(if findings.iter().all(is_possible) { 0 } else { UNMEASURED })
}

/// Looks at everything of this machine that can stop a run before it begins. The target is not
/// touched: a run finds out by itself, and a look would be a connection more than was asked for.
pub(crate) fn look(loaded: &Loaded, allowed: &[String]) -> Vec<Finding> {
    let people = u64::from(loaded.plan.people());
    let machine = [descriptors(people), ports(people, loaded), memory(people), accounts(loaded)];
    machine.into_iter().chain(profilers(loaded, allowed)).collect()
}

fn profilers(loaded: &Loaded, allowed: &[String]) -> impl Iterator<Item = Finding> {
    let is_started = matches!(loaded.site, Site::Own { .. });
    let looks = engine::profile::look(&loaded.plan, is_started, allowed);
    looks.into_iter().map(|look| Finding {
        is_fine: look.problem.is_none(),
        is_risk: false,
        what: look.what,
        advice: look.problem.unwrap_or_default(),
    })
}

fn descriptors(people: u64) -> Finding {
    let (_, hard) = limits::raise_descriptors();
    let each = limits::connections_per_process();
    let processes = people.div_ceil(each).max(1);
    let split =
        if processes > 1 { format!(": {processes} worker processes") } else { String::new() };
    Finding {
        is_fine: processes <= 64,
        is_risk: false,
        what: format!("descriptors: {people} people, {each} a process (hard limit {hard}){split}"),
        advice: "raise the hard limit: `ulimit -Hn 1000000` as root, or in limits.conf".into(),
    }
}

fn ports(people: u64, loaded: &Loaded) -> Finding {
    let (low, high) = limits::local_ports();
    let each = u64::from(high - low + 1);
    let is_local = match &loaded.site {
        Site::Own { .. } => true,
        Site::Elsewhere { url } => url.contains("//127.") || url.contains("//localhost"),
    };
    Finding {
        is_fine: is_local || people <= each,
        is_risk: false,
        what: match is_local && people > each {
            true => {
                format!("ports: {each} an address ({low} to {high}), several loopback addresses")
            }
            false => format!("ports: {each} to one address of the target ({low} to {high})"),
        },
        advice: format!(
            "{people} people need more local ports: `sysctl net.ipv4.ip_local_port_range=\"1024 \
             65535\"`, or a target with several addresses"
        ),
    }
}

fn memory(people: u64) -> Finding {
    let needed = people * (PERSON_BYTES + KERNEL_BYTES);
    let available = limits::available_bytes();
    Finding {
        is_fine: needed < available,
        is_risk: false,
        what: format!("memory: about {} MiB of {} MiB available", needed >> 20, available >> 20),
        advice: "scale the scenario down (--scale), or free memory".into(),
    }
}

fn target(loaded: &Loaded) -> Finding {
    let (what, result) = match &loaded.site {
        Site::Own { spec, knobs } => {
            let what = format!("target: {}", loaded.plan.target.name);
            (what, engine::target::check_needs(spec, knobs))
        }
        Site::Elsewhere { url } => (format!("target: {url} answers"), reach(url)),
    };
    let advice = result.as_ref().err().cloned().unwrap_or_default();
    Finding { is_fine: result.is_ok(), is_risk: false, what, advice }
}

/// A target that throng starts inherits the hard limit of descriptors, and needs one for each of
/// its connections. Only told: it may know how to do with fewer, and who wants to see it at its
/// limit may.
fn target_descriptors(loaded: &Loaded, hard: u64) -> Option<Finding> {
    let Site::Own { spec, knobs } = &loaded.site else { return None };
    let instances = engine::target::instances(spec, knobs).ok()? as u64;
    let each = u64::from(loaded.plan.people()).div_ceil(instances);
    let needed = each + limits::DESCRIPTORS_RESERVED;
    let room = hard.saturating_sub(limits::DESCRIPTORS_RESERVED) * instances;
    let scale = loaded.plan.scale * room as f64 / f64::from(loaded.plan.people().max(1));
    Some(Finding {
        is_fine: needed <= hard,
        is_risk: true,
        what: format!(
            "descriptors of the target: {needed} for up to {each} people of an instance and for itself \
             (hard limit {hard}, which it inherits)"
        ),
        advice: format!(
            "it may refuse people: scale down (--scale {:.3}), more instances if it has a knob for \
             them, or raise the hard limit (`ulimit -Hn {needed}` as root, or limits.conf)",
            (scale * 1e3).floor() / 1e3
        ),
    })
}

fn reach(url: &str) -> Result<(), String> {
    let addresses = crate::site::addresses(url, &[]).map_err(|failure| failure.message)?;
    let patience = std::time::Duration::from_secs(3);
    let address = addresses.first().ok_or("the host has no address")?;
    match std::net::TcpStream::connect_timeout(address, patience) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{error}; is the server running?")),
    }
}

fn accounts(loaded: &Loaded) -> Finding {
    let result = engine::AccountBook::open(&loaded.plan, &loaded.folder);
    Finding {
        is_fine: result.is_ok(),
        is_risk: false,
        what: "accounts: patterns, files and environment variables".into(),
        advice: result.err().unwrap_or_default(),
    }
}
