//! How a program has used a pool: in which mode the next one is likely to be the faster.
//!
//! A working copy makes small transactions fast, and bytes that become durable outside of
//! transactions slow, because it has two copies to write; in place it is the other way round. Which
//! a program does mostly is known when it closes the pool, and it is likely to do so again. Either
//! mode keeps all that is promised, so that a wrong guess costs time alone.

use nearpm_interface::record::POOL_USE;
use nearpm_interface::seal;

use super::shard::ShardGuard;
use super::{DirectPool, Mode};
use crate::memory::Medium;
use crate::options::Options;

/// A transaction is faster in a working copy by as much as so many bytes outside of transactions
/// are slower there: 800 ns, and 0.08 ns a byte. Both are of `docs/pmdk-benchmark.md`: additions of
/// 8 bytes, and copies of 64 KiB.
const BYTES_A_TRANSACTION: u64 = 10_000;

/// Who does less says nothing of those that follow.
const LEAST_BYTES: u64 = 1 << 20;
const LEAST_TRANSACTIONS: u64 = LEAST_BYTES / BYTES_A_TRANSACTION;

const WORKING_COPY: u64 = 1;
const IN_PLACE: u64 = 2;

/// The mode of a pool that is opened: what was asked for, or what the last program would have been
/// the faster in, where that is to be chosen and this medium allows both.
pub(super) fn mode(asked: Mode, options: &Options, medium: &Medium) -> Mode {
    let may_choose = options.mode_by_use
        && asked == Mode::WorkingCopy
        && options.mechanism.is_none()
        && !options.read_only
        && options.growth.is_none();
    let backing = medium.backing();
    if !may_choose || backing.drains_for_all() || !backing.is_mapped() || !backing.keeps_order() {
        return asked;
    }
    match of_last_use(medium) {
        Some(Mode::InPlace) => Mode::InPlace,
        _ => asked,
    }
}

/// The mode that the last program would have been the faster in that did enough to tell.
pub(crate) fn of_last_use(medium: &Medium) -> Option<Mode> {
    // Damaged, it says nothing.
    match seal::open_word(medium.load_word(POOL_USE))? {
        IN_PLACE => Some(Mode::InPlace),
        WORKING_COPY => Some(Mode::WorkingCopy),
        _ => None,
    }
}

impl DirectPool {
    /// Remembers how this program has used the pool; durable with the next drain.
    pub(super) fn note_use(&self, shards: &[ShardGuard<'_>]) {
        let outside: u64 = shards.iter().map(|shard| shard.outside_bytes).sum();
        let transactions: u64 = shards.iter().map(|shard| shard.tally.transactions).sum();
        if !self.options.mode_by_use || outside < LEAST_BYTES && transactions < LEAST_TRANSACTIONS {
            return;
        }
        let is_outside = outside > transactions.saturating_mul(BYTES_A_TRANSACTION);
        self.medium.put_word(POOL_USE, seal::seal_word(if is_outside { IN_PLACE } else { WORKING_COPY }));
    }
}
