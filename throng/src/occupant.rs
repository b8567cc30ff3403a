//! Who listens on a port, as far as the kernel tells: a hint for whoever finds it taken.

use std::fs;
use std::net::SocketAddr;

/// Tables of sockets.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The state of a socket that listens, as the tables have it.
const LISTENS: &str = "0A";

/// The process that listens there, in words.
pub(crate) fn of(address: SocketAddr) -> Option<String> {
    let tables = TABLES.map(|file| fs::read_to_string(file).unwrap_or_default());
    let sockets: Vec<String> = tables.iter().flat_map(|t| sockets(t, address.port())).collect();
    let mut processes = fs::read_dir("/proc").ok()?.flatten();
    processes.find_map(|process| {
        let path = process.path();
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let mut open = fs::read_dir(path.join("fd")).ok()?.flatten();
        open.find(|file| {
            let target = fs::read_link(file.path()).unwrap_or_default();
            target.to_str().is_some_and(|target| sockets.iter().any(|socket| socket == target))
        })?;
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        Some(format!("process {pid} ({})", name.trim().escape_debug()))
    })
}

/// What listens on a port, as links to its descriptors read: `socket:[4711]`.
fn sockets(table: &str, port: u16) -> Vec<String> {
    let ending = format!(":{port:04X}");
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_it = |words: &Vec<&str>| {
        words.get(1).is_some_and(|local| local.ends_with(&ending)) && words.get(3) == Some(&LISTENS)
    };
    lines.filter(is_it).filter_map(|words| Some(format!("socket:[{}]", words.get(9)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_tells_who_listens() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt \
                     uid  timeout inode\n   0: 0100007F:0FA0 00000000:0000 0A 00000000:00000000 \
                     00:00000000 00000000  1000        0 4711 1 0000 100 0 0 10 0\n   1: \
                     0100007F:0FA0 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000 \
                     0 4712 1\n broken\n";
        assert_eq!(sockets(table, 4000), ["socket:[4711]"]);
        assert!(sockets(table, 4001).is_empty() && sockets("", 4000).is_empty());
    }
}
