//! Streams cut in every way: the cuts do not depend on how the bytes arrive.

use super::*;
use crate::xmpp::xml::Scanner;
use model::Rng;

const HEADER: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' id='a>b'>";
const MAX: usize = 4_096;

/// What a stream is cut into when it arrives in those pieces.
fn cut(pieces: &[&[u8]]) -> Vec<String> {
    let mut splitter = Splitter::default();
    let (mut carry, mut found) = (Vec::new(), Vec::new());
    for piece in pieces {
        carry.extend_from_slice(piece);
        loop {
            let (used, what) = splitter.next(&carry, MAX);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            match what {
                Cut::More => {}
                Cut::Header(bytes) => found.push(format!("header {}", text(bytes))),
                Cut::Stanza(bytes) => found.push(text(bytes)),
                Cut::End => found.push("end".into()),
                Cut::Broken(class, what) => {
                    found.push(format!("{}: {what}", class.name()));
                    return found;
                }
            }
            let is_waiting = what == Cut::More;
            carry.drain(..used);
            if is_waiting {
                break;
            }
        }
    }
    found
}

#[test]
fn streams_are_cut_into_stanzas() {
    let open = "header <stream:stream xmlns='jabber:client' id='a>b'>";
    let rows: [(&str, &[&str]); 13] = [
        ("", &[]),
        ("<a/><b/>", &["<a/>", "<b/>"]),
        (" \n<a x='>' y=\"'/>\"/>\t", &["<a x='>' y=\"'/>\"/>"]),
        ("<a><b/><c>x</c></a><d></d>", &["<a><b/><c>x</c></a>", "<d></d>"]),
        ("<a><![CDATA[</a>]]]></a>", &["<a><![CDATA[</a>]]]></a>"]),
        ("<a></a ></stream:stream>", &["<a></a >", "end"]),
        ("</stream:stream > ", &["end"]),
        ("<a/>text", &["<a/>", "protocol: text between two stanzas"]),
        ("<a><!-- --></a>", &["protocol: a declaration or comment is not allowed"]),
        ("<!DOCTYPE a []>", &["protocol: a declaration or comment is not allowed"]),
        ("<![CDATA[x]]>", &["protocol: a declaration or comment is not allowed"]),
        ("<?xml version='1.0'?>", &["protocol: a processing instruction is not allowed"]),
        ("<a><?php ?></a>", &["protocol: a processing instruction is not allowed"]),
    ];
    for (behind, expect) in rows {
        let text = format!("{HEADER}{behind}");
        let bytes = text.as_bytes();
        let expect: Vec<&str> = std::iter::once(open).chain(expect.iter().copied()).collect();
        assert_eq!(cut(&[bytes]), expect, "{behind}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(cut(&single), expect, "{behind}: byte by byte");
        for at in 0..bytes.len() {
            assert_eq!(cut(&[&bytes[..at], &bytes[at..]]), expect, "{behind}: cut at {at}");
        }
    }
}

#[test]
fn what_is_no_stream_is_told_apart_from_a_bad_one() {
    let endless = format!("<?xml {}", " ".repeat(200));
    let rows = [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "upgrade: what answers is no XMPP stream"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "upgrade: what answers is no XMPP stream"),
        ("\u{15}\u{3}\u{1}", "upgrade: what answers is no XMPP stream"),
        ("<!DOCTYPE html>", "upgrade: a declaration or comment is not allowed"),
        ("<?php", "upgrade: a processing instruction is not allowed"),
        ("<stream:stream/>", "upgrade: the stream is closed where it is opened"),
        ("</stream:stream>", "upgrade: the stream is closed before it is opened"),
        (&endless, "upgrade: an XML declaration without end"),
    ];
    for (text, expect) in rows {
        assert_eq!(cut(&[text.as_bytes()]), [expect], "{text}");
    }
}

#[test]
fn what_can_never_fit_is_not_waited_for() {
    let deep = format!("{HEADER}{}", "<a>".repeat(DEPTH_MAX + 1));
    assert_eq!(cut(&[deep.as_bytes()])[1], "protocol: elements nested too deeply");
    let just = format!("{HEADER}{}{}", "<a>".repeat(DEPTH_MAX), "</a>".repeat(DEPTH_MAX));
    assert_eq!(cut(&[just.as_bytes()]).len(), 2);
    for start in ["<a>", "<a", "<a b='", "<a><![CDATA[", "</a"] {
        let long = format!("{HEADER}{start}{}", "x".repeat(MAX));
        assert_eq!(cut(&[long.as_bytes()])[1], "too-large: a stanza above the limit", "{start}");
    }
    let whole = format!("{HEADER}<a>{}</a>", "x".repeat(MAX));
    assert_eq!(cut(&[whole.as_bytes()])[1], "too-large: a stanza above the limit");
}

/// Whatever the scanner takes for one document, the splitter takes for one stanza.
#[test]
fn cuts_are_where_the_scanner_ends_a_document() {
    let words = [
        "<a>",
        "</a>",
        "<b x='1'>",
        "</b>",
        "<c/>",
        "text",
        "&lt;",
        "<![CDATA[",
        "]]>",
        "<d y=\">\"/>",
        " ",
    ];
    let mut whole = 0;
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed, 8);
        let count = rng.between(1, 9);
        let pick = |_| words[rng.below(words.len() as u64) as usize];
        let text: String = (0..count).map(pick).collect();
        let mut scanner = Scanner::new(&text);
        let mut ends = Vec::new();
        let mut start = None;
        while let Ok(Some(_)) = scanner.next_piece() {
            match (scanner.depth(), start) {
                (0, Some(from)) => {
                    ends.push(&text[from..scanner.position()]);
                    start = None;
                }
                (0, None) => {}
                (_, None) => start = text[..scanner.position()].rfind('<'),
                _ => {}
            }
        }
        let mut stream = format!("{HEADER}{text}");
        stream.push(' ');
        let cuts = cut(&[stream.as_bytes()]);
        for (place, end) in ends.iter().enumerate() {
            assert_eq!(cuts.get(place + 1).map(String::as_str), Some(*end), "seed {seed}: {text}");
        }
        whole += ends.len();
    }
    assert!(whole > 1_000, "{whole}");
}
