//! A client's WebSocket, from the upgrade to the close, without I/O: what every session that
//! speaks over a WebSocket has in common.
//!
//! A session calls [`Socket::upgrade`] when its transport opens and then [`Socket::read`] until
//! that wants more; pings are answered here, and whatever breaks RFC 6455 comes back as a fault
//! behind the close frame that tells the target so.

use super::deflate::{self, Inflated};
use super::frame::{self, Assembler, Frame, FrameError, Limits, Opcode, close_code};
use super::http::{self, UpgradeRequest};
use super::printable;
use model::{Effects, Endpoint, Event, Fault, FaultClass};

/// A client's WebSocket. Twenty-four bytes when open and nothing is fragmented.
#[derive(Debug, Default)]
pub struct Socket {
    /// The key of the upgrade under way.
    key: Option<Box<[u8; 16]>>,
    assembler: Assembler,
    /// Compression is asked for; once open, it is agreed on.
    deflate: bool,
}

/// What the next bytes were.
#[derive(Debug, PartialEq)]
pub enum Input<'a> {
    /// Not enough yet.
    More,
    /// The upgrade was accepted, with this subprotocol: one of the offered, unless none was.
    Opened(Option<&'a str>),
    /// A whole message: text or binary.
    Message(Opcode, &'a [u8]),
    /// A frame that has been dealt with here.
    Nothing,
    /// The target has closed the WebSocket in good order, and its close frame is answered. Only
    /// the session knows whether it was to be expected; if not, this is the fault.
    Closed(Fault),
    /// The conversation cannot go on.
    Broken(Fault),
}

impl Socket {
    /// Asks for the upgrade, forgetting whatever was before; fails if a part of the request is not
    /// fit to be sent.
    pub fn upgrade(
        &mut self,
        endpoint: &Endpoint,
        headers: &[(&str, &str)],
        protocols: &[&str],
        fx: &mut Effects,
    ) -> Result<(), Fault> {
        self.upgrade_with(endpoint, headers, protocols, false, fx)
    }

    /// As [`Socket::upgrade`]; with `deflate` compression is asked for, and a target that does not
    /// agree to it has refused the upgrade.
    pub fn upgrade_with(
        &mut self,
        endpoint: &Endpoint,
        headers: &[(&str, &str)],
        protocols: &[&str],
        deflate: bool,
        fx: &mut Effects,
    ) -> Result<(), Fault> {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&fx.rng.u64().to_le_bytes());
        key[8..].copy_from_slice(&fx.rng.u64().to_le_bytes());
        let host = endpoint.authority();
        let path = &endpoint.path;
        let request = UpgradeRequest { path, host: &host, headers, protocols, key, deflate };
        *self = Socket { key: Some(Box::new(key)), assembler: Assembler::new(), deflate };
        request.write(&mut fx.out).map_err(|error| upgrade_fault(error.to_string()))
    }

    /// The next piece of what arrived, if it is what it usually is: a whole text or binary
    /// message in one frame, not compressed; also says how many bytes it took. `None` leaves
    /// everything to [`Socket::read`]. What is given back fits into registers: hundreds of messages
    /// may come with one read.
    #[inline]
    pub fn message<'a>(
        &self,
        bytes: &'a [u8],
        bytes_max: usize,
    ) -> Option<(usize, Opcode, &'a [u8])> {
        if self.key.is_some() || !self.assembler.is_idle() {
            return None;
        }
        let (frame, used) = frame::decode(bytes, Limits::of(bytes_max)).ok()??;
        let is_whole = frame.fin && matches!(frame.opcode, Opcode::Text | Opcode::Binary);
        is_whole.then_some((used, frame.opcode, frame.payload))
    }

    /// Takes the next piece of what arrived; also says how many bytes it took. `offered` is what
    /// was offered to [`Socket::upgrade`], `inflated` where a compressed message goes. To be called
    /// until it wants more, is closed or broken.
    #[inline]
    pub fn read<'a>(
        &'a mut self,
        bytes: &'a [u8],
        offered: &[&str],
        bytes_max: usize,
        inflated: &'a mut Inflated,
        fx: &mut Effects,
    ) -> (usize, Input<'a>) {
        if let Some(key) = &self.key {
            let key = **key;
            return self.read_upgrade(key, bytes, offered, fx);
        }
        let limits = Limits::of(bytes_max).with_compression(self.deflate);
        let (part, used) = match frame::decode(bytes, limits) {
            Ok(None) => return (0, Input::More),
            Ok(Some(found)) => found,
            Err(error) => return (bytes.len(), broken(error, fx)),
        };
        let input = match self.assembler.push(part, limits) {
            Ok(None) => Input::Nothing,
            Ok(Some(Frame { opcode, payload, .. })) if opcode.is_control() => {
                control(opcode, payload, fx)
            }
            Ok(Some(Frame { opcode, payload, compressed: false, .. })) => {
                Input::Message(opcode, payload)
            }
            Ok(Some(Frame { opcode, payload, .. })) => match inflated.inflate(payload, bytes_max) {
                Ok(payload) => Input::Message(opcode, payload),
                Err(error) => broken(error, fx),
            },
            Err(error) => broken(error, fx),
        };
        (used, input)
    }

    #[cold]
    fn read_upgrade<'a>(
        &mut self,
        key: [u8; 16],
        bytes: &'a [u8],
        offered: &[&str],
        fx: &mut Effects,
    ) -> (usize, Input<'a>) {
        match http::read_response(bytes, key, offered, self.deflate) {
            Ok(None) => (0, Input::More),
            Ok(Some(accepted)) if accepted.protocol.is_none() && !offered.is_empty() => {
                // Without a subprotocol nobody knows what is spoken.
                let names = offered.join(" or ");
                let detail = format!("the upgrade was accepted without the subprotocol {names}");
                (bytes.len(), Input::Broken(upgrade_fault(detail)))
            }
            Ok(Some(accepted)) => {
                self.key = None;
                fx.events.push(Event::Connected);
                (accepted.consumed, Input::Opened(accepted.protocol))
            }
            Err(error) => (bytes.len(), Input::Broken(upgrade_fault(error.to_string()))),
        }
    }
}

