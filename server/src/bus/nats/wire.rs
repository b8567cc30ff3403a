//! The protocol of NATS as far as a client hears and says it, without I/O.
//!
//! <https://docs.nats.io/reference/reference-protocols/nats-protocol>. What arrives is bounded: a
//! line, headers and a payload each have a longest size.

use std::fmt;

/// Longest control line but INFO's, in bytes.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Longest INFO, in bytes: a big cluster lists its servers in it.
const INFO_BYTES_MAX: usize = 256 * 1024;
/// Largest message, headers and all, in bytes: eight times what servers allow by default.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
const END: &[u8] = b"\r\n";

/// What a server says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    /// About itself, as JSON.
    Info(&'a [u8]),
    Message(Message<'a>),
    Ping,
    Pong,
    Ok,
    /// Something was wrong; mostly the end follows.
    Error(&'a str),
}

/// A message of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) subject: &'a str,
    /// Which subscription it is for.
    pub(crate) sid: u64,
    /// Where an answer goes; empty if none is wanted.
    pub(crate) reply: &'a str,
    /// As they travel, the line `NATS/1.0…` first; empty if there are none.
    pub(crate) headers: &'a str,
    pub(crate) payload: &'a [u8],
}

impl Message<'_> {
    /// The status in the first line of the headers: 100 for control, 503 if nobody listens.
    pub(crate) fn status(&self) -> Option<(u16, &str)> {
        let line = self.headers.lines().next()?.strip_prefix("NATS/1.0")?.trim();
        let (code, text) = line.split_once(' ').unwrap_or((line, ""));
        Some((code.parse().ok()?, text.trim()))
    }

    /// The first header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.headers.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut found = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }
}

/// What is no NATS, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotNats(&'static str);

impl fmt::Display for NotNats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it does not speak NATS: {}", self.0)
    }
}

/// The first whole operation, and how many bytes it takes.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Op<'_>, usize)>, NotNats> {
    let line_max = if bytes.starts_with(b"INFO") { INFO_BYTES_MAX } else { LINE_BYTES_MAX };
    let searched = &bytes[..bytes.len().min(line_max)];
    let Some(length) = searched.windows(END.len()).position(|two| two == END) else {
        return match bytes.len() >= line_max {
            true => Err(NotNats("a line is too long")),
            false => Ok(None),
        };
    };
    let line = std::str::from_utf8(&bytes[..length]).map_err(|_| NotNats("a line is no text"))?;
    let (used, rest) = (length + END.len(), &bytes[length + END.len()..]);
    let (word, args) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let op = match word.to_ascii_uppercase().as_str() {
        "MSG" => return message(args, false, rest, used),
        "HMSG" => return message(args, true, rest, used),
        "INFO" => Op::Info(args.trim().as_bytes()),
        "PING" => Op::Ping,
        "PONG" => Op::Pong,
        "+OK" => Op::Ok,
        "-ERR" => Op::Error(args.trim().trim_matches('\'')),
        _ => return Err(NotNats("an unknown operation")),
    };
    Ok(Some((op, used)))
}

/// `subject sid [reply] [header bytes] bytes`, and then the bytes.
fn message<'a>(
    args: &'a str,
    has_headers: bool,
    rest: &'a [u8],
    used: usize,
) -> Result<Option<(Op<'a>, usize)>, NotNats> {
    let words: Vec<&str> = args.split_ascii_whitespace().collect();
    let sizes = 1 + usize::from(has_headers);
    let (subject, sid, reply) = match words.len().checked_sub(sizes) {
        Some(2) => (words[0], words[1], ""),
        Some(3) => (words[0], words[1], words[2]),
        _ => return Err(NotNats("a message has other arguments")),
    };
    let size = |back: usize| words[words.len() - back].parse::<usize>().ok();
    let (Ok(sid), Some(total)) = (sid.parse(), size(1)) else {
        return Err(NotNats("a number is none"));
    };
    let headers_end = match has_headers {
        true => size(2).ok_or(NotNats("a number is none"))?,
        false => 0,
    };
    if total > MESSAGE_BYTES_MAX || headers_end > total {
        return Err(NotNats("a message is too long"));
    }
    if rest.len() < total + END.len() {
        return Ok(None);
    }
    if &rest[total..total + END.len()] != END {
        return Err(NotNats("a message has another length"));
    }
    let headers = std::str::from_utf8(&rest[..headers_end]);
    let headers = headers.map_err(|_| NotNats("headers are no text"))?;
    let payload = &rest[headers_end..total];
    let message = Message { subject, sid, reply, headers, payload };
    Ok(Some((Op::Message(message), used + total + END.len())))
}

