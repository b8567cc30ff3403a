//! One folder per chat protocol: codec and session, without sockets or clock.
pub mod wire;
pub mod yardstick;
