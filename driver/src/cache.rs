//! Cache-line instructions, for memory that this process has mapped.

#![allow(unsafe_code)]

pub use imp::{SUPPORTED, drop_line, fence, full_fence, stream, stream_from, write_back, write_back_lines};

/// [`stream_from`] by a line on its way.
///
/// # Safety
/// As for [`stream_from`].
#[cfg(any(all(target_arch = "x86_64", not(miri)), all(target_arch = "aarch64", target_os = "linux", not(miri))))]
unsafe fn stream_by_lines(to: *mut u8, from: *const u8, bytes: usize) {
    use std::sync::atomic::{AtomicU64, Ordering};
    for at in (0..bytes).step_by(64) {
        let mut line = [0; 64];
        for (number, place) in line.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            // SAFETY: the word lies in the source, which the caller vouches for; an atomic load
            // needs no more than a pointer that may be read.
            let word = unsafe { AtomicU64::from_ptr(from.add(at + 8 * number).cast_mut().cast()) };
            *place = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        // SAFETY: by the caller.
        unsafe { stream(to.add(at), &line) };
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod imp {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid_count, _mm_clflush, _mm_mfence, _mm_sfence};
    use std::sync::atomic::{AtomicU8, Ordering};

    /// Whether write-back by line is possible here.
    pub const SUPPORTED: bool = true;

    #[derive(Clone, Copy)]
    #[repr(u8)]
    enum Instruction {
        Clwb = 1,
        ClflushOpt,
        Clflush,
    }

    /// Number of the best one; 0 until somebody has asked.
    static BEST: AtomicU8 = AtomicU8::new(0);

    #[inline]
    fn best() -> Instruction {
        match BEST.load(Ordering::Relaxed) {
            1 => Instruction::Clwb,
            2 => Instruction::ClflushOpt,
            3 => Instruction::Clflush,
            _ => detect(),
        }
    }

    /// Intel SDM volume 2, CPUID leaf 7: EBX bit 24 is CLWB, bit 23 CLFLUSHOPT. CLFLUSH is in every
    /// x86-64. Apart, so that write-backs save no registers for it.
    #[cold]
    #[inline(never)]
    fn detect() -> Instruction {
        let features = __cpuid_count(7, 0).ebx;
        let found = if features >> 24 & 1 == 1 {
            Instruction::Clwb
        } else if features >> 23 & 1 == 1 {
            Instruction::ClflushOpt
        } else {
            Instruction::Clflush
        };
        BEST.store(found as u8, Ordering::Relaxed);
        found
    }

    /// Starts the write-back of a line.
    ///
    /// # Safety
    /// `line` points into mapped memory.
    #[inline]
    pub unsafe fn write_back(line: *mut u8) {
        // SAFETY: by the caller.
        unsafe { write_back_lines(line, 1) }
    }

    /// Starts the write-back of lines that lie one after the other: as [`write_back`] of each, but
    /// the instruction is chosen once.
    ///
    /// # Safety
    /// `first` points to a line of mapped memory, and so many lines from it on are mapped.
    #[inline]
    pub unsafe fn write_back_lines(first: *mut u8, count: usize) {
        let best = best();
        for number in 0..count {
            // SAFETY: the instructions read the address only; that it is mapped is the caller's
            // duty, and that the processor has them was asked.
            unsafe {
                let line = first.add(64 * number);
                match best {
                    Instruction::Clwb => asm!("clwb [{0}]", in(reg) line, options(nostack, preserves_flags)),
                    Instruction::ClflushOpt => {
                        asm!("clflushopt [{0}]", in(reg) line, options(nostack, preserves_flags))
                    }
                    Instruction::Clflush => _mm_clflush(line),
                }
            }
        }
    }

    /// Writes a line back and drops it from the cache; complete after [`full_fence`].
    ///
    /// # Safety
    /// `line` points into mapped memory.
    #[inline]
    pub unsafe fn drop_line(line: *mut u8) {
        // SAFETY: the instruction is in every x86-64 and reads the address only; that it is mapped
        // is the caller's duty.
        unsafe { _mm_clflush(line) }
    }

    /// Earlier loads, stores, write-backs and drops are done before later ones begin.
    #[inline]
    pub fn full_fence() {
        // SAFETY: MFENCE is in every x86-64 and touches no memory.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_mfence();
        }
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
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

    /// From so many bytes on it is worth asking for wider stores.
    const LONG: usize = 1024;

    /// As [`stream`], half a line at a time.
    ///
    /// # Safety
    /// As for [`stream`]; the processor has AVX.
    #[target_feature(enable = "avx")]
    unsafe fn stream_long(to: *mut u8, lines: &[u8]) {
        use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};
        for at in (0..lines.len() & !31).step_by(32) {
            // SAFETY: both addresses are inside the ranges that the caller vouches for.
            unsafe {
                let part = _mm256_loadu_si256(lines.as_ptr().add(at).cast::<__m256i>());
                _mm256_stream_si256(to.add(at).cast::<__m256i>(), part);
            }
        }
    }

    /// As [`stream_from`], half a line at a time.
    ///
    /// # Safety
    /// As for [`stream_from`]; the processor has AVX, and there is a line at least.
    #[target_feature(enable = "avx")]
    unsafe fn stream_wide(to: *mut u8, from: *const u8, bytes: usize) {
        // SAFETY: the instructions read the source and store to the destination, which the caller
        // vouches for. Whatever they read while others store, in pieces of whatever size, a
        // sequence of loads of the words would read too, each repeated as often as need be.
        unsafe {
            asm!(
                "2:",
                "vmovdqu {low}, [{from}]",
                "vmovdqu {high}, [{from} + 32]",
                "vmovntdq [{to}], {low}",
                "vmovntdq [{to} + 32], {high}",
                "add {from}, 64",
                "add {to}, 64",
                "sub {left}, 64",
                "jnz 2b",
                low = out(ymm_reg) _,
                high = out(ymm_reg) _,
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                left = inout(reg) bytes => _,
                options(nostack)
            );
            std::arch::x86_64::_mm256_zeroupper();
        }
    }

    /// Stores whole lines around the cache that others may store to meanwhile, each word at once;
    /// complete after [`fence`].
    ///
    /// # Safety
    /// Both are multiples of 64, so is `bytes`, and so many are readable and writable there and do
    /// not overlap; those that are read are changed by atomic stores alone.
    pub unsafe fn stream_from(to: *mut u8, from: *const u8, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: by the caller; the processor has the instructions.
            return unsafe { stream_wide(to, from, bytes) };
        }
        // SAFETY: by the caller.
        unsafe { super::stream_by_lines(to, from, bytes) }
    }

    /// Stores whole lines around the cache; complete after [`fence`].
    ///
    /// # Safety
    /// `to` is a multiple of 64 and points to as many writable bytes as `lines` has, in another
    /// allocation.
    #[inline]
    pub unsafe fn stream(to: *mut u8, lines: &[u8]) {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        if lines.len() >= LONG && std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: by the caller; the processor has the instructions.
            return unsafe { stream_long(to, lines) };
        }
        for at in (0..lines.len() & !15).step_by(16) {
            // SAFETY: SSE2 is in every x86-64; both addresses are inside the ranges that the caller
            // vouches for.
            unsafe {
                let part = _mm_loadu_si128(lines.as_ptr().add(at).cast::<__m128i>());
                _mm_stream_si128(to.add(at).cast::<__m128i>(), part);
            }
        }
    }
}

