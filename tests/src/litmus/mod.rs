//! The litmus tests of the ordering model on simulated cards: an adversarial host runs the program
//! of a test, and the power fails.
//!
//! Not expressed: failing logs, other cards than these, and procedures that are no single command
//! of the card. Each such test says so in its file.

pub mod at_random;
pub mod comparison;
pub mod every_cycle;
mod recovery;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nearpm_driver::card::PoolMapping;
use nearpm_driver::pci::{Caching, DmaBuffer, Mapping, PciFunction};
use nearpm_driver::registers::{Control, Registers, State};
use nearpm_driver::{Card, CardOptions};
use nearpm_firmware::{STANDARD, Source, assemble};
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode, slot_offset};
use nearpm_interface::completion::Completion;
use nearpm_interface::geometry::{COMMAND_BAR, COMMAND_BAR_BYTES, LINE_U64, PM_BAR, POOLS_BASE};
use nearpm_interface::media::{EntryHead, RING_HEAD_BYTES};
use nearpm_interface::seal;
use nearpm_ppo::litmus::{Instruction, Moment, Observable, Posting, Step, Test, parse};
use nearpm_sim::core::Medium;
use nearpm_sim::host::{Cut, Parameters, Peers};
use nearpm_sim::machine::{Function, Machine, Power, run_on_core, until_power_cut};
use nearpm_sim::rng::Rng;

const PM_BYTES: usize = 2 << 20;
const POOL: u32 = 7;
const POOL_BYTES: u64 = 512 << 10;
/// Rings of the threads lie behind the data.
const RINGS: u64 = 256 << 10;
const RING_BYTES: u64 = 64 << 10;
/// Every line has a page of its own, so that a page copy copies one line.
const PAGE: u64 = 4096;
/// Room for a log entry of one line.
const SLOT: u64 = 2 * LINE_U64;
/// The page from which the programs post.
const COMMAND_PAGE: usize = 1;
/// Log2 of the records of its completion ring: more than a program posts.
const RECORDS_LOG2: u32 = 5;
/// Nanoseconds between two looks of a thread that waits for a record.
const LOOK_NS: u64 = 50;
/// Longest wait for a record, in picoseconds: far more than messages of other cards are late.
const LONGEST_WAIT_PS: u64 = 100_000_000_000;
/// A program of these tests' own beside those of the standard firmware: undo and redo, as
/// `undo_redo.npm`, of a new value that lies anywhere.
const LOG_AND_COPY: u8 = 0x0a;
const LOG_AND_COPY_SOURCE: Source<'static> = Source {
    name: "log_and_copy.npm",
    text: "\
program log_and_copy = 0x0a
    read  source
    write destination
    alloc auxiliary
    logs  destination
    congruent
begin
    copy lines destination -> auxiliary + 1 line
    gen   auxiliary undo destination
    wait
    copy bytes source -> destination
    end
",
};

/// The firmware of the cards.
fn firmware() -> Vec<u8> {
    static ASSEMBLED: OnceLock<Vec<u8>> = OnceLock::new();
    let make = || {
        let sources = [STANDARD, &[LOG_AND_COPY_SOURCE][..]].concat();
        assemble(&sources).unwrap_or_else(|error| panic!("the programs of the litmus tests: {error}")).bytes().to_vec()
    };
    ASSEMBLED.get_or_init(make).clone()
}

/// Opens the cards, which are silent until they get their numbers.
fn open(machine: &Machine) -> Vec<Card> {
    let options = CardOptions { firmware: Some(firmware()), ..CardOptions::default() };
    let open = |function| Card::open(Arc::new(function), options.clone()).expect("the card opens");
    machine.functions().into_iter().map(open).collect()
}

/// Offset of a word in the pool, on the card of its line.
fn place(test: &Test, word: usize) -> u64 {
    let line = test.words[word].line;
    let index = test.lines[line].words.iter().position(|w| *w == word).expect("a word lies in its line");
    line as u64 * PAGE + 8 * index as u64
}

fn ring(thread: usize) -> u64 {
    RINGS + thread as u64 * RING_BYTES
}

fn slot(test: &Test, entry: usize) -> u64 {
    ring(test.transactions[test.entries[entry].transaction].thread) + RING_HEAD_BYTES + entry as u64 * SLOT
}

