//! The yardstick: throng's own small chat server.
//!
//! # Layout
//! - `core`: all state, without sockets or clock; bytes come in, writes go out to a `World`
//! - `access`: who may come, and as whom; `chat`: what people do in it, a file for each kind of
//!   request
//! - `delivery`: a room's log, a member's cursor, one write a flush
//! - `change`: changes that outlive a connection; `store`: what is kept in SQLite; `durable`:
//!   storing first, answering then
//! - `bus`: several servers that are one; `cluster`: what the core knows of the others
//! - `machine`: sockets and the only clock, threads, TLS, system calls
//! - `outlook`: what it tells of itself: counters, pages, the log, the page for people
//! - `faults`: what goes wrong on purpose; [`config`]: every knob and limit
//!
//! A message is encoded once per encoding into its room's log; a member is a cursor into it and
//! gets one write a flush. There is no queue and no task per receiver.
mod access;
mod bus;
mod change;
mod chat;
mod cluster;
pub mod config;
mod core;
mod delivery;
mod durable;
mod faults;
mod machine;
mod outlook;
mod store;

pub use access::token::{Token, Tokens};
pub use bus::{BusConfig, Credentials};
pub use config::{
    Avatars, Commit, Config, Encode, Flush, HashCost, Io, Pin, Presence, check_exposure,
};
pub use faults::fault;
pub use machine::event_loop::{Handle, Outcome, Server, prepare, run, spawn};
pub use machine::stop::Stop;
pub use machine::sys::{hold_port, listen_shared};
pub use machine::tls::Keys;
pub use outlook::counters::Counters;
pub use outlook::journal::LogForm;
pub use protocols::wire::origin::Origin;

/// Copies the database of a data folder into a new file, whether a server is using it or not.
pub fn backup(data: &std::path::Path, file: &std::path::Path) -> std::io::Result<()> {
    store::backup(data, file).map_err(|trouble| std::io::Error::other(trouble.to_string()))
}

#[cfg(test)]
mod tests;
