//! WebSocket frames (RFC 6455 section 5): a decoder that borrows, an encoder that appends.
//!
//! A whole unfragmented frame is decoded without a copy or an allocation. A reserved bit is an
//! error, unless compression was agreed on: what is then compressed is for `deflate` to inflate.
//! A header that announces more than the limit is an error before any payload arrives.

use std::fmt;

/// Largest payload a client accepts in one frame, in bytes.
pub const CLIENT_FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest payload a server accepts in one frame, in bytes.
pub const SERVER_FRAME_BYTES_MAX: usize = 64 * 1024;
/// Largest payload of a control frame, in bytes (RFC 6455 section 5.5).
pub const CONTROL_BYTES_MAX: usize = 125;
/// Longest frame header: two bytes, a 64-bit length and a mask key.
pub const HEADER_BYTES_MAX: usize = 14;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
/// The message is compressed (RFC 7692 section 6).
const COMPRESSED: u8 = 0x40;
const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

/// What a frame is (RFC 6455 section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// A further part of a fragmented message.
    Continuation = 0,
    /// UTF-8 text; the codec does not check the encoding, its reader does.
    Text = 1,
    /// Bytes.
    Binary = 2,
    /// The peer wants to end.
    Close = 8,
    /// The peer wants a pong with the same payload.
    Ping = 9,
    /// The answer to a ping.
    Pong = 10,
}

impl Opcode {
    /// Control frames are short, whole, and may stand between the fragments of a message.
    pub fn is_control(self) -> bool {
        self as u8 >= 8
    }

    fn from_nibble(nibble: u8) -> Result<Opcode, FrameError> {
        Ok(match nibble {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            other => return Err(FrameError::UnknownOpcode(other)),
        })
    }
}

/// One frame; the payload borrows the buffer it was decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The last (or only) frame of its message.
    pub fin: bool,
    /// What the payload is.
    pub opcode: Opcode,
    /// Whether the message that begins with this frame is compressed.
    pub compressed: bool,
    /// The payload, unmasked.
    pub payload: &'a [u8],
}

/// How much a reader accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload of one frame, in bytes.
    pub frame_bytes_max: usize,
    /// Largest message put together from fragments, in bytes.
    pub message_bytes_max: usize,
    /// Whether compression was agreed on.
    pub compression: bool,
}

impl Limits {
    /// What a client accepts from a server.
    pub const CLIENT: Limits = Limits::of(CLIENT_FRAME_BYTES_MAX);
    /// What a server accepts from a client.
    pub const SERVER: Limits = Limits::of(SERVER_FRAME_BYTES_MAX);

    /// The same limit for a frame and for a whole message.
    pub const fn of(bytes_max: usize) -> Limits {
        Limits { frame_bytes_max: bytes_max, message_bytes_max: bytes_max, compression: false }
    }

    /// The same, and whether compression was agreed on.
    pub const fn with_compression(self, compression: bool) -> Limits {
        Limits { compression, ..self }
    }
}

/// Why a peer's bytes are not WebSocket frames; each is the peer's fault and ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// A reserved bit is set that no negotiated extension allows (section 5.2).
    ReservedBits(u8),
    /// An opcode that RFC 6455 does not define.
    UnknownOpcode(u8),
    /// A server masked a frame (section 5.1).
    Masked,
    /// A client did not mask a frame (section 5.1).
    Unmasked,
    /// A control frame announces more than 125 bytes (section 5.5).
    ControlTooLong,
    /// A control frame without FIN (section 5.5).
    ControlFragmented,
    /// A frame, or a message of fragments, is larger than the limit.
    TooLarge {
        /// Bytes announced or gathered.
        bytes: u64,
        /// Bytes allowed.
        bytes_max: u64,
    },
    /// A continuation without a beginning, or a message inside an unfinished one (section 5.4).
    OutOfSequence(Opcode),
    /// A close frame with one byte, a forbidden code, or a reason not in UTF-8 (section 5.5.1).
    BadClose,
    /// A compressed message that is none, or not whole (RFC 7692 section 7.2.2).
    BadDeflate,
}

