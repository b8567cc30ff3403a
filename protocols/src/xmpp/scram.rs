//! SCRAM (RFC 5802, 7677): the person proves that it knows the password without sending it, and the
//! target proves that it has known it before. No channel binding.
//!
//! What costs time is to salt the password, thousands of rounds of a hash. Whoever logs in again
//! finds the keys of the last time in [`Keyring`], so that a storm of logins measures the target
//! and not this machine. Passwords are taken as they are: for ASCII that is what SASLprep makes of
//! them (RFC 4013).

use super::xml::escape;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// Most rounds of salting that a target may ask for. Servers ask for 4,096 to 10,000; one that asks
/// for more than this would measure the generator.
const ITERATIONS_MAX: u32 = 500_000;
/// Longest salt accepted, bytes.
const SALT_BYTES_MAX: usize = 1_024;
/// Longest nonce accepted, bytes.
const NONCE_BYTES_MAX: usize = 1_024;
/// Accounts whose keys are remembered; 16 bytes each, and 96 for those that are used.
const KEYS_MAX: usize = 1 << 16;
/// Places in which a key may stand.
const PROBES: usize = 8;
/// Longest key, bytes.
const KEY_BYTES_MAX: usize = 32;
/// `n,,` in base64: no channel binding (RFC 5802 section 6).
const BINDING: &str = "biws";

/// The hash of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
}

type Key = [u8; KEY_BYTES_MAX];

impl Hash {
    fn length(self) -> usize {
        match self {
            Hash::Sha1 => 20,
            Hash::Sha256 => 32,
        }
    }

    fn hash(self, bytes: &[u8]) -> Key {
        match self {
            Hash::Sha1 => key(&Sha1::digest(bytes)),
            Hash::Sha256 => key(&Sha256::digest(bytes)),
        }
    }

    fn hmac(self, secret: &Key, bytes: &[u8]) -> Key {
        let secret = &secret[..self.length()];
        match self {
            Hash::Sha1 => key(&mac::<Hmac<Sha1>>(secret, bytes)),
            Hash::Sha256 => key(&mac::<Hmac<Sha256>>(secret, bytes)),
        }
    }

    /// `Hi` of RFC 5802 section 2.2.
    fn salted(self, password: &str, salt: &[u8], iterations: u32) -> Key {
        let mut out = [0; KEY_BYTES_MAX];
        let (password, room) = (password.as_bytes(), &mut out[..self.length()]);
        match self {
            Hash::Sha1 => pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, iterations, room),
            Hash::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, room),
        }
        out
    }
}

fn mac<M: Mac + hmac::digest::KeyInit>(secret: &[u8], bytes: &[u8]) -> Vec<u8> {
    // A key of any length will do.
    let Ok(mut mac) = <M as Mac>::new_from_slice(secret) else { return Vec::new() };
    mac.update(bytes);
    mac.finalize().into_bytes().to_vec()
}

fn key(bytes: &[u8]) -> Key {
    let mut key = [0; KEY_BYTES_MAX];
    key[..bytes.len()].copy_from_slice(bytes);
    key
}

/// What a password comes to with one salt.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Keys {
    /// Whose they are: a hash of everything they were made of.
    of: Key,
    client: Key,
    server: Key,
}

/// Keys of those who logged in before, for all shards: written once each, read without a lock.
#[derive(Debug)]
pub(super) struct Keyring {
    slots: Box<[OnceLock<Box<Keys>>]>,
}

impl Default for Keyring {
    fn default() -> Keyring {
        Keyring { slots: std::iter::repeat_with(OnceLock::new).take(KEYS_MAX).collect() }
    }
}

