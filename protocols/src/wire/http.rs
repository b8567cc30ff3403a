//! The HTTP/1.1 upgrade to WebSocket (RFC 6455 section 4), both ends, and small plain answers.
//!
//! Everything works on a byte slice: too few bytes are a value (`None`), never an error.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::deflate;

/// Longest head (request or status line with all header fields) that is read, in bytes.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Most header fields in one head.
pub const HEADERS_MAX: usize = 64;
/// How much of a refusal's body is kept for the report, in bytes.
pub const BODY_EXCERPT_BYTES_MAX: usize = 200;

const EXTENSIONS: &str = "sec-websocket-extensions";
/// RFC 6455 section 1.3.
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What went wrong in an upgrade, as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpError {
    /// The head is longer than [`HEAD_BYTES_MAX`] or has more than [`HEADERS_MAX`] fields.
    HeadTooLong,
    /// The bytes are not HTTP/1.1.
    Malformed(&'static str),
    /// The server answered with another status than 101.
    Refused {
        /// The status code.
        status: u16,
        /// What had arrived of the body, at most [`BODY_EXCERPT_BYTES_MAX`] bytes of it.
        body: String,
    },
    /// 101, but without `Upgrade: websocket` and `Connection: Upgrade`.
    NotWebSocket,
    /// `Sec-WebSocket-Accept` is missing or does not belong to our key.
    WrongAccept,
    /// The server chose a subprotocol we did not offer.
    WrongProtocol(String),
    /// The server switched on an extension, or a parameter of one, that we did not offer.
    UnwantedExtension,
    /// The server does not compress although we asked for it.
    NoDeflate,
    /// A path, host or header we were told to send would break the request apart.
    BadRequestPart(&'static str),
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpError::HeadTooLong => write!(f, "HTTP head above {HEAD_BYTES_MAX} bytes"),
            HttpError::Malformed(why) => write!(f, "not HTTP/1.1: {why}"),
            HttpError::Refused { status, body } if body.is_empty() => {
                write!(f, "upgrade refused with HTTP status {status}")
            }
            HttpError::Refused { status, body } => {
                write!(f, "upgrade refused with HTTP status {status}: {body}")
            }
            HttpError::NotWebSocket => write!(f, "HTTP 101 without an upgrade to websocket"),
            HttpError::WrongAccept => write!(f, "wrong or missing Sec-WebSocket-Accept"),
            HttpError::WrongProtocol(name) => {
                write!(f, "the server chose the subprotocol {name:?}, which was not offered")
            }
            HttpError::UnwantedExtension => {
                write!(f, "the server switched on a WebSocket extension that was not offered")
            }
            HttpError::NoDeflate => {
                write!(f, "the server does not agree to permessage-deflate, which was asked for")
            }
            HttpError::BadRequestPart(what) => {
                write!(f, "{what} holds a space, a line break or a control character")
            }
        }
    }
}

impl std::error::Error for HttpError {}

/// The client's request for an upgrade.
#[derive(Debug, Clone, Copy)]
pub struct UpgradeRequest<'a> {
    /// Path and query, e.g. `/ws?v=1`.
    pub path: &'a str,
    /// Host and, unless it is the default, port.
    pub host: &'a str,
    /// Further header fields, e.g. `("Origin", "http://localhost")`.
    pub headers: &'a [(&'a str, &'a str)],
    /// Subprotocols in order of preference.
    pub protocols: &'a [&'a str],
    /// 16 random bytes (RFC 6455 section 4.1), chosen by the caller.
    pub key: [u8; 16],
    /// Whether to ask for permessage-deflate (RFC 7692); a server without it is an error.
    pub deflate: bool,
}

