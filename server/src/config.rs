//! What can be set, and every limit by its name.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use protocols::wire::origin::Origin;

use crate::access::password::Cost;
use crate::bus::BusConfig;
use crate::faults::fault::Rules;
use crate::machine::sys;
use crate::machine::tls::Keys;
use crate::outlook::journal::LogForm;

/// Connections one process holds when it is not told otherwise; the descriptor limit may lower it.
pub const CONNECTIONS_MAX: usize = 19_900;
/// Descriptors kept back for the listener, the poller, files and the host program.
pub const DESCRIPTORS_RESERVED: usize = 64;
/// Longest name of a person, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Longest password, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 128;
/// Longest name of a room, in bytes.
pub const ROOM_BYTES_MAX: usize = 64;
/// Longest status, in bytes.
pub const STATUS_BYTES_MAX: usize = 256;
/// Longest text of a message, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;
/// Longest key of what is said, in bytes.
pub const KEY_BYTES_MAX: usize = 64;
/// Longest reaction, in bytes.
pub const REACTION_BYTES_MAX: usize = 32;
/// Different reactions to one message.
pub const REACTIONS_MAX: usize = 16;
/// People who react to one message in the same way.
pub const REACTION_NAMES_MAX: usize = 500;
/// Read markers of one room.
pub const MARKS_PER_ROOM_MAX: usize = 20_000;
/// Read markers of all rooms together.
pub const MARKS_MAX: usize = 1_000_000;
/// Read markers that are written in one transaction.
pub const MARKS_PER_WRITE_MAX: usize = 1_000;
/// How long read markers collect before they are written.
pub const MARKS_WRITE_EVERY: Duration = Duration::from_secs(1);
/// Rooms one connection can be in.
pub const ROOMS_PER_PERSON_MAX: usize = 256;
/// Rooms a server has.
pub const ROOMS_MAX: usize = 10_000;
/// Rooms in one answer.
pub const ROOMS_PAGE_MAX: usize = 1_000;
/// Roles in one room; they come in one answer.
pub const ROLES_MAX: usize = 20_000;
/// Roles in all rooms together.
pub const ROLES_TOTAL_MAX: usize = 1_000_000;
/// Longest time that slow mode asks to wait.
pub const SLOW_TIME_MAX: Duration = Duration::from_secs(6 * 3600);
/// People of one room whose last message is remembered for slow mode; beyond it those are forgotten
/// who spoke earliest.
pub const SPEAKERS_MAX: usize = 4_096;
/// Accounts a server has.
pub const ACCOUNTS_MAX: usize = 1_000_000;
/// Messages in one answer.
pub const PAGE_MESSAGES_MAX: usize = 1_000;
/// Texts and reactions in one page of messages, in bytes; beyond it fewer messages are given.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// People who are told something by one request.
pub const TELL_NAMES_MAX: usize = 1_000;
/// Keys of direct messages that are remembered where nothing is kept; beyond it the oldest are
/// forgotten.
pub const TELL_KEYS_MAX: usize = 65_536;
/// Direct messages of each person that are in memory.
pub const INBOX_MESSAGES_MAX: usize = 1_000;
/// Memory for the direct messages of everybody together, in bytes; beyond it an inbox forgets its
/// oldest.
pub const INBOX_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Memory for the history of all rooms together, in bytes; beyond it a room forgets its oldest.
pub const HISTORY_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Unsent answers of one connection, in bytes; beyond it the connection is a slow consumer.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Unflushed bytes of a room that end its waiting for a fuller flush.
pub const FLUSH_BYTES_MAX: usize = 256 * 1024;
/// Arrivals and departures in one presence frame.
pub const PRESENCE_EVENTS_MAX: usize = 256;
/// Size of a picture unless another is asked for: a photo of the published experiment, in bytes.
pub const AVATAR_BYTES: usize = 6_900;
/// Largest picture, in bytes.
pub const AVATAR_BYTES_MAX: usize = 64 * 1024;
/// Pictures in one answer, in bytes; what is beyond it is left to be asked for.
pub const AVATARS_ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Pictures in one presence frame, in bytes; what is beyond it takes a further frame.
pub const PRESENCE_AVATAR_BYTES_MAX: usize = 1024 * 1024;
/// Most processor time that can be burnt on purpose for one message or delivery.
pub const BURN_TIME_MAX: Duration = Duration::from_secs(1);
/// A connection that has not finished its HTTP head by then is closed.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a connection that was told goodbye may take to hang up.
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a server that is to stop may take to answer and store what it has taken.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(3);
/// Requests that wait for the store; beyond it they are refused.
pub const STORE_JOBS_MAX: usize = 16_384;
/// Memory of the requests that wait for the store, in bytes; beyond it they are refused.
pub const STORE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Pages of the past that wait to be looked up; beyond it they are refused.
pub const STORE_PAGES_MAX: usize = 64;
/// Passwords that wait to be hashed; beyond it logins are refused.
pub const LOGIN_JOBS_MAX: usize = 512;
/// Most threads that hash passwords; one processor is always left to the event loop.
pub const LOGIN_THREADS_MAX: usize = 8;
/// Wrong passwords for one name in a minute, unless it is told otherwise.
pub const LOGIN_FAILURES: u32 = 10;
/// Wrong passwords from one address in a minute, unless it is told otherwise.
pub const LOGIN_FAILURES_PER_ADDRESS: u32 = 100;
/// Names, and as many addresses, whose wrong passwords are remembered.
pub const TRIES_MAX: usize = 8_192;
/// Encrypted bytes of one connection that wait to be sent; beyond them nothing more is taken.
pub const TLS_WAITING_BYTES_MAX: usize = 32 * 1024;
/// Lines of the log that wait to be written; beyond them they are dropped and counted.
pub const LOG_LINES_MAX: usize = 1_024;
/// Lines of one kind of event in a second; beyond them they are counted only.
pub const LOG_LINES_PER_SECOND: u32 = 10;
/// Longest value in a line of the log, in bytes.
pub const LOG_FIELD_BYTES_MAX: usize = 256;
/// Tokens that are revoked and have not ended.
pub const REVOKED_MAX: usize = 1_000_000;
/// Event loops of one server.
pub const SHARDS_MAX: usize = 64;
/// Bytes of wants in one entry of the log that several nodes share, if it is more than one want.
pub const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Entries of the log that one node has under way; what comes meanwhile goes into the next one.
pub const BATCHES_OPEN_MAX: usize = 4;
/// Entries of the log that wait to be carried out; beyond it a node takes no more of them for now.
pub const LOG_WAITING_MAX: usize = 4_096;
/// How long an entry may take to come back before it is said again.
pub const LOG_PATIENCE: Duration = Duration::from_secs(2);
/// From one sign of life of a node to the next.
pub const NODE_BEAT: Duration = Duration::from_secs(1);
/// A node that is silent for so long is lost: its people have left.
pub const NODE_SILENCE_MAX: Duration = Duration::from_secs(3);
/// Nodes of one service.
pub const NODES_MAX: usize = 64;
/// News in one message to the other nodes, in bytes, if it is more than one piece.
pub const NEWS_BYTES_MAX: usize = 128 * 1024;

