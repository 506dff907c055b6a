//! What was counted so far, and how an instruction changes it.

use anyhow::Result;
use iced_x86::Register;
use nix::libc::user_regs_struct;
use serde::{Deserialize, Serialize};

use crate::instruction::InstructionClass;

/// What was executed between the marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// SFENCE and MFENCE.
    pub fences: u64,
    /// Locked instructions that came upon write-backs which no fence had ordered yet. They order
    /// them just so, but are mostly there for other reasons, so they are counted apart.
    pub locked: u64,
    /// Lines written back by CLWB, CLFLUSHOPT or CLFLUSH.
    pub written_back: u64,
    /// Lines that streaming stores touched, each once between two fences.
    pub streamed: u64,
}

impl Counts {
    /// Lines that went to memory one way or the other.
    pub fn lines(&self) -> u64 {
        self.written_back + self.streamed
    }
}

/// Counts in the making.
#[derive(Default)]
pub struct Tally {
    counts: Counts,
    /// Lines streamed since the last fence.
    streaming: Vec<u64>,
    /// Whether something was written back since the last fence.
    pending: bool,
}

impl Tally {
    /// Takes in an instruction that is about to be executed. Registers are asked for only where
    /// they matter.
    pub fn take(&mut self, kind: InstructionClass, registers: impl FnOnce() -> Result<user_regs_struct>) -> Result<()> {
        match kind {
            InstructionClass::Other => {}
            InstructionClass::Fence => {
                self.counts.fences += 1;
                self.fence();
            }
            InstructionClass::Locked => {
                self.counts.locked += u64::from(self.pending);
                self.fence();
            }
            InstructionClass::WriteBack => {
                self.counts.written_back += 1;
                self.pending = true;
            }
            InstructionClass::Streaming(store) => {
                let registers = registers()?;
                let (first, last) = store.lines(|register| value(register, &registers));
                self.streaming.extend(first..=last);
                self.pending = true;
            }
        }
        Ok(())
    }

    /// The counts at the last mark.
    pub fn finish(mut self) -> Counts {
        self.fence();
        self.counts
    }

    /// Nothing before a fence combines with what comes after it.
    fn fence(&mut self) {
        self.streaming.sort_unstable();
        self.streaming.dedup();
        self.counts.streamed += self.streaming.len() as u64;
        self.streaming.clear();
        self.pending = false;
    }
}

/// A register that an address is made of. RIP is none: the decoder has it in the displacement
/// already.
fn value(register: Register, registers: &user_regs_struct) -> u64 {
    match register {
        Register::RAX => registers.rax,
        Register::RBX => registers.rbx,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::RBP => registers.rbp,
        Register::RSP => registers.rsp,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        _ => 0,
    }
}
