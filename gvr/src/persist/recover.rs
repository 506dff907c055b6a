//! From pools to arrays, on any number of ranks.
//!
//! Every version that the pools have is made again, in order, in the memory of the ranks that there
//! are now. On as many ranks as before each takes its own pool. On another number, or where a pool
//! is missing of which a partner has a copy, each reads all pools, beside others, and writes new
//! ones; these become the job's when all are whole.

use std::rc::Rc;
use std::sync::Arc;

use nearpm::Ptr;

use super::format::{self, Head};
use super::part::{Known, Part, lacks};
use super::pool::RankPool;
use super::{Current, Holder, Job, Member, Partner, Storage, agree, make_pools, partner_of};
use crate::array::{Change, Core, Keep, Layout, Options, RESERVE, Sealer, Shape, version_inc};
use crate::error::{Error, Result};
use crate::rma::{Kind, Reduce};
use crate::world::World;

/// What opening a job found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Ranks that had made the pools; 0 for a new job.
    pub ranks_before: usize,
    /// The cut that was taken.
    pub cut: u64,
    /// Cuts that were sealed on some ranks only, and taken back.
    pub taken_back: u64,
    /// Ranks whose pool could not be opened, and whose partner's copy was taken.
    pub from_partners: u64,
}

/// An array that a job holds.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub kind: Kind,
    /// Elements by dimension.
    pub dims: Vec<u64>,
    /// Versions that can be read: number and label, oldest first.
    pub versions: Vec<(u64, String)>,
    /// Bytes of the blocks that the pools have of these versions; 0 for a job that is open.
    pub whole: u64,
    /// Bytes that are kept of them.
    pub kept: u64,
}

impl Restored {
    pub(super) fn of(name: &str, core: &Core) -> Restored {
        let versions = core.versions().into_iter().map(|version| (version.number, version.label)).collect();
        Restored {
            name: name.to_owned(),
            kind: core.kind,
            dims: core.shape.dims().to_vec(),
            versions,
            whole: 0,
            kept: 0,
        }
    }
}

/// A pool that is read.
struct Source {
    pool: RankPool,
    rank: usize,
}

/// An array as its pools have it.
struct Stored {
    name: String,
    head: Head,
    kind: Kind,
    dims: Vec<u64>,
    options: Options,
}

impl Stored {
    fn of(head: Head) -> Result<Stored> {
        let dims = head.dims[..(head.dimensions as usize).min(head.dims.len())].to_vec();
        let options = Options {
            layout: Layout::Log { block: head.block },
            keep: Keep::Last(head.keep),
            check: head.flags & 1 != 0,
            compress: head.flags & 2 != 0,
            log_blocks: head.log_blocks,
            ..Options::default()
        };
        Ok(Stored { name: format::text(&head.name), kind: Kind::of_code(head.kind)?, dims, options, head })
    }
}

/// What pools of a job say together.
struct Examined {
    sources: Vec<Source>,
    /// The newest cut that all of them have sealed.
    sealed: u64,
    /// The newest cut that any has sealed.
    most: u64,
    /// Those that are a partner's copy.
    from_partners: u64,
}

pub(super) fn open_pool(
    storage: &dyn Storage,
    current: Current,
    rank: usize,
    holder: Holder,
    shared: bool,
) -> Result<RankPool> {
    let pool = storage.open(current, rank, holder, shared)?;
    Ok(RankPool::opened(pool, &storage.name(), rank, current.ranks)?.0)
}

/// The pools of all ranks, each as its owner has it, or else its partner.
fn of_all(storage: &dyn Storage, current: Current) -> Result<Examined> {
    let (mut sources, mut from_partners) = (Vec::new(), 0);
    for rank in 0..current.ranks {
        let owner = open_pool(storage, current, rank, Holder::Owner, true);
        let pool = match owner {
            Err(missing) if current.partners => {
                from_partners += 1;
                open_pool(storage, current, rank, Holder::Partner, true).map_err(|_| missing)?
            }
            owner => owner?,
        };
        sources.push(Source { pool, rank });
    }
    examine(storage, sources, from_partners)
}

