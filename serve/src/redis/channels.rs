//! Channels: who listens to them, and what is sent there.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clients::Client;
use super::db::{Db, Outcome};
use super::reply::Reply;
use super::subcommands::wrong_form;
use crate::effects::Mail;
use crate::glob::matches;

type Listeners = BTreeMap<Vec<u8>, BTreeMap<u64, Arc<Client>>>;

#[derive(Default)]
struct Inner {
    channels: Listeners,
    patterns: Listeners,
}

/// Who listens to what.
#[derive(Default)]
pub struct Channels(Mutex<Inner>);

/// What a client begins or ends to listen to.
#[derive(Clone, Debug)]
pub struct Change {
    /// A pattern, and not a channel.
    pub pattern: bool,
    /// Its name.
    pub name: Vec<u8>,
    /// It begins.
    pub begins: bool,
}

impl Channels {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client listens to something, or no longer. Doing it twice is as doing it once.
    pub fn change(&self, client: &Arc<Client>, change: &Change) {
        let mut inner = self.lock();
        let listeners = if change.pattern { &mut inner.patterns } else { &mut inner.channels };
        if change.begins {
            listeners.entry(change.name.clone()).or_default().insert(client.number, client.clone());
        } else if let Some(clients) = listeners.get_mut(&change.name) {
            clients.remove(&client.number);
            if clients.is_empty() {
                listeners.remove(&change.name);
            }
        }
    }

    /// How many channels and patterns somebody listens to.
    pub fn len(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.channels.len(), inner.patterns.len())
    }

    /// Those who are to get what is sent to a channel, each with the pattern that it listens to if
    /// it is one.
    fn receivers(&self, channel: &[u8]) -> Vec<(Option<Vec<u8>>, Arc<Client>)> {
        let inner = self.lock();
        let direct = inner.channels.get(channel).into_iter().flat_map(BTreeMap::values).map(|c| (None, c.clone()));
        let fitting = inner.patterns.iter().filter(|(pattern, _)| matches(pattern, channel));
        let by_pattern =
            fitting.flat_map(|(pattern, clients)| clients.values().map(|c| (Some(pattern.clone()), c.clone())));
        direct.chain(by_pattern).collect()
    }
}

/// The message as it goes to a client.
fn message(pattern: Option<&[u8]>, channel: &[u8], text: &[u8], resp3: bool) -> Arc<[u8]> {
    let mut out = Vec::new();
    let mut reply = Reply::new(&mut out, resp3);
    match pattern {
        None => {
            reply.push(3);
            reply.bulk(b"message");
        }
        Some(pattern) => {
            reply.push(4);
            reply.bulk(b"pmessage");
            reply.bulk(pattern);
        }
    }
    reply.bulk(channel);
    reply.bulk(text);
    out.into()
}

/// PUBLISH channel message
pub fn publish(db: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let receivers = db.state.channels.receivers(&words[1]);
    reply.integer(receivers.len() as i64);
    // What all of one version get by the channel's name is one text.
    let mut same: [Option<Arc<[u8]>>; 2] = [None, None];
    for (pattern, client) in receivers {
        let resp3 = client.resp3.load(Ordering::Relaxed);
        let bytes = match pattern {
            Some(pattern) => message(Some(&pattern), &words[1], &words[2], resp3),
            None => same[usize::from(resp3)].get_or_insert_with(|| message(None, &words[1], &words[2], resp3)).clone(),
        };
        db.effects.send(&client.mailbox, Mail::Message(bytes));
    }
    Ok(())
}

/// PUBSUB CHANNELS [pattern], NUMSUB [channel ...], NUMPAT, SHARDCHANNELS, SHARDNUMSUB
pub fn pubsub(db: &Db<'_>, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let inner = db.state.channels.lock();
    let what = words[1].to_ascii_lowercase();
    match (what.as_slice(), &words[2..]) {
        (b"channels", pattern @ ([] | [_])) => {
            let fits = |name: &&Vec<u8>| pattern.first().is_none_or(|pattern| matches(pattern, name));
            let names: Vec<_> = inner.channels.keys().filter(fits).collect();
            reply.bulks(names.into_iter().map(Vec::as_slice));
        }
        (b"numsub", names) => {
            reply.array(2 * names.len());
            for name in names {
                reply.bulk(name);
                reply.integer(inner.channels.get(name).map_or(0, |clients| clients.len() as i64));
            }
        }
        (b"numpat", []) => reply.integer(inner.patterns.len() as i64),
        (b"shardchannels", [] | [_]) => reply.array(0),
        (b"shardnumsub", names) => {
            reply.array(2 * names.len());
            for name in names {
                reply.bulk(name);
                reply.integer(0);
            }
        }
        _ => return Err(wrong_form(words)),
    }
    Ok(())
}
