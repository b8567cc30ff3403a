//! What the target says: packets, events, acknowledgments, binary parts.

use super::super::dialect::Done;
use super::super::packet::{self, Kind, Packet, Part};
use super::{Meaning, Pending, SocketIoSession, Stage, Step, excerpt};
use memchr::memmem;
use model::{Effects, Event, Fault, FaultClass, Tick};

impl SocketIoSession {
    /// One packet of Engine.IO.
    #[inline]
    pub(super) fn hear(&mut self, now: Tick, payload: &[u8], fx: &mut Effects) {
        match payload.first() {
            Some(b'4') if self.parts.0 > 0 => {
                self.wrong("a packet before the parts of the last one have come", fx);
            }
            Some(b'4') => match packet::parse(&payload[1..]) {
                Ok(packet) => self.packet(now, &packet, fx),
                Err(why) => self.wrong(why, fx),
            },
            _ => self.engine(now, payload, fx),
        }
    }

    #[inline]
    pub(super) fn packet(&mut self, now: Tick, packet: &Packet<'_>, fx: &mut Effects) {
        let is_ours = packet.namespace == self.setting.namespace.as_bytes();
        let is_early = matches!(&self.stage, Stage::Rising(rising)
            if matches!(rising.step, Step::Opening | Step::Connecting));
        match packet.kind {
            _ if matches!(&self.stage, Stage::Rising(r) if r.step == Step::Opening) => {
                self.wrong("a packet before the handshake", fx);
            }
            // Before revision 4 everybody is in the namespace `/` whatever they want.
            _ if !is_ours => self.parts = (packet.attachments, Meaning::Nothing),
            // What was missed comes ahead of the word that the conversation goes on.
            Kind::Event if !is_early || self.is_resuming() => self.event(packet, fx),
            Kind::Ack if !is_early => self.acknowledged(packet, fx),
            Kind::Connect if is_early => self.connected(now, packet.data, fx),
            Kind::Error => self.refused(packet, is_early, fx),
            Kind::Disconnect if !is_early => {
                let detail = "the target disconnected the person from the namespace";
                self.resume = None;
                self.give_up(FaultClass::Closed, detail, fx);
            }
            _ => self.wrong("a packet that does not belong here", fx),
        }
    }

    fn is_resuming(&self) -> bool {
        self.resume.as_ref().is_some_and(|resume| resume.is_wanted())
    }

    /// An event: the hot path.
    #[inline]
    pub(super) fn event(&mut self, packet: &Packet<'_>, fx: &mut Effects) {
        if self.listening > 0 {
            self.overhear(packet.data, fx);
        }
        if let Some(resume) = &mut self.resume {
            resume.heard(packet.data);
        }
        let meaning = self.meaning(packet.data);
        self.note(meaning, packet.data, fx);
        self.parts = (packet.attachments, meaning);
        if let Some(id) = packet.id {
            let mut answer = self.head(b'3');
            answer.extend_from_slice(id.to_string().as_bytes());
            answer.extend_from_slice(b"[]");
            self.send(answer, fx);
        }
    }

    #[inline]
    pub(super) fn meaning(&self, data: &[u8]) -> Meaning {
        let is_in = |list: &[Box<[u8]>]| list.iter().any(|start| data.starts_with(start));
        if is_in(&self.dialect().deliveries) {
            Meaning::Delivery
        } else if is_in(&self.dialect().announcements) {
            Meaning::Announcement
        } else {
            Meaning::Nothing
        }
    }

    #[inline]
    pub(super) fn note(&self, meaning: Meaning, bytes: &[u8], fx: &mut Effects) {
        match meaning {
            Meaning::Nothing => {}
            Meaning::Delivery => fx.deliveries(bytes),
            Meaning::Announcement if self.dialect().is_stamping => fx.announcements(bytes),
            Meaning::Announcement => {
                if let Some(room) = self.room {
                    fx.events.push(Event::Presences(room, 1));
                }
            }
        }
    }