impl UpgradeRequest<'_> {
    /// Appends the request to `out`; nothing is appended when a part is not fit to be sent.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), HttpError> {
        check_part("the path", self.path, false)?;
        check_part("the host", self.host, false)?;
        for protocol in self.protocols {
            check_part("a subprotocol", protocol, false)?;
        }
        for (name, value) in self.headers {
            check_part("a header name", name, false)?;
            check_part("a header value", value, true)?;
        }
        let key = STANDARD.encode(self.key);
        push(out, &["GET ", self.path, " HTTP/1.1\r\nHost: ", self.host, "\r\n"]);
        push(out, &["Upgrade: websocket\r\nConnection: Upgrade\r\n"]);
        push(out, &["Sec-WebSocket-Key: ", &key, "\r\nSec-WebSocket-Version: 13\r\n"]);
        if !self.protocols.is_empty() {
            push(out, &["Sec-WebSocket-Protocol: ", &self.protocols.join(", "), "\r\n"]);
        }
        if self.deflate {
            push(out, &["Sec-WebSocket-Extensions: ", deflate::EXTENSION, "\r\n"]);
        }
        for (name, value) in self.headers {
            push(out, &[name, ": ", value, "\r\n"]);
        }
        push(out, &["\r\n"]);
        Ok(())
    }

    /// Reads the server's answer to this request: `None` while bytes are missing.
    pub fn read_response<'b>(&self, buf: &'b [u8]) -> Result<Option<Accepted<'b>>, HttpError> {
        read_response(buf, self.key, self.protocols, self.deflate)
    }
}

/// A successful upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted<'a> {
    /// Bytes the head took; frames may follow at once.
    pub consumed: usize,
    /// The subprotocol the server chose.
    pub protocol: Option<&'a str>,
}

/// Reads the answer to an upgrade request made with `key`: `None` while bytes are missing.
pub fn read_response<'b>(
    buf: &'b [u8],
    key: [u8; 16],
    offered: &[&str],
    deflate: bool,
) -> Result<Option<Accepted<'b>>, HttpError> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let Some(consumed) = finish_head(buf, response.parse(head_of(buf)))? else { return Ok(None) };
    let status = response.code.unwrap_or(0);
    let headers = &*response.headers;
    if status != 101 {
        let body = &buf[consumed..buf.len().min(consumed + BODY_EXCERPT_BYTES_MAX)];
        return Err(HttpError::Refused { status, body: excerpt(body) });
    }
    if !has_token(headers, "upgrade", "websocket") || !has_token(headers, "connection", "upgrade") {
        return Err(HttpError::NotWebSocket);
    }
    let expected = accept_value(STANDARD.encode(key).as_bytes());
    if field(headers, "sec-websocket-accept") != Some(expected.as_str()) {
        return Err(HttpError::WrongAccept);
    }
    let mut extensions = fields_of(headers, EXTENSIONS).filter(|value| !value.is_empty());
    match (extensions.next(), extensions.next()) {
        (None, _) if deflate => return Err(HttpError::NoDeflate),
        (None, _) => {}
        (Some(value), None) if deflate && deflate::is_agreed(value) => {}
        _ => return Err(HttpError::UnwantedExtension),
    }
    let protocol = field(headers, "sec-websocket-protocol");
    match protocol {
        Some(name) if !offered.contains(&name) => {
            Err(HttpError::WrongProtocol(excerpt(name.as_bytes())))
        }
        _ => Ok(Some(Accepted { consumed, protocol })),
    }
}

/// The value of `Sec-WebSocket-Accept` for the base64 text of a key (RFC 6455 section 4.2.2).
pub fn accept_value(key_base64: &[u8]) -> String {
    let mut sha = sha1_smol::Sha1::new();
    sha.update(key_base64);
    sha.update(ACCEPT_SUFFIX);
    STANDARD.encode(sha.digest().bytes())
}

