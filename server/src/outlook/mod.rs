//! What it tells of itself: counters, pages, the log, and the page for people.

pub(crate) mod counters;
pub(crate) mod journal;
pub(crate) mod pages;
pub(crate) mod telling;
pub(crate) mod web;
