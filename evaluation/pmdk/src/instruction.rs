//! What an instruction does to the order and the durability of stores.
//!
//! Sources: Intel SDM volume 1, 11.4.4 (cacheability control and streaming stores); volume 2, CLWB,
//! CLFLUSHOPT, CLFLUSH, SFENCE; volume 3A, 9.2.5 (what orders write-backs: SFENCE, MFENCE and
//! locked instructions).

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// Longest instruction, in bytes.
pub const LONGEST: usize = 15;
/// Cache line, in bytes.
pub const LINE: u64 = 64;

/// What matters of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionClass {
    /// Nothing that orders or writes back.
    Other,
    /// SFENCE or MFENCE.
    Fence,
    /// A locked read-modify-write: orders write-backs like a fence, whatever it was meant for.
    Locked,
    /// CLWB, CLFLUSHOPT or CLFLUSH of one line.
    WriteBack,
    /// A streaming store of some bytes.
    Streaming(Streaming),
}

/// A streaming store: where it goes and how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streaming {
    instruction: Instruction,
    bytes: u64,
}

impl Streaming {
    /// First and last line that the store touches, as line numbers; `value` tells what a register
    /// held before it.
    pub fn lines(&self, value: impl Fn(Register) -> u64) -> (u64, u64) {
        let address = self.address(value);
        (address / LINE, (address + self.bytes - 1) / LINE)
    }

    fn address(&self, value: impl Fn(Register) -> u64) -> u64 {
        let i = &self.instruction;
        match i.op_kind(0) {
            // MOVDIR64B names its destination in a register.
            OpKind::Register => value(i.op_register(0)),
            // MASKMOVDQU stores where DI points.
            OpKind::MemorySegRDI => value(Register::RDI),
            _ => value(i.memory_base())
                .wrapping_add(value(i.memory_index()).wrapping_mul(u64::from(i.memory_index_scale())))
                .wrapping_add(i.memory_displacement64()),
        }
    }
}

/// Decodes the instruction at the start of `code`, which lies at address `ip`. Code that is none is
/// [`InstructionClass::Other`]: the processor will say what it thinks of it.
pub fn decode(code: &[u8], ip: u64) -> InstructionClass {
    classify(Decoder::with_ip(64, code, ip, DecoderOptions::NONE).decode())
}

/// An instruction of a piece of code that is not [`InstructionClass::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its address.
    pub ip: u64,
    /// Its length, in bytes.
    pub length: u64,
    /// What it does.
    pub kind: InstructionClass,
}

/// Every instruction that matters in a piece of code at address `ip`, by decoding one after the
/// other. Compilers put no data among the code of x86-64, and where a decoder loses its step
/// between two functions it finds it again in a few instructions.
pub fn sweep(code: &[u8], ip: u64) -> Vec<Site> {
    Decoder::with_ip(64, code, ip, DecoderOptions::NONE)
        .into_iter()
        .map(|i| Site { ip: i.ip(), length: i.len() as u64, kind: classify(i) })
        .filter(|site| site.kind != InstructionClass::Other)
        .collect()
}

fn classify(instruction: Instruction) -> InstructionClass {
    match instruction.mnemonic() {
        Mnemonic::Sfence | Mnemonic::Mfence => InstructionClass::Fence,
        Mnemonic::Clwb | Mnemonic::Clflushopt | Mnemonic::Clflush => InstructionClass::WriteBack,
        Mnemonic::Xchg if instruction.op0_kind() == OpKind::Memory || instruction.op1_kind() == OpKind::Memory => {
            InstructionClass::Locked
        }
        _ if instruction.has_lock_prefix() => InstructionClass::Locked,
        mnemonic => match streaming_bytes(mnemonic, &instruction) {
            0 => InstructionClass::Other,
            bytes => InstructionClass::Streaming(Streaming { instruction, bytes }),
        },
    }
}

