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

const USAGE: &str =
    "usage: benches cpu [CONNECTIONS…] [floor throng gws ws k6] | memory [PEOPLE…] | micro
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
        Some("cpu") => {
            let (clients, connections): (Vec<&String>, Vec<&String>) =
                words[1..].iter().partition(|word| clients::Client::named(word).is_some());
            let connections: Result<Vec<usize>, _> =
                connections.into_iter().map(|word| word.parse()).collect();
            let clients = clients.into_iter().filter_map(|word| clients::Client::named(word));
            cpu::measure(&connections.map_err(io::Error::other)?, &clients.collect::<Vec<_>>())
        }
        Some("memory") => memory::measure(&numbers(1)?),
        Some("micro") => {
            micro::measure();
            Ok(())
        }
        _ => Err(io::Error::other(USAGE)),
    }
}
