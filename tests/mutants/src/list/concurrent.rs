//! Faults of pools by offsets with several transactions open.

use super::{library, unit};
use crate::Mutant;

const ALLOCATOR: &str = "libnearpm/src/transaction/allocator.rs";
const BUFFERED: &str = "libnearpm/src/transaction/buffered.rs";
const COLLECTED: &str = "libnearpm/src/transaction/collected.rs";
const SHARED: &str = "libnearpm/src/transaction/shared.rs";

pub const MUTANTS: &[Mutant] = &[
    Mutant {
        breaks: "a commit leaves the tables as they are where it frees an object",
        file: ALLOCATOR,
        find: "Step::Frees { object } => change_tables(protocol, cx, self.heap.removal(object)),",
        with: "Step::Frees { object } if !FAULT => change_tables(protocol, cx, self.heap.removal(object)),",
        tests: unit("undo_beside_others_survives_cuts"),
    },
    Mutant {
        breaks: "a commit leaves the tables as they are where it allocates an object",
        file: ALLOCATOR,
        find: "Step::Allocates { object } => self.heap.allocation(",
        with: "Step::Allocates { .. } if FAULT => Ok(()),
            Step::Allocates { object } => self.heap.allocation(",
        tests: unit("undo_beside_others_survives_cuts"),
    },
    Mutant {
        breaks: "what a transaction has reserved stays taken when it is taken back",
        file: ALLOCATOR,
        find: "Step::Allocates { object } | Step::Cancels { object } => {
                    Self::give_back(&self.heap, &mut self.arena, object);",
        with: "Step::Allocates { object } | Step::Cancels { object } => {
                    if !FAULT { Self::give_back(&self.heap, &mut self.arena, object); }",
        tests: library("concurrent", "what_is_open_is_neither_an_object_nor_free"),
    },
    Mutant {
        breaks: "what a transaction has written is told to the mechanism only where it has declared it",
        file: COLLECTED,
        find: "self.writes.runs().try_for_each(",
        with: "self.writes.runs().filter(|_| !FAULT || !self.declared.is_empty()).try_for_each(",
        tests: unit("undo_beside_others_survives_cuts"),
    },
    Mutant {
        breaks: "a commit that was posted is not waited for",
        file: BUFFERED,
        find: "Ok((durability == Durability::Durable).then_some(awaited))",
        with: "Ok((durability == Durability::Durable && !FAULT).then_some(awaited))",
        tests: library("concurrent", "a_durable_commit_acknowledges_asynchronous_ones"),
    },
    Mutant {
        breaks: "a commit that was posted counts as acknowledged before anything was read back",
        file: SHARED,
        find: "let waited = self.together.wait(&self.medium, awaited.number);",
        with: "let waited = if FAULT { Ok(()) } else { self.together.wait(&self.medium, awaited.number) };",
        tests: unit("undo_beside_others_on_a_card_survives_cuts"),
    },
    Mutant {
        breaks: "an object that an open transaction is to free is missing for a check",
        file: ALLOCATOR,
        find: "if self.heap.says_the_same(&pool.heap, &self.claimed) {",
        with: "if self.heap.says_the_same(&pool.heap, if FAULT { &pool.claimed } else { &self.claimed }) {",
        tests: library("concurrent", "what_is_open_is_neither_an_object_nor_free"),
    },
    Mutant {
        breaks: "the next processor's commit comes ahead of what this one's has stored behind its fence",
        file: BUFFERED,
        find: "let handed_over = hand_over(self.shared.mechanism, &inner.cx);",
        with: "let handed_over = if FAULT { Ok(()) } else { hand_over(self.shared.mechanism, &inner.cx) };",
        tests: unit("redo_beside_others_survives_cuts"),
    },
    Mutant {
        breaks: "the next processor's commit comes ahead of the words that an epoch's end has stored",
        file: SHARED,
        find: "inner.persist().and_then(|()| hand_over(self.mechanism, &inner.cx))?;",
        with: "inner.persist().and_then(|()| if FAULT { Ok(()) } else { hand_over(self.mechanism, &inner.cx) })?;",
        tests: unit("shadow_pages_beside_others_survive_cuts"),
    },
    Mutant {
        breaks: "a log of another member comes over an object that was made without one",
        file: "libnearpm/src/mechanism/redo_log.rs",
        find: "self.counting.iter().any(",
        with: "!FAULT && self.counting.iter().any(",
        tests: unit("a_log_that_counts_still"),
    },
];
