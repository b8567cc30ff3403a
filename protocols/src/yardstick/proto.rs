//! Protobuf: varints, tags and length-delimited values, by hand.

use super::DecodeError;
use super::field::Fields;

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;
const VARINT_BYTES_MAX: usize = 10;

/// The value of a field as it stands on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A type that none of our messages uses; fit to be skipped only.
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> Result<u64, DecodeError> {
        if let Value::Number(number) = self { Ok(number) } else { Err(DecodeError::BadWireType) }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], DecodeError> {
        if let Value::Bytes(bytes) = self { Ok(bytes) } else { Err(DecodeError::BadWireType) }
    }
}

/// Appends all of a message.
pub(super) fn write<'a>(message: &impl Fields<'a>, out: &mut Vec<u8>) {
    message.put(out);
}

/// Reads a message that fills `bytes`.
pub(super) fn read<'a, T: Fields<'a>>(mut bytes: &'a [u8]) -> Result<T, DecodeError> {
    let mut message = T::default();
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes)?;
        let number = u32::try_from(tag >> 3).map_err(|_| DecodeError::BadVarint)?;
        if number == 0 {
            return Err(DecodeError::BadVarint);
        }
        let value = take_value(tag & 7, &mut bytes)?;
        message.set(number, value)?; // unknown fields are skipped
    }
    Ok(message)
}

fn take_value<'a>(wire_type: u64, bytes: &mut &'a [u8]) -> Result<Value<'a>, DecodeError> {
    match wire_type {
        VARINT => Ok(Value::Number(take_varint(bytes)?)),
        BYTES => {
            let length = take_varint(bytes)?;
            Ok(Value::Bytes(take_bytes(length, bytes)?))
        }
        FIXED_64 => take_bytes(8, bytes).map(|_| Value::Other),
        FIXED_32 => take_bytes(4, bytes).map(|_| Value::Other),
        _ => Err(DecodeError::BadWireType),
    }
}

fn take_bytes<'a>(length: u64, bytes: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = usize::try_from(length).map_err(|_| DecodeError::Truncated)?;
    let (taken, rest) = bytes.split_at_checked(length).ok_or(DecodeError::Truncated)?;
    *bytes = rest;
    Ok(taken)
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut number = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(VARINT_BYTES_MAX) {
        number |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            *bytes = &bytes[i + 1..];
            return Ok(number);
        }
    }
    let cut = bytes.len() < VARINT_BYTES_MAX;
    Err(if cut { DecodeError::Truncated } else { DecodeError::BadVarint })
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a number field.
pub(super) fn put_number(field: u32, number: u64, out: &mut Vec<u8>) {
    put_varint(u64::from(field) << 3 | VARINT, out);
    put_varint(number, out);
}

/// Appends a string or bytes field.
pub(super) fn put_bytes(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(field) << 3 | BYTES, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a message field: the body first, its length slid in afterwards.
pub(super) fn put_message<'a>(field: u32, message: &impl Fields<'a>, out: &mut Vec<u8>) {
    put_varint(u64::from(field) << 3 | BYTES, out);
    let start = out.len();
    message.put(out);
    let end = out.len();
    put_varint((end - start) as u64, out);
    let length_bytes = out.len() - end;
    out[start..].rotate_right(length_bytes);
}