/// When arrivals and departures are announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A frame for each, at once.
    Eager,
    /// One frame for all of a flush.
    Batched,
    /// Not at all.
    Off,
}

impl Presence {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Presence::Eager => "eager",
            Presence::Batched => "batched",
            Presence::Off => "off",
        }
    }
}

impl FromStr for Presence {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [Presence::Eager, Presence::Batched, Presence::Off];
        let found = all.into_iter().find(|presence| presence.word() == word);
        found.ok_or_else(|| format!("presence is eager, batched or off, not {word:?}"))
    }
}

/// How people get to see each other's pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Avatars {
    /// The picture comes with everybody who is listed or announced.
    Eager,
    /// A hash comes, and the picture is to be asked for.
    Lazy,
    /// Nobody has a picture.
    Off,
}

impl Avatars {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Avatars::Eager => "eager",
            Avatars::Lazy => "lazy",
            Avatars::Off => "off",
        }
    }
}

impl FromStr for Avatars {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [Avatars::Eager, Avatars::Lazy, Avatars::Off];
        let found = all.into_iter().find(|avatars| avatars.word() == word);
        found.ok_or_else(|| format!("avatars are eager, lazy or off, not {word:?}"))
    }
}

/// When what is said is stored, and so answered and heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// Each by itself, synced to the disk.
    Message,
    /// All that came while the last commit ran, synced to the disk.
    Group,
    /// As `Group`, but not synced: it survives the end of the process, not of the power.
    Late,
    /// Never: nothing outlives the process.
    Off,
}

impl Commit {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Commit::Message => "message",
            Commit::Group => "group",
            Commit::Late => "late",
            Commit::Off => "off",
        }
    }
}

impl FromStr for Commit {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [Commit::Message, Commit::Group, Commit::Late, Commit::Off];
        let found = all.into_iter().find(|commit| commit.word() == word);
        found.ok_or_else(|| format!("commits are message, group, late or off, not {word:?}"))
    }
}

/// How often a frame that a room hears is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encode {
    /// Once for each dialect that is spoken in the room.
    Once,
    /// Anew for each receiver, as naive servers do.
    Receiver,
}

impl Encode {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Encode::Once => "once",
            Encode::Receiver => "receiver",
        }
    }
}

