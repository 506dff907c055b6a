//! A store of gpKVS that is measured, beside the model that it is compared with.

use std::time::Duration;

use anyhow::{Result, ensure};
use nearpm_gpu::PmRegion;
use nearpm_statistics::median_time;

use crate::kvs::{Kvs, Model};
use crate::report::Report;

pub(super) const GROUP: &str = "gpKVS";
/// SETs of a batch: the paper's.
pub(super) const COUNT: usize = 1 << 21;
/// Threads of the processor that store what changed.
pub(super) const THREADS: usize = 16;

/// The store, its memory, and what has been put.
pub(super) struct Opened<'a> {
    pub kvs: &'a Kvs,
    pub region: &'a PmRegion,
    pub model: &'a mut Model,
}

impl Opened<'_> {
    /// The table in PM is the model's, byte by byte.
    pub fn check_table(&self, what: &str) -> Result<()> {
        let (offset, bytes) = self.kvs.table();
        let table = self.region.read_vec(offset, bytes as usize)?;
        ensure!(self.model.equals(&table), "{what}: the table in PM is not what was put: no figure is printed");
        Ok(())
    }

    /// The store in the device's memory answers for each key of a batch as the model does, also
    /// where a full set gave a pair up.
    pub fn check_keys(&self, pairs: &[(u64, u64)]) -> Result<()> {
        let keys: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
        let found = self.kvs.get(&keys)?;
        let wrong = keys.iter().zip(found).filter(|&(&key, found)| self.model.get(key).unwrap_or(0) != found).count();
        ensure!(wrong == 0, "{wrong} of {} keys do not have their values", keys.len());
        Ok(())
    }
}

/// GPM over what took these times.
pub(super) fn over(report: &mut Report, name: &str, times: &[Duration]) {
    let ours = report.rows.iter().rev().find(|row| row.name.starts_with("the same, a batch")).map(|row| row.value);
    if let Some(ours) = ours {
        report.value(GROUP, name, median_time(times).as_secs_f64() * 1e3 / ours, "x", None);
    }
}
