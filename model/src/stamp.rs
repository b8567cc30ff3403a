//! The stamp: what a message carries inside its text, so that its delivery can be recognised in
//! raw bytes, whatever the protocol around it.
//!
//! ```text
//! ~thr RRR MMMM SS NNNNN PPPP IIIIII LLLLL CCC        36 bytes, no spaces
//!  |   |   |    |  |     |    |      |     checksum                       18 bits
//!  |   |   |    |  |     |    |      sent - intended, microseconds        30 bits (17 min)
//!  |   |   |    |  |     |    intended, microseconds since the epoch      36 bits (19 h)
//!  |   |   |    |  |     person who sent it                               24 bits
//!  |   |   |    |  number within (room, source)                           30 bits
//!  |   |   |    source: the shard that numbered it                        12 bits
//!  |   |   room                                                           24 bits
//!  |   run                                                                18 bits
//!  prefix
//! ```
//!
//! Digits are of RFC 4648 section 5 (base64url) and the prefix begins with `~`: characters that
//! JSON, XML, URLs and HTML leave as they are. A delivery tells both latencies without looking
//! anything up: the sender's two instants travel with the message.

use crate::Tick;
use memchr::memchr;

/// What every stamp begins with.
pub const PREFIX: &[u8; 4] = b"~thr";
/// Bytes of a whole stamp.
pub const LEN: usize = 36;
/// Widths of the fields behind the prefix, in base64url digits (six bits each).
const WIDTHS: [usize; 8] = [3, 4, 2, 5, 4, 6, 5, 3];
/// Where the fields begin.
const STARTS: [usize; 8] = {
    let mut starts = [PREFIX.len(); 8];
    let mut i = 1;
    while i < starts.len() {
        starts[i] = starts[i - 1] + WIDTHS[i - 1];
        i += 1;
    }
    starts
};
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const NOT_A_DIGIT: u8 = 0xFF;

/// Number of a room in the plan.
pub type RoomId = u32;
/// Number of a person in the run.
pub type PersonId = u32;
/// Number of a shard in the run: messages are numbered for each (room, source).
pub type SourceId = u16;

/// Largest number of rooms, people, sources and messages per (room, source) a stamp can tell.
pub const ROOMS_MAX: u32 = 1 << 24;
/// See [`ROOMS_MAX`].
pub const PEOPLE_MAX: u32 = 1 << 24;
/// See [`ROOMS_MAX`].
pub const SOURCES_MAX: u16 = 1 << 12;
/// See [`ROOMS_MAX`].
pub const NUMBERS_MAX: u32 = 1 << 30;

/// The contents of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which run; a delivery of another run is foreign and not counted. 18 bits.
    pub run: u32,
    /// The room it was said in.
    pub room: RoomId,
    /// The shard that numbered it.
    pub source: SourceId,
    /// Its number within (room, source), from 0 without gaps.
    pub number: u32,
    /// Who said it.
    pub person: PersonId,
    /// When it should have been said (whole microseconds).
    pub intended: Tick,
    /// When it was handed to the socket (whole microseconds; at most 17 minutes late).
    pub sent: Tick,
}

impl Stamp {
    /// The stamp as text.
    pub fn encode(&self) -> [u8; LEN] {
        let late = (self.sent.ns_since(self.intended) / 1_000).min((1 << 30) - 1);
        let mut text = [0; LEN];
        text[..4].copy_from_slice(PREFIX);
        let fields = [
            u64::from(self.run),
            u64::from(self.room),
            u64::from(self.source),
            u64::from(self.number),
            u64::from(self.person),
            self.intended.micros(),
            late,
        ];
        let mut at = 4;
        for (&field, &width) in fields.iter().zip(&WIDTHS) {
            put(&mut text[at..at + width], field);
            at += width;
        }
        let sum = u64::from(checksum(&text));
        put(&mut text[at..], sum);
        text
    }

    /// Reads a stamp at the start of `bytes`; `None` unless it is whole and its checksum holds.
    // Inlined so that its fields stay in registers on their way into an event: copied over the
    // stack in other widths than they were written in, they would stall the processor.
    #[inline(always)]
    pub fn decode(bytes: &[u8]) -> Option<Stamp> {
        let text: &[u8; LEN] = bytes.first_chunk()?;
        if &text[..4] != PREFIX {
            return None;
        }
        let mut bad = 0;
        // One constant width and place each: the compiler lays the digits out without a loop.
        let fields: [u64; 8] = [
            take::<{ STARTS[0] }, { WIDTHS[0] }>(text, &mut bad),
            take::<{ STARTS[1] }, { WIDTHS[1] }>(text, &mut bad),
            take::<{ STARTS[2] }, { WIDTHS[2] }>(text, &mut bad),
            take::<{ STARTS[3] }, { WIDTHS[3] }>(text, &mut bad),
            take::<{ STARTS[4] }, { WIDTHS[4] }>(text, &mut bad),
            take::<{ STARTS[5] }, { WIDTHS[5] }>(text, &mut bad),
            take::<{ STARTS[6] }, { WIDTHS[6] }>(text, &mut bad),
            take::<{ STARTS[7] }, { WIDTHS[7] }>(text, &mut bad),
        ];
        if bad & 0xC0 != 0 || fields[7] != u64::from(checksum(text)) {
            return None;
        }
        let intended = Tick::from_micros(fields[5]);
        Some(Stamp {
            run: fields[0] as u32,
            room: fields[1] as u32,
            source: fields[2] as u16,
            number: fields[3] as u32,
            person: fields[4] as u32,
            intended,
            sent: Tick::from_micros(fields[5] + fields[6]),
        })
    }
}

