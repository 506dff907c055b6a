//! Cache-line instructions.

#![allow(unsafe_code)]

pub use imp::{SUPPORTED, fence, stream, write_back};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid_count, _mm_clflush, _mm_sfence};
    use std::sync::LazyLock;

    /// Whether write-back by line is possible here.
    pub const SUPPORTED: bool = true;

    #[derive(Clone, Copy)]
    enum Instruction {
        Clwb,
        ClflushOpt,
        Clflush,
    }

    /// Intel SDM volume 2, CPUID leaf 7: EBX bit 24 is CLWB, bit 23 CLFLUSHOPT. CLFLUSH is in every x86-64.
    static BEST: LazyLock<Instruction> = LazyLock::new(|| {
        let features = __cpuid_count(7, 0).ebx;
        if features >> 24 & 1 == 1 {
            Instruction::Clwb
        } else if features >> 23 & 1 == 1 {
            Instruction::ClflushOpt
        } else {
            Instruction::Clflush
        }
    });

    /// Starts the write-back of a line.
    ///
    /// # Safety
    /// `line` points into mapped memory.
    #[inline]
    pub unsafe fn write_back(line: *mut u8) {
        // SAFETY: the instructions read the address only; that it is mapped is the caller's duty,
        // and that the processor has them was asked.
        unsafe {
            match *BEST {
                Instruction::Clwb => asm!("clwb [{0}]", in(reg) line, options(nostack, preserves_flags)),
                Instruction::ClflushOpt => asm!("clflushopt [{0}]", in(reg) line, options(nostack, preserves_flags)),
                Instruction::Clflush => _mm_clflush(line),
            }
        }
    }

    /// Earlier stores and write-backs become durable before later ones.
    #[inline]
    pub fn fence() {
        // SAFETY: SFENCE is in every x86-64 and touches no memory.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_sfence();
        }
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }
    /// Stores whole lines around the cache; complete after [`fence`].
    ///
    /// # Safety
    /// `to` is a multiple of 64 and points to as many writable bytes as `lines` has, in another allocation.
    #[inline]
    pub unsafe fn stream(to: *mut u8, lines: &[u8]) {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        for at in (0..lines.len() & !15).step_by(16) {
            // SAFETY: SSE2 is in every x86-64; both addresses are inside the ranges that the caller vouches for.
            unsafe {
                let part = _mm_loadu_si128(lines.as_ptr().add(at).cast::<__m128i>());
                _mm_stream_si128(to.add(at).cast::<__m128i>(), part);
            }
        }
    }
}

/// Elsewhere durability comes from `msync` alone.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod imp {
    pub const SUPPORTED: bool = false;

    /// # Safety
    /// Never called, because `SUPPORTED` is false.
    pub unsafe fn write_back(_: *mut u8) {
        unreachable!("lines are written back only where that is supported");
    }
    pub fn fence() {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
    /// # Safety
    /// Never called, because `SUPPORTED` is false.
    pub unsafe fn stream(_: *mut u8, _: &[u8]) {
        unreachable!("lines are streamed only where that is supported");
    }
}
