//! Pictures of people: bytes as incompressible as a photo, made from the hash they are known by.
//!
//! Nothing is stored: a name has a hash, and a hash always stands for the same picture.

use protocols::wire::rng::{SplitMix, mix};
use protocols::yardstick::{Bytes, Person};

use crate::config::{AVATARS_ANSWER_BYTES_MAX, Avatars};

/// Digits of a hash: 64 bits in hexadecimal.
const HASH_DIGITS: usize = 16;

/// How people are shown: the knobs `avatars` and `avatar-bytes`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) avatars: Avatars,
    /// Size of a picture, in bytes.
    pub(crate) bytes: usize,
}

impl Look {
    /// Gives somebody who has a picture that picture, or its hash.
    pub(crate) fn dress(self, person: &mut Person<'_>) {
        match self.avatars {
            Avatars::Off => {}
            Avatars::Lazy => person.avatar_hash = hash(&person.name).into(),
            Avatars::Eager => {
                person.avatar = Bytes(picture_of(seed(&person.name), self.bytes).into());
            }
        }
    }

    /// Dresses those of a list who have a picture. Where pictures are pushed, one answer carries
    /// [`AVATARS_ANSWER_BYTES_MAX`] of them; the others are left to be asked for.
    pub(crate) fn dress_all<'p, 'a: 'p>(self, people: impl Iterator<Item = &'p mut Person<'a>>) {
        let pushed_max = AVATARS_ANSWER_BYTES_MAX / self.bytes.max(1);
        for (at, person) in people.enumerate() {
            let is_beyond = self.avatars == Avatars::Eager && at >= pushed_max;
            let look = if is_beyond { Look { avatars: Avatars::Lazy, ..self } } else { self };
            look.dress(person);
        }
    }
}

/// The picture a hash stands for; `None` if it is no hash.
pub(crate) fn picture(hash: &str, bytes: usize) -> Option<Vec<u8>> {
    let is_hex = hash.len() == HASH_DIGITS && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let seed = u64::from_str_radix(hash, 16).ok().filter(|_| is_hex)?;
    Some(picture_of(seed, bytes))
}

fn hash(name: &str) -> String {
    format!("{:016x}", seed(name))
}

/// FNV-1a with its bits spread: the same on every server.
fn seed(name: &str) -> u64 {
    mix(name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    }))
}

fn picture_of(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = SplitMix::new(seed);
    let mut picture = Vec::with_capacity(bytes + 8);
    while picture.len() < bytes {
        picture.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    picture.truncate(bytes);
    picture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_stands_for_one_picture() {
        let hashes = ["ann", "bob", ""].map(hash);
        for hash in &hashes {
            let found = picture(hash, 6900).unwrap();
            assert_eq!((found.len(), picture(hash, 6900).as_ref()), (6900, Some(&found)));
            assert_eq!(hashes.iter().filter(|other| *other == hash).count(), 1);
            assert_eq!(picture(hash, 13).unwrap(), found[..13]);
        }
        for bad in ["", "00", "+123456789abcdef", "00000000000000000", "zzzzzzzzzzzzzzzz"] {
            assert_eq!(picture(bad, 10), None, "{bad}");
        }
    }

    #[test]
    fn an_answer_carries_so_many_pictures_and_hashes_beyond() {
        let bytes = AVATARS_ANSWER_BYTES_MAX / 3;
        let mut people = vec![Person { name: "ann".into(), ..Person::default() }; 5];
        Look { avatars: Avatars::Eager, bytes }.dress_all(people.iter_mut());
        let sizes: Vec<usize> = people.iter().map(|person| person.avatar.0.len()).collect();
        assert_eq!(sizes, [bytes, bytes, bytes, 0, 0]);
        let hashed = people.iter().map(|person| !person.avatar_hash.is_empty());
        assert_eq!(hashed.collect::<Vec<_>>(), [false, false, false, true, true]);
    }
}
