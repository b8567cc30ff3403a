//! What every protocol has to stand: torn and glued bytes, garbage, hostile targets, mutations.
//!
//! A protocol takes part by one [`Row`] in [`rows`]: a scripted peer and what a person does with
//! it. The conversation is recorded once and then played again in every wrong way. The suite
//! demands that nothing panics, that what is kept and written stays within bounds, that torn bytes
//! make no difference, that a delivery allocates nothing, and that a broken conversation ends in a
//! named fault which answers for every open request, after which the same session can begin anew.

mod allocation;
mod hostile;
mod record;
pub(crate) mod rig;

use crate::wire::frame::{self, Opcode};
use model::{Features, Options, Protocol, Request};

/// Largest frame a session of the suite accepts, bytes.
pub(crate) const FRAME_BYTES_MAX: usize = 16 << 10;

/// Makes a message of a payload.
pub(crate) type Wrap = fn(&[u8]) -> Vec<u8>;

/// How one protocol takes part.
pub(crate) struct Row {
    /// The protocol.
    pub(crate) protocol: &'static dyn Protocol,
    /// Where the peer pretends to be.
    pub(crate) url: &'static str,
    /// Options of the target.
    pub(crate) options: &'static [(&'static str, &'static str)],
    /// Features of the person: best all of them.
    pub(crate) features: Features,
    /// The frames it speaks in: text or binary.
    pub(crate) opcode: Opcode,
    /// How a payload becomes a message, where that is no frame of a WebSocket.
    pub(crate) wrap: Option<Wrap>,
    /// A peer that plays fair, fresh.
    pub(crate) peer: fn() -> Box<dyn Peer>,
    /// What the person does, one after the other; `Login` first and `Disconnect` last. What is
    /// said carries a stamp of [`rig::RUN`], and nobody else's words do, except replayed ones, and
    /// what is said to [`rig::LIST`]: each such message and presence comes back once.
    pub(crate) deeds: &'static [Request<'static>],
    /// Messages (payloads of such frames) that no target may send somebody who is logged in, with
    /// a name each: bombs, deep nesting, answers nobody asked for, and the like.
    pub(crate) forbidden: fn() -> Vec<(&'static str, Vec<u8>)>,
}

impl Row {
    /// The options, as a scenario has them.
    fn target_options(&self) -> Options {
        let pair = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        self.options.iter().map(pair).collect()
    }
}

impl Row {
    /// A whole message of the target's with that payload.
    fn frame(&self, payload: &[u8]) -> Vec<u8> {
        if let Some(wrap) = self.wrap {
            return wrap(payload);
        }
        let mut bytes = Vec::new();
        frame::write_frame(&mut bytes, self.opcode, payload, None);
        bytes
    }
}

/// A scripted target for one person.
pub(crate) trait Peer {
    /// Takes what the person wrote, and gives what the target writes: whole messages, the first
    /// being the answer to the upgrade.
    fn receive(&mut self, bytes: &[u8]) -> Vec<Vec<u8>>;
}

/// Who takes part: at least one row for each protocol of the table.
fn rows() -> Vec<Row> {
    let rows = crate::xmpp::rows().into_iter().chain(crate::yardstick::rows());
    rows.chain(crate::socketio::rows()).chain(crate::websocket::rows()).collect()
}

/// Those of them that speak WebSocket from the first byte.
fn framed_rows() -> impl Iterator<Item = Row> {
    rows().into_iter().filter(|row| row.wrap.is_none())
}

#[test]
fn every_protocol_takes_part() {
    let names: Vec<&str> = rows().iter().map(|row| row.protocol.facts().name).collect();
    for protocol in crate::PROTOCOLS {
        assert!(names.contains(&protocol.facts().name), "{}", protocol.facts().name);
        assert!(std::ptr::eq(
            crate::protocol(protocol.facts().name).unwrap().facts(),
            protocol.facts()
        ));
    }
    assert!(crate::protocol("no such protocol").is_none());
}
