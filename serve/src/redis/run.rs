//! How commands are run, alone and in MULTI, and how those who wait for a key are served.

use std::time::{Duration, Instant};

use nearpm::direct::Tx;
use nearpm::prelude::*;

use super::Redis;
use super::clients::Client;
use super::db::{Db, Kind, Outcome, Refusal};
use super::reply::Reply;
use super::request::{self, Command, Request, nothing};
use super::subcommands;
use super::words::float;
use crate::effects::Mail;
use crate::store::Name;

/// Bytes of the reply of a command that only reads, or of all commands of one MULTI that do.
pub const REPLY_BYTES: usize = 128 << 20;
const TOO_LONG: &str = "ERR the reply would have more than 128 MiB";

/// Turns what a command says into its reply; nothing of a refused one remains in the reply.
fn settle(done: Outcome, start: usize, reply: &mut Reply<'_>) -> Result<(), Error> {
    match done {
        Ok(()) => Ok(()),
        Err(Refusal::Pool(error)) => Err(error),
        Err(refusal) => {
            reply.truncate(start);
            reply.error(&request::answer(&refusal));
            Ok(())
        }
    }
}

/// When a command ends to wait: its last word is a number of seconds, but of BLMPOP and BZMPOP the
/// first behind the name.
pub fn until(command: &Command) -> Option<Instant> {
    let words = &command.words;
    let word = if command.spec.has('M') { words.get(1) } else { words.last() };
    // It was looked at by the command.
    let seconds = word.and_then(|word| float(word)).unwrap_or(0.0);
    let wait = Duration::try_from_secs_f64(seconds).ok().filter(|wait| !wait.is_zero())?;
    Instant::now().checked_add(wait.max(Duration::from_millis(1)))
}

impl Redis {
    /// Runs one command that only reads, if that fits into what is left of the reply.
    pub(super) fn read(
        &self,
        db: &Db<'_>,
        from: &impl Load,
        (command, client): (&Command, &Client),
        (reply, room): (&mut Reply<'_>, usize),
    ) -> Result<(), Error> {
        let (start, begin) = (reply.place(), Instant::now());
        let mut limited = reply.again(room);
        let mut done = match subcommands::help(command.spec, &command.words, &mut limited) {
            Some(helped) => helped,
            None => self.ask(&Db { client: Some(client), ..*db }, from, command, &mut limited),
        };
        if limited.is_too_long() {
            done = super::db::refuse(TOO_LONG);
        }
        self.state.slowlog.note(&self.state.settings, db.keys.now_ms, begin.elapsed(), command, client);
        settle(done, start, reply)
    }

    /// Runs one command of any kind; one that waits writes no reply if it finds nothing.
    pub(super) fn run(
        &self,
        db: &Db<'_>,
        tx: &mut Tx<'_>,
        (command, client): (&Command, &Client),
        (reply, room): (&mut Reply<'_>, usize),
    ) -> Result<(), Error> {
        if !command.spec.changes() {
            // As Redis counts: a key that is looked for to be written is no hit and no miss.
            return self.read(db, tx, (command, client), (reply, room));
        }
        let (start, begin) = (reply.place(), Instant::now());
        let done = self.act(&Db { reads: false, ..*db }, tx, command, None, reply);
        self.note_used(&db.keys, tx)?;
        self.state.slowlog.note(&self.state.settings, db.keys.now_ms, begin.elapsed(), command, client);
        settle(done, start, reply)
    }

    /// Whether the commands of a MULTI may not run, because something has changed.
    pub(super) fn is_stale(
        &self,
        db: &Db<'_>,
        from: &impl Load,
        watched: &super::watch::WatchSet,
    ) -> Result<bool, Error> {
        watched.is_stale(|key| Ok(db.item(from, &Name::of(key))?.is_some()))
    }

    /// Runs the commands of those who wait for a key, in the order in which they came.
    pub(super) fn serve_waiting(&self, db: &Db<'_>, tx: &mut Tx<'_>, key: &[u8]) -> Result<(), Error> {
        for (ticket, waiter) in self.state.waiting.of_key(key) {
            let Some((_, item)) = db.item(tx, &Name::of(key))? else { return Ok(()) };
            let wants = if waiter.command.spec.name.contains('z') { Kind::ZSet } else { Kind::List };
            if Kind::of(&item)? != wants || db.effects.answered.borrow().contains(&ticket) {
                continue;
            }
            let mut out = Vec::new();
            let mut reply = Reply::new(&mut out, waiter.resp3);
            let done = self.act(&Db { reads: false, ..*db }, tx, &waiter.command, Some(key), &mut reply);
            settle(done, 0, &mut reply)?;
            if !out.is_empty() {
                self.state.waiting.claim(ticket);
                db.effects.answered.borrow_mut().push(ticket);
                db.effects.send(&waiter.client.mailbox, Mail::Answer { ticket, reply: out });
            }
        }
        Ok(())
    }

    pub(super) fn exec(&self, tx: &mut Tx<'_>, db: &Db<'_>, request: &Request, out: &mut Vec<u8>) -> Result<(), Error> {
        let Request::Exec { resp3, commands, watched, client } = request else { return Ok(()) };
        let mut reply = Reply::new(out, *resp3);
        if self.is_stale(db, tx, watched)? {
            reply.null_array();
            return Ok(());
        }
        // As in Redis: once for all of them.
        if let Some(command) = commands.iter().find(|command| command.spec.has('m')) {
            self.relieve(db, tx, command)?;
        }
        reply.array(commands.len());
        let mut room = REPLY_BYTES;
        for command in commands {
            let start = reply.place();
            self.run(db, tx, (command, client), (&mut reply, room))?;
            if reply.place() == start {
                nothing(command, &mut reply);
            }
            if !command.spec.changes() {
                room = room.saturating_sub(reply.place() - start);
            }
        }
        Ok(())
    }
}
