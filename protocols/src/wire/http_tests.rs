//! Tables of the HTTP upgrade, both ends, and a pair test.
use super::*;
use crate::wire::rng::SplitMix;

/// The key and answer of RFC 6455 section 1.3.
const KEY: [u8; 16] = *b"the sample nonce";
const KEY_BASE64: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const UPGRADED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n";

fn request<'a>() -> UpgradeRequest<'a> {
    UpgradeRequest {
        path: "/ws?v=1",
        host: "localhost:80",
        headers: &[("Origin", "http://a b")],
        protocols: &["one", "two"],
        key: KEY,
        deflate: false,
    }
}

#[test]
fn the_request_reads_as_the_rfc_has_it() {
    let mut out = Vec::new();
    request().write(&mut out).unwrap();
    let expect = format!(
        "GET /ws?v=1 HTTP/1.1\r\nHost: localhost:80\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: {KEY_BASE64}\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Protocol: one, two\r\nOrigin: http://a b\r\n\r\n"
    );
    assert_eq!(String::from_utf8(out).unwrap(), expect);
}

#[test]
fn parts_that_would_break_the_request_apart_are_refused() {
    let good = request();
    let rows = [
        (UpgradeRequest { path: "/a b", ..good }, "the path"),
        (UpgradeRequest { host: "a\r\nX: y", ..good }, "the host"),
        (UpgradeRequest { protocols: &["a\nb"], ..good }, "a subprotocol"),
        (UpgradeRequest { headers: &[("a b", "c")], ..good }, "a header name"),
        (UpgradeRequest { headers: &[("a", "c\r\nd")], ..good }, "a header value"),
    ];
    for (bad, what) in rows {
        let mut out = Vec::new();
        assert_eq!(bad.write(&mut out), Err(HttpError::BadRequestPart(what)));
        assert!(out.is_empty(), "{what}");
    }
}

#[test]
fn answers_to_an_upgrade() {
    let refused = |status, body: &str| HttpError::Refused { status, body: body.into() };
    let good = format!("{UPGRADED}Sec-WebSocket-Accept: {ACCEPT}\r\n");
    let long = format!("HTTP/1.1 500 No\r\n\r\n{}", "x".repeat(300));
    let rows: Vec<(String, Result<Option<&str>, HttpError>)> = vec![
        (format!("{good}\r\nrest"), Ok(None)),
        (format!("{good}Sec-WebSocket-Protocol: two\r\n\r\n"), Ok(Some("two"))),
        (
            format!("{good}Sec-WebSocket-Protocol: six\r\n\r\n"),
            Err(HttpError::WrongProtocol("six".into())),
        ),
        (
            format!("{good}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
            Err(HttpError::UnwantedExtension),
        ),
        (format!("{UPGRADED}\r\n"), Err(HttpError::WrongAccept)),
        (format!("{UPGRADED}Sec-WebSocket-Accept: AAAA\r\n\r\n"), Err(HttpError::WrongAccept)),
        ("HTTP/1.1 101 Hm\r\n\r\n".into(), Err(HttpError::NotWebSocket)),
        ("HTTP/1.1 200 OK\r\n\r\n<p>hi\n</p>".into(), Err(refused(200, "<p>hi </p>"))),
        ("HTTP/1.1 503 Full\r\n\r\n".into(), Err(refused(503, ""))),
        (long, Err(refused(500, &"x".repeat(200)))),
        ("\x16\x03\x01 garbage\r\n\r\n".into(), Err(HttpError::Malformed("bad HTTP version"))),
        (format!("HTTP/1.1 101 a\r\nx: {}", "y".repeat(9000)), Err(HttpError::HeadTooLong)),
        (
            format!("HTTP/1.1 101 a\r\n{}\r\n", "x: y\r\n".repeat(HEADERS_MAX + 1)),
            Err(HttpError::HeadTooLong),
        ),
    ];
    for (text, expect) in rows {
        let found = request().read_response(text.as_bytes());
        let found = found.map(|accepted| accepted.expect("complete").protocol);
        assert_eq!(found, expect, "{text:.60}");
    }
    let whole = format!("{good}\r\n");
    for end in 0..whole.len() {
        assert_eq!(request().read_response(&whole.as_bytes()[..end]), Ok(None), "{end} bytes");
    }
    let accepted = request().read_response(whole.as_bytes()).unwrap().unwrap();
    assert_eq!(accepted.consumed, whole.len());
}

#[test]
fn requests_as_a_server_reads_them() {
    let ws =
        format!("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {KEY_BASE64}\r\n");
    let rows: Vec<(String, Result<(&str, bool), u16>)> = vec![
        ("GET /healthz?x=1 HTTP/1.1\r\n\r\n".into(), Ok(("/healthz", false))),
        (format!("GET /ws HTTP/1.1\r\n{ws}Sec-WebSocket-Version: 13\r\n\r\n"), Ok(("/ws", true))),
        (format!("GET /ws HTTP/1.1\r\n{ws}Sec-WebSocket-Version: 8\r\n\r\n"), Err(426)),
        (format!("GET /ws HTTP/1.1\r\n{ws}\r\n"), Err(426)),
        (
            "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2hvcnQ=\r\n\r\n"
                .into(),
            Err(400),
        ),
        ("POST / HTTP/1.1\r\n\r\n".into(), Err(405)),
        ("\0\0\0\0".into(), Err(400)),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(HEAD_BYTES_MAX)), Err(431)),
    ];
    for (text, expect) in rows {
        let found = read_request(text.as_bytes());
        let found = found.map(|head| head.expect("complete")).map_err(Refusal::status);
        let found = found.map(|head| (head.path, head.upgrade.is_some()));
        assert_eq!(found, expect, "{text:.80}");
    }
}

