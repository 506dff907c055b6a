//! gpKVS with 95 GETs for 5 SETs, as the paper's second mix.

use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gpu::persist_with_threads;
use nearpm_statistics::median_time;

use super::changed::Changed;
use super::opened::Opened;
use super::{Bench, Scale};
use crate::kvs::{Sets, batch_of};
use crate::report::Report;

const GROUP: &str = "gpKVS 95:5";
/// Threads of the processor that write the whole table back.
const THREADS: usize = 8;
/// Bytes of the pieces that are gathered: a set.
const PIECE: u32 = 128;

/// How the SETs become durable.
enum Way<'b> {
    Undo,
    WholeTable,
    Changed(Changed<'b>),
}

/// A batch of SETs, and the GETs, each of which is looked at.
pub(super) fn measure(bench: &Bench, report: &mut Report, opened: &mut Opened<'_>, count: usize) -> Result<()> {
    let mut ways = vec![(Way::Undo, "GPM"), (Way::WholeTable, "CAP-mm of the whole table, 8 threads")];
    if bench.scale == Scale::Full {
        let changed = Changed::new(bench, opened.kvs, count / 20, PIECE)?;
        ways.push((Way::Changed(changed), "CAP-mm of changed sets of 128 B, 16 threads"));
    }
    let mut ours = None;
    for (number, (way, name)) in ways.iter().enumerate() {
        let mut times = Vec::new();
        for repeat in 0..=3 {
            let pairs = batch_of(400 + 10 * number as u64 + repeat, count, 1 << 40);
            let time = batch(bench, opened, way, &pairs)?;
            // The first loads the kernels.
            if repeat > 0 {
                times.push(time);
            }
        }
        opened.check_table(name)?;
        report.time(GROUP, format!("{name}, a batch of {count}"), &times, None);
        let ours = *ours.get_or_insert(median_time(&times));
        if number > 0 && bench.scale == Scale::Full {
            let over = median_time(&times).as_secs_f64() / ours.as_secs_f64().max(1e-9);
            report.value(GROUP, format!("GPM over {name}"), over, "x", None);
        }
    }
    Ok(())
}

fn batch(bench: &Bench, opened: &mut Opened<'_>, way: &Way<'_>, pairs: &[(u64, u64)]) -> Result<Duration> {
    let Opened { kvs, region, .. } = *opened;
    let (set, asked) = pairs.split_at(pairs.len() / 20);
    let sets = Sets::new(&bench.device, set)?;
    let (keys, found) = (bench.buffer(8 * asked.len() as u64)?, bench.buffer(8 * asked.len() as u64)?);
    keys.upload(&asked.iter().flat_map(|pair| pair.0.to_le_bytes()).collect::<Vec<_>>())?;
    bench.device.synchronize()?;
    let time = bench.wall(&mut || {
        match way {
            Way::Undo => drop(kvs.set(&sets)?),
            Way::WholeTable => {
                let (offset, bytes) = kvs.table();
                kvs.set_assisted(&sets)?;
                bench.device.synchronize()?;
                region.mapped(|all| persist_with_threads(&all[offset as usize..][..bytes as usize], THREADS));
            }
            Way::Changed(changed) => drop(changed.set(kvs, region, &sets)?),
        }
        kvs.look_up(&keys, &found)?;
        Ok(bench.device.synchronize()?)
    })?;
    opened.model.apply(set);
    let values = found.download()?;
    let right = asked.iter().zip(values.as_chunks::<8>().0);
    let wrong = right.filter(|(pair, found)| opened.model.get(pair.0).unwrap_or(0) != u64::from_le_bytes(**found));
    ensure!(wrong.count() == 0, "95:5: a GET does not give what was set");
    Ok(time)
}
