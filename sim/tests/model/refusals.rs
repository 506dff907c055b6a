//! Everything that the card refuses, with its status, and that a refusal has no effect.

use crate::support::scenario::{boot, compare, filled, opened};
use crate::support::*;
use nearpm_interface::command::{Command, Opcode, slot_offset};
use nearpm_interface::firmware::IMAGE_BYTES;
use nearpm_interface::geometry::{
    FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE, LINE_U64, MAP_ENTRIES, MAX_COMMAND_BYTES, POOLS_BASE, SAVE_BASE,
};
use nearpm_interface::registers::{self, control, firmware_status, state};
use nearpm_interface::status::Status;
use nearpm_sim::core::{Access, CardCore, Medium};

#[test]
fn each_malformed_command_has_its_status_and_no_effect() {
    let (mut rig, oracle) = opened(None);
    let log = undo(5, 0, 64, SLOTS);
    let cases = [
        (0, Command { opcode: 0x1f, ..log }, Status::BadOpcode),
        (0, Command { opcode: 32, ..log }, Status::BadOpcode),
        (0, Command { opcode: 0xff, ..log }, Status::BadOpcode),
        (1, Command { pool: 9, ..map_command(POOLS_BASE) }, Status::NotPrivileged),
        (1, unmap(), Status::NotPrivileged),
        (0, Command { participants: 0b10, ..log }, Status::BadParticipants),
        (0, Command { participants: 0b11, ..log }, Status::BadParticipants),
        (0, map_command(POOLS_BASE), Status::MapExists),
        (0, Command { pool: 9, ..map_command(POOLS_BASE + 8) }, Status::Misaligned),
        (0, Command { pool: 9, auxiliary: RING + 8, ..map_command(POOLS_BASE) }, Status::Misaligned),
        (0, Command { pool: 9, ..map_command(POOLS_BASE - 64) }, Status::OutOfRange),
        (0, Command { pool: 9, destination: PM_BYTES as u64, ..map_command(POOLS_BASE) }, Status::OutOfRange),
        (0, Command { pool: 9, destination: u64::MAX, ..map_command(POOLS_BASE) }, Status::OutOfRange),
        (0, Command { pool: 9, auxiliary: POOL_BYTES - 64, ..map_command(POOLS_BASE) }, Status::OutOfRange),
        (0, Command { pool: 9, auxiliary: u64::MAX - 63, ..map_command(POOLS_BASE) }, Status::OutOfRange),
        (0, Command { pool: 8, ..log }, Status::Unmapped),
        (0, Command { thread: 1, ..log }, Status::Unmapped),
        (0, Command { length: 0, ..log }, Status::BadLength),
        (0, Command { length: MAX_COMMAND_BYTES + 1, ..log }, Status::BadLength),
        (0, Command { destination: SLOTS + 8, ..log }, Status::Misaligned),
        (0, Command { destination: RING + 4, ..commit(5) }, Status::Misaligned),
        (0, apply(SLOTS + 1, 2, 8), Status::Misaligned),
        (0, Command { source: POOL_BYTES - 63, ..log }, Status::OutOfRange),
        (0, Command { source: u64::MAX - 3, ..log }, Status::OutOfRange),
        (0, Command { destination: RING - 64, ..log }, Status::OutOfRange),
        (0, Command { destination: RING + RING_BYTES - 64, ..log }, Status::OutOfRange),
        (0, Command { destination: 64, ..commit(5) }, Status::OutOfRange),
        (0, apply(0, 64, 8), Status::OutOfRange),
        (0, Command { source: SLOTS + 32, ..log }, Status::Overlap),
        (0, Command { opcode: Opcode::MirrorLog as u8, auxiliary: SLOTS + 64, ..log }, Status::Overlap),
        (0, undo(4, 0, 64, SLOTS), Status::StaleTransaction),
    ];
    for (n, (page, command, status)) in cases.iter().enumerate() {
        let before = rig.status(*page);
        let record = rig.run_on(*page, *command);
        assert_eq!(record.status, status.code(), "case {n}: {status:?}");
        let after = rig.status(*page);
        assert_eq!((after.accepted, after.refused), (before.accepted, before.refused + 1), "case {n}");
        assert_eq!((after.last_bad_tag, after.last_bad_status), (record.tag, status.code()));
    }
    rig.settle();
    compare(&rig, &oracle, "refusals").unwrap();
    assert_eq!(rig.get(registers::COMMANDS_REFUSED), cases.len() as u32);
    assert_eq!(rig.run(log).status, 0, "and the card goes on");
}

