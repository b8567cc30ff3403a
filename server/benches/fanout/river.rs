//! A crowd that enters one room while everybody is told; and how late messages are in a calm.

use std::io;
use std::time::{Duration, Instant};

use crate::crowd::{Crowd, Speech};
use crate::process::Process;

/// `people` enter, so many a second; each is announced to all who are there.
pub(crate) fn river(people: usize, per_second: usize) -> io::Result<()> {
    let (yardstick, address) = crate::start(&["serve".to_owned(), "200".to_owned()])?;
    let mut crowd = Crowd::new()?;
    let (start, start_ns) = (Instant::now(), yardstick.cpu_ns()?);
    let mut late_max = Duration::ZERO;
    for number in 0..people {
        let due = Duration::from_secs_f64(number as f64 / per_second as f64);
        while let Some(wait) = due.checked_sub(start.elapsed()) {
            crowd.drain(wait.min(Duration::from_millis(1)))?;
        }
        late_max = late_max.max(start.elapsed() - due);
        crowd.enter(Speech::Yardstick, address)?;
        if (number + 1) % 2500 == 0 {
            progress(&yardstick, &crowd, start, start_ns)?;
        }
    }
    let entered = start.elapsed();
    let goal = (people * (people - 1) / 2) as u64;
    crowd.drain_until(|crowd| crowd.marks >= goal)?;
    let told = start.elapsed();
    crowd.settle()?;
    let cpu = (yardstick.cpu_ns()? - start_ns) as f64 / 1e9;
    println!(
        "{people} people in {:.1} s (latest start {} ms late); {} of {goal} arrivals told {:.2} s \
         after the last; server CPU {cpu:.1} s = {:.2} cores",
        entered.as_secs_f64(),
        late_max.as_millis(),
        crowd.marks,
        (told - entered).as_secs_f64(),
        cpu / told.as_secs_f64(),
    );
    Ok(())
}

fn progress(yardstick: &Process, crowd: &Crowd, start: Instant, start_ns: u64) -> io::Result<()> {
    let cpu = (yardstick.cpu_ns()? - start_ns) as f64 / 1e9;
    let (now, memory, told) = (start.elapsed().as_secs_f64(), yardstick.memory()?, crowd.marks);
    println!(
        "{:>6} in after {now:>6.1} s: {told:>11} told, server CPU {cpu:>6.1} s, {:>4} MiB",
        crowd.streams.len(),
        memory >> 20
    );
    Ok(())
}

/// One of `people` talks, so many messages a second; when the others have each, as the reader sees.
pub(crate) fn latency(people: usize, per_second: usize, seconds: usize) -> io::Result<()> {
    for words in [&["bare"][..], &["serve", "20", "epoll"], &["serve", "20", "uring"]] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        print!("{:<16} ", words.join(" "));
        let speech = if words[0] == "bare" { Speech::Bare } else { Speech::Yardstick };
        calm(&words, speech, (people, per_second, seconds))?;
    }
    Ok(())
}

fn calm(
    words: &[String],
    speech: Speech,
    (people, per_second, seconds): (usize, usize, usize),
) -> io::Result<()> {
    let (yardstick, address) = crate::start(words)?;
    let mut crowd = Crowd::new()?;
    for _ in 0..people {
        crowd.enter(speech, address)?;
        crowd.drain(Duration::ZERO)?;
    }
    crowd.settle()?;
    crowd.times = Some(Vec::new());
    let (start, start_ns) = (Instant::now(), yardstick.cpu_ns()?);
    let mut late_us = Vec::new();
    for number in 0..per_second * seconds {
        let due = Duration::from_secs_f64(number as f64 / per_second as f64);
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        let (said, goal) = (Instant::now(), crowd.heard(speech) + people as u64);
        crowd.say(speech, number % people)?;
        crowd.drain_until(|crowd| crowd.heard(speech) >= goal)?;
        let times = crowd.times.as_mut().map(std::mem::take).unwrap_or_default();
        late_us.extend(times.iter().map(|time| (*time - said).as_secs_f64() * 1e6));
    }
    late_us.sort_by(f64::total_cmp);
    let at = |share: f64| late_us[((late_us.len() - 1) as f64 * share) as usize];
    let cpu = (yardstick.cpu_ns()? - start_ns) as f64 / 1e9 / start.elapsed().as_secs_f64();
    println!(
        "{} deliveries, {per_second} messages a second to {people} people: p50 {:.0} us, p90 \
         {:.0} us, p99 {:.0} us, latest {:.0} us; server CPU {:.1} % of a core",
        late_us.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0),
        cpu * 100.0
    );
    Ok(())
}
