//! What a client's connection knows: protocol version, an open MULTI, watched keys, subscriptions.
//! Commands that concern nothing else are answered here, in `greeting.rs` and in `listening.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::State;
use super::clients::Client;
use super::guard;
use super::reply::Reply;
use super::request::{Command, Request};
use super::resp::{Parsed, Parser};
use super::spec::{self, Id};
use super::subcommands;
use super::watch::WatchSet;
use super::words::is;
use crate::access::{DEFAULT, User};
use crate::service::{Admission, Peer};

/// Bytes of commands that may wait for EXEC.
const QUEUE_BYTES: usize = 16 << 20;

/// Commands between MULTI and EXEC.
#[derive(Debug, Default)]
struct Queue {
    commands: Vec<Command>,
    bytes: usize,
    /// One of them was refused.
    spoilt: bool,
}

/// Which commands a client wants to be answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replies {
    /// All of them.
    #[default]
    On,
    /// None.
    Off,
    /// All but the next one.
    SkipNext,
    /// All but this one.
    SkipThis,
}

/// A client.
pub struct Session {
    pub(super) client: Arc<Client>,
    pub(super) state: Arc<State>,
    /// Nobody until a password was given, where one is asked for.
    pub(super) user: Option<Arc<User>>,
    /// Which users there were when it was looked for.
    users: u64,
    pub(super) resp3: bool,
    pub(super) replies: Replies,
    /// Channels that it listens to.
    pub(super) channels: BTreeSet<Vec<u8>>,
    /// Patterns of them.
    pub(super) patterns: BTreeSet<Vec<u8>>,
    queue: Option<Queue>,
    watched: Arc<WatchSet>,
    parser: Parser,
}

/// Whether a client that listens may ask for it in RESP2, where it could not tell the reply from a
/// message.
fn may_listener(id: Id) -> bool {
    matches!(id, Id::Subscribe | Id::Psubscribe | Id::Unsubscribe | Id::Punsubscribe | Id::Ping | Id::Quit | Id::Reset)
}

impl Session {
    /// Of a client that has just come.
    pub fn new(peer: Peer, state: Arc<State>) -> Session {
        let client = Arc::new(Client::new(peer));
        state.clients.add(&client);
        let watched = Arc::new(WatchSet::new(state.watches.clone()));
        let (users, user, parser) = (state.access.version(), state.access.nobody(), Parser::default());
        let (resp3, replies, channels, patterns, queue) = Default::default();
        Session { client, state, user, users, resp3, replies, channels, patterns, queue, watched, parser }
    }

    /// Takes a command from an input.
    pub fn admit(&mut self, input: &[u8], max_value: usize) -> Admission<Request> {
        if guard::is_handshake(input) {
            return Admission::Last(Request::Say(Vec::new()));
        }
        let broken = |session: &Session, why: &str| {
            Admission::Last(session.say(|reply| reply.error(&format!("ERR Protocol error: {why}"))))
        };
        let (words, taken) = match self.parser.parse(input, max_value) {
            Parsed::Incomplete => return Admission::Incomplete,
            Parsed::Broken(why) => return broken(self, why),
            Parsed::Unexpected(byte) => return broken(self, &format!("expected '$', got '{}'", char::from(byte))),
            Parsed::Command(words, taken) => (words, taken),
        };
        let Some(name) = words.first() else { return Admission::Request(Request::Say(Vec::new()), taken) };
        if is(name, "quit") {
            return Admission::Last(self.say(|reply| reply.simple("OK")));
        }
        // A browser, or somebody who makes one talk to this port: nothing of what it sends may be
        // run.
        if guard::is_foreign(&words) {
            return Admission::Last(Request::Say(Vec::new()));
        }
        self.client.input.store(taken, Ordering::Relaxed);
        Admission::Request(self.take_or_mute(words), taken)
    }

