//! The scenarios.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::firmware::IMAGE_LINES;
use nearpm_interface::geometry::{
    FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE, LINE_U64, MAX_COMMAND_BYTES, POOLS_BASE, REQUEST_SLOTS,
};
use nearpm_interface::media::entry_data;
use nearpm_interface::registers::{self, control};
use nearpm_interface::seal;
use nearpm_sim::core::Access;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::scenario::{Effect, Event, Scenario, Slots, host, image_checksum};
use super::striped::Striped;
use super::subject::Subject;
use crate::micro::{self, Maker, load, spaced, store};
use crate::trace::{self, Mix, POOL, Step};

/// Random traces of the catalogue.
const RANDOM: u64 = 18;

/// Every scenario of the catalogue.
pub fn all() -> Vec<Scenario> {
    let micro = micro::all().into_iter().map(|m| Scenario::of_trace("single effects", m.name, &m.trace));
    micro
        .chain(conflicts())
        .chain((0..RANDOM).map(|n| random(1, n)))
        .chain([full_fifo(), refused()])
        .chain(pieces())
        .chain(mappings())
        .chain(failed_logs())
        .chain(rollbacks())
        .chain(firmware_loads())
        .chain(resets())
        .collect()
}

/// Scenarios of one card, and behind them those of several.
pub fn together(one_card: Vec<Scenario>, several: Vec<Striped>) -> Vec<Box<dyn Subject>> {
    let one_card = one_card.into_iter().map(|scenario| Box::new(scenario) as Box<dyn Subject>);
    one_card.chain(several.into_iter().map(|striped| Box::new(striped) as Box<dyn Subject>)).collect()
}

/// A few short ones that meet most of the card.
pub fn fast() -> Vec<Scenario> {
    const NAMES: [&str; 7] = [
        "undo+redo of 64 B",
        "switch",
        "4 logs and stores in turn, then a commit",
        "two commands whose pieces arrive in turn",
        "a thread is mapped, used and unmapped",
        "a log fails",
        "a transaction is rolled back",
    ];
    let chosen: Vec<Scenario> = all().into_iter().filter(|s| NAMES.contains(&s.name.as_str())).collect();
    assert_eq!(chosen.len(), NAMES.len(), "a name of the fast scenarios is not in the catalogue");
    chosen
}

/// Random traffic of a seed; most of it on few lines, some of it with malformed commands.
pub fn random(seed: u64, number: u64) -> Scenario {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    let gap = [1, 4, 20][rng.random_range(0..3usize)];
    let mix = if number % 4 == 3 { Mix { gap, ..Mix::SPREAD } } else { Mix { gap, ..Mix::CONFLICTS } };
    let trace = trace::random(rng.random(), rng.random_range(6..40), mix);
    Scenario::of_trace("random traffic", format!("random {number} of seed {seed}"), &trace)
}

fn steps(family: &'static str, name: &str, gap: u64, steps: Vec<Step>) -> Scenario {
    Scenario::of_trace(family, name, &spaced(gap, steps))
}

/// Commands and host accesses of one line, in both directions.
fn conflicts() -> Vec<Scenario> {
    let family = "conflicts";
    let log = |m: &mut Maker, offset, length| Step::Command(m.log(Opcode::UndoLog, offset, length));
    let mut all = Vec::new();
    let m = &mut Maker::new();
    all.push(steps(family, "a store, then a log of its line", 0, vec![store(64), log(m, 64, 64)]));
    all.push(steps(
        family,
        "a load, then an apply to its line",
        0,
        vec![load(64), Step::Command(m.home(Opcode::Apply, 64, 64))],
    ));
    let m = &mut Maker::new();
    let mut turns: Vec<Step> = (0..4).flat_map(|i| [log(m, 64 * i, 64), store(64 * i)]).collect();
    turns.push(Step::Command(m.commit()));
    for (name, gap) in [("4 logs and stores in turn, then a commit", 0), ("the same, slowly", 40)] {
        all.push(steps(family, name, gap, turns.clone()));
    }
    let m = &mut Maker::new();
    let page = m.command(Opcode::ShadowCopy, 4096, 16384, 4096);
    let around =
        vec![store(4096), Step::Command(page), store(4096 + 64), store(16384), load(16384), log(m, 16384, 128)];
    all.push(steps(family, "a page copy between stores to both pages", 0, around));
    let m = &mut Maker::new();
    let logged = m.log(Opcode::Checkpoint, 8192, 4096);
    let chain = vec![Step::Command(logged), store(8192), store(8192 + 2048), Step::Command(m.commit()), store(8192)];
    all.push(steps(family, "a checkpoint of a page that is stored to", 0, chain));
    let m = &mut Maker::new();
    let over = vec![
        log(m, 0, 700),
        Step::Command(m.undo_redo(128, 300)),
        Step::Command(m.word(Opcode::Switch, 192)),
        Step::Command(m.mirror(64, 256)),
        store(192),
        Step::Command(m.fence()),
    ];
    all.push(steps(family, "commands whose ranges overlap", 0, over));
    all
}