/// The pools that a rank holds itself.
fn of_holder(storage: &dyn Storage, current: Current, rank: usize) -> Result<Examined> {
    let mut sources = vec![Source { pool: open_pool(storage, current, rank, Holder::Owner, false)?, rank }];
    if current.partners {
        let rank = partner_of(rank, current.ranks);
        sources.push(Source { pool: open_pool(storage, current, rank, Holder::Partner, false)?, rank });
    }
    examine(storage, sources, 0)
}

fn examine(storage: &dyn Storage, sources: Vec<Source>, from_partners: u64) -> Result<Examined> {
    let (mut sealed, mut most, mut committed, mut job) = (u64::MAX, 0, 0, None);
    for Source { pool, rank } in &sources {
        let root = pool.root()?;
        if *job.get_or_insert(root.job) != root.job {
            let what = format!("the pool of rank {rank} is of another job: bring the files back as they were");
            return Err(Error::Job { folder: storage.name(), what });
        }
        (sealed, most, committed) = (sealed.min(root.sealed), most.max(root.sealed), committed.max(root.committed));
    }
    check_committed(storage, sealed, committed)?;
    Ok(Examined { sources, sealed, most, from_partners })
}

/// What one rank knows to be sealed by all is sealed by all.
fn check_committed(storage: &dyn Storage, sealed: u64, committed: u64) -> Result<()> {
    if committed <= sealed {
        return Ok(());
    }
    let what = format!(
        "cut {committed} is committed on one rank and a pool of another ends at cut {sealed}: a file is an old copy; bring the newest one back"
    );
    Err(Error::Job { folder: storage.name(), what })
}

/// The pools that a rank opens a job by.
struct Chosen {
    examined: Examined,
    /// They are those that it holds, and goes on with.
    same: bool,
}

/// On as many ranks as before each takes what it holds; where that is not whole anywhere, and
/// partners have copies, or on another number of ranks, all read all pools.
fn find(world: &World, storage: &dyn Storage, current: Current) -> Result<Chosen> {
    let rma = &*world.rma;
    if current.ranks == world.ranks() {
        let mine = of_holder(storage, current, world.rank());
        if !current.partners {
            return Ok(Chosen { examined: agree(rma, mine)?, same: true });
        }
        if rma.allreduce(Reduce::Min, u64::from(mine.is_ok()))? == 1 {
            return Ok(Chosen { examined: mine?, same: true });
        }
        // Closed on every rank before any reads it.
        drop(mine);
        rma.barrier()?;
    }
    Ok(Chosen { examined: agree(rma, of_all(storage, current))?, same: false })
}

pub(super) fn open(world: &World, storage: &dyn Storage) -> Result<Job> {
    let rma = &*world.rma;
    let current = agree(rma, storage.current())?.ok_or_else(|| Error::Job {
        folder: storage.name(),
        what: "there is no job: create one, or give the folder of one".to_owned(),
    })?;
    let Chosen { examined, same } = find(world, storage, current)?;
    let Examined { mut sources, sealed, most, from_partners } = examined;
    let committed =
        sources.iter().map(|source| source.pool.root().map(|root| root.committed)).collect::<Result<Vec<_>>>();
    let committed = agree(rma, committed)?.into_iter().max().unwrap_or(0);
    let cut = rma.allreduce(Reduce::Min, sealed)?;
    let most = rma.allreduce(Reduce::Max, most)?;
    check_committed(storage, cut, rma.allreduce(Reduce::Max, committed)?)?;
    let report = Report { ranks_before: current.ranks, cut, taken_back: most - cut, from_partners };
    if same {
        agree(rma, sources.iter().try_for_each(|source| source.pool.take_back(cut)))?;
        let held = current.partners.then(|| sources.pop()).flatten();
        let partner = held.map(|Source { pool, rank }| Partner { rank, pool: Arc::new(pool) });
        let Some(Source { pool, rank }) = sources.pop() else { return Err(Error::option("a rank has no pool")) };
        let job = Job::of(world, pool, partner, report);
        // The job's own pool is what is read.
        agree(rma, replay(&job, None, rank, cut))?;
        job.inner.cut.set(cut);
        return Ok(job);
    }
    let bytes = sources.iter().map(|source| source.pool.pool.bytes()).max().unwrap_or(0);
    let bytes = bytes * (current.ranks.div_ceil(world.ranks()) as u64).max(1);
    let next = Current { generation: current.generation + 1, ranks: world.ranks(), partners: current.partners };
    let number = sources.first().map_or(Ok(0), |source| source.pool.root().map(|root| root.job))?;
    let (pool, partner) = agree(rma, make_pools(world, storage, next, number, bytes))?;
    let job = Job::of(world, pool, partner, report);
    agree(rma, replay(&job, Some(&sources), 0, cut))?;
    drop(sources);
    agree(rma, if world.rank() == 0 { storage.publish(next) } else { Ok(()) })?;
    if world.rank() == 0 {
        storage.remove(current);
    }
    Ok(job)
}

