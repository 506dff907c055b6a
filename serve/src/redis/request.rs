//! What a client asks for, taken from what it has sent.

use std::sync::Arc;

use super::channels::Change;
use super::clients::Client;
use super::db::Refusal;
use super::reply::Reply;
use super::spec::{Id, Spec};
use super::watch::WatchSet;

/// A command whose number of words is right.
#[derive(Debug)]
pub struct Command {
    /// What it is.
    pub spec: &'static Spec,
    /// All of its words.
    pub words: Vec<Vec<u8>>,
}

impl Command {
    /// Bytes of its words, about.
    pub fn bytes(&self) -> usize {
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
        /// Who asks.
        client: Arc<Client>,
    },
    /// One that waits when it finds nothing.
    Wait {
        /// The client speaks RESP3.
        resp3: bool,
        /// The command.
        command: Arc<Command>,
        /// Who asks.
        client: Arc<Client>,
    },
    /// The commands of a MULTI.
    Exec {
        /// The client speaks RESP3.
        resp3: bool,
        /// The commands.
        commands: Vec<Command>,
        /// What must not have changed.
        watched: Arc<WatchSet>,
        /// Who asks.
        client: Arc<Client>,
    },
    /// One that is not answered.
    Mute(Box<Request>),
    /// Keys are watched from here on.
    Watch {
        /// The keys.
        keys: Vec<Vec<u8>>,
        /// Where they are noted.
        set: Arc<WatchSet>,
    },
    /// A client begins or ends to listen to channels.
    Listen {
        /// What is replied.
        say: Vec<u8>,
        /// What changes.
        changes: Vec<Change>,
        /// Who.
        client: Arc<Client>,
    },
}

impl Request {
    /// Bytes, about.
    pub fn weight(&self) -> usize {
        match self {
            Request::Say(_) | Request::Watch { .. } | Request::Listen { .. } => 0,
            Request::Mute(request) => request.weight(),
            Request::Run { command, .. } => command.bytes(),
            Request::Wait { command, .. } => command.bytes(),
            Request::Exec { commands, .. } => commands.iter().map(Command::bytes).sum(),
        }
    }

    /// Whether its reply is in version 3.
    pub fn resp3(&self) -> bool {
        match self {
            Request::Say(_) | Request::Watch { .. } | Request::Listen { .. } => false,
            Request::Mute(request) => request.resp3(),
            Request::Run { resp3, .. } | Request::Wait { resp3, .. } | Request::Exec { resp3, .. } => *resp3,
        }
    }
}

/// What a client is told of a refusal.
pub fn answer(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Say(text) => text.clone().into_owned(),
        Refusal::Pool(error @ nearpm::Error::Full { .. }) => format!("OOM command not allowed: {error}"),
        Refusal::Pool(error) => format!("ERR {error}"),
    }
}

/// The reply to a command that finds nothing where it may not wait, in MULTI.
pub fn nothing(command: &Command, reply: &mut Reply<'_>) {
    if matches!(command.spec.id, Id::Blmove | Id::Brpoplpush) { reply.null() } else { reply.null_array() }
}
