//! The bus within one process: shards are event loops, each with its own core and its own sockets.
//!
//! Whoever puts wants into the hub puts them before everybody at once, under one lock: that is the
//! order. Where nothing is kept, each shard decides for itself what becomes of them, as all decide
//! alike; where things are kept one store decides, and everybody is told.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::Waker;

use crate::delivery::conn::Ticket;
use crate::machine::desk::Inlet;
use crate::store::{Done, Job, Outcome, Store};

/// Wants of a shard, by its number.
pub(crate) type Asked = (usize, Job);

/// What a shard finds in its place of the hub.
#[derive(Debug)]
pub(crate) enum Told {
    /// To be decided and carried out.
    Ordered(Job),
    /// Decided by the store, to be carried out.
    Done(Done),
}

#[derive(Default)]
struct Place {
    told: Vec<Told>,
    sheets: Vec<Vec<u8>>,
    waker: Option<Arc<Waker>>,
    /// A thread that all depend on has panicked.
    is_broken: bool,
}

/// Where all shards of a process meet.
pub(crate) struct Hub {
    places: Mutex<Vec<Place>>,
    /// The one who decides, where things are kept.
    store: Option<Inlet<Asked, ()>>,
}

impl Hub {
    /// A hub for so many shards.
    pub(crate) fn new(shards: usize, store: Option<Inlet<Asked, ()>>) -> Hub {
        let places = (0..shards).map(|_| Place::default()).collect();
        Hub { places: Mutex::new(places), store }
    }

    /// From here on this wakes a shard that is told something.
    pub(crate) fn enter(&self, shard: usize, waker: Arc<Waker>) {
        let mut places = self.lock();
        let _ = waker.wake(); // there may be something; fails only when the loop is gone
        places[shard].waker = Some(waker);
    }

    /// Orders what a shard wants.
    pub(crate) fn order(&self, shard: usize, jobs: Vec<Job>) {
        if let Some(store) = &self.store {
            return store.put(jobs.into_iter().map(|job| (shard, job)));
        }
        let mut places = self.lock();
        for job in jobs {
            if job.want.is_look_up() {
                places[shard].told.push(Told::Ordered(job));
                continue;
            }
            for (_, place) in places.iter_mut().enumerate().filter(|(at, _)| *at != shard) {
                place.told.push(Told::Ordered(foreign(&job)));
            }
            places[shard].told.push(Told::Ordered(job));
        }
        wake(&places);
    }

    /// Tells everybody what the store has done, in its order.
    pub(crate) fn spread(&self, done: Vec<(usize, Done)>) {
        let mut places = self.lock();
        for (shard, done) in done {
            let is_change =
                !done.job.want.is_look_up() && !matches!(done.outcome, Outcome::Failed(_));
            for (at, place) in places.iter_mut().enumerate().filter(|_| is_change) {
                if at != shard {
                    let (job, outcome) = (foreign(&done.job), done.outcome.clone());
                    place.told.push(Told::Done(Done { job, outcome, begins: false }));
                }
            }
            places[shard].told.push(Told::Done(done));
        }
        wake(&places);
    }

    /// Tells the other shards news.
    pub(crate) fn announce(&self, shard: usize, sheets: &[Vec<u8>]) {
        let mut places = self.lock();
        for (_, place) in places.iter_mut().enumerate().filter(|(at, _)| *at != shard) {
            place.sheets.extend_from_slice(sheets);
        }
        wake(&places);
    }

    /// Everything a shard was told since the last call.
    pub(crate) fn take(&self, shard: usize) -> io::Result<(Vec<Told>, Vec<Vec<u8>>)> {
        let place = &mut self.lock()[shard];
        if place.is_broken {
            return Err(io::Error::other("a thread of the server has panicked"));
        }
        Ok((std::mem::take(&mut place.told), std::mem::take(&mut place.sheets)))
    }

    /// Nobody can go on: a thread that all depend on has panicked.
    pub(crate) fn break_all(&self) {
        for place in self.lock().iter_mut() {
            place.is_broken = true;
            if let Some(waker) = &place.waker {
                let _ = waker.wake(); // fails only when the loop is gone
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        // What is behind this lock is whole between any two statements.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(places: &[Place]) {
    let to_wake = places.iter().filter(|place| !place.told.is_empty() || !place.sheets.is_empty());
    for waker in to_wake.filter_map(|place| place.waker.as_ref()) {
        let _ = waker.wake(); // fails only when the loop is gone
    }
}

/// A job as those see it who did not ask.
fn foreign(job: &Job) -> Job {
    Job { ticket: Ticket::FOREIGN, want: job.want.by_another(), since_us: 0 }
}

/// What the store's thread does: what is to be written, then what is to be looked up.
pub(crate) fn carry_out(store: &mut Store, asked: Vec<Asked>) -> Vec<(usize, Done)> {
    let (pages, writes): (Vec<Asked>, Vec<Asked>) =
        asked.into_iter().partition(|(_, job)| job.want.is_look_up());
    let mut all = Vec::with_capacity(pages.len() + writes.len());
    for part in [writes, pages] {
        let (shards, jobs): (Vec<usize>, Vec<Job>) = part.into_iter().unzip();
        all.extend(shards.into_iter().zip(store.carry_out(jobs)));
    }
    all
}
