//! The calls of the paper's table 2 under their names.
//!
//! | caller | calls |
//! |---|---|
//! | CPU | the functions of this module: 14 |
//! | GPU | [`ON_THE_GPU`], in `gpu/kernels/nearpm_gpm.cuh`: 5 |
//!
//! Logs and checkpoints have a file of their own here, as in the paper; [`Log`] and [`Checkpoint`]
//! put several in one.

use std::path::Path;
use std::rc::Rc;

use nearpm_gpu::{Access, Device, LinkState, PmRegion};

use crate::checkpoint::{Checkpoint, Element, Taken};
use crate::error::Result;
use crate::log::{Form, Log, Shape};

/// What kernels call.
pub const ON_THE_GPU: [&str; 5] = ["gpm_persist", "gpmlog_insert", "gpmlog_read", "gpmlog_remove", "gpmlog_clear"];

/// Name of the object in a file that holds one.
const OBJECT: &str = "gpm";
/// Bytes of a file beside its object's: heads, directory, rounding.
const ROOM: u64 = 1 << 16;

/// Maps PM: makes a file of `size` bytes, or opens one.
///
/// # Errors
/// As for [`PmRegion::map`].
pub fn gpm_map(device: Rc<dyn Device>, path: &Path, size: u64, create: bool) -> Result<PmRegion> {
    let access = if create { Access::Create } else { Access::Open };
    let size = if create { size.next_multiple_of(4096) } else { 0 };
    Ok(PmRegion::map(device, path, size, access)?)
}

/// Unmaps it.
///
/// # Errors
/// As for [`PmRegion::close`].
pub fn gpm_unmap(region: PmRegion) -> Result<()> {
    Ok(region.close().map(drop)?)
}

/// Says whether what kernels persist goes past the processor's caches. The paper's call switches
/// that, for the whole machine; this one says what is so.
pub fn gpm_persist_begin(region: &PmRegion) -> LinkState {
    region.link_state()
}

/// The same: nothing was switched, so that nothing is switched back.
pub fn gpm_persist_end(region: &PmRegion) -> LinkState {
    region.link_state()
}

/// Creates a conventional log.
///
/// # Errors
/// As for [`Log::create_conventional`].
pub fn gpmlog_create_conv(device: Rc<dyn Device>, path: &Path, size: u64, partitions: u32) -> Result<Log> {
    let region = gpm_map(device, path, size + 512 * u64::from(partitions) + ROOM, true)?;
    created(path, Log::create_conventional(&region, OBJECT, partitions, size))
}

/// Creates a hierarchical log of `size` bytes for launches of `blocks` blocks of `threads` threads,
/// of entries of `entry` bytes: the paper learns their size from the first insert, here it is known
/// from the start.
///
/// # Errors
/// As for [`Log::create_hcl`].
pub fn gpmlog_create_hcl(
    device: Rc<dyn Device>,
    path: &Path,
    size: u64,
    blocks: u32,
    threads: u32,
    entry: u64,
) -> Result<Log> {
    let shape = Shape { blocks, threads };
    let all = u64::from(blocks) * u64::from(threads.next_multiple_of(32));
    let depth = (size / (all * (entry + 4)).max(1)).clamp(1, u32::MAX.into()) as u32;
    let region = gpm_map(device, path, u64::from(depth) * all * (entry + 4) + ROOM, true)?;
    created(path, Log::create_hcl(&region, OBJECT, shape, entry, depth, Form::Sealed))
}

/// A file whose log was refused goes again.
fn created<T>(path: &Path, made: Result<T>) -> Result<T> {
    if made.is_err() {
        // The refusal is what is told.
        let _ = std::fs::remove_file(path);
    }
    made
}

/// Opens a log.
///
/// # Errors
/// As for [`Log::open`].
pub fn gpmlog_open(device: Rc<dyn Device>, path: &Path) -> Result<Log> {
    Log::open(&gpm_map(device, path, 0, false)?, OBJECT)
}

/// Closes a log. What is in it stays.
pub fn gpmlog_close(log: Log) {
    drop(log);
}

/// Creates checkpoints.
///
/// # Errors
/// As for [`Checkpoint::create`].
pub fn gpmcp_create(device: Rc<dyn Device>, path: &Path, size: u64, elements: u32, groups: u32) -> Result<Checkpoint> {
    let slots = 2 * u64::from(groups);
    let region = gpm_map(device, path, slots * (size + 256 * u64::from(elements) + 8192) + ROOM, true)?;
    created(path, Checkpoint::create(&region, OBJECT, size, elements, groups))
}

/// Opens checkpoints.
///
/// # Errors
/// As for [`Checkpoint::open`].
pub fn gpmcp_open(device: Rc<dyn Device>, path: &Path) -> Result<Checkpoint> {
    Checkpoint::open(&gpm_map(device, path, 0, false)?, OBJECT)
}

/// Closes checkpoints. They stay in their file.
pub fn gpmcp_close(checkpoint: Checkpoint) {
    drop(checkpoint);
}

/// Adds device memory to a group. Elements are named by their number, so that the order of
/// registration tells them apart, as in the paper.
///
/// # Errors
/// As for [`Checkpoint::register`].
pub fn gpmcp_register(checkpoint: &Checkpoint, address: u64, size: u64, group: u32) -> Result<()> {
    let name = format!("{}", checkpoint.registered(group));
    checkpoint.register(group, Element { name, address, bytes: size })
}

/// Takes a checkpoint of a group.
///
/// # Errors
/// As for [`Checkpoint::checkpoint`].
pub fn gpmcp_checkpoint(checkpoint: &Checkpoint, group: u32) -> Result<Taken> {
    checkpoint.checkpoint(group)
}

/// Restores a group from its newest checkpoint; `None` where there is none.
///
/// # Errors
/// As for [`Checkpoint::restore`].
pub fn gpmcp_restore(checkpoint: &Checkpoint, group: u32) -> Result<Option<Taken>> {
    checkpoint.restore(group)
}
