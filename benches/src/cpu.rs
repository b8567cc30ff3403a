//! CPU time for each received message: the floor, throng and its peers take turns, several rounds,
//! on the same server.

use crate::clients::Client;
use crate::clock::{now_ns, sleep};
use crate::process::Process;
use crate::stats::Spread;
use std::io;
use std::time::Duration;

const CONNECTIONS: [usize; 2] = [1_000, 10_000];
/// Messages in one write.
const BATCHES: [usize; 2] = [1, 32];
const ROUNDS: usize = 5;
const SERVER_CORE: usize = 0;
const CLIENT_CORE: usize = 1;
/// CPU time a measurement shall take, nanoseconds.
const WINDOW_NS: f64 = 1.2e9;
const WAVES: std::ops::RangeInclusive<f64> = 2.0..=400.0;
/// Waves at the start that nobody measures.
const WARM_UP: usize = 3;
/// A client has taken in everything when, for this time, none of its threads was seen running or
/// waiting for a processor…
const LULL: Duration = Duration::from_millis(1);
/// …and it used less CPU than this, nanoseconds.
const LULL_NS: u64 = 40_000;
/// A client that is not done by then never will be.
const PATIENCE_NS: u64 = 120_000_000_000;

/// A client with its own server.
struct Pair {
    client: Client,
    process: Process,
    server: Process,
    people: usize,
    sent: u64,
    /// Waves that fill a window, for each batch size.
    waves: [usize; BATCHES.len()],
    idle_ns_per_s: f64,
}

/// What one measurement gave, in nanoseconds a message.
#[derive(Clone, Copy)]
struct Cost {
    client: f64,
    user: f64,
    server: f64,
}

/// Measures these clients at so many connections; all and the usual ones if there are none.
/// Prints Markdown.
pub(crate) fn measure(connections: &[usize], clients: &[Client]) -> io::Result<()> {
    let clients = if clients.is_empty() { &Client::ALL } else { clients };
    let connections = if connections.is_empty() { &CONNECTIONS } else { connections };
    for &people in connections {
        measure_at(people, clients)?;
    }
    Ok(())
}

fn measure_at(people: usize, clients: &[Client]) -> io::Result<()> {
    let mut pairs = Vec::new();
    for &client in clients {
        match Pair::start(client, people) {
            Ok(pair) => pairs.push(pair),
            Err(error) => eprintln!("{} is left out: {error}", client.name()),
        }
    }
    let mut costs: Vec<[Vec<Cost>; BATCHES.len()]> =
        pairs.iter().map(|_| Default::default()).collect();
    for round in 0..ROUNDS {
        for (pair, costs) in pairs.iter_mut().zip(&mut costs) {
            for (at, costs) in costs.iter_mut().enumerate() {
                let cost = pair.measure(at)?;
                eprintln!(
                    "{people} connections, round {round}, {} a write, {}: {:.0} ns ({:.0} user)",
                    BATCHES[at],
                    pair.client.name(),
                    cost.client,
                    cost.user
                );
                costs.push(cost);
            }
        }
    }
    for (at, batch) in BATCHES.iter().enumerate() {
        let these: Vec<&[Cost]> = costs.iter().map(|costs| costs[at].as_slice()).collect();
        print_table(people, *batch, &pairs, &these);
    }
    for pair in pairs {
        pair.end()?;
    }
    Ok(())
}

