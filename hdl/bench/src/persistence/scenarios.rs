//! Boots, saves, cuts and replays that the persistence unit has to survive.

use super::{Bench, Tables, map_value};
use nearpm_hdl::dut::{Dut, Value};
use nearpm_interface::registers::state;
use nearpm_interface::save::{
    ARM_LINE, ArmWord, HEAD_LINE, ITEM_LINE, ITEM_STORE, MAPPING_LINE, MAX_ITEMS, PROGRESS_LINE, ProgressWord,
    SaveHead, SavedItem, SavedMapping, firmware_word,
};
use nearpm_interface::seal;
use rand::RngExt;

pub fn a_blank_medium_opens_in_generation_1_without_firmware(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 1);
    bench.power_up();
    assert!(!bench.high(|p| p.window));
    assert_eq!(bench.boot(), state::NO_FIRMWARE);
    assert_eq!(bench.medium.arm(), Some(ArmWord::Running(1)), "armed before open");
    bench.step();
    assert!(bench.high(|p| p.window));
}

pub fn a_save_holds_the_tables_and_the_next_boot_replays_them_in_order(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 2);
    for (commands, stores) in [(0, 0), (1, 0), (5, 9), (32, 64)] {
        let items = bench.running(commands, stores);
        let maps = bench.tables.maps;
        bench.power_fail();
        let Some(ArmWord::Running(generation)) = bench.medium.arm() else { panic!() };
        let image = bench.medium.image(generation).expect("a complete image");
        assert_eq!(image, items, "the image of a save");
        assert_eq!(bench.medium.head().firmware_crc, 77);
        assert_eq!(bench.medium.head().order, 5000);
        for (i, map) in maps.iter().enumerate() {
            assert_eq!(&bench.medium.line(MAPPING_LINE + i), &map.to_bytes());
        }
        bench.power_up();
        assert_eq!(bench.boot(), state::OPEN, "the boot behind a save");
        bench.check_injected(&items);
        for (command, item) in bench.injected.iter().zip(&items) {
            assert_eq!(command.3, item.record.resume);
        }
        let used: Vec<_> = (0..16).filter(|i| maps[*i].flags & 1 == 1).collect();
        assert_eq!(bench.restored.len(), used.len());
        for index in used {
            // Only what a function-level reset left is closing.
            let flags = 1 | if maps[index].flags & 8 != 0 { 8 | 4 } else { 0 };
            let map = SavedMapping { flags, ..maps[index] };
            assert_eq!(bench.restored[&(index as u64)], map_value(&map));
        }
        assert_eq!(bench.medium.arm(), Some(ArmWord::Running(generation + 1)));
        assert_eq!(bench.dut.get_u64("replayed"), items.len() as u64);
        bench.power_fail();
    }
}

pub fn a_save_takes_a_bounded_number_of_cycles(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 3);
    bench.running(32, 64);
    let begun = bench.now;
    bench.power_fail();
    let (cycles, passed) = (bench.dut.get_u64("save_cycles"), bench.now - begun);
    assert!(cycles <= passed && cycles + 4 >= passed, "{cycles} cycles are told of a save that took {passed}");
    println!("save of 128 items: {cycles} cycles");
    // This memory takes 70 % of the requests at once and serialises the answers.
    assert!(cycles < 2000, "{cycles}");
}

/// How far apart the cuts are: each on the fast simulator, some on the slow one.
fn stride(dut: &dyn Dut, slow: usize) -> usize {
    if dut.back_end() == "verilator" { 1 } else { slow }
}

