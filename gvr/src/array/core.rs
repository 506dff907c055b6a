//! An array of bytes on ranks: what the typed [`super::Array`] is a face of.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::geometry::{FIRST, Geometry, OPENED, RESERVE};
use super::nodes::Nodes;
use super::options::{Layout, Options, Protocol};
use super::shape::{Run, Shape};
use crate::error::{Error, Result};
use crate::rma::{Kind, Op, Place, Rma};

/// Longest label of a version, in bytes.
pub const MOST_LABEL: usize = 64;

/// A version that can be read.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its number: 0 for the first one that was closed.
    pub number: u64,
    /// What the program called it.
    pub label: String,
    /// Number of the root of each rank's tree, 0 for one that was never written.
    pub(super) roots: Vec<u64>,
}

/// What a rank knows of another one's log.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// Entries of the current version are from here on: those from before may have been replaced.
    pub tail: u64,
    /// The oldest block that may be live.
    pub head: u64,
    /// Entries that were read, by block; empty before the first.
    pub cache: Vec<u64>,
    /// Runs that were found to lie together, by their first block; empty before the first.
    pub extents: Vec<Extent>,
    /// Something was sent to it that was not flushed.
    pub touched: bool,
}

/// Blocks of a version that lie together in a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub block: u64,
    pub count: u64,
    /// Entry of the first one.
    pub entry: u64,
    /// Where its data is in the window, from the array's beginning on.
    pub offset: u64,
}

/// Extents that are remembered of each rank.
pub(super) const EXTENTS: usize = 4096;

/// What changes with the program's calls.
pub(super) struct State {
    /// Number that the current version will have.
    pub version: u64,
    pub versions: VecDeque<Version>,
    pub peers: Vec<Peer>,
    /// Cursors by version.
    pub pins: BTreeMap<u64, usize>,
    /// The first error since the last version.
    pub failed: Option<u64>,
    /// What this rank as an owner knows of its own log.
    pub nodes: Nodes,
    pub root: u64,
    /// Checksums of blocks of closed versions, by place in the log.
    pub sums: Vec<u32>,
    /// Room for entries that a get reads.
    pub entries: Vec<u64>,
    pub counters: Counters,
}

/// Counts of what was done, since the array was made. They depend on the program alone where ranks
/// do not race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Runs of elements that were put where blocks of this version were.
    pub put_hits: u64,
    /// Runs that needed claims.
    pub put_firsts: u64,
    /// Blocks that this rank has added to logs.
    pub blocks_claimed: u64,
    /// Runs whose entries were known.
    pub get_hits: u64,
    /// Runs whose entries were read.
    pub get_misses: u64,
    /// Blocks that cleaning has moved in this rank's log.
    pub blocks_moved: u64,
}

/// How a put changes what is there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Put,
    Combine(Kind, Op),
}

pub(crate) struct Core {
    pub(crate) rma: Rc<dyn Rma>,
    pub(crate) shape: Shape,
    pub(crate) kind: Kind,
    pub(crate) options: Options,
    pub(crate) geometry: Geometry,
    /// Offset in every window.
    pub(super) base: u64,
    pub(super) state: RefCell<State>,
    pub(super) alive: Cell<bool>,
    /// Of an array that is not reached by one-sided operations alone.
    pub(super) reach: Option<Box<dyn Reach>>,
}

/// Another way to the parts of an array than one-sided operations on them.
pub(super) trait Reach {
    /// Changes bytes of a rank's part.
    fn change(&self, core: &Core, rank: usize, at: u64, data: &[u8], change: Change) -> Result<()>;
    /// Reads bytes of a rank's part.
    fn read(&self, core: &Core, rank: usize, at: u64, data: &mut [u8]) -> Result<()>;
    /// As [`Core::swap_at`].
    fn swap(&self, core: &Core, rank: usize, at: u64, expected: u64, new: u64) -> Result<u64>;
    /// Gives back what it has; all ranks call it, once.
    fn end(&self, core: &Core) -> Result<()>;
}

impl Core {
    /// One that lies at an offset of the windows.
    pub(super) fn over(
        rma: Rc<dyn Rma>,
        shape: Shape,
        kind: Kind,
        options: Options,
        geometry: Geometry,
        base: u64,
    ) -> Core {
        let peer = Peer { tail: FIRST, head: FIRST, cache: Vec::new(), extents: Vec::new(), touched: false };
        let state = State {
            version: 0,
            versions: VecDeque::new(),
            peers: vec![peer; rma.ranks()],
            pins: BTreeMap::new(),
            failed: None,
            nodes: Nodes::new(geometry.nodes),
            root: 0,
            sums: if options.check && options.layout != Layout::Flat {
                vec![0; geometry.capacity as usize]
            } else {
                Vec::new()
            },
            entries: Vec::new(),
            counters: Counters::default(),
        };
        let (state, alive) = (RefCell::new(state), Cell::new(true));
        Core { rma, shape, kind, options, geometry, base, state, alive, reach: None }
    }

    /// Tells this rank's server where its log is; nobody asks it meanwhile.
    pub(super) fn note_opened(&self, tail: u64, head: u64) -> Result<()> {
        self.rma.replace_many(self.place(self.me(), OPENED), &[tail, head])
    }

    pub fn me(&self) -> usize {
        self.rma.rank()
    }

    pub fn is_log(&self) -> bool {
        self.options.layout != Layout::Flat
    }

    pub fn is_paper(&self) -> bool {
        self.is_log() && self.options.protocol == Protocol::Paper
    }

