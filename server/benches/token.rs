//! What it costs to check a token, which every reconnect does on the event loop.
//!
//! `cargo bench -p server --bench token`
#![allow(clippy::disallowed_methods)] // a benchmark measures time

use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 11;
const CHECKS: u32 = 20_000;
const EXPIRES_MS: u64 = 1_800_000_000_000;

fn main() {
    let tokens = server::Tokens::new([7; 32]);
    for name in ["ann".to_owned(), "x".repeat(64)] {
        let token = tokens.make(&name, EXPIRES_MS);
        let mut rounds = [0.0; ROUNDS];
        for round in &mut rounds {
            let start = Instant::now();
            for _ in 0..CHECKS {
                assert!(tokens.check(black_box(&token), EXPIRES_MS - 1).is_some());
            }
            *round = start.elapsed().as_nanos() as f64 / f64::from(CHECKS);
        }
        rounds.sort_by(f64::total_cmp);
        let (least, median, most) = (rounds[0], rounds[ROUNDS / 2], rounds[ROUNDS - 1]);
        println!(
            "token of a name of {} bytes: {median:.0} ns ({least:.0} to {most:.0})",
            name.len()
        );
    }
}
