//! One person's conversation with a Socket.IO application.

mod entry;
mod hear;
mod resume;

use super::dialect::{Dialect, Done};
use super::template::{Template, Values};
use super::transport::{Input, Transport as Carrier};
use super::{Setting, Transport};
use crate::wire::deflate::Inflated;
use crate::wire::frame::{Opcode, close_code};
use crate::wire::{printable, socket};
use memchr::memmem;
use model::{
    Effects, Event, Fault, FaultClass, Measure, Request, RoomId, Session, Shared, Tick, Token,
    stamp,
};
use resume::Resume;
use std::sync::Arc;

/// Most requests of one person that may wait for an answer at a time.
const PENDING_MAX: usize = 1024;
/// How long a packet of polling waits for the receipt of the one before when that receipt comes
/// behind a poll which the target holds, milliseconds. It has read the packet before long since.
const RECEIPT_MS: u64 = 100;
/// Bytes of a refusal that are shown.
const EXCERPT_BYTES_MAX: usize = 200;

/// How far a conversation has come.
enum Stage {
    /// No transport.
    Idle,
    /// The person is on its way in.
    Rising(Box<Rising>),
    /// Everything may be asked.
    Online,
}

struct Rising {
    token: Token,
    password: Box<str>,
    step: Step,
    /// The target offers a WebSocket.
    can_upgrade: bool,
    /// The conversation before it goes on.
    is_resumed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Engine.IO has to greet.
    Opening,
    /// The namespace has to be entered.
    Connecting,
    /// The way to the WebSocket is to be taken as soon as the polls are answered.
    Leaving,
    /// The WebSocket was asked for then.
    Upgrading(Tick),
    /// What the dialect calls login is to be answered.
    Introducing,
}

/// A request that waits.
struct Pending {
    token: Token,
    measure: Measure,
    /// What must be found in the event that answers; an acknowledgment is known by its number.
    event: Option<Box<[u8]>>,
}

/// What an event means to everybody who hears it.
#[derive(Clone, Copy)]
enum Meaning {
    Nothing,
    Delivery,
    Announcement,
}

/// Signs of life. Since revision 4 the target pings; before, the client did.
#[derive(Default)]
struct Heartbeat {
    interval_ms: u64,
    timeout_ms: u64,
    /// When the target was heard last, or asked.
    since: Tick,
    /// A ping of ours is to be answered.
    is_asked: bool,
}

pub(super) struct SocketIoSession {
    shared: Arc<Shared>,
    setting: Arc<Setting>,
    carrier: Carrier,
    stage: Stage,
    name: Box<str>,
    /// The room entered last: whose announcements without a stamp are counted for.
    room: Option<RoomId>,
    pending: Vec<Pending>,
    /// How many of them wait for an event.
    listening: u32,
    /// What is known for taking the conversation up, of a target that can recover it.
    resume: Option<Box<Resume>>,
    /// Binary frames that belong to the packet before.
    parts: (u32, Meaning),
    heartbeat: Heartbeat,
    /// When what waits in the polling goes out all the same.
    hurry: Option<Tick>,
}

impl SocketIoSession {
    pub(super) fn new(shared: Arc<Shared>, setting: Arc<Setting>) -> SocketIoSession {
        SocketIoSession {
            shared,
            setting,
            carrier: Carrier::default(),
            stage: Stage::Idle,
            name: "".into(),
            room: None,
            pending: Vec::new(),
            listening: 0,
            resume: None,
            parts: (0, Meaning::Nothing),
            heartbeat: Heartbeat::default(),
            hurry: None,
        }
    }

    fn dialect(&self) -> &Dialect {
        &self.setting.dialect
    }

    fn send(&mut self, packet: Vec<u8>, fx: &mut Effects) {
        let sent = self.carrier.send(&self.setting, &self.shared.endpoint, packet, fx);
        if let Err(fault) = sent {
            self.give_up(fault.class, &fault.detail, fx);
        }
    }

    /// A Socket.IO packet of our namespace, without its data.
    fn head(&self, kind: u8) -> Vec<u8> {
        let mut packet = Vec::with_capacity(128);
        packet.extend_from_slice(&[b'4', kind]);
        if self.setting.namespace != "/" {
            packet.extend_from_slice(self.setting.namespace.as_bytes());
            packet.push(b',');
        }
        packet
    }

