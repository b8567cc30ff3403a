//! TLS without a socket: a client of rustls against a session of ours, and files that are wrong.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocols::wire::rng::SplitMix;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::config::TLS_WAITING_BYTES_MAX;
use crate::machine::tls::{Keys, Session, Standing};

/// RFC 8446 section 5.1.
const RECORD_BYTES_MAX: usize = 1 << 14;

/// A folder of a test's own.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("yardstick-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate and its key as files, and a client that believes it.
pub(super) fn certificate(folder: &Folder, name: &str) -> (PathBuf, PathBuf, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let file = folder.write(&format!("{name}.pem"), &made.cert.pem());
    let key = folder.write(&format!("{name}-key.pem"), &made.signing_key.serialize_pem());
    (file, key, Arc::new(config))
}

pub(super) fn client(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("127.0.0.1").unwrap();
    ClientConnection::new(config.clone(), name).unwrap()
}

/// One direction of a socket: takes so many bytes and then none.
#[derive(Default)]
struct Pipe {
    bytes: Vec<u8>,
    space: usize,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.space);
        if taken == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.space -= taken;
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client and a session, the bytes between them, and what each has heard.
struct Pair {
    client: ClientConnection,
    session: Box<Session>,
    to_client: Pipe,
    heard: [Vec<u8>; 2],
    standings: Vec<Standing>,
}

impl Pair {
    fn new(keys: &Keys, config: &Arc<ClientConfig>) -> Pair {
        let (client, session) = (client(config), Session::new(keys).unwrap());
        let (to_client, heard) = (Pipe::default(), Default::default());
        Pair { client, session, to_client, heard, standings: Vec::new() }
    }

    /// Moves what there is, in pieces of random lengths.
    fn pump(&mut self, rng: &mut SplitMix) {
        let (mut bytes, mut plain) = (Vec::new(), vec![0; 300]);
        self.client.write_tls(&mut bytes).unwrap();
        let mut rest = &mut bytes[..];
        while !rest.is_empty() {
            let (piece, more) = rest.split_at_mut(1 + rng.below(rest.len()));
            let heard = &mut self.heard[0];
            let standing = self.session.read(piece, &mut plain, |p| heard.extend_from_slice(p));
            self.standings.push(standing.unwrap());
            rest = more;
        }
        self.to_client.space = rng.below(5_000);
        self.session.flush(&mut self.to_client).unwrap();
        let bytes = std::mem::take(&mut self.to_client.bytes);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            self.client.read_tls(&mut rest).unwrap();
            self.client.process_new_packets().unwrap();
            let _ = self.client.reader().read_to_end(&mut self.heard[1]); // ends in WouldBlock
        }
    }
}

