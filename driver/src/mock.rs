//! A card made of a byte array, for tests of the driver and of what stands above it.
//!
//! It keeps the contract and is otherwise as hostile as the contract allows, by a seed:
//! - commands are accepted at once and executed late, out of order where they do not conflict, and never before a host
//!   access that they conflict with needs them (unless the card is told not to order host accesses);
//! - the processor's cache in front of a write-back window evicts, and loads speculatively, at any moment, and never learns what the
//!   card writes;
//! - what is written back, or stored to a write-combining window, travels at any moment until the fence;
//! - at a power cut everything accepted is carried out, and what has not travelled is lost.
//!
//! It says nothing about time, and reads no firmware: it knows the opcodes by itself.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm_interface::INTERFACE_VERSION;
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode};
use nearpm_interface::completion::{Completion, PageStatus};
use nearpm_interface::firmware::{IMAGE_BYTES, IMAGE_MAGIC};
use nearpm_interface::geometry::{
    COMMAND_BAR, COMMAND_BAR_BYTES, COMMAND_PAGE_BYTES, COMMAND_PAGES, FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, LINE,
    LINE_U64, MAP_ENTRIES, MAX_COMMAND_BYTES, PCI_DEVICE, PCI_VENDOR, PM_BAR, POOLS_BASE, REGISTER_BAR,
    REGISTER_BAR_BYTES, SLOTS_PER_PAGE,
};
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind, entry_bytes};
use nearpm_interface::registers::{self as reg, capability, control, firmware_status, state};
use nearpm_interface::status::Status;

use crate::pci::{Caching, DmaBuffer, Mapping, PciError, PciFunction};

/// What a mock card is like.
#[derive(Clone, Debug)]
pub struct MockOptions {
    /// Bytes of persistent memory.
    pub pm_bytes: usize,
    /// Host accesses wait for conflicting commands.
    pub host_ordered: bool,
    /// The card writes completion records.
    pub completion_records: bool,
    /// A cached line is evicted, and another fetched, at about one in so many accesses; 0 never.
    pub evict_one_in: u64,
    /// Value of the state register after power-up.
    pub state: u32,
    /// Power fails after so many host accesses.
    pub cut_after: Option<u64>,
    /// Seed of everything that is random.
    pub seed: u64,
}

impl Default for MockOptions {
    fn default() -> Self {
        MockOptions {
            pm_bytes: 4 << 20,
            host_ordered: true,
            completion_records: true,
            evict_one_in: 5,
            state: state::OPEN,
            cut_after: None,
            seed: 1,
        }
    }
}

/// A card made of a byte array. Clones share it.
#[derive(Clone)]
pub struct MockCard {
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Copy)]
struct MapEntry {
    pool: u32,
    thread: u16,
    base: u64,
    bytes: u64,
    ring: Range64,
    committed: u64,
    latched: bool,
}

#[derive(Clone, Copy)]
struct Range64 {
    start: u64,
    bytes: u64,
}

/// Lines that speculation remembers.
const RECENT_LINES: usize = 16;

/// A command that was accepted and not executed.
struct Accepted {
    command: Command,
    page: usize,
    order: u64,
    /// Device addresses, whole lines.
    reads: Vec<Range<u64>>,
    writes: Vec<Range<u64>>,
}

/// Lines that a command reads, and those that it writes.
type Access = (Vec<Range<u64>>, Vec<Range<u64>>);

#[derive(Default)]
struct Page {
    slots: Vec<([u8; LINE], u64)>,
    status: PageStatus,
    ring: (u64, Option<u32>),
    records: u64,
}

struct State {
    options: MockOptions,
    medium: Vec<u8>,
    card_state: u32,
    firmware_status: u32,
    pages: Vec<Page>,
    mappings: Vec<MapEntry>,
    pending: Vec<Accepted>,
    order: u64,
    /// Lines of the processor's cache, by device address; true for dirty.
    cache: BTreeMap<u64, ([u8; LINE], bool)>,
    /// What is on its way to the card.
    travelling: Vec<Store>,
    /// Lines that were touched or dropped lately.
    recent: Vec<u64>,
    dma: HashMap<u64, Arc<Mutex<Vec<u8>>>>,
    config: [u8; 64],
    now_ns: u64,
    accesses: u64,
    gone: bool,
    /// Ranges of device addresses whose memory answers with an error.
    broken: Vec<Range<u64>>,
    executed: Vec<Command>,
    random: u64,
}

