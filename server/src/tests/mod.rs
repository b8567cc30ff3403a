//! Conversations with the core in memory, and a few over loopback.
mod amends;
mod amends_kept;
mod amends_property;
mod durable;
mod faults;
mod kills;
mod knobs;
mod limits;
mod loopback;
mod marks;
mod net;
mod property;
mod sessions;
mod talks;
