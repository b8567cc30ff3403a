//! Read markers: how far everybody has read. They only grow.
//!
//! Where things are kept the latest marker of each person waits in memory and is written within
//! about a second, a bounded number at a time, whatever is read meanwhile: nobody waits for it, and
//! the store is not kept from messages for long.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use protocols::yardstick::{AnswerWhat, Done, FrameWhat, Read};

use crate::chat::request::{Failure, fail};
use crate::cluster::News;
use crate::config::{MARKS_MAX, MARKS_PER_ROOM_MAX, MARKS_PER_WRITE_MAX, MARKS_WRITE_EVERY};
use crate::core::Core;
use crate::delivery::conn::Ticket;
use crate::store::{RoomMarks, Want};

/// How far people have read in one room, by name.
#[derive(Debug, Default)]
pub(crate) struct Marks(BTreeMap<Rc<str>, Mark>);

#[derive(Debug, Clone, Copy)]
struct Mark {
    number: u32,
    /// In the list of those that are to be written.
    waits: bool,
}

impl Marks {
    /// How far somebody has read; 0: not at all.
    pub(crate) fn of(&self, name: &str) -> u32 {
        self.0.get(name).map_or(0, |mark| mark.number)
    }

    /// Everybody who has read, by name.
    pub(crate) fn list(&self) -> Vec<Read<'_>> {
        let mut list = Vec::with_capacity(self.0.len());
        for (name, mark) in &self.0 {
            let name = (&**name).into();
            list.push(Read { number: mark.number, name, ..Read::default() });
        }
        list
    }
}

/// Markers that are to be written, and how many there are in all.
#[derive(Debug, Default)]
pub(crate) struct MarkWriter {
    /// Markers of all rooms.
    total: usize,
    /// Room and person of those to be written, each once.
    waiting: VecDeque<(u32, Rc<str>)>,
    /// How many of them belong to the round that is under way.
    round: usize,
    /// The store has some; the next ones wait for that.
    is_writing: bool,
    /// When the next round may begin.
    due_us: u64,
}

impl MarkWriter {
    /// When something is to be written next.
    pub(crate) fn next_due_us(&self) -> Option<u64> {
        (!self.waiting.is_empty() && !self.is_writing).then_some(self.due_us)
    }

    /// Whether nothing is to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn end_round(&mut self, now_us: u64) {
        self.round = 0;
        self.due_us = now_us + MARKS_WRITE_EVERY.as_micros() as u64;
    }
}

/// Nobody asks for it.
const NOBODY: Ticket = Ticket { conn: u32::MAX, serial: 0, request: 0 };