impl Keyring {
    /// The keys of that password, made only if they are not there. Where there is no place left
    /// they are made each time.
    fn keys(&self, hash: Hash, password: &str, salt: &[u8], iterations: u32) -> Keys {
        let of = owner(hash, password, salt, iterations);
        let first = usize::from(of[0]) << 8 | usize::from(of[1]);
        let slots = (0..PROBES).map(|step| &self.slots[(first + step) % KEYS_MAX]);
        if let Some(found) = slots.clone().filter_map(OnceLock::get).find(|keys| keys.of == of) {
            return (**found).clone();
        }
        let salted = hash.salted(password, salt, iterations);
        let client = hash.hmac(&salted, b"Client Key");
        let server = hash.hmac(&salted, b"Server Key");
        let keys = Keys { of, client, server };
        let mut made = Box::new(keys.clone());
        for slot in slots {
            match slot.set(made) {
                Ok(()) => break,
                Err(back) => made = back,
            }
        }
        keys
    }
}

fn owner(hash: Hash, password: &str, salt: &[u8], iterations: u32) -> Key {
    let mut digest = Sha256::new();
    digest.update([hash as u8]);
    digest.update((password.len() as u64).to_le_bytes());
    digest.update(password);
    digest.update(iterations.to_le_bytes());
    digest.update(salt);
    key(&digest.finalize())
}

/// A proof under way.
#[derive(Debug)]
pub(super) struct Scram {
    hash: Hash,
    /// The first message without its header.
    first: String,
    /// Where the nonce begins in it.
    nonce: usize,
    /// What the target has to prove itself with; not known before it has asked.
    expected: Option<Key>,
}

impl Scram {
    /// Begins a proof; `nonce` is 18 random bytes.
    pub(super) fn new(hash: Hash, name: &str, nonce: &[u8; 18]) -> Scram {
        Scram::with_nonce(hash, name, &STANDARD.encode(nonce))
    }

    fn with_nonce(hash: Hash, name: &str, nonce: &str) -> Scram {
        let name = name.replace('=', "=3D").replace(',', "=2C");
        let first = format!("n={name},r={nonce}");
        Scram { hash, nonce: first.len() - nonce.len(), first, expected: None }
    }

    /// What is said first, base64.
    pub(super) fn initial(&self) -> String {
        STANDARD.encode(format!("n,,{}", self.first))
    }

    /// Answers what the target said first (RFC 5802 section 5.1); both are base64. The error says
    /// what is wrong.
    pub(super) fn answer(
        &mut self,
        challenge: &str,
        password: &str,
        ring: &Keyring,
    ) -> Result<String, String> {
        let challenge = decode(challenge)?;
        let Challenge { nonce, salt, iterations } = Challenge::parse(&challenge)?;
        let own = &self.first[self.nonce..];
        if !nonce.starts_with(own) || nonce.len() == own.len() || nonce.len() > NONCE_BYTES_MAX {
            return Err("the target's nonce does not begin with ours".into());
        }
        let keys = ring.keys(self.hash, password, &salt, iterations);
        let bare = format!("c={BINDING},r={nonce}");
        let all = format!("{},{challenge},{bare}", self.first);
        let stored = self.hash.hash(&keys.client[..self.hash.length()]);
        let signature = self.hash.hmac(&stored, all.as_bytes());
        let proof: Vec<u8> = keys.client.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        self.expected = Some(self.hash.hmac(&keys.server, all.as_bytes()));
        let proof = STANDARD.encode(&proof[..self.hash.length()]);
        Ok(STANDARD.encode(format!("{bare},p={proof}")))
    }

    /// Checks what the target says last, base64.
    pub(super) fn verify(&self, last: &str) -> Result<(), String> {
        let Some(expected) = &self.expected else {
            return Err("the target lets us in without having asked for a proof".into());
        };
        let last = decode(last)?;
        let signature = match last.strip_prefix("v=").and_then(|rest| rest.split(',').next()) {
            Some(signature) => STANDARD.decode(signature).unwrap_or_default(),
            None if last.starts_with("e=") => {
                let mut told = String::new();
                escape(&mut told, &last[2..]);
                return Err(format!("the target refuses: {}", crate::wire::printable(&told)));
            }
            None => return Err("the target does not prove that it knows the password".into()),
        };
        match signature == expected[..self.hash.length()] {
            true => Ok(()),
            false => Err("the target does not know the password: its signature is wrong".into()),
        }
    }
}

