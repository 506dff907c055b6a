//! What the index knows of all chunks.
//!
//! A chunk that was never in use needs no memory here: blocks of chunks are made when one of theirs
//! is, so that a pool costs what is stored in it, whatever its size.

use std::ops::Index;
use std::sync::OnceLock;

use super::chunk::Chunk;
use crate::error::Error;

/// Chunks that get their memory together.
const BLOCK: u32 = 256;

type Block = [Chunk; BLOCK as usize];

pub(super) struct Chunks {
    blocks: Box<[OnceLock<Box<Block>>]>,
    count: u32,
}

impl Chunks {
    /// So many chunks, of which none is in use.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn new(count: u32) -> Result<Chunks, Error> {
        let mut blocks = Vec::new();
        let number = count.div_ceil(BLOCK) as usize;
        blocks.try_reserve_exact(number).map_err(Error::no_memory("the index of the pool's heap"))?;
        blocks.resize_with(number, OnceLock::new);
        Ok(Chunks { blocks: blocks.into_boxed_slice(), count })
    }

    #[cold]
    fn make() -> Box<Block> {
        let chunks: Box<[Chunk]> = (0..BLOCK).map(|_| Chunk::default()).collect();
        chunks.try_into().unwrap_or_else(|_| unreachable!("it has as many chunks as a block"))
    }

    /// A chunk, unless none of its block was ever in use: then its block's end.
    #[inline]
    pub fn look(&self, chunk: u32) -> Result<&Chunk, u32> {
        let block = self.blocks[(chunk / BLOCK) as usize].get().ok_or((chunk / BLOCK + 1) * BLOCK)?;
        Ok(&block[(chunk % BLOCK) as usize])
    }

    /// Blocks that have memory.
    #[cfg(test)]
    pub fn blocks_in_use(&self) -> usize {
        self.blocks.iter().filter(|block| block.get().is_some()).count()
    }
}

impl Index<u32> for Chunks {
    type Output = Chunk;

    #[inline]
    fn index(&self, chunk: u32) -> &Chunk {
        debug_assert!(chunk < self.count, "a chunk of the heap");
        let block = self.blocks[(chunk / BLOCK) as usize].get_or_init(Self::make);
        &block[(chunk % BLOCK) as usize]
    }
}
