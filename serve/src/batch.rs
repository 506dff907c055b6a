//! Group commit: the requests of many clients in one transaction.
//!
//! A transaction either takes all of them, or nothing of it remains and each is run alone, so that only the one that the pool has no
//! room for is refused.

use std::collections::VecDeque;

use nearpm::direct::Tx;
use nearpm::prelude::*;

use crate::effects::Blocked;
use crate::effects::Effects;
use crate::options::Level;
use crate::server::Shared;
use crate::service::{Service, Turn};
use crate::tally::{Tally, count};

/// A client that is to wait for nothing gets no more replies in one turn when it has so many bytes of them.
pub const ENOUGH_REPLY: usize = 1 << 20;
/// Requests of one transaction.
const MOST_REQUESTS: usize = 512;
/// Bytes of requests after which a transaction gets no more.
const MOST_BYTES: usize = 2 << 20;
/// Keys that are evicted for one request at most.
const MOST_EVICTIONS: u32 = 1024;

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

fn turn<S>(shared: &Shared<S>, now_ms: u64) -> Turn<'_> {
    Turn { now_ms, recency: &shared.recency, tally: Tally::default(), effects: Effects::default() }
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
    let turn = turn(shared, now_ms);
    if !changes {
        shared.pool.read(|from| {
            each(lanes, &ends, |request, reply| {
                count(&turn.tally.requests);
                shared.service.look(from, &turn, request, reply)?;
                Ok(None)
            })
        })?;
        shared.totals.add(&turn.tally);
    } else if shared.options.durability == Level::Durable {
        each(lanes, &ends, |request, reply| alone(shared, request, reply, &turn))?;
    } else {
        let together = shared.pool.tx(|tx| {
            each(lanes, &ends, |request, reply| {
                run(shared, tx, &turn, request, reply)?;
                Ok(turn.effects.blocked.take())
            })?;
            shared.service.settle(&turn);
            Ok(())
        });
        shared.service.ended(&turn, together.is_ok());
        match together {
            Ok(()) => shared.totals.add(&turn.tally),
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

/// Runs one request in a transaction of its own, evicting what has to go. What it does besides is added to that of the others.
fn alone<S: Service>(
    shared: &Shared<S>,
    request: &S::Request,
    reply: &mut Vec<u8>,
    all: &Turn<'_>,
) -> Result<Option<Blocked>, Error> {
    let (start, mut evictions, now_ms) = (reply.len(), 0, all.now_ms);
    loop {
        let turn = turn(shared, now_ms);
        reply.truncate(start);
        let done = shared.pool.tx(|tx| {
            run(shared, tx, &turn, request, reply)?;
            shared.service.settle(&turn);
            Ok(())
        });
        shared.service.ended(&turn, done.is_ok());
        let error = match done {
            Ok(()) => {
                shared.totals.add(&turn.tally);
                all.effects.append(&turn.effects);
                return Ok(turn.effects.blocked.take());
            }
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => error,
        };
        let full = matches!(error, Error::Full { .. }) && evictions < MOST_EVICTIONS;
        // More each time: a hole of the right size must come about.
        let wanted = evictions.clamp(1, 64);
        let evicted = if full { evict(shared, wanted, now_ms)? } else { 0 };
        if evicted == 0 {
            reply.truncate(start);
            shared.service.refuse(request, &error, reply);
            return Ok(None);
        }
        evictions += evicted;
    }
}

/// Evicts keys, and gives their number.
fn evict<S: Service>(shared: &Shared<S>, wanted: u32, now_ms: u64) -> Result<u32, Error> {
    let turn = turn(shared, now_ms);
    let mut evicted = 0;
    shared.pool.tx(|tx| {
        while evicted < wanted && shared.service.evict(tx, &turn)? {
            evicted += 1;
        }
        shared.service.settle(&turn);
        Ok(())
    })?;
    shared.totals.add(&turn.tally);
    Ok(evicted)
}