/// What the target says first.
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

impl Challenge<'_> {
    fn parse(text: &str) -> Result<Challenge<'_>, String> {
        let mut parts = text.split(',');
        let mut take = |name: &str| parts.next().and_then(|part| part.strip_prefix(name));
        let bad = || String::from("the target's challenge is none of SCRAM");
        let nonce = take("r=").ok_or_else(bad)?;
        let salt = STANDARD.decode(take("s=").ok_or_else(bad)?).map_err(|_| bad())?;
        let iterations: u32 = take("i=").and_then(|text| text.parse().ok()).ok_or_else(bad)?;
        if salt.is_empty() || salt.len() > SALT_BYTES_MAX {
            return Err(format!("a salt of {} bytes", salt.len()));
        }
        if iterations == 0 || iterations > ITERATIONS_MAX {
            return Err(format!(
                "the target asks for {iterations} rounds of salting; more than {ITERATIONS_MAX} \
                 would measure this machine"
            ));
        }
        Ok(Challenge { nonce, salt, iterations })
    }
}

fn decode(text: &str) -> Result<String, String> {
    let bytes = STANDARD.decode(text.trim()).map_err(|_| "a challenge that is not base64")?;
    Ok(String::from_utf8(bytes).map_err(|_| "a challenge that is not UTF-8")?)
}

/// The other side, for tests: a server that asks for a proof.
#[cfg(test)]
#[derive(Debug)]
pub(super) struct Verifier {
    first: String,
    challenge: String,
}

#[cfg(test)]
impl Verifier {
    const SALT: &'static [u8] = b"salt";
    const ITERATIONS: u32 = 2;

    /// Begins with what the person said first.
    pub(super) fn new(initial: &str) -> Verifier {
        let first = decode(initial).unwrap().strip_prefix("n,,").unwrap().to_owned();
        let (_, nonce) = first.split_once(",r=").unwrap();
        let salt = STANDARD.encode(Verifier::SALT);
        let challenge = format!("r={nonce}more,s={salt},i={}", Verifier::ITERATIONS);
        Verifier { first, challenge }
    }

    pub(super) fn challenge(&self) -> String {
        STANDARD.encode(&self.challenge)
    }