pub fn a_cut_in_a_save_is_a_loss_or_a_complete_image_and_never_an_older_one(dut: &mut dyn Dut) {
    let stride = stride(dut, 61);
    let mut bench = Bench::new(dut, 4);
    // An older image stands in the area.
    let older = bench.running(4, 4);
    bench.power_fail();
    let old_head = bench.medium.head();
    let start = bench.medium.clone();
    let (mut losses, mut replays) = (0, 0);
    for at in (0..).step_by(stride) {
        bench.medium = start.clone();
        bench.power_up();
        assert_eq!(bench.boot(), state::OPEN);
        bench.check_injected(&older);
        let tables = Tables::random(&mut bench.rng, 3, 5);
        bench.tables = tables.clone();
        bench.set(|p| p.power_fail, true);
        for _ in 0..at {
            bench.step();
        }
        let done = bench.high(|p| p.save_done);
        bench.cut();
        let Some(ArmWord::Running(generation)) = bench.medium.arm() else { panic!() };
        assert_eq!(generation, old_head.generation + 1);
        let image = bench.medium.image(generation);
        assert!(!done || image.is_some(), "save_done without an image");
        let state = bench.boot();
        match image {
            Some(items) => {
                assert_eq!(items, tables.items());
                assert_eq!(state, state::OPEN);
                bench.check_injected(&items);
                replays += 1;
            }
            None => {
                assert_eq!(state, state::LOSS, "cut at {at}");
                assert!(bench.injected.is_empty() && bench.restored.is_empty());
                losses += 1;
            }
        }
        if done {
            break;
        }
    }
    assert!(losses > 3 && replays > 0);
}

pub fn a_cut_in_a_replay_resumes_it_and_repeats_nothing_that_was_counted(dut: &mut dyn Dut) {
    let stride = stride(dut, 97);
    let mut bench = Bench::new(dut, 5);
    let items = bench.running(3, 3);
    bench.power_fail();
    let start = bench.medium.clone();
    bench.gated = true;
    let mut resumed = 0;
    for at in (0..).step_by(stride) {
        bench.medium = start.clone();
        bench.power_up();
        let Some(ArmWord::Running(generation)) = bench.medium.arm() else { panic!() };
        for _ in 0..at {
            bench.step();
        }
        let first = std::mem::take(&mut bench.injected);
        let taken = std::mem::take(&mut bench.taken);
        let opened = bench.state() == state::OPEN;
        bench.cut();
        if bench.medium.arm() != Some(ArmWord::Running(generation)) {
            // The image is consumed: this generation runs, and an instant cut of it is a loss.
            assert_eq!(first.len(), items.len());
            assert_eq!(bench.boot(), state::LOSS);
            if opened {
                break;
            }
            continue;
        }
        let progress =
            ProgressWord::decode(bench.medium.word(PROGRESS_LINE, 0)).filter(|p| p.generation == generation as u32);
        let (counted, resume) = progress.map_or((0, 0), |p| (usize::from(p.items), p.resume));
        assert!(counted <= first.len());
        assert!(first.len() <= counted + 1, "an item began before the one before was counted");
        // What a unit was told that it may pass stands in the word.
        for (item, pc) in taken.iter().filter(|(item, _)| *item == counted + 1) {
            assert!(resume >= *pc, "item {item} passed {pc} with {resume} stored");
        }
        assert_eq!(bench.boot(), state::OPEN);
        bench.check_injected(&items[counted..]);
        // The image holds the mapping table as it was before the counted commands.
        let commands = items[..counted].iter().filter(|i| i.record.kind != ITEM_STORE);
        let wanted: Vec<_> = commands.map(|i| (i.data, u64::from(i.record.page))).collect();
        assert_eq!(bench.redone, wanted);
        assert_eq!(bench.dut.get_u64("replayed"), (items.len() - counted) as u64);
        let word = ProgressWord::decode(bench.medium.word(PROGRESS_LINE, 0)).expect("a word");
        assert_eq!(usize::from(word.items), items.len(), "the count of what is durable never falls back");
        if resume != 0 {
            assert_eq!(bench.injected[0].3, resume, "where the replay resumes");
            resumed += 1;
        }
    }
    assert!(resumed > 0 || stride > 1);
}

pub fn a_power_fail_in_a_replay_is_never_a_loss(dut: &mut dyn Dut) {
    let stride = stride(dut, 97);
    let mut bench = Bench::new(dut, 6);
    let items = bench.running(2, 2);
    bench.power_fail();
    let start = bench.medium.clone();
    for at in (0..).step_by(stride) {
        bench.medium = start.clone();
        bench.power_up();
        for _ in 0..at {
            bench.step();
        }
        bench.power_fail();
        let first = std::mem::take(&mut bench.injected);
        bench.cut();
        assert_eq!(bench.boot(), state::OPEN, "power fail at {at}");
        let total = first.len() + bench.injected.len();
        assert!(total == items.len() || total == items.len() + 1, "{total} at {at}");
        if first.len() == items.len() && bench.injected.is_empty() {
            break;
        }
    }
}

