//! Compressed WebSocket messages: permessage-deflate (RFC 7692) without context takeover.
//!
//! Each message is compressed by itself, so that one compressed message serves every receiver, and
//! so that a connection keeps no window: compressor and decompressor belong to the thread. What
//! comes out of a message is bounded while it is inflated: a bomb is an error, not memory.

use std::cell::Cell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::frame::{self, FrameError, Opcode};

/// The extension with the parameters both ends here have: the offer as well as the answer.
pub const EXTENSION: &str =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

const NAME: &str = "permessage-deflate";
const SERVER_NO_TAKEOVER: &str = "server_no_context_takeover";
const CLIENT_NO_TAKEOVER: &str = "client_no_context_takeover";
const SERVER_BITS: &str = "server_max_window_bits";
const CLIENT_BITS: &str = "client_max_window_bits";
/// The window of the compressor here, as the power of two of its bytes.
const WINDOW_BITS: u8 = 15;

/// How hard is compressed: the default of zlib and of the servers that use it.
const LEVEL: u32 = 6;
/// What a compressed message ends with, and what is left out of it (RFC 7692 section 7.2.1).
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];
/// [`TAIL`] and an empty last block: whatever does not end with them was no whole message.
const TAIL_AND_END: [u8; 6] = [0x00, 0x00, 0xff, 0xff, 0x03, 0x00];
/// Room for what is inflated, to begin with, in bytes.
const START_BYTES: usize = 4 * 1024;
/// Room that a thread keeps for what is inflated, in bytes; more is given back.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

thread_local! {
    static DEFLATER: Cell<Option<Box<Deflater>>> = const { Cell::new(None) };
    static INFLATER: Cell<Option<Box<Inflater>>> = const { Cell::new(None) };
}

/// Whether a client's `Sec-WebSocket-Extensions` holds an offer that [`EXTENSION`] answers.
pub fn is_offered(value: &str) -> bool {
    value.split(',').any(|offer| {
        let mut parameters = Parameters::default();
        parameters.read(offer) && parameters.server_bits.is_none_or(|bits| bits == WINDOW_BITS)
    })
}

/// Whether a server's `Sec-WebSocket-Extensions` agrees to what [`EXTENSION`] offered: nothing but
/// this extension, and without context takeover where the server compresses.
pub fn is_agreed(value: &str) -> bool {
    let mut parameters = Parameters::default();
    parameters.read(value) && parameters.server_alone && !parameters.client_bits
}

/// The parameters of one offer or answer (RFC 7692 section 7.1).
#[derive(Default)]
struct Parameters {
    server_alone: bool,
    client_alone: bool,
    server_bits: Option<u8>,
    client_bits: bool,
}

impl Parameters {
    /// Reads the whole text; `false` if it is another extension, or not as the RFC has it.
    fn read(&mut self, text: &str) -> bool {
        let mut words = text.split(';').map(str::trim);
        words.next() == Some(NAME) && words.all(|word| self.take(word))
    }

    fn take(&mut self, word: &str) -> bool {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
            None => (word, None),
        };
        let bits = value.and_then(|value| value.parse().ok());
        let bits = bits.filter(|bits| (8..=WINDOW_BITS).contains(bits));
        match name {
            SERVER_NO_TAKEOVER => {
                value.is_none() && !std::mem::replace(&mut self.server_alone, true)
            }
            CLIENT_NO_TAKEOVER => {
                value.is_none() && !std::mem::replace(&mut self.client_alone, true)
            }
            SERVER_BITS => {
                bits.is_some() && std::mem::replace(&mut self.server_bits, bits).is_none()
            }
            CLIENT_BITS => {
                let is_sound = value.is_none() || bits.is_some();
                is_sound && !std::mem::replace(&mut self.client_bits, true)
            }
            _ => false,
        }
    }
}

struct Deflater {
    state: Compress,
    bytes: Vec<u8>,
}

impl Deflater {
    fn new() -> Deflater {
        Deflater { state: Compress::new(Compression::new(LEVEL), false), bytes: Vec::new() }
    }

