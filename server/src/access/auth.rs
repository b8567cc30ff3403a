//! Accounts, and tokens that were revoked.

use std::collections::HashMap;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;

use crate::access::password::{Cost, Hash, Task};
use crate::access::token::{Tag, Tokens};
use crate::config::{ACCOUNTS_MAX, NAME_BYTES_MAX, PASSWORD_BYTES_MAX, REVOKED_MAX};

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

/// What is known of a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secret {
    /// A keyed hash: fast, and worth nothing without the key.
    Keyed(Tag),
    /// Argon2id.
    Slow(Hash),
}

const KEYED: &str = "$hmac-sha256$";

impl Secret {
    /// As it is stored.
    pub(crate) fn print(&self) -> String {
        match self {
            Secret::Keyed(tag) => format!("{KEYED}{}", URL_SAFE_NO_PAD.encode(tag)),
            Secret::Slow(hash) => hash.print(),
        }
    }

    fn parse(text: &str) -> Option<Secret> {
        match text.strip_prefix(KEYED) {
            Some(tag) => {
                let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
                Some(Secret::Keyed(tag.try_into().ok()?))
            }
            None => Hash::parse(text).map(Secret::Slow),
        }
    }
}

/// How a login by password goes on.
#[derive(Debug)]
pub(crate) enum Step {
    /// The password is right.
    In(Rc<str>),
    /// The name is new and this will be its secret.
    New(Secret),
    /// The password has to be hashed first.
    Hash(Task),
}

/// Everybody who may log in, and the tokens that are no longer good.
pub(crate) struct Accounts {
    tokens: Tokens,
    secrets: HashMap<Rc<str>, Secret>,
    /// Tags of revoked tokens, and when they end in Unix milliseconds.
    revoked: HashMap<Tag, u64>,
    registration: bool,
    cost: Option<Cost>,
}

impl Accounts {
    /// Nobody yet; `key` must be random and secret.
    pub(crate) fn new(key: Tag, registration: bool, cost: Option<Cost>) -> Self {
        let (secrets, revoked) = (HashMap::new(), HashMap::new());
        Accounts { tokens: Tokens::new(key), secrets, revoked, registration, cost }
    }

    /// Takes an account from the store; `false` if its secret makes no sense. The limit does not
    /// count: it was kept when the account was made, by as many as were under way.
    pub(crate) fn restore(&mut self, name: &str, secret: &str) -> bool {
        let secret = Secret::parse(secret);
        secret.is_some_and(|secret| self.secrets.insert(name.into(), secret).is_none())
    }

    /// How a login goes on. Without an account it takes as long as with one.
    pub(crate) fn check(&self, name: &str, password: &str) -> Result<Step, Denial> {
        if !is_name(name, NAME_BYTES_MAX) {
            return Err(Denial::BadName);
        }
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(Denial::BadPassword);
        }
        let mac = self.tokens.mac(&[b"password", name.as_bytes(), password.as_bytes()]);
        let known = self.secrets.get_key_value(name);
        let passed = match known {
            Some((_, Secret::Slow(hash))) => return Ok(Step::Hash(Task::Check(*hash))),
            // verify_slice takes the same time wherever the difference is.
            Some((_, Secret::Keyed(tag))) => mac.clone().verify_slice(tag).is_ok(),
            None => false,
        };
        match (known, self.cost) {
            (None, Some(cost)) if self.registration => Ok(Step::Hash(Task::Make(cost))),
            (_, Some(cost)) => Ok(Step::Hash(Task::Pretend { cost, passed })),
            (Some((known, _)), None) if passed => Ok(Step::In(known.clone())),
            (None, None) if self.registration => {
                Ok(Step::New(Secret::Keyed(mac.finalize().into_bytes().into())))
            }
            _ => Err(Denial::Denied),
        }
    }

    /// Makes an account.
    pub(crate) fn add(&mut self, name: &str, secret: Secret) -> Result<Rc<str>, Denial> {
        if self.is_full() {
            return Err(Denial::Full);
        }
        let name: Rc<str> = name.into();
        self.secrets.insert(name.clone(), secret);
        Ok(name)
    }

    /// Whether there is no place for one more account.
    pub(crate) fn is_full(&self) -> bool {
        self.secrets.len() >= ACCOUNTS_MAX
    }

    /// The name as it is kept.
    pub(crate) fn known(&self, name: &str) -> Option<Rc<str>> {
        self.secrets.get_key_value(name).map(|(known, _)| known.clone())
    }

    /// The name as it is kept; as it is given if it is nobody's.
    pub(crate) fn shared(&self, name: &str) -> Rc<str> {
        self.known(name).unwrap_or_else(|| name.into())
    }

    /// A token for `name` that is good until `expires_ms`.
    pub(crate) fn token(&self, name: &str, expires_ms: u64) -> String {
        self.tokens.make(name, expires_ms)
    }

    /// Checks a token; gives the name, when it ends, and its tag.
    pub(crate) fn redeem(&self, token: &str, now_ms: u64) -> Result<(Rc<str>, u64, Tag), Denial> {
        let token = self.tokens.check(token, now_ms).ok_or(Denial::Denied)?;
        if self.revoked.contains_key(&token.tag) {
            return Err(Denial::Denied);
        }
        let name = self.known(token.name).ok_or(Denial::Denied)?;
        Ok((name, token.expires_ms, token.tag))
    }

    /// From now on a token is refused.
    pub(crate) fn revoke(&mut self, tag: Tag, expires_ms: u64) {
        self.revoked.insert(tag, expires_ms);
    }

    /// Whether one more token can be revoked; forgets those that have ended.
    pub(crate) fn can_revoke(&mut self, now_ms: u64) -> bool {
        if self.revoked.len() >= REVOKED_MAX {
            self.revoked.retain(|_, expires_ms| *expires_ms > now_ms);
        }
        self.revoked.len() < REVOKED_MAX
    }
}

