//! Targets: the real servers throng can start, watch and stop, each described by one folder.

mod launch;
mod spec;

pub use launch::{Running, check_needs, launch};
pub use spec::{Knob, Need, Spec};
