//! How a running server is ended from another thread, and what it shows of itself meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::Waker;

use crate::outlook::counters::Counters;

/// Ends a running server from another thread.
#[derive(Clone, Default)]
pub struct Stop(Arc<Signal>);

#[derive(Default)]
struct Signal {
    wanted: AtomicBool,
    /// How often the certificate was to be read again.
    reloads: AtomicU64,
    wakers: Mutex<Vec<Arc<Waker>>>,
    /// By shard.
    counters: Mutex<Vec<Counters>>,
}

impl Stop {
    /// A signal for one server.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Asks the server to end; it does so when what it has taken is answered and stored, within
    /// [`crate::config::DRAIN_TIME_MAX`].
    pub fn stop(&self) {
        self.0.wanted.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Asks the server to read its certificate again.
    pub fn reload(&self) {
        self.0.reloads.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        for waker in self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = waker.wake(); // fails only when the loop is gone, which is what we want
        }
    }

    /// The server's counters, at most a tenth of a second old while it is busy; of several shards
    /// those of the first.
    pub fn counters(&self) -> Counters {
        let list = self.0.counters.lock().unwrap_or_else(PoisonError::into_inner);
        list.first().cloned().unwrap_or_default()
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.wanted.load(Ordering::SeqCst)
    }

    /// From here on this wakes an event loop that is to end.
    pub(crate) fn wakes(&self, waker: Arc<Waker>) {
        lock(&self.0.wakers).push(waker);
    }

    /// How often the certificate was to be read again.
    pub(crate) fn reloads(&self) -> u64 {
        self.0.reloads.load(Ordering::SeqCst)
    }

    /// Shows what a shard has counted; gives what the others have.
    pub(crate) fn publish(&self, shard: usize, counters: &Counters) -> Vec<Counters> {
        let mut copies = lock(&self.0.counters);
        if copies.len() <= shard {
            copies.resize_with(shard + 1, Counters::default);
        }
        copies[shard].clone_from(counters);
        let others = copies.iter().enumerate().filter(|(other, _)| *other != shard);
        others.map(|(_, counters)| counters.clone()).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
