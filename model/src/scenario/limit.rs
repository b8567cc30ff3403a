//! Time limits and sizes.

use super::reader::Reader;
use super::tree::Node;
use super::unit;
use crate::{Limits, stamp};

pub(super) const KEYS: &[&str] =
    &["connect", "handshake", "login", "request", "late", "settle", "frame", "backlog", "audit"];
/// Bounds of a size, bytes: a frame must hold a stamp and some words around it.
const SIZE: std::ops::RangeInclusive<u64> = 1_024..=1 << 30;
const _: () = assert!(stamp::LEN < 1_024);

/// Reads `limits`; what is not written keeps its default.
pub(super) fn read(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Limits> {
    let mut limits = Limits::default();
    let Some(node) = node else { return Some(limits) };
    let fields = reader.fields(node, "`limits`", KEYS)?;
    let times = [
        ("connect", &mut limits.connect_ns),
        ("handshake", &mut limits.handshake_ns),
        ("login", &mut limits.login_ns),
        ("request", &mut limits.request_ns),
        ("late", &mut limits.late_ns),
        ("settle", &mut limits.settle_ns),
    ];
    for (key, field) in times {
        if let Some(node) = fields.get(key) {
            *field = reader.positive(node, &format!("the limit `{key}`")).unwrap_or(*field);
        }
    }
    let sizes =
        [("frame", &mut limits.frame_bytes_max), ("backlog", &mut limits.backlog_bytes_max)];
    for (key, field) in sizes {
        let Some(node) = fields.get(key) else { continue };
        let Some(bytes) = reader.parsed(node, &format!("the limit `{key}`"), unit::size) else {
            continue;
        };
        if !SIZE.contains(&bytes) {
            let help = "it must lie between `1KiB` and `1GiB`";
            reader.wrong(node.place, format!("the limit `{key}` is out of range"), help);
        }
        *field = bytes;
    }
    if let Some(node) = fields.get("audit") {
        let whole = |text: &str| {
            unit::whole(text.trim().strip_prefix("1 in ").unwrap_or(text), 1, 1_000_000)
        };
        let value = reader.parsed(node, "the limit `audit`", whole);
        limits.audit_one_in = value.unwrap_or(1) as u32;
    }
    Some(limits)
}
