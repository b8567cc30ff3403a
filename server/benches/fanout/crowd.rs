//! Connections that only count what arrives, of a process of their own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use protocols::wire::frame::{self, Opcode};
use protocols::wire::http::UpgradeRequest;
use protocols::yardstick::{Encoding, Join, Login, PATH, Request, RequestWhat, Say};

pub(crate) const ENCODING: Encoding = Encoding::Json;
/// Marks statuses and texts, so that they can be counted in raw bytes. One byte would not do: the
/// header of a frame may hold any.
const MARK: &str = "~^";
/// No answer for so long ends the benchmark.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many may wait for their first answer: fewer than any server's backlog.
const ENTERING_MAX: usize = 100;
/// With the yardstick's frame around it, a message has about as many bytes as a peer's.
const TEXT_BYTES: usize = 70;
/// What a peer is given to say and says to everybody: a payload of 150 bytes.
const PAYLOAD_BYTES: usize = 150;

/// The bytes of a message's frame, until the yardstick has told better.
pub(crate) const FRAME_BYTES: usize = 168;

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    Yardstick,
    /// Numbers of bytes, as `bare` takes them.
    Bare,
    /// WebSocket: what somebody says, everybody hears.
    WebSocket,
    /// Socket.IO over WebSocket: the event `say` comes back to everybody.
    SocketIo,
    /// Centrifuge's JSON over WebSocket: what is published to `live` comes back to everybody.
    Centrifuge,
}

impl Speech {
    pub(crate) fn of(word: &str) -> io::Result<Speech> {
        match word {
            "yardstick" => Ok(Speech::Yardstick),
            "bare" => Ok(Speech::Bare),
            "ws" => Ok(Speech::WebSocket),
            "socketio" => Ok(Speech::SocketIo),
            "centrifuge" => Ok(Speech::Centrifuge),
            _ => Err(io::Error::other(format!("nobody speaks {word:?}"))),
        }
    }

