//! Tokens: a name, when the token ends, and a tag over both under the server's key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// An HMAC-SHA-256.
pub(crate) type Tag = [u8; 32];

/// What a sound token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Whose it is.
    pub name: &'a str,
    /// When it ends, Unix milliseconds.
    pub expires_ms: u64,
    /// Tells it from all others.
    pub tag: [u8; 32],
}

/// Makes and checks tokens.
pub struct Tokens {
    /// Has taken in the key already: half of the work of a tag.
    keyed: Hmac<Sha256>,
}

impl Tokens {
    /// Tokens under a key, which must be random and secret.
    pub fn new(key: [u8; 32]) -> Tokens {
        Tokens { keyed: Hmac::new_from_slice(&key).expect("HMAC takes a key of any length") }
    }

    /// A token for `name` that is good until `expires_ms`: `name.expiry.tag`.
    pub fn make(&self, name: &str, expires_ms: u64) -> String {
        let tag = self.token_mac(name, expires_ms).finalize().into_bytes();
        format!("{name}.{expires_ms}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Checks that a token is ours and has not ended.
    pub fn check<'a>(&self, token: &'a str, now_ms: u64) -> Option<Token<'a>> {
        let mut parts = token.rsplitn(3, '.');
        let (encoded, expiry, name) = (parts.next()?, parts.next()?, parts.next()?);
        let expires_ms: u64 = expiry.parse().ok()?;
        let mut tag = Tag::default();
        let length = URL_SAFE_NO_PAD.decode_slice(encoded, &mut tag).ok()?;
        if length != tag.len() {
            return None;
        }
        // verify_slice takes the same time wherever the difference is.
        self.token_mac(name, expires_ms).verify_slice(&tag).ok()?;
        (now_ms < expires_ms).then_some(Token { name, expires_ms, tag })
    }

    fn token_mac(&self, name: &str, expires_ms: u64) -> Hmac<Sha256> {
        self.mac(&[b"token", name.as_bytes(), &expires_ms.to_be_bytes()])
    }

    /// Every part goes in behind its length, so that no two lists of parts look alike.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_tokens_under_the_key_are_good_until_they_end() {
        let tokens = Tokens::new([1; 32]);
        let token = tokens.make("a.n.n", 1000);
        let told = tokens.check(&token, 999).unwrap();
        assert_eq!((told.name, told.expires_ms), ("a.n.n", 1000));
        let tag = token.rsplit('.').next().unwrap();
        let rows = [
            (String::new(), 0),
            ("a".to_owned(), 0),
            ("a.b".to_owned(), 0),
            ("a.n.n.1000.".to_owned(), 0),
            (token.clone(), 1000),
            (Tokens::new([2; 32]).make("a.n.n", 1000), 0),
            (format!("a.n.n.2000.{tag}"), 0),
            (format!("a.n.1000.{tag}"), 0),
            (format!("{token}AA"), 0),
            (token[..token.len() - 1].to_owned(), 0),
        ];
        for (bad, now_ms) in rows {
            assert_eq!(tokens.check(&bad, now_ms), None, "{bad} at {now_ms}");
        }
    }
}