impl FrameError {
    /// The close code that tells the peer about it (RFC 6455 section 7.4.1).
    pub fn close_code(self) -> u16 {
        match self {
            FrameError::TooLarge { .. } => close_code::TOO_BIG,
            FrameError::BadDeflate => close_code::BAD_DATA,
            _ => close_code::PROTOCOL_ERROR,
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::ReservedBits(bits) => {
                write!(
                    f,
                    "WebSocket frame with reserved bits {bits:#04x} that nothing agreed on allows"
                )
            }
            FrameError::UnknownOpcode(code) => write!(f, "WebSocket frame with opcode {code}"),
            FrameError::Masked => write!(f, "the server sent a masked WebSocket frame"),
            FrameError::Unmasked => write!(f, "the client sent an unmasked WebSocket frame"),
            FrameError::ControlTooLong => write!(f, "WebSocket control frame above 125 bytes"),
            FrameError::ControlFragmented => write!(f, "fragmented WebSocket control frame"),
            FrameError::TooLarge { bytes, bytes_max } => {
                write!(f, "WebSocket message of {bytes} bytes where {bytes_max} are allowed")
            }
            FrameError::OutOfSequence(opcode) => {
                write!(f, "WebSocket {opcode:?} frame out of sequence")
            }
            FrameError::BadClose => write!(f, "malformed WebSocket close frame"),
            FrameError::BadDeflate => write!(f, "malformed compressed WebSocket message"),
        }
    }
}

impl std::error::Error for FrameError {}

/// The close codes this project sends (RFC 6455 section 7.4.1).
pub mod close_code {
    /// The purpose is fulfilled.
    pub const NORMAL: u16 = 1000;
    /// The endpoint goes away.
    pub const GOING_AWAY: u16 = 1001;
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// The data is of a type or an encoding that cannot be accepted.
    pub const BAD_DATA: u16 = 1007;
    /// A rule of the endpoint was broken.
    pub const POLICY: u16 = 1008;
    /// The message is too big.
    pub const TOO_BIG: u16 = 1009;
    /// Try again later (IANA registry).
    pub const TRY_LATER: u16 = 1013;
}

/// A decoded header: where the payload is and what it means.
struct Header {
    fin: bool,
    opcode: Opcode,
    compressed: bool,
    mask: Option<[u8; 4]>,
    payload_start: usize,
    payload_end: usize,
}

/// Decodes the first frame of `buf` that came from a server; masked frames are errors.
///
/// `None` means that more bytes are needed; otherwise the frame and how many bytes it took.
#[inline]
pub fn decode(buf: &[u8], limits: Limits) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some(header) = decode_header(buf, limits)? else { return Ok(None) };
    if header.mask.is_some() {
        return Err(FrameError::Masked);
    }
    let Some(payload) = buf.get(header.payload_start..header.payload_end) else { return Ok(None) };
    let Header { fin, opcode, compressed, .. } = header;
    let frame = Frame { fin, opcode, compressed, payload };
    Ok(Some((frame, header.payload_end)))
}

/// Decodes the first frame of `buf` that came from a client and unmasks it in place.
///
/// Bytes are only changed when a whole frame is returned, so a caller may come back with more.
#[inline]
pub fn decode_masked(
    buf: &mut [u8],
    limits: Limits,
) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some(header) = decode_header(buf, limits)? else { return Ok(None) };
    let Some(mask) = header.mask else { return Err(FrameError::Unmasked) };
    let range = header.payload_start..header.payload_end;
    let Some(payload) = buf.get_mut(range) else { return Ok(None) };
    apply_mask(payload, mask);
    let Header { fin, opcode, compressed, .. } = header;
    let frame = Frame { fin, opcode, compressed, payload };
    Ok(Some((frame, header.payload_end)))
}