/// How many bytes a streaming store stores, or 0 for another instruction.
fn streaming_bytes(mnemonic: Mnemonic, instruction: &Instruction) -> u64 {
    match mnemonic {
        Mnemonic::Movnti
        | Mnemonic::Movntq
        | Mnemonic::Movntdq
        | Mnemonic::Movntps
        | Mnemonic::Movntpd
        | Mnemonic::Movntss
        | Mnemonic::Movntsd
        | Mnemonic::Vmovntdq
        | Mnemonic::Vmovntps
        | Mnemonic::Vmovntpd
        | Mnemonic::Movdiri => instruction.memory_size().size() as u64,
        Mnemonic::Movdir64b => LINE,
        Mnemonic::Maskmovq => 8,
        Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => 16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: &[u8]) -> InstructionClass {
        decode(code, 0x1000)
    }

    #[test]
    fn ordering_and_write_backs_are_known() {
        assert_eq!(kind(&[0x0f, 0xae, 0xf8]), InstructionClass::Fence, "sfence");
        assert_eq!(kind(&[0x0f, 0xae, 0xf0]), InstructionClass::Fence, "mfence");
        assert_eq!(kind(&[0x0f, 0xae, 0xe8]), InstructionClass::Other, "lfence orders no stores");
        assert_eq!(kind(&[0x66, 0x0f, 0xae, 0x30]), InstructionClass::WriteBack, "clwb [rax]");
        assert_eq!(kind(&[0x66, 0x0f, 0xae, 0x38]), InstructionClass::WriteBack, "clflushopt [rax]");
        assert_eq!(kind(&[0x0f, 0xae, 0x38]), InstructionClass::WriteBack, "clflush [rax]");
        assert_eq!(kind(&[0xf0, 0x48, 0x0f, 0xb1, 0x0f]), InstructionClass::Locked, "lock cmpxchg [rdi], rcx");
        assert_eq!(kind(&[0x48, 0x87, 0x07]), InstructionClass::Locked, "xchg [rdi], rax locks without a prefix");
        assert_eq!(kind(&[0x48, 0x87, 0xc3]), InstructionClass::Other, "xchg rbx, rax");
        assert_eq!(kind(&[0x48, 0x89, 0x07]), InstructionClass::Other, "mov [rdi], rax");
        assert_eq!(kind(&[0x0f]), InstructionClass::Other, "a piece of an instruction");
    }

    #[test]
    fn a_sweep_finds_what_matters_and_where() {
        let code = [0x90, 0x0f, 0xae, 0xf8, 0x48, 0x89, 0x07, 0x66, 0x0f, 0xae, 0x30, 0xc3];
        let site = |ip, length, kind| Site { ip, length, kind };
        assert_eq!(
            sweep(&code, 0x1000),
            [site(0x1001, 3, InstructionClass::Fence), site(0x1007, 4, InstructionClass::WriteBack)]
        );
    }

    /// The lines of a streaming store with RDI, RSI and RCX as given and all else zero.
    fn lines(code: &[u8], rdi: u64, rsi: u64, rcx: u64) -> (u64, u64) {
        let InstructionClass::Streaming(store) = kind(code) else { panic!("{code:02x?} is no streaming store") };
        store.lines(|register| match register {
            Register::RDI => rdi,
            Register::RSI => rsi,
            Register::RCX => rcx,
            _ => 0,
        })
    }

    #[test]
    fn streaming_stores_tell_their_lines() {
        assert_eq!(lines(&[0x48, 0x0f, 0xc3, 0x07], 0x1040, 0, 0), (0x41, 0x41), "movnti [rdi], rax");
        assert_eq!(lines(&[0x48, 0x0f, 0xc3, 0x07], 0x107c, 0, 0), (0x41, 0x42), "movnti across a line's end");
        assert_eq!(lines(&[0x66, 0x0f, 0xe7, 0x44, 0xcf, 0x10], 0x1000, 0, 6), (0x41, 0x41), "movntdq [rdi+rcx*8+16]");
        let wide = [0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x07];
        assert_eq!(lines(&wide, 0x1080, 0, 0), (0x42, 0x42), "vmovntdq [rdi], zmm0");
        assert_eq!(lines(&[0x66, 0x0f, 0x38, 0xf8, 0x3e], 0x2000, 0x1000, 0), (0x80, 0x80), "movdir64b rdi, [rsi]");
        assert_eq!(lines(&[0x66, 0x0f, 0xf7, 0xc1], 0x10f8, 0, 0), (0x43, 0x44), "maskmovdqu at [rdi]");
        assert_eq!(lines(&[0x48, 0x0f, 0xc3, 0x05, 0x39, 0, 0, 0], 0, 0, 0), (0x41, 0x41), "movnti [rip+0x39]");
    }
}
