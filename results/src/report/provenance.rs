//! Where the numbers come from, and the few that matter most.

use super::escape::plain;
use super::format::{bytes, count, duration, percent};
use crate::analysis::starved;
use crate::run::Run;
use crate::summary::Summary;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and value of everything one must know to run it again.
pub(super) fn facts(run: &Run) -> Vec<(String, String)> {
    let m = &run.manifest;
    let facts = [
        ("command", m.command.join(" ")),
        ("throng", m.throng.clone()),
        ("scenario", m.scenario_hash.clone()),
        ("seed", m.seed.to_string()),
        ("scale", m.scale.to_string()),
        ("started", m.started.clone()),
        ("target", m.target.name.clone()),
        ("target version", m.target.version.clone()),
        ("target options", pairs(&m.target.options)),
        ("target processes", m.target.processes.join(", ")),
        ("protocol", m.target.protocol.clone()),
        ("kernel", m.host.kernel.clone()),
        ("processor", format!("{} ({} cores)", m.host.cpu, m.host.cores)),
        ("memory", bytes(m.host.memory_bytes)),
        ("descriptors a process", count(m.host.descriptors_max)),
        ("limits", pairs(&m.host.limits)),
        (
            "generator",
            format!("shards: {}, processes: {}", m.generator.shards, m.generator.processes),
        ),
    ];
    let said = facts.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(name, value)| (name.to_owned(), plain(&value))).collect()
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// One figure of the headline.
#[derive(Debug, Serialize)]
pub(super) struct Tile {
    /// What it is.
    label: &'static str,
    /// The figure.
    value: String,
    /// What it is to be compared with.
    beside: String,
    /// Whether it is less than was asked.
    short: bool,
}

/// The headline's figures.
pub(super) fn tiles(s: &Summary) -> Vec<Tile> {
    let tile = |label, value, beside, short| Tile { label, value, beside, short };
    let mut tiles = vec![tile(
        "people in",
        count(s.people.entered),
        format!("of {} asked", count(s.people.asked)),
        s.people.entered < s.people.asked,
    )];
    if s.sends.due > 0 {
        let beside = format!("of {} due", count(s.sends.due));
        let short = s.sends.sent < s.sends.due;
        tiles.push(tile("messages sent", count(s.sends.sent), beside, short));
    }
    let l = &s.ledger;
    let arrivals = [
        ("delivery", "deliveries", "delivery latency", [l.received, l.lost, l.owed]),
        (
            "announcement",
            "announcements",
            "announcement latency",
            [l.announcements_received, l.announcements_lost, l.announcements_owed],
        ),
    ];
    for (measure, what, latency, [received, lost, owed]) in arrivals {
        // Announcements are the headline only where nothing is said.
        if received + owed == 0 || measure == "announcement" && s.sends.due > 0 {
            continue;
        }
        let beside = format!("{} lost of {} owed", count(lost), count(owed));
        tiles.push(tile(what, count(received), beside, lost > 0));
        let row = s.measures.iter().find(|row| row.name == measure);
        if let Some(row) = row.filter(|row| row.latency.count > 0) {
            let beside = format!("median; p99 {}", duration(row.latency.p99_ms));
            tiles.push(tile(latency, duration(row.latency.p50_ms), beside, false));
        }
    }
    if let Some(usage) = &s.target_usage {
        tiles.push(tile(
            "target CPU (one core)",
            percent(usage.cpu_mean_percent),
            format!("mean; max {}", percent(usage.cpu_max_percent)),
            false,
        ));
        tiles.push(tile(
            "target waited",
            format!("{:.2} s", usage.run_queue_s),
            format!("for a processor; ran {:.2} s", usage.cpu_s),
            starved::target(s).is_some(),
        ));
        tiles.push(tile(
            "target memory",
            bytes(usage.rss_peak_bytes),
            match &s.memory_per_person {
                Some(each) => format!("peak, resident; {} per person", bytes(each.peak_bytes)),
                None => "peak, resident".to_owned(),
            },
            false,
        ));
    }
    tiles
}
