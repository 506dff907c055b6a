//! What a user may ask for. The rules of users are those of Redis; to them memcached's commands are
//! of the categories `read`, `write`, `admin` and `dangerous`.

use super::command::{Command, Request, Store};
use crate::access::User;

/// The name of a command, its categories, and whether it reads and writes keys.
struct Kind {
    name: &'static str,
    categories: &'static [&'static str],
    reads: bool,
    writes: bool,
}

fn kind(command: &Command) -> Option<Kind> {
    let read = |name| Kind { name, categories: &["read"], reads: true, writes: false };
    let write = |name| Kind { name, categories: &["write"], reads: false, writes: true };
    // As Redis's GETEX and INCR: of a user who may only read, nothing changes a key.
    let both = |name| Kind { name, categories: &["write"], reads: true, writes: true };
    let about = |name, categories| Kind { name, categories, reads: false, writes: false };
    Some(match command {
        Command::Say(_) | Command::Refuse(_, None) => return None,
        Command::Refuse(_, Some(_)) => write("set"),
        Command::Get(read_, ..) => match (read_.touch.is_some(), read_.cas) {
            (false, false) => read("get"),
            (false, true) => read("gets"),
            (true, false) => both("gat"),
            (true, true) => both("gats"),
        },
        Command::Put { cas: Some(_), .. } => write("cas"),
        Command::Put { store, .. } => write(match store {
            Store::Set => "set",
            Store::Add => "add",
            Store::Replace => "replace",
            Store::Append => "append",
            Store::Prepend => "prepend",
        }),
        Command::Delete(_) => write("delete"),
        Command::Arithmetic(true, ..) => both("incr"),
        Command::Arithmetic(false, ..) => both("decr"),
        Command::Touch(..) => write("touch"),
        Command::Flush(_) => about("flush_all", &["write", "dangerous"]),
        Command::Stats(_) => about("stats", &["admin"]),
        // Which creates, marks and touches items.
        Command::MetaGet(meta) if [b'N', b'T', b'R'].iter().any(|&flag| meta.has(flag)) => both("mg"),
        Command::MetaGet(_) => read("mg"),
        Command::MetaSet(..) => write("ms"),
        Command::MetaDelete(_) => write("md"),
        Command::MetaArithmetic(_) => both("ma"),
        Command::MetaDebug(_) => read("me"),
    })
}

fn keys(command: &Command) -> Vec<&[u8]> {
    match command {
        Command::Get(_, keys, _) => keys.iter().map(Vec::as_slice).collect(),
        Command::Put { key, .. }
        | Command::Refuse(_, Some(key))
        | Command::Delete(key)
        | Command::Arithmetic(_, key, _)
        | Command::Touch(key, _) => vec![key],
        Command::MetaGet(meta)
        | Command::MetaSet(meta, _)
        | Command::MetaDelete(meta)
        | Command::MetaArithmetic(meta)
        | Command::MetaDebug(meta) => vec![&meta.key],
        Command::Say(_) | Command::Refuse(_, None) | Command::Flush(_) | Command::Stats(_) => Vec::new(),
    }
}

/// Why a user may not ask for this, if so.
pub fn refusal(user: &User, request: &Request) -> Option<&'static str> {
    let kind = kind(&request.command)?;
    if !user.may_run(kind.name, None, kind.categories) {
        return Some("CLIENT_ERROR this user has no permission to run the command");
    }
    let may = |key: &&[u8]| user.may_use(key, kind.reads, kind.writes);
    (!keys(&request.command).iter().all(may)).then_some("CLIENT_ERROR this user has no permission to use the key")
}
