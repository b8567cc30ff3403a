//! The two system calls the standard library lacks: descriptor limit and listen backlog.

use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd;

/// Connections the kernel may keep waiting for accept: a whole storm, if the kernel allows it.
const BACKLOG: libc::c_int = 4096;

/// Raises the soft limit of open descriptors to the hard one; gives the limit now in force.
pub(crate) fn raise_descriptor_limit() -> io::Result<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes to the struct it is given and keeps no pointer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        // SAFETY: setrlimit reads the struct it is given and keeps no pointer.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            limit = raised;
        }
    }
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

/// Lengthens the queue of connections waiting for accept; the standard library sets 128.
pub(crate) fn lengthen_backlog(listener: &TcpListener) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `listener` is borrowed; listen(2) on a listening
    // socket only changes its backlog.
    if unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