#[test]
fn the_longest_and_the_shortest_commands_and_the_edges_of_a_pool_are_taken() {
    let (mut rig, _) = opened(None);
    let own = Command { participants: 1, ..undo(5, POOL_BYTES / 2 - 64, 1, RING + RING_BYTES - 128) };
    assert_eq!(rig.run(own).status, 0);
    assert_eq!(rig.run(undo(5, 0, 200 * 1024, SLOTS)).status, 0);
    let at_end = Command { opcode: Opcode::ShadowCopy as u8, ..apply(0, POOL_BYTES / 2, MAX_COMMAND_BYTES) };
    assert_eq!(rig.run(at_end).status, 0);
}

#[test]
fn the_seventeenth_mapping_is_refused() {
    let (mut rig, _) = opened(None);
    for thread in 1..MAP_ENTRIES as u16 {
        rig.map(POOL, thread, POOLS_BASE);
    }
    assert_eq!(rig.get(registers::MAPPED), 0xffff);
    let next = Command { thread: 99, ..map_command(POOLS_BASE) };
    assert_eq!(rig.run(next).status, Status::MapFull.code());
    assert_eq!(rig.run(unmap()).status, 0);
    assert_eq!(rig.run(next).status, 0);
}

#[test]
fn a_damaged_slot_is_dropped_and_counted() {
    let (mut rig, oracle) = opened(None);
    let mut bytes = undo(5, 0, 64, SLOTS).encode();
    bytes[20] ^= 1;
    rig.post_raw(2, bytes, u64::MAX);
    let status = rig.status(2);
    assert_eq!((status.dropped, status.accepted, status.refused), (1, 0, 0));
    assert_eq!(rig.get(registers::COMMANDS_DROPPED), 1);
    rig.settle();
    compare(&rig, &oracle, "damaged").unwrap();
}

#[test]
fn a_command_may_come_in_any_pieces() {
    let (mut rig, mut oracle) = opened(None);
    let command = undo(5, 0, 64, SLOTS).encode();
    for strobes in [0xff00_0000_0000_0000u64, 0x00ff, 0x00ff_ffff_0000_ff00, 0, 0x0000_0000_ffff_0000] {
        rig.ask(Access::CommandWrite { offset: slot_offset(3, 15), data: command, strobes });
    }
    rig.settle();
    assert_eq!(rig.status(3).accepted, 1);
    oracle.apply(&Access::CommandWrite { offset: 0, data: command, strobes: u64::MAX });
    compare(&rig, &oracle, "pieces").unwrap();
    // The rest of the page takes no commands.
    assert!(!rig.ask(Access::CommandWrite { offset: 3 * 4096 + 16 * 64, data: command, strobes: u64::MAX }).error);
    assert_eq!(rig.status(3).accepted, 1);
}

#[test]
fn host_accesses_to_what_the_card_keeps_and_beyond_memory_are_refused() {
    let (mut rig, _) = opened(None);
    let data = [0xee; LINE];
    let before = rig.card.medium().clone();
    let write = |address| Access::PmWrite { address, data, strobes: u64::MAX };
    let refused = [
        write(SAVE_BASE),
        write(SAVE_BASE + 0xffc0),
        write(FIRMWARE_BASE),
        write(FIRMWARE_BASE + FIRMWARE_SLOT_BYTES - 64),
        write(PM_BYTES as u64),
        write(1 << 39),
        Access::PmRead { address: PM_BYTES as u64 },
    ];
    for access in &refused {
        assert!(rig.ask(access.clone()).error, "{access:?}");
    }
    assert_eq!(rig.get(registers::HOST_REFUSED), refused.len() as u32);
    assert!(!rig.ask(write(FIRMWARE_BASE + FIRMWARE_SLOT_BYTES)).error, "the other slot may be written");
    assert!(!rig.ask(Access::PmRead { address: SAVE_BASE }).error);
    rig.settle();
    assert_eq!(before.bytes[..0x21000], rig.card.medium().bytes[..0x21000]);
}

#[test]
fn registers_that_are_not_written_say_what_the_card_is() {
    let (mut rig, _) = opened(None);
    assert_eq!(rig.get(registers::ID), registers::ID_VALUE);
    assert_eq!(rig.get(registers::GEOMETRY), 4 | 32 << 8 | 64 << 16 | 16 << 24);
    assert_eq!(rig.get(registers::PM_BYTES_LO) as usize, PM_BYTES);
    rig.set(registers::ID, 5);
    assert_eq!(rig.get(registers::ID), registers::ID_VALUE);
    rig.set(registers::DEVICE_NUMBER, 3);
    let log = undo(5, 0, 64, SLOTS);
    assert_eq!(rig.run(Command { participants: 1 << 3, ..log }).status, 0);
    assert_eq!(rig.run(Command { participants: 1, ..log }).status, Status::BadParticipants.code());
    assert_eq!(rig.get(registers::GENERATION), 1);
    assert_eq!(rig.get(0x0fc), 0, "a hole");
}

