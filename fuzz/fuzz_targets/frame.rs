//! WebSocket frames: no panic, no read past the end, and what was read is written alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocols::wire::frame::{self, Assembler, Limits, Opcode};

fuzz_target!(|data: &[u8]| {
    let limits = Limits::of(4096);
    let mut parts = Assembler::new();
    let mut rest = data;
    while let Ok(Some((frame, used))) = frame::decode(rest, limits) {
        assert!(used <= rest.len() && frame.payload.len() <= limits.frame_bytes_max);
        let mut again = Vec::new();
        frame::write_part(&mut again, frame.fin, frame.opcode, frame.payload, None);
        let (same, _) = frame::decode(&again, limits).unwrap().unwrap();
        assert_eq!(same, frame);
        if frame.opcode == Opcode::Close {
            let _ = frame::read_close(frame.payload);
        }
        let Ok(message) = parts.push(frame, limits) else { break };
        assert!(message.is_none_or(|(_, payload)| payload.len() <= limits.message_bytes_max));
        rest = &rest[used..];
    }
    let mut masked = data.to_vec();
    let _ = frame::decode_masked(&mut masked, limits);
});