/// Whether `name` can name a person or a room.
pub(crate) fn is_name(name: &str, bytes_max: usize) -> bool {
    !name.is_empty() && name.len() <= bytes_max && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(key: u8, registration: bool, cost: Option<Cost>) -> Accounts {
        Accounts::new([key; 32], registration, cost)
    }

    /// A login where nothing is hashed slowly.
    fn login(accounts: &mut Accounts, name: &str, password: &str) -> Result<(), Denial> {
        match accounts.check(name, password)? {
            Step::In(_) => Ok(()),
            Step::New(secret) => accounts.add(name, secret).map(|_| ()),
            Step::Hash(task) => panic!("{task:?}"),
        }
    }

    #[test]
    fn passwords() {
        let mut open = accounts(1, true, None);
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
            assert_eq!(login(&mut open, name, password), expect, "{name:?} {password:?}");
        }
        let long = "x".repeat(PASSWORD_BYTES_MAX + 1);
        assert_eq!(login(&mut open, "cy", &long), Err(Denial::BadPassword));
        assert_eq!(login(&mut accounts(1, false, None), "ann", "one"), Err(Denial::Denied));
    }

    #[test]
    fn where_hashes_are_slow_every_password_takes_one() {
        let cost = Cost { memory_kib: 8, passes: 1 };
        let slow = Hash::parse(&format!(
            "$argon2id$v=19$m=8,t=1,p=1${}${}",
            "A".repeat(22),
            "A".repeat(43)
        ));
        for registration in [true, false] {
            let mut fast = accounts(1, true, None);
            login(&mut fast, "keyed", "one").unwrap();
            let mut accounts = accounts(1, registration, Some(cost));
            assert!(accounts.restore("keyed", &fast.secrets["keyed"].print()));
            assert!(accounts.restore("slow", &slow.unwrap().print()));
            assert!(!accounts.restore("wrong", "$md5$abc"));
            let step = |name, password| match accounts.check(name, password) {
                Ok(Step::Hash(task)) => format!("{task:?}"),
                other => panic!("{name}: {other:?}"),
            };
            assert!(step("slow", "x").starts_with("Check"));
            assert!(step("keyed", "one").contains("passed: true"));
            assert!(step("keyed", "two").contains("passed: false"));
            let unknown = step("nobody", "x");
            assert_eq!(unknown.starts_with("Make"), registration, "{unknown}");
            assert!(registration || unknown.contains("passed: false"), "{unknown}");
        }
    }

    #[test]
    fn a_token_is_worth_nothing_without_its_account() {
        let mut accounts = accounts(1, true, None);
        let token = accounts.token("ann", 1000);
        assert_eq!(accounts.redeem(&token, 1), Err(Denial::Denied));
        login(&mut accounts, "ann", "pw").unwrap();
        let (name, expires_ms, _) = accounts.redeem(&token, 1).unwrap();
        assert_eq!((&*name, expires_ms), ("ann", 1000));
        assert_eq!(accounts.redeem(&token, 1000), Err(Denial::Denied), "it has ended");
    }

    #[test]
    fn a_revoked_token_is_refused_and_its_sisters_are_not() {
        let mut accounts = accounts(1, true, None);
        login(&mut accounts, "ann", "pw").unwrap();
        let tokens = [1000, 1001].map(|expires_ms| accounts.token("ann", expires_ms));
        let (_, expires_ms, tag) = accounts.redeem(&tokens[0], 1).unwrap();
        assert!(accounts.can_revoke(1));
        accounts.revoke(tag, expires_ms);
        assert_eq!(accounts.redeem(&tokens[0], 1), Err(Denial::Denied));
        assert!(accounts.redeem(&tokens[1], 1).is_ok());
    }
}