#[test]
fn completion_rings_wrap_with_a_rising_lap_and_pages_without_one_get_no_records() {
    let (mut rig, _) = opened(None);
    rig.set(registers::completion_ring(1) + 8, 1);
    rig.set(registers::COMPLETION1_LO, BUS as u32 + 0x8000);
    let laps: Vec<_> = (0..5).map(|_| rig.run_on(1, fence()).lap).collect();
    assert_eq!(laps, [1, 1, 2, 2, 3]);
    rig.set(registers::CONTROL, control::FUNCTION_RESET);
    rig.settle();
    rig.post_to(1, fence());
    rig.settle();
    assert_eq!(rig.status(1).refused, 1, "the mapping is gone");
    assert!(rig.records.is_empty(), "and so is the ring");
}

fn image() -> Vec<u8> {
    nearpm_firmware::standard().bytes().to_vec()
}

/// Writes an image to a slot over the window, loads it, and gives the outcome.
fn load_image(rig: &mut Rig, slot: u64, image: &[u8]) -> u32 {
    for (n, line) in image.chunks_exact(LINE).enumerate() {
        let address = FIRMWARE_BASE + slot * FIRMWARE_SLOT_BYTES + n as u64 * LINE_U64;
        rig.card.submit(Access::PmWrite { address, data: line.try_into().unwrap(), strobes: u64::MAX });
    }
    rig.settle();
    rig.set(registers::FIRMWARE_LOAD, slot as u32);
    rig.settle();
    rig.get(registers::FIRMWARE_STATUS)
}

#[test]
fn a_blank_card_takes_firmware_and_opens_with_it_from_then_on() {
    let mut rig = Rig::power_up(Medium::blank(PM_BYTES));
    rig.until(state::NO_FIRMWARE);
    rig.rings();
    assert_eq!(rig.run(map_command(POOLS_BASE)).status, Status::BadOpcode.code());
    assert_eq!(load_image(&mut rig, 1, &image()), firmware_status::OK | 1 << 8);
    assert_eq!(rig.get(registers::STATE), state::OPEN);
    rig.map(POOL, 0, POOLS_BASE);
    let (mut again, _) = boot(rig.cut(1), None);
    assert_eq!(again.get(registers::FIRMWARE_STATUS), firmware_status::OK | 1 << 8);
    assert_eq!(again.get(registers::FIRMWARE_CRC), nearpm_firmware::standard().crc());
    assert_eq!(again.get(registers::GENERATION), 2);
}

#[test]
fn firmware_that_is_wrong_is_refused_and_the_old_one_stays_in_force() {
    let (mut rig, _) = opened(None);
    let crc = rig.get(registers::FIRMWARE_CRC);
    let broken = |at: usize| {
        let mut image = image();
        image[at] ^= 1;
        image
    };
    let sealed = |at: usize| {
        let mut image = broken(at);
        let (head, body) = image.split_at_mut(LINE);
        nearpm_interface::seal::seal(body, head.try_into().unwrap());
        image
    };
    let cases = [
        (sealed(0), firmware_status::BAD_MAGIC),
        (sealed(4), firmware_status::BAD_VERSION),
        (sealed(6), firmware_status::BAD_VERSION),
        (broken(60), firmware_status::BAD_CRC),
        (broken(IMAGE_BYTES - 1), firmware_status::BAD_CRC),
    ];
    for (image, status) in cases {
        assert_eq!(load_image(&mut rig, 1, &image), status);
        assert_eq!(rig.get(registers::FIRMWARE_CRC), crc);
        assert_eq!(rig.get(registers::STATE), state::OPEN);
    }
    rig.card.plant_memory_error(FIRMWARE_BASE + FIRMWARE_SLOT_BYTES + 128);
    assert_eq!(load_image(&mut rig, 1, &image()), firmware_status::MEMORY_ERROR);
    // Not while anything is live.
    rig.post(undo(5, 0, 4096, SLOTS));
    rig.set(registers::FIRMWARE_LOAD, 0);
    assert_eq!(rig.get(registers::FIRMWARE_STATUS) & 0xff, firmware_status::NOT_IDLE);
    rig.settle();
    assert_eq!(rig.run(undo(5, 0, 64, SLOTS)).status, 0);
}

