//! A server of several event loops: each has its own thread, listener and core, and all have one
//! order of what outlives a connection.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use crate::bus::memory::{Asked, Hub, carry_out};
use crate::config::Config;
use crate::machine::desk::Desk;
use crate::machine::event_loop::{Outcome, prepare_shard};
use crate::machine::stop::Stop;
use crate::machine::sys;
use crate::store::{DataFolder, Loaded, Store, Trouble};

/// What one event loop of several begins with.
pub(crate) struct Shard {
    pub(crate) number: usize,
    pub(crate) hub: Arc<Hub>,
    /// The key of tokens.
    pub(crate) key: [u8; 32],
    /// What was kept, where things are kept.
    pub(crate) loaded: Option<Loaded>,
}

/// What all shards share.
struct Common {
    shards: Vec<Shard>,
    store: Option<Desk<Asked, ()>>,
    /// Held until the store is closed.
    folder: Option<DataFolder>,
}

/// Serves by as many event loops as the knobs say, until `stop` is pulled. `listener` must share
/// its port (see [`sys::listen_shared`]).
pub(crate) fn run(
    config: Config,
    listener: TcpListener,
    stop: &Stop,
    unix_ms: u64,
) -> io::Result<Outcome> {
    let address = listener.local_addr()?;
    let mut listeners = vec![listener];
    for _ in 1..config.shards {
        listeners.push(sys::listen_shared(address)?);
    }
    let Common { shards, mut store, folder } = prepare(&config, unix_ms)?;
    // Each may have as many descriptors as there are for all, less what the others have.
    let each = config.connections_max.div_ceil(config.shards);
    let mut outcomes = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (shard, listener) in shards.into_iter().zip(listeners) {
            let config = Config { connections_max: each, ..config.clone() };
            let name = format!("shard {}", shard.number);
            let body = move || {
                let _end = End(stop); // one that ends ends all
                prepare_shard(config, listener, Some(shard))?.run(stop)
            };
            threads.push(std::thread::Builder::new().name(name).spawn_scoped(scope, body)?);
        }
        let panicked = || io::Error::other("a shard has panicked");
        let ends: Vec<io::Result<Outcome>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())))
            .collect();
        ends.into_iter().collect::<io::Result<Vec<Outcome>>>()
    })?;
    if let Some(store) = &mut store {
        store.close(true);
    }
    drop(folder);
    Ok(outcomes.swap_remove(0))
}

struct End<'a>(&'a Stop);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The hub, and what each shard begins with.
fn prepare(config: &Config, unix_ms: u64) -> io::Result<Common> {
    let Some(path) = config.folder() else {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let hub = Arc::new(Hub::new(config.shards, None));
        let shard = |number| Shard { number, hub: hub.clone(), key, loaded: None };
        let shards = (0..config.shards).map(shard).collect();
        return Ok(Common { shards, store: None, folder: None });
    };
    let wrong = |why: Trouble| io::Error::other(why.to_string());
    let folder = DataFolder::open(path)?;
    let mut store = Store::open(&folder.database(), config.commit).map_err(wrong)?;
    store.check_alone().map_err(wrong)?;
    let key = folder.key()?;
    let load = |_| store.load(config.history, unix_ms).map_err(wrong);
    let all = (0..config.shards).map(load).collect::<io::Result<Vec<Loaded>>>()?;
    // Nobody fetches from this desk: the hub wakes whom it tells something.
    let waker = Arc::new(mio::Waker::new(mio::Poll::new()?.registry(), mio::Token(0))?);
    let mut desk: Desk<Asked, ()> = Desk::new(waker);
    let hub = Arc::new(Hub::new(config.shards, Some(desk.inlet())));
    let teller = Teller(hub.clone());
    desk.hire("store", usize::MAX, move |asked| {
        teller.0.spread(carry_out(&mut store, asked));
        Vec::new()
    })?;
    let shard = |(number, loaded)| Shard { number, hub: hub.clone(), key, loaded: Some(loaded) };
    let shards = all.into_iter().enumerate().map(shard).collect();
    Ok(Common { shards, store: Some(desk), folder: Some(folder) })
}

/// The store's thread, which nobody can do without.
struct Teller(Arc<Hub>);

impl Drop for Teller {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_all();
        }
    }
}
