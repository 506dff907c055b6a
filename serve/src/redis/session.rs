//! What a client's connection knows: protocol version, name, an open MULTI. Commands that concern nothing else are answered here.

use std::sync::Arc;

use super::db::{Refusal, is};
use super::guard;
use super::reply::Reply;
use super::resp::{self, Parsed};
use super::table::{self, Spec};
use crate::access::{Access, DEFAULT, User};
use crate::options::Renamed;
use crate::service::Admission;

/// Bytes of commands that may wait for EXEC.
const QUEUE_BYTES: usize = 16 << 20;

/// A command whose number of words is right.
#[derive(Debug)]
pub struct Command {
    /// What it is.
    pub spec: &'static Spec,
    /// All of its words.
    pub words: Vec<Vec<u8>>,
}

impl Command {
    fn bytes(&self) -> usize {
        self.words.iter().map(|word| word.len() + 32).sum()
    }
}

/// What is to be run.
#[derive(Debug)]
pub enum Request {
    /// A reply that is known.
    Say(Vec<u8>),
    /// One command.
    Run {
        /// The client speaks RESP3.
        resp3: bool,
        /// The command.
        command: Command,
    },
    /// The commands of a MULTI.
    Exec {
        /// The client speaks RESP3.
        resp3: bool,
        /// The commands.
        commands: Vec<Command>,
    },
}

impl Request {
    /// Bytes, about.
    pub fn weight(&self) -> usize {
        match self {
            Request::Say(_) => 0,
            Request::Run { command, .. } => command.bytes(),
            Request::Exec { commands, .. } => commands.iter().map(Command::bytes).sum(),
        }
    }
}

/// Commands between MULTI and EXEC.
#[derive(Debug, Default)]
struct Queue {
    commands: Vec<Command>,
    bytes: usize,
    /// One of them was refused.
    spoilt: bool,
}

/// A client.
#[derive(Debug)]
pub struct Session {
    number: u64,
    /// Nobody until a password was given, where one is asked for.
    user: Option<Arc<User>>,
    resp3: bool,
    name: Vec<u8>,
    queue: Option<Queue>,
}

impl Session {
    /// Of a client that has just come.
    pub fn new(number: u64, access: &Access) -> Session {
        Session { number, user: access.nobody(), resp3: false, name: Vec::new(), queue: None }
    }

    /// Takes a command from an input.
    pub fn admit(
        &mut self,
        input: &[u8],
        max_value: usize,
        (access, names): (&Access, &Renamed),
    ) -> Admission<Request> {
        let (words, taken) = match resp::parse(input, max_value) {
            Parsed::Incomplete => return Admission::Incomplete,
            Parsed::Broken(why) => {
                return Admission::Last(self.say(|reply| reply.error(&format!("ERR Protocol error: {why}"))));
            }
            Parsed::Command(words, taken) => (words, taken),
        };
        if words.is_empty() {
            return Admission::Request(Request::Say(Vec::new()), taken);
        }
        if is(&words[0], "quit") {
            return Admission::Last(self.say(|reply| reply.simple("OK")));
        }
        Admission::Request(self.take(words, access, names), taken)
    }

