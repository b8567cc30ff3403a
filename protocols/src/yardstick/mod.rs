//! The yardstick protocol.
