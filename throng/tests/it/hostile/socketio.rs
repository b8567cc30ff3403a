//! Socket.IO that is refused, garbled, endless or silent.

use super::*;

const OPEN: &str =
    r#"0{"sid":"a1","upgrades":["websocket"],"pingInterval":25000,"pingTimeout":20000}"#;

/// Greets as Engine.IO does, lets the person into the namespace, and says something then.
fn entered(mut stream: TcpStream, bytes: &[u8]) {
    upgraded(&mut stream);
    let _ = stream.write_all(&[text(OPEN), text("40{}")].concat());
    say(stream, bytes);
}

/// Answers the polls, each with the next of these bodies, and then with what is no poll's answer.
fn polled(mut stream: TcpStream, bodies: &[&str], last: &str) {
    let mut heads = 0;
    let (mut inbox, mut buffer) = (Vec::new(), [0; 4096]);
    while heads < bodies.len() + 1 {
        let length = stream.read(&mut buffer).unwrap_or(0);
        if length == 0 {
            return;
        }
        inbox.extend_from_slice(&buffer[..length]);
        let seen = inbox.windows(4).filter(|bytes| bytes == b"\r\n\r\n").count();
        for body in bodies.iter().take(seen).skip(heads) {
            let length = body.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
            let _ = stream.write_all(answer.as_bytes());
        }
        heads = seen;
    }
    say(stream, last.as_bytes());
}

/// What is hostile to Socket.IO in particular.
pub(super) const ROWS: &[Row] = &[
    row(
        "a refused handshake",
        Does(|s| polled(s, &[], "HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\nno thanks")),
        ["", "upgrade", "HTTP status 400: no thanks"],
    )
    .spoken("ws socketio polling"),
    row(
        "a poll without end",
        Does(|s| polled(s, &[], "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")),
        ["", "too-large", "an HTTP answer of more than"],
    )
    .spoken("ws socketio polling"),
    row(
        "a refused upgrade",
        Does(|s| {
            polled(
                s,
                &[OPEN, "ok", "40{}"],
                "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            );
        }),
        ["", "upgrade", "the upgrade was refused with HTTP status 400"],
    )
    .spoken("ws socketio upgrade"),
    row(
        "no word after the handshake",
        Does(|s| polled(s, &[OPEN], "")),
        ["login", "login-timeout", "`login` was not answered"],
    )
    .spoken("ws socketio polling")
    .limits(", login: 300ms"),
    row(
        "garbage for a handshake",
        Does(|s| after_upgrade(s, &text("0{{{{"))),
        ["", "protocol", "a handshake that is none"],
    )
    .spoken("ws socketio websocket"),
    row(
        "a name that leaves the URL",
        Does(|s| after_upgrade(s, &text(&OPEN.replace("a1", "a1 HTTP/1.1\\r\\nX: y")))),
        ["", "protocol", "fits into no URL"],
    )
    .spoken("ws socketio websocket"),
    row(
        "a namespace that is closed",
        Does(|mut s| {
            upgraded(&mut s);
            say(s, &[text(OPEN), text("44{\"message\":\"full\"}")].concat());
        }),
        ["", "login-refused", "full"],
    )
    .spoken("ws socketio websocket"),
    row(
        "parts without end",
        Does(|s| entered(s, &text("4599999-[\"x\"]"))),
        ["", "protocol", "too many parts"],
    )
    .spoken("ws socketio websocket"),
    row(
        "a frame of 1 GiB",
        Does(|s| entered(s, &[0x81, 127, 0, 0, 0, 0, 0x40, 0, 0, 0])),
        ["", "too-large", ""],
    )
    .spoken("ws socketio websocket"),
    row("a good-bye", Does(|s| entered(s, &text("41"))), ["", "closed", "disconnected"])
        .spoken("ws socketio websocket"),
    row(
        "a heartbeat that stops",
        Does(|mut s| {
            upgraded(&mut s);
            let open = OPEN.replace("25000", "100").replace("20000", "100");
            say(s, &[text(&open), text("40{}")].concat());
        }),
        ["", "request-timeout", "no heartbeat of the target"],
    )
    .spoken("ws socketio websocket"),
];