    /// Says a verb in the words of the dialect.
    fn say(&mut self, token: Token, measure: Measure, values: &Values<'_>, fx: &mut Effects) {
        let setting = Arc::clone(&self.setting);
        let Some(verb) = setting.dialect.verb(measure) else {
            let detail = format!("the map `socketio` has no verb `{}`", measure.name());
            return fx.failed(token, FaultClass::RequestRefused, detail);
        };
        if self.pending.len() >= PENDING_MAX {
            let detail = format!("{PENDING_MAX} requests wait for their answers");
            return fx.failed(token, FaultClass::Backlog, detail);
        }
        let mut packet = self.head(b'2');
        let event = match &verb.done {
            Done::Ack => {
                packet.extend_from_slice(token.0.to_string().as_bytes());
                None
            }
            Done::Sent => None,
            Done::Echo => Some(stamp_of(values.text).into()),
            Done::Event(_, with) => Some(filled(with, values)),
        };
        verb.emit.fill(values, &mut packet);
        let is_over = matches!(verb.done, Done::Sent);
        if !is_over {
            self.listening += u32::from(event.is_some());
            self.pending.push(Pending { token, measure, event });
        }
        self.send(packet, fx);
        if is_over && fx.close.is_none() {
            self.answered(token, measure, Ok(()), fx);
        } else if is_over {
            fx.failed(token, FaultClass::Backlog, "nothing could be sent");
        }
    }

    /// A request is over.
    fn answered(
        &mut self,
        token: Token,
        measure: Measure,
        outcome: Result<(), Fault>,
        fx: &mut Effects,
    ) {
        match (measure, outcome) {
            (Measure::Login, Err(fault)) => {
                fx.failed(token, FaultClass::LoginRefused, fault.detail.clone());
                self.stage = Stage::Idle;
                self.give_up(FaultClass::LoginRefused, &fault.detail, fx);
            }
            (measure, outcome) => {
                if measure == Measure::Login {
                    self.stage = Stage::Online;
                }
                fx.events.push(Event::Done(token, outcome));
            }
        }
    }

    fn take(&mut self, now: Tick, input: Input<'_>, fx: &mut Effects) {
        match input {
            Input::More | Input::Nothing => {}
            Input::Text(payload) => self.hear(now, payload, fx),
            Input::Binary(frame) => self.binary(frame, fx),
            Input::Payload(payload) => self.payload(now, &payload, fx),
            Input::Opened => {
                if self.carrier.is_probing() {
                    socket::write(Opcode::Text, b"2probe", fx);
                }
            }
            Input::Stayed(why) => {
                if let Some(sent) = self.upgrading_since() {
                    self.stayed(sent, &why, fx);
                }
            }
            Input::Broken(fault) => self.give_up(fault.class, &fault.detail, fx),
        }
    }

    /// Keeps the polling going, or leaves it.
    fn pump(&mut self, now: Tick, fx: &mut Effects) {
        let endpoint = &self.shared.endpoint;
        self.carrier.flush(&self.setting, endpoint, fx);
        match &mut self.stage {
            _ if !self.carrier.is_polling() => {}
            Stage::Rising(rising) if rising.step == Step::Leaving => {
                match self.carrier.upgrade(&self.setting, endpoint, fx) {
                    Ok(true) => rising.step = Step::Upgrading(now),
                    Ok(false) => {}
                    Err(fault) => self.give_up(fault.class, &fault.detail, fx),
                }
            }
            Stage::Rising(rising) if matches!(rising.step, Step::Upgrading(_)) => {}
            _ => self.carrier.poll(&self.setting, endpoint, fx),
        }
    }

    /// Asks to be woken for whatever comes first.
    fn arm(&self, fx: &mut Effects) {
        fx.wake = Some(self.hurry.map_or(self.due(), |hurry| hurry.min(self.due())));
    }

