//! XMPP over TCP against a real Prosody: plain, with STARTTLS, and encrypted from the first byte.

use crate::rig::Folder;
use model::{FaultClass, Measure};
use results::Status;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// From one look at the ports to the next, and the most looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const LOOKS_MAX: u32 = 6_000;
const PEOPLE: u64 = 6;

/// A Prosody that encrypts, with a certificate for `localhost`.
struct Prosody {
    child: Child,
    c2s: u16,
    direct: u16,
    authority: String,
}

impl Prosody {
    /// Starts it in that folder; nothing if it is not installed.
    fn start(folder: &Folder, requires_tls: bool) -> Option<Prosody> {
        if !Path::new("/usr/bin/prosody").exists() && std::env::var_os("CI").is_none() {
            eprintln!("skipped: prosody is not installed (and CI is not set)");
            return None;
        }
        let ports = [0, 0].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap());
        let [c2s, direct] = ports.map(|listener| listener.local_addr().unwrap().port());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = folder.write("ca.pem", &made.cert.pem()).display().to_string();
        let key = folder.write("key.pem", &made.signing_key.serialize_pem()).display().to_string();
        let data = folder.path("").display().to_string();
        let config = format!(
            "data_path = \"{data}\"\npidfile = \"{data}/prosody.pid\"\ncertificates = \"{data}\"\n\
             run_as_root = true\nlog = {{ {{ levels = {{ min = \"info\" }}, to = \"file\", \
             filename = \"{data}/prosody.log\" }} }}\nuse_ipv6 = false\n\
             interfaces = {{ \"127.0.0.1\" }}\nc2s_ports = {{ {c2s} }}\n\
             c2s_direct_tls_ports = {{ {direct} }}\nlegacy_ssl_ports = {{}}\ns2s_ports = {{}}\n\
             s2s_direct_tls_ports = {{}}\nhttp_ports = {{}}\nhttps_ports = {{}}\n\
             component_ports = {{}}\nmodules_enabled = {{ \"roster\", \"saslauth\", \"disco\", \
             \"ping\", \"tls\", \"smacks\", \"register_ibr\" }}\n\
             modules_disabled = {{ \"s2s\", \"offline\" }}\nallow_registration = true\n\
             c2s_require_encryption = {requires_tls}\ndefault_storage = \"memory\"\n\
             ssl = {{ key = \"{key}\", certificate = \"{certificate}\" }}\n\
             c2s_direct_tls_ssl = {{ key = \"{key}\", certificate = \"{certificate}\" }}\n\
             VirtualHost \"localhost\"\n\tauthentication = \"internal_hashed\"\n\
             VirtualHost \"chat.example\"\n\
             Component \"room.localhost\" \"muc\"\n\tmuc_room_locking = false\n"
        );
        let config = folder.write("prosody.cfg.lua", &config);
        let child = Command::new("/usr/bin/prosody")
            .arg("-F")
            .arg("--config")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prosody = Prosody { child, c2s, direct, authority: certificate };
        let mut looks = 0;
        while [c2s, direct].iter().any(|&port| TcpStream::connect(("127.0.0.1", port)).is_err()) {
            looks += 1;
            assert!(looks < LOOKS_MAX, "prosody did not come up");
            std::thread::sleep(LOOK_EVERY);
        }
        Some(prosody)
    }
}

