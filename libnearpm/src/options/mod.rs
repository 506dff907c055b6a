//! How a pool is created and opened.

mod refusals;

use nearpm_driver::pci::Caching;

pub(crate) use refusals::{MediumKind, Request};

use crate::lint::Lint;
use crate::memory::{PowerCut, Survives};

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
    /// Each 4 KiB page is copied before its first store in an epoch. Acknowledged when the epoch is
    /// cut.
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

/// What the program's loads and stores go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Persistent memory itself, by pointer. A line may be evicted at any time, so that each
    /// snapshot is durable before the store.
    InPlace,
    /// A volatile copy of the pool, by pointer. What a commit names is logged, durable with one
    /// fence, and written home later.
    #[default]
    WorkingCopy,
    /// Persistent memory, by offsets: a transaction's calls read it and write it. The pool may be
    /// larger than memory, and lie on several cards.
    Offsets,
}

impl Mode {
    /// Name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Mode::InPlace => "in-place",
            Mode::WorkingCopy => "working-copy",
            Mode::Offsets => "offsets",
        }
    }
}

/// How a pool in a file grows while it is open: by itself when it is full, or by
/// [`crate::direct::DirectPool::grow`].
///
/// Addresses stay as they are: the process keeps room for `most` bytes behind them, which takes no
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Growth {
    /// Bytes by which the pool grows at least when an object finds no room; 0: by
    /// [`crate::direct::DirectPool::grow`] alone.
    pub by: u64,
    /// Bytes that the pool has at most.
    pub most: u64,
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
    /// back, together with every later transaction. Under checkpointing and shadow paging so may
    /// the end of a process that does not close the pool.
    Asynchronous,
}

/// How commits over several cards wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Synchronisation {
    /// The processor waits until every card has its part of the transaction, before it sends the
    /// first commit.
    #[default]
    Software,
    /// Commits are sent to all cards at once, and each card waits for the others before it deletes
    /// the log: NearPM's delayed synchronisation. Where the cards cannot, the processor waits
    /// ([`crate::Statistics::fallbacks`]).
    Delayed,
}

/// How a pool is created and opened: a [`crate::direct::DirectPool`], whose objects the program
/// reaches by pointer, or a [`crate::Pool`], which it reads and writes by offsets. What cannot be
/// had together is refused, with what to change.
///
/// Options that shape the medium (`lanes`, `ring_bytes`, `spare_pages`, `stripe_bytes`) matter at
/// creation and are ignored when opening. A pool may be opened with another mechanism, and in
/// another mode, each time.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) mode: Option<Mode>,
    pub(crate) mechanism: Option<Mechanism>,
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
    pub(crate) permissions: Option<u32>,
    pub(crate) read_only: bool,
    pub(crate) copy_on_write: bool,
    pub(crate) prefault: bool,
    pub(crate) lint: Lint,
    pub(crate) power_cut: Option<PowerCut>,
    pub(crate) growth: Option<Growth>,
    pub(crate) write_once_from: Option<u64>,
    pub(crate) mode_by_use: bool,
    pub(crate) concurrent: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options::new()
    }
}