    /// Sees to it that nothing waits for long in the polling.
    fn look_after(&mut self, now: Tick, fx: &mut Effects) {
        match self.carrier.is_stuck() {
            true if self.hurry.is_none() => {
                self.hurry = Some(later(now, RECEIPT_MS));
                self.arm(fx);
            }
            true => {}
            false => self.hurry = None,
        }
    }

    /// When the target is to be looked after next.
    fn due(&self) -> Tick {
        let Heartbeat { interval_ms, timeout_ms, since, is_asked } = self.heartbeat;
        match (self.setting.revision, is_asked) {
            (4, _) => later(since, interval_ms + timeout_ms),
            (_, true) => later(since, timeout_ms),
            (_, false) => later(since, interval_ms),
        }
    }

    /// Fails everything that is open and forgets the conversation.
    fn reset(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        let stage = std::mem::replace(&mut self.stage, Stage::Idle);
        let pending = std::mem::take(&mut self.pending);
        match stage {
            Stage::Rising(rising) if pending.iter().all(|other| other.token != rising.token) => {
                fx.failed(rising.token, class, detail);
            }
            _ => {}
        }
        for pending in pending {
            fx.failed(pending.token, class, detail);
        }
        self.listening = 0;
        self.parts = (0, Meaning::Nothing);
        self.room = None;
        self.hurry = None;
        self.carrier = Carrier::default();
    }

    /// Ends the conversation as the target's doing.
    #[cold]
    fn give_up(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        self.reset(class, detail, fx);
        fx.broken(class, detail);
    }

    #[cold]
    fn wrong(&mut self, why: &str, fx: &mut Effects) {
        self.give_up(FaultClass::Protocol, why, fx);
    }

    fn disconnect(&mut self, fx: &mut Effects) {
        if matches!(self.stage, Stage::Online) {
            let packet = self.head(b'1');
            self.send(packet, fx);
            self.carrier.write_waiting(&self.setting, &self.shared.endpoint, fx);
            if !self.carrier.is_polling() {
                socket::write_close(close_code::NORMAL, fx);
            }
        }
        self.reset(FaultClass::Offline, "the person disconnected first", fx);
        self.resume = None;
        fx.close = Some(Ok(()));
    }

