//! Encrypted targets: whom throng believes, and that the same crowd is measured.

use crate::rig::{Folder, listener, yardstick};
use model::{FaultClass, Measure};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long the proxy listens to one side before it looks at the other.
const TURN: Duration = Duration::from_millis(1);

/// A proxy that speaks TLS in front of `server`: its address and its certificate as PEM.
fn proxy(server: SocketAddr) -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into());
    let config = Arc::new(config.unwrap());
    let listener = listener();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = config.clone();
            // A client that does not believe the certificate hangs up: that is no failure here.
            std::thread::spawn(move || _ = pass_on(config, stream, server));
        }
    });
    (address, made.cert.pem())
}

fn pass_on(config: Arc<ServerConfig>, stream: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut plain = TcpStream::connect(to)?;
    plain.set_read_timeout(Some(TURN))?;
    let mut secure = StreamOwned::new(connection, stream);
    while secure.conn.is_handshaking() {
        secure.conn.complete_io(&mut secure.sock)?;
    }
    secure.sock.set_read_timeout(Some(TURN))?;
    let mut buffer = [0; 4096];
    loop {
        match read(&mut secure, &mut buffer)? {
            Some(0) => return Ok(()),
            count => plain.write_all(&buffer[..count.unwrap_or(0)])?,
        }
        match read(&mut plain, &mut buffer)? {
            Some(0) => return Ok(()),
            count => secure.write_all(&buffer[..count.unwrap_or(0)])?,
        }
    }
}

/// What there is to read; `None` if nothing came in time.
fn read(from: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<Option<usize>> {
    match from.read(buffer) {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn scenario(proxy: SocketAddr) -> String {
    format!(
        "about: twelve people behind TLS\ntarget: wss://{proxy}/ws\nprotocol: yardstick\n\
         rooms: [a]\ncrowds:\n  people:\n    size: 12\n    journey: [login, {{join: a}}, {{gate: all}}, \
         {{talk: {{every: 50ms, for: 500ms, bytes: 2000}}}}, {{gate: quiet}}, {{wait: 300ms}}, leave]\n\
         timeline: [{{run: people at 50/s}}]\nthresholds: {{lost: 0, errors: 0}}\n"
    )
}

#[test]
fn a_crowd_behind_tls_is_measured_like_any_other() {
    let server = yardstick("");
    let (address, certificate) = proxy(server.address());
    let folder = Folder::new("tls");
    let file = folder.write("ca.pem", &certificate).display().to_string();
    for trust in [vec!["--ca", &file], vec!["--insecure"]] {
        let folder = Folder::new("tls-run");
        let answer = folder.run_fit(&scenario(address), &trust);
        let summary = answer.summary();
        assert_eq!(answer.code, Some(0), "{trust:?}: {}", answer.stderr);
        assert_eq!(summary.people.entered, 12);
        assert_eq!((summary.ledger.owed, summary.ledger.lost), (12 * 12 * 9, 0), "{trust:?}");
    }
}

#[test]
fn a_certificate_nobody_vouches_for_is_refused() {
    let server = yardstick("");
    let (address, _) = proxy(server.address());
    let folder = Folder::new("tls-refused");
    let answer = folder.run(&scenario(address), &[]);
    assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    let mut total = model::Interval::default();
    answer.load().seconds.iter().for_each(|second| second.add_to(&mut total));
    assert_eq!(total.faults[&Measure::Connect][&FaultClass::Tls], 12);
}
