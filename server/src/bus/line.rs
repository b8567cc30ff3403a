//! Between the event loop, the bus's thread and the store's: what each leaves for the others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::Waker;

use super::Batch;
use crate::store::Job;

/// What the store's thread is given: of the event loop, or of the log.
#[derive(Debug)]
pub(crate) enum Errand {
    Job(Job),
    Batch(Batch),
}

/// What the event loop leaves for the bus's thread.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) jobs: Vec<Job>,
    pub(crate) sheets: Vec<Vec<u8>>,
    /// Nothing more comes: the thread ends.
    pub(crate) closed: bool,
}

/// Both directions between the event loop and the bus's thread.
pub(crate) struct Line {
    outgoing: Mutex<Outgoing>,
    /// Wakes the bus's thread.
    bus: Waker,
    /// Sheets of news from other nodes.
    news: Mutex<Vec<Vec<u8>>>,
    /// Wakes the event loop.
    event_loop: Arc<Waker>,
    pub(crate) health: Arc<Health>,
}

impl Line {
    pub(crate) fn new(bus: Waker, event_loop: Arc<Waker>, health: Arc<Health>) -> Line {
        Line { outgoing: Mutex::default(), bus, news: Mutex::default(), event_loop, health }
    }

    /// Leaves something for the bus's thread.
    pub(crate) fn leave(&self, fill: impl FnOnce(&mut Outgoing)) {
        fill(&mut lock(&self.outgoing));
        let _ = self.bus.wake(); // fails only when the thread is gone, which its health tells
    }

    /// Everything left for the bus's thread; `closed` stays.
    pub(crate) fn take(&self) -> Outgoing {
        let mut outgoing = lock(&self.outgoing);
        let closed = outgoing.closed;
        std::mem::replace(&mut outgoing, Outgoing { closed, ..Outgoing::default() })
    }

    /// News for the event loop.
    pub(crate) fn bring(&self, sheets: &mut Vec<Vec<u8>>) {
        lock(&self.news).append(sheets);
        let _ = self.event_loop.wake(); // fails only when the loop is gone
    }

    /// News that were brought since the last call.
    pub(crate) fn news(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut lock(&self.news))
    }
}

/// How the way from a want to its answer is.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Why nothing can be ordered now.
    bus: Option<String>,
    /// Why nothing can be carried out now.
    store: Option<String>,
    /// Why this node cannot go on.
    fatal: Option<String>,
    /// The node stops: nobody waits for better times.
    closed: bool,
}

impl Health {
    pub(crate) fn bus(&self, trouble: Option<String>) {
        lock(&self.0).bus = trouble;
    }

    pub(crate) fn store(&self, trouble: Option<String>) {
        lock(&self.0).store = trouble;
    }

    pub(crate) fn fatal(&self, why: String) {
        lock(&self.0).fatal.get_or_insert(why);
    }

    pub(crate) fn close(&self) {
        lock(&self.0).closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    /// What is the matter, if something is; an error if this node cannot go on.
    pub(crate) fn trouble(&self) -> std::io::Result<Option<String>> {
        let state = lock(&self.0);
        match &state.fatal {
            Some(why) => Err(std::io::Error::other(why.clone())),
            None => Ok(state.bus.clone().or_else(|| state.store.clone())),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
