//! The system's readiness calls as they are: epoll, recv, send. Level-triggered, nothing above.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Events fetched in one system call.
const EVENTS_MAX: usize = 1024;

/// An epoll instance with room for its events.
pub(crate) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } as isize)?;
        // SAFETY: `fd` is open and owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        Ok(Epoll { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX] })
    }

    /// Tells of bytes to read on `fd`, under the name `token`.
    pub(crate) fn add(&self, fd: RawFd, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        let epoll = self.fd.as_raw_fd();
        // SAFETY: `event` lives for the call.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) } as isize)?;
        Ok(())
    }

    /// Waits; the tokens of what is ready.
    pub(crate) fn wait(&mut self) -> io::Result<impl Iterator<Item = u64> + '_> {
        let (epoll, room) = (self.fd.as_raw_fd(), self.events.len() as i32);
        let events = self.events.as_mut_ptr();
        // SAFETY: `events` has room for that many.
        let count = check(unsafe { libc::epoll_wait(epoll, events, room, -1) } as isize)?;
        Ok(self.events[..count].iter().map(|event| event.u64))
    }
}

/// Reads what there is; zero at the end of the stream.
pub(crate) fn recv(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    let start = buffer.as_mut_ptr().cast();
    // SAFETY: `buffer` is writable for its length.
    check(unsafe { libc::recv(fd, start, buffer.len(), 0) })
}

/// Sends all of `bytes`; waits if the peer does not read.
pub(crate) fn send_all(fd: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: `bytes` is readable for its length.
        let sent =
            unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        bytes = &bytes[check(sent)?..];
    }
    Ok(())
}

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