    /// When the WebSocket was asked for that is to replace the polling.
    fn upgrading_since(&self) -> Option<Tick> {
        match &self.stage {
            Stage::Rising(rising) => match rising.step {
                Step::Upgrading(sent) => Some(sent),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The stamp in what is said, by which the sender knows its own message.
fn stamp_of(text: &str) -> &[u8] {
    let start = memmem::find(text.as_bytes(), stamp::PREFIX);
    let end = |start: usize| (start + stamp::LEN).min(text.len());
    start.map_or(text.as_bytes(), |start| &text.as_bytes()[start..end(start)])
}

/// A template, filled in.
fn filled(template: &Template, values: &Values<'_>) -> Box<[u8]> {
    let mut text = Vec::new();
    template.fill(values, &mut text);
    text.into()
}

/// Foreign data in one printable line.
fn excerpt(data: &[u8]) -> String {
    printable(&String::from_utf8_lossy(&data[..data.len().min(EXCERPT_BYTES_MAX)]))
}

fn later(tick: Tick, ms: u64) -> Tick {
    Tick(tick.0.saturating_add(ms * 1_000_000))
}

impl Session for SocketIoSession {
    fn act(&mut self, now: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        match request {
            Request::Login { name, password } => {
                let why = match self.resume.as_deref().is_some_and(Resume::is_wanted) {
                    true => "the connection was lost before the answer",
                    false => "a new login replaced the conversation",
                };
                self.reset(FaultClass::Offline, why, fx);
                self.resume.take_if(|resume| !resume.is_wanted());
                self.room = self.resume.as_ref().and_then(|resume| resume.room());
                self.name = name.into();
                let (password, step) = (password.into(), Step::Opening);
                let rising =
                    Rising { token, password, step, can_upgrade: false, is_resumed: false };
                self.stage = Stage::Rising(Box::new(rising));
                fx.dial = true;
                return;
            }
            Request::Disconnect => return self.disconnect(fx),
            _ if !matches!(self.stage, Stage::Online) => {
                return fx.failed(token, FaultClass::Offline, "not logged in");
            }
            _ => {}
        }
        let name = self.name.clone();
        let who = Values { name: &name, nick: &name, ..Values::default() };
        let at = |room: model::RoomName<'_>| -> RoomId { room.id };
        let (measure, values) = match request {
            Request::Join { room, nick, status } => {
                self.room = Some(at(room));
                (Measure::Join, Values { room: room.name, nick, status, ..who })
            }
            Request::Leave { room } => (Measure::Leave, Values { room: room.name, ..who }),
            Request::Say { room, text } => (Measure::Say, Values { room: room.name, text, ..who }),
            Request::History { room, limit } => {
                (Measure::History, Values { room: room.name, limit, ..who })
            }
            Request::Members { room } => (Measure::Members, Values { room: room.name, ..who }),
            Request::Presence { status, .. } => (Measure::Presence, Values { status, ..who }),
            Request::Typing { room } => (Measure::Typing, Values { room: room.name, ..who }),
            Request::Read { room } => (Measure::Read, Values { room: room.name, ..who }),
            Request::Ping => (Measure::Ping, who),
            _ => return fx.lacks(token, &super::FACTS, &request),
        };
        self.say(token, measure, &values, fx);
        self.look_after(now, fx);
    }

    fn opened(&mut self, _: Tick, fx: &mut Effects) {
        let endpoint = &self.shared.endpoint;
        if self.setting.transport != Transport::WebSocket {
            return self.carrier.poll_first(&self.setting, endpoint, fx);
        }
        if let Err(fault) = self.carrier.open(&self.setting, endpoint, fx) {
            self.give_up(fault.class, &fault.detail, fx);
        }
    }

    fn receive(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        let (mut at, mut inflated) = (0, Inflated::default());
        let bytes_max = self.shared.frame_bytes_max;
        while fx.close.is_none() && at < bytes.len() && !matches!(self.stage, Stage::Idle) {
            if let Some((used, opcode, payload)) = self.carrier.message(&bytes[at..], bytes_max) {
                at += used;
                match opcode {
                    Opcode::Text => self.hear(now, payload, fx),
                    _ => self.binary(payload, fx),
                }
                continue;
            }
            // Taken out, so that the message it lends can be heard by the rest of the session.
            let mut socket = self.carrier.lend();
            let rest = &bytes[at..];
            let (used, input) = self.carrier.read(&mut socket, rest, bytes_max, &mut inflated, fx);
            at += used;
            let is_enough = matches!(input, Input::More);
            self.take(now, input, fx);
            if matches!(self.stage, Stage::Idle) {
                break;
            }
            self.carrier.give_back(socket);
            if is_enough {
                break;
            }
            self.pump(now, fx);
        }
        // What comes behind the end of a conversation is of no interest to anybody.
        if fx.close.is_some() || matches!(self.stage, Stage::Idle) {
            return bytes.len();
        }
        self.look_after(now, fx);
        at
    }

    fn wake(&mut self, now: Tick, fx: &mut Effects) {
        if matches!(&self.stage, Stage::Idle) || self.heartbeat.interval_ms == 0 {
            return;
        }
        if self.hurry.is_some_and(|hurry| hurry <= now) {
            self.hurry = None;
            self.carrier.write_waiting(&self.setting, &self.shared.endpoint, fx);
        }
        if now < self.due() {
            return self.arm(fx);
        }
        if self.setting.revision == 4 || self.heartbeat.is_asked {
            let ms = now.ns_since(self.heartbeat.since) / 1_000_000;
            let detail = format!("no heartbeat of the target for {ms} ms");
            return self.give_up(FaultClass::RequestTimeout, &detail, fx);
        }
        self.heartbeat.is_asked = true;
        self.heartbeat.since = now;
        self.send(b"2".to_vec(), fx);
        self.arm(fx);
        self.look_after(now, fx);
    }
    fn lost(&mut self, _: Tick) -> bool {
        let room = self.room;
        if matches!(self.stage, Stage::Online) {
            // What was asked is answered for at the login.
            self.stage = Stage::Idle;
        }
        self.resume.as_mut().is_some_and(|resume| resume.lost(room))
    }
}