    /// The payload compressed, unless that does not make it shorter.
    fn deflate(&mut self, payload: &[u8]) -> Option<&[u8]> {
        self.state.reset();
        self.bytes.clear();
        // What fills so much is not shorter, or not whole.
        self.bytes.reserve(payload.len() + TAIL.len() + 1);
        self.state.compress_vec(payload, &mut self.bytes, FlushCompress::Sync).ok()?;
        let is_whole = self.bytes.len() < self.bytes.capacity();
        let short = self.bytes.strip_suffix(&TAIL)?;
        (is_whole && short.len() < payload.len()).then_some(short)
    }
}

/// Appends a whole frame, compressed unless that would make it longer, which is every sender's
/// choice for each message (RFC 7692 section 7.2.1); `mask` is for clients only.
pub fn write_frame(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) {
    let mut deflater = DEFLATER.take().unwrap_or_else(|| Box::new(Deflater::new()));
    match deflater.deflate(payload) {
        Some(short) => frame::write_compressed(out, opcode, short, mask),
        None => frame::write_frame(out, opcode, payload, mask),
    }
    if deflater.bytes.capacity() > KEPT_BYTES_MAX {
        deflater.bytes = Vec::new();
    }
    DEFLATER.set(Some(deflater));
}

struct Inflater {
    state: Decompress,
    bytes: Vec<u8>,
}

impl Inflater {
    fn new() -> Inflater {
        Inflater { state: Decompress::new(false), bytes: Vec::with_capacity(START_BYTES) }
    }

    fn inflate(&mut self, payload: &[u8], bytes_max: usize) -> Result<&[u8], FrameError> {
        self.state.reset(false);
        self.bytes.clear();
        let rest = match self.feed(payload, bytes_max)? {
            // A sender may end the stream with its message, and then a zero follows (7.2.3.4).
            Some(rest) => rest <= 1,
            None => self.feed(&TAIL_AND_END, bytes_max)? == Some(0),
        };
        if rest { Ok(&self.bytes) } else { Err(FrameError::BadDeflate) }
    }

    /// Inflates all of `input`, or up to the end of the stream: then gives how much is left of it.
    fn feed(&mut self, input: &[u8], bytes_max: usize) -> Result<Option<usize>, FrameError> {
        let start = self.state.total_in();
        loop {
            if self.bytes.len() == self.bytes.capacity() {
                let more = self.bytes.len().clamp(START_BYTES, KEPT_BYTES_MAX);
                self.bytes.reserve_exact(more.min(bytes_max.saturating_add(1)));
            }
            let (taken, held) = ((self.state.total_in() - start) as usize, self.bytes.len());
            let flush = FlushDecompress::None;
            let status = self.state.decompress_vec(&input[taken..], &mut self.bytes, flush);
            let status = status.map_err(|_| FrameError::BadDeflate)?;
            if self.bytes.len() > bytes_max {
                let bytes = self.bytes.len() as u64;
                return Err(FrameError::TooLarge { bytes, bytes_max: bytes_max as u64 });
            }
            let taken_now = (self.state.total_in() - start) as usize;
            let left = input.len() - taken_now;
            if status == Status::StreamEnd {
                return Ok(Some(left));
            }
            if left == 0 && self.bytes.len() < self.bytes.capacity() {
                return Ok(None);
            }
            if taken_now == taken && self.bytes.len() == held && held < self.bytes.capacity() {
                return Err(FrameError::BadDeflate); // it is stuck
            }
        }
    }
}

/// The thread's decompressor, lent while one connection is read; free until a message needs it.
#[derive(Default)]
pub struct Inflated(Option<Box<Inflater>>);

impl Inflated {
    /// The payload inflated, if that is at most `bytes_max` long.
    pub fn inflate(&mut self, payload: &[u8], bytes_max: usize) -> Result<&[u8], FrameError> {
        let borrow = || INFLATER.take().unwrap_or_else(|| Box::new(Inflater::new()));
        self.0.get_or_insert_with(borrow).inflate(payload, bytes_max)
    }
}

impl Drop for Inflated {
    fn drop(&mut self) {
        if let Some(mut inflater) = self.0.take() {
            if inflater.bytes.capacity() > KEPT_BYTES_MAX {
                inflater.bytes = Vec::with_capacity(START_BYTES);
            }
            INFLATER.set(Some(inflater));
        }
    }
}

#[cfg(test)]
#[path = "deflate_tests.rs"]
mod tests;
