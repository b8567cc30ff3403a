//! The table: CPU of a delivery at several sizes and bursts, servers in turn, round by round.

use std::io;

use crate::crowd::{FRAME_BYTES, Speech};
use crate::process::Process;
use crate::{CROWD_CORE, SERVER_CORE};

/// Messages at once.
const BURSTS: [usize; 3] = [1, 8, 32];
/// Writes of one measurement, at least.
const WRITES: usize = 60_000;
/// Bursts of one measurement, at least.
const TIMES: usize = 4;
const ROUNDS: usize = 7;

/// A server, by the words that start it.
struct Plan {
    name: String,
    speech: String,
    /// Without any, this program is the server.
    command: Vec<String>,
}

/// A server that runs, and its crowd.
struct Pair {
    name: String,
    server: Process,
    crowd: Process,
    per_person: f64,
}

/// Nanoseconds of one delivery.
#[derive(Clone, Copy)]
struct Cost {
    server: f64,
    both: f64,
}

pub(crate) fn table(words: &[String]) -> io::Result<()> {
    let own = |name: &str, speech: &str, role: &[&str]| Plan {
        name: name.to_owned(),
        speech: speech.to_owned(),
        command: role.iter().map(|word| (*word).to_owned()).collect(),
    };
    let mut plans = vec![
        own("bare epoll", "bare", &["bare"]),
        own("yardstick, epoll", "yardstick", &["serve", "0", "epoll"]),
        own("yardstick, uring", "yardstick", &["serve", "0", "uring"]),
    ];
    let (mut sizes, mut rounds) = (Vec::new(), ROUNDS);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or_else(|| io::Error::other("something is missing"));
        match word.as_str() {
            "--rounds" => rounds = next()?.parse().map_err(io::Error::other)?,
            "--with" => plans.push(Plan::parse(next()?)?),
            _ => sizes.push(word.parse().map_err(io::Error::other)?),
        }
    }
    if sizes.is_empty() {
        sizes.push(1_000);
    }
    println!("ns CPU of a delivery, median [least..greatest] of {rounds} rounds");
    for people in sizes {
        measure(&plans, people, rounds)?;
    }
    Ok(())
}

impl Plan {
    fn parse(word: &str) -> io::Result<Plan> {
        let parts: Vec<&str> = word.splitn(3, '=').collect();
        let [name, speech, command] = parts[..] else {
            return Err(io::Error::other(format!("not NAME=SPEECH=COMMAND: {word}")));
        };
        Speech::of(speech)?;
        let command = command.split_whitespace().map(str::to_owned).collect();
        Ok(Plan { name: name.to_owned(), speech: speech.to_owned(), command })
    }

    fn is_own(&self) -> bool {
        matches!(self.command[0].as_str(), "bare" | "serve")
    }

    fn start(&self, people: usize) -> io::Result<Pair> {
        let mut server = match self.is_own() {
            true => Process::own(&self.command, SERVER_CORE)?,
            false => Process::start(&self.command, SERVER_CORE)?,
        };
        let address = server.hear()?;
        let empty = server.memory()?;
        let words = ["crowd".to_owned(), self.speech.clone(), address, people.to_string()];
        let mut crowd = Process::own(&words, CROWD_CORE)?;
        crowd.hear()?;
        server.hold(true);
        let per_person = server.memory()?.saturating_sub(empty) as f64 / people as f64;
        Ok(Pair { name: self.name.clone(), server, crowd, per_person })
    }
}

impl Pair {
    /// Bursts of messages, each awaited; what a delivery cost, and the bytes of a frame.
    fn talk(&mut self, people: usize, burst: usize, bytes: usize) -> io::Result<(Cost, usize)> {
        self.server.hold(false);
        let times = (WRITES / people).max(TIMES);
        let (server_ns, crowd_ns) = (self.server.cpu_ns()?, self.crowd.cpu_ns()?);
        self.crowd.tell(&format!("{burst} {times} {bytes}"))?;
        let bytes = self.crowd.hear()?.parse().map_err(io::Error::other)?;
        let deliveries = (people * burst * times) as f64;
        let server = (self.server.cpu_ns()? - server_ns) as f64 / deliveries;
        let crowd = (self.crowd.cpu_ns()? - crowd_ns) as f64 / deliveries;
        self.server.hold(true);
        Ok((Cost { server, both: server + crowd }, bytes))
    }
}

fn measure(plans: &[Plan], people: usize, rounds: usize) -> io::Result<()> {
    let mut pairs = Vec::new();
    for plan in plans {
        match plan.start(people) {
            Ok(pair) => pairs.push(pair),
            Err(error) => println!("{}: left out at {people}: {error}", plan.name),
        }
    }
    println!("\n{people} people in one room; idle, private memory of the server for each:");
    for pair in &pairs {
        println!("  {:<16} {:>8.0} bytes", pair.name, pair.per_person);
    }
    println!(
        "{:>3} {:<16} {:>24} {:>24} {:>20} {:>20}",
        "a turn", "server", "ns of the server", "ns of both sides", "x bare", "both, x bare"
    );
    let mut bytes = FRAME_BYTES;
    for burst in BURSTS {
        let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); pairs.len()];
        for round in 0..=rounds {
            // Every other round goes the other way round; the first only warms up.
            for step in 0..pairs.len() {
                let at = if round % 2 == 0 { step } else { pairs.len() - 1 - step };
                let (cost, heard) = pairs[at].talk(people, burst, bytes)?;
                if plans[at].speech == "yardstick" {
                    bytes = heard;
                }
                if round > 0 {
                    costs[at].push(cost);
                }
            }
        }
        for (pair, list) in pairs.iter().zip(&costs) {
            let ratio = |part: fn(&Cost) -> f64| {
                let both = list.iter().zip(&costs[0]);
                spread(both.map(|(cost, bare)| part(cost) / part(bare)).collect(), 2)
            };
            println!(
                "{burst:>6} {:<16} {:>24} {:>24} {:>20} {:>20}",
                pair.name,
                spread(list.iter().map(|cost| cost.server).collect(), 0),
                spread(list.iter().map(|cost| cost.both).collect(), 0),
                ratio(|cost| cost.server),
                ratio(|cost| cost.both),
            );
        }
    }
    println!("a frame of the yardstick has {bytes} bytes");
    Ok(())
}

fn spread(mut list: Vec<f64>, digits: usize) -> String {
    list.sort_by(f64::total_cmp);
    let (least, median, most) = (list[0], list[list.len() / 2], list[list.len() - 1]);
    format!("{median:.digits$} [{least:.digits$}..{most:.digits$}]")
}
