//! The yardstick: throng's own small chat server.
//!
//! # Layout
//! - `core`: all state, without sockets or clock; bytes come in, writes go out to a `World`
//! - `request`: what each request does; `fanout`: sending; `faulty`, [`fault`]: faults on purpose
//! - `room`, `log`, `conn`, `auth`, `pages`: the parts of the state
//! - `event_loop`: sockets and the only clock; `sys`: two system calls
//!
//! A message is encoded once per encoding into its room's log; a member is a cursor into it and
//! gets one write a flush. There is no queue and no task per receiver.
mod auth;
pub mod config;
mod conn;
mod core;
mod counters;
mod event_loop;
mod fanout;
pub mod fault;
mod faulty;
mod log;
mod pages;
mod request;
mod room;
mod sys;

pub use config::{Config, Presence, check_exposure};
pub use counters::Counters;
pub use event_loop::{Handle, Outcome, Stop, run, spawn};

#[cfg(test)]
mod tests;
