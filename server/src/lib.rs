//! The yardstick: throng's own small chat server.
//!
//! # Layout
//! - `core`: all state, without sockets or clock; bytes come in, writes go out to a `World`
//! - `request`: what each request does; `fanout`: sending; `faulty`, [`fault`]: faults on purpose
//! - `room`, `log`, `conn`, `auth`, `pages`, `avatar`, `throttle`: the parts of the state
//! - `event_loop`: sockets and the only clock; `sys`: system calls
//!
//! A message is encoded once per encoding into its room's log; a member is a cursor into it and
//! gets one write a flush. There is no queue and no task per receiver.
mod auth;
mod avatar;
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
mod throttle;

pub use config::{Avatars, Config, Presence, check_exposure};
pub use counters::Counters;
pub use event_loop::{Handle, Outcome, Stop, run, spawn};

#[cfg(test)]
mod tests;
