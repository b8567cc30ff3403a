//! HTTP/1.1 as long polling uses it: requests that keep the connection, and their whole answers.

use crate::wire::http::{HEAD_BYTES_MAX, HEADERS_MAX};
use model::{Endpoint, Fault, FaultClass};
use std::borrow::Cow;

/// Most digits of a chunk's length.
const CHUNK_DIGITS_MAX: usize = 8;

/// A whole answer.
#[derive(Debug, PartialEq)]
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) body: Cow<'a, [u8]>,
    /// Whether the connection can be used for another request.
    pub(super) keeps: bool,
}

/// The status of the answer that begins here, once its head is whole.
pub(super) fn status(bytes: &[u8]) -> Result<Option<u16>, Fault> {
    Ok(head(bytes)?.map(|head| head.status))
}

/// Reads a whole answer of at most `bytes_max` bytes; also says how many it took.
pub(super) fn read(bytes: &[u8], bytes_max: usize) -> Result<Option<(Answer<'_>, usize)>, Fault> {
    let Some(head) = head(bytes)? else { return Ok(None) };
    let body_max = bytes_max.saturating_sub(head.length);
    let too_large = || {
        Fault::new(FaultClass::TooLarge, format!("an HTTP answer of more than {bytes_max} bytes"))
    };
    let rest = &bytes[head.length..];
    let (body, used) = match head.size {
        Size::Known(size) if size > body_max as u64 => return Err(too_large()),
        Size::Known(size) => match rest.get(..size as usize) {
            Some(body) => (Cow::Borrowed(body), size as usize),
            None => return Ok(None),
        },
        Size::Chunks => {
            match chunks(rest, body_max).map_err(|why| why.unwrap_or_else(too_large))? {
                Some((body, used)) => (Cow::Owned(body), used),
                // Lengths of chunks may take more bytes than the chunks.
                None if rest.len() > body_max => return Err(too_large()),
                None => return Ok(None),
            }
        }
    };
    Ok(Some((Answer { status: head.status, body, keeps: head.keeps }, head.length + used)))
}

enum Size {
    Known(u64),
    Chunks,
}

struct Head {
    length: usize,
    status: u16,
    size: Size,
    keeps: bool,
}

fn head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    let wrong = |why: String| Fault::new(FaultClass::Upgrade, why);
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let cut = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
    let length = match response.parse(cut) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(wrong(format!("an HTTP head above {HEAD_BYTES_MAX} bytes")));
        }
        Err(error) => return Err(wrong(format!("not HTTP/1.1: {error}"))),
    };
    let value = |name: &str| {
        let mut fields = response.headers.iter();
        let field = fields.find(|field| field.name.eq_ignore_ascii_case(name))?;
        Some(str::from_utf8(field.value).unwrap_or("?").trim())
    };
    let is_chunked = value("transfer-encoding").map(|v| v.eq_ignore_ascii_case("chunked"));
    let size = match (is_chunked, value("content-length").map(str::parse)) {
        (Some(true), None) => Size::Chunks,
        (None, Some(Ok(size))) => Size::Known(size),
        (None, None) => Size::Known(0),
        _ => return Err(wrong("an HTTP answer without a length that can be read".into())),
    };
    let closes = value("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let keeps = !closes && response.version == Some(1);
    Ok(Some(Head { length, status: response.code.unwrap_or(0), size, keeps }))
}

/// A body in chunks (RFC 9112 section 7.1), without trailers. An error without words: too large.
fn chunks(bytes: &[u8], body_max: usize) -> Result<Option<(Vec<u8>, usize)>, Option<Fault>> {
    let wrong = || Some(Fault::new(FaultClass::Protocol, "chunks whose lengths are wrong"));
    let (mut at, mut body) = (0, Vec::new());
    loop {
        let rest = &bytes[at..];
        let window = &rest[..rest.len().min(CHUNK_DIGITS_MAX + 2)];
        let Some(end) = memchr::memmem::find(window, b"\r\n") else {
            return if window.len() > CHUNK_DIGITS_MAX + 1 { Err(wrong()) } else { Ok(None) };
        };
        let digits = str::from_utf8(&window[..end]).map_err(|_| wrong())?;
        let size = usize::from_str_radix(digits, 16).map_err(|_| wrong())?;
        if body.len() + size > body_max {
            return Err(None);
        }
        let data = at + end + 2;
        let Some(chunk) = bytes.get(data..data + size + 2) else { return Ok(None) };
        let chunk = chunk.strip_suffix(b"\r\n").ok_or_else(wrong)?;
        body.extend_from_slice(chunk);
        at = data + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

/// Appends a request of long polling: a GET, or a POST if there is a body.
pub(super) fn write(endpoint: &Endpoint, path: &str, body: Option<&[u8]>, out: &mut Vec<u8>) {
    let method = if body.is_some() { "POST" } else { "GET" };
    let host = endpoint.authority();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n");
    out.extend_from_slice(head.as_bytes());
    if let Some(body) = body {
        let length = body.len();
        let fields =
            format!("Content-Type: text/plain;charset=UTF-8\r\nContent-Length: {length}\r\n");
        out.extend_from_slice(fields.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_or_not_at_all() {
        let rows: &[(&str, u16, &str, bool)] = &[
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true),
            ("HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n", 400, "", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", false),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
                200,
                "abc0123456789",
                true,
            ),
        ];
        for (text, status, body, keeps) in rows {
            let bytes = text.as_bytes();
            for cut in 0..bytes.len() {
                assert_eq!(read(&bytes[..cut], 200), Ok(None), "{text:?} cut at {cut}");
            }
            let glued = [bytes, b"HTTP/1.1"].concat();
            let (answer, used) = read(&glued, 200).unwrap().unwrap();
            assert_eq!((answer.status, used, answer.keeps), (*status, bytes.len(), *keeps));
            assert_eq!(&*answer.body, body.as_bytes());
        }
    }

    #[test]
    fn answers_without_measure_are_refused() {
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_BYTES_MAX));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let rows = [
            ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), FaultClass::Upgrade),
            (endless, FaultClass::Upgrade),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".into(), FaultClass::Upgrade),
            ("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n".into(), FaultClass::TooLarge),
            (format!("{chunked}65\r\n"), FaultClass::TooLarge),
            (format!("{chunked}fffffffffff"), FaultClass::Protocol),
            (format!("{chunked}x\r\n"), FaultClass::Protocol),
            (format!("{chunked}1\r\nabc"), FaultClass::Protocol),
            (format!("{chunked}{}", "1\r\na\r\n".repeat(60)), FaultClass::TooLarge),
        ];
        for (text, class) in rows {
            let fault = read(text.as_bytes(), 100).unwrap_err();
            assert_eq!(fault.class, class, "{text:.60} {}", fault.detail);
        }
    }
}