#[test]
fn a_load_of_firmware_waits_for_the_load_or_the_reset_before_it() {
    let (mut rig, _) = opened(None);
    let mut broken = image();
    broken[60] ^= 1;
    assert_eq!(load_image(&mut rig, 1, &broken), firmware_status::BAD_CRC);
    for (loads, outcome) in [([0, 1], firmware_status::BAD_CRC), ([1, 0], firmware_status::OK)] {
        for slot in loads {
            rig.set(registers::FIRMWARE_LOAD, slot);
            assert_eq!(rig.get(registers::FIRMWARE_STATUS) & 0xff, firmware_status::BUSY);
        }
        rig.settle();
        assert_eq!(rig.get(registers::FIRMWARE_STATUS), outcome, "the second load's, and slot 0 in force");
    }
    rig.post(undo(5, 0, 4096, SLOTS));
    let accepted = rig.card.cycle() + 20;
    rig.card.advance_to(accepted);
    rig.set(registers::CONTROL, control::FUNCTION_RESET);
    rig.set(registers::FIRMWARE_LOAD, 0);
    assert_eq!(
        (rig.get(registers::STATE), rig.get(registers::FIRMWARE_STATUS)),
        (state::BOOTING, firmware_status::BUSY)
    );
    rig.settle();
    assert_eq!(rig.get(registers::FIRMWARE_STATUS), firmware_status::OK);
    assert_eq!(rig.get(registers::STATE), state::OPEN);
    rig.set(registers::CONTROL, control::SHUT_DOWN);
    rig.set(registers::FIRMWARE_LOAD, 0);
    rig.settle();
    assert_eq!(rig.get(registers::FIRMWARE_STATUS), firmware_status::NOT_IDLE, "the card is shut down");
}

#[test]
fn a_load_of_firmware_that_a_boot_meets_is_not_done_behind_it() {
    let mut rig = Rig::power_up(filled());
    // The card is reading the image that the word names.
    while rig.get(registers::FIRMWARE_STATUS) & 0xff != firmware_status::BUSY {
        let next = rig.card.cycle() + 1;
        rig.card.advance_to(next);
    }
    rig.set(registers::FIRMWARE_LOAD, 1);
    rig.until(state::OPEN);
    rig.settle();
    assert_ne!(rig.get(registers::FIRMWARE_STATUS), firmware_status::BAD_MAGIC, "the empty slot was looked at");
}

#[test]
fn firmware_that_the_word_does_not_name_is_not_loaded_at_boot() {
    let mut medium = filled();
    medium.bytes[FIRMWARE_BASE as usize + 100] ^= 1;
    let mut rig = Rig::power_up(medium);
    rig.until(state::NO_FIRMWARE);
    assert_eq!(rig.get(registers::FIRMWARE_STATUS) & 0xff, firmware_status::BAD_CRC);
}

#[test]
fn a_save_whose_firmware_is_gone_waits_for_a_decision() {
    let (mut rig, _) = opened(None);
    rig.post(undo(5, 0, 4096, SLOTS));
    let accepted = rig.card.cycle() + 20;
    rig.card.advance_to(accepted);
    let mut medium = rig.cut(1);
    medium.bytes[FIRMWARE_BASE as usize + 100] ^= 1;
    let mut again = Rig::power_up(medium);
    again.until(state::FIRMWARE_MISSING);
    assert!(again.ask(Access::PmRead { address: POOLS_BASE }).error);
    again.set(registers::CONTROL, control::ACKNOWLEDGE_LOSS);
    again.until(state::NO_FIRMWARE);
    assert!(!again.ask(Access::PmRead { address: POOLS_BASE }).error);
}

#[test]
fn a_refusal_needs_no_free_slot_and_a_command_waits_for_one() {
    let (mut rig, _) = opened(None);
    for n in 0..33 {
        rig.post(undo(5, 0, 16384, SLOTS + n % 2 * 32768));
    }
    rig.settle();
    assert!(rig.get(registers::STALL_REQUEST_FULL) > 100);
    assert_eq!(rig.get(registers::COMMANDS_HELD), 31);
    for _ in 0..32 {
        rig.post(undo(5, 0, 16384, SLOTS));
    }
    let bad = rig.post(undo(5, 0, 0, SLOTS));
    let record = rig.finish(bad);
    assert_eq!(record.status, Status::BadLength.code());
    assert!(rig.status(0).retired < 60, "before those in front of it");
}
