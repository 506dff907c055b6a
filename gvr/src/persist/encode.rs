//! How a block's bytes are kept in a pool: the shortest of the forms that are tried.

use super::format::{CHANGES, DELTA, LZ4, PLANES, RAW};

/// Bytes of a word of deltas.
const WORD: usize = 8;
/// Words that are equal and lie between two that differ are kept with them, if they are fewer: a
/// run has a head as long.
const GAP: usize = 2;

/// Blocks from this size on are looked at in a few places first.
const LARGE: usize = 2048;
/// Places that are looked at.
const SAMPLES: usize = 4;
/// Behind so many blocks in a row that were other ones, one place of every [`SAMPLES`]th block is
/// looked at, in turn: what is looked at lies in no cache. The few that are then kept whole though
/// little of them changed cost space alone.
const SURE: usize = 16;

/// The form of a block other than its bytes, if one is much shorter. `before` is what it was in the
/// version before.
pub fn encode(block: &[u8], before: &[u8], compress: bool) -> Option<(u32, Vec<u8>)> {
    if let Some(delta) = delta(block, before) {
        return Some((DELTA, delta));
    }
    if !compress {
        return None;
    }
    let changes: Vec<u8> = block.iter().zip(before).map(|(now, then)| now ^ then).collect();
    let forms = [(LZ4, block), (PLANES, &planes(block)[..]), (CHANGES, &planes(&changes)[..])];
    let packed = forms.map(|(form, bytes)| (form, lz4_flex::block::compress(bytes)));
    let shortest = packed.into_iter().min_by_key(|(_, packed)| packed.len())?;
    (shortest.1.len() < block.len() / 16 * 15).then_some(shortest)
}

/// The first bytes of all words, then the second ones, and so on; then what is left.
fn planes(block: &[u8]) -> Vec<u8> {
    let words = block.chunks_exact(WORD);
    let rest = words.remainder();
    let plane = |byte| words.clone().map(move |word| word[byte]);
    (0..WORD).flat_map(plane).chain(rest.iter().copied()).collect()
}

/// The opposite of [`planes`].
fn words_of(planes: &[u8], block: &mut [u8]) {
    let words = block.len() / WORD;
    for (at, byte) in planes[..words * WORD].iter().enumerate() {
        block[at % words * WORD + at / words] = *byte;
    }
    block[words * WORD..].copy_from_slice(&planes[words * WORD..]);
}

fn unpack_planes(kept: &[u8], block: &mut [u8], changes: bool) -> bool {
    let mut bytes = vec![0; block.len()];
    if !lz4_flex::block::decompress_into(kept, &mut bytes).is_ok_and(|unpacked| unpacked == block.len()) {
        return false;
    }
    let mut words = vec![0; block.len()];
    words_of(&bytes, &mut words);
    for (to, word) in block.iter_mut().zip(words) {
        *to = if changes { *to ^ word } else { word };
    }
    true
}

/// Offsets at which a large block is compared with the one before: where all of them differ, it is
/// another one, and is kept as it is without a look at the rest. `others` is how many blocks in
/// front of it were found to be other ones.
pub fn samples(block: usize, others: usize) -> Option<impl ExactSizeIterator<Item = u64>> {
    let step = block / SAMPLES / WORD * WORD;
    let place = others / SAMPLES % SAMPLES;
    let looked = match others {
        0..SURE => 0..SAMPLES,
        _ if others.is_multiple_of(SAMPLES) => place..place + 1,
        _ => 0..0,
    };
    // Not the beginning of each piece, where programs keep what they change least.
    (block >= LARGE).then(|| looked.map(move |at| (at * step + (at + 1) * WORD) as u64))
}

/// Runs of words that differ: first word, words, the words. `None` if that is more than half a
/// block.
fn delta(block: &[u8], before: &[u8]) -> Option<Vec<u8>> {
    let words = block.len().div_ceil(WORD);
    let bytes = |word: usize| word * WORD..((word + 1) * WORD).min(block.len());
    let differs = |word: &usize| block[bytes(*word)] != before[bytes(*word)];
    // Mostly this says it, at the speed of memory.
    let many = block.chunks_exact(WORD).zip(before.chunks_exact(WORD)).filter(|(now, then)| now != then).count();
    if 2 * many * WORD > block.len() {
        return None;
    }
    let mut delta = Vec::new();
    let mut at = 0;
    while let Some(first) = (at..words).find(differs) {
        let mut end = first + 1;
        while let Some(next) = (end..words.min(end + GAP)).find(differs) {
            end = next + 1;
        }
        delta.extend((first as u32).to_le_bytes());
        delta.extend(((end - first) as u32).to_le_bytes());
        delta.extend(&block[first * WORD..(end * WORD).min(block.len())]);
        if delta.len() > block.len() / 2 {
            return None;
        }
        at = end;
    }
    Some(delta)
}

