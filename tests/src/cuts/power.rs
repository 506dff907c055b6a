//! A card's power: up to an open card, and down through its save.

use nearpm_interface::registers::{self, state};
use nearpm_sim::core::{Access, CardCore, Medium};
use nearpm_sim::rtl::{RtlCard, RtlCards};

/// Cycles after which a card that does not open, or does not end its save, hangs.
pub const HANG_CYCLES: u64 = 300_000;

/// A card whose power has just come.
///
/// # Panics
/// If the design has not the ports of a card.
pub fn powered(cards: &RtlCards, medium: Medium) -> Box<RtlCard> {
    Box::new(cards.card(medium).unwrap_or_else(|error| panic!("the card does not power up: {error}")))
}

/// A card that has opened, and its power cut without any energy.
pub struct Opened {
    /// The memory, in which everything that was replayed is durable.
    pub medium: Medium,
    /// Entries of the mapping table in use.
    pub mapped: u32,
    /// Checksum of the firmware in force.
    pub firmware: u32,
    /// Items that were replayed.
    pub replayed: u32,
}

/// Powers a card up until it is open or reports a loss (`None`), and after how many cycles.
///
/// # Panics
/// If it does neither.
pub fn power_up(cards: &RtlCards, medium: Medium) -> (Option<Opened>, u64) {
    let mut card = powered(cards, medium);
    let start = card.cycle();
    let register = |card: &mut RtlCard, offset| {
        let ticket = card.submit(Access::RegisterRead { offset });
        let answer = card.wait(ticket, HANG_CYCLES);
        u32::from_le_bytes(answer.data[..4].try_into().expect("four bytes"))
    };
    loop {
        match register(&mut card, registers::STATE) {
            state::OPEN => break,
            state::LOSS => return (None, card.cycle() - start),
            state::BOOTING | state::REPLAYING => assert!(card.cycle() < HANG_CYCLES, "the card does not open"),
            other => panic!("the card comes to state {other}"),
        }
    }
    let cycles = card.cycle() - start;
    let replayed = register(&mut card, registers::REPLAYED);
    let mapped = register(&mut card, registers::MAPPED).count_ones();
    let firmware = register(&mut card, registers::FIRMWARE_CRC);
    (Some(Opened { medium: card.power_fail(0, 0), mapped, firmware, replayed }), cycles)
}

/// Lets a card without power save, and takes its medium; what the memory still owes then is dropped
/// or torn by `seed`. Gives the cycles too.
///
/// # Panics
/// If the save does not end.
pub fn save(mut card: Box<RtlCard>, seed: u64) -> (Medium, u64) {
    let start = card.cycle();
    card.lose_power();
    // The card sees that the power fails at its next edge.
    card.advance_to(start + 1);
    while !card.has_saved() {
        assert!(card.cycle() - start < HANG_CYCLES, "the save does not end");
        let next = card.cycle() + 1;
        card.advance_to(next);
    }
    let cycles = card.cycle() - start;
    (card.power_fail(0, seed), cycles)
}
