//! Blocks that start: their registers, memory and barriers as no thread has changed them.

use crate::code::{LaneMask, Special};
use crate::lanes::WARP;
use crate::machine::{Barrier, Block, Group, Shape, Wait, Warp, coordinates};
use crate::{liveness, spare};

impl Shape {
    /// A block that has run nothing yet.
    pub fn start_block(&self, number: u64) -> Block {
        let threads = self.threads_a_block() as u32;
        let mut block = spare::take_block().unwrap_or_else(|| Block {
            number,
            index: [0; 3],
            shared: Vec::new(),
            warps: Vec::new(),
            barriers: vec![Barrier::default(); 16],
            live: 0,
        });
        block.number = number;
        block.index = coordinates(number, self.grid);
        block.live = threads;
        refill(&mut block.shared, self.shared_bytes as usize);
        block.barriers.fill_with(Barrier::default);
        let index = block.index;
        block.warps.extend((0..threads.div_ceil(WARP as u32)).map(|warp| self.start_warp(number, index, warp)));
        block
    }

    fn start_warp(&self, block: u64, index: [u32; 3], number: u32) -> Warp {
        let mut warp = spare::take_warp();
        let lanes = (self.threads_a_block() as u32 - number * WARP as u32).min(WARP as u32);
        let mask = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
        warp.number = number;
        warp.groups.clear();
        warp.groups.push(Group { pc: 0, mask, wait: Wait::Ready });
        warp.exited = !mask;
        warp.rotate = false;
        // Another kernel may have left more of them; what is in those that are written before they
        // are read does not matter.
        let registers = warp.registers.len().max(self.code.registers);
        warp.registers.resize_with(registers, || Box::new([0; WARP]));
        for &register in self.code.zeroed.get_or_init(|| liveness::read_before_written(&self.code)) {
            *warp.registers[register as usize] = [0; WARP];
        }
        refill(&mut warp.predicates, self.code.predicates);
        refill(&mut warp.local, self.code.local_bytes as usize * WARP);
        for &(special, register) in &self.code.specials {
            let values = &mut warp.registers[register as usize];
            for (lane, value) in values.iter_mut().enumerate() {
                *value = self.special(special, block, index, number, lane as u32);
            }
        }
        warp
    }

    fn special(&self, special: Special, block: u64, index: [u32; 3], warp: u32, lane: u32) -> u64 {
        let in_block = u64::from(warp * WARP as u32 + lane);
        u64::from(match special {
            Special::ThreadIndex(axis) => coordinates(in_block, self.block)[axis],
            Special::BlockSize(axis) => self.block[axis],
            Special::BlockIndex(axis) => index[axis],
            Special::GridSize(axis) => self.grid[axis],
            Special::Lane => lane,
            Special::Warp => warp,
            Special::Warps => self.threads_a_block().div_ceil(WARP as u64) as u32,
            Special::LaneMask(LaneMask::Equal) => 1 << lane,
            Special::LaneMask(LaneMask::Less) => (1 << lane) - 1,
            Special::LaneMask(LaneMask::LessEqual) => u32::MAX >> (31 - lane),
            Special::LaneMask(LaneMask::Greater) => !(u32::MAX >> (31 - lane)),
            Special::LaneMask(LaneMask::GreaterEqual) => !((1 << lane) - 1),
            Special::Processor => (block % u64::from(self.resident)) as u32,
            Special::Processors => self.resident,
            Special::Grid => return self.launch_number,
            Special::DynamicShared => self.dynamic_bytes,
            Special::TotalShared => self.shared_bytes as u32,
        })
    }
}

/// Makes it so many zeros.
fn refill<T: Clone + Default>(all: &mut Vec<T>, len: usize) {
    all.clear();
    all.resize(len, T::default());
}
