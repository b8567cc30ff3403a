//! One person's conversation with a yardstick.

use super::avatars::Avatars;
use super::direct::{Direct, is_direct};
use super::facts::{AVATARS, FACTS, HISTORY, MEMBERS, RESUME, deflate, encoding};
use super::pending::{Pending, Wants};
use super::resume::Resume;
use super::types::{self, AnswerWhat, Frame, FrameWhat, Person, RequestWhat};
use super::{Encoding, Kind, Text};
use crate::wire::deflate::Inflated;
use crate::wire::frame::{Opcode, close_code};
use crate::wire::printable;
use crate::wire::socket::{self, Input, Socket};
use model::{
    Effects, Event, Fault, FaultClass, Features, Measure, PersonId, Request, Session, Shared, Tick,
    Token,
};
use std::sync::Arc;

/// Messages asked for with a join, by people who want history.
const JOIN_HISTORY: u32 = 50;
/// Most requests of one person that may wait for an answer at a time.
pub(super) const PENDING_MAX: usize = 1024;
/// How far a conversation has come.
pub(super) enum Stage {
    /// No transport.
    Idle,
    /// The upgrade is to be answered; then this person logs in.
    Rising(Box<Login>),
    /// The login is to be answered.
    Entering,
    /// Everything may be asked.
    Online,
}

/// What a login needs once the socket is open.
pub(super) struct Login {
    pub(super) token: Token,
    name: Box<str>,
    password: Box<str>,
}

pub(super) struct YardstickSession {
    pub(super) shared: Arc<Shared>,
    pub(super) person: PersonId,
    features: Features,
    pub(super) encoding: Encoding,
    /// Whether compression is asked for.
    deflate: bool,
    /// Nobody needs to know more of a live message than its stamps.
    is_plain: bool,
    pub(super) direct: Direct,
    /// Nothing in these two without the feature.
    pub(super) avatars: Option<Box<Avatars>>,
    pub(super) resume: Option<Box<Resume>>,
    pub(super) socket: Socket,
    pub(super) stage: Stage,
    pub(super) pending: Vec<Pending>,
}