#[inline]
fn decode_header(buf: &[u8], limits: Limits) -> Result<Option<Header>, FrameError> {
    let &[first, second, ..] = buf else { return Ok(None) };
    let compressed = first & RESERVED != 0;
    if compressed {
        check_reserved(first, limits)?;
    }
    let opcode = Opcode::from_nibble(first & 0x0f)?;
    let fin = first & FIN != 0;
    let (length, mut at) = match second & !MASKED {
        LENGTH_16 => match buf.get(2..4) {
            Some(bytes) => (u64::from(u16::from_be_bytes([bytes[0], bytes[1]])), 4),
            None => return Ok(None),
        },
        LENGTH_64 => match buf.get(2..10).and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => (u64::from_be_bytes(bytes), 10),
            None => return Ok(None),
        },
        short => (u64::from(short), 2),
    };
    if opcode.is_control() {
        check_control(fin, length)?;
    }
    if length > limits.frame_bytes_max as u64 {
        return Err(FrameError::TooLarge {
            bytes: length,
            bytes_max: limits.frame_bytes_max as u64,
        });
    }
    let mut mask = None;
    if second & MASKED != 0 {
        let Some(bytes) = buf.get(at..at + 4) else { return Ok(None) };
        mask = Some([bytes[0], bytes[1], bytes[2], bytes[3]]);
        at += 4;
    }
    // The limit above is a usize, so the sum cannot overflow on any machine we run on.
    let payload_end = at + length as usize;
    Ok(Some(Header { fin, opcode, compressed, mask, payload_start: at, payload_end }))
}

/// The bit of compression may stand in the first frame of a message, where that was agreed on.
#[cold]
fn check_reserved(first: u8, limits: Limits) -> Result<(), FrameError> {
    let begins = matches!(Opcode::from_nibble(first & 0x0f), Ok(Opcode::Text | Opcode::Binary));
    let is_fine = limits.compression && begins && first & RESERVED == COMPRESSED;
    if is_fine { Ok(()) } else { Err(FrameError::ReservedBits(first & RESERVED)) }
}

#[cold]
fn check_control(fin: bool, length: u64) -> Result<(), FrameError> {
    if !fin {
        return Err(FrameError::ControlFragmented);
    }
    if length > CONTROL_BYTES_MAX as u64 {
        return Err(FrameError::ControlTooLong);
    }
    Ok(())
}

/// XORs `bytes` with the repeated mask, eight bytes at a time (RFC 6455 section 5.3).
#[inline]
pub fn apply_mask(bytes: &mut [u8], mask: [u8; 4]) {
    let word = u64::from_ne_bytes([
        mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3],
    ]);
    let mut chunks = bytes.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let mut eight = [0; 8];
        eight.copy_from_slice(chunk);
        chunk.copy_from_slice(&(u64::from_ne_bytes(eight) ^ word).to_ne_bytes());
    }
    for (byte, key) in chunks.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

/// Appends a whole frame; `mask` is for clients only.
#[inline]
pub fn write_frame(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) {
    write_part(out, true, opcode, payload, mask);
}

/// Appends a whole frame whose payload is compressed; `mask` is for clients only.
pub fn write_compressed(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) {
    let start = out.len();
    write_part(out, true, opcode, payload, mask);
    out[start] |= COMPRESSED;
}

/// Appends one fragment of a message; `fin` ends it.
pub fn write_part(
    out: &mut Vec<u8>,
    fin: bool,
    opcode: Opcode,
    payload: &[u8],
    mask: Option<[u8; 4]>,
) {
    out.reserve(HEADER_BYTES_MAX + payload.len());
    write_header(out, fin, opcode, payload.len(), mask);
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply_mask(&mut out[start..], mask);
    }
}

