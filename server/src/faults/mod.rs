//! Faults that are committed on purpose: the rules, and what they do to deliveries.

pub mod fault;
pub(crate) mod faulty;
