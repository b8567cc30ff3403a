//! `throng serve`: the yardstick.

mod workers;

use crate::cli::ServeArgs;
use crate::failure::{Ending, Failure};
use server::config::{Config, check_exposure};
use server::{BusConfig, Commit, Credentials, HashCost, Stop, run};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::TcpListener;
use std::time::Duration;

/// Serves until SIGINT or SIGTERM.
pub(crate) fn serve(args: &ServeArgs) -> Ending {
    if let (Some(file), Some(data)) = (&args.backup, &args.data) {
        let unable = |why| Failure::unmeasured(format!("no backup: {why}"));
        return server::backup(data, file).map_err(unable).map(|()| 0);
    }
    check_exposure(args.listen, args.expose)
        .map_err(|why| Failure::usage(format!("{why} (--expose)")))?;
    if let Some(count) = args.workers {
        return workers::start(args, count);
    }
    let commit = args.commit.parse().map_err(Failure::usage)?;
    let keeps = args.data.is_some() && commit != Commit::Off;
    let config = Config {
        connections_max: args.connections,
        history: args.history,
        presence: args.presence.parse().map_err(Failure::usage)?,
        flush_window: duration("--flush-window", &args.flush_window)?,
        deflate: on_or_off("--deflate", &args.deflate)?,
        avatars: args.avatars.parse().map_err(Failure::usage)?,
        avatar_bytes: args.avatar_bytes,
        deliveries_per_second: args.deliveries_per_second,
        cpu_per_message: duration("--cpu-per-message", &args.cpu_per_message)?,
        cpu_per_delivery: duration("--cpu-per-delivery", &args.cpu_per_delivery)?,
        faults: args.fault.as_deref().unwrap_or("").parse().map_err(Failure::usage)?,
        fault_file: args.fault_log.clone(),
        registration: on_or_off("--registration", &args.registration)?,
        page: on_or_off("--page", &args.page)?,
        data: args.data.clone(),
        shards: args.shards,
        bus: bus(args)?,
        commit,
        hash_cost: match &args.hash_cost {
            Some(word) => word.parse().map_err(Failure::usage)?,
            None if keeps => HashCost::Standard,
            None => HashCost::Off,
        },
        ..Config::default()
    };
    config.check().map_err(Failure::usage)?;
    let unable = |error| Failure::unmeasured(format!("cannot listen on {}: {error}", args.listen));
    let listener = match args.share_port || args.shards > 1 {
        true => server::listen_shared(args.listen).map_err(unable)?,
        false => TcpListener::bind(args.listen).map_err(unable)?,
    };
    let address = listener.local_addr().map_err(unable)?;
    let stop = Stop::new();
    stop_on_signal(&stop).map_err(unable)?;
    eprintln!("yardstick: ws://{address}{}", protocols::yardstick::PATH);
    if args.page == "on" {
        eprintln!("yardstick: people talk at http://{address}/");
    }
    if args.data.is_none() && !args.ephemeral {
        eprintln!(
            "yardstick: nothing is kept when it ends; --data DIR keeps it, --ephemeral agrees"
        );
    }
    run(config, listener, &stop)
        .map_err(|error| Failure::unmeasured(format!("the yardstick failed: {error}")))?;
    Ok(0)
}

/// How it joins the others, if it does.
fn bus(args: &ServeArgs) -> Result<Option<BusConfig>, Failure> {
    let Some(url) = args.nats.clone() else { return Ok(None) };
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (user, password) = (variable("NATS_USER"), variable("NATS_PASSWORD"));
    let credentials = match (&args.nats_credentials, user, password, variable("NATS_TOKEN")) {
        (Some(file), ..) => {
            Credentials::read(file).map_err(|error| Failure::usage(error.to_string()))?
        }
        (None, Some(user), Some(password), _) => Credentials::User { user, password },
        (None, _, _, Some(token)) => Credentials::Token(token),
        _ => Credentials::None,
    };
    Ok(Some(BusConfig { url, service: args.nats_service.clone(), credentials }))
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

fn on_or_off(flag: &str, word: &str) -> Result<bool, Failure> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Failure::usage(format!("{flag} is on or off, not {word:?}"))),
    }
}

fn duration(flag: &str, text: &str) -> Result<Duration, Failure> {
    const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", NS_PER_S)];
    const NS_PER_S: u64 = 1_000_000_000;
    let found = UNITS.iter().find_map(|(unit, ns)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(*ns)
    });
    found.map(Duration::from_nanos).ok_or_else(|| {
        Failure::usage(format!("{flag} {text}: no duration; write it as 20us, 20ms or 1s"))
    })
}