/// More commands than the card has slots, all behind one long one.
fn full_fifo() -> Scenario {
    let m = &mut Maker::new();
    let mut all = vec![Step::Command(m.home(Opcode::Apply, 0, 8192))];
    for i in 0..REQUEST_SLOTS as u64 + 8 {
        all.push(Step::Command(m.log(Opcode::UndoLog, 64 * (i % 8), 64)));
        if i % 4 == 3 {
            all.push(store(64 * (i % 8)));
        }
    }
    all.push(Step::Command(m.commit()));
    steps("full FIFO", "more commands than slots behind a long one", 0, all)
}

/// Commands that are refused, each in its way, among some that are not.
fn refused() -> Scenario {
    let m = &mut Maker::new();
    let good = m.log(Opcode::UndoLog, 0, 64);
    let bad = [
        Command { opcode: 30, ..good },
        Command { length: 0, ..good },
        Command { length: MAX_COMMAND_BYTES + 1, ..good },
        Command { pool: 77, ..good },
        Command { thread: 9, ..good },
        Command { source: POOL.bytes - 1, ..good },
        Command { source: u64::MAX - 3, ..good },
        Command { destination: good.destination + 8, ..good },
        Command { txid: 0, ..good },
        Command { opcode: Opcode::ShadowCopy as u8, destination: good.source, ..good },
        Command { participants: 2, ..good },
        map(0),
    ];
    let mut all = Vec::new();
    for bad in bad {
        all.extend([Step::Malformed(bad), Step::Command(m.log(Opcode::UndoLog, 128, 64)), store(128)]);
    }
    steps("refused commands", "refused commands among others", 3, all)
}

/// Commands that arrive in pieces.
fn pieces() -> Vec<Scenario> {
    let m = &mut Maker::new();
    let (one, two) = (m.log(Opcode::UndoLog, 64, 64), m.log(Opcode::UndoLog, 128, 200));
    let scenario = |name, events| Scenario::new("pieces", name, events);
    let mut slots = Slots::default();
    let mut whole = slots.pieces(0, &one, &[&[7], &[0], &[3], &[1], &[6], &[2], &[5], &[4]]);
    whole.push(host(5, access(store(64))));
    let mut slots = Slots::default();
    let first = slots.pieces(2, &one, &[&[4, 5, 6, 7], &[0, 1], &[2, 3]]);
    let second = slots.pieces(0, &two, &[&[1], &[0, 2, 3, 4, 5, 6], &[7]]);
    let turns = first.into_iter().zip(second).flat_map(|(a, b)| [a, b]).chain([host(0, access(store(64)))]).collect();
    let mut slots = Slots::default();
    let mut half = slots.pieces(0, &one, &[&[0, 1, 2, 3, 4, 5, 6]]);
    half.extend([slots.whole(9, &two, Effect::Command(two)), host(0, access(store(128)))]);
    vec![
        scenario("a command word by word", whole),
        scenario("two commands whose pieces arrive in turn", turns),
        scenario("half a command, and a whole one", half),
        stores_in_pieces(),
    ]
}

/// Stores of parts of lines, over each other, with a log between them.
fn stores_in_pieces() -> Scenario {
    let m = &mut Maker::new();
    let piece = |line: u64, strobes: u64, value: u8| {
        let address = POOLS_BASE + line * LINE_U64;
        Step::Host(Access::PmWrite { address, data: [value; LINE], strobes })
    };
    let parts = [0xff, 0xff00, 0xf_f0f0, 1 << 63, u64::MAX << 32, 0x5555_5555_5555_5555];
    let mut all: Vec<Step> = (0..12).map(|i| piece(i % 2, parts[i as usize % parts.len()], i as u8 + 1)).collect();
    all.insert(6, Step::Command(m.log(Opcode::UndoLog, 5, 100)));
    steps("pieces", "stores of parts of lines", 0, all)
}

fn access(step: Step) -> Access {
    match step {
        Step::Host(access) => access,
        other => panic!("{other:?} is no access of the host"),
    }
}

fn map(thread: u16) -> Command {
    Command {
        opcode: Opcode::Map as u8,
        pool: 1,
        thread,
        source: POOLS_BASE,
        destination: POOL.bytes,
        auxiliary: POOL.ring,
        length: POOL.ring_bytes as u32,
        ..Command::default()
    }
}

