//! What each request does.

use std::rc::Rc;

use protocols::yardstick::{
    AnswerWhat, Avatar, Bytes, Done, Error, FrameWhat, GetHistory, History, Join, Joined, Members,
    Millis, Person, Pong, Request, RequestWhat, Said, Say, Typing,
};

use crate::access::auth::is_name;
use crate::chat::amend::{check_key, check_text};
use crate::chat::avatar::{self, Look};
use crate::chat::message::Extra;
use crate::chat::resume::{self, Known};
use crate::chat::room::{Arrival, Member, Room, Stored};
use crate::cluster::{News, Remote};
use crate::config::{
    Avatars, HISTORY_BYTES_MAX, PAGE_MESSAGES_MAX, Presence, ROOM_BYTES_MAX, ROOMS_MAX,
    ROOMS_PER_PERSON_MAX, STATUS_BYTES_MAX,
};
use crate::core::{Core, Now};
use crate::delivery::conn::{Dialect, Place, put_answer};
use crate::outlook::journal::{Level, Value};
use crate::store::Want;

/// Why a request failed: the code for machines and the sentence for people.
pub(crate) type Failure = (&'static str, String);

/// How a request ended; `None` if it is answered already, or will be later.
pub(crate) type Answered<'a> = Result<Option<AnswerWhat<'a>>, Failure>;

pub(crate) fn fail<T>(code: &'static str, text: impl Into<String>) -> Result<T, Failure> {
    Err((code, text.into()))
}

impl Core {
    /// Does what a client asks and answers it.
    pub(crate) fn request(&mut self, id: usize, dialect: Dialect, request: Request<'_>, now: Now) {
        let outcome = match request.what {
            Some(RequestWhat::Login(login)) => self.login(id, request.id, &login, now),
            _ if self.conns[id].name.is_none() => fail("login_first", "log in first"),
            Some(RequestWhat::Ping(_)) => {
                Ok(Some(AnswerWhat::Pong(Pong { at_ms: Millis(now.unix_ms) })))
            }
            Some(RequestWhat::Join(join)) => {
                let known = Known::MEMORY;
                self.join(id, dialect, request.id, (&join, known), now).map(|()| None)
            }
            Some(RequestWhat::Leave(leave)) => self.leave(id, &leave.room).map(Some),
            Some(RequestWhat::Say(say)) => self.say(id, request.id, &say, now),
            Some(RequestWhat::Tell(tell)) => self.tell(id, request.id, &tell, now),
            Some(RequestWhat::History(get)) => {
                self.history(id, dialect, request.id, &get, now).map(|()| None)
            }
            Some(RequestWhat::Members(get)) => {
                self.members(id, dialect, request.id, &get.room).map(|()| None)
            }
            Some(RequestWhat::Typing(typing)) => self.typing(id, &typing).map(Some),
            Some(RequestWhat::Read(read)) => self.read(id, &read).map(Some),
            Some(RequestWhat::Edit(edit)) => self.edit(id, request.id, &edit, now),
            Some(RequestWhat::Delete(delete)) => self.delete(id, request.id, &delete, now),
            Some(RequestWhat::React(react)) => self.react(id, request.id, &react, now),
            Some(RequestWhat::Avatar(get)) => self.avatar(&get.hash).map(Some),
            Some(RequestWhat::Revoke(revoke)) => self.revoke(id, request.id, &revoke, now),
            Some(RequestWhat::Create(create)) => self.create(id, request.id, &create, now),
            Some(RequestWhat::Configure(wish)) => self.configure(id, request.id, &wish, now),
            Some(RequestWhat::Grant(grant)) => self.grant(id, request.id, &grant, now),
            Some(RequestWhat::Kick(kick)) => self.kick(id, request.id, &kick, now),
            Some(RequestWhat::Rights(get)) => {
                self.rights(id, dialect, request.id, &get.room).map(|()| None)
            }
            Some(RequestWhat::Rooms(get)) => {
                self.list_rooms(id, dialect, request.id, &get);
                Ok(None)
            }
            _ => fail("unknown_request", "this server does not know this request"),
        };
        self.answer(id, dialect, request.id, outcome);
    }

    /// Answers a request, unless it has written its answer itself or will be answered later.
    pub(crate) fn answer(
        &mut self,
        id: usize,
        dialect: Dialect,
        request: u32,
        outcome: Answered<'_>,
    ) {
        let what = match outcome {
            Ok(None) => return self.enqueue(id),
            Ok(Some(what)) => what,
            Err((code, text)) => {
                *self.counters.errors.entry(code).or_default() += 1;
                self.note_limit(id, code);
                AnswerWhat::Error(Error { code: code.into(), text: text.into() })
            }
        };
        let out = &mut self.conns[id].out;
        put_answer(dialect, request, what, &mut self.scratch, out);
        self.enqueue(id);
    }

    /// Tells that a limit was reached, if that is what the code of an error says.
    fn note_limit(&mut self, id: usize, code: &'static str) {
        if !["busy", "full", "too_fast", "too_many_tries"].contains(&code) {
            return;
        }
        let name = self.conns[id].name.as_deref().unwrap_or("");
        let fields = [("code", Value::Text(code)), ("name", Value::Text(name))];
        self.journal.note_of(Level::Warn, "limit", self.door.address(id), &fields);
    }

    pub(crate) fn join(
        &mut self,
        id: usize,
        dialect: Dialect,
        request: u32,
        (join, known): (&Join<'_>, Known<'_>),
        now: Now,
    ) -> Result<(), Failure> {
        if join.status.len() > STATUS_BYTES_MAX {
            return fail("too_long", format!("a status has up to {STATUS_BYTES_MAX} bytes"));
        }
        if self.conns[id].rooms.len() >= ROOMS_PER_PERSON_MAX {
            return fail("too_many_rooms", format!("at most {ROOMS_PER_PERSON_MAX} rooms each"));
        }
        let number = self.room_or_new(&join.room)?;
        if self.conns[id].place(number).is_some() {
            return fail("already_in_room", format!("already in {}", &*join.room));
        }
        self.check_entry(id, number)?;
        self.check_not_behind(number, join.after)?;
        if self.put_off(self.ticket(id, request), join, number, known, now)? {
            return Ok(());
        }
        self.answer_join(id, dialect, request, (join, known), number);
        self.enter(id, dialect, number, join);
        Ok(())
    }

    fn answer_join(
        &mut self,
        id: usize,
        dialect: Dialect,
        request: u32,
        (join, known): (&Join<'_>, Known<'_>),
        number: u32,
    ) {
        let room = &self.rooms[number as usize];
        let people = if join.members { self.people(room, join.avatars) } else { Vec::new() };
        let messages = match join.history {
            _ if join.after > 0 => resume::missed(room, join.after, known),
            0 => Vec::new(),
            limit => room.page(0, (limit as usize).min(PAGE_MESSAGES_MAX)),
        };
        let role = self.role_word(id, room).into();
        let reads = if join.reads { room.marks.list() } else { Vec::new() };
        let number = room.number;
        let joined = Joined { number, messages, people, reads, role };
        // Built apart: the answer borrows names from all connections.
        let mut bytes = Vec::new();
        put_answer(dialect, request, AnswerWhat::Joined(joined), &mut Vec::new(), &mut bytes);
        self.conns[id].out.extend_from_slice(&bytes);
    }

    fn enter(&mut self, id: usize, dialect: Dialect, number: u32, join: &Join<'_>) {
        let Some(name) = self.conns[id].name.clone() else { return };
        let (status, avatars): (Rc<str>, bool) = ((&*join.status).into(), join.avatars);
        let who = self.conns[id].serial;
        self.tell_nodes(|| News::Joined {
            room: (&*join.room).into(),
            who,
            name: (&*name).into(),
            status: (&*status).into(),
            avatars,
        });
        let room = &mut self.rooms[number as usize];
        let (mut group, mut arrival) = (0, 0);
        if self.config.presence != Presence::Off {
            self.counters.presence_deliveries += room.len() as u64;
            (group, arrival) =
                room.note_joined(Arrival { name, status: status.clone(), avatar: avatars });
            if self.config.presence == Presence::Eager {
                room.announce(&mut self.scratch);
            }
        }
        let lane = &mut room.lanes[dialect.lane()];
        let index = lane.members.len() as u32;
        let cursor = lane.log.end();
        lane.members.push(Member { conn: id as u32, arrival, avatars, group, cursor, status });
        self.conns[id].rooms.push(Place { room: number, index });
        self.counters.joins += 1;
        self.counters.members += 1;
        if self.config.presence != Presence::Off {
            self.mark(number);
        }
    }

    pub(crate) fn room_or_new(&mut self, name: &str) -> Result<u32, Failure> {
        if let Some(number) = self.room_numbers.get(name) {
            return Ok(*number);
        }
        self.check_new_room(name)?;
        Ok(self.make_room(name))
    }

    /// Whether there may be one more room, of that name.
    pub(crate) fn check_new_room(&self, name: &str) -> Result<(), Failure> {
        if !is_name(name, ROOM_BYTES_MAX) {
            let text = format!("a room's name has 1 to {ROOM_BYTES_MAX} bytes, none of control");
            return fail("bad_room", text);
        }
        if self.rooms.len() >= ROOMS_MAX {
            return fail("full", format!("at most {ROOMS_MAX} rooms"));
        }
        Ok(())
    }

    /// Makes a room of a name that no other room has.
    pub(crate) fn make_room(&mut self, name: &str) -> u32 {
        let name: Rc<str> = name.into();
        let number = self.rooms.len() as u32;
        self.rooms.push(Room::new(name.clone(), self.look(), &self.config));
        self.room_numbers.insert(name.clone(), number);
        self.rooms_by_name.insert(name, number);
        self.counters.rooms = self.rooms.len() as u64;
        number
    }

    /// The number of a room that `id` is in.
    pub(crate) fn room_of(&self, id: usize, name: &str) -> Result<u32, Failure> {
        let number = self.room_numbers.get(name).copied();
        match number.filter(|number| self.conns[id].place(*number).is_some()) {
            Some(number) => Ok(number),
            None => fail("not_in_room", format!("not in {name:.64}")),
        }
    }

    fn leave(&mut self, id: usize, name: &str) -> Result<AnswerWhat<'static>, Failure> {
        let number = self.room_of(id, name)?;
        self.leave_room(id, number);
        Ok(AnswerWhat::Done(Done {}))
    }

    /// Leaves every room; what was said until now is still sent.
    pub(crate) fn leave_all(&mut self, id: usize) {
        while let Some(place) = self.conns.get(id).and_then(|conn| conn.rooms.last().copied()) {
            self.leave_room(id, place.room);
        }
    }

    pub(crate) fn leave_room(&mut self, id: usize, number: u32) {
        self.release_held(id, number);
        let Some(conn) = self.conns.get_mut(id) else { return };
        let Some(at) = conn.rooms.iter().position(|place| place.room == number) else { return };
        let index = conn.rooms.swap_remove(at).index as usize;
        let room = &mut self.rooms[number as usize];
        // The lane of its encoding; looked for, as the phase no longer tells it after a goodbye.
        let is_its = |member: &Member| member.conn as usize == id;
        let at = room.lanes.iter().position(|lane| lane.members.get(index).is_some_and(is_its));
        let Some(at) = at else { return };
        // What the throttle holds back does not reach who leaves.
        let sendable = room.sendable(at);
        let lane = &mut room.lanes[at];
        let member = lane.members.swap_remove(index);
        conn.take_over(number, lane.log.between(member.cursor, sendable.max(member.cursor)));
        if !conn.doomed {
            room.tell_of_arrivals(&member, Dialect::ALL[at], &mut self.scratch, &mut conn.out);
        }
        let lane = &mut room.lanes[at];
        let (name, who) = (conn.name.clone(), conn.serial);
        if let Some(moved) = lane.members.get(index) {
            let places = &mut self.conns[moved.conn as usize].rooms;
            if let Some(place) = places.iter_mut().find(|place| place.room == number) {
                place.index = index as u32;
            }
        }
        self.counters.members -= 1;
        if let Some(name) = name.filter(|_| self.config.presence != Presence::Off) {
            self.counters.presence_deliveries += room.len() as u64;
            room.note_left(name, member.group);
            if self.config.presence == Presence::Eager {
                room.announce(&mut self.scratch);
            }
            self.mark(number);
        }
        if let Some(cluster) = &mut self.cluster {
            let room = (&*self.rooms[number as usize].name).into();
            cluster.note(News::Left { room, who });
        }
    }

    fn say(&mut self, id: usize, request: u32, say: &Say<'_>, now: Now) -> Answered<'static> {
        check_text(&say.text)?;
        check_key(&say.key)?;
        let room_number = self.room_of(id, &say.room)?;
        let Some(sender) = self.conns[id].name.clone() else {
            return fail("login_first", "log in first");
        };
        let is_owned = self.rooms[room_number as usize].owned.is_some();
        if is_owned {
            self.check_say(room_number, &sender, now)?;
        }
        let (text, at_ms) = ((&*say.text).into(), now.unix_ms);
        let extra = Extra::new(say.reply_to, &say.key);
        if self.keeping.is_some() || extra.is_some() {
            let (name, spoken_by) = ((&*say.room).into(), (&*sender).into());
            let want = Want::Say { room: room_number, name, sender: spoken_by, text, at_ms, extra };
            let answered = self.change(id, request, want, now)?;
            if is_owned && answered.is_none() {
                self.spoke(room_number, &sender, at_ms); // the next may come before it is stored
            }
            return Ok(answered);
        }
        if is_owned {
            self.spoke(room_number, &sender, at_ms);
        }
        let number = self.rooms[room_number as usize].number.wrapping_add(1);
        self.publish(room_number, Stored { number, sender, text, at_ms, extra }, now.us);
        Ok(Some(AnswerWhat::Said(Said { number, at_ms: Millis(at_ms) })))
    }

    /// A message is said for good: it goes to the room and into its memory.
    pub(crate) fn publish(&mut self, room_number: u32, stored: Stored, now_us: u64) {
        let room = &mut self.rooms[room_number as usize];
        room.number = stored.number;
        room.unflushed_since_us.get_or_insert(now_us);
        let receivers = room.len() as u32;
        self.counters.messages += 1;
        self.counters.deliveries += u64::from(receivers);
        self.burn_ns += self.config.cpu_per_message.as_nanos() as u64;
        self.burn_ns += self.config.cpu_per_delivery.as_nanos() as u64 * u64::from(receivers);
        if self.faulty.touches_receivers() {
            self.put_faulty(room_number, &stored, now_us);
        } else {
            let mut message = stored.message();
            let name = room.name.clone();
            message.room = (&*name).into();
            if self.throttle.is_on() {
                room.hold();
                self.throttle.push(room_number, receivers, now_us);
            }
            room.put(&FrameWhat::Message(message), &mut self.scratch);
            self.mark(room_number);
        }
        self.remember(room_number, stored);
    }

    pub(crate) fn remember(&mut self, room: u32, stored: Stored) {
        if self.config.history == 0 {
            return;
        }
        self.history_bytes += stored.bytes();
        let has_extra = stored.extra.is_some();
        self.rooms[room as usize].past.push_back(stored);
        if has_extra {
            self.remember_key(room);
        }
        self.forget_old(room);
    }

    /// Forgets what a room, or all of them, cannot remember.
    pub(crate) fn forget_old(&mut self, room: u32) {
        let room = &mut self.rooms[room as usize];
        while room.past.len() > self.config.history || self.history_bytes > HISTORY_BYTES_MAX {
            let Some(oldest) = room.past.pop_front() else { break };
            self.history_bytes -= oldest.bytes();
            room.forget_key(&oldest);
        }
    }

    fn history(
        &mut self,
        id: usize,
        dialect: Dialect,
        request: u32,
        get: &GetHistory<'_>,
        now: Now,
    ) -> Result<(), Failure> {
        if get.room.is_empty() {
            return self.inbox_page(id, dialect, request, get, now);
        }
        let number = self.room_of(id, &get.room)?;
        let limit = (get.limit as usize).min(PAGE_MESSAGES_MAX);
        if self.is_cut_short(number, get.before, limit) {
            let ticket = self.ticket(id, request);
            let want = Want::Page { name: (&*get.room).into(), before: get.before, limit };
            return self.keep(ticket, want, now.us);
        }
        let messages = self.rooms[number as usize].page(get.before, limit);
        let what = AnswerWhat::History(History { messages });
        put_answer(dialect, request, what, &mut self.scratch, &mut self.conns[id].out);
        Ok(())
    }

    fn members(
        &mut self,
        id: usize,
        dialect: Dialect,
        request: u32,
        name: &str,
    ) -> Result<(), Failure> {
        let number = self.room_of(id, name)?;
        let place = self.conns[id].place(number);
        let room = &self.rooms[number as usize];
        let own =
            place.and_then(|place| room.lanes[dialect.lane()].members.get(place.index as usize));
        let people = self.people(room, own.is_some_and(|member| member.avatars));
        let what = AnswerWhat::Members(Members { people });
        let mut bytes = Vec::new();
        put_answer(dialect, request, what, &mut Vec::new(), &mut bytes);
        self.conns[id].out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Who is in a room, with their pictures if the asker wants to know of them.
    fn people<'a>(&'a self, room: &'a Room, avatars: bool) -> Vec<Person<'a>> {
        let members = || room.lanes.iter().flat_map(|lane| &lane.members);
        let person = |member: &'a Member| {
            let name = self.conns[member.conn as usize].name.as_deref().unwrap_or("");
            let status = (&*member.status).into();
            Person { name: name.into(), status, ..Person::default() }
        };
        let mut people: Vec<Person<'a>> = members().map(person).collect();
        people.extend(room.remotes.values().map(Remote::person));
        if avatars {
            let far = room.remotes.values().map(|remote| remote.avatars);
            let has_picture = members().map(|member| member.avatars).chain(far);
            let dressed =
                people.iter_mut().zip(has_picture).filter(|(_, has_picture)| *has_picture);
            self.look().dress_all(dressed.map(|(person, _)| person));
        }
        people
    }

    fn look(&self) -> Look {
        Look { avatars: self.config.avatars, bytes: self.config.avatar_bytes }
    }

    fn avatar(&mut self, hash: &str) -> Result<AnswerWhat<'static>, Failure> {
        if self.config.avatars == Avatars::Off {
            return fail("no_avatars", "nobody has a picture here");
        }
        match avatar::picture(hash, self.config.avatar_bytes) {
            Some(picture) => {
                self.counters.avatars += 1;
                Ok(AnswerWhat::Avatar(Avatar { picture: Bytes(picture.into()) }))
            }
            None => fail("bad_hash", "a hash has 16 hexadecimal digits"),
        }
    }

    fn typing(&mut self, id: usize, typing: &Typing<'_>) -> Result<AnswerWhat<'static>, Failure> {
        let number = self.room_of(id, &typing.room)?;
        self.check_voice(id, number)?;
        let name = self.conns[id].name.clone().unwrap_or_default();
        let frame = Typing { room: (&*typing.room).into(), name: (&*name).into() };
        self.rooms[number as usize].put(&FrameWhat::Typing(frame), &mut self.scratch);
        self.mark(number);
        self.tell_nodes(|| News::Typing { room: (&*typing.room).into(), name: (&*name).into() });
        Ok(AnswerWhat::Done(Done {}))
    }
}
