//! The threads beside the event loop: one for the store, a few for hashes of passwords.

use std::io;
use std::path::Path;
use std::sync::Arc;

use mio::Waker;

use crate::config::{Config, LOGIN_THREADS_MAX};
use crate::core::{Core, Now};
use crate::desk::Desk;
use crate::login::{HashJob, Hashed};
use crate::password::Hasher;
use crate::store::{DataFolder, Done, Job, Store};
use crate::sys;

/// The desks of a server; one that keeps nothing and hashes nothing slowly has none.
#[derive(Default)]
pub(crate) struct Workers {
    store: Option<Desk<Job, Done>>,
    hash: Option<Desk<HashJob, Hashed>>,
    /// Held until the store is closed: fields are dropped in order.
    _folder: Option<DataFolder>,
}

impl Workers {
    /// A core with what was kept for it, and the threads it needs.
    pub(crate) fn start(
        config: Config,
        waker: &Arc<Waker>,
        unix_ms: u64,
    ) -> io::Result<(Core, Workers)> {
        let mut workers = Workers::default();
        let is_slow = config.hash_cost.cost().is_some() || config.folder().is_some();
        if is_slow {
            workers.hash = Some(hashers(waker)?);
        }
        let core = match config.folder().map(Path::to_owned) {
            None => {
                let mut key = [0; 32];
                getrandom::fill(&mut key).map_err(io::Error::other)?;
                Core::new(config, key)?
            }
            Some(path) => {
                let folder = DataFolder::open(&path)?;
                let wrong = |why: crate::store::Trouble| io::Error::other(why.to_string());
                let mut store = Store::open(&folder.database(), config.commit).map_err(wrong)?;
                let loaded = store.load(config.history, unix_ms).map_err(wrong)?;
                let mut core = Core::new(config, folder.key()?)?;
                core.restore(loaded)?;
                let mut desk = Desk::new(waker.clone());
                desk.hire("store", usize::MAX, move |jobs| store.carry_out(jobs))?;
                workers.store = Some(desk);
                workers._folder = Some(folder);
                core
            }
        };
        Ok((core, workers))
    }

    pub(crate) fn store(&self, jobs: &mut Vec<Job>) {
        if let Some(desk) = &self.store {
            desk.put(jobs);
        }
    }

    pub(crate) fn hash(&self, jobs: &mut Vec<HashJob>) {
        if let Some(desk) = &self.hash {
            desk.put(jobs);
        }
    }

    /// Takes back the passwords of a connection that nobody has begun to hash; gives how many.
    pub(crate) fn unhash(&self, serial: u64) -> usize {
        let desk = self.hash.as_ref();
        desk.map_or(0, |desk| desk.withdraw(|job| job.ticket.serial == serial))
    }

    /// Tells the core what is done.
    pub(crate) fn report(&self, core: &mut Core, now: Now) -> io::Result<()> {
        if let Some(desk) = &self.store {
            desk.fetch()?.into_iter().for_each(|done| core.stored(done, now));
        }
        if let Some(desk) = &self.hash {
            desk.fetch()?.into_iter().for_each(|hashed| core.hashed(hashed, now));
        }
        Ok(())
    }

    /// Ends the threads: everything is stored that was to be stored, nothing more is hashed.
    pub(crate) fn close(&mut self) {
        if let Some(desk) = &mut self.hash {
            desk.close(false);
        }
        if let Some(desk) = &mut self.store {
            desk.close(true);
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.close();
    }
}

/// Threads that hash passwords and give way to everything else.
fn hashers(waker: &Arc<Waker>) -> io::Result<Desk<HashJob, Hashed>> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut desk = Desk::new(waker.clone());
    for _ in 0..processors.saturating_sub(1).clamp(1, LOGIN_THREADS_MAX) {
        let mut hasher: Option<Hasher> = None;
        desk.hire("hash", 1, move |jobs: Vec<HashJob>| {
            let hasher = hasher.get_or_insert_with(|| {
                sys::give_way();
                Hasher::default()
            });
            let hash = |job: HashJob| {
                let verdict = hasher.run(job.task, job.password.as_bytes());
                Hashed { job, verdict }
            };
            jobs.into_iter().map(hash).collect()
        })?;
    }
    Ok(desk)
}
