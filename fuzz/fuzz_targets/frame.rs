//! WebSocket frames: no panic, no read past the end, and what was read is written alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocols::wire::deflate::Inflated;
use protocols::wire::frame::{self, Assembler, Frame, Limits, Opcode};

fuzz_target!(|data: &[u8]| {
    let limits = Limits::of(4096).with_compression(data.len() % 2 == 0);
    let mut parts = Assembler::new();
    let mut rest = data;
    while let Ok(Some((frame, used))) = frame::decode(rest, limits) {
        assert!(used <= rest.len() && frame.payload.len() <= limits.frame_bytes_max);
        let mut again = Vec::new();
        match frame.compressed && frame.fin {
            true => frame::write_compressed(&mut again, frame.opcode, frame.payload, None),
            false => frame::write_part(&mut again, frame.fin, frame.opcode, frame.payload, None),
        }
        let (same, _) = frame::decode(&again, limits).unwrap().unwrap();
        assert_eq!(Frame { compressed: frame.compressed, ..same }, frame);
        if frame.opcode == Opcode::Close {
            let _ = frame::read_close(frame.payload);
        }
        let Ok(message) = parts.push(frame, limits) else { break };
        assert!(message.is_none_or(|whole| whole.payload.len() <= limits.message_bytes_max));
        if let Some(Frame { compressed: true, payload, .. }) = message {
            let mut inflated = Inflated::default();
            if let Ok(bytes) = inflated.inflate(payload, limits.message_bytes_max) {
                assert!(bytes.len() <= limits.message_bytes_max);
            }
        }
        rest = &rest[used..];
    }
    let mut masked = data.to_vec();
    let _ = frame::decode_masked(&mut masked, limits);
});
