//! The yardstick as an operator has it: settings by file, environment and flags, its log, its
//! certificate, and what it says when it cannot start.

use crate::rig::{Folder, Started, for_each, listener, wait_until};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Long enough for any machine; a test that works never waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that has said where it is.
fn serve(folder: &Folder, variables: &[(&str, &str)], words: &[&str]) -> (Started, SocketAddr) {
    let all = ["serve", "--listen", "127.0.0.1:0"].iter().chain(words);
    let server = folder.start_with(variables, all);
    wait_until("the server listens", || server.stderr().contains("/ws\n"));
    let stderr = server.stderr();
    let first = stderr.lines().next().unwrap();
    let address = first.split('/').nth(2).unwrap().parse().expect(first);
    (server, address)
}

fn stop(server: Started) -> String {
    server.signal(libc::SIGTERM);
    let answer = server.end();
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    answer.stderr
}

/// The body of a page.
fn page(stream: &mut (impl Read + Write), path: &str) -> String {
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text); // TLS tells of an end without a goodbye
    let text = String::from_utf8(text).unwrap();
    text.split_once("\r\n\r\n").expect(&text).1.to_owned()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn info(address: SocketAddr) -> Value {
    serde_json::from_str(&page(&mut connect(address), "/info")).unwrap()
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let folder = Folder::new("settings");
    folder.write(
        "chat.yaml",
        "history: 1\nconnections: 11\nflush-window: 7ms\nregistration: on\nephemeral: true\n\
         page: off\n\
         origin:\n- https://a.example\n- http://b.example:81\n",
    );
    let variables = [
        ("THRONG_SERVE_CONFIG", "chat.yaml"),
        ("THRONG_SERVE_HISTORY", "2"),
        ("THRONG_SERVE_CONNECTIONS", "12"),
        ("THRONG_SERVE_PRESENCE", "eager"),
    ];
    let (server, address) = serve(&folder, &variables, &["--history", "3", "--log", "off"]);
    let info = info(address);
    let rows = [
        ("history", Value::from(3)),
        ("connections_max", Value::from(12)),
        ("presence", Value::from("eager")),
        ("flush_window_ms", Value::from(7)),
        ("origins", Value::from(vec!["https://a.example", "http://b.example:81"])),
        ("avatars", Value::from("lazy")),
        ("login_failures", Value::from(10)),
        ("tls", Value::from("off")),
        ("pin", Value::from("none")),
    ];
    for (key, expect) in rows {
        assert_eq!(info[key], expect, "{key}: {info:#}");
    }
    let stderr = stop(server);
    assert_eq!(stderr.lines().count(), 1, "ephemeral in the file, no log: {stderr}");
}

