//! The seam to the network: what a shard needs of sockets, real or simulated.

pub mod real;
pub mod tls;

use model::{Fault, Tick};

/// Names a person's connection at the network: the person's slot in the shard.
pub type Slot = u32;

/// What the network reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The target has accepted the connection; its TLS handshake goes on.
    Accepted(Slot),
    /// The connection is ready for the session's first byte (TCP, and TLS if secure).
    Opened(Slot),
    /// There may be bytes to read, or the end of them.
    Readable(Slot),
    /// The connection could not be opened, or broke while something waited to be sent.
    Broken(Slot),
    /// Somebody called the shard: there are orders to fetch.
    Called,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes, and perhaps more.
    Some(usize),
    /// So many bytes (perhaps none), and none are left for now.
    Last(usize),
    /// The target has closed the connection.
    End,
}

/// Sockets of one shard. One connection a person; the slot names it.
pub trait Net {
    /// Now, on the run's time line.
    fn now(&self) -> Tick;

    /// Begins to open a connection. `spread` deals people out to endpoints and source addresses: it
    /// is the place in the crowd, as with rooms, so that who shares a room shares its server.
    fn dial(&mut self, slot: Slot, spread: u32) -> Result<(), Fault>;

    /// Reads into `buffer`.
    fn read(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Read, Fault>;

    /// Sends, or keeps what the target does not take yet, up to the plan's limit.
    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), Fault>;

    /// Begins the TLS handshake on an open connection; [`Happening::Opened`] tells when it is over.
    fn secure(&mut self, slot: Slot) -> Result<(), Fault>;

    /// Closes a connection after what is kept has been sent; does nothing if there is none.
    fn close(&mut self, slot: Slot);

    /// Waits for something to happen, but not longer than `until`.
    fn poll(&mut self, until: Tick, happenings: &mut Vec<Happening>);

    /// Why a connection reported [`Happening::Broken`].
    fn fault(&mut self, slot: Slot) -> Fault;
}
