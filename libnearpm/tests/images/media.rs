//! Files of images: the bytes of one memory or of several, with runs of zeros left out.
//!
//! Numbers are of 8 bytes, little-endian: how many memories; of each its bytes and its runs; of
//! each run offset, length and bytes.

/// Runs begin and end at multiples of this.
const GRAIN: usize = 16;

fn runs(medium: &[u8]) -> Vec<(usize, &[u8])> {
    let is_blank = |at: &usize| medium[*at..][..GRAIN].iter().all(|byte| *byte == 0);
    let grains: Vec<usize> = (0..medium.len()).step_by(GRAIN).filter(|at| !is_blank(at)).collect();
    let together = grains.chunk_by(|a, b| a + GRAIN == *b);
    together.map(|run| (run[0], &medium[run[0]..run[0] + run.len() * GRAIN])).collect()
}

/// The file of some memories, each a multiple of 16 bytes long.
pub fn pack(media: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    let put = |file: &mut Vec<u8>, number: usize| file.extend((number as u64).to_le_bytes());
    put(&mut file, media.len());
    for medium in media {
        let runs = runs(medium);
        put(&mut file, medium.len());
        put(&mut file, runs.len());
        for (offset, bytes) in runs {
            put(&mut file, offset);
            put(&mut file, bytes.len());
            file.extend(bytes);
        }
    }
    file
}

/// Takes bytes off the front of a file.
fn take<'f>(file: &mut &'f [u8], bytes: usize) -> &'f [u8] {
    let (front, rest) = file.split_at(bytes);
    *file = rest;
    front
}

fn number(file: &mut &[u8]) -> usize {
    u64::from_le_bytes(take(file, 8).try_into().expect("8 bytes")) as usize
}

/// The memories of a file.
pub fn unpack(mut file: &[u8]) -> Vec<Vec<u8>> {
    let mut media = Vec::new();
    for _ in 0..number(&mut file) {
        let mut medium = vec![0; number(&mut file)];
        for _ in 0..number(&mut file) {
            let (offset, length) = (number(&mut file), number(&mut file));
            medium[offset..][..length].copy_from_slice(take(&mut file, length));
        }
        media.push(medium);
    }
    media
}