#[test]
fn what_cannot_start_says_why() {
    let folder = Folder::new("unable");
    let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
    folder.write("cert.pem", &made.cert.pem());
    folder.write("key.pem", &made.signing_key.serialize_pem());
    let other = rcgen::generate_simple_self_signed(["b".to_owned()]).unwrap();
    folder.write("other.pem", &other.signing_key.serialize_pem());
    folder.write("bad.yaml", "history: 5\npresense: eager\nflush-window: 20\n");
    folder.write("both.yaml", "data: kept\n");
    folder.write("binary.yaml", "\u{0}");
    folder.write("large.yaml", &"# large\n".repeat(10_000));
    folder.write("file", "no folder");
    let taken = listener();
    let taken = taken.local_addr().unwrap().to_string();
    let by = format!("process {}", std::process::id());
    let data = folder.path("file/data").display().to_string();
    let rows: &[(&[&str], i32, &[&str])] = &[
        (&["--listen", &taken], 3, &[&taken, &by, "another port"]),
        (&["--listen", "192.0.2.1:4000", "--expose"], 3, &["192.0.2.1 is no address of this"]),
        (&["--listen", "0.0.0.0:0"], 2, &["other machines", "--expose"]),
        (&["--listen", "localhost"], 2, &["--listen", "localhost"]),
        (&["--data", &data], 3, &["file/data", "Not a directory"]),
        (&["--data", "x", "--ephemeral"], 2, &["--ephemeral", "--data"]),
        (&["--config", "both.yaml", "--ephemeral"], 2, &["--ephemeral", "file"]),
        (&["--registration", "off"], 2, &["data folder"]),
        (&["--registration", "no"], 2, &["--registration", "on or off"]),
        (&["--backup", "copy"], 2, &["--data"]),
        (&["--tls-cert", "cert.pem"], 2, &["--tls-key"]),
        (&["--tls-key", "key.pem"], 2, &["--tls-cert"]),
        (&["--tls-cert", "none.pem", "--tls-key", "key.pem"], 2, &["none.pem", "No such file"]),
        (&["--tls-cert", "cert.pem", "--tls-key", "cert.pem"], 2, &["no private key"]),
        (&["--tls-cert", "cert.pem", "--tls-key", "other.pem"], 2, &["not that of the"]),
        (&["--config", "none.yaml"], 2, &["none.yaml", "No such file"]),
        (&["--config", "large.yaml"], 2, &["large.yaml", "80000 bytes"]),
        (&["--config", "binary.yaml"], 2, &["binary.yaml:1:"]),
        (&["--config", "bad.yaml"], 2, &["bad.yaml:2:1", "`presence`", "bad.yaml:3:15", "20ms"]),
        (&["--pin", "1000"], 2, &["no processor 1000", "0"]),
        (&["--pin", "last"], 2, &["--pin", "number from 0"]),
        (&["--origin", "chat.example"], 2, &["--origin", "https://chat.example"]),
        (&["--log", "loud"], 2, &["off, text or json"]),
        (&["--flush-window", "20"], 2, &["20us, 20ms or 1s"]),
        (&["--fault-log", "file/x"], 3, &["file/x"]),
    ];
    for_each(rows, |(words, code, parts)| {
        let words = [&["serve"], *words].concat();
        let has_listen = words.contains(&"--listen");
        let free: &[&str] = if has_listen { &[] } else { &["--listen", "127.0.0.1:0"] };
        let answer = folder.throng([&words[..], free].concat());
        assert_eq!(answer.code, Some(*code), "{words:?}: {}", answer.stderr);
        for part in *parts {
            assert!(answer.stderr.contains(part), "{words:?}: no {part:?}: {}", answer.stderr);
        }
        assert!(!answer.stderr.contains("panicked"), "{words:?}: {}", answer.stderr);
    });
}

#[test]
fn a_variable_that_makes_no_sense_is_named() {
    let folder = Folder::new("variables");
    let rows = [
        ("THRONG_SERVE_FLUSH_WINDOW", "20", "20us, 20ms or 1s"),
        ("THRONG_SERVE_ORIGIN", "http://a,b", "https://chat.example"),
        ("THRONG_SERVE_EXPOSE", "maybe", "maybe"),
        ("THRONG_SERVE_HISTORY", "", "THRONG_SERVE_HISTORY"),
    ];
    for_each(&rows, |(name, value, help)| {
        let answer = folder.start_with(&[(name, value)], ["serve"]).end();
        assert_eq!(answer.code, Some(2), "{name}: {}", answer.stderr);
        for word in [name, help] {
            assert!(answer.stderr.contains(word), "{name}: no {word:?}: {}", answer.stderr);
        }
    });
}