    /// A place of the array in a rank's window.
    #[inline]
    pub(super) fn place(&self, rank: usize, offset: u64) -> Place {
        Place { rank, offset: self.base + offset }
    }

    /// Blocks that puts may not reach.
    pub(super) fn limit(&self, peer: &Peer) -> u64 {
        let reserve = if self.is_paper() { 0 } else { RESERVE };
        peer.head + self.geometry.capacity - reserve
    }

    /// Notes an error, so that the next version is not made without somebody having acted on it.
    pub(super) fn noted<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.state.borrow_mut().failed.get_or_insert(error.code());
        }
        result
    }

    /// The runs of a range, checked against the buffer that is to hold its elements.
    pub(super) fn runs(&self, lo: &[u64], hi: &[u64], bytes: usize) -> Result<Vec<Run>> {
        let (wanted, given) = (self.shape.elements(lo, hi)? as usize, bytes / self.kind.bytes());
        if wanted != given {
            return Err(Error::Buffer { given, wanted });
        }
        self.shape.runs(lo, hi)
    }

    /// Changes the elements of a box of indices, both ends included.
    pub fn change(&self, lo: &[u64], hi: &[u64], data: &[u8], change: Change) -> Result<()> {
        self.noted(self.runs(lo, hi, data.len()).and_then(|runs| {
            runs.iter().try_for_each(|run| self.change_run(run.rank, run.at, &data[run.buffer..][..run.bytes], change))
        }))
    }

    pub(crate) fn change_run(&self, rank: usize, at: u64, data: &[u8], change: Change) -> Result<()> {
        if let Some(reach) = &self.reach {
            return reach.change(self, rank, at, data, change);
        }
        match (self.is_log(), self.is_paper()) {
            (false, _) => self.send(rank, at, data, change),
            (true, false) => self.put_log(rank, at, data, change),
            (true, true) => self.put_paper(rank, at, data, change),
        }
    }

    /// Changes bytes at an offset of the array in a window.
    pub(super) fn send(&self, rank: usize, offset: u64, data: &[u8], change: Change) -> Result<()> {
        self.state.borrow_mut().peers[rank].touched = true;
        self.change_at(self.place(rank, offset), data, change)
    }

    #[inline]
    pub(super) fn change_at(&self, place: Place, data: &[u8], change: Change) -> Result<()> {
        match change {
            Change::Put => self.rma.put(place, data),
            Change::Combine(kind, op) => self.rma.accumulate(place, kind, op, data),
        }
    }

    /// Reads the elements of a box of indices, both ends included, of the current version.
    pub fn read(&self, lo: &[u64], hi: &[u64], data: &mut [u8]) -> Result<()> {
        self.noted(self.runs(lo, hi, data.len()).and_then(|runs| {
            runs.iter().try_for_each(|run| self.read_run(run.rank, run.at, &mut data[run.buffer..][..run.bytes]))
        }))
    }

    pub(super) fn read_run(&self, rank: usize, at: u64, data: &mut [u8]) -> Result<()> {
        if let Some(reach) = &self.reach {
            return reach.read(self, rank, at, data);
        }
        if self.is_log() { self.get_log(rank, at, data) } else { self.rma.get(self.place(rank, at), data) }
    }

    /// Stores an element of 8 bytes if it is what is expected; gives what it was.
    pub fn compare_and_swap(&self, index: &[u64], expected: u64, new: u64) -> Result<u64> {
        self.noted(self.runs(index, index, self.kind.bytes()).and_then(|runs| {
            if self.kind.bytes() != 8 {
                return Err(Error::option("compare_and_swap is for elements of 8 bytes: nothing was changed"));
            }
            let Run { rank, at, .. } = runs[0];
            match &self.reach {
                Some(reach) => reach.swap(self, rank, at, expected, new),
                None => self.swap_at(rank, at, expected, new),
            }
        }))
    }

    /// As [`Core::compare_and_swap`], of the word at an offset of a rank's part.
    pub(super) fn swap_at(&self, rank: usize, at: u64, expected: u64, new: u64) -> Result<u64> {
        let offset = if self.is_log() { self.own_block(rank, at)? } else { at };
        self.rma.cas(self.place(rank, offset), expected, new)
    }

    /// Waits until everything that this rank has put is there for all.
    pub fn wait(&self) -> Result<()> {
        for rank in 0..self.rma.ranks() {
            if std::mem::take(&mut self.state.borrow_mut().peers[rank].touched) {
                self.rma.flush(rank)?;
            }
        }
        Ok(())
    }

    /// Notes an error that the program has found.
    pub(crate) fn fail(&self) {
        self.state.borrow_mut().failed.get_or_insert(crate::error::RAISED);
    }

    /// Forgets the errors since the last version.
    pub fn acknowledge(&self) {
        self.state.borrow_mut().failed = None;
    }

    pub fn counters(&self) -> Counters {
        self.state.borrow().counters
    }

    /// Number that the current version will have.
    pub fn version(&self) -> u64 {
        self.state.borrow().version
    }

    pub fn versions(&self) -> Vec<Version> {
        self.state.borrow().versions.iter().cloned().collect()
    }

    /// Gives the array's memory back. All ranks call it.
    pub fn free(&self) -> Result<()> {
        if !self.alive.replace(false) {
            return Ok(());
        }
        self.reach.as_ref().map_or(Ok(()), |reach| reach.end(self))?;
        self.rma.free(self.base, self.geometry.bytes)
    }
}
