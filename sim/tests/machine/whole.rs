//! Driver, host and transaction-level card together: undo-logged transactions on an adversarial
//! host, cut at random moments.

use std::sync::Arc;

use nearpm_driver::card::PoolMapping;
use nearpm_driver::pci::Caching;
use nearpm_driver::{Card, CardOptions, Posting};
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{LINE, POOLS_BASE};
use nearpm_interface::media::{EntryHead, RING_HEAD_BYTES};
use nearpm_interface::seal;
use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::host::{Cut, EventRecord, Parameters};
use nearpm_sim::machine::{Machine, PowerCut, until_power_cut};
use nearpm_sim::model::{Config, ModelCard};
use nearpm_sim::rng::Rng;

const PM_BYTES: usize = 2 << 20;
const POOL: PoolMapping = PoolMapping {
    pool: 7,
    thread: 0,
    base: POOLS_BASE,
    bytes: 256 << 10,
    ring: 128 << 10,
    ring_bytes: 128 << 10,
    committed: 0,
};
const LINES: u64 = 32;
const LINES_PER_TRANSACTION: u64 = 4;
const TRANSACTIONS: u64 = 12;

fn power(medium: Medium) -> Box<dyn CardCore> {
    Box::new(ModelCard::new(Config::default(), medium))
}

fn open(machine: &Machine, posting: Posting) -> Card {
    let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
    let options = CardOptions { posting, firmware, ..CardOptions::default() };
    Card::open(Arc::new(machine.function()), options).unwrap()
}

fn slot(transaction: u64, index: u64) -> u64 {
    // The slots of the transaction before the last one are free: its commit was waited for.
    POOL.ring + RING_HEAD_BYTES + (transaction % 2 * LINES_PER_TRANSACTION + index) * 2 * LINE as u64
}

/// The lines of a transaction, and their new value.
fn plan(transaction: u64) -> impl Iterator<Item = (u64, [u8; LINE])> {
    (0..LINES_PER_TRANSACTION).map(move |i| ((transaction * 5 + i * 7) % LINES, [(transaction * 16 + i) as u8; LINE]))
}

/// Runs all transactions; `acknowledged` is the last one that is known to be durable.
fn workload(machine: &Machine, posting: Posting, acknowledged: &mut u64) {
    let card = open(machine, posting);
    card.map_pool(POOL).unwrap();
    let memory = card.window(POOL.base..POOL.base + POOL.bytes, Caching::WriteBack).unwrap();
    for transaction in 1..=TRANSACTIONS {
        let post =
            |command: Command| card.post(1, Command { pool: POOL.pool, txid: transaction, ..command }, true).unwrap();
        for (index, (line, value)) in (0..).zip(plan(transaction)) {
            post(Command {
                opcode: Opcode::UndoLog as u8,
                source: line * LINE as u64,
                destination: slot(transaction, index),
                sequence: transaction * LINES_PER_TRANSACTION + index,
                length: LINE as u32,
                ..Command::default()
            });
            memory.store(line * LINE as u64, &value);
        }
        memory.write_back(0, LINES * LINE as u64);
        memory.fence();
        let commit = post(Command {
            opcode: Opcode::Commit as u8,
            destination: POOL.ring,
            auxiliary: seal::seal_word(transaction),
            ..Command::default()
        });
        card.wait(commit).unwrap();
        *acknowledged = transaction;
    }
}

/// Undoes what was not committed; gives the last committed transaction.
fn recover(pool: &mut [u8]) -> u64 {
    let word = u64::from_le_bytes(pool[POOL.ring as usize..][..8].try_into().unwrap());
    let committed = seal::open_word(word).unwrap_or(0);
    let mut entries: Vec<(EntryHead, [u8; LINE])> = (0..2 * LINES_PER_TRANSACTION)
        .filter_map(|n| {
            let at = slot(0, n) as usize;
            let head: [u8; LINE] = pool[at..at + LINE].try_into().unwrap();
            let data: [u8; LINE] = pool[at + LINE..at + 2 * LINE].try_into().unwrap();
            seal::is_sealed(&data, &head).then(|| (EntryHead::from_bytes(&head), data))
        })
        .filter(|(head, _)| head.txid > committed)
        .collect();
    entries.sort_by_key(|(head, _)| std::cmp::Reverse(head.sequence));
    for (head, data) in entries {
        pool[head.offset as usize..][..LINE].copy_from_slice(&data);
    }
    committed
}

