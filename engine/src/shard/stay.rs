//! One person's stay in one room: the ledger's seat, and the announcements owed.

use crate::board::{Board, Cell};
use model::{Counters, RoomId, Seat, SourceId, Stamp};

/// A stay, from the join's beginning to its settlement.
#[derive(Clone)]
pub(super) struct Stay {
    /// What was owed and received. Tracks alternate between a source's messages and its
    /// announcements if the protocol stamps joins; else there are messages only.
    seat: Seat,
    /// Comings and goings of others that were done when the own join began.
    done_at_begin: u64,
    /// Comings and goings that had begun when the own join was done.
    begun_at_join: u64,
    /// Comings and goings that were done when the own leave began.
    done_at_leave: Option<u64>,
    own: Own,
}

/// What the person said itself where no copy of it comes back: nobody is owed what it knows.
#[derive(Clone, Default)]
struct Own {
    /// Messages that were settled before the leave began: owed by their numbers alone.
    settled: u64,
    /// Numbers of the latest ones, which may not be settled.
    latest: Vec<u32>,
}

impl Own {
    /// All below `mark` are settled.
    fn settle(&mut self, mark: u32) {
        let before = self.latest.len();
        self.latest.retain(|&number| number >= mark);
        self.settled += (before - self.latest.len()) as u64;
    }
}

impl Stay {
    pub(super) fn begin(board: &Board, room: RoomId, is_stamped: bool) -> Stay {
        Stay {
            seat: Seat::joining(room, marks(board, room, is_stamped, SETTLED)),
            done_at_begin: done(board, room),
            begun_at_join: 0,
            done_at_leave: None,
            own: Own::default(),
        }
    }

    pub(super) fn room(&self) -> RoomId {
        self.seat.room()
    }

    pub(super) fn is_joined(&self) -> bool {
        self.seat.is_joined()
    }

    pub(super) fn joined(&mut self, board: &Board, is_stamped: bool) {
        let room = self.room();
        self.seat.joined(marks(board, room, is_stamped, NUMBERED));
        self.begun_at_join = begun(board, room);
    }

    /// The leave of a person of that source begins.
    pub(super) fn leaving(&mut self, board: &Board, source: SourceId, is_stamped: bool) {
        let room = self.room();
        self.seat.leaving(marks(board, room, is_stamped, SETTLED));
        if self.done_at_leave.is_none() {
            self.own.settle(board.read(room, source, SETTLED[0]));
            self.done_at_leave = Some(done(board, room));
        }
    }

    /// The person says something of which it gets no copy: it has it already.
    pub(super) fn said(&mut self, board: &Board, stamp: &Stamp, is_stamped: bool) {
        self.receive(stamp, is_stamped, false);
        // The lowest of the marks by which the stay may end.
        self.own.settle(board.read(self.room(), stamp.source, SETTLED_EARLIER[0]));
        self.own.latest.push(stamp.number);
    }

    /// The person itself goes by another name, which the others are told like a coming.
    pub(super) fn renamed(&mut self) {
        self.done_at_begin += 1;
        self.begun_at_join += 1;
    }

    /// The same stay if it ended at this instant, without a leave.
    pub(super) fn cut_off_now(&self, board: &Board, source: SourceId, is_stamped: bool) -> Stay {
        let mut stay = self.clone();
        if stay.done_at_leave.is_none() {
            stay.cut_off(board, source, is_stamped);
        }
        stay
    }

    /// The connection ends without a leave. A target's answer to a leave comes behind all it had to
    /// pass on, but whoever hangs up may leave acknowledged messages in the wires: only what was
    /// settled a while ago is owed.
    fn cut_off(&mut self, board: &Board, source: SourceId, is_stamped: bool) {
        let room = self.room();
        self.seat.leaving(marks(board, room, is_stamped, SETTLED_EARLIER));
        self.own.settle(board.read(room, source, SETTLED_EARLIER[0]));
        self.done_at_leave = Some(done(board, room));
    }

    pub(super) fn receive(
        &mut self,
        stamp: &Stamp,
        is_stamped: bool,
        is_announcement: bool,
    ) -> model::Receipt {
        let track = match is_stamped {
            true => stamp.source * 2 + SourceId::from(is_announcement),
            false => stamp.source,
        };
        self.seat.receive(track, stamp.number)
    }

    /// Writes what the stay amounts to into `counters`.
    pub(super) fn settle(
        &mut self,
        board: &Board,
        source: SourceId,
        is_stamped: bool,
        counters: &mut Counters,
    ) {
        if !self.is_joined() {
            return;
        }
        if self.done_at_leave.is_none() {
            self.cut_off(board, source, is_stamped);
        }
        let before = counters.expected;
        for (track, settlement) in self.seat.settle().enumerate() {
            match is_stamped && track % 2 == 1 {
                false => {
                    counters.expected += settlement.expected;
                    counters.lost += settlement.lost;
                }
                true => {
                    counters.announcements_expected += settlement.expected;
                    counters.announcements_lost += settlement.lost;
                }
            }
        }
        counters.expected -= self.own.settled.min(counters.expected - before);
    }

    /// Writes into `counters` how many announcements in the target's own words are right; to be
    /// asked of a stay that is settled.
    pub(super) fn expect_presences(&self, board: &Board, counters: &mut Counters) {
        if !self.is_joined() {
            return;
        }
        // Every coming or going that began after the own join and was done before the own leave
        // is announced for certain; whatever overlaps either may be.
        let least = self.done_at_leave.unwrap_or(0).saturating_sub(self.begun_at_join);
        let most = begun(board, self.room()).saturating_sub(self.done_at_begin);
        counters.presences_expected_min += least;
        counters.presences_expected_max += most;
    }
}

const NUMBERED: [Cell; 2] = [Cell::Numbered, Cell::AnnouncementsNumbered];
const SETTLED: [Cell; 2] = [Cell::Settled, Cell::AnnouncementsSettled];
const SETTLED_EARLIER: [Cell; 2] = [Cell::SettledEarlier, Cell::AnnouncementsSettledEarlier];

fn marks(
    board: &Board,
    room: RoomId,
    is_stamped: bool,
    cells: [Cell; 2],
) -> impl Iterator<Item = u32> + '_ {
    let kinds = if is_stamped { 2 } else { 1 };
    (0..board.sources()).flat_map(move |source| {
        cells.into_iter().take(kinds).map(move |cell| board.read(room, source, cell))
    })
}

fn begun(board: &Board, room: RoomId) -> u64 {
    board.total(room, Cell::JoinsBegun) + board.total(room, Cell::LeavesBegun)
}

fn done(board: &Board, room: RoomId) -> u64 {
    board.total(room, Cell::JoinsDone) + board.total(room, Cell::LeavesDone)
}