    /// What everybody says once WebSocket is agreed on.
    fn greetings(self) -> &'static [&'static str] {
        match self {
            Speech::SocketIo => &["40"],
            Speech::Centrifuge => {
                &[r#"{"id":1,"connect":{}}"#, r#"{"id":2,"subscribe":{"channel":"live"}}"#]
            }
            Speech::Yardstick | Speech::Bare | Speech::WebSocket => &[],
        }
    }

    /// What makes a server say `burst` messages at once; `frame_bytes` is for the bare one.
    fn say(self, burst: usize, frame_bytes: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let text = |length: usize| format!("{MARK}{}", "t".repeat(length - MARK.len()));
        if self == Speech::Bare {
            return ((burst * frame_bytes) as u32).to_le_bytes().to_vec();
        }
        for _ in 0..burst {
            match self {
                Speech::Yardstick => {
                    let text = text(TEXT_BYTES);
                    let (room, text) = ("live".into(), text.as_str().into());
                    put(&mut bytes, RequestWhat::Say(Say { room, text, ..Say::default() }));
                }
                Speech::SocketIo => {
                    let event = format!(r#"42["say","{}"]"#, text(PAYLOAD_BYTES - 10));
                    put_text(&mut bytes, &event);
                }
                Speech::Centrifuge => {
                    let data = text(PAYLOAD_BYTES - 46);
                    let publish = format!(r#"{{"channel":"live","data":"{data}"}}"#);
                    put_text(&mut bytes, &format!(r#"{{"id":9,"publish":{publish}}}"#));
                }
                Speech::WebSocket | Speech::Bare => put_text(&mut bytes, &text(PAYLOAD_BYTES)),
            }
        }
        bytes
    }
}

fn put(bytes: &mut Vec<u8>, what: RequestWhat<'_>) {
    let mut payload = Vec::new();
    Request { id: 1, what: Some(what) }.encode(ENCODING, &mut payload);
    frame::write_frame(bytes, ENCODING.opcode(), &payload, Some([1, 2, 3, 4]));
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    frame::write_frame(bytes, Opcode::Text, text.as_bytes(), Some([1, 2, 3, 4]));
}

/// The process: connects `people` and does what the lines of its input say.
pub(crate) fn run(speech: Speech, address: SocketAddr, people: usize) -> io::Result<()> {
    let mut crowd = Crowd::new()?;
    for _ in 0..people {
        crowd.enter(speech, address)?;
        crowd.drain(Duration::ZERO)?;
        crowd.drain_until(|crowd| crowd.streams.len() - crowd.answered < ENTERING_MAX)?;
    }
    crowd.drain_until(|crowd| crowd.answered == people)?;
    crowd.settle()?;
    for text in speech.greetings() {
        let mut bytes = Vec::new();
        put_text(&mut bytes, text);
        for stream in &mut crowd.streams {
            stream.write_all(&bytes)?;
        }
        crowd.settle()?;
    }
    println!("ready");
    for line in io::stdin().lines() {
        let line = line?;
        let numbers: Vec<usize> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [burst, times, frame_bytes] = numbers[..] else {
            return Err(io::Error::other(format!("not three numbers: {line:?}")));
        };
        let start = crowd.bytes;
        let said = speech.say(burst, frame_bytes);
        for _ in 0..times {
            let marks = crowd.marks + (people * burst) as u64;
            let bytes = crowd.bytes + (people * burst * frame_bytes) as u64;
            crowd.streams[0].write_all(&said)?;
            crowd.drain_until(|crowd| match speech {
                Speech::Bare => crowd.bytes >= bytes,
                _ => crowd.marks >= marks,
            })?;
        }
        println!("{}", (crowd.bytes - start) as usize / (people * burst * times));
    }
    Ok(())
}

/// Connections that only count what arrives.
pub(crate) struct Crowd {
    poll: Poll,
    events: Events,
    buffer: Vec<u8>,
    pub(crate) streams: Vec<TcpStream>,
    /// The last byte each has read: a mark may be cut in two.
    last: Vec<u8>,
    /// How many have heard anything.
    pub(crate) answered: usize,
    pub(crate) bytes: u64,
    pub(crate) marks: u64,
    /// When a mark was read, as often as it was; `None` if nobody wants to know.
    pub(crate) times: Option<Vec<Instant>>,
}

impl Crowd {
    pub(crate) fn new() -> io::Result<Crowd> {
        Ok(Crowd {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            buffer: vec![0; 256 * 1024],
            streams: Vec::new(),
            last: Vec::new(),
            answered: 0,
            bytes: 0,
            marks: 0,
            times: None,
        })
    }

    /// Connects, and says at once what is to be said before anybody talks.
    pub(crate) fn enter(&mut self, speech: Speech, address: SocketAddr) -> io::Result<()> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut stream = TcpStream::from_std(stream);
        let id = self.streams.len();
        self.poll.registry().register(&mut stream, Token(id), Interest::READABLE)?;
        stream.write_all(&entrance(speech, id)?)?;
        self.streams.push(stream);
        self.last.push(0);
        Ok(())
    }

    /// Reads until nothing is there for `wait`; gives whether anything was.
    pub(crate) fn drain(&mut self, wait: Duration) -> io::Result<bool> {
        if let Err(error) = self.poll.poll(&mut self.events, Some(wait)) {
            return if error.kind() == ErrorKind::Interrupted { Ok(true) } else { Err(error) };
        }
        let finder = memchr::memmem::Finder::new(MARK);
        for event in &self.events {
            let id = event.token().0;
            let stream = &mut self.streams[id];
            loop {
                match stream.read(&mut self.buffer) {
                    Ok(0) => return Err(io::Error::other("the server hung up")),
                    Ok(length) => {
                        self.bytes += length as u64;
                        let read = &self.buffer[..length];
                        let cut = [self.last[id], read[0]] == *MARK.as_bytes();
                        let marks = usize::from(cut) + finder.find_iter(read).count();
                        self.marks += marks as u64;
                        if let Some(times) = &mut self.times {
                            let bare = usize::from(marks == 0 && length == FRAME_BYTES);
                            times.extend(std::iter::repeat_n(Instant::now(), marks.max(bare)));
                        }
                        self.answered += usize::from(self.last[id] == 0);
                        self.last[id] = read[length - 1].max(1);
                        if length < self.buffer.len() {
                            break;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(!self.events.is_empty())
    }

    pub(crate) fn drain_until(&mut self, done: impl Fn(&Crowd) -> bool) -> io::Result<()> {
        let mut last = Instant::now();
        while !done(self) {
            if self.drain(Duration::from_millis(100))? {
                last = Instant::now();
            } else if last.elapsed() > PATIENCE {
                let (bytes, marks) = (self.bytes, self.marks);
                let text = format!("silence after {bytes} bytes, {marks} messages");
                return Err(io::Error::other(text));
            }
        }
        Ok(())
    }

    pub(crate) fn settle(&mut self) -> io::Result<()> {
        while self.drain(Duration::from_millis(500))? {}
        Ok(())
    }

    /// Somebody says a message.
    pub(crate) fn say(&mut self, speech: Speech, speaker: usize) -> io::Result<()> {
        self.streams[speaker].write_all(&speech.say(1, FRAME_BYTES))
    }

    /// Messages heard; the bare server's have no mark, and one has always the same bytes.
    pub(crate) fn heard(&self, speech: Speech) -> u64 {
        match speech {
            Speech::Bare => (self.bytes - self.streams.len() as u64) / FRAME_BYTES as u64,
            _ => self.marks,
        }
    }
}

fn entrance(speech: Speech, id: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let (path, protocols) = match speech {
        Speech::Bare => return Ok(bytes),
        Speech::Yardstick => (PATH, vec![ENCODING.subprotocol()]),
        Speech::WebSocket | Speech::Centrifuge => ("/", Vec::new()),
        Speech::SocketIo => ("/socket.io/?EIO=4&transport=websocket", Vec::new()),
    };
    let upgrade = UpgradeRequest {
        path,
        host: "bench",
        headers: &[],
        protocols: &protocols,
        key: [1; 16],
        deflate: false,
    };
    upgrade.write(&mut bytes).map_err(io::Error::other)?;
    if speech == Speech::Yardstick {
        let name = format!("person{id}");
        let status = format!("{MARK}{id:030}");
        let login = Login { name: name.as_str().into(), ..Login::default() };
        let join = Join { room: "live".into(), status: status.as_str().into(), ..Join::default() };
        put(&mut bytes, RequestWhat::Login(login));
        put(&mut bytes, RequestWhat::Join(join));
    }
    Ok(bytes)
}
