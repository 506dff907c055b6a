//! ACL: users and what they may do, while the server runs. What is set here ends with the server;
//! what is to stay is in its file.

use super::db::{Db, Outcome, Words, refuse, refuse_with};
use super::guard;
use super::reply::Reply;
use super::spec::{self, Group, TABLE};
use super::subcommands::wrong_form;
use super::words::integer;
use crate::access::{DEFAULT, User};
use crate::effects::Mail;

/// Bits of a password that is made.
const PASSWORD_BITS: i64 = 256;

/// Categories that commands are in by what they do; the others are those of their groups.
const BY_DEED: [&str; 7] = ["read", "write", "admin", "dangerous", "blocking", "fast", "slow"];

/// Categories of commands that there are none of here: rules of users' files may name them.
const WITHOUT_COMMANDS: [&str; 3] = ["geo", "hyperloglog", "stream"];

/// All categories.
fn categories() -> Vec<&'static str> {
    let groups = TABLE.iter().map(|spec| spec.group).filter_map(Group::category);
    let mut all: Vec<_> = groups.chain(BY_DEED).chain(WITHOUT_COMMANDS).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Why a rule names no command and no category, if so.
fn unknown(rule: &[u8]) -> bool {
    let [b'+' | b'-', what @ ..] = rule else { return false };
    let what = String::from_utf8_lossy(what).to_ascii_lowercase();
    match what.strip_prefix('@') {
        Some(category) => category != "all" && !categories().contains(&category),
        None => {
            let (name, sub) = what.split_once('|').map_or((what.as_str(), None), |(name, sub)| (name, Some(sub)));
            spec::find(name.as_bytes()).is_none_or(|spec| sub.is_some_and(|sub| !spec.has('c') || sub.is_empty()))
        }
    }
}

/// ACL SETUSER name [rule ...]: all rules or none. Who is connected as this user may do what they
/// say from its next command on.
fn set_user(db: &Db<'_>, name: &[u8], rules: Words<'_>, reply: &mut Reply<'_>) -> Outcome {
    if name.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        return refuse("ERR Usernames can't contain spaces or null characters");
    }
    if let Some(rule) = rules.iter().find(|rule| unknown(rule)) {
        let rule = String::from_utf8_lossy(rule);
        return refuse_with(format!(
            "ERR Error in ACL SETUSER modifier '{rule}': Unknown command or category name in ACL"
        ));
    }
    if let Err(why) = db.state.access.set_user(name, rules) {
        return refuse_with(format!("ERR Error in ACL SETUSER modifier {why}"));
    }
    reply.simple("OK");
    Ok(())
}

/// ACL DELUSER name ...: their clients are gone at once.
fn remove_users(db: &Db<'_>, names: Words<'_>, reply: &mut Reply<'_>) -> Outcome {
    if names.iter().any(|name| name == DEFAULT) {
        return refuse("ERR The 'default' user cannot be removed");
    }
    let mut removed = 0;
    for name in names.iter().filter(|name| db.state.access.remove_user(name)) {
        removed += 1;
        let clients = db.state.clients.all();
        let theirs = clients.iter().filter(|client| client.texts().user == *name);
        theirs.for_each(|client| db.effects.send(&client.mailbox, Mail::Close));
    }
    reply.integer(removed);
    Ok(())
}