/// Whether some thread waits for the record of a procedure.
fn is_awaited(test: &Test, procedure: usize) -> bool {
    test.threads.iter().any(|thread| thread.program.contains(&Instruction::Finish(procedure)))
}

/// Offset and bytes of words that lie behind each other.
fn range(test: &Test, words: &[usize]) -> Option<(u64, u32)> {
    let together = words.windows(2).all(|w| place(test, w[1]) == place(test, w[0]) + 8);
    together.then(|| (place(test, words[0]), 8 * words.len() as u32))
}

/// The command of a procedure, if the card has one that does just that.
fn command(test: &Test, procedure: usize) -> Option<Command> {
    let made = &test.procedures[procedure];
    let transaction = &test.transactions[made.transaction];
    let thread = transaction.thread as u16;
    let (participants, steps) = match made.steps.as_slice() {
        [Step::Sync, rest @ ..] => (transaction.devices.iter().fold(0, |mask, device| mask | 1 << device), rest),
        steps => (0, steps),
    };
    // What may wait for others asks for its record: the driver counts records when it lets commands
    // go.
    let flags = if participants == 0 && !is_awaited(test, procedure) { 0 } else { FLAG_COMPLETE };
    let txid = transaction.number.into();
    let base = Command { pool: POOL, thread, txid, participants, flags, ..Command::default() };
    let step = match steps {
        [step] => step,
        [Step::Log(entry), Step::Wait, Step::Copy(pairs)] if participants == 0 => {
            let (from, to): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            let ((source, length), (destination, _)) = (range(test, &from)?, range(test, &to)?);
            let same = test.entries[*entry].exact == to && source % LINE_U64 == destination % LINE_U64;
            return same.then(|| Command {
                opcode: LOG_AND_COPY,
                source,
                destination,
                auxiliary: slot(test, *entry),
                sequence: *entry as u64 + 1,
                length,
                ..base
            });
        }
        _ => return None,
    };
    match step {
        Step::Commit => Some(Command {
            opcode: Opcode::Commit as u8,
            destination: ring(transaction.thread),
            auxiliary: seal::seal_word(transaction.number.into()),
            ..base
        }),
        Step::Set(word, value) => Some(Command {
            opcode: Opcode::Switch as u8,
            destination: place(test, *word),
            auxiliary: (*value).into(),
            ..base
        }),
        // The card's own log commands and copies wait for nobody.
        Step::Log(_) | Step::Copy(_) if participants != 0 => None,
        Step::Log(entry) => range(test, &test.entries[*entry].exact).map(|(source, length)| Command {
            opcode: Opcode::UndoLog as u8,
            source,
            destination: slot(test, *entry),
            sequence: *entry as u64 + 1,
            length,
            ..base
        }),
        Step::Copy(pairs) => {
            let (from, to): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
            let ((source, bytes), (destination, _)) = (range(test, &from)?, range(test, &to)?);
            let is_whole = |words: &[usize]| test.lines[test.words[words[0]].line].words == words;
            // A line that is copied whole is copied with its page.
            let length = if is_whole(&from) && is_whole(&to) { PAGE as u32 } else { bytes };
            (source % LINE_U64 == destination % LINE_U64).then_some(Command {
                opcode: Opcode::ShadowCopy as u8,
                source,
                destination,
                length,
                ..base
            })
        }
        Step::Wait | Step::Sync => None,
    }
}

/// Whether cards can run a test.
pub fn runs(test: &Test) -> bool {
    let options = &test.options;
    let usual = options.fifo.is_none() && options.link.is_none() && !options.save_may_tear && !options.host_unordered;
    usual
        && !options.early_release
        // No program can ask a card's memory to refuse a store.
        && test.lines.iter().all(|line| !line.refused)
        && (0..test.procedures.len()).all(|p| !test.procedures[p].fails && command(test, p).is_some())
}

/// The mappings through which a program reaches a card.
struct Views {
    cached: Box<dyn Mapping>,
    around: Box<dyn Mapping>,
    combining: Box<dyn Mapping>,
    uncached: Box<dyn Mapping>,
    registers: Registers,
    /// Where the card writes its completion records, in a test that waits for one.
    records: Option<Box<dyn DmaBuffer>>,
}