    pub(super) fn say(&self, write: impl FnOnce(&mut Reply<'_>)) -> Request {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, self.resp3));
        Request::Say(out)
    }

    /// Speaks another version from here on.
    pub(super) fn speak(&mut self, resp3: bool) {
        self.resp3 = resp3;
        self.client.resp3.store(resp3, Ordering::Relaxed);
    }

    /// As [`Session::take`]; what the client wants no answer to gets none, but what waits for
    /// others.
    fn take_or_mute(&mut self, words: Vec<Vec<u8>>) -> Request {
        if self.replies == Replies::SkipNext {
            self.replies = Replies::SkipThis;
        }
        let request = self.take(words);
        // By now the command may have said otherwise.
        let mute = self.replies != Replies::On;
        if self.replies == Replies::SkipThis {
            self.replies = Replies::On;
        }
        // As in Redis, what tells of channels is sent all the same.
        let told = matches!(request, Request::Wait { .. } | Request::Listen { .. });
        if mute && !told { Request::Mute(Box::new(request)) } else { request }
    }

    /// What the client may do is what its user may do now. One that was removed may do nothing.
    fn look_at_user(&mut self) {
        let users = self.state.access.version();
        if users != self.users {
            self.users = users;
            self.user = self.user.take().and_then(|user| self.state.access.user(&user.name));
        }
    }

    /// Refuses a command; an open MULTI cannot be executed any more.
    fn refuse(&mut self, text: &str) -> Request {
        if let Some(queue) = &mut self.queue {
            queue.spoilt = true;
        }
        self.say(|reply| reply.error(text))
    }

    fn take(&mut self, mut words: Vec<Vec<u8>>) -> Request {
        let Some(spec) = self.state.names.meant(&words[0]).and_then(spec::find) else {
            return self.refuse(&subcommands::unknown(&words));
        };
        if !spec.takes(words.len()) {
            if spec.id == Id::Exec {
                // As in Redis: what was queued goes as well.
                self.end_multi();
                let text = "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command";
                return self.say(|reply| reply.error(text));
            }
            return self.refuse(&format!("ERR wrong number of arguments for '{}' command", spec.name));
        }
        if let Some(refused) = subcommands::refusal(spec, &words) {
            return self.refuse(&refused);
        }
        self.look_at_user();
        if let Some(refused) = guard::refusal(self.user.as_deref(), spec, &words) {
            return self.refuse(&refused);
        }
        // Commands that have something in common are told apart by their own names.
        if !is(&words[0], spec.name) {
            words[0] = spec.name.into();
        }
        self.client.sends(spec.name, words.get(1).filter(|_| spec.has('c')));
        if self.listens() && !self.resp3 && !may_listener(spec.id) {
            let text = format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
                subcommands::full_name(spec, &words)
            );
            return self.refuse(&text);
        }
        let secret = matches!(spec.id, Id::Auth | Id::Hello | Id::Reset) || spec.has('a');
        if self.state.monitors.are_there() && !secret {
            self.state.monitors.tell(&self.client, &words);
        }
        let open = self.queue.is_some();
        match spec.id {
            Id::Multi if open => self.say(|reply| reply.error("ERR MULTI calls can not be nested")),
            Id::Multi => {
                self.queue = Some(Queue::default());
                self.client.queued.store(0, Ordering::Relaxed);
                self.say(|reply| reply.simple("OK"))
            }
            Id::Exec => self.exec(),
            Id::Discard if !open => self.say(|reply| reply.error("ERR DISCARD without MULTI")),
            Id::Discard => {
                self.end_multi();
                self.say(|reply| reply.simple("OK"))
            }
            Id::Watch if open => self.say(|reply| reply.error("ERR WATCH inside MULTI is not allowed")),
            Id::Watch => Request::Watch { keys: words[1..].to_vec(), set: self.watched.clone() },
            Id::Unwatch if !open => {
                self.watch_anew();
                self.say(|reply| reply.simple("OK"))
            }
            Id::Reset => self.reset(),
            Id::Auth | Id::Hello | Id::Subscribe | Id::Psubscribe | Id::Unsubscribe | Id::Punsubscribe if open => {
                self.refuse(&format!("ERR {} is not supported inside of MULTI", spec.name.to_uppercase()))
            }
            Id::Auth => self.auth(&words),
            Id::Hello => self.hello(&words),
            Id::Subscribe | Id::Psubscribe => self.subscribe(&words),
            Id::Unsubscribe | Id::Punsubscribe => self.unsubscribe(&words),
            Id::Ping if self.listens() && !self.resp3 => {
                let text = words.get(1).cloned().unwrap_or_default();
                self.say(|reply| reply.bulks([b"pong".as_slice(), &text].into_iter()))
            }
            _ if open && spec.has('m') && self.state.is_full() => self.refuse(super::OUT_OF_MEMORY),
            _ if open => self.queue(Command { spec, words }),
            Id::Client if self.names_itself(&words) => self.name_itself(&words),
            _ if spec.has('b') => {
                let command = Arc::new(Command { spec, words });
                Request::Wait { resp3: self.resp3, command, client: self.client.clone() }
            }
            _ => Request::Run { resp3: self.resp3, command: Command { spec, words }, client: self.client.clone() },
        }
    }

    fn queue(&mut self, command: Command) -> Request {
        let bytes = command.bytes();
        if let Some(queue) = &mut self.queue
            && queue.bytes + bytes <= QUEUE_BYTES
        {
            queue.bytes += bytes;
            queue.commands.push(command);
            self.client.queued.store(queue.commands.len() as i64, Ordering::Relaxed);
            return self.say(|reply| reply.simple("QUEUED"));
        }
        self.refuse("ERR the commands of this MULTI have too many bytes")
    }

    /// What was watched ends with the requests that refer to it.
    fn watch_anew(&mut self) -> Arc<WatchSet> {
        std::mem::replace(&mut self.watched, Arc::new(WatchSet::new(self.state.watches.clone())))
    }

    fn end_multi(&mut self) -> (Option<Queue>, Arc<WatchSet>) {
        self.client.queued.store(-1, Ordering::Relaxed);
        (self.queue.take(), self.watch_anew())
    }

    fn exec(&mut self) -> Request {
        if self.queue.is_none() {
            return self.say(|reply| reply.error("ERR EXEC without MULTI"));
        }
        match self.end_multi() {
            (Some(queue), watched) if !queue.spoilt => {
                Request::Exec { resp3: self.resp3, commands: queue.commands, watched, client: self.client.clone() }
            }
            _ => self.say(|reply| reply.error("EXECABORT Transaction discarded because of previous errors.")),
        }
    }

    /// As if the client had just come.
    fn reset(&mut self) -> Request {
        self.end_multi();
        self.state.monitors.remove(&self.client);
        self.replies = Replies::On;
        let changes = self.all_listening();
        self.channels.clear();
        self.patterns.clear();
        self.count_listening();
        (self.users, self.user) = (self.state.access.version(), self.state.access.nobody());
        {
            let mut texts = self.client.texts();
            (texts.name, texts.user) = (Vec::new(), DEFAULT.to_vec());
        }
        self.speak(false);
        let mut say = Vec::new();
        Reply::new(&mut say, false).simple("RESET");
        Request::Listen { say, changes, client: self.client.clone() }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.state.clients.remove(self.client.number);
        self.state.monitors.remove(&self.client);
        for change in self.all_listening() {
            self.state.channels.change(&self.client, &change);
        }
    }
}
