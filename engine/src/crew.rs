//! The crew: the shards of one process, and the job they were given.

use crate::accounts::AccountBook;
use crate::board::Board;
use crate::clock::Clock;
use crate::net::real::{RealNet, Route, TlsStart};
use crate::net::tls::{Tls, Trust};
use crate::shard::{Dispatch, Order, Setup, Shard};
use mio::Waker;
use model::{Encryption, EncryptionStart, Endpoint, Options, Plan, Protocol, Shared, SourceId};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Finds a protocol by its name.
pub type Protocols = fn(&str) -> Option<&'static dyn Protocol>;

/// Everything a process needs to bring its part of the people: the same for all processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The plan.
    pub plan: Plan,
    /// The target's URL.
    pub url: String,
    /// Options of the protocol, for this target.
    pub options: Options,
    /// The target's addresses.
    pub endpoints: Vec<SocketAddr>,
    /// Local addresses to connect from; empty to let the system choose.
    pub source_addresses: Vec<IpAddr>,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// The scenario's folder: files of accounts are relative to it.
    pub folder: PathBuf,
    /// Which run: 18 bits.
    pub run: u32,
    /// The run's epoch on the machine's monotonic clock, nanoseconds.
    pub epoch_ns: u64,
    /// Where the board is; empty in the process that owns it.
    pub board: String,
    /// How many shards there are in all processes together.
    pub sources: SourceId,
}

/// The running shards of one process.
pub struct Crew {
    shards: Vec<(Sender<Order>, Waker)>,
    threads: Vec<JoinHandle<()>>,
}

impl Job {
    /// Starts this process's shards. The error is advice for the user.
    pub fn start(
        self,
        board: Board,
        sources: Range<SourceId>,
        protocols: Protocols,
        dispatches: &Sender<Dispatch>,
    ) -> Result<Crew, String> {
        let protocol = protocols(&self.plan.protocol)
            .ok_or_else(|| format!("there is no protocol `{}`", self.plan.protocol))?;
        let endpoint = Endpoint::parse(&self.url)?;
        let encryption = encryption(protocol, &endpoint, &self.options, &self.trust)?;
        let route = Arc::new(Route {
            endpoints: self.endpoints,
            encryption,
            sources: self.source_addresses,
            backlog_bytes_max: self.plan.limits.backlog_bytes_max as usize,
        });
        let frame_bytes_max = self.plan.limits.frame_bytes_max as usize;
        let accounts = AccountBook::open(&self.plan, &self.folder)?;
        let mut shared = Shared::new(endpoint, self.options, frame_bytes_max);
        shared.lists = accounts.lists(&self.plan);
        let setup = Setup {
            accounts: Arc::new(accounts),
            protocol,
            shared: Arc::new(shared),
            board,
            source: 0,
            sources: self.sources,
            run: self.run,
            plan: Arc::new(self.plan),
        };
        let clock = Clock::at_epoch(self.epoch_ns);
        let mut crew = Crew { shards: Vec::new(), threads: Vec::new() };
        for source in sources {
            let setup = Setup { source, ..setup.clone() };
            crew.hire(setup, clock, route.clone(), dispatches.clone())
                .map_err(|error| format!("cannot start a shard: {error}"))?;
        }
        Ok(crew)
    }
}

/// Prepares what the protocol says about encryption.
fn encryption(
    protocol: &dyn Protocol,
    endpoint: &Endpoint,
    options: &Options,
    trust: &Trust,
) -> Result<TlsStart, String> {
    let Encryption { start, name, alpn } = protocol.encryption(endpoint, options);
    let tls = || Tls::new(trust, name, alpn);
    Ok(match start {
        EncryptionStart::Never => TlsStart::Never,
        EncryptionStart::AtOnce => TlsStart::AtOnce(tls()?),
        EncryptionStart::Asked => TlsStart::Asked(tls()),
    })
}

impl Crew {
    fn hire(
        &mut self,
        setup: Setup,
        clock: Clock,
        route: Arc<Route>,
        dispatches: Sender<Dispatch>,
    ) -> std::io::Result<()> {
        let (net, waker) = RealNet::new(clock, route)?;
        let (sender, orders) = channel();
        let name = format!("shard-{}", setup.source);
        let shard = Shard::new(setup, net);
        let thread = std::thread::Builder::new().name(name);
        self.threads.push(thread.spawn(move || work(shard, &orders, &dispatches))?);
        self.shards.push((sender, waker));
        Ok(())
    }

    /// Tells all shards.
    pub fn order(&self, order: &Order) {
        for (orders, waker) in &self.shards {
            // A shard that has ended needs no more orders.
            let _ = orders.send(order.clone());
            let _ = waker.wake();
        }
    }

    /// Waits until all shards have ended.
    pub fn join(self) {
        for thread in self.threads {
            // A shard's panic has been printed; its missing `Ended` is noticed by the run.
            let _ = thread.join();
        }
    }
}

fn work(mut shard: Shard<RealNet>, orders: &Receiver<Order>, dispatches: &Sender<Dispatch>) {
    // Nobody listens any more when the run is being torn down.
    let mut emit = |dispatch| drop(dispatches.send(dispatch));
    while !shard.is_stopped() {
        shard.tend(&mut emit);
        if shard.wait() {
            orders.try_iter().for_each(|order| shard.obey(&order));
        }
    }
    shard.end(&mut emit);
}
