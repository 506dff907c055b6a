//! What holds of the parsers for every input: bodies of the fuzz targets in `serve/fuzz`, which the
//! tests here run from seeds.
//!
//! A panic is a finding. The first two bytes of an input say where it is cut, so that what comes in
//! pieces is compared with what comes at once.

use crate::memcached::line::Parsed as Asked;
use crate::memcached::multiget;
use crate::memcached::parse::{self, Limits};
use crate::options::Renamed;
use crate::redis::dump::{read, write};
use crate::redis::resp::{Parsed, Parser};

/// Bytes of a value at most: few, so that inputs reach the limit.
const MAX_VALUE: usize = 64;

/// Where an input is cut, and the rest of it.
fn cut(data: &[u8]) -> (usize, &[u8]) {
    match data {
        [low, high, rest @ ..] => (usize::from(u16::from_le_bytes([*low, *high])) % (rest.len() + 1), rest),
        _ => (0, data),
    }
}

/// Commands of Redis's protocol, one behind the other: none has more bytes than there are, pieces
/// give the same as the whole, and the words of a command, sent again as an array, are those words.
///
/// # Panics
/// On a finding.
pub fn redis(data: &[u8]) {
    let (cut, mut input) = cut(data);
    loop {
        let whole = Parser::default().parse(input, MAX_VALUE);
        let mut parser = Parser::default();
        let early = parser.parse(&input[..cut.min(input.len())], MAX_VALUE);
        let in_pieces = if early == Parsed::Incomplete { parser.parse(input, MAX_VALUE) } else { early };
        assert_eq!(in_pieces, whole, "in pieces, the first of {cut} bytes");
        let Parsed::Command(words, taken) = whole else { return };
        assert!((1..=input.len()).contains(&taken), "{taken} bytes of {}", input.len());
        if !words.is_empty() {
            let mut again = format!("*{}\r\n", words.len()).into_bytes();
            for word in &words {
                again.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                again.extend_from_slice(word);
                again.extend_from_slice(b"\r\n");
            }
            let length = again.len();
            assert_eq!(Parser::default().parse(&again, usize::MAX >> 1), Parsed::Command(words, length));
        }
        input = &input[taken..];
    }
}

/// Requests of memcached's protocol, one behind the other: each takes something, what is understood
/// of the first part is what is understood of the whole, and the keys of a multi-get end.
///
/// # Panics
/// On a finding.
pub fn memcached(data: &[u8]) {
    let (cut, mut input) = cut(data);
    let names = Renamed::default();
    let parse = |input: &[u8]| parse::parse(input, Limits { max_value: MAX_VALUE, names: &names });
    loop {
        let whole = parse(input);
        let early = parse(&input[..cut.min(input.len())]);
        assert!(early == Asked::Incomplete || early == whole, "{early:?} of {cut} bytes, then {whole:?}");
        let taken = match whole {
            Asked::Incomplete | Asked::Last(_) => return,
            Asked::Request(_, taken) => taken,
            Asked::Keys(_, place) => keys(input, place),
        };
        assert!(taken > 0);
        // A refused value may have more bytes than have come.
        let Some(rest) = input.get(taken..) else { return };
        input = rest;
    }
}

/// Takes the keys of a line, and gives where they end.
fn keys(input: &[u8], mut at: usize) -> usize {
    loop {
        let piece = multiget::piece(&input[at..]);
        at += piece.taken;
        assert!(at <= input.len());
        if piece.end.is_some() || piece.keys.is_empty() {
            return at.max(1);
        }
    }
}

/// A value as `RESTORE` takes it, without version and checksum: what is read, written and read
/// again is the same.
///
/// # Panics
/// On a finding.
pub fn dump(data: &[u8]) {
    if let Some(value) = read::value(data) {
        assert_eq!(read::value(&write::value(&value)), Some(value));
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Inputs made of what the parsers look for.
    fn fuzz(pieces: &[&[u8]], target: fn(&[u8])) {
        for seed in 0..20_000 {
            let mut random = StdRng::seed_from_u64(seed);
            let mut input: Vec<u8> = random.random::<[u8; 2]>().to_vec();
            for _ in 0..random.random_range(0..12) {
                match random.random_range(0..6) {
                    0 => input.push(random.random()),
                    _ => input.extend_from_slice(pieces[random.random_range(0..pieces.len())]),
                }
            }
            target(&input);
        }
    }

    #[test]
    fn redis_takes_anything() {
        let pieces: [&[u8]; 12] =
            [b"*2\r\n", b"$3\r\n", b"abc", b"\r\n", b"*1\r\n$65\r\n", b"\"", b"'", b"\\x4", b"0", b"-1", b" ", b"*"];
        fuzz(&pieces, redis);
    }

    #[test]
    fn memcached_takes_anything() {
        let pieces: [&[u8]; 16] = [
            b"set k 0 0 ",
            b"3\r\n",
            b"abc\r\n",
            b"get ",
            b"k ",
            b"\r\n",
            b"ms k 3 ",
            b"T0 ",
            b"noreply",
            b"mg k ",
            b"v",
            b"gat 1 ",
            b"99",
            b"incr k ",
            b"\0",
            b"verbosity",
        ];
        fuzz(&pieces, memcached);
    }

    #[test]
    fn restore_takes_anything() {
        let pieces: [&[u8]; 12] = [
            b"\x00",
            b"\x01",
            b"\x03abc",
            b"\x10\x0d",
            b"\x0c\x00\x00\x00\x02\x00",
            b"\xff",
            b"\xc0\x01",
            b"\xc3\x04\x08",
            b"\x80",
            b"\x81",
            b"\x0b\x0c",
            b"\x12\x01\x02",
        ];
        fuzz(&pieces, |input| dump(&input[2..]));
    }
}
