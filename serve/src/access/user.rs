//! One user: passwords, and rules for commands and keys.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::glob::matches;

/// A password's SHA-256.
type Hash = [u8; 32];

/// A rule for commands. Of those that concern a command the last one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandRule {
    allowed: bool,
    /// `@category`, `command` or `command|subcommand`, in lower case.
    what: String,
}

/// Keys that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyRule {
    pattern: Vec<u8>,
    read: bool,
    write: bool,
}

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: Vec<u8>,
    /// May log in.
    pub on: bool,
    /// Every password does.
    pub nopass: bool,
    passwords: Vec<Hash>,
    commands: Vec<CommandRule>,
    keys: Vec<KeyRule>,
    channels: Vec<Vec<u8>>,
}

fn sha256(password: &[u8]) -> Hash {
    Sha256::digest(password).into()
}

fn hex(hash: &Hash) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        // A string takes everything.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &[u8]) -> Option<Hash> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 64 && text.is_ascii())?;
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}

/// Compares in a time that does not depend on where they differ.
fn same(a: &Hash, b: &Hash) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

impl User {
    /// One that may do nothing, as a new one is in Redis.
    pub fn new(name: &[u8]) -> User {
        User { name: name.to_vec(), ..User::default() }
    }

    /// One that may do everything, with a password or without.
    pub(super) fn full(name: &[u8], password: Option<&[u8]>) -> User {
        let mut user = User::new(name);
        (user.on, user.nopass) = (true, password.is_none());
        user.passwords.extend(password.map(sha256));
        user.apply(b"allcommands").and_then(|()| user.apply(b"allkeys")).and_then(|()| user.apply(b"allchannels")).ok();
        user
    }

    /// Applies one rule of Redis's ACL.
    ///
    /// # Errors
    /// What is wrong with the rule.
    pub fn apply(&mut self, rule: &[u8]) -> Result<(), String> {
        let wrong = |why: &str| Err(format!("'{}': {why}", String::from_utf8_lossy(rule)));
        let pattern = |pattern: &[u8], read, write| KeyRule { pattern: pattern.to_vec(), read, write };
        match rule {
            b"on" => self.on = true,
            b"off" => self.on = false,
            b"nopass" => (self.nopass, self.passwords) = (true, Vec::new()),
            b"resetpass" => (self.nopass, self.passwords) = (false, Vec::new()),
            b"allkeys" => self.keys = vec![pattern(b"*", true, true)],
            b"resetkeys" => self.keys.clear(),
            b"allchannels" => self.channels = vec![b"*".to_vec()],
            b"resetchannels" => self.channels.clear(),
            b"allcommands" => self.command(true, b"@all"),
            b"nocommands" => self.command(false, b"@all"),
            b"reset" => *self = User::new(&self.name),
            b"sanitize-payload" | b"skip-sanitize-payload" | b"clearselectors" => {}
            [b'>', password @ ..] => self.password(sha256(password)),
            [b'<', password @ ..] => self.passwords.retain(|hash| *hash != sha256(password)),
            [b'#', text @ ..] => match from_hex(text) {
                Some(hash) => self.password(hash),
                None => return wrong("a password's hash is 64 hexadecimal digits"),
            },
            [b'!', text @ ..] => match from_hex(text) {
                Some(hash) => self.passwords.retain(|had| *had != hash),
                None => return wrong("a password's hash is 64 hexadecimal digits"),
            },
            [b'~', keys @ ..] => self.keys.push(pattern(keys, true, true)),
            [b'%', rest @ ..] => {
                let Some(at) = rest.iter().position(|&byte| byte == b'~').filter(|&at| at > 0) else {
                    return wrong("Syntax error");
                };
                let has = |letter: u8| rest[..at].iter().any(|byte| byte.eq_ignore_ascii_case(&letter));
                if !rest[..at].iter().all(|byte| b"rRwW".contains(byte)) {
                    return wrong("Syntax error");
                }
                self.keys.push(pattern(&rest[at + 1..], has(b'r'), has(b'w')));
            }
            [b'&', channel @ ..] => self.channels.push(channel.to_vec()),
            [b'+', what @ ..] if !what.is_empty() => self.command(true, what),
            [b'-', what @ ..] if !what.is_empty() => self.command(false, what),
            _ => return wrong("Syntax error"),
        }
        Ok(())
    }

    fn password(&mut self, hash: Hash) {
        self.nopass = false;
        if !self.passwords.contains(&hash) {
            self.passwords.push(hash);
        }
    }

    fn command(&mut self, allowed: bool, what: &[u8]) {
        let what = String::from_utf8_lossy(what).to_ascii_lowercase();
        if what == "@all" {
            self.commands.clear();
        }
        // A rule that is said again is said later.
        self.commands.retain(|rule| rule.what != what);
        self.commands.push(CommandRule { allowed, what });
    }

    pub(super) fn knows(&self, password: &[u8]) -> bool {
        let hash = sha256(password);
        // All are looked at, whichever fits.
        let fits = self.passwords.iter().fold(false, |fits, known| fits | same(known, &hash));
        self.nopass || fits
    }

    /// Whether a command may be run, whose name and subcommand are given in lower case, with the
    /// categories that it is in (without `@`).
    pub fn may_run(&self, command: &str, subcommand: Option<&str>, categories: &[&str]) -> bool {
        let concerns = |what: &str| match what.strip_prefix('@') {
            Some(category) => category == "all" || categories.contains(&category),
            None => match what.split_once('|') {
                Some((name, sub)) => name == command && Some(sub) == subcommand,
                None => what == command,
            },
        };
        self.commands.iter().rev().find(|rule| concerns(&rule.what)).is_some_and(|rule| rule.allowed)
    }

