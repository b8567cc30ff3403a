//! Conversations with the core in memory, and a few over loopback.
mod comebacks;
mod direct;
mod durable;
mod faults;
mod kills;
mod knobs;
mod limits;
mod loopback;
mod net;
mod property;
mod sessions;
mod talks;
mod verbs;
