//! The body of a plain HTTP answer (RFC 9112), within bounds of time and size.

use crate::clock::Clock;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest head of an answer, bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long a read or write waits before the deadline is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A request for a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// Who is asked.
    pub(crate) address: SocketAddr,
    /// The `Host` field.
    pub(crate) authority: &'a str,
    /// Path and query, ready to be sent.
    pub(crate) path: &'a str,
    /// The whole answer must be there in this time.
    pub(crate) within: Duration,
    /// Longest body, bytes.
    pub(crate) body_bytes_max: usize,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Its status code.
    pub(crate) status: u16,
    /// Its body.
    pub(crate) body: Vec<u8>,
}

/// Asks once. Ends early, as a failure, when `is_wanted` no longer holds. The error says what went
/// wrong, without saying whom.
pub(crate) fn get(
    request: Request<'_>,
    clock: &Clock,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Answer, String> {
    if !request.path.bytes().chain(request.authority.bytes()).all(|b| b.is_ascii_graphic()) {
        return Err("its address holds a space or a control character".into());
    }
    if !is_wanted() {
        return Err("nobody wants to know any more".into());
    }
    let deadline = clock.now() + request.within;
    let mut stream = TcpStream::connect_timeout(&request.address, request.within)
        .map_err(|error| format!("cannot connect: {error}"))?;
    let patient = stream
        .set_read_timeout(Some(LOOK_EVERY))
        .and_then(|()| stream.set_write_timeout(Some(request.within)));
    // Version 1.0: no body in pieces, no connection that is kept.
    let text = format!(
        "GET {} HTTP/1.0\r\nHost: {}\r\nAccept: text/plain;version=0.0.4, */*\r\n\
         User-Agent: throng\r\nConnection: close\r\n\r\n",
        request.path, request.authority
    );
    patient
        .and_then(|()| stream.write_all(text.as_bytes()))
        .map_err(|error| format!("cannot ask: {error}"))?;
    let is_time = || clock.now() < deadline && is_wanted();
    let answer = read(&mut stream, request.body_bytes_max, &is_time)?;
    take_apart(&answer, request.body_bytes_max)
}

/// Everything that is said, up to the end, to the length that was announced, or to the bound.
fn read(
    stream: &mut impl Read,
    body_bytes_max: usize,
    is_time: &dyn Fn() -> bool,
) -> Result<Vec<u8>, String> {
    let (mut answer, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    let mut whole = usize::MAX;
    while answer.len() < whole.min(HEAD_BYTES_MAX + body_bytes_max + 1) {
        if !is_time() {
            return Err("no whole answer in time".into());
        }
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&buffer[..length]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => return Err(format!("the answer broke off: {error}")),
            },
        }
        if whole == usize::MAX
            && let Some(head) = head_end(&answer)
            && let Some(length) = field(&answer[..head], "content-length")
        {
            let length = length.parse().map_err(|_| "its Content-Length is no length")?;
            whole = head.saturating_add(length);
        }
        if head_end(&answer).is_none() && answer.len() > HEAD_BYTES_MAX {
            return Err(format!("the head of the answer is longer than {HEAD_BYTES_MAX} bytes"));
        }
    }
    if whole != usize::MAX && whole < HEAD_BYTES_MAX + body_bytes_max && answer.len() < whole {
        return Err("the answer broke off".into());
    }
    answer.truncate(whole);
    Ok(answer)
}

fn take_apart(answer: &[u8], body_bytes_max: usize) -> Result<Answer, String> {
    let end = head_end(answer).ok_or("the answer is not HTTP")?;
    let (head, body) = answer.split_at(end);
    let text = std::str::from_utf8(head).map_err(|_| "the answer is not HTTP")?;
    let mut words = text.split_ascii_whitespace();
    let version = words.next().filter(|version| version.starts_with("HTTP/1."));
    let status = words.next().and_then(|status| status.parse().ok());
    let (Some(_), Some(status)) = (version, status) else {
        return Err("the answer is not HTTP".into());
    };
    let is_chunked = field(head, "transfer-encoding").is_some_and(|how| how.contains("chunked"));
    let body = if is_chunked { unchunk(body) } else { body.to_vec() };
    if body.len() > body_bytes_max {
        return Err(format!("the answer is longer than {} KiB", body_bytes_max >> 10));
    }
    Ok(Answer { status, body })
}

