//! The plan: a scenario with everything resolved. Nothing in it is optional or looked up again.

use crate::script::Script;
use crate::{Pacer, PersonId, ProfilePlan, Program, RoomId, Threshold};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a run will do, in full. Two equal plans make the same people do the same things.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// Short name, from the file's; names the run directory.
    pub name: String,
    /// One sentence of prose from the scenario.
    pub about: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Factor by which crowds were scaled.
    pub scale: f64,
    /// What is put under load.
    pub target: TargetRef,
    /// The protocol's name.
    pub protocol: String,
    /// Names of the rooms and, behind them, of the lists; the number of each is its index.
    pub rooms: Vec<String>,
    /// The lists, in order.
    #[serde(default)]
    pub lists: Vec<ListPlan>,
    /// The crowds.
    pub crowds: Vec<Crowd>,
    /// What happens, one after the other.
    pub phases: Vec<Phase>,
    /// Time limits and sizes.
    pub limits: Limits,
    /// What the run must keep.
    pub thresholds: Vec<Threshold>,
    /// What is read beside processes and machine.
    #[serde(default)]
    pub probes: Probes,
    /// The protocol as the scenario describes it, if it does.
    #[serde(default)]
    pub script: Option<Script>,
}

impl Plan {
    /// How many people take part in all phases together.
    pub fn people(&self) -> u32 {
        self.runs().map(|run| run.count).sum()
    }

    /// How many rooms there are, lists not counted: they have the numbers from 0.
    pub fn room_count(&self) -> u32 {
        (self.rooms.len() - self.lists.len()) as u32
    }

    /// The list of that number among the rooms, if it is one.
    pub fn list(&self, room: RoomId) -> Option<&ListPlan> {
        self.lists.get(room.checked_sub(self.room_count())? as usize)
    }

    /// Takes features away from everybody. The error is a feature that nobody uses.
    pub fn without(&mut self, features: &[String]) -> Result<(), String> {
        if let Some(unused) =
            features.iter().find(|&f| !self.crowds.iter().any(|crowd| crowd.features.contains(f)))
        {
            return Err(unused.clone());
        }
        let keep = |feature: &String| !features.contains(feature);
        self.crowds.iter_mut().for_each(|crowd| crowd.features.retain(keep));
        for phase in &mut self.phases {
            if let PhaseKind::Run(run) = &mut phase.kind {
                run.features.retain(keep);
            }
        }
        Ok(())
    }

    /// Makes every population last so many times as long; `false` if none is held, so that the
    /// plan takes the time it takes.
    pub fn lengthen(&mut self, factor: f64) -> bool {
        let mut is_longer = false;
        for phase in &mut self.phases {
            let PhaseKind::Run(RunPhase { hold: Some(hold), .. }) = &mut phase.kind else {
                continue;
            };
            is_longer = true;
            for (_, ns) in &mut hold.steps {
                *ns = (*ns as f64 * factor) as u64;
            }
        }
        is_longer
    }

    /// The phases that bring people, in order.
    pub fn runs(&self) -> impl Iterator<Item = &RunPhase> {
        self.phases.iter().filter_map(|phase| match &phase.kind {
            PhaseKind::Run(run) => Some(run),
            _ => None,
        })
    }
}

/// What is put under load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TargetRef {
    /// A folder in `targets/`, `yardstick` (embedded), or a URL.
    pub name: String,
    /// Knobs of the target and options of its protocol.
    pub options: BTreeMap<String, String>,
}

/// People who are written to one by one, by the names of their accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ListPlan {
    /// Indices of the crowds whose accounts are meant, in order.
    pub of: Vec<u32>,
    /// How many of these accounts are left out from the start.
    pub skip: u32,
    /// How many of those that follow are on it, if there are as many.
    pub take: u32,
    /// Whether the target makes them each other's contacts.
    pub is_roster: bool,
}

/// People of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Crowd {
    /// Its name.
    pub name: String,
    /// How many people one run of it brings (already scaled).
    pub size: u32,
    /// Names of the protocol's features that its people use.
    pub features: Vec<String>,
    /// Who they log in as.
    pub accounts: Accounts,
    /// What they do.
    pub program: Program,
}

/// Who people log in as. The `n` of a pattern is the person's index in the crowd plus `first`,
/// modulo `count`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accounts {
    /// `{n}` in the patterns is replaced by a number.
    Pattern {
        /// Account name, as in `user{n}`.
        name: String,
        /// Password, as in `user{n}`; may be empty.
        password: Secret,
        /// The first number.
        first: u32,
        /// How many accounts there are.
        count: u32,
    },
    /// A CSV file with the columns `name` and `password`, read when the run starts.
    File {
        /// Path of the file.
        path: String,
    },
}

/// A password, or where to find it. Only test data is written in a scenario itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secret {
    /// A pattern of test data.
    Pattern(String),
    /// The environment variable that holds it.
    Env(String),
    /// The file whose first line holds it.
    File(String),
}

