//! Faults of direct pools whose commits a mechanism brings home.

use super::{library, unit};
use crate::Mutant;

const BY_MECHANISM: &str = "libnearpm/src/direct/by_mechanism.rs";
const MECHANISM: &str = "libnearpm/src/mechanism/mod.rs";
const BATCH: &str = "libnearpm/src/mechanism/batch.rs";
const TOGETHER: &str = "libnearpm/src/mechanism/together.rs";
const TRANSACTION: &str = "libnearpm/src/direct/transaction.rs";

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "two lanes change words of the heap's tables at the same time",
        file: BY_MECHANISM,
        find: "What::Shared if self.lanes.len() == 1 => None,",
        with: "What::Shared if self.lanes.len() == 1 || FAULT => None,",
        tests: unit("threads_with_lanes_of_their_own"),
    },
    Mutant {
        breaks: "a turn is that of the first lane alone",
        file: BY_MECHANISM,
        find: "let lanes = (0..self.lanes.len()).map(",
        with: "let lanes = (0..if FAULT { 1 } else { self.lanes.len() }).map(",
        tests: unit("a_turn_is_that_of_every_lane"),
    },
    Mutant {
        breaks: "a turn takes the lanes against their order",
        file: BY_MECHANISM,
        find: "self.lock(pool, lane)).collect::<Result<_, _>>()?;",
        with: "self.lock(pool, if FAULT { self.lanes.len() - 1 - lane } else { lane })).collect::<Result<_, _>>()?;",
        tests: unit("a_turn_is_that_of_every_lane"),
    },
    Mutant {
        breaks: "a recovery names a page's place before the copy there is durable",
        file: "libnearpm/src/recovery/pages.rs",
        find: "medium.backing().alive()?;\n        medium.drain()?;",
        with: "medium.backing().alive()?;\n        if !FAULT { medium.drain()?; }",
        tests: unit("a_working_copy_by_shadow_pages"),
    },
    Mutant {
        breaks: "a recovery leaves moved pages where they are",
        file: "libnearpm/src/recovery/pages.rs",
        find: "if medium.words(table).next().is_none() {",
        with: "if FAULT || medium.words(table).next().is_none() {",
        tests: library("direct_card", "pages_that_shadow_paging_has_moved"),
    },
    Mutant {
        breaks: "a place that a page has left is lost to a recovery",
        file: "libnearpm/src/recovery/pages.rs",
        find: "pages.give(former);",
        with: "if !FAULT { pages.give(former); }",
        tests: library("direct_card", "pages_that_shadow_paging_has_moved"),
    },
    Mutant {
        breaks: "a commit is acknowledged before anything was read back",
        file: TOGETHER,
        find: "if self.acknowledged.load(Ordering::Acquire) >= number {",
        with: "if FAULT || self.acknowledged.load(Ordering::Acquire) >= number {",
        tests: library("direct_card", "threads_that_wait_together"),
    },
    Mutant {
        breaks: "the end of an epoch is not waited for",
        file: BY_MECHANISM,
        find: "End::Durable => self.protocol.persist(&mut self.cx),",
        with: "End::Durable if !FAULT => self.protocol.persist(&mut self.cx),\n                End::Durable => Ok(()),",
        tests: unit("a_working_copy_by_checkpoints"),
    },
    Mutant {
        breaks: "an epoch is not posted that a commit waits for",
        file: BY_MECHANISM,
        find: "End::Posted => self.protocol.post(&mut self.cx),",
        with: "End::Posted if !FAULT => self.protocol.post(&mut self.cx),\n                End::Posted => Ok(()),",
        tests: library("direct_card", "threads_that_wait_together"),
    },
    Mutant {
        breaks: "what the processor has stored on a card is acknowledged by a fence alone",
        file: "libnearpm/src/executor/read_back.rs",
        find: "Posted::Stores => medium.drain(),",
        with: "Posted::Stores if FAULT => medium.fence(),\n            Posted::Stores => medium.drain(),",
        tests: library("direct_card", "threads_that_wait_together"),
    },
    Mutant {
        breaks: "a wait is told of no failure that somebody else was told of",
        file: "libnearpm/src/executor/read_back.rs",
        find: "if self.card.has_failed(self.page, self.pool, self.thread)? {",
        with: "if !FAULT && self.card.has_failed(self.page, self.pool, self.thread)? {",
        tests: unit("a_failure_is_told_to_all_who_wait"),
    },
    Mutant {
        breaks: "what a processor has applied is left to the fences of the next",
        file: MECHANISM,
        find: "if stores_behind_commits && by_this_processor {",
        with: "if !FAULT && stores_behind_commits && by_this_processor {",
        tests: unit("a_working_copy_by_redo_logs"),
    },
    Mutant {
        breaks: "a freed object stays one",
        file: BATCH,
        find: "Change::Clear(_, mask, form) => Word::changed(former, offset, (0, mask, form))?,",
        with: "Change::Clear(_, mask, form) => Word::changed(former, offset, if FAULT { (mask, 0, form) } else { (0, mask, form) })?,",
        tests: unit("a_working_copy_by_undo_logs"),
    },
    Mutant {
        breaks: "of several changes of a word the last one counts",
        file: BATCH,
        find: "Word::Bits { set: was_set & !clear | set,",
        with: "Word::Bits { set: if FAULT { set } else { was_set & !clear | set },",
        tests: unit("changes_of_a_word_add_up"),
    },
    Mutant {
        breaks: "what lies in front of a new object counts as new",
        file: BATCH,
        find: "Some(range) => (range.start, false),",
        with: "Some(range) => (range.start, FAULT),",
        tests: unit("parts_are_what_was_added"),
    },
    Mutant {
        breaks: "a commit stores home what it has not logged",
        file: "libnearpm/src/mechanism/undo.rs",
        find: "if !self.logged.is_empty() {\n            self.log(cx)?;\n        }",
        with: "if !FAULT && !self.logged.is_empty() {\n            self.log(cx)?;\n        }",
        tests: unit("a_working_copy_by_undo_logs"),
    },
    Mutant {
        breaks: "new objects of 512 bytes and more do not go home",
        file: TRANSACTION,
        find: "state.home.iter().cloned().chain(state.known.iter()).try_for_each(",
        with: "state.home.iter().filter(|_| !FAULT).cloned().chain(state.known.iter()).try_for_each(",
        tests: unit("a_working_copy_by_undo_logs"),
    },
    Mutant {
        breaks: "what the ring had no room for stays in the next commit",
        file: BY_MECHANISM,
        find: "self.protocol.abort(&mut self.cx).map_err(|error| pool.poison(error))?;",
        with: "if !FAULT { self.protocol.abort(&mut self.cx).map_err(|error| pool.poison(error))?; }",
        tests: library("direct_card", "what_the_ring_has_no_room_for"),
    },
    Mutant {
        breaks: "moved pages are elsewhere when records are written past the mechanism",
        file: BY_MECHANISM,
        find: "inner.protocol.bring_home(&mut inner.cx)?;",
        with: "if !FAULT { inner.protocol.bring_home(&mut inner.cx)?; }",
        tests: library("direct_card", "what_the_ring_has_no_room_for"),
    },
    Mutant {
        breaks: "a recovery looks for segments where the tables were before they moved",
        file: "libnearpm/src/recovery/mod.rs",
        find: "if segments::applied(medium)?.is_some() {",
        with: "if !FAULT && segments::applied(medium)?.is_some() {",
        tests: unit("a_working_copy_by_shadow_pages"),
    },
    Mutant {
        breaks: "a working copy shows pages of its file where others move to",
        file: "libnearpm/src/direct/lifetime.rs",
        find: "(None, Some(Mechanism::Shadow)) =>",
        with: "(None, Some(Mechanism::Shadow)) if !FAULT =>",
        tests: library("direct", "what_takes_the_place_of_a_page"),
    },
    Mutant {
        breaks: "the log takes segments while pages of the tables are elsewhere",
        file: "libnearpm/src/direct/truncate.rs",
        find: "let _turn = self.settled()?;",
        with: "let _turn = if FAULT { None } else { self.settled()? };",
        tests: unit("large_commits_are_whole_at_every_cut"),
    },
];
