//! Profiles in the format of pprof (github.com/google/pprof, proto/profile.proto) as folded stacks.

use super::fold::Folds;
use flate2::read::MultiGzDecoder;
use std::collections::HashMap;
use std::io::Read;

/// Largest profile once unpacked, bytes.
const BYTES_MAX: u64 = 128 << 20;
/// Most functions of one sample.
const FRAMES_MAX: usize = 512;
/// Fields of `Profile`.
const SAMPLE_TYPE: u64 = 1;
const SAMPLE: u64 = 2;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;
const DEFAULT_SAMPLE_TYPE: u64 = 14;

/// Folds a profile, packed by gzip or not. The error says what is wrong with it.
pub(super) fn fold(bytes: &[u8]) -> Result<Folds, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return folded(bytes);
    }
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(bytes).take(BYTES_MAX + 1);
    decoder
        .read_to_end(&mut unpacked)
        .map_err(|error| format!("the profile cannot be unpacked: {error}"))?;
    if unpacked.len() as u64 > BYTES_MAX {
        return Err(format!("the profile is larger than {} MiB", BYTES_MAX >> 20));
    }
    folded(&unpacked)
}

/// The tables of a profile, by number.
#[derive(Default)]
struct Tables<'a> {
    strings: Vec<&'a [u8]>,
    /// The name of a function, as a place in `strings`.
    functions: HashMap<u64, u64>,
    /// Functions of a location, the innermost first.
    locations: HashMap<u64, Place>,
    types: Vec<u64>,
    default_type: u64,
}

/// Where a piece of code is.
struct Place {
    functions: Vec<u64>,
    address: u64,
}

fn folded(bytes: &[u8]) -> Result<Folds, String> {
    let tables = Tables::read(bytes).ok_or("this is no profile in the format of pprof")?;
    let value = tables.value();
    let mut folds = Folds::default();
    let mut fields = Fields(bytes);
    while let Some((number, field)) = fields.next().map_err(|()| "the profile is broken")? {
        if let (SAMPLE, Field::Bytes(sample)) = (number, field) {
            tables.sample(sample, value, &mut folds).ok_or("a sample of the profile is broken")?;
        }
    }
    Ok(folds)
}

impl<'a> Tables<'a> {
    fn read(bytes: &'a [u8]) -> Option<Tables<'a>> {
        let mut tables = Tables::default();
        let mut fields = Fields(bytes);
        while let Some((number, field)) = fields.next().ok()? {
            match (number, field) {
                (SAMPLE_TYPE, Field::Bytes(bytes)) => tables.types.push(first(bytes, 1)?),
                (LOCATION, Field::Bytes(bytes)) => tables.location(bytes)?,
                (FUNCTION, Field::Bytes(bytes)) => {
                    tables.functions.insert(first(bytes, 1)?, first(bytes, 2)?);
                }
                (STRING, Field::Bytes(bytes)) => tables.strings.push(bytes),
                (DEFAULT_SAMPLE_TYPE, Field::Number(number)) => tables.default_type = number,
                _ => {}
            }
        }
        // The first string is always the empty one, and a profile says what it counts.
        (!tables.types.is_empty() && tables.strings.first().is_some_and(|text| text.is_empty()))
            .then_some(tables)
    }

    fn location(&mut self, bytes: &[u8]) -> Option<()> {
        let (mut id, mut place) = (0, Place { functions: Vec::new(), address: 0 });
        let mut fields = Fields(bytes);
        while let Some((number, field)) = fields.next().ok()? {
            match (number, field) {
                (1, Field::Number(number)) => id = number,
                (3, Field::Number(number)) => place.address = number,
                (4, Field::Bytes(line)) if place.functions.len() < FRAMES_MAX => {
                    place.functions.push(first(line, 1)?);
                }
                _ => {}
            }
        }
        self.locations.insert(id, place);
        Some(())
    }

    /// Which of a sample's values counts: how often it was seen if the profile tells, or else what
    /// the profile says, or the last one (profile.proto, `default_sample_type`).
    fn value(&self) -> usize {
        let position = |name: &[u8]| self.types.iter().position(|at| self.string(*at) == name);
        let said = match self.default_type {
            0 => None,
            at => self.types.iter().position(|kind| *kind == at),
        };
        position(b"samples").or(said).unwrap_or(self.types.len().saturating_sub(1))
    }

    fn string(&self, at: u64) -> &'a [u8] {
        usize::try_from(at).ok().and_then(|at| self.strings.get(at).copied()).unwrap_or_default()
    }

    fn sample(&self, bytes: &[u8], value: usize, folds: &mut Folds) -> Option<()> {
        let (mut places, mut values) = (Vec::new(), Vec::new());
        let mut fields = Fields(bytes);
        while let Some((number, field)) = fields.next().ok()? {
            match number {
                1 => numbers(field, &mut places)?,
                2 => numbers(field, &mut values)?,
                _ => {}
            }
        }
        let weight = values.get(value).map_or(0, |value| (*value as i64).max(0) as u64);
        let names: Vec<String> = places.iter().rev().flat_map(|at| self.names(*at)).collect();
        folds.add(names.iter().map(String::as_str), weight);
        Some(())
    }

