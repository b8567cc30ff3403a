//! `throng serve --workers N`: several servers of this program behind one port.
//!
//! Each holds as many connections as one process may, and they are one service over NATS. The
//! parent only looks after them: it passes signals on, and starts anew who has crashed.

use crate::cli::ServeArgs;
use crate::failure::{Ending, Failure};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Most workers of one parent.
const WORKERS_MAX: usize = 64;
/// How long a worker that has ended rests, the first time and at most.
const REST: Duration = Duration::from_millis(250);
const REST_MAX: Duration = Duration::from_secs(8);
/// Looks at the workers that one may survive to count as sound again.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const SOUND_LOOKS: u32 = 40;

/// One place for a worker.
struct Place {
    number: usize,
    child: Option<Child>,
    /// How long the next rest is.
    rest: Duration,
    /// Looks that it has been there, or is still to rest.
    looks: u32,
}

/// Serves by `count` workers until SIGINT or SIGTERM.
pub(super) fn start(args: &ServeArgs, count: usize) -> Ending {
    if args.nats.is_none() {
        let why = "--workers needs --nats URL: the workers are one service over a NATS server \
                   (apt-get install nats-server; nats-server --jetstream)";
        return Err(Failure::usage(why));
    }
    let Some(data) = &args.data else {
        return Err(Failure::usage("--workers needs --data DIR, for a folder of each worker"));
    };
    if count > WORKERS_MAX {
        return Err(Failure::usage(format!("there can be 1 to {WORKERS_MAX} workers")));
    }
    let unable = |error| Failure::unmeasured(format!("cannot start workers: {error}"));
    let (address, _held) = server::hold_port(args.listen).map_err(|error| {
        Failure::unmeasured(format!("cannot listen on {}: {error}", args.listen))
    })?;
    let signals = signals().map_err(unable)?;
    let mut places: Vec<Place> = (0..count).map(Place::new).collect();
    for place in &mut places {
        place.fill(&address.to_string(), data).map_err(unable)?;
    }
    eprintln!("yardstick: {count} workers at ws://{address}{}", protocols::yardstick::PATH);
    let is_fine = look_after(&mut places, &signals, |place| place.fill(&address.to_string(), data));
    match is_fine.map_err(unable)? {
        true => Ok(0),
        false => Err(Failure::unmeasured("a worker ended with an error")),
    }
}

/// Until a signal ends them; whether all have ended well.
fn look_after(
    places: &mut [Place],
    signals: &Receiver<i32>,
    fill: impl Fn(&mut Place) -> std::io::Result<()>,
) -> std::io::Result<bool> {
    // Any other signal ends it.
    while let Ok(SIGCHLD) | Err(RecvTimeoutError::Timeout) = signals.recv_timeout(LOOK_EVERY) {
        for place in &mut *places {
            place.looks = place.looks.saturating_add(1);
            if let Some(status) = place.ended()? {
                let (number, rest) = (place.number, place.rest);
                eprintln!("yardstick: worker {number} has ended ({status}); again in {rest:?}");
            }
            if place.is_due() {
                fill(place)?;
            }
        }
    }
    for child in places.iter().filter_map(|place| place.child.as_ref()) {
        // SAFETY: a signal to our own child, which has not been waited for.
        unsafe { libc::kill(child.id() as libc::pid_t, SIGTERM) };
    }
    let mut is_fine = true;
    for child in places.iter_mut().filter_map(|place| place.child.as_mut()) {
        let status = child.wait()?;
        // Who was just starting does not know yet what else to do with the signal.
        is_fine &= status.success() || status.signal() == Some(SIGTERM);
    }
    Ok(is_fine)
}

impl Place {
    fn new(number: usize) -> Place {
        Place { number, child: None, rest: REST, looks: 0 }
    }

    /// Starts a worker here: this program with this command line, but for port and folder.
    fn fill(&mut self, address: &str, data: &Path) -> std::io::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(without(std::env::args_os().skip(1), &["--workers", "--listen", "--data"]));
        let folder = data.join(format!("worker-{}", self.number));
        command.args(["--workers", "0", "--share-port", "--listen", address, "--data"]).arg(folder);
        // SAFETY: prctl only changes the child's own process and keeps no pointer. Nobody is to
        // serve whom nobody looks after.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        self.child = Some(command.spawn()?);
        self.looks = 0;
        Ok(())
    }

    /// How it ended, if it has since the last look.
    fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else { return Ok(None) };
        let status = child.try_wait()?;
        if status.is_some() {
            self.child = None;
            self.rest = if self.looks > SOUND_LOOKS { REST } else { (self.rest * 2).min(REST_MAX) };
            self.looks = 0;
        }
        Ok(status)
    }

    fn is_due(&self) -> bool {
        self.child.is_none() && LOOK_EVERY * self.looks >= self.rest
    }
}

/// A command line without some options that have a value.
fn without(words: impl Iterator<Item = OsString>, options: &[&str]) -> Vec<OsString> {
    let mut left = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let is_one = |option: &&str| text == **option;
        let is_glued =
            |option: &&str| text.strip_prefix(*option).is_some_and(|r| r.starts_with('='));
        if options.iter().any(is_one) {
            words.next();
        } else if !options.iter().any(is_glued) {
            left.push(word);
        }
    }
    left
}

/// Signals are taken by a thread of their own, which may do what a signal handler may not.
fn signals() -> std::io::Result<Receiver<i32>> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGCHLD])?;
    let (sender, receiver) = channel();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if sender.send(signal).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_out_however_they_are_written() {
        let words = "serve --workers 3 --listen=1:2 --history 7 --data x --dataset --workers=2";
        let left =
            without(words.split(' ').map(OsString::from), &["--workers", "--listen", "--data"]);
        assert_eq!(left, ["serve", "--history", "7", "--dataset"]);
    }
}
