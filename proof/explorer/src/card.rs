//! A pool on a card: every access of the host to the pool is told to who records it, and to who
//! decides what a crash has left, on its way to the driver's mock, which is the card. The mock's
//! own processor cache evicts nothing here: what could have been evicted is worked out from what is
//! recorded ([`crate::lines`]), and what commands do ([`crate::commands`]) is done by the same
//! mock.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nearpm::memory::Memory;
use nearpm::{Error, Options, cards};
use nearpm_driver::mock::{MockCard, MockOptions};
use nearpm_driver::pci::{Caching, DmaBuffer, Mapping, PciError, PciFunction};
use nearpm_driver::{Card, CardOptions, Posting};
use nearpm_interface::completion::{Completion, PageStatus};
use nearpm_interface::geometry::{COMMAND_BAR, COMMAND_PAGE_BYTES, COMMAND_PAGES, LINE, PM_BAR, POOLS_BASE};

/// Name of the pool. It is alone on its card, so that it begins where pools begin.
const POOL: &str = "p";

/// What a card promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Host accesses and commands act as if in the order of their arrival (C1). Without that a
    /// command acts at any moment until the host has seen that it has ended.
    pub host_ordered: bool,
}

/// What else than memory the host reaches.
pub trait Watch: Memory + Clone {
    /// A command is posted on a page, as one line.
    fn command(&self, page: usize, line: &[u8; LINE]);
    /// The host has seen that the command of this tag has ended, or all that were posted on the
    /// page. Told of cards on which it matters.
    fn ended(&self, page: usize, tag: Option<u32>);
    /// Something is read that the card answers behind everything that was posted and fenced before.
    fn push(&self);
    /// Words that were decided since this was asked for: index and value.
    fn take_decided(&self) -> Vec<(usize, u64)>;
}

/// Bytes of the pool.
pub const POOL_BYTES: u64 = 200 << 10;

/// Identifier of the pool, of whatever kind.
pub const POOL_ID: u32 = 7;

/// A blank card that has room for the pool.
pub fn blank(rules: Rules) -> MockCard {
    MockCard::new(options(rules))
}

/// What the card is like.
pub fn options(Rules { host_ordered }: Rules) -> MockOptions {
    let pm_bytes = (POOLS_BASE + POOL_BYTES) as usize;
    MockOptions { pm_bytes, host_ordered, evict_one_in: 0, lazy: true, ..MockOptions::default() }
}

/// Device address of a word of the pool.
pub fn address_of(word: usize) -> u64 {
    POOLS_BASE + word as u64 * 8
}

/// What a card holds in front of the pool, without the zeros at its end.
fn front() -> Result<&'static [u8], Error> {
    static FRONT: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(front) = FRONT.get() {
        return Ok(front);
    }
    let card = blank(Rules { host_ordered: true });
    let named = register(card.clone())?;
    Options::new().id(POOL_ID).create(&named.pool(POOL), POOL_BYTES)?.close()?;
    let front = card.memory(0..POOLS_BASE);
    let used = front.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    Ok(FRONT.get_or_init(|| front[..used].to_vec()))
}

fn register(function: impl PciFunction + 'static) -> Result<cards::Registered, Error> {
    let options = CardOptions { posting: Posting::Line, ..CardOptions::default() };
    Ok(cards::Registered::new(Arc::new(Card::open(Arc::new(function), options)?)))
}

/// Creates the pool, at the location that `make` is given, on a blank card, and lets somebody see
/// what is done to it.
///
/// # Errors
/// As the library's.
pub fn create<P>(
    rules: Rules,
    card: MockCard,
    watch: impl Watch + 'static,
    make: impl FnOnce(&str) -> Result<P, Error>,
) -> Result<P, Error> {
    let named = register(Watched::new(card, rules, watch))?;
    make(&named.pool(POOL))
}

/// Opens the pool, at the location that `start` is given, on a card that powers up with what a
/// memory holds, recovering it.
///
/// # Errors
/// As the library's.
pub fn open<P>(
    rules: Rules,
    watch: impl Watch + 'static,
    words: &[u64],
    start: impl FnOnce(&str) -> Result<P, Error>,
) -> Result<P, Error> {
    let front = front()?;
    let mut medium = vec![0; (POOLS_BASE + POOL_BYTES) as usize];
    medium[..front.len()].copy_from_slice(front);
    for (bytes, word) in medium[POOLS_BASE as usize..].as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    let card = MockCard::with_medium(self::options(rules), medium);
    let named = register(Watched::new(card, rules, watch))?;
    start(&named.pool(POOL))
}

/// What the host has been told of commands.
struct Told<W> {
    watch: W,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Commands that were posted on each page, and how many of them a status line has shown as
    /// ended, all at once.
    pages: [(u32, u32); COMMAND_PAGES],
    /// Completion records that were read: page and tag.
    records: HashSet<(usize, u32)>,
}

impl<W: Watch> Told<W> {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn posted(&self, page: usize) {
        self.seen().pages[page].0 += 1;
    }

    /// Counts alone do not say which of the commands have ended, where some have not.
    fn status(&self, page: usize, status: &PageStatus) {
        let (posted, told) = &mut self.seen().pages[page];
        let ended = status.retired + status.refused + status.failed + status.dropped;
        if ended == *posted && *told < ended {
            *told = ended;
            self.watch.ended(page, None);
        }
    }

    fn record(&self, record: &Completion) {
        let (page, tag) = (record.page.into(), record.tag);
        // One that was never written is of no lap.
        if record.lap != 0 && self.seen().records.insert((page, tag)) {
            self.watch.ended(page, Some(tag));
        }
    }
}

