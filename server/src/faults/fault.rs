//! Faults committed on purpose: which message to which receiver, and the record of what was done.
//!
//! The choice hashes seed, room, message number and receiver, so it does not depend on timing and a
//! test can compute it beforehand.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use protocols::wire::rng::mix;
use serde::Serialize;

/// Records kept in memory; further ones go to the file only.
pub const RECORDS_MAX: usize = 1_000_000;
/// How much of a message's text a record keeps, in bytes: enough for a stamp at its head.
pub const RECORD_TEXT_BYTES_MAX: usize = 80;
/// A message held back to be swapped goes out unswapped after that long.
pub const HOLD_TIME_MAX: Duration = Duration::from_secs(1);

/// Which faults to commit. Chances are between 0 and 1 for each message and receiver.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// Another seed, another choice.
    pub seed: u64,
    /// Chance that a message is not sent.
    pub drop: f64,
    /// Chance that it is sent twice.
    pub duplicate: f64,
    /// Chance that it changes places with the receiver's next message of the room.
    pub reorder: f64,
    /// Chance that it is sent later.
    pub delay: f64,
    /// How much later.
    pub delay_time: Duration,
    /// Times in which nothing is served.
    pub stalls: Vec<Stall>,
}

/// A time in which the server serves nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When, counted from the server's start.
    pub after: Duration,
    /// How long.
    pub duration: Duration,
}

/// What happens to one message on its way to one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Not sent.
    Drop,
    /// Sent later.
    Delay,
    /// Sent twice.
    Duplicate,
    /// Sent behind its successor.
    Reorder,
}

impl Fault {
    /// The word for it in records and counters.
    pub fn word(self) -> &'static str {
        match self {
            Fault::Drop => "drop",
            Fault::Delay => "delay",
            Fault::Duplicate => "duplicate",
            Fault::Reorder => "reorder",
        }
    }
}

impl Rules {
    /// Whether messages must be handled receiver by receiver.
    pub fn touch_receivers(&self) -> bool {
        [self.drop, self.duplicate, self.reorder, self.delay].iter().any(|chance| *chance > 0.0)
    }

    /// The fault chosen for a message and a receiver; at most one, in the order of [`Fault`].
    pub fn choose(&self, room: &str, number: u32, receiver: &str) -> Option<Fault> {
        let mut hash = mix(self.seed ^ 0x7468_726f_6e67);
        for part in [room.as_bytes(), &number.to_be_bytes(), receiver.as_bytes()] {
            hash = mix(hash ^ part.len() as u64);
            for byte in part {
                hash = mix(hash ^ u64::from(*byte));
            }
        }
        let table = [
            (Fault::Drop, self.drop),
            (Fault::Delay, self.delay),
            (Fault::Duplicate, self.duplicate),
            (Fault::Reorder, self.reorder),
        ];
        table
            .into_iter()
            .find(|(fault, chance)| {
                let draw = mix(hash ^ *fault as u64) >> 11;
                (draw as f64) < chance * (1u64 << 53) as f64
            })
            .map(|(fault, _)| fault)
    }
}

/// `seed=7,drop=0.01,duplicate=0.01,reorder=0.01,delay=0.1:200ms,stall=3s:2s`, in any order.
impl FromStr for Rules {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rules = Rules::default();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (key, value) =
                item.split_once('=').ok_or_else(|| format!("fault {item:?} lacks its value"))?;
            match key {
                "seed" => rules.seed = value.parse().map_err(|_| format!("bad seed {value:?}"))?,
                "drop" => rules.drop = chance(value)?,
                "duplicate" => rules.duplicate = chance(value)?,
                "reorder" => rules.reorder = chance(value)?,
                "delay" => {
                    let (share, time) = pair(value, "delay=CHANCE:TIME")?;
                    (rules.delay, rules.delay_time) = (chance(share)?, duration(time)?);
                }
                "stall" => {
                    let (after, time) = pair(value, "stall=WHEN:HOW-LONG")?;
                    let stall = Stall { after: duration(after)?, duration: duration(time)? };
                    rules.stalls.push(stall);
                }
                _ => {
                    return Err(format!(
                        "unknown fault {key:?}: seed, drop, duplicate, reorder, delay or stall"
                    ));
                }
            }
        }
        Ok(rules)
    }
}

fn pair<'a>(value: &'a str, form: &str) -> Result<(&'a str, &'a str), String> {
    value.split_once(':').ok_or_else(|| format!("{value:?} is not of the form {form}"))
}

