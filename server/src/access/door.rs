//! Door by address, by connection and by name: how many connections, how fast requests come, how
//! often a wrong password is tried. What is off keeps nothing.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};

use crate::config::{Config, TRIES_MAX};

const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_MINUTE: u64 = 60 * NS_PER_S;
/// Places among which a new key of a [`Tries`] chooses.
const WAYS: usize = 8;

/// So many in a stretch of time, that many at once: what is taken is paid for at an even pace, and
/// all that is kept is the time by which everything is paid for (GCRA).
#[derive(Debug, Clone, Copy)]
struct Rate {
    each_ns: u64,
    burst_ns: u64,
}

impl Rate {
    /// `None` where there is no limit.
    fn new(count: u32, within_ns: u64) -> Option<Rate> {
        let count = u64::from(count);
        (count > 0).then(|| Rate { each_ns: within_ns / count, burst_ns: within_ns })
    }

    fn is_over(self, paid_ns: u64, now_ns: u64) -> bool {
        paid_ns.max(now_ns) + self.each_ns > now_ns + self.burst_ns
    }

    fn take(self, paid_ns: &mut u64, now_ns: u64) {
        *paid_ns = (*paid_ns).max(now_ns) + self.each_ns;
    }
}

/// Wrong passwords by a key, in constant memory: whoever has failed least gives way to a new key.
#[derive(Debug)]
struct Tries {
    rate: Rate,
    /// Hash of the key and when its failures are paid for; empty until somebody fails.
    slots: Vec<(u64, u64)>,
    seed: RandomState,
}

impl Tries {
    fn new(count: u32) -> Option<Tries> {
        let rate = Rate::new(count, NS_PER_MINUTE)?;
        Some(Tries { rate, slots: Vec::new(), seed: RandomState::new() })
    }

    /// The hash of a key and its places.
    fn places(&self, key: &[u8]) -> (u64, std::ops::Range<usize>) {
        let hash = self.seed.hash_one(key);
        let first = (hash as usize % (TRIES_MAX / WAYS)) * WAYS;
        (hash, first..first + WAYS)
    }

    fn is_over(&self, key: &[u8], now_ns: u64) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        let (hash, places) = self.places(key);
        let found = self.slots[places].iter().find(|slot| slot.0 == hash);
        found.is_some_and(|slot| self.rate.is_over(slot.1, now_ns))
    }

    fn failed(&mut self, key: &[u8], now_ns: u64) {
        self.slots.resize(TRIES_MAX, (0, 0));
        let (hash, places) = self.places(key);
        let places = &mut self.slots[places];
        let own = places.iter().position(|slot| slot.0 == hash);
        let least = (0..WAYS).min_by_key(|at| places[*at].1).unwrap_or(0);
        let slot = &mut places[own.unwrap_or(least)];
        if slot.0 != hash {
            *slot = (hash, 0);
        }
        if !self.rate.is_over(slot.1, now_ns) {
            self.rate.take(&mut slot.1, now_ns);
        }
    }
}

/// Connections by address.
#[derive(Debug, Default)]
struct Crowds {
    most: u32,
    counts: HashMap<IpAddr, u32>,
}

/// All these limits of a server.
#[derive(Debug)]
pub(crate) struct Door {
    crowds: Option<Crowds>,
    requests: Option<Rate>,
    /// When the requests of each connection are paid for, by its number.
    paid_ns: Vec<u64>,
    names: Option<Tries>,
    sources: Option<Tries>,
    /// Where each connection comes from, by its number.
    addresses: Vec<Option<IpAddr>>,
}

impl Door {
    pub(crate) fn new(config: &Config) -> Door {
        let most = config.connections_per_address;
        Door {
            crowds: (most > 0).then(|| Crowds { most, ..Crowds::default() }),
            requests: Rate::new(config.requests_per_second, NS_PER_S),
            paid_ns: Vec::new(),
            names: Tries::new(config.login_failures),
            sources: Tries::new(config.login_failures_per_address),
            addresses: Vec::new(),
        }
    }

    /// Whether one more connection from there is fine.
    pub(crate) fn has_place(&self, address: IpAddr) -> bool {
        let Some(crowds) = &self.crowds else { return true };
        crowds.counts.get(&network(address)).is_none_or(|count| *count < crowds.most)
    }

    /// Connection `id` is from there.
    pub(crate) fn opened(&mut self, id: usize, address: Option<IpAddr>) {
        if self.addresses.len() <= id {
            self.addresses.resize(id + 1, None);
        }
        self.addresses[id] = address;
        if let (Some(crowds), Some(address)) = (&mut self.crowds, address) {
            *crowds.counts.entry(network(address)).or_default() += 1;
        }
        if self.requests.is_some() {
            self.paid_ns.resize(self.addresses.len(), 0);
            self.paid_ns[id] = 0;
        }
    }

