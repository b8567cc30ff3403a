//! The command line.

use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use server::config as limits;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A performance laboratory for chat servers.
#[derive(Debug, Parser)]
#[command(
    name = "throng",
    version,
    about,
    max_term_width = 100,
    after_help = "Examples:
  throng run scenarios/quickstart.yaml
  throng run scenarios/prosody-cpu.yaml --scale 0.2 --seed 7
  throng run scenarios/quickstart.yaml --set target.codec=json --json
  throng plan scenarios/river-yardstick.yaml
  throng report runs/quickstart-20260131-120000

Exit code: 0 all thresholds kept · 1 a threshold broken · 2 wrong usage or scenario ·
3 could not measure"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// How does it behave under this crowd? Runs a scenario and reports
    Run(RunArgs),
    /// How many people can it hold? Searches for the most at whom all thresholds are kept
    Capacity(CapacityArgs),
    /// Is the new build better? Compares two targets, builds or settings, run by run
    Compare(CompareArgs),
    /// What does each feature cost? Runs a scenario with everything, then without each feature
    Ablate(AblateArgs),
    /// How does the cost grow? Runs a scenario over a range of one or several parameters
    Sweep(SweepArgs),
    /// Prints the resolved plan of a scenario, with its peak rates
    Plan(PlanArgs),
    /// Checks whether a scenario can be run here: descriptors, ports, memory, target
    Check(ScenarioArgs),
    /// Draws the reports of a run directory again
    Report(ReportArgs),
    /// Serves the yardstick: throng's own small chat server
    Serve(Box<ServeArgs>),
    /// Lists the targets that throng can start
    Targets(FolderArgs),
    /// Lists the protocols, with their verbs, features and options
    Protocols,
    /// Prints the JSON Schema of scenario files, for editors
    Schema,
    /// (Started by throng itself.)
    #[command(hide = true)]
    Worker,
}

/// What the variables of the environment begin with that are settings of the yardstick.
const SERVE_PREFIX: &str = "THRONG_SERVE_";

impl Cli {
    /// The grammar: every setting of `serve` is a variable of the environment as well.
    pub(crate) fn grammar() -> clap::Command {
        let variable = |arg: clap::Arg| {
            let name = arg.get_id().as_str().to_uppercase();
            arg.env(format!("{SERVE_PREFIX}{name}")).hide_env(true)
        };
        Cli::command().mut_subcommand("serve", |serve| serve.mut_args(variable))
    }

    /// Reads a command line by a grammar made of [`Cli::grammar`].
    pub(crate) fn read(
        grammar: clap::Command,
        words: impl IntoIterator<Item = OsString>,
    ) -> Result<Cli, clap::Error> {
        let matches = grammar.try_get_matches_from(words)?;
        Cli::from_arg_matches(&matches)
    }
}

/// The variable of the environment whose value an error is about.
pub(crate) fn variable_of(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // As in `--flush-window <DURATION>`.
    let flag = text(ContextKind::InvalidArg)?.split(' ').next()?.strip_prefix("--")?;
    let name = format!("{SERVE_PREFIX}{}", flag.to_uppercase().replace('-', "_"));
    let value = std::env::var(&name).ok()?;
    let invalid = text(ContextKind::InvalidValue)?;
    value.split(',').any(|part| part == invalid).then_some(name)
}

/// What is to be run.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArgs {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Factor for the sizes of all crowds
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub(crate) scale: f64,
    /// Seed of everything random
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Changes a value of the scenario, as in `crowds.people.size=500`
    #[arg(long, value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
}

/// Where targets are found.
#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    /// Folder of the targets [default: `targets` here or beside the scenario's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) targets: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Prints the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How runs are carried out, whatever is run.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// Shows no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Threads that carry people [default: half of the processors]
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<u16>,
    /// Most people in one process [default: what the descriptor limit allows]
    #[arg(long, value_name = "N")]
    pub(crate) people_per_process: Option<u64>,
    /// Believe the certificate authorities in this PEM file, and no others
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<PathBuf>,
    /// Believe every certificate (for tests only)
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Permission to load a host that is neither on loopback nor in a private network
    #[arg(long, value_name = "HOST")]
    pub(crate) i_am_allowed_to_load: Vec<String>,
}

