//! What a delivery costs the server, beside a bare epoll loop that writes the same bytes and beside
//! other servers; what an idle connection weighs; how late messages are.
//!
//! `cargo bench -p server --bench fanout -- table 1000 10000 19900` (people; `--rounds N`,
//! `--with NAME=SPEECH=COMMAND` for another server: one that prints its address)
//! `cargo bench -p server --bench fanout -- river 19500 100` (people, arrivals a second)
//! `cargo bench -p server --bench fanout -- latency 100 100 10` (people, messages a
//! second, seconds)
//!
//! Every server and every crowd is a process of its own, since a process may hold 20,000
//! descriptors only; servers are pinned to the first core, crowds to the second.
#![allow(clippy::disallowed_methods)] // a benchmark measures time

mod bare;
mod crowd;
mod process;
mod river;
mod table;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crowd::Speech;
use process::Process;

/// Where servers run.
const SERVER_CORE: usize = 0;
/// Where crowds run.
const CROWD_CORE: usize = 1;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize, default: usize| -> usize {
        words.get(at).map_or(default, |word| word.parse().expect("a number"))
    };
    match words.first().map(String::as_str) {
        Some("serve") => serve(number(1, 0), words.get(2).map_or("auto", String::as_str)),
        Some("bare") => bare::serve(),
        Some("crowd") => {
            let address = words[2].parse().map_err(io::Error::other)?;
            crowd::run(Speech::of(&words[1])?, address, number(3, 1))
        }
        Some("river") => river::river(number(1, 19_500), number(2, 100)),
        Some("latency") => river::latency(number(1, 100), number(2, 100), number(3, 10)),
        Some("table") => table::table(&words[1..]),
        _ => table::table(&words),
    }
}

/// The yardstick, with a flush window in milliseconds.
fn serve(window_ms: usize, io: &str) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let flush_window = Duration::from_millis(window_ms as u64);
    let io = io.parse().map_err(io::Error::other)?;
    let config = server::Config { flush_window, io, ..server::Config::default() };
    server::run(config, listener, &server::Stop::new()).map(|_| ())
}

/// This program in the role of a server, and where it listens.
fn start(words: &[String]) -> io::Result<(Process, SocketAddr)> {
    let mut server = Process::own(words, SERVER_CORE)?;
    let address = server.hear()?.parse().map_err(io::Error::other)?;
    Ok((server, address))
}
