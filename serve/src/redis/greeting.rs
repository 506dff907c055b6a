//! How a client says who it is: HELLO, AUTH, CLIENT SETNAME and its like.

use super::request::Request;
use super::resp;
use super::session::{Replies, Session};
use super::words::is;
use crate::access::DEFAULT;

impl Session {
    /// HELLO [version [AUTH user password] [SETNAME name]]. One that is refused changes nothing.
    pub(super) fn hello(&mut self, words: &[Vec<u8>]) -> Request {
        let resp3 = match words.get(1).map(|version| resp::number(version)) {
            None => self.resp3,
            Some(Some(2)) => false,
            Some(Some(3)) => true,
            Some(Some(_)) => return self.say(|reply| reply.error("NOPROTO unsupported protocol version")),
            Some(None) => {
                return self.say(|reply| reply.error("ERR Protocol version is not an integer or out of range"));
            }
        };
        let (mut rest, mut name, mut login) = (words.get(2..).unwrap_or_default(), None, None);
        while let Some(option) = rest.first() {
            match rest {
                [_, _, _, behind @ ..] if is(option, "auth") => {
                    (login, rest) = (Some(&rest[1..3]), behind);
                }
                [_, given, behind @ ..] if is(option, "setname") => {
                    if !is_name(given) {
                        return self.say(|reply| reply.error(NAME));
                    }
                    (name, rest) = (Some(given.clone()), behind);
                }
                _ => {
                    let text = format!("ERR Syntax error in HELLO option '{}'", String::from_utf8_lossy(option));
                    return self.say(|reply| reply.error(&text));
                }
            }
        }
        if login.is_some_and(|login| !self.log_in(&login[0], &login[1])) {
            return self.say(|reply| reply.error(WRONG_PASSWORD));
        }
        if self.user.is_none() {
            return self.say(|reply| reply.error(UNKNOWN));
        }
        self.speak(resp3);
        if let Some(name) = name {
            self.client.texts().name = name;
        }
        self.greet()
    }

    fn greet(&self) -> Request {
        let number = self.client.number as i64;
        self.say(|reply| {
            reply.map(7);
            for (name, value) in [("server", "redis"), ("version", super::about::VERSION)] {
                reply.bulk(name.as_bytes());
                reply.bulk(value.as_bytes());
            }
            reply.bulk(b"proto");
            reply.integer(if reply.resp3() { 3 } else { 2 });
            reply.bulk(b"id");
            reply.integer(number);
            for (name, value) in [("mode", "standalone"), ("role", "master")] {
                reply.bulk(name.as_bytes());
                reply.bulk(value.as_bytes());
            }
            reply.bulk(b"modules");
            reply.array(0);
        })
    }

    /// Whether a user has this password. The client is the user then.
    fn log_in(&mut self, name: &[u8], password: &[u8]) -> bool {
        let Some(user) = self.state.access.authenticate(name, password) else { return false };
        self.client.texts().user = user.name.clone();
        self.user = Some(user);
        true
    }

    /// AUTH [user] password
    pub(super) fn auth(&mut self, words: &[Vec<u8>]) -> Request {
        let right = match words {
            [_, _] if self.state.access.is_open() => return self.say(|reply| reply.error(NO_PASSWORD)),
            [_, password] => self.log_in(DEFAULT, password),
            [_, user, password] => self.log_in(user, password),
            _ => return self.say(|reply| reply.error(super::db::SYNTAX)),
        };
        self.say(|reply| if right { reply.simple("OK") } else { reply.error(WRONG_PASSWORD) })
    }

    /// Whether a CLIENT command concerns its sender alone.
    pub(super) fn names_itself(&self, words: &[Vec<u8>]) -> bool {
        ["setname", "getname", "setinfo", "id", "no-evict", "no-touch", "reply"].iter().any(|name| is(&words[1], name))
    }

    /// CLIENT SETNAME, GETNAME, SETINFO, ID, NO-EVICT, NO-TOUCH, REPLY
    pub(super) fn name_itself(&mut self, words: &[Vec<u8>]) -> Request {
        let mut texts = self.client.texts();
        match (words[1].to_ascii_lowercase().as_slice(), words.len()) {
            (b"setname", 3) if !is_name(&words[2]) => self.say(|reply| reply.error(NAME)),
            (b"setname", 3) => {
                texts.name = words[2].clone();
                self.say(|reply| reply.simple("OK"))
            }
            (b"getname", 2) => {
                self.say(|reply| reply.bulk_or_null(Some(&texts.name[..]).filter(|name| !name.is_empty())))
            }
            (b"setinfo", 4) if !is_name(&words[3]) => {
                let text = format!(
                    "ERR {} cannot contain spaces, newlines or special characters.",
                    String::from_utf8_lossy(&words[2])
                );
                self.say(|reply| reply.error(&text))
            }
            (b"setinfo", 4) if is(&words[2], "lib-name") => {
                texts.library = words[3].clone();
                self.say(|reply| reply.simple("OK"))
            }
            (b"setinfo", 4) if is(&words[2], "lib-ver") => {
                texts.version = words[3].clone();
                self.say(|reply| reply.simple("OK"))
            }
            (b"setinfo", 4) => {
                let text = format!("ERR Unrecognized option '{}'", String::from_utf8_lossy(&words[2]));
                self.say(|reply| reply.error(&text))
            }
            (b"no-evict" | b"no-touch", 3) if is(&words[2], "on") || is(&words[2], "off") => {
                self.say(|reply| reply.simple("OK"))
            }
            (b"no-evict" | b"no-touch", 3) => self.say(|reply| reply.error(super::db::SYNTAX)),
            (b"reply", 3) => {
                let wanted = match words[2].to_ascii_lowercase().as_slice() {
                    b"on" => Replies::On,
                    b"off" => Replies::Off,
                    b"skip" if self.replies == Replies::Off => Replies::Off,
                    b"skip" => Replies::SkipNext,
                    _ => return self.say(|reply| reply.error(super::db::SYNTAX)),
                };
                drop(texts);
                self.replies = wanted;
                self.say(|reply| reply.simple("OK"))
            }
            (b"id", 2) => self.say(|reply| reply.integer(self.client.number as i64)),
            (name, _) => {
                let name = String::from_utf8_lossy(name);
                self.say(|reply| reply.error(&format!("ERR wrong number of arguments for 'client|{name}' command")))
            }
        }
    }
}

const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?";
const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const UNKNOWN: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";
const NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

/// Whether a text may be a name: printable, and no spaces.
fn is_name(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}
