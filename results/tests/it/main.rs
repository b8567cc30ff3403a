//! Tests of the results crate through its public door.

mod capacity;
mod compare;
mod cut;
mod directory;
mod fixture;
mod folder;
mod golden;
mod health;
