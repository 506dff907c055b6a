//! The whole card on Verilator: a host that never stops storing keeps no read waiting.

use nearpm_hdl_bench::card::{Card, Cards};
use nearpm_interface::command::slot_offset;
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::POOLS_BASE;

/// Cycles that a read may wait: two stores, and the memory.
const BOUND: u64 = 100;

fn flood(card: &mut Card, stores: u64) {
    for i in 0..stores {
        card.store(POOLS_BASE + 64 * (i % 4096), &i.to_le_bytes());
    }
}

/// Cycles until a read of this port is answered.
fn read(card: &mut Card, command: bool, address: u64) -> u64 {
    let start = card.now;
    let (line, error) = card.load(command, address);
    assert!(!error);
    if command {
        assert_eq!(PageStatus::from_bytes(&line).accepted, 0);
    }
    card.now - start
}

#[test]
fn reads_pass_a_flood_of_stores() {
    let mut card = Cards::sound().opened(1);
    flood(&mut card, 5000);
    (0..50).for_each(|_| card.step());
    let mut worst = [0; 2];
    for round in 0..40u64 {
        for command in [true, false] {
            let address = if command { slot_offset(1, 0) } else { POOLS_BASE + (1 << 20) + 64 * round };
            let cycles = read(&mut card, command, address);
            worst[usize::from(command)] = worst[usize::from(command)].max(cycles);
        }
    }
    println!("a load is answered after at most {} cycles, a status line after {}", worst[0], worst[1]);
    assert!(worst.iter().all(|cycles| *cycles <= BOUND), "{worst:?}");
    // The flood went on to the end.
    let start = card.now;
    card.drain(false);
    assert!(card.now - start > 1000);
}