impl Views {
    /// Whether the record of a procedure has come, which costs a look.
    fn has_ended(&self, procedure: usize) -> bool {
        let mut bytes = [0; Completion::SIZE << RECORDS_LOG2];
        self.records.as_ref().expect("the test waits for a record").load(0, &mut bytes);
        let mut records = bytes.as_chunks().0.iter().map(Completion::from_bytes);
        records.any(|record| record.lap == 1 && record.tag == tag(procedure))
    }
}

/// What a command's record is known by.
fn tag(procedure: usize) -> u32 {
    procedure as u32 + 1
}

/// What the program has told and seen before the power failed.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    marks: u32,
    registers: Vec<Option<u64>>,
}

impl Seen {
    fn nothing(test: &Test) -> Seen {
        Seen { marks: 0, registers: vec![None; test.registers.len()] }
    }
}

/// Executes an instruction; gives the register that it loads, with its value.
fn execute(test: &Test, views: &[Views], thread: usize, instruction: &Instruction) -> Option<(usize, u64)> {
    run_on_core(thread);
    let of_line = |line: usize| &views[test.lines[line].device];
    let of = |word: usize| of_line(test.words[word].line);
    let at = |word: usize| POOLS_BASE + place(test, word);
    let line = |line: usize| POOLS_BASE + line as u64 * PAGE;
    match *instruction {
        Instruction::Store(word, value) => of(word).cached.store(at(word), &u64::from(value).to_le_bytes()),
        Instruction::NonTemporal(word, value) => of(word).around.store(at(word), &u64::from(value).to_le_bytes()),
        Instruction::Load(word, register) => {
            let mut bytes = [0; 8];
            of(word).cached.load(at(word), &mut bytes);
            return Some((register, u64::from_le_bytes(bytes)));
        }
        Instruction::WriteBack(l) => of_line(l).cached.write_back(line(l), LINE_U64),
        Instruction::Invalidate(l) => of_line(l).cached.invalidate(line(l), LINE_U64),
        // A fence is the core's, whatever it has stored to.
        Instruction::Fence => views[0].cached.fence(),
        Instruction::Post(procedure, posting) => {
            let command = Command { tag: tag(procedure), ..command(test, procedure).expect("it is expressed") };
            let (bytes, offset) = (command.encode(), slot_offset(COMMAND_PAGE, procedure));
            let views = &views[test.procedures[procedure].device];
            match posting {
                Posting::Whole => views.combining.store_line(offset, &bytes),
                Posting::Combining => {
                    (0..8).for_each(|i| views.combining.store(offset + 8 * i, &bytes[8 * i as usize..][..8]))
                }
                Posting::Uncached => {
                    (0..8).for_each(|i| views.uncached.store(offset + 8 * i, &bytes[8 * i as usize..][..8]))
                }
            }
        }
        Instruction::ReadBack(card) => views[card].uncached.load(slot_offset(COMMAND_PAGE, 0), &mut [0; 8]),
        Instruction::Reset(card) => {
            let registers = &views[card].registers;
            registers.control(Control::FUNCTION_RESET);
            while matches!(registers.state(), Ok(State::Booting)) {}
        }
        Instruction::Mark(_) | Instruction::Await(_) | Instruction::Finish(_) => {}
    }
    None
}