/// How one run or several are carried out, and where they go.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// The folder; an experiment or suite that was interrupted goes on in its own
    /// [default: runs/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Prints the answer or the summary as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "A side is a target (`prosody`), another build of it (`prosody@PROGRAM`), \
knobs (`?codec=json`, `yardstick?codec=json`), or a URL.
With several candidates nothing is judged: each figure is told as a ratio to the base's.

Examples:
  throng compare scenarios/quickstart.yaml --base '?codec=json' --candidate '?codec=proto'
  throng compare scenarios/quickstart.yaml --candidate yardstick@old/throng --tolerate 5%
  throng compare scenarios/quickstart.yaml --aa
  throng compare scenarios/one-crowd.yaml --candidate prosody --candidate ejabberd
  throng compare runs/base-1,runs/base-2,runs/base-3 runs/new-1,runs/new-2,runs/new-3

Exit code: 0 no regression · 1 a regression beyond --tolerate · 2 wrong usage or scenario ·
3 could not be compared")]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Run directories to compare with those given first, separated by commas: nothing is run
    #[arg(value_name = "RUNS", conflicts_with_all = ["base", "candidate", "aa"])]
    pub(crate) runs: Option<String>,
    /// What is compared with [default: the scenario's target]
    #[arg(long, value_name = "TARGET")]
    pub(crate) base: Option<String>,
    /// What is compared [default: the scenario's target]; several are laid side by side
    #[arg(long, value_name = "TARGET", required_unless_present_any = ["aa", "runs"])]
    pub(crate) candidate: Vec<String>,
    /// Both sides are the base: measures the noise
    #[arg(long, conflicts_with = "candidate")]
    pub(crate) aa: bool,
    /// Runs of each side, in the order base, candidate, candidate, base, …
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=100))]
    pub(crate) pairs: u32,
    /// Regressions up to this size do not fail, as in 5%
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = percent)]
    pub(crate) tolerate: f64,
    /// Searches also for how many people each side holds, between these numbers
    #[arg(long, value_name = "LOW..HIGH", value_parser = people)]
    pub(crate) capacity: Option<(u32, u32)>,
    /// Writes the comparison as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A feature is one of the protocol's that the scenario uses (`avatars`), or \
knobs of the target
that take it away (`presence=off`, `presence=off&history=0`).

Examples:
  throng ablate scenarios/quickstart.yaml
  throng ablate scenarios/quickstart.yaml --features history,members,presence=off --rounds 3

Exit code: 0 answered · 2 wrong usage or scenario · 3 could not measure"
)]
pub(crate) struct AblateArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// What is taken away, one after the other [default: all features the scenario uses]
    #[arg(long, value_name = "NAME,KNOB=VALUE", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// Runs of each arm, interleaved
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "A parameter is `people` (all people together), one of the scenario's \
`parameters`, or a path as of --set.

Examples:
  throng sweep scenarios/quickstart.yaml --vary people=50..400:50
  throng sweep scenarios/quickstart.yaml --vary people=40..640*2 --rounds 5
  throng sweep scenarios/quickstart.yaml --vary people=100,200,400 --vary rooms.count=1,2,4

Exit code: 0 answered · 2 wrong usage or scenario · 3 could not measure")]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// A parameter and its values: NAME=1,2,5 or NAME=FROM..TO:STEP or NAME=FROM..TO*FACTOR
    #[arg(long, required = true, value_name = "NAME=VALUES")]
    pub(crate) vary: Vec<String>,
    /// Runs of each value, shuffled in each round
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// How a capacity is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Style {
    /// A fresh run for each number of people: climb, back off, close in, hold, repeat
    Stepped,
    /// One run whose population moves until it settles, in some minutes
    Continuous,
    /// The same with the published parameters of Mattermost's load test; takes hours
    Mattermost,
}

#[derive(Debug, Args)]
#[command(after_help = "The criteria are the thresholds of the scenario.

Examples:
  throng capacity scenarios/quickstart.yaml --people 50..5000
  throng capacity scenarios/quickstart.yaml --people 10..2000 --style continuous

