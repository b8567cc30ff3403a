//! Compression: the RFC's own examples, offers and answers as tables, round trips, bombs, garbage.
use super::*;
use crate::wire::frame::Limits;
use crate::wire::rng::SplitMix;

const BYTES_MAX: usize = 100_000;

fn inflate(payload: &[u8], bytes_max: usize) -> Result<Vec<u8>, FrameError> {
    Inflated::default().inflate(payload, bytes_max).map(<[u8]>::to_vec)
}

/// The payload as a compressed frame carries it; `None` if it travels as it is.
fn deflated(payload: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    write_frame(&mut out, Opcode::Text, payload, None);
    let limits = Limits::of(BYTES_MAX).with_compression(true);
    let (frame, used) = frame::decode(&out, limits).unwrap().unwrap();
    assert_eq!((used, frame.fin, frame.opcode), (out.len(), true, Opcode::Text));
    if !frame.compressed {
        assert_eq!(frame.payload, payload);
    }
    frame.compressed.then(|| frame.payload.to_vec())
}

/// Raw deflate of any level, up to a flush.
fn raw(payload: &[u8], level: u32, flush: FlushCompress) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 1000);
    Compress::new(Compression::new(level), false).compress_vec(payload, &mut out, flush).unwrap();
    out
}

#[test]
fn the_examples_of_the_rfc_inflate() {
    let rows: [(&str, &[u8], &str); 6] = [
        ("7.2.3.1", &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], "Hello"),
        ("7.2.3.3, stored", b"\x00\x05\x00\xfa\xffHello\x00", "Hello"),
        ("7.2.3.4, last block", &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00], "Hello"),
        ("last block, nothing behind", &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00], "Hello"),
        (
            "7.2.3.5, two blocks",
            &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
            "Hello",
        ),
        ("7.2.3.6, empty", &[0x00], ""),
    ];
    for (name, payload, text) in rows {
        assert_eq!(inflate(payload, 5).as_deref(), Ok(text.as_bytes()), "{name}");
    }
}

#[test]
fn what_is_no_message_is_an_error() {
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let rows: [(&str, &[u8]); 7] = [
        ("nothing", &[]),
        ("cut short", &hello[..5]),
        ("cut in the first byte", &hello[..1]),
        ("a reserved kind of block", &[0x07]),
        ("a distance beyond the beginning", &[0x4b, 0x04, 0x7e, 0x00]),
        ("a stored block of the wrong length", b"\x00\x05\x00\xfa\xfeHello\x00"),
        ("more behind the last block", &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00, 0x00]),
    ];
    for (name, payload) in rows {
        assert_eq!(inflate(payload, 1000), Err(FrameError::BadDeflate), "{name}");
    }
    assert_eq!(inflate(&hello, 5).as_deref(), Ok(&b"Hello"[..]), "the thread's state is sound");
}

#[test]
fn a_bomb_is_an_error_and_no_memory() {
    for size in [10_001, 1_000_000, 50_000_000] {
        let bomb = raw(&vec![0; size], 9, FlushCompress::Sync);
        assert!(bomb.len() < size / 100);
        let mut inflated = Inflated::default();
        let error = inflated.inflate(&bomb[..bomb.len() - 4], 10_000).unwrap_err();
        assert!(matches!(error, FrameError::TooLarge { bytes_max: 10_000, .. }), "{error}");
        let kept = inflated.0.as_ref().unwrap().bytes.capacity();
        assert!(kept <= 10_000 + 2 * START_BYTES, "{kept} bytes are held");
    }
}

#[test]
fn what_goes_in_comes_out() {
    let mut rng = SplitMix::new(3);
    let mut compressed = 0;
    for length in (0..70).chain([4_090, 4_096, 4_100, 65_535, 90_000]) {
        let noise = rng.bytes(length);
        let words: Vec<u8> =
            noise.iter().map(|byte| b"etaoin shrdlu"[*byte as usize % 13]).collect();
        for payload in [noise, words] {
            let Some(short) = deflated(&payload) else { continue };
            compressed += 1;
            assert!(short.len() < payload.len());
            assert_eq!(inflate(&short, length).as_ref(), Ok(&payload), "{length} bytes");
            let error = inflate(&short, length - 1);
            assert!(matches!(error, Err(FrameError::TooLarge { .. })), "{length} bytes");
        }
    }
    assert!(compressed > 20, "only {compressed} payloads became shorter");
    for (level, flush) in
        [(0, FlushCompress::Sync), (1, FlushCompress::Full), (9, FlushCompress::Finish)]
    {
        let text = "to be or not to be ".repeat(300);
        let out = raw(text.as_bytes(), level, flush);
        let payload = out.strip_suffix(&TAIL).unwrap_or(&out);
        assert_eq!(inflate(payload, BYTES_MAX).as_deref(), Ok(text.as_bytes()), "level {level}");
    }
}

#[test]
fn garbage_ends_in_an_error_or_within_bounds() {
    let mut errors = 0;
    for seed in 0..20_000 {
        let mut rng = SplitMix::new(seed);
        let length = rng.below(60);
        let mut bytes = rng.bytes(length);
        if seed % 2 == 0 {
            bytes = raw("hello hello hello hello".as_bytes(), 6, FlushCompress::Sync);
            let at = rng.below(bytes.len());
            bytes[at] ^= 1 << rng.below(8);
        }
        match inflate(&bytes, 500) {
            Ok(payload) => assert!(payload.len() <= 500, "seed {seed}"),
            Err(_) => errors += 1,
        }
    }
    assert!(errors > 1_000, "only {errors} errors");
}

#[test]
fn offers_and_answers() {
    let rows = [
        ("permessage-deflate", true, false),
        (EXTENSION, true, true),
        ("permessage-deflate; server_no_context_takeover", true, true),
        ("permessage-deflate; client_max_window_bits", true, false),
        ("permessage-deflate; client_max_window_bits=10", true, false),
        ("permessage-deflate;server_no_context_takeover;server_max_window_bits=12", false, true),
        (
            "permessage-deflate; server_no_context_takeover; server_max_window_bits=\"15\"",
            true,
            true,
        ),
        ("permessage-deflate; server_max_window_bits", false, false),
        ("permessage-deflate; server_max_window_bits=7", false, false),
        ("permessage-deflate; server_max_window_bits=16", false, false),
        ("permessage-deflate; server_no_context_takeover=1", false, false),
        (
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
            false,
            false,
        ),
        ("permessage-deflate; server_no_context_takeover; zebra", false, false),
        ("permessage-deflate; server_no_context_takeover; client_max_window_bits=9", true, false),
        ("x-webkit-deflate-frame", false, false),
        (
            "permessage-bzip2, permessage-deflate; server_max_window_bits=9, permessage-deflate",
            true,
            false,
        ),
        ("", false, false),
        (";;;", false, false),
    ];
    for (value, offered, agreed) in rows {
        assert_eq!((is_offered(value), is_agreed(value)), (offered, agreed), "{value}");
    }
}
