//! Memory of throng's processes for each person online in a room of the yardstick, before, during
//! and after traffic.

use crate::clients::{throng, write_scenario};
use crate::clock::sleep;
use crate::process::{Memory, Process, children};
use crate::stats::Spread;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

const PEOPLE: [usize; 4] = [1_000, 10_000, 19_500, 40_000];
/// People of a room; rooms are dealt out to the yardsticks in turn, so there are multiples of
/// [`YARDSTICKS`] of them.
const ROOM: usize = 500;
/// Yardsticks for more people than one can hold.
const YARDSTICKS: usize = 3;
const PEOPLE_PER_YARDSTICK: usize = 19_500;
const ARRIVALS: usize = 1_000;
/// When the room is looked at, seconds after the last arrival, with what goes on then.
const LOOKS: [(u64, &str); 6] = [
    (5, "idle"),
    (15, "idle"),
    (30, "traffic"),
    (40, "traffic"),
    (55, "after traffic"),
    (75, "after traffic"),
];
/// Talk begins and ends, seconds after the last arrival.
const TALK: (u64, u64) = (20, 45);
/// Longer than any look.
const STAY: &str = "1h";
/// The smallest run: somebody who listens and somebody who talks.
const BASE: usize = 2;
/// How often that is measured: what the allocator keeps of it differs by megabytes.
const BASE_RUNS: usize = 5;

/// Measures for so many people, or the usual numbers; prints Markdown.
pub(crate) fn measure(people: &[usize]) -> io::Result<()> {
    let people = if people.is_empty() { &PEOPLE } else { people };
    let bases = (0..BASE_RUNS).map(|_| Looks::take(BASE, &LOOKS[..1]));
    let bases = bases.collect::<io::Result<Vec<_>>>()?;
    let [private, pss] = [|m: &Memory| m.private, |m: &Memory| m.pss]
        .map(|of| Spread::of(bases.iter().map(|base| of(&base.memories[0]) as f64)));
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    println!(
        "\n{BASE} people: {:.1} [{:.1}..{:.1}] MiB private, what a run needs by itself.",
        mib(private.median),
        mib(private.min),
        mib(private.max)
    );
    println!("\nBytes of private memory a person, above those of a run with {BASE}:\n");
    let heads = LOOKS.map(|(at, what)| format!("{what}, {at} s")).join(" | ");
    println!(
        "| people | processes | {heads} | RSS in all | PSS a person at the end | online | messages owed | lost |"
    );
    println!("| --- | --- |{}", " --- |".repeat(LOOKS.len() + 5));
    for &count in people {
        let looks = Looks::take(count, &LOOKS)?;
        println!("{}", looks.row(count, private.median, pss.median));
    }
    Ok(())
}

/// What the looks at one run gave.
struct Looks {
    processes: usize,
    memories: Vec<Memory>,
    heard: Heard,
}

/// What the run says it was: figures of memory are of little use if nobody was there.
struct Heard {
    online: u64,
    owed: u64,
    lost: u64,
}

impl Heard {
    fn read(said: &str) -> io::Result<Heard> {
        let summary: serde_json::Value = serde_json::from_str(said)?;
        let number = |part: &str, key: &str| summary[part][key].as_u64().unwrap_or(0);
        Ok(Heard {
            online: number("people", "online_max"),
            owed: number("ledger", "owed"),
            lost: number("ledger", "lost") + number("ledger", "announcements_lost"),
        })
    }
}

impl Looks {
    fn take(people: usize, at: &[(u64, &str)]) -> io::Result<Looks> {
        let run = Process::start(&throng(&scenario(people)?), None)?;
        sleep(Duration::from_secs((people / ARRIVALS) as u64 + 2));
        let mut memories = Vec::new();
        let mut past = 0;
        let mut processes = 1;
        for &(at, what) in at {
            sleep(Duration::from_secs(at - past));
            past = at;
            let mut pids = children(run.pid(), "worker")?;
            pids.push(run.pid());
            processes = pids.len();
            let memory = Memory::of_all(&pids)?;
            eprintln!("{people} people, {what}, {at} s: {memory:?}");
            memories.push(memory);
        }
        let said = end(run)?;
        Ok(Looks { processes, memories, heard: Heard::read(&said)? })
    }

    fn row(&self, people: usize, private: f64, pss: f64) -> String {
        let each = |ours: u64, base: f64| ((ours as f64 - base) / (people - BASE) as f64).round();
        let cells = self.memories.iter().map(|ours| each(ours.private, private).to_string());
        let cells: Vec<String> = cells.collect();
        let last = self.memories.last().copied().unwrap_or_default();
        format!(
            "| {people} | {} | {} | {:.1} MiB | {} | {} | {} | {} |",
            self.processes,
            cells.join(" | "),
            last.rss as f64 / f64::from(1 << 20),
            each(last.pss, pss),
            self.heard.online,
            self.heard.owed,
            self.heard.lost
        )
    }
}

/// Ends a run as a user would, so that it stops its yardsticks and tells what was.
fn end(mut run: Process) -> io::Result<String> {
    run.interrupt();
    run.hear_all()
}

/// People of rooms of [`ROOM`], and one in each who talks for a while. Rooms and yardsticks are
/// both dealt out by a person's place in the crowd: a room is on one yardstick.
fn scenario(people: usize) -> io::Result<PathBuf> {
    let yardsticks = if people > PEOPLE_PER_YARDSTICK { YARDSTICKS } else { 1 };
    let rooms = people.div_ceil(ROOM).next_multiple_of(yardsticks);
    let text = format!(
        "about: Memory of {people} people online in rooms\n\
         target: \"yardstick?processes={yardsticks}\"\n\
         rooms: {{count: {rooms}, name: \"room-{{n}}\"}}\n\
         crowds:\n\
         \x20 listeners: {{size: {listeners}, journey: [login, join, wait: {STAY}]}}\n\
         \x20 talkers:\n\
         \x20   size: {rooms}\n\
         \x20   journey:\n\
         \x20     - login\n\
         \x20     - join\n\
         \x20     - wait: {before}s\n\
         \x20     - talk: {{every: 1s, for: {talk_s}s, bytes: 100}}\n\
         \x20     - wait: {STAY}\n\
         timeline:\n\
         \x20 - run: talkers at once\n\
         \x20 - run: listeners at {ARRIVALS}/s\n",
        listeners = people - rooms,
        before = TALK.0 + (people / ARRIVALS) as u64,
        talk_s = TALK.1 - TALK.0,
    );
    write_scenario(&format!("online-{people}"), &text)
}
