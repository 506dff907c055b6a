//! The meta protocol, as it comes from clients: a key, and flags of one letter with a token behind some of them.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use super::command::{Command, Meta, Request};
use super::parse::{FORMAT, Parsed, block, is_key, number};

/// Keys in base64. As memcached's decoder, it passes over bits behind the last whole byte.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Flags of `mg`.
pub const GET: &[u8] = b"bcfhklOqstvNRT";
/// Flags of `md`.
pub const DELETE: &[u8] = b"bCIkOqT";
/// Flags of `ma`.
pub const ARITHMETIC: &[u8] = b"bcCDJkMNOqtTv";
/// Flags of `ms`.
const SET: &[u8] = b"bcCFIkMOqsT";

/// Bytes of an opaque token at most, as memcached has it.
const OPAQUE_BYTES: usize = 32;

/// Whether the token of a flag is what the flag takes.
fn is_token(flag: u8, token: &[u8]) -> bool {
    match flag {
        b'N' | b'R' | b'T' => number::<i64>(token).is_some(),
        b'C' | b'D' | b'J' => number::<u64>(token).is_some(),
        b'F' => number::<u32>(token).is_some(),
        b'O' => token.len() <= OPAQUE_BYTES,
        _ => true,
    }
}

/// Key and flags.
pub fn words(words: &[&[u8]], allowed: &[u8]) -> Result<Meta, &'static str> {
    let (&sent, flags) = words.split_first().ok_or(FORMAT)?;
    let mut meta = Meta { sent: sent.to_vec(), ..Meta::default() };
    for word in flags {
        let (flag, token) = (word[0], &word[1..]);
        if !allowed.contains(&flag) {
            return Err("CLIENT_ERROR invalid flag");
        }
        if meta.has(flag) {
            return Err("CLIENT_ERROR duplicate flag");
        }
        if flag == b'M' && token.len() != 1 {
            return Err("CLIENT_ERROR incorrect length for M token");
        }
        if !is_token(flag, token) {
            return Err("CLIENT_ERROR bad token in command line format");
        }
        meta.flags.push((flag, token.to_vec()));
    }
    if !is_key(sent) {
        return Err(FORMAT);
    }
    if meta.has(b'b') {
        meta.key = BASE64.decode(sent).map_err(|_| "CLIENT_ERROR error decoding key")?;
        meta.sent = BASE64.encode(&meta.key).into_bytes();
    } else {
        meta.key = sent.to_vec();
    }
    Ok(meta)
}

/// `ms`: key, length, flags, and the value behind the line.
pub fn set(rest: &[&[u8]], input: (&[u8], usize), max_value: usize) -> Parsed {
    let [key, length, flags @ ..] = rest else {
        return Parsed::Refused(if rest.is_empty() { "ERROR" } else { FORMAT }, input.1);
    };
    if !is_key(key) {
        // Refused before its length is looked at: what follows is taken for a line, as by memcached.
        return Parsed::Refused(FORMAT, input.1);
    }
    let value = match block(input, length, max_value) {
        Ok(value) => value,
        Err(other) => return other,
    };
    let all: Vec<&[u8]> = std::iter::once(*key).chain(flags.iter().copied()).collect();
    match words(&all, SET) {
        Ok(meta) => Parsed::Request(Request { command: Command::MetaSet(meta, value.0), quiet: false }, value.1),
        Err(why) => Parsed::Refused(why, value.1),
    }
}
