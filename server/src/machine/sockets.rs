//! The core's sockets: what it writes goes to the kernel one by one, by a ring, or through TLS.

use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::access::login::HashJob;
use crate::config::{Config, Io};
use crate::core::{World, Write as OneWrite};
use crate::machine::secure::Secure;
use crate::machine::sys;
use crate::machine::uring::Ring;
use crate::machine::workers::Workers;
use crate::store::Job;

/// Fewer writes than these are done one by one.
const RING_WRITES_MIN: usize = 4;

/// The sockets, by the numbers of the core's connections.
pub(crate) struct Sockets {
    pub(crate) registry: Registry,
    pub(crate) streams: Vec<Option<TcpStream>>,
    /// What is encrypted, if anything is.
    pub(crate) secure: Option<Secure>,
    pub(crate) start: Instant,
    pub(crate) workers: Workers,
    /// For flushes; `None` where writes are done one by one.
    pub(crate) ring: Option<Ring>,
}

/// A ring for plain sockets; what is encrypted is written one by one.
pub(crate) fn ring(config: &Config) -> io::Result<Option<Ring>> {
    let why = |error| io::Error::other(format!("io_uring cannot be used here: {error}"));
    match config.io {
        Io::Uring if config.tls.is_some() => Err(io::Error::other("io_uring is not for TLS")),
        Io::Epoll => Ok(None),
        Io::Auto if config.tls.is_some() => Ok(None),
        Io::Uring => Ring::new().map(Some).map_err(why),
        Io::Auto => Ok(Ring::new().ok()),
    }
}

impl Sockets {
    pub(crate) fn put(&mut self, id: usize, mut stream: TcpStream) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(&mut stream, Token(id), interest)?;
        if self.streams.len() <= id {
            self.streams.resize_with(id + 1, || None);
        }
        self.streams[id] = Some(stream);
        match &mut self.secure {
            Some(secure) => secure.open(id),
            None => Ok(()),
        }
    }

    /// Sends what waits here to be sent; whether nothing waits any longer.
    pub(crate) fn flush(&mut self, id: usize) -> io::Result<bool> {
        match (&mut self.secure, self.streams.get_mut(id)) {
            (Some(secure), Some(Some(stream))) => secure.flush(id, stream),
            _ => Ok(true),
        }
    }

    pub(crate) fn stream(&mut self, id: usize) -> Option<&mut TcpStream> {
        self.streams.get_mut(id)?.as_mut()
    }
}

impl World for Sockets {
    #[inline]
    fn write(&mut self, conn: usize, bytes: &[u8]) -> io::Result<usize> {
        let Some(Some(stream)) = self.streams.get_mut(conn) else {
            return Err(ErrorKind::NotConnected.into());
        };
        if let Some(secure) = &mut self.secure {
            return secure.write(conn, stream, bytes);
        }
        loop {
            match stream.write(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn write_many(&mut self, writes: &[OneWrite<'_>], done: &mut Vec<io::Result<usize>>) {
        if let Some(ring) = self.ring.as_mut().filter(|_| writes.len() >= RING_WRITES_MIN) {
            let streams = &self.streams;
            let fd = |conn: u32| match &streams[conn as usize] {
                Some(stream) => stream.as_raw_fd(),
                None => -1, // the kernel refuses it
            };
            let sends = writes.iter().map(|write| (fd(write.conn), write.bytes));
            if ring.send_all(sends, done).is_err() {
                self.ring = None; // what it has not done is written below
            }
        }
        for write in &writes[done.len()..] {
            let result = self.write(write.conn as usize, write.bytes);
            done.push(result);
        }
        for (write, result) in writes.iter().zip(done) {
            if matches!(result, Err(error) if error.kind() == ErrorKind::Interrupted) {
                *result = self.write(write.conn as usize, write.bytes);
            }
        }
    }

    fn finish(&mut self, conn: usize) {
        let Some(Some(stream)) = self.streams.get_mut(conn) else { return };
        match &mut self.secure {
            Some(secure) => secure.finish(conn, stream),
            // Fails only if the peer is gone already.
            None => _ = stream.shutdown(Shutdown::Write),
        }
    }

    fn close(&mut self, conn: usize) {
        if let Some(slot) = self.streams.get_mut(conn) {
            *slot = None; // closing takes it out of the poller as well
        }
        if let Some(secure) = &mut self.secure {
            secure.close(conn);
        }
    }

    fn now_us(&mut self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn burn(&mut self, nanoseconds: u64) {
        sys::burn_cpu(nanoseconds);
    }

    fn store(&mut self, jobs: &mut Vec<Job>) {
        self.workers.store(jobs);
    }

    fn announce(&mut self, sheets: &mut Vec<Vec<u8>>) {
        self.workers.announce(sheets);
    }

    fn hash(&mut self, jobs: &mut Vec<HashJob>) {
        self.workers.hash(jobs);
    }

    fn unhash(&mut self, serial: u64) -> usize {
        self.workers.unhash(serial)
    }
}