/// Runs the threads in turns by chance. With `exact`, the card has been simulated up to the present
/// of every core before the program is noted to have told or seen something: whoever looks at a
/// cycle of the card then knows what the program had done by it.
fn program(test: &Test, machine: &Machine, views: &[Views], rng: &mut Rng, seen: &Mutex<Seen>, exact: bool) {
    let mut counters = vec![0; test.threads.len()];
    let function = machine.function();
    let mut since_ps = None;
    loop {
        let marks = look(seen).marks;
        let next = |thread: usize| test.threads[thread].program.get(counters[thread]);
        let ready: Vec<usize> = (0..counters.len())
            .filter(|t| match next(*t) {
                None => false,
                Some(Instruction::Await(mark)) => marks >> mark & 1 == 1,
                Some(Instruction::Finish(procedure)) => {
                    run_on_core(*t);
                    views[test.procedures[*procedure].device].has_ended(*procedure)
                }
                Some(_) => true,
            })
            .collect();
        if ready.is_empty() {
            let waits = |t: &usize| matches!(next(*t), Some(Instruction::Finish(_)));
            let Some(thread) = (0..counters.len()).find(waits) else { break };
            run_on_core(thread);
            machine.compute(LOOK_NS);
            let now_ps = machine.now_ps();
            let waited_ps = now_ps.saturating_sub(*since_ps.get_or_insert(now_ps));
            assert!(waited_ps < LONGEST_WAIT_PS, "no record of what thread {thread} waits for");
            continue;
        }
        since_ps = None;
        let thread = ready[rng.below(ready.len() as u64) as usize];
        let instruction = &test.threads[thread].program[counters[thread]];
        let loaded = execute(test, views, thread, instruction);
        if exact {
            function.relax(0);
        }
        let mut seen = look(seen);
        if let Some((register, value)) = loaded {
            seen.registers[register] = Some(value);
        }
        if let Instruction::Mark(mark) = *instruction {
            seen.marks |= 1 << mark;
        }
        drop(seen);
        counters[thread] += 1;
        while rng.one_in(3) {
            machine.compute(rng.below(300));
        }
        if rng.one_in(8) {
            let (card, most) = (rng.below(test.devices as u64) as usize, 1 << (8 + rng.below(6)));
            machine.hold_link(card, rng.below(most));
        }
    }
    // Further accesses, during which lines may be evicted.
    for i in 1..=rng.below(16) {
        views.iter().for_each(|card| card.cached.load(POOLS_BASE + RINGS - i * PAGE, &mut [0; 8]));
    }
    // Mostly short, and at times as long as messages among cards are late.
    let most = 1 << (4 + rng.below(12));
    machine.compute(rng.below(most));
}

/// What was seen so far; a core that the power cut stops leaves it as it was.
fn look(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the cards, maps the pool for each thread, and gives memory its first values.
fn begin(test: &Test, machine: &Machine) -> Vec<Views> {
    let cards = open(machine);
    if test.devices > 1 {
        (0..).zip(&cards).for_each(|(number, card)| card.give_number(number));
    }
    for (device, card) in cards.iter().enumerate() {
        let of_it = test.transactions.iter().filter(|t| t.devices.contains(&device));
        for thread in of_it.map(|t| t.thread).collect::<BTreeSet<_>>() {
            let mapping = PoolMapping {
                pool: POOL,
                thread: thread as u16,
                base: POOLS_BASE,
                bytes: POOL_BYTES,
                ring: ring(thread),
                ring_bytes: RING_BYTES as u32,
                committed: 0,
            };
            card.map_pool(mapping).expect("the pool is mapped");
        }
    }
    let awaits = (0..test.procedures.len()).any(|procedure| is_awaited(test, procedure));
    let views = |function: Function| {
        let map = |bar, bytes, caching| function.map(bar, 0..bytes, caching).expect("a mapping");
        let registers = Registers::map(&function).expect("the register block");
        let records = awaits.then(|| {
            let records = function.allocate_dma(Completion::SIZE << RECORDS_LOG2).expect("memory for records");
            registers.set_completion_ring(COMMAND_PAGE, records.bus_address(), RECORDS_LOG2);
            records
        });
        Views {
            cached: map(PM_BAR, PM_BYTES as u64, Caching::WriteBack),
            around: map(PM_BAR, PM_BYTES as u64, Caching::WriteCombining),
            combining: map(COMMAND_BAR, COMMAND_BAR_BYTES as u64, Caching::WriteCombining),
            uncached: map(COMMAND_BAR, COMMAND_BAR_BYTES as u64, Caching::Uncached),
            registers,
            records,
        }
    };
    let views: Vec<Views> = machine.functions().into_iter().map(views).collect();
    for (word, declared) in test.words.iter().enumerate().filter(|(_, w)| !w.name.is_empty()) {
        let card = &views[test.lines[declared.line].device];
        card.around.store(POOLS_BASE + place(test, word), &u64::from(declared.initial).to_le_bytes());
    }
    views[0].around.fence();
    machine.settle();
    views
}

/// The links among several cards: of every other computer they lose, double and delay messages.
pub fn links(seed: u64) -> Peers {
    let links = Peers::default();
    if seed.is_multiple_of(2) { links } else { links.adversarial(seed) }
}

/// A computer whose cards are open and whose memory has a test's first values.
pub struct Begun<'a> {
    test: &'a Test,
    power: &'a dyn Power,
    machine: Machine,
    views: Vec<Views>,
}

