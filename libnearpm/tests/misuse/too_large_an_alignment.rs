//! objects of a pool are aligned to 16 bytes

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C, align(32))]
struct Wide {
    words: [u64; 4],
}

fn main() {
    let _ = Wide { words: [0; 4] };
}
