//! Coming back after a connection was lost: what is remembered for it, and how the conversation is
//! taken up again.
//!
//! The next login is by token. Then each room is entered with `after` the last message seen, and
//! the inbox is read from there; what one answer could not hold is paged. What arrives meanwhile is
//! held back, so that everything is reported in order, behind [`Event::Resumed`] and ahead of the
//! login's `Done`. Then whatever was not answered is asked again, under the same keys.

use super::pending::{Pending, Wants};
use super::session::{Login, Stage, YardstickSession, in_words};
use super::types::{self, Answer, AnswerWhat, Frame, FrameWhat, Message, RequestWhat};
use super::{Encoding, Text};
use model::{Effects, Event, FaultClass, RoomName, Tick, Token};

/// Requests of coming back have these bits in their id, and the place of the room.
const OWN: u32 = 0b11 << 30;
/// The place of the inbox.
const INBOX: u32 = !OWN;
/// Messages in one page.
const PAGE: u32 = 1_000;
/// Most rooms that are remembered, and deliveries held back.
const SEATS_MAX: usize = 1_024;
const CAUGHT_MAX: usize = 1 << 20;
/// A server that is busy is asked again after that.
const BUSY_NS: u64 = 200_000_000;

/// What a person needs to come back.
#[derive(Default)]
pub(super) struct Resume {
    token: Box<str>,
    /// The login that is under way, for the case that the token is refused.
    login: Option<Box<Login>>,
    step: Step,
    inbox: Seat,
    seats: Vec<Seat>,
    /// Seats that have not caught up.
    open: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// The connection is there, or a first login is under way.
    #[default]
    Calm,
    /// It was lost, and the next login takes the conversation up.
    Lost,
    /// What was missed is on its way.
    Catching,
}

/// A room the person is in, or its inbox.
#[derive(Default)]
struct Seat {
    room: Box<str>,
    /// The first bytes of a live message of it, up to its number.
    head: Box<[u8]>,
    /// The number of the last message seen.
    seen: u32,
    /// The same when the connection was lost.
    before: u32,
    /// The join that is not answered.
    entering: Option<Token>,
    /// The leave that is not answered.
    leaving: Option<Token>,
    /// Deliveries held back, in order.
    caught: Vec<Event>,
    /// While catching up: the room is entered, and messages before this number are to be asked
    /// for; 0: nothing is known yet.
    page: u32,
    /// The server was busy.
    is_waiting: bool,
}

impl Seat {
    fn new(encoding: Encoding, room: &str) -> Seat {
        Seat { room: room.into(), head: head(encoding, room), ..Seat::default() }
    }

    /// The number of a live message, if it is of this room; read without parsing.
    #[inline]
    fn number(&self, encoding: Encoding, payload: &[u8]) -> Option<u32> {
        let rest = behind_length(encoding, payload).strip_prefix(&*self.head)?;
        let mut number = 0u32;
        match encoding {
            Encoding::Json => {
                for digit in rest.iter().take_while(|byte| byte.is_ascii_digit()) {
                    number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
                }
            }
            Encoding::Proto => {
                for (place, byte) in rest.iter().take(5).enumerate() {
                    number |= u32::from(byte & 0x7f) << (7 * place);
                    if byte & 0x80 == 0 {
                        break;
                    }
                }
            }
        }
        Some(number)
    }
}

/// A message frame without what depends on its length.
#[inline]
fn behind_length(encoding: Encoding, payload: &[u8]) -> &[u8] {
    match encoding {
        Encoding::Json => payload,
        Encoding::Proto => {
            let length = payload.iter().skip(1).take_while(|byte| **byte & 0x80 != 0).count();
            payload.get(length + 2..).unwrap_or_default()
        }
    }
}

/// The first bytes of a message of a room, up to its number.
fn head(encoding: Encoding, room: &str) -> Box<[u8]> {
    let message = Message { room: room.into(), number: 1, ..Message::default() };
    let mut payload = Vec::new();
    Frame { what: Some(FrameWhat::Message(message)) }.encode(encoding, &mut payload);
    let rest = behind_length(encoding, &payload);
    let end = match encoding {
        Encoding::Json => b"1}}".len(),
        Encoding::Proto => 1,
    };
    rest[..rest.len() - end].into()
}

impl Resume {
    pub(super) fn new(encoding: Encoding) -> Resume {
        Resume { inbox: Seat::new(encoding, ""), ..Resume::default() }
    }