/// Where the body begins.
fn head_end(answer: &[u8]) -> Option<usize> {
    let searched = &answer[..answer.len().min(HEAD_BYTES_MAX)];
    searched.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// The value of a field of a head.
fn field(head: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let mut values = pairs.filter(|(found, _)| found.trim().eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim().to_ascii_lowercase())
}

/// A body that comes in pieces although nobody allowed it; one that breaks off ends there.
fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let Some(end) = body.windows(2).position(|two| two == b"\r\n") else { return whole };
        let size = std::str::from_utf8(&body[..end]).ok();
        let size = size.and_then(|line| line.split(';').next());
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let rest = &body[end + 2..];
        match size {
            Some(size) if size > 0 && size <= rest.len() => {
                whole.extend_from_slice(&rest[..size]);
                body = rest.get(size + 2..).unwrap_or_default();
            }
            _ => return whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, want: Result<(u16, &str), &str>) {
        let got = read(&mut answer.as_bytes(), 64, &|| true)
            .and_then(|answer| take_apart(&answer, 64))
            .map(|answer| (answer.status, String::from_utf8(answer.body).unwrap()));
        match want {
            Ok((status, body)) => assert_eq!(got, Ok((status, body.to_owned())), "{answer}"),
            Err(why) => assert!(got.as_ref().is_err_and(|e| e.contains(why)), "{answer}: {got:?}"),
        }
    }

    #[test]
    fn answers_are_taken_apart() {
        check("HTTP/1.0 200 OK\r\n\r\nhello", Ok((200, "hello")));
        check("HTTP/1.1 404 Not Found\r\n\r\n", Ok((404, "")));
        check("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhello", Ok((200, "hel")));
        check("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", Err("broke off"));
        check("HTTP/1.1 200 OK\r\nContent-Length: -9\r\n\r\nhello", Err("no length"));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
        check(
            &format!("{chunked}3;x=y\r\nhel\r\nA\r\nlo, people\r\n0\r\n\r\n"),
            Ok((200, "hello, people")),
        );
        check(&format!("{chunked}3\r\nhel\r\nffff\r\nlo"), Ok((200, "hel")));
        check(&format!("{chunked}junk"), Ok((200, "")));
        check("SSH-2.0-OpenSSH\r\n\r\n", Err("not HTTP"));
        check("", Err("not HTTP"));
        check("HTTP/1.0 200 OK\r\n", Err("not HTTP"));
        check(&format!("HTTP/1.0 200 OK\r\n\r\n{}", "x".repeat(65)), Err("longer than"));
        check(&format!("HTTP/1.0 200 OK\r\n\r\n{}", "x".repeat(99_999)), Err("longer than"));
        check(&format!("HTTP/1.0 200 OK\r\na: {}", "x".repeat(99_999)), Err("head"));
        let huge = "HTTP/1.0 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
        check(&format!("{huge}{}", "x".repeat(99_999)), Err("longer than"));
    }

    #[test]
    fn nobody_waits_for_ever() {
        let silent = std::io::repeat(b'x').take(5);
        let looks = std::cell::Cell::new(0);
        let is_time = || {
            looks.set(looks.get() + 1);
            looks.get() < 3
        };
        struct Deaf;
        impl Read for Deaf {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(ErrorKind::WouldBlock.into())
            }
        }
        assert!(read(&mut silent.chain(Deaf), 64, &is_time).unwrap_err().contains("in time"));
        assert_eq!(looks.get(), 3);
    }
}
