//! Passwords under Argon2id (RFC 9106): slow on purpose, so it is done in threads of its own.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

const SALT_BYTES: usize = 16;
const TAG_BYTES: usize = 32;
/// Most memory a stored hash may ask for, in KiB: a damaged file must not exhaust the machine.
const MEMORY_KIB_MAX: u32 = 1024 * 1024;
/// Most passes a stored hash may ask for.
const PASSES_MAX: u32 = 100;

/// What one hash costs; always in one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) memory_kib: u32,
    pub(crate) passes: u32,
}

/// The hash of a password with all that is needed to check it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash {
    cost: Cost,
    salt: [u8; SALT_BYTES],
    tag: [u8; TAG_BYTES],
}

impl Hash {
    /// In the string format of the Password Hashing Competition.
    pub(crate) fn print(&self) -> String {
        let Cost { memory_kib, passes } = self.cost;
        let [salt, tag] = [&self.salt[..], &self.tag[..]].map(|part| STANDARD_NO_PAD.encode(part));
        format!("$argon2id$v=19$m={memory_kib},t={passes},p=1${salt}${tag}")
    }

    /// Reads what [`Hash::print`] has written.
    pub(crate) fn parse(text: &str) -> Option<Hash> {
        let rest = text.strip_prefix("$argon2id$v=19$m=")?;
        let (memory_kib, rest) = rest.split_once(",t=")?;
        let (passes, rest) = rest.split_once(",p=1$")?;
        let (salt, tag) = rest.split_once('$')?;
        let cost = Cost { memory_kib: memory_kib.parse().ok()?, passes: passes.parse().ok()? };
        let bytes = |part: &str| STANDARD_NO_PAD.decode(part).ok();
        let (salt, tag) = (bytes(salt)?.try_into().ok()?, bytes(tag)?.try_into().ok()?);
        let is_bounded = cost.memory_kib <= MEMORY_KIB_MAX && cost.passes <= PASSES_MAX;
        params(cost).filter(|_| is_bounded).map(|_| Hash { cost, salt, tag })
    }
}

fn params(cost: Cost) -> Option<Params> {
    Params::new(cost.memory_kib, cost.passes, 1, Some(TAG_BYTES)).ok()
}

/// What is to be done with a password.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// Compare it with a hash.
    Check(Hash),
    /// Make a hash of it.
    Make(Cost),
    /// Take the time of a hash for a result that is known, so that the time tells nothing.
    Pretend { cost: Cost, passed: bool },
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Whether it is the right password.
    Passed(bool),
    /// Its hash.
    Made(Hash),
    /// It could not be hashed: no memory or no random bytes.
    Unable,
}

/// Hashes; keeps its memory from one password to the next.
#[derive(Default)]
pub(crate) struct Hasher {
    blocks: Vec<Block>,
}

impl Hasher {
    pub(crate) fn run(&mut self, task: Task, password: &[u8]) -> Verdict {
        let verdict = match task {
            Task::Check(hash) => self.tag(hash.cost, &hash.salt, password).map(|tag| {
                let difference = tag.iter().zip(&hash.tag).fold(0, |all, (a, b)| all | (a ^ b));
                Verdict::Passed(std::hint::black_box(difference) == 0)
            }),
            Task::Pretend { cost, passed } => {
                let tag = self.tag(cost, &[0; SALT_BYTES], password);
                tag.map(|tag| Verdict::Passed(passed && !std::hint::black_box(tag).is_empty()))
            }
            Task::Make(cost) => {
                let mut salt = [0; SALT_BYTES];
                let is_random = getrandom::fill(&mut salt).is_ok();
                let tag = self.tag(cost, &salt, password).filter(|_| is_random);
                tag.map(|tag| Verdict::Made(Hash { cost, salt, tag }))
            }
        };
        verdict.unwrap_or(Verdict::Unable)
    }

    fn tag(&mut self, cost: Cost, salt: &[u8], password: &[u8]) -> Option<[u8; TAG_BYTES]> {
        let params = params(cost)?;
        self.blocks.resize_with(params.block_count(), Block::default);
        let mut tag = [0; TAG_BYTES];
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let blocks = &mut self.blocks[..];
        argon.hash_password_into_with_memory(password, salt, &mut tag, blocks).ok()?;
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost { memory_kib: 8, passes: 1 };

    #[test]
    fn right_and_wrong_passwords_whatever_was_hashed_before() {
        let mut hasher = Hasher::default();
        let costs = [CHEAP, Cost { memory_kib: 64, passes: 3 }, CHEAP];
        for (number, cost) in costs.into_iter().enumerate() {
            let password = format!("pass{number}");
            let Verdict::Made(hash) = hasher.run(Task::Make(cost), password.as_bytes()) else {
                panic!("{cost:?}");
            };
            for (word, expect) in [(&*password, true), ("", false), ("pass", false)] {
                let verdict = hasher.run(Task::Check(hash), word.as_bytes());
                assert_eq!(verdict, Verdict::Passed(expect), "{word}");
            }
            assert_eq!(Hash::parse(&hash.print()), Some(hash));
            let pretended = Task::Pretend { cost, passed: number == 1 };
            assert_eq!(hasher.run(pretended, b"x"), Verdict::Passed(number == 1));
        }
    }

    /// A vector of the reference implementation's own test.
    #[test]
    fn the_hash_is_argon2id() {
        let cost = Cost { memory_kib: 256, passes: 2 };
        let tag = Hasher::default().tag(cost, b"somesalt", b"password").unwrap();
        let expect = "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert_eq!(STANDARD_NO_PAD.encode(tag), expect);
    }

    #[test]
    fn what_is_stored_is_strict_and_bounded() {
        let salt = STANDARD_NO_PAD.encode([1; SALT_BYTES]);
        let tag = STANDARD_NO_PAD.encode([2; TAG_BYTES]);
        let rows = [
            (format!("$argon2id$v=19$m=19456,t=2,p=1${salt}${tag}"), true),
            (format!("$argon2i$v=19$m=19456,t=2,p=1${salt}${tag}"), false),
            (format!("$argon2id$v=19$m=4000000000,t=2,p=1${salt}${tag}"), false),
            (format!("$argon2id$v=19$m=19456,t=4000000000,p=1${salt}${tag}"), false),
            (format!("$argon2id$v=19$m=1,t=2,p=1${salt}${tag}"), false),
            (format!("$argon2id$v=19$m=19456,t=2,p=1${tag}${tag}"), false),
            (format!("$argon2id$v=19$m=19456,t=2,p=1${salt}${salt}"), false),
            (format!("$argon2id$v=19$m=19456,t=2,p=2${salt}${tag}"), false),
            (String::new(), false),
        ];
        for (text, is_fine) in rows {
            assert_eq!(Hash::parse(&text).is_some(), is_fine, "{text}");
        }
    }
}
