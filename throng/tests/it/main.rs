//! End-to-end tests: the built binary against servers whose behavior is known, on loopback, on
//! free ports. Each test takes a few seconds at most.

// Starts the binary, bounds its time and memory, and reads what it leaves behind.
mod browser;
mod rig;
mod socketio;

// What a user types and what comes back: exit codes, words, files.
mod cli;

// Several runs that answer one question: compare, ablate, suites.
mod experiments;

// An XMPP server that commits faults on purpose.
mod metrics;
mod muc;

// Mistakes that are told by the plan, before anything is started.
mod foreseen;

// Known truth: a target's own record of its faults against the ledger.
mod ledger;

// The knobs of the yardstick, from the scenario to the summary.
mod knobs;

// Known truth: a target that stalls, as corrected latency and service time show it.
mod stall;
mod streams;

// Runs that are ended from outside, kindly or not.
mod killed;

// People who write by name, lose their connections and come back.
mod comebacks;

// Targets that break every rule, each in its own way.
mod hostile;

// The yardstick with a data folder: killed, stopped, copied.
mod durable;

// Several yardsticks that are one, over a real NATS server.
mod nodes;

// The yardstick as an operator has it: settings, logs, certificates, what cannot start.
mod operations;

// The page of the yardstick, in a real browser.
mod web;

// Encrypted targets.
mod tls;

// Real servers, and what they counted themselves.
mod ejabberd;
mod fastapi;
mod prosody;

// Where a target's time goes, and profilers that fail.
mod profile;

// One crowd in one process or in several.
mod workers;

// A population that moves within one run.
mod held;

// A population that a governor moves.
mod governed;

// The rules of the house, as far as a program can check them.
mod tidy;
