//! The head of a pool.

use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{PAGE_BYTES, POOL_GROWN, POOL_MAGIC, POOL_OPENED, PoolHead};
use nearpm_interface::seal;

use super::{Class, Found, one_bit};
use crate::error::Problem;
use crate::memory::Medium;
use crate::pool::format;

/// The head, or what is wrong with it.
pub(super) fn examine(medium: &Medium) -> Result<PoolHead, Found> {
    let problem = match format::read(medium) {
        Ok(head) => return Ok(head),
        Err(problem) => problem,
    };
    if matches!(problem, Problem::Corrupt { what, .. } if what == Class::GrownWord.what()) {
        let word = medium.load_word(POOL_GROWN);
        // One bit alone was zero, as in most pools.
        let mended = if word.is_power_of_two() {
            Some(0)
        } else {
            one_bit::sealed_word(word, |end| end * PAGE_BYTES <= medium.bytes())
        };
        return Err(Found::new(Class::GrownWord, POOL_GROWN).mend_word(mended));
    }
    let class = match &problem {
        Problem::Unfinished => Class::HeadBlank,
        Problem::Foreign { .. } => Class::HeadMagic,
        Problem::Newer { .. } => Class::HeadVersion,
        Problem::Truncated { .. } => Class::FileShort,
        Problem::Corrupt { what, .. } => Class::of(what).unwrap_or(Class::HeadShape),
        _ => Class::HeadShape,
    };
    let found = Found::new(class, 0);
    let mut line = [0; LINE];
    if medium.bytes() < LINE as u64 || class == Class::HeadBlank {
        return Err(found);
    }
    medium.load(0, &mut line);
    // A sealed line is what somebody wrote; one with a single wrong bit is what the pool's maker
    // wrote.
    let mended = if seal::is_sealed(&[], &line) { None } else { one_bit::sealed_line(&line) };
    Err(match mended {
        Some(line) if format::parse(&line, medium.bytes()).is_ok() => found.mend(line.to_vec()),
        _ => found,
    })
}

/// Refuses a file that was never a pool. One whose magic number alone is damaged is sealed with the
/// right one.
pub(super) fn refuse_foreign(medium: &Medium) -> Result<(), Problem> {
    let Err(problem @ Problem::Foreign { .. }) = format::read(medium) else { return Ok(()) };
    let Err(found) = examine(medium) else { return Ok(()) };
    if found.finding.repairable {
        return Ok(());
    }
    let mut line = [0; LINE];
    if medium.bytes() < LINE as u64 {
        return Err(problem);
    }
    medium.load(0, &mut line);
    line[..8].copy_from_slice(&POOL_MAGIC.to_le_bytes());
    if seal::is_sealed(&[], &line) { Ok(()) } else { Err(problem) }
}

/// The word beside the head. Only a pool on a card uses it.
pub(super) fn opened_word(medium: &Medium) -> Option<Found> {
    let word = medium.load_word(POOL_OPENED);
    let sound = word == 0 || seal::open_word(word).is_some();
    // Zero is what a file has there.
    (!sound).then(|| Found::new(Class::OpenedWord, POOL_OPENED).mend(vec![0; 8]))
}
