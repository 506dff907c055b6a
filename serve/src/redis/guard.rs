//! What a client may ask for. Which keys and channels a command names, and which categories it is
//! in, says its row in `table.rs`.

use super::spec::{Id, Spec};
use super::words::is;
use crate::access::User;

/// Why a client may not run a command, if so. `user` is nobody where one has to give a password
/// first.
pub fn refusal(user: Option<&User>, spec: &Spec, words: &[Vec<u8>]) -> Option<String> {
    let always = matches!(spec.id, Id::Auth | Id::Hello | Id::Quit | Id::Reset);
    let Some(user) = user else {
        return (!always).then(|| "NOAUTH Authentication required.".to_owned());
    };
    // Mostly nobody is forbidden anything.
    if always || user.may_do_everything() {
        return None;
    }
    let subcommand = words.get(1).map(|word| String::from_utf8_lossy(word).to_ascii_lowercase());
    let subcommand = subcommand.as_deref();
    if !user.may_run(spec.name, subcommand, &spec.categories(subcommand)) {
        let container = subcommand.filter(|_| spec.has('c')).map(|name| format!("|{name}")).unwrap_or_default();
        return Some(format!(
            "NOPERM User {} has no permissions to run the '{}{container}' command",
            String::from_utf8_lossy(&user.name),
            spec.name
        ));
    }
    if !spec.keys_of(words).iter().all(|key| user.may_use(key, true, spec.changes())) {
        return Some("NOPERM No permissions to access a key".to_owned());
    }
    if follows_patterns(spec, words) && !user.may_use_all() {
        return Some("NOPERM BY and GET of SORT look at any key, and there are no permissions for that".to_owned());
    }
    let by_pattern = spec.id == Id::Psubscribe;
    let may_hear = |name: &Vec<u8>| if by_pattern { user.may_hear_all_of(name) } else { user.may_hear(name) };
    let hears = spec.channels_of(words).iter().all(may_hear);
    (!hears).then(|| "NOPERM No permissions to access a channel".to_owned())
}

/// Whether a command looks at keys whose names are found among the data.
fn follows_patterns(spec: &Spec, words: &[Vec<u8>]) -> bool {
    let sorts = matches!(spec.id, Id::Sort | Id::SortRo);
    let options = words.get(2..).unwrap_or_default().windows(2);
    sorts && options.into_iter().any(|pair| (is(&pair[0], "by") || is(&pair[0], "get")) && pair[1].contains(&b'*'))
}

/// Methods of HTTP but GET, what follows them when they were passed over, greetings of SMTP: none
/// is a command.
const VERBS: &[&str] =
    &["post", "host:", "head", "put", "delete", "options", "patch", "trace", "connect", "pri", "ehlo", "helo"];

/// Whether a command is a line of HTTP or of mail.
pub fn is_foreign(words: &[Vec<u8>]) -> bool {
    let Some(name) = words.first() else { return false };
    let by_http = words.len() == 3 && words[2].starts_with(b"HTTP/");
    VERBS.iter().any(|verb| is(name, verb)) || by_http && is(name, "get")
}

/// Whether an input is a handshake of TLS, version 3.x, where none is expected.
pub fn is_handshake(input: &[u8]) -> bool {
    input.starts_with(&[0x16, 0x03])
}

#[cfg(test)]
mod tests {
    use super::super::spec::TABLE;
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    fn user(rules: &str) -> User {
        let mut user = User::new(b"u");
        rules.split(' ').try_for_each(|rule| user.apply(rule.as_bytes())).expect("the rules are right");
        user
    }

    fn refused(user: &User, line: &str) -> bool {
        let words = words(line);
        refusal(Some(user), super::super::spec::find(&words[0]).expect("a command"), &words).is_some()
    }

    #[test]
    fn nobody_may_do_anything_but_say_who_it_is() {
        let none = user("on");
        for spec in TABLE {
            let line = words(&format!("{} a b c d", spec.name));
            let always = ["auth", "hello", "quit", "reset"].contains(&spec.name);
            assert_eq!(refusal(None, spec, &line).is_none(), always, "{}", spec.name);
            assert_eq!(refusal(Some(&none), spec, &line).is_none(), always, "{}", spec.name);
        }
    }

    #[test]
    fn every_key_of_every_command_is_looked_at() {
        let elsewhere = user("on +@all ~elsewhere allchannels");
        for spec in TABLE {
            let count = if spec.has('b') && spec.has('M') { "1 1" } else { "1" };
            let line = words(&format!("{} {count} 1 1 1 1 1", spec.name));
            let keys = spec.keys_of(&line);
            assert_eq!(refusal(Some(&elsewhere), spec, &line).is_some(), !keys.is_empty(), "{}", spec.name);
        }
        let some = user("on +@all ~a* %R~b* &news*");
        for allowed in [
            "get a",
            "get b",
            "mset a 1 a2 2",
            "sort a by nosort get #",
            "zunionstore a 1 a2",
            "subscribe news1",
            "blpop a a2 0",
            "publish news1 x",
            "psubscribe news*",
        ] {
            assert!(!refused(&some, allowed), "{allowed}");
        }
        for wrong in [
            "get c",
            "set b x",
            "mset a 1 c 2",
            "sort a by w_*",
            "sort a get *",
            "sort a store c",
            "zunionstore a 1 c",
            "blpop a c 0",
            "blmpop 0 2 a c left",
            "rename a c",
            "object encoding c",
            "memory usage c",
            "watch a c",
            "subscribe news1 other",
            "publish other x",
            "psubscribe n*",
            "copy a c",
        ] {
            assert!(refused(&some, wrong), "{wrong}");
        }
    }

    #[test]
    fn other_protocols() {
        for foreign in
            ["GET / HTTP/1.1", "POST / HTTP/1.1", "Host: here", "EHLO here", "PUT x HTTP/1.1", "DELETE x HTTP/1.1"]
        {
            assert!(is_foreign(&words(foreign)), "{foreign}");
        }
        for own in ["GET HTTP/1.1", "SET a HTTP/1.1", "DEL post"] {
            assert!(!is_foreign(&words(own)), "{own}");
        }
        for spec in TABLE {
            assert!(!is_foreign(&words(spec.name)), "{}", spec.name);
        }
    }
}