impl FromStr for Encode {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = [Encode::Once, Encode::Receiver].into_iter().find(|it| it.word() == word);
        found.ok_or_else(|| format!("frames are encoded once or for each receiver, not {word:?}"))
    }
}

/// What one write carries to a member of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// All that a turn of the loop, or the flush window, has brought.
    Turn,
    /// One message, at once, as naive servers do.
    Message,
}

impl Flush {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Flush::Turn => "turn",
            Flush::Message => "message",
        }
    }
}

impl FromStr for Flush {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = [Flush::Turn, Flush::Message].into_iter().find(|it| it.word() == word);
        found.ok_or_else(|| format!("a flush is for a turn or for a message, not {word:?}"))
    }
}

/// How the writes of a flush reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// One system call each.
    Epoll,
    /// Many in one system call, by io_uring; an error where there is none.
    Uring,
    /// By io_uring where there is one.
    Auto,
}

impl Io {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Io::Epoll => "epoll",
            Io::Uring => "uring",
            Io::Auto => "auto",
        }
    }
}

impl FromStr for Io {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = [Io::Epoll, Io::Uring, Io::Auto].into_iter().find(|io| io.word() == word);
        found.ok_or_else(|| format!("writes go by epoll, uring or auto, not {word:?}"))
    }
}

/// What a password costs to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashCost {
    /// A keyed hash on the event loop: no protection of stored passwords.
    Off,
    /// Argon2id with 1 MiB and 1 pass, for load: about a millisecond.
    Low,
    /// Argon2id with 19 MiB and 2 passes, as OWASP recommends.
    Standard,
}

impl HashCost {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            HashCost::Off => "off",
            HashCost::Low => "low",
            HashCost::Standard => "standard",
        }
    }

    pub(crate) fn cost(self) -> Option<Cost> {
        match self {
            HashCost::Off => None,
            HashCost::Low => Some(Cost { memory_kib: 1024, passes: 1 }),
            HashCost::Standard => Some(Cost { memory_kib: 19 * 1024, passes: 2 }),
        }
    }
}

impl FromStr for HashCost {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let all = [HashCost::Off, HashCost::Low, HashCost::Standard];
        let found = all.into_iter().find(|cost| cost.word() == word);
        found.ok_or_else(|| format!("a hash cost is off, low or standard, not {word:?}"))
    }
}

/// On which processor the event loop runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pin(pub Option<usize>);

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(processor) => write!(f, "{processor}"),
            None => f.write_str("none"),
        }
    }
}

impl FromStr for Pin {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "none" => Ok(Pin(None)),
            _ => {
                let number = word.parse().ok().filter(|number| *number < sys::PROCESSORS_MAX);
                let help = || format!("a processor is a number from 0, or none, not {word:?}");
                number.map(|number| Pin(Some(number))).ok_or_else(help)
            }
        }
    }
}