    /// Looks whether an event answers a request.
    pub(super) fn overhear(&mut self, data: &[u8], fx: &mut Effects) {
        let dialect = &self.setting.dialect;
        let is_answer = |pending: &Pending| {
            let Some(text) = &pending.event else { return false };
            let starts = match dialect.verb(pending.measure).map(|verb| &verb.done) {
                Some(Done::Event(start, _)) => data.starts_with(start),
                Some(Done::Echo) => dialect.deliveries.iter().any(|start| data.starts_with(start)),
                _ => false,
            };
            starts && memmem::find(data, text).is_some()
        };
        if let Some(at) = self.pending.iter().position(is_answer) {
            self.settle(at, data, fx);
        }
    }

    pub(super) fn acknowledged(&mut self, packet: &Packet<'_>, fx: &mut Effects) {
        self.parts = (packet.attachments, Meaning::Nothing);
        if serde_json::from_slice::<serde::de::IgnoredAny>(packet.data).is_err() {
            return self.wrong("an acknowledgment that is no JSON", fx);
        }
        let is_it =
            |pending: &Pending| pending.event.is_none() && Some(pending.token.0) == packet.id;
        match self.pending.iter().position(is_it) {
            Some(at) => self.settle(at, packet.data, fx),
            None => self.wrong("an acknowledgment of nothing", fx),
        }
    }

    /// The request at `at` is answered with `data`.
    pub(super) fn settle(&mut self, at: usize, data: &[u8], fx: &mut Effects) {
        let pending = self.pending.swap_remove(at);
        self.listening -= u32::from(pending.event.is_some());
        let refused = self.dialect().verb(pending.measure).and_then(|verb| verb.refused.as_ref());
        let is_refused = |text: &str| memmem::find(data, text.as_bytes()).is_some();
        let outcome = match refused.is_some_and(|text| is_refused(text)) {
            true => Err(Fault::new(FaultClass::RequestRefused, excerpt(data))),
            false => Ok(()),
        };
        self.answered(pending.token, pending.measure, outcome, fx);
    }

    /// A packet of Engine.IO that carries none of Socket.IO.
    pub(super) fn engine(&mut self, now: Tick, payload: &[u8], fx: &mut Effects) {
        let is_opening = matches!(&self.stage, Stage::Rising(r) if r.step == Step::Opening);
        match (payload.first(), self.setting.revision) {
            (Some(b'0'), _) if is_opening => self.greeted(now, &payload[1..], fx),
            _ if is_opening => self.wrong("something else than the handshake", fx),
            (Some(b'1'), _) => {
                self.give_up(FaultClass::Closed, "the target closed the session", fx);
            }
            (Some(b'2'), 4) if self.carrier.is_probing() => {}
            (Some(b'2'), 4) => {
                self.heartbeat.since = now;
                let pong = [b"3", &payload[1..]].concat();
                self.send(pong, fx);
            }
            (Some(b'3'), _) if payload == b"3probe" && self.carrier.is_probing() => {
                self.upgraded(fx);
            }
            (Some(b'3'), 3) => {
                self.heartbeat.is_asked = false;
                self.heartbeat.since = now;
                self.arm(fx);
            }
            (Some(b'6'), _) => {}
            _ => self.wrong("a packet that is none of Engine.IO, or has no place here", fx),
        }
    }

    /// A binary part of the packet before.
    pub(super) fn part(&mut self, bytes: &[u8], fx: &mut Effects) {
        let (left, meaning) = self.parts;
        if left == 0 {
            return self.wrong("a binary part that belongs to no packet", fx);
        }
        self.parts = (left - 1, meaning);
        if matches!(meaning, Meaning::Delivery) || self.dialect().is_stamping {
            self.note(meaning, bytes, fx);
        }
    }

    /// A binary frame: before revision 4 with the type of its packet.
    pub(super) fn binary(&mut self, frame: &[u8], fx: &mut Effects) {
        match (self.setting.revision, frame.split_first()) {
            (4, _) => self.part(frame, fx),
            (_, Some((4, bytes))) => self.part(bytes, fx),
            _ => self.wrong("a binary frame of an unknown type", fx),
        }
    }

    /// What a poll brought.
    pub(super) fn payload(&mut self, now: Tick, mut payload: &[u8], fx: &mut Effects) {
        while !payload.is_empty() && fx.close.is_none() {
            match packet::next(&mut payload, self.setting.revision) {
                Ok(Part::Text(packet)) => self.hear(now, packet, fx),
                Ok(Part::Binary(bytes)) => self.part(&bytes, fx),
                Err(why) => self.wrong(why, fx),
            }
        }
    }
}
