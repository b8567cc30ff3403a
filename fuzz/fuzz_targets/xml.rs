//! The XML scanner: no panic, an end, balanced pieces, and what is unescaped escapes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocols::xmpp::xml::{DEPTH_MAX, Piece, Scanner, escape, unescape};

fuzz_target!(|text: &str| {
    let mut scanner = Scanner::new(text);
    let (mut depth, mut pieces) = (0, 0);
    while let Ok(Some(piece)) = scanner.next_piece() {
        pieces += 1;
        assert!(pieces <= 2 * text.len() && scanner.position() <= text.len());
        match piece {
            Piece::Open(tag) => {
                depth += 1;
                tag.attributes().for_each(|(_, value)| round_trip(value));
            }
            Piece::Close(_) => depth -= 1,
            Piece::Text(text) => round_trip(text),
            Piece::Cdata(_) => {}
        }
        assert!(depth == scanner.depth() && depth <= DEPTH_MAX);
    }
});

fn round_trip(raw: &str) {
    let plain = unescape(raw);
    let mut again = String::new();
    escape(&mut again, &plain);
    assert_eq!(unescape(&again), plain);
}
