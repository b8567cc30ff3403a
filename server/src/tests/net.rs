//! A network in memory: sockets that take as many bytes as a test allows.

use std::io;
use std::net::IpAddr;

use protocols::wire::deflate::{self, Inflated};
use protocols::wire::frame::{self, Limits, Opcode};
use protocols::wire::http::UpgradeRequest;
use protocols::wire::rng::SplitMix;
use protocols::yardstick::{Encoding, Frame, PATH, Request};

use crate::Config;
use crate::access::login::{HashJob, Hashed};
use crate::access::password::Hasher;
use crate::core::{Core, Now, World};
use crate::store::{Job, Store};

const KEY: [u8; 16] = [7; 16];

/// The far end of a connection.
#[derive(Default)]
pub(super) struct Wire {
    pub(super) received: Vec<u8>,
    read: usize,
    encoding: Option<Encoding>,
    deflate: bool,
    /// Compressed frames heard.
    pub(super) compressed: usize,
    /// Bytes the socket takes before it is full; `None` is no limit.
    pub(super) space: Option<usize>,
    pub(super) finished: bool,
    pub(super) closed: bool,
}

/// All sockets and the time.
pub(super) struct Wires {
    pub(super) list: Vec<Wire>,
    pub(super) now: Now,
    pub(super) writes: usize,
    /// How much later it is after each write.
    pub(super) write_cost_us: u64,
    /// Processor time burnt.
    pub(super) burnt_ns: u64,
    /// What the core has handed over and a test is to do.
    pub(super) to_store: Vec<Job>,
    pub(super) to_hash: Vec<HashJob>,
    /// News for other nodes.
    pub(super) news: Vec<Vec<u8>>,
    rng: SplitMix,
}

impl World for Wires {
    fn write(&mut self, conn: usize, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        self.now.us += self.write_cost_us;
        let wire = &mut self.list[conn];
        assert!(!wire.closed && !wire.finished, "write to {conn}, which is closed");
        let taken = match &mut wire.space {
            None => bytes.len(),
            Some(0) => return Err(io::ErrorKind::WouldBlock.into()),
            Some(space) => {
                let taken = bytes.len().min(1 + self.rng.below(*space));
                *space -= taken;
                if taken < bytes.len() {
                    *space = 0; // the kernel takes less than asked only when it is full
                }
                taken
            }
        };
        wire.received.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn finish(&mut self, conn: usize) {
        self.list[conn].finished = true;
    }

    fn close(&mut self, conn: usize) {
        self.list[conn].closed = true;
    }

    fn now_us(&mut self) -> u64 {
        self.now.us
    }

    fn burn(&mut self, nanoseconds: u64) {
        self.burnt_ns += nanoseconds;
    }

    fn store(&mut self, jobs: &mut Vec<Job>) {
        self.to_store.append(jobs);
    }

    fn announce(&mut self, sheets: &mut Vec<Vec<u8>>) {
        self.news.append(sheets);
    }

    fn hash(&mut self, jobs: &mut Vec<HashJob>) {
        self.to_hash.append(jobs);
    }

    fn unhash(&mut self, serial: u64) -> usize {
        let before = self.to_hash.len();
        self.to_hash.retain(|job| job.ticket.serial != serial);
        before - self.to_hash.len()
    }
}

/// A server and its network.
pub(super) struct Net {
    pub(super) core: Core,
    /// Where connections come from.
    pub(super) address: Option<IpAddr>,
    pub(super) wires: Wires,
}

impl Net {
    pub(super) fn new(config: Config, seed: u64) -> Net {
        let now = Now { us: 0, unix_ms: 1_700_000_000_000 };
        let rng = SplitMix::new(seed);
        let wires = Wires {
            list: Vec::new(),
            now,
            writes: 0,
            write_cost_us: 0,
            burnt_ns: 0,
            to_store: Vec::new(),
            to_hash: Vec::new(),
            news: Vec::new(),
            rng,
        };
        Net { core: Core::new(config, [7; 32]).unwrap(), address: None, wires }
    }

    /// A server that goes on with what a store has.
    pub(super) fn restored(config: Config, seed: u64, store: &Store) -> Net {
        let mut net = Net::new(config, seed);
        let loaded = store.load(net.core.config.history, net.wires.now.unix_ms).unwrap();
        net.core.restore(loaded).unwrap();
        net
    }

    /// The store does all it was given, and the server hears of it.
    pub(super) fn commit(&mut self, store: &mut Store) {
        let jobs = std::mem::take(&mut self.wires.to_store);
        for done in store.carry_out(jobs) {
            self.core.stored(done, self.wires.now);
        }
        self.turn();
    }

    /// Every password that waits is hashed.
    pub(super) fn hash(&mut self) {
        let mut hasher = Hasher::default();
        for job in std::mem::take(&mut self.wires.to_hash) {
            let verdict = hasher.run(job.task, job.password.as_bytes());
            self.core.hashed(Hashed { job, verdict }, self.wires.now);
        }
        self.turn();
    }

