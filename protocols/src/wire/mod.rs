//! Codecs that several protocols share: the HTTP upgrade and WebSocket frames. No I/O, no clock.
pub mod frame;
pub mod http;
pub mod rng;
pub mod socket;
