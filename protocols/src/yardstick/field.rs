//! What a field can hold, and the macros that make messages of fields.
//!
//! A field knows both encodings, so a message is written down once and the encodings cannot drift
//! apart. Default values are not written, as proto3 has it.

use std::borrow::Cow;
use std::fmt;

use serde::de::MapAccess;

use super::proto::Value;
use super::{DecodeError, LIST_ITEMS_MAX, json, proto};

/// A string that borrows the frame it was read from where it can.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub Cow<'a, str>);

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text(Cow::Owned(text))
    }
}

/// Bytes that borrow the frame they were read from where they can; base64 in JSON.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Bytes<'a>(pub Cow<'a, [u8]>);

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A `uint64` of milliseconds: a number in protobuf, a string in canonical JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

/// A message: fields by number and by name.
pub(super) trait Fields<'a>: Default {
    /// Appends all fields that are not default.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes one protobuf field; `false` if it does not know it.
    fn set(&mut self, number: u32, value: Value<'a>) -> Result<bool, DecodeError>;
    /// Appends all members that are not default, without the braces.
    fn put_json(&self, out: &mut json::Members<'_>);
    /// Reads the value of a member; `false` (and nothing read) if it does not know the name.
    fn take_json<M: MapAccess<'a>>(&mut self, name: &str, map: &mut M) -> Result<bool, M::Error>;
}

/// The value of a field.
pub(super) trait Field<'a>: Sized {
    fn is_default(&self) -> bool;
    fn put(&self, number: u32, out: &mut Vec<u8>);
    fn take(&mut self, value: Value<'a>) -> Result<(), DecodeError>;
    fn put_json(&self, out: &mut Vec<u8>);
    fn take_json<M: MapAccess<'a>>(&mut self, map: &mut M) -> Result<(), M::Error>;
}

impl<'a> Field<'a> for u32 {
    fn is_default(&self) -> bool {
        *self == 0
    }

    fn put(&self, number: u32, out: &mut Vec<u8>) {
        proto::put_number(number, u64::from(*self), out);
    }

    fn take(&mut self, value: Value<'a>) -> Result<(), DecodeError> {
        *self = value.number()? as u32; // proto3: higher bits are cut off
        Ok(())
    }

    fn put_json(&self, out: &mut Vec<u8>) {
        json::put_number(u64::from(*self), out);
    }

    fn take_json<M: MapAccess<'a>>(&mut self, map: &mut M) -> Result<(), M::Error> {
        let number = map.next_value_seed(json::NumberSeed { most: u64::from(u32::MAX) })?;
        *self = number as u32;
        Ok(())
    }
}

impl<'a> Field<'a> for Millis {
    fn is_default(&self) -> bool {
        self.0 == 0
    }

    fn put(&self, number: u32, out: &mut Vec<u8>) {
        proto::put_number(number, self.0, out);
    }

    fn take(&mut self, value: Value<'a>) -> Result<(), DecodeError> {
        self.0 = value.number()?;
        Ok(())
    }

    fn put_json(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        json::put_number(self.0, out);
        out.push(b'"');
    }

    fn take_json<M: MapAccess<'a>>(&mut self, map: &mut M) -> Result<(), M::Error> {
        self.0 = map.next_value_seed(json::NumberSeed { most: u64::MAX })?;
        Ok(())
    }
}

impl<'a> Field<'a> for bool {
    fn is_default(&self) -> bool {
        !self
    }

    fn put(&self, number: u32, out: &mut Vec<u8>) {
        proto::put_number(number, u64::from(*self), out);
    }

    fn take(&mut self, value: Value<'a>) -> Result<(), DecodeError> {
        *self = value.number()? != 0;
        Ok(())
    }

    fn put_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    fn take_json<M: MapAccess<'a>>(&mut self, map: &mut M) -> Result<(), M::Error> {
        *self = map.next_value::<Option<bool>>()?.unwrap_or(false);
        Ok(())
    }
}

impl<'a> Field<'a> for Text<'a> {
    fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    fn put(&self, number: u32, out: &mut Vec<u8>) {
        proto::put_bytes(number, self.0.as_bytes(), out);
    }

    fn take(&mut self, value: Value<'a>) -> Result<(), DecodeError> {
        let text = std::str::from_utf8(value.bytes()?).map_err(|_| DecodeError::NotUtf8)?;
        self.0 = Cow::Borrowed(text);
        Ok(())
    }

    fn put_json(&self, out: &mut Vec<u8>) {
        json::put_string(&self.0, out);
    }

    fn take_json<M: MapAccess<'a>>(&mut self, map: &mut M) -> Result<(), M::Error> {
        self.0 = map.next_value_seed(json::TextSeed)?;
        Ok(())
    }
}

impl<'a> Field<'a> for Bytes<'a> {
    fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    fn put(&self, number: u32, out: &mut Vec<u8>) {
        proto::put_bytes(number, &self.0, out);
    }

    fn take(&mut self, value: Value<'a>) -> Result<(), DecodeError> {
        self.0 = Cow::Borrowed(value.bytes()?);
        Ok(())
    }

    fn put_json(&self, out: &mut Vec<u8>) {
        json::put_bytes(&self.0, out);
    }

    fn take_json<M: MapAccess<'a>>(&mut self, map: &mut M) -> Result<(), M::Error> {
        self.0 = Cow::Owned(map.next_value_seed(json::BytesSeed)?);
        Ok(())
    }
}

