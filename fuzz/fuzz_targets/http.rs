//! The HTTP upgrade, both ends: no panic, and nothing consumed that was not there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocols::wire::http;

fuzz_target!(|data: &[u8]| {
    if let Ok(Some(head)) = http::read_request(data) {
        assert!(head.consumed <= data.len());
        if let Some(handshake) = head.upgrade {
            let mut out = Vec::new();
            let protocol = handshake.protocols().next();
            handshake.accept_with(&mut out, protocol, handshake.offers_deflate);
        }
    }
    for deflate in [false, true] {
        if let Ok(Some(accepted)) = http::read_response(data, [7; 16], &["one"], deflate) {
            assert!(accepted.consumed <= data.len());
        }
    }
});
