//! What a pool is.

use nearpm_interface::media::{PAGE_BYTES, PoolHead, RING_EPOCH};
use nearpm_interface::record::POOL_APPLIED;

use super::{Contents, Image, log};
use crate::direct::{self, Mode};
use crate::error::Error;
use crate::heap::HeapLayout;
use crate::recovery::segments;

/// A part of a pool.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// What lies there.
    pub name: &'static str,
    /// Offset in the pool.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The logs of a pool as they lie there.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogInfo {
    /// Rings that were ever used.
    pub rings_used: u64,
    /// Segments of a direct pool.
    pub segments: u64,
    /// Their bytes.
    pub segment_bytes: u64,
    /// Records that wait for a recovery.
    pub records: u64,
}

/// A pool as its head and logs describe it.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Version of the format.
    pub version: u32,
    /// Identifier of the pool.
    pub id: u32,
    /// Bytes of the pool.
    pub bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Log rings.
    pub lanes: u16,
    /// Bytes of each.
    pub ring_bytes: u32,
    /// Pages of the heap, 4 KiB each.
    pub pages: u64,
    /// Pages beyond those, for shadow paging.
    pub spare_pages: u64,
    /// The parts, rising.
    pub regions: Vec<Region>,
    /// Whether a direct pool was closed in order: it has no segments. Pools of the mechanisms leave
    /// no trace of how they were closed.
    pub closed: bool,
    /// The mode, as `NEARPM_MODE` says it, that the last program would have been the faster in that
    /// chose by use and did enough to tell.
    pub mode_of_last_use: Option<&'static str>,
    /// The logs.
    pub log: LogInfo,
    /// What a recovery would find and do; `None` where damage is in its way.
    pub recovery: Option<crate::Recovery>,
    /// The root object after a recovery, 0 for none.
    pub root: Option<u64>,
    /// Whose data it holds, after a recovery.
    pub contents: Option<Contents>,
    /// Bytes of objects after a recovery.
    pub used_bytes: Option<u64>,
    /// Free bytes after a recovery.
    pub free_bytes: Option<u64>,
}

fn regions(head: &PoolHead) -> Vec<Region> {
    let layout = HeapLayout::of(head);
    let starts = [
        ("head", 0),
        ("log rings", PAGE_BYTES),
        ("page table", head.table()),
        ("chunk words", head.heap()),
        ("bitmaps", layout.bitmap_word(0, 0)),
        ("chunks", layout.first),
        ("unused pages", layout.range().end),
        ("spare pages", head.heap_end()),
        ("unused bytes", head.end()),
        ("end", if head.grown() == 0 { head.bytes } else { head.last() }),
    ];
    if head.grown() != 0 {
        // What there was of these belongs to the first zone.
        let layout = layout.with_chunks(layout.base().into());
        let kept = starts.iter().take(6).copied();
        let grown = [("grown chunks", layout.range().end), ("end", head.grown())];
        return parts_of(&kept.chain(grown).collect::<Vec<_>>());
    }
    parts_of(&starts)
}

/// Parts from where each starts up to the next.
fn parts_of(starts: &[(&'static str, u64)]) -> Vec<Region> {
    let parts = starts.iter().zip(&starts[1..]);
    parts
        .map(|(&(name, offset), &(_, end))| Region { name, offset, bytes: end - offset })
        .filter(|region| region.bytes > 0)
        .collect()
}

impl Image {
    /// What the pool is.
    ///
    /// # Errors
    /// No sound head: there is nothing to tell.
    pub fn info(&mut self) -> Result<Info, Error> {
        let head = self.head()?;
        let mut info = Info {
            version: head.version,
            id: head.pool,
            bytes: head.bytes.max(head.grown()),
            file_bytes: self.medium.bytes(),
            lanes: head.lanes,
            ring_bytes: head.ring_bytes,
            pages: head.pages,
            spare_pages: head.spare,
            regions: regions(&head),
            closed: self.medium.load_word(POOL_APPLIED) == 0,
            mode_of_last_use: direct::of_last_use(&self.medium).map(Mode::name),
            log: self.log_info(&head),
            recovery: None,
            root: None,
            contents: None,
            used_bytes: None,
            free_bytes: None,
        };
        if let Ok(tables) = self.tables() {
            let state = tables.heap_state();
            info.recovery = self.recovered.and_then(Result::ok);
            info.root = Some(tables.root);
            info.contents = self.contents(&tables).ok();
            info.used_bytes = Some(state.used_bytes);
            info.free_bytes = Some(state.free_bytes);
        }
        self.alive()?;
        Ok(info)
    }

    fn log_info(&self, head: &PoolHead) -> LogInfo {
        let medium = &self.medium;
        let used = |&lane: &u16| medium.load_word(head.ring(lane) + RING_EPOCH) != 0;
        let mut info = LogInfo { rings_used: (0..head.lanes).filter(used).count() as u64, ..LogInfo::default() };
        for segment in log::segments_of(medium, head) {
            info.segments += 1;
            info.segment_bytes += segment.bytes;
            let applied = segments::applied(medium).ok().flatten().unwrap_or(0);
            info.records += segments::scan(medium, &segment, applied).map_or(0, |records| records.len() as u64);
        }
        info
    }
}
