//! CAP-mm of what a batch of gpKVS changed: brought together on the GPU, copied to the processor's
//! memory, stored and written back by its threads.

use anyhow::Result;
use nearpm_gpu::{Buffer, ObjectKind, PmRegion, store_pieces};

use super::Bench;
use super::opened::{COUNT, GROUP, Opened, THREADS, over};
use crate::kvs::{Kvs, Sets, batch_of};
use crate::report::Report;

/// The way from the table in the GPU's memory to the one in PM.
pub(super) struct Changed<'b> {
    bench: &'b Bench,
    /// Bytes of a piece.
    bytes: u32,
    /// Where pieces are brought together.
    staging: Buffer,
    /// Where they come to in the processor's memory.
    bounce: PmRegion,
    place: u64,
}

impl<'b> Changed<'b> {
    /// Room for the pieces of `count` SETs, at most as many as the table has.
    pub fn new(bench: &'b Bench, kvs: &Kvs, count: usize, bytes: u32) -> Result<Changed<'b>> {
        let most = (count as u64 * u64::from(bytes)).min(kvs.table().1);
        let (staging, bounce) = (bench.buffer(most)?, bench.region(most + (1 << 20))?);
        let place = bounce.add("bounce", ObjectKind::Data, most, |_| Ok(()))?.offset;
        Ok(Changed { bench, bytes, staging, bounce, place })
    }

    /// Sets a batch, and waits until it is durable. Gives the bytes that were moved.
    pub fn set(&self, kvs: &Kvs, region: &PmRegion, sets: &Sets) -> Result<u64> {
        let device = &self.bench.device;
        let (offset, table) = kvs.table();
        let pieces = kvs.set_gathered(sets, self.bytes, &self.staging)?;
        let moved = pieces.len() as u64 * u64::from(self.bytes);
        device.copy(self.bounce.address(self.place), self.staging.address(), moved)?;
        device.synchronize()?;
        self.bounce.mapped(|from| {
            region.mapped_mut(|to| {
                let to = &mut to[offset as usize..][..table as usize];
                store_pieces(to, &pieces, self.bytes as usize, &from[self.place as usize..], THREADS);
            });
        });
        Ok(moved)
    }
}

/// Batches of SETs alone.
pub(super) fn measure(
    bench: &Bench,
    report: &mut Report,
    opened: &mut Opened<'_>,
    bytes: u32,
    what: &str,
) -> Result<()> {
    let Opened { kvs, region, .. } = *opened;
    let way = Changed::new(bench, kvs, COUNT, bytes)?;
    let (mut times, mut moved) = (Vec::new(), 0);
    for repeat in 0..3 {
        let pairs = batch_of(200 + repeat, COUNT, 1 << 40);
        let sets = Sets::new(&bench.device, &pairs)?;
        opened.model.apply(&pairs);
        bench.device.synchronize()?;
        times.push(bench.wall(&mut || {
            moved = way.set(kvs, region, &sets)?;
            Ok(())
        })?);
    }
    opened.check_table(&format!("CAP-mm of changed {what}"))?;
    let name = format!("CAP-mm of changed {what}, {} MiB a batch, {THREADS} threads", moved >> 20);
    report.time(GROUP, name, &times, None);
    over(report, &format!("GPM over CAP-mm of changed {what}"), &times);
    Ok(())
}
