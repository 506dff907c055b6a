//! The whole card on Verilator: what a replay that was cut does again, and what it does not.

use nearpm_hdl_bench::card::Cards;
use nearpm_interface::command::{Command, Opcode, slot_offset};
use nearpm_interface::geometry::{LINE, POOLS_BASE, SAVE_BASE};
use nearpm_interface::media::RING_HEAD_BYTES;
use nearpm_interface::registers::{self, state};
use nearpm_interface::save::{ARM_LINE, ArmWord, HEAD_LINE};
use nearpm_interface::save::{ITEM_COMMAND, PROGRESS_LINE, ProgressWord};
use nearpm_interface::save::{ITEM_LINE, LINES_PER_ITEM, SaveHead, SavedItem};
use nearpm_interface::seal;

const POOL_BYTES: u64 = 1 << 20;
const RING: u64 = 0x8_0000;
const RING_BYTES: u64 = 0x4_0000;
const THREAD: u16 = 2;

fn command(opcode: Opcode, pool: u32) -> Command {
    Command { opcode: opcode as u8, thread: THREAD, pool, ..Command::default() }
}

fn base(pool: u32) -> u64 {
    POOLS_BASE + u64::from(pool) * POOL_BYTES
}

fn map(pool: u32) -> Command {
    Command {
        source: base(pool),
        destination: POOL_BYTES,
        auxiliary: RING,
        length: RING_BYTES as u32,
        ..command(Opcode::Map, pool)
    }
}

/// An undo log of 16 KiB, which keeps what is behind it waiting for a while.
fn log(pool: u32, txid: u64, index: u64) -> Command {
    Command {
        txid,
        source: 0x1_0000 * index,
        destination: RING + RING_HEAD_BYTES + 0x8000 * index,
        sequence: index + 1,
        length: 0x4000,
        ..command(Opcode::UndoLog, pool)
    }
}

fn commit(pool: u32, txid: u64) -> Command {
    Command { txid, destination: RING, auxiliary: seal::seal_word(txid), ..command(Opcode::Commit, pool) }
}

/// The memory that a power cut leaves behind logs, a commit and an unmap of pool 1, a commit of
/// pool 2 and logs of pool 3.
fn cut_in_work() -> Vec<u8> {
    let mut card = Cards::sound().opened(3);
    for pool in 1..=3 {
        card.command(0, 0, &map(pool));
    }
    card.wait_retired(0);
    assert_eq!(card.read_register(registers::MAPPED), 0b111);
    let work = [
        log(1, 1, 0),
        log(2, 7, 0),
        commit(2, 7),
        log(1, 1, 1),
        commit(1, 1),
        command(Opcode::Unmap, 1),
        log(3, 4, 0),
        log(3, 4, 1),
        log(3, 4, 2),
    ];
    for (slot, command) in work.iter().enumerate() {
        card.post(true, slot_offset(0, slot), command.encode(), u64::MAX);
    }
    card.drain(true);
    let (memory, done) = card.power_fail(100_000);
    assert!(done);
    memory
}

fn save_line(memory: &[u8], line: usize) -> [u8; LINE] {
    memory[SAVE_BASE as usize + line * LINE..][..LINE].try_into().unwrap()
}

fn word(memory: &[u8], line: usize) -> u64 {
    u64::from_le_bytes(save_line(memory, line)[..8].try_into().unwrap())
}

/// The commands of an image in their order.
fn commands(memory: &[u8]) -> Vec<Command> {
    let head = SaveHead::from_bytes(&save_line(memory, HEAD_LINE));
    let mut items: Vec<_> = (0..usize::from(head.items))
        .map(|i| {
            let at = ITEM_LINE + LINES_PER_ITEM * i;
            let item = SavedItem::from_bytes(&save_line(memory, at + 1));
            assert_eq!(item.kind, ITEM_COMMAND);
            (item.order, Command::from_bytes(&save_line(memory, at)))
        })
        .collect();
    items.sort_by_key(|(order, _)| *order);
    items.into_iter().map(|(_, command)| command).collect()
}

/// Items that the progress word counts, while the image is not consumed.
fn counted(memory: &[u8]) -> Option<usize> {
    let head = SaveHead::from_bytes(&save_line(memory, HEAD_LINE));
    if ArmWord::decode(word(memory, ARM_LINE)) != Some(ArmWord::Running(head.generation)) {
        return None;
    }
    let progress = ProgressWord::decode(word(memory, PROGRESS_LINE));
    Some(progress.filter(|p| p.generation == head.generation as u32).map_or(0, |p| usize::from(p.items)))
}

#[test]
fn a_resumed_replay_leaves_the_mapping_table_as_an_unbroken_one() {
    let saved = cut_in_work();
    let items = commands(&saved);
    let unmap = items.iter().position(|c| c.opcode == Opcode::Unmap as u8).expect("the unmap waits");
    assert!(items.len() > unmap + 2, "something is replayed behind the unmap: {items:?}");

    let mut behind_the_unmap = 0;
    for after in (1000..).step_by(211) {
        let mut card = Cards::sound().power_up(saved.clone(), after);
        (0..after).for_each(|_| card.step());
        let (memory, _) = card.power_fail(0);
        let Some(done) = counted(&memory) else { break };
        let mut card = Cards::sound().power_up(memory, after);
        card.wait_for_state(state::OPEN);
        assert_eq!(card.read_register(registers::MAPPED), 0b110, "cut behind {done} of {} items", items.len());
        assert_eq!(card.read_register(registers::REPLAYED) as usize, items.len() - done);
        // What was accepted in the life before is not counted in this one.
        assert_eq!(card.read_register(registers::COMMANDS_ACCEPTED), 0);
        assert_eq!(card.read_register(registers::COMMANDS_RETIRED), 0);
        assert_eq!(card.read_register(registers::COMMANDS_REFUSED), 0);
        // The committed transaction of pool 2 is known: a log of it comes too late. One of the next
        // does not.
        card.command(0, 0, &log(2, 7, 1));
        card.command(0, 0, &log(2, 8, 1));
        let status = card.wait_retired(0);
        assert_eq!((status.accepted, status.refused, status.failed), (1, 1, 0), "cut behind {done} items: {status:?}");
        behind_the_unmap += usize::from(done > unmap);
    }
    assert!(behind_the_unmap > 2, "only {behind_the_unmap} cuts fell behind the unmap");
}
