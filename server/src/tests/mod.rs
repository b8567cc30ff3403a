//! Conversations with the core in memory, and a few over loopback.
mod durable;
mod faults;
mod kills;
mod knobs;
mod limits;
mod loopback;
mod net;
mod property;
mod sessions;
mod several;
mod talks;
