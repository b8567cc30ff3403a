//! Who a node is to the NATS server: nobody, a user with a password, a token, or a key.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::Ed25519KeyPair;

/// Longest file of credentials, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const SEED_BYTES: usize = 32;
/// First byte of a decoded seed: its five highest bits say so.
const SEED_PREFIX: u8 = 18 << 3;

/// How a node proves who it is.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// It does not: the NATS server takes everybody.
    #[default]
    None,
    /// By a name and a password.
    User {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// By a secret.
    Token(String),
    /// By a signature, under a certificate (`.creds`, or a seed alone).
    Key {
        /// The certificate, if the server does not know the key anyway.
        jwt: Option<String>,
        /// The secret half of the key.
        seed: [u8; SEED_BYTES],
    },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credentials::None => "None",
            Credentials::User { .. } => "User",
            Credentials::Token(_) => "Token",
            Credentials::Key { .. } => "Key",
        })
    }
}

impl Credentials {
    /// Reads a file that nobody else may read: `user: …` and `password: …`, or `token: …`, a line
    /// each; or what `nsc` writes (`.creds`).
    pub fn read(path: &Path) -> io::Result<Credentials> {
        let wrong = |why: String| io::Error::other(format!("{}: {why}", path.display()));
        let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
        if file.metadata().map_err(|error| wrong(error.to_string()))?.mode() & 0o077 != 0 {
            return Err(wrong("others can read it: chmod 600".to_owned()));
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|e| wrong(e.to_string()))?;
        Credentials::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<Credentials, String> {
        if let Some(seed) = between(text, "USER NKEY SEED") {
            let jwt = between(text, "NATS USER JWT").map(str::to_owned);
            return Ok(Credentials::Key { jwt, seed: decode_seed(seed)? });
        }
        let value = |key: &str| {
            let lines = text.lines().filter_map(|line| line.trim().split_once(':'));
            let mut values = lines.filter(|(name, _)| name.trim() == key);
            values.next().map(|(_, value)| value.trim().to_owned())
        };
        match (value("user"), value("password"), value("token")) {
            (Some(user), Some(password), None) => Ok(Credentials::User { user, password }),
            (None, None, Some(token)) => Ok(Credentials::Token(token)),
            _ => Err("it has neither `user: …` and `password: …`, nor `token: …`, nor a key as \
                      nsc writes it"
                .to_owned()),
        }
    }

    /// The fields of CONNECT that prove it, for a server that sent `nonce`.
    pub(crate) fn fields(&self, nonce: &str) -> Result<Vec<(&'static str, String)>, String> {
        Ok(match self {
            Credentials::None => Vec::new(),
            Credentials::User { user, password } => {
                vec![("user", user.clone()), ("pass", password.clone())]
            }
            Credentials::Token(token) => vec![("auth_token", token.clone())],
            Credentials::Key { jwt, seed } => {
                let pair = Ed25519KeyPair::from_seed_unchecked(seed);
                let pair = pair.map_err(|why| format!("the key is none: {why}"))?;
                let signature = URL_SAFE_NO_PAD.encode(pair.sign(nonce.as_bytes()));
                let public = ring::signature::KeyPair::public_key(&pair).as_ref().to_vec();
                let who = match jwt {
                    Some(jwt) => ("jwt", jwt.clone()),
                    None => ("nkey", encode_public(&public)),
                };
                vec![who, ("sig", signature)]
            }
        })
    }
}

/// The line between `-----BEGIN name-----` and the dashes behind it.
fn between<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("BEGIN {name}");
    let (_, rest) = text.split_once(&begin)?;
    rest.lines().skip(1).map(str::trim).find(|line| !line.is_empty())
}

/// A seed as NATS writes it: base32 of two bytes of prefix, the seed, and a CRC-16.
fn decode_seed(text: &str) -> Result<[u8; SEED_BYTES], String> {
    let wrong = || "its seed is none".to_owned();
    let bytes = decode_base32(text).ok_or_else(wrong)?;
    let (body, sum) = bytes.split_at_checked(SEED_BYTES + 2).ok_or_else(wrong)?;
    let is_seed = body[0] & 0xF8 == SEED_PREFIX && sum == crc16(body).to_le_bytes();
    let seed = body[2..].try_into().map_err(|_| wrong())?;
    if is_seed { Ok(seed) } else { Err(wrong()) }
}

fn encode_public(key: &[u8]) -> String {
    const USER_PREFIX: u8 = 20 << 3;
    let mut bytes = vec![USER_PREFIX];
    bytes.extend_from_slice(key);
    let sum = crc16(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    encode_base32(&bytes)
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// RFC 4648 section 6, without padding.
fn decode_base32(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for digit in text.bytes() {
        let value = BASE32.iter().position(|known| *known == digit)? as u32;
        held = (held << 5 | value) & 0xFFFF;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    Some(bytes)
}

fn encode_base32(bytes: &[u8]) -> String {
    let (mut text, mut held, mut bits) = (String::new(), 0_u32, 0);
    for byte in bytes {
        held = (held << 8 | u32::from(*byte)) & 0xFFFF;
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(BASE32[(held >> bits) as usize & 31] as char);
        }
    }
    if bits > 0 {
        text.push(BASE32[(held << (5 - bits)) as usize & 31] as char);
    }
    text
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum: u16, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_credentials() {
        let user = |user: &str, password: &str| {
            Ok(Credentials::User { user: user.to_owned(), password: password.to_owned() })
        };
        let seed = encode_seed(&[7; 32]);
        let creds = format!(
            "-----BEGIN NATS USER JWT-----\neyJ0.abc\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let key = Credentials::Key { jwt: Some("eyJ0.abc".to_owned()), seed: [7; 32] };
        let rows = [
            ("user: ann\npassword: a:b \n".to_owned(), user("ann", "a:b")),
            ("\n token: t\n".to_owned(), Ok(Credentials::Token("t".to_owned()))),
            (creds.clone(), Ok(key)),
        ];
        for (text, expect) in rows {
            assert_eq!(Credentials::parse(&text), expect, "{text}");
        }
        let wrong = creds.replace(&seed, &seed.replacen('A', "B", 1));
        for text in
            ["", "user: ann", "user: a\npassword: b\ntoken: c", &wrong, "BEGIN USER NKEY SEED\nSU"]
        {
            assert!(Credentials::parse(text).is_err(), "{text}");
        }
        assert_eq!(format!("{:?}", Credentials::parse("token: secret").unwrap()), "Token");
    }

    fn encode_seed(seed: &[u8; 32]) -> String {
        let user: u8 = 20 << 3;
        let mut bytes = vec![SEED_PREFIX | user >> 5, (user & 31) << 3];
        bytes.extend_from_slice(seed);
        let sum = crc16(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        encode_base32(&bytes)
    }

    #[test]
    fn keys_are_written_as_nats_writes_them() {
        // A pair from the documentation of NATS.
        let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
        let bytes = decode_seed(seed).unwrap();
        assert_eq!(encode_seed(&bytes), seed);
        let fields = Credentials::Key { jwt: None, seed: bytes }.fields("nonce").unwrap();
        assert_eq!(fields[0].1, "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4");
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(decode_base32(&encode_base32(b"any bytes")).unwrap(), b"any bytes");
    }
}
