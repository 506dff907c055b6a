//! The plain forms of values.

use crate::redis::value::Value;

/// Kinds of values in Redis's format.
pub mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const HASH: u8 = 4;
    pub const ZSET_2: u8 = 5;
}

/// A length: of 6 bits, 14, 32, or 64.
fn length(bytes: &mut Vec<u8>, length: usize) {
    match length {
        0..0x40 => bytes.push(length as u8),
        0x40..0x4000 => bytes.extend_from_slice(&[0x40 | (length >> 8) as u8, length as u8]),
        0x4000..=0xffff_ffff => {
            bytes.push(0x80);
            bytes.extend_from_slice(&(length as u32).to_be_bytes());
        }
        _ => {
            bytes.push(0x81);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

fn text(bytes: &mut Vec<u8>, text: &[u8]) {
    length(bytes, text.len());
    bytes.extend_from_slice(text);
}

/// A value, its kind in front.
pub fn value(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    match value {
        Value::String(row) => {
            bytes.push(kind::STRING);
            text(&mut bytes, row);
        }
        Value::List(rows) | Value::Set(rows) => {
            bytes.push(if matches!(value, Value::List(_)) { kind::LIST } else { kind::SET });
            length(&mut bytes, rows.len());
            rows.iter().for_each(|row| text(&mut bytes, row));
        }
        Value::Hash(rows) => {
            bytes.push(kind::HASH);
            length(&mut bytes, rows.len());
            for (field, value) in rows {
                text(&mut bytes, field);
                text(&mut bytes, value);
            }
        }
        Value::ZSet(rows) => {
            bytes.push(kind::ZSET_2);
            length(&mut bytes, rows.len());
            for (member, score) in rows {
                text(&mut bytes, member);
                bytes.extend_from_slice(&score.to_le_bytes());
            }
        }
    }
    bytes
}