pub fn one_flipped_bit_anywhere_in_the_image_is_a_loss(dut: &mut dyn Dut) {
    let flips = if dut.back_end() == "verilator" { 400 } else { 12 };
    let mut bench = Bench::new(dut, 7);
    bench.running(2, 3);
    bench.power_fail();
    let start = bench.medium.clone();
    for _ in 0..flips {
        bench.medium = start.clone();
        let line = bench.rng.random_range(HEAD_LINE..ITEM_LINE + 2 * 5);
        let bit = bench.rng.random_range(0..512);
        let mut bytes = bench.medium.line(line);
        bytes[bit / 8] ^= 1 << (bit % 8);
        bench.medium.set(line, bytes);
        bench.power_up();
        assert_eq!(bench.boot(), state::LOSS, "line {line} bit {bit}");
        assert!(bench.injected.is_empty() && bench.restored.is_empty());
        bench.step();
        assert!(!bench.high(|p| p.window));
    }
    // Somebody accepts the loss: a generation above everything that stands there.
    let Some(ArmWord::Running(generation)) = bench.medium.arm() else { panic!() };
    bench.dut.set("acknowledge_loss", true);
    bench.step();
    bench.dut.set("acknowledge_loss", false);
    bench.run_to_state(&[state::OPEN]);
    let Some(ArmWord::Running(next)) = bench.medium.arm() else { panic!() };
    assert!(next > generation);
}

pub fn an_arm_word_that_no_card_writes_is_a_loss_and_the_next_generation_is_fresh(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 8);
    bench.running(1, 1);
    bench.power_fail();
    let stale = bench.medium.head().generation;
    bench.medium.set_word(ARM_LINE, 0, 0x1234);
    bench.power_up();
    assert_eq!(bench.boot(), state::LOSS);
    bench.dut.set("acknowledge_loss", true);
    bench.step();
    bench.dut.set("acknowledge_loss", false);
    bench.run_to_state(&[state::OPEN]);
    let next = bench.medium.arm();
    assert_eq!(next, Some(ArmWord::Running(stale + 1)), "a generation above every one that stands there");
}

pub fn an_image_waits_for_the_firmware_that_accepted_it(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 9);
    let items = bench.running(2, 1);
    bench.power_fail();
    for found in [None, Some(78)] {
        bench.firmware = found;
        bench.power_up();
        assert_eq!(bench.boot(), state::FIRMWARE_MISSING);
        assert!(bench.injected.is_empty());
        bench.step();
        assert!(!bench.high(|p| p.window));
    }
    bench.firmware = Some(77);
    bench.power_up();
    assert_eq!(bench.boot(), state::OPEN);
    bench.check_injected(&items);
}

pub fn a_clean_shutdown_leaves_nothing_to_replay_and_a_function_reset_opens_again(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 10);
    bench.running(1, 1);
    bench.dut.set("shut_down", true);
    bench.step();
    bench.dut.set("shut_down", false);
    for _ in 0..100 {
        bench.step();
        assert!(bench.high(|p| p.window) && bench.medium.arm() != Some(ArmWord::Clean(1)));
    }
    assert!(bench.high(|p| p.stop), "no new work while it drains");
    bench.tables = Tables::empty();
    bench.run_to_state(&[state::SAVED]);
    assert_eq!(bench.medium.arm(), Some(ArmWord::Clean(1)));
    for _ in 0..300 {
        assert_eq!(bench.state(), state::SAVED, "what was shut down stays so");
        bench.step();
    }
    bench.pulse("function_reset");
    let mut pulses = 0;
    while bench.state() != state::OPEN {
        pulses += usize::from(bench.high(|p| p.clear));
        bench.step();
        assert!(bench.now < 100_000, "a reset behind a shut-down does not end");
    }
    assert_eq!(pulses, 1, "how often the tables are cleared");
    assert_eq!(bench.medium.arm(), Some(ArmWord::Running(2)));
    bench.dut.set("shut_down", true);
    bench.step();
    bench.dut.set("shut_down", false);
    bench.run_to_state(&[state::SAVED]);
    bench.cut();
    assert_eq!(bench.boot(), state::OPEN);
    assert!(bench.injected.is_empty());
    assert_eq!(bench.medium.arm(), Some(ArmWord::Running(3)));
}