/// Appends the header of a frame whose payload of `length` bytes the caller appends.
pub fn write_header(
    out: &mut Vec<u8>,
    fin: bool,
    opcode: Opcode,
    length: usize,
    mask: Option<[u8; 4]>,
) {
    let mask_bit = if mask.is_some() { MASKED } else { 0 };
    out.push(opcode as u8 | if fin { FIN } else { 0 });
    if length < usize::from(LENGTH_16) {
        out.push(length as u8 | mask_bit);
    } else if let Ok(short) = u16::try_from(length) {
        out.push(LENGTH_16 | mask_bit);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(LENGTH_64 | mask_bit);
        out.extend_from_slice(&(length as u64).to_be_bytes());
    }
    if let Some(mask) = mask {
        out.extend_from_slice(&mask);
    }
}

/// Appends a close frame; a reason above 123 bytes is cut at a character boundary.
pub fn write_close(out: &mut Vec<u8>, code: u16, reason: &str, mask: Option<[u8; 4]>) {
    let mut end = reason.len().min(CONTROL_BYTES_MAX - 2);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut payload = Vec::with_capacity(CONTROL_BYTES_MAX);
    payload.extend_from_slice(&code.to_be_bytes());
    payload.extend_from_slice(&reason.as_bytes()[..end]);
    write_frame(out, Opcode::Close, &payload, mask);
}

/// Reads the payload of a close frame: code and reason, or `None` when it is empty.
pub fn read_close(payload: &[u8]) -> Result<Option<(u16, &str)>, FrameError> {
    match payload {
        [] => Ok(None),
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
                return Err(FrameError::BadClose);
            }
            let reason = std::str::from_utf8(reason).map_err(|_| FrameError::BadClose)?;
            Ok(Some((code, reason)))
        }
        [_] => Err(FrameError::BadClose),
    }
}

/// Puts fragmented messages together; one pointer wide while none is under way.
#[derive(Debug, Default)]
pub struct Assembler(Option<Box<Partial>>);

#[derive(Debug)]
struct Partial {
    opcode: Opcode,
    compressed: bool,
    bytes: Vec<u8>,
    complete: bool,
}

impl Assembler {
    /// An assembler with nothing under way.
    pub const fn new() -> Self {
        Assembler(None)
    }

    /// Whether no message is under way in parts.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Takes a frame; gives back a control frame or a whole message as one frame, or `None` while
    /// parts are missing. Whole frames pass through borrowed.
    #[inline]
    pub fn push<'a>(
        &'a mut self,
        frame: Frame<'a>,
        limits: Limits,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        if self.0.is_none() && frame.fin && frame.opcode != Opcode::Continuation {
            return Ok(Some(frame));
        }
        self.push_part(frame, limits)
    }

    #[cold]
    fn push_part<'a>(
        &'a mut self,
        frame: Frame<'a>,
        limits: Limits,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        if frame.opcode.is_control() {
            return Ok(Some(frame));
        }
        if self.0.as_ref().is_some_and(|partial| partial.complete) {
            self.0 = None; // it was handed out by the last call
        }
        match (&self.0, frame.opcode) {
            (None, Opcode::Continuation) | (Some(_), Opcode::Text | Opcode::Binary) => {
                return Err(FrameError::OutOfSequence(frame.opcode));
            }
            (None, _) if frame.fin => return Ok(Some(frame)),
            _ => {}
        }
        let partial = self.0.get_or_insert_with(|| {
            let Frame { opcode, compressed, .. } = frame;
            Box::new(Partial { opcode, compressed, bytes: Vec::new(), complete: false })
        });
        let bytes = partial.bytes.len() + frame.payload.len();
        if bytes > limits.message_bytes_max {
            return Err(FrameError::TooLarge {
                bytes: bytes as u64,
                bytes_max: limits.message_bytes_max as u64,
            });
        }
        partial.bytes.extend_from_slice(frame.payload);
        partial.complete = frame.fin;
        let Partial { opcode, compressed, ref bytes, .. } = **partial;
        Ok(frame.fin.then_some(Frame { fin: true, opcode, compressed, payload: bytes }))
    }
}

#[cfg(test)]
#[allow(clippy::type_complexity)] // the rows of a table explain its type
#[path = "frame_tests.rs"]
mod tests;
