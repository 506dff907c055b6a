//! Sequences of accesses that are run on the card, cut anywhere, and compared with the oracle.

use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::geometry::{LINE, LINE_U64, POOLS_BASE};
use nearpm_interface::registers::{self, state};
use nearpm_sim::core::{Access, CardCore, Medium};
use nearpm_sim::model::fault::Fault;
use nearpm_sim::model::monitor::Monitor;
use nearpm_sim::model::trace::What;
use nearpm_sim::rng::Rng;

use super::oracle::Oracle;
use super::*;

/// A named sequence, delivered at `gap` cycles from access to access.
#[derive(Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub accesses: Vec<Access>,
    pub gap: u64,
}

/// The seeds of a failed check's message name the run.
pub type Check = Result<(), String>;

/// Says what is wrong.
pub fn check(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(what()) }
}

/// A store of a whole line of the pool.
pub fn store(offset: u64, data: [u8; LINE]) -> Access {
    Access::PmWrite { address: POOLS_BASE + offset, data, strobes: u64::MAX }
}

/// A load of a line of the pool.
pub fn load(offset: u64) -> Access {
    Access::PmRead { address: POOLS_BASE + offset }
}

/// A whole command to the next slot of a page; `n` makes its tag.
pub fn post(page: usize, n: usize, command: Command) -> Access {
    let command = Command { tag: n as u32, flags: FLAG_COMPLETE, ..command };
    Access::CommandWrite { offset: slot_offset(page, n % 16), data: command.encode(), strobes: u64::MAX }
}

/// A medium whose pool is filled with a pattern, and which the rig's card is open on.
pub fn filled() -> Medium {
    let mut medium = provisioned();
    for offset in (0..POOL_BYTES).step_by(LINE) {
        medium.write_line(POOLS_BASE + offset, &pattern(offset, 0), u64::MAX);
    }
    medium
}

/// An open card on that medium, with the pool mapped, and the oracle of the same state.
pub fn opened(fault: Option<Fault>) -> (Rig, Oracle) {
    let mut oracle = Oracle::new(filled());
    let mut rig = Rig::faulty(oracle.medium.clone(), fault);
    rig.until(state::OPEN);
    rig.rings();
    rig.map(POOL, 0, POOLS_BASE);
    oracle.apply(&post(0, 0, map_command(POOLS_BASE)));
    rig.settle();
    rig.card.take_trace();
    (rig, oracle)
}

/// One small scenario for each mechanism: what it covers is overwritten right behind it.
pub fn mechanisms() -> Vec<Scenario> {
    let page = 4096;
    let undo_then_store = vec![
        store(0, pattern(0, 1)),
        post(0, 0, undo(5, 16, 100, SLOTS)),
        store(0, pattern(0, 2)),
        store(64, pattern(64, 2)),
        load(0),
        post(0, 1, undo(5, 0, 128, SLOTS + 256)),
        store(64, pattern(64, 3)),
        post(0, 2, commit(5)),
        store(0, pattern(0, 4)),
    ];
    let redo = vec![
        store(SLOTS, pattern(SLOTS, 1)),
        store(SLOTS + 64, pattern(SLOTS + 64, 1)),
        post(0, 0, apply(SLOTS + 8, 136, 90)),
        store(SLOTS, pattern(SLOTS, 2)),
        load(128),
        store(128, pattern(128, 3)),
        post(0, 1, Command { auxiliary: 77, destination: RING + 128, ..commit(6) }),
    ];
    let undo_and_redo = vec![
        store(SLOTS + 1024, pattern(SLOTS, 1)),
        post(0, 0, undo_redo(5, SLOTS + 1024, 64, 64, SLOTS)),
        store(SLOTS + 1024, pattern(SLOTS, 2)),
        post(0, 1, undo_redo(5, SLOTS + 1024, 64, 64, SLOTS + 128)),
        load(64),
        post(0, 2, commit(5)),
    ];
    let checkpoint = |opcode: Opcode, destination: u64| Command {
        opcode: opcode as u8,
        pool: POOL,
        txid: 9,
        source: page,
        destination,
        length: 4096,
        ..Command::default()
    };
    let pages = vec![
        post(0, 0, checkpoint(Opcode::Checkpoint, SLOTS)),
        store(page + 2048, pattern(page, 1)),
        post(0, 1, checkpoint(Opcode::ShadowCopy, 4 * page)),
        store(4 * page + 64, pattern(page, 2)),
        load(4 * page + 64),
        post(
            0,
            2,
            Command { opcode: Opcode::Switch as u8, pool: POOL, destination: 40, auxiliary: 4, ..Command::default() },
        ),
        store(0, pattern(0, 1)),
    ];
    let recovery = vec![
        post(0, 0, undo(5, 16, 100, SLOTS)),
        store(0, pattern(0, 1)),
        store(64, pattern(64, 1)),
        post(0, 1, Command { opcode: Opcode::Recover as u8, ..apply(SLOTS + 64 + 16, 16, 100) }),
        load(64),
        post(
            0,
            2,
            Command { opcode: Opcode::MirrorLog as u8, auxiliary: SLOTS + 512, ..undo(5, 0, 128, SLOTS + 1024) },
        ),
        store(0, pattern(0, 2)),
        post(0, 3, fence()),
        post(0, 4, unmap()),
        store(0, pattern(0, 3)),
    ];
    let named = [
        ("undo", undo_then_store),
        ("redo", redo),
        ("undo and redo", undo_and_redo),
        ("pages", pages),
        ("recovery", recovery),
    ];
    named.map(|(name, accesses)| Scenario { name, accesses, gap: 0 }).to_vec()
}

