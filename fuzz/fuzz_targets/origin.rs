//! Where a page comes from: what was read is printed alike, and nobody is let in from another host.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocols::wire::origin::{Origin, is_allowed};

fuzz_target!(|text: &str| {
    let (origin, host) = text.split_once('\n').unwrap_or((text, ""));
    let read = origin.parse::<Origin>();
    if let Ok(read) = &read {
        assert_eq!(read.to_string().parse::<Origin>().as_ref(), Ok(read));
        assert!(is_allowed(origin, None, std::slice::from_ref(read)));
    }
    assert!(!is_allowed(origin, None, &[]));
    if is_allowed(origin, Some(host), &[]) {
        // It is the host that the origin names, with the port that it names or its scheme has.
        let (_, named) = origin.split_once("://").expect("it was read");
        let name = |text: &str| {
            let digits = |c: char| c.is_ascii_digit();
            let bare = text.trim_end_matches(digits).strip_suffix(':').unwrap_or(text);
            bare.to_ascii_lowercase()
        };
        assert_eq!(name(named), name(host));
    }
});
