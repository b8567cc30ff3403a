//! Requests over HTTP before the WebSocket: written, and their answers read (RFC 9112).

use super::compile::{HttpSource, HttpStep};
use super::json;
use super::piece::{Blanks, Piece, write};
use crate::wire::http::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::wire::printable;
use model::{Endpoint, Fault, FaultClass};

/// Longest thing kept of an answer, bytes.
pub(super) const KEPT_BYTES_MAX: usize = 8 << 10;
/// Largest answer over HTTP, bytes; less if frames may not be as large.
pub(super) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a chunk's head (RFC 9112 section 7.1).
const CHUNK_HEAD_BYTES_MAX: usize = 256;

/// An answer.
pub(super) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Appends a request. The connection serves no second one.
pub(super) fn ask(
    step: &HttpStep,
    endpoint: &Endpoint,
    blanks: &Blanks<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut head = Vec::new();
    head.extend_from_slice(step.method.as_bytes());
    head.push(b' ');
    let start = head.len();
    write(&step.path, blanks, &mut head);
    let is_fit = |text: &[u8]| text.iter().all(|&byte| byte > b' ' && byte != 0x7f);
    if !is_fit(&head[start..]) || !step.headers.iter().all(|(name, _)| is_fit(name.as_bytes())) {
        return Err(refusal("a path or header's name with a space in it cannot be sent".into()));
    }
    let host = endpoint.authority();
    head.extend_from_slice(format!(" HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n").as_bytes());
    head.extend_from_slice(b"Connection: close\r\n");
    for (name, value) in &step.headers {
        let value = text(value, blanks)?;
        head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    let mut body = Vec::new();
    if let Some((kind, pieces)) = &step.body {
        write(pieces, blanks, &mut body);
        head.extend_from_slice(format!("Content-Type: {kind}\r\n").as_bytes());
    }
    if step.method != "GET" || !body.is_empty() {
        head.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    out.append(&mut head);
    out.append(&mut body);
    Ok(())
}

/// The text of a header; what would end it early is refused.
pub(super) fn text(pieces: &[Piece], blanks: &Blanks<'_>) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    write(pieces, blanks, &mut bytes);
    let text = String::from_utf8(bytes).unwrap_or_default();
    match text.chars().any(char::is_control) {
        true => Err(refusal("a header with a line break in it cannot be sent".into())),
        false => Ok(text),
    }
}

fn refusal(detail: String) -> Fault {
    Fault::new(FaultClass::LoginRefused, detail)
}

fn broken(why: &str) -> Fault {
    Fault::new(FaultClass::Protocol, format!("login over HTTP: {why}"))
}

/// Reads an answer: `None` while bytes are missing.
pub(super) fn read(bytes: &[u8], bytes_max: usize) -> Result<Option<Answer>, Fault> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let start = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let used = match response.parse(start) {
        Ok(httparse::Status::Complete(used)) => used,
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_BYTES_MAX => {
            return Err(broken("a head without end"));
        }
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(broken(&format!("no HTTP: {error}"))),
    };
    let status = response.code.unwrap_or(0);
    let pair = |field: &httparse::Header<'_>| {
        (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).trim().to_owned())
    };
    let headers: Vec<(String, String)> = response.headers.iter().map(pair).collect();
    let value = |name: &str| {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    let rest = &bytes[used..];
    let body = if value("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        match unchunk(rest, bytes_max)? {
            Some(body) => body,
            None => return Ok(None),
        }
    } else if let Some(length) = value("content-length") {
        let length: usize = length.parse().map_err(|_| broken("a length that is none"))?;
        if length > bytes_max {
            return Err(too_large(bytes_max));
        }
        match rest.get(..length) {
            Some(body) => body.to_vec(),
            None => return Ok(None),
        }
    } else if matches!(status, 204 | 304) {
        Vec::new()
    } else {
        return Err(broken("an answer that does not tell its length"));
    };
    Ok(Some(Answer { status, headers, body }))
}

fn too_large(bytes_max: usize) -> Fault {
    let detail = format!("login over HTTP: an answer above {bytes_max} bytes");
    Fault::new(FaultClass::TooLarge, detail)
}