/// One step of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Phase {
    /// Its name, unique in the plan.
    pub name: String,
    /// What happens.
    pub kind: PhaseKind,
    /// The profiles taken meanwhile.
    #[serde(default)]
    pub profiles: Vec<ProfilePlan>,
}

/// What happens in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// A crowd arrives.
    Run(RunPhase),
    /// Nobody new arrives for a while.
    Rest {
        /// How long, nanoseconds.
        ns: u64,
    },
    /// A named instant in the charts.
    Mark,
}

/// A crowd arrives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunPhase {
    /// Index of the crowd.
    pub crowd: u32,
    /// The first person; the others follow without gaps.
    pub first: PersonId,
    /// How many people arrive.
    pub count: u32,
    /// When.
    pub pacer: Pacer,
    /// The features they use: the crowd's, less those switched off here.
    pub features: Vec<String>,
    /// What ends the phase.
    pub until: Until,
    /// Longest time from the last arrival to the end, nanoseconds.
    pub deadline_ns: u64,
    /// Marks to set when the first person enters a stage: stage name to mark name.
    pub marks: BTreeMap<String, String>,
    /// A population that is held instead of so many arrivals: `count` is then the most people at
    /// a time, and `pacer` says how fast people come and go.
    #[serde(default)]
    pub hold: Option<Hold>,
}

impl RunPhase {
    /// How many accounts its people need so that nobody logs in as somebody who is just leaving.
    pub fn accounts(&self) -> u32 {
        match self.hold {
            Some(_) => self.count.saturating_mul(2),
            None => self.count,
        }
    }
}

/// A closed population: so many people are there, and who goes is replaced by somebody new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hold {
    /// How many people, and for how long (nanoseconds), one after the other.
    pub steps: Vec<(u32, u64)>,
}

impl Hold {
    /// How long all steps take, nanoseconds.
    pub fn ns(&self) -> u64 {
        self.steps.iter().fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }

    /// How many people should be there so long (nanoseconds) after the beginning; `None` when it
    /// is over.
    pub fn population(&self, after_ns: u64) -> Option<u32> {
        let mut end = 0u64;
        self.steps.iter().find_map(|&(people, ns)| {
            end = end.saturating_add(ns);
            (after_ns < end).then_some(people)
        })
    }
}

/// What ends a run phase. Counts end phases, with a deadline; never a hopeful sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// Everybody has set out.
    Arrived,
    /// Everybody is in (or has failed).
    In,
    /// Everybody has come to the end of the journey (or has failed).
    Done,
}

/// Time limits and sizes. Times in nanoseconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Limits {
    /// TCP connection.
    pub connect_ns: u64,
    /// TLS handshake and upgrade.
    pub handshake_ns: u64,
    /// Login.
    pub login_ns: u64,
    /// Any other request.
    pub request_ns: u64,
    /// A delivery later than this counts as late.
    pub late_ns: u64,
    /// Without an acknowledgment, a message counts as settled after this.
    pub settle_ns: u64,
    /// Largest frame or stanza accepted.
    pub frame_bytes_max: u64,
    /// Most bytes that may wait for a target that does not read.
    pub backlog_bytes_max: u64,
    /// One person in so many is audited for order.
    pub audit_one_in: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        const SECOND: u64 = 1_000_000_000;
        Limits {
            connect_ns: 10 * SECOND,
            handshake_ns: 10 * SECOND,
            login_ns: 30 * SECOND,
            request_ns: 30 * SECOND,
            late_ns: 5 * SECOND,
            settle_ns: 2 * SECOND,
            frame_bytes_max: 16 << 20,
            backlog_bytes_max: 1 << 20,
            audit_one_in: 16,
        }
    }
}

/// What is read beside processes and machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Probes {
    /// Metrics that servers publish.
    pub prometheus: Vec<Prometheus>,
    /// Questions to Prometheus servers.
    pub promql: Vec<PromQl>,
}

/// Metrics that a server publishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Prometheus {
    /// Where.
    pub at: MetricsAt,
    /// From one reading to the next, nanoseconds.
    pub every_ns: u64,
    /// Names of the metrics that are kept, a `*` at the end standing for anything; none for all.
    pub keep: Vec<String>,
}

impl Prometheus {
    /// Whether a metric is kept.
    pub fn keeps(&self, name: &str) -> bool {
        let is_meant = |keep: &String| match keep.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == keep,
        };
        self.keep.is_empty() || self.keep.iter().any(is_meant)
    }
}

/// Where metrics are published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricsAt {
    /// Where the target's folder says.
    Target,
    /// At this URL.
    Url(String),
}

/// Questions to a Prometheus server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PromQl {
    /// The server, without `/api/v1/query`.
    pub url: String,
    /// From one asking to the next, nanoseconds.
    pub every_ns: u64,
    /// Expressions by the names under which their answers are kept.
    pub queries: BTreeMap<String, String>,
}
