//! memcached's text protocol, as it comes from clients; the meta commands are in `parse_meta.rs`.

use super::command::{Command, Read, Request, Store};
use super::parse_meta;

/// Bytes of a line at most.
const LINE_BYTES: usize = 64 << 10;
/// Bytes of a key at most.
pub const KEY_BYTES: usize = 250;

/// What every broken line is told.
pub const FORMAT: &str = "CLIENT_ERROR bad command line format";
/// A value whose length does not fit.
pub const CHUNK: &str = "CLIENT_ERROR bad data chunk";
/// A value that is longer than values may be.
pub const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";

/// What the start of an input is.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Not a whole request yet.
    Incomplete,
    /// A request, and how many bytes it had.
    Request(Request, usize),
    /// A request that is refused; so many bytes are passed over, which may be more than there are yet.
    Refused(&'static str, usize),
    /// `quit`.
    Quit,
    /// Nothing behind it can be understood.
    Broken(&'static str),
}

/// Whether a key of a line is one. As in memcached, only its length counts: a word has every byte
/// but those that end it (space, NUL, newline), so that control characters belong to keys.
pub fn is_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES).contains(&key.len())
}

/// A number of a command.
pub fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The words of a line, which ends at a NUL as memcached's lines do.
fn words(line: &[u8]) -> Vec<&[u8]> {
    let end = line.iter().position(|&byte| byte == 0).unwrap_or(line.len());
    line[..end].split(|&byte| byte == b' ').filter(|word| !word.is_empty()).collect()
}

/// Takes a request from the start of an input. A value may have `max_value` bytes.
pub fn parse(input: &[u8], max_value: usize) -> Parsed {
    if input.first() == Some(&0x80) {
        return Parsed::Broken("CLIENT_ERROR the binary protocol is not served: use the text protocol");
    }
    let Some(end) = input.iter().take(LINE_BYTES).position(|&byte| byte == b'\n') else {
        return if input.len() < LINE_BYTES {
            Parsed::Incomplete
        } else {
            Parsed::Broken("CLIENT_ERROR line too long")
        };
    };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    let (words, taken) = (words(line), end + 1);
    let Some((&name, rest)) = words.split_first() else { return Parsed::Refused("ERROR", taken) };
    if name == b"quit" {
        return Parsed::Quit;
    }
    let quiet = rest.last() == Some(&&b"noreply"[..]);
    let rest = if quiet { &rest[..rest.len() - 1] } else { rest };
    let storage = match name {
        b"set" | b"cas" => Some(Store::Set),
        b"add" => Some(Store::Add),
        b"replace" => Some(Store::Replace),
        b"append" => Some(Store::Append),
        b"prepend" => Some(Store::Prepend),
        _ => None,
    };
    if let Some(store) = storage {
        return put(store, name == b"cas", rest, quiet, (input, taken), max_value);
    }
    if name == b"ms" {
        return parse_meta::set(rest, (input, taken), max_value);
    }
    match plain(name, rest, quiet) {
        Ok(command) => Parsed::Request(Request { command, quiet }, taken),
        Err(why) => Parsed::Refused(why, taken),
    }
}

/// The value of so many bytes behind a line, and where it ends; or what there is instead.
pub fn block(input: (&[u8], usize), length: &[u8], max_value: usize) -> Result<(Vec<u8>, usize), Parsed> {
    let (input, begin) = input;
    let length = number::<u32>(length).filter(|&length| length <= i32::MAX as u32 - 2);
    let length = length.ok_or(Parsed::Refused(FORMAT, begin))? as usize;
    let end = begin + length + 2;
    if length > max_value {
        return Err(Parsed::Refused(TOO_LARGE, end));
    }
    if input.len() < end {
        return Err(Parsed::Incomplete);
    }
    if &input[end - 2..end] != b"\r\n" {
        // As much as the value should have had is passed over, as memcached does it.
        return Err(Parsed::Refused(CHUNK, end));
    }
    Ok((input[begin..end - 2].to_vec(), end))
}

/// A command with a value: `key flags exptime bytes [cas]`.
fn put(store: Store, cas: bool, rest: &[&[u8]], quiet: bool, input: (&[u8], usize), max_value: usize) -> Parsed {
    // As memcached, one word more stands in the place of `noreply`, whatever it is.
    let words = 4 + usize::from(cas);
    let (true, Some([key, flags, expires, length])) = (
        rest.len() == words || (rest.len() == words + 1 && !quiet),
        rest.get(..4).map(<[_; 4]>::try_from).and_then(Result::ok),
    ) else {
        return Parsed::Refused("ERROR", input.1);
    };
    let cas = match rest.get(4).filter(|_| cas).map(|word| number::<u64>(word)) {
        Some(None) => return Parsed::Refused(FORMAT, input.1),
        given => given.flatten(),
    };
    let (Some(flags), Some(expires), true) = (number(flags), number(expires), is_key(key)) else {
        return Parsed::Refused(FORMAT, input.1);
    };
    match block(input, length, max_value) {
        Ok((value, taken)) => {
            let command = Command::Put { store, key: key.to_vec(), flags, expires, cas, value };
            Parsed::Request(Request { command, quiet }, taken)
        }
        Err(other) => other,
    }
}

fn key(word: &[u8]) -> Result<Vec<u8>, &'static str> {
    if is_key(word) { Ok(word.to_vec()) } else { Err(FORMAT) }
}

fn keys(words: &[&[u8]]) -> Result<Vec<Vec<u8>>, &'static str> {
    if words.is_empty() { Err("ERROR") } else { words.iter().map(|word| key(word)).collect() }
}

const EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";

/// What `md` and `ma` tell of wrong flags: memcached does not say there which it was.
fn unsaid(why: &'static str) -> &'static str {
    if why == FORMAT { FORMAT } else { "CLIENT_ERROR invalid or duplicate flag" }
}

/// A command of one line. As memcached, some take any word in the place of `noreply`.
fn plain(name: &[u8], rest: &[&[u8]], quiet: bool) -> Result<Command, &'static str> {
    let rest = match (name, rest) {
        (b"incr" | b"decr" | b"touch", [word, number, _]) if !quiet => &[*word, *number][..],
        _ => rest,
    };
    Ok(match (name, rest) {
        (b"get" | b"gets", _) => Command::Get(Read { cas: name == b"gets", touch: None }, keys(rest)?),
        (b"gat" | b"gats", [expires, rest @ ..]) => {
            let touch = Some(number(expires).ok_or(EXPTIME)?);
            Command::Get(
                Read { cas: name == b"gats", touch },
                rest.iter().map(|word| key(word)).collect::<Result<_, _>>()?,
            )
        }
        (b"delete", [word] | [word, b"0"]) => Command::Delete(key(word)?),
        (b"delete", [_, _]) => return Err("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"),
        (b"incr" | b"decr", [word, delta]) => {
            let (key, delta) = (key(word)?, number(delta).ok_or("CLIENT_ERROR invalid numeric delta argument")?);
            Command::Arithmetic(name == b"incr", key, delta)
        }
        (b"touch", [word, expires]) => Command::Touch(key(word)?, number(expires).ok_or(EXPTIME)?),
        (b"flush_all", []) => Command::Flush(0),
        (b"flush_all", [delay]) => Command::Flush(number(delay).ok_or(EXPTIME)?),
        (b"stats", _) => Command::Stats(rest.first().map(|word| word.to_vec()).unwrap_or_default()),
        (b"version", []) => Command::Say(format!("VERSION {}\r\n", super::VERSION).into_bytes()),
        (b"verbosity", [_, ..]) => Command::Say(b"OK\r\n".to_vec()),
        (b"mn", _) => Command::Say(b"MN\r\n".to_vec()),
        (b"mg" | b"md" | b"ma", []) => return Err("ERROR"),
        (b"mg", _) => Command::MetaGet(parse_meta::words(rest, parse_meta::GET)?),
        (b"md", _) => Command::MetaDelete(parse_meta::words(rest, parse_meta::DELETE).map_err(unsaid)?),
        (b"ma", _) => Command::MetaArithmetic(parse_meta::words(rest, parse_meta::ARITHMETIC).map_err(unsaid)?),
        (b"me", _) => Command::MetaDebug(parse_meta::words(rest, b"b")?),
        _ => return Err("ERROR"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever part has come, the parser waits; with the whole it gives what was sent, and leaves what follows.
        #[test]
        fn split_at_every_byte(key in "[!-~]{1,40}", value in prop::collection::vec(any::<u8>(), 0..60), flags: u32, quiet: bool) {
            let noreply = if quiet { " noreply" } else { "" };
            let mut bytes = format!("set {key} {flags} 0 {}{noreply}\r\n", value.len()).into_bytes();
            bytes.extend_from_slice(&value);
            bytes.extend_from_slice(b"\r\n");
            let length = bytes.len();
            for end in 0..length {
                prop_assert_eq!(parse(&bytes[..end], 1024), Parsed::Incomplete);
            }
            bytes.extend_from_slice(b"get ");
            let command = Command::Put { store: Store::Set, key: key.into_bytes(), flags, expires: 0, cas: None, value };
            prop_assert_eq!(parse(&bytes, 1024), Parsed::Request(Request { command, quiet }, length));
        }

        /// No input makes it panic, and it always goes forward.
        #[test]
        fn any_bytes(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"get set ms mg 019\r\n".to_vec())], 0..80)) {
            match parse(&bytes, 16) {
                Parsed::Request(_, taken) => prop_assert!(taken > 0 && taken <= bytes.len()),
                Parsed::Refused(_, taken) => prop_assert!(taken > 0),
                _ => {}
            }
        }
    }

    #[test]
    fn refusals() {
        let long = [b"get ".to_vec(), vec![b'k'; 251], b"\r\n".to_vec()].concat();
        for (input, why, taken) in [
            (&b"nonsense\r\n"[..], "ERROR", 10),
            (b"\r\n", "ERROR", 2),
            (b"get\r\n", "ERROR", 5),
            (&long, FORMAT, long.len()),
            (b"set k x 0 1\r\n", FORMAT, 13),
            (b"set k 0 0 -1\r\n", FORMAT, 14),
            (b"set k 0 0 17\r\n", TOO_LARGE, 33),
            (b"set k 0 0 1\r\nabc\r\nget", CHUNK, 16),
            (b"cas k 0 0 1\r\n", "ERROR", 13),
            (b"incr k x\r\n", "CLIENT_ERROR invalid numeric delta argument", 10),
            (b"touch k x\r\n", EXPTIME, 11),
            (b"mg k ?\r\n", "CLIENT_ERROR invalid flag", 8),
        ] {
            assert_eq!(parse(input, 16), Parsed::Refused(why, taken), "{:?}", String::from_utf8_lossy(input));
        }
        assert!(matches!(parse(&[0x80, 1], 16), Parsed::Broken(_)));
        assert!(matches!(parse(&vec![b'x'; LINE_BYTES], 16), Parsed::Broken(_)));
        assert_eq!(parse(b"quit\r\n", 16), Parsed::Quit);
    }
}