enum Store {
    Pm { address: u64, bytes: Vec<u8> },
    Command { offset: u64, bytes: Vec<u8> },
}

fn lines(range: Range<u64>) -> Range<u64> {
    range.start / LINE_U64 * LINE_U64..range.end.next_multiple_of(LINE_U64)
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl State {
    fn chance(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.next().is_multiple_of(one_in)
    }

    /// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Everything random that may happen before a host access; false when the card has gone.
    fn tick(&mut self) -> bool {
        self.accesses += 1;
        if self.options.cut_after.is_some_and(|n| self.accesses > n) {
            self.cut();
        }
        if self.gone {
            return false;
        }
        if self.chance(4) {
            self.travel_one();
        }
        // Some cards are prompt and some are as late as they may be.
        if self.chance(if self.options.seed.is_multiple_of(2) { 3 } else { 60 }) {
            self.execute_one();
        }
        if self.chance(self.options.evict_one_in) && !self.cache.is_empty() {
            let at = self.next() as usize % self.cache.len();
            let line = *self.cache.keys().nth(at).expect("the index is below the length");
            self.evict(line);
        }
        if self.chance(self.options.evict_one_in) && !self.recent.is_empty() {
            // A processor may load speculatively what was touched or dropped lately.
            let at = self.next() as usize % self.recent.len();
            self.fetch(self.recent[at]);
        }
        true
    }

    fn cut(&mut self) {
        if !self.gone {
            while self.execute_one() {}
            self.gone = true;
        }
    }

    fn evict(&mut self, line: u64) {
        if let Some((bytes, true)) = self.cache.remove(&line) {
            // Behind an earlier write-back of the same line.
            self.travelling.push(Store::Pm { address: line, bytes: bytes.to_vec() });
        }
    }

    /// Notes a line that speculation may come back to.
    fn touch(&mut self, line: u64) {
        if self.recent.len() == RECENT_LINES {
            self.recent.remove(0);
        }
        self.recent.push(line);
    }

    fn fetch(&mut self, line: u64) -> &mut ([u8; LINE], bool) {
        if !self.cache.contains_key(&line) {
            let mut bytes = [0; LINE];
            self.pm_load(line, &mut bytes);
            self.cache.insert(line, (bytes, false));
        }
        self.cache.get_mut(&line).expect("it was just fetched")
    }

    /// A host access reaches the ordering point.
    fn order_host(&mut self, range: Range<u64>, writes: bool) {
        if !self.options.host_ordered {
            return;
        }
        let range = lines(range);
        let conflicts = |a: &Accepted| {
            a.writes.iter().any(|w| overlap(w, &range)) || (writes && a.reads.iter().any(|r| overlap(r, &range)))
        };
        while let Some(last) = self.pending.iter().rposition(conflicts) {
            let upto = self.pending[last].order;
            while self.pending.first().is_some_and(|a| a.order <= upto) {
                let first = self.pending.remove(0);
                self.execute(first);
            }
        }
    }

    fn pm_load(&mut self, address: u64, data: &mut [u8]) {
        // A read pushes the posted writes before it.
        while self.travel_one() {}
        self.order_host(address..address + data.len() as u64, false);
        data.copy_from_slice(&self.medium[address as usize..][..data.len()]);
    }

    fn arrive(&mut self, store: Store) {
        match store {
            Store::Pm { address, bytes } => {
                self.order_host(address..address + bytes.len() as u64, true);
                self.medium[address as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
            Store::Command { offset, bytes } => self.command_bytes(offset, &bytes),
        }
    }

    /// One of the stores on their way arrives, in any order.
    fn travel_one(&mut self) -> bool {
        if self.travelling.is_empty() {
            return false;
        }
        // Stores to the same place keep their order: the first of those is taken.
        let at = self.next() as usize % self.travelling.len();
        let place = |s: &Store| match s {
            Store::Pm { address, .. } => *address / LINE_U64,
            Store::Command { offset, .. } => u64::MAX - offset / LINE_U64,
        };
        let wanted = place(&self.travelling[at]);
        let first = self.travelling.iter().position(|s| place(s) == wanted).expect("the one that was picked is there");
        let store = self.travelling.remove(first);
        self.arrive(store);
        true
    }

    fn command_bytes(&mut self, offset: u64, bytes: &[u8]) {
        let page = offset as usize / COMMAND_PAGE_BYTES;
        let inside = offset as usize % COMMAND_PAGE_BYTES;
        let slot = inside / LINE;
        if slot >= SLOTS_PER_PAGE {
            return;
        }
        let (line, filled) = &mut self.pages[page].slots[slot];
        let mask = (u64::MAX >> (LINE - bytes.len())) << (inside % LINE);
        if *filled & mask != 0 {
            *filled = 0;
        }
        line[inside % LINE..][..bytes.len()].copy_from_slice(bytes);
        *filled |= mask;
        if *filled == u64::MAX {
            *filled = 0;
            let line = *line;
            self.accept(page, &line);
        }
    }

    fn accept(&mut self, page: usize, line: &[u8; LINE]) {
        let Some(command) = Command::decode(line) else {
            self.pages[page].status.dropped += 1;
            return;
        };
        match self.admit(page, &command) {
            Ok((reads, writes)) => {
                self.order += 1;
                self.pages[page].status.accepted += 1;
                self.pages[page].status.order = self.order;
                self.pending.push(Accepted { command, page, order: self.order, reads, writes });
            }
            Err(status) => self.answer(page, &command, status, 0),
        }
    }

    /// Checks a command as the decoder does, and gives the lines that it reads and writes.
    fn admit(&self, page: usize, command: &Command) -> Result<Access, Status> {
        let opcode = Opcode::from_code(command.opcode).ok_or(Status::BadOpcode)?;
        if self.card_state != state::OPEN {
            return Err(Status::BadOpcode);
        }
        if matches!(opcode, Opcode::Map | Opcode::Unmap) && page != 0 {
            return Err(Status::NotPrivileged);
        }
        if command.participants > 1 {
            return Err(Status::BadParticipants);
        }
        if opcode == Opcode::Map {
            self.admit_map(command)?;
            return Ok((vec![], vec![]));
        }
        let mapping = self.mapping(command).ok_or(Status::Unmapped)?;
        if mapping.latched && opcode != Opcode::Unmap {
            return Err(Status::Latched);
        }
        let length = u64::from(command.length);
        let uses_length = !matches!(opcode, Opcode::Fence | Opcode::Unmap | Opcode::Commit | Opcode::Switch);
        if uses_length && (length == 0 || length > MAX_COMMAND_BYTES.into()) {
            return Err(Status::BadLength);
        }
        let place = |offset: u64, bytes: u64, ring: bool| {
            let limit = if ring { mapping.ring } else { Range64 { start: 0, bytes: mapping.bytes } };
            let end = offset.checked_add(bytes).ok_or(Status::OutOfRange)?;
            if offset < limit.start || end > limit.start + limit.bytes {
                return Err(Status::OutOfRange);
            }
            Ok(mapping.base + offset..mapping.base + end)
        };
        let congruent = command.source % LINE_U64 == command.destination % LINE_U64;
        let (reads, writes) = match opcode {
            Opcode::Fence | Opcode::Unmap => (vec![], vec![]),
            Opcode::UndoLog | Opcode::Checkpoint => {
                if !command.destination.is_multiple_of(LINE_U64) {
                    return Err(Status::Misaligned);
                }
                let bytes = entry_bytes(command.source, command.length);
                (vec![place(command.source, length, false)?], vec![place(command.destination, bytes, true)?])
            }
            Opcode::Apply | Opcode::Recover | Opcode::ShadowCopy => {
                if !congruent {
                    return Err(Status::Misaligned);
                }
                let in_ring = opcode != Opcode::ShadowCopy;
                (vec![place(command.source, length, in_ring)?], vec![place(command.destination, length, false)?])
            }
            Opcode::Commit | Opcode::Switch => {
                if !command.destination.is_multiple_of(8) {
                    return Err(Status::Misaligned);
                }
                (vec![], vec![place(command.destination, 8, false)?])
            }
            // The library does not use these.
            Opcode::UndoRedo | Opcode::MirrorLog | Opcode::Map => return Err(Status::BadOpcode),
        };
        if matches!(opcode, Opcode::UndoLog | Opcode::Checkpoint) && command.txid <= mapping.committed {
            return Err(Status::StaleTransaction);
        }
        let reads: Vec<_> = reads.into_iter().map(lines).collect();
        let writes: Vec<_> = writes.into_iter().map(lines).collect();
        if reads.iter().any(|r| writes.iter().any(|w| overlap(r, w))) {
            return Err(Status::Overlap);
        }
        Ok((reads, writes))
    }

    fn admit_map(&self, command: &Command) -> Result<(), Status> {
        // Maps take effect at once in this model, so that pending ones cannot exceed the table.
        if self.mapping(command).is_some() {
            return Err(Status::MapExists);
        }
        if self.mappings.len() + self.pending.iter().filter(|a| a.command.opcode == Opcode::Map as u8).count()
            >= MAP_ENTRIES
        {
            return Err(Status::MapFull);
        }
        if !command.source.is_multiple_of(LINE_U64) || !command.auxiliary.is_multiple_of(LINE_U64) {
            return Err(Status::Misaligned);
        }
        let end = command.source.checked_add(command.destination).ok_or(Status::OutOfRange)?;
        let ring_end = command.auxiliary.checked_add(command.length.into()).ok_or(Status::OutOfRange)?;
        if command.source < POOLS_BASE || end > self.options.pm_bytes as u64 || ring_end > command.destination {
            return Err(Status::OutOfRange);
        }
        Ok(())
    }

    fn mapping(&self, command: &Command) -> Option<&MapEntry> {
        self.mappings.iter().find(|m| m.pool == command.pool && m.thread == command.thread)
    }

    /// Executes a random pending command that waits for no earlier one.
    fn execute_one(&mut self) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let at = self.next() as usize % self.pending.len();
        let ready = |i: usize| {
            let this = &self.pending[i];
            let opcode = Opcode::from_code(this.command.opcode);
            let ordered = matches!(
                opcode,
                Some(Opcode::Fence | Opcode::Commit | Opcode::Switch | Opcode::Recover | Opcode::Map | Opcode::Unmap)
            );
            self.pending[..i].iter().all(|earlier| {
                let same = earlier.command.pool == this.command.pool && earlier.command.thread == this.command.thread;
                let conflict =
                    this.writes.iter().any(|w| earlier.writes.iter().chain(&earlier.reads).any(|e| overlap(w, e)))
                        || this.reads.iter().any(|r| earlier.writes.iter().any(|e| overlap(r, e)));
                !(conflict || ordered && same)
            })
        };
        let at = if ready(at) { at } else { 0 };
        let accepted = self.pending.remove(at);
        self.execute(accepted);
        true
    }

    fn execute(&mut self, accepted: Accepted) {
        let Accepted { command, page, order, reads, writes } = accepted;
        let opcode = Opcode::from_code(command.opcode).expect("only known opcodes are accepted");
        let base = self.mapping(&command).map_or(0, |m| m.base);
        if self.mapping(&command).is_some_and(|m| m.latched) && opcode != Opcode::Unmap {
            return self.answer(page, &command, Status::Latched, order);
        }
        let failed = self.broken.iter().any(|b| reads.iter().chain(&writes).any(|r| overlap(b, r)));
        if failed {
            for mapping in self.mappings.iter_mut().filter(|m| (m.pool, m.thread) == (command.pool, command.thread)) {
                mapping.latched |= matches!(opcode, Opcode::UndoLog | Opcode::Checkpoint);
            }
            return self.answer(page, &command, Status::MemoryError, order);
        }
        let length = command.length as usize;
        let source = (base + command.source) as usize;
        let destination = (base + command.destination) as usize;
        match opcode {
            Opcode::UndoLog | Opcode::Checkpoint => {
                let kind = if opcode == Opcode::UndoLog { EntryKind::Undo } else { EntryKind::Checkpoint };
                let head = EntryHead {
                    magic: ENTRY_MAGIC,
                    kind: kind as u8,
                    version: ENTRY_VERSION,
                    thread: command.thread,
                    sequence: command.sequence,
                    txid: command.txid,
                    offset: command.source,
                    length: command.length,
                    pool: command.pool,
                    ..EntryHead::default()
                };
                let entry = head.encode(&self.medium[source..source + length]);
                self.medium[destination..][..entry.len()].copy_from_slice(&entry);
            }
            Opcode::Apply | Opcode::Recover | Opcode::ShadowCopy => {
                self.medium.copy_within(source..source + length, destination);
            }
            Opcode::Commit | Opcode::Switch => {
                self.medium[destination..][..8].copy_from_slice(&command.auxiliary.to_le_bytes());
                for mapping in self.mappings.iter_mut().filter(|m| (m.pool, m.thread) == (command.pool, command.thread))
                {
                    if opcode == Opcode::Commit {
                        mapping.committed = command.txid;
                    }
                }
            }
            Opcode::Map => self.mappings.push(MapEntry {
                pool: command.pool,
                thread: command.thread,
                base: command.source,
                bytes: command.destination,
                ring: Range64 { start: command.auxiliary, bytes: command.length.into() },
                committed: command.sequence,
                latched: false,
            }),
            Opcode::Unmap => self.mappings.retain(|m| (m.pool, m.thread) != (command.pool, command.thread)),
            Opcode::Fence | Opcode::UndoRedo | Opcode::MirrorLog => {}
        }
        self.executed.push(command);
        self.answer(page, &command, Status::Ok, order);
    }

    fn answer(&mut self, page: usize, command: &Command, status: Status, order: u64) {
        let number = page as u8;
        let page = &mut self.pages[page];
        match status {
            Status::Ok => page.status.retired += 1,
            bad => {
                if bad.had_side_effects() {
                    page.status.failed += 1;
                } else {
                    page.status.refused += 1;
                }
                page.status.last_bad_tag = command.tag;
                page.status.last_bad_status = bad.code();
            }
        }
        let (address, Some(log2)) = page.ring else { return };
        if status == Status::Ok && command.flags & FLAG_COMPLETE == 0 {
            return;
        }
        let records = 1u64 << log2;
        let lap = (page.records / records + 1) as u16;
        let record = Completion { tag: command.tag, status: status.code(), page: number, lap, order };
        let at = (page.records % records) as usize * Completion::SIZE;
        page.records += 1;
        let buffer = &self.dma[&address];
        buffer.lock().unwrap_or_else(PoisonError::into_inner)[at..at + Completion::SIZE]
            .copy_from_slice(&record.to_bytes());
    }

    fn register(&self, offset: u32) -> u32 {
        let capabilities = [
            (self.options.host_ordered, capability::HOST_ORDERED),
            (self.options.completion_records, capability::COMPLETION_RECORDS),
            (true, capability::POWER_FAIL_SAFE),
        ];
        match offset {
            reg::ID => reg::ID_VALUE,
            reg::VERSION => INTERFACE_VERSION,
            reg::CAPABILITIES => capabilities.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum(),
            reg::PM_BYTES_LO => self.options.pm_bytes as u32,
            reg::PM_BYTES_HI => (self.options.pm_bytes as u64 >> 32) as u32,
            reg::STATE => self.card_state,
            reg::FIRMWARE_STATUS => self.firmware_status,
            reg::MAPPED => (1 << self.mappings.len()) - 1,
            _ => 0,
        }
    }

    fn set_register(&mut self, offset: u32, value: u32) {
        match offset {
            reg::CONTROL if value & control::ACKNOWLEDGE_LOSS != 0 => self.card_state = state::OPEN,
            reg::CONTROL if value & control::SHUT_DOWN != 0 => {
                while self.execute_one() {}
                self.card_state = state::SAVED;
            }
            reg::CONTROL if value & control::FUNCTION_RESET != 0 => self.reset(),
            reg::FIRMWARE_LOAD => self.load_firmware(value),
            _ => {}
        }
        for page in 0..COMMAND_PAGES {
            let base = reg::completion_ring(page);
            let ring = &mut self.pages[page].ring;
            if offset == base {
                ring.0 = ring.0 >> 32 << 32 | u64::from(value);
            } else if offset == base + 4 {
                ring.0 = ring.0 & 0xffff_ffff | u64::from(value) << 32;
            } else if offset == base + 8 {
                ring.1 = Some(value);
                self.pages[page].records = 0;
            }
        }
    }

    fn load_firmware(&mut self, slot: u32) {
        let start = FIRMWARE_BASE as usize + slot as usize * FIRMWARE_SLOT_BYTES as usize;
        let image = &self.medium[start..start + IMAGE_BYTES];
        let head: &[u8; LINE] = image[..LINE].try_into().expect("an image has a head");
        self.firmware_status = if image[..4] != IMAGE_MAGIC.to_le_bytes() {
            firmware_status::BAD_MAGIC
        } else if !nearpm_interface::seal::is_sealed(&image[LINE..], head) {
            firmware_status::BAD_CRC
        } else {
            self.card_state = state::OPEN;
            firmware_status::OK | slot << 8
        };
    }

    fn reset(&mut self) {
        while self.execute_one() {}
        self.mappings.clear();
        for page in &mut self.pages {
            page.ring = (0, None);
        }
    }
}

impl MockCard {
    /// A card with blank memory.
    pub fn new(options: MockOptions) -> MockCard {
        let medium = vec![0; options.pm_bytes];
        MockCard::with_medium(options, medium)
    }

    /// A card that powers up with the memory that another one left.
    pub fn with_medium(options: MockOptions, medium: Vec<u8>) -> MockCard {
        assert_eq!(medium.len(), options.pm_bytes, "a medium has the bytes of its card");
        let page = || Page { slots: vec![([0; LINE], 0); SLOTS_PER_PAGE], ..Page::default() };
        let mut config = [0; 64];
        config[..2].copy_from_slice(&PCI_VENDOR.to_le_bytes());
        config[2..4].copy_from_slice(&PCI_DEVICE.to_le_bytes());
        let state = State {
            card_state: options.state,
            firmware_status: 0,
            pages: (0..COMMAND_PAGES).map(|_| page()).collect(),
            mappings: Vec::new(),
            pending: Vec::new(),
            order: 0,
            cache: BTreeMap::new(),
            travelling: Vec::new(),
            recent: Vec::new(),
            dma: HashMap::new(),
            config,
            now_ns: 0,
            accesses: 0,
            gone: false,
            broken: Vec::new(),
            executed: Vec::new(),
            random: options.seed,
            medium,
            options,
        };
        MockCard { state: Arc::new(Mutex::new(state)) }
    }

    /// Cuts the power and gives what memory holds: everything accepted was carried out, nothing else.
    pub fn power_cut(&self) -> Vec<u8> {
        let mut state = self.lock();
        state.cut();
        state.medium.clone()
    }

    /// Host accesses so far.
    pub fn accesses(&self) -> u64 {
        self.lock().accesses
    }

    /// Whether the power was cut.
    pub fn is_gone(&self) -> bool {
        self.lock().gone
    }

    /// Makes the memory answer with an error in a range of device addresses.
    pub fn break_memory(&self, range: Range<u64>) {
        self.lock().broken.push(range);
    }

    /// Commands that were carried out, in the order of their execution.
    pub fn executed(&self) -> Vec<Command> {
        self.lock().executed.clone()
    }

    /// Makes a register bit of the identity wrong, for tests of refusal.
    pub fn set_config(&self, offset: usize, byte: u8) {
        self.lock().config[offset] = byte;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Window {
    card: MockCard,
    bar: usize,
    range: Range<u64>,
    caching: Caching,
}

impl Window {
    fn address(&self, offset: u64, bytes: usize) -> u64 {
        assert!(offset + bytes as u64 <= self.range.end - self.range.start, "an access leaves its window");
        self.range.start + offset
    }
}

impl Mapping for Window {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        let address = self.address(offset, data.len());
        let mut state = self.card.lock();
        if !state.tick() {
            return data.fill(0xff);
        }
        match self.bar {
            REGISTER_BAR => data.copy_from_slice(&state.register(address as u32).to_le_bytes()),
            COMMAND_BAR => {
                while state.travel_one() {}
                let status = state.pages[address as usize / COMMAND_PAGE_BYTES].status.to_bytes();
                data.copy_from_slice(&status[..data.len()]);
            }
            _ if self.caching == Caching::WriteBack => {
                let mut done = 0;
                while done < data.len() {
                    let at = address + done as u64;
                    let inside = (at % LINE_U64) as usize;
                    let bytes = (LINE - inside).min(data.len() - done);
                    let line = state.fetch(at - inside as u64);
                    data[done..done + bytes].copy_from_slice(&line.0[inside..inside + bytes]);
                    done += bytes;
                }
            }
            _ => state.pm_load(address, data),
        }
    }

    fn store(&self, offset: u64, data: &[u8]) {
        let address = self.address(offset, data.len());
        let mut state = self.card.lock();
        if !state.tick() {
            return;
        }
        if self.bar == REGISTER_BAR {
            let value = u32::from_le_bytes(data.try_into().expect("registers have four bytes"));
            return state.set_register(address as u32, value);
        }
        let mut done = 0;
        while done < data.len() {
            let at = address + done as u64;
            let inside = (at % LINE_U64) as usize;
            let cached = self.bar == PM_BAR && self.caching == Caching::WriteBack;
            // Words travel by themselves where they are not cached.
            let piece = if cached { LINE - inside } else { 8 - inside % 8 };
            let bytes = piece.min(data.len() - done);
            let part = &data[done..done + bytes];
            done += bytes;
            if cached {
                let line = state.fetch(at - inside as u64);
                line.0[inside..inside + bytes].copy_from_slice(part);
                line.1 = true;
                continue;
            }
            let store = match self.bar {
                COMMAND_BAR => Store::Command { offset: at, bytes: part.to_vec() },
                _ => Store::Pm { address: at, bytes: part.to_vec() },
            };
            if self.caching == Caching::WriteCombining {
                state.travelling.push(store);
            } else {
                state.arrive(store);
            }
        }
    }

    fn store_line(&self, offset: u64, line: &[u8; 64]) {
        let address = self.address(offset, line.len());
        let mut state = self.card.lock();
        if state.tick() {
            let store = match self.bar {
                COMMAND_BAR => Store::Command { offset: address, bytes: line.to_vec() },
                _ => Store::Pm { address, bytes: line.to_vec() },
            };
            state.travelling.push(store);
        }
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        let address = self.address(offset, bytes as usize);
        let mut state = self.card.lock();
        if !state.tick() || self.caching != Caching::WriteBack {
            return;
        }
        for line in lines(address..address + bytes).step_by(LINE) {
            if let Some((bytes, dirty @ true)) = state.cache.get_mut(&line) {
                *dirty = false;
                let bytes = bytes.to_vec();
                state.travelling.push(Store::Pm { address: line, bytes });
            }
        }
    }

    fn invalidate(&self, offset: u64, bytes: u64) {
        self.write_back(offset, bytes);
        let address = self.address(offset, bytes as usize);
        let mut state = self.card.lock();
        if !state.gone {
            for line in lines(address..address + bytes).step_by(LINE) {
                state.cache.remove(&line);
                state.touch(line);
            }
        }
    }

    fn fence(&self) {
        let mut state = self.card.lock();
        if state.tick() {
            while state.travel_one() {}
        }
    }
}

struct Buffer {
    address: u64,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl DmaBuffer for Buffer {
    fn bus_address(&self) -> u64 {
        self.address
    }
    fn bytes(&self) -> usize {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
    fn load(&self, offset: usize, data: &mut [u8]) {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        data.copy_from_slice(&bytes[offset..offset + data.len()]);
    }
}

impl PciFunction for MockCard {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        let state = self.lock();
        if state.gone {
            data.fill(0xff);
        } else {
            data.copy_from_slice(&state.config[offset as usize..][..data.len()]);
        }
        Ok(())
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.lock().config[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        match bar {
            REGISTER_BAR => Some(REGISTER_BAR_BYTES as u64),
            COMMAND_BAR => Some(COMMAND_BAR_BYTES as u64),
            PM_BAR => Some(self.lock().options.pm_bytes as u64),
            _ => None,
        }
    }

    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError> {
        let bytes = self.bar_bytes(bar).ok_or(PciError::NoBar { bar })?;
        if range.start > range.end || range.end > bytes {
            return Err(PciError::OutOfBar { bar, range, bytes });
        }
        Ok(Box::new(Window { card: self.clone(), bar, range, caching }))
    }

    fn interrupt_vectors(&self) -> usize {
        0
    }

    fn wait_interrupt(&self, _: usize, _: u64) -> Result<bool, PciError> {
        Err(PciError::Unsupported { what: "an interrupt" })
    }

    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        let mut state = self.lock();
        let address = 0x1_0000_0000 + state.dma.len() as u64 * 0x10_0000;
        let buffer = Arc::new(Mutex::new(vec![0; bytes]));
        state.dma.insert(address, buffer.clone());
        Ok(Box::new(Buffer { address, bytes: buffer }))
    }

    fn reset(&self) -> Result<(), PciError> {
        self.lock().reset();
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        self.lock().now_ns
    }

    fn relax(&self, ns: u64) {
        let mut state = self.lock();
        state.now_ns += ns;
        if !state.gone {
            state.execute_one();
        }
    }
}
