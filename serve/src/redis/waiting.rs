//! Clients that wait for something to be put under a key: served in the order in which they came,
//! in the transaction that puts it there.
//!
//! | step | where |
//! |---|---|
//! | a command finds nothing, and is noted with its keys | [`Waiting::add`], in its transaction |
//! | another one makes a key | `Db::grown` |
//! | behind that command those who wait for the key run theirs, in the same transaction; each that finds something is claimed | [`attend`] |
//! | the transaction is durable: the reply is sent to the worker of the client | `Effects::deliver` |
//! | it was taken back: those that were claimed wait on | [`Waiting::ended`] |
//! | time is over, or the client goes | [`Waiting::give_up`], which fails for one that is claimed |

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clients::Client;
use super::request::Command;
use crate::effects::Effects;

/// A command that waits.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// The command.
    pub command: Arc<Command>,
    /// Who has sent it.
    pub client: Arc<Client>,
    /// Its reply is in version 3.
    pub resp3: bool,
    /// Keys that it waits for.
    pub keys: Vec<Vec<u8>>,
    /// It is being answered.
    claimed: bool,
}

#[derive(Default)]
struct Inner {
    next: u64,
    waiters: BTreeMap<u64, Waiter>,
    by_key: HashMap<Vec<u8>, BTreeSet<u64>>,
    /// Keys of waiters whose answer was taken back.
    again: Vec<Vec<u8>>,
}

impl Inner {
    fn remove(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&ticket)?;
        for key in &waiter.keys {
            if let Some(tickets) = self.by_key.get_mut(key) {
                tickets.remove(&ticket);
                if tickets.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        Some(waiter)
    }
}

/// All that wait.
#[derive(Default)]
pub struct Waiting {
    inner: Mutex<Inner>,
    /// Their number, to be looked at before the lock is taken.
    count: AtomicUsize,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted(&self, inner: &Inner) {
        self.count.store(inner.waiters.len(), Ordering::Release);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// A command begins to wait. Gives its ticket.
    pub fn add(&self, command: Arc<Command>, client: Arc<Client>, resp3: bool, keys: Vec<Vec<u8>>) -> u64 {
        let mut inner = self.lock();
        inner.next += 1;
        let ticket = inner.next;
        for key in &keys {
            inner.by_key.entry(key.clone()).or_default().insert(ticket);
        }
        inner.waiters.insert(ticket, Waiter { command, client, resp3, keys, claimed: false });
        self.counted(&inner);
        ticket
    }

    /// Whether somebody waits for a key.
    pub fn is_wanted(&self, key: &[u8]) -> bool {
        self.len() > 0 && self.lock().by_key.contains_key(key)
    }

    /// Those who wait for a key and are not being answered, in the order in which they came.
    pub fn of_key(&self, key: &[u8]) -> Vec<(u64, Waiter)> {
        let inner = self.lock();
        let tickets = inner.by_key.get(key).into_iter().flatten();
        let waiters = tickets.filter_map(|ticket| Some((*ticket, inner.waiters.get(ticket)?.clone())));
        waiters.filter(|(_, waiter)| !waiter.claimed).collect()
    }

    /// Keys to be looked at again.
    pub fn again(&self) -> Vec<Vec<u8>> {
        if self.len() == 0 { Vec::new() } else { std::mem::take(&mut self.lock().again) }
    }

    /// One is answered, if its transaction commits.
    pub fn claim(&self, ticket: u64) {
        if let Some(waiter) = self.lock().waiters.get_mut(&ticket) {
            waiter.claimed = true;
        }
    }

    /// A transaction has committed, or not.
    pub fn ended(&self, effects: &Effects, committed: bool) {
        let (answered, begun) = (effects.answered.take(), effects.waiting.take());
        if answered.is_empty() && (committed || begun.is_empty()) {
            return;
        }
        let mut inner = self.lock();
        for ticket in answered {
            if committed {
                inner.remove(ticket);
            } else if let Some(waiter) = inner.waiters.get_mut(&ticket) {
                waiter.claimed = false;
                let keys = waiter.keys.clone();
                inner.again.extend(keys);
            }
        }
        if !committed {
            begun.into_iter().for_each(|ticket| drop(inner.remove(ticket)));
        }
        self.counted(&inner);
    }

    /// One waits no longer; false if it is being answered.
    pub fn give_up(&self, ticket: u64) -> bool {
        let mut inner = self.lock();
        if inner.waiters.get(&ticket).is_some_and(|waiter| waiter.claimed) {
            return false;
        }
        inner.remove(ticket);
        self.counted(&inner);
        true
    }

    /// The ticket of a client that waits, with what it waits with.
    pub fn of_client(&self, number: u64) -> Option<(u64, Waiter)> {
        let inner = self.lock();
        let found = inner.waiters.iter().find(|(_, waiter)| waiter.client.number == number && !waiter.claimed);
        found.map(|(ticket, waiter)| (*ticket, waiter.clone()))
    }
}
