//! The protocol as the server sees it.

use std::sync::Arc;

use nearpm::direct::Tx;
use nearpm::prelude::*;

use super::db::Owned;
use super::reply::Reply;
use super::request::Request;
use super::run::{REPLY_BYTES, until};
use super::session::Session;
use super::spec::{self, Id};
use super::{OUT_OF_MEMORY, Redis, State, near};
use crate::effects::Blocked;
use crate::options::Eviction;
use crate::service::{Admission, Clients, Peer, Service, Turn};
use crate::store::{Name, RECLAIMED, Search, expired, size};

impl Service for Redis {
    type Session = Session;
    type Request = Request;

    const TOO_MANY: &'static [u8] = b"-ERR max number of clients reached\r\n";
    const PROTECTED: &'static [u8] = b"-DENIED the server is in protected mode, because it has no password: it answers clients of its own machine. Give it a password (--requirepass-file), users (--acl-file), or --protected-mode no\r\n";
    const PORT: u16 = 6379;

    fn has_command(name: &str) -> bool {
        spec::find(name.as_bytes()).is_some()
    }

    fn clients(&self) -> Clients {
        let of = |number: &super::settings::Number| number.get() as u64;
        let settings = &self.state.settings;
        Clients::new(of(&settings.max_clients) as usize, of(&settings.timeout), of(&settings.keepalive))
    }

    fn session(&self, peer: Peer) -> Session {
        Session::new(peer, Arc::<State>::clone(&self.state))
    }

    fn admit(&self, session: &mut Session, input: &[u8]) -> Admission<Request> {
        session.admit(input, self.options.max_value as usize)
    }

    fn changes(request: &Request) -> bool {
        match request {
            Request::Say(_) | Request::Watch { .. } | Request::Listen { .. } => false,
            Request::Mute(request) => Self::changes(request),
            Request::Run { command, .. } => command.spec.changes(),
            Request::Wait { .. } => true,
            Request::Exec { commands, .. } => commands.iter().any(|command| command.spec.changes()),
        }
    }

    fn weight(request: &Request) -> usize {
        request.weight()
    }

    fn look(&self, from: &impl Load, turn: &Turn<'_>, request: &Request, out: &mut Vec<u8>) -> Result<(), Error> {
        let db = self.db(turn);
        match request {
            Request::Say(text) => out.extend_from_slice(text),
            Request::Mute(request) => {
                let start = out.len();
                self.look(from, turn, request, out)?;
                out.truncate(start);
            }
            Request::Run { resp3, command, client } => {
                self.read(&db, from, (command, client), (&mut Reply::new(out, *resp3), REPLY_BYTES))?;
            }
            Request::Wait { .. } => unreachable!("it may change something"),
            Request::Exec { resp3, commands, watched, client } => {
                let mut reply = Reply::new(out, *resp3);
                if self.is_stale(&db, from, watched)? {
                    reply.null_array();
                    return Ok(());
                }
                reply.array(commands.len());
                let start = reply.place();
                for command in commands {
                    let room = REPLY_BYTES.saturating_sub(reply.place() - start);
                    self.read(&db, from, (command, client), (&mut reply, room))?;
                }
            }
            Request::Watch { keys, set } => {
                for key in keys {
                    set.add(key, db.item(from, &Name::of(key))?.is_some());
                }
                Reply::new(out, false).simple("OK");
            }
            Request::Listen { say, changes, client } => {
                changes.iter().for_each(|change| self.state.channels.change(client, change));
                out.extend_from_slice(say);
            }
        }
        Ok(())
    }

