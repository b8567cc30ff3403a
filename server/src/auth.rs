//! Accounts and tokens: keyed hashes under a secret that dies with the process.

use std::collections::HashMap;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::config::{ACCOUNTS_MAX, NAME_BYTES_MAX, PASSWORD_BYTES_MAX};

type Tag = [u8; 32];

/// Why a login failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// Empty, too long or with a control character.
    BadName,
    /// Too long.
    BadPassword,
    /// Unknown name, wrong password, or a token that is not ours or too old.
    Denied,
    /// [`ACCOUNTS_MAX`] is reached.
    Full,
}

/// Everybody who may log in.
pub(crate) struct Accounts {
    secret: Tag,
    tags: HashMap<Rc<str>, Tag>,
    registration: bool,
}

impl Accounts {
    /// Nobody yet; `secret` must be random and is never written anywhere.
    pub(crate) fn new(secret: Tag, registration: bool) -> Self {
        Accounts { secret, tags: HashMap::new(), registration }
    }

    /// Checks name and password; an unknown name is registered where that is allowed.
    pub(crate) fn login(&mut self, name: &str, password: &str) -> Result<Rc<str>, Denial> {
        if !is_name(name, NAME_BYTES_MAX) {
            return Err(Denial::BadName);
        }
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(Denial::BadPassword);
        }
        let mac = self.mac(&[b"password", name.as_bytes(), password.as_bytes()]);
        if let Some((known, tag)) = self.tags.get_key_value(name) {
            // verify_slice takes the same time wherever the difference is.
            return mac.verify_slice(tag).map(|()| known.clone()).map_err(|_| Denial::Denied);
        }
        if !self.registration {
            return Err(Denial::Denied);
        }
        if self.tags.len() >= ACCOUNTS_MAX {
            return Err(Denial::Full);
        }
        let name: Rc<str> = name.into();
        self.tags.insert(name.clone(), mac.finalize().into_bytes().into());
        Ok(name)
    }

    /// A token for `name` that is good until `expires_ms`: `name.expiry.mac`.
    pub(crate) fn token(&self, name: &str, expires_ms: u64) -> String {
        let mac = self.token_mac(name, expires_ms).finalize().into_bytes();
        format!("{name}.{expires_ms}.{}", URL_SAFE_NO_PAD.encode(mac))
    }

    /// Checks a token; gives the name and when the token ends.
    pub(crate) fn redeem(&self, token: &str, now_ms: u64) -> Result<(Rc<str>, u64), Denial> {
        let mut parts = token.rsplitn(3, '.');
        let (Some(mac), Some(expiry), Some(name)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Denial::Denied);
        };
        let expires_ms: u64 = expiry.parse().map_err(|_| Denial::Denied)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).map_err(|_| Denial::Denied)?;
        self.token_mac(name, expires_ms).verify_slice(&mac).map_err(|_| Denial::Denied)?;
        let (name, _) = self.tags.get_key_value(name).ok_or(Denial::Denied)?;
        if now_ms < expires_ms { Ok((name.clone(), expires_ms)) } else { Err(Denial::Denied) }
    }

    fn token_mac(&self, name: &str, expires_ms: u64) -> Hmac<Sha256> {
        self.mac(&[b"token", name.as_bytes(), &expires_ms.to_be_bytes()])
    }

    /// Every part goes in behind its length, so that no two lists of parts look alike.
    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes a key of any length");
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

/// Whether `name` can name a person or a room.
pub(crate) fn is_name(name: &str, bytes_max: usize) -> bool {
    !name.is_empty() && name.len() <= bytes_max && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords() {
        let mut open = Accounts::new([1; 32], true);
        let long = "x".repeat(65);
        let rows = [
            ("ann", "one", Ok(())), // registers
            ("ann", "one", Ok(())),
            ("ann", "two", Err(Denial::Denied)),
            ("ann", "", Err(Denial::Denied)),
            ("bob", "", Ok(())),
            ("", "one", Err(Denial::BadName)),
            ("a\nb", "one", Err(Denial::BadName)),
            (&long, "one", Err(Denial::BadName)),
        ];
        for (name, password, expect) in rows {
            assert_eq!(open.login(name, password).map(|_| ()), expect, "{name:?} {password:?}");
        }
        let long = "x".repeat(PASSWORD_BYTES_MAX + 1);
        assert_eq!(open.login("cy", &long), Err(Denial::BadPassword));
        let mut closed = Accounts::new([1; 32], false);
        assert_eq!(closed.login("ann", "one"), Err(Denial::Denied));
    }

    #[test]
    fn tokens() {
        let mut accounts = Accounts::new([1; 32], true);
        accounts.login("a.n.n", "pw").unwrap();
        let token = accounts.token("a.n.n", 1000);
        assert_eq!(accounts.redeem(&token, 999).unwrap(), ("a.n.n".into(), 1000));
        assert_eq!(accounts.redeem(&token, 1000), Err(Denial::Denied), "expired");
        let stranger = accounts.token("bob", 1000);
        let mac = token.rsplit('.').next().unwrap();
        let other_secret = Accounts::new([2; 32], true).token("a.n.n", 1000);
        let longer_life = format!("a.n.n.2000.{mac}");
        for bad in ["", "a", "a.b", "a.n.n.1000.", &stranger, &other_secret, &longer_life] {
            assert_eq!(accounts.redeem(bad, 0), Err(Denial::Denied), "{bad}");
        }
    }
}
