//! What the server tells about itself that needs few words: TIME, ROLE, WAIT and others that touch
//! no key.

use std::time::{SystemTime, UNIX_EPOCH};

use super::db::{Db, Outcome, refuse, refuse_with};
use super::reply::Reply;
use super::subcommands::wrong_form;
use super::words::{integer, is};

/// The version of Redis whose commands these are.
pub const VERSION: &str = "7.0.15";

/// PING [text]
pub fn ping(_: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match words {
        [_] => reply.simple("PONG"),
        [_, text] => reply.bulk(text),
        _ => return refuse("ERR wrong number of arguments for 'ping' command"),
    }
    Ok(())
}

/// ECHO text
pub fn echo(_: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    reply.bulk(&words[1]);
    Ok(())
}

/// UNWATCH inside of MULTI: EXEC ends what was watched in any case.
pub fn unwatch(_: &Db<'_>, _: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    reply.simple("OK");
    Ok(())
}

/// TIME
pub fn time(_: &Db<'_>, _: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let parts = [now.as_secs().to_string(), now.subsec_micros().to_string()];
    reply.bulks(parts.iter().map(String::as_bytes));
    Ok(())
}

/// LASTSAVE: what was answered is saved.
pub fn lastsave(db: &Db<'_>, _: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    reply.integer((db.keys.now_ms / 1000) as i64);
    Ok(())
}

/// ROLE
pub fn role(_: &Db<'_>, _: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
    Ok(())
}

/// WAIT replicas milliseconds: there are none.
pub fn wait(_: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    integer(&words[1])?;
    if integer(&words[2]).or_else(|_| refuse("ERR timeout is not an integer or out of range"))? < 0 {
        return refuse("ERR timeout is negative");
    }
    reply.integer(0);
    Ok(())
}

/// FUNCTION LIST, FLUSH: there are none, and none can be loaded.
pub fn function(_: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match words[1].to_ascii_lowercase().as_slice() {
        b"list" => match words[2..].iter().find(|word| !is(word, "withcode")) {
            Some(word) => return refuse_with(format!("ERR Unknown argument {}", String::from_utf8_lossy(word))),
            None => reply.array(0),
        },
        b"flush" => reply.simple("OK"),
        _ => return Err(wrong_form(words)),
    }
    Ok(())
}

/// SCRIPT EXISTS, FLUSH: there are none, and none can be loaded.
pub fn script(_: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    match words[1].to_ascii_lowercase().as_slice() {
        b"exists" => {
            reply.array(words.len() - 2);
            words[2..].iter().for_each(|_| reply.integer(0));
        }
        b"flush" => reply.simple("OK"),
        _ => return Err(wrong_form(words)),
    }
    Ok(())
}
