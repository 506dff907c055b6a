//! Instructions for cache lines, of whichever processor this runs on.

#![allow(unsafe_code, reason = "they take addresses")]

use nearpm_driver::cache::{
    SUPPORTED, drop_line, fence, full_fence, stream, stream_from, write_back, write_back_lines,
};

/// Lines of memory, where lines begin.
#[repr(C, align(64))]
struct Lines([u8; 256]);

fn filled(seed: u8) -> Box<Lines> {
    Box::new(Lines(std::array::from_fn(|at| (at as u8).wrapping_mul(31) ^ seed)))
}

/// They change no byte but those that are stored, and the processor has them.
#[test]
fn what_is_written_back_streamed_and_dropped_is_what_was_stored() {
    if !SUPPORTED {
        return;
    }
    let (mut lines, other) = (filled(1), filled(2));
    let first = lines.0.as_mut_ptr();
    // SAFETY: all of it lies in the four lines that are there; no reference is used meanwhile.
    unsafe {
        write_back(first);
        // Anywhere within a line it is that line.
        write_back(first.add(100));
        write_back_lines(first, 4);
        fence();
        drop_line(first.add(64));
        full_fence();
    }
    assert_eq!(lines.0, filled(1).0);
    let first = lines.0.as_mut_ptr();
    // SAFETY: as above; what is streamed lies elsewhere, and both are whole lines.
    unsafe {
        stream(first, &other.0[..64]);
        stream_from(first.add(128), other.0.as_ptr().add(128), 128);
        fence();
        (0..4).for_each(|line| drop_line(first.add(64 * line)));
        full_fence();
    }
    assert_eq!(lines.0[..64], other.0[..64]);
    assert_eq!(lines.0[64..128], filled(1).0[64..128]);
    assert_eq!(lines.0[128..], other.0[128..]);
}

/// One thread sees what another one stored, wrote back and fenced before it said so.
#[test]
fn a_fence_orders_what_two_threads_see() {
    use std::sync::atomic::{AtomicU64, Ordering};
    if !SUPPORTED {
        return;
    }
    #[repr(C, align(64))]
    struct Line(AtomicU64);
    let (value, said) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=2000 {
                value.0.store(number, Ordering::Relaxed);
                // SAFETY: the line is there as long as the threads are.
                unsafe { write_back(std::ptr::from_ref(&value).cast_mut().cast()) };
                fence();
                said.0.store(number, Ordering::Release);
            }
        });
        scope.spawn(|| {
            let mut seen = 0;
            while seen < 2000 {
                seen = said.0.load(Ordering::Acquire);
                assert!(value.0.load(Ordering::Relaxed) >= seen);
                std::thread::yield_now();
            }
        });
    });
}
