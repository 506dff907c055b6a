//! A mapping on the test card, and logs in it.

use std::sync::Arc;

use nearpm_driver::card::PoolMapping;
use nearpm_driver::mock::MockCard;
use nearpm_driver::{Card, CardOptions, Posting};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_interface::media::entry_sequence;

pub const POOL: u32 = 9;
pub const RING: u64 = 4096;

pub fn mapping() -> PoolMapping {
    PoolMapping {
        pool: POOL,
        thread: 0,
        base: POOLS_BASE,
        bytes: 1 << 20,
        ring: RING,
        ring_bytes: 64 * 1024,
        committed: 0,
    }
}

pub fn open(mock: &MockCard, posting: Posting) -> Card {
    Card::open(Arc::new(mock.clone()), CardOptions { posting, ..CardOptions::default() }).unwrap()
}

pub fn log(offset: u64, count: u64) -> Command {
    let slot = 256 + count % 64 * 128;
    Command {
        opcode: Opcode::UndoLog as u8,
        pool: POOL,
        txid: 1,
        source: offset,
        destination: RING + slot,
        sequence: entry_sequence(count, slot),
        length: 8,
        ..Command::default()
    }
}
