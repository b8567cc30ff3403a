//! The yardstick: throng's own small chat server.