/// Makes all arrays and versions again. `others` are the pools of another number of ranks; without,
/// the job's own one is read.
fn replay(job: &Job, others: Option<&[Source]>, own: usize, cut: u64) -> Result<()> {
    let inner = &job.inner;
    let first = others.and_then(|sources| sources.first()).map_or(&*inner.pool, |source| &source.pool);
    for (at, (place, head)) in first.arrays_up_to(cut)?.into_iter().enumerate() {
        let stored = Stored::of(head)?;
        let pools: Vec<(usize, &RankPool)> = match others {
            Some(sources) => sources.iter().map(|source| (source.rank, &source.pool)).collect(),
            None => vec![(own, &inner.pool)],
        };
        let parts = pools.iter().map(|(rank, pool)| Part::new(*rank, pool, at, &stored.head.name, cut));
        let parts = agree(&*inner.rma, parts.collect::<Result<Vec<_>>>())?;
        let ranks = if others.is_some() { pools.len() } else { inner.rma.ranks() };
        match others {
            Some(_) => {
                let log_blocks = log_blocks(stored.options.log_blocks, ranks, inner.rma.ranks());
                let options = Options { log_blocks, ..stored.options };
                let core = inner.add(&stored.name, &stored.dims, stored.kind, options)?;
                fill(job, &core, &stored, parts, ranks, true)?;
            }
            None => {
                let core = Rc::new(Core::new(Rc::clone(&inner.rma), &stored.dims, stored.kind, stored.options)?);
                let held = inner.partner.as_ref().map(|partner| held_head(&partner.pool, &stored)).transpose();
                let held = agree(&*inner.rma, held)?;
                let member = Member { core: Rc::clone(&core), head: place, held, options: stored.options };
                inner.arrays.borrow_mut().insert(stored.name.clone(), member);
                fill(job, &core, &stored, parts, ranks, false)?;
            }
        }
    }
    Ok(())
}

/// Blocks of a rank's log on another number of ranks: as many in all, and a few for parts that are
/// rounded up.
fn log_blocks(before: u64, ranks_before: usize, ranks: usize) -> u64 {
    if before == 0 { 0 } else { (before * ranks_before as u64).div_ceil(ranks as u64) + 2 * RESERVE }
}

/// Where a partner's pool has an array.
fn held_head(pool: &RankPool, stored: &Stored) -> Result<Ptr<Head>> {
    let found = pool.arrays()?.into_iter().find(|(_, head)| head.name == stored.head.name);
    found.map(|(place, _)| place).ok_or_else(|| lacks("a partner's pool", &stored.name))
}

/// Puts this rank's part of every version, and closes each.
fn fill(job: &Job, core: &Core, stored: &Stored, mut parts: Vec<Part<'_>>, ranks: usize, seal: bool) -> Result<()> {
    let rma = &*core.rma;
    // A rank may have folded a version that another still has.
    let oldest = parts.iter().filter_map(|part| part.versions.first()).map(|found| found.head.version).max();
    let first = rma.allreduce(Reduce::Max, oldest.unwrap_or(0))?;
    core.begin_at(first);
    for part in &mut parts {
        let changed = part.begin(first, &stored.name);
        put_changed(core, stored, part, &agree(rma, changed)?, ranks)?;
    }
    expect(core, &parts, ranks);
    let numbers: Vec<(u64, String)> =
        parts[0].versions.iter().map(|found| (found.head.version, format::text(&found.head.label))).collect();
    for (at, (number, label)) in numbers.iter().enumerate() {
        for part in &mut parts {
            let items =
                part.versions.get(at).filter(|found| found.head.version == *number).map(|found| found.items.clone());
            let changed = items
                .ok_or_else(|| missing(part.rank, *number))
                .and_then(|items| part.apply(&items, *number, &stored.name));
            put_changed(core, stored, part, &agree(rma, changed)?, ranks)?;
        }
        let known = Known { sums: &parts[0].sums };
        let sealer: &dyn Sealer = if seal { &*job.inner } else { &known };
        version_inc(&[core], label, Some(sealer))?;
    }
    Ok(())
}

