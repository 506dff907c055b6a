//! Commands with a value, as they come from clients.
//!
//! The value of a refused command must not be taken for commands. Where its length is known, so
//! much is passed over. Where it is not (a line with too few words or too many, as a key with a
//! space in it makes one; a number that is none; a value that is longer than was said), the
//! connection ends with the error.

use super::command::{Command, Request, Store};
use super::line::{ERROR, FORMAT, Parsed, is_key, is_quiet, number, time};

/// A value whose length does not fit.
pub const CHUNK: &str = "CLIENT_ERROR bad data chunk";
/// A value that is longer than values may be.
pub const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";

/// Bytes behind a value.
const END: &[u8] = b"\r\n";

/// How a command stores its value, and whether it gives a number for `cas`.
pub fn verb(name: &[u8]) -> Option<(Store, bool)> {
    Some(match name {
        b"set" => (Store::Set, false),
        b"cas" => (Store::Set, true),
        b"add" => (Store::Add, false),
        b"replace" => (Store::Replace, false),
        b"append" => (Store::Append, false),
        b"prepend" => (Store::Prepend, false),
        _ => return None,
    })
}

/// The length of a value.
pub fn length(word: &[u8]) -> Option<usize> {
    number::<u32>(word).filter(|&length| length <= i32::MAX as u32 - 2).map(|length| length as usize)
}

/// A request that is refused together with its value of so many bytes behind a line.
pub fn pass_over(why: &'static str, forgotten: Option<Vec<u8>>, quiet: bool, begin: usize, length: usize) -> Parsed {
    Parsed::Request(Request { command: Command::Refuse(why.into(), forgotten), quiet }, begin + length + END.len())
}

/// The value of so many bytes behind a line, and where it ends; or what there is instead.
pub fn block(input: (&[u8], usize), length: usize, quiet: bool) -> Result<(Vec<u8>, usize), Parsed> {
    let (input, begin) = input;
    let end = begin + length;
    match input.get(end..end + END.len()) {
        None => Err(Parsed::Incomplete),
        Some(END) => Ok((input[begin..end].to_vec(), end + END.len())),
        Some(_) => Err(Parsed::broken(CHUNK, quiet)),
    }
}

/// A command with a value: `key flags exptime bytes [cas] [noreply]`.
pub fn put((store, cas): (Store, bool), rest: &[&[u8]], input: (&[u8], usize), max_value: usize) -> Parsed {
    let (words, quiet) = (4 + usize::from(cas), is_quiet(rest));
    if rest.len() != words && rest.len() != words + 1 {
        return Parsed::broken(ERROR, quiet);
    }
    let given = rest.get(4).filter(|_| cas).map(|word| number::<u64>(word));
    let (Some(flags), Some(expires), Some(length), None | Some(Some(_))) =
        (number(rest[1]), time(rest[2]), length(rest[3]), given)
    else {
        return Parsed::broken(FORMAT, quiet);
    };
    if rest.len() > words && !quiet {
        return Parsed::broken(ERROR, quiet);
    }
    let key = rest[0].to_vec();
    if !is_key(&key) {
        return pass_over(FORMAT, None, quiet, input.1, length);
    }
    if length > max_value {
        let forgotten = (store == Store::Set && !cas).then_some(key);
        return pass_over(TOO_LARGE, forgotten, quiet, input.1, length);
    }
    match block(input, length, quiet) {
        Ok((value, taken)) => {
            let command = Command::Put { store, key, flags, expires, cas: given.flatten(), value };
            Parsed::Request(Request { command, quiet }, taken)
        }
        Err(other) => other,
    }
}