impl<'a> Begun<'a> {
    /// Powers it up.
    pub fn new(test: &'a Test, power: &'a dyn Power, host: Parameters, peers: Peers) -> Self {
        run_on_core(0);
        // Each fresh from the system, so that only what a run touches is ever there: a copy of a
        // blank one would touch all of it.
        let media = (0..test.devices).map(|_| Medium::blank(PM_BYTES)).collect();
        let machine = Machine::with_cards(host, peers, power, media);
        let views = begin(test, &machine);
        Begun { test, power, machine, views }
    }

    /// The same as [`Begun::observe`], with a host that chooses otherwise from the beginning of the
    /// program on.
    fn observe_apart(&self, seed: u64) -> Vec<String> {
        // Each of these is an access at which caches and buffers may do something unasked.
        (0..Rng::new(seed).below(64)).for_each(|_| self.machine.compute(0));
        self.observe(seed)
    }

    /// Runs the program, with a power failure at a random moment; gives what the test observes.
    pub fn observe(&self, seed: u64) -> Vec<String> {
        let Begun { test, power, machine, views } = self;
        let mut rng = Rng::new(seed);
        let seen = Mutex::new(Seen::nothing(test));
        if test.moment == Moment::Failure && rng.one_in(2) {
            // Without energy memory is seen as it is in that instant, with what is on its way torn.
            machine.set_save_cycles(0);
        }
        match rng.below(4) {
            0 => machine.arm_cut(Cut::AtAccess(1 + rng.below(20)), seed),
            1 => machine.arm_cut(Cut::AtCycle(machine.cycle() + 1 + rng.below(300)), seed),
            2 => machine.arm_cut(Cut::AtCycle(machine.cycle() + 1 + rng.below(3000)), seed),
            // At the end of the program, and what follows it.
            _ => {}
        }
        let outcome = until_power_cut(|| program(test, machine, views, &mut rng, &seen, false));
        if outcome.is_ok() && machine.is_powered() {
            machine.cut_now(seed);
        }
        run_on_core(0);
        match test.moment {
            Moment::Failure => {}
            Moment::Replay => {
                machine.power_up(*power);
                // What software decides before it recovers anything (decision 10).
                recovery::Cards::open(test, machine).release();
                machine.settle();
                machine.cut_now(seed);
            }
            Moment::Recovery => recovery::recover_through_cuts(test, machine, *power, &mut rng),
        }
        let memory = |card, range: Range<usize>| {
            machine.look_at_medium_of(card, |medium| medium.bytes[range].to_vec()).expect("the power is off")
        };
        observation(test, &memory, &look(&seen))
    }
}

/// What a test observes of the memory of its cards, each of which is given by its number and a
/// range of bytes.
fn observation(test: &Test, memory: &dyn Fn(usize, Range<usize>) -> Vec<u8>, seen: &Seen) -> Vec<String> {
    let pool = |card: usize, offset: u64, bytes: usize| {
        let start = (POOLS_BASE + offset) as usize;
        memory(card, start..start + bytes)
    };
    let word = |card, offset| u64::from_le_bytes(pool(card, offset, 8).try_into().expect("eight bytes"));
    let value = |observable: &Observable| match *observable {
        Observable::Word(w) => word(test.lines[test.words[w].line].device, place(test, w)).to_string(),
        Observable::Epoch(t, card) => {
            let transaction = &test.transactions[t];
            let epoch = seal::open_word(word(card, ring(transaction.thread))).unwrap_or(0);
            u8::from(epoch >= u64::from(transaction.number)).to_string()
        }
        Observable::Mark(mark) => (seen.marks >> mark & 1).to_string(),
        Observable::Register(register) => seen.registers[register].map_or("-".into(), |v| v.to_string()),
        Observable::Loss => "0".into(),
        Observable::Entry(entry) => {
            let bytes = pool(test.entries[entry].device, slot(test, entry), SLOT as usize);
            let Some(head) = EntryHead::decode(&bytes) else { return "-".into() };
            let data = &bytes[(LINE_U64 + head.offset % LINE_U64) as usize..][..head.length as usize];
            let values = data.chunks(8).map(|w| u64::from_le_bytes(w.try_into().expect("whole words")).to_string());
            values.collect::<Vec<_>>().join(",")
        }
    };
    test.observables.iter().map(value).collect()
}

/// All tests by their names.
pub fn tests() -> BTreeMap<String, Test> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proof/ppo/litmus");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, parse(&text).expect("a litmus test"))
    };
    std::fs::read_dir(folder).expect("the folder").map(read).collect()
}