    fn say(&self, write: impl FnOnce(&mut Reply<'_>)) -> Request {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, self.resp3));
        Request::Say(out)
    }

    /// Refuses a command; an open MULTI cannot be executed any more.
    fn refuse(&mut self, text: &str) -> Request {
        if let Some(queue) = &mut self.queue {
            queue.spoilt = true;
        }
        self.say(|reply| reply.error(text))
    }

    fn take(&mut self, words: Vec<Vec<u8>>, access: &Access, names: &Renamed) -> Request {
        let Some(spec) = names.meant(&words[0]).and_then(table::find) else {
            return self.refuse(&unknown(&words));
        };
        if let Some(refused) = guard::refusal(self.user.as_deref(), spec, &words) {
            return self.refuse(&refused);
        }
        if !spec.takes(words.len()) {
            return self.refuse(&format!("ERR wrong number of arguments for '{}' command", spec.name));
        }
        match (spec.name, self.queue.is_some()) {
            ("multi", false) => {
                self.queue = Some(Queue::default());
                self.say(|reply| reply.simple("OK"))
            }
            ("multi", true) => self.say(|reply| reply.error("ERR MULTI calls can not be nested")),
            ("exec", _) => self.exec(),
            ("discard", open) => {
                self.queue = None;
                self.say(|reply| if open { reply.simple("OK") } else { reply.error("ERR DISCARD without MULTI") })
            }
            ("reset", _) => {
                *self = Session::new(self.number, access);
                self.say(|reply| reply.simple("RESET"))
            }
            ("auth" | "hello" | "client", true) => {
                self.refuse(&format!("ERR {} is not supported inside of MULTI", spec.name.to_uppercase()))
            }
            ("auth", _) => self.auth(&words[1..], access),
            ("hello", _) => self.hello(&words, access),
            ("client", _) => self.client(&words),
            (_, true) => self.queue(Command { spec, words }),
            (_, false) => Request::Run { resp3: self.resp3, command: Command { spec, words } },
        }
    }

    /// Whether name and password, or the password of the default user, are right.
    fn log_in(&mut self, words: &[Vec<u8>], access: &Access) -> bool {
        let user = match words {
            [password] => access.authenticate(DEFAULT, password),
            [name, password] => access.authenticate(name, password),
            _ => None,
        };
        let right = user.is_some();
        self.user = user.or_else(|| self.user.take());
        right
    }

    /// AUTH [user] password
    fn auth(&mut self, words: &[Vec<u8>], access: &Access) -> Request {
        if words.len() > 2 {
            return self.say(|reply| reply.error("ERR syntax error"));
        }
        if words.len() == 1 && access.is_open() {
            return self.say(|reply| reply.error(NO_PASSWORD));
        }
        let right = self.log_in(words, access);
        self.say(|reply| if right { reply.simple("OK") } else { reply.error(WRONG_PASSWORD) })
    }

    fn queue(&mut self, command: Command) -> Request {
        let bytes = command.bytes();
        if let Some(queue) = &mut self.queue
            && queue.bytes + bytes <= QUEUE_BYTES
        {
            queue.bytes += bytes;
            queue.commands.push(command);
            return self.say(|reply| reply.simple("QUEUED"));
        }
        self.refuse("ERR the commands of this MULTI have too many bytes")
    }

    fn exec(&mut self) -> Request {
        match self.queue.take() {
            None => self.say(|reply| reply.error("ERR EXEC without MULTI")),
            Some(queue) if queue.spoilt => {
                self.say(|reply| reply.error("EXECABORT Transaction discarded because of previous errors."))
            }
            Some(queue) => Request::Exec { resp3: self.resp3, commands: queue.commands },
        }
    }

    /// HELLO [version [SETNAME name]]
    fn hello(&mut self, words: &[Vec<u8>], access: &Access) -> Request {
        let protocol = self.resp3;
        match words.get(1).map(|version| resp::number(version)) {
            None => {}
            Some(Some(2)) => self.resp3 = false,
            Some(Some(3)) => self.resp3 = true,
            Some(Some(_)) => return self.say(|reply| reply.error("NOPROTO unsupported protocol version")),
            Some(None) => {
                return self.say(|reply| reply.error("ERR Protocol version is not an integer or out of range"));
            }
        }
        let mut options = words.iter().skip(2);
        while let Some(option) = options.next() {
            match options.next() {
                Some(name) if is(option, "setname") => self.name = name.clone(),
                Some(name) if is(option, "auth") => {
                    let words = [Some(name.clone()), options.next().cloned()].into_iter().flatten().collect::<Vec<_>>();
                    if words.len() < 2 || !self.log_in(&words, access) {
                        self.resp3 = protocol;
                        return self.say(|reply| reply.error(WRONG_PASSWORD));
                    }
                }
                _ => {
                    self.resp3 = protocol;
                    return self.say(|reply| reply.error("ERR Syntax error in HELLO option"));
                }
            }
        }
        if self.user.is_none() {
            self.resp3 = protocol;
            return self.say(|reply| reply.error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"));
        }
        let number = self.number as i64;
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

    /// CLIENT SETNAME, GETNAME, SETINFO, ID, NO-EVICT, NO-TOUCH
    fn client(&mut self, words: &[Vec<u8>]) -> Request {
        match (words[1].to_ascii_lowercase().as_slice(), words.len()) {
            (b"setname", 3) => {
                if words[2].iter().any(|byte| !(b'!'..=b'~').contains(byte)) {
                    let text = "ERR Client names cannot contain spaces, newlines or special characters.";
                    return self.say(|reply| reply.error(text));
                }
                self.name = words[2].clone();
                self.say(|reply| reply.simple("OK"))
            }
            (b"getname", 2) if self.name.is_empty() => self.say(|reply| reply.null()),
            (b"getname", 2) => self.say(|reply| reply.bulk(&self.name)),
            (b"setinfo", 4) | (b"no-evict" | b"no-touch", 3) => self.say(|reply| reply.simple("OK")),
            (b"id", 2) => self.say(|reply| reply.integer(self.number as i64)),
            _ => self.say(|reply| reply.error("ERR unknown subcommand or wrong number of arguments for CLIENT")),
        }
    }
}

const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?";
const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

fn unknown(words: &[Vec<u8>]) -> String {
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

/// What a client is told of a refusal.
pub fn answer(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Say(text) => text.clone().into_owned(),
        Refusal::Pool(error @ nearpm::Error::Full { .. }) => format!("OOM command not allowed: {error}"),
        Refusal::Pool(error) => format!("ERR {error}"),
    }
}
