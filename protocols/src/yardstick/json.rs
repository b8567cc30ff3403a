//! Proto3's canonical JSON: written by hand, read through serde_json without a document tree.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::field::Fields;
use super::{DecodeError, LIST_ITEMS_MAX};

/// Written with padding; read with and without.
const CONFIG: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);

/// The members of an object under construction.
pub(super) struct Members<'a> {
    out: &'a mut Vec<u8>,
    started: bool,
}

impl Members<'_> {
    /// Appends a comma where one is due and the name; the caller appends the value.
    pub(super) fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if self.started {
            self.out.push(b',');
        }
        self.started = true;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }
}

/// Appends a message as an object.
pub(super) fn write_object<'a>(message: &impl Fields<'a>, out: &mut Vec<u8>) {
    out.push(b'{');
    message.put_json(&mut Members { out, started: false });
    out.push(b'}');
}

pub(super) fn put_list<T>(items: &[T], out: &mut Vec<u8>, put: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        put(item, out);
    }
    out.push(b']');
}

pub(super) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a string; only what JSON demands is escaped, so a stamp survives verbatim.
pub(super) fn put_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends bytes as a string of base64.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    let length = base64::encoded_len(bytes.len(), true).unwrap_or(usize::MAX);
    out.resize(start + length, 0);
    if let Ok(written) = BASE64.encode_slice(bytes, &mut out[start..]) {
        out.truncate(start + written);
    }
    out.push(b'"');
}

/// Reads a document that fills `payload`.
pub(super) fn read<'a, T: Fields<'a>>(payload: &'a [u8]) -> Result<T, DecodeError> {
    let explain = |error: serde_json::Error| DecodeError::Json(error.to_string());
    let mut reader = serde_json::Deserializer::from_slice(payload);
    let message = ObjectSeed::new().deserialize(&mut reader).map_err(explain)?;
    reader.end().map_err(explain)?;
    Ok(message)
}

/// Reads a message from an object.
pub(super) struct ObjectSeed<T>(PhantomData<T>);

impl<T> ObjectSeed<T> {
    pub(super) fn new() -> Self {
        ObjectSeed(PhantomData)
    }
}

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for ObjectSeed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<T, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de, T: Fields<'de>> Visitor<'de> for ObjectSeed<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<T, M::Error> {
        let mut message = T::default();
        while let Some(name) = map.next_key_seed(TextSeed)? {
            if !message.take_json(&name, &mut map)? {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(message)
    }
}

/// Reads a message or null.
pub(super) struct OptionSeed<T>(PhantomData<T>);

impl<T> OptionSeed<T> {
    pub(super) fn new() -> Self {
        OptionSeed(PhantomData)
    }
}

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for OptionSeed<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Option<T>, D::Error> {
        reader.deserialize_option(self)
    }
}

impl<'de, T: Fields<'de>> Visitor<'de> for OptionSeed<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_none<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, reader: D) -> Result<Option<T>, D::Error> {
        ObjectSeed::new().deserialize(reader).map(Some)
    }
}

/// Reads a string, borrowed where it holds no escape; null is the empty string.
pub(super) struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Cow<'de, str>, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
}

/// Reads bytes from base64 of either alphabet; null is no bytes.
pub(super) struct BytesSeed;

impl<'de> DeserializeSeed<'de> for BytesSeed {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Vec<u8>, D::Error> {
        let text = TextSeed.deserialize(reader)?;
        let is_url = text.contains(['-', '_']);
        let decoded = if is_url { BASE64_URL.decode(&*text) } else { BASE64.decode(&*text) };
        decoded.map_err(|_| de::Error::custom("bytes that are not base64"))
    }
}

/// Reads a whole number, also written as a string; null is 0.
pub(super) struct NumberSeed {
    /// The largest that fits.
    pub(super) most: u64,
}

impl NumberSeed {
    fn fit<E: de::Error>(self, number: Option<u64>) -> Result<u64, E> {
        let fits = number.filter(|number| *number <= self.most);
        fits.ok_or_else(|| E::custom(format_args!("not a whole number up to {}", self.most)))
    }
}

impl<'de> DeserializeSeed<'de> for NumberSeed {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<u64, D::Error> {
        reader.deserialize_any(self)
    }
}

impl Visitor<'_> for NumberSeed {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        self.fit(Some(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        self.fit(u64::try_from(number).ok())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        self.fit(text.parse().ok())
    }

    fn visit_unit<E: de::Error>(self) -> Result<u64, E> {
        Ok(0)
    }
}

/// Reads a list whose items are read by the seeds the function makes; null is the empty list.
pub(super) struct ListSeed<F>(pub(super) F);

impl<'de, S: DeserializeSeed<'de>, F: Fn() -> S> DeserializeSeed<'de> for ListSeed<F> {
    type Value = Vec<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de, S: DeserializeSeed<'de>, F: Fn() -> S> Visitor<'de> for ListSeed<F> {
    type Value = Vec<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed((self.0)())? {
            if list.len() >= LIST_ITEMS_MAX {
                return Err(de::Error::custom(DecodeError::TooManyItems));
            }
            list.push(item);
        }
        Ok(list)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }
}
