//! What a plain HTTP request can see: health, settings, metrics.

use protocols::wire::http::Refusal;
use protocols::yardstick;

use crate::config::{Commit, Config};
use crate::core::Core;
use crate::machine::sys;
use crate::outlook::counters;

/// What is answered to a plain request.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

/// The page at a path.
pub(crate) fn page(path: &str, core: &Core) -> Result<Page, Refusal> {
    let fine = |content_type, body| Ok(Page { status: 200, content_type, body });
    match path {
        "/healthz" => Ok(health(core)),
        "/info" => fine("application/json", info(&core.config)),
        "/metrics" => {
            let process = counters::process(&sys::usage(), core.start_ms);
            let text = core.counters.prometheus(&core.others) + &process;
            fine("text/plain; version=0.0.4; charset=utf-8", text)
        }
        yardstick::PATH => Err(Refusal::UpgradeRequired),
        _ => Err(Refusal::NotFound),
    }
}

fn health(core: &Core) -> Page {
    let content_type = "text/plain; charset=utf-8";
    match core.trouble() {
        None => Page { status: 200, content_type, body: "ok\n".to_owned() },
        Some(why) => Page { status: 503, content_type, body: why + "\n" },
    }
}

fn info(config: &Config) -> String {
    let faults = &config.faults;
    let stalls: Vec<_> = faults
        .stalls
        .iter()
        .map(|stall| [stall.after.as_millis() as u64, stall.duration.as_millis() as u64])
        .collect();
    let info = serde_json::json!({
        "name": "yardstick",
        "version": env!("CARGO_PKG_VERSION"),
        "subprotocols": yardstick::Encoding::ALL.map(yardstick::Encoding::subprotocol),
        "connections_max": config.connections_max,
        "history": config.history,
        "presence": config.presence.word(),
        "flush_window_ms": config.flush_window.as_millis() as u64,
        "encode": config.encode.word(),
        "flush": config.flush.word(),
        "io": config.io.word(),
        "deflate": if config.deflate { "on" } else { "off" },
        "avatars": config.avatars.word(),
        "avatar_bytes": config.avatar_bytes,
        "deliveries_per_second": config.deliveries_per_second,
        "cpu_per_message_us": config.cpu_per_message.as_nanos() as f64 / 1e3,
        "cpu_per_delivery_us": config.cpu_per_delivery.as_nanos() as f64 / 1e3,
        "lag_bytes_max": config.lag_bytes_max,
        "unwritable_max_ms": config.unwritable_max.as_millis() as u64,
        "registration": if config.registration { "on" } else { "off" },
        "page": if config.page { "on" } else { "off" },
        "commit": config.folder().map_or(Commit::Off, |_| config.commit).word(),
        "shards": config.shards,
        "service": config.bus.as_ref().map(|bus| &bus.service),
        "tls": if config.tls.is_some() { "on" } else { "off" },
        "origins": config.origins.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "connections_per_address": config.connections_per_address,
        "requests_per_second": config.requests_per_second,
        "login_failures": config.login_failures,
        "login_failures_per_address": config.login_failures_per_address,
        "log": config.log.word(),
        "pin": config.pin.to_string(),
        "hash_cost": config.hash_cost.word(),
        "token_lifetime_ms": config.token_lifetime.as_millis() as u64,
        "faults": {
            "seed": faults.seed,
            "drop": faults.drop,
            "duplicate": faults.duplicate,
            "reorder": faults.reorder,
            "delay": faults.delay,
            "delay_time_ms": faults.delay_time.as_millis() as u64,
            "stalls_ms": stalls,
        },
    });
    format!("{info:#}\n")
}
