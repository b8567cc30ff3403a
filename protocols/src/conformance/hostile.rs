//! Targets that break the rules: each must end in a named fault, or be waited for within bounds.

use super::record::{Record, Step, begin_anew, messages, record, replay};
use super::rig::Rig;
use super::{FRAME_BYTES_MAX, Row, framed_rows, rows};
use crate::wire::frame::{self, Opcode};
use crate::wire::http::HEAD_BYTES_MAX;
use model::{FaultClass, Rng};

/// Mutated conversations per protocol.
const MUTATIONS: u64 = 4_000;

/// Plays everything before the message at `place`.
fn up_to<'r>(row: &'r Row, good: &Record, place: usize) -> Rig<'r> {
    replay(row, &good.steps[..place], |_, bytes| vec![bytes.into()])
}

#[test]
fn answers_that_are_no_upgrade() {
    let accept =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    let rows_of_answers: [(&str, String); 9] = [
        ("200", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".into()),
        ("301", "HTTP/1.1 301 Moved\r\nLocation: ws://127.0.0.1:1/\r\n\r\n".into()),
        ("503", "HTTP/1.1 503 Full\r\n\r\n".into()),
        ("401", "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\n\r\n".into()),
        ("no accept", format!("{accept}\r\n")),
        ("wrong accept", format!("{accept}Sec-WebSocket-Accept: AAAA\r\n\r\n")),
        ("ssh", "SSH-2.0-OpenSSH_9.2\r\n".into()),
        ("tls alert", "\u{15}\u{3}\u{1}\0\u{2}\u{2}\u{28}\r\n\r\n".into()),
        ("nothing", "\r\n\r\n\r\n\0".into()),
    ];
    for row in framed_rows() {
        let good = record(&row);
        let first = messages(&good.steps)[0];
        for (name, answer) in &rows_of_answers {
            let mut rig = up_to(&row, &good, first);
            rig.feed(answer.as_bytes());
            let class = rig.fault().map(|fault| fault.class);
            assert_eq!(class, Some(FaultClass::Upgrade), "{name}");
            begin_anew(&mut rig, &row, &good, name);
        }
    }
}

#[test]
fn an_endless_header_ends() {
    for row in rows() {
        let good = record(&row);
        let first = messages(&good.steps)[0];
        for line in ["x: y\r\n", "x", "\0", "\r\n"] {
            let mut rig = up_to(&row, &good, first);
            rig.feed(b"HTTP/1.1 101 Switching Protocols\r\nx: ");
            let mut fed = 0;
            while rig.is_open() && fed <= 2 * HEAD_BYTES_MAX {
                rig.feed(line.as_bytes());
                fed += line.len();
            }
            assert_eq!(rig.fault().map(|fault| fault.class), Some(FaultClass::Upgrade), "{line:?}");
        }
    }
}

#[test]
fn frames_that_are_none_are_refused_at_once() {
    use FaultClass::{Protocol, TooLarge};
    let gibibyte = (1u64 << 30).to_be_bytes();
    let all = u64::MAX.to_be_bytes();
    let limit = (FRAME_BYTES_MAX as u64 + 1).to_be_bytes();
    let frames: [(&str, Vec<u8>, FaultClass); 10] = [
        ("1 GiB", [&[0x81, 127][..], &gibibyte].concat(), TooLarge),
        ("2^64 - 1", [&[0x81, 127][..], &all].concat(), TooLarge),
        ("limit + 1", [&[0x81, 127][..], &limit].concat(), TooLarge),
        ("compressed", vec![0xC1, 5, 1, 2, 3, 4, 5], Protocol),
        ("reserved bit 2", vec![0xA1, 0], Protocol),
        ("unknown opcode", vec![0x83, 0], Protocol),
        ("masked", vec![0x81, 0x81, 1, 2, 3, 4, 5], Protocol),
        ("ping in parts", vec![0x09, 0], Protocol),
        ("long ping", vec![0x89, 126, 0, 200], Protocol),
        ("part of nothing", vec![0x80, 1, b'x'], Protocol),
    ];
    for row in framed_rows() {
        let good = record(&row);
        for &place in &messages(&good.steps)[1..] {
            for (name, bytes, class) in &frames {
                let mut rig = up_to(&row, &good, place);
                rig.feed(bytes);
                let found = rig.fault().map(|fault| fault.class);
                assert_eq!(found, Some(*class), "{name} instead of message {place}");
            }
        }
        for (name, bytes, _) in &frames {
            let mut rig = up_to(&row, &good, messages(&good.steps)[1]);
            rig.feed(bytes);
            begin_anew(&mut rig, &row, &good, name);
        }
    }
}

#[test]
fn endless_parts_end() {
    for row in framed_rows() {
        let good = record(&row);
        let mut rig = up_to(&row, &good, messages(&good.steps)[1]);
        let mut part = Vec::new();
        frame::write_part(&mut part, false, Opcode::Text, &[b' '; 1_000], None);
        let mut next = Vec::new();
        frame::write_part(&mut next, false, Opcode::Continuation, &[b' '; 1_000], None);
        rig.feed(&part);
        let mut other = up_to(&row, &good, messages(&good.steps)[1]);
        other.feed(&part);
        begin_anew(&mut other, &row, &good, "a first part");
        for _ in 0..2 * FRAME_BYTES_MAX / 1_000 {
            rig.feed(&next);
        }
        assert_eq!(rig.fault().map(|fault| fault.class), Some(FaultClass::TooLarge));
    }
}

#[test]
fn what_the_protocol_forbids_is_refused() {
    for row in rows() {
        let good = record(&row);
        let places = messages(&good.steps);
        // Behind the last thing said by polling comes the receipt of a request: nobody reads it.
        let last = places[places.len() - 1 - usize::from(row.wrap.is_some())];
        for (name, payload) in (row.forbidden)() {
            let mut rig = up_to(&row, &good, last);
            rig.feed(&row.frame(&payload));
            let class = rig.fault().map(|fault| fault.class);
            assert_eq!(class, Some(FaultClass::Protocol), "{name}");
            begin_anew(&mut rig, &row, &good, name);
        }
    }
}

#[test]
fn garbage_in_place_of_each_message() {
    let mut rng = Rng::new(5, 0);
    let noise: Vec<u8> = (0..700).map(|_| rng.u64() as u8).collect();
    let raw: [&[u8]; 5] = [b"", &[0], &[0xFF; 64], &noise, b"GET / HTTP/1.1\r\n\r\n"];
    let payloads: [&[u8]; 11] = [
        b"",
        b"garbage",
        b"{}",
        b"[[[[[[[[",
        b"<",
        b"<a>",
        b"null",
        &noise,
        &[b'{'; 5_000],
        &[0x1A; 5_000],
        "é\u{1F600}".as_bytes(),
    ];
    for row in rows() {
        let good = record(&row);
        let framed = payloads.iter().map(|payload| row.frame(payload));
        let garbage: Vec<Vec<u8>> = raw.iter().map(|bytes| bytes.to_vec()).chain(framed).collect();
        for place in messages(&good.steps) {
            for bad in &garbage {
                // Bounds and answers for open requests are checked by the rig at every step.
                let alter = |at: usize, bytes: &[u8]| {
                    if at == place { vec![bad.clone()] } else { vec![bytes.into()] }
                };
                replay(&row, &good.steps, alter);
            }
        }
    }
}

#[test]
fn messages_lost_doubled_or_swapped() {
    for row in rows() {
        let good = record(&row);
        let places = messages(&good.steps);
        for &place in &places {
            let drop = |at: usize, bytes: &[u8]| {
                if at == place { Vec::new() } else { vec![bytes.to_vec()] }
            };
            replay(&row, &good.steps, drop);
            let double =
                |at: usize, bytes: &[u8]| vec![bytes.to_vec(); 1 + usize::from(at == place)];
            replay(&row, &good.steps, double);
        }
        for pair in places.windows(2) {
            let mut steps = good.steps.clone();
            steps.swap(pair[0], pair[1]);
            replay(&row, &steps, |_, bytes| vec![bytes.into()]);
        }
    }
}

/// Changes some bytes of some messages: any length, any place.
fn mutate(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..rng.between(1, 6) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        match rng.below(6) {
            0 if at < bytes.len() => bytes[at] = rng.u64() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            2 if at < bytes.len() => _ = bytes.remove(at),
            3 => bytes.insert(at, rng.u64() as u8),
            4 => bytes.truncate(at),
            _ => {
                let from = rng.below(bytes.len() as u64 + 1) as usize;
                let copy = bytes[from.min(at)..from.max(at)].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

/// Mutates the payload of a frame, and writes an honest header before it: such bytes get past the
/// frame codec.
fn mutate_payload(row: &Row, rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    match frame::decode(bytes, frame::Limits::CLIENT) {
        Ok(Some((part, _))) => row.frame(&mutate(rng, part.payload)),
        _ => mutate(rng, bytes),
    }
}

#[test]
fn mutations_end_in_a_fault_or_in_patience() {
    for row in rows() {
        let good = record(&row);
        let places = messages(&good.steps);
        let mut faults = 0;
        for seed in 0..MUTATIONS {
            let mut rng = Rng::new(seed, 0);
            let place = places[rng.below(places.len() as u64) as usize];
            let is_deep = rng.below(3) > 0;
            let run = || {
                replay(&row, &good.steps, |at, bytes| match (at == place, is_deep) {
                    (false, _) => vec![bytes.to_vec()],
                    (true, false) => vec![mutate(&mut rng, bytes)],
                    (true, true) => vec![mutate_payload(&row, &mut rng, bytes)],
                })
                .fault()
                .is_some()
            };
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(is_fault) => faults += u64::from(is_fault),
                Err(_) => panic!("{}: seed {seed}", row.protocol.facts().name),
            }
        }
        // A suite whose mutations change nothing could not fail.
        assert!(faults > MUTATIONS / 10, "only {faults} of {MUTATIONS} mutations were noticed");
    }
}

#[test]
fn noise_behind_each_message() {
    for row in rows() {
        let good = record(&row);
        for seed in 0..500 {
            let mut rng = Rng::new(seed, 3);
            let places = messages(&good.steps);
            let place = places[rng.below(places.len() as u64) as usize];
            let mut rig = up_to(&row, &good, place);
            if let Step::Message(bytes) = &good.steps[place] {
                rig.feed(bytes);
            }
            for _ in 0..80 {
                let noise: Vec<u8> = (0..rng.below(900)).map(|_| rng.u64() as u8).collect();
                rig.feed(&noise);
            }
            assert!(rig.fault().is_some() || place == places[places.len() - 1], "seed {seed}");
        }
    }
}
