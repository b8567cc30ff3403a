//! The system calls the standard library lacks: descriptor limit, backlog, thread time, scheduling.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

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

/// Listens on a port together with everybody else who does it this way: the kernel deals
/// connections out to them (`SO_REUSEPORT`, socket(7)).
pub fn listen_shared(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = shared(address)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Takes a port without listening on it, so that others can share it as long as this is kept; gives
/// the address with the port that was taken.
pub fn hold_port(address: SocketAddr) -> io::Result<(SocketAddr, impl Sized)> {
    let socket = shared(address)?;
    let taken = socket.local_addr()?.as_socket();
    Ok((taken.ok_or_else(|| io::Error::other("it has no address"))?, socket))
}

fn shared(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Processor time this thread has used, in nanoseconds; the largest number if the kernel has no
/// such clock, so that nobody waits for it.
fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to the struct it is given and keeps no pointer.
    match unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } {
        0 => time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        _ => u64::MAX,
    }
}

/// From now on this thread runs when nobody else has a use for the processor, mostly: whoever wakes
/// up takes it from it at once. See SCHED_IDLE in sched(7).
pub(crate) fn give_way() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: sched_setscheduler reads the struct it is given and keeps no pointer; on Linux 0 is
    // the calling thread. If it fails, the thread competes like any other.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &none) };
}

/// Uses up that much processor time of this thread.
pub(crate) fn burn_cpu(nanoseconds: u64) {
    let end = thread_cpu_ns().saturating_add(nanoseconds);
    while thread_cpu_ns() < end {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_burnt_is_processor_time() {
        for wanted in [0, 1_000, 3_000_000, 40_000_000] {
            let before = thread_cpu_ns();
            burn_cpu(wanted);
            let used = thread_cpu_ns() - before;
            assert!((wanted..wanted * 2 + 5_000_000).contains(&used), "{used} ns for {wanted}");
        }
    }
}
