//! A card made of a byte array, for tests of the driver and of what stands above it.
//!
//! It keeps the contract and is otherwise as hostile as the contract allows, by a seed:
//! - commands are accepted at once and executed late, out of order where they do not conflict, and
//!   never before a host access that they conflict with needs them (unless the card is told not to
//!   order host accesses);
//! - the processor's cache in front of a write-back window evicts, and loads speculatively, at any
//!   moment, and never learns what the card writes;
//! - what is written back, or stored to a write-combining window, leaves at any moment until the
//!   fence; a fence gives order and no more: what has left reaches the card at any later moment,
//!   ahead of what a load behind it answers;
//! - a command beyond those that the card has room for stays in its slot, and is lost where that is
//!   written again;
//! - a line that is to be dropped from the cache stays there, and is loaded from there, up to any
//!   moment until the fence;
//! - a window that is not cached drops no lines, which others may have left in the cache;
//! - at a power cut everything accepted is carried out, any part of what is on its way still
//!   arrives, and the rest is lost.
//!
//! It says nothing about time, and reads no firmware: it knows the opcodes by itself.

mod apart;
mod execution;
mod function;
mod link;
mod port;
mod registers;
mod window;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm_interface::INTERFACE_VERSION;
use nearpm_interface::command::Command;
use nearpm_interface::completion::PageStatus;
use nearpm_interface::geometry::{
    COMMAND_PAGES, LINE, LINE_U64, PCI_DEVICE, PCI_VENDOR, REQUEST_SLOTS, SLOTS_PER_PAGE,
};
use nearpm_interface::registers::state;

use crate::registers::LostStores;

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
    /// Version of its interface.
    pub version: u32,
    /// Commands that it has room for. Further ones stay in their slots.
    pub request_slots: usize,
    /// Commands are carried out only when something waits for them.
    pub lazy: bool,
    /// Firmware loads that find the card not idle, as where the processor loads ahead of time.
    pub busy_loads: u32,
    /// Reads of the status of a firmware load that show that it is under way.
    pub load_looks: u32,
    /// Power fails after so many host accesses.
    pub cut_after: Option<u64>,
    /// Whether there is power, where cards share a supply: it fails with the first of them that is
    /// cut.
    pub supply: Option<Arc<AtomicBool>>,
    /// MSI-X vectors: one a command page, or one for all.
    pub vectors: usize,
    /// Interrupts do not arrive.
    pub lose_interrupts: bool,
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
            version: INTERFACE_VERSION,
            request_slots: REQUEST_SLOTS,
            lazy: false,
            busy_loads: 0,
            load_looks: 0,
            cut_after: None,
            supply: None,
            vectors: 0,
            lose_interrupts: false,
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
    /// Its place in the table.
    entry: u32,
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
#[derive(Clone)]
struct Accepted {
    command: Command,
    page: usize,
    order: u64,
    /// Device addresses, whole lines.
    reads: Vec<Range<u64>>,
    writes: Vec<Range<u64>>,
}

/// Device addresses that a command reads, and those that it writes.
pub type Access = (Vec<Range<u64>>, Vec<Range<u64>>);

#[derive(Clone, Default)]
struct Page {
    slots: Vec<([u8; LINE], u64)>,
    status: PageStatus,
    ring: (u64, Option<u32>),
    records: u64,
}

#[derive(Clone)]
struct State {
    options: MockOptions,
    medium: Vec<u8>,
    card_state: u32,
    firmware_status: u32,
    /// A load that was asked for: its slot, and reads of the status until its outcome shows.
    load_asked: Option<(u32, u32)>,
    pages: Vec<Page>,
    mappings: Vec<MapEntry>,
    pending: Vec<Accepted>,
    /// Pages and slots of whole commands that wait for room, in the order of their arrival.
    full_slots: VecDeque<(usize, usize)>,
    order: u64,
    /// Lines of the processor's cache, by device address; true for dirty.
    cache: BTreeMap<u64, ([u8; LINE], bool)>,
    /// What the processor has in its buffers.
    travelling: Vec<Store>,
    /// What is in the link, in order.
    link: VecDeque<Store>,
    /// Lines that will be dropped from the cache, at the fence at the latest.
    dropping: Vec<u64>,
    /// Lines that were touched or dropped lately.
    recent: Vec<u64>,
    dma: HashMap<u64, Arc<Mutex<Vec<u8>>>>,
    config: [u8; 64],
    now_ns: u64,
    polls: u64,
    /// By vector.
    signalled: Vec<bool>,
    accesses: u64,
    gone: bool,
    /// Ranges of device addresses whose memory answers with an error.
    broken: Vec<Range<u64>>,
    /// Ranges of device addresses whose memory refuses stores.
    refusing: Vec<Range<u64>>,
    lost: Option<LostStores>,
    executed: Vec<Command>,
    random: u64,
}