    /// Whether an id is one of ours.
    pub(super) fn is_own(id: u32) -> bool {
        id & OWN == OWN
    }

    /// Whether the next login takes the conversation up.
    pub(super) fn is_lost(&self) -> bool {
        self.step == Step::Lost
    }

    /// The connection was lost: whether there is a conversation to be taken up.
    fn lose(&mut self) -> bool {
        if self.token.is_empty() {
            return false;
        }
        for seat in self.seats.iter_mut().chain([&mut self.inbox]) {
            // What was held back has not been reported: it will come again.
            if self.step != Step::Calm {
                seat.seen = seat.before;
            }
            (seat.before, seat.page, seat.is_waiting) = (seat.seen, 0, false);
            seat.caught = Vec::new();
        }
        self.step = Step::Lost;
        true
    }

    /// A room is being entered.
    pub(super) fn enter(&mut self, encoding: Encoding, token: Token, room: RoomName<'_>) {
        self.seats.retain(|seat| *seat.room != *room.name);
        if self.seats.len() < SEATS_MAX {
            let entering = Some(token);
            self.seats.push(Seat { entering, ..Seat::new(encoding, room.name) });
        }
    }

    /// A room is being left.
    pub(super) fn leave(&mut self, token: Token, room: RoomName<'_>) {
        if let Some(seat) = self.seats.iter_mut().find(|seat| *seat.room == *room.name) {
            seat.leaving = Some(token);
        }
    }

    /// A request is over; `number` is that of the room's latest message if it was a join.
    pub(super) fn answered(&mut self, token: Token, number: Option<u32>) {
        self.seats.retain_mut(|seat| {
            if seat.entering == Some(token)
                && let Some(number) = number
            {
                (seat.entering, seat.seen) = (None, number);
            }
            seat.entering != Some(token) && seat.leaving != Some(token)
        });
    }

    /// A live message: notes its number; what `fx` reports of it, behind `mark`, is held back while
    /// older ones are on their way.
    #[inline]
    pub(super) fn heard(
        &mut self,
        encoding: Encoding,
        payload: &[u8],
        fx: &mut Effects,
        mark: usize,
    ) {
        let seats = self.seats.iter_mut().chain([&mut self.inbox]);
        for seat in seats {
            if let Some(number) = seat.number(encoding, payload) {
                seat.seen = seat.seen.max(number);
                if self.step == Step::Catching {
                    seat.caught.extend(fx.events.drain(mark..));
                }
                return;
            }
        }
    }

    fn seat(&mut self, id: u32) -> Option<&mut Seat> {
        match id & !OWN {
            INBOX => Some(&mut self.inbox),
            place => self.seats.get_mut(place as usize),
        }
    }

    /// Places of all that has to catch up.
    fn places(&self) -> Vec<u32> {
        let seats = self.seats.iter().enumerate();
        let in_rooms = seats.filter(|(_, seat)| seat.entering.is_none());
        in_rooms.map(|(place, _)| place as u32).collect()
    }
}

