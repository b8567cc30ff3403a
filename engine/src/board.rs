//! The board: what every shard may know of every other, in memory that processes share.
//!
//! For each room and source it holds the marks the ledger needs. A cell is written by the one
//! shard that owns it and read by all: plain atomic loads and stores, no lock.

use model::{RoomId, SourceId};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Cell {
    /// The next message number.
    Numbered,
    /// All messages below were acknowledged or given up.
    Settled,
    /// Joins that have begun.
    JoinsBegun,
    /// Joins that are done.
    JoinsDone,
    /// Leaves that have begun.
    LeavesBegun,
    /// Leaves that are done.
    LeavesDone,
    /// The next announcement number.
    AnnouncementsNumbered,
    /// All announcements below were acknowledged or given up.
    AnnouncementsSettled,
    /// What `Settled` was a second or two ago.
    SettledEarlier,
    /// What `AnnouncementsSettled` was a second or two ago.
    AnnouncementsSettledEarlier,
}

const CELLS: usize = 10;

/// Marks of all rooms and sources. Cheap to clone; all clones are the same memory.
#[derive(Clone)]
pub struct Board {
    map: Arc<Map>,
    rooms: usize,
    sources: usize,
}

impl Board {
    /// A board of zeros for so many rooms and sources.
    pub fn new(rooms: usize, sources: usize) -> io::Result<Board> {
        // SAFETY: the name is a valid C string; the result is checked.
        let fd = unsafe { libc::memfd_create(c"throng-board".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is open and owned by nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes(rooms, sources) as u64)?;
        Board::map(file, rooms, sources)
    }

    /// The board another process made; `path` is what its [`Board::path`] said.
    pub fn open(path: &str, rooms: usize, sources: usize) -> io::Result<Board> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != bytes(rooms, sources) as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the board is of another plan"));
        }
        Board::map(file, rooms, sources)
    }

    /// Where a child process finds this board while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.map.file.as_raw_fd())
    }

    fn map(file: File, rooms: usize, sources: usize) -> io::Result<Board> {
        let len = bytes(rooms, sources);
        // SAFETY: a fresh shared mapping of a file of exactly this length; checked below.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = Map { start: start.cast(), len, file };
        Ok(Board { map: Arc::new(map), rooms, sources })
    }

    /// One cell.
    pub fn read(&self, room: RoomId, source: SourceId, cell: Cell) -> u32 {
        self.cell(room, source, cell).load(Ordering::Acquire)
    }

    /// Sets a cell this shard owns.
    pub fn write(&self, room: RoomId, source: SourceId, cell: Cell, value: u32) {
        self.cell(room, source, cell).store(value, Ordering::Release);
    }

    /// Adds one to a cell this shard owns; what it was before.
    pub fn bump(&self, room: RoomId, source: SourceId, cell: Cell) -> u32 {
        let cell = self.cell(room, source, cell);
        let value = cell.load(Ordering::Relaxed);
        cell.store(value.wrapping_add(1), Ordering::Release);
        value
    }

    /// How many sources there are.
    pub fn sources(&self) -> SourceId {
        self.sources as SourceId
    }

    /// A cell of every source of a room, in order.
    pub fn row(&self, room: RoomId, cell: Cell) -> impl Iterator<Item = u32> + '_ {
        (0..self.sources).map(move |source| self.read(room, source as SourceId, cell))
    }

    /// The sum over all sources of a room.
    pub fn total(&self, room: RoomId, cell: Cell) -> u64 {
        self.row(room, cell).map(u64::from).sum()
    }

    fn cell(&self, room: RoomId, source: SourceId, cell: Cell) -> &AtomicU32 {
        let (room, source) = (room as usize, usize::from(source));
        assert!(room < self.rooms && source < self.sources, "a room or source beyond the plan");
        let at = (room * self.sources + source) * CELLS + cell as usize;
        // SAFETY: `at` is within the mapping (asserted above), which lives as long as `self`, is
        // page-aligned, and is only ever accessed as atomics.
        unsafe { &*self.map.start.add(at) }
    }
}

fn bytes(rooms: usize, sources: usize) -> usize {
    (rooms * sources * CELLS * size_of::<AtomicU32>()).max(1)
}

struct Map {
    start: *const AtomicU32,
    len: usize,
    file: File,
}

// SAFETY: the mapping is only accessed through atomics.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `Board::map`; nobody holds a reference any more.
        unsafe { libc::munmap(self.start.cast_mut().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_see_the_same_cells() {
        let board = Board::new(3, 2).unwrap();
        let other = Board::open(&board.path(), 3, 2).unwrap();
        assert_eq!(board.bump(2, 1, Cell::Numbered), 0);
        assert_eq!(board.bump(2, 1, Cell::Numbered), 1);
        other.write(0, 0, Cell::AnnouncementsSettled, 9);
        assert_eq!(other.read(2, 1, Cell::Numbered), 2);
        assert_eq!(board.row(0, Cell::AnnouncementsSettled).collect::<Vec<_>>(), [9, 0]);
        assert_eq!(other.total(2, Cell::Numbered), 2);
        assert!(Board::open(&board.path(), 3, 3).is_err());
    }

    #[test]
    #[should_panic(expected = "beyond the plan")]
    fn a_room_beyond_the_plan_is_refused() {
        Board::new(1, 1).unwrap().read(1, 0, Cell::Numbered);
    }
}
