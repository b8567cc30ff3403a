//! Many writes with one system call: io_uring, where the kernel has it and lets us.
//!
//! A batch is begun and ended within one call: nothing is ever in flight while the rest of the
//! server runs. Every send says `MSG_DONTWAIT`, so the kernel does it, or refuses, while it takes
//! the batch in; a full socket is told like one of write(2).

use std::io;
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, types};

/// Sends that the ring takes at a time.
const SENDS_MAX: u32 = 256;

/// A send: where to, and what.
pub(crate) type Send<'a> = (RawFd, &'a [u8]);

/// A ring for sends, of one thread.
pub(crate) struct Ring {
    ring: IoUring,
    results: Vec<Option<i32>>,
}

impl Ring {
    /// A ring; an error where the kernel has none or forbids it.
    pub(crate) fn new() -> io::Result<Ring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .build(SENDS_MAX)?;
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        match probe.is_supported(opcode::Send::CODE) {
            true => Ok(Ring { ring, results: Vec::new() }),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends to each, in order; `done` gets what send(2) would have given for each. An error means
    /// that the ring is of no more use: `done` then has fewer results than there are sends, and
    /// those without one were not begun.
    pub(crate) fn send_all<'a>(
        &mut self,
        sends: impl Iterator<Item = Send<'a>>,
        done: &mut Vec<io::Result<usize>>,
    ) -> io::Result<()> {
        let mut sends = sends.fuse();
        loop {
            let part = sends.by_ref().take(SENDS_MAX as usize);
            let outcome = self.send_part(part);
            // A send without a result comes after all that have one: see `send_part`.
            let results = self.results.drain(..).map_while(|result| result);
            let before = done.len();
            done.extend(results.map(|result| match result {
                0.. => Ok(result as usize),
                _ => Err(io::Error::from_raw_os_error(-result)),
            }));
            outcome?;
            if done.len() - before < SENDS_MAX as usize {
                return Ok(());
            }
        }
    }

    fn send_part<'a>(&mut self, sends: impl Iterator<Item = Send<'a>>) -> io::Result<()> {
        self.results.clear();
        let mut queue = self.ring.submission();
        for (at, (fd, bytes)) in sends.enumerate() {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let entry = opcode::Send::new(types::Fd(fd), bytes.as_ptr(), length)
                .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
                .build()
                .user_data(at as u64);
            // SAFETY: `bytes` is borrowed until this function returns, and by then no send is in
            // flight: each is waited for below, and the ring is given up if that fails.
            if unsafe { queue.push(&entry) }.is_err() {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            self.results.push(None);
        }
        drop(queue);
        self.wait()
    }

    /// Has the kernel do what is queued, and waits for all of it.
    fn wait(&mut self) -> io::Result<()> {
        let mut left = self.results.len();
        while left > 0 {
            let outcome = self.ring.submit_and_wait(left);
            for entry in self.ring.completion() {
                if let Some(result) = self.results.get_mut(entry.user_data() as usize) {
                    left -= usize::from(result.is_none());
                    *result = Some(entry.result());
                }
            }
            match outcome {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// `None` where the kernel has no ring for us: then there is nothing to be tested.
    fn ring() -> Option<Ring> {
        Ring::new().inspect_err(|error| eprintln!("no io_uring here: {error}")).ok()
    }

    fn pair() -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        (near, far)
    }

    #[test]
    fn every_send_has_its_own_result_in_order_however_many_there_are() {
        let Some(mut ring) = ring() else { return };
        for count in [0, 1, 255, 256, 257, 600] {
            let pairs: Vec<_> = (0..count).map(|_| pair()).collect();
            let texts: Vec<String> = (0..count).map(|at| "x".repeat(1 + at)).collect();
            let sends = pairs.iter().zip(&texts);
            let sends = sends.map(|((near, _), text)| (near.as_raw_fd(), text.as_bytes()));
            let mut done = vec![Ok(77)];
            ring.send_all(sends, &mut done).unwrap();
            let lengths: Vec<usize> = done.into_iter().map(Result::unwrap).collect();
            let expect: Vec<usize> = std::iter::once(77).chain(1..=count).collect();
            assert_eq!(lengths, expect);
            for ((_, mut far), text) in pairs.into_iter().zip(texts) {
                let mut heard = vec![0; 1000];
                let length = far.read(&mut heard).unwrap();
                assert_eq!(&heard[..length], text.as_bytes());
            }
        }
    }

    #[test]
    fn full_broken_and_closed_sockets_are_told_like_those_of_send() {
        let Some(mut ring) = ring() else { return };
        let (full, _reader) = pair();
        let (broken, far) = pair();
        let (fine, mut reader) = pair();
        drop(far);
        let much = vec![1; 16 << 20];
        let rounds: Vec<_> = (0..2)
            .map(|_| {
                let sends = [
                    (full.as_raw_fd(), &much[..]),
                    (broken.as_raw_fd(), b"b"),
                    (-1, b"c"),
                    (fine.as_raw_fd(), b"fine"),
                ];
                let mut done = Vec::new();
                ring.send_all(sends.into_iter(), &mut done).unwrap();
                done
            })
            .collect();
        assert!(matches!(rounds[0][0], Ok(sent) if (1..much.len()).contains(&sent)));
        assert_eq!(rounds[1][0].as_ref().unwrap_err().kind(), ErrorKind::WouldBlock);
        for done in &rounds {
            assert_eq!(done[1].as_ref().unwrap_err().kind(), ErrorKind::BrokenPipe);
            assert_eq!(done[2].as_ref().unwrap_err().raw_os_error(), Some(libc::EBADF));
            assert_eq!((done.len(), done[3].as_ref().unwrap()), (4, &4));
        }
        let mut heard = [0; 100];
        assert_eq!(reader.read(&mut heard).unwrap(), 8);
    }
}