    /// Checks the proof and gives our own.
    pub(super) fn verify(&self, response: &str, password: &str) -> String {
        let response = decode(response).unwrap();
        let (bare, proof) = response.split_once(",p=").unwrap();
        let all = format!("{},{},{bare}", self.first, self.challenge);
        let hash = Hash::Sha1;
        let salted = hash.salted(password, Verifier::SALT, Verifier::ITERATIONS);
        let stored = hash.hash(&hash.hmac(&salted, b"Client Key")[..20]);
        let signature = hash.hmac(&stored, all.as_bytes());
        let client: Vec<u8> =
            STANDARD.decode(proof).unwrap().iter().zip(signature).map(|(a, b)| a ^ b).collect();
        assert_eq!(hash.hash(&client), stored, "the password is wrong");
        let server = hash.hmac(&salted, b"Server Key");
        let signature = &hash.hmac(&server, all.as_bytes())[..20];
        STANDARD.encode(format!("v={}", STANDARD.encode(signature)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conversations printed in RFC 5802 section 5 and RFC 7677 section 3.
    #[test]
    fn the_printed_conversations() {
        let rows = [
            (
                Hash::Sha1,
                "fyko+d2lbbFgONRv9qkxdawL",
                "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,\
                 p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
            ),
            (
                Hash::Sha256,
                "rOprNGfwEbeRWgbNEkqO",
                "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                 s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                 p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
            ),
        ];
        let ring = Keyring::default();
        for (hash, nonce, challenge, answer, last) in rows {
            let mut scram = Scram::with_nonce(hash, "user", nonce);
            assert_eq!(decode(&scram.initial()).unwrap(), format!("n,,n=user,r={nonce}"));
            let said = scram.answer(&STANDARD.encode(challenge), "pencil", &ring).unwrap();
            assert_eq!(decode(&said).unwrap(), answer);
            assert_eq!(scram.verify(&STANDARD.encode(last)), Ok(()));
            for wrong in ["v=AAAA", "v=", "e=invalid-proof", "", "x"] {
                assert!(scram.verify(&STANDARD.encode(wrong)).is_err(), "{wrong}");
            }
        }
    }

    #[test]
    fn keys_are_made_once_an_account_and_salt() {
        let ring = Keyring::default();
        let count = || ring.slots.iter().filter(|slot| slot.get().is_some()).count();
        let first = ring.keys(Hash::Sha1, "a", b"salt", 10);
        assert_eq!((ring.keys(Hash::Sha1, "a", b"salt", 10), count()), (first.clone(), 1));
        let others = [
            (Hash::Sha256, "a", &b"salt"[..], 10),
            (Hash::Sha1, "b", b"salt", 10),
            (Hash::Sha1, "a", b"tlas", 10),
            (Hash::Sha1, "a", b"salt", 11),
        ];
        for (place, (hash, password, salt, iterations)) in others.into_iter().enumerate() {
            assert_ne!(ring.keys(hash, password, salt, iterations), first);
            assert_eq!(count(), place + 2);
        }
    }

    #[test]
    fn a_full_ring_is_only_slower() {
        let ring = Keyring { slots: Keyring::default().slots };
        for number in 0..KEYS_MAX as u32 {
            let keys = Keys { of: [1; KEY_BYTES_MAX], client: [0; 32], server: [0; 32] };
            assert!(ring.slots[number as usize].set(Box::new(keys)).is_ok());
        }
        let keys = ring.keys(Hash::Sha1, "a", b"salt", 1);
        assert_eq!(keys, Keyring::default().keys(Hash::Sha1, "a", b"salt", 1));
    }

    #[test]
    fn challenges_that_are_refused() {
        let rows = [
            ("r=other,s=QUJD,i=4096", "nonce"),
            ("r=abc,s=QUJD,i=4096", "nonce"),
            ("r=abcdef,s=QUJD,i=0", "0 rounds"),
            ("r=abcdef,s=QUJD,i=500001", "500001 rounds"),
            ("r=abcdef,s=QUJD,i=4294967296", "none of SCRAM"),
            ("r=abcdef,s=,i=1", "salt of 0"),
            ("r=abcdef,s=!,i=1", "none of SCRAM"),
            ("m=x,r=abcdef,s=QUJD,i=1", "none of SCRAM"),
            ("", "none of SCRAM"),
        ];
        let ring = Keyring::default();
        for (challenge, expect) in rows {
            let mut scram = Scram::with_nonce(Hash::Sha1, "user", "abc");
            let error = scram.answer(&STANDARD.encode(challenge), "pencil", &ring).unwrap_err();
            assert!(error.contains(expect), "{challenge}: {error}");
            assert!(scram.verify(&STANDARD.encode("v=")).is_err());
        }
        let mut scram = Scram::with_nonce(Hash::Sha1, "user", "abc");
        assert!(scram.answer("=", "pencil", &ring).is_err());
        assert!(scram.answer(&STANDARD.encode([0xFF]), "pencil", &ring).is_err());
    }

    #[test]
    fn names_are_escaped() {
        let scram = Scram::with_nonce(Hash::Sha1, "a=b,c", "n");
        assert_eq!(decode(&scram.initial()).unwrap(), "n,,n=a=3Db=2Cc,r=n");
    }
}