/// The body of a chunked answer.
fn unchunk(mut rest: &[u8], bytes_max: usize) -> Result<Option<Vec<u8>>, Fault> {
    let mut body = Vec::new();
    loop {
        let window = &rest[..rest.len().min(CHUNK_HEAD_BYTES_MAX)];
        let Some(end) = memchr::memmem::find(window, b"\r\n") else {
            return match rest.len() >= CHUNK_HEAD_BYTES_MAX {
                true => Err(broken("a chunk without a length")),
                false => Ok(None),
            };
        };
        let size = rest[..end].split(|&byte| byte == b';').next().unwrap_or(&[]);
        let size = std::str::from_utf8(size).ok().map(str::trim);
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or_else(|| broken("a chunk without a length"))?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Ok(Some(body));
        }
        if size > bytes_max || body.len() + size > bytes_max {
            return Err(too_large(bytes_max));
        }
        let Some((chunk, behind)) = rest.split_at_checked(size + 2) else { return Ok(None) };
        if !chunk.ends_with(b"\r\n") {
            return Err(broken("a chunk longer than it said"));
        }
        body.extend_from_slice(&chunk[..size]);
        rest = behind;
    }
}

impl Answer {
    /// Whether it is what the step wants; if not, the fault tells what it was.
    pub(super) fn check(&self, step: &HttpStep) -> Result<(), Fault> {
        let is_fine = match step.status {
            0 => (200..300).contains(&self.status),
            wanted => self.status == wanted,
        };
        if is_fine {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&self.body);
        let detail = format!("HTTP status {}: {}", self.status, printable(&body));
        let class = match self.status {
            500.. => FaultClass::Upgrade,
            _ => FaultClass::LoginRefused,
        };
        Err(Fault::new(class, detail))
    }

    /// What is kept of it.
    pub(super) fn keep(&self, step: &HttpStep, kept: &mut [Box<str>]) -> Result<(), Fault> {
        for (at, source) in &step.keep {
            let (found, what) = match source {
                HttpSource::Body(keys) => {
                    (json::find(&self.body, keys).map(|found| found.text()), keys.join("."))
                }
                HttpSource::Header(name) => (self.header(name), format!("header {name}")),
                HttpSource::Cookie(name) => (self.cookie(name), format!("cookie {name}")),
            };
            let found = found.filter(|text| !text.is_empty() && text.len() <= KEPT_BYTES_MAX);
            let found = found.ok_or_else(|| {
                refusal(format!("the answer has no `{what}` to keep, or one that is too long"))
            })?;
            if let Some(place) = kept.get_mut(usize::from(*at)) {
                *place = found.into();
            }
        }
        Ok(())
    }

    fn header(&self, name: &str) -> Option<String> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.clone())
    }

    fn cookie(&self, name: &str) -> Option<String> {
        let set = self.headers.iter().filter(|(known, _)| known == "set-cookie");
        let mut pairs = set.filter_map(|(_, value)| value.split(';').next()?.split_once('='));
        pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(answer: &str) -> Result<Option<String>, FaultClass> {
        // However it is torn, it is the same.
        for end in 0..answer.len() {
            if let Err(fault) = read(&answer.as_bytes()[..end], 20) {
                return Err(fault.class);
            }
        }
        match read(answer.as_bytes(), 20) {
            Ok(answer) => Ok(answer.map(|a| String::from_utf8(a.body).unwrap())),
            Err(fault) => Err(fault.class),
        }
    }

    #[test]
    fn answers_are_read_within_bounds() {
        let ok = |text: &str| Ok(Some(text.to_owned()));
        let head = "HTTP/1.1 200 OK\r\n";
        let cases = [
            ("Content-Length: 2\r\n\r\nhi", ok("hi")),
            ("Content-Length: 0\r\n\r\n", ok("")),
            ("Content-Length: 3\r\n\r\nhi", Ok(None)),
            ("Content-Length: 21\r\n\r\n", Err(FaultClass::TooLarge)),
            ("Content-Length: -1\r\n\r\n", Err(FaultClass::Protocol)),
            ("\r\n", Err(FaultClass::Protocol)),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1;x=y\r\n!\r\n0\r\n\r\n", ok("hi!")),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\nhi", Ok(None)),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\nhi!!\r\n", Err(FaultClass::Protocol)),
            ("Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", Err(FaultClass::TooLarge)),
            ("Transfer-Encoding: chunked\r\n\r\nxyz\r\n", Err(FaultClass::Protocol)),
        ];
        for (rest, expect) in cases {
            assert_eq!(body(&format!("{head}{rest}")), expect, "{rest}");
        }
        assert_eq!(body("SSH-2.0-x\r\n"), Err(FaultClass::Protocol));
        let endless = format!("{head}x: {}", "y".repeat(HEAD_BYTES_MAX));
        assert!(read(endless.as_bytes(), 20).is_err());
    }
}
