//! The meta protocol, as it comes from clients: a key, and flags of one letter with a token behind
//! some of them.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use super::command::{Command, Meta, Request};
use super::line::{ERROR, FORMAT, Parsed, is_key, number, time};
use super::parse_put::{TOO_LARGE, block, length, pass_over};

/// Keys in base64. As memcached's decoder, it passes over bits behind the last whole byte.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Flags of all commands: as memcached, each command passes over those that mean nothing to it.
const FLAGS: &[u8] = b"bcfhklqstuvCDFIJLMNOPRT";

/// Bytes of an opaque token at most, as memcached has it.
const OPAQUE_BYTES: usize = 31;
/// Flags of a command at most, as memcached has it.
const MOST_FLAGS: usize = 17;

/// What is wrong with the token of a flag, if something is.
fn fault(flag: u8, token: &[u8]) -> Option<&'static str> {
    const BAD: &str = "CLIENT_ERROR bad token in command line format";
    let (right, why) = match flag {
        b'N' | b'R' | b'T' => (time(token).is_some(), BAD),
        b'C' => (number::<u64>(token).is_some(), BAD),
        b'D' => (number::<u64>(token).is_some(), "CLIENT_ERROR invalid numeric delta value"),
        b'J' => (number::<u64>(token).is_some(), "CLIENT_ERROR invalid numeric initial value"),
        b'F' => (number::<u32>(token).is_some(), FORMAT),
        b'M' => (token.len() == 1, "CLIENT_ERROR incorrect length for M token"),
        _ => (true, BAD),
    };
    (!right).then_some(why)
}

/// Key and flags.
pub fn words(words: &[&[u8]]) -> Result<Meta, &'static str> {
    let (&sent, flags) = words.split_first().ok_or(FORMAT)?;
    if !is_key(sent) {
        return Err(FORMAT);
    }
    if flags.len() > MOST_FLAGS {
        return Err("CLIENT_ERROR options flags are too long");
    }
    let mut meta = Meta { sent: sent.to_vec(), ..Meta::default() };
    for word in flags {
        let flag = word[0];
        if meta.has(flag) || flag >= 127 {
            return Err("CLIENT_ERROR duplicate flag");
        }
        if !FLAGS.contains(&flag) {
            return Err("CLIENT_ERROR invalid flag");
        }
        meta.flags.push((flag, word[1..].to_vec()));
    }
    // Flags that are none are told first, then the last one whose token is wrong.
    if let Some(why) = meta.flags.iter().rev().find_map(|(flag, token)| fault(*flag, token)) {
        return Err(why);
    }
    if meta.token(b'O').is_some_and(|token| token.len() > OPAQUE_BYTES) {
        return Err("CLIENT_ERROR opaque token too long");
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
    let [key, word, flags @ ..] = rest else {
        return Parsed::broken(if rest.is_empty() { ERROR } else { FORMAT }, false);
    };
    let Some(length) = length(word) else { return Parsed::broken(FORMAT, false) };
    let all: Vec<&[u8]> = std::iter::once(*key).chain(flags.iter().copied()).collect();
    let meta = match words(&all) {
        Ok(meta) => meta,
        Err(why) => return pass_over(why, None, false, input.1, length),
    };
    if meta.how().is_none() {
        return pass_over("CLIENT_ERROR invalid mode for ms M token", None, false, input.1, length);
    }
    if length > max_value {
        return pass_over(TOO_LARGE, meta.overwrites().then_some(meta.key), false, input.1, length);
    }
    match block(input, length, false) {
        Ok((value, taken)) => Parsed::Request(Request::answered(Command::MetaSet(meta, value)), taken),
        Err(other) => other,
    }
}
