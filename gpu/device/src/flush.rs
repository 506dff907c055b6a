//! Stores of the processor, made durable: the CPU half of GPM, and what CPU-assisted persistence does after a copy.

use std::arch::x86_64::{_mm_clflush, _mm_sfence};
use std::sync::LazyLock;

/// Bytes of a line of the processor's caches.
const LINE: usize = 64;

/// Writes the lines of `bytes` back to memory, and waits for it. It matters on persistent memory; on tmpfs it costs the same.
pub fn persist(bytes: &[u8]) {
    static CLWB: LazyLock<bool> = LazyLock::new(has_clwb);
    let start = bytes.as_ptr().addr() / LINE * LINE;
    let end = bytes.as_ptr().addr() + bytes.len();
    for line in (start..end).step_by(LINE) {
        let line = bytes.as_ptr().with_addr(line);
        if *CLWB {
            // SAFETY: the instruction reads and writes no register, and the line holds bytes of the slice, so it is mapped.
            unsafe { std::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)) };
        } else {
            // SAFETY: the line holds bytes of the slice, so it is mapped.
            unsafe { _mm_clflush(line) };
        }
    }
    // SAFETY: every x86-64 processor has it.
    unsafe { _mm_sfence() };
}

/// The same by several threads, each for a part.
pub fn persist_with_threads(bytes: &[u8], threads: usize) {
    let part = bytes.len().div_ceil(threads.max(1)).next_multiple_of(LINE).max(LINE);
    if threads <= 1 || bytes.len() <= part {
        return persist(bytes);
    }
    std::thread::scope(|scope| {
        bytes.chunks(part).for_each(|part| {
            scope.spawn(move || persist(part));
        });
    });
}

/// CPUID leaf 7: bit 24 of EBX.
fn has_clwb() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx >> 24 & 1 == 1
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_stay_what_they_are() {
        let bytes: Vec<u8> = (0..100_003u32).map(|i| i as u8).collect();
        for threads in [0, 1, 3, 16, 100_000] {
            super::persist_with_threads(&bytes[5..], threads);
        }
        super::persist(&[]);
        assert!(bytes.iter().zip(0u32..).all(|(&byte, i)| byte == i as u8));
    }
}
