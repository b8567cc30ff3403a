//! The binary: arguments, wiring, terminal.
fn main() {}
