//! What the server counts, and the Prometheus text of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::machine::sys::Usage;

/// Everything counted since the start; gauges are marked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections open now (gauge).
    pub connections: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused because the server was full.
    pub refused: u64,
    /// Connections refused because there were too many from their address.
    pub refused_address: u64,
    /// Pages refused because they come from elsewhere.
    pub refused_origin: u64,
    /// TLS handshakes that were completed.
    pub tls_handshakes: u64,
    /// Connections closed because what came was no sound TLS.
    pub tls_errors: u64,
    /// Lines of the log that were dropped because nobody read them.
    pub log_dropped: u64,
    /// Time of a turn of the event loop, without its waiting.
    pub turns: Histogram,
    /// Time that messages waited for the flush they left with, the oldest of each flush.
    pub flush_waits: Histogram,
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
    /// Messages addressed to a receiver, the sender included; direct ones to each connection.
    pub deliveries: u64,
    /// Direct messages taken.
    pub tells: u64,
    /// Direct messages put into an inbox.
    pub told: u64,
    /// Arrivals and departures addressed to a receiver.
    pub presence_deliveries: u64,
    /// Pictures given to who asked for them.
    pub avatars: u64,
    /// Flushes of rooms.
    pub flushes: u64,
    /// Frames encoded for rooms; with one encoding in use and `encode once` as many as there are.
    pub encodings: u64,
    /// Writes to sockets.
    pub writes: u64,
    /// Bytes read from sockets.
    pub bytes_in: u64,
    /// Bytes written to sockets.
    pub bytes_out: u64,
    /// Connections cut off because they did not read.
    pub slow_consumers: u64,
    /// The same by cause.
    pub slow_causes: BTreeMap<&'static str, u64>,
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

/// Times by powers of two, from 1 us up to 2^22 us (4.2 s) and beyond.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; Histogram::BOUNDS + 1],
    sum_us: u64,
}

impl Histogram {
    /// How many bounds there are: 2^0, 2^1, … microseconds.
    const BOUNDS: usize = 23;

    /// Counts a time.
    #[inline]
    pub fn add(&mut self, us: u64) {
        // The first bound that is not below it.
        let at = us.clamp(1, 1 << Histogram::BOUNDS).next_power_of_two().trailing_zeros() as usize;
        self.counts[at.min(Histogram::BOUNDS)] += 1;
        self.sum_us += us;
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn write(&self, name: &str, text: &mut String) {
        let _ = writeln!(text, "# TYPE {name} histogram");
        let mut below = 0;
        for (at, count) in self.counts[..Histogram::BOUNDS].iter().enumerate() {
            below += count;
            let bound = (1_u64 << at) as f64 / 1e6;
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let (count, sum) = (self.count(), self.sum_us as f64 / 1e6);
        let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum {sum}\n{name}_count {count}");
    }
}

impl Counters {
    /// A connection is cut off because it does not read.
    pub(crate) fn cut_off(&mut self, cause: &'static str) {
        self.slow_consumers += 1;
        *self.slow_causes.entry(cause).or_default() += 1;
    }

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
        let refused = [
            ("full", self.refused),
            ("address", self.refused_address),
            ("origin", self.refused_origin),
        ];
        for (name, label, table) in [
            ("errors", "code", &self.errors),
            ("faults", "kind", &self.faults),
            ("slow_consumers", "cause", &self.slow_causes),
            ("refused", "cause", &refused.into()),
        ] {
            let _ = writeln!(text, "# TYPE yardstick_{name}_total counter");
            for (key, value) in table {
                let _ = writeln!(text, "yardstick_{name}_total{{{label}=\"{key}\"}} {value}");
            }
        }
        self.turns.write("yardstick_turn_seconds", &mut text);
        self.flush_waits.write("yardstick_flush_wait_seconds", &mut text);
        text
    }

    fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
        vec![
            ("connections", "gauge", self.connections),
            ("members", "gauge", self.members),
            ("rooms", "gauge", self.rooms),
            ("roles", "gauge", self.roles),
            ("accepted_total", "counter", self.accepted),
            ("tls_handshakes_total", "counter", self.tls_handshakes),
            ("tls_errors_total", "counter", self.tls_errors),
            ("log_dropped_total", "counter", self.log_dropped),
            ("accept_errors_total", "counter", self.accept_errors),
            ("logins_total", "counter", self.logins),
            ("joins_total", "counter", self.joins),
            ("messages_total", "counter", self.messages),
            ("deliveries_total", "counter", self.deliveries),
            ("tells_total", "counter", self.tells),
            ("told_total", "counter", self.told),
            ("presence_deliveries_total", "counter", self.presence_deliveries),
            ("avatars_total", "counter", self.avatars),
            ("flushes_total", "counter", self.flushes),
            ("encodings_total", "counter", self.encodings),
            ("writes_total", "counter", self.writes),
            ("bytes_in_total", "counter", self.bytes_in),
            ("bytes_out_total", "counter", self.bytes_out),
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

/// What the process uses, under the names all Prometheus clients give it.
pub(crate) fn process(usage: &Usage, start_ms: u64) -> String {
    let rows = [
        ("cpu_seconds_total", "counter", usage.cpu_s),
        ("resident_memory_bytes", "gauge", usage.resident_bytes.map(|bytes| bytes as f64)),
        ("virtual_memory_bytes", "gauge", usage.virtual_bytes.map(|bytes| bytes as f64)),
        ("open_fds", "gauge", usage.descriptors.map(|count| count as f64)),
        ("max_fds", "gauge", usage.descriptors_max.map(|count| count as f64)),
        ("threads", "gauge", usage.threads.map(|count| count as f64)),
        ("start_time_seconds", "gauge", Some(start_ms as f64 / 1e3)),
    ];
    let mut text = String::new();
    for (name, kind, value) in rows {
        if let Some(value) = value {
            let _ = writeln!(text, "# TYPE process_{name} {kind}\nprocess_{name} {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_below_the_first_bound_that_holds_them() {
        let rows =
            [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 22, 22), (u64::MAX >> 1, 23)];
        for (us, bucket) in rows {
            let mut histogram = Histogram::default();
            histogram.add(us);
            assert_eq!(histogram.counts[bucket], 1, "{us} us: {histogram:?}");
        }
        let mut histogram = Histogram::default();
        [1, 3, 3_000_000, 9_000_000].into_iter().for_each(|us| histogram.add(us));
        let mut text = String::new();
        histogram.write("x_seconds", &mut text);
        for line in [
            "x_seconds_bucket{le=\"0.000001\"} 1",
            "x_seconds_bucket{le=\"0.000002\"} 1",
            "x_seconds_bucket{le=\"0.000004\"} 2",
            "x_seconds_bucket{le=\"4.194304\"} 3",
            "x_seconds_bucket{le=\"+Inf\"} 4",
            "x_seconds_sum 12.000004",
            "x_seconds_count 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }

    #[test]
    fn every_cause_has_its_label() {
        let mut counters = Counters { refused: 1, refused_origin: 2, ..Counters::default() };
        ["lag", "lag", "answers"].into_iter().for_each(|cause| counters.cut_off(cause));
        let text = counters.prometheus(&[]);
        for line in [
            "yardstick_refused_total{cause=\"full\"} 1",
            "yardstick_refused_total{cause=\"address\"} 0",
            "yardstick_refused_total{cause=\"origin\"} 2",
            "yardstick_slow_consumers_total{cause=\"lag\"} 2",
            "yardstick_slow_consumers_total{cause=\"answers\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let mut kinds: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        let count = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), count, "each name has one type line");
    }
}