impl Options {
    /// The mode and the mechanism that the kind of pool has by itself, the card if there is one,
    /// durable commits that survive power cuts, epochs of 1024 transactions, everything else by the
    /// pool's size.
    pub fn new() -> Self {
        Options {
            mode: None,
            mechanism: None,
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
            permissions: None,
            read_only: false,
            copy_on_write: false,
            prefault: false,
            lint: Lint::Off,
            power_cut: None,
            growth: None,
            write_once_from: None,
            mode_by_use: false,
            concurrent: false,
        }
    }
    /// What the program's loads and stores go to. Default: [`Mode::WorkingCopy`] for a
    /// [`crate::direct::DirectPool`], [`Mode::Offsets`] for a [`crate::Pool`], which has no other.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }
    /// How transactions survive a crash. By default a [`crate::Pool`] has undo logs. The commits of
    /// a working copy go home by records: their new bytes are packed into a log that the processor
    /// writes, which is the least work for a processor. With a mechanism they go home by the log
    /// ring of that mechanism, which the card makes where the pool is on one; what the ring has no
    /// room for goes by records all the same. Under [`Mechanism::Shadow`] the copy is made of all
    /// that is in use, also of a file's pool, and the pool needs [`Options::spare_pages`].
    pub fn mechanism(mut self, mechanism: impl Into<Option<Mechanism>>) -> Self {
        self.mechanism = mechanism.into();
        self
    }
    /// Who makes the copies that the mechanism needs; records are made by the processor, whatever
    /// this says.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }
    /// What a commit waits for. By pointer, only a working copy of an ordinary file or on a card,
    /// and one with a mechanism, has asynchronous commits: elsewhere a fence is cheap, and belongs
    /// to one processor. Durable commits of a working copy under [`Mechanism::Checkpoint`] end an
    /// epoch each, asynchronous ones share them.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
    /// What a pool on an ordinary file survives (a file on DAX memory survives power cuts either
    /// way).
    pub fn survives(mut self, survives: Survives) -> Self {
        self.survives = survives;
        self
    }
    /// How the processor caches the memory of a card, in [`Mode::Offsets`].
    pub fn caching(mut self, caching: Caching) -> Self {
        self.caching = caching;
        self
    }
    /// Log rings, 1 to 64, on each card of the pool. Transactions by offsets use the last one; the
    /// others are for the thread numbers of the primitives. By pointer those under undo logs use up
    /// to 16, where a drain is no call. Default in [`Mode::Offsets`]: 8, fewer in pools below
    /// 16 MiB; by pointer as many as there, of 128 KiB each in a sixteenth of the pool, else 1.
    pub fn lanes(mut self, lanes: impl Into<Option<u16>>) -> Self {
        self.lanes = lanes.into();
        self
    }
    /// Bytes of each log ring, a multiple of 4096, 16 KiB to 64 MiB. Bounds what one transaction
    /// may log, and the pages of an epoch under checkpointing. Default in [`Mode::Offsets`]: a
    /// quarter of the pool for all rings, at most 1 MiB each; by pointer a sixteenth, and 16 KiB
    /// without a mechanism.
    pub fn ring_bytes(mut self, bytes: impl Into<Option<u32>>) -> Self {
        self.ring_bytes = bytes.into();
        self
    }
    /// Pages of 4 KiB beyond the heap, for shadow paging: bounds the pages of an epoch.
    /// Default in [`Mode::Offsets`], and with [`Mechanism::Shadow`]: an eighth of the heap; else
    /// none.
    pub fn spare_pages(mut self, pages: impl Into<Option<u64>>) -> Self {
        self.spare_pages = pages.into();
        self
    }
    /// Bytes of a stripe of a pool over several cards: 2 MiB or a larger power of two, and 2 MiB by
    /// default.
    pub fn stripe_bytes(mut self, bytes: impl Into<Option<u32>>) -> Self {
        self.stripe_bytes = bytes.into();
        self
    }
    /// How commits over several cards wait for each other. A pool may be opened with another one
    /// each time.
    pub fn synchronisation(mut self, synchronisation: Synchronisation) -> Self {
        self.synchronisation = synchronisation;
        self
    }
    /// Transactions after which an epoch is cut by itself, in [`Mode::Offsets`]; 0 leaves that to
    /// [`crate::Pool::cut`] and to the room in log or spare pages.
    pub fn epoch_ops(mut self, transactions: u64) -> Self {
        self.epoch_ops = transactions;
        self
    }
    /// Opens a pool in a file for reading: together with other processes that do, and without
    /// changing a byte, as a log that waits is read into the memory of this process. Calls that
    /// would change something fail with [`crate::Error::ReadOnly`], and so do all primitives; a
    /// store by pointer ends the process, as one to read-only memory does.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }
    /// Opens a pool in a file for changes that nobody else sees, and that are forgotten when it is
    /// closed: they go to memory of this process, which takes as much as they need, and what is
    /// durable is so until then. By pointer, and in place whatever the mode; others may read the
    /// file meanwhile, and none may write it. Not for new pools.
    pub fn copy_on_write(mut self, copy_on_write: bool) -> Self {
        self.copy_on_write = copy_on_write;
        self
    }
    /// Maps every page of a pool in a file when it is made or opened, so that no transaction pays
    /// for a page fault; a working copy takes as much memory then as the pool has bytes. Where
    /// durability is `msync`'s, the first store to a page behind each `msync` pays all the same.
    pub fn prefault(mut self, prefault: bool) -> Self {
        self.prefault = prefault;
        self
    }
    /// Looks for faults of a program that stores by pointer: stores that are not made durable, not
    /// added, or made durable twice. It takes twice the memory of the heap and reads the heap at
    /// each transaction.
    pub fn lint(mut self, lint: Lint) -> Self {
        self.lint = lint;
        self
    }
    /// For tests of programs: the pool's file is worked on as persistent memory whose power fails,
    /// or as a file of an ordinary file system ([`PowerCut::torn`]).
    pub fn power_cut(mut self, power_cut: impl Into<Option<PowerCut>>) -> Self {
        self.power_cut = power_cut.into();
        self
    }
    /// By pointer, on an ordinary file: new objects of at least so many bytes go to their place at
    /// once, with their checksum in the log, and shorter ones to the log first; by default 2 KiB,
    /// and never less than 512 B. More suits devices that write many small places slowly.
    pub fn write_once_from(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.write_once_from = bytes.into();
        self
    }
    /// By pointer: a pool that would have a working copy is opened in place where its last program
    /// has made much more durable outside of transactions than in them, and its medium allows it.
    /// Either mode keeps all that is promised.
    pub fn mode_by_use(mut self, by_use: bool) -> Self {
        self.mode_by_use = by_use;
        self
    }
    /// By offsets: any number of transactions may be open in several threads, and only their ends
    /// wait for each other, never for a body. By default one runs at a time; by pointer it is
    /// always so.
    ///
    /// A transaction collects what it changes in memory, as much as it writes, and its end does all
    /// of it. So it is told at the end where log or spare pages have no room
    /// ([`crate::Error::TooLarge`]), and nothing has happened. Others see what it changes when it
    /// has committed, which may be before that is durable; their own commits become durable behind
    /// it. Programs keep apart what their threads change at the same time, and do not read
    /// meanwhile what another one changes: by locks of their own, which a body may wait for. The
    /// heap and the root are the library's.
    pub fn concurrent(mut self, concurrent: bool) -> Self {
        self.concurrent = concurrent;
        self
    }
    /// How far a [`crate::direct::DirectPool`] in a file may grow while it is open; not at all by
    /// default.
    pub fn growth(mut self, growth: impl Into<Option<Growth>>) -> Self {
        self.growth = growth.into();
        self
    }
    /// Bytes that a pool may have while it is open, 0 for those that it has.
    pub(crate) fn most_bytes(&self) -> u64 {
        self.growth.map_or(0, |growth| growth.most)
    }
    /// Permission bits of the pool's file at creation; by default 0666 less those of the umask.
    pub fn permissions(mut self, bits: impl Into<Option<u32>>) -> Self {
        self.permissions = bits.into();
        self
    }
    /// Identifier of the pool at creation, not 0; by default it is drawn at random.
    pub fn id(mut self, id: impl Into<Option<u32>>) -> Self {
        self.id = id.into();
        self
    }
}
