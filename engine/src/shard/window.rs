//! Which of a source's own messages are settled: acknowledged, or given up.

use crate::board::{Board, Cell};
use model::{RoomId, SourceId, Tick};
use std::collections::VecDeque;

/// The unsettled messages of one room, oldest first; those below the first are settled.
#[derive(Debug, Default)]
struct Window {
    first: u32,
    /// What `first` was when a second last ended.
    earlier: u32,
    /// When each was sent; `None` once it was acknowledged.
    sent: VecDeque<Option<Tick>>,
}

/// What kind of message is numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Announcement,
}

impl Kind {
    /// The cells for the next number, for what is settled, and for what was a while ago.
    fn cells(self) -> [Cell; 3] {
        match self {
            Kind::Message => [Cell::Numbered, Cell::Settled, Cell::SettledEarlier],
            Kind::Announcement => [
                Cell::AnnouncementsNumbered,
                Cell::AnnouncementsSettled,
                Cell::AnnouncementsSettledEarlier,
            ],
        }
    }
}

/// Numbers a shard's messages, and tells the board which of them are settled.
pub(super) struct Windows {
    board: Board,
    source: SourceId,
    windows: [Vec<Window>; 2],
}

impl Windows {
    pub(super) fn new(board: Board, source: SourceId, rooms: usize) -> Windows {
        let all = || (0..rooms).map(|_| Window::default()).collect();
        Windows { board, source, windows: [all(), all()] }
    }

    /// Numbers a message that is being sent.
    pub(super) fn number(&mut self, kind: Kind, room: RoomId, now: Tick) -> u32 {
        let number = self.board.bump(room, self.source, kind.cells()[0]);
        self.windows[kind as usize][room as usize].sent.push_back(Some(now));
        number
    }

    /// A message was acknowledged or given up.
    pub(super) fn settle(&mut self, kind: Kind, room: RoomId, number: u32) {
        let window = &mut self.windows[kind as usize][room as usize];
        let Some(at) = number.checked_sub(window.first) else { return };
        if let Some(sent) = window.sent.get_mut(at as usize) {
            *sent = None;
        }
        self.slide(kind, room, Tick::ZERO);
    }

    /// A second has ended. Messages sent before `limit` count as settled whatever became of them.
    pub(super) fn age(&mut self, limit: Tick) {
        for kind in [Kind::Message, Kind::Announcement] {
            for room in 0..self.windows[kind as usize].len() {
                if !self.windows[kind as usize][room].sent.is_empty() {
                    self.slide(kind, room as RoomId, limit);
                }
                let window = &mut self.windows[kind as usize][room];
                self.board.write(room as RoomId, self.source, kind.cells()[2], window.earlier);
                window.earlier = window.first;
            }
        }
    }

    fn slide(&mut self, kind: Kind, room: RoomId, limit: Tick) {
        let window = &mut self.windows[kind as usize][room as usize];
        let before = window.first;
        while window.sent.front().is_some_and(|sent| sent.is_none_or(|sent| sent < limit)) {
            window.sent.pop_front();
            window.first += 1;
        }
        if window.first != before {
            self.board.write(room, self.source, kind.cells()[1], window.first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_moves_over_what_is_settled_without_gaps() {
        let board = Board::new(1, 2).unwrap();
        let mut windows = Windows::new(board.clone(), 1, 1);
        let settled = || board.read(0, 1, Cell::Settled);
        for number in 0..4 {
            assert_eq!(windows.number(Kind::Message, 0, Tick(10 + u64::from(number))), number);
        }
        windows.settle(Kind::Message, 0, 1);
        assert_eq!(settled(), 0, "0 is not settled");
        windows.settle(Kind::Message, 0, 0);
        assert_eq!(settled(), 2);
        windows.settle(Kind::Message, 0, 0);
        windows.age(Tick(13));
        assert_eq!(settled(), 3, "2 was sent at 12, 3 at 13");
        assert_eq!(board.read(0, 1, Cell::Numbered), 4);
        assert_eq!(board.read(0, 1, Cell::AnnouncementsSettled), 0);
        assert_eq!(board.read(0, 0, Cell::Settled), 0, "another source's");
        assert_eq!(board.read(0, 1, Cell::SettledEarlier), 0, "that was not a second ago");
        windows.age(Tick::ZERO);
        assert_eq!(board.read(0, 1, Cell::SettledEarlier), 3);
    }
}
