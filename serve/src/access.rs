//! Who may do what: users, their passwords, and the commands and keys that each may use.
//!
//! The rules are those of Redis's ACL files (`user NAME on >password ~keys* +@read -flushall`). A server that was given neither a
//! password nor users is open: whoever can connect can do everything.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, PoisonError, RwLock};

use nearpm::Error;
use sha2::{Digest, Sha256};

use crate::glob::matches;
use crate::options::AccessOptions;
use crate::worker::system;

/// The user of clients that have not said who they are.
pub const DEFAULT: &[u8] = b"default";

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
    fn full(name: &[u8], password: Option<&[u8]>) -> User {
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

    fn knows(&self, password: &[u8]) -> bool {
        let hash = sha256(password);
        // All are looked at, whichever fits.
        let fits = self.passwords.iter().fold(false, |fits, known| fits | same(known, &hash));
        self.nopass || fits
    }

    /// Whether a command may be run, whose name and subcommand are given in lower case, with the categories that it is in
    /// (without `@`).
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

    /// The rules that make this user, as in a file.
    pub fn rules(&self) -> String {
        let mut text = if self.on { "on" } else { "off" }.to_owned();
        if self.nopass {
            text += " nopass";
        }
        for hash in &self.passwords {
            text += &format!(" #{}", hex(hash));
        }
        for rule in &self.keys {
            let kind = match (rule.read, rule.write) {
                (true, true) => "~",
                (true, false) => "%R~",
                _ => "%W~",
            };
            text += &format!(" {kind}{}", String::from_utf8_lossy(&rule.pattern));
        }
        for channel in &self.channels {
            text += &format!(" &{}", String::from_utf8_lossy(channel));
        }
        if self.commands.is_empty() {
            text += " -@all";
        }
        for rule in &self.commands {
            text += &format!(" {}{}", if rule.allowed { '+' } else { '-' }, rule.what);
        }
        text
    }
}

/// All users.
#[derive(Debug)]
pub struct Access {
    users: RwLock<BTreeMap<Vec<u8>, Arc<User>>>,
}

impl Access {
    /// Those that a server was told of.
    ///
    /// # Errors
    /// A file cannot be read; a line of it is wrong.
    pub fn new(options: &AccessOptions) -> Result<Access, Error> {
        let password = options.password()?;
        let mut users = BTreeMap::from([(DEFAULT.to_vec(), User::full(DEFAULT, password.as_deref()))]);
        if let Some(file) = &options.acl_file {
            for (number, line) in AccessOptions::read(file)?.lines().enumerate() {
                let user = acl_line(line, &users).map_err(|why| wrong_line(file, number + 1, &why))?;
                users.extend(user.map(|user| (user.name.clone(), user)));
            }
        }
        if let Some(file) = &options.auth_file {
            for (number, line) in AccessOptions::read(file)?.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
                let (name, password) =
                    line.split_once(':').ok_or_else(|| wrong_line(file, number + 1, "not user:password"))?;
                users.insert(name.into(), User::full(name.as_bytes(), Some(password.as_bytes())));
            }
            // Who gives no password is nobody then.
            users.entry(DEFAULT.to_vec()).and_modify(|user| user.on &= !user.nopass);
        }
        let users = users.into_iter().map(|(name, user)| (name, Arc::new(user))).collect();
        Ok(Access { users: RwLock::new(users) })
    }

    fn read<R>(&self, look: impl FnOnce(&BTreeMap<Vec<u8>, Arc<User>>) -> R) -> R {
        look(&self.users.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The user of this name, as it is now.
    pub fn user(&self, name: &[u8]) -> Option<Arc<User>> {
        self.read(|users| users.get(name).cloned())
    }

    /// All users, by name.
    pub fn users(&self) -> Vec<Arc<User>> {
        self.read(|users| users.values().cloned().collect())
    }

    /// Who a client is that has given no password: `None` where one is asked for.
    pub fn nobody(&self) -> Option<Arc<User>> {
        self.user(DEFAULT).filter(|user| user.on && user.nopass)
    }

    /// Whether a client needs no password.
    pub fn is_open(&self) -> bool {
        self.nobody().is_some()
    }

    /// The user whose name and password these are.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.user(name);
        // As long as for one that is there.
        let knows = user.as_ref().map_or_else(|| User::new(name).knows(password), |user| user.knows(password));
        user.filter(|user| user.on && knows)
    }

    /// Makes a user, or changes one, by rules; all of them or none.
    ///
    /// # Errors
    /// What is wrong with a rule.
    pub fn set_user(&self, name: &[u8], rules: &[impl AsRef<[u8]>]) -> Result<(), String> {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let mut user = users.get(name).map_or_else(|| User::new(name), |user| (**user).clone());
        rules.iter().try_for_each(|rule| user.apply(rule.as_ref()))?;
        users.insert(name.to_vec(), Arc::new(user));
        Ok(())
    }

    /// Removes a user; false if there is none of the name. The default one stays.
    pub fn remove_user(&self, name: &[u8]) -> bool {
        name != DEFAULT && self.users.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }
}

fn wrong_line(file: &str, number: usize, why: &str) -> Error {
    system(&format!("read line {number} of {file}"), std::io::Error::other(why.to_owned()))
}

/// The user of a line `user NAME rule ...`; nothing for an empty line and a comment. The default one keeps what it may do, but not that it
/// needs no password, when the line says otherwise.
fn acl_line(line: &str, users: &BTreeMap<Vec<u8>, User>) -> Result<Option<User>, String> {
    let mut words = line.split_ascii_whitespace();
    match words.next() {
        None => return Ok(None),
        Some(word) if word.starts_with('#') => return Ok(None),
        Some("user") => {}
        Some(_) => return Err("it does not begin with 'user'".to_owned()),
    }
    let name = words.next().ok_or("there is no name")?.as_bytes();
    let mut user = users.get(name).cloned().unwrap_or_else(|| User::new(name));
    words.try_for_each(|rule| user.apply(rule.as_bytes()))?;
    Ok(Some(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(rules: &str) -> User {
        acl_line(&format!("user u {rules}"), &BTreeMap::new()).expect("the rules are right").expect("there is one")
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
    fn passwords() {
        let hash = hex(&sha256(b"secret"));
        assert_eq!(hash, "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
        for rules in ["on >secret".to_owned(), format!("on #{hash}"), "on >other >secret".to_owned()] {
            let access = Access { users: RwLock::new(BTreeMap::new()) };
            access.set_user(b"u", &rules.split(' ').collect::<Vec<_>>()).expect("the rules are right");
            assert!(access.authenticate(b"u", b"secret").is_some(), "{rules}");
            assert!(access.authenticate(b"u", b"wrong").is_none() && access.authenticate(b"v", b"secret").is_none());
            access.set_user(b"u", &["off"]).expect("the rule is right");
            assert!(access.authenticate(b"u", b"secret").is_none());
        }
        assert!(user("on >a <a").passwords.is_empty());
        for wrong in ["#12", "nonsense", "%X~k", "+", ""] {
            assert!(User::new(b"u").apply(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_make_the_same_user_again() {
        let u = user("on >secret ~a* %R~b* &c* +@all -@write +set -client|kill");
        assert_eq!(user(&u.rules()), u);
    }
}
