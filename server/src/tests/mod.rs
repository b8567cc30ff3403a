//! Conversations with the core in memory, and a few over loopback.
mod faults;
mod limits;
mod loopback;
mod net;
mod property;
mod talks;
