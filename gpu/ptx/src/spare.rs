//! Memory of blocks that have ended, kept for those that start: most launches of crash tests run a
//! handful of warps for microseconds, on a GPU that was made for them.

use std::cell::RefCell;

use crate::lanes::Lanes;
use crate::machine::{Block, Warp};

/// Bytes that a thread keeps at most.
const MOST_SPARE: usize = 64 << 20;

/// Blocks without warps, and warps, of any kernel.
#[derive(Default)]
struct Spare {
    blocks: Vec<Block>,
    warps: Vec<Warp>,
    bytes: usize,
}

thread_local! {
    static SPARE: RefCell<Spare> = RefCell::default();
}

/// A block without warps, filled with what another one left; None where none is kept.
pub(crate) fn take_block() -> Option<Block> {
    SPARE.with_borrow_mut(|spare| {
        let block = spare.blocks.pop()?;
        spare.bytes -= block.shared.capacity();
        Some(block)
    })
}

/// A warp, filled with what another one left.
pub(crate) fn take_warp() -> Warp {
    SPARE.with_borrow_mut(|spare| match spare.warps.pop() {
        Some(warp) => {
            spare.bytes -= bytes_of(&warp);
            warp
        }
        None => Warp::empty(),
    })
}

/// Keeps a block that nobody needs any more.
pub(crate) fn keep(mut block: Block) {
    SPARE.with_borrow_mut(|spare| {
        for warp in block.warps.drain(..) {
            let bytes = bytes_of(&warp);
            if spare.bytes + bytes <= MOST_SPARE {
                spare.bytes += bytes;
                spare.warps.push(warp);
            }
        }
        let bytes = block.shared.capacity();
        if spare.bytes + bytes <= MOST_SPARE {
            spare.bytes += bytes;
            spare.blocks.push(block);
        }
    });
}

fn bytes_of(warp: &Warp) -> usize {
    warp.registers.len() * size_of::<Lanes>() + warp.local.capacity()
}
