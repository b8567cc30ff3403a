//! What the server counts, and the Prometheus text of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Everything counted since the start; gauges are marked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections open now (gauge).
    pub connections: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused because the server was full.
    pub refused: u64,
    /// Attempts to accept that failed, mostly for want of descriptors; they are repeated.
    pub accept_errors: u64,
    /// People in rooms now, once for each room (gauge).
    pub members: u64,
    /// Rooms known (gauge).
    pub rooms: u64,
    /// Roles in all rooms together (gauge).
    pub roles: u64,
    /// Accounts logged in so far.
    pub logins: u64,
    /// Joins so far.
    pub joins: u64,
    /// Messages taken.
    pub messages: u64,
    /// Messages addressed to a receiver, the sender included.
    pub deliveries: u64,
    /// Arrivals and departures addressed to a receiver.
    pub presence_deliveries: u64,
    /// Pictures given to who asked for them.
    pub avatars: u64,
    /// Flushes of rooms.
    pub flushes: u64,
    /// Writes to sockets.
    pub writes: u64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
    /// Connections cut off because they did not read.
    pub slow_consumers: u64,
    /// Connections closed because they broke HTTP, WebSocket or the yardstick protocol.
    pub protocol_errors: u64,
    /// Connections closed because the HTTP head did not come in time.
    pub head_timeouts: u64,
    /// Requests that wait for the store (gauge).
    pub store_queue: u64,
    /// Transactions of the store.
    pub store_commits: u64,
    /// Pages of the past that the store has looked up.
    pub store_pages: u64,
    /// Requests refused because too much waited for the store.
    pub store_busy: u64,
    /// Requests that the store has failed to do.
    pub store_errors: u64,
    /// Time that requests have waited for the store, in microseconds in all.
    pub store_wait_us: u64,
    /// Nodes of the service, this one among them; 0 where it is alone (gauge).
    pub nodes: u64,
    /// Nodes that were silent for too long.
    pub nodes_lost: u64,
    /// News of other nodes that were not understood, or had no place.
    pub news_refused: u64,
    /// Passwords that wait to be hashed (gauge).
    pub login_queue: u64,
    /// Logins refused because too many waited.
    pub login_busy: u64,
    /// Time that logins have waited for their hash, in microseconds in all.
    pub login_wait_us: u64,
    /// Error answers by code.
    pub errors: BTreeMap<&'static str, u64>,
    /// Faults committed by kind.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// The Prometheus text format, version 0.0.4; `others` have counted beside these, each in a
    /// shard of the same server.
    pub fn prometheus(&self, others: &[Counters]) -> String {
        // What every shard has in full.
        const SHARED: [&str; 3] = ["rooms", "messages_total", "nodes"];
        let mut text = String::new();
        let others: Vec<_> = others.iter().map(Counters::rows).collect();
        for (at, (name, kind, value)) in self.rows().into_iter().enumerate() {
            let values = others.iter().map(|rows| rows[at].2);
            let value = match SHARED.contains(&name) {
                true => values.fold(value, u64::max),
                false => values.sum::<u64>() + value,
            };
            let _ = writeln!(text, "# TYPE yardstick_{name} {kind}\nyardstick_{name} {value}");
        }
        for (name, label, table) in
            [("errors", "code", &self.errors), ("faults", "kind", &self.faults)]
        {
            let _ = writeln!(text, "# TYPE yardstick_{name}_total counter");
            for (key, value) in table {
                let _ = writeln!(text, "yardstick_{name}_total{{{label}=\"{key}\"}} {value}");
            }
        }
        text
    }

    fn rows(&self) -> [(&'static str, &'static str, u64); 32] {
        [
            ("connections", "gauge", self.connections),
            ("members", "gauge", self.members),
            ("rooms", "gauge", self.rooms),
            ("roles", "gauge", self.roles),
            ("accepted_total", "counter", self.accepted),
            ("refused_total", "counter", self.refused),
            ("accept_errors_total", "counter", self.accept_errors),
            ("logins_total", "counter", self.logins),
            ("joins_total", "counter", self.joins),
            ("messages_total", "counter", self.messages),
            ("deliveries_total", "counter", self.deliveries),
            ("presence_deliveries_total", "counter", self.presence_deliveries),
            ("avatars_total", "counter", self.avatars),
            ("flushes_total", "counter", self.flushes),
            ("writes_total", "counter", self.writes),
            ("bytes_in_total", "counter", self.bytes_in),
            ("bytes_out_total", "counter", self.bytes_out),
            ("slow_consumers_total", "counter", self.slow_consumers),
            ("protocol_errors_total", "counter", self.protocol_errors),
            ("head_timeouts_total", "counter", self.head_timeouts),
            ("store_queue", "gauge", self.store_queue),
            ("store_commits_total", "counter", self.store_commits),
            ("store_pages_total", "counter", self.store_pages),
            ("store_busy_total", "counter", self.store_busy),
            ("store_errors_total", "counter", self.store_errors),
            ("store_wait_us_total", "counter", self.store_wait_us),
            ("nodes", "gauge", self.nodes),
            ("nodes_lost_total", "counter", self.nodes_lost),
            ("news_refused_total", "counter", self.news_refused),
            ("login_queue", "gauge", self.login_queue),
            ("login_busy_total", "counter", self.login_busy),
            ("login_wait_us_total", "counter", self.login_wait_us),
        ]
    }
}
