//! One connection to a NATS server: dialing, TLS, who we are, and bytes both ways.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde::Deserialize;

use super::wire::{self, Op};
use crate::bus::Credentials;

/// How long dialing, and each answer while a connection begins, may take.
pub(crate) const DIAL_TIME_MAX: Duration = Duration::from_secs(3);
/// Bytes that wait to be sent; a server that takes none for so long is given up.
const UNSENT_BYTES_MAX: usize = 64 * 1024 * 1024;
const READ_BYTES: usize = 64 * 1024;

/// Where a NATS server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: bool,
}

impl Place {
    /// Reads `nats://host:port` or `tls://host:port`; the port may be left out.
    pub(crate) fn parse(url: &str) -> Result<Place, String> {
        const PORT: u16 = 4222;
        let advice = "write it as nats://host:4222 or tls://host:4222";
        let (tls, rest) = match url.split_once("://") {
            Some(("nats", rest)) => (false, rest),
            Some(("tls", rest)) => (true, rest),
            _ => return Err(format!("{url} is no URL of a NATS server; {advice}")),
        };
        if rest.contains('@') {
            let why = "credentials do not belong into a URL, which everybody can see";
            return Err(format!("{why}; put them into a file"));
        }
        let rest = rest.trim_end_matches('/');
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
            _ => (rest, Some(PORT)),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        match port {
            Some(port) if !host.is_empty() => Ok(Place { host, port, tls }),
            _ => Err(format!("{url} names no host or no port; {advice}")),
        }
    }
}

/// What a server says of itself, as far as it matters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    tls_required: bool,
    jetstream: bool,
    headers: bool,
    nonce: String,
    max_payload: usize,
}

enum Socket {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.read(buffer),
            Socket::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.write(bytes),
            Socket::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(stream) => stream.flush(),
            Socket::Tls(stream) => stream.flush(),
        }
    }
}

/// A connection on which the server knows us.
pub(crate) struct Connection {
    socket: Socket,
    inbox: Vec<u8>,
    /// How much of `inbox` was given out.
    used: usize,
    /// What is to be sent.
    pub(crate) out: Vec<u8>,
    sent: usize,
    buffer: Box<[u8]>,
    /// Largest message the server takes, in bytes.
    pub(crate) payload_max: usize,
}

fn other(why: impl ToString) -> io::Error {
    io::Error::other(why.to_string())
}