/// Finds every whole stamp in raw bytes, in order.
pub fn find(bytes: &[u8]) -> impl Iterator<Item = Stamp> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || next(&mut rest))
}

/// The next whole stamp in raw bytes, which shrink to what is behind it.
// Always inlined, for the reason of `Stamp::decode`.
#[inline(always)]
pub(crate) fn next(bytes: &mut &[u8]) -> Option<Stamp> {
    // Too few bytes for a stamp need no search. One byte is looked for instead of four: it is rare
    // in what protocols say, and a stranger's text full of it costs a comparison for each.
    while bytes.len() >= LEN {
        let start = memchr(PREFIX[0], bytes)?;
        let (stamp, used) = match Stamp::decode(&bytes[start..]) {
            Some(stamp) => (Some(stamp), LEN),
            None => (None, 1),
        };
        *bytes = &bytes[start + used..];
        if stamp.is_some() {
            return stamp;
        }
    }
    None
}

fn put(out: &mut [u8], mut value: u64) {
    for digit in out.iter_mut().rev() {
        *digit = DIGITS[(value & 63) as usize];
        value >>= 6;
    }
}

/// Reads the `N` digits at `AT`; what is no digit shows in the two high bits of `bad`.
#[inline(always)]
fn take<const AT: usize, const N: usize>(text: &[u8; LEN], bad: &mut u8) -> u64 {
    let mut field = 0;
    for &digit in &text[AT..AT + N] {
        let value = VALUES[usize::from(digit)];
        *bad |= value;
        field = field << 6 | u64::from(value);
    }
    field
}

/// An 18-bit check of what lies between prefix and check, against text that looks like a stamp by
/// chance or was cut: a multiplicative hash over eight bytes at a time, with the mixing constant
/// of SplitMix64.
#[inline]
fn checksum(text: &[u8; LEN]) -> u32 {
    const BODY: usize = STARTS[7] - STARTS[0];
    const CUT: usize = BODY.next_multiple_of(8) - BODY;
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&text[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let mut hash = 0u64;
    let mut mix = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash ^= hash >> 31;
    };
    for i in 0..BODY / 8 {
        mix(word(STARTS[0] + i * 8));
    }
    // The last word overlaps the one before; what that had is shifted out.
    mix(word(STARTS[7] - 8) >> (CUT * 8));
    (hash >> 13 & 0x3_FFFF) as u32
}

static VALUES: [u8; 256] = {
    let mut values = [NOT_A_DIGIT; 256];
    let mut i = 0;
    while i < 64 {
        values[DIGITS[i] as usize] = i as u8;
        i += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn random(rng: &mut Rng) -> Stamp {
        let intended = rng.below(1 << 36);
        Stamp {
            run: rng.below(1 << 18) as u32,
            room: rng.below(1 << 24) as u32,
            source: rng.below(1 << 12) as u16,
            number: rng.below(1 << 30) as u32,
            person: rng.below(1 << 24) as u32,
            intended: Tick::from_micros(intended),
            sent: Tick::from_micros(intended + rng.below(1 << 30)),
        }
    }

    #[test]
    fn every_stamp_survives() {
        for seed in 0..2_000 {
            let stamp = random(&mut Rng::new(seed, 0));
            assert_eq!(Stamp::decode(&stamp.encode()), Some(stamp), "seed {seed}");
        }
    }

    #[test]
    fn damage_is_noticed() {
        let mut rng = Rng::new(7, 0);
        let mut missed = 0;
        for _ in 0..20_000 {
            let stamp = random(&mut rng);
            let mut text = stamp.encode();
            let at = rng.between(4, LEN as u64 - 1) as usize;
            let other = DIGITS[rng.below(64) as usize];
            if text[at] != other {
                text[at] = other;
                missed += u32::from(Stamp::decode(&text).is_some());
            }
            assert_eq!(Stamp::decode(&text[..LEN - 1]), None);
        }
        assert!(missed <= 2, "{missed} of 20000 damaged stamps were believed");
    }

    #[test]
    fn stamps_are_found_among_noise() {
        let mut rng = Rng::new(3, 0);
        for seed in 0..300 {
            let stamps: Vec<Stamp> = (0..rng.below(5)).map(|_| random(&mut rng)).collect();
            let mut bytes = Vec::new();
            for stamp in &stamps {
                for _ in 0..rng.below(60) {
                    bytes.push(b"~thr\"<\x00A"[rng.below(8) as usize]);
                }
                bytes.extend_from_slice(&stamp.encode());
            }
            bytes.extend_from_slice(&b"~thrAAAAAAAAAAAA"[..rng.below(17) as usize]);
            assert_eq!(find(&bytes).collect::<Vec<_>>(), stamps, "seed {seed}");
        }
    }
}
