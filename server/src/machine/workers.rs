//! The threads beside the event loop: one for the store, a few for hashes of passwords.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::{Poll, Waker};

use crate::access::login::{HashJob, Hashed};
use crate::access::password::Hasher;
use crate::bus::memory::{Hub, Told};
use crate::bus::nats::{self, Nats};
use crate::bus::{Batch, BusConfig, Errand, Health, Line};
use crate::cluster::Cluster;
use crate::config::{Commit, Config, LOGIN_THREADS_MAX};
use crate::core::{Core, Now};
use crate::durable::Keeping;
use crate::machine::desk::Desk;
use crate::machine::shards::Shard;
use crate::machine::sys;
use crate::store::{DataFolder, Done, Job, Store};

/// From one try to carry out the log to the next, if the disk fails.
const STORE_PAUSE: Duration = Duration::from_millis(500);

/// The desks of a server; one that keeps nothing and hashes nothing slowly has none.
#[derive(Default)]
pub(crate) struct Workers {
    store: Option<Desk<Errand, Done>>,
    hash: Option<Desk<HashJob, Hashed>>,
    bus: Option<Bus>,
    /// Where it meets the other shards, and its number.
    hub: Option<(Arc<Hub>, usize)>,
    /// Held until the store is closed: fields are dropped in order.
    _folder: Option<DataFolder>,
}

