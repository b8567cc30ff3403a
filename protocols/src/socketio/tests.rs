//! The ways from polling to a WebSocket and what comes of a refusal, options, variants.

use super::SocketIo;
use crate::wire::http;
use model::{
    Effects, Endpoint, Event, Fault, FaultClass, Features, Measure, Options, Protocol, Request,
    Rng, Session, Shared, Tick, Token,
};
use std::sync::Arc;

fn options(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A person who polls, logged in as far as the entry of the namespace.
fn polling(upgrades: &str, pairs: &[(&str, &str)]) -> (Box<dyn Session>, Effects) {
    let endpoint = Endpoint::parse("http://127.0.0.1:3000/chat/?x=1").unwrap();
    let shared = Shared::new(endpoint, options(pairs), 4_096);
    let mut session = SocketIo.session(1, Features::default(), &Arc::new(shared));
    let mut fx = Effects::new(1, Rng::new(1, 1));
    let login = Request::Login { name: "ann", password: "" };
    session.act(Tick::ZERO, Token(1), login, &mut fx);
    session.opened(Tick::ZERO, &mut fx);
    assert_eq!(wrote(&mut fx), ["GET /chat/?x=1&EIO=4&transport=polling"]);
    let open = format!(
        r#"0{{"sid":"a1","upgrades":[{upgrades}],"pingInterval":25000,"pingTimeout":20000}}"#
    );
    feed(&mut session, &mut fx, &answer("200 OK", &open));
    let post = "POST /chat/?x=1&EIO=4&transport=polling&sid=a1";
    assert_eq!(wrote(&mut fx), [post, "GET /chat/?x=1&EIO=4&transport=polling&sid=a1"]);
    feed(&mut session, &mut fx, &answer("200 OK", "ok"));
    feed(&mut session, &mut fx, &answer("200 OK", "40{\"sid\":\"b\"}"));
    assert_eq!(fx.events.remove(0), Event::Connected);
    (session, fx)
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn feed(session: &mut Box<dyn Session>, fx: &mut Effects, text: &str) {
    assert_eq!(session.receive(Tick(7), text.as_bytes(), fx), text.len());
}

/// Methods and paths of what was written.
fn wrote(fx: &mut Effects) -> Vec<String> {
    let text = String::from_utf8(std::mem::take(&mut fx.out)).unwrap();
    let lines = text.split("\r\n").filter_map(|line| line.strip_suffix(" HTTP/1.1"));
    // The body of a request stands right before the next one.
    let starts =
        lines.filter_map(|line| line.find("GET ").or(line.find("POST ")).map(|at| &line[at..]));
    starts.map(str::to_owned).collect()
}

fn fallback(detail: &str, sent: Tick) -> [Event; 3] {
    let fault = Fault::new(FaultClass::Upgrade, format!("stayed with polling: {detail}"));
    [
        Event::Asked(Measure::Upgrade, 1),
        Event::Answered { measure: Measure::Upgrade, sent, outcome: Err(fault) },
        Event::Done(Token(1), Ok(())),
    ]
}

#[test]
fn who_is_offered_no_websocket_stays_with_polling() {
    let (_, mut fx) = polling("", &[]);
    assert_eq!(fx.events, fallback("the target offers no WebSocket", Tick(7)));
    assert_eq!(wrote(&mut fx), ["GET /chat/?x=1&EIO=4&transport=polling&sid=a1"]);
}

#[test]
fn who_is_refused_the_upgrade_stays_with_polling() {
    let (mut session, mut fx) = polling("\"websocket\"", &[]);
    let upgrade = http::read_request(&fx.out).unwrap().unwrap();
    assert!(upgrade.upgrade.is_some());
    assert_eq!(wrote(&mut fx), ["GET /chat/?x=1&EIO=4&transport=websocket&sid=a1"]);
    feed(&mut session, &mut fx, &answer("400 Bad Request", "{\"code\":3}"));
    let detail = "the upgrade was refused with HTTP status 400: {\"code\":3}";
    assert_eq!(fx.events, fallback(detail, Tick(7)));
    assert_eq!(wrote(&mut fx), ["GET /chat/?x=1&EIO=4&transport=polling&sid=a1"]);
}

#[test]
fn a_refusal_that_closes_the_connection_is_a_fault() {
    let (mut session, mut fx) = polling("\"websocket\"", &[]);
    let answer = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    feed(&mut session, &mut fx, answer);
    let fault = fx.close.unwrap().unwrap_err();
    assert_eq!(fault.class, FaultClass::Upgrade, "{}", fault.detail);
}

#[test]
fn who_wants_polling_is_not_upgraded() {
    let (_, mut fx) = polling("\"websocket\"", &[("transport", "polling")]);
    assert_eq!(fx.events, [Event::Done(Token(1), Ok(()))]);
    assert_eq!(wrote(&mut fx), ["GET /chat/?x=1&EIO=4&transport=polling&sid=a1"]);
}

#[test]
fn options_are_checked() {
    let check = |pairs: &[(&str, &str)]| SocketIo.check(&options(pairs));
    assert_eq!(check(&[]), Ok(()));
    let all = [("eio", "3"), ("path", "/x/"), ("namespace", "/a"), ("query", "a=1&b=2")];
    assert_eq!(check(&all), Ok(()));
    for (name, value, words) in [
        ("transprot", "polling", "it has transport, eio"),
        ("transport", "pigeon", "upgrade, websocket, polling"),
        ("eio", "5", "4, 3"),
        ("path", "x", "begin with `/`"),
        ("path", "/a?b", "`query`"),
        ("namespace", "/a b", "part of a URL"),
        ("query", "a\r\nHost: b", "part of a URL"),
        ("dialect", "{\"jion\":1}", "no key `jion`"),
    ] {
        let why = check(&[(name, value)]).unwrap_err();
        assert!(why.contains(words), "{name}={value}: {why}");
    }
    let old = [("eio", "3"), ("dialect", "{\"auth\":{}}")];
    assert!(check(&old).unwrap_err().contains("`query`"));
}

#[test]
fn the_dialect_decides_what_is_echoed_and_stamped() {
    let manners = |dialect: &str| {
        let manners = SocketIo.manners(&options(&[("dialect", dialect)]));
        (manners.echo, manners.stamped_joins)
    };
    assert_eq!(manners("{}"), (false, false));
    assert_eq!(manners("{\"echo\":true}"), (true, false));
    assert_eq!(manners("{\"join\":{\"emit\":[\"j\",\"{status}\"]}}"), (false, true));
}

#[test]
fn over_polling_the_second_packet_waits_for_the_first_but_not_for_long() {
    let dialect = r#"{"typing":{"emit":"typing","done":"sent"},"read":{"emit":"read"}}"#;
    let (mut session, mut fx) = polling("", &[("transport", "polling"), ("dialect", dialect)]);
    wrote(&mut fx);
    let room = model::RoomName { id: 0, name: "live" };
    let (typing, read) = (Request::Typing { room }, Request::Read { room });
    session.act(Tick(10), Token(2), typing, &mut fx);
    assert_eq!(wrote(&mut fx).len(), 1);
    session.act(Tick(20), Token(3), read, &mut fx);
    assert_eq!(wrote(&mut fx).len(), 0, "a server that reads both at once closes the session");
    let wake = fx.wake.take().unwrap();
    assert_eq!(wake, Tick(100_000_020));
    session.wake(wake, &mut fx);
    assert_eq!(wrote(&mut fx).len(), 1);
    assert_eq!(fx.wake, Some(Tick(45_000_000_007)), "the heartbeat is not forgotten");
    session.act(wake, Token(4), typing, &mut fx);
    session.act(wake, Token(5), read, &mut fx);
    for body in ["433[]", "ok", "ok"] {
        feed(&mut session, &mut fx, &answer("200 OK", body));
    }
    let text = String::from_utf8(std::mem::take(&mut fx.out)).unwrap();
    let packets = "\r\n\r\n42[\"typing\"]\u{1e}425[\"read\"]GET ";
    assert!(text.contains(packets), "both in one request, and the poll behind: {text}");
    assert_eq!(fx.close, None);
}

/// What waits for its turn in a crowd of twenty thousand is small.
#[test]
fn an_idle_session_is_small() {
    let size = std::mem::size_of::<super::session::SocketIoSession>();
    assert!(size <= 256, "{size} bytes");
}
