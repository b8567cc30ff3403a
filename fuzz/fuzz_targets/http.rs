//! The HTTP upgrade, both ends: no panic, and nothing consumed that was not there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocols::wire::http;

fuzz_target!(|data: &[u8]| {
    if let Ok(Some(head)) = http::read_request(data) {
        assert!(head.consumed <= data.len());
        if let Some(handshake) = head.upgrade {
            let mut out = Vec::new();
            handshake.accept(&mut out, handshake.protocols().next());
        }
    }
    if let Ok(Some(accepted)) = http::read_response(data, [7; 16], &["one"]) {
        assert!(accepted.consumed <= data.len());
    }
});