    /// A connection that has said nothing yet.
    pub(super) fn connect(&mut self) -> usize {
        let id = self.core.open(self.address, self.wires.now);
        if self.wires.list.len() <= id {
            self.wires.list.resize_with(id + 1, Wire::default);
        }
        self.wires.list[id] = Wire::default();
        id
    }

    /// A connection that speaks WebSocket.
    pub(super) fn dial(&mut self, encoding: Encoding) -> usize {
        self.dial_with(encoding, false)
    }

    /// A connection that speaks WebSocket, with compression if the server has it.
    pub(super) fn dial_deflated(&mut self, encoding: Encoding) -> usize {
        self.dial_with(encoding, true)
    }

    fn dial_with(&mut self, encoding: Encoding, deflate: bool) -> usize {
        let id = self.connect();
        let request = UpgradeRequest {
            path: PATH,
            host: "test",
            headers: &[],
            protocols: &[encoding.subprotocol()],
            key: KEY,
            deflate,
        };
        let mut bytes = Vec::new();
        request.write(&mut bytes).unwrap();
        self.send(id, &bytes);
        self.turn();
        let wire = &mut self.wires.list[id];
        let accepted = request.read_response(&wire.received).unwrap().expect("a whole head");
        assert_eq!(accepted.protocol, Some(encoding.subprotocol()));
        wire.read = accepted.consumed;
        wire.encoding = Some(encoding);
        wire.deflate = deflate;
        id
    }

    /// Dials and logs in.
    pub(super) fn person(&mut self, name: &str, encoding: Encoding) -> usize {
        let id = self.dial(encoding);
        self.ask(id, &format!(r#"{{"id":1,"login":{{"name":"{name}"}}}}"#));
        self.turn();
        let heard = self.hear(id);
        assert!(heard[0].contains("welcome"), "{heard:?}");
        id
    }

    /// Bytes arrive at the server.
    pub(super) fn send(&mut self, id: usize, bytes: &[u8]) {
        self.core.receive(id, &mut bytes.to_vec(), self.wires.now);
    }

    /// A request, given as JSON, arrives at the server in the connection's encoding.
    pub(super) fn ask(&mut self, id: usize, json: &str) {
        let encoding = self.wires.list[id].encoding.expect("dialed");
        let request = Request::decode(Encoding::Json, json.as_bytes()).expect(json);
        let mut payload = Vec::new();
        request.encode(encoding, &mut payload);
        if self.wires.list[id].deflate {
            let mut bytes = Vec::new();
            deflate::write_frame(&mut bytes, encoding.opcode(), &payload, Some([1, 2, 3, 4]));
            return self.send(id, &bytes);
        }
        self.send_frame(id, encoding.opcode(), &payload);
    }

    /// A masked frame arrives at the server.
    pub(super) fn send_frame(&mut self, id: usize, opcode: Opcode, payload: &[u8]) {
        let mut bytes = Vec::new();
        frame::write_frame(&mut bytes, opcode, payload, Some([1, 2, 3, 4]));
        self.send(id, &bytes);
    }

    /// The end of a loop turn, a millisecond later.
    pub(super) fn turn(&mut self) -> Option<u64> {
        self.wires.now.us += 1000;
        self.core.end_turn(self.wires.now, &mut self.wires)
    }

    /// Turns until nothing is left to do now.
    pub(super) fn settle(&mut self) {
        for id in 0..self.wires.list.len() {
            self.wires.list[id].space = None;
            self.core.writable(id, &mut self.wires);
        }
        for _ in 0..3 {
            self.turn();
        }
    }

    /// Everything whole that arrived since the last call, as JSON or as `<opcode> payload`.
    pub(super) fn hear(&mut self, id: usize) -> Vec<String> {
        let wire = &mut self.wires.list[id];
        let encoding = wire.encoding.expect("dialed");
        let mut heard = Vec::new();
        let limits = Limits::CLIENT.with_compression(wire.deflate);
        while let Some((frame, used)) =
            frame::decode(&wire.received[wire.read..], limits).expect("sound frames")
        {
            assert!(frame.fin, "the server sends whole frames");
            wire.compressed += usize::from(frame.compressed);
            if frame.opcode == encoding.opcode() {
                let mut inflated = Inflated::default();
                let payload = match frame.compressed {
                    true => inflated.inflate(frame.payload, limits.message_bytes_max).unwrap(),
                    false => frame.payload,
                };
                let parsed = Frame::decode(encoding, payload).expect("a sound payload");
                let mut json = Vec::new();
                parsed.encode(Encoding::Json, &mut json);
                heard.push(String::from_utf8(json).unwrap());
            } else if frame.opcode == Opcode::Close {
                let (code, why) = frame::read_close(frame.payload).unwrap().unwrap_or_default();
                heard.push(format!("<close> {code} {why}"));
            } else {
                let text = String::from_utf8_lossy(frame.payload);
                heard.push(format!("<{:?}> {text}", frame.opcode).to_lowercase());
            }
            wire.read += used;
        }
        heard
    }
}
