//! CLIENT LIST, INFO, KILL, UNBLOCK: about other clients. What concerns the sender alone is in
//! `greeting.rs`.

use std::sync::Arc;

use super::clients::Client;
use super::db::{Db, Outcome, SYNTAX, refuse, refuse_with};
use super::reply::Reply;
use super::subcommands::wrong_form;
use super::words::{integer, is};
use crate::effects::Mail;

/// CLIENT LIST [TYPE kind] [ID n ...]
fn list(db: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let mut clients = db.state.clients.all();
    match words {
        [] => {}
        [option, kind] if is(option, "type") => keep_kind(&mut clients, kind)?,
        [option, numbers @ ..] if is(option, "id") && !numbers.is_empty() => {
            let numbers = numbers.iter().map(|word| integer(word).or_else(|_| refuse("ERR Invalid client ID")));
            let numbers = numbers.collect::<Outcome<Vec<_>>>()?;
            clients.retain(|client| numbers.contains(&(client.number as i64)));
        }
        _ => return refuse(SYNTAX),
    }
    let lines = clients.iter().flat_map(|client| client.line()).collect::<Vec<_>>();
    reply.verbatim(&String::from_utf8_lossy(&lines));
    Ok(())
}

fn keep_kind(clients: &mut Vec<Arc<Client>>, kind: &[u8]) -> Outcome {
    use std::sync::atomic::Ordering::Relaxed;
    let listens = |client: &Client| client.channels.load(Relaxed) + client.patterns.load(Relaxed) > 0;
    match kind.to_ascii_lowercase().as_slice() {
        b"normal" => clients.retain(|client| !listens(client)),
        b"pubsub" => clients.retain(|client| listens(client)),
        b"master" | b"replica" | b"slave" => clients.clear(),
        _ => return refuse_with(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(kind))),
    }
    Ok(())
}

/// CLIENT KILL address, or [ID n] [TYPE kind] [ADDR address] [LADDR address] [USER name] [SKIPME
/// yes|no] ...
fn kill(db: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let mut clients = db.state.clients.all();
    let (mut spare_me, one) = (true, words.len() == 1);
    if let [address] = words {
        clients.retain(|client| client.address.as_bytes() == address);
        spare_me = false;
        if clients.is_empty() {
            return refuse("ERR No such client");
        }
    }
    if !words.len().is_multiple_of(2) && !one {
        return refuse(SYNTAX);
    }
    for filter in words.chunks_exact(2) {
        let value = &filter[1];
        match filter[0].to_ascii_lowercase().as_slice() {
            b"id" => {
                let number = integer(value).ok().filter(|number| *number > 0);
                let number = number.map_or_else(|| refuse("ERR client-id should be greater than 0"), Ok)?;
                clients.retain(|client| client.number as i64 == number);
            }
            b"type" => keep_kind(&mut clients, value)?,
            b"addr" => clients.retain(|client| client.address.as_bytes() == value.as_slice()),
            b"laddr" => clients.retain(|client| client.local.as_bytes() == value.as_slice()),
            b"user" if db.state.access.user(value).is_some() => clients.retain(|client| client.texts().user == *value),
            b"user" => return refuse_with(format!("ERR No such user '{}'", String::from_utf8_lossy(value))),
            b"skipme" if is(value, "yes") => spare_me = true,
            b"skipme" if is(value, "no") => spare_me = false,
            _ => return refuse(SYNTAX),
        }
    }
    if spare_me {
        clients.retain(|client| db.client.is_none_or(|me| me.number != client.number));
    }
    clients.iter().for_each(|client| db.effects.send(&client.mailbox, Mail::Close));
    if one {
        reply.simple("OK");
    } else {
        reply.integer(clients.len() as i64);
    }
    Ok(())
}

/// CLIENT UNBLOCK number [TIMEOUT|ERROR]
fn unblock(db: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let number = integer(&words[0])?;
    let with_error = match words.get(1) {
        None => false,
        Some(how) if is(how, "timeout") => false,
        Some(how) if is(how, "error") => true,
        Some(_) => return refuse("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
    };
    let waiting = db.state.waiting.of_client(number as u64);
    let ended = waiting.filter(|(ticket, _)| db.state.waiting.give_up(*ticket));
    if let Some((ticket, waiter)) = &ended {
        let mut out = Vec::new();
        let mut said = Reply::new(&mut out, waiter.resp3);
        if with_error {
            said.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        } else {
            said.null_array();
        }
        db.effects.send(&waiter.client.mailbox, Mail::Answer { ticket: *ticket, reply: out });
    }
    reply.integer(i64::from(ended.is_some()));
    Ok(())
}

/// CLIENT LIST, INFO, KILL, UNBLOCK, GETREDIR
pub fn client(db: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let sub = words[1].to_ascii_lowercase();
    match (sub.as_slice(), &words[2..]) {
        (b"list", rest) => list(db, rest, reply),
        (b"info", []) => {
            let line = db.client.map_or_else(Vec::new, Client::line);
            reply.verbatim(&String::from_utf8_lossy(&line));
            Ok(())
        }
        (b"kill", rest @ [_, ..]) => kill(db, rest, reply),
        (b"unblock", rest @ ([_] | [_, _])) => unblock(db, rest, reply),
        (b"getredir", []) => {
            reply.integer(-1);
            Ok(())
        }
        (b"setname" | b"setinfo" | b"no-evict" | b"no-touch" | b"reply", _) => {
            refuse("ERR it is not supported inside of MULTI")
        }
        (b"id", []) => {
            reply.integer(db.client.map_or(0, |client| client.number as i64));
            Ok(())
        }
        (b"getname", []) => {
            let name = db.client.map(|client| client.texts().name.clone()).filter(|name| !name.is_empty());
            reply.bulk_or_null(name.as_deref());
            Ok(())
        }
        _ => Err(wrong_form(words)),
    }
}
