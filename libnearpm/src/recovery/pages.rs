//! Moved pages come home: of pools that are reached by pointer, and before segments are looked for.
//!
//! A page is copied to its place, which is nobody's, and its word says so when the copy is durable.
//! A power cut in between leaves each page at one of the two places, and the next recovery goes on.
//! Where pages have changed places with each other, one of them makes room first.

use nearpm_interface::media::{PAGE_BYTES, PoolHead};

use super::Recovery;
use crate::damage::Class;
use crate::error::Error;
use crate::memory::Medium;
use crate::pages::{HOME_AT_A_TIME, Pages};

/// Brings every page home. The rings have been recovered.
pub(crate) fn bring_home(medium: &Medium, head: &PoolHead, report: &mut Recovery) -> Result<(), Error> {
    let table = head.table()..head.table() + head.pages * 8;
    if medium.words(table).next().is_none() {
        return Ok(());
    }
    let mut pages = Pages::load(medium, *head)?;
    loop {
        let moves = pages.take_towards_home(HOME_AT_A_TIME);
        if moves.is_empty() {
            // Without a page to spare none can have moved.
            let away = (0..head.pages).find(|&logical| pages.page(logical) != logical);
            return away.map_or(Ok(()), |logical| Err(Class::TableWord.at(head.table() + 8 * logical)));
        }
        for &(logical, _) in &moves {
            // Unseen without a card: a command may have written the page behind the cache of a
            // process that is gone.
            medium.invalidate(pages.offset(pages.page(logical)), PAGE_BYTES);
        }
        // Unseen, as what it orders.
        medium.fence()?;
        for &(logical, page) in &moves {
            let (from, to) = (pages.offset(pages.page(logical)), pages.offset(page));
            medium.backing().secure(std::iter::once(to..to + PAGE_BYTES))?;
            medium.put(to, &medium.load_vec(from, PAGE_BYTES));
            report.bytes += PAGE_BYTES;
        }
        // What has gone, or was lost, reads as something else, and no word may name it.
        medium.backing().alive()?;
        medium.drain()?;
        for (logical, page) in moves {
            let former = pages.set(logical, page);
            pages.give(former);
            let (offset, word) = pages.word(logical);
            medium.put_word(offset, word);
            report.redone += 1;
        }
        // Unseen where all come home at once, and others drain before they store: what a page has
        // left is another one's next time.
        medium.drain()?;
    }
}