/// ACL GETUSER name
fn get_user(db: &Db<'_>, name: &[u8], reply: &mut Reply<'_>) {
    let Some(user) = db.state.access.user(name) else { return reply.null() };
    let rules = user.parts();
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(rules.flags.len());
    rules.flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.bulks(rules.passwords.iter().map(String::as_bytes));
    for (what, text) in [("commands", rules.commands), ("keys", rules.keys), ("channels", rules.channels)] {
        reply.bulk(what.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"selectors");
    reply.array(0);
}

/// ACL CAT [category]
fn cat(words: Words<'_>, reply: &mut Reply<'_>) -> Outcome {
    let Some(name) = words.first() else {
        reply.bulks(categories().into_iter().map(str::as_bytes));
        return Ok(());
    };
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    if !categories().contains(&name.as_str()) {
        return refuse_with(format!("ERR Unknown category '{name}'"));
    }
    let names: Vec<_> = TABLE.iter().filter(|spec| spec.categories(None).contains(&name.as_str())).collect();
    reply.bulks(names.into_iter().map(|spec| spec.name.as_bytes()));
    Ok(())
}

/// ACL DRYRUN user command [word ...]: what the user would be told.
fn dry_run(db: &Db<'_>, name: &[u8], words: Words<'_>, reply: &mut Reply<'_>) -> Outcome {
    let Some(user) = db.state.access.user(name) else {
        return refuse_with(format!("ERR User '{}' not found", String::from_utf8_lossy(name)));
    };
    let command = String::from_utf8_lossy(&words[0]).into_owned();
    let Some(spec) = spec::find(&words[0]) else { return refuse_with(format!("ERR Command '{command}' not found")) };
    if !spec.takes(words.len()) {
        return refuse_with(format!("ERR wrong number of arguments for '{}' command", spec.name));
    }
    match guard::refusal(Some(&user), spec, words) {
        None => reply.simple("OK"),
        Some(why) => reply.bulk(why.strip_prefix("NOPERM ").unwrap_or(&why).as_bytes()),
    }
    Ok(())
}

/// ACL GENPASS [bits]
fn make_password(bits: Option<&Vec<u8>>, reply: &mut Reply<'_>) -> Outcome {
    const WRONG: &str =
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096";
    let bits = bits.map_or(Ok(PASSWORD_BITS), |word| integer(word))?;
    if !(1..=4096).contains(&bits) {
        return refuse(WRONG);
    }
    let digit = |_| char::from(b"0123456789abcdef"[usize::from(rand::random::<u8>() & 15)]);
    reply.bulk((0..(bits as u64).div_ceil(4)).map(digit).collect::<String>().as_bytes());
    Ok(())
}

fn line(user: &User) -> Vec<u8> {
    [b"user ", user.name.as_slice(), b" ", user.rules().as_bytes()].concat()
}

/// ACL WHOAMI, LIST, USERS, GETUSER, SETUSER, DELUSER, CAT, GENPASS, DRYRUN
pub fn acl(db: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (sub, access) = (words[1].to_ascii_lowercase(), &db.state.access);
    match (sub.as_slice(), &words[2..]) {
        (b"whoami", []) => {
            let name = db.client.map_or_else(|| DEFAULT.to_vec(), |client| client.texts().user.clone());
            reply.bulk(&name);
        }
        (b"list", []) => {
            let lines: Vec<_> = access.users().iter().map(|user| line(user)).collect();
            reply.bulks(lines.iter().map(Vec::as_slice));
        }
        (b"users", []) => {
            let users = access.users();
            reply.bulks(users.iter().map(|user| user.name.as_slice()));
        }
        (b"getuser", [name]) => get_user(db, name, reply),
        (b"setuser", [name, rules @ ..]) => return set_user(db, name, rules, reply),
        (b"deluser", names @ [_, ..]) => return remove_users(db, names, reply),
        (b"cat", category @ ([] | [_])) => return cat(category, reply),
        (b"dryrun", [name, command @ ..]) if !command.is_empty() => return dry_run(db, name, command, reply),
        (b"genpass", bits @ ([] | [_])) => return make_password(bits.first(), reply),
        (b"save" | b"load", []) => {
            return refuse("ERR users are read from --acl-file when the server starts, and are not written there");
        }
        _ => return Err(wrong_form(words)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_what_there_is() {
        for known in ["+@all", "-@read", "+get", "-config|set", "on", ">secret", "~k", "+@sortedset", "+GET"] {
            assert!(!unknown(known.as_bytes()), "{known}");
        }
        for wrong in ["+@nothing", "-nothing", "+get|x", "+config|", "+"] {
            assert!(unknown(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn every_category_has_commands() {
        // Redis has commands of these that are not here.
        let without = ["geo", "hyperloglog", "stream"];
        for category in categories() {
            let has = |spec: &spec::Spec| spec.categories(None).contains(&category);
            assert_eq!(TABLE.iter().any(has), !without.contains(&category), "{category}");
        }
        for spec in TABLE {
            assert!(spec.categories(None).iter().all(|name| categories().contains(name)), "{}", spec.name);
        }
    }
}