Exit code: 0 answered · 1 not even the fewest hold · 2 wrong usage or scenario ·
3 could not measure")]
pub(crate) struct CapacityArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// The fewest and the most people to try, all crowds together
    #[arg(long, value_name = "LOW..HIGH", value_parser = people)]
    pub(crate) people: (u32, u32),
    /// How it is searched for
    #[arg(long, value_enum, default_value_t = Style::Stepped)]
    pub(crate) style: Style,
    /// Most trials of a stepped search
    #[arg(long, default_value_t = results::capacity::TRIALS_MAX, value_name = "N")]
    pub(crate) trials: u32,
    /// Most minutes of all trials together
    #[arg(long, value_name = "MINUTES")]
    pub(crate) minutes: Option<f64>,
    /// How near the level that holds and the one that does not come, as in 5%
    #[arg(long, default_value = "5%", value_name = "PERCENT", value_parser = percent)]
    pub(crate) resolution: f64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The fewest and the most people: `10..20000`.
fn people(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| text.replace('_', "").parse::<u32>().ok();
    let ends = text.split_once("..").and_then(|(low, high)| Some((number(low)?, number(high)?)));
    match ends {
        Some((low, high)) if 0 < low && low < high => Ok((low, high)),
        Some(_) => Err("the fewest must be at least 1, and below the most".to_owned()),
        None => Err(format!("`{text}` is no range of people; write it as 10..20000")),
    }
}

