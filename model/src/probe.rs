//! What a probe reads off the target's processes, the host and the generator itself.

use crate::Tick;
use serde::{Deserialize, Serialize};

/// One reading of everything that is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeSample {
    /// When.
    pub at: Tick,
    /// The target's processes.
    pub target: Vec<ProcessSample>,
    /// The generator's processes.
    pub generator: Vec<ProcessSample>,
    /// The machine.
    pub host: HostSample,
}

/// One process. Everything cumulative counts from the process's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Process number.
    pub pid: u32,
    /// Command name.
    pub name: String,
    /// CPU time of all threads, nanoseconds, cumulative (user and system).
    pub cpu_ns: u64,
    /// Of this: user time, nanoseconds, cumulative.
    pub user_ns: u64,
    /// Time threads were ready to run but had to wait for a processor, nanoseconds, cumulative.
    pub run_queue_ns: u64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
    /// Proportional share of memory, bytes; zero where the kernel does not tell.
    pub pss_bytes: u64,
    /// Virtual memory, bytes.
    pub virtual_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open file descriptors.
    pub descriptors: u64,
    /// Context switches, cumulative.
    pub switches: u64,
    /// Bytes read from storage, cumulative.
    pub read_bytes: u64,
    /// Bytes written to storage, cumulative.
    pub written_bytes: u64,
}

/// The machine as a whole. Everything cumulative counts from the machine's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Time processors were busy, nanoseconds, cumulative over all of them.
    pub busy_ns: u64,
    /// Time the hypervisor gave to others, nanoseconds, cumulative over all processors.
    pub steal_ns: u64,
    /// Load average of the last minute.
    pub load: f64,
    /// Memory that could be had, bytes.
    pub available_bytes: u64,
    /// TCP segments sent again, cumulative.
    pub retransmits: u64,
    /// Packets dropped by network interfaces, cumulative.
    pub drops: u64,
    /// How long a fixed piece of work took just now, nanoseconds of CPU time: tells a slow machine
    /// from a slow target. Zero when it was not done in this reading.
    pub calibration_ns: u64,
}