/// The card's function, watched.
struct Watched<W> {
    card: MockCard,
    watch: W,
    /// Where commands act at any moment until they have ended.
    told: Option<Arc<Told<W>>>,
}

impl<W: Watch> Watched<W> {
    fn new(card: MockCard, rules: Rules, watch: W) -> Watched<W> {
        let told = || Arc::new(Told { watch: watch.clone(), seen: Mutex::default() });
        Watched { told: (!rules.host_ordered).then(told), card, watch }
    }
}

impl<W: Watch + 'static> PciFunction for Watched<W> {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        self.card.config_read(offset, data)
    }
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.card.config_write(offset, data)
    }
    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        self.card.bar_bytes(bar)
    }
    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError> {
        let inner = self.card.map(bar, range.clone(), caching)?;
        let place = match bar {
            COMMAND_BAR => WindowTarget::Commands { page: range.start as usize / COMMAND_PAGE_BYTES },
            PM_BAR if range.start == POOLS_BASE => WindowTarget::Pool,
            _ => WindowTarget::Elsewhere,
        };
        let (card, watch, told) = (self.card.clone(), self.watch.clone(), self.told.clone());
        Ok(Box::new(Window { inner, card, watch, told, place }))
    }
    fn interrupt_vectors(&self) -> usize {
        self.card.interrupt_vectors()
    }
    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError> {
        self.card.wait_interrupt(vector, timeout_ns)
    }
    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        let inner = self.card.allocate_dma(bytes)?;
        Ok(match &self.told {
            Some(told) => Box::new(Records { inner, told: told.clone() }),
            None => inner,
        })
    }
    fn reset(&self) -> Result<(), PciError> {
        self.card.reset()
    }
    fn host_boot(&self) -> Option<u64> {
        self.card.host_boot()
    }
    fn now_ns(&self) -> u64 {
        self.card.now_ns()
    }
    fn relax(&self, ns: u64) {
        self.card.relax(ns);
    }
    fn contended(&self) -> bool {
        self.card.contended()
    }
}

/// Memory for completion records.
struct Records<W> {
    inner: Box<dyn DmaBuffer>,
    told: Arc<Told<W>>,
}

impl<W: Watch> DmaBuffer for Records<W> {
    fn bus_address(&self) -> u64 {
        self.inner.bus_address()
    }
    fn bytes(&self) -> usize {
        self.inner.bytes()
    }
    fn load(&self, offset: usize, data: &mut [u8]) {
        self.inner.load(offset, data);
        let record = (&*data).try_into().expect("records are read whole");
        self.told.record(&Completion::from_bytes(record));
    }
}

/// What a window shows.
#[derive(Clone, Copy)]
enum WindowTarget {
    Pool,
    Commands {
        page: usize,
    },
    /// Registers, and the table of pools, which nobody changes while crashes are explored.
    Elsewhere,
}

struct Window<W> {
    inner: Box<dyn Mapping>,
    card: MockCard,
    watch: W,
    told: Option<Arc<Told<W>>>,
    place: WindowTarget,
}

impl<W: Watch> Window<W> {
    /// Puts what was decided into the card's memory.
    fn settle(&self) {
        for (word, value) in self.watch.take_decided() {
            self.card.set_memory(address_of(word), &value.to_le_bytes());
        }
    }

    fn is_pool(&self) -> bool {
        matches!(self.place, WindowTarget::Pool)
    }
}

impl<W: Watch> Mapping for Window<W> {
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        match self.place {
            WindowTarget::Pool => {
                self.watch.load(offset, data);
                self.settle();
            }
            WindowTarget::Commands { .. } => self.watch.push(),
            WindowTarget::Elsewhere => {}
        }
        self.inner.load(offset, data);
        if let (WindowTarget::Commands { page }, Some(told)) = (self.place, &self.told) {
            let line = (&*data).try_into().expect("a status line is read whole");
            told.status(page, &PageStatus::from_bytes(line));
        }
    }
    fn store(&self, offset: u64, data: &[u8]) {
        match self.place {
            WindowTarget::Pool => {
                self.watch.store(offset, data);
                self.settle();
            }
            WindowTarget::Commands { .. } => unreachable!("commands are posted as lines"),
            WindowTarget::Elsewhere => {}
        }
        self.inner.store(offset, data);
    }
    fn store_line(&self, offset: u64, line: &[u8; LINE]) {
        match self.place {
            WindowTarget::Pool => self.watch.stream(offset, line),
            WindowTarget::Commands { page } => {
                for range in
                    self.card.footprint(page, line).into_iter().flat_map(|(reads, writes)| [reads, writes].concat())
                {
                    let mut lines = vec![0; (range.end - range.start) as usize];
                    self.watch.load(range.start - POOLS_BASE, &mut lines);
                }
                self.settle();
                self.watch.command(page, line);
                if let Some(told) = &self.told {
                    told.posted(page);
                }
            }
            WindowTarget::Elsewhere => {}
        }
        self.inner.store_line(offset, line);
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        if self.is_pool() {
            self.watch.write_back(offset, bytes);
        }
        self.inner.write_back(offset, bytes);
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        if self.is_pool() {
            // Dirty lines are written back first, which memory's own recording does not do.
            self.watch.write_back(offset, bytes);
        }
        self.inner.invalidate(offset, bytes);
    }
    /// A fence is that of the processor, through whatever window.
    fn fence(&self) {
        // Neither memory fails in a fence.
        let _ = self.watch.fence();
        self.inner.fence();
    }
}
