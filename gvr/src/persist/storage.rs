//! Where the pools of a job lie.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nearpm::Options;
use nearpm::direct::DirectPool;
use nearpm::memory::TestMemory;
use nearpm_newfile::{Durability, NewFile};

use crate::error::{Error, Result};

/// Which pools are a job's now: each restart on another number of ranks makes new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// Number of the set of pools, from 1.
    pub generation: u64,
    /// Ranks, each of which has a pool.
    pub ranks: usize,
    /// Whether each rank's versions are held by the next rank, too.
    pub partners: bool,
}

/// Who holds a pool with a rank's versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// The rank itself.
    Owner,
    /// Its partner: the next rank, of the last one the first.
    Partner,
}

/// Where pools lie. Each rank has a handle of its own.
pub trait Storage {
    /// What it is called in messages.
    fn name(&self) -> String;
    /// The pools that are the job's, `None` if there is no job.
    ///
    /// # Errors
    /// [`Error::Job`], [`Error::System`].
    fn current(&self) -> Result<Option<Current>>;
    /// Makes other pools the job's, at once. One rank calls it.
    ///
    /// # Errors
    /// [`Error::System`].
    fn publish(&self, current: Current) -> Result<()>;
    /// Whether jobs that are made here have partner copies.
    fn partners(&self) -> bool {
        false
    }
    /// Makes a pool for a rank's versions; one that was left over from a try before is replaced.
    ///
    /// # Errors
    /// Those of the pool.
    fn create(&self, generation: u64, rank: usize, holder: Holder, bytes: u64) -> Result<DirectPool>;
    /// Opens a pool with a rank's versions, for its holder, or, `shared`, to read in it beside
    /// others.
    ///
    /// # Errors
    /// [`Error::MissingPool`], those of the pool.
    fn open(&self, current: Current, rank: usize, holder: Holder, shared: bool) -> Result<DirectPool>;
    /// Removes pools of a set that is not the job's any more. What cannot be removed stays.
    fn remove(&self, current: Current);
}

/// A folder with a file for each rank, and one that says which they are.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    options: Options,
    partners: bool,
}

impl Folder {
    const CURRENT: &str = "job";

    /// The folder at a path. What is durable there survives power cuts.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder::with(path, Options::new())
    }

    /// As [`Folder::new`], with pools that are opened in another way.
    pub fn with(path: impl Into<PathBuf>, options: Options) -> Folder {
        Folder { path: path.into(), options, partners: false }
    }

    /// Jobs that are made here have partner copies: a rank's versions are held by the next rank,
    /// too, so that a pool that is lost, or a block that is damaged wherever the rank has it, costs
    /// nothing. Each version is written twice.
    pub fn with_partners(self) -> Folder {
        Folder { partners: true, ..self }
    }

    fn pool(&self, generation: u64, rank: usize, holder: Holder) -> PathBuf {
        let whose = if holder == Holder::Owner { "" } else { "-partner" };
        self.path.join(format!("{generation}-rank-{rank}{whose}.pool"))
    }

    fn location(path: &Path) -> Result<String> {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| Error::option(format!("the path {} is no UTF-8: choose another", path.display())))
    }
}

