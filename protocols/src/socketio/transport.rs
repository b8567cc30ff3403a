//! Engine.IO below the packets: a WebSocket, long polling over one connection, or the way from the
//! second to the first.

use super::{Setting, answer, packet};
use crate::wire::deflate::Inflated;
use crate::wire::frame::Opcode;
use crate::wire::printable;
use crate::wire::socket::{self, Socket};
use model::{Effects, Endpoint, Event, Fault, FaultClass};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Most packets that may wait for the receipt of those before.
const WAITING_MAX: usize = 1_024;
/// Most packets in one request.
const PACKETS_MAX: usize = 32;
/// Bytes of a refusal that are shown.
const EXCERPT_BYTES_MAX: usize = 200;

/// What carries the packets of one person.
#[derive(Default)]
pub(super) struct Transport {
    socket: Socket,
    /// Only while it polls.
    polling: Option<Box<Polling>>,
}

#[derive(Default)]
struct Polling {
    /// What the target calls the session; empty before the handshake.
    sid: String,
    /// What the answers to come belong to, in order: HTTP/1.1 answers as it was asked.
    expected: VecDeque<Expect>,
    /// What goes with the next request: a server that reads two at once calls it an overlap and
    /// closes the session, so the second waits for the receipt of the first.
    waiting: VecDeque<Vec<u8>>,
    /// The WebSocket is open beside the polling and tried out.
    is_probing: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Poll,
    Post,
    Upgrade,
}

/// What the next bytes were.
pub(super) enum Input<'a> {
    /// Not enough yet.
    More,
    Nothing,
    /// The WebSocket is open.
    Opened,
    /// A packet by itself.
    Text(&'a [u8]),
    Binary(&'a [u8]),
    /// Packets of a poll, to be taken apart.
    Payload(Cow<'a, [u8]>),
    /// The upgrade was refused; the polling goes on.
    Stayed(String),
    Broken(Fault),
}

impl Transport {
    /// Begins with a WebSocket.
    pub(super) fn open(
        &mut self,
        setting: &Setting,
        endpoint: &Endpoint,
        fx: &mut Effects,
    ) -> Result<(), Fault> {
        self.polling = None;
        self.ask_upgrade(setting, endpoint, "", fx)
    }

    /// Begins with polling.
    pub(super) fn poll_first(&mut self, setting: &Setting, endpoint: &Endpoint, fx: &mut Effects) {
        self.polling = Some(Box::default());
        self.poll(setting, endpoint, fx);
    }

    pub(super) fn is_polling(&self) -> bool {
        self.polling.is_some()
    }

    pub(super) fn is_probing(&self) -> bool {
        self.polling.as_ref().is_some_and(|polling| polling.is_probing)
    }

    /// The target has given the session its name, which becomes part of a URL.
    pub(super) fn name(&mut self, sid: &str) {
        if let Some(polling) = &mut self.polling {
            polling.sid = sid.into();
        }
    }

    /// From now on everything goes over the WebSocket.
    pub(super) fn settle(&mut self) {
        self.polling = None;
    }

    /// Asks for packets, unless that is asked already.
    pub(super) fn poll(&mut self, setting: &Setting, endpoint: &Endpoint, fx: &mut Effects) {
        let Some(polling) = &mut self.polling else { return };
        // Behind a poll that the target holds, a receipt would be late: what waits goes first.
        let is_asked = polling.expected.iter().any(|expect| *expect != Expect::Post);
        if is_asked || !polling.waiting.is_empty() {
            return;
        }
        polling.expected.push_back(Expect::Poll);
        let path = polling_path(setting, &polling.sid);
        answer::write(endpoint, &path, None, &mut fx.out);
    }

    /// Asks for the upgrade as soon as nothing else is to be answered; whether that is so.
    pub(super) fn upgrade(
        &mut self,
        setting: &Setting,
        endpoint: &Endpoint,
        fx: &mut Effects,
    ) -> Result<bool, Fault> {
        let Some(polling) = &mut self.polling else { return Ok(false) };
        if !polling.expected.is_empty() || !polling.waiting.is_empty() {
            return Ok(false);
        }
        polling.expected.push_back(Expect::Upgrade);
        let sid = format!("&sid={}", polling.sid);
        self.ask_upgrade(setting, endpoint, &sid, fx)?;
        Ok(true)
    }

    fn ask_upgrade(
        &mut self,
        setting: &Setting,
        endpoint: &Endpoint,
        sid: &str,
        fx: &mut Effects,
    ) -> Result<(), Fault> {
        let path = format!("{}&transport=websocket{sid}", setting.path);
        let endpoint = Endpoint { path, ..endpoint.clone() };
        self.socket.upgrade_with(&endpoint, &[], &[], setting.deflate, fx)
    }

    /// Sends a packet of text.
    pub(super) fn send(
        &mut self,
        setting: &Setting,
        endpoint: &Endpoint,
        packet: Vec<u8>,
        fx: &mut Effects,
    ) -> Result<(), Fault> {
        let polling = match &mut self.polling {
            Some(polling) if !polling.is_probing => polling,
            _ if setting.deflate => {
                socket::write_deflated(Opcode::Text, &packet, fx);
                return Ok(());
            }
            _ => {
                socket::write(Opcode::Text, &packet, fx);
                return Ok(());
            }
        };
        if polling.waiting.len() >= WAITING_MAX {
            let detail = format!("{WAITING_MAX} packets wait for the receipt of those before");
            return Err(Fault::new(FaultClass::Backlog, detail));
        }
        polling.waiting.push_back(packet);
        self.flush(setting, endpoint, fx);
        Ok(())
    }

    /// Whether something waits for a receipt that comes behind a poll which the target holds.
    pub(super) fn is_stuck(&self) -> bool {
        self.polling.as_ref().is_some_and(|polling| {
            !polling.waiting.is_empty()
                && polling.expected.front() == Some(&Expect::Poll)
                && polling.expected.contains(&Expect::Post)
        })
    }

    /// Sends what waits, unless a receipt is to come.
    pub(super) fn flush(&mut self, setting: &Setting, endpoint: &Endpoint, fx: &mut Effects) {
        let Some(polling) = &mut self.polling else { return };
        if !polling.expected.contains(&Expect::Post) {
            self.write_waiting(setting, endpoint, fx);
        }
    }

    /// Sends what waits, receipt or not.
    pub(super) fn write_waiting(
        &mut self,
        setting: &Setting,
        endpoint: &Endpoint,
        fx: &mut Effects,
    ) {
        let Some(polling) = self.polling.as_mut().filter(|polling| !polling.waiting.is_empty())
        else {
            return;
        };
        let count = polling.waiting.len().min(PACKETS_MAX);
        let packets: Vec<Vec<u8>> = polling.waiting.drain(..count).collect();
        polling.expected.push_back(Expect::Post);
        let path = polling_path(setting, &polling.sid);
        let body = packet::payload(&packets, setting.revision);
        answer::write(endpoint, &path, Some(&body), &mut fx.out);
    }

    /// What usually comes: a whole message in one frame of the WebSocket.
    #[inline]
    pub(super) fn message<'a>(
        &self,
        bytes: &'a [u8],
        bytes_max: usize,
    ) -> Option<(usize, Opcode, &'a [u8])> {
        if self.polling.is_some() {
            return None;
        }
        self.socket.message(bytes, bytes_max)
    }

    /// The WebSocket, while what it reads is heard.
    pub(super) fn lend(&mut self) -> Socket {
        std::mem::take(&mut self.socket)
    }

    pub(super) fn give_back(&mut self, socket: Socket) {
        self.socket = socket;
    }

    /// Takes the next piece of what arrived; also says how many bytes it took.
    pub(super) fn read<'a>(
        &mut self,
        socket: &'a mut Socket,
        bytes: &'a [u8],
        bytes_max: usize,
        inflated: &'a mut Inflated,
        fx: &mut Effects,
    ) -> (usize, Input<'a>) {
        if let Some(polling) = self.polling.as_mut().filter(|polling| !polling.is_probing) {
            let is_upgrade = polling.expected.front() == Some(&Expect::Upgrade);
            match answer::status(bytes) {
                Ok(None) => return (0, Input::More),
                Err(fault) => return (bytes.len(), Input::Broken(fault)),
                Ok(Some(101)) if is_upgrade => {
                    polling.expected.pop_front();
                    polling.is_probing = true;
                }
                Ok(Some(_)) => return read_answer(polling, bytes, bytes_max),
            }
        }
        let (used, input) = socket.read(bytes, &[], bytes_max, inflated, fx);
        let input = match input {
            socket::Input::More => Input::More,
            socket::Input::Nothing => Input::Nothing,
            socket::Input::Opened(_) => {
                // With polling, the transport was ready to speak before.
                if self.polling.is_some() && fx.events.last() == Some(&Event::Connected) {
                    fx.events.pop();
                }
                Input::Opened
            }
            socket::Input::Message(Opcode::Text, payload) => Input::Text(payload),
            socket::Input::Message(_, payload) => Input::Binary(payload),
            socket::Input::Closed(fault) | socket::Input::Broken(fault) => Input::Broken(fault),
        };
        (used, input)
    }
}

