//! What this machine allows a process: descriptors, ports, memory.

use std::fs;

/// Descriptors a process needs for itself: files, pipes, timers, libraries.
pub const DESCRIPTORS_RESERVED: u64 = 100;

/// Raises the soft limit of open descriptors to the hard one; (soft, hard) as they are then.
pub fn raise_descriptors() -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that both calls may use.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        if limit.rlim_cur < limit.rlim_max {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
                limit = raised;
            }
        }
    }
    (limit.rlim_cur, limit.rlim_max)
}

/// How many connections one process can hold here.
pub fn connections_per_process() -> u64 {
    raise_descriptors().0.saturating_sub(DESCRIPTORS_RESERVED).max(1)
}

/// The range of local ports for outgoing connections.
pub fn local_ports() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().unwrap_or(32_768), numbers.next().unwrap_or(60_999))
}

/// Memory that could be had, bytes; zero if the system does not tell.
pub fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    meminfo_kib(&text, "MemAvailable:") << 10
}

/// Memory of the machine, bytes; zero if the system does not tell.
pub fn total_bytes() -> u64 {
    meminfo_kib(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal:") << 10
}

fn meminfo_kib(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Processors this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Most descriptors another process may open; `None` if it is gone or may open any number.
pub fn descriptors_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_allows_something() {
        let (soft, hard) = raise_descriptors();
        assert!(soft > 0 && soft == hard);
        assert!(connections_per_process() < soft);
        let (low, high) = local_ports();
        assert!(low < high);
        assert!(available_bytes() > 0 && available_bytes() <= total_bytes());
        assert_eq!(meminfo_kib("MemFree: 1 kB\nMemAvailable:   12 kB\n", "MemAvailable:"), 12);
    }
}
