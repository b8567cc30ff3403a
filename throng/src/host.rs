//! Provenance: what machine this is, and what it allows.

use engine::limits;
use results::run::HostFacts;
use std::fs;

/// Kernel settings that change what a load test can reach.
const SETTINGS: [&str; 6] = [
    "net/core/somaxconn",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/ip_local_port_range",
    "fs/nr_open",
];

/// The machine this is.
pub(crate) fn facts() -> HostFacts {
    let (soft, hard) = limits::raise_descriptors();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let settings = SETTINGS.iter().filter_map(|name| {
        let value = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
        Some(((*name).replace('/', "."), value.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    HostFacts {
        kernel: format!("Linux {}", first_line("/proc/sys/kernel/osrelease")),
        cpu: model
            .map_or_else(String::new, |model| model.trim_start_matches([' ', '\t', ':']).into()),
        cores: limits::processors() as u32,
        memory_bytes: limits::total_bytes(),
        descriptors_max: soft,
        limits: settings.chain([("descriptors.hard".to_owned(), hard.to_string())]).collect(),
    }
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