/// A percentage as a fraction.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>();
    let share = number.map_err(|_| format!("`{text}` is no percentage; write it as 5%"))? / 100.0;
    match (0.0..=10.0).contains(&share) {
        true => Ok(share),
        false => Err("it must be between 0% and 1000%".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run directories
    #[arg(required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Prints the summary as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// The settings of the yardstick, and the only table of them: each flag is a key of the file of
/// `--config` and a variable of the environment as well.
#[derive(Debug, Args)]
#[command(after_help = "Each setting can also be a line of the file, as in `flush-window: 20ms`, \
or a variable of the
environment, as in THRONG_SERVE_FLUSH_WINDOW=20ms. A flag goes before the environment, the
environment before the file.

Examples:
  throng serve --data chat
  throng serve --config chat.yaml --log json
  throng serve --listen 0.0.0.0:4000 --expose --data chat --tls-cert cert.pem --tls-key key.pem")]
pub(crate) struct ServeArgs {
    /// Reads settings from this YAML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:4000", value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// Allows an address that other machines can reach
    #[arg(long)]
    pub(crate) expose: bool,
    /// Encrypts (wss://): the server's certificate and those that vouch for it, as PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM; both files are read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Lets pages of this address connect, as in `https://chat.example`; may be repeated
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub(crate) origin: Vec<server::Origin>,
    /// Keeps accounts and messages in this folder; made if there is none
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Keeps nothing: accounts and messages end with the server
    #[arg(long, conflicts_with = "data")]
    pub(crate) ephemeral: bool,
    /// When what is said is stored, and then answered: message (each by itself), group (what came
    /// during the last commit), late (not synced: survives the process, not the power), off (never)
    #[arg(long, default_value = "group")]
    pub(crate) commit: server::Commit,
    /// What a password costs to check: off, low, standard (Argon2id as recommended; the default
    /// where things are kept)
    #[arg(long, value_name = "COST")]
    pub(crate) hash_cost: Option<server::HashCost>,
    /// Whether the first login of a name makes an account of it: on, off
    #[arg(long, default_value = "on", action = ArgAction::Set, value_parser = on_or_off)]
    pub(crate) registration: bool,
    /// Whether the page is served on which people can talk: on, off
    #[arg(long, default_value = "on", action = ArgAction::Set, value_parser = on_or_off)]
    pub(crate) page: bool,
    /// Copies what is kept into this file and ends; a server may be using it meanwhile
    #[arg(long, value_name = "FILE")]
    pub(crate) backup: Option<PathBuf>,
    /// Is one of several servers that form one, over this NATS server: nats://… or tls://…
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// How it proves to the NATS server who it is: user and password, token, or what nsc writes;
    /// otherwise by NATS_USER and NATS_PASSWORD, or NATS_TOKEN, if they are set
    #[arg(long, value_name = "FILE")]
    pub(crate) nats_credentials: Option<PathBuf>,
    /// The name that the servers of one service share
    #[arg(long, default_value = "yardstick", value_name = "NAME")]
    pub(crate) nats_service: String,
    /// How many event loops share the work, each in a thread of its own
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) shards: usize,
    /// Starts so many servers behind one port, each with a folder of its own in the data folder
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Shares its port with others that do so
    #[arg(long, hide = true)]
    pub(crate) share_port: bool,
    /// Messages a room remembers
    #[arg(long, default_value_t = 100)]
    pub(crate) history: usize,
    /// How arrivals and departures are announced: eager, batched, off
    #[arg(long, default_value = "batched")]
    pub(crate) presence: server::Presence,
    /// Longest time a loaded server collects messages for one write; an idle one sends at once
    #[arg(long, default_value = "20ms", value_name = "DURATION", value_parser = duration)]
    pub(crate) flush_window: Duration,
    /// How often a frame for a room is encoded: once, receiver (anew for each, as naive servers do)
    #[arg(long, default_value = "once")]
    pub(crate) encode: server::Encode,
    /// How flushes reach the kernel: epoll (a system call for each write), uring (for many; fails
    /// where there is no io_uring), auto (uring where there is one)
    #[arg(long, default_value = "auto")]
    pub(crate) io: server::Io,
    /// What one write to a member carries: turn (all there is), message (one, at once)
    #[arg(long, default_value = "turn")]
    pub(crate) flush: server::Flush,
    /// Whether clients that ask for compressed messages get them: off, on
    #[arg(long, default_value = "off", action = ArgAction::Set, value_parser = on_or_off)]
    pub(crate) deflate: bool,
    /// How people see each other's pictures: eager (pushed), lazy (asked for by hash), off
    #[arg(long, default_value = "lazy")]
    pub(crate) avatars: server::Avatars,
    /// Size of each picture
    #[arg(long, default_value_t = limits::AVATAR_BYTES, value_name = "BYTES")]
    pub(crate) avatar_bytes: usize,
    /// Most deliveries in a second; what is beyond waits (0: no limit)
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) deliveries_per_second: u64,
    /// Processor time to burn for each message, as in `20us`
    #[arg(long, default_value = "0us", value_name = "DURATION", value_parser = duration)]
    pub(crate) cpu_per_message: Duration,
    /// Processor time to burn for each delivery of a message
    #[arg(long, default_value = "0us", value_name = "DURATION", value_parser = duration)]
    pub(crate) cpu_per_delivery: Duration,
    /// Most connections
    #[arg(long, default_value_t = limits::CONNECTIONS_MAX, value_name = "N")]
    pub(crate) connections: usize,
    /// Most connections from one address (0: no limit)
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) connections_per_address: u32,
    /// Most requests of one connection in a second, that many at once (0: no limit)
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) requests_per_second: u32,
    /// Wrong passwords for one name in a minute (0: no limit)
    #[arg(long, default_value_t = limits::LOGIN_FAILURES, value_name = "N")]
    pub(crate) login_failures: u32,
    /// Wrong passwords from one address in a minute (0: no limit)
    #[arg(long, default_value_t = limits::LOGIN_FAILURES_PER_ADDRESS, value_name = "N")]
    pub(crate) login_failures_per_address: u32,
    /// What it tells on stderr: off, text, json (an object in each line)
    #[arg(long, default_value = "text")]
    pub(crate) log: server::LogForm,
    /// The processor on which the event loop runs, from 0; none: whichever is free
    #[arg(long, default_value = "none", value_name = "CPU")]
    pub(crate) pin: server::Pin,
    /// Faults to commit on purpose, as in `drop=0.01,duplicate=0.01,seed=7`
    #[arg(long, value_name = "RULES")]
    pub(crate) fault: Option<server::fault::Rules>,
    /// Where to write the faults that were committed
    #[arg(long, value_name = "FILE")]
    pub(crate) fault_log: Option<PathBuf>,
}

fn on_or_off(word: &str) -> Result<bool, String> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("it is on or off, not {word:?}")),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", NS_PER_S)];
    const NS_PER_S: u64 = 1_000_000_000;
    let found = UNITS.iter().find_map(|(unit, ns)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(*ns)
    });
    let help = || format!("{text} is no duration; write it as 20us, 20ms or 1s");
    found.map(Duration::from_nanos).ok_or_else(help)
}