impl YardstickSession {
    /// By which a request is known that is sent again; nothing for people who do not come back.
    pub(super) fn key(&self, token: Token, part: usize, fx: &Effects) -> Text<'static> {
        match self.resume {
            Some(_) => format!("{:x}.{:x}.{:x}.{part:x}", fx.run, self.person, token.0).into(),
            None => Text::default(),
        }
    }

    pub(super) fn lose(&mut self) -> bool {
        let Some(resume) = &mut self.resume else { return false };
        let is_kept = resume.lose();
        if is_kept {
            // There is nobody to tell now: the next login answers for this one.
            if let Stage::Rising(login) = std::mem::replace(&mut self.stage, Stage::Idle) {
                let (token, wants) = (login.token, Wants::Welcome);
                self.pending.push(Pending { token, wants, left: 1, again: Vec::new() });
            }
            self.socket = Default::default();
        }
        is_kept
    }

    /// The login of somebody whose connection was lost: by token.
    pub(super) fn log_in_again(&mut self, login: Box<Login>, fx: &mut Effects) -> bool {
        let Some(resume) = self.resume.as_mut().filter(|resume| resume.is_lost()) else {
            return self.log_in_by_name(&login, fx);
        };
        let (token, request) = (Text::from(resume.token.to_string()), login.token);
        resume.login = Some(login);
        let what = types::Login { token, ..types::Login::default() };
        self.send(request, RequestWhat::Login(what), fx);
        true
    }

    /// The token is good no longer: the conversation is over, and a new one begins by name.
    pub(super) fn token_refused(&mut self, fx: &mut Effects) -> bool {
        let Some(resume) = self.resume.as_mut().filter(|resume| resume.is_lost()) else {
            return false;
        };
        let Some(login) = resume.login.take() else { return false };
        **resume = Resume::new(self.encoding);
        self.direct.clear();
        self.fail_pending(FaultClass::Offline, "the target began a new conversation", fx);
        self.log_in_by_name(&login, fx)
    }

    /// The target has let the person in; whether all is done with that.
    pub(super) fn welcomed(&mut self, welcome: &types::Welcome<'_>, fx: &mut Effects) -> bool {
        let Some(resume) = &mut self.resume else { return true };
        resume.token = (&*welcome.token).into();
        let has_told = welcome.told > resume.inbox.seen;
        resume.inbox.seen = welcome.told;
        if resume.step != Step::Lost {
            return true;
        }
        resume.step = Step::Catching;
        resume.seats.retain(|seat| seat.leaving.is_none());
        let places = resume.places();
        resume.open = places.len() + usize::from(has_told);
        resume.inbox.page = welcome.told.saturating_add(1);
        if resume.open == 0 {
            self.caught_up(fx);
            return false;
        }
        for place in places {
            self.catch_up(place, fx);
        }
        if has_told {
            self.catch_up(INBOX, fx);
        }
        false
    }

    /// Enters a room again, or asks for a page of what was missed.
    fn catch_up(&mut self, place: u32, fx: &mut Effects) {
        let has_people = self.wants_people();
        let avatars = self.avatars.is_some();
        let Some(seat) = self.resume.as_mut().and_then(|resume| resume.seat(place)) else { return };
        let room = Text::from(seat.room.to_string());
        let what = match seat.page {
            0 => RequestWhat::Join(types::Join {
                room,
                after: seat.before,
                // Of a room in which nothing had been said, all is asked for.
                history: if seat.before == 0 { PAGE } else { 0 },
                members: has_people,
                avatars,
                ..types::Join::default()
            }),
            before => {
                let limit = (before - 1).saturating_sub(seat.before).min(PAGE);
                RequestWhat::History(types::GetHistory { room, before, limit })
            }
        };
        let payload = self.encode(OWN | place, what);
        self.write(&payload, fx);
    }

    /// The answer to one of the requests above.
    pub(super) fn caught(&mut self, now: Tick, answer: Answer<'_>, fx: &mut Effects) {
        let is_catching = |resume: &&mut Box<Resume>| resume.step == Step::Catching;
        let resume = self.resume.as_mut().filter(is_catching);
        let Some(seat) = resume.and_then(|resume| resume.seat(answer.id)) else {
            let detail = "an answer to a request nobody made";
            return self.give_up(FaultClass::Protocol, detail, fx);
        };
        let mut people = Vec::new();
        let (messages, target) = match answer.what {
            Some(AnswerWhat::Joined(joined)) if seat.page == 0 => {
                people = joined.people;
                seat.page = joined.number.saturating_add(1);
                (joined.messages, Some(joined.number))
            }
            Some(AnswerWhat::History(history)) if seat.page != 0 => (history.messages, None),
            Some(AnswerWhat::Error(error)) if &*error.code == "busy" => {
                seat.is_waiting = true;
                fx.wake = Some(Tick(now.0.saturating_add(BUSY_NS)));
                return;
            }
            Some(AnswerWhat::Error(error)) => {
                return self.give_up(FaultClass::LoginRefused, &in_words(&error), fx);
            }
            _ => return self.give_up(FaultClass::Protocol, "an answer of the wrong kind", fx),
        };
        if let Some(number) = target {
            // Fewer than before: the target has lost some.
            let is_less = number < seat.before;
            seat.seen = if is_less { number } else { seat.seen.max(number) };
        }
        let (mark, asked) = (fx.events.len(), seat.page);
        let is_missed = |message: &&Message<'_>| {
            (seat.before.saturating_add(1)..asked).contains(&message.number)
        };
        messages
            .iter()
            .filter(is_missed)
            .for_each(|message| fx.deliveries(message.text.as_bytes()));
        let lowest = messages.iter().filter(is_missed).map(|message| message.number).min();
        let is_inbox = seat.room.is_empty();
        seat.page = lowest.unwrap_or(asked);
        // An empty page is the end of what is left; an empty join may stand before pages.
        let has_more =
            seat.page > seat.before.saturating_add(1) && (lowest.is_some() || target.is_some());
        if is_inbox {
            self.direct.keep_own(fx, mark);
        }
        self.put_before(answer.id, mark, fx);
        self.look_at(now, &people, fx);
        self.go_on(answer.id, has_more, fx);
    }

    /// Holds what is behind `mark` back, ahead of what is held back already.
    fn put_before(&mut self, id: u32, mark: usize, fx: &mut Effects) {
        let Some(seat) = self.resume.as_mut().and_then(|resume| resume.seat(id)) else { return };
        let mut events: Vec<Event> = fx.events.drain(mark..).collect();
        events.append(&mut seat.caught);
        seat.caught = events;
        if seat.caught.len() > CAUGHT_MAX {
            let detail = format!("more than {CAUGHT_MAX} messages were missed");
            self.give_up(FaultClass::TooLarge, &detail, fx);
        }
    }

    /// One answer of coming back has been taken in.
    fn go_on(&mut self, id: u32, has_more: bool, fx: &mut Effects) {
        let Some(resume) = self.resume.as_mut().filter(|_| fx.close.is_none()) else { return };
        if has_more {
            return self.catch_up(id & !OWN, fx);
        }
        resume.open -= 1;
        if resume.open == 0 {
            self.caught_up(fx);
        }
    }

    /// Everything that was missed is here: the conversation goes on.
    fn caught_up(&mut self, fx: &mut Effects) {
        let Some(resume) = &mut self.resume else { return };
        resume.step = Step::Calm;
        let login = resume.login.take();
        fx.events.push(Event::Resumed);
        for seat in resume.seats.iter_mut().chain([&mut resume.inbox]) {
            fx.events.append(&mut std::mem::take(&mut seat.caught));
        }
        self.stage = Stage::Online;
        let pending = std::mem::take(&mut self.pending);
        for mut pending in pending {
            if login.as_ref().is_some_and(|login| login.token == pending.token) {
                fx.done(pending.token);
            } else if pending.again.is_empty() {
                // Rooms that were being left were left with the connection.
                fx.done(pending.token);
            } else {
                pending.left = pending.again.len();
                pending.again.iter().for_each(|payload| self.write(payload, fx));
                self.pending.push(pending);
            }
        }
    }

    /// Asks again what the target was too busy for.
    pub(super) fn ask_again(&mut self, fx: &mut Effects) {
        let Some(resume) = self.resume.as_mut() else { return };
        if resume.step != Step::Catching {
            return;
        }
        for place in resume.places().into_iter().chain([INBOX]) {
            let seat = self.resume.as_mut().and_then(|resume| resume.seat(place));
            if seat.is_some_and(|seat| std::mem::take(&mut seat.is_waiting)) {
                self.catch_up(place, fx);
            }
        }
    }

    /// Whether a request is not to be sent again: what it asks for is so when the connection is
    /// lost.
    pub(super) fn is_moot(wants: Wants, what: &RequestWhat<'_>) -> bool {
        wants == Wants::Welcome || matches!(what, RequestWhat::Leave(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_without_parsing() {
        for encoding in Encoding::ALL {
            let rooms = ["", "live", "live2", "a\"b", "é\u{1}"];
            let seats = rooms.map(|room| Seat::new(encoding, room));
            for (number, length) in [1, 9, 127, 128, 65_536, u32::MAX]
                .iter()
                .flat_map(|n| [1, 300, 20_000].map(|l| (*n, l)))
            {
                for (place, room) in rooms.iter().enumerate() {
                    let text = "x".repeat(length);
                    let message = Message {
                        room: (*room).into(),
                        number,
                        text: (&*text).into(),
                        ..Message::default()
                    };
                    let mut payload = Vec::new();
                    Frame { what: Some(FrameWhat::Message(message)) }
                        .encode(encoding, &mut payload);
                    for (other, seat) in seats.iter().enumerate() {
                        let expect = (other == place).then_some(number);
                        assert_eq!(seat.number(encoding, &payload), expect, "{room} {number}");
                    }
                    (0..payload.len().min(40)).for_each(|end| {
                        let _ = seats[place].number(encoding, &payload[..end]);
                    });
                }
            }
        }
    }
}
