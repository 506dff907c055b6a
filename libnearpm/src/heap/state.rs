//! What the chunks of a heap hold, counted.

use std::collections::BTreeMap;

use nearpm_interface::media::{CHUNK_BYTES, ChunkWord};

use super::classes::capacity_of;
use crate::statistics::{ClassState, HeapState};

impl HeapState {
    /// Counts the chunks of a heap, in order: what each is, and the objects in it.
    pub(crate) fn of(chunks: impl Iterator<Item = (ChunkWord, u32)>) -> HeapState {
        let mut state = HeapState::default();
        let mut classes: BTreeMap<u32, ClassState> = BTreeMap::new();
        let mut span = 0;
        for (word, used) in chunks {
            let is_free = matches!(word, ChunkWord::Free) || (matches!(word, ChunkWord::Run { .. }) && used == 0);
            span = if is_free { span + CHUNK_BYTES } else { 0 };
            state.largest_free_bytes = state.largest_free_bytes.max(span);
            match word {
                _ if is_free => state.free_chunks += 1,
                ChunkWord::Run { object_bytes, chunks } => {
                    let none = ClassState { object_bytes, runs: 0, objects: 0, free: 0 };
                    let class = classes.entry(object_bytes).or_insert(none);
                    class.runs += u64::from(chunks);
                    class.objects += u64::from(used);
                    class.free += u64::from(capacity_of(object_bytes, chunks) - used);
                }
                ChunkWord::Large { chunks } => {
                    state.large_objects += 1;
                    state.large_bytes += u64::from(chunks) * CHUNK_BYTES;
                }
                ChunkWord::Log { chunks } => state.log_bytes += u64::from(chunks) * CHUNK_BYTES,
                ChunkWord::Free | ChunkWord::Tables { .. } => {}
            }
        }
        state.classes = classes.into_values().collect();
        let of_classes = |count: fn(&ClassState) -> u64| -> u64 {
            state.classes.iter().map(|class| u64::from(class.object_bytes) * count(class)).sum()
        };
        state.used_bytes = state.large_bytes + of_classes(|class| class.objects);
        state.free_bytes = state.free_chunks * CHUNK_BYTES + of_classes(|class| class.free);
        state.objects = state.large_objects + state.classes.iter().map(|class| class.objects).sum::<u64>();
        if state.free_bytes > 0 {
            state.fragmentation = 1.0 - state.largest_free_bytes as f64 / state.free_bytes as f64;
        }
        state
    }
}
