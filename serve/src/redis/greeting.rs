//! How a client says who it is: HELLO, AUTH, CLIENT SETNAME and its like.

use super::db::is;
use super::resp;
use super::session::{Request, Session};

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
        let (mut rest, mut name) = (words.get(2..).unwrap_or_default(), None);
        while let Some(option) = rest.first() {
            match rest {
                [_, _, _, behind @ ..] if is(option, "auth") => {
                    if let Err(refused) = self.authenticate(&rest[1], &rest[2]) {
                        return self.say(|reply| reply.error(refused));
                    }
                    rest = behind;
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

    /// Whether a user with a password may come in. There are none of either.
    fn authenticate(&self, user: &[u8], _password: &[u8]) -> Result<(), &'static str> {
        // As Redis: the default user without a password takes any.
        if user == b"default" { Ok(()) } else { Err("WRONGPASS invalid username-password pair or user is disabled.") }
    }

    /// AUTH [user] password
    pub(super) fn auth(&mut self, words: &[Vec<u8>]) -> Request {
        match words {
            [_, _] => self.say(|reply| {
                reply.error(
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
                );
            }),
            [_, user, password] => match self.authenticate(user, password) {
                Ok(()) => self.say(|reply| reply.simple("OK")),
                Err(refused) => self.say(|reply| reply.error(refused)),
            },
            _ => self.say(|reply| reply.error(super::db::SYNTAX)),
        }
    }

    /// Whether a CLIENT command concerns its sender alone.
    pub(super) fn names_itself(&self, words: &[Vec<u8>]) -> bool {
        ["setname", "getname", "setinfo", "id", "no-evict", "no-touch"].iter().any(|name| is(&words[1], name))
    }

    /// CLIENT SETNAME, GETNAME, SETINFO, ID, NO-EVICT, NO-TOUCH
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
            (b"id", 2) => self.say(|reply| reply.integer(self.client.number as i64)),
            (name, _) => {
                let name = String::from_utf8_lossy(name);
                self.say(|reply| reply.error(&format!("ERR wrong number of arguments for 'client|{name}' command")))
            }
        }
    }
}

const NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

/// Whether a text may be a name: printable, and no spaces.
fn is_name(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}
