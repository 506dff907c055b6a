//! COMMAND.

use super::db::{Db, Outcome, refuse};
use super::reply::Reply;
use super::spec::{self, Spec};
use super::subcommands::wrong_form;
use super::words::is;
use crate::glob::matches;

/// A command as COMMAND INFO says it.
fn describe(spec: &Spec, reply: &mut Reply<'_>) {
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.integer(spec.arity);
    let names = [
        ('w', "write"),
        ('r', "readonly"),
        ('m', "denyoom"),
        ('a', "admin"),
        ('p', "pubsub"),
        ('b', "blocking"),
        ('F', "fast"),
        ('M', "movablekeys"),
    ];
    let flags: Vec<_> = names.iter().filter(|(flag, _)| spec.has(*flag)).collect();
    reply.set(flags.len());
    flags.iter().for_each(|(_, name)| reply.simple(name));
    let (first, last, step) = spec.keys;
    [first, last, step].into_iter().for_each(|number| reply.integer(number));
    let categories = spec.categories(None);
    reply.set(categories.len());
    categories.iter().for_each(|category| reply.simple(&format!("@{category}")));
    (0..3).for_each(|_| reply.array(0));
}

fn keys_of(words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let Some(spec) = words.first().and_then(|name| spec::find(name)) else {
        return refuse("ERR Invalid command specified");
    };
    if !spec.takes(words.len()) {
        return refuse("ERR Invalid number of arguments specified for command");
    }
    let keys = spec.keys_of(words);
    if keys.is_empty() {
        return refuse("ERR The command has no key arguments");
    }
    reply.bulks(keys.into_iter().map(Vec::as_slice).collect::<Vec<_>>().into_iter());
    Ok(())
}

fn list(words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let names: Vec<_> = match words {
        [] => spec::TABLE.iter().collect(),
        [filter, by, what] if is(filter, "filterby") && is(by, "pattern") => {
            spec::TABLE.iter().filter(|spec| matches(&what.to_ascii_lowercase(), spec.name.as_bytes())).collect()
        }
        [filter, by, what] if is(filter, "filterby") && is(by, "aclcat") => {
            let of_group = |spec: &&Spec| is(what, &spec.group.name().replace('-', ""));
            spec::TABLE.iter().filter(of_group).collect()
        }
        [filter, by, _] if is(filter, "filterby") && is(by, "module") => Vec::new(),
        _ => return refuse(super::db::SYNTAX),
    };
    reply.bulks(names.into_iter().map(|spec| spec.name.as_bytes()).collect::<Vec<_>>().into_iter());
    Ok(())
}

/// COMMAND [COUNT|DOCS|LIST|INFO|GETKEYS ...]
pub fn command(_: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let rest = words.get(2..).unwrap_or_default();
    match words.get(1).map(|word| word.to_ascii_lowercase()).as_deref() {
        Some(b"count") if rest.is_empty() => reply.integer(spec::TABLE.len() as i64),
        Some(b"docs") => {
            let named: Vec<_> = rest.iter().filter_map(|name| spec::find(name)).collect();
            let specs = if rest.is_empty() { spec::TABLE.iter().collect() } else { named };
            reply.map(specs.len());
            for spec in specs {
                reply.bulk(spec.name.as_bytes());
                reply.map(1);
                reply.bulk(b"group");
                reply.bulk(spec.group.name().as_bytes());
            }
        }
        Some(b"list") => return list(rest, reply),
        Some(b"getkeys") if rest.len() > 1 => return keys_of(rest, reply),
        Some(b"info") if !rest.is_empty() => {
            reply.array(rest.len());
            for name in rest {
                match spec::find(name) {
                    Some(spec) => describe(spec, reply),
                    None => reply.null(),
                }
            }
        }
        None | Some(b"info") => {
            reply.array(spec::TABLE.len());
            spec::TABLE.iter().for_each(|spec| describe(spec, reply));
        }
        Some(_) => return Err(wrong_form(words)),
    }
    Ok(())
}
