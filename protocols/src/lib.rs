//! One folder per chat protocol: codec and session, without sockets or clock.
#[cfg(test)]
mod conformance;
pub mod socketio;
#[cfg(test)]
mod talks;
pub mod websocket;
pub mod wire;
pub mod xmpp;
pub mod yardstick;

use model::Protocol;

/// Every protocol there is: one row each.
pub static PROTOCOLS: &[&dyn Protocol] =
    &[&socketio::SocketIo, &websocket::WebSocket, &xmpp::Xmpp, &yardstick::Yardstick];

/// The protocol of that name.
pub fn protocol(name: &str) -> Option<&'static dyn Protocol> {
    PROTOCOLS.iter().copied().find(|protocol| protocol.facts().name == name)
}

/// The recipe for a protocol, whose example is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../docs/protocols.md")]
struct Recipe;
