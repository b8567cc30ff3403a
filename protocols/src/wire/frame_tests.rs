//! Tables and seeded properties of the WebSocket frame codec.
use super::*;
use crate::wire::rng::SplitMix;

const ROUNDS: u64 = 400;

fn unhex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn examples_of_rfc_6455_section_5_7() {
    let rows: [(&str, Option<[u8; 4]>, bool, Opcode, &[u8]); 6] = [
        ("81 05 48 65 6c 6c 6f", None, true, Opcode::Text, b"Hello"),
        (
            "81 85 37 fa 21 3d 7f 9f 4d 51 58",
            Some([0x37, 0xfa, 0x21, 0x3d]),
            true,
            Opcode::Text,
            b"Hello",
        ),
        ("01 03 48 65 6c", None, false, Opcode::Text, b"Hel"),
        ("80 02 6c 6f", None, true, Opcode::Continuation, b"lo"),
        ("89 05 48 65 6c 6c 6f", None, true, Opcode::Ping, b"Hello"),
        (
            "8a 85 37 fa 21 3d 7f 9f 4d 51 58",
            Some([0x37, 0xfa, 0x21, 0x3d]),
            true,
            Opcode::Pong,
            b"Hello",
        ),
    ];
    for (hex, mask, fin, opcode, payload) in rows {
        let mut bytes = unhex(hex);
        let mut written = Vec::new();
        write_part(&mut written, fin, opcode, payload, mask);
        assert_eq!(written, bytes, "encode {hex}");
        let length = bytes.len();
        let (frame, used) = if mask.is_some() {
            decode_masked(&mut bytes, Limits::SERVER).unwrap().unwrap()
        } else {
            decode(&bytes, Limits::CLIENT).unwrap().unwrap()
        };
        assert_eq!((frame.fin, frame.opcode, frame.payload), (fin, opcode, payload), "{hex}");
        assert_eq!(used, length, "{hex}");
    }
}

#[test]
fn wrong_headers_are_errors_before_the_payload() {
    let too_large = |bytes, bytes_max| FrameError::TooLarge { bytes, bytes_max };
    let rows = [
        ("c1 05", FrameError::ReservedBits(0x40)),
        ("a1 05", FrameError::ReservedBits(0x20)),
        ("91 05", FrameError::ReservedBits(0x10)),
        ("83 00", FrameError::UnknownOpcode(3)),
        ("8f 00", FrameError::UnknownOpcode(15)),
        ("09 00", FrameError::ControlFragmented),
        ("89 7e 00 7e", FrameError::ControlTooLong),
        ("88 7f 00 00 00 00 00 00 00 7e", FrameError::ControlTooLong),
        ("82 7f 00 00 00 00 40 00 00 00", too_large(1 << 30, 1000)),
        ("82 7f ff ff ff ff ff ff ff ff", too_large(u64::MAX, 1000)),
        ("82 7e 03 e9", too_large(1001, 1000)),
        ("81 81 00 00 00 00", FrameError::Masked),
    ];
    for (hex, error) in rows {
        assert_eq!(decode(&unhex(hex), Limits::of(1000)), Err(error), "{hex}");
    }
    let mut unmasked = unhex("81 01 41");
    assert_eq!(decode_masked(&mut unmasked, Limits::SERVER), Err(FrameError::Unmasked));
    assert_eq!(too_large(2, 1).close_code(), close_code::TOO_BIG);
    assert_eq!(FrameError::Masked.close_code(), close_code::PROTOCOL_ERROR);
}

#[test]
fn the_limit_itself_is_allowed() {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, Opcode::Binary, &[7; 1000], None);
    let (frame, used) = decode(&bytes, Limits::of(1000)).unwrap().unwrap();
    assert_eq!((frame.payload.len(), used), (1000, 1004));
}

#[test]
fn close_payloads() {
    let rows: [(&[u8], Result<Option<(u16, &str)>, FrameError>); 7] = [
        (b"", Ok(None)),
        (b"\x03\xe8", Ok(Some((1000, "")))),
        (b"\x0f\xa0bye", Ok(Some((4000, "bye")))),
        (b"\x03", Err(FrameError::BadClose)),
        (b"\x03\xed", Err(FrameError::BadClose)), // 1005 never travels
        (b"\x00\x01", Err(FrameError::BadClose)),
        (b"\x03\xe8\xff", Err(FrameError::BadClose)),
    ];
    for (payload, expect) in rows {
        assert_eq!(read_close(payload), expect, "{payload:?}");
    }
    let mut out = Vec::new();
    write_close(&mut out, close_code::POLICY, &"é".repeat(100), None);
    let (frame, _) = decode(&out, Limits::CLIENT).unwrap().unwrap();
    let (code, reason) = read_close(frame.payload).unwrap().unwrap();
    assert_eq!((code, reason.len()), (1008, 122));
}

