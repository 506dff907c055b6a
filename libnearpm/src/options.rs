//! How a pool is created and opened.

use nearpm_driver::pci::Caching;

use crate::memory::Survives;

/// How a transaction survives a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// Old values are logged before each first store; stores go in place. Acknowledged when a
    /// durable commit returns.
    #[default]
    Undo,
    /// New values are collected, logged at commit and then applied. Acknowledged when a durable
    /// commit returns.
    Redo,
    /// Each 4 KiB page is copied before its first store in an epoch. Acknowledged when the epoch is cut.
    Checkpoint,
    /// Each 4 KiB page is copied aside at its first store in an epoch, and all references switch at
    /// once. Acknowledged when the epoch is cut.
    Shadow,
}

impl Mechanism {
    /// Every mechanism.
    pub const ALL: [Mechanism; 4] = [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint, Mechanism::Shadow];

    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Undo => "undo",
            Mechanism::Redo => "redo",
            Mechanism::Checkpoint => "checkpoint",
            Mechanism::Shadow => "shadow",
        }
    }

    /// Whether transactions are acknowledged by epochs ([`crate::Pool::cut`]).
    pub fn has_epochs(self) -> bool {
        matches!(self, Mechanism::Checkpoint | Mechanism::Shadow)
    }
}

impl std::str::FromStr for Mechanism {
    type Err = String;
    fn from_str(text: &str) -> Result<Mechanism, String> {
        Mechanism::ALL
            .into_iter()
            .find(|m| m.name() == text)
            .ok_or_else(|| format!("unknown mechanism {text:?}: use undo, redo, checkpoint or shadow"))
    }
}

/// Who makes the copies that the mechanism needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The card where the pool is on one, else the processor.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// The card; a pool that is not on one is refused.
    Card,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// It returns when the transaction survives a power cut.
    #[default]
    Durable,
    /// It returns when the commit is ordered before everything later. The next durable commit or
    /// [`crate::Pool::persist`] on the pool acknowledges it; until then a power cut may take it
    /// back, together with every later transaction.
    Asynchronous,
}

/// How commits over several cards wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Synchronisation {
    /// The processor waits until every card has its part of the transaction, before it sends the first commit.
    #[default]
    Software,
    /// Commits are sent to all cards at once, and each card waits for the others before it deletes the log: NearPM's delayed synchronisation. Where the
    /// cards cannot, the processor waits ([`crate::Statistics::fallbacks`]).
    Delayed,
}

/// How a pool is created and opened. Options that shape the medium (`lanes`, `ring_bytes`,
/// `spare_pages`, `stripe_bytes`) matter at creation and are ignored when opening.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    pub(crate) mechanism: Mechanism,
    pub(crate) engine: Engine,
    pub(crate) durability: Durability,
    pub(crate) survives: Survives,
    pub(crate) caching: Caching,
    pub(crate) lanes: Option<u16>,
    pub(crate) ring_bytes: Option<u32>,
    pub(crate) spare_pages: Option<u64>,
    pub(crate) stripe_bytes: Option<u32>,
    pub(crate) synchronisation: Synchronisation,
    pub(crate) epoch_ops: u64,
    pub(crate) id: Option<u32>,
    pub(crate) read_only: bool,
    pub(crate) prefault: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions::new()
    }
}

impl PoolOptions {
    /// Undo logging, card if there is one, durable commits that survive power cuts,
    /// epochs of 1024 transactions, everything else by the pool's size.
    pub fn new() -> Self {
        PoolOptions {
            mechanism: Mechanism::Undo,
            engine: Engine::Auto,
            durability: Durability::Durable,
            survives: Survives::PowerCut,
            caching: Caching::WriteBack,
            lanes: None,
            ring_bytes: None,
            spare_pages: None,
            stripe_bytes: None,
            synchronisation: Synchronisation::Software,
            epoch_ops: 1024,
            id: None,
            read_only: false,
            prefault: false,
        }
    }
    /// How transactions survive a crash. A pool may be opened with another mechanism each time.
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.mechanism = mechanism;
        self
    }
    /// Who makes the copies.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }
    /// What [`crate::Pool::tx`] waits for.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
    /// What a pool on an ordinary file survives (a file on DAX memory survives power cuts either way).
    pub fn survives(mut self, survives: Survives) -> Self {
        self.survives = survives;
        self
    }
    /// How the processor caches the memory of a card.
    pub fn caching(mut self, caching: Caching) -> Self {
        self.caching = caching;
        self
    }
    /// Log rings, 1 to 64, on each card of the pool. Transactions use the last one; the others are for the thread numbers of the
    /// primitives. Default: 8, fewer in pools below 16 MiB.
    pub fn lanes(mut self, lanes: u16) -> Self {
        self.lanes = Some(lanes);
        self
    }
    /// Bytes of each log ring, a multiple of 4096, 16 KiB to 64 MiB. Bounds what one transaction may
    /// log, and the pages of an epoch under checkpointing. Default: a quarter of the pool for all
    /// rings, at most 1 MiB each.
    pub fn ring_bytes(mut self, bytes: u32) -> Self {
        self.ring_bytes = Some(bytes);
        self
    }
    /// Pages of 4 KiB beyond the heap, for shadow paging: bounds the pages of an epoch.
    /// Default: an eighth of the heap.
    pub fn spare_pages(mut self, pages: u64) -> Self {
        self.spare_pages = Some(pages);
        self
    }
    /// Bytes of a stripe of a pool over several cards: 2 MiB or a larger power of two, and 2 MiB by default.
    pub fn stripe_bytes(mut self, bytes: u32) -> Self {
        self.stripe_bytes = Some(bytes);
        self
    }
    /// How commits over several cards wait for each other. A pool may be opened with another one each time.
    pub fn synchronisation(mut self, synchronisation: Synchronisation) -> Self {
        self.synchronisation = synchronisation;
        self
    }
    /// Transactions after which an epoch is cut by itself; 0 leaves that to [`crate::Pool::cut`]
    /// and to the room in log or spare pages.
    pub fn epoch_ops(mut self, transactions: u64) -> Self {
        self.epoch_ops = transactions;
        self
    }
    /// Opens a pool in a file for reading: together with other processes that do, and without changing a byte, as a log that waits is read
    /// into the memory of this process. Calls that would change something fail with [`crate::Error::ReadOnly`], and so do all primitives.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }
    /// Maps every page of a pool in a file when it is made or opened, so that no transaction pays for a page fault. Where durability is `msync`'s, the first
    /// store to a page behind each `msync` does all the same.
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.prefault = prefault;
        self
    }
    /// Identifier of the pool at creation, not 0; by default it is drawn at random.
    pub fn id(mut self, id: u32) -> Self {
        self.id = Some(id);
        self
    }
}
