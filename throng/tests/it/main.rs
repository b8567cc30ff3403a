//! End-to-end tests: the built binary against servers whose behavior is known, on loopback, on
//! free ports. Each test takes a few seconds at most.

// Starts the binary, bounds its time and memory, and reads what it leaves behind.
mod rig;

// What a user types and what comes back: exit codes, words, files.
mod cli;

// Encrypted targets.
mod tls;