    fn change(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, request: &Request, out: &mut Vec<u8>) -> Result<(), Error> {
        let db = self.db(turn);
        match request {
            Request::Run { resp3, command, client } => {
                self.relieve(&db, tx, command)?;
                self.run(&db, tx, (command, client), (&mut Reply::new(out, *resp3), REPLY_BYTES))
            }
            Request::Exec { .. } => self.exec(tx, &db, request, out),
            Request::Mute(request) => {
                let start = out.len();
                self.change(tx, turn, request, out)?;
                out.truncate(start);
                Ok(())
            }
            Request::Wait { resp3, command, client } => {
                let start = out.len();
                self.relieve(&db, tx, command)?;
                self.run(&db, tx, (command, client), (&mut Reply::new(out, *resp3), REPLY_BYTES))?;
                if out.len() == start {
                    let keys = command.spec.keys_of(&command.words);
                    // BLMOVE waits for the first of its keys alone.
                    let moves = matches!(command.spec.id, Id::Blmove | Id::Brpoplpush);
                    let keys = keys.into_iter().take(if moves { 1 } else { usize::MAX }).cloned().collect();
                    let ticket = self.state.waiting.add(command.clone(), client.clone(), *resp3, keys);
                    turn.effects.waiting.borrow_mut().push(ticket);
                    turn.effects.blocked.set(Some(Blocked { ticket, until: until(command) }));
                }
                Ok(())
            }
            _ => self.look(tx, turn, request, out),
        }
    }

    fn refuse(&self, request: &Request, error: &Error, out: &mut Vec<u8>) {
        if matches!(request, Request::Mute(_)) {
            return;
        }
        let text = match error {
            Error::Full { requested: 0, .. } if matches!(request, Request::Exec { .. }) => {
                format!("EXECABORT Transaction discarded because of: {OUT_OF_MEMORY}")
            }
            Error::Full { requested: 0, .. } => OUT_OF_MEMORY.to_owned(),
            Error::Full { .. } => format!("OOM command not allowed: {error}"),
            error => format!("ERR {error}"),
        };
        Reply::new(out, request.resp3()).error(&text);
    }

    fn attend(&self, tx: &mut Tx<'_>, turn: &Turn<'_>) -> Result<(), Error> {
        if self.state.waiting.len() == 0 {
            return Ok(());
        }
        let db = self.db(turn);
        turn.effects.ready.borrow_mut().extend(self.state.waiting.again());
        loop {
            // What is served may put something under another key, for which others wait.
            let keys = turn.effects.ready.take();
            if keys.is_empty() {
                return Ok(());
            }
            for key in keys {
                self.serve_waiting(&db, tx, &key)?;
            }
        }
    }

    fn ended(&self, turn: &Turn<'_>, committed: bool) {
        self.state.waiting.ended(&turn.effects, committed);
    }

    fn give_up(&self, ticket: u64) -> bool {
        self.state.waiting.give_up(ticket)
    }

    fn timed_out(&self, request: &Request, out: &mut Vec<u8>) {
        if let Request::Wait { resp3, .. } = request {
            Reply::new(out, *resp3).null_array();
        }
    }

    fn listens(session: &Session) -> bool {
        session.listens()
    }

    fn abandon(&self, _: &mut Tx<'_>, _: &Turn<'_>, _: &Request) -> Result<(), Error> {
        Ok(())
    }

    fn near(&self, request: &Request) -> Option<u64> {
        match request {
            Request::Run { command, .. } => Some(near(command)),
            Request::Wait { command, .. } => Some(near(command)),
            Request::Mute(request) => self.near(request),
            _ => None,
        }
    }

    fn empties(request: &Request) -> bool {
        if let Request::Mute(request) = request {
            return Self::empties(request);
        }
        matches!(request, Request::Run { command, .. } if matches!(command.spec.id, Id::Flushall | Id::Flushdb))
    }

    fn evict(&self, tx: &mut Tx<'_>, turn: &Turn<'_>, search: &mut Search) -> Result<u32, Error> {
        if self.eviction() == Eviction::None && !search.empties {
            return Ok(0);
        }
        let keys = self.keys(turn);
        let evicted = keys.evict::<Owned>(tx, search)?;
        self.forget_evicted(&keys);
        self.note_used(&keys, tx)?;
        Ok(evicted)
    }

    fn reclaim(&self, tx: &mut Tx<'_>, turn: &Turn<'_>) -> Result<u64, Error> {
        let keys = self.keys(turn);
        let removed = keys.reclaim::<Owned>(tx, RECLAIMED, |item| expired(item.expires, turn.now_ms))?;
        self.note_used(&keys, tx)?;
        Ok(removed)
    }

    fn tick(&self, _: &impl Load, _: &Turn<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn size(&self, from: &impl Load) -> Result<(u64, u64), Error> {
        size(self.space, from)
    }
}