pub fn a_shutdown_with_stores_held_by_a_failed_log_saves_them(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 11);
    let items = bench.running(1, 2);
    bench.set(|p| p.latched_any, true);
    bench.dut.set("shut_down", true);
    bench.step();
    bench.dut.set("shut_down", false);
    bench.run_to_state(&[state::SAVED]);
    bench.cut();
    assert_eq!(bench.boot(), state::OPEN);
    bench.check_injected(&items);
}

pub fn a_shutdown_keeps_what_waits_for_other_devices(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 19);
    bench.running(2, 0);
    bench.tables.slots = [None; 32];
    let items = bench.tables.items();
    bench.dut.set("shut_down", true);
    bench.step();
    bench.dut.set("shut_down", false);
    bench.run_to_state(&[state::SAVED]);
    bench.cut();
    assert_eq!(bench.boot(), state::OPEN, "what waits was shut down with the rest");
    bench.check_injected(&items);
    // Nor is firmware loaded under it.
    bench.tables = Tables::random(&mut bench.rng, 1, 0);
    bench.tables.slots = [None; 32];
    bench.dut.set("load_request", true);
    bench.step();
    bench.dut.set("load_request", false);
    for _ in 0..100 {
        bench.step();
        assert_eq!(bench.loading, 0, "firmware is loaded under what waits");
    }
    assert!(bench.dut.get_bool("load_refused"));
}

pub fn a_function_reset_drains_before_it_forgets(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 12);
    bench.running(1, 0);
    bench.dut.set("function_reset", true);
    bench.step();
    bench.dut.set("function_reset", false);
    for _ in 0..300 {
        assert_eq!(bench.state(), state::BOOTING, "the reset is not done");
        bench.step();
        assert!(!bench.high(|p| p.clear), "cleared before everything was done");
    }
    bench.tables = Tables::empty();
    let mut pulses = 0;
    for _ in 0..100 {
        pulses += usize::from(bench.high(|p| p.clear));
        assert_eq!(bench.state() == state::OPEN, pulses == 1 && !bench.high(|p| p.clear), "open before it has cleared");
        bench.step();
    }
    assert_eq!(pulses, 1);
    assert_eq!(bench.state(), state::OPEN);
    assert!(!bench.high(|p| p.stop));
}

pub fn a_function_reset_that_is_asked_for_in_a_replay_is_done_behind_it(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 20);
    let items = bench.running(5, 9);
    bench.power_fail();
    bench.power_up();
    while bench.state() != state::REPLAYING {
        assert_eq!(bench.state(), state::BOOTING);
        bench.step();
    }
    bench.dut.set("function_reset", true);
    bench.step();
    bench.dut.set("function_reset", false);
    let mut pulses = 0;
    for _ in 0..20_000 {
        pulses += usize::from(bench.high(|p| p.clear));
        if bench.state() == state::OPEN {
            break;
        }
        bench.step();
    }
    assert_eq!((bench.state(), pulses), (state::OPEN, 1), "open only when it has cleared");
    assert_eq!(bench.dut.get_u64("replayed"), items.len() as u64);
}

pub fn firmware_that_is_asked_for_with_a_reset_is_loaded_behind_it(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 21);
    bench.running(0, 0);
    bench.tables = Tables::empty();
    bench.firmware = Some(99);
    bench.dut.set("load_slot", 0u64);
    for pulse in [true, false] {
        bench.dut.set("load_request", pulse);
        bench.dut.set("function_reset", pulse);
        bench.step();
    }
    let mut pulses = 0;
    for _ in 0..300 {
        pulses += usize::from(bench.high(|p| p.clear));
        assert!(pulses == 1 || bench.in_force == 77, "loaded before the reset was done");
        bench.step();
    }
    assert_eq!((pulses, bench.in_force, bench.state()), (1, 99, state::OPEN));
    assert!(!bench.dut.get_bool("load_refused"));
}