impl Storage for Folder {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn current(&self) -> Result<Option<Current>> {
        if self.path.as_os_str().is_empty() {
            return Err(Error::option("a job needs a folder, and its name is empty: give one, `.` for this one"));
        }
        let path = self.path.join(Self::CURRENT);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(format!("read {}", path.display()))(error)),
        };
        let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
        match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
            (Some(Some(generation)), Some(Some(ranks)), None, None) if ranks > 0 => {
                Ok(Some(Current { generation, ranks: ranks as usize, partners: false }))
            }
            (Some(Some(generation)), Some(Some(ranks)), Some(Some(2)), None) if ranks > 0 => {
                Ok(Some(Current { generation, ranks: ranks as usize, partners: true }))
            }
            _ => Err(Error::Job {
                folder: self.name(),
                what: format!("{} does not hold two numbers: bring it back from a copy", path.display()),
            }),
        }
    }

    fn publish(&self, current: Current) -> Result<()> {
        let path = self.path.join(Self::CURRENT);
        let Current { generation, ranks, partners } = current;
        // How many copies, where there is more than one.
        let copies = if partners { " 2" } else { "" };
        let publish = || {
            let file = NewFile::replace(&path)?;
            writeln!(file.file(), "{generation} {ranks}{copies}")?;
            file.publish(Durability::Durable)
        };
        publish().map(drop).map_err(Error::io(format!("write {}", path.display())))
    }

    fn partners(&self) -> bool {
        self.partners
    }

    fn create(&self, generation: u64, rank: usize, holder: Holder, bytes: u64) -> Result<DirectPool> {
        std::fs::create_dir_all(&self.path).map_err(Error::io(format!("make the folder {}", self.name())))?;
        let path = self.pool(generation, rank, holder);
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Error::io(format!("remove {}, which a try before has left", path.display()))(error));
            }
        }
        Ok(DirectPool::create(&Self::location(&path)?, bytes, &self.options)?)
    }

    fn open(&self, current: Current, rank: usize, holder: Holder, shared: bool) -> Result<DirectPool> {
        let path = self.pool(current.generation, rank, holder);
        if !path.exists() {
            let (folder, path) = (self.name(), path.display().to_string());
            return Err(Error::MissingPool { folder, rank, ranks: current.ranks, path });
        }
        let options = self.options.clone().read_only(shared);
        Ok(DirectPool::open(&Self::location(&path)?, &options)?)
    }

    fn remove(&self, current: Current) {
        for rank in 0..current.ranks {
            // The job does not need it any more, and the next restart does not look at it.
            let _ = std::fs::remove_file(self.pool(current.generation, rank, Holder::Owner));
            let _ = std::fs::remove_file(self.pool(current.generation, rank, Holder::Partner));
        }
    }
}

/// Pools in memories whose power fails, for tests. Clones share them.
#[derive(Clone, Default)]
pub struct Memories {
    shelf: Arc<Mutex<Shelf>>,
    cut: Option<Arc<PowerCut>>,
    partners: bool,
}

/// Generation, rank, holder.
type Spot = (u64, usize, Holder);

/// A power cut at a store, write-back or fence of some pool.
#[doc(hidden)]
pub struct PowerCut {
    /// Number of the event, of all pools, from 1.
    at: u64,
    seed: u64,
    events: AtomicU64,
    /// Set when it has happened.
    pub halt: Arc<AtomicBool>,
    left: Mutex<Option<Memories>>,
}

impl PowerCut {
    /// At an event; what lines hold that were not fenced is decided by a seed.
    pub fn new(at: u64, seed: u64) -> Arc<PowerCut> {
        let (events, halt) = (AtomicU64::new(0), Arc::default());
        Arc::new(PowerCut { at, seed, events, halt, left: Mutex::default() })
    }

    /// What it left, if it has happened.
    pub fn left(&self) -> Option<Memories> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Clone, Default)]
struct Shelf {
    current: Option<Current>,
    memories: BTreeMap<Spot, TestMemory>,
}

