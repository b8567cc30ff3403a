//! The encrypted connections of a server that has a certificate, by their numbers.

use std::io;
use std::net::Shutdown;

use mio::net::TcpStream;

use crate::core::{Core, Now};
use crate::machine::tls::{Keys, Session, Standing};
use crate::outlook::journal::{Level, Value};

/// Size of the buffer for what is decrypted, which all connections share, in bytes.
const PLAIN_BYTES_MAX: usize = 64 * 1024;

/// All TLS of a server.
pub(crate) struct Secure {
    keys: Keys,
    sessions: Vec<Option<Box<Session>>>,
    plain: Box<[u8]>,
}

impl Secure {
    pub(crate) fn new(keys: Keys) -> Secure {
        let plain = vec![0; PLAIN_BYTES_MAX].into_boxed_slice();
        Secure { keys, sessions: Vec::new(), plain }
    }

    /// Reads the certificate again, for connections to come; gives where it is.
    pub(crate) fn reload(&mut self) -> Result<String, String> {
        self.keys.reload()?;
        Ok(self.keys.certificate().display().to_string())
    }

    /// A connection that has not begun its handshake.
    pub(crate) fn open(&mut self, id: usize) -> io::Result<()> {
        if self.sessions.len() <= id {
            self.sessions.resize_with(id + 1, || None);
        }
        self.sessions[id] = Some(Session::new(&self.keys).map_err(io::Error::other)?);
        Ok(())
    }

    pub(crate) fn close(&mut self, id: usize) {
        if let Some(slot) = self.sessions.get_mut(id) {
            *slot = None;
        }
    }

    fn session(&mut self, id: usize) -> io::Result<&mut Session> {
        let session = self.sessions.get_mut(id).and_then(Option::as_deref_mut);
        session.ok_or(io::ErrorKind::NotConnected.into())
    }

    pub(crate) fn write(
        &mut self,
        id: usize,
        stream: &mut TcpStream,
        bytes: &[u8],
    ) -> io::Result<usize> {
        self.session(id)?.write(stream, bytes)
    }

    /// Sends what waits; whether nothing waits any longer.
    pub(crate) fn flush(&mut self, id: usize, stream: &mut TcpStream) -> io::Result<bool> {
        let session = self.session(id)?;
        let is_sent = session.flush(stream)?;
        if is_sent && session.is_ending {
            let _ = stream.shutdown(Shutdown::Write); // fails only if the peer is gone already
        }
        Ok(is_sent)
    }

    /// Says goodbye, and ends the sending side as soon as that is sent.
    pub(crate) fn finish(&mut self, id: usize, stream: &mut TcpStream) {
        let Ok(session) = self.session(id) else { return };
        if !matches!(session.finish(stream), Ok(false)) {
            let _ = stream.shutdown(Shutdown::Write); // fails only if the peer is gone already
        }
    }

    /// Whether something of any connection waits to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        self.sessions.iter().flatten().any(|session| session.is_waiting())
    }

    /// Gives the core what is in `bytes`; whether the connection goes on.
    pub(crate) fn read(
        &mut self,
        id: usize,
        stream: &mut TcpStream,
        bytes: &[u8],
        core: &mut Core,
        now: Now,
    ) -> bool {
        let Secure { sessions, plain, .. } = self;
        let Some(session) = sessions.get_mut(id).and_then(Option::as_deref_mut) else {
            return false;
        };
        let read = session.read(bytes, plain, |plain| core.receive(id, plain, now));
        let flushed = session.flush(stream); // of a handshake, or the alert that says what is wrong
        match (read, flushed) {
            (Err(error), _) => {
                core.counters.tls_errors += 1;
                let (why, address) = (error.to_string(), core.door.address(id));
                core.note(Level::Warn, "tls_failed", address, &[("why", Value::Text(&why))]);
                core.broke(id);
                false
            }
            (Ok(Standing::Ended), _) => {
                core.hung_up(id);
                false
            }
            (Ok(standing), Ok(_)) => {
                core.counters.tls_handshakes += u64::from(standing == Standing::Begun);
                true
            }
            (Ok(_), Err(_)) => {
                core.broke(id);
                false
            }
        }
    }
}