pub fn firmware_is_loaded_only_when_open_and_idle(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 13);
    bench.running(1, 0);
    bench.firmware = Some(99);
    // Who asks reads from the next cycle on that the card is busy with it, until the outcome is
    // there to stay.
    let load = |bench: &mut Bench| {
        bench.dut.set("load_slot", 0u64);
        bench.dut.set("load_request", true);
        assert!(bench.dut.get_bool("load_waits"), "a load is shown in the cycle of its request");
        bench.step();
        bench.dut.set("load_request", false);
        assert!(bench.dut.get_bool("load_waits"));
        let mut shown = None;
        for _ in 0..100 {
            let busy = bench.dut.get_bool("load_waits") || bench.loading > 0;
            let outcome = (!busy).then(|| (bench.dut.get_bool("load_refused"), bench.in_force));
            assert!(shown.is_none() || shown == outcome, "the outcome was shown too early");
            shown = outcome;
            bench.step();
        }
        assert!(shown.is_some());
    };
    load(&mut bench);
    assert!(bench.dut.get_bool("load_refused"));
    assert_eq!(bench.in_force, 77);
    bench.tables = Tables::empty();
    load(&mut bench);
    assert!(!bench.dut.get_bool("load_refused"));
    assert_eq!(bench.in_force, 99);
    assert!(!bench.high(|p| p.stop));
    bench.power_fail();
    assert_eq!(bench.medium.head().firmware_crc, 99);
    load(&mut bench);
    assert!(bench.dut.get_bool("load_refused"));
}

pub fn a_second_load_of_firmware_waits_for_the_first(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 23);
    bench.running(0, 0);
    bench.tables = Tables::empty();
    bench.firmware = Some(99);
    bench.dut.set("load_slot", 0u64);
    let (mut loads, mut loading) = (0, 0);
    for cycle in 0..200 {
        let begins = loading == 0 && bench.loading > 0;
        loads += usize::from(begins);
        loading = bench.loading;
        // The second is asked for when the first has just begun.
        bench.dut.set("load_request", cycle == 0 || begins && loads == 1);
        bench.step();
    }
    assert_eq!((loads, bench.in_force, bench.state()), (2, 99, state::OPEN));
    assert!(!bench.dut.get_bool("load_refused"));
}

/// Power that fails in whichever cycle: what is shown is the outcome of this load, or that there is
/// none.
pub fn a_load_of_firmware_that_the_power_overtakes_shows_no_other_outcome(dut: &mut dyn Dut) {
    for cycles in 0..40 {
        let mut bench = Bench::new(dut, 22);
        bench.running(0, 0);
        bench.tables = Tables::empty();
        bench.firmware = Some(99);
        bench.dut.set("load_slot", 0u64);
        bench.dut.set("load_request", true);
        bench.step();
        bench.dut.set("load_request", false);
        for cycle in 0.. {
            if bench.high(|p| p.save_done) {
                break;
            }
            let busy = bench.dut.get_bool("load_waits") || bench.loading > 0;
            assert!(busy || bench.dut.get_bool("load_refused") || bench.in_force == 99, "power failed after {cycles}");
            bench.set(|p| p.power_fail, cycle >= cycles);
            bench.step();
        }
        bench.cut();
    }
}

pub fn a_command_that_fails_in_a_replay_is_a_loss(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 14);
    bench.running(4, 0);
    bench.power_fail();
    bench.fail_item = Some(2);
    bench.power_up();
    assert_eq!(bench.boot(), state::LOSS);
    assert_eq!(bench.injected.len(), 3);
}

pub fn a_store_that_fails_in_a_replay_is_a_loss_until_memory_takes_it(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 20);
    let items = bench.running(0, 6);
    bench.power_fail();
    bench.fail_item = Some(2);
    bench.power_up();
    assert_eq!(bench.boot(), state::LOSS, "a lost store of a replay");
    assert_eq!(bench.injected.len(), 3);
    bench.step();
    assert!(!bench.high(|p| p.window));
    // The image is not consumed: the next boot goes on with the store that was refused.
    let before = bench.injected.clone();
    bench.set(|p| p.power_fail, true);
    bench.run_to_state(&[state::SAVED]);
    bench.fail_item = None;
    bench.power_up();
    assert_eq!(bench.boot(), state::OPEN);
    let mut all = before[..2].to_vec();
    all.extend(bench.injected.clone());
    assert_eq!(all.len(), items.len(), "every item but the refused one was replayed once");
}

