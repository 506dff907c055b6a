//! Free chunks of a heap.

use std::collections::BTreeMap;

/// Runs of neighbouring free chunks: first chunk and number, joined where they touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans {
    spans: BTreeMap<u32, u32>,
    free: u64,
}

impl Spans {
    /// Free chunks.
    pub fn chunks(&self) -> u64 {
        self.free
    }

    /// Gives chunks back.
    ///
    /// # Panics
    /// If one of them is free already.
    pub fn add(&mut self, mut chunk: u32, mut chunks: u32) {
        self.free += u64::from(chunks);
        if let Some((&start, &number)) = self.spans.range(..chunk).next_back() {
            assert!(start + number <= chunk, "free chunks do not overlap");
            if start + number == chunk {
                self.spans.remove(&start);
                chunk = start;
                chunks += number;
            }
        }
        if let Some(number) = self.spans.remove(&(chunk + chunks)) {
            chunks += number;
        }
        self.spans.insert(chunk, chunks);
    }

    /// Takes the lowest chunks that are free in one piece.
    pub fn take(&mut self, chunks: u32) -> Option<u32> {
        let (&chunk, &number) = self.spans.iter().find(|&(_, &number)| number >= chunks)?;
        self.spans.remove(&chunk);
        self.free -= u64::from(chunks);
        if number > chunks {
            self.spans.insert(chunk + chunks, number - chunks);
        }
        Some(chunk)
    }
}