#[test]
fn fragments_make_one_message_and_let_control_frames_through() {
    let limits = Limits::of(10);
    let part = |fin, opcode, payload| Frame { fin, opcode, compressed: false, payload };
    let whole = |opcode, payload| Ok(Some(part(true, opcode, payload)));
    let mut parts = Assembler::new();
    assert_eq!(parts.push(part(false, Opcode::Text, b"Hel"), limits), Ok(None));
    let ping = parts.push(part(true, Opcode::Ping, b"?"), limits);
    assert_eq!(ping, whole(Opcode::Ping, b"?"));
    assert_eq!(parts.push(part(false, Opcode::Continuation, b""), limits), Ok(None));
    let both = parts.push(part(true, Opcode::Continuation, b"lo"), limits);
    assert_eq!(both, whole(Opcode::Text, b"Hello"));
    let next = parts.push(part(true, Opcode::Binary, b"x"), limits);
    assert_eq!(next, whole(Opcode::Binary, b"x"));
    assert!(parts.0.is_none(), "the buffer goes as soon as the message was read");

    let lonely = parts.push(part(true, Opcode::Continuation, b"x"), limits);
    assert_eq!(lonely, Err(FrameError::OutOfSequence(Opcode::Continuation)));
    assert_eq!(parts.push(part(false, Opcode::Text, b"123456"), limits), Ok(None));
    let inside = parts.push(part(true, Opcode::Text, b"x"), limits);
    assert_eq!(inside, Err(FrameError::OutOfSequence(Opcode::Text)));
    let long = parts.push(part(true, Opcode::Continuation, b"78901"), limits);
    assert_eq!(long, Err(FrameError::TooLarge { bytes: 11, bytes_max: 10 }));
}

#[test]
fn masking_is_the_bytewise_definition() {
    let mut rng = SplitMix::new(1);
    for length in 0..70 {
        let plain = rng.bytes(length);
        let mask = (rng.next_u64() as u32).to_be_bytes();
        let mut masked = plain.clone();
        apply_mask(&mut masked, mask);
        let slow: Vec<u8> = plain.iter().enumerate().map(|(i, b)| b ^ mask[i % 4]).collect();
        assert_eq!(masked, slow, "length {length}");
    }
}

/// Frames as (fin, opcode, payload).
type Owned = (bool, Opcode, Vec<u8>);

fn random_frames(rng: &mut SplitMix) -> Vec<Owned> {
    const OPCODES: [Opcode; 6] = [
        Opcode::Continuation,
        Opcode::Text,
        Opcode::Binary,
        Opcode::Close,
        Opcode::Ping,
        Opcode::Pong,
    ];
    (0..rng.below(12))
        .map(|_| {
            let opcode = OPCODES[rng.below(OPCODES.len())];
            let longest = [125, 126, 300, 70_000][rng.below(4)];
            let length = rng.below(if opcode.is_control() { 126 } else { longest + 1 });
            let fin = opcode.is_control() || rng.below(2) == 0;
            (fin, opcode, rng.bytes(length))
        })
        .collect()
}

fn decode_stream(pieces: &[&[u8]], masked: bool) -> Vec<Owned> {
    let limits = Limits::of(1 << 20);
    let mut pending = Vec::new();
    let mut frames = Vec::new();
    for piece in pieces {
        pending.extend_from_slice(piece);
        let mut at = 0;
        loop {
            let rest = &mut pending[at..];
            let next =
                if masked { decode_masked(rest, limits) } else { decode(rest, limits) }.unwrap();
            let Some((frame, used)) = next else { break };
            frames.push((frame.fin, frame.opcode, frame.payload.to_vec()));
            at += used;
        }
        pending.drain(..at);
    }
    assert!(pending.is_empty());
    frames
}

#[test]
fn any_split_of_the_bytes_gives_the_same_frames() {
    for seed in 0..ROUNDS {
        let mut rng = SplitMix::new(seed);
        let frames = random_frames(&mut rng);
        let masked = rng.below(2) == 0;
        let mut bytes = Vec::new();
        for (fin, opcode, payload) in &frames {
            let mask = masked.then(|| (rng.next_u64() as u32).to_be_bytes());
            write_part(&mut bytes, *fin, *opcode, payload, mask);
        }
        let mut pieces = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let longest = [1, 3, 20, 5000, 100_000][rng.below(5)];
            let (piece, tail) = rest.split_at((1 + rng.below(longest)).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        assert_eq!(decode_stream(&pieces, masked), frames, "seed {seed}");
    }
}

#[test]
fn garbage_never_panics_and_never_reads_past_its_end() {
    for seed in 0..20_000 {
        let mut rng = SplitMix::new(seed);
        let length = rng.below(40);
        let mut bytes = rng.bytes(length);
        let mut parts = Assembler::new();
        let limits = Limits::of(rng.below(200));
        if let Ok(Some((frame, used))) = decode(&bytes, limits) {
            assert!(used <= bytes.len() && frame.payload.len() <= limits.frame_bytes_max);
            let _ = read_close(frame.payload);
            let _ = parts.push(frame, limits);
        }
        let before = bytes.clone();
        match decode_masked(&mut bytes, limits) {
            Ok(Some((_, used))) => assert!(used <= before.len(), "seed {seed}"),
            _ => assert_eq!(bytes, before, "seed {seed}: bytes changed without a frame"),
        }
    }
}
