//! The clients that are compared: how each is started, and how it tells what it received.

use crate::process::Process;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longest a person of throng stays.
const STAY: &str = "11h";
/// People of throng who arrive in a second.
const ARRIVALS: usize = 2_000;

/// A client that receives what the burst server writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Floor,
    Throng,
    Gws,
    Ws,
    K6,
}

impl Client {
    /// All of them; the floor, then throng, then its peers.
    pub(crate) const ALL: [Client; 5] =
        [Client::Floor, Client::Throng, Client::Gws, Client::Ws, Client::K6];

    /// The client of that short name.
    pub(crate) fn named(name: &str) -> Option<Client> {
        let names = ["floor", "throng", "gws", "ws", "k6"];
        names.iter().position(|known| *known == name).map(|at| Client::ALL[at])
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Client::Floor => "floor (bare epoll)",
            Client::Throng => "throng",
            Client::Gws => "Go gws",
            Client::Ws => "Node ws",
            Client::K6 => "k6/websockets",
        }
    }

    /// The command that connects `count` times to `address`.
    pub(crate) fn command(self, address: &str, count: usize) -> io::Result<Vec<String>> {
        let url = format!("ws://{address}/ws");
        let peers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers");
        let built = built();
        let count_text = count.to_string();
        let program = |path: &Path| path.display().to_string();
        Ok(match self {
            Client::Floor => {
                let exe = std::env::current_exe()?;
                vec![program(&exe), "floor".into(), address.into(), count_text]
            }
            Client::Throng => throng(&scenario(&url, count)?),
            Client::Gws => vec![program(&built.join("gws")), url, count_text],
            Client::Ws => {
                vec!["node".into(), program(&peers.join("ws/receive.js")), url, count_text]
            }
            Client::K6 => {
                let (url, count) = (format!("URL={url}"), format!("COUNT={count}"));
                let words = ["run", "--quiet", "--no-usage-report", "--address", "", "-e", &url];
                let mut command = vec![program(&built.join("k6"))];
                command.extend(words.map(str::to_owned));
                command.extend(["-e".into(), count, program(&peers.join("k6/receive.js"))]);
                command
            }
        })
    }

    /// How many messages it says it received. Its connections are closed already.
    pub(crate) fn received(self, process: &mut Process) -> io::Result<u64> {
        let said = process.hear_all()?;
        match self {
            Client::Throng => {
                let summary: serde_json::Value = serde_json::from_str(&said)?;
                let ledger = &summary["ledger"];
                let count = |key: &str| ledger[key].as_u64().unwrap_or(0);
                Ok(count("received"))
            }
            _ => said.trim().parse().map_err(io::Error::other),
        }
    }
}

/// Where `benches/run` puts what it builds.
pub(crate) fn built() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/benches")
}

/// The command that runs a scenario with the binary beside this one.
pub(crate) fn throng(scenario: &Path) -> Vec<String> {
    let exe = std::env::current_exe().unwrap_or_default().with_file_name("throng");
    let out = scenario.with_extension("run");
    // What an earlier run left would be refused.
    let _ = fs::remove_dir_all(&out);
    let words = ["run", "--quiet", "--json", "--out"].map(str::to_owned);
    let mut command = vec![exe.display().to_string()];
    command.extend(words);
    command.extend([out.display().to_string(), scenario.display().to_string()]);
    command
}

/// A scenario in which `count` people enter one room; the last one says something, which is what
/// the server says from then on.
fn scenario(url: &str, count: usize) -> io::Result<PathBuf> {
    let text = format!(
        "about: Everybody listens\n\
         target: {{url: \"{url}\", codec: json}}\n\
         protocol: yardstick\n\
         rooms: [live]\n\
         crowds:\n\
         \x20 people: {{size: {people}, journey: [login, join: live, wait: {STAY}]}}\n\
         \x20 speaker: {{size: 1, journey: [login, join: live, say: live, wait: {STAY}]}}\n\
         timeline:\n\
         \x20 - run: people at {ARRIVALS}/s\n\
         \x20 - run: speaker at once\n",
        people = count - 1,
    );
    write_scenario(&format!("listen-{count}"), &text)
}

/// Writes a scenario where the benchmarks keep theirs.
pub(crate) fn write_scenario(name: &str, text: &str) -> io::Result<PathBuf> {
    let path = built().join(format!("{name}.yaml"));
    fs::create_dir_all(built())?;
    fs::write(&path, text)?;
    Ok(path)
}