fn unmap(thread: u16) -> Command {
    Command { opcode: Opcode::Unmap as u8, pool: 1, thread, ..Command::default() }
}

/// Maps and unmaps among the commands of their threads.
fn mappings() -> Vec<Scenario> {
    let family = "mappings";
    let m = &mut Maker::new();
    let of = |thread: u16, command: Command| Command { thread, ..command };
    let logs: Vec<Command> = (0..3).map(|i| of(1, m.log(Opcode::UndoLog, 64 * i, 64))).collect();
    let mut slots = Slots::default();
    let mut used = vec![slots.privileged(0, &map(1))];
    for (i, log) in logs.iter().enumerate() {
        used.extend([slots.whole(30, log, Effect::Command(*log)), host(0, access(store(64 * i as u64)))]);
    }
    used.push(slots.privileged(0, &unmap(1)));
    used.push(slots.whole(0, &logs[0], Effect::Nothing));
    let mut slots = Slots::default();
    let again: Vec<Event> = (0..6)
        .map(|i| slots.privileged(10, &if i % 2 == 0 { map(2) } else { unmap(2) }))
        .chain([host(0, access(store(64)))])
        .collect();
    let mut slots = Slots::default();
    let long = of(1, m.home(Opcode::Apply, 0, 4096));
    let behind = vec![
        slots.whole(0, &long, Effect::Command(long)),
        slots.privileged(0, &unmap(1)),
        host(0, access(store(64))),
        slots.privileged(0, &map(3)),
    ];
    let mut mapped = Scenario::new(family, "an unmap waits for a long command", behind);
    mapped.setup = vec![map(1)];
    vec![
        Scenario::new(family, "a thread is mapped, used and unmapped", used),
        Scenario::new(family, "a thread is mapped and unmapped again and again", again),
        mapped,
    ]
}

/// Logs whose memory fails until the power is cut: the stores that they cover are held, and their
/// thread is refused.
fn failed_logs() -> Vec<Scenario> {
    const LINES: u64 = 10;
    let bad = POOLS_BASE + (LINES - 1) * LINE_U64;
    let made = |name: &str, gap: u64, accesses: Vec<Step>| {
        let mut slots = Slots::default();
        let m = &mut Maker::new();
        let log = m.log(Opcode::UndoLog, 0, (LINES * LINE_U64) as u32);
        let beside = Command { thread: 1, ..m.log(Opcode::UndoLog, 4096, 64) };
        let behind = Command { thread: 1, ..m.log(Opcode::UndoLog, 0, 64) };
        let commits = [0, 1].map(|thread| Command { thread, ..m.commit() });
        let mut events = vec![slots.whole(0, &log, Effect::Command(log))];
        events.extend(accesses.into_iter().map(|step| host(gap, access(step))));
        events.push(slots.whole(0, &beside, Effect::Command(beside)));
        events.push(slots.whole(0, &behind, Effect::UnlessLatched(behind)));
        events.extend(commits.map(|commit| slots.whole(0, &commit, Effect::UnlessLatched(commit))));
        events.push(host(0, access(store(LINES * LINE_U64))));
        Scenario { bad_line: Some(bad), setup: vec![map(1)], ..Scenario::new("failed logs", name, events) }
    };
    let stores = |count: u64| (0..count).map(|i| store(i * LINE_U64)).collect::<Vec<_>>();
    vec![
        made("a log fails", 0, stores(2)),
        made("a log fails, and all that it covers is stored to", 2, stores(LINES)),
        made("a log fails before the stores come", 150, vec![store(0), load(0), store(64), load(128)]),
        made("a log fails and its lines are loaded", 0, vec![load(0), store(0), load(0), load(64)]),
    ]
}

/// What a program does behind a crash: undo newest first, then delete the logs.
fn rollbacks() -> Vec<Scenario> {
    let transaction = |count: u64, length: u32| {
        let m = &mut Maker::new();
        let ranges: Vec<u64> = (0..count).map(|i| 40 + 64 * i).collect();
        let mut all = Vec::new();
        let mut slots = Vec::new();
        for offset in &ranges {
            let log = m.log(Opcode::UndoLog, *offset, length);
            slots.push(log.destination + entry_data(*offset));
            all.extend([Step::Command(log), store(offset / 64 * 64)]);
        }
        for (offset, data) in ranges.iter().zip(slots).rev() {
            all.push(Step::Command(m.command(Opcode::Recover, data, *offset, length)));
        }
        all.push(Step::Command(m.commit()));
        all
    };
    let family = "recovery";
    vec![
        steps(family, "a transaction is rolled back", 0, transaction(2, 24)),
        steps(family, "a transaction of overlapping ranges is rolled back", 0, transaction(5, 150)),
        steps(family, "a transaction is rolled back slowly", 60, transaction(3, 64)),
        // A second recovery does the same again.
        steps(family, "a transaction is rolled back twice", 0, {
            let once = transaction(3, 64);
            let again: Vec<Step> = once[6..9].to_vec();
            once[..9].iter().cloned().chain(again).chain([once[9].clone()]).collect()
        }),
    ]
}

