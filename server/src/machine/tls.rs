//! TLS in front of connections: rustls without I/O, with bounded buffers.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use crate::config::TLS_WAITING_BYTES_MAX;

/// A certificate and its key, and the files they are in.
#[derive(Clone)]
pub struct Keys {
    certificate: PathBuf,
    key: PathBuf,
    config: Arc<ServerConfig>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Keys {
    /// Reads both files; the error is advice for the user.
    pub fn load(certificate: &Path, key: &Path) -> Result<Keys, String> {
        let chain = chain(certificate)?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
            pem::Error::NoItemsFound => {
                format!("{}: no private key in it; it needs one as PEM", key.display())
            }
            error => unreadable(key, &error),
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let mut config =
            builder.with_no_client_auth().with_single_cert(chain, secret).map_err(|error| {
                match error {
                    rustls::Error::InconsistentKeys(_) => format!(
                        "the key in {} is not that of the certificate in {}",
                        key.display(),
                        certificate.display()
                    ),
                    error => format!("{}, {}: {error}", certificate.display(), key.display()),
                }
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.ticketer = rustls::crypto::ring::Ticketer::new()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let config = Arc::new(config);
        Ok(Keys { certificate: certificate.to_owned(), key: key.to_owned(), config })
    }

    /// Reads the files again, for connections to come.
    pub(crate) fn reload(&mut self) -> Result<(), String> {
        *self = Keys::load(&self.certificate, &self.key)?;
        Ok(())
    }

    /// Where the certificate is.
    pub(crate) fn certificate(&self) -> &Path {
        &self.certificate
    }
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(file).map_err(|e| unreadable(file, &e))?;
    let chain: Result<Vec<_>, _> = certificates.collect();
    let chain = chain.map_err(|error| unreadable(file, &error))?;
    match chain.is_empty() {
        true => Err(format!("{}: no certificate in it; it needs one as PEM", file.display())),
        false => Ok(chain),
    }
}

fn unreadable(file: &Path, error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot read {}: {error}", file.display()),
        error => format!("{}: it is no PEM: {error}", file.display()),
    }
}

/// How a connection stands after bytes were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It goes on.
    Open,
    /// The handshake is done since.
    Begun,
    /// The peer has said that it ends.
    Ended,
}

/// The TLS of one connection.
pub(crate) struct Session {
    tls: ServerConnection,
    /// The sending side ends when everything is sent.
    pub(crate) is_ending: bool,
}

impl Session {
    pub(crate) fn new(keys: &Keys) -> Result<Box<Session>, rustls::Error> {
        let mut tls = ServerConnection::new(keys.config.clone())?;
        tls.set_buffer_limit(Some(TLS_WAITING_BYTES_MAX));
        Ok(Box::new(Session { tls, is_ending: false }))
    }

    /// Encrypts and sends; gives how many bytes were taken. What is taken may still wait here, up
    /// to [`TLS_WAITING_BYTES_MAX`]; until it is sent, nothing more is taken.
    pub(crate) fn write(&mut self, socket: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
        if !self.flush(socket)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let mut taken = 0;
        while taken < bytes.len() {
            match self.tls.writer().write(&bytes[taken..])? {
                0 => break,
                count => taken += count,
            }
            if !self.flush(socket)? {
                break;
            }
        }
        Ok(taken)
    }

    /// Sends what waits; whether nothing waits any longer.
    pub(crate) fn flush(&mut self, socket: &mut impl Write) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether something waits to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        self.tls.wants_write()
    }

    /// Says goodbye; whether that is sent, so that the sending side can end.
    pub(crate) fn finish(&mut self, socket: &mut impl Write) -> io::Result<bool> {
        if !self.is_ending {
            self.is_ending = true;
            self.tls.send_close_notify();
        }
        self.flush(socket)
    }

    /// Decrypts all of `bytes`; `take` gets what was in them, by way of `plain`. Nothing that is
    /// decrypted waits here, and of what is not, one message at most.
    pub(crate) fn read(
        &mut self,
        mut bytes: &[u8],
        plain: &mut [u8],
        mut take: impl FnMut(&mut [u8]),
    ) -> Result<Standing, rustls::Error> {
        let was_open = !self.tls.is_handshaking();
        let mut has_ended = false;
        while !bytes.is_empty() && !has_ended {
            let full = |error: io::Error| rustls::Error::General(error.to_string());
            if self.tls.read_tls(&mut bytes).map_err(full)? == 0 {
                break;
            }
            has_ended = self.tls.process_new_packets()?.peer_has_closed();
            while let Ok(count @ 1..) = self.tls.reader().read(plain) {
                take(&mut plain[..count]);
            }
        }
        match (has_ended, was_open || self.tls.is_handshaking()) {
            (true, _) => Ok(Standing::Ended),
            (false, true) => Ok(Standing::Open),
            (false, false) => Ok(Standing::Begun),
        }
    }
}
