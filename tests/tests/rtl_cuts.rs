//! Random traffic on the RTL, cut at a random moment, replayed under further cuts: the memory is that of the accepted prefix.

use nearpm_interface::command::{Command, slot_offset};
use nearpm_interface::geometry::{POOLS_BASE, SAVE_BASE, SAVE_BYTES};
use nearpm_interface::registers::{self, state};
use nearpm_interface::status::Status;
use nearpm_sim::bench::{CardBench, provisioned};
use nearpm_sim::core::{Access, CardCore, Medium, Ticket};
use nearpm_sim::machine::Power;
use nearpm_sim::rtl::{Options, RtlCards};
use nearpm_tests::oracle::Oracle;
use nearpm_tests::trace::{self, Mix, POOL, Step, Timed};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Energy for any save.
const WHOLE_SAVE: u64 = 1 << 40;

fn medium() -> Medium {
    let bytes = (POOLS_BASE + POOL.bytes) as usize;
    let mut medium = provisioned(bytes, nearpm_firmware::standard().bytes());
    for address in (POOLS_BASE as usize..bytes).step_by(64) {
        medium.bytes[address..address + 64].copy_from_slice(&nearpm_sim::bench::line_pattern(address as u64));
    }
    medium
}

/// Everything but the save area.
fn without_save(medium: &Medium) -> Vec<u8> {
    let mut bytes = medium.bytes.clone();
    bytes[SAVE_BASE as usize..(SAVE_BASE + SAVE_BYTES) as usize].fill(0);
    bytes
}

/// Posts a trace as fast as the card takes it and cuts the power; which steps were answered by then.
fn cut(card: Box<dyn CardCore>, trace: &[Timed], after: u64, energy_seed: u64) -> (Medium, Vec<bool>) {
    let mut bench = CardBench::open(card, POOL);
    let mut next = bench.card.cycle();
    let mut tickets: Vec<Ticket> = Vec::new();
    for (i, timed) in trace.iter().enumerate() {
        next += timed.gap;
        bench.card.advance_to(next);
        let access = match &timed.step {
            Step::Command(c) | Step::Malformed(c) => {
                let c = Command { tag: i as u32, ..*c };
                Access::CommandWrite { offset: slot_offset(i % 4, i % 16), data: c.encode(), strobes: u64::MAX }
            }
            Step::Host(access) => access.clone(),
        };
        tickets.push(bench.card.submit(access));
    }
    let cycle = bench.card.cycle();
    bench.card.advance_to(cycle + after);
    let answered = tickets.into_iter().map(|t| bench.card.take(t).is_some()).collect();
    (bench.card.power_fail(WHOLE_SAVE, energy_seed), answered)
}

fn state_of(card: &mut dyn CardCore) -> u32 {
    let ticket = card.submit(Access::RegisterRead { offset: registers::STATE });
    let answer = card.wait(ticket, 100_000);
    u32::from_le_bytes(answer.data[..4].try_into().unwrap())
}

#[test]
fn what_was_accepted_survives_any_cut_and_any_cuts_of_its_replay() {
    let card = nearpm_hdl::generate(&nearpm_hdl::Parameters::default());
    let cards = RtlCards::build(nearpm_hdl::MODULE, &card.verilog, Options::default()).unwrap();
    let from: u64 = std::env::var("FROM").map_or(0, |s| s.parse().unwrap());
    let count: u64 = std::env::var("COUNT").map_or(40, |s| s.parse().unwrap());
    let (mut replayed, mut cuts) = (0, 0);
    for seed in from..from + count {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mix = if seed % 3 == 2 { Mix::SPREAD } else { Mix { gap: [1, 2, 20][rng.random_range(0..3usize)], ..Mix::CONFLICTS } };
        let steps = rng.random_range(5..150);
        let trace = trace::random(seed, steps, mix);
        let after = [0, rng.random_range(0..30), rng.random_range(0..200)][rng.random_range(0..3usize)];
        let (mut medium, answered) = cut(cards.power_up(medium()), &trace, after, seed);
        for round in 0..rng.random_range(0..4u64) {
            let mut card = cards.power_up(medium);
            let cycles = rng.random_range(100..6000);
            card.advance_to(cycles);
            let energy = if state_of(&mut *card) == state::REPLAYING { rng.random_range(0..2) * WHOLE_SAVE } else { WHOLE_SAVE };
            cuts += u64::from(energy == 0);
            medium = card.power_fail(energy, seed + 1000 * round);
        }
        let mut card = cards.power_up(medium);
        loop {
            let state = state_of(&mut *card);
            if state == state::OPEN {
                break;
            }
            assert!(state == state::BOOTING || state == state::REPLAYING, "seed {seed}: state {state}");
            assert!(card.cycle() < 1_000_000, "seed {seed}: hangs in {state}");
        }
        let ticket = card.submit(Access::RegisterRead { offset: registers::REPLAYED });
        replayed += u64::from(u32::from_le_bytes(card.wait(ticket, 100_000).data[..4].try_into().unwrap()));
        let end = card.cycle() + 3000;
        card.advance_to(end);
        let found = without_save(&card.power_fail(WHOLE_SAVE, seed));
        // The accepted steps are a prefix that holds every write that was answered.
        let is_write = |t: &Timed| !matches!(&t.step, Step::Host(Access::PmRead { .. }));
        let least = (0..trace.len()).rfind(|i| answered[*i] && is_write(&trace[*i])).map_or(0, |i| i + 1);
        let mut oracle = Oracle::new(self::medium());
        let mut fits = Vec::new();
        for taken in 0..=trace.len() {
            if taken >= least && without_save(&oracle.medium) == found {
                fits.push(taken);
                break;
            }
            match trace.get(taken).map(|t| &t.step) {
                Some(Step::Command(c)) => oracle.command(c),
                Some(Step::Host(a)) => drop(oracle.host(a)),
                _ => {}
            }
        }
        assert!(!fits.is_empty(), "seed {seed}: no prefix from {least} of {} steps fits (after {after})", trace.len());
        let _ = Status::Ok;
    }
    println!("{count} seeds, {replayed} items replayed, {cuts} cuts of a replay without energy");
}