/// Makes a block of what is kept; `block` holds what it was in the version before, and is changed.
/// `false` if the bytes make no sense.
pub fn decode(encoding: u32, kept: &[u8], block: &mut [u8]) -> bool {
    match encoding {
        RAW if kept.len() == block.len() => {
            block.copy_from_slice(kept);
            true
        }
        LZ4 => lz4_flex::block::decompress_into(kept, block).is_ok_and(|bytes| bytes == block.len()),
        DELTA => apply(kept, block),
        PLANES | CHANGES => unpack_planes(kept, block, encoding == CHANGES),
        _ => false,
    }
}

fn apply(mut delta: &[u8], block: &mut [u8]) -> bool {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap_or_default()) as usize;
    while !delta.is_empty() {
        let Some((head, rest)) = delta.split_at_checked(8) else { return false };
        let (first, words) = (number(&head[..4]), number(&head[4..]));
        let Some(to) = block.get_mut(first.saturating_mul(WORD)..first.saturating_add(words).saturating_mul(WORD))
        else {
            return false;
        };
        let Some((data, rest)) = rest.split_at_checked(to.len()) else { return false };
        to.copy_from_slice(data);
        delta = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_gives_the_block_again() {
        let before: Vec<u8> = (0..512_u32).map(|at| (at * 7 % 251) as u8).collect();
        let mut one = before.clone();
        one[100] ^= 1;
        let mut far = one.clone();
        far[508] ^= 1;
        let other: Vec<u8> = before.iter().map(|byte| byte.wrapping_mul(91) ^ 0x55).collect();
        for (block, form) in [(&before, DELTA), (&one, DELTA), (&far, DELTA), (&other, RAW)] {
            let (encoding, kept) = encode(block, &before, false).unwrap_or((RAW, block.clone()));
            assert_eq!(encoding, form);
            let mut back = before.clone();
            assert!(decode(encoding, &kept, &mut back) && back == *block);
        }
        assert!(encode(&far, &before, false).unwrap().1.len() <= 2 * 16);
        let (encoding, kept) = encode(&[7; 512], &before, true).unwrap();
        let mut back = vec![0; 512];
        assert!(encoding == LZ4 && kept.len() < 40 && decode(encoding, &kept, &mut back) && back == [7; 512]);
    }

    #[test]
    fn floating_point_numbers_are_kept_by_planes_and_by_changes() {
        let bytes = |number: &dyn Fn(f64) -> f64| -> Vec<u8> {
            (0..1024).flat_map(|at| number(f64::from(at)).to_le_bytes()).collect()
        };
        let before = bytes(&|at| 1.0 + (at * 0.37).sin() * 1e-3);
        let near = bytes(&|at| 1.0 + (at * 0.37).sin() * 1e-3 + (at * 0.11).cos() * 1e-9);
        for (then, now, form) in [(&vec![0xa5; 8192], &near, PLANES), (&before, &near, CHANGES)] {
            let (encoding, kept) = encode(now, then, true).unwrap();
            assert!(encoding == form && kept.len() < 8192 * 4 / 5, "{encoding}: {}", kept.len());
            let mut back = then.clone();
            assert!(decode(encoding, &kept, &mut back) && back == *now);
        }
        let mut odd = vec![0; 21];
        words_of(&planes(&(0..21).collect::<Vec<u8>>()), &mut odd);
        assert!(odd.into_iter().eq(0..21));
    }

    #[test]
    fn samples_lie_in_large_blocks() {
        assert!(samples(LARGE - 8, 0).is_none());
        for size in [LARGE, LARGE + 8, 8192, 1 << 24] {
            let places: Vec<u64> = samples(size, 0).unwrap().collect();
            assert!(places.len() == SAMPLES && places.windows(2).all(|two| two[0] < two[1]));
            assert!(places.iter().all(|at| at % 8 == 0 && *at as usize + 8 <= size), "{places:?}");
            let sure = SURE..SURE + SAMPLES * SAMPLES;
            assert_eq!(sure.flat_map(|others| samples(size, others).unwrap()).collect::<Vec<u64>>(), places);
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let mut block = vec![0; 64];
        for (encoding, kept) in [
            (RAW, vec![0; 63]),
            (LZ4, vec![0xff; 9]),
            (DELTA, vec![1; 5]),
            (DELTA, vec![0xff; 16]),
            (CHANGES, vec![0xff; 9]),
            (9, vec![]),
        ] {
            assert!(!decode(encoding, &kept, &mut block), "{encoding} {kept:?}");
        }
    }
}
