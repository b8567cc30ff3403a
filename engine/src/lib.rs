//! Runs a plan on this machine: shards, sockets, TLS, timers, probes, health.
