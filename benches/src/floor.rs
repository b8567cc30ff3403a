//! The physical floor: a bare epoll client with one shared buffer that reads frame headers only,
//! and counts.

use crate::epoll::{Epoll, recv};
use engine::limits;
use protocols::wire::frame::HEADER_BYTES_MAX;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

const BUFFER_BYTES: usize = 256 << 10;
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAA==";

/// What a connection has to remember: how much of a cut frame is still to come, or a cut header.
#[derive(Default)]
struct Conn {
    skip: usize,
    head: [u8; HEADER_BYTES_MAX],
    head_bytes: usize,
}

/// Receives on `count` connections until the server closes them; prints the number of messages.
pub(crate) fn receive(address: &str, count: usize) -> io::Result<()> {
    limits::raise_descriptors();
    let streams = (0..count).map(|_| connect(address)).collect::<io::Result<Vec<_>>>()?;
    let mut epoll = Epoll::new()?;
    for (token, stream) in (0..).zip(&streams) {
        epoll.add(stream.as_raw_fd(), token)?;
    }
    let mut conns: Vec<Conn> = streams.iter().map(|_| Conn::default()).collect();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut streams: Vec<Option<TcpStream>> = streams.into_iter().map(Some).collect();
    let (mut messages, mut open) = (0u64, count);
    while open > 0 {
        for token in epoll.wait()? {
            let entry = &mut streams[token as usize];
            let Some(stream) = entry else { continue };
            match recv(stream.as_raw_fd(), &mut buffer)? {
                0 => {
                    *entry = None;
                    open -= 1;
                }
                n => messages += conns[token as usize].count(&buffer[..n]),
            }
        }
    }
    println!("{messages}");
    Ok(())
}

/// Connects and asks for the upgrade; the answer is short and comes alone.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    write!(
        stream,
        "GET /ws HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut part = [0; 512];
        match stream.read(&mut part)? {
            0 => return Err(io::Error::other("the server closed the connection")),
            n => answer.extend_from_slice(&part[..n]),
        }
    }
    Ok(stream)
}

impl Conn {
    /// How many messages end their header in `bytes`.
    fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut messages = 0;
        loop {
            if self.skip >= bytes.len() {
                self.skip -= bytes.len();
                return messages;
            }
            bytes = &bytes[self.skip..];
            self.skip = 0;
            if self.head_bytes > 0 {
                self.head[self.head_bytes] = bytes[0];
                self.head_bytes += 1;
                bytes = &bytes[1..];
                if let Some(frame) = frame_bytes(&self.head[..self.head_bytes]) {
                    self.skip = frame - self.head_bytes;
                    self.head_bytes = 0;
                    messages += 1;
                }
            } else if let Some(frame) = frame_bytes(bytes) {
                self.skip = frame;
                messages += 1;
            } else {
                self.head[..bytes.len()].copy_from_slice(bytes);
                self.head_bytes = bytes.len();
                return messages;
            }
        }
    }
}

/// Length of an unmasked frame, header included, if its header is whole.
fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    match *bytes.get(1)? {
        126 => Some(4 + usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]))),
        127 => {
            let length = bytes.get(2..10)?.try_into().ok()?;
            Some(10 + u64::from_be_bytes(length) as usize)
        }
        short => Some(2 + usize::from(short)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocols::wire::frame::{Opcode, write_frame};

    #[test]
    fn frames_are_counted_wherever_they_are_cut() {
        let mut bytes = Vec::new();
        for size in [0, 3, 125, 126, 150, 5_000, 70_000, 1] {
            write_frame(&mut bytes, Opcode::Text, &vec![b'x'; size], None);
        }
        for step in [1, 2, 3, 7, 100, 151, 4_096, bytes.len()] {
            let mut conn = Conn::default();
            let count: u64 = bytes.chunks(step).map(|part| conn.count(part)).sum();
            assert_eq!((count, conn.skip, conn.head_bytes), (8, 0, 0), "steps of {step} bytes");
        }
    }
}