/// Logs in by password over a socket of its own; `true` if it is welcome.
fn login(address: SocketAddr, name: &str, password: &str) -> bool {
    let mut stream = connect(address);
    let mut bytes = b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Protocol: yardstick.v1.json\r\n\r\n"
        .to_vec();
    let login = serde_json::json!({"login": {"name": name, "password": password}}).to_string();
    let (text, mask) = (protocols::wire::frame::Opcode::Text, Some([1, 2, 3, 4]));
    protocols::wire::frame::write_frame(&mut bytes, text, login.as_bytes(), mask);
    stream.write_all(&bytes).unwrap();
    let (mut heard, mut part) = (String::new(), [0; 1024]);
    while !heard.contains("welcome") && !heard.contains("\"code\"") {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    heard.contains("welcome")
}

#[test]
fn the_log_tells_what_happened_and_no_secrets() {
    let folder = Folder::new("log");
    let words = ["--ephemeral", "--page", "off", "--log", "json", "--login-failures", "5"];
    let (server, address) = serve(&folder, &[], &words);
    assert!(login(address, "ann", "correct horse"));
    for _ in 0..30 {
        assert!(!login(address, "ann", "battery \n\" staple"));
    }
    let stderr = stop(server);
    assert!(!stderr.contains("horse") && !stderr.contains("staple"), "{stderr}");
    let (first, lines) = stderr.split_once('\n').unwrap();
    assert!(first.starts_with("yardstick: ws://"), "{first}");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    assert_eq!(lines[0]["event"], "start");
    assert_eq!(lines[0]["listen"], address.to_string());
    assert_eq!(lines.last().unwrap()["event"], "stop");
    let failed = of("login_failed");
    assert_eq!(failed.len(), 5, "beyond them nothing is looked at: {stderr}");
    assert_eq!((&failed[0]["name"], &failed[0]["address"]), (&"ann".into(), &"127.0.0.1".into()));
    let kept_back: u64 = of("more").iter().map(|line| line["count"].as_u64().unwrap()).sum();
    assert_eq!(of("limit").len() as u64 + kept_back, 25, "{stderr}");
    assert!(of("limit").iter().all(|line| line["code"] == "too_many_tries"));
}

/// A certificate for loopback in a folder, and a client that believes it.
fn certificate(folder: &Folder) -> (PathBuf, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    folder.write("key.pem", &made.signing_key.serialize_pem());
    (folder.write("cert.pem", &made.cert.pem()), Arc::new(config))
}

/// A connection under TLS, its handshake to come.
fn secure(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let name = "127.0.0.1".try_into().unwrap();
    StreamOwned::new(ClientConnection::new(config.clone(), name).unwrap(), connect(address))
}

#[test]
fn a_crowd_talks_under_tls_while_others_send_nonsense() {
    let folder = Folder::new("secure");
    let (file, client) = certificate(&folder);
    let words = ["--ephemeral", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let (server, address) = serve(&folder, &[], &words);
    assert!(server.stderr().starts_with("yardstick: wss://"), "{}", server.stderr());
    let nonsense: [&[u8]; 5] = [
        b"GET /info HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        b"\x17\x03\x03\x00\x05hello",
        &[0; 100_000],
        &[0xff; 70_000],
    ];
    for bytes in nonsense {
        let mut stream = connect(address);
        let _ = stream.write_all(bytes); // it may be cut off before it has said all
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() < 100 && !answer.starts_with(b"HTTP"), "{answer:02x?}");
    }
    let silent = connect(address);
    let scenario = format!(
        "target: wss://{address}/ws\nprotocol: yardstick\nrooms: [a]\ncrowds:\n  people:\n    size: \
         10\n    journey: [login, {{join: a}}, {{gate: all}}, {{talk: {{every: 100ms, for: 500ms, \
         bytes: 12000}}}}, {{gate: quiet}}, {{wait: 300ms}}, leave]\ntimeline: [{{run: people at \
         50/s}}]\nthresholds: {{lost: 0, errors: 0}}\n"
    );
    let run = Folder::new("secure-run");
    let answer = run.run_fit(&scenario, &["--ca", &file.display().to_string()]);
    let summary = answer.summary();
    assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    assert_eq!((summary.ledger.owed, summary.ledger.lost), (10 * 10 * 4, 0));
    let metrics = page(&mut secure(address, &client), "/metrics");
    let value = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(&format!("yardstick_{name} ")));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).expect(&metrics)
    };
    assert_eq!(value("tls_errors_total"), 5, "{metrics}");
    assert!(value("tls_handshakes_total") >= 11 && value("messages_total") >= 10 * 4);
    drop(silent);
    let stderr = stop(server);
    assert_eq!(stderr.matches(" warn tls_failed ").count(), 5, "{stderr}");
}

#[test]
fn a_new_certificate_is_taken_up_on_sighup() {
    let folder = Folder::new("renewed");
    let (_, old) = certificate(&folder);
    let words = ["--ephemeral", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let (server, address) = serve(&folder, &[], &words);
    let mut first = secure(address, &old);
    first.conn.complete_io(&mut first.sock).unwrap();
    folder.write("cert.pem", "broken");
    server.signal(libc::SIGHUP);
    wait_until("it has refused", || server.stderr().contains(" error tls_not_reloaded "));
    assert_eq!(page(&mut secure(address, &old), "/healthz"), "ok\n");
    let (_, new) = certificate(&folder);
    server.signal(libc::SIGHUP);
    wait_until("it has read it", || server.stderr().contains(" info tls_reloaded "));
    assert_eq!(page(&mut secure(address, &new), "/healthz"), "ok\n");
    let mut refused = secure(address, &old);
    assert!(refused.conn.complete_io(&mut refused.sock).is_err());
    assert_eq!(page(&mut first, "/healthz"), "ok\n", "who is there stays");
    stop(server);
}
