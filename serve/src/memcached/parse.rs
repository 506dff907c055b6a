//! memcached's text protocol, as it comes from clients. Commands with a value are in
//! `parse_put.rs`, the lines of long multi-gets in `multiget.rs`, the meta commands in
//! `parse_meta.rs`.

use super::command::{Command, Read, Request};
use super::line::{ERROR, EXPTIME, FORMAT, LINE_BYTES, Parsed, is_key, is_quiet, number, time, words};
use super::{foreign, multiget, parse_meta, parse_put};
use crate::options::Renamed;

/// All commands that are read here and in `parse_put.rs`: who renames one is refused if it is not
/// among them.
pub const COMMANDS: &[&str] = &[
    "add",
    "append",
    "bget",
    "cas",
    "decr",
    "delete",
    "flush_all",
    "gat",
    "gats",
    "get",
    "gets",
    "incr",
    "ma",
    "md",
    "me",
    "mg",
    "mn",
    "ms",
    "prepend",
    "quit",
    "replace",
    "set",
    "slabs",
    "stats",
    "touch",
    "verbosity",
    "version",
];

/// What a server lets its clients ask for.
#[derive(Clone, Copy)]
pub struct Limits<'n> {
    /// Bytes of a value.
    pub max_value: usize,
    /// Names of commands.
    pub names: &'n Renamed,
}

/// Takes a request from the start of an input.
pub fn parse(input: &[u8], limits: Limits<'_>) -> Parsed {
    if input.first() == Some(&0x80) {
        return Parsed::broken("CLIENT_ERROR the binary protocol is not served: use the text protocol", false);
    }
    if foreign::is_foreign(input) {
        return Parsed::Last(Request::nothing());
    }
    let Some(end) = input.iter().take(LINE_BYTES).position(|&byte| byte == b'\n') else {
        return if input.len() < LINE_BYTES { Parsed::Incomplete } else { long_line(input, limits.names) };
    };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    let (words, taken) = (words(line), end + 1);
    let Some((&sent, rest)) = words.split_first() else { return Parsed::refused(ERROR, taken) };
    match limits.names.meant(sent) {
        Some(name) => request(name, rest, (input, taken), limits.max_value),
        // Its value is none of a command that was asked for, but is there all the same.
        None => match request(sent, rest, (input, taken), limits.max_value) {
            Parsed::Request(request, taken) => {
                let why = format!("CLIENT_ERROR {} not allowed", String::from_utf8_lossy(sent));
                Parsed::Request(Request::refused(why, request.quiet), taken)
            }
            Parsed::Keys(..) => Parsed::refused("CLIENT_ERROR not allowed", taken),
            other => other,
        },
    }
}

/// The request of a line, which has so many bytes of the input.
fn request(name: &[u8], rest: &[&[u8]], line: (&[u8], usize), max_value: usize) -> Parsed {
    let (input, taken) = line;
    match name {
        b"quit" => Parsed::Last(Request::nothing()),
        b"get" | b"gets" | b"gat" | b"gats" | b"bget" => match read(name, rest) {
            Ok((read, keys)) if keys.len() <= multiget::FEW => {
                let keys = keys.iter().map(|key| key.to_vec()).collect();
                Parsed::Request(Request::answered(Command::Get(read, keys, true)), taken)
            }
            Ok((read, keys)) => Parsed::Keys(read, place(input, keys[0])),
            Err(why) => Parsed::refused(why, taken),
        },
        b"ms" => parse_meta::set(rest, line, max_value),
        _ => match parse_put::verb(name) {
            Some(verb) => parse_put::put(verb, rest, line, max_value),
            None => {
                let (command, quiet) = plain(name, rest);
                let refused = |why| Request::refused(why, quiet);
                Parsed::Request(command.map_or_else(refused, |command| Request { command, quiet }), taken)
            }
        },
    }
}

/// Where a part of an input begins.
fn place(input: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - input.as_ptr() as usize
}

/// A line that is longer than lines may be: a multi-get, whose keys are taken as they come, or
/// nothing that could be understood.
fn long_line(input: &[u8], names: &Renamed) -> Parsed {
    const BROKEN: &str = "CLIENT_ERROR line too long";
    // The last word may be a part of one.
    let words = words(&input[..LINE_BYTES]);
    let Some((&name, rest)) = words.split_first() else { return Parsed::broken(BROKEN, false) };
    let Some(name) = names.meant(name) else { return Parsed::broken(BROKEN, false) };
    match read(name, rest.get(..rest.len().min(2)).unwrap_or_default()) {
        Ok((read, [first, ..])) => Parsed::Keys(read, place(input, first)),
        _ => Parsed::broken(BROKEN, false),
    }
}

