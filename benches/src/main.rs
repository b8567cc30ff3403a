//! Measures throng's generator beside the physical floor and its peers; see docs/performance.md.

mod clients;
mod clock;
mod cpu;
mod epoll;
mod floor;
mod memory;
mod micro;
mod process;
mod server;
mod stats;

use std::io;

const USAGE: &str = "usage: benches cpu [CONNECTIONS…] | memory [PEOPLE…] | micro
       (serve and floor ADDRESS CONNECTIONS are started by cpu itself)";

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers = |from: usize| -> io::Result<Vec<usize>> {
        words.iter().skip(from).map(|word| word.parse().map_err(io::Error::other)).collect()
    };
    match words.first().map(String::as_str) {
        Some("serve") => server::serve(),
        Some("floor") => match (words.get(1), numbers(2)?.first()) {
            (Some(address), Some(&count)) => floor::receive(address, count),
            _ => Err(io::Error::other(USAGE)),
        },
        Some("cpu") => cpu::measure(&numbers(1)?),
        Some("memory") => memory::measure(&numbers(1)?),
        Some("micro") => {
            micro::measure();
            Ok(())
        }
        _ => Err(io::Error::other(USAGE)),
    }
}
