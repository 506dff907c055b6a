//! Group commit: the requests of many clients in one transaction.
//!
//! A transaction either takes all of them, or nothing of it remains and each is run alone, so that
//! only the one that the pool has no room for is refused.

use std::collections::VecDeque;

use nearpm::direct::Tx;
use nearpm::prelude::*;

use crate::effects::Blocked;
use crate::options::Level;
use crate::service::{Service, Turn};
use crate::shared::Shared;
use crate::store::Search;
use crate::tally::count;

/// A client that is to wait for nothing gets no more replies in one turn when it has so many bytes
/// of them.
pub const ENOUGH_REPLY: usize = 1 << 20;
/// Requests of one transaction.
const MOST_REQUESTS: usize = 512;
/// Bytes of requests after which a transaction gets no more.
const MOST_BYTES: usize = 2 << 20;
/// Keys that are evicted for one request at most.
const MOST_EVICTIONS: u32 = 8192;

/// The requests of one client, in their order, and their replies.
pub struct Lane<'c, R> {
    /// Waiting requests.
    pub requests: &'c VecDeque<R>,
    /// How many of them were run.
    pub done: usize,
    /// Replies to those.
    pub reply: Vec<u8>,
    /// The request behind them waits.
    pub blocked: Option<Blocked>,
}

/// Whether nothing can be claimed about the pool after an error.
pub fn is_fatal(error: &Error) -> bool {
    matches!(
        error,
        Error::Poisoned | Error::System { .. } | Error::Card(_) | Error::LogFailed { .. } | Error::StoresLost { .. }
    )
}

/// Runs a request in a transaction that others may be in.
fn run<S: Service>(
    shared: &Shared<S>,
    tx: &mut Tx<'_>,
    turn: &Turn<'_>,
    request: &S::Request,
    reply: &mut Vec<u8>,
) -> Result<(), Error> {
    count(&turn.tally.requests);
    if S::changes(request) {
        shared.service.change(tx, turn, request, reply)?;
        shared.service.attend(tx, turn)
    } else {
        shared.service.look(tx, turn, request, reply)
    }
}