impl YardstickSession {
    pub(super) fn new(person: PersonId, features: Features, shared: &Arc<Shared>) -> Self {
        let encoding = encoding(&shared.options).unwrap_or(Encoding::Proto);
        let resume = features.has(RESUME).then(|| Box::new(Resume::new(encoding)));
        YardstickSession {
            person,
            encoding,
            is_plain: resume.is_none() && shared.lists.is_empty(),
            direct: Direct::default(),
            resume,
            deflate: deflate(&shared.options).unwrap_or(false),
            avatars: None, // until the first login
            shared: Arc::clone(shared),
            features,
            socket: Socket::default(),
            stage: Stage::Idle,
            pending: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, token: Token, what: RequestWhat<'_>, fx: &mut Effects) {
        if self.pending.len() >= PENDING_MAX {
            let detail = format!("{PENDING_MAX} requests wait for their answers");
            return fx.failed(token, FaultClass::Backlog, detail);
        }
        let wants = Wants::of(&what);
        let is_kept = self.resume.is_some() && !YardstickSession::is_moot(wants, &what);
        let payload = self.encode(token.0, what);
        self.write(&payload, fx);
        let again = if is_kept { vec![payload.into()] } else { Vec::new() };
        self.pending.push(Pending { token, wants, left: 1, again });
    }

    pub(super) fn encode(&self, id: u32, what: RequestWhat<'_>) -> Vec<u8> {
        let mut payload = Vec::with_capacity(128);
        types::Request { id, what: Some(what) }.encode(self.encoding, &mut payload);
        payload
    }

    pub(super) fn write(&self, payload: &[u8], fx: &mut Effects) {
        match self.deflate {
            true => socket::write_deflated(self.encoding.opcode(), payload, fx),
            false => socket::write(self.encoding.opcode(), payload, fx),
        }
    }

    fn log_in(&mut self, fx: &mut Effects) {
        if let Stage::Rising(login) = std::mem::replace(&mut self.stage, Stage::Entering) {
            self.log_in_again(login, fx);
        }
    }

    /// Gives `true`, as the login is under way then.
    pub(super) fn log_in_by_name(&mut self, login: &Login, fx: &mut Effects) -> bool {
        let (name, password) = ((&*login.name).into(), (&*login.password).into());
        let what = types::Login { name, password, token: Text::default() };
        self.send(login.token, RequestWhat::Login(what), fx);
        true
    }

    /// Whether a join asks who is there.
    pub(super) fn wants_people(&self) -> bool {
        self.features.has(MEMBERS) || self.features.has(AVATARS)
    }

    /// A whole message: the first bytes tell what it is.
    fn hear(&mut self, now: Tick, opcode: Opcode, payload: &[u8], fx: &mut Effects) {
        if opcode != self.encoding.opcode() {
            return self.give_up(FaultClass::Protocol, "a frame of the other encoding", fx);
        }
        match self.encoding.classify(payload) {
            Some(Kind::Message) if self.is_plain => fx.deliveries(payload),
            Some(Kind::Message) => self.message(payload, fx),
            Some(Kind::Presence) => {
                fx.announcements(payload);
                if self.avatars.is_some() {
                    self.newcomers(now, payload, fx);
                }
            }
            Some(Kind::Answer) => self.answered(now, payload, fx),
            Some(Kind::Typing | Kind::Read | Kind::Change | Kind::Notice) => {}
            None => self.give_up(FaultClass::Protocol, "a frame that is no yardstick message", fx),
        }
    }

    /// A live message, to somebody who comes back or is on lists.
    fn message(&mut self, payload: &[u8], fx: &mut Effects) {
        let mark = fx.events.len();
        fx.deliveries(payload);
        if is_direct(self.encoding, payload) {
            self.direct.keep_own(fx, mark);
        }
        if let Some(resume) = &mut self.resume {
            resume.heard(self.encoding, payload, fx, mark);
        }
    }

    fn answered(&mut self, now: Tick, payload: &[u8], fx: &mut Effects) {
        let answer = match Frame::decode(self.encoding, payload) {
            Ok(Frame { what: Some(FrameWhat::Answer(answer)) }) => answer,
            Ok(_) => return self.give_up(FaultClass::Protocol, "an answer that is none", fx),
            Err(error) => return self.give_up(FaultClass::Protocol, &error.to_string(), fx),
        };
        if self.resume.is_some() && Resume::is_own(answer.id) {
            return self.caught(now, answer, fx);
        }
        if Avatars::is_own(answer.id) {
            return self.pictured(now, &answer, fx);
        }
        let token = Token(answer.id);
        let Some(at) = self.pending.iter().position(|pending| pending.token == token) else {
            let detail = "an answer to a request nobody made";
            return self.give_up(FaultClass::Protocol, detail, fx);
        };
        let wants = self.pending[at].wants;
        match answer.what {
            Some(AnswerWhat::Error(error)) if wants.is_silent() => self.untold(at, &error, fx),
            Some(AnswerWhat::Error(error)) => self.refused(at, &error, fx),
            Some(what) if wants.is(&what) => {
                if let AnswerWhat::Welcome(welcome) = &what
                    && !self.welcomed(welcome, fx)
                {
                    return;
                }
                if self.one_answered(at) && !wants.is_silent() {
                    self.settled(now, token, &what, fx);
                }
            }
            _ => self.give_up(FaultClass::Protocol, "an answer of the wrong kind", fx),
        }
    }

    /// A request has succeeded.
    fn settled(&mut self, now: Tick, token: Token, what: &AnswerWhat<'_>, fx: &mut Effects) {
        fx.done(token);
        let mut number = None;
        match what {
            AnswerWhat::Welcome(_) => self.stage = Stage::Online,
            AnswerWhat::Joined(joined) => {
                number = Some(joined.number);
                self.look_at(now, &joined.people, fx);
            }
            AnswerWhat::Members(members) => self.look_at(now, &members.people, fx),
            AnswerWhat::Pong(_) => self.direct.ponged(token),
            _ => {}
        }
        if let Some(resume) = &mut self.resume {
            resume.answered(token, number);
        }
    }

    /// Who came into the room, to somebody who wants to see their pictures.
    fn newcomers(&mut self, now: Tick, payload: &[u8], fx: &mut Effects) {
        match Frame::decode(self.encoding, payload) {
            Ok(Frame { what: Some(FrameWhat::Presence(presence)) }) => {
                self.look_at(now, &presence.joined, fx);
            }
            Ok(_) => self.give_up(FaultClass::Protocol, "a presence that is none", fx),
            Err(error) => self.give_up(FaultClass::Protocol, &error.to_string(), fx),
        }
    }

    /// Asks for the pictures of those who have one that is not known.
    pub(super) fn look_at(&mut self, now: Tick, people: &[Person<'_>], fx: &mut Effects) {
        let Some(avatars) = &mut self.avatars else { return };
        if !people.iter().all(|person| avatars.notice(&person.avatar_hash)) {
            return self.give_up(FaultClass::Protocol, "a hash too long for one", fx);
        }
        self.ask_for_avatars(now, fx);
    }

    fn ask_for_avatars(&mut self, now: Tick, fx: &mut Effects) {
        let mut count = 0;
        while let Some((id, hash)) = self.avatars.as_mut().and_then(|avatars| avatars.next(now)) {
            let hash = (&*hash).into();
            let payload = self.encode(id, RequestWhat::Avatar(types::GetAvatar { hash }));
            self.write(&payload, fx);
            count += 1;
        }
        if count > 0 {
            fx.events.push(Event::Asked(Measure::Avatars, count));
        }
    }

    /// The answer to one of the session's own requests.
    fn pictured(&mut self, now: Tick, answer: &types::Answer<'_>, fx: &mut Effects) {
        let sent = self.avatars.as_mut().and_then(|avatars| avatars.answered(answer.id));
        let outcome = match &answer.what {
            Some(AnswerWhat::Avatar(_)) => Ok(()),
            Some(AnswerWhat::Error(error)) => {
                Err(Fault::new(FaultClass::RequestRefused, in_words(error)))
            }
            _ => return self.give_up(FaultClass::Protocol, "an answer of the wrong kind", fx),
        };
        let Some(sent) = sent else {
            let detail = "an answer to a request nobody made";
            return self.give_up(FaultClass::Protocol, detail, fx);
        };
        fx.events.push(Event::Answered { measure: Measure::Avatars, sent, outcome });
        self.ask_for_avatars(now, fx);
    }

    fn refused(&mut self, at: usize, error: &types::Error<'_>, fx: &mut Effects) {
        let detail = in_words(error);
        if self.pending[at].wants == Wants::Welcome {
            if self.resume.as_ref().is_some_and(|resume| resume.is_lost()) {
                self.pending.swap_remove(at);
                if self.token_refused(fx) {
                    return;
                }
            }
            return self.give_up(FaultClass::LoginRefused, &detail, fx);
        }
        let token = self.pending.swap_remove(at).token;
        if let Some(resume) = &mut self.resume {
            resume.answered(token, None);
        }
        fx.failed(token, FaultClass::RequestRefused, detail);
    }

    /// Fails everything that is open and forgets the conversation.
    fn reset(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        if let Stage::Rising(login) = std::mem::replace(&mut self.stage, Stage::Idle) {
            fx.failed(login.token, class, detail);
        }
        self.fail_pending(class, detail, fx);
        self.socket = Socket::default();
        self.avatars = self.features.has(AVATARS).then(Box::default);
        self.direct = Direct::default();
        self.resume = self.resume.take().map(|_| Box::new(Resume::new(self.encoding)));
    }

    pub(super) fn fail_pending(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        for pending in self.pending.drain(..).filter(|pending| !pending.wants.is_silent()) {
            fx.failed(pending.token, class, detail);
        }
    }

    /// A login: the conversation is begun anew, unless it was lost and is to go on.
    fn begin(&mut self, login: Login, fx: &mut Effects) {
        if self.resume.as_ref().is_some_and(|resume| resume.is_lost()) {
            // A login that was on its way when the connection was lost is over.
            for login in self.pending.extract_if(.., |pending| pending.wants == Wants::Welcome) {
                fx.failed(login.token, FaultClass::Offline, "the connection was lost");
            }
            self.socket = Socket::default();
            self.avatars = self.features.has(AVATARS).then(Box::default);
        } else {
            self.reset(FaultClass::Offline, "a new login replaced the conversation", fx);
        }
        if !self.shared.lists.is_empty() {
            self.direct.me = login.name.clone();
        }
        self.stage = Stage::Rising(Box::new(login));
        fx.dial = true;
    }

    /// Ends the conversation as the target's doing.
    #[cold]
    pub(super) fn give_up(&mut self, class: FaultClass, detail: &str, fx: &mut Effects) {
        self.reset(class, detail, fx);
        fx.broken(class, detail);
    }

    fn disconnect(&mut self, fx: &mut Effects) {
        if matches!(self.stage, Stage::Entering | Stage::Online) {
            socket::write_close(close_code::NORMAL, fx);
        }
        self.reset(FaultClass::Offline, "the person disconnected first", fx);
        fx.close = Some(Ok(()));
    }
}

/// A refusal in one printable line.
pub(super) fn in_words(error: &types::Error<'_>) -> String {
    format!("{}: {}", printable(&error.code), printable(&error.text))
}

impl Session for YardstickSession {
    fn act(&mut self, _: Tick, token: Token, request: Request<'_>, fx: &mut Effects) {
        let what = match request {
            Request::Login { name, password } => {
                let login = Login { token, name: name.into(), password: password.into() };
                return self.begin(login, fx);
            }
            Request::Disconnect => return self.disconnect(fx),
            _ if !matches!(self.stage, Stage::Online) => {
                return fx.failed(token, FaultClass::Offline, "not logged in");
            }
            Request::Join { room, status, .. } => {
                let shared = self.shared.clone();
                if let Some(list) = shared.list(room.id) {
                    return self.join_list(token, list, fx);
                }
                if let Some(resume) = &mut self.resume {
                    resume.enter(self.encoding, token, room);
                }
                RequestWhat::Join(types::Join {
                    room: room.name.into(),
                    status: status.into(),
                    history: if self.features.has(HISTORY) { JOIN_HISTORY } else { 0 },
                    members: self.wants_people(),
                    avatars: self.features.has(AVATARS),
                    ..types::Join::default()
                })
            }
            Request::Leave { room } if self.shared.list(room.id).is_some() => {
                return self.leave_list(token, room, fx);
            }
            Request::Leave { room } => {
                if let Some(resume) = &mut self.resume {
                    resume.leave(token, room);
                }
                RequestWhat::Leave(types::Leave { room: room.name.into() })
            }
            Request::Say { room, text } => {
                let (room, text, key) = (room.name.into(), text.into(), self.key(token, 0, fx));
                RequestWhat::Say(types::Say { room, text, key, ..types::Say::default() })
            }
            Request::Tell { list, text } => return self.tell(token, list, text, (Wants::Told, fx)),
            Request::Multicast { list, text } => {
                return self.tell(token, list, text, (Wants::Multicast, fx));
            }
            Request::History { room, limit } => {
                RequestWhat::History(types::GetHistory { room: room.name.into(), before: 0, limit })
            }
            Request::Members { room } => {
                RequestWhat::Members(types::GetMembers { room: room.name.into() })
            }
            Request::Typing { room } => {
                RequestWhat::Typing(types::Typing { room: room.name.into(), name: Text::default() })
            }
            Request::Read { room } => RequestWhat::Read(types::Read {
                room: room.name.into(),
                number: 0,
                name: Text::default(),
            }),
            Request::Ping => RequestWhat::Ping(types::Ping {}),
            _ => return fx.lacks(token, &FACTS, &request),
        };
        self.send(token, what, fx);
    }

    fn opened(&mut self, _: Tick, fx: &mut Effects) {
        let offered = [self.encoding.subprotocol()];
        let endpoint = &self.shared.endpoint;
        let upgraded = self.socket.upgrade_with(endpoint, &[], &offered, self.deflate, fx);
        if let Err(fault) = upgraded {
            self.give_up(fault.class, &fault.detail, fx);
        }
    }

    fn receive(&mut self, now: Tick, bytes: &[u8], fx: &mut Effects) -> usize {
        // Taken out, so that the message it lends can be heard by the rest of the session.
        let mut socket = std::mem::take(&mut self.socket);
        let offered = [self.encoding.subprotocol()];
        let (mut at, mut inflated) = (0, Inflated::default());
        let bytes_max = self.shared.frame_bytes_max;
        while fx.close.is_none() && at < bytes.len() && !matches!(self.stage, Stage::Idle) {
            if let Some((used, opcode, payload)) = socket.message(&bytes[at..], bytes_max) {
                at += used;
                self.hear(now, opcode, payload, fx);
                continue;
            }
            let rest = &bytes[at..];
            let (used, input) = socket.read(rest, &offered, bytes_max, &mut inflated, fx);
            at += used;
            match input {
                Input::Message(opcode, payload) => self.hear(now, opcode, payload, fx),
                Input::More => break,
                Input::Nothing => {}
                Input::Opened(_) => self.log_in(fx),
                Input::Closed(fault) | Input::Broken(fault) => {
                    self.give_up(fault.class, &fault.detail, fx);
                }
            }
        }
        // What comes behind the end of a conversation is of no interest to anybody.
        if fx.close.is_some() || matches!(self.stage, Stage::Idle) {
            return bytes.len();
        }
        self.socket = socket;
        at
    }

    fn wake(&mut self, _: Tick, fx: &mut Effects) {
        self.ask_again(fx);
    }

    fn lost(&mut self, _: Tick) -> bool {
        self.lose()
    }
}
