//! The yardstick's encodings: no panic, and what was read survives both encodings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocols::yardstick::{Encoding, Frame, Request};

fuzz_target!(|data: &[u8]| {
    for encoding in Encoding::ALL {
        let _ = encoding.classify(data);
        if let Ok(frame) = Frame::decode(encoding, data) {
            for through in Encoding::ALL {
                let mut bytes = Vec::new();
                frame.encode(through, &mut bytes);
                assert_eq!(Frame::decode(through, &bytes).as_ref(), Ok(&frame));
            }
        }
        if let Ok(request) = Request::decode(encoding, data) {
            for through in Encoding::ALL {
                let mut bytes = Vec::new();
                request.encode(through, &mut bytes);
                assert_eq!(Request::decode(through, &bytes).as_ref(), Ok(&request));
            }
        }
    }
});