/// Why a server turns a request down; each has one status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 400: not HTTP/1.1, or a WebSocket handshake with a part missing.
    BadRequest(&'static str),
    /// 403: a page from elsewhere.
    Forbidden(&'static str),
    /// 404: no such path.
    NotFound,
    /// 405: another method than GET.
    MethodNotAllowed,
    /// 426: this path speaks WebSocket version 13 only.
    UpgradeRequired,
    /// 431: the head is too long.
    HeadTooLong,
    /// 503: full.
    Unavailable,
}

impl Refusal {
    /// The status code.
    pub fn status(self) -> u16 {
        match self {
            Refusal::BadRequest(_) => 400,
            Refusal::Forbidden(_) => 403,
            Refusal::NotFound => 404,
            Refusal::MethodNotAllowed => 405,
            Refusal::UpgradeRequired => 426,
            Refusal::HeadTooLong => 431,
            Refusal::Unavailable => 503,
        }
    }

    /// Appends the whole answer; the connection is to be closed after it.
    pub fn write(self, out: &mut Vec<u8>) {
        let headers: &[(&str, &str)] = match self {
            Refusal::MethodNotAllowed => &[("Allow", "GET")],
            Refusal::UpgradeRequired => {
                &[("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
            }
            Refusal::Unavailable => &[("Retry-After", "1")],
            _ => &[],
        };
        let detail = match self {
            Refusal::BadRequest(why) | Refusal::Forbidden(why) => why,
            _ => reason(self.status()),
        };
        let body = format!("{detail}\n");
        write_response(out, self.status(), headers, "text/plain; charset=utf-8", body.as_bytes());
    }
}

/// A request as a server reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// Bytes the head took.
    pub consumed: usize,
    /// Path without the query.
    pub path: &'a str,
    /// What the client has already: the value of `If-None-Match`.
    pub if_none_match: Option<&'a str>,
    /// The handshake, when the client asks for an upgrade to WebSocket.
    pub upgrade: Option<Handshake<'a>>,
}

/// The client's part of a WebSocket handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake<'a> {
    key_base64: &'a str,
    protocols: Option<&'a str>,
    /// The host, and perhaps port, that it was sent to.
    pub host: Option<&'a str>,
    /// Where the page comes from that asks (RFC 6454); who is no browser sends none.
    pub origin: Option<&'a str>,
    /// Whether the client offers permessage-deflate as we would have it.
    pub offers_deflate: bool,
}

impl<'a> Handshake<'a> {
    /// The subprotocols the client offers, in its order of preference.
    pub fn protocols(&self) -> impl Iterator<Item = &'a str> {
        self.protocols.unwrap_or("").split(',').map(str::trim).filter(|name| !name.is_empty())
    }

    /// Appends the 101 answer, without compression.
    pub fn accept(&self, out: &mut Vec<u8>, protocol: Option<&str>) {
        self.accept_with(out, protocol, false);
    }

    /// Appends the 101 answer; `deflate` agrees to an offer of compression.
    pub fn accept_with(&self, out: &mut Vec<u8>, protocol: Option<&str>, deflate: bool) {
        debug_assert!(self.offers_deflate || !deflate);
        let accept = accept_value(self.key_base64.as_bytes());
        push(out, &["HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"]);
        push(out, &["Connection: Upgrade\r\nSec-WebSocket-Accept: ", &accept, "\r\n"]);
        if let Some(name) = protocol {
            push(out, &["Sec-WebSocket-Protocol: ", name, "\r\n"]);
        }
        if deflate {
            push(out, &["Sec-WebSocket-Extensions: ", deflate::EXTENSION, "\r\n"]);
        }
        push(out, &["\r\n"]);
    }
}

/// Reads a client's request: `None` while bytes are missing.
pub fn read_request(buf: &[u8]) -> Result<Option<RequestHead<'_>>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let parsed = finish_head(buf, request.parse(head_of(buf))).map_err(|error| match error {
        HttpError::Malformed(why) => Refusal::BadRequest(why),
        _ => Refusal::HeadTooLong,
    })?;
    let Some(consumed) = parsed else { return Ok(None) };
    if request.method != Some("GET") {
        return Err(Refusal::MethodNotAllowed);
    }
    let target = request.path.unwrap_or("/");
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let if_none_match = field(request.headers, "if-none-match");
    let upgrade = read_handshake(request.headers)?;
    Ok(Some(RequestHead { consumed, path, if_none_match, upgrade }))
}

