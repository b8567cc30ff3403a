//! How several servers form one: an order of what all of them carry out, and news between them.
//!
//! A bus has two operations. *Order*: wants go into one log that everybody reads from its beginning
//! to its end; who carries out the same wants in the same order is in the same state. *Announce*:
//! what does not outlive a connection is told to the others, at most once and in order for each
//! teller. [`entry`] is the log's half without I/O, `crate::cluster` that of the news; a bus only
//! carries bytes, so whatever can be wrong with either is tested without one (`tests/several.rs`).
//!
//! - `nats`: over a NATS server, the log as a stream of JetStream
//! - `memory`: between the event loops of one process
//! - `line`: between the event loop, the bus's thread and the store's
mod credentials;
mod entry;
mod line;
pub(crate) mod memory;
pub(crate) mod nats;

use crate::store::Job;

pub use credentials::Credentials;
pub(crate) use entry::{Arrived, Orderer};
pub(crate) use line::{Errand, Health, Line};

/// Which bus a server joins.
#[derive(Debug, Clone)]
pub struct BusConfig {
    /// Where the NATS server is: `nats://host:port`, or `tls://host:port`.
    pub url: String,
    /// The name that the servers of one service share: letters, digits, `-` and `_`.
    pub service: String,
    /// How it proves who it is.
    pub credentials: Credentials,
}

/// Wants of one node that follow each other in the log, to be carried out together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The place in the log, 1 for the first.
    pub(crate) position: u64,
    /// Which life of which node wanted it.
    pub(crate) life: u64,
    /// The number among the batches of that life, 1 for the first.
    pub(crate) serial: u64,
    pub(crate) jobs: Vec<Job>,
}