/// Says how much of the log versions will take that are about to be put: of all parts this rank's
/// share.
fn expect(core: &Core, parts: &[Part<'_>], ranks: usize) {
    let all: usize = parts.iter().flat_map(|part| &part.versions).map(|found| found.items.len()).sum();
    let mine = (all as u64 * ranks as u64 / parts.len() as u64).div_ceil(core.rma.ranks() as u64);
    core.expect(mine);
}

fn missing(rank: usize, version: u64) -> Error {
    let what = format!(
        "the pool of rank {rank} has no version {version}, which others have: bring the files back as they were"
    );
    Error::Job { folder: "of the pools".to_owned(), what }
}

/// Puts those bytes of changed blocks that are in this rank's part.
fn put_changed(core: &Core, stored: &Stored, part: &Part<'_>, blocks: &[u64], ranks: usize) -> Result<()> {
    let element = stored.kind.bytes() as u64;
    let shape = Shape::new(&stored.dims, element, ranks)?;
    let theirs = shape.part(part.rank);
    let mine = core.shape.part(core.rma.rank());
    for run in blocks.chunk_by(|a, b| a + 1 == *b) {
        let bytes = run[0] * part.head.block..(run[run.len() - 1] + 1) * part.head.block;
        // Blocks may cut through elements: what is put is whole ones, again if need be.
        let start = (theirs.start + bytes.start / element).max(mine.start);
        let end = (theirs.start + bytes.end.div_ceil(element)).min(theirs.end).min(mine.end);
        if start >= end {
            continue;
        }
        let from = ((start - theirs.start) * element) as usize..((end - theirs.start) * element) as usize;
        core.change_run(core.rma.rank(), (start - mine.start) * element, &part.image[from], Change::Put)?;
    }
    // The next version may put the same elements.
    core.wait()
}

/// What a job holds, without opening it for work: read by one process.
///
/// # Errors
/// As [`Job::open`].
pub fn describe(storage: &dyn Storage) -> Result<(Current, Report, Vec<Restored>)> {
    let current = storage.current()?.ok_or_else(|| Error::Job {
        folder: storage.name(),
        what: "there is no job: give the folder of one".to_owned(),
    })?;
    let Examined { sources, sealed: cut, most, from_partners } = of_all(storage, current)?;
    let mut arrays = Vec::new();
    let Some(first) = sources.first() else { return Ok((current, Report::default(), arrays)) };
    for (at, (_, head)) in first.pool.arrays_up_to(cut)?.into_iter().enumerate() {
        let stored = Stored::of(head)?;
        let (mut versions, mut whole, mut kept) = (Vec::new(), 0, 0);
        for source in &sources {
            let mut part = Part::new(source.rank, &source.pool, at, &stored.head.name, cut)?;
            part.begin(0, &stored.name)?;
            for found in std::mem::take(&mut part.versions) {
                part.apply(&found.items, found.head.version, &stored.name)?;
                whole += found.head.count * stored.head.block;
                kept += found.items.iter().map(|item| u64::from(item.bytes)).sum::<u64>();
                if source.rank == 0 {
                    versions.push((found.head.version, format::text(&found.head.label)));
                }
            }
        }
        // A pool may hold one more than is kept, until the next is sealed.
        versions.drain(..versions.len().saturating_sub(stored.options.kept() as usize));
        arrays.push(Restored { name: stored.name, kind: stored.kind, dims: stored.dims, versions, whole, kept });
    }
    Ok((current, Report { ranks_before: current.ranks, cut, taken_back: most - cut, from_partners }, arrays))
}