impl Workers {
    /// A core with what was kept for it, and the threads it needs.
    pub(crate) fn start(
        mut config: Config,
        waker: &Arc<Waker>,
        (start, unix_ms): (Instant, u64),
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
                let bus = config.bus.take();
                // The log is what must not be lost; a store that loses some of it catches up.
                if bus.is_some() {
                    config.commit = Commit::Late;
                }
                let mut store = Store::open(&folder.database(), config.commit).map_err(wrong)?;
                let joined = match &bus {
                    Some(bus) => Some(join(bus, &mut store, start)?),
                    None => store.check_alone().map(|()| None).map_err(wrong)?,
                };
                let key = joined.as_ref().map_or_else(|| folder.key(), |joined| Ok(joined.key))?;
                let loaded = store.load(config.history, unix_ms).map_err(wrong)?;
                config.bus = bus;
                let mut core = Core::new(config, key)?;
                core.restore(loaded)?;
                let health = Arc::new(Health::default());
                let mut desk = Desk::new(waker.clone());
                let (told, awake) = (health.clone(), waker.clone());
                desk.hire("store", usize::MAX, move |errands| {
                    run(&mut store, errands, &told, &awake)
                })?;
                if let Some(joined) = joined {
                    core.cluster = Some(Cluster::new(joined.life));
                    workers.bus = Some(Bus::start(joined.nats, &desk, health, waker)?);
                }
                workers.store = Some(desk);
                workers._folder = Some(folder);
                core
            }
        };
        Ok((core, workers))
    }

    /// A core that is one of several of this process, and the threads it needs for itself.
    pub(crate) fn of_shard(
        config: Config,
        shard: Shard,
        waker: &Arc<Waker>,
    ) -> io::Result<(Core, Workers)> {
        let mut workers = Workers::default();
        if config.hash_cost.cost().is_some() || config.folder().is_some() {
            workers.hash = Some(hashers(waker)?);
        }
        let mut core = Core::new(config, shard.key)?;
        match shard.loaded {
            Some(loaded) => core.restore(loaded)?,
            None => core.keeping = Some(Keeping::shallow()),
        }
        core.cluster = Some(Cluster::new(shard.number as u64));
        shard.hub.enter(shard.number, waker.clone());
        workers.hub = Some((shard.hub, shard.number));
        Ok((core, workers))
    }

    /// Has jobs done: what changes something by way of the bus, if there is one.
    pub(crate) fn store(&self, jobs: &mut Vec<Job>) {
        if let Some((hub, shard)) = &self.hub {
            return hub.order(*shard, std::mem::take(jobs));
        }
        let Some(desk) = &self.store else { return };
        let Some(bus) = &self.bus else {
            return desk.put(&mut jobs.drain(..).map(Errand::Job).collect());
        };
        let (pages, mut wants): (Vec<Job>, Vec<Job>) =
            jobs.drain(..).partition(|job| job.want.is_look_up());
        if !pages.is_empty() {
            desk.put(&mut pages.into_iter().map(Errand::Job).collect());
        }
        if !wants.is_empty() {
            bus.line.leave(|outgoing| outgoing.jobs.append(&mut wants));
        }
    }

    /// Tells the other nodes news.
    pub(crate) fn announce(&self, sheets: &mut Vec<Vec<u8>>) {
        if let Some((hub, shard)) = &self.hub {
            hub.announce(*shard, sheets);
        }
        if let Some(bus) = &self.bus {
            bus.line.leave(|outgoing| outgoing.sheets.append(sheets));
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
        if let Some((hub, shard)) = &self.hub {
            let (told, sheets) = hub.take(*shard)?;
            for told in told {
                match told {
                    Told::Ordered(job) => core.ordered(job, now),
                    Told::Done(done) => core.stored(done, now),
                }
            }
            sheets.iter().for_each(|sheet| core.hear_news(sheet, now));
        }
        if let Some(bus) = &self.bus {
            let trouble = bus.line.health.trouble()?;
            bus.line.news().iter().for_each(|sheet| core.hear_news(sheet, now));
            if let Some(cluster) = &mut core.cluster {
                cluster.trouble = trouble;
            }
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
        if let Some(bus) = &mut self.bus {
            bus.close();
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

/// A node that has caught up with the log.
struct Joined {
    nats: Nats,
    life: u64,
    key: [u8; 32],
}

fn join(bus: &BusConfig, store: &mut Store, start: Instant) -> io::Result<Joined> {
    let mut life = [0; 8];
    getrandom::fill(&mut life).map_err(io::Error::other)?;
    let life = u64::from_le_bytes(life);
    let mut nats = Nats::dial(bus, life, start)?;
    let key = nats.catch_up(store)?;
    Ok(Joined { nats, life, key })
}

/// The bus's thread.
struct Bus {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

impl Bus {
    fn start(
        nats: Nats,
        desk: &Desk<Errand, Done>,
        health: Arc<Health>,
        waker: &Arc<Waker>,
    ) -> io::Result<Bus> {
        let poll = Poll::new()?;
        let own = Waker::new(poll.registry(), nats::WAKER)?;
        let line = Arc::new(Line::new(own, waker.clone(), health));
        let (theirs, inlet) = (line.clone(), desk.inlet());
        let body = move || nats.run(&theirs, poll, &inlet);
        let thread = Some(std::thread::Builder::new().name("bus".to_owned()).spawn(body)?);
        Ok(Bus { line, thread })
    }

    /// What was left is sent, if there is a connection.
    fn close(&mut self) {
        self.line.health.close();
        self.line.leave(|outgoing| outgoing.closed = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was told by its health
        }
    }
}

/// What the store's thread does. What the log has ordered is done in any case, however long it
/// takes: a node that leaves an entry out is no longer like the others.
fn run(store: &mut Store, errands: Vec<Errand>, health: &Health, waker: &Waker) -> Vec<Done> {
    let (mut jobs, mut batches): (Vec<Job>, Vec<Batch>) = (Vec::new(), Vec::new());
    for errand in errands {
        match errand {
            Errand::Job(job) => jobs.push(job),
            Errand::Batch(batch) => batches.push(batch),
        }
    }
    let mut done = Vec::new();
    while !batches.is_empty() {
        match store.follow_batches(std::mem::take(&mut batches)) {
            Ok(mut followed) => {
                health.store(None);
                done.append(&mut followed);
            }
            Err(failed) if health.is_closed() => {
                health.store(Some(failed.trouble.0));
                break;
            }
            Err(failed) => {
                health.store(Some(format!("the store fails: {}", failed.trouble)));
                let _ = waker.wake(); // fails only when the loop is gone
                std::thread::sleep(STORE_PAUSE);
                batches = failed.batches;
            }
        }
    }
    if !jobs.is_empty() {
        done.append(&mut store.carry_out(jobs));
    }
    done
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