impl<'a> Field<'a> for Vec<Text<'a>> {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn put(&self, number: u32, out: &mut Vec<u8>) {
        for text in self {
            text.put(number, out);
        }
    }

    fn take(&mut self, value: Value<'a>) -> Result<(), DecodeError> {
        let mut text = Text::default();
        text.take(value)?;
        push(self, text)
    }

    fn put_json(&self, out: &mut Vec<u8>) {
        json::put_list(self, out, |text, out| text.put_json(out));
    }

    fn take_json<M: MapAccess<'a>>(&mut self, map: &mut M) -> Result<(), M::Error> {
        let texts = map.next_value_seed(json::ListSeed(|| json::TextSeed))?;
        *self = texts.into_iter().map(Text).collect();
        Ok(())
    }
}

/// Lists of messages.
impl<'a, T: Fields<'a>> Field<'a> for Vec<T> {
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn put(&self, number: u32, out: &mut Vec<u8>) {
        for item in self {
            proto::put_message(number, item, out);
        }
    }

    fn take(&mut self, value: Value<'a>) -> Result<(), DecodeError> {
        let item = proto::read(value.bytes()?)?;
        push(self, item)
    }

    fn put_json(&self, out: &mut Vec<u8>) {
        json::put_list(self, out, json::write_object);
    }

    fn take_json<M: MapAccess<'a>>(&mut self, map: &mut M) -> Result<(), M::Error> {
        *self = map.next_value_seed(json::ListSeed(json::ObjectSeed::new))?;
        Ok(())
    }
}

fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), DecodeError> {
    if list.len() >= LIST_ITEMS_MAX {
        return Err(DecodeError::TooManyItems);
    }
    list.push(item);
    Ok(())
}

/// Makes a struct and its [`Fields`]; an optional last line `oneof` takes in a `choice!`.
/// The names it uses are those of `types.rs`, its only user.
macro_rules! message {
    (
        $(#[$doc:meta])*
        $name:ident $(<$life:lifetime>)? {
            $($number:literal $json:literal $field:ident: $kind:ty,)*
            $(oneof $what:ident: $choice:ty,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        #[allow(missing_docs)] // yardstick.proto has the meaning of each field
        pub struct $name $(<$life>)? {
            $(pub $field: $kind,)*
            $(
                /// What it is about; `None` is something from a newer version.
                pub $what: Option<$choice>,
            )?
        }

        impl<'a> Fields<'a> for $name $(<$life>)? {
            #[allow(unused_variables)]
            fn put(&self, out: &mut Vec<u8>) {
                $(if !self.$field.is_default() {
                    self.$field.put($number, out);
                })*
                $(self.$what.put(out);)?
            }

            #[allow(unused_variables)]
            fn set(
                &mut self,
                number: u32,
                value: proto::Value<'a>,
            ) -> Result<bool, DecodeError> {
                match number {
                    $($number => {
                        Field::take(&mut self.$field, value)?;
                        Ok(true)
                    })*
                    _ => {
                        $(return self.$what.set(number, value);)?
                        #[allow(unreachable_code)]
                        Ok(false)
                    }
                }
            }

            #[allow(unused_variables)]
            fn put_json(&self, out: &mut json::Members<'_>) {
                $(if !self.$field.is_default() {
                    self.$field.put_json(out.name($json));
                })*
                $(self.$what.put_json(out);)?
            }

            #[allow(unused_variables)]
            fn take_json<M: MapAccess<'a>>(
                &mut self,
                name: &str,
                map: &mut M,
            ) -> Result<bool, M::Error> {
                $(if name == $json || name == stringify!($field) {
                    Field::take_json(&mut self.$field, map)?;
                    return Ok(true);
                })*
                $(return self.$what.take_json(name, map);)?
                #[allow(unreachable_code)]
                Ok(false)
            }
        }
    };
}

/// Makes an enum for a `oneof` and the [`Fields`] of its option.
macro_rules! choice {
    (
        $(#[$doc:meta])*
        $name:ident<'a> { $($number:literal $json:literal $variant:ident($kind:ty),)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant is documented at the message it holds
        pub enum $name<'a> {
            $($variant($kind),)*
        }

        impl<'a> Fields<'a> for Option<$name<'a>> {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Some($name::$variant(inner)) => {
                        proto::put_message($number, inner, out);
                    })*
                    None => {}
                }
            }

            fn set(
                &mut self,
                number: u32,
                value: proto::Value<'a>,
            ) -> Result<bool, DecodeError> {
                *self = Some(match number {
                    $($number => {
                        $name::$variant(proto::read(value.bytes()?)?)
                    })*
                    _ => return Ok(false),
                });
                Ok(true)
            }

            fn put_json(&self, out: &mut json::Members<'_>) {
                match self {
                    $(Some($name::$variant(inner)) => {
                        json::write_object(inner, out.name($json));
                    })*
                    None => {}
                }
            }

            fn take_json<M: MapAccess<'a>>(
                &mut self,
                name: &str,
                map: &mut M,
            ) -> Result<bool, M::Error> {
                let found = match name {
                    $($json => map
                        .next_value_seed(json::OptionSeed::new())?
                        .map($name::$variant),)*
                    _ => return Ok(false),
                };
                if found.is_some() && self.is_some() {
                    return Err(serde::de::Error::custom("more than one of a oneof is set"));
                }
                *self = found.or(self.take());
                Ok(true)
            }
        }
    };
}

pub(super) use {choice, message};
