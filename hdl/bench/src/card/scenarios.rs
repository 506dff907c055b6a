//! Boot, map, log, store, commit, power-fail, replay: what the whole card has to do.

use super::{Card, Cards, PM_BYTES, card};
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::firmware::IMAGE_LINES;
use nearpm_interface::geometry::{FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, POOLS_BASE, SAVE_BASE};
use nearpm_interface::media::{self, EntryHead, EntryKind, RING_HEAD_BYTES};
use nearpm_interface::registers::{self, control, firmware_status, state};
use nearpm_interface::save::{ARM_LINE, ArmWord};
use nearpm_interface::seal;
use nearpm_interface::status::Status;

const POOL: u32 = 5;
pub(super) const THREAD: u16 = 2;
const POOL_BYTES: u64 = 1 << 20;
/// Offset of the log ring in the pool.
pub(super) const RING: u64 = 0x8_0000;
const RING_BYTES: u64 = 0x2_0000;
pub(super) const ENTRY: u64 = RING + RING_HEAD_BYTES;

pub(super) fn map() -> Command {
    Command {
        opcode: Opcode::Map as u8,
        thread: THREAD,
        pool: POOL,
        source: POOLS_BASE,
        destination: POOL_BYTES,
        auxiliary: RING,
        length: RING_BYTES as u32,
        sequence: 0,
        ..Command::default()
    }
}

pub(super) fn undo(txid: u64, offset: u64, length: u32, entry: u64, sequence: u64) -> Command {
    Command {
        opcode: Opcode::UndoLog as u8,
        thread: THREAD,
        pool: POOL,
        txid,
        source: offset,
        destination: entry,
        sequence,
        length,
        tag: 0x1000 + sequence as u32,
        ..Command::default()
    }
}

pub(super) fn commit(txid: u64) -> Command {
    Command {
        opcode: Opcode::Commit as u8,
        thread: THREAD,
        pool: POOL,
        txid,
        destination: RING,
        auxiliary: seal::seal_word(txid),
        tag: 0x2000,
        ..Command::default()
    }
}

pub(super) fn mapped(cards: &Cards, seed: u64) -> Card {
    let mut card = cards.opened(seed);
    card.command(0, 0, &map());
    let status = card.wait_retired(0);
    assert_eq!((status.accepted, status.retired, status.refused), (1, 1, 0), "{status:?}");
    assert_eq!(card.read_register(registers::MAPPED), 1);
    card
}

fn pool(memory: &[u8], offset: u64) -> &[u8] {
    &memory[(POOLS_BASE + offset) as usize..]
}