    /// Whether a key may be read, if `reads`, and written, if `writes`.
    pub fn may_use(&self, key: &[u8], reads: bool, writes: bool) -> bool {
        let may =
            |wanted: fn(&KeyRule) -> bool| self.keys.iter().any(|rule| wanted(rule) && matches(&rule.pattern, key));
        (!reads || may(|rule| rule.read)) && (!writes || may(|rule| rule.write))
    }

    /// Whether messages of a channel may be sent and heard.
    pub fn may_hear(&self, channel: &[u8]) -> bool {
        self.channels.iter().any(|pattern| matches(pattern, channel))
    }

    /// Whether messages of all channels that fit a pattern may be heard: as in Redis, if a rule has
    /// this very pattern.
    pub fn may_hear_all_of(&self, pattern: &[u8]) -> bool {
        self.channels.iter().any(|own| own == b"*" || own == pattern)
    }

    /// Whether all keys may be read.
    pub fn may_use_all(&self) -> bool {
        self.keys.iter().any(|rule| rule.read && rule.pattern == b"*")
    }

    /// Whether no rule forbids anything.
    pub fn may_do_everything(&self) -> bool {
        let all = matches!(&self.commands[..], [only] if only.allowed && only.what == "@all");
        all && self.keys.iter().any(|rule| rule.read && rule.write && rule.pattern == b"*")
            && self.channels.iter().any(|channel| channel == b"*")
    }

    /// The rules that make this user, by what they concern.
    pub fn parts(&self) -> Parts {
        let mut flags = vec![if self.on { "on" } else { "off" }];
        flags.extend(self.nopass.then_some("nopass"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let keys = self.keys.iter().map(|rule| {
            let kind = match (rule.read, rule.write) {
                (true, true) => "~",
                (true, false) => "%R~",
                _ => "%W~",
            };
            kind.to_owned() + &text(&rule.pattern)
        });
        let channels = self.channels.iter().map(|channel| format!("&{}", text(channel)));
        // What no rule says is forbidden.
        let forbidden = self.commands.first().is_none_or(|rule| rule.what != "@all").then(|| "-@all".to_owned());
        let said = self.commands.iter().map(|rule| format!("{}{}", if rule.allowed { '+' } else { '-' }, rule.what));
        Parts {
            flags,
            passwords: self.passwords.iter().map(hex).collect(),
            keys: keys.collect::<Vec<_>>().join(" "),
            channels: channels.collect::<Vec<_>>().join(" "),
            commands: forbidden.into_iter().chain(said).collect::<Vec<_>>().join(" "),
        }
    }

    /// The rules that make this user, as in a file.
    pub fn rules(&self) -> String {
        let Parts { flags, passwords, keys, channels, commands } = self.parts();
        let flags = flags.into_iter().map(str::to_owned);
        let passwords = passwords.into_iter().map(|hash| format!("#{hash}"));
        let all = self.channels.iter().any(|channel| channel == b"*");
        let channels = if all { channels } else { format!("resetchannels {channels}").trim_end().to_owned() };
        let keys = Some(keys).filter(|keys| !keys.is_empty());
        flags.chain(passwords).chain(keys).chain([channels, commands]).collect::<Vec<_>>().join(" ")
    }
}

/// The rules that make a user, each part as in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Whether it may log in, and how.
    pub flags: Vec<&'static str>,
    /// Hashes of passwords, in hexadecimal digits.
    pub passwords: Vec<String>,
    /// Commands.
    pub commands: String,
    /// Keys.
    pub keys: String,
    /// Channels.
    pub channels: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(rules: &str) -> User {
        let mut user = User::new(b"u");
        rules.split(' ').try_for_each(|rule| user.apply(rule.as_bytes())).expect("the rules are right");
        user
    }

    #[test]
    fn the_last_rule_for_a_command_counts() {
        let u = user("on +@all -@dangerous +flushall -config|set");
        assert!(u.may_run("get", None, &["read", "fast"]));
        assert!(!u.may_run("keys", None, &["read", "dangerous"]));
        assert!(u.may_run("flushall", None, &["write", "dangerous"]));
        assert!(u.may_run("config", Some("get"), &["admin"]) && !u.may_run("config", Some("set"), &["admin"]));
        assert!(!user("on").may_run("get", None, &["read"]));
        assert!(!user("+get -get").may_run("get", None, &[]) && user("-get +get").may_run("get", None, &[]));
    }

    #[test]
    fn keys_are_patterns() {
        let u = user("~a:* %R~b:* %W~c:*");
        assert!(u.may_use(b"a:1", true, true) && u.may_use(b"b:1", true, false) && u.may_use(b"c:1", false, true));
        assert!(!u.may_use(b"b:1", false, true) && !u.may_use(b"c:1", true, true) && !u.may_use(b"d", true, false));
        assert!(user("allkeys").may_use(b"anything", true, true));
    }

    #[test]
    fn rules_make_the_same_user_again() {
        let u = user("on >secret ~a* %R~b* &c* +@all -@write +set -client|kill");
        assert_eq!(user(&u.rules()), u);
    }

    #[test]
    fn wrong_rules() {
        assert!(user("on >a <a").passwords.is_empty());
        assert_eq!(hex(&sha256(b"secret")), "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
        for wrong in ["#12", "nonsense", "%X~k", "+", ""] {
            assert!(User::new(b"u").apply(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