fn check(mut medium: Medium, acknowledged: u64, what: &str) {
    let pool = &mut medium.bytes[POOL.base as usize..][..POOL.bytes as usize];
    let committed = recover(pool);
    assert!(committed >= acknowledged, "{what}: {acknowledged} was acknowledged, {committed} is committed");
    let mut expected = vec![0; LINES as usize * LINE];
    for (line, value) in (1..=committed).flat_map(plan) {
        expected[line as usize * LINE..][..LINE].copy_from_slice(&value);
    }
    for (line, (got, want)) in pool.chunks(LINE).zip(expected.chunks(LINE)).enumerate() {
        assert_eq!(got, want, "{what}: line {line} with {committed} committed");
    }
}

fn machine(parameters: Parameters) -> Machine {
    Machine::new(parameters, &power, Medium::blank(PM_BYTES))
}

/// The medium after the card has replayed its save.
fn after_replay(machine: &Machine) -> Medium {
    machine.power_up(&power);
    drop(open(machine, Posting::Line));
    machine.settle();
    machine.cut_now(0);
    machine.medium().unwrap()
}

#[test]
fn committed_transactions_survive_a_cut_near_any_event() {
    for (seed, posting) in [(1, Posting::Line), (2, Posting::WriteCombining), (3, Posting::Uncached)] {
        let parameters = Parameters::default().adversarial(seed);
        let first = machine(parameters);
        first.record_events(true);
        let mut all = 0;
        workload(&first, posting, &mut all);
        let events: Vec<EventRecord> = first.record_events(false);
        assert!(events.len() > 100);
        first.settle();
        first.cut_now(0);
        check(after_replay(&first), TRANSACTIONS, "no cut");

        let mut rng = Rng::new(seed);
        for run in 0..150 {
            let near = events[rng.below(events.len() as u64) as usize].cycle;
            let cycle = near + rng.below(64);
            let m = machine(parameters);
            m.arm_cut(Cut::AtCycle(cycle), run);
            let mut acknowledged = 0;
            let outcome = until_power_cut(|| {
                workload(&m, posting, &mut acknowledged);
                m.compute(1_000_000);
            });
            assert_eq!(outcome, Err(PowerCut));
            check(after_replay(&m), acknowledged, &format!("{posting:?}, cut at cycle {cycle}, seed {run}"));
        }
    }
}

#[test]
fn without_energy_for_the_save_the_card_says_so() {
    let m = machine(Parameters { save_cycles: 0, ..Parameters::default() });
    let mut acknowledged = 0;
    workload(&m, Posting::Line, &mut acknowledged);
    m.cut_now(1);
    m.power_up(&power);
    let opened = Card::open(Arc::new(m.function()), CardOptions::default());
    assert!(matches!(opened, Err(nearpm_driver::CardError::Loss)), "{opened:?}");
}

/// What posting and waiting cost; run with `--nocapture` to see it.
#[test]
fn an_undo_log_costs_the_host_what_the_contract_aims_at() {
    let m = machine(Parameters::default());
    let card = open(&m, Posting::Line);
    card.map_pool(POOL).unwrap();
    let undo = |n: u64| Command {
        opcode: Opcode::UndoLog as u8,
        pool: POOL.pool,
        txid: 1,
        source: n % 64 * LINE as u64,
        destination: POOL.ring + RING_HEAD_BYTES + n % 128 * 128,
        sequence: n,
        length: LINE as u32,
        ..Command::default()
    };
    m.settle();
    let start = m.now_ps();
    let ticket = card.post(1, undo(0), true).unwrap();
    card.wait(ticket).unwrap();
    let waited = (m.now_ps() - start) / 1000;
    let start = m.now_ps();
    for n in 1..=2000 {
        card.post(1, undo(n), false).unwrap();
    }
    let posted = (m.now_ps() - start) / 2000 / 1000;
    println!("64-byte undo log: {waited} ns with its completion, {posted} ns posted");
    assert!(waited < 436 + 250, "{waited} ns");
    assert!(posted <= 100, "{posted} ns");
}