pub fn what_was_lost_before_the_power_went_is_told_at_the_next_boot(dut: &mut dyn Dut) {
    for shut_down in [false, true] {
        let mut bench = Bench::new(dut, 21);
        let items = bench.running(usize::from(!shut_down), if shut_down { 0 } else { 2 });
        if shut_down {
            bench.tables = Tables::empty();
        }
        let lost = SaveHead { stores_lost: 5, lost_first: 0x10_0040, lost_last: 0xff_ffff_ffc0, ..SaveHead::default() };
        bench.lost = lost;
        if shut_down {
            bench.dut.set("shut_down", true);
            bench.step();
            bench.dut.set("shut_down", false);
            bench.run_to_state(&[state::SAVED]);
            bench.cut();
        } else {
            bench.power_fail();
            bench.power_up();
        }
        let head = bench.medium.head();
        assert_eq!((head.stores_lost, head.lost_first, head.lost_last), (5, 0x10_0040, 0xff_ffff_ffc0), "{shut_down}");
        // Again and again, until somebody has heard.
        for _ in 0..2 {
            assert_eq!(bench.boot(), state::LOSS, "the boot behind lost stores");
            let told = bench.told.take().expect("the front is told");
            assert_eq!((told.slice(0, 32), told.slice(32, 34)), (5u64.into(), (0x10_0040u64 / 64).into()));
            assert_eq!(told.slice(66, 34), Value::from(0xff_ffff_ffc0u64 / 64));
            bench.set(|p| p.power_fail, true);
            bench.run_to_state(&[state::SAVED]);
            bench.power_up();
        }
        assert_eq!(bench.boot(), state::LOSS);
        assert!(shut_down || !items.is_empty());
        bench.lost = lost;
        bench.dut.set("acknowledge_loss", true);
        bench.step();
        bench.dut.set("acknowledge_loss", false);
        assert_eq!(bench.lost.stores_lost, 0, "what was acknowledged is forgotten");
        bench.run_to_state(&[state::OPEN]);
        bench.power_fail();
        bench.power_up();
        assert_eq!(bench.boot(), state::OPEN);
    }
}

pub fn a_memory_that_cannot_be_written_leaves_no_head(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 15);
    bench.running(2, 2);
    bench.write_errors = true;
    bench.set(|p| p.power_fail, true);
    for _ in 0..3000 {
        bench.step();
        assert!(!bench.high(|p| p.save_done));
    }
    bench.write_errors = false;
    bench.cut();
    assert_eq!(bench.boot(), state::LOSS);
}

pub fn a_line_of_the_image_that_cannot_be_read_is_a_loss(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 16);
    bench.running(2, 2);
    bench.power_fail();
    for line in [ARM_LINE, PROGRESS_LINE, HEAD_LINE, MAPPING_LINE, ITEM_LINE + 7] {
        bench.read_error = Some(line);
        bench.power_up();
        assert_eq!(bench.boot(), state::LOSS, "line {line}");
        assert!(bench.injected.is_empty());
    }
}

/// Whoever loads from a window that opens early sees memory that the replay has not mended.
pub fn the_window_stays_closed_until_the_replay_is_over_and_the_card_is_armed(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 17);
    let items = bench.running(3, 5);
    bench.power_fail();
    let Some(ArmWord::Running(generation)) = bench.medium.arm() else { panic!() };
    bench.power_up();
    while !bench.high(|p| p.window) {
        bench.step();
        assert!(bench.now < 100_000, "the window never opens");
    }
    assert_eq!(bench.medium.arm(), Some(ArmWord::Running(generation + 1)), "open before it was armed");
    bench.check_injected(&items);
    assert!(bench.running.is_none(), "open while an item runs");
}