/// How get, gets, gat and gats read, and their keys, if all of them are right.
fn read<'r, 'w>(name: &[u8], rest: &'r [&'w [u8]]) -> Result<(Read, &'r [&'w [u8]]), &'static str> {
    let (touch, keys) = match (name, rest) {
        (b"gat" | b"gats", [time, keys @ ..]) => (Some(self::time(time).ok_or(EXPTIME)?), keys),
        (b"get" | b"gets" | b"bget", [_, ..]) => (None, rest),
        _ => return Err(ERROR),
    };
    if !keys.iter().all(|key| is_key(key)) {
        return Err(FORMAT);
    }
    Ok((Read { cas: name.ends_with(b"s"), touch }, keys))
}

fn key(word: &[u8]) -> Result<Vec<u8>, &'static str> {
    if is_key(word) { Ok(word.to_vec()) } else { Err(FORMAT) }
}

/// What `md` and `ma` tell of wrong flags: memcached does not say there which it was.
fn unsaid(why: &'static str) -> &'static str {
    if why == FORMAT || why.ends_with("too long") { why } else { "CLIENT_ERROR invalid or duplicate flag" }
}

/// A command of one line without keys to read, and whether it wants no reply. Which commands look
/// for `noreply` is memcached's choice: to the others it is a word as any other.
fn plain(name: &[u8], rest: &[&[u8]]) -> (Result<Command, &'static str>, bool) {
    let quiet = match name {
        b"delete" => rest.len() > 1 && is_quiet(rest),
        b"incr" | b"decr" | b"touch" | b"flush_all" | b"verbosity" => is_quiet(rest),
        _ => false,
    };
    (command(name, rest, quiet), quiet)
}

fn command(name: &[u8], rest: &[&[u8]], quiet: bool) -> Result<Command, &'static str> {
    Ok(match (name, rest) {
        (b"delete", [word] | [word, b"0"] | [word, b"noreply"] | [word, b"0", b"noreply"]) => {
            Command::Delete(key(word)?)
        }
        (b"delete", [_, _] | [_, _, _]) => {
            return Err("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]");
        }
        // As in memcached, any word may stand in the place of `noreply`.
        (b"incr" | b"decr", [word, delta] | [word, delta, _]) => {
            let (key, delta) = (key(word)?, number(delta).ok_or("CLIENT_ERROR invalid numeric delta argument")?);
            Command::Arithmetic(name == b"incr", key, delta)
        }
        (b"touch", [word, expires] | [word, expires, _]) => Command::Touch(key(word)?, time(expires).ok_or(EXPTIME)?),
        (b"flush_all", []) => Command::Flush(0),
        (b"flush_all", [_]) if quiet => Command::Flush(0),
        (b"flush_all", [delay] | [delay, _]) => Command::Flush(time(delay).ok_or(EXPTIME)?),
        (b"stats", [b"detail", what, ..]) => Command::Stats([b"detail ", *what].concat()),
        (b"stats", _) => Command::Stats(rest.first().map(|word| word.to_vec()).unwrap_or_default()),
        (b"version", _) => Command::Say(format!("VERSION {}\r\n", super::VERSION).into_bytes()),
        (b"verbosity", [b"noreply"]) => Command::Say(b"OK\r\n".to_vec()),
        (b"verbosity", [level] | [level, _]) => {
            number::<u32>(level).ok_or(FORMAT)?;
            Command::Say(b"OK\r\n".to_vec())
        }
        // There are no slabs, so that none moves.
        (b"slabs", [b"automove", level]) if number::<u32>(level).is_some_and(|level| level <= 2) => {
            Command::Say(b"OK\r\n".to_vec())
        }
        (b"slabs", [b"automove", _]) => return Err(FORMAT),
        (b"slabs", [b"reassign", _, _]) => return Err("CLIENT_ERROR slab reassignment disabled"),
        (b"mn", _) => Command::Say(b"MN\r\n".to_vec()),
        (b"mg" | b"md" | b"ma" | b"me", []) => return Err(ERROR),
        (b"mg", _) => Command::MetaGet(parse_meta::words(rest)?),
        (b"md", _) => Command::MetaDelete(parse_meta::words(rest).map_err(unsaid)?),
        (b"ma", _) => Command::MetaArithmetic(parse_meta::words(rest).map_err(unsaid)?),
        (b"me", _) => Command::MetaDebug(parse_meta::words(rest)?),
        _ => return Err(ERROR),
    })
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
