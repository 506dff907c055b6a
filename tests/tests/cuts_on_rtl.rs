//! Random traffic on the RTL, cut at a random moment and replayed under further cuts.
//!
//! The card delivers in the order of submission, so what it accepted is a prefix of the trace; the
//! prefix holds every write that was answered. However often the replay was cut, the memory must be
//! that of one such prefix.

use nearpm_interface::command::{Command, slot_offset};
use nearpm_interface::geometry::{LINE, POOLS_BASE, SAVE_BASE};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_interface::registers::{self, state};
use nearpm_interface::save::ARM_LINE;
use nearpm_sim::bench::CardBench;
use nearpm_sim::core::{Access, CardCore, Medium, Ticket};
use nearpm_sim::machine::Power;
use nearpm_sim::rtl::RtlCards;
use nearpm_tests::oracle::Oracle;
use nearpm_tests::rig::{medium, rtl_cards, thorough, without_save};
use nearpm_tests::trace::{self, Mix, POOL, Step, Timed};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Energy for any save.
const WHOLE_SAVE: u64 = 1 << 40;
/// Cycles in which a card that is not cut opens.
const HANG_CYCLES: u64 = 1_000_000;
/// Cycles in which stores that were replayed reach the memory.
const SETTLE_CYCLES: u64 = 3_000;

/// Submits a trace, lets some cycles pass and cuts the power; gives the medium and how many steps
/// were surely accepted.
fn cut(card: Box<dyn CardCore>, trace: &[Timed], after: u64, seed: u64) -> (Medium, usize) {
    let mut card = CardBench::open(card, POOL).card;
    let mut next = card.cycle();
    let mut tickets: Vec<Ticket> = Vec::new();
    for (i, timed) in trace.iter().enumerate() {
        next += timed.gap;
        card.advance_to(next);
        tickets.push(card.submit(match &timed.step {
            Step::Command(c) | Step::Malformed(c) => {
                let data = Command { tag: i as u32, ..*c }.encode();
                Access::CommandWrite { offset: slot_offset(i % 4, i % 16), data, strobes: u64::MAX }
            }
            Step::Host(access) => access.clone(),
        }));
    }
    card.advance_to(card.cycle() + after);
    // A load waits for its data and may be answered late; what matters are writes.
    let is_load = |i: usize| matches!(trace[i].step, Step::Host(Access::PmRead { .. }));
    let answered: Vec<bool> = tickets.into_iter().map(|ticket| card.take(ticket).is_some()).collect();
    let least = (0..trace.len()).rfind(|i| answered[*i] && !is_load(*i)).map_or(0, |i| i + 1);
    (card.power_fail(WHOLE_SAVE, seed), least)
}

fn register(card: &mut dyn CardCore, offset: u32) -> u32 {
    let ticket = card.submit(Access::RegisterRead { offset });
    let answer = card.wait(ticket, HANG_CYCLES);
    u32::from_le_bytes(answer.data[..4].try_into().expect("four bytes"))
}

fn arm_word(medium: &Medium) -> &[u8] {
    &medium.bytes[SAVE_BASE as usize + ARM_LINE * LINE..][..8]
}

/// Powers a card up and cuts it again at some moment, in a replay also without energy.
fn cut_again(cards: &RtlCards, before: Medium, rng: &mut ChaCha8Rng) -> Medium {
    let mut card = cards.power_up(before.clone());
    card.advance_to(rng.random_range(100..6000));
    let replays = register(&mut *card, registers::STATE) == state::REPLAYING;
    let energy = if replays && rng.random() { 0 } else { WHOLE_SAVE };
    let after = card.power_fail(energy, rng.random());
    // A card that was armed anew has to save, although it does not say yet that it is open.
    if energy == 0 && arm_word(&after) != arm_word(&before) { before } else { after }
}

/// Lets the card open and settle; gives the medium and the items that this power-up replayed.
fn opened(cards: &RtlCards, medium: Medium) -> (Medium, u32) {
    let mut card = cards.power_up(medium);
    loop {
        match register(&mut *card, registers::STATE) {
            state::OPEN => break,
            state::BOOTING | state::REPLAYING => assert!(card.cycle() < HANG_CYCLES, "the card does not open"),
            other => panic!("the card comes to state {other}"),
        }
    }
    let replayed = register(&mut *card, registers::REPLAYED);
    card.advance_to(card.cycle() + SETTLE_CYCLES);
    (card.power_fail(WHOLE_SAVE, 0), replayed)
}

/// Whether the memory is what the first steps of the trace make of it, for at least so many of
/// them.
fn is_of_a_prefix(found: &Medium, trace: &[Timed], least: usize) -> bool {
    let found = without_save(found);
    let mut oracle = Oracle::new(medium());
    for (taken, timed) in trace.iter().enumerate() {
        if taken >= least && without_save(&oracle.medium) == found {
            return true;
        }
        match &timed.step {
            Step::Command(command) => oracle.command(command),
            Step::Host(access) => drop(oracle.host(access)),
            Step::Malformed(_) => {}
        }
    }
    without_save(&oracle.medium) == found
}

/// Cuts the power in the work of so many traces, and in what follows.
fn what_was_accepted_survives(cards: &RtlCards, seeds: u64) {
    let mut replayed = 0;
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let gap = [1, 2, 20][rng.random_range(0..3usize)];
        let mix = if seed % 3 == 2 { Mix::SPREAD } else { Mix { gap, ..Mix::CONFLICTS } };
        let trace = trace::random(seed, rng.random_range(5..150), mix);
        let after = [0, 30, 200][rng.random_range(0..3usize)];
        let after = rng.random_range(0..=after);
        let (mut medium, least) = cut(cards.power_up(medium()), &trace, after, seed);
        for _ in 0..rng.random_range(0..4) {
            medium = cut_again(cards, medium, &mut rng);
        }
        let (mut medium, items) = opened(cards, medium);
        replayed += items;
        let steps = trace.len();
        assert!(is_of_a_prefix(&medium, &trace, least), "seed {seed}: no prefix of {least} to {steps} steps fits");
        // The comparison sees one bit.
        let at = POOLS_BASE as usize + rng.random_range(0..POOL.bytes as usize);
        medium.bytes[at] ^= 1;
        assert!(!is_of_a_prefix(&medium, &trace, least), "seed {seed}: the flipped byte {at:#x} is not seen");
    }
    println!("{seeds} traces, {replayed} items replayed by the last power-up of each");
    assert!(u64::from(replayed) > seeds, "the cuts found hardly anything to replay");
}

#[test]
fn what_was_accepted_survives_a_cut_and_cuts_of_its_replay() {
    what_was_accepted_survives(&rtl_cards(MemoryPorts::One), if thorough() { 5000 } else { 60 });
}

/// The whole card with two memory ports: data in its place behind both, whatever a cut leaves of
/// either.
#[test]
fn what_was_accepted_survives_on_two_memory_ports() {
    what_was_accepted_survives(&rtl_cards(MemoryPorts::Two), if thorough() { 1000 } else { 8 });
}