/// Drains, resets, loads and replays while the rest of the card has something under way every now
/// and then.
pub fn nothing_begins_while_something_is_under_way(dut: &mut dyn Dut) {
    let rounds = if dut.back_end() == "verilator" { 12 } else { 2 };
    let mut bench = Bench::new(dut, 24);
    bench.restless = 0.05;
    for _ in 0..rounds {
        let items = bench.running(3, 3);
        bench.power_fail();
        bench.power_up();
        assert_eq!(bench.boot(), state::OPEN);
        bench.check_injected(&items);
        bench.step();
        bench.pulse("load_request");
        (0..200).for_each(|_| bench.step());
        bench.pulse("function_reset");
        bench.run_to_state(&[state::OPEN]);
        bench.pulse("shut_down");
        bench.run_to_state(&[state::SAVED]);
        bench.pulse("function_reset");
        bench.step();
        bench.run_to_state(&[state::OPEN]);
        bench.power_fail();
    }
}

pub fn a_line_that_cannot_be_written_is_a_loss_and_never_a_save(dut: &mut dyn Dut) {
    // Two commands, two that wait and a store.
    for line in [MAPPING_LINE, MAPPING_LINE + 9, ITEM_LINE, ITEM_LINE + 8, ITEM_LINE + 9, HEAD_LINE] {
        let mut bench = Bench::new(dut, 25);
        bench.running(2, 1);
        let Some(ArmWord::Running(generation)) = bench.medium.arm() else { panic!() };
        bench.refused = Some(line);
        bench.set(|p| p.power_fail, true);
        for _ in 0..1500 {
            bench.step();
            assert!(!bench.high(|p| p.save_done), "a save without line {line}");
        }
        assert_ne!(bench.medium.head().generation, generation, "a head over a line that was refused");
        bench.refused = None;
        bench.cut();
        assert_eq!(bench.boot(), state::LOSS, "the boot behind a save without line {line}");
    }
    for line in [ARM_LINE, PROGRESS_LINE] {
        let mut bench = Bench::new(dut, 26);
        bench.running(2, 2);
        bench.power_fail();
        bench.refused = Some(line);
        bench.power_up();
        assert_eq!(bench.boot(), state::LOSS, "a boot that cannot write line {line}");
    }
}

pub fn a_loss_is_acknowledged_where_software_can_have_read_of_it(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 27);
    let lost = SaveHead { stores_lost: 3, lost_first: 0x40, lost_last: 0x80, ..SaveHead::default() };
    bench.running(20, 20);
    bench.lost = lost;
    bench.pulse("acknowledge_loss");
    assert_eq!(bench.lost.stores_lost, 0, "an open card keeps what is acknowledged");
    bench.lost = lost;
    bench.power_fail();
    bench.power_up();
    bench.lost = lost;
    bench.dut.set("acknowledge_loss", true);
    for _ in 0..400 {
        assert!([state::BOOTING, state::REPLAYING].contains(&bench.state()));
        bench.step();
        assert_eq!(bench.lost.stores_lost, 3, "forgotten in a boot");
    }
    bench.dut.set("acknowledge_loss", false);
    assert_eq!(bench.boot(), state::LOSS);
    bench.lost = lost;
    bench.pulse("acknowledge_loss");
    assert_eq!(bench.lost.stores_lost, 0);
    bench.run_to_state(&[state::OPEN]);
    bench.tables = Tables::random(&mut bench.rng, 1, 1);
    bench.power_fail();
    bench.firmware = None;
    bench.power_up();
    assert_eq!(bench.boot(), state::FIRMWARE_MISSING);
    bench.lost = lost;
    bench.pulse("acknowledge_loss");
    assert_eq!(bench.lost.stores_lost, 0, "a card without its firmware keeps what is acknowledged");
}

pub fn a_loss_leaves_nothing_of_the_replay_behind(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 28);
    bench.running(4, 0);
    bench.power_fail();
    bench.power_up();
    while bench.injected.len() < 4 {
        bench.step();
        assert!(bench.now < 100_000, "nothing is replayed");
    }
    bench.cut();
    bench.read_error = Some(ITEM_LINE);
    bench.power_up();
    assert_eq!(bench.boot(), state::LOSS);
    bench.pulse("acknowledge_loss");
    bench.run_to_state(&[state::OPEN]);
    bench.step();
    assert!(!bench.high(|p| p.redo), "an open card does again what a replay had counted");
    // And one in the middle of an item.
    let mut bench = Bench::new(bench.dut, 36);
    bench.running(3, 0);
    bench.power_fail();
    bench.fail_item = Some(2);
    bench.power_up();
    assert_eq!(bench.boot(), state::LOSS);
    bench.pulse("acknowledge_loss");
    bench.run_to_state(&[state::OPEN]);
    bench.step();
    assert!(bench.high(|p| p.gate_ready), "an open card holds up who waits");
}

