//! What a delivery costs the server, beside a bare write loop over the same number of sockets; what
//! an idle connection weighs; and a crowd that enters one room while everybody is told.
//!
//! `cargo bench -p server --bench fanout -- fanout 1000` (people)
//! `cargo bench -p server --bench fanout -- river 19500 100` (people, arrivals a second)
//!
//! The server is a process of its own; its CPU time is that of its only thread, from schedstat.
#![allow(clippy::disallowed_methods)] // a benchmark measures time

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use protocols::wire::frame;
use protocols::wire::http::UpgradeRequest;
use protocols::yardstick::{Encoding, Join, Login, PATH, Request, RequestWhat, Say};

const ENCODING: Encoding = Encoding::Json;
/// Makes a message frame of about 150 bytes.
const TEXT_BYTES: usize = 70;
const ROUNDS: usize = 5;
/// Bursts in a round.
const BURSTS: usize = 20;
/// Marks statuses and texts, so that they can be counted in raw bytes. One byte would not do: the
/// header of a frame may hold any.
const MARK: &str = "~^";
/// No answer for so long ends the benchmark.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize, default: usize| -> usize {
        words.get(at).map_or(default, |word| word.parse().expect("a number"))
    };
    match words.first().map(String::as_str) {
        Some("serve") => serve(),
        Some("write") => write_loop(),
        Some("river") => river(number(1, 19_500), number(2, 100)),
        _ => fanout(number(1, 1000)),
    }
}

/// The server process.
fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    server::run(server::Config::default(), listener, &server::Stop::new()).map(|_| ())
}

/// The bare loop: `N` connections are accepted, then each line `BYTES` is one write to each.
fn write_loop() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let mut lines = io::stdin().lines();
    let count: usize = lines.next().expect("a line")?.parse().expect("a number");
    let mut streams = Vec::new();
    for _ in 0..count {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    for line in lines {
        let bytes = vec![b'x'; line?.parse().expect("a number")];
        for stream in &mut streams {
            stream.write_all(&bytes)?;
        }
    }
    Ok(())
}

/// A process of this program that listens.
struct Peer {
    child: Child,
    address: SocketAddr,
}

impl Peer {
    fn start(mode: &str) -> io::Result<Peer> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line)?;
        let address = line.trim().parse().map_err(io::Error::other)?;
        Ok(Peer { child, address })
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}")?;
        input.flush()
    }

    fn cpu_ns(&self) -> io::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()))?;
        let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
        first.ok_or_else(|| io::Error::other("no schedstat"))
    }

    /// Private memory in bytes.
    fn memory(&self) -> io::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        let lines = text.lines().filter(|line| line.starts_with("Private_"));
        let words = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        Ok(words.sum::<u64>() * 1024)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connections that only count what arrives.
struct Crowd {
    poll: Poll,
    events: Events,
    buffer: Vec<u8>,
    streams: Vec<TcpStream>,
    /// The last byte each has read: a mark may be cut in two.
    last: Vec<u8>,
    bytes: u64,
    marks: u64,
}

impl Crowd {
    fn new() -> io::Result<Crowd> {
        Ok(Crowd {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            buffer: vec![0; 256 * 1024],
            streams: Vec::new(),
            last: Vec::new(),
            bytes: 0,
            marks: 0,
        })
    }

    fn add(&mut self, address: SocketAddr) -> io::Result<usize> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut stream = TcpStream::from_std(stream);
        let id = self.streams.len();
        self.poll.registry().register(&mut stream, Token(id), Interest::READABLE)?;
        self.streams.push(stream);
        self.last.push(0);
        Ok(id)
    }

    /// Connects, upgrades, logs in and joins; all in one write.
    fn enter(&mut self, address: SocketAddr) -> io::Result<()> {
        let id = self.add(address)?;
        let mut bytes = Vec::new();
        let upgrade = UpgradeRequest {
            path: PATH,
            host: "bench",
            headers: &[],
            protocols: &[ENCODING.subprotocol()],
            key: [1; 16],
            deflate: false,
        };
        upgrade.write(&mut bytes).map_err(io::Error::other)?;
        let name = format!("person{id}");
        let status = format!("{}{id:030}", MARK);
        let login = Login { name: name.as_str().into(), ..Login::default() };
        let join = Join { room: "live".into(), status: status.as_str().into(), ..Join::default() };
        put(&mut bytes, RequestWhat::Login(login));
        put(&mut bytes, RequestWhat::Join(join));
        self.streams[id].write_all(&bytes)
    }

    /// Reads until nothing is there for `wait`; gives whether anything was.
    fn drain(&mut self, wait: Duration) -> io::Result<bool> {
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
                        self.marks += u64::from(cut) + finder.find_iter(read).count() as u64;
                        self.last[id] = read[length - 1];
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

    fn drain_until(&mut self, done: impl Fn(&Crowd) -> bool) -> io::Result<()> {
        let mut last = Instant::now();
        while !done(self) {
            if self.drain(Duration::from_millis(100))? {
                last = Instant::now();
            } else if last.elapsed() > PATIENCE {
                let (bytes, marks) = (self.bytes, self.marks);
                let text = format!("silence after {bytes} bytes, {marks} arrivals");
                return Err(io::Error::other(text));
            }
        }
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        while self.drain(Duration::from_millis(500))? {}
        Ok(())
    }
}