/// A second image of firmware, which differs in its revision.
fn other_firmware() -> Vec<u8> {
    let mut image = nearpm_firmware::standard().bytes().to_vec();
    image[12] ^= 1;
    let mut head: [u8; LINE] = image[..LINE].try_into().expect("the head is a line");
    seal::seal(&image[LINE..], &mut head);
    image[..LINE].copy_from_slice(&head);
    image
}

/// Loads of a firmware image, as the driver makes them.
fn firmware_loads() -> Vec<Scenario> {
    let image = other_firmware();
    let made = |name: &str, before: u64, after: u64, image: &[u8]| {
        let (mut slots, m) = (Slots::default(), &mut Maker::new());
        let mut log = |slots: &mut Slots, gap| {
            let log = m.log(Opcode::UndoLog, 64, 128);
            slots.whole(gap, &log, Effect::Command(log))
        };
        let mut events: Vec<Event> = (0..before).map(|_| log(&mut slots, 0)).collect();
        let slot = FIRMWARE_BASE + FIRMWARE_SLOT_BYTES;
        events.extend((0..IMAGE_LINES).map(|line| {
            let data = image[line * LINE..][..LINE].try_into().expect("a line");
            host(0, Access::PmWrite { address: slot + (line * LINE) as u64, data, strobes: u64::MAX })
        }));
        events.push(host(0, Access::PmRead { address: slot }));
        let load = Access::RegisterWrite { offset: registers::FIRMWARE_LOAD, value: 1 };
        events.push(Event { gap: 250, access: load, effect: Effect::Nothing });
        // The card takes an image only while it is idle; what arrives while it loads waits.
        events.extend((1..=after).map(|n| log(&mut slots, 60 * n)));
        events.push(host(60, access(store(64))));
        let mut scenario = Scenario::new("firmware", name, events);
        scenario.firmware.push(image_checksum(image));
        scenario
    };
    let mut damaged = image.clone();
    damaged[200] ^= 4;
    let mut refused = made("an image with a flipped bit is refused", 0, 2, &damaged);
    refused.firmware.truncate(1);
    vec![made("an image is loaded", 0, 0, &image), made("an image is loaded between commands", 2, 4, &image), refused]
}

/// Function-level resets and shutdowns with work on its way.
fn resets() -> Vec<Scenario> {
    let made = |name: &str, bit: u32, gap: u64| {
        let m = &mut Maker::new();
        let mut slots = Slots::default();
        let log = m.log(Opcode::UndoLog, 0, 1024);
        let mut events = vec![slots.whole(0, &log, Effect::Command(log))];
        events.extend((0..4).map(|i| host(0, access(store(64 * i)))));
        let half = m.log(Opcode::UndoLog, 4096, 64);
        events.extend(slots.pieces(0, &half, &[&[0, 1, 2]]));
        let access = Access::RegisterWrite { offset: registers::CONTROL, value: bit };
        events.push(Event { gap, access, effect: Effect::Nothing });
        Scenario { resets: true, ..Scenario::new("resets", name, events) }
    };
    vec![
        made("a function-level reset at once", control::FUNCTION_RESET, 0),
        made("a function-level reset of an idle card", control::FUNCTION_RESET, 400),
        made("a shutdown at once", control::SHUT_DOWN, 0),
        made("a shutdown of an idle card", control::SHUT_DOWN, 400),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_opcode_is_cut_and_the_page_names_every_family() {
        let scenarios = all();
        let effects = scenarios.iter().flat_map(|scenario| &scenario.events).map(|event| &event.effect);
        let opcodes: BTreeSet<u8> = effects
            .filter_map(|effect| match effect {
                Effect::Command(command) | Effect::UnlessLatched(command) => Some(command.opcode),
                Effect::Nothing | Effect::Store => None,
            })
            .collect();
        assert_eq!(opcodes, Opcode::ALL.iter().map(|&(opcode, _)| opcode as u8).collect());
        let page = include_str!("../../../docs/power-cuts.md");
        assert!(page.contains(&format!("The catalogue has {} of them", scenarios.len())), "{}", scenarios.len());
        for scenario in &scenarios {
            assert!(page.contains(&format!("\n| {} | ", scenario.family)), "{}", scenario.family);
        }
    }
}