pub fn an_item_that_takes_long_is_waited_for(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 37);
    let items = bench.running(2, 2);
    bench.power_fail();
    bench.longer = 200;
    bench.power_up();
    assert_eq!(bench.boot(), state::OPEN);
    bench.check_injected(&items);
}

/// Who asks sees the outcome of a load as soon as nothing says that it is under way.
pub fn the_state_shows_the_outcome_of_a_load(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 29);
    bench.power_up();
    assert_eq!(bench.boot(), state::NO_FIRMWARE);
    bench.firmware = Some(99);
    bench.dut.set("load_slot", 1u64);
    bench.pulse("load_request");
    bench.dut.set("load_slot", 0u64);
    let mut loads = 0;
    for _ in 0..200 {
        let loading = bench.loading > 0;
        loads += usize::from(loading);
        assert!(!loading || bench.dut.get_u64("firmware_slot") == 1, "another slot is loaded than was asked for");
        let waits = loading || bench.dut.get_bool("load_waits");
        assert!(waits || bench.state() == state::OPEN, "the state hides the outcome of a load");
        bench.step();
    }
    assert!(loads > 0 && bench.in_force == 99);
}

pub fn power_that_fails_in_a_drain_or_a_closed_card_is_served(dut: &mut dyn Dut) {
    for case in 0..4u64 {
        let mut bench = Bench::new(dut, 30 + case);
        let items = bench.running(1, 1);
        match case {
            0 => bench.pulse("shut_down"),
            1 => bench.pulse("function_reset"),
            2 => {
                bench.cut();
                assert_eq!(bench.boot(), state::LOSS);
            }
            _ => {
                bench.power_fail();
                bench.firmware = None;
                bench.power_up();
                assert_eq!(bench.boot(), state::FIRMWARE_MISSING);
            }
        }
        (0..40).for_each(|_| bench.step());
        bench.power_fail();
        bench.firmware = Some(77);
        bench.cut();
        if case == 2 {
            assert_eq!(bench.boot(), state::LOSS, "a loss that the power overtakes");
        } else {
            assert_eq!(bench.boot(), state::OPEN, "case {case}");
            bench.check_injected(&items);
        }
    }
}

pub fn a_head_or_a_firmware_word_that_no_card_writes_is_not_taken(dut: &mut dyn Dut) {
    let mut bench = Bench::new(dut, 34);
    let items = bench.running(32, 64);
    assert_eq!(items.len(), MAX_ITEMS);
    bench.power_fail();
    let extra = SavedItem { order: 1, kind: ITEM_STORE, ..SavedItem::default() };
    bench.medium.set(ITEM_LINE + 2 * MAX_ITEMS, [7; 64]);
    bench.medium.set(ITEM_LINE + 2 * MAX_ITEMS + 1, extra.to_bytes());
    let head = SaveHead { items: MAX_ITEMS as u16 + 1, ..bench.medium.head() };
    let body: Vec<u8> =
        (MAPPING_LINE..ITEM_LINE + 2 * MAX_ITEMS + 2).flat_map(|line| bench.medium.line(line)).collect();
    let mut head = head.to_bytes();
    seal::seal(&body, &mut head);
    bench.medium.set(HEAD_LINE, head);
    bench.power_up();
    assert_eq!(bench.boot(), state::LOSS, "an image of more items than a card has");
    for word in [firmware_word(2, 77), firmware_word(1, 77) ^ 1 << 63, firmware_word(1, 77) ^ 1 << 56] {
        let mut bench = Bench::new(bench.dut, 35);
        bench.firmware = Some(77);
        bench.medium.set_word(ARM_LINE, 8, word);
        bench.power_up();
        assert_eq!(bench.boot(), state::NO_FIRMWARE, "firmware of the word {word:#018x}");
    }
}
