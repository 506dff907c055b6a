//! A history's operations in the device's memory.

use anyhow::{Context, Result};
use nearpm_gphash::{Keys, Op, Outcome};
use nearpm_gpu::{Buffer, PmRegion};

use crate::values::{VALUE, key_bytes, value_of};

pub(crate) struct Given {
    pub ops: Buffer,
    pub keys: Buffer,
    pub values: Buffer,
    pub found: Buffer,
    pub outcomes: Buffer,
    pub clock: Buffer,
}

impl Given {
    /// Operations, each with its key and the number of the value that it puts.
    pub fn new(region: &PmRegion, keys: Keys, ops: &[(Op, u64, u32)]) -> Result<Given> {
        let (device, count) = (region.device(), ops.len());
        let bytes = |all: Vec<u8>| -> Result<Buffer> {
            let buffer = Buffer::new(device, all.len() as u64)?;
            buffer.upload(&all)?;
            Ok(buffer)
        };
        Ok(Given {
            ops: Buffer::of_words(device, &ops.iter().map(|&(op, ..)| op as u32).collect::<Vec<_>>())?,
            keys: bytes(ops.iter().flat_map(|&(_, key, _)| key_bytes(keys, key)).collect())?,
            values: bytes(ops.iter().flat_map(|&(.., value)| value_of(value)).collect())?,
            found: Buffer::zeroed(device, count as u64 * u64::from(VALUE))?,
            outcomes: Buffer::zeroed(device, 4 * count as u64)?,
            clock: Buffer::zeroed(device, 4)?,
        })
    }

    pub fn answers(&self) -> Result<(Vec<Outcome>, Vec<u8>)> {
        let codes = self.outcomes.download_words()?;
        let outcomes =
            codes.into_iter().map(|code| Outcome::from_code(code).with_context(|| format!("the outcome {code}")));
        Ok((outcomes.collect::<Result<_>>()?, self.found.download()?))
    }
}