#[test]
fn refusals_carry_what_the_rfc_wants() {
    let rows = [
        (Refusal::UpgradeRequired, "HTTP/1.1 426 Upgrade Required\r\n", "Version: 13\r\n"),
        (Refusal::MethodNotAllowed, "HTTP/1.1 405 Method Not Allowed\r\n", "Allow: GET\r\n"),
        (Refusal::NotFound, "HTTP/1.1 404 Not Found\r\n", "Content-Length: 10\r\n"),
        (Refusal::BadRequest("no"), "HTTP/1.1 400 Bad Request\r\n", "\r\n\r\nno\n"),
    ];
    for (refusal, start, part) in rows {
        let mut out = Vec::new();
        refusal.write(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(start) && text.contains(part), "{text}");
        assert!(text.contains("Connection: close\r\n"), "{text}");
    }
}

#[test]
fn client_and_server_understand_each_other() {
    let mut wire = Vec::new();
    request().write(&mut wire).unwrap();
    let head = read_request(&wire).unwrap().unwrap();
    let handshake = head.upgrade.unwrap();
    assert_eq!(handshake.protocols().collect::<Vec<_>>(), ["one", "two"]);
    let mut back = Vec::new();
    handshake.accept(&mut back, Some("two"));
    let accepted = request().read_response(&back).unwrap().unwrap();
    assert_eq!(accepted, Accepted { consumed: back.len(), protocol: Some("two") });
}

#[test]
fn compression_is_switched_on_where_both_want_it() {
    let asks = UpgradeRequest { deflate: true, ..request() };
    for (request, agrees, expect) in
        [(asks, true, Ok(())), (asks, false, Err(HttpError::NoDeflate)), (request(), false, Ok(()))]
    {
        let mut wire = Vec::new();
        request.write(&mut wire).unwrap();
        let handshake = read_request(&wire).unwrap().unwrap().upgrade.unwrap();
        assert_eq!(handshake.offers_deflate, request.deflate);
        let mut back = Vec::new();
        handshake.accept_with(&mut back, Some("two"), agrees);
        assert_eq!(
            request.read_response(&back).map(|accepted| accepted.map(|_| ())),
            expect.map(Some)
        );
    }
    let good = format!("{UPGRADED}Sec-WebSocket-Accept: {ACCEPT}\r\n");
    let field = "Sec-WebSocket-Extensions: ";
    let rows = [
        ("permessage-deflate; server_no_context_takeover", Ok(())),
        ("permessage-deflate", Err(HttpError::UnwantedExtension)),
        ("x-bzip", Err(HttpError::UnwantedExtension)),
        ("\u{e9}", Err(HttpError::UnwantedExtension)),
        ("", Err(HttpError::NoDeflate)),
    ];
    for (value, expect) in rows {
        let text = format!("{good}{field}{value}\r\n\r\n");
        let found = asks.read_response(text.as_bytes()).map(|_| ());
        assert_eq!(found, expect, "{value}");
    }
    let twice = format!("{good}{field}{0}\r\n{field}{0}\r\n\r\n", deflate::EXTENSION);
    let found = asks.read_response(twice.as_bytes());
    assert_eq!(found, Err(HttpError::UnwantedExtension));
}

#[test]
fn garbage_never_panics() {
    let mut good = Vec::new();
    request().write(&mut good).unwrap();
    for seed in 0..5_000 {
        let mut rng = SplitMix::new(seed);
        let mut bytes = good.clone();
        for _ in 0..1 + rng.below(8) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.next_u64() as u8;
        }
        let _ = read_request(&bytes);
        let _ = request().read_response(&bytes);
    }
}