#[derive(Clone)]
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
        let no_power = self.options.supply.as_ref().is_some_and(|supply| !supply.load(Ordering::Relaxed));
        if no_power || self.options.cut_after.is_some_and(|n| self.accesses > n) {
            self.cut();
        }
        if self.gone {
            return false;
        }
        if self.chance(4) {
            self.travel_one();
        }
        if self.chance(4) {
            self.deliver_one();
        }
        if self.chance(4) {
            self.drop_one();
        }
        // Some cards are prompt and some are as late as they may be.
        if self.chance(if self.options.seed.is_multiple_of(2) { 3 } else { 60 }) && !self.options.lazy {
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
            // Any part of what was on its way has still arrived: what was in the link in its order,
            // what the processor had in its buffers in none.
            let on_the_way = self.link.len() + self.travelling.len();
            for _ in 0..self.next() as usize % (on_the_way + 1) {
                if self.link.is_empty() {
                    self.travel_one();
                }
                self.deliver_one();
            }
            self.full_slots.clear();
            while self.execute_one() {}
            self.gone = true;
            if let Some(supply) = &self.options.supply {
                supply.store(false, Ordering::Relaxed);
            }
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
            load_asked: None,
            pages: (0..COMMAND_PAGES).map(|_| page()).collect(),
            mappings: Vec::new(),
            pending: Vec::new(),
            full_slots: VecDeque::new(),
            order: 0,
            cache: BTreeMap::new(),
            travelling: Vec::new(),
            link: VecDeque::new(),
            dropping: Vec::new(),
            recent: Vec::new(),
            dma: HashMap::new(),
            config,
            now_ns: 0,
            polls: 0,
            signalled: vec![false; options.vectors],
            accesses: 0,
            gone: false,
            broken: Vec::new(),
            refusing: Vec::new(),
            lost: None,
            executed: Vec::new(),
            random: options.seed,
            medium,
            options,
        };
        MockCard { state: Arc::new(Mutex::new(state)) }
    }

    /// Cuts the power and gives what memory holds: everything accepted was carried out, nothing
    /// else.
    pub fn power_cut(&self) -> Vec<u8> {
        let mut state = self.lock();
        state.cut();
        state.medium.clone()
    }

    /// Lets power fail after so many further host accesses.
    pub fn cut_in(&self, accesses: u64) {
        let mut state = self.lock();
        state.options.cut_after = Some(state.accesses + accesses);
    }

    /// Host accesses so far.
    pub fn accesses(&self) -> u64 {
        self.lock().accesses
    }

    /// How often somebody has let time pass to look again.
    pub fn polls(&self) -> u64 {
        self.lock().polls
    }

    /// Whether the power was cut.
    pub fn is_gone(&self) -> bool {
        self.lock().gone
    }

    /// Makes the memory answer with an error in a range of device addresses.
    pub fn break_memory(&self, range: Range<u64>) {
        self.lock().broken.push(range);
    }

    /// From now on memory refuses stores to these device addresses, after the card has accepted
    /// them.
    pub fn refuse_stores(&self, range: Range<u64>) {
        self.lock().refusing.push(range);
    }

    /// Commands that were carried out, in the order of their execution.
    pub fn executed(&self) -> Vec<Command> {
        self.lock().executed.clone()
    }

    /// Lets everything arrive that was posted and fenced, and carries it out.
    pub fn finish_commands(&self) {
        let mut state = self.lock();
        while state.deliver_one() {}
        while state.execute_one() {}
    }

    /// Makes a register bit of the identity wrong, for tests of refusal.
    pub fn set_config(&self, offset: usize, byte: u8) {
        self.lock().config[offset] = byte;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