/// Appends a publication; `reply` may be empty.
pub(crate) fn publish(out: &mut Vec<u8>, subject: &str, reply: &str, payload: &[u8]) {
    out.extend_from_slice(b"PUB ");
    for word in [subject, reply].into_iter().filter(|word| !word.is_empty()) {
        out.extend_from_slice(word.as_bytes());
        out.push(b' ');
    }
    out.extend_from_slice(payload.len().to_string().as_bytes());
    out.extend_from_slice(END);
    out.extend_from_slice(payload);
    out.extend_from_slice(END);
}

/// Appends a subscription.
pub(crate) fn subscribe(out: &mut Vec<u8>, subject: &str, sid: u64) {
    out.extend_from_slice(format!("SUB {subject} {sid}\r\n").as_bytes());
}

/// Appends the end of a subscription.
pub(crate) fn unsubscribe(out: &mut Vec<u8>, sid: u64) {
    out.extend_from_slice(format!("UNSUB {sid}\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use protocols::wire::rng::SplitMix;

    use super::*;

    const TALK: &[u8] = b"INFO {\"server_id\":\"x\"} \r\n+OK\r\nPING\r\nMSG a.b 7 5\r\nhello\r\n\
        msg a 7 re.ply 0\r\n\r\nHMSG a 8 re 22 24\r\nNATS/1.0\r\nKey: va \r\n\r\nhi\r\nPONG\r\n\
        HMSG a 9 30 30\r\nNATS/1.0 503 No Responders\r\n\r\n\r\n-ERR 'Authorization Violation'\r\n";

    fn all(mut bytes: &[u8]) -> Result<Vec<String>, NotNats> {
        let mut heard = Vec::new();
        while let Some((op, used)) = read(bytes)? {
            heard.push(match op {
                Op::Message(m) => {
                    let (status, key) = (m.status(), m.header("key"));
                    format!(
                        "{} {} {:?} {status:?} {key:?} {:?}",
                        m.subject,
                        m.sid,
                        m.reply,
                        String::from_utf8_lossy(m.payload)
                    )
                }
                op => format!("{op:?}"),
            });
            bytes = &bytes[used..];
        }
        Ok(heard)
    }

    #[test]
    fn everything_that_a_server_says() {
        let heard = all(TALK).unwrap();
        let expect = [
            "Info([123, 34, 115, 101, 114, 118, 101, 114, 95, 105, 100, 34, 58, 34, 120, 34, 125])",
            "Ok",
            "Ping",
            r#"a.b 7 "" None None "hello""#,
            r#"a 7 "re.ply" None None """#,
            r#"a 8 "re" None Some("va") "hi""#,
            "Pong",
            r#"a 9 "" Some((503, "No Responders")) None """#,
            r#"Error("Authorization Violation")"#,
        ];
        assert_eq!(heard, expect);
    }

    #[test]
    fn a_talk_that_is_cut_anywhere_is_waited_for() {
        let whole = all(TALK).unwrap();
        for length in 0..TALK.len() {
            let heard = all(&TALK[..length]).unwrap();
            assert_eq!(heard, whole[..heard.len()], "{length}");
        }
    }

    #[test]
    fn what_is_no_nats_is_refused_and_never_waited_for_without_end() {
        let long = [b"PING ".to_vec(), vec![b'x'; LINE_BYTES_MAX]].concat();
        let rows: [(&[u8], &str); 11] = [
            (b"HTTP/1.1 400 Bad Request\r\n", "unknown operation"),
            (b"\r\n", "unknown operation"),
            (b"PI\xFF\r\n", "no text"),
            (&long, "too long"),
            (b"MSG a 1\r\n", "other arguments"),
            (b"MSG a 1 b c 4\r\n", "other arguments"),
            (b"MSG a x 4\r\n", "number"),
            (b"MSG a 1 -4\r\n", "number"),
            (b"MSG a 1 99999999\r\n", "too long"),
            (b"HMSG a 1 5 4\r\nabcd\r\n", "too long"),
            (b"MSG a 1 2\r\nabcdef\r\n", "another length"),
        ];
        for (bytes, expect) in rows {
            let why = read(bytes).unwrap_err().to_string();
            assert!(why.contains(expect), "{}: {why}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        for seed in 0..20_000 {
            let mut rng = SplitMix::new(seed);
            let mut bytes = TALK.to_vec();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len());
                match rng.below(3) {
                    0 => bytes[at] = rng.below(256) as u8,
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, b"\r\n 0\x80"[rng.below(5)]),
                }
            }
            let _ = all(&bytes); // refused or not
        }
    }
}
