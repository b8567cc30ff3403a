//! Profiles: which profiler looks at whom while a phase goes on.

use serde::{Deserialize, Serialize};

/// Looks a second of a profiler that takes samples, unless the scenario says otherwise: just beside
/// a round number, so that it does not march in step with timers.
pub const PROFILE_HZ: u32 = 99;
/// Most looks a second.
pub const PROFILE_HZ_MAX: u32 = 1_000;
/// Most profiles of one phase.
pub const PROFILES_MAX: usize = 8;
/// How long a pprof URL is asked to look, unless the scenario says otherwise, nanoseconds.
pub const PPROF_NS: u64 = 10_000_000_000;

/// One profile of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProfilePlan {
    /// What takes it.
    pub profiler: Profiler,
    /// Whom it looks at; of no meaning for a URL.
    pub of: Subject,
    /// Looks a second; of no meaning for a URL.
    pub hz: u32,
    /// From the beginning of the phase to its own, nanoseconds.
    pub after_ns: u64,
    /// How long it takes, nanoseconds; `None`: to the end of the phase.
    pub for_ns: Option<u64>,
}

/// What takes a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profiler {
    /// Linux `perf`: any process, with the kernel's part.
    Perf,
    /// `perf` with the names of a Node process's functions.
    Node,
    /// `py-spy`: functions of Python.
    PySpy,
    /// A URL that answers with a profile in the format of pprof.
    Pprof {
        /// The URL, without encryption.
        url: String,
    },
}

impl Profiler {
    /// Its name in scenarios and files.
    pub fn name(&self) -> &'static str {
        match self {
            Profiler::Perf => "perf",
            Profiler::Node => "node",
            Profiler::PySpy => "py-spy",
            Profiler::Pprof { .. } => "pprof",
        }
    }
}

/// Whose functions are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The target's processes and their children.
    Target,
    /// throng's own processes.
    Generator,
    /// The process of this number.
    Process(u32),
}