#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
mod imp {
    use std::arch::asm;
    use std::sync::LazyLock;

    /// Whether write-back by line is possible here.
    pub const SUPPORTED: bool = true;

    const LINE: usize = 64;

    /// Linux allows these instructions to programs (SCTLR_EL1.UCI, UCT). HWCAP bit 16 is DC CVAP,
    /// to the point of persistence; where a processor does not know it, the point of coherency is
    /// memory.
    static HAS_CVAP: LazyLock<bool> = LazyLock::new(|| {
        const DCPOP: u64 = 1 << 16;
        // SAFETY: the call reads what the kernel handed to the process.
        unsafe { libc::getauxval(libc::AT_HWCAP) & DCPOP != 0 }
    });

    /// Bytes from one write-back of a line to the next: the smallest line of all caches (Arm ARM,
    /// CTR_EL0.DminLine), or 64.
    static STEP: LazyLock<usize> = LazyLock::new(|| {
        let type_register: u64;
        // SAFETY: the register says what the caches are like, and changes nothing.
        unsafe { asm!("mrs {0}, ctr_el0", out(reg) type_register, options(nomem, nostack, preserves_flags)) };
        LINE.min(4 << (type_register >> 16 & 0xf))
    });

    /// Starts the write-back of a line.
    ///
    /// # Safety
    /// `line` points into mapped memory.
    #[inline]
    pub unsafe fn write_back(line: *mut u8) {
        let start = line.map_addr(|address| address & !(LINE - 1));
        for at in (0..LINE).step_by(*STEP) {
            let part = start.wrapping_add(at);
            // SAFETY: the instructions change no byte; that the line is mapped is the caller's
            // duty, and that the processor has them was asked.
            unsafe {
                if *HAS_CVAP {
                    // DC CVAP by its encoding: assemblers know the name from Armv8.2 on.
                    asm!("sys #3, c7, c12, #1, {0}", in(reg) part, options(nostack, preserves_flags));
                } else {
                    asm!("dc cvac, {0}", in(reg) part, options(nostack, preserves_flags));
                }
            }
        }
    }

