//! The scenario language: YAML text → [`Scenario`] (as written) → [`Plan`](crate::Plan) (resolved).
//!
//! Nothing here reads a file: text comes in, a plan or a list of mistakes goes out.

mod account;
mod choice;
mod crowd;
mod describe;

mod estimate;
mod events;
mod figure;
mod hold;
mod journey;
mod late;
mod limit;
mod list;
mod lower;
mod mistake;
mod near;
mod parameter;
mod plan;
mod probes;
mod profile;
mod prose;
mod reader;
mod room;
mod rounds;
mod saying;
mod script;
mod set;
mod target;
mod template;
mod threshold;
mod timeline;
mod tree;
mod unit;
mod words;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;

pub use describe::describe;
pub use mistake::Mistake;
pub use plan::{DEADLINE_NS, PlanOptions, SEED};
pub use reader::MISTAKES_MAX;
pub use tree::{DEPTH_MAX, NODES_MAX, TEXT_BYTES_MAX};
pub use unit::{RATE_MAX, SPAN_NS_MAX};

use tree::{Node, Source};

/// A scenario as written: a tree of YAML that knows its lines.
#[derive(Clone, Debug)]
pub struct Scenario {
    sources: Vec<Source>,
    root: Node,
    /// The text of the `.proto` file, once it was brought.
    proto: Option<String>,
}

impl Scenario {
    /// Reads the text of a scenario file. What the words mean is looked at by [`Scenario::plan`].
    pub fn parse(file_name: &str, text: &str) -> Result<Scenario, Mistake> {
        let source = Source::new(file_name, text);
        let root = tree::read(&source, 0, text)?;
        Ok(Scenario { sources: vec![source], root, proto: None })
    }
}

/// The JSON Schema of a scenario file, for editors.
pub fn schema() -> serde_json::Value {
    // The file is part of the program; a test reads it.
    serde_json::from_str(include_str!("schema.json")).unwrap_or_default()
}
