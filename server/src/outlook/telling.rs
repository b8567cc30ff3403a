//! What is told of the server as a whole: its start, its end, its certificate, how long it waits.

use std::net::SocketAddr;

use crate::config::{Commit, Config};
use crate::core::{Core, World};
use crate::outlook::journal::{Field, Level, Value};

impl Core {
    /// A room is about to flush: its oldest message has waited until now.
    pub(crate) fn note_flush_wait(&mut self, room: u32, world: &mut impl World) {
        if let Some(since_us) = self.rooms[room as usize].unflushed_since_us.take() {
            self.counters.flush_waits.add(world.now_us().saturating_sub(since_us));
        }
    }

    /// The server, or a shard of it, serves from now on.
    pub(crate) fn tell_start(&mut self, address: SocketAddr, shard: usize) {
        let config = &self.config;
        let on = |is_on| Value::Text(if is_on { "on" } else { "off" });
        let commit = config.folder().map_or(Commit::Off, |_| config.commit);
        let listen = address.to_string();
        let fields = vec![
            ("listen", Value::Text(&listen)),
            ("version", Value::Text(env!("CARGO_PKG_VERSION"))),
            ("pid", Value::Number(std::process::id().into())),
            ("connections", Value::Number(config.connections_max as u64)),
            ("tls", on(config.tls.is_some())),
            ("registration", on(config.registration)),
            ("commit", Value::Text(commit.word())),
        ];
        let fields = of_shard(config, shard, fields);
        self.journal.note(Level::Info, "start", &fields);
        if !address.ip().is_loopback() && (config.registration || config.tls.is_none()) {
            let fields = [
                ("registration", on(config.registration)),
                ("tls", on(config.tls.is_some())),
                (
                    "advice",
                    Value::Text("other machines can reach it; see --tls-cert, --registration"),
                ),
            ];
            self.journal.note(Level::Warn, "exposed", &fields);
        }
    }

    /// The server, or a shard of it, has ended.
    pub(crate) fn tell_stop(&mut self, shard: usize) {
        self.journal.tell_all();
        let counters = &self.counters;
        let fields = vec![
            ("accepted", Value::Number(counters.accepted)),
            ("logins", Value::Number(counters.logins)),
            ("messages", Value::Number(counters.messages)),
            ("deliveries", Value::Number(counters.deliveries)),
            ("slow_consumers", Value::Number(counters.slow_consumers)),
        ];
        let fields = of_shard(&self.config, shard, fields);
        self.journal.note(Level::Info, "stop", &fields);
    }

    /// The certificate was read again, or could not be.
    pub(crate) fn tell_reload(&mut self, outcome: Result<String, String>) {
        match outcome {
            Ok(file) => {
                self.journal.note(Level::Info, "tls_reloaded", &[("file", Value::Text(&file))]);
            }
            Err(why) => {
                self.journal.note(Level::Error, "tls_not_reloaded", &[("why", Value::Text(&why))]);
            }
        }
    }
}

/// Names the shard, where there are several.
fn of_shard<'a>(config: &Config, shard: usize, mut fields: Vec<Field<'a>>) -> Vec<Field<'a>> {
    if config.shards > 1 {
        fields.push(("shard", Value::Number(shard as u64)));
    }
    fields
}