fn put(bytes: &mut Vec<u8>, what: RequestWhat<'_>) {
    let mut payload = Vec::new();
    Request { id: 1, what: Some(what) }.encode(ENCODING, &mut payload);
    frame::write_frame(bytes, ENCODING.opcode(), &payload, Some([1, 2, 3, 4]));
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

fn fanout(people: usize) -> io::Result<()> {
    let mut yardstick = Peer::start("serve")?;
    let empty = yardstick.memory()?;
    let mut crowd = Crowd::new()?;
    for _ in 0..people {
        crowd.enter(yardstick.address)?;
        crowd.drain(Duration::ZERO)?;
    }
    crowd.settle()?;
    let mut writer = Bare::start(people)?;
    let per_person = (yardstick.memory()?.saturating_sub(empty)) as f64 / people as f64;
    println!("{people} people idle in one room: {per_person:.0} bytes of memory each");
    println!("ns CPU of the sender per delivery, median of {ROUNDS} rounds of {BURSTS} bursts");
    println!("{:>10} {:>12} {:>12} {:>8}", "messages", "yardstick", "bare write", "ratio");
    for burst in [1, 8, 32] {
        let mut ours = Vec::new();
        let mut bare = Vec::new();
        for _ in 0..ROUNDS {
            let (ns, frame_bytes) = talk(&mut yardstick, &mut crowd, people, burst)?;
            ours.push(ns);
            bare.push(writer.round(burst * frame_bytes)? / burst as f64);
        }
        let (ours, bare) = (median(ours), median(bare));
        println!("{burst:>10} {ours:>12.0} {bare:>12.0} {:>8.2}", ours / bare);
    }
    let after = (yardstick.memory()?.saturating_sub(empty)) as f64 / people as f64;
    println!("after the traffic: {after:.0} bytes of memory each");
    yardstick.child.kill()
}

/// One round: bursts of messages, each awaited; ns per delivery and bytes of one message's frame.
fn talk(
    yardstick: &mut Peer,
    crowd: &mut Crowd,
    people: usize,
    burst: usize,
) -> io::Result<(f64, usize)> {
    let mut bytes = Vec::new();
    let text = format!("{}{}", MARK, "t".repeat(TEXT_BYTES - MARK.len()));
    for _ in 0..burst {
        let (room, text) = ("live".into(), text.as_str().into());
        put(&mut bytes, RequestWhat::Say(Say { room, text, ..Say::default() }));
    }
    let (start_ns, start_bytes) = (yardstick.cpu_ns()?, crowd.bytes);
    for _ in 0..BURSTS {
        let goal = crowd.marks + (people * burst) as u64;
        crowd.streams[0].write_all(&bytes)?;
        crowd.drain_until(|crowd| crowd.marks >= goal)?;
    }
    let deliveries = (people * burst * BURSTS) as f64;
    let ns = (yardstick.cpu_ns()? - start_ns) as f64 / deliveries;
    Ok((ns, ((crowd.bytes - start_bytes) as f64 / deliveries) as usize))
}

/// The bare loop and those who read from it.
struct Bare {
    writer: Peer,
    crowd: Crowd,
}

impl Bare {
    fn start(people: usize) -> io::Result<Bare> {
        let mut bare = Bare { writer: Peer::start("write")?, crowd: Crowd::new()? };
        bare.writer.tell(&people.to_string())?;
        for _ in 0..people {
            bare.crowd.add(bare.writer.address)?;
        }
        Ok(bare)
    }

    /// The same bursts as `talk`, as one write of so many bytes each; ns per write.
    fn round(&mut self, bytes: usize) -> io::Result<f64> {
        let people = self.crowd.streams.len();
        let start_ns = self.writer.cpu_ns()?;
        for _ in 0..BURSTS {
            let goal = self.crowd.bytes + (people * bytes) as u64;
            self.writer.tell(&bytes.to_string())?;
            self.crowd.drain_until(|crowd| crowd.bytes >= goal)?;
        }
        Ok((self.writer.cpu_ns()? - start_ns) as f64 / (people * BURSTS) as f64)
    }
}

fn river(people: usize, per_second: usize) -> io::Result<()> {
    let yardstick = Peer::start("serve")?;
    let mut crowd = Crowd::new()?;
    let (start, start_ns) = (Instant::now(), yardstick.cpu_ns()?);
    let mut late_max = Duration::ZERO;
    for number in 0..people {
        let due = Duration::from_secs_f64(number as f64 / per_second as f64);
        while let Some(wait) = due.checked_sub(start.elapsed()) {
            crowd.drain(wait.min(Duration::from_millis(1)))?;
        }
        late_max = late_max.max(start.elapsed() - due);
        crowd.enter(yardstick.address)?;
        if (number + 1) % 2500 == 0 {
            let cpu = (yardstick.cpu_ns()? - start_ns) as f64 / 1e9;
            let (now, memory) = (start.elapsed().as_secs_f64(), yardstick.memory()?);
            let told = crowd.marks;
            println!(
                "{:>6} in after {now:>6.1} s: {told:>11} told, server CPU {cpu:>6.1} s, {:>4} MiB",
                number + 1,
                memory >> 20
            );
        }
    }
    let entered = start.elapsed();
    let goal = (people * (people - 1) / 2) as u64;
    crowd.drain_until(|crowd| crowd.marks >= goal)?;
    let told = start.elapsed();
    crowd.settle()?;
    let cpu = (yardstick.cpu_ns()? - start_ns) as f64 / 1e9;
    println!(
        "{people} people in {:.1} s (latest start {} ms late); {} of {goal} arrivals told {:.2} s \
         after the last; server CPU {cpu:.1} s = {:.2} cores",
        entered.as_secs_f64(),
        late_max.as_millis(),
        crowd.marks,
        (told - entered).as_secs_f64(),
        cpu / told.as_secs_f64(),
    );
    Ok(())
}
