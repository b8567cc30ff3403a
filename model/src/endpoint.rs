//! Where a target is reached, and how connections to it are encrypted.

/// Where a target is reached, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `ws`, `wss`, …
    pub scheme: String,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port: the scheme's own, unless the URL names one.
    pub port: u16,
    /// Whether the URL names the port.
    pub is_port_given: bool,
    /// Path and query, beginning with `/`.
    pub path: String,
}

impl Endpoint {
    /// Takes a URL apart; the error says what is wrong with it.
    pub fn parse(url: &str) -> Result<Endpoint, String> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| {
            format!("`{url}` is not a URL: it needs a scheme, as in ws://127.0.0.1:8080/chat")
        })?;
        let cut = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(cut);
        if authority.contains('@') {
            return Err("a URL must not carry credentials; give them as accounts".into());
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().map_err(|_| format!("`{port}` in `{url}` is no port"))?;
                (host, Some(port))
            }
            _ => (authority, None),
        };
        let is_port_given = port.is_some();
        let port = port.unwrap_or_else(|| default_port(scheme));
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(format!("`{url}` names no host"));
        }
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        Ok(Endpoint { scheme: scheme.into(), host: host.into(), port, is_port_given, path })
    }

    /// Whether the connection is encrypted from its first byte.
    pub fn is_secure(&self) -> bool {
        matches!(self.scheme.as_str(), "wss" | "https" | "xmpps")
    }

    /// `host:port` as a `Host` header has it.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// The port of a scheme whose URL names none (`xmpps`: XEP-0368; `xmpp-component`: usual).
fn default_port(scheme: &str) -> u16 {
    match scheme {
        "wss" | "https" => 443,
        "xmpp" => 5222,
        "xmpps" => 5223,
        "xmpp-component" => 5347,
        _ => 80,
    }
}

/// How the connections of a protocol are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encryption<'a> {
    /// When encryption begins.
    pub start: EncryptionStart,
    /// Whom the target has to prove to be: a host name or an address.
    pub name: &'a str,
    /// Protocols offered in the handshake (ALPN, RFC 7301); none offered if empty.
    pub alpn: &'static [&'static str],
}

/// When encryption of a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptionStart {
    /// Not at all.
    Never,
    /// With the first byte.
    AtOnce,
    /// When the session asks for it ([`crate::Effects::secure`]), if it does.
    Asked,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let parts =
            |url| Endpoint::parse(url).map(|e| (e.authority(), e.path.clone(), e.is_secure()));
        let ok = |authority: &str, path: &str, secure| Ok((authority.into(), path.into(), secure));
        assert_eq!(parts("ws://127.0.0.1:8080/chat"), ok("127.0.0.1:8080", "/chat", false));
        assert_eq!(parts("wss://chat.example"), ok("chat.example:443", "/", true));
        assert_eq!(parts("ws://[::1]:90?x=1"), ok("[::1]:90", "/?x=1", false));
        assert_eq!(parts("ws://[::1]/a"), ok("[::1]:80", "/a", false));
        assert_eq!(parts("xmpp://chat.example"), ok("chat.example:5222", "/", false));
        assert_eq!(parts("xmpps://chat.example"), ok("chat.example:5223", "/", true));
        assert_eq!(parts("xmpp-component://[::1]"), ok("[::1]:5347", "/", false));
        assert!(!Endpoint::parse("xmpp://chat.example").unwrap().is_port_given);
        assert!(Endpoint::parse("xmpp://chat.example:5222").unwrap().is_port_given);
        for bad in ["127.0.0.1:80", "ws://", "ws://h:port/", "ws://me:secret@h/"] {
            assert!(parts(bad).is_err(), "{bad}");
            assert!(!parts(bad).unwrap_err().contains("secret"));
        }
    }
}
