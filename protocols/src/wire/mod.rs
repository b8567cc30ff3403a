//! Codecs that several protocols share: the HTTP upgrade and who may ask for it,
//! WebSocket frames and their compression. No I/O, no clock.
pub mod deflate;
pub mod frame;
pub mod http;
pub mod origin;
pub mod rng;
pub mod socket;

/// Longest foreign text that is repeated in a report, characters.
const SHOWN_MAX: usize = 200;

/// Foreign text, fit to be shown in one line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