impl Core {
    /// Somebody has read up to a message; 0 is the latest.
    pub(crate) fn read(
        &mut self,
        id: usize,
        read: &Read<'_>,
    ) -> Result<AnswerWhat<'static>, Failure> {
        let room_number = self.room_of(id, &read.room)?;
        let name = self.conns[id].name.clone().unwrap_or_default();
        let room = &self.rooms[room_number as usize];
        let number = match read.number {
            0 => room.number,
            number => number.min(room.number),
        };
        let known = room.marks.of(&name);
        if number <= known {
            return Ok(AnswerWhat::Done(Done {}));
        }
        if known == 0 && !self.has_mark_place(room_number) {
            let most = format!("{MARKS_PER_ROOM_MAX} in a room, {MARKS_MAX} in all");
            return fail("full", format!("too many read markers: at most {most}"));
        }
        self.put_mark(room_number, &name, number);
        self.tell_nodes(|| {
            let room = (&*read.room).into();
            News::Read { room, number, name: (&*name).into() }
        });
        let room = &mut self.rooms[room_number as usize];
        if self.keeping.is_some()
            && let Some(mark) = room.marks.0.get_mut(&name).filter(|mark| !mark.waits)
        {
            mark.waits = true;
            self.marks.waiting.push_back((room_number, name));
        }
        Ok(AnswerWhat::Done(Done {}))
    }

    fn has_mark_place(&self, room: u32) -> bool {
        let count = self.rooms[room as usize].marks.0.len();
        count < MARKS_PER_ROOM_MAX && self.marks.total < MARKS_MAX
    }

    /// Somebody has read further than it was known; the room is told.
    fn put_mark(&mut self, room_number: u32, name: &Rc<str>, number: u32) {
        self.raise_mark(room_number, name, number);
        let room = &mut self.rooms[room_number as usize];
        let (room_name, name) = (room.name.clone(), (&**name).into());
        let frame = Read { room: (&*room_name).into(), number, name };
        room.put(&FrameWhat::Read(frame), &mut self.scratch);
        self.mark(room_number);
    }

    fn raise_mark(&mut self, room: u32, name: &Rc<str>, number: u32) {
        let marks = &mut self.rooms[room as usize].marks.0;
        self.marks.total += usize::from(!marks.contains_key(name));
        let mark = marks.entry(name.clone()).or_insert(Mark { number, waits: false });
        mark.number = mark.number.max(number);
    }

    /// Somebody at another node has read.
    pub(crate) fn far_read(&mut self, room: &str, name: &str, number: u32) {
        let Some(room) = self.room_numbers.get(room).copied() else { return };
        let known = self.rooms[room as usize].marks.of(name);
        if number > known && (known > 0 || self.has_mark_place(room)) {
            let name = self.accounts.shared(name);
            self.put_mark(room, &name, number);
        }
    }

    /// Markers that another node has written: its news of them have come already, or are lost.
    pub(crate) fn marks_of_log(&mut self, rooms: Vec<RoomMarks>) {
        for (room, marks) in rooms {
            let Some(room) = self.room_numbers.get(&*room).copied() else { continue };
            for (name, number) in marks {
                if self.rooms[room as usize].marks.of(&name) > 0 || self.has_mark_place(room) {
                    let name = self.accounts.shared(&name);
                    self.raise_mark(room, &name, number);
                }
            }
        }
    }

    /// Takes the markers of a room from the store.
    pub(crate) fn restore_marks(&mut self, room: u32, marks: Vec<(Box<str>, u32)>) {
        for (name, number) in marks {
            let name = self.accounts.shared(&name);
            let mark = Mark { number, waits: false };
            let before = self.rooms[room as usize].marks.0.insert(name, mark);
            self.marks.total += usize::from(before.is_none());
        }
    }

    /// Gives the store what is to be written, if it is time.
    pub(crate) fn write_marks(&mut self, now_us: u64) {
        let marks = &mut self.marks;
        let is_due = self.stopping || marks.due_us <= now_us;
        if marks.waiting.is_empty() || marks.is_writing || !is_due {
            return;
        }
        if marks.round == 0 {
            marks.round = marks.waiting.len();
        }
        let count = marks.round.min(MARKS_PER_WRITE_MAX);
        let want = self.mark_want(count);
        if self.keep(NOBODY, want, now_us).is_err() {
            return self.marks.end_round(now_us); // the store has too much to do
        }
        self.marks.is_writing = true;
        self.marks.round -= count;
        for (room, name) in self.marks.waiting.drain(..count) {
            if let Some(mark) = self.rooms[room as usize].marks.0.get_mut(&name) {
                mark.waits = false;
            }
        }
    }

    /// The first `count` markers that wait, by room.
    fn mark_want(&self, count: usize) -> Want {
        let mut rooms: BTreeMap<u32, Vec<(Box<str>, u32)>> = BTreeMap::new();
        for (room, name) in self.marks.waiting.iter().take(count) {
            if let Some(mark) = self.rooms[*room as usize].marks.0.get(name) {
                rooms.entry(*room).or_default().push(((&**name).into(), mark.number));
            }
        }
        let with_name =
            |(room, marks)| -> RoomMarks { ((&*self.rooms[room as usize].name).into(), marks) };
        Want::Marks(rooms.into_iter().map(with_name).collect())
    }

    /// The store has written markers, or has failed to: then they wait again.
    pub(crate) fn marks_written(&mut self, rooms: Vec<RoomMarks>, is_done: bool, now_us: u64) {
        self.marks.is_writing = false;
        if is_done && self.marks.round > 0 {
            return;
        }
        self.marks.end_round(now_us);
        if is_done || self.stopping {
            return;
        }
        for (room, marks) in rooms {
            let Some(number) = self.room_numbers.get(&*room).copied() else { continue };
            for (name, _) in marks {
                let name = self.accounts.shared(&name);
                let mark = self.rooms[number as usize].marks.0.get_mut(&name);
                if let Some(mark) = mark.filter(|mark| !mark.waits) {
                    mark.waits = true;
                    self.marks.waiting.push_back((number, name));
                }
            }
        }
    }
}