/// Appends one frame, masked as a client must (RFC 6455 section 5.3).
pub fn write(opcode: Opcode, payload: &[u8], fx: &mut Effects) {
    let mask = mask(fx);
    frame::write_frame(&mut fx.out, opcode, payload, Some(mask));
}

/// Appends one frame, compressed where that makes it shorter; only after an upgrade that asked for
/// compression.
pub fn write_deflated(opcode: Opcode, payload: &[u8], fx: &mut Effects) {
    let mask = mask(fx);
    deflate::write_frame(&mut fx.out, opcode, payload, Some(mask));
}

/// Appends a close frame.
pub fn write_close(code: u16, fx: &mut Effects) {
    let mask = mask(fx);
    frame::write_close(&mut fx.out, code, "", Some(mask));
}

fn mask(fx: &mut Effects) -> [u8; 4] {
    (fx.rng.u64() as u32).to_le_bytes()
}

#[cold]
fn upgrade_fault(detail: String) -> Fault {
    Fault::new(FaultClass::Upgrade, detail)
}

#[cold]
fn control<'a>(opcode: Opcode, payload: &[u8], fx: &mut Effects) -> Input<'a> {
    match opcode {
        Opcode::Ping => {
            write(Opcode::Pong, payload, fx);
            Input::Nothing
        }
        Opcode::Close => match frame::read_close(payload) {
            Err(error) => broken(error, fx),
            Ok(told) => {
                write_close(close_code::NORMAL, fx);
                let detail = match told {
                    None => "the target closed the WebSocket".into(),
                    Some((code, reason)) => {
                        format!("the target closed the WebSocket: {code} {}", printable(reason))
                    }
                };
                Input::Closed(Fault::new(FaultClass::Closed, detail.trim_end()))
            }
        },
        _ => Input::Nothing,
    }
}

#[cold]
fn broken<'a>(error: FrameError, fx: &mut Effects) -> Input<'a> {
    let class = match error {
        FrameError::TooLarge { .. } => FaultClass::TooLarge,
        _ => FaultClass::Protocol,
    };
    write_close(error.close_code(), fx);
    Input::Broken(Fault::new(class, error.to_string()))
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