    /// The functions of a location, the outermost first.
    fn names(&self, location: u64) -> Vec<String> {
        let Some(place) = self.locations.get(&location) else { return vec!["[unknown]".into()] };
        let name = |function: &u64| {
            let name =
                self.functions.get(function).map_or(&b"[unknown]"[..], |at| self.string(*at));
            String::from_utf8_lossy(name).into_owned()
        };
        match place.functions.is_empty() {
            true => vec![format!("0x{:x}", place.address)],
            false => place.functions.iter().rev().map(name).collect(),
        }
    }
}

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message that are still to be read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The next field with its number; an error if the bytes are none.
    fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, ()> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = varint(&mut self.0).ok_or(())?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut self.0).ok_or(())?),
            1 => Field::Bytes(self.cut(8).ok_or(())?),
            2 => {
                let length = varint(&mut self.0).ok_or(())?;
                Field::Bytes(usize::try_from(length).ok().and_then(|n| self.cut(n)).ok_or(())?)
            }
            5 => Field::Bytes(self.cut(4).ok_or(())?),
            _ => return Err(()),
        };
        Ok(Some((key >> 3, field)))
    }

    fn cut(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// The first number of that field in a message; zero if it is not there.
fn first(bytes: &[u8], field: u64) -> Option<u64> {
    let mut fields = Fields(bytes);
    while let Some((number, value)) = fields.next().ok()? {
        if let (true, Field::Number(value)) = (number == field, value) {
            return Some(value);
        }
    }
    Some(0)
}

/// Numbers of a repeated field, packed or not; those beyond the bound are left out.
fn numbers(field: Field<'_>, out: &mut Vec<u64>) -> Option<()> {
    match field {
        Field::Number(number) => out.extend((out.len() < FRAMES_MAX).then_some(number)),
        Field::Bytes(mut bytes) => {
            while !bytes.is_empty() && out.len() < FRAMES_MAX {
                out.push(varint(&mut bytes)?);
            }
        }
    }
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use model::Rng;
    use std::io::Write;

    fn number(field: u64, mut value: u64) -> Vec<u8> {
        let mut bytes = vec![(field << 3) as u8];
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn message(field: u64, parts: &[Vec<u8>]) -> Vec<u8> {
        let body = parts.concat();
        let mut bytes = number(field, body.len() as u64);
        bytes[0] |= 2;
        bytes.extend(body);
        bytes
    }

    /// Two samples: main → serve (with `say` inlined), and an address without a name.
    fn profile() -> Vec<u8> {
        let strings = ["", "samples", "count", "cpu", "nanoseconds", "main", "serve", "say"];
        let mut parts = vec![
            message(1, &[number(1, 1), number(2, 2)]),
            message(1, &[number(1, 3), number(2, 4)]),
            message(2, &[message(1, &[vec![2, 1]]), message(2, &[vec![3, 99]])]),
            message(2, &[number(1, 3), number(1, 1), number(2, 2), number(2, 7)]),
            message(4, &[number(1, 1), message(4, &[number(1, 1)])]),
            message(4, &[number(1, 2), message(4, &[number(1, 3)]), message(4, &[number(1, 2)])]),
            message(4, &[number(1, 3), number(3, 0xabc)]),
            number(14, 3),
        ];
        parts.extend((1..=3).map(|id| message(5, &[number(1, id), number(2, id + 4)])));
        parts.extend(strings.iter().map(|text| message(6, &[text.as_bytes().to_vec()])));
        parts.concat()
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_profile_is_folded_packed_or_not() {
        let want = "main;0xabc 2\nmain;serve;say 3\n";
        assert_eq!(fold(&profile()).unwrap().text(), want);
        assert_eq!(fold(&packed(&profile())).unwrap().text(), want);
    }

    #[test]
    fn what_is_none_is_refused() {
        let bomb = packed(&vec![0; (BYTES_MAX + 2) as usize]);
        for (bytes, what) in [
            (&b""[..], "no profile"),
            (b"<html>404</html>", "no profile"),
            (b"\x1f\x8b\x08junk", "unpacked"),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "no profile"),
            (&bomb, "larger"),
        ] {
            let why = fold(bytes).unwrap_err();
            assert!(why.contains(what), "{why}");
        }
    }

    #[test]
    fn nothing_makes_it_panic() {
        let right = profile();
        let mut folded = 0;
        for seed in 0..20_000 {
            let mut rng = Rng::new(seed, 0x99_0F);
            let mut bytes = right.clone();
            for _ in 0..=rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(3) {
                    0 => bytes[at] = rng.below(256) as u8,
                    1 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, 0xff),
                }
            }
            folded += u32::from(fold(&bytes).is_ok());
        }
        assert!((100..19_900).contains(&folded), "{folded} of 20,000 were understood");
    }
}
