//! Conversations with the core in memory, and a few over loopback.
mod durable;
mod faults;
mod kills;
mod kills_rights;
mod knobs;
mod limits;
mod loopback;
mod net;
mod property;
mod rights;
mod rights_kept;
mod rights_limits;
mod rights_model;
mod sessions;
mod talks;
