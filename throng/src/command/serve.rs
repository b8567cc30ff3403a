//! `throng serve`: the yardstick.

mod workers;

use crate::cli::ServeArgs;
use crate::failure::{Ending, Failure};
use crate::{occupant, settings};
use server::config::{Config, check_exposure};
use server::{BusConfig, Commit, Credentials, HashCost, Keys, Stop, prepare};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};

/// Serves until SIGINT or SIGTERM.
pub(crate) fn serve(args: ServeArgs) -> Ending {
    let args = match &args.config {
        Some(file) => settings::with_file(file, std::env::args_os().collect::<Vec<OsString>>())?,
        None => args,
    };
    if let Some(file) = &args.backup {
        return backup(&args, file);
    }
    // A worker is told that it is to start none itself, whatever file and environment say.
    if let Some(count) = args.workers.filter(|count| *count > 0) {
        check_exposure(args.listen, args.expose)
            .map_err(|why| Failure::usage(format!("{why} (--expose)")))?;
        return workers::start(&args, count);
    }
    let config = config(&args)?;
    let is_kept = config.data.is_some();
    let scheme = if config.tls.is_some() { "wss" } else { "ws" };
    let listener = listen(args.listen, args.share_port || args.shards > 1)?;
    let unable = |error| Failure::unmeasured(format!("the yardstick failed: {error}"));
    let address = listener.local_addr().map_err(unable)?;
    let stop = Stop::new();
    stop_on_signal(&stop).map_err(unable)?;
    let server = prepare(config, listener).map_err(unable)?;
    eprintln!("yardstick: {scheme}://{address}{}", protocols::yardstick::PATH);
    if args.page {
        eprintln!("yardstick: people talk at {}://{address}/", scheme.replace("ws", "http"));
    }
    if !is_kept && !args.ephemeral {
        eprintln!(
            "yardstick: nothing is kept when it ends; --data DIR keeps it, --ephemeral agrees"
        );
    }
    server.run(&stop).map_err(unable)?;
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

fn backup(args: &ServeArgs, file: &std::path::Path) -> Ending {
    let Some(data) = &args.data else {
        return Err(Failure::usage("--backup copies what --data DIR keeps: which folder?"));
    };
    let unable = |why| Failure::unmeasured(format!("no backup: {why}"));
    server::backup(data, file).map_err(unable).map(|()| 0)
}

/// The server's settings, checked.
fn config(args: &ServeArgs) -> Result<Config, Failure> {
    if args.ephemeral && args.data.is_some() {
        return Err(Failure::usage(
            "--ephemeral keeps nothing and --data keeps everything: take one of them away (here, \
             in the environment or in the file)",
        ));
    }
    check_exposure(args.listen, args.expose)
        .map_err(|why| Failure::usage(format!("{why} (--expose)")))?;
    let keeps = args.data.is_some() && args.commit != Commit::Off;
    let default_cost = if keeps { HashCost::Standard } else { HashCost::Off };
    let config = Config {
        connections_max: args.connections,
        history: args.history,
        presence: args.presence,
        flush_window: args.flush_window,
        encode: args.encode,
        flush: args.flush,
        io: args.io,
        deflate: args.deflate,
        avatars: args.avatars,
        avatar_bytes: args.avatar_bytes,
        deliveries_per_second: args.deliveries_per_second,
        cpu_per_message: args.cpu_per_message,
        cpu_per_delivery: args.cpu_per_delivery,
        faults: args.fault.clone().unwrap_or_default(),
        fault_file: args.fault_log.clone(),
        registration: args.registration,
        page: args.page,
        data: args.data.clone(),
        shards: args.shards,
        bus: bus(args)?,
        commit: args.commit,
        hash_cost: args.hash_cost.unwrap_or(default_cost),
        tls: keys(args)?,
        origins: args.origin.clone(),
        connections_per_address: args.connections_per_address,
        requests_per_second: args.requests_per_second,
        login_failures: args.login_failures,
        login_failures_per_address: args.login_failures_per_address,
        log: args.log,
        pin: args.pin,
        ..Config::default()
    };
    config.check().map_err(Failure::usage)?;
    Ok(config)
}

/// The certificate and its key, if there are any.
fn keys(args: &ServeArgs) -> Result<Option<Keys>, Failure> {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Keys::load(certificate, key).map(Some).map_err(Failure::usage)
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(Failure::usage("--tls-cert needs the key of it: --tls-key FILE")),
        (None, Some(_)) => Err(Failure::usage("--tls-key needs a certificate: --tls-cert FILE")),
    }
}

fn listen(address: SocketAddr, shared: bool) -> Result<TcpListener, Failure> {
    use std::io::ErrorKind;
    let bound = match shared {
        true => server::listen_shared(address),
        false => TcpListener::bind(address),
    };
    bound.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => {
                let by = occupant::of(address).unwrap_or("something".to_owned());
                format!("{by} is there already; choose another port, or 0 for a free one")
            }
            ErrorKind::AddrNotAvailable => {
                format!("{} is no address of this machine", address.ip())
            }
            ErrorKind::PermissionDenied => {
                format!("port {} is for root; choose one above 1023", address.port())
            }
            _ => error.to_string(),
        };
        Failure::unmeasured(format!("cannot listen on {address}: {why}"))
    })
}

/// Signals are taken by a thread of their own, which may do what a signal handler may not.
fn stop_on_signal(stop: &Stop) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let stop = stop.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => stop.reload(),
                _ => return stop.stop(),
            }
        }
    })?;
    Ok(())
}
