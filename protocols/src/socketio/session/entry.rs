//! The way in: the handshake, the namespace, the WebSocket, and what the dialect calls login.

use super::super::Transport;
use super::super::packet::Packet;
use super::super::template::Values;
use super::resume::Resume;
use super::{Heartbeat, SocketIoSession, Stage, Step, excerpt};
use model::{Effects, Event, Fault, FaultClass, Measure, Tick};
use serde::Deserialize;

/// Longest name of a session, bytes.
const SID_BYTES_MAX: usize = 200;
/// Longest time between heartbeats that is believed, milliseconds: a day.
const HEARTBEAT_MS_MAX: u64 = 86_400_000;

/// The handshake of Engine.IO: the data of the packet `open`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Open {
    sid: String,
    #[serde(default)]
    upgrades: Vec<String>,
    ping_interval: u64,
    ping_timeout: u64,
}

impl SocketIoSession {
    /// Engine.IO says what is to be known: now the namespace.
    pub(super) fn greeted(&mut self, now: Tick, data: &[u8], fx: &mut Effects) {
        let open: Open = match serde_json::from_slice(data) {
            Ok(open) => open,
            Err(error) => return self.wrong(&format!("a handshake that is none: {error}"), fx),
        };
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
        let is_named = !open.sid.is_empty() && open.sid.bytes().all(is_plain);
        let beats = [open.ping_interval, open.ping_timeout];
        if !is_named || open.sid.len() > SID_BYTES_MAX {
            return self.wrong("a handshake with a name that fits into no URL", fx);
        }
        if open.ping_interval == 0 || beats.iter().any(|ms| *ms > HEARTBEAT_MS_MAX) {
            return self.wrong("a handshake with impossible times", fx);
        }
        self.carrier.name(&open.sid);
        let [interval_ms, timeout_ms] = beats;
        self.heartbeat = Heartbeat { interval_ms, timeout_ms, since: now, is_asked: false };
        self.arm(fx);
        let Stage::Rising(rising) = &mut self.stage else { return };
        rising.step = Step::Connecting;
        rising.can_upgrade = open.upgrades.iter().any(|name| name == "websocket");
        let password = rising.password.clone();
        if self.carrier.is_polling() {
            fx.events.push(Event::Connected);
        }
        if self.setting.revision == 4 || self.setting.namespace != "/" {
            let mut packet = self.head(b'0');
            let mut data = Vec::new();
            if let Some(auth) = &self.setting.dialect.auth {
                let name = &*self.name;
                let values = Values { name, nick: name, password: &password, ..Values::default() };
                auth.fill(&values, &mut data);
            }
            match self.resume.as_deref().filter(|resume| resume.is_wanted()) {
                Some(resume) => resume.write(&data, &mut packet),
                None => packet.append(&mut data),
            }
            self.send(packet, fx);
        }
    }

    /// The namespace is entered: on to the WebSocket if there is to be one.
    pub(super) fn connected(&mut self, now: Tick, data: &[u8], fx: &mut Effects) {
        let is_resumed = self.setting.revision == 4 && Resume::welcomed(&mut self.resume, data);
        match is_resumed {
            true => fx.events.push(Event::Resumed),
            false => self.room = None,
        }
        let Stage::Rising(rising) = &mut self.stage else { return };
        rising.step = Step::Leaving;
        rising.is_resumed = is_resumed;
        let can_upgrade = rising.can_upgrade;
        match self.carrier.is_polling() && self.setting.transport == Transport::Upgrade {
            false => self.introduce(fx),
            true => {
                fx.events.push(Event::Asked(Measure::Upgrade, 1));
                if !can_upgrade {
                    self.stayed(now, "the target offers no WebSocket", fx);
                }
            }
        }
    }

    /// The conversation goes on by polling although a WebSocket was wanted.
    pub(super) fn stayed(&mut self, sent: Tick, why: &str, fx: &mut Effects) {
        let fault = Fault::new(FaultClass::Upgrade, format!("stayed with polling: {why}"));
        let measure = Measure::Upgrade;
        fx.events.push(Event::Answered { measure, sent, outcome: Err(fault) });
        self.introduce(fx);
    }

    /// The WebSocket works: the polling is left.
    pub(super) fn upgraded(&mut self, fx: &mut Effects) {
        let Some(sent) = self.upgrading_since() else { return };
        self.send(b"5".to_vec(), fx);
        self.carrier.settle();
        fx.events.push(Event::Answered { measure: Measure::Upgrade, sent, outcome: Ok(()) });
        self.introduce(fx);
    }

    /// Says who the person is, if the dialect has words for it.
    pub(super) fn introduce(&mut self, fx: &mut Effects) {
        let Stage::Rising(rising) = &mut self.stage else { return };
        rising.step = Step::Introducing;
        let (token, password) = (rising.token, rising.password.clone());
        let is_resumed = rising.is_resumed;
        // Who goes on is known to the target.
        if is_resumed || self.dialect().verb(Measure::Login).is_none() {
            return self.answered(token, Measure::Login, Ok(()), fx);
        }
        let name = self.name.clone();
        let values = Values { name: &name, nick: &name, password: &password, ..Values::default() };
        self.say(token, Measure::Login, &values, fx);
    }

    pub(super) fn refused(&mut self, packet: &Packet<'_>, is_early: bool, fx: &mut Effects) {
        self.resume = None;
        let class = if is_early { FaultClass::LoginRefused } else { FaultClass::Closed };
        let detail = format!("the namespace was refused: {}", excerpt(packet.data));
        self.give_up(class, &detail, fx);
    }
}