/// Commands and accesses that meet in few lines, by seed.
pub fn conflicts(seed: u64, count: usize) -> Scenario {
    let mut rng = Rng::new(seed);
    let mut txid = 10;
    let accesses = (0..count)
        .map(|n| {
            let line = rng.below(12) * LINE_U64;
            let slot = SLOTS + rng.below(4) * 1024;
            let length = 1 + rng.below(300) as u32;
            let offset = line + rng.below(64);
            let page = rng.below(4) as usize;
            match rng.below(16) {
                0..=4 => {
                    let data = pattern(line, seed.wrapping_add(n as u64));
                    let strobes = if rng.one_in(3) { rng.bits() } else { u64::MAX };
                    Access::PmWrite { address: POOLS_BASE + line, data, strobes }
                }
                5..=7 => load(line),
                8 => load(slot),
                9..=11 => post(page, n, undo(txid, offset, length, slot)),
                12 => post(page, n, apply(slot + 64 + offset % 64, offset, length)),
                13 => {
                    let source = SLOTS + 8192 + offset % 64;
                    post(page, n, undo_redo(txid, source, offset, length, slot))
                }
                14 => post(page, n, if rng.one_in(2) { fence() } else { undo(3, offset, length, slot) }),
                _ => {
                    txid += 1;
                    post(page, n, commit(txid - 1))
                }
            }
        })
        .collect();
    Scenario { name: "conflicts", accesses, gap: seed % 5 * 3 }
}

/// Delivers the accesses; stops before `until` cycles after the start where that comes first. Gives
/// their tickets.
pub fn deliver(rig: &mut Rig, scenario: &Scenario, until: u64) -> Vec<nearpm_sim::core::Ticket> {
    let start = rig.card.cycle();
    let mut tickets = Vec::new();
    for (n, access) in scenario.accesses.iter().enumerate() {
        let at = n as u64 * scenario.gap;
        if at > until {
            break;
        }
        rig.card.advance_to(start + at);
        tickets.push(rig.card.submit(access.clone()));
    }
    tickets
}

/// Runs a scenario to its end and compares every load, every status and the memory with the oracle.
pub fn run(scenario: &Scenario, fault: Option<Fault>) -> Check {
    let (mut rig, mut oracle) = opened(fault);
    let tickets = deliver(&mut rig, scenario, u64::MAX);
    rig.settle();
    for (n, access) in scenario.accesses.iter().enumerate() {
        let expected = oracle.apply(access);
        let at = || format!("{} access {n}", scenario.name);
        let answer = rig.card.take(tickets[n]).ok_or_else(|| format!("{}: no answer", at()))?;
        if let Access::PmRead { address } = access {
            check(answer.data == oracle.line(*address), || format!("{}: a load answers wrongly", at()))?;
        }
        if let Some(status) = expected {
            let Access::CommandWrite { data, .. } = access else { unreachable!("only commands have a status") };
            let tag = Command::from_bytes(data).tag;
            let record = rig.records.iter().find(|r| r.tag == tag);
            let record = record.ok_or_else(|| format!("{}: no record", at()))?;
            check(record.status == status.code(), || {
                format!("{}: status {:#x}, expected {status:?}", at(), record.status)
            })?;
        }
    }
    compare(&rig, &oracle, scenario.name)?;
    let mut monitor = Monitor::new();
    monitor.follow(&rig.card.take_trace());
    check(monitor.violations().is_empty(), || format!("order: {:?}", monitor.violations()))
}

/// Compares everything that hosts and commands may write.
pub fn compare(rig: &Rig, oracle: &Oracle, what: &str) -> Check {
    let (is, must) = (rig.card.medium(), &oracle.medium);
    let range = POOLS_BASE as usize..PM_BYTES;
    if is.bytes[range.clone()] == must.bytes[range.clone()] {
        return Ok(());
    }
    let first = range.clone().find(|&i| is.bytes[i] != must.bytes[i]).unwrap();
    Err(format!("{what}: memory differs at pool offset {:#x}", first as u64 - POOLS_BASE))
}