impl Memories {
    fn with<R>(&self, act: impl FnOnce(&mut Shelf) -> R) -> R {
        act(&mut self.shelf.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Jobs that are made here have partner copies.
    pub fn with_partners(self) -> Memories {
        Memories { partners: true, ..self }
    }

    /// With a power cut in pools that are made or opened from here on.
    #[doc(hidden)]
    pub fn with_cut(mut self, cut: &Arc<PowerCut>) -> Memories {
        self.cut = Some(Arc::clone(cut));
        self
    }

    /// Lets the power cut see what happens to a memory.
    fn watch(&self, place: Spot, memory: &TestMemory) {
        let Some(cut) = self.cut.clone() else { return };
        let partners = self.partners;
        // The shelf has the memory, which keeps this: a handle that counts would keep both for
        // ever.
        let shelf = Arc::downgrade(&self.shelf);
        memory.probe(move |_, _, survives| {
            if cut.events.fetch_add(1, Ordering::SeqCst) + 1 != cut.at {
                return;
            }
            let Some(shelf) = shelf.upgrade() else { return };
            let shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
            let memories = shelf.memories.iter().enumerate().map(|(at, (other, memory))| {
                let seed = cut.seed.wrapping_add(at as u64);
                // This memory is in the middle of a call.
                let image = if *other == place { survives(seed) } else { memory.surviving(seed) };
                (*other, TestMemory::from_image(image))
            });
            let left = Shelf { current: shelf.current, memories: memories.collect() };
            let left = Memories { shelf: Arc::new(Mutex::new(left)), cut: None, partners };
            *cut.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
            cut.halt.store(true, Ordering::SeqCst);
        });
    }

    /// The memories as a power cut now would leave them, by a seed.
    pub fn surviving(&self, seed: u64) -> Memories {
        let left = self.with(|shelf| {
            let memories = shelf.memories.iter().enumerate();
            let memories = memories.map(|(at, (place, memory))| {
                (*place, TestMemory::from_image(memory.surviving(seed.wrapping_add(at as u64))))
            });
            Shelf { current: shelf.current, memories: memories.collect() }
        });
        Memories { shelf: Arc::new(Mutex::new(left)), cut: None, partners: self.partners }
    }

    /// Takes the memories of a holder away: a rank's own, or what its partner has of it.
    pub fn lose(&self, rank: usize, holder: Holder) {
        self.with(|shelf| shelf.memories.retain(|(_, of, held_by), _| (*of, *held_by) != (rank, holder)));
    }

    /// A rank's newest memory.
    pub fn memory(&self, rank: usize) -> Option<TestMemory> {
        self.with(|shelf| {
            shelf
                .memories
                .iter()
                .rev()
                .find(|((_, of, holder), _)| (*of, *holder) == (rank, Holder::Owner))
                .map(|(_, memory)| memory.clone())
        })
    }
}

impl Storage for Memories {
    fn name(&self) -> String {
        "in memory".to_owned()
    }

    fn current(&self) -> Result<Option<Current>> {
        Ok(self.with(|shelf| shelf.current))
    }

    fn publish(&self, current: Current) -> Result<()> {
        self.with(|shelf| shelf.current = Some(current));
        Ok(())
    }

    fn partners(&self) -> bool {
        self.partners
    }

    fn create(&self, generation: u64, rank: usize, holder: Holder, bytes: u64) -> Result<DirectPool> {
        let memory = TestMemory::new(bytes as usize);
        self.with(|shelf| shelf.memories.insert((generation, rank, holder), memory.clone()));
        self.watch((generation, rank, holder), &memory);
        Ok(DirectPool::create_in(Box::new(memory), &Options::new())?)
    }

    fn open(&self, current: Current, rank: usize, holder: Holder, shared: bool) -> Result<DirectPool> {
        let spot = (current.generation, rank, holder);
        let memory = self.with(|shelf| shelf.memories.get(&spot).cloned());
        let memory = memory.ok_or_else(|| Error::MissingPool {
            folder: self.name(),
            rank,
            ranks: current.ranks,
            path: "in memory".to_owned(),
        })?;
        // Whoever reads beside others recovers a copy of its own.
        let memory = if shared {
            TestMemory::from_image(memory.current())
        } else {
            self.watch(spot, &memory);
            memory
        };
        Ok(DirectPool::open_in(Box::new(memory), &Options::new())?)
    }

    fn remove(&self, current: Current) {
        self.with(|shelf| shelf.memories.retain(|(generation, ..), _| *generation != current.generation));
    }
}
