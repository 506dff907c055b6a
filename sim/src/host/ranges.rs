//! Byte ranges, cut at lines and words.

/// Bits `start` to `start + length`.
pub fn mask(start: usize, length: usize) -> u64 {
    (u64::MAX >> (64 - length)) << start
}

/// Start of the aligned piece, range in the piece, range in the data.
pub type Part = (u64, std::ops::Range<usize>, std::ops::Range<usize>);

/// Splits a range at multiples of `size`: start of the aligned piece, range in the piece, range in
/// the data.
pub fn split(offset: u64, length: usize, size: u64) -> impl Iterator<Item = Part> {
    let end = offset + length as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let start = at / size * size;
            let stop = end.min(start + size);
            let part = (at - offset) as usize..(stop - offset) as usize;
            let range = (at - start) as usize..(stop - start) as usize;
            at = stop;
            (start, range, part)
        })
    })
}
