//! Where a page comes from, and whether it may connect here (RFC 6454, RFC 6455 section 10.2).

use std::fmt;
use std::str::FromStr;

/// An address that pages come from: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    /// `None` where the scheme has no default and none is given.
    port: Option<u16>,
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let help = || format!("{text:?} is no origin; write it as https://chat.example:8443");
        let (scheme, rest) = text.split_once("://").ok_or_else(help)?;
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
            return Err(help());
        }
        let scheme = scheme.to_ascii_lowercase();
        let (host, port) = authority(rest).ok_or_else(help)?;
        let port = port.or(default_port(&scheme));
        Ok(Origin { scheme, host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        match self.port.filter(|port| Some(*port) != default_port(&self.scheme)) {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// Whether a page may connect: one from the host and port it connects to, or from an address in
/// `allowed`. Both values are the header fields as they came; `null` and nonsense are refused.
pub fn is_allowed(origin: &str, host: Option<&str>, allowed: &[Origin]) -> bool {
    let Ok(origin) = origin.parse::<Origin>() else { return false };
    if allowed.contains(&origin) {
        return true;
    }
    // Without a port it is the default of the page's scheme: a proxy in front may speak TLS.
    let here = host.and_then(authority);
    here.is_some_and(|(name, port)| {
        name == origin.host && port.or(default_port(&origin.scheme)) == origin.port
    })
}

/// Host, in small letters, and port of `host[:port]`.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let end = match text.strip_prefix('[') {
        Some(inner) => inner.find(']')? + 2,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at(end);
    let is_fine = |byte: u8| byte.is_ascii_graphic() && !b"/?#@\\,".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_fine) {
        return None;
    }
    let port = match rest.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok()?)
        }
        None if rest.is_empty() => None,
        _ => return None,
    };
    Some((host.to_ascii_lowercase(), port))
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_host_and_of_those_named_may_connect() {
        let named = ["https://chat.example", "HTTP://Other.Example:81", "app://here"];
        let named = named.map(|text| text.parse().unwrap());
        let rows = [
            ("http://127.0.0.1:4000", Some("127.0.0.1:4000"), true),
            ("http://localhost:4000", Some("127.0.0.1:4000"), false),
            ("http://127.0.0.1:4001", Some("127.0.0.1:4000"), false),
            ("http://127.0.0.1", Some("127.0.0.1:4000"), false),
            ("http://a.example", Some("A.Example"), true),
            ("https://a.example", Some("a.example"), true),
            ("https://a.example", Some("a.example:443"), true),
            ("https://a.example", Some("a.example:80"), false),
            ("https://a.example:443", Some("a.example"), true),
            ("http://[::1]:4000", Some("[::1]:4000"), true),
            ("http://[::1]:4000", Some("[::2]:4000"), false),
            ("http://a.example.evil", Some("a.example"), false),
            ("http://a.example@evil", Some("evil"), false),
            ("http://evil/a.example", Some("evil"), false),
            ("https://chat.example", Some("127.0.0.1:4000"), true),
            ("https://chat.example:443", None, true),
            ("http://chat.example", None, false),
            ("http://other.example:81", None, true),
            ("app://here", None, true),
            ("app://here", Some("here"), true),
            ("app://there", Some("elsewhere"), false),
            ("null", Some("null"), false),
            ("", Some(""), false),
            ("http://", Some(""), false),
            ("http://a", None, false),
            ("http://a:", Some("a:"), false),
            ("http://a:99999", Some("a:99999"), false),
            ("http://a:+80", Some("a"), false),
            ("http://a, http://b", Some("a"), false),
            ("http://\u{e4}", Some("\u{e4}"), false),
            ("http://[::1", Some("[::1"), false),
            ("http://[::1]x", Some("[::1]x"), false),
        ];
        for (origin, host, expect) in rows {
            assert_eq!(is_allowed(origin, host, &named), expect, "{origin} at {host:?}");
        }
    }

    #[test]
    fn an_origin_is_printed_as_it_is_compared() {
        for text in ["https://chat.example", "http://[::1]:4000", "app://here"] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), text);
        }
        let error = "chat.example".parse::<Origin>().unwrap_err();
        assert!(error.contains("https://chat.example:8443"), "{error}");
        assert!("https://chat.example/path".parse::<Origin>().is_err());
    }
}