/// Says how far each client's requests go in one transaction.
fn cut<S: Service>(lanes: &mut [Lane<'_, S::Request>]) -> Vec<usize> {
    let (mut requests, mut bytes) = (0, 0);
    let mut ends = Vec::with_capacity(lanes.len());
    for lane in lanes {
        let mut end = lane.done;
        while end < lane.requests.len() && requests < MOST_REQUESTS && bytes < MOST_BYTES {
            (requests, bytes, end) = (requests + 1, bytes + S::weight(&lane.requests[end]), end + 1);
        }
        ends.push(end);
    }
    ends
}

/// Runs what the clients ask for, or a part of it, and waits until the replies may leave.
///
/// # Errors
/// Those after which nothing can be claimed about the pool; no reply may leave then.
pub fn execute<S: Service>(shared: &Shared<S>, lanes: &mut [Lane<'_, S::Request>], now_ms: u64) -> Result<(), Error> {
    let ends = cut::<S>(lanes);
    let changes = lanes.iter().zip(&ends).any(|(lane, &end)| lane.requests.range(..end).any(S::changes));
    let turn = shared.turn(now_ms);
    if !changes {
        shared.pool.read(|from| {
            each(lanes, &ends, |request, reply| {
                count(&turn.tally.requests);
                shared.service.look(from, &turn, request, reply)?;
                Ok(None)
            })
        })?;
        shared.count(&turn);
    } else if shared.options.durability == Level::Durable {
        each(lanes, &ends, |request, reply| alone(shared, request, reply, &turn))?;
    } else {
        let together = shared.pool.tx(|tx| {
            each(lanes, &ends, |request, reply| {
                run(shared, tx, &turn, request, reply)?;
                Ok(turn.effects.blocked.take())
            })
        });
        shared.service.ended(&turn, together.is_ok());
        match together {
            Ok(()) => shared.count(&turn),
            Err(error) if is_fatal(&error) => return Err(error),
            Err(_) => {
                turn.effects.clear();
                lanes.iter_mut().for_each(|lane| {
                    lane.done = 0;
                    lane.reply.clear();
                    lane.blocked = None;
                });
                each(lanes, &ends, |request, reply| alone(shared, request, reply, &turn))?;
            }
        }
    }
    // Also what was only read may be of a commit of another thread that is not durable yet.
    if shared.options.durability != Level::Async {
        shared.pool.wait_durable()?;
    }
    turn.effects.deliver();
    Ok(())
}

/// Runs the requests up to the ends, but leaves clients alone that have much to read already.
fn each<R>(
    lanes: &mut [Lane<'_, R>],
    ends: &[usize],
    mut run: impl FnMut(&R, &mut Vec<u8>) -> Result<Option<Blocked>, Error>,
) -> Result<(), Error> {
    for (lane, &end) in lanes.iter_mut().zip(ends) {
        while lane.done < end && lane.reply.len() < ENOUGH_REPLY {
            lane.blocked = run(&lane.requests[lane.done], &mut lane.reply)?;
            if lane.blocked.is_some() {
                break;
            }
            lane.done += 1;
        }
    }
    Ok(())
}

/// Runs one request in a transaction of its own. What has expired goes, and what may be evicted,
/// before it is refused. What it does besides is added to that of the others.
fn alone<S: Service>(
    shared: &Shared<S>,
    request: &S::Request,
    reply: &mut Vec<u8>,
    all: &Turn<'_>,
) -> Result<Option<Blocked>, Error> {
    let (start, now_ms) = (reply.len(), all.now_ms);
    let near = shared.service.near(request).unwrap_or_else(rand::random);
    let mut search = Search::new(near, shared.chunk.clone());
    search.empties = S::empties(request);
    loop {
        let turn = shared.turn(now_ms);
        turn.notes.places.set(search.places);
        reply.truncate(start);
        let done = shared.pool.tx(|tx| run(shared, tx, &turn, request, reply));
        shared.service.ended(&turn, done.is_ok());
        let error = match done {
            Ok(()) => {
                shared.count(&turn);
                all.effects.append(&turn.effects);
                return Ok(turn.effects.blocked.take());
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => error,
        };
        if let Error::Full { requested, .. } = error {
            search.bytes = requested;
            if make_room(shared, &mut search, now_ms)? {
                continue;
            }
        }
        refuse(shared, request, &error, (reply, start), now_ms)?;
        return Ok(None);
    }
}

/// Removes a key that has expired, or else one that may be evicted; false if there is none.
fn make_room<S: Service>(shared: &Shared<S>, search: &mut Search, now_ms: u64) -> Result<bool, Error> {
    let reclaimed = match shared.reclaim(now_ms) {
        Err(error) if is_fatal(&error) => return Err(error),
        // Nothing can be removed in a pool that is as full as that.
        done => done.unwrap_or(0),
    };
    if reclaimed > 0 {
        return Ok(true);
    }
    if search.evicted >= MOST_EVICTIONS {
        return Ok(false);
    }
    let turn = shared.turn(now_ms);
    match shared.pool.tx(|tx| shared.service.evict(tx, &turn, search)) {
        Ok(evicted) => {
            turn.tally.evictions.set(if search.empties { 0 } else { u64::from(evicted) });
            shared.count(&turn);
            Ok(evicted > 0)
        }
        Err(error) if is_fatal(&error) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Refuses a request for which there is no room, or with which something else is wrong.
fn refuse<S: Service>(
    shared: &Shared<S>,
    request: &S::Request,
    error: &Error,
    (reply, start): (&mut Vec<u8>, usize),
    now_ms: u64,
) -> Result<(), Error> {
    let turn = shared.turn(now_ms);
    match shared.pool.tx(|tx| shared.service.abandon(tx, &turn, request)) {
        Ok(()) => shared.count(&turn),
        Err(error) if is_fatal(&error) => return Err(error),
        Err(error) => log::debug!("a refused request has left something: {error}"),
    }
    reply.truncate(start);
    shared.service.refuse(request, error, reply);
    Ok(())
}
