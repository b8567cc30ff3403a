//! Requests about rights: rooms with an owner, roles, who is put out, which rooms there are.

use std::ops::Bound;
use std::rc::Rc;

use protocols::yardstick::{
    AnswerWhat, Configure, Create, FrameWhat, GetRooms, Grant, Kick, Notice, Right, Rights,
    Room as RoomLine, Rooms,
};

use crate::chat::owned::Owned;
use crate::chat::request::{Answered, Failure, fail};
use crate::chat::rights::{self, Act, Case, Refusal, Role, Standing, Target};
use crate::chat::room::Room;
use crate::config::{ROLES_MAX, ROLES_TOTAL_MAX, ROOMS_PAGE_MAX, SLOW_TIME_MAX};
use crate::core::{Core, Now};
use crate::delivery::conn::{Dialect, put_answer, put_frame};
use crate::store::{LoadedRoom, Want};

impl Core {
    pub(crate) fn create(
        &mut self,
        id: usize,
        request: u32,
        create: &Create<'_>,
        now: Now,
    ) -> Answered<'static> {
        let Create { room, private, slow_ms } = create;
        // The store does not know of rooms in which nobody has said anything.
        if self.room_numbers.contains_key(&**room) {
            return Err(Refusal::RoomExists.explain(room));
        }
        self.check_new_room(room)?;
        self.check_roles(room, "")?;
        check_slow(room, *slow_ms)?;
        self.act(id, request, room, Act::Create { private: *private, slow_ms: *slow_ms }, now)
    }

    pub(crate) fn configure(
        &mut self,
        id: usize,
        request: u32,
        wish: &Configure<'_>,
        now: Now,
    ) -> Answered<'static> {
        let Configure { room, private, slow_ms } = wish;
        check_slow(room, *slow_ms)?;
        self.act(id, request, room, Act::Configure { private: *private, slow_ms: *slow_ms }, now)
    }

    pub(crate) fn grant(
        &mut self,
        id: usize,
        request: u32,
        grant: &Grant<'_>,
        now: Now,
    ) -> Answered<'static> {
        let Grant { room, name, role } = grant;
        let role = rights::of_word(role).map_err(|why| why.explain(room))?;
        if role.is_some() {
            self.check_roles(room, name)?;
        }
        self.act(id, request, room, Act::Grant { who: (&**name).into(), role }, now)
    }

    pub(crate) fn kick(
        &mut self,
        id: usize,
        request: u32,
        kick: &Kick<'_>,
        now: Now,
    ) -> Answered<'static> {
        self.act(id, request, &kick.room, Act::Kick { who: (&*kick.name).into() }, now)
    }

    /// Nothing is refused here that may be right once what is under way is done.
    fn act(
        &mut self,
        id: usize,
        request: u32,
        room: &str,
        act: Act,
        now: Now,
    ) -> Answered<'static> {
        let by = self.conns[id].name.as_deref().unwrap_or_default().into();
        self.change(id, request, Want::Rights { room: room.into(), by, act }, now)
    }

    /// Whether there is a place for one more role, of `name`. What is under way is not counted.
    fn check_roles(&self, room: &str, name: &str) -> Result<(), Failure> {
        let owned = self.owned(room);
        if owned.is_some_and(|owned| owned.role(name).is_some()) {
            return Ok(());
        }
        if owned.is_some_and(|owned| owned.roles.len() >= ROLES_MAX) {
            return fail("full", format!("at most {ROLES_MAX} roles in a room"));
        }
        if self.counters.roles >= ROLES_TOTAL_MAX as u64 {
            return fail("full", format!("at most {ROLES_TOTAL_MAX} roles in all rooms"));
        }
        Ok(())
    }

    fn owned(&self, room: &str) -> Option<&Owned> {
        let number = self.room_numbers.get(room)?;
        self.rooms[*number as usize].owned.as_deref()
    }

    /// What memory knows about an act.
    pub(crate) fn case(&self, room: &str, by: &str, act: &Act) -> Case {
        let owned = self.owned(room);
        let standing = match owned {
            Some(owned) => Standing::Owned { private: owned.private },
            // Among shards, as in a store, a room is there from its first message on: who has
            // entered it is no part of their order.
            None if self.is_room(room) => Standing::Open,
            None => Standing::Missing,
        };
        let target = act.who().map(|who| Target {
            is_known: self.accounts.known(who).is_some(),
            role: owned.and_then(|owned| owned.role(who)),
            is_self: by == who,
            is_last_owner: owned.is_some_and(|owned| owned.is_last_owner(who)),
        });
        Case { standing, asker: owned.and_then(|owned| owned.role(by)), target }
    }

    /// An act was found right: memory follows, and those hear of it whom it concerns.
    pub(crate) fn ruled(&mut self, room: &str, by: &str, act: &Act) {
        let known = self.room_numbers.get(room).copied();
        if let Act::Create { private, slow_ms } = act {
            // Somebody may have entered it meanwhile, as a room without owner.
            let number = known.unwrap_or_else(|| self.make_room(room));
            self.rooms[number as usize].owned = Some(Box::default());
            self.set_role(number, by, Some(Role::Owner));
            return self.configured(number, by, (*private, *slow_ms));
        }
        let Some(number) = known else { return };
        match act {
            Act::Create { .. } => {}
            Act::Configure { private, slow_ms } => {
                self.configured(number, by, (*private, *slow_ms))
            }
            Act::Grant { who, role } => self.granted(number, by, who, *role),
            Act::Kick { who } => {
                self.put_out(number, |_, name| name == &**who);
                let notice = Notice { what: "kicked".into(), name: (&**who).into(), ..about(by) };
                self.notify(number, notice, self.elsewhere(number, who));
            }
        }
    }

    /// Why an act was refused. The store has no open rooms in which nobody has said anything.
    pub(crate) fn refused(&self, room: &str, why: Failure) -> Failure {
        let known = self.room_numbers.get(room).map(|number| &self.rooms[*number as usize]);
        let is_open = known.is_some_and(|room| room.owned.is_none());
        if is_open && why.0 == "no_room" { Refusal::OpenRoom.explain(room) } else { why }
    }

    fn configured(&mut self, number: u32, by: &str, (private, slow_ms): (bool, u32)) {
        let Some(owned) = &mut self.rooms[number as usize].owned else { return };
        owned.configure(private, slow_ms);
        let out = self.put_out(number, |owned, name| owned.entry(name).is_err());
        let notice = Notice { what: "configured".into(), private, slow_ms, ..about(by) };
        self.notify(number, notice, out);
    }

    fn granted(&mut self, number: u32, by: &str, who: &str, role: Option<Role>) {
        if !self.set_role(number, who, role) {
            return; // they have it already
        }
        self.put_out(number, |owned, name| name == who && owned.entry(name).is_err());
        let (what, role) = ("role".into(), rights::word(role).into());
        let notice = Notice { what, name: who.into(), role, ..about(by) };
        self.notify(number, notice, self.elsewhere(number, who));
    }

    /// Gives somebody a role or none; gives whether it is another one than before.
    fn set_role(&mut self, number: u32, name: &str, role: Option<Role>) -> bool {
        let known = self.accounts.shared(name);
        let Some(owned) = &mut self.rooms[number as usize].owned else { return false };
        let before = match role {
            Some(role) => owned.roles.insert(known, role),
            None => owned.roles.remove(name),
        };
        self.counters.roles += u64::from(role.is_some());
        self.counters.roles -= u64::from(before.is_some());
        before != role
    }

    /// Those whom `is_out` picks leave the room; gives their connections.
    fn put_out(&mut self, number: u32, is_out: impl Fn(&Owned, &str) -> bool) -> Vec<usize> {
        let room = &self.rooms[number as usize];
        let Some(owned) = &room.owned else { return Vec::new() };
        let members = room.lanes.iter().flat_map(|lane| &lane.members);
        let name = |id: usize| self.conns[id].name.as_deref().unwrap_or_default();
        let ids = members.map(|member| member.conn as usize);
        let out: Vec<usize> = ids.filter(|id| is_out(owned, name(*id))).collect();
        for id in &out {
            self.leave_room(*id, number);
            self.enqueue(*id); // what the room had for them is theirs
        }
        out
    }

    /// The connections of a person that are not in the room.
    fn elsewhere(&self, number: u32, name: &str) -> Vec<usize> {
        let first = self.people.first_conn(name);
        let its = std::iter::successors(first, |id| self.conns[*id].next_sister());
        its.filter(|id| self.conns[*id].place(number).is_none()).collect()
    }

    /// Tells the room, and connections beside it.
    fn notify(&mut self, number: u32, notice: Notice<'_>, beside: Vec<usize>) {
        let room = &mut self.rooms[number as usize];
        let name = room.name.clone();
        let what = FrameWhat::Notice(Notice { room: (&*name).into(), ..notice });
        if room.len() > 0 {
            room.put(&what, &mut self.scratch);
            self.mark(number);
        }
        for id in beside {
            let conn = &mut self.conns[id];
            let Some(dialect) = conn.dialect().filter(|_| !conn.doomed) else { continue };
            put_frame(dialect, what.clone(), &mut self.scratch, &mut conn.out);
            self.enqueue(id);
        }
    }

    /// Whether a connection may enter a room.
    pub(crate) fn check_entry(&self, id: usize, number: u32) -> Result<(), Failure> {
        self.check(id, number, Owned::entry)
    }

    /// Whether a connection may be heard in a room that it is in.
    pub(crate) fn check_voice(&self, id: usize, number: u32) -> Result<(), Failure> {
        self.check(id, number, |owned, name| rights::voice(owned.role(name)))
    }

    /// Whether a person may say something now in a room that they are in.
    pub(crate) fn check_say(&self, number: u32, name: &str, now: Now) -> Result<(), Failure> {
        let room = &self.rooms[number as usize];
        let Some(owned) = &room.owned else { return Ok(()) };
        owned.may_say(name, now.unix_ms).map_err(|why| why.explain(&room.name))
    }

    /// A person has said something, or is about to.
    pub(crate) fn spoke(&mut self, number: u32, name: &Rc<str>, at_ms: u64) {
        if let Some(owned) = &mut self.rooms[number as usize].owned {
            owned.spoke(name, at_ms);
        }
    }

    /// What a person was about to say was not said.
    pub(crate) fn not_spoke(&mut self, number: u32, name: &str) {
        if let Some(owned) = &mut self.rooms[number as usize].owned {
            owned.not_spoke(name);
        }
    }

    fn check(
        &self,
        id: usize,
        number: u32,
        rule: impl Fn(&Owned, &str) -> Result<(), Refusal>,
    ) -> Result<(), Failure> {
        let room = &self.rooms[number as usize];
        let Some(owned) = &room.owned else { return Ok(()) };
        let name = self.conns[id].name.as_deref().unwrap_or_default();
        rule(owned, name).map_err(|why| why.explain(&room.name))
    }

    /// What a connection's person is in a room; nothing where nobody is anything.
    pub(crate) fn role_word(&self, id: usize, room: &Room) -> &'static str {
        let name = self.conns[id].name.as_deref().unwrap_or_default();
        room.owned.as_ref().map_or("", |owned| rights::word(owned.role(name)))
    }

    /// Who has which role in a room.
    pub(crate) fn rights(
        &mut self,
        id: usize,
        dialect: Dialect,
        request: u32,
        room: &str,
    ) -> Result<(), Failure> {
        let refuse = |why: Refusal| Err(why.explain(room));
        let Some(number) = self.room_numbers.get(room) else { return refuse(Refusal::NoRoom) };
        self.check_entry(id, *number)?;
        let Some(owned) = &self.rooms[*number as usize].owned else {
            return refuse(Refusal::OpenRoom);
        };
        let mut roles: Vec<(&Rc<str>, Role)> =
            owned.roles.iter().map(|(name, role)| (name, *role)).collect();
        roles.sort_unstable_by_key(|(name, _)| *name);
        let right = |(name, role): (&Rc<str>, Role)| Right {
            name: name.to_string().into(),
            role: role.word().into(),
        };
        let rights = roles.into_iter().map(right).collect();
        let (private, slow_ms) = (owned.private, owned.slow_ms);
        let what = AnswerWhat::Rights(Rights { rights, private, slow_ms });
        put_answer(dialect, request, what, &mut self.scratch, &mut self.conns[id].out);
        Ok(())
    }

    /// Which rooms there are for who asks.
    pub(crate) fn list_rooms(
        &mut self,
        id: usize,
        dialect: Dialect,
        request: u32,
        get: &GetRooms<'_>,
    ) {
        let asker = self.conns[id].name.as_deref().unwrap_or_default();
        let limit = match get.limit as usize {
            0 => ROOMS_PAGE_MAX,
            limit => limit.min(ROOMS_PAGE_MAX),
        };
        let behind = (Bound::Excluded(&*get.after), Bound::Unbounded);
        let rooms = self.rooms_by_name.range::<str, _>(behind);
        let rooms = rooms.map(|(_, number)| &self.rooms[*number as usize]);
        let is_visible =
            |room: &&Room| room.owned.as_ref().is_none_or(|owned| owned.is_visible(asker));
        let line = |room: &Room| RoomLine {
            name: room.name.to_string().into(),
            number: room.number,
            people: (room.len() + room.remotes.len()) as u32,
            read: room.marks.of(asker),
            private: room.owned.as_ref().is_some_and(|owned| owned.private),
            role: self.role_word(id, room).into(),
        };
        let rooms = rooms.filter(is_visible).take(limit).map(line).collect();
        let what = AnswerWhat::Rooms(Rooms { rooms });
        put_answer(dialect, request, what, &mut self.scratch, &mut self.conns[id].out);
    }

    /// The rights of a room as the store has them.
    pub(crate) fn restore_rights(&mut self, number: u32, room: &LoadedRoom) {
        let Some(loaded) = &room.owned else { return };
        let mut owned = Owned::default();
        owned.configure(loaded.private, loaded.slow_ms);
        self.rooms[number as usize].owned = Some(Box::new(owned));
        for (name, role) in &loaded.roles {
            self.set_role(number, name, Some(*role));
        }
    }
}

/// A notice without what is to be said.
fn about(by: &str) -> Notice<'_> {
    Notice { by: by.into(), ..Notice::default() }
}

fn check_slow(room: &str, slow_ms: u32) -> Result<(), Failure> {
    match u128::from(slow_ms) > SLOW_TIME_MAX.as_millis() {
        true => Err(Refusal::TooSlow.explain(room)),
        false => Ok(()),
    }
}