fn print_table(people: usize, batch: usize, pairs: &[Pair], costs: &[&[Cost]]) {
    println!("\n{people} connections, {batch} in a write: ns of CPU a message, {ROUNDS} rounds\n");
    println!("| client | user + system | user alone | its server | × floor | throng ÷ it |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let of = |client| pairs.iter().position(|pair| pair.client == client).map(|at| costs[at]);
    let (floor, throng) = (of(Client::Floor), of(Client::Throng));
    let ratio = |over: Option<&[Cost]>, under: Option<&[Cost]>| {
        let (Some(over), Some(under)) = (over, under) else { return "-".to_owned() };
        Spread::of(over.iter().zip(under).map(|(over, under)| over.client / under.client))
            .to_string()
    };
    for (pair, costs) in pairs.iter().zip(costs) {
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            pair.client.name(),
            Spread::of(costs.iter().map(|cost| cost.client)),
            Spread::of(costs.iter().map(|cost| cost.user)),
            Spread::of(costs.iter().map(|cost| cost.server)),
            ratio(Some(costs), floor),
            ratio(throng, Some(costs)),
        );
    }
    let idle = pairs
        .iter()
        .map(|pair| format!("{} {:.2} ms", pair.client.name(), pair.idle_ns_per_s / 1e6));
    println!("\nCPU of an idle second: {}.", idle.collect::<Vec<_>>().join(", "));
}

impl Pair {
    fn start(client: Client, people: usize) -> io::Result<Pair> {
        let exe = std::env::current_exe()?.display().to_string();
        let mut server = Process::start(&[exe, "serve".into()], Some(SERVER_CORE))?;
        let address = server.hear()?;
        let process = Process::start(&client.command(&address, people)?, Some(CLIENT_CORE))?;
        server.tell(&format!("await {people}"))?;
        match server.hear()?.as_str() {
            "ready" => {}
            other => return Err(io::Error::other(format!("the server said `{other}`"))),
        }
        let mut pair = Pair {
            client,
            process,
            server,
            people,
            sent: 0,
            waves: [WARM_UP; BATCHES.len()],
            idle_ns_per_s: 0.0,
        };
        // The last person's word, logs, and whatever else a start leaves to be done.
        sleep(Duration::from_secs(1));
        pair.calibrate()?;
        Ok(pair)
    }

    /// Finds out how many waves fill a window, and what the client uses when nothing happens.
    fn calibrate(&mut self) -> io::Result<()> {
        for (at, batch) in BATCHES.iter().enumerate() {
            self.waves[at] = WARM_UP;
            self.measure(at)?;
            let cost = self.measure(at)?;
            let wave_ns = cost.client * (self.people * batch) as f64;
            self.waves[at] =
                (WINDOW_NS / wave_ns).clamp(*WAVES.start(), *WAVES.end()).ceil() as usize;
        }
        let before = self.process.usage()?;
        sleep(Duration::from_secs(1));
        self.idle_ns_per_s = self.process.usage()?.since(&before).0;
        Ok(())
    }

    fn measure(&mut self, at: usize) -> io::Result<Cost> {
        let (waves, batch) = (self.waves[at], BATCHES[at]);
        self.wave(batch)?;
        let (client, server) = (self.process.usage()?, self.server.usage()?);
        for _ in 0..waves {
            self.wave(batch)?;
        }
        let messages = (waves * batch * self.people) as f64;
        let (total, user) = self.process.usage()?.since(&client);
        let (served, _) = self.server.usage()?.since(&server);
        Ok(Cost { client: total / messages, user: user / messages, server: served / messages })
    }

    /// Lets the server write to everybody once, and waits until the client has taken it in: what
    /// was written together is read together, and nothing else is.
    fn wave(&mut self, batch: usize) -> io::Result<()> {
        self.server.tell(&format!("wave {batch}"))?;
        self.server.hear()?;
        self.sent += (batch * self.people) as u64;
        let deadline = now_ns() + PATIENCE_NS;
        let mut before = self.process.usage()?.total_ns;
        while now_ns() < deadline {
            sleep(LULL);
            let now = self.process.usage()?.total_ns;
            if now - before < LULL_NS && self.process.is_asleep()? {
                return Ok(());
            }
            before = now;
        }
        Err(io::Error::other(format!("{} does not come to rest", self.client.name())))
    }

    /// Closes all connections and compares what was received with what was sent.
    fn end(mut self) -> io::Result<()> {
        self.server.hush();
        let received = self.client.received(&mut self.process)?;
        let word = if received == self.sent { "all" } else { "NOT all" };
        println!("\n{} received {word}: {received} of {}.", self.client.name(), self.sent);
        Ok(())
    }
}