impl Drop for Prosody {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn scenario(target: &str) -> String {
    format!(
        "about: six people on streams\ntarget: {{{target}}}\nprotocol: xmpp\nrooms: [a]\n\
         crowds:\n  people:\n    size: {PEOPLE}\n    features: [register, smacks]\n\
         \x20   accounts: {{name: \"u{{n}}\", password: \"secret of {{n}}\"}}\n\
         \x20   journey: [login, {{join: a}}, {{gate: all}}, {{talk: {{every: 50ms, for: 300ms, \
         bytes: 900}}}}, {{gate: quiet}}, {{wait: 300ms}}, leave]\n\
         timeline: [{{run: people at 50/s}}]\nthresholds: {{lost: 0, errors: 0}}\n"
    )
}

#[test]
fn a_crowd_on_streams_hears_everything_however_they_are_encrypted() {
    let folder = Folder::new("streams");
    let Some(prosody) = Prosody::start(&folder, false) else { return };
    let authority = prosody.authority.as_str();
    let [c2s, direct] = [prosody.c2s, prosody.direct];
    let rows = [
        (format!("url: \"xmpp://localhost:{c2s}\", tls: off"), vec![]),
        (format!("url: \"xmpp://localhost:{c2s}\""), vec!["--ca", authority]),
        (
            format!(
                "url: \"xmpp://127.0.0.1:{c2s}\", domain: localhost, tls: required, sasl: plain"
            ),
            vec!["--ca", authority],
        ),
        (format!("url: \"xmpps://localhost:{direct}\", sasl: scram-sha-1"), vec!["--insecure"]),
    ];
    for (target, trust) in rows {
        let folder = Folder::new("streams-run");
        // Counts are exact also where the machine is too busy for latencies.
        let answer = folder.run(&scenario(&target), &trust);
        let summary = answer.summary();
        assert_eq!(summary.status, Status::Finished, "{target}: {}", answer.stderr);
        assert_eq!(summary.errors, [], "{target}");
        assert_eq!(summary.people.entered, PEOPLE, "{target}");
        let owed = PEOPLE * PEOPLE * 5;
        assert_eq!((summary.ledger.owed, summary.ledger.lost), (owed, 0), "{target}");
        let register = summary.measures.iter().find(|row| row.name == "register").unwrap();
        assert_eq!((register.done, register.failed), (PEOPLE, 0), "{target}");
    }
}

/// Everybody loses the connection in the middle of what the others say, and misses nothing.
#[test]
fn lost_connections_are_taken_up_again() {
    let folder = Folder::new("streams-lost");
    let Some(prosody) = Prosody::start(&folder, false) else { return };
    let target = format!("url: \"xmpp://localhost:{}\", tls: off", prosody.c2s);
    let talk = "{talk: {every: 50ms, for: 300ms, bytes: 900}}";
    let scenario =
        scenario(&target).replace(talk, &format!("{talk}, drop, {{wait: 100ms}}, login, {talk}"));
    let answer = folder.run(&scenario, &[]);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
    assert_eq!(summary.errors, []);
    let resume = summary.measures.iter().find(|row| row.name == "resume").unwrap();
    assert_eq!((resume.asked, resume.done), (PEOPLE, PEOPLE));
    let owed = PEOPLE * PEOPLE * 10;
    let ledger = &summary.ledger;
    assert_eq!((ledger.owed, ledger.lost, ledger.duplicate), (owed, 0, 0));
}

#[test]
fn streams_that_cannot_be_trusted_are_faults_of_tls() {
    let folder = Folder::new("streams-refused");
    let Some(prosody) = Prosody::start(&folder, true) else { return };
    let authority = prosody.authority.as_str();
    let [c2s, direct] = [prosody.c2s, prosody.direct];
    let rows = [
        // Nobody vouches for the certificate.
        (format!("url: \"xmpp://localhost:{c2s}\""), vec![]),
        (format!("url: \"xmpps://localhost:{direct}\""), vec![]),
        // It is somebody else's.
        (format!("url: \"xmpp://localhost:{c2s}\", domain: chat.example"), vec!["--ca", authority]),
        // The target insists.
        (format!("url: \"xmpp://localhost:{c2s}\", tls: off"), vec![]),
    ];
    for (target, trust) in rows {
        let folder = Folder::new("streams-refused-run");
        let answer = folder.run(&scenario(&target), &trust);
        assert_eq!(answer.code, Some(3), "{target}: {}", answer.stderr);
        let mut total = model::Interval::default();
        answer.load().seconds.iter().for_each(|second| second.add_to(&mut total));
        let faults = &total.faults[&Measure::Connect];
        assert_eq!(faults.get(&FaultClass::Tls), Some(&PEOPLE), "{target}: {faults:?}");
    }
}