/// All knobs of a yardstick.
#[derive(Debug, Clone)]
pub struct Config {
    /// Connections held at once; further ones are refused and counted.
    pub connections_max: usize,
    /// Messages a room remembers.
    pub history: usize,
    /// When arrivals and departures are announced.
    pub presence: Presence,
    /// The most that batching may add to a delivery: how long a room of a busy server collects.
    pub flush_window: Duration,
    /// How often a frame that a room hears is encoded.
    pub encode: Encode,
    /// What one write carries to a member of a room.
    pub flush: Flush,
    /// How the writes of a flush reach the kernel.
    pub io: Io,
    /// Whether clients that ask for compression get it.
    pub deflate: bool,
    /// How people get to see each other's pictures.
    pub avatars: Avatars,
    /// Size of each picture, in bytes.
    pub avatar_bytes: usize,
    /// Deliveries handed out in a second at most; 0 is no limit.
    pub deliveries_per_second: u64,
    /// Processor time burnt for each message taken.
    pub cpu_per_message: Duration,
    /// Processor time burnt for each delivery of a message.
    pub cpu_per_delivery: Duration,
    /// How far a blocked consumer may fall behind in one room, in bytes, before it is cut off.
    pub lag_bytes_max: usize,
    /// How long a socket may take nothing before its connection is cut off.
    pub unwritable_max: Duration,
    /// Whether the first login of a name makes an account of it.
    pub registration: bool,
    /// Whether the page for people is served.
    pub page: bool,
    /// How long a token is good.
    pub token_lifetime: Duration,
    /// The folder in which accounts and messages are kept; without one nothing is.
    pub data: Option<PathBuf>,
    /// When what is said is stored; matters with `data` only.
    pub commit: Commit,
    /// What a password costs to check.
    pub hash_cost: HashCost,
    /// How many event loops share the work, each with its own core and thread.
    pub shards: usize,
    /// What joins it to other servers; without it, it is alone.
    pub bus: Option<BusConfig>,
    /// The certificate; without one nothing is encrypted.
    pub tls: Option<Keys>,
    /// Pages from elsewhere that may connect.
    pub origins: Vec<Origin>,
    /// Connections from one address at once; 0 is no limit.
    pub connections_per_address: u32,
    /// Requests of one connection in a second; 0 is no limit.
    pub requests_per_second: u32,
    /// Wrong passwords for one name in a minute; 0 is no limit.
    pub login_failures: u32,
    /// Wrong passwords from one address in a minute; 0 is no limit.
    pub login_failures_per_address: u32,
    /// What is told on stderr.
    pub log: LogForm,
    /// On which processor the event loop runs.
    pub pin: Pin,
    /// Faults to commit on purpose.
    pub faults: Rules,
    /// Where to write the faults that were committed, one JSON line each.
    pub fault_file: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            connections_max: CONNECTIONS_MAX,
            history: 100,
            presence: Presence::Batched,
            flush_window: Duration::from_millis(20),
            encode: Encode::Once,
            flush: Flush::Turn,
            io: Io::Auto,
            deflate: false,
            avatars: Avatars::Lazy,
            avatar_bytes: AVATAR_BYTES,
            deliveries_per_second: 0,
            cpu_per_message: Duration::ZERO,
            cpu_per_delivery: Duration::ZERO,
            lag_bytes_max: 4 * 1024 * 1024,
            unwritable_max: Duration::from_secs(30),
            registration: true,
            page: true,
            token_lifetime: Duration::from_secs(24 * 3600),
            data: None,
            commit: Commit::Group,
            hash_cost: HashCost::Off,
            shards: 1,
            bus: None,
            tls: None,
            origins: Vec::new(),
            connections_per_address: 0,
            requests_per_second: 0,
            login_failures: LOGIN_FAILURES,
            login_failures_per_address: LOGIN_FAILURES_PER_ADDRESS,
            log: LogForm::Off,
            pin: Pin(None),
            faults: Rules::default(),
            fault_file: None,
        }
    }
}

impl Config {
    /// Refuses knobs beyond their limits, and those that do not go together.
    pub fn check(&self) -> Result<(), String> {
        if self.avatar_bytes == 0 || self.avatar_bytes > AVATAR_BYTES_MAX {
            return Err(format!("a picture has 1 to {AVATAR_BYTES_MAX} bytes"));
        }
        if self.cpu_per_message.max(self.cpu_per_delivery) > BURN_TIME_MAX {
            return Err(format!(
                "at most {BURN_TIME_MAX:?} of processor time can be burnt at once"
            ));
        }
        if self.deliveries_per_second > 0 && self.faults.touch_receivers() {
            return Err("deliveries are either limited or subject to faults, not both".to_owned());
        }
        if self.shards == 0 || self.shards > SHARDS_MAX {
            return Err(format!("there can be 1 to {SHARDS_MAX} shards"));
        }
        let is_shaped = self.deliveries_per_second > 0 || self.faults != Rules::default();
        if self.shards > 1 && (is_shaped || self.bus.is_some()) {
            let why = "a server of several shards commits no faults, has no throttle, and is alone";
            return Err(why.to_owned());
        }
        if self.bus.is_some() && self.folder().is_none() {
            return Err("a node of several needs a data folder".to_owned());
        }
        let is_naive = self.encode == Encode::Receiver || self.flush == Flush::Message;
        if is_naive && self.faults.touch_receivers() {
            return Err(
                "what each receiver costs is either a knob or subject to faults, not both: \
                        encode once and flush a turn"
                    .to_owned(),
            );
        }
        if !self.registration && self.folder().is_none() {
            return Err("without registration only a data folder can have accounts".to_owned());
        }
        if let Some(processor) = self.pin.0 {
            let all = sys::processors();
            if !all.contains(&processor) {
                let all: Vec<String> = all.iter().map(usize::to_string).collect();
                let all = all.join(", ");
                return Err(format!("there is no processor {processor}; this process has {all}"));
            }
        }
        Ok(())
    }

    /// Where things are kept, if they are.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.data.as_deref().filter(|_| self.commit != Commit::Off)
    }
}

/// Refuses an address that others can reach, unless that is wanted: accounts here are open to all.
pub fn check_exposure(address: SocketAddr, exposed_is_fine: bool) -> Result<(), String> {
    if address.ip().is_loopback() || exposed_is_fine {
        return Ok(());
    }
    Err(format!(
        "{address} can be reached from other machines, and this server lets anybody register; \
         bind a loopback address, or say that you mean it"
    ))
}

#[cfg(test)]
mod tests;
