//! `throng serve`: the yardstick.

use crate::cli::ServeArgs;
use crate::failure::{Ending, Failure};
use server::config::{Config, check_exposure};
use server::{Stop, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::TcpListener;
use std::time::Duration;

/// Serves until SIGINT or SIGTERM.
pub(crate) fn serve(args: &ServeArgs) -> Ending {
    check_exposure(args.listen, args.expose)
        .map_err(|why| Failure::usage(format!("{why} (--expose)")))?;
    let config = Config {
        connections_max: args.connections,
        history: args.history,
        presence: args.presence.parse().map_err(Failure::usage)?,
        flush_window: millis(&args.flush_window)?,
        faults: args.fault.as_deref().unwrap_or("").parse().map_err(Failure::usage)?,
        fault_file: args.fault_log.clone(),
        ..Config::default()
    };
    let unable = |error| Failure::unmeasured(format!("cannot listen on {}: {error}", args.listen));
    let listener = TcpListener::bind(args.listen).map_err(unable)?;
    let address = listener.local_addr().map_err(unable)?;
    let stop = Stop::new();
    stop_on_signal(&stop).map_err(unable)?;
    eprintln!("yardstick: ws://{address}{}", protocols::yardstick::PATH);
    run(config, listener, &stop)
        .map_err(|error| Failure::unmeasured(format!("the yardstick failed: {error}")))?;
    Ok(0)
}

/// Signals are taken by a thread of their own, which may do what a signal handler may not.
fn stop_on_signal(stop: &Stop) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let stop = stop.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().next().is_some() {
            stop.stop();
        }
    })?;
    Ok(())
}

fn millis(text: &str) -> Result<Duration, Failure> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let millis = match text.strip_suffix("ms") {
        Some(text) => number(text),
        None => text.strip_suffix('s').and_then(number).map(|seconds| seconds * 1_000),
    };
    millis.map(Duration::from_millis).ok_or_else(|| {
        Failure::usage(format!("--flush-window {text}: no duration; write it as 20ms or 1s"))
    })
}
