//! Tables of good and bad XML, and properties of the scanner.
use super::*;
use model::Rng;

/// The pieces of a document as one line: `<a x=1>` `text` `</a>`, or what is wrong with it.
fn show(text: &str) -> String {
    let mut scanner = Scanner::new(text);
    let mut out = String::new();
    loop {
        match scanner.next_piece() {
            Ok(None) => return out,
            Ok(Some(Piece::Open(tag))) => {
                out += &format!("<{}", tag.name);
                for (name, value) in tag.attributes() {
                    out += &format!(" {name}={}", unescape(value));
                }
                out.push('>');
            }
            Ok(Some(Piece::Close(name))) => out += &format!("</{name}>"),
            Ok(Some(Piece::Text(text))) => out += &unescape(text),
            Ok(Some(Piece::Cdata(text))) => out += &format!("[{text}]"),
            Err(error) => return format!("{} at {}", error.what, error.at),
        }
    }
}

#[test]
fn good_documents() {
    let rows = [
        ("", ""),
        (" \n ", " \n "),
        ("<a/>", "<a></a>"),
        ("<a></a >", "<a></a>"),
        ("<a b='1' c=\"2\"/>", "<a b=1 c=2></a>"),
        ("<a\n b = '1'\t/>", "<a b=1></a>"),
        ("<s:a xmlns:s='u'>x</s:a>", "<s:a xmlns:s=u>x</s:a>"),
        ("<a>&lt;&amp;&#65;&#x20AC;&gt;</a>", "<a><&A€></a>"),
        ("<a b='&apos;&quot;'>ü</a>", "<a b='\">ü</a>"),
        ("<a b='/>'/><b/>", "<a b=/>></a><b></b>"),
        ("<a><![CDATA[<&x;>]]></a>", "<a>[<&x;>]</a>"),
        ("<a>]]&gt;</a>", "<a>]]></a>"),
    ];
    for (text, expect) in rows {
        assert_eq!(show(text), expect, "{text}");
    }
}

#[test]
fn bad_documents() {
    let declaration = "a declaration or comment is not allowed at 0";
    let rows = [
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", declaration),
        ("<!-- a -->", declaration),
        ("<![CDATA[a]]>", declaration),
        ("<?xml version='1.0'?><a/>", "a processing instruction is not allowed at 0"),
        ("<a>&b;</a>", "an unknown entity or bad character reference at 3"),
        ("<a>&</a>", "an unknown entity or bad character reference at 3"),
        ("<a>&#0;</a>", "an unknown entity or bad character reference at 3"),
        ("<a>&#xD800;</a>", "an unknown entity or bad character reference at 3"),
        ("<a>&#+5;</a>", "an unknown entity or bad character reference at 3"),
        ("<a>&ü;</a>", "an unknown entity or bad character reference at 3"),
        ("<a>&ampersand and so on;</a>", "an unknown entity or bad character reference at 3"),
        ("<a>\u{1}</a>", "a control character at 3"),
        ("<a b='<'/>", "`<` in an attribute at 0"),
        ("<a b='1' b='2'/>", "a bad or repeated attribute at 0"),
        ("<a b='1'c='2'/>", "no space before an attribute at 0"),
        ("<a b/>", "a bad attribute at 0"),
        ("<a b=1/>", "a bad attribute at 0"),
        ("<a b='1/>", "a bad attribute at 0"),
        ("<a", "a tag without end at 0"),
        ("<a b='1'", "a tag without end at 0"),
        ("<a></b>", "an end tag that does not match at 3"),
        ("</a>", "an end tag that does not match at 0"),
        ("<a><b></a></b>", "an end tag that does not match at 6"),
        ("<a>", "it ends too early at 3"),
        ("a<b/>", "text outside of an element at 0"),
        ("<>", "a bad element name at 0"),
        ("<1/>", "a bad element name at 0"),
        ("< a/>", "a bad element name at 0"),
        ("<", "a bad element name at 0"),
        ("<a><![CDATA[x</a>", "a CDATA section without end at 3"),
    ];
    for (text, expect) in rows {
        assert_eq!(show(text), expect, "{text}");
    }
}

#[test]
fn depth_and_attributes_are_bounded() {
    let nest = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(show(&nest(DEPTH_MAX)).starts_with("<a><a>"));
    assert!(show(&nest(DEPTH_MAX + 1)).starts_with("elements nested too deeply"));
    let many = |count: usize| {
        let list: String = (0..count).map(|i| format!(" a{i}='x'")).collect();
        format!("<a{list}/>")
    };
    assert!(show(&many(ATTRIBUTES_MAX)).starts_with("<a a0=x"));
    assert!(show(&many(ATTRIBUTES_MAX + 1)).starts_with("too many attributes"));
}

#[test]
fn skipping_ends_behind_the_element() {
    let mut scanner = Scanner::new("<a><b><c/>x</b><d/></a>");
    scanner.next_piece().unwrap();
    scanner.next_piece().unwrap();
    scanner.skip().unwrap();
    assert_eq!(scanner.depth(), 1);
    assert!(matches!(scanner.next_piece(), Ok(Some(Piece::Open(tag))) if tag.name == "d"));
}

#[test]
fn what_is_escaped_comes_back() {
    const CHARS: [char; 12] = ['<', '>', '&', '"', '\'', ';', '#', 'x', 'é', '\n', ']', ' '];
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed, 0);
        let text: String = (0..rng.below(30)).map(|_| CHARS[rng.below(12) as usize]).collect();
        let mut document = String::from("<a b='");
        escape(&mut document, &text);
        document.push_str("'>");
        escape(&mut document, &text);
        document.push_str("</a>");
        assert_eq!(show(&document), format!("<a b={text}>{text}</a>"), "seed {seed}");
    }
    let mut out = String::new();
    escape(&mut out, "a\0b\u{FFFF}");
    assert_eq!(out, "ab");
}

#[test]
fn garbage_never_panics_and_always_ends() {
    const PARTS: [&str; 18] = [
        "<",
        ">",
        "/",
        "a",
        "b:c",
        " ",
        "='",
        "'",
        "\"",
        "&lt;",
        "&",
        ";",
        "<![CDATA[",
        "]]>",
        "!",
        "é",
        "</a>",
        "<a x='1'>",
    ];
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed, 1);
        let text: String = (0..rng.below(25)).map(|_| PARTS[rng.below(18) as usize]).collect();
        let mut scanner = Scanner::new(&text);
        let mut pieces = 0;
        while let Ok(Some(_)) = scanner.next_piece() {
            pieces += 1;
            assert!(pieces <= 2 * text.len(), "seed {seed}: {text}");
        }
    }
}
