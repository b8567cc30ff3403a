//! The floor: an epoll loop that writes the same bytes to everybody, and nothing else.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::os::fd::AsRawFd;

const LISTENER: Token = Token(usize::MAX);

/// Whoever connects gets a byte. Whoever says a number, four bytes of it, has everybody sent so
/// many bytes.
pub(crate) fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    listener.set_nonblocking(true)?;
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    poll.registry().register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)?;
    let mut streams: Vec<TcpStream> = Vec::new();
    let bytes = vec![b'x'; 1 << 20];
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue, // it was held
            result => result?,
        }
        for event in &events {
            if event.token() == LISTENER {
                accept(&listener, &poll, &mut streams)?;
                continue;
            }
            let mut word = [0; 4];
            match streams[event.token().0].read(&mut word) {
                Ok(4) => {}
                Ok(0) => return Ok(()),
                Ok(_) => return Err(io::Error::other("half a number")),
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            }
            let length = u32::from_le_bytes(word) as usize;
            for stream in &mut streams {
                send(stream, &bytes[..length])?;
            }
        }
    }
}

fn accept(listener: &TcpListener, poll: &Poll, streams: &mut Vec<TcpStream>) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((mut stream, _)) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                stream.write_all(b"!")?;
                let token = Token(streams.len());
                let interest = Interest::READABLE | Interest::WRITABLE;
                poll.registry().register(&mut SourceFd(&stream.as_raw_fd()), token, interest)?;
                streams.push(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
