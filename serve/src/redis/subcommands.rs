//! Subcommands: what the second word of some commands may be, and how many words there are then.

use super::db::{Outcome, Refusal};
use super::reply::Reply;
use super::spec::{Id, Spec};
use super::words::is;

/// Names, and words with those of the command; negative: at least so many.
type Rows = &'static [(&'static str, i64)];

/// What may stand behind a command; none where its second word is no subcommand.
fn rows(id: Id) -> Rows {
    match id {
        Id::Acl => &[
            ("cat", -2),
            ("deluser", -3),
            ("dryrun", -4),
            ("genpass", -2),
            ("getuser", 3),
            ("list", 2),
            ("load", 2),
            ("save", 2),
            ("setuser", -3),
            ("users", 2),
            ("whoami", 2),
        ],
        Id::Client => &[
            ("getname", 2),
            ("getredir", 2),
            ("id", 2),
            ("info", 2),
            ("kill", -3),
            ("list", -2),
            ("no-evict", 3),
            ("no-touch", 3),
            ("reply", 3),
            ("setinfo", 4),
            ("setname", 3),
            ("unblock", -3),
        ],
        Id::Command => &[("count", 2), ("docs", -2), ("getkeys", -4), ("info", -2), ("list", -2)],
        Id::Config => &[("get", -3), ("resetstat", 2), ("rewrite", 2), ("set", -4)],
        Id::Function => &[("flush", -2), ("list", -2)],
        Id::Memory => &[("usage", -3)],
        Id::Object => &[("encoding", 3), ("freq", 3), ("idletime", 3), ("refcount", 3)],
        Id::Pubsub => &[("channels", -2), ("numpat", 2), ("numsub", -2), ("shardchannels", -2), ("shardnumsub", -2)],
        Id::Script => &[("exists", -3), ("flush", -2)],
        Id::Slowlog => &[("get", -2), ("len", 2), ("reset", 2)],
        _ => &[],
    }
}

fn is_help(words: &[Vec<u8>]) -> bool {
    words.len() == 2 && is(&words[1], "help")
}

/// The name of a subcommand as it was sent, for people.
fn sent(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned()
}

/// The name of a command, with that of its subcommand where it has one.
pub fn full_name(spec: &Spec, words: &[Vec<u8>]) -> String {
    match words.get(1).filter(|_| spec.has('c')) {
        Some(name) => format!("{}|{}", spec.name, sent(name).to_lowercase()),
        None => spec.name.to_owned(),
    }
}

/// Why the words of a command are none of it, if its second one says so.
pub fn refusal(spec: &Spec, words: &[Vec<u8>]) -> Option<String> {
    let name = words.get(1).filter(|_| spec.has('c') && !is_help(words))?;
    match rows(spec.id).iter().find(|(known, _)| is(name, known)) {
        None => Some(format!("ERR unknown subcommand '{}'. Try {} HELP.", sent(name), spec.name.to_uppercase())),
        Some((known, arity)) => {
            let takes = super::spec::takes(*arity, words.len());
            (!takes).then(|| format!("ERR wrong number of arguments for '{}|{known}' command", spec.name))
        }
    }
}

/// What is said of a subcommand whose words have another form.
pub fn wrong_form(words: &[Vec<u8>]) -> Refusal {
    let (command, name) = (sent(&words[0]).to_uppercase(), words.get(1).map_or_else(String::new, |word| sent(word)));
    Refusal::Say(
        format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try {command} HELP.").into(),
    )
}

/// Replies to `HELP`, if that is what a command asks for.
pub fn help(spec: &Spec, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Option<Outcome> {
    if !spec.has('c') || !is_help(words) {
        return None;
    }
    let rows = rows(spec.id);
    reply.array(rows.len() + 2);
    let name = spec.name.to_uppercase();
    reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    rows.iter().for_each(|(name, _)| reply.simple(&name.to_uppercase()));
    reply.simple("HELP");
    Some(Ok(()))
}

/// What is said of a command that there is none of.
pub fn unknown(words: &[Vec<u8>]) -> String {
    let show = |word: &[u8]| String::from_utf8_lossy(&word[..word.len().min(128)]).into_owned();
    let mut text = format!("ERR unknown command '{}', with args beginning with: ", show(&words[0]));
    for word in &words[1..] {
        if text.len() > 160 {
            break;
        }
        text += &format!("'{}' ", show(word));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::spec::{TABLE, find};
    use super::*;

    #[test]
    fn every_command_with_subcommands_has_rows_by_name() {
        for spec in TABLE {
            assert_eq!(spec.has('c'), !rows(spec.id).is_empty(), "{}", spec.name);
            assert!(rows(spec.id).is_sorted_by(|a, b| a.0 < b.0), "{}", spec.name);
        }
    }

    #[test]
    fn words_are_refused_by_the_second_one() {
        let of = |line: &str| {
            let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            refusal(find(&words[0]).unwrap(), &words)
        };
        for right in ["config get x", "CLIENT ID", "slowlog get", "slowlog help", "command", "get nonsense"] {
            assert_eq!(of(right), None, "{right}");
        }
        assert_eq!(of("config x").unwrap(), "ERR unknown subcommand 'x'. Try CONFIG HELP.");
        assert_eq!(of("config GET").unwrap(), "ERR wrong number of arguments for 'config|get' command");
        assert_eq!(of("slowlog len 1").unwrap(), "ERR wrong number of arguments for 'slowlog|len' command");
    }
}