pub fn the_card_is_one_file_that_names_its_own_hash(cards: &Cards) {
    let generated = card();
    let json: serde_json::Value = serde_json::from_str(&generated.ports_json).unwrap();
    let hash = json["build_hash"].as_str().unwrap();
    let constant = format!("NPM_BUILD_HASH = 32'h{hash};");
    assert_eq!(generated.verilog.matches(&constant).count(), 1);
    let zeroed = generated.verilog.replace(&constant, "NPM_BUILD_HASH = 32'h00000000;");
    assert_eq!(format!("{:08x}", crc32c::crc32c(zeroed.as_bytes())), hash);
    let names: Vec<_> = json["ports"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    for name in ["clk", "rst_n", "power_fail", "save_done", "m_axi_mem0_arqos", "s_axi_host_wstrb"] {
        assert!(names.contains(&name), "{name}");
    }
    let mut running = cards.opened(1);
    let shown = running.read_register(registers::BUILD_HASH);
    assert_eq!(format!("{shown:08x}"), hash);
}

pub fn a_blank_card_takes_firmware_and_opens(cards: &Cards) {
    let mut card = cards.power_up(vec![0; PM_BYTES as usize], 1);
    card.wait_for_state(state::NO_FIRMWARE);
    let image = nearpm_firmware::standard();
    for line in 0..IMAGE_LINES {
        let bytes = image.bytes()[line * 64..][..64].try_into().unwrap();
        card.post(false, FIRMWARE_BASE + 64 * line as u64, bytes, u64::MAX);
    }
    card.drain(false);
    // A host line is idle when its write has retired.
    for _ in 0..200 {
        card.step();
    }
    card.write_register(registers::FIRMWARE_LOAD, 0);
    card.wait_for_state(state::OPEN);
    assert_eq!(card.read_register(registers::FIRMWARE_STATUS), firmware_status::OK);
    assert_eq!(card.read_register(registers::FIRMWARE_CRC), image.crc());
    // The slot in force and the save area are not the host's to write; the other slot is.
    let refused = card.host_write_errors();
    card.store(FIRMWARE_BASE, &[1; 8]);
    card.store(SAVE_BASE, &[1; 8]);
    card.store(PM_BYTES, &[1; 8]);
    card.drain(false);
    assert_eq!(card.host_write_errors(), refused + 3);
    card.store(FIRMWARE_BASE + FIRMWARE_SLOT_BYTES, &[1; 8]);
    card.drain(false);
    assert_eq!(card.host_write_errors(), refused + 3);
    let (memory, done) = card.power_fail(100_000);
    assert!(done);
    let mut card = cards.power_up(memory, 2);
    card.wait_for_state(state::OPEN);
}

pub fn an_undo_log_is_the_entry_that_the_media_format_defines(cards: &Cards) {
    let mut card = mapped(cards, 1);
    for (i, length) in [64u32, 1, 63, 65, 4096, 100_000].into_iter().enumerate() {
        let (offset, sequence) = (0x1000 + 7 * i as u64, i as u64 + 1);
        let old: Vec<u8> = (0..length).map(|b| (b as u64 * 31 + sequence) as u8).collect();
        let at = (POOLS_BASE + offset) as usize;
        card.memory[at..at + old.len()].copy_from_slice(&old);
        card.command(1, 0, &undo(9, offset, length, ENTRY, sequence));
        let status = card.wait_retired(1);
        assert_eq!((status.accepted, status.failed), (sequence as u32, 0), "{status:?}");
        let slot = &pool(&card.memory, ENTRY)[..(RING_BYTES - RING_HEAD_BYTES) as usize];
        let head = EntryHead::decode(slot).expect("a valid entry");
        let wanted = EntryHead {
            magic: media::ENTRY_MAGIC,
            kind: EntryKind::Undo as u8,
            version: media::ENTRY_VERSION,
            thread: THREAD,
            sequence,
            txid: 9,
            offset,
            length,
            pool: POOL,
            ..EntryHead::default()
        };
        assert_eq!(EntryHead { crc: 0, ..head }, wanted);
        let data = media::entry_data(offset) as usize;
        assert_eq!(&slot[data..data + old.len()], &old[..]);
    }
}

pub fn a_store_behind_a_log_does_not_pass_it(cards: &Cards) {
    let mut card = mapped(cards, 2);
    card.memory[(POOLS_BASE + 0x2000) as usize..][..64].fill(0x11);
    // Both are in flight at once: the log is accepted, then the store arrives.
    card.command(1, 0, &undo(3, 0x2000, 64, ENTRY, 1));
    card.store(POOLS_BASE + 0x2000, &[0x22; 64]);
    let (line, error) = card.load(false, POOLS_BASE + 0x2000);
    assert!(!error && line == [0x22; 64]);
    card.wait_retired(1);
    for _ in 0..200 {
        card.step();
    }
    let slot = pool(&card.memory, ENTRY);
    assert!(EntryHead::decode(&slot[..4096]).is_some());
    assert_eq!(slot[64..128], [0x11; 64], "the log holds the old value");
    assert_eq!(pool(&card.memory, 0x2000)[..64], [0x22; 64]);
    assert_eq!(card.read_register(registers::HOST_HELD), 2);
}

pub fn refusals_have_no_effect_and_say_why(cards: &Cards) {
    let mut card = mapped(cards, 3);
    let before = card.memory.clone();
    let good = undo(3, 0x2000, 64, ENTRY, 1);
    let wrong = [
        (Command { opcode: 30, ..good }, Status::BadOpcode),
        (Command { opcode: 200, ..good }, Status::BadOpcode),
        (Command { length: 0, ..good }, Status::BadLength),
        (Command { length: 256 * 1024 + 1, ..good }, Status::BadLength),
        (Command { source: POOL_BYTES - 32, ..good }, Status::OutOfRange),
        (Command { source: u64::MAX - 63, ..good }, Status::OutOfRange),
        (Command { destination: RING - 64, ..good }, Status::OutOfRange),
        (Command { pool: 6, ..good }, Status::Unmapped),
        (Command { thread: 3, ..good }, Status::Unmapped),
        (Command { destination: ENTRY + 8, ..good }, Status::Misaligned),
        (Command { source: ENTRY, ..good }, Status::Overlap),
        (Command { participants: 2, ..good }, Status::BadParticipants),
        (map(), Status::NotPrivileged),
        (Command { txid: 0, ..good }, Status::StaleTransaction),
    ];
    for (i, (command, status)) in wrong.into_iter().enumerate() {
        card.command(2, i % 16, &Command { tag: i as u32, ..command });
        let page = card.page_status(2);
        assert_eq!(page.refused, i as u32 + 1, "{status:?}");
        assert_eq!(page.last_bad_status, status.code(), "{status:?}");
        assert_eq!(page.last_bad_tag, i as u32);
        assert_eq!(page.accepted, 0);
    }
    // Half a command is nothing.
    card.post(true, slot_offset(2, 0), good.encode(), u64::MAX >> 32);
    card.drain(true);
    let mut damaged = good.encode();
    damaged[20] ^= 1;
    card.post(true, slot_offset(2, 1), damaged, u64::MAX);
    card.drain(true);
    assert_eq!(card.page_status(2).dropped, 1);
    assert!(card.memory == before, "nothing was written");
}

pub fn a_transaction_commits_and_its_completion_is_recorded(cards: &Cards) {
    let mut card = mapped(cards, 4);
    let ring = 0x7_0000_0000u64;
    card.write_register(registers::completion_ring(1), ring as u32);
    card.write_register(registers::completion_ring(1) + 4, (ring >> 32) as u32);
    card.write_register(registers::COMPLETION1_SIZE, 4);
    for txid in 1..=20u64 {
        card.command(1, 0, &undo(txid, 0x3000, 200, ENTRY, txid));
        card.command(1, 1, &Command { flags: FLAG_COMPLETE, ..commit(txid) });
        card.wait_retired(1);
    }
    for _ in 0..100 {
        card.step();
    }
    let word = u64::from_le_bytes(pool(&card.memory, RING)[..8].try_into().unwrap());
    assert_eq!(seal::open_word(word), Some(20));
    let record = card.completion(ring, 3).unwrap();
    assert_eq!((record.tag, record.status, record.page, record.lap), (0x2000, 0, 1, 2));
    assert_eq!(record.order, 1 + 40);
    // The transaction is over: its log is refused.
    card.command(1, 0, &undo(20, 0x3000, 64, ENTRY, 1));
    assert_eq!(card.page_status(1).last_bad_status, Status::StaleTransaction.code());
}

/// Bytes of each log of [`work`].
const LOGGED: u64 = 2048;
/// Distance of what is logged, and of the entries.
const APART: u64 = 0x1000;

/// Logs that take a while, stores that wait for them, and a commit behind both.
fn work(card: &mut Card) {
    for i in 0..8u64 {
        let (offset, entry) = (0x4000 + APART * i, ENTRY + APART * i);
        let log = undo(1, offset, LOGGED as u32, entry, i + 1);
        card.post(true, slot_offset(1, i as usize), log.encode(), u64::MAX);
    }
    card.drain(true);
    for i in 0..8u64 {
        card.store(POOLS_BASE + 0x4000 + APART * i, &[0xc0 + i as u8; 64]);
        card.store(POOLS_BASE + 0x4000 + APART * i + LOGGED - 64 + 5, &[0xd0 + i as u8; 3]);
    }
    card.drain(false);
    card.command(1, 15, &commit(1));
}

fn check_work(memory: &[u8]) {
    for i in 0..8u64 {
        let slot = pool(memory, ENTRY + APART * i);
        let head = EntryHead::decode(&slot[..APART as usize]).unwrap_or_else(|| panic!("entry {i}"));
        assert_eq!((head.sequence, u64::from(head.length)), (i + 1, LOGGED));
        let data = &slot[64..64 + LOGGED as usize];
        assert!(data.iter().all(|b| *b == 0x40 + i as u8), "entry {i} holds the old value");
        let mut wanted = vec![0x40 + i as u8; LOGGED as usize];
        wanted[..64].fill(0xc0 + i as u8);
        wanted[LOGGED as usize - 59..][..3].fill(0xd0 + i as u8);
        assert_eq!(&pool(memory, 0x4000 + APART * i)[..LOGGED as usize], &wanted[..], "block {i}");
    }
    let word = u64::from_le_bytes(pool(memory, RING)[..8].try_into().unwrap());
    assert_eq!(seal::open_word(word), Some(1));
}

fn filled(card: &mut Card) {
    for i in 0..8usize {
        let at = (POOLS_BASE + 0x4000) as usize + APART as usize * i;
        card.memory[at..at + LOGGED as usize].fill(0x40 + i as u8);
    }
}

/// A cut so many cycles behind the last command; gives how many items the next life replays.
fn survives_a_cut(cards: &Cards, after: u64) -> u32 {
    let mut card = mapped(cards, 5);
    filled(&mut card);
    work(&mut card);
    for _ in 0..after {
        card.step();
    }
    let (memory, done) = card.power_fail(100_000);
    assert!(done);
    let mut card = cards.power_up(memory, after);
    card.wait_for_state(state::OPEN);
    check_work(&card.memory);
    assert_eq!(card.read_register(registers::MAPPED), 1, "the mapping is there again");
    let replayed = card.read_register(registers::REPLAYED);
    // And the card goes on.
    card.command(1, 0, &undo(2, 0x9000, 64, ENTRY, 1));
    let status = card.wait_retired(1);
    assert_eq!((status.refused, status.failed), (0, 0));
    replayed
}

/// The same at one moment.
pub fn accepted_work_survives_a_power_cut(cards: &Cards) {
    let replayed = survives_a_cut(cards, 0);
    assert!(replayed > 3, "the cut left {replayed} items");
}

pub fn accepted_work_survives_a_power_cut_at_any_moment(cards: &Cards) {
    let moments = (0..900).step_by(13);
    let longest = moments.map(|after| survives_a_cut(cards, after)).max().expect("there are moments");
    assert!(longest > 3, "some cut left {longest} items at most");
}

/// Distance of the writes of a replay at which it is cut: less than an item has, so that cuts fall
/// inside and behind each.
const WRITES_APART: usize = 7;

/// The memory of a card that was cut in its work; the cycles at which an unbroken replay of it has
/// lines answered; and what memory is then.
fn cut_in_work(cards: &Cards, seed: u64) -> (Vec<u8>, Vec<u64>, Vec<u8>) {
    let mut card = mapped(cards, 6);
    filled(&mut card);
    work(&mut card);
    let (saved, done) = card.power_fail(100_000);
    assert!(done);
    let mut card = cards.power_up(saved.clone(), seed);
    card.wait_for_state(state::OPEN);
    let mut writes: Vec<u64> = card.durable_at.values().copied().collect();
    writes.sort_unstable();
    (saved, writes, card.memory)
}

pub fn an_item_is_counted_only_when_it_is_durable(cards: &Cards) {
    const SEED: u64 = 21;
    let (saved, writes, replayed) = cut_in_work(cards, SEED);
    assert!(writes.len() > 10 * WRITES_APART, "the replay writes {} lines", writes.len());
    let mut resumed = 0;
    for &at in writes.iter().step_by(WRITES_APART) {
        let mut card = cards.power_up(saved.clone(), SEED);
        while card.now < at {
            card.step();
        }
        let (memory, _) = card.power_fail(0);
        let mut card = cards.power_up(memory, at);
        card.wait_for_state(state::OPEN);
        resumed += u32::from(card.read_register(registers::REPLAYED) > 0);
        let whole = pool(&card.memory, 0) == pool(&replayed, 0);
        assert!(whole, "the replay that was cut at cycle {at} had counted what was not durable");
    }
    assert!(resumed > 10, "only {resumed} cuts left something to replay");
}

pub fn a_replay_that_is_cut_again_and_again_ends_in_the_same_memory(cards: &Cards) {
    let (saved, writes, _) = cut_in_work(cards, 0);
    for step in [40u64, 131, 400, 997] {
        let mut memory = saved.clone();
        let mut cuts = 0;
        for seed in 0.. {
            let mut card = cards.power_up(memory, seed);
            let mut open = false;
            for _ in 0..writes[0] + step * (seed + 1) {
                card.step();
                open = open || card.get("save_done") != 0;
            }
            let state = card.read_register(registers::STATE);
            if state == state::OPEN {
                check_work(&card.memory);
                break;
            }
            assert!(state == state::BOOTING || state == state::REPLAYING, "state {state}");
            memory = card.power_fail(step % 3 * 1000).0;
            cuts += 1;
        }
        println!("{cuts} cuts in steps of {step}");
    }
}

pub fn a_save_without_enough_energy_is_a_loss_and_says_so(cards: &Cards) {
    let mut card = mapped(cards, 7);
    filled(&mut card);
    work(&mut card);
    let (memory, done) = card.power_fail(60);
    assert!(!done);
    let mut card = cards.power_up(memory, 1);
    card.wait_for_state(state::LOSS);
    let (_, error) = card.load(false, POOLS_BASE);
    assert!(error, "the window is closed");
    card.write_register(registers::CONTROL, control::ACKNOWLEDGE_LOSS);
    card.wait_for_state(state::OPEN);
    let (_, error) = card.load(false, POOLS_BASE);
    assert!(!error);
}

pub fn a_clean_shutdown_and_a_function_level_reset(cards: &Cards) {
    let mut card = mapped(cards, 8);
    filled(&mut card);
    work(&mut card);
    card.write_register(registers::CONTROL, control::FUNCTION_RESET);
    for _ in 0..2000 {
        card.step();
    }
    check_work(&card.memory);
    assert_eq!(card.read_register(registers::MAPPED), 0);
    assert_eq!(card.read_register(registers::STATE), state::OPEN);
    card.write_register(registers::CONTROL, control::SHUT_DOWN);
    card.wait_for_state(state::SAVED);
    let at = SAVE_BASE as usize + ARM_LINE * 64;
    let arm = u64::from_le_bytes(card.memory[at..at + 8].try_into().unwrap());
    assert!(matches!(ArmWord::decode(arm), Some(ArmWord::Clean(_))));
    let (memory, _) = card.power_fail(1000);
    let mut card = cards.power_up(memory, 1);
    card.wait_for_state(state::OPEN);
    assert_eq!(card.read_register(registers::REPLAYED), 0);
}

/// Prints the figures that the documentation states.
pub fn figures(cards: &Cards) {
    let mut card = mapped(cards, 9);
    let posted = card.now;
    card.post(true, slot_offset(1, 0), undo(1, 0x2000, 64, ENTRY, 1).encode(), u64::MAX);
    card.drain(true);
    let accepted = card.last_command_answer();
    for _ in 0..300 {
        card.step();
    }
    let head = (POOLS_BASE + ENTRY) / 64;
    let durable = card.durable_at[&head].max(card.durable_at[&(head + 1)]);
    println!("64 B undo log: posted to durable {} cycles", durable - posted);
    println!("64 B undo log: accepted to durable {} cycles", durable - accepted);
    assert!(durable - accepted <= 60, "{}", durable - accepted);

    // A copy of 64 KiB, commands one after the other.
    let start = card.now;
    let reads = card.read_register(registers::UNIT_READ_LINES);
    for i in 0..4u64 {
        card.post(
            true,
            slot_offset(1, i as usize),
            undo(1, 0x2000 + 0x8000 * i, 0x4000, ENTRY + 0x5000 * i, i + 2).encode(),
            u64::MAX,
        );
    }
    card.drain(true);
    let status = card.wait_retired(1);
    assert_eq!((status.refused, status.failed), (0, 0), "{status:?}");
    let cycles = card.now - start;
    let lines = card.read_register(registers::UNIT_READ_LINES) - reads;
    println!("{lines} lines logged in {cycles} cycles: {:.2} lines a cycle", f64::from(lines) / cycles as f64);

    println!("{:.0} cycles a second, nothing to do", card.simulation_rate());
}

/// Cycles from the last beat of a write to its answer, where that has to matter.
const SLOW: u64 = 300;

/// What waits for a range is requested when the memory has answered the last write of what it waits
/// for.
pub fn a_range_is_released_when_the_memory_has_answered(cards: &Cards) {
    let mut card = mapped(cards, 10);
    card.write_latency = SLOW;
    let line = |offset: u64| (POOLS_BASE + offset) / 64;
    // A log, a store of the line that it covers, and a log of the line that was stored.
    card.command(1, 0, &undo(1, 0x2000, 64, ENTRY, 1));
    card.store(POOLS_BASE + 0x2000, &[0x22; 64]);
    card.drain(false);
    card.command(1, 1, &undo(1, 0x2000, 64, ENTRY + 0x1000, 2));
    card.wait_retired(1);
    let (first, stored) = (line(ENTRY), line(0x2000));
    let logged = card.durable_at[&first].max(card.durable_at[&(first + 1)]);
    assert!(card.written_at[&stored] > logged, "a store passed the answers to the log of its line");
    assert!(card.read_at[&stored] > card.durable_at[&stored], "a log passed the answer to the store of its line");
    // A commit behind a log of its thread.
    card.command(1, 2, &undo(1, 0x3000, 64, ENTRY, 3));
    card.command(1, 3, &commit(1));
    card.wait_retired(1);
    assert!(card.written_at[&line(RING)] > card.durable_at[&first], "a commit passed the answers to a log");
}

/// Completion records and the page's counters are what a program builds durability on.
pub fn what_is_shown_as_done_is_durable(cards: &Cards) {
    let mut card = mapped(cards, 11);
    let ring = 0x7_0000_0000u64;
    card.write_register(registers::completion_ring(1), ring as u32);
    card.write_register(registers::completion_ring(1) + 4, (ring >> 32) as u32);
    card.write_register(registers::COMPLETION1_SIZE, 4);
    card.write_latency = SLOW;
    for txid in 1..=3u64 {
        let index = 2 * (txid - 1);
        card.command(1, 0, &Command { flags: FLAG_COMPLETE, ..undo(txid, 0x3000, 200, ENTRY, txid) });
        card.command(1, 1, &Command { flags: FLAG_COMPLETE, ..commit(txid) });
        let is_there = |card: &Card, i| card.completion(ring, i % 16).is_some_and(|r| u64::from(r.lap) == i / 16 + 1);
        while !is_there(&card, index) {
            card.step();
            assert!(card.now < 100_000, "no completion record");
        }
        let head = EntryHead::decode(&pool(&card.memory, ENTRY)[..4096]);
        assert_eq!(head.map(|h| h.txid), Some(txid), "the record of a log came before its entry was durable");
        while card.page_status(1).retired < 2 * txid as u32 {
            assert!(card.now < 100_000, "the commit does not retire");
        }
        let word = u64::from_le_bytes(pool(&card.memory, RING)[..8].try_into().unwrap());
        assert_eq!(seal::open_word(word), Some(txid), "the page counted a commit before it was durable");
    }
}

/// Neighbours in a line belong to others.
pub fn a_commit_and_a_recover_write_exactly_their_bytes(cards: &Cards) {
    let mut card = mapped(cards, 12);
    let (offset, length) = (0x2000 + 61, 70u64);
    let home = (POOLS_BASE + offset) as usize;
    card.memory[home - 61..home + 131].fill(0x11);
    let ring = (POOLS_BASE + RING) as usize;
    card.memory[ring + 8..ring + 64].fill(0x77);
    card.command(1, 0, &undo(5, offset, length as u32, ENTRY, 1));
    // Somebody else commits bytes on both sides of the range, after the log and before the
    // rollback.
    card.wait_retired(1);
    card.memory[home - 61..home + 131].fill(0x22);
    let recover = Command {
        opcode: Opcode::Recover as u8,
        source: ENTRY + media::entry_data(offset),
        destination: offset,
        length: length as u32,
        ..undo(5, 0, 0, 0, 2)
    };
    card.command(1, 1, &recover);
    card.command(1, 2, &commit(5));
    let status = card.wait_retired(1);
    assert_eq!((status.accepted, status.failed), (3, 0), "{status:?}");
    for (at, byte) in card.memory[home - 61..home + 131].iter().enumerate() {
        let inside = (61..61 + length as usize).contains(&at);
        assert_eq!(*byte, if inside { 0x11 } else { 0x22 }, "byte {at} around a rollback of {length} bytes");
    }
    assert!(card.memory[ring + 8..ring + 64].iter().all(|b| *b == 0x77), "bytes beside the epoch word");
}

/// Undo and redo in one command: the log must be durable before anything is overwritten, and a
/// replay must not log what the first run has already written.
pub fn an_undo_redo_that_is_cut_keeps_the_old_value_in_its_log(cards: &Cards) {
    // Several bursts, so that a cut can fall between them.
    const BYTES: usize = 4096;
    let (home, value, log) = (0x4000u64, RING + 0x1_0000, ENTRY);
    let mut resumed = 0;
    for after in (0..500).step_by(11) {
        let mut card = mapped(cards, 13);
        let at = |offset: u64| (POOLS_BASE + offset) as usize;
        card.memory[at(home)..][..BYTES].fill(0x01);
        card.memory[at(value)..][..BYTES].fill(0x02);
        let command = Command {
            opcode: Opcode::UndoRedo as u8,
            source: value,
            destination: home,
            auxiliary: log,
            length: BYTES as u32,
            ..undo(1, 0, 0, 0, 1)
        };
        card.command(1, 0, &command);
        (0..after).for_each(|_| card.step());
        let (memory, done) = card.power_fail(100_000);
        assert!(done);
        let mut card = cards.power_up(memory, after);
        card.wait_for_state(state::OPEN);
        resumed += card.read_register(registers::REPLAYED);
        let slot = &pool(&card.memory, log)[..0x2000];
        assert!(EntryHead::decode(slot).is_some(), "no entry after a cut at {after}");
        assert!(slot[64..64 + BYTES].iter().all(|b| *b == 1), "the log holds the new value after a cut at {after}");
        assert!(pool(&card.memory, home)[..BYTES].iter().all(|b| *b == 2), "the new value after a cut at {after}");
    }
    assert!(resumed > 10, "only {resumed} cuts fell into the command");
}

/// Cycles from a load to its data while four units copy as fast as the memory goes: each may have
/// asked for 64 lines before.
const LOAD_BOUND: u64 = 400;

/// A load takes its turn among the units, behind what they have asked for already.
pub fn a_flood_of_commands_delays_a_load_by_a_bounded_time(cards: &Cards) {
    const ENTRIES: u64 = 7;
    let mut card = mapped(cards, 14);
    for i in 0..ENTRIES {
        let log = undo(1, 0x4000, 0x4000, ENTRY + 0x4040 * i, i + 1);
        card.post(true, slot_offset(1, i as usize), log.encode(), u64::MAX);
    }
    card.drain(true);
    let (mut worst, mut loads) = (0, 0);
    while card.page_status(1).retired < ENTRIES as u32 - 3 {
        let start = card.now;
        let (_, error) = card.load(false, POOLS_BASE + 0x7_0000);
        assert!(!error);
        worst = worst.max(card.now - start);
        loads += 1;
    }
    println!("{loads} loads during a flood of commands: {worst} cycles at most");
    assert!(loads > 5, "there was no flood");
    assert!(worst <= LOAD_BOUND, "a flood of commands delays a load by {worst} cycles");
}

/// A drain for a reset or a shutdown is no moment at which a power cut may cost anything.
pub fn a_reset_or_a_shutdown_that_is_cut_loses_nothing(cards: &Cards) {
    for (request, stride) in [(control::FUNCTION_RESET, 67), (control::SHUT_DOWN, 71)] {
        for after in (0..900).step_by(stride) {
            let mut card = mapped(cards, 15);
            filled(&mut card);
            work(&mut card);
            card.write_register(registers::CONTROL, request);
            (0..after).for_each(|_| card.step());
            let (memory, done) = card.power_fail(100_000);
            assert!(done, "no save after {after} cycles of request {request:#x}");
            let mut card = cards.power_up(memory, after as u64);
            card.wait_for_state(state::OPEN);
            check_work(&card.memory);
        }
    }
}