fn chance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|chance| (0.0..=1.0).contains(chance));
    number.ok_or_else(|| format!("{text:?} is not a chance between 0 and 1"))
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit_ms) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (text.strip_suffix('s').unwrap_or(""), 1000.0),
    };
    let time_ms = number.parse::<f64>().ok().filter(|time| (0.0..=1e9).contains(time));
    let time_ms = time_ms.ok_or_else(|| format!("{text:?} is not a time like 200ms or 2s"))?;
    Ok(Duration::from_secs_f64(time_ms * unit_ms / 1000.0))
}

/// One fault that was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// drop, delay, duplicate, reorder or stall.
    pub kind: &'static str,
    /// The room.
    pub room: String,
    /// The message's number in the room.
    pub number: u32,
    /// Who should have got it.
    pub receiver: String,
    /// The first [`RECORD_TEXT_BYTES_MAX`] bytes of the text.
    pub text: String,
}

impl Record {
    /// A record of a fault in a delivery.
    pub fn new(fault: Fault, room: &str, number: u32, receiver: &str, text: &str) -> Record {
        let mut end = text.len().min(RECORD_TEXT_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Record {
            kind: fault.word(),
            room: room.to_owned(),
            number,
            receiver: receiver.to_owned(),
            text: text[..end].to_owned(),
        }
    }

    /// A record of a stall.
    pub fn stall() -> Record {
        let nobody = String::new;
        Record { kind: "stall", room: nobody(), number: 0, receiver: nobody(), text: nobody() }
    }
}

/// What was committed so far.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) list: Vec<Record>,
    file: Option<BufWriter<File>>,
}

impl Records {
    /// Records in memory and, if wanted, in a new file.
    pub(crate) fn new(path: Option<&Path>) -> io::Result<Records> {
        let create = |path: &Path| {
            let unable = |error: io::Error| {
                io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
            };
            File::create(path).map_err(unable)
        };
        let file = path.map(create).transpose()?.map(BufWriter::new);
        Ok(Records { list: Vec::new(), file })
    }

    /// Adds one.
    pub(crate) fn push(&mut self, record: Record) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            serde_json::to_writer(&mut *file, &record)?;
            file.write_all(b"\n")?;
        }
        if self.list.len() < RECORDS_MAX {
            self.list.push(record);
        }
        Ok(())
    }

    /// Brings the file up to date.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }

    /// Gives up the file, after an error.
    pub(crate) fn drop_file(&mut self) {
        self.file = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_as_text() {
        let text = "seed=7, drop=0.25,delay=0.5:200ms,stall=3s:1.5s,stall=9s:10ms";
        let rules: Rules = text.parse().unwrap();
        let stall = |after, duration| Stall {
            after: Duration::from_millis(after),
            duration: Duration::from_millis(duration),
        };
        let expect = Rules {
            seed: 7,
            drop: 0.25,
            delay: 0.5,
            delay_time: Duration::from_millis(200),
            stalls: vec![stall(3000, 1500), stall(9000, 10)],
            ..Rules::default()
        };
        assert_eq!(rules, expect);
        assert_eq!("".parse(), Ok(Rules::default()));
        for bad in ["drop", "drop=2", "drop=x", "delay=0.1", "delay=0.1:5", "stall=1s:-2s", "hm=1"]
        {
            assert!(bad.parse::<Rules>().is_err(), "{bad}");
        }
    }

    #[test]
    fn choices_are_as_frequent_as_asked_and_depend_on_every_part() {
        let rules: Rules =
            "seed=1,drop=0.1,delay=0.1:1s,duplicate=0.1,reorder=0.1".parse().unwrap();
        let mut counts = [0usize; 4];
        for number in 0..40_000 {
            if let Some(fault) = rules.choose("live", number, "ann") {
                counts[fault as usize] += 1;
            }
        }
        // 10 %, then 10 % of what is left, and so on; 5 standard deviations are about 300.
        for (count, expect) in counts.into_iter().zip([4000, 3600, 3240, 2916]) {
            assert!(count.abs_diff(expect) < 300, "{counts:?}");
        }
        let all = |seed, room, receiver| -> Vec<_> {
            let rules = Rules { seed, ..rules.clone() };
            (0..100).map(|number| rules.choose(room, number, receiver)).collect()
        };
        assert_eq!(all(1, "live", "ann"), all(1, "live", "ann"));
        assert_ne!(all(1, "live", "ann"), all(2, "live", "ann"));
        assert_ne!(all(1, "live", "ann"), all(1, "love", "ann"));
        assert_ne!(all(1, "live", "ann"), all(1, "live", "bob"));
        assert_eq!(Rules { drop: 1.0, ..Rules::default() }.choose("", 0, ""), Some(Fault::Drop));
    }
}
