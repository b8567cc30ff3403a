//! What surrounds the core: sockets, the only clock, threads, TLS, system calls.

pub(crate) mod desk;
pub(crate) mod event_loop;
pub(crate) mod secure;
pub(crate) mod shards;
pub(crate) mod sockets;
pub(crate) mod stop;
pub(crate) mod sys;
pub(crate) mod tls;
pub(crate) mod uring;
pub(crate) mod workers;
