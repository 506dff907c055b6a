//! Which layouts make a table.

use nearpm_interface::hash_table::UNIT_BYTES;

use crate::error::{Error, Result};
use crate::layout::{Design, Keys, Layout};

/// Lanes of a warp: slots that design P looks at at once.
const WARP: u32 = 32;

impl Layout {
    /// Refuses what kernels could not work with.
    ///
    /// # Errors
    /// [`Error::Layout`].
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String, why: &str| Err(Error::Layout { what, why: why.to_owned() });
        let looked_at = self.levels * self.hashes * self.width;
        if self.value_bytes == 0 || !self.value_bytes.is_multiple_of(UNIT_BYTES as u32) || self.value_bytes > 1 << 16 {
            return refuse(format!("values of {} bytes", self.value_bytes), "they have 16 to 65536, in steps of 16");
        }
        if self.keys != Keys::Words && !(1..=1024).contains(&(self.keys.to_code() & !(1 << 31))) {
            return refuse(format!("keys of {} bytes", self.keys.to_code() & !(1 << 31)), "they have 1 to 1024");
        }
        if self.growths > 16 || u64::from(self.buckets) << self.growths > 1 << 31 {
            return refuse(
                format!("{} buckets that double {} times", self.buckets, self.growths),
                "at most 16 times, to 2^31 buckets",
            );
        }
        if self.buckets == 0
            || !(1..=3).contains(&self.hashes)
            || self.cells().max(self.all_slots()) > u64::from(u32::MAX) - 16
        {
            return refuse(
                format!("{} buckets and {} hash functions", self.buckets, self.hashes),
                "1 to 3 functions, fewer than 2^32 cells",
            );
        }
        match self.design {
            Design::Levels if !(1..=4).contains(&self.levels) || looked_at > WARP || !self.width.is_power_of_two() => {
                refuse(
                    format!("{}L-{}H-{}S", self.levels, self.hashes, self.width),
                    "a warp looks at 32 slots, at most",
                )
            }
            Design::Levels
                if !self.buckets.is_multiple_of(1 << (self.levels - 1)) || self.stash != 0 || self.windows != 1 =>
            {
                refuse(
                    format!("{} buckets", self.buckets),
                    "each level has half as many as the one above; no stash, one window",
                )
            }
            Design::Tags
                if self.levels != 1 || !self.width.is_multiple_of(8) || self.width > 64 || self.spares == 0 =>
            {
                refuse(
                    format!("{} slots a bucket, {} spare cells", self.width, self.spares),
                    "8 to 64 slots, in steps of 8, and spare cells",
                )
            }
            Design::Tags
                if self.windows == 0
                    || !self.buckets.is_multiple_of(self.windows)
                    || self.stash > self.buckets / self.windows =>
            {
                refuse(
                    format!("{} buckets in {} windows, {} in the stash", self.buckets, self.windows, self.stash),
                    "windows have the same number of buckets each, and a stash no more than one of them",
                )
            }
            _ => Ok(()),
        }
    }
}
