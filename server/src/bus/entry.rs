//! Entries of the log: how wants are written, and how each is carried out exactly once.
//!
//! The batches of one life of a node are numbered from 1. A batch counts only if it is the next
//! one of its life; whoever reads the log decides that alike. So a node that does not know whether
//! a batch has reached the log says it again, and all behind it, and nothing is doubled, lost or
//! swapped, however long it takes: this is go-back-N, as in TCP.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::config::{BATCH_BYTES_MAX, BATCHES_OPEN_MAX};
use crate::delivery::conn::Ticket;
use crate::store::{Job, Want};

use super::Batch;

/// The version of the entries that this program writes, and the only one it reads.
const VERSION: u32 = 1;

/// As written; `Entry` as read.
#[derive(Serialize)]
struct Writing<'a> {
    v: u32,
    life: u64,
    serial: u64,
    wants: Vec<&'a Want>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(rename = "v")]
    _v: u32,
    life: u64,
    serial: u64,
    wants: Vec<Want>,
}

/// The part of an entry that every version has.
#[derive(Deserialize)]
struct Stamp {
    v: u32,
}

/// A batch of ours that has not come back.
struct Open {
    serial: u64,
    jobs: Vec<Job>,
    payload: Vec<u8>,
}

/// What an entry was.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// To be carried out by who has come so far in the log.
    Batch(Batch),
    /// Known already.
    Old,
    /// There are entries missing before it.
    Gap,
}

/// One node's view of the log.
pub(crate) struct Orderer {
    life: u64,
    /// The number of our next batch.
    serial: u64,
    /// The place of the latest entry that arrived.
    position: u64,
    waiting: VecDeque<Job>,
    open: VecDeque<Open>,
    /// How many of `open` are sent.
    sent: usize,
}

impl Orderer {
    /// A node that has carried out everything up to `position`; `life` must be random.
    pub(crate) fn new(life: u64, position: u64) -> Orderer {
        let (waiting, open) = (VecDeque::new(), VecDeque::new());
        Orderer { life, serial: 1, position, waiting, open, sent: 0 }
    }

    /// The place of the latest entry that arrived.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Takes wants that are to be ordered.
    pub(crate) fn offer(&mut self, jobs: impl IntoIterator<Item = Job>) {
        self.waiting.extend(jobs);
    }

    /// The next entry to be sent, if there is one and not too many are under way: what comes while
    /// they are goes into one entry.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        if self.sent == self.open.len() {
            if self.waiting.is_empty() || self.open.len() >= BATCHES_OPEN_MAX {
                return None;
            }
            self.pack();
        }
        self.sent += 1;
        Some(&self.open[self.sent - 1].payload)
    }

    fn pack(&mut self) {
        let mut bytes = 0;
        let fits = |job: &&Job| {
            bytes += job.want.bytes();
            bytes <= BATCH_BYTES_MAX
        };
        let count = self.waiting.iter().take_while(fits).count().max(1);
        let jobs: Vec<Job> = self.waiting.drain(..count).collect();
        let wants = jobs.iter().map(|job| &job.want).collect();
        let entry = Writing { v: VERSION, life: self.life, serial: self.serial, wants };
        // Only a map with keys that are no texts could fail.
        let payload = serde_json::to_vec(&entry).unwrap_or_default();
        self.open.push_back(Open { serial: self.serial, jobs, payload });
        self.serial += 1;
    }

    /// Whether something is sent that has not come back.
    pub(crate) fn is_open(&self) -> bool {
        self.sent > 0
    }

    /// What was sent and has not come back is to be sent again.
    pub(crate) fn resend(&mut self) {
        self.sent = 0;
    }

    /// An entry of the log has arrived. An error says why this node cannot go on.
    pub(crate) fn arrived(&mut self, position: u64, payload: &[u8]) -> Result<Arrived, String> {
        if position <= self.position {
            return Ok(Arrived::Old);
        }
        if position > self.position + 1 {
            return Ok(Arrived::Gap);
        }
        let entry = read(payload).map_err(|why| format!("entry {position} of the log {why}"))?;
        self.position = position;
        let Entry { life, serial, wants, .. } = entry;
        let foreign = |want| Job { ticket: Ticket::FOREIGN, want, since_us: 0 };
        let jobs = match self.open.front() {
            Some(first) if life == self.life && serial == first.serial => {
                self.sent = self.sent.saturating_sub(1);
                self.open.pop_front().map_or_else(Vec::new, |open| open.jobs)
            }
            _ if life == self.life => Vec::new(), // said twice; the store does not count it either
            _ => wants.into_iter().map(foreign).collect(),
        };
        Ok(Arrived::Batch(Batch { position, life, serial, jobs }))
    }
}

fn read(payload: &[u8]) -> Result<Entry, String> {
    let stamp: Stamp = serde_json::from_slice(payload).map_err(|why| format!("is none: {why}"))?;
    if stamp.v != VERSION {
        let advice = "this program is older or newer than who wrote it";
        return Err(format!("has version {}, not {VERSION}: {advice}", stamp.v));
    }
    let advice = "this program may be older than who wrote it";
    serde_json::from_slice(payload).map_err(|why| format!("is not understood: {why}; {advice}"))
}