fn polling_path(setting: &Setting, sid: &str) -> String {
    let path = &setting.path;
    // Revision 3 would send binary payloads to whom does not ask for base64.
    let base64 = if setting.revision == 3 { "&b64=1" } else { "" };
    let name = if sid.is_empty() { "" } else { "&sid=" };
    format!("{path}&transport=polling{base64}{name}{sid}")
}

/// The answer to a request of long polling.
fn read_answer<'a>(polling: &mut Polling, bytes: &'a [u8], bytes_max: usize) -> (usize, Input<'a>) {
    let (answer, used) = match answer::read(bytes, bytes_max) {
        Ok(None) => return (0, Input::More),
        Ok(Some(found)) => found,
        Err(fault) => return (bytes.len(), Input::Broken(fault)),
    };
    let end = answer.body.len().min(EXCERPT_BYTES_MAX);
    let excerpt = String::from_utf8_lossy(&answer.body[..end]);
    let said = format!("HTTP status {}: {}", answer.status, printable(&excerpt));
    let said = said.trim_end_matches([':', ' ']);
    let expect = polling.expected.pop_front();
    let broken = |class, detail: String| (bytes.len(), Input::Broken(Fault::new(class, detail)));
    match (expect, answer.status) {
        (None, _) => broken(FaultClass::Protocol, "an HTTP answer nobody asked for".into()),
        (Some(Expect::Upgrade), _) if answer.keeps => {
            (used, Input::Stayed(format!("the upgrade was refused with {said}")))
        }
        (Some(Expect::Upgrade), _) => {
            let detail = format!("the upgrade was refused with {said}, and the connection closed");
            broken(FaultClass::Upgrade, detail)
        }
        (Some(_), 200) if !answer.keeps => broken(
            FaultClass::Upgrade,
            "the target closes the connection after each answer; polling needs it kept".into(),
        ),
        (Some(Expect::Post), 200) => (used, Input::Nothing),
        (Some(Expect::Poll), 200) => (used, Input::Payload(answer.body)),
        (Some(_), _) if polling.sid.is_empty() => {
            broken(FaultClass::Upgrade, format!("the handshake was answered with {said}"))
        }
        (Some(_), _) => {
            broken(FaultClass::Closed, format!("a request of the polling was answered with {said}"))
        }
    }
}
