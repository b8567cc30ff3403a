//! Several yardsticks that are one service over Debian's NATS server: a node is killed under load,
//! the NATS server is killed under load, and a crowd is dealt out to three nodes.

use crate::durable::{Answered, Client, check};
use crate::rig::{Folder, Started, children, is_alive, read, wait_until};
use protocols::yardstick::{Encoding, Frame, FrameWhat, PATH};
use results::Status;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const NODES: usize = 3;
/// People who talk at each node.
const TALKERS: usize = 2;
/// Messages that are answered before something is killed, and behind it.
const ANSWERS: usize = 300;
const PASSWORD: &str = "only-for-this-test";

/// Where it is, if it is installed. Where tests are run for everybody, it is.
fn nats_server() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = folders.map(|folder| folder.join("nats-server")).find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI needs nats-server");
        eprintln!("skipped: nats-server is not installed (and CI is not set)");
    }
    found
}

/// A NATS server with a password, on a port of its own.
struct Nats {
    program: PathBuf,
    folder: PathBuf,
    port: u16,
    child: Child,
}

impl Nats {
    fn start(folder: &Folder) -> Option<Nats> {
        let program = nats_server()?;
        let secret = folder.write("secret", &format!("user: lab\npassword: {PASSWORD}\n"));
        fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).unwrap();
        let folder = folder.path("nats");
        fs::create_dir(&folder).unwrap();
        // It takes a free port and says in a file which.
        let child = run(&program, &folder, "-1");
        let mut port = 0;
        wait_until("the NATS server says where it is", || {
            let file = folder.join(format!("nats-server_{}.ports", child.id()));
            let text = read(&file);
            let told = text.split_once("127.0.0.1:").map(|(_, rest)| rest);
            let digits = told.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
            port = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
            port != 0
        });
        Some(Nats { program, folder, port, child })
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// `kill -9`, and the same again.
    fn restart(&mut self, meanwhile: impl FnOnce()) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        meanwhile();
        self.child = run(&self.program, &self.folder, &self.port.to_string());
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

fn run(program: &Path, folder: &Path, port: &str) -> Child {
    let text = format!(
        "listen: \"127.0.0.1:{port}\"\nports_file_dir: {folder:?}\n\
         authorization {{ user: lab, password: \"{PASSWORD}\" }}\njetstream {{ store_dir: {folder:?} }}\n"
    );
    let file = folder.join("conf");
    fs::write(&file, text).unwrap();
    let mut command = Command::new(program);
    command.arg("-c").arg(file).stdin(Stdio::null());
    let log = fs::File::create(folder.join("log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// Starts a node; gives its address as well.
fn node(folder: &Folder, nats: &Nats, data: &str, more: &[&str]) -> (Started, String) {
    let url = nats.url();
    let mut words = vec!["serve", "--listen", "127.0.0.1:0", "--data", data, "--hash-cost", "low"];
    words.extend(["--history", "1000"]);
    words.extend(["--nats", &url, "--nats-credentials", "secret"]);
    words.extend(more);
    let server = folder.start(words);
    wait_until("the node listens", || server.stderr().contains(PATH));
    let stderr = server.stderr();
    let (_, rest) = stderr.split_once("ws://").unwrap();
    let address = rest.split('/').next().unwrap().to_owned();
    (server, address)
}

/// A page of a node; empty if there is none.
fn page(address: &str, path: &str) -> String {
    let get = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = get().unwrap_or_default();
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

/// What all who talk share.
struct Crowd {
    addresses: Vec<String>,
    count: AtomicUsize,
    /// Enough is said: who is cut off now does not come back.
    over: AtomicBool,
    answered: Mutex<Answered>,
}

impl Crowd {
    /// Talks at one node; whenever that is gone, at the next one.
    fn talk(&self, number: usize, mut at: usize) {
        let (name, mut token) = (format!("p{number}"), None);
        for life in 0.. {
            let mut client = Client::enter(&self.addresses[at], &name, &mut token);
            let (texts, _) = client.talk(&format!("{name} life {life}"), &self.count);
            let mut answered = self.answered.lock().unwrap();
            for (number, text) in texts {
                assert_eq!(answered.insert(number, text), None, "{number} was given twice");
            }
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            at = (at + 1) % NODES;
        }
    }

    fn wait(&self, answers: usize) {
        let goal = self.count.load(Ordering::SeqCst) + answers;
        wait_until("enough is answered", || self.count.load(Ordering::SeqCst) >= goal);
    }
}

/// Hears everything at one node, and where it is killed goes on at the next, from where it was.
fn listen(addresses: &[String], mut at: usize) -> BTreeMap<u32, String> {
    let (mut heard, mut token) = (BTreeMap::<u32, String>::new(), None);
    loop {
        let mut client = Client::enter(&addresses[at], &format!("listener {at}"), &mut token);
        client.ask("leave", r#"{"room":"live"}"#);
        let mut is_in = false;
        let join = |client: &mut Client, after: u32| {
            let join = format!(r#"{{"room":"live","after":{after},"history":1000}}"#);
            client.ask("join", &join);
        };
        let last = |heard: &BTreeMap<u32, String>| heard.keys().next_back().copied().unwrap_or(0);
        join(&mut client, last(&heard));
        while let Some(json) = client.hear() {
            let is_behind = json.contains(r#""code":"behind""#);
            if json.contains("<close>") {
                return heard;
            }
            if is_behind {
                join(&mut client, last(&heard));
                continue;
            }
            let frame = Frame::decode(Encoding::Json, json.as_bytes()).unwrap();
            let mut told: Vec<(u32, String)> = Vec::new();
            match frame.what {
                Some(FrameWhat::Message(message)) if is_in => {
                    told.push((message.number, message.text.to_string()));
                }
                Some(FrameWhat::Answer(answer)) if json.contains(r#""joined""#) => {
                    is_in = true;
                    let Some(protocols::yardstick::AnswerWhat::Joined(joined)) = answer.what else {
                        panic!("{json}")
                    };
                    let missed = joined.messages.iter().filter(|m| m.number > last(&heard));
                    told.extend(missed.map(|m| (m.number, m.text.to_string())));
                }
                _ => {}
            }
            for (number, text) in told {
                assert_eq!(number, last(&heard) + 1, "once, and in order");
                heard.insert(number, text);
            }
        }
        at = (at + 1) % NODES;
    }
}

/// People talk and listen at three nodes while something is done to them.
fn under_load(
    folder: &Folder,
    addresses: Vec<String>,
    during: impl FnOnce(&Crowd),
    end: impl FnOnce(),
) {
    let crowd = Crowd {
        addresses,
        count: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        answered: Mutex::default(),
    };
    let heard: Vec<BTreeMap<u32, String>> = std::thread::scope(|scope| {
        let crowd = &crowd;
        let talkers: Vec<_> = (0..NODES * TALKERS)
            .map(|number| scope.spawn(move || crowd.talk(number, number % NODES)))
            .collect();
        let listeners: Vec<_> =
            (0..NODES).map(|at| scope.spawn(move || listen(&crowd.addresses, at))).collect();
        during(crowd);
        crowd.over.store(true, Ordering::SeqCst);
        end();
        talkers.into_iter().for_each(|talker| talker.join().unwrap());
        listeners.into_iter().map(|listener| listener.join().unwrap()).collect()
    });
    let answered = crowd.answered.into_inner().unwrap();
    assert!(answered.len() >= 2 * ANSWERS);
    for (at, heard) in heard.iter().enumerate() {
        for (number, text) in heard {
            let known = answered.get(number);
            assert!(known.is_none_or(|known| known == text), "listener {at}: {number}");
        }
        assert!(heard.len() >= ANSWERS, "listener {at} heard {}", heard.len());
    }
    fs::write(folder.path("answered.json"), serde_json::to_vec(&answered).unwrap()).unwrap();
}

/// What was answered is there on all nodes, once; they are started anew on their folders.
fn check_nodes(folder: &Folder, nats: &Nats) {
    let text = fs::read(folder.path("answered.json")).unwrap();
    let answered: Answered = serde_json::from_slice(&text).unwrap();
    let mut first: Option<Answered> = None;
    for at in 0..NODES {
        let (server, address) = node(folder, nats, &format!("data{at}"), &[]);
        let all = Client::enter(&address, "reader", &mut None).everything();
        check(&all, &answered, &format!("node {at}"));
        assert!(first.as_ref().is_none_or(|first| *first == all), "node {at} has the same");
        first = Some(all);
        server.signal(libc::SIGTERM);
        assert_eq!(server.end().code, Some(0));
    }
}

fn start_nodes(folder: &Folder, nats: &Nats) -> (Vec<Started>, Vec<String>) {
    let start = |at: usize| node(folder, nats, &format!("data{at}"), &[]);
    let (nodes, addresses): (Vec<Started>, Vec<String>) = (0..NODES).map(start).unzip();
    wait_until("everybody knows of everybody", || {
        let all = addresses.iter().map(|address| page(address, "/metrics"));
        let told = format!("yardstick_nodes {NODES}\n");
        all.into_iter().all(|metrics| metrics.contains(&told))
    });
    (nodes, addresses)
}

#[test]
fn a_node_that_is_killed_takes_nothing_with_it() {
    let folder = Folder::new("nodes");
    let Some(nats) = Nats::start(&folder) else { return };
    let (mut nodes, addresses) = start_nodes(&folder, &nats);
    let mut rest = nodes.split_off(1);
    let killed = nodes.pop().unwrap();
    let others = addresses[1..].to_vec();
    let during = |crowd: &Crowd| {
        crowd.wait(ANSWERS);
        killed.signal(libc::SIGKILL);
        crowd.wait(ANSWERS);
        wait_until("the node is lost", || {
            let told = format!("yardstick_nodes {}\n", NODES - 1);
            others.iter().all(|address| page(address, "/metrics").contains(&told))
        });
    };
    let end = || rest.iter().for_each(|node| node.signal(libc::SIGTERM));
    under_load(&folder, addresses, during, end);
    assert!(rest.drain(..).all(|node| node.end().code == Some(0)));
    assert_eq!(killed.end().code, None);
    check_nodes(&folder, &nats);
}

#[test]
fn a_nats_server_that_is_killed_takes_nothing_with_it() {
    let folder = Folder::new("nats-killed");
    let Some(mut nats) = Nats::start(&folder) else { return };
    let (mut nodes, addresses) = start_nodes(&folder, &nats);
    let first = addresses[0].clone();
    let during = |crowd: &Crowd| {
        crowd.wait(ANSWERS);
        nats.restart(|| {
            wait_until("a node is unwell", || page(&first, "/healthz").contains("NATS at"));
        });
        wait_until("the node is well again", || page(&first, "/healthz") == "ok\n");
        crowd.wait(ANSWERS);
    };
    let end = || nodes.iter().for_each(|node| node.signal(libc::SIGTERM));
    under_load(&folder, addresses, during, end);
    assert!(nodes.drain(..).all(|node| node.end().code == Some(0)));
    check_nodes(&folder, &nats);
}

#[test]
fn who_may_not_is_told_so() {
    let folder = Folder::new("nats-denied");
    let Some(nats) = Nats::start(&folder) else { return };
    let url = nats.url();
    let serve = |more: &[&str]| {
        let words = ["serve", "--listen", "127.0.0.1:0", "--data", "data"];
        folder.throng(words.iter().chain(more).copied())
    };
    let wrong = folder.write("wrong", "user: lab\npassword: other\n");
    fs::set_permissions(&wrong, fs::Permissions::from_mode(0o600)).unwrap();
    let open = folder.write("open", "token: x\n");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let rows: [(&[&str], &str); 7] = [
        (&["--nats", &url], "Authorization Violation"),
        (&["--nats", &url, "--nats-credentials", "wrong"], "Authorization Violation"),
        (&["--nats", &url, "--nats-credentials", "open"], "chmod 600"),
        (&["--nats", "nats://127.0.0.1:1"], "refused"),
        (&["--nats", "http://127.0.0.1"], "nats://host:4222"),
        (&["--nats", "nats://a:b@127.0.0.1"], "into a file"),
        (&["--workers", "3"], "--workers needs --nats"),
    ];
    for (more, expect) in rows {
        let answer = serve(more);
        assert!(answer.code.is_some_and(|code| code > 1), "{more:?}: {:?}", answer.code);
        assert!(answer.stderr.contains(expect), "{more:?}: {}", answer.stderr);
    }
}

#[test]
fn workers_are_one_behind_one_port_and_who_crashes_comes_back() {
    let folder = Folder::new("serve-workers");
    let Some(nats) = Nats::start(&folder) else { return };
    let (parent, address) = node(&folder, &nats, "data", &["--workers", "3"]);
    let workers = || children(parent.pid);
    wait_until("three workers serve", || {
        page(&address, "/metrics").contains("yardstick_nodes 3\n")
    });
    // The kernel deals connections out: of so many people some are with each.
    let mut people: Vec<Client> =
        (0..24).map(|number| Client::enter(&address, &format!("p{number}"), &mut None)).collect();
    people[0].ask("say", r#"{"room":"live","text":"to all"}"#);
    for person in &mut people {
        while !person.hear().expect("a message").contains(r#""text":"to all""#) {}
    }
    let before = workers();
    assert_eq!(before.len(), 3);
    // SAFETY: a signal to a worker of our own server, which its parent has not waited for.
    unsafe { libc::kill(before[0] as libc::pid_t, libc::SIGKILL) };
    wait_until("there are three again", || {
        let now = workers();
        now.len() == 3 && !now.contains(&before[0]) && now.iter().all(|pid| is_alive(*pid))
    });
    wait_until("the new one serves", || {
        let told = "yardstick_nodes 3\n";
        (0..6).all(|_| page(&address, "/metrics").contains(told))
    });
    let last = workers();
    parent.signal(libc::SIGTERM);
    assert_eq!(parent.end().code, Some(0));
    assert!(!last.into_iter().any(is_alive));
}

#[test]
fn a_crowd_on_three_nodes_hears_everything() {
    if nats_server().is_some() {
        crowd("yardstick-nats");
    }
}

#[test]
fn a_crowd_on_three_shards_hears_everything() {
    for commit in ["off", "late"] {
        crowd(&format!("yardstick?shards=3&commit={commit}"));
    }
}

/// Twenty people in one room, dealt out to three servers that are one, hear each other.
fn crowd(target: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let targets = root.join("targets").display().to_string();
    let folder = Folder::new("nodes-crowd");
    let people = "crowds: {people: {size: 20, journey: [login, join, wait: 1s, \
                  {talk: {every: 200ms, for: 2s}}, wait: 1s, leave]}}";
    let rest = "timeline: [{run: people at 60/s}]\n\
                thresholds: {lost: 0, duplicate: 0, misordered: 0, errors: 0}";
    let scenario = format!("target: {target}\nrooms: [lobby]\n{people}\n{rest}\n");
    // A machine that is too busy to measure is fine: what is owed is owed all the same.
    let answer = folder.run(&scenario, &["--targets", &targets]);
    let summary = answer.summary();
    assert_eq!(summary.status, Status::Finished, "{}", answer.stderr);
    assert_eq!(summary.errors, [], "{target}");
    let ledger = &summary.ledger;
    assert!(ledger.owed > 2_000, "{ledger:?}");
    assert_eq!((ledger.lost, ledger.duplicate, ledger.misordered), (0, 0, 0), "{ledger:?}");
}
