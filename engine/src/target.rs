//! Targets: the real servers throng can start, watch and stop, each described by one folder.

mod folder;
mod launch;
mod prepare;
mod spec;

pub use launch::{Running, check_needs, instances, launch, wait_for};
pub use spec::{Knob, Need, Spec};