#[test]
fn everything_arrives_in_any_pieces_and_little_waits() {
    let folder = Folder::new("pieces");
    let (file, key, config) = certificate(&folder, "own");
    let keys = Keys::load(&file, &key).unwrap();
    for seed in 0..20 {
        let mut rng = SplitMix::new(seed);
        let mut pair = Pair::new(&keys, &config);
        let texts = [40_000, 200_000]
            .map(|length| (0..length).map(|_| rng.below(256) as u8).collect::<Vec<u8>>());
        let mut sent = [0, 0];
        for _ in 0..2_000 {
            sent[0] += pair.client.writer().write(&texts[0][sent[0]..]).unwrap();
            if !pair.client.is_handshaking() {
                pair.to_client.space = rng.below(3_000);
                match pair.session.write(&mut pair.to_client, &texts[1][sent[1]..]) {
                    Ok(taken) => sent[1] += taken,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
                let waits = sent[1].saturating_sub(pair.heard[1].len());
                // A record that has come in part is not heard yet.
                assert!(
                    waits <= TLS_WAITING_BYTES_MAX + RECORD_BYTES_MAX,
                    "seed {seed}: {waits} bytes wait"
                );
            }
            pair.pump(&mut rng);
            if sent == [40_000, 200_000] && pair.heard[1].len() == 200_000 {
                break;
            }
        }
        assert!(pair.heard == texts, "seed {seed}: {:?}", pair.heard.map(|heard| heard.len()));
        let begun = pair.standings.iter().filter(|s| **s == Standing::Begun).count();
        assert_eq!(begun, 1, "seed {seed}");
        pair.to_client.space = 1_000;
        assert!(pair.session.finish(&mut pair.to_client).unwrap() && !pair.session.is_waiting());
        pair.client.send_close_notify();
        pair.pump(&mut rng);
        assert_eq!(pair.standings.last(), Some(&Standing::Ended), "seed {seed}");
    }
}

#[test]
fn a_full_socket_takes_nothing_more() {
    let folder = Folder::new("full");
    let (file, key, config) = certificate(&folder, "own");
    let mut pair = Pair::new(&Keys::load(&file, &key).unwrap(), &config);
    let mut rng = SplitMix::new(1);
    while pair.client.is_handshaking() || !pair.standings.contains(&Standing::Begun) {
        pair.pump(&mut rng);
    }
    while pair.session.is_waiting() {
        pair.pump(&mut rng);
    }
    let bytes = vec![7; 1 << 20];
    pair.to_client.space = 0;
    let taken = pair.session.write(&mut pair.to_client, &bytes).unwrap();
    assert!((1..=TLS_WAITING_BYTES_MAX).contains(&taken), "{taken}");
    for _ in 0..100 {
        let error = pair.session.write(&mut pair.to_client, &bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
    assert!(!pair.session.finish(&mut pair.to_client).unwrap(), "the goodbye waits behind it");
}

#[test]
fn hostile_bytes_are_an_error_and_not_kept() {
    let folder = Folder::new("hostile");
    let (file, key, config) = certificate(&folder, "own");
    let keys = Keys::load(&file, &key).unwrap();
    let mut hello = Vec::new();
    client(&config).write_tls(&mut hello).unwrap();
    let mut plain = vec![0; 100];
    let mut read = |bytes: &[u8]| {
        let mut session = Session::new(&keys).unwrap();
        let outcome = session.read(bytes, &mut plain, |_| panic!("nothing was said"));
        (outcome, session.is_waiting())
    };
    let rows: [&[u8]; 6] = [
        b"GET /ws HTTP/1.1\r\n\r\n",
        b"\0\0\0\0\0\0\0\0",
        b"\x16\x03\x01\xff\xff",
        b"\x17\x03\x03\x00\x05hello",
        b"\x15\x03\x03\x00\x02\x02\x28",
        &[0xff; 100_000],
    ];
    for bytes in rows {
        assert!(read(bytes).0.is_err(), "{:02x?}", &bytes[..5]);
    }
    assert_eq!(read(b"").0, Ok(Standing::Open));
    assert_eq!(read(&hello[..hello.len() - 1]), (Ok(Standing::Open), false));
    assert_eq!(read(&hello), (Ok(Standing::Open), true), "an answer waits");
    // A record whose message never ends: what is kept is bounded, and then refused.
    let mut endless = b"\x16\x03\x01\x40\x00\x01\xff\xff\xff".to_vec();
    endless.resize(5 + 0x4000, 0);
    assert!(read(&endless.repeat(8)).0.is_err());
    for seed in 0..3_000 {
        let mut rng = SplitMix::new(seed);
        let mut bytes = hello.clone();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.below(256) as u8;
        }
        let _ = read(&bytes); // a panic is what this finds
    }
}

#[test]
fn files_that_are_wrong_say_what_is_wrong() {
    let folder = Folder::new("files");
    let (file, key, _) = certificate(&folder, "own");
    let (other, other_key, _) = certificate(&folder, "other");
    let empty = folder.write("empty.pem", "");
    let noise =
        folder.write("noise.pem", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n");
    let wrong =
        folder.write("wrong.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let none = PathBuf::from("/no/such/file");
    assert!(Keys::load(&file, &key).is_ok() && Keys::load(&other, &other_key).is_ok());
    let rows: [(&Path, &Path, &[&str]); 9] = [
        (&none, &key, &["cannot read /no/such/file", "No such file"]),
        (&file, &none, &["cannot read /no/such/file", "No such file"]),
        (&empty, &key, &["empty.pem", "no certificate"]),
        (&file, &empty, &["empty.pem", "no private key"]),
        (&key, &key, &["own-key.pem", "no certificate"]),
        (&file, &file, &["own.pem", "no private key"]),
        (&file, &other_key, &["other-key.pem", "own.pem", "not that of the certificate"]),
        (&noise, &key, &["noise.pem", "PEM"]),
        (&file, &wrong, &["wrong.pem"]),
    ];
    for (file, key, words) in rows {
        let error = Keys::load(file, key).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{error:?} does not say {word:?}");
        }
    }
}

#[test]
fn a_certificate_is_read_again_and_a_broken_one_is_not_taken() {
    let folder = Folder::new("reload");
    let (file, key, config) = certificate(&folder, "own");
    let mut keys = Keys::load(&file, &key).unwrap();
    let greets = |keys: &Keys, config: &Arc<ClientConfig>| {
        let (mut session, mut client) = (Session::new(keys).unwrap(), client(config));
        let (mut hello, mut plain) = (Vec::new(), [0; 10]);
        client.write_tls(&mut hello).unwrap();
        session.read(&hello, &mut plain, |_| ()).unwrap();
        let mut pipe = Pipe { bytes: Vec::new(), space: usize::MAX };
        session.flush(&mut pipe).unwrap();
        client.read_tls(&mut &pipe.bytes[..]).unwrap();
        client.process_new_packets().is_ok()
    };
    assert!(greets(&keys, &config));
    folder.write("own.pem", "broken");
    assert!(keys.reload().is_err() && greets(&keys, &config), "the old one stays");
    let (_, _, fresh) = certificate(&folder, "own");
    keys.reload().unwrap();
    assert!(greets(&keys, &fresh) && !greets(&keys, &config));
}
