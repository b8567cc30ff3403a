//! Conversations with the core in memory, and a few over loopback.
mod door;
mod durable;
mod faults;
mod journal;
mod kills;
mod knobs;
mod limits;
mod loopback;
mod net;
mod property;
mod secure;
mod sessions;
mod talks;
mod tls;
