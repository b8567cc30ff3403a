//! What the conformance suite does not see: logins over HTTP, and descriptions that do not compile.

use super::fake::options;
use super::*;
use model::{Effects, Endpoint, Event, FaultClass, Request, Rng, Tick, Token};

const LOGIN: &str = r#"
websocket:
  path: /ws?t={token}
  headers: {Authorization: "Bearer {token}", Cookie: "sid={sid}"}
  login:
    - {post: /auth, form: {user: "{name}", password: "{password}"}, keep: {token: data.token}}
    - get: /session
      headers: {Authorization: "Bearer {token}"}
      keep: {sid: {cookie: sid}}
  verbs: {join: {send: {join: "{room}"}}, say: {send: {say: "{text}"}}}
"#;

fn person(description: &str) -> (Box<dyn Session>, Effects) {
    let endpoint = Endpoint::parse("ws://127.0.0.1:9/").unwrap();
    let all: Options = [(OPTION.to_owned(), options(description, ""))].into();
    WebSocket.check(&all).unwrap();
    let shared = Arc::new(Shared::new(endpoint, all, 1_000));
    (WebSocket.session(1, Features::default(), &shared), Effects::new(1, Rng::new(1, 1)))
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_login_takes_several_connections() {
    let (mut ann, mut fx) = person(LOGIN);
    let login = Request::Login { name: "ann", password: "a&b c" };
    ann.act(Tick(1), Token(1), login, &mut fx);
    assert!(std::mem::take(&mut fx.dial));
    ann.opened(Tick(2), &mut fx);
    let text = String::from_utf8(std::mem::take(&mut fx.out)).unwrap();
    assert!(text.starts_with("POST /auth HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\nuser=ann&password=a%26b%20c"), "{text}");
    let token = answer("200 OK", r#"{"data":{"token":"to.k/en"}}"#);
    let (first, second) = token.as_bytes().split_at(20);
    assert_eq!(ann.receive(Tick(3), first, &mut fx), 0);
    assert_eq!(ann.receive(Tick(3), token.as_bytes(), &mut fx), token.len());
    assert!(!second.is_empty() && std::mem::take(&mut fx.dial));
    ann.opened(Tick(4), &mut fx);
    let text = String::from_utf8(std::mem::take(&mut fx.out)).unwrap();
    assert!(text.starts_with("GET /session HTTP/1.1\r\n"), "{text}");
    assert!(text.contains("Authorization: Bearer to.k/en\r\n"), "{text}");
    let cookie = answer("204 No\r\nSet-Cookie: sid=7; Path=/", "");
    ann.receive(Tick(5), cookie.as_bytes(), &mut fx);
    assert!(std::mem::take(&mut fx.dial));
    ann.opened(Tick(6), &mut fx);
    let text = String::from_utf8(std::mem::take(&mut fx.out)).unwrap();
    assert!(text.starts_with("GET /ws?t=to.k%2Fen HTTP/1.1\r\n"), "{text}");
    assert!(text.contains("Cookie: sid=7\r\n"), "{text}");
    assert_eq!(fx.events, []);
}

#[test]
fn logins_that_fail_say_why() {
    let cases = [
        (answer("401 No", "wrong password"), FaultClass::LoginRefused, "wrong password"),
        (answer("200 OK", "{}"), FaultClass::LoginRefused, "data.token"),
        (answer("500 Oops", "x"), FaultClass::Upgrade, "500"),
        (answer("200 OK", r#"{"data":{"token":"a\r\nb"}}"#), FaultClass::LoginRefused, "line"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n".into(), FaultClass::TooLarge, "1000"),
        ("nonsense\r\n\r\n".into(), FaultClass::Protocol, "HTTP"),
    ];
    for (answer, class, word) in cases {
        let (mut ann, mut fx) = person(LOGIN);
        ann.act(Tick(1), Token(1), Request::Login { name: "ann", password: "" }, &mut fx);
        ann.opened(Tick(2), &mut fx);
        ann.receive(Tick(3), answer.as_bytes(), &mut fx);
        if fx.close.is_none() {
            // The second step is where a broken token would be sent.
            ann.opened(Tick(4), &mut fx);
        }
        let Some(Err(fault)) = fx.close else { panic!("{answer}: no fault") };
        assert_eq!(fault.class, class, "{answer}");
        assert!(fault.detail.contains(word), "{fault:?}");
        assert!(matches!(fx.events[..], [Event::Done(Token(1), Err(_))]), "{:?}", fx.events);
    }
}

#[test]
fn a_frame_may_hold_several_messages() {
    let endpoint = Endpoint::parse("ws://127.0.0.1:9/").unwrap();
    let all: Options = [(OPTION.to_owned(), super::fake::example(1))].into();
    let shared = Arc::new(Shared::new(endpoint, all, 1_000));
    let mut ann = WebSocket.session(1, Features::default(), &shared);
    let mut fx = Effects::new(3, Rng::new(1, 1));
    ann.act(Tick(1), Token(1), Request::Login { name: "ann", password: "" }, &mut fx);
    ann.opened(Tick(2), &mut fx);
    let head = crate::wire::http::read_request(&fx.out).unwrap().unwrap();
    let mut bytes = Vec::new();
    head.upgrade.unwrap().accept(&mut bytes, Some("centrifuge-json"));
    let stamp = "~thrAADAAACAAAAAAAAAABAAAAAKAAAAFaKY";
    let push = format!("{{\"push\":{{\"pub\":{{\"data\":{{\"text\":\"{stamp}\"}}}}}}}}");
    let text = format!("{{\"id\":1,\"connect\":{{\"client\":\"x\"}}}}\n{push}\n{push}\n");
    crate::wire::frame::write_frame(
        &mut bytes,
        crate::wire::frame::Opcode::Text,
        text.as_bytes(),
        None,
    );
    ann.receive(Tick(3), &bytes, &mut fx);
    let deliveries = fx.events.iter().filter(|e| matches!(e, Event::Delivery(_))).count();
    assert_eq!((deliveries, fx.events.contains(&Event::Done(Token(1), Ok(())))), (2, true));
}

#[test]
fn heartbeats_are_given() {
    let (mut ann, mut fx) = person(
        "websocket:\n  heartbeat: {every: 5s, send: {type: hb, of: \"{name}\"}}\n  verbs: {}\n",
    );
    ann.act(Tick(1), Token(1), Request::Login { name: "ann", password: "" }, &mut fx);
    ann.opened(Tick(2), &mut fx);
    let head = crate::wire::http::read_request(&fx.out).unwrap().unwrap();
    let mut bytes = Vec::new();
    head.upgrade.unwrap().accept(&mut bytes, None);
    fx.out.clear();
    ann.receive(Tick(3), &bytes, &mut fx);
    assert_eq!(fx.events.last(), Some(&Event::Done(Token(1), Ok(()))));
    assert_eq!(fx.wake.take(), Some(Tick(3 + 5_000_000_000)));
    ann.wake(Tick(9), &mut fx);
    let limits = crate::wire::frame::Limits::SERVER;
    let part = crate::wire::frame::decode_masked(&mut fx.out, limits).unwrap().unwrap().0;
    assert_eq!(String::from_utf8_lossy(part.payload), r#"{"type":"hb","of":"ann"}"#);
    assert_eq!(fx.wake, Some(Tick(9 + 5_000_000_000)));
}

#[test]
fn what_does_not_compile_is_refused_with_advice() {
    let refused = |verbs: &str, proto: &str, codec: &str| {
        let text =
            format!("websocket:\n  proto: {{file: a, message: M}}\n  verbs: {{say: {verbs}}}\n");
        let all: Options =
            [(OPTION.to_owned(), options(&text, proto)), ("codec".to_owned(), codec.to_owned())]
                .into();
        WebSocket.check(&all).err().unwrap_or_default()
    };
    let proto = "syntax = \"proto3\"; message M { string text = 1; int32 n = 2; M m = 3; }";
    let cases = [
        ("{send: {text: \"{text}\", m: {n: -3}}}", proto, "protobuf", ""),
        ("{send: {txt: \"{text}\"}}", proto, "protobuf", "no field `txt`"),
        ("{send: {n: \"{text}\"}}", proto, "protobuf", "needs a number"),
        ("{send: {n: 1.5}}", proto, "protobuf", "does not fit"),
        ("{send: {text: x}, answer: {text.n: 1}}", proto, "protobuf", "goes on behind"),
        ("{send: {text: x}}", "syntax = \"proto3\"; message N {}", "protobuf", "no message `M`"),
        ("{send: {text: x}}", "message {", "protobuf", "described.proto"),
        ("{send: {text: x}}", "import \"other.proto\";", "protobuf", "other.proto"),
        ("{send: {text: x}}", proto, "text", "says a text"),
        ("{send: x, answer: {a: b}}", proto, "text", "how they begin"),
        ("{send: x}", proto, "xml", "`codec` cannot be `xml`"),
    ];
    for (verbs, proto, codec, word) in cases {
        let refusal = refused(verbs, proto, codec);
        assert!(refusal.contains(word) && refusal.is_empty() == word.is_empty(), "{refusal}");
    }
}
