//! How what was said is sent: logs of rooms, cursors of members, and when they are flushed.

pub(crate) mod conn;
pub(crate) mod fanout;
pub(crate) mod log;
pub(crate) mod pace;
pub(crate) mod throttle;
