//! Commits that wait on the cards of a striped pool when it is opened: which of them are committed.
//!
//! A transaction is committed if a word of any member has reached it, or if every participant holds
//! its accepted commit. What waits is read before the words are, since a command that goes on is
//! found in one of them; and the commits of what will be undone are taken away, on all cards,
//! before a recovery writes any word: a word that deletes the log of what was taken back says
//! "committed".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nearpm_driver::registers::Capabilities;
use nearpm_driver::{Card, Parked};
use nearpm_interface::command::Opcode;
use nearpm_interface::media::{RING_EPOCH, RING_HEAD_BYTES, RING_REDO_COMMITTED};
use nearpm_interface::seal;

use super::on_card;
use crate::error::{Error, Problem};
use crate::part::Part;
use crate::recovery::Recovery;

/// Whether commands of a card can wait for other cards.
pub(super) fn has_peers(card: &Card) -> bool {
    card.capabilities().contains(Capabilities::PEERS)
}

/// Decides about every commit of the pool that waits. Afterwards none does.
pub(super) fn settle(
    parts: &[Part<'_>],
    cards: &[Arc<Card>],
    location: &str,
    report: &mut Recovery,
) -> Result<(), Error> {
    let mut waiting: Vec<Vec<Parked>> = Vec::new();
    for (part, card) in parts.iter().zip(cards) {
        let all = if has_peers(card) { card.parked()? } else { Vec::new() };
        waiting.push(all.into_iter().filter(|parked| parked.pool == part.head.pool).collect());
    }
    let threads: BTreeSet<u16> = waiting.iter().flatten().map(|parked| parked.thread).collect();
    let mut reached = BTreeMap::new();
    for thread in threads {
        reached.insert(thread, decide(parts, &waiting, thread)?);
    }
    let is_lost = |parked: &Parked| parked.txid > reached[&parked.thread];
    let undoes: BTreeSet<u16> = waiting.iter().flatten().filter(|parked| is_lost(parked)).map(|p| p.thread).collect();
    // What has no transaction came behind everything.
    let lost = |parked: &Parked| is_lost(parked) || parked.txid == 0 && undoes.contains(&parked.thread);
    for (card, waiting) in cards.iter().zip(&waiting) {
        let mut taken: Vec<Parked> = waiting.iter().filter(|parked| lost(parked)).copied().collect();
        if !taken.is_empty() && card.device_number().is_some() {
            let what = "a card of it is at work for another striped pool, and holds commands of this one that a recovery takes away: close all pools \
                        and open the cards again";
            return Err(Problem::BadOption { what }.at(location));
        }
        taken.sort_by_key(|parked| std::cmp::Reverse(if parked.txid == 0 { u64::MAX } else { parked.txid }));
        report.discarded += taken.len() as u64;
        card.discard(&taken)?;
    }
    for (card, waiting) in cards.iter().zip(&waiting) {
        let kept: Vec<Parked> = waiting.iter().filter(|parked| !lost(parked)).copied().collect();
        report.released += kept.len() as u64;
        card.release(&kept)?;
    }
    Ok(())
}

/// The last transaction of a thread that is committed.
fn decide(parts: &[Part<'_>], waiting: &[Vec<Parked>], thread: u16) -> Result<u64, Error> {
    let mut words = Vec::new();
    for part in parts {
        words.push(word(part, thread)?);
    }
    let mut reached = words.iter().copied().max().unwrap_or(0);
    let of_thread = |parked: &&Parked| parked.thread == thread && parked.opcode == Opcode::Commit as u8;
    let commits: BTreeSet<u64> = waiting.iter().flatten().filter(of_thread).map(|parked| parked.txid).collect();
    for txid in commits {
        let holds = |member: usize| waiting[member].iter().filter(of_thread).any(|parked| parked.txid == txid);
        let mask = waiting.iter().flatten().filter(of_thread).filter(|parked| parked.txid == txid);
        let mask = mask.fold(0, |mask, parked| mask | parked.participants);
        let whole = (0..parts.len()).filter(|member| mask >> member & 1 == 1).all(holds);
        if txid > reached && !whole {
            break;
        }
        reached = reached.max(txid);
    }
    Ok(reached)
}

/// The highest word of a member that says "committed"; what is not sound is for the recovery to
/// find.
fn word(part: &Part<'_>, thread: u16) -> Result<u64, Error> {
    let ring = part.head.ring(thread);
    part.medium.invalidate(ring, RING_HEAD_BYTES);
    part.medium.fence()?;
    let words = [RING_EPOCH, RING_REDO_COMMITTED].map(|at| seal::open_word(part.medium.load_word(ring + at)));
    Ok(words.into_iter().flatten().max().unwrap_or(0))
}

/// Numbers the cards of a pool whose commands are to wait for each other, each by the number of its
/// member. False where they cannot: a card has no port to others or does not order host accesses,
/// works under another number for another pool, or holds commands of another pool that wait for its
/// recovery; or another open pool has the same identifier, by which cards know whom they hear of.
pub(super) fn number(cards: &[Arc<Card>], pool: u32) -> Result<bool, Error> {
    for (number, card) in cards.iter().enumerate() {
        let able = has_peers(card) && card.capabilities().contains(Capabilities::HOST_ORDERED);
        let free = match card.device_number() {
            None => able && card.parked()?.is_empty(),
            Some(has) => has == number as u32,
        };
        if !able || !free {
            return Ok(false);
        }
    }
    if on_card::is_open_elsewhere(cards, pool) {
        return Ok(false);
    }
    let unnumbered = cards.iter().enumerate().filter(|(_, card)| card.device_number().is_none());
    unnumbered.for_each(|(number, card)| card.give_number(number as u32));
    Ok(true)
}
