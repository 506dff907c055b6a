//! What the card has to do where others take part; the bench is the other device.

use super::scenarios::{ENTRY, RING, THREAD, commit, map, mapped, undo};
use super::{Card, Cards};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{PARKED_COMMANDS, POOLS_BASE};
use nearpm_interface::media::entry_bytes;
use nearpm_interface::peer::{PATIENCE_CYCLES, PEER_ASKS, PEER_TELLS, PeerMessage};
use nearpm_interface::registers::{self, parked_action, state};
use nearpm_interface::seal;
use nearpm_interface::status::Status;

/// Longer than everything takes that does not wait for the other device.
const LONG: usize = 1500;
/// This device and the other one.
const BOTH: u32 = 3;

fn both(txid: u64) -> Command {
    Command { participants: BOTH, ..commit(txid) }
}

/// A mapped card that is device 0 of 2.
fn numbered(cards: &Cards, seed: u64) -> Card {
    let mut card = mapped(cards, seed);
    card.write_register(registers::DEVICE_NUMBER, 0);
    card
}

fn rest(card: &mut Card) {
    (0..LONG).for_each(|_| card.step());
}

fn epoch(card: &Card) -> u64 {
    let at = (POOLS_BASE + RING) as usize;
    seal::open_word(u64::from_le_bytes(card.memory[at..at + 8].try_into().unwrap())).unwrap_or(0)
}

fn tell(card: &mut Card, thread: u16, txid: u64) {
    card.hear(PeerMessage { pool: map().pool, thread, device: 1, status: PEER_TELLS, txid });
}

/// The transactions that the card told of, or asked about.
fn said(card: &Card, status: u8) -> Vec<u64> {
    card.peer_messages.iter().filter(|m| m.status == status).map(|m| m.txid).collect()
}

pub fn a_commit_waits_for_the_report_of_the_other_device(cards: &Cards) {
    let mut card = numbered(cards, 1);
    card.command(1, 0, &both(1));
    rest(&mut card);
    assert_eq!(epoch(&card), 0, "committed without the other device");
    let (line, error) = card.load(false, POOLS_BASE + RING);
    assert!(!error && line[..8] == [0; 8], "a load does not wait for the other device");
    tell(&mut card, THREAD, 1);
    card.wait_retired(1);
    assert_eq!(epoch(&card), 1);
    assert_eq!(said(&card, PEER_TELLS), [1]);
}

pub fn a_device_reports_when_its_logs_are_durable(cards: &Cards) {
    let mut card = numbered(cards, 2);
    card.command(1, 0, &undo(1, 0x1000, 0x4000, ENTRY, 1));
    card.command(1, 1, &both(1));
    while said(&card, PEER_TELLS).is_empty() {
        card.step();
    }
    let last = (POOLS_BASE + ENTRY + entry_bytes(0, 0x4000)) / 64 - 1;
    assert!(card.durable_at.contains_key(&last), "reported before the log was durable");
}

pub fn a_later_commit_stays_behind_one_that_waits(cards: &Cards) {
    let mut card = numbered(cards, 3);
    card.command(1, 0, &both(1));
    card.command(1, 1, &commit(2));
    rest(&mut card);
    assert_eq!(epoch(&card), 0, "a commit passed one that waits");
    tell(&mut card, THREAD, 1);
    card.wait_retired(1);
    assert_eq!(epoch(&card), 2);
}

/// As many commands as can wait, and other work goes on; one more is refused.
pub fn what_waits_holds_no_slot(cards: &Cards) {
    let mut card = numbered(cards, 4);
    for i in 0..PARKED_COMMANDS as u64 {
        card.post(true, 64 * (i % 16), both(1 + i).encode(), u64::MAX);
    }
    rest(&mut card);
    let status = card.page_status(0);
    assert_eq!(status.accepted, 1 + PARKED_COMMANDS as u32, "commands that wait keep others out");
    card.post(true, 0, both(99).encode(), u64::MAX);
    card.post(true, 64, undo(100, 0x1000, 64, ENTRY, 1).encode(), u64::MAX);
    rest(&mut card);
    let status = card.page_status(0);
    assert_eq!((status.refused, status.last_bad_status), (1, Status::ParkedFull.code()), "one too many waits");
    assert_eq!(status.retired, 2, "commands that wait keep others out");
}

pub fn what_waits_survives_a_power_failure(cards: &Cards) {
    let mut card = numbered(cards, 5);
    card.command(1, 0, &both(7));
    rest(&mut card);
    let (memory, done) = card.power_fail(100_000);
    assert!(done);
    let mut card = cards.power_up(memory, 6);
    card.wait_for_state(state::OPEN);
    assert_eq!(card.read_register(registers::PARKED).count_ones(), 1, "what waited is gone");
    card.command(1, 1, &commit(8));
    rest(&mut card);
    assert_eq!(epoch(&card), 0, "a commit passes one that waited when the power went");
    tell(&mut card, THREAD, 7);
    rest(&mut card);
    assert_eq!(epoch(&card), 0, "a device that has no number yet hears");
    assert_eq!(said(&card, PEER_TELLS), [0; 0], "a device that has no number yet speaks");
    card.write_register(registers::DEVICE_NUMBER, 0);
    tell(&mut card, THREAD, 7);
    rest(&mut card);
    assert_eq!((epoch(&card), card.read_register(registers::PARKED)), (8, 0));
}

pub fn who_waits_asks_again(cards: &Cards) {
    let mut card = numbered(cards, 7);
    card.command(1, 0, &both(3));
    (0..2 * PATIENCE_CYCLES + 500).for_each(|_| card.step());
    assert_eq!(said(&card, PEER_ASKS), [3, 3], "nobody asks for what was lost");
    card.hear(PeerMessage { pool: map().pool, thread: THREAD, device: 1, status: PEER_ASKS, txid: 3 });
    rest(&mut card);
    assert_eq!(said(&card, PEER_TELLS), [3, 3], "a question is not answered");
}

pub fn only_a_silent_device_discards(cards: &Cards) {
    let mut card = numbered(cards, 8);
    card.command(1, 0, &both(4));
    rest(&mut card);
    card.write_register(registers::PARKED_ACT, parked_action::DISCARD << 8);
    rest(&mut card);
    assert_eq!(card.read_register(registers::PARKED), 1, "discarded what was reported");
    card.write_register(registers::CONTROL, registers::control::FUNCTION_RESET);
    rest(&mut card);
    assert_eq!((card.read_register(registers::PARKED), card.read_register(registers::MAPPED)), (1, 0));
    card.command(1, 1, &Command { opcode: Opcode::Fence as u8, txid: 0, ..commit(0) });
    assert_eq!(
        card.page_status(1).last_bad_status,
        Status::Unmapped.code(),
        "an entry without its pool takes commands"
    );
    card.write_register(registers::PARKED_ACT, parked_action::DISCARD << 8);
    rest(&mut card);
    assert_eq!((card.read_register(registers::PARKED), epoch(&card)), (0, 0));
    assert_eq!(card.page_status(1).last_bad_status, Status::Discarded.code());
    card.command(0, 1, &map());
    rest(&mut card);
    assert_eq!(card.read_register(registers::MAPPED), 1, "a mapping stays behind what was discarded");
}
