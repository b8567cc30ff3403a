//! The yardstick: throng's own small chat server.
//!
//! # Layout
//! - `core`: all state, without sockets or clock; bytes come in, writes go out to a `World`
//! - `request`: what each request does; `faulty`, [`fault`]: faults on purpose
//! - `fanout`: sending; `pace`: when rooms flush
//! - `change`: changes that outlive a connection; `store`: what is kept in SQLite; `durable`:
//!   storing first, answering then
//! - `rights`: who may do what in a room with an owner; `owned`: its state; `moderation`: requests
//! - `message`, `amend`: replies, keys, edits, reactions; `marks`: how far people have read
//! - `people`, `tell`: people by name, and what they are told; `resume`: who comes back
//! - `login`, `password`, `auth`, `token`: who is who
//! - `desk`: jobs for threads of their own; the event loop never waits for a disk or a hash
//! - `door`, `tls`, `secure`: who may come, how, how fast; `journal`, `telling`: what is told of it
//! - `bus`: several servers that are one; `cluster`: what the core knows of the others
//! - `room`, `log`, `conn`, `pages`, `avatar`, `throttle`: the parts of the state
//! - `web`: the page for people
//! - `event_loop`: sockets and the only clock; `workers`: threads beside it; `sys`: system calls
//! - `uring`: many writes with one system call
//!
//! A message is encoded once per encoding into its room's log; a member is a cursor into it and
//! gets one write a flush. There is no queue and no task per receiver.
mod amend;
mod auth;
mod avatar;
mod bus;
mod change;
mod cluster;
pub mod config;
mod conn;
mod core;
mod counters;
mod desk;
mod door;
mod durable;
mod event_loop;
mod fanout;
pub mod fault;
mod faulty;
mod journal;
mod log;
mod login;
mod marks;
mod message;
mod moderation;
mod owned;
mod pace;
mod pages;
mod password;
mod people;
mod request;
mod resume;
mod rights;
mod room;
mod secure;
mod shards;
mod stop;
mod store;
mod sys;
mod tell;
mod telling;
mod throttle;
mod tls;
mod token;
mod uring;
mod web;
mod workers;

pub use bus::{BusConfig, Credentials};
pub use config::{
    Avatars, Commit, Config, Encode, Flush, HashCost, Io, Pin, Presence, check_exposure,
};
pub use counters::Counters;
pub use event_loop::{Handle, Outcome, Server, prepare, run, spawn};
pub use journal::LogForm;
pub use protocols::wire::origin::Origin;
pub use stop::Stop;
pub use sys::{hold_port, listen_shared};
pub use tls::Keys;
pub use token::{Token, Tokens};

/// Copies the database of a data folder into a new file, whether a server is using it or not.
pub fn backup(data: &std::path::Path, file: &std::path::Path) -> std::io::Result<()> {
    store::backup(data, file).map_err(|trouble| std::io::Error::other(trouble.to_string()))
}

#[cfg(test)]
mod tests;