    /// Connection `id` is gone.
    pub(crate) fn closed(&mut self, id: usize) {
        let Some(address) = self.addresses.get_mut(id).and_then(Option::take) else { return };
        let Some(crowds) = &mut self.crowds else { return };
        let address = network(address);
        if let Some(count) = crowds.counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                crowds.counts.remove(&address);
            }
        }
    }

    /// Where connection `id` comes from.
    pub(crate) fn address(&self, id: usize) -> Option<IpAddr> {
        self.addresses.get(id).copied().flatten()
    }

    /// Counts a request; whether it comes too soon after those before it.
    #[inline]
    pub(crate) fn is_too_fast(&mut self, id: usize, now_us: u64) -> bool {
        let Some(rate) = self.requests else { return false };
        let Some(paid_ns) = self.paid_ns.get_mut(id) else { return false };
        let is_over = rate.is_over(*paid_ns, now_us * 1_000);
        if !is_over {
            rate.take(paid_ns, now_us * 1_000);
        }
        is_over
    }

    /// Whether a password for that name is not even to be looked at.
    pub(crate) fn is_over(&self, id: usize, name: &str, now_us: u64) -> bool {
        let now_ns = now_us * 1_000;
        let is_over = |tries: &Option<Tries>, key: &[u8]| {
            tries.as_ref().is_some_and(|tries| tries.is_over(key, now_ns))
        };
        is_over(&self.names, name.as_bytes())
            || self.address(id).is_some_and(|address| is_over(&self.sources, &key(address)))
    }

    /// A password was wrong.
    pub(crate) fn failed(&mut self, id: usize, name: &str, now_us: u64) {
        let now_ns = now_us * 1_000;
        if let Some(names) = &mut self.names {
            names.failed(name.as_bytes(), now_ns);
        }
        let address = self.address(id);
        if let (Some(sources), Some(address)) = (&mut self.sources, address) {
            sources.failed(&key(address), now_ns);
        }
    }
}

/// Who counts as one: an IPv4 address, or a network of 2^64 IPv6 addresses, which is what one
/// customer gets.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64))
        }
        address => address,
    }
}

fn key(address: IpAddr) -> [u8; 16] {
    match network(address) {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    fn door(config: Config) -> Door {
        let mut door = Door::new(&config);
        for (id, address) in ["10.0.0.1", "10.0.0.2"].iter().enumerate() {
            door.opened(id, Some(address.parse().unwrap()));
        }
        door
    }

    #[test]
    fn requests_come_at_once_up_to_a_second_s_worth_and_then_evenly() {
        let mut door = door(Config { requests_per_second: 5, ..Config::default() });
        let mut taken = |id, now_us| (0..100).filter(|_| !door.is_too_fast(id, now_us)).count();
        let rows = [(0, 0, 5), (0, 100_000, 0), (0, 200_000, 1), (1, 200_000, 5)];
        let more = [(0, 10 * SECOND_US, 5), (0, 10 * SECOND_US + 400_000, 2)];
        for (id, now_us, expect) in rows.into_iter().chain(more) {
            assert_eq!(taken(id, now_us), expect, "{id} at {now_us} us");
        }
        door.closed(0);
        door.opened(0, None);
        assert!(!door.is_too_fast(0, 10 * SECOND_US + 400_000), "a new connection begins anew");
    }

    #[test]
    fn wrong_passwords_of_a_name_and_of_an_address_run_out() {
        let config =
            Config { login_failures: 3, login_failures_per_address: 5, ..Config::default() };
        let mut door = door(config);
        for _ in 0..3 {
            assert!(!door.is_over(0, "ann", 0));
            door.failed(0, "ann", 0);
        }
        assert!(door.is_over(0, "ann", 0) && door.is_over(1, "ann", 0), "from anywhere");
        assert!(!door.is_over(0, "bob", 0));
        door.failed(0, "bob", 0);
        door.failed(0, "cid", 0);
        assert!(door.is_over(0, "dan", 0) && !door.is_over(1, "dan", 0), "no more from there");
        assert!(door.is_over(1, "ann", 19 * SECOND_US) && !door.is_over(1, "ann", 21 * SECOND_US));
        // Tries that are refused cost nothing more.
        (0..100).for_each(|_| door.failed(0, "ann", 0));
        assert!(!door.is_over(1, "ann", 21 * SECOND_US));
    }

    #[test]
    fn memory_of_failures_is_bounded_and_the_worst_stay() {
        let mut door = door(Config { login_failures: 3, ..Config::default() });
        (0..3).for_each(|_| door.failed(0, "ann", 0));
        for number in 0..200_000 {
            door.failed(1, &format!("n{number}"), 0);
        }
        assert!(door.is_over(0, "ann", 0), "names that failed once do not drive her out");
        assert_eq!(door.names.as_ref().unwrap().slots.capacity(), TRIES_MAX);
    }

    #[test]
    fn addresses_are_counted_while_they_are_there() {
        let mut door = door(Config { connections_per_address: 2, ..Config::default() });
        let rows = ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::2:0:0:1", "::1"];
        let [first, mapped, v6, neighbor, own] = rows.map(|text| text.parse::<IpAddr>().unwrap());
        assert!(door.has_place(mapped));
        door.opened(2, Some(mapped));
        assert!(!door.has_place(first) && door.has_place(v6));
        door.opened(3, Some(v6));
        door.opened(4, Some(neighbor));
        assert!(!door.has_place(v6) && door.has_place(own), "2^64 addresses count as one");
        door.closed(0);
        door.closed(0);
        assert!(door.has_place(first));
        (1..5).for_each(|id| door.closed(id));
        assert!(door.crowds.unwrap().counts.is_empty());
    }

    #[test]
    fn what_is_off_keeps_nothing() {
        let off = Config { login_failures: 0, login_failures_per_address: 0, ..Config::default() };
        let mut door = door(off);
        (0..1_000).for_each(|_| door.failed(0, "ann", 0));
        assert!(!door.is_over(0, "ann", 0) && door.names.is_none() && door.paid_ns.is_empty());
    }
}
