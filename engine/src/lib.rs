//! Runs a plan on this machine: shards, sockets, TLS, timers, probes, health. It knows no
//! protocol by name and prints nothing.

mod accounts;
mod board;
pub mod clock;
mod crew;
mod http;
pub mod limits;
pub mod net;
mod population;
mod probe;
pub mod profile;
pub mod run;
pub mod scrape;
mod shard;
#[cfg(test)]
mod sim;
mod speech;
pub mod srv;
pub mod target;
mod timeline;
mod wheel;
pub mod worker;

pub use accounts::AccountBook;
pub use board::{Board, Cell};
pub use crew::{Crew, Job, Protocols};
pub use net::tls::Trust;
pub use population::{Holding, Wish};
pub use probe::{Probe, Watched};
pub use run::{Ending, Progress, Run, Sink};
pub use scrape::{Asked, MetricSource};
pub use shard::{Dispatch, Order, Setup, Shard, Status};
pub use timeline::{Conductor, Step};
