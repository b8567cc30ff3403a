//! Writes the made-up run of the tests and draws it, to look at: `cargo run -p results --example
//! fixture -- DIR`.

#[path = "../tests/it/fixture.rs"]
mod fixture;

use std::path::PathBuf;

fn main() -> Result<(), results::Error> {
    let dir =
        std::env::args_os().nth(1).map_or_else(|| PathBuf::from("runs/fixture"), PathBuf::from);
    let analysis = fixture::write(&dir)?;
    results::draw(&dir)?;
    print!("{}", results::summary_text(&analysis.summary, &dir));
    Ok(())
}