/// The oracle after the first `accepted` items that a card takes.
fn after(mut oracle: Oracle, scenario: &Scenario, accepted: usize) -> Oracle {
    let mut taken = 0;
    for access in &scenario.accesses {
        if taken == accepted {
            break;
        }
        let status = oracle.apply(access);
        taken += status.is_none_or(|s| s.code() == 0) as usize;
    }
    oracle
}

/// Where a card ended after a power-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    Open,
    Loss,
}

/// Boots, waits for the end of a replay and of everything that follows it.
pub fn boot(medium: Medium, fault: Option<Fault>) -> (Rig, Boot) {
    let mut rig = Rig::faulty(medium, fault);
    loop {
        match rig.get(registers::STATE) {
            state::OPEN => break,
            state::LOSS => return (rig, Boot::Loss),
            now => assert!(rig.card.cycle() < LIMIT, "the card stays in state {now}"),
        }
    }
    rig.settle();
    (rig, Boot::Open)
}

/// A cut `cycle` cycles into the scenario: the medium that it leaves, and the oracle of what had
/// been accepted.
pub fn cut_at(scenario: &Scenario, cycle: u64, energy: u64, fault: Option<Fault>) -> (Medium, Oracle, bool) {
    let (mut rig, oracle) = opened(fault);
    let start = rig.card.cycle();
    deliver(&mut rig, scenario, cycle);
    rig.card.advance_to(start + cycle);
    let done = rig.card.is_idle();
    let trace = rig.card.take_trace();
    let accepted = trace.iter().filter(|e| matches!(e.what, What::Accepted { .. })).count();
    let oracle = after(oracle, scenario, accepted);
    (rig.card.power_fail(energy, cycle.wrapping_mul(31) + energy), oracle, done)
}

/// Cuts at every `step`-th cycle with energy enough, replays, and compares.
pub fn cut_everywhere(scenario: &Scenario, step: usize, fault: Option<Fault>) -> Check {
    for cycle in (0..).step_by(step) {
        let (medium, oracle, done) = cut_at(scenario, cycle, ENERGY, fault);
        let what = || format!("{} cut at {cycle}", scenario.name);
        let (mut rig, end) = boot(medium, fault);
        check(end == Boot::Open, || format!("{}: {end:?}", what()))?;
        compare(&rig, &oracle, &what())?;
        let mapped = rig.get(registers::MAPPED);
        check(mapped.count_ones() as usize == oracle.maps.len(), || format!("{}: mapped {mapped:#x}", what()))?;
        if done {
            break;
        }
    }
    Ok(())
}

/// A card that has taken all of a scenario and is cut at `cycle`: with every energy from 0 up, in
/// steps, the save is either whole and replayed, or reported as a loss.
pub fn cut_in_save(scenario: &Scenario, cycle: u64, step: u64, fault: Option<Fault>) -> Check {
    let mut losses = 0;
    for energy in (0..).step_by(step as usize) {
        let (medium, oracle, _) = cut_at(scenario, cycle, energy, fault);
        let what = || format!("{} cut at {cycle} with {energy} cycles for the save", scenario.name);
        let (rig, end) = boot(medium, fault);
        if end == Boot::Loss {
            losses += 1;
            continue;
        }
        compare(&rig, &oracle, &what())?;
        check(losses > 0, || format!("{}: a save needs no energy?", what()))?;
        if energy > 4000 {
            break;
        }
    }
    Ok(())
}

/// Cuts the replay of a save at every `step`-th cycle, and some of those replays' replays again.
pub fn cut_in_replay(scenario: &Scenario, cycle: u64, step: usize, fault: Option<Fault>) -> Check {
    let (image, oracle, _) = cut_at(scenario, cycle, ENERGY, fault);
    let oracle = &oracle;
    let finish = |medium: Medium, what: String| {
        let (mut rig, end) = boot(medium, fault);
        check(end == Boot::Open, || format!("{what}: {end:?}"))?;
        compare(&rig, oracle, &what)?;
        let mapped = rig.get(registers::MAPPED);
        check(mapped.count_ones() as usize == oracle.maps.len(), || format!("{what}: mapped {mapped:#x}"))
    };
    for first in (0..).step_by(step) {
        let mut rig = Rig::faulty(image.clone(), fault);
        rig.card.advance_to(first);
        let over = rig.card.is_idle();
        let once = rig.card.power_fail(ENERGY, first);
        let what = format!("{} cut at {cycle}, replay cut at {first}", scenario.name);
        finish(once.clone(), what.clone())?;
        for second in [first / 3, first / 2, first] {
            let mut rig = Rig::faulty(once.clone(), fault);
            rig.card.advance_to(second);
            let twice = rig.card.power_fail(ENERGY, second ^ first);
            finish(twice, format!("{what}, and again at {second}"))?;
        }
        if over {
            break;
        }
    }
    Ok(())
}