fn read_handshake<'a>(headers: &[httparse::Header<'a>]) -> Result<Option<Handshake<'a>>, Refusal> {
    if !has_token(headers, "upgrade", "websocket") || !has_token(headers, "connection", "upgrade") {
        return Ok(None);
    }
    if field(headers, "sec-websocket-version") != Some("13") {
        return Err(Refusal::UpgradeRequired);
    }
    let key = field(headers, "sec-websocket-key").unwrap_or("");
    if STANDARD.decode(key).map(|bytes| bytes.len()) != Ok(16) {
        return Err(Refusal::BadRequest("Sec-WebSocket-Key is not 16 bytes of base64"));
    }
    let protocols = field(headers, "sec-websocket-protocol");
    let mut origins = fields_of(headers, "origin");
    let origin = origins.next();
    if origins.next().is_some() {
        return Err(Refusal::BadRequest("more than one Origin"));
    }
    let host = field(headers, "host");
    let offers_deflate = fields_of(headers, EXTENSIONS).any(deflate::is_offered);
    Ok(Some(Handshake { key_base64: key, protocols, host, origin, offers_deflate }))
}

/// Appends a whole answer with a body; the connection is to be closed after it.
pub fn write_response(
    out: &mut Vec<u8>,
    status: u16,
    headers: &[(&str, &str)],
    content_type: &str,
    body: &[u8],
) {
    push(out, &["HTTP/1.1 ", &status.to_string(), " ", reason(status), "\r\n"]);
    for (name, value) in headers {
        push(out, &[name, ": ", value, "\r\n"]);
    }
    // A 304 has no body, and its length would be that of the body it stands for (RFC 9110 15.4.5).
    if status != 304 {
        push(out, &["Content-Type: ", content_type, "\r\n"]);
        push(out, &["Content-Length: ", &body.len().to_string(), "\r\n"]);
    }
    push(out, &["Connection: close\r\n\r\n"]);
    out.extend_from_slice(body);
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        426 => "Upgrade Required",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}

/// The part of the buffer in which a head must end.
fn head_of(buf: &[u8]) -> &[u8] {
    &buf[..buf.len().min(HEAD_BYTES_MAX)]
}

fn finish_head(buf: &[u8], parsed: httparse::Result<usize>) -> Result<Option<usize>, HttpError> {
    match parsed {
        Ok(httparse::Status::Complete(consumed)) => Ok(Some(consumed)),
        Ok(httparse::Status::Partial) if buf.len() >= HEAD_BYTES_MAX => Err(HttpError::HeadTooLong),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(HttpError::HeadTooLong),
        Err(error) => Err(HttpError::Malformed(malformed(error))),
    }
}

fn malformed(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "bad header name",
        httparse::Error::HeaderValue => "bad header value",
        httparse::Error::NewLine => "bad line ending",
        httparse::Error::Status => "bad status line",
        httparse::Error::Token => "bad request line",
        httparse::Error::Version => "bad HTTP version",
        httparse::Error::TooManyHeaders => "too many headers",
    }
}

fn field<'a>(headers: &[httparse::Header<'a>], name: &str) -> Option<&'a str> {
    fields_of(headers, name).next()
}

/// The values of a field, in each of its occurrences; one that is not UTF-8 reads as a question
/// mark, which is the value of no field here.
fn fields_of<'h, 'a>(
    headers: &'h [httparse::Header<'a>],
    name: &'h str,
) -> impl Iterator<Item = &'a str> + 'h {
    let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    named.map(|header| std::str::from_utf8(header.value).unwrap_or("?").trim())
}

/// Whether a comma-separated field holds `token`, in any of its occurrences.
fn has_token(headers: &[httparse::Header<'_>], name: &str, token: &str) -> bool {
    headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case(name))
        .filter_map(|header| std::str::from_utf8(header.value).ok())
        .flat_map(|value| value.split(','))
        .any(|item| item.trim().eq_ignore_ascii_case(token))
}

fn check_part(what: &'static str, text: &str, spaces: bool) -> Result<(), HttpError> {
    let fits = |byte: u8| byte > b' ' && byte != 0x7f || spaces && (byte == b' ' || byte == b'\t');
    if text.bytes().all(fits) { Ok(()) } else { Err(HttpError::BadRequestPart(what)) }
}

/// Foreign bytes as one printable line.
fn excerpt(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(BODY_EXCERPT_BYTES_MAX)];
    let text = String::from_utf8_lossy(bytes);
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn push(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
#[allow(clippy::type_complexity)] // the rows of a table explain its type
#[path = "http_tests.rs"]
mod tests;