    /// Starts the write-back of lines that lie one after the other.
    ///
    /// # Safety
    /// `first` points to a line of mapped memory, and so many lines from it on are mapped.
    #[inline]
    pub unsafe fn write_back_lines(first: *mut u8, count: usize) {
        // SAFETY: by the caller.
        (0..count).for_each(|number| unsafe { write_back(first.add(LINE * number)) });
    }

    /// Writes a line back and drops it from the cache; complete after [`full_fence`].
    ///
    /// # Safety
    /// `line` points into mapped memory.
    #[inline]
    pub unsafe fn drop_line(line: *mut u8) {
        let start = line.map_addr(|address| address & !(LINE - 1));
        for at in (0..LINE).step_by(*STEP) {
            // SAFETY: as for `write_back`.
            unsafe { asm!("dc civac, {0}", in(reg) start.wrapping_add(at), options(nostack, preserves_flags)) };
        }
    }

    /// Earlier loads, stores, write-backs and drops are done before later ones begin.
    #[inline]
    pub fn full_fence() {
        // SAFETY: a barrier touches no memory; the compiler moves no access over it.
        unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
    }

    /// Earlier stores and write-backs become durable before later ones: a write-back is complete
    /// behind a DSB (Arm ARM, D7.5.9).
    #[inline]
    pub fn fence() {
        full_fence();
    }

    /// Stores whole lines and writes them back; complete after [`fence`].
    ///
    /// # Safety
    /// `to` is a multiple of 64 and points to as many writable bytes as `lines` has, in another
    /// allocation.
    #[inline]
    pub unsafe fn stream(to: *mut u8, lines: &[u8]) {
        // SAFETY: the caller vouches for both ranges.
        unsafe {
            to.copy_from_nonoverlapping(lines.as_ptr(), lines.len());
            (0..lines.len()).step_by(LINE).for_each(|at| write_back(to.add(at)));
        }
    }

    /// Stores whole lines that others may store to meanwhile, and writes them back; complete after
    /// [`fence`].
    ///
    /// # Safety
    /// Both are multiples of 64, so is `bytes`, and so many are readable and writable there and do
    /// not overlap; those that are read are changed by atomic stores alone.
    pub unsafe fn stream_from(to: *mut u8, from: *const u8, bytes: usize) {
        // SAFETY: by the caller.
        unsafe { super::stream_by_lines(to, from, bytes) }
    }
}

/// Elsewhere durability comes from `msync` alone.
#[cfg(not(any(all(target_arch = "x86_64", not(miri)), all(target_arch = "aarch64", target_os = "linux", not(miri)))))]
mod imp {
    /// Whether write-back by line is possible here.
    pub const SUPPORTED: bool = false;

    /// Starts the write-back of a line.
    ///
    /// # Safety
    /// Never called, because `SUPPORTED` is false.
    pub unsafe fn write_back(_: *mut u8) {
        unreachable!("lines are written back only where that is supported");
    }

    /// Starts the write-back of lines.
    ///
    /// # Safety
    /// Never called, because `SUPPORTED` is false.
    pub unsafe fn write_back_lines(_: *mut u8, _: usize) {
        unreachable!("lines are written back only where that is supported");
    }

    /// Earlier accesses before later ones.
    pub fn fence() {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Earlier accesses before later ones.
    pub fn full_fence() {
        fence();
    }

    /// Nothing: there is no cache that could be told.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn drop_line(_: *mut u8) {}
    /// Stores lines around the cache.
    ///
    /// # Safety
    /// Never called, because `SUPPORTED` is false.
    pub unsafe fn stream(_: *mut u8, _: &[u8]) {
        unreachable!("lines are streamed only where that is supported");
    }

    /// Stores lines around the cache.
    ///
    /// # Safety
    /// Never called, because `SUPPORTED` is false.
    pub unsafe fn stream_from(_: *mut u8, _: *const u8, _: usize) {
        unreachable!("lines are streamed only where that is supported");
    }
}
