//! A pool file of PMDK's libpmemobj with as little in it as can be: one object, which is the root,
//! and in it an identifier of itself.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The layout's name.
pub const LAYOUT: &str = "one object";
/// What the object holds behind the identifier.
pub const TEXT: &[u8] = b"brought along";
/// The object's type number.
pub const TYPE: u64 = 5;
/// Bytes of the object that the program may use.
pub const OBJECT_BYTES: u64 = 4080;

const PAGE: usize = 4096;
const LANE: u64 = 3072;
const CHUNK: u64 = 256 << 10;
/// Most chunks of a zone.
pub const ZONE_CHUNKS: u64 = 65528;
const ZONE_TABLES: u64 = 64 + 8 * ZONE_CHUNKS;
/// From one zone to the next.
pub const ZONE_BYTES: u64 = ZONE_TABLES + ZONE_CHUNKS * CHUNK;
const UUID_LO: u64 = 0x0102_0304_0506_0708;

/// What of the file may be wrong.
pub struct Shape {
    /// Where the heap begins.
    pub heap: u64,
    /// Bytes of the heap.
    pub heap_bytes: u64,
    /// Lanes, by the head.
    pub lanes: u64,
    /// The zone that is in use.
    pub zone: u64,
    /// Bytes of the root, by the head; 0: there is no root.
    pub root_bytes: u64,
}

impl Default for Shape {
    /// Nothing is.
    fn default() -> Shape {
        let (lanes, first) = (1, 2 * PAGE as u64);
        Shape { heap: first + lanes * LANE, heap_bytes: 2 << 20, lanes, zone: 0, root_bytes: 64 }
    }
}

/// Fletcher's checksum of 32-bit words, with sums that wrap.
fn sum(bytes: &[u8]) -> u64 {
    let (mut low, mut high) = (0u32, 0u32);
    for word in bytes.chunks_exact(4) {
        low = low.wrapping_add(u32::from_le_bytes(word.try_into().expect("four bytes")));
        high = high.wrapping_add(low);
    }
    u64::from(high) << 32 | u64::from(low)
}

fn put(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Writes the file; what nothing lies in is a hole.
pub fn write(path: &Path, shape: &Shape) {
    let zone = shape.heap + 1024 + shape.zone * ZONE_BYTES;
    let chunk = zone + ZONE_TABLES;
    let object = chunk + 16;

    let mut head = vec![0; PAGE];
    head[..8].copy_from_slice(b"PMEMOBJ\0");
    head[8] = 6;
    head[24..32].copy_from_slice(&UUID_LO.to_be_bytes());
    (head[136], head[137]) = (2, 1);
    let head_sum = sum(&head);
    put(&mut head, 4088, head_sum);

    let mut description = vec![0; PAGE];
    description[..LAYOUT.len()].copy_from_slice(LAYOUT.as_bytes());
    put(&mut description, 1024, 2 * PAGE as u64);
    put(&mut description, 1032, shape.lanes);
    put(&mut description, 1040, shape.heap);
    let description_sum = sum(&description[..2048]);
    put(&mut description, 2040, description_sum);
    put(&mut description, 2048, if shape.root_bytes == 0 { 0 } else { object });
    put(&mut description, 2064, shape.root_bytes);
    put(&mut description, 2080, shape.heap_bytes);

    let mut heap = vec![0; 1024];
    heap[..16].copy_from_slice(b"MEMORY_HEAP_HDR\0");
    let heap_sum = sum(&heap);
    put(&mut heap, 1016, heap_sum);

    // One chunk, which is used, by an object with a compact header.
    let mut tables = vec![0; 72];
    put(&mut tables, 0, 1 << 32 | 0xC3F0_A2D2);
    put(&mut tables, 64, 1 << 32 | 1 << 16 | 3);
    let mut contents = vec![0; 64];
    put(&mut contents, 0, OBJECT_BYTES + 16);
    put(&mut contents, 8, TYPE);
    put(&mut contents, 16, UUID_LO);
    put(&mut contents, 24, object);
    contents[32..32 + TEXT.len()].copy_from_slice(TEXT);

    let file = File::create_new(path).unwrap();
    file.set_len(shape.heap + shape.heap_bytes).unwrap();
    for (bytes, at) in [(head, 0), (description, PAGE as u64), (heap, shape.heap), (tables, zone), (contents, chunk)] {
        file.write_all_at(&bytes, at).unwrap();
    }
}