impl Connection {
    /// Dials and says who we are; waits for the server's consent.
    pub(crate) fn dial(place: &Place, credentials: &Credentials) -> io::Result<Connection> {
        let stream = connect(place)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(DIAL_TIME_MAX))?;
        stream.set_write_timeout(Some(DIAL_TIME_MAX))?;
        let mut connection = Connection {
            socket: Socket::Plain(stream),
            inbox: Vec::new(),
            used: 0,
            out: Vec::new(),
            sent: 0,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            payload_max: 0,
        };
        let info = connection.info()?;
        if place.tls || info.tls_required {
            connection = connection.encrypt(&place.host)?;
        }
        if !info.headers || !info.jetstream {
            return Err(other("the NATS server has no JetStream: start it with --jetstream"));
        }
        connection.payload_max = info.max_payload;
        connection.introduce(place, credentials, &info.nonce)?;
        Ok(connection)
    }

    /// The server speaks first.
    fn info(&mut self) -> io::Result<Info> {
        loop {
            if let Some((op, _)) = wire::read(&self.inbox).map_err(other)? {
                let Op::Info(json) = op else { return Err(other("it does not introduce itself")) };
                let info = serde_json::from_slice(json).map_err(other)?;
                // What an attacker puts behind INFO before TLS begins must not count as said in it.
                self.inbox.clear();
                return Ok(info);
            }
            self.receive()?;
        }
    }

    fn encrypt(self, host: &str) -> io::Result<Connection> {
        let Socket::Plain(stream) = self.socket else { return Err(other("encrypted already")) };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned()).map_err(other)?;
        let session = ClientConnection::new(Arc::new(config), name).map_err(other)?;
        let socket = Socket::Tls(Box::new(StreamOwned::new(session, stream)));
        Ok(Connection { socket, ..self })
    }

    fn introduce(&mut self, place: &Place, who: &Credentials, nonce: &str) -> io::Result<()> {
        let mut fields = serde_json::json!({
            "verbose": false, "pedantic": false, "tls_required": place.tls, "lang": "rust",
            "name": "yardstick", "version": env!("CARGO_PKG_VERSION"), "protocol": 1,
            "echo": true, "headers": true, "no_responders": true,
        });
        for (key, value) in who.fields(nonce).map_err(other)? {
            fields[key] = value.into();
        }
        self.out.extend_from_slice(format!("CONNECT {fields}\r\nPING\r\n").as_bytes());
        self.send()?;
        loop {
            match self.next()? {
                Some(Heard::Pong) => return Ok(()),
                Some(_) => {}
                None => self.receive()?,
            }
        }
    }

    /// From here on it never waits.
    pub(crate) fn set_nonblocking(&mut self) -> io::Result<()> {
        self.tcp().set_nonblocking(true)
    }

    fn tcp(&self) -> &TcpStream {
        match &self.socket {
            Socket::Plain(stream) => stream,
            Socket::Tls(stream) => &stream.sock,
        }
    }

    /// Its descriptor, open as long as the connection is.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.tcp().as_raw_fd()
    }

    /// Reads what there is, once; `WouldBlock` or a timeout if nothing.
    pub(crate) fn receive(&mut self) -> io::Result<()> {
        self.inbox.drain(..std::mem::take(&mut self.used));
        match self.socket.read(&mut self.buffer)? {
            0 => Err(other("the NATS server has hung up")),
            length => {
                self.inbox.extend_from_slice(&self.buffer[..length]);
                Ok(())
            }
        }
    }

    /// The next thing heard that is not dealt with here; `None` until more is received.
    pub(crate) fn next(&mut self) -> io::Result<Option<Heard<'_>>> {
        loop {
            let Some((op, used)) = wire::read(&self.inbox[self.used..]).map_err(other)? else {
                return Ok(None);
            };
            self.used += used;
            match op {
                Op::Ping => self.out.extend_from_slice(b"PONG\r\n"),
                Op::Ok | Op::Info(_) => {}
                Op::Pong => return Ok(Some(Heard::Pong)),
                Op::Error(why) => return Err(other(format!("the NATS server says: {why}"))),
                Op::Message(_) => {
                    // Read once more: the borrow checker cannot see that nothing was changed.
                    let again = wire::read(&self.inbox[self.used - used..]).map_err(other)?;
                    let Some((Op::Message(message), _)) = again else { return Ok(None) };
                    return Ok(Some(Heard::Message(message)));
                }
            }
        }
    }

    /// Sends what the socket takes now.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return match self.out.len() - self.sent > UNSENT_BYTES_MAX {
                        true => Err(other("the NATS server takes nothing")),
                        false => Ok(()),
                    };
                }
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        match self.socket.flush() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }

    /// Asks and waits for the answer; other messages meanwhile are for nobody.
    pub(crate) fn request(
        &mut self,
        subject: &str,
        inbox: &str,
        ask: &[u8],
    ) -> io::Result<Vec<u8>> {
        wire::publish(&mut self.out, subject, inbox, ask);
        self.send()?;
        loop {
            match self.next()? {
                Some(Heard::Message(message)) if message.subject == inbox => {
                    return match message.status() {
                        Some((503, _)) => {
                            Err(other("JetStream does not answer: is it enabled for this user?"))
                        }
                        _ => Ok(message.payload.to_vec()),
                    };
                }
                Some(_) => {}
                None => self.receive()?,
            }
        }
    }
}

/// What was heard.
pub(crate) enum Heard<'a> {
    Pong,
    Message(wire::Message<'a>),
}

fn connect(place: &Place) -> io::Result<TcpStream> {
    let mut last = other("the name has no address");
    for address in (place.host.as_str(), place.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, DIAL_TIME_MAX) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
